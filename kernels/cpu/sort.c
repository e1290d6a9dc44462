/* sort.c: sorting lines by radix.  Values become unsigned numbers in their order; a pair (number, place) is sorted by
 * digits of a byte, the lowest first, skipping digits that are the same in all.  Numbers of 32 bits have pairs of half
 * the size, which is nearly half the time. */
#include "sort.h"

#include "move.h"
#include "op.h"

#include <string.h>

/* ------------------------------------------------------------------------------------------------ keys ------------ */

static uint32_t key_of_float(float v) {
  uint32_t u;
  if (v != v) return UINT32_MAX;
  if (v == 0) v = 0;                    /* -0 */
  memcpy(&u, &v, sizeof u);
  return u >> 31 ? ~u : u | 0x80000000u;
}

static uint64_t key_of_double(double v) {
  uint64_t u;
  if (v != v) return UINT64_MAX;
  if (v == 0) v = 0;
  memcpy(&u, &v, sizeof u);
  return u >> 63 ? ~u : u | 1ull << 63;
}

static bool is_wide(int dtype) { return dtype == AMPL_F64 || dtype == AMPL_I64; }

enum { BLOCK = 256, SOME = 1 << 16 };

/* 32-bit keys, from dtypes that are not wide. */
static void narrow_keys(int dtype, const char *data, int64_t step, int64_t n, uint32_t flip, uint32_t *key,
                        int64_t apart) {
  int64_t size = (int64_t)ampl_dtype_size((ampl_dtype)dtype);
  union { float f[BLOCK]; int64_t i[BLOCK]; } v;
  bool is_float = ampl_dtype_is_float((ampl_dtype)dtype);
  for (int64_t i = 0; i < n; i += BLOCK) {
    int64_t m = n - i < BLOCK ? n - i : BLOCK;
    ampl_cpu_widen(is_float ? AMPL_WORK_F32 : AMPL_WORK_I64, &v, dtype, data + i * step * size, step, m);
    for (int64_t j = 0; j < m; j++)
      key[(i + j) * apart] = (is_float ? key_of_float(v.f[j]) : (uint32_t)v.i[j] ^ 0x80000000u) ^ flip;
  }
}

static void wide_keys(int dtype, const char *data, int64_t step, int64_t n, uint64_t flip, uint64_t *key,
                      int64_t apart) {
  for (int64_t i = 0; i < n; i++) {
    uint64_t k = dtype == AMPL_F64 ? key_of_double(((const double *)data)[i * step])
                                   : (uint64_t)((const int64_t *)data)[i * step] ^ 1ull << 63;
    key[i * apart] = k ^ flip;
  }
}

void ampl_cpu_sort_keys(int dtype, const char *data, int64_t step, int64_t n, uint64_t *key) {
  uint32_t small[BLOCK];
  int64_t size = (int64_t)ampl_dtype_size((ampl_dtype)dtype);
  if (is_wide(dtype)) {
    wide_keys(dtype, data, step, n, 0, key, 1);
    return;
  }
  for (int64_t i = 0; i < n; i += BLOCK) {
    int64_t m = n - i < BLOCK ? n - i : BLOCK;
    narrow_keys(dtype, data + i * step * size, step, m, 0, small, 1);
    for (int64_t j = 0; j < m; j++) key[i + j] = small[j] == UINT32_MAX ? UINT64_MAX : small[j];
  }
}

/* ------------------------------------------------------------------------------------------------ pairs ----------- */

typedef struct pair32 { uint32_t key, at; } pair32;
typedef struct pair64 { uint64_t key, at; } pair64;

#define BY_PAIR(P)                                                                                                     \
  static bool before_##P(P a, P b) { return a.key < b.key || (a.key == b.key && a.at < b.at); }                        \
  static void insertion_##P(P *a, int64_t n) {                                                                         \
    for (int64_t i = 1; i < n; i++) {                                                                                  \
      P v = a[i];                                                                                                      \
      int64_t j = i;                                                                                                   \
      for (; j > 0 && before_##P(v, a[j - 1]); j--) a[j] = a[j - 1];                                                   \
      a[j] = v;                                                                                                        \
    }                                                                                                                  \
  }                                                                                                                    \
  /* sorts a, with b as room; the result is in what is returned; NULL: interrupted */                                  \
  static P *sort_##P(ampl_ctx *ctx, P *a, P *b, int64_t n) {                                                           \
    int64_t count[sizeof a->key][256];                                                                                 \
    if (n <= 48) {                                                                                                     \
      insertion_##P(a, n);                                                                                             \
      return a;                                                                                                        \
    }                                                                                                                  \
    memset(count, 0, sizeof count);                                                                                    \
    for (int64_t from = 0, to; from < n; from = to) {                                                                  \
      if (ampl_cpu_stop(ctx)) return NULL;                                                                             \
      to = n - from < SOME ? n : from + SOME;                                                                          \
      for (int64_t i = from; i < to; i++)                                                                              \
        for (unsigned d = 0; d < sizeof a->key; d++) count[d][a[i].key >> 8 * d & 255]++;                              \
    }                                                                                                                  \
    for (unsigned d = 0; d < sizeof a->key; d++) {                                                                     \
      if (ampl_cpu_stop(ctx)) return NULL;                                                                             \
      int64_t *c = count[d], at = 0;                                                                                   \
      if (c[a[0].key >> 8 * d & 255] == n) continue;                                                                   \
      for (int k = 0; k < 256; k++) {                                                                                  \
        int64_t these = c[k];                                                                                          \
        c[k] = at;                                                                                                     \
        at += these;                                                                                                   \
      }                                                                                                                \
      for (int64_t from = 0, to; from < n; from = to) {                                                                \
        if (ampl_cpu_stop(ctx)) return NULL;                                                                           \
        to = n - from < SOME ? n : from + SOME;                                                                        \
        for (int64_t i = from; i < to; i++) b[c[a[i].key >> 8 * d & 255]++] = a[i];                                    \
      }                                                                                                                \
      P *t = a;                                                                                                        \
      a = b, b = t;                                                                                                    \
    }                                                                                                                  \
    return a;                                                                                                          \
  }                                                                                                                    \
  static void sink_##P(P *heap, int64_t n, int64_t i, P v) {                                                           \
    for (int64_t child; (child = 2 * i + 1) < n; i = child) {                                                          \
      if (child + 1 < n && before_##P(heap[child], heap[child + 1])) child++;                                          \
      if (!before_##P(v, heap[child])) break;                                                                          \
      heap[i] = heap[child];                                                                                           \
    }                                                                                                                  \
    heap[i] = v;                                                                                                       \
  }                                                                                                                    \
  /* a heap of the k best so far, the worst on top: made of k pairs, offered the others, and put in order */           \
  static void heap_##P(P *heap, int64_t k) {                                                                           \
    for (int64_t i = k / 2 - 1; i >= 0; i--) sink_##P(heap, k, i, heap[i]);                                            \
  }                                                                                                                    \
  static void offer_##P(P *heap, int64_t k, const P *v, int64_t n) {                                                   \
    for (int64_t i = 0; i < n; i++)                                                                                    \
      if (v[i].key < heap[0].key) sink_##P(heap, k, 0, v[i]); /* of equals the first ones stay */                      \
  }                                                                                                                    \
  static bool order_##P(ampl_ctx *ctx, P *heap, int64_t k) {                                                           \
    for (int64_t end = k - 1; end > 0; end--) {                                                                        \
      if (ampl_cpu_stop_at(ctx, end, 1)) return false;                                                                 \
      P v = heap[end];                                                                                                 \
      heap[end] = heap[0];                                                                                             \
      sink_##P(heap, end, 0, v);                                                                                       \
    }                                                                                                                  \
    return true;                                                                                                       \
  }

BY_PAIR(pair32)
BY_PAIR(pair64)

size_t ampl_cpu_sort_room(int64_t n) { return 2 * (size_t)(n > 0 ? n : 1) * sizeof(pair64); }

/* The first k of n in order: of many the best k, else all sorted. */
#define ORDER(P, keys, full_flip)                                                                                      \
  do {                                                                                                                 \
    P *a = room, *b = a + n, some[BLOCK];                                                                              \
    int64_t first = k < n / 4 ? k : n, size = (int64_t)ampl_dtype_size((ampl_dtype)dtype);                             \
    const int64_t apart = (int64_t)(sizeof *a / sizeof a->key);                                                        \
    keys(dtype, data, step, first, falling ? (full_flip) : 0, &a->key, apart);                                         \
    for (int64_t i = 0; i < first; i++) a[i].at = (__typeof__(a->at))i;                                                \
    if (first == n) {                                                                                                  \
      if (!(a = sort_##P(ctx, a, b, n))) return false;                                                                 \
    } else {                                                                                                           \
      heap_##P(a, k);                                                                                                  \
      for (int64_t i = k; i < n; i += BLOCK) {                                                                         \
        int64_t m = n - i < BLOCK ? n - i : BLOCK;                                                                     \
        if (ampl_cpu_stop_at(ctx, i, m)) return false;                                                                 \
        keys(dtype, data + i * step * size, step, m, falling ? (full_flip) : 0, &some->key, apart);                    \
        for (int64_t j = 0; j < m; j++) some[j].at = (__typeof__(a->at))(i + j);                                       \
        offer_##P(a, k, some, m);                                                                                      \
      }                                                                                                                \
      if (!order_##P(ctx, a, k)) return false;                                                                         \
    }                                                                                                                  \
    for (int64_t i = 0; i < k; i++) order[i] = (int64_t)a[i].at;                                                       \
  } while (0)

bool ampl_cpu_select(ampl_ctx *ctx, int dtype, const char *data, int64_t step, int64_t n, int64_t k, bool falling,
                     int64_t *order, void *room) {
  if (is_wide(dtype) || n > UINT32_MAX) {
    if (is_wide(dtype)) {
      ORDER(pair64, wide_keys, UINT64_MAX);
    } else {
      pair64 *a = room, *b = a + n;
      ampl_cpu_sort_keys(dtype, data, step, n, (uint64_t *)b);
      for (int64_t i = 0; i < n; i++) a[i] = (pair64){((uint64_t *)b)[i] ^ (falling ? UINT64_MAX : 0), (uint64_t)i};
      if (!(a = sort_pair64(ctx, a, b, n))) return false;
      for (int64_t i = 0; i < k; i++) order[i] = (int64_t)a[i].at;
    }
  } else {
    ORDER(pair32, narrow_keys, UINT32_MAX);
  }
  return true;
}

bool ampl_cpu_sort(ampl_ctx *ctx, int dtype, const char *data, int64_t step, int64_t n, bool falling, int64_t *order,
                   void *room) {
  return ampl_cpu_select(ctx, dtype, data, step, n, n, falling, order, room);
}

/* ------------------------------------------------------------------------------------------------ lines ----------- */

typedef struct sorting {
  ampl_ctx *ctx;
  const ampl_tensor *x;
  ampl_tensor *values, *positions;      /* values may be NULL */
  int64_t n, k, base, xstep, vstep, pstep;
  bool    falling;
  ampl_cpu_stream line[3];              /* where a line begins in x, values, positions */
  char   *room;
  size_t  each;                         /* bytes of room a thread */
} sorting;

static void sort_job(void *ud, int64_t i, int thread) {
  const sorting *w = ud;
  char *room = w->room + (size_t)thread * w->each;
  int64_t *order = (int64_t *)(room + ampl_cpu_sort_room(w->n)),
          size = (int64_t)ampl_dtype_size((ampl_dtype)w->x->dtype);
  const char *x = ampl_cpu_at(w->x, ampl_cpu_offset(&w->line[0], i));
  if (!ampl_cpu_select(w->ctx, w->x->dtype, x, w->xstep, w->n, w->k, w->falling, order, room)) return;
  if (w->values) {
    char *to = ampl_cpu_at(w->values, ampl_cpu_offset(&w->line[1], i));
    for (int64_t j = 0; j < w->k; j++) {
      const char *from = x + order[j] * w->xstep * size;
      char *at = to + j * w->vstep * size;
      if (size == 4) memcpy(at, from, 4);
      else if (size == 8) memcpy(at, from, 8);
      else if (size == 2) memcpy(at, from, 2);
      else *at = *from;
    }
  }
  int64_t *p = (int64_t *)w->positions->data + ampl_cpu_offset(&w->line[2], i);
  for (int64_t j = 0; j < w->k; j++) p[j * w->pstep] = order[j] + w->base;
}

static int64_t stride_at(const ampl_tensor *x, int64_t d) { return x->ndim == 0 ? 1 : x->strides[d]; }

static ampl_status order_lines(ampl_ctx *ctx, const ampl_tensor *x, int64_t d, int64_t k, bool falling,
                               ampl_tensor *values, ampl_tensor *positions) {
  sorting w = {.ctx = ctx,
               .x = x,
               .values = values,
               .positions = positions,
               .n = x->ndim == 0 ? 1 : x->shape[d],
               .k = k,
               .base = ampl_index_base(ctx),
               .falling = falling,
               .xstep = stride_at(x, d),
               .vstep = values ? stride_at(values, d) : 0,
               .pstep = stride_at(positions, d)};
  int64_t shape[AMPL_RANK_MAX], stride[3][AMPL_RANK_MAX], lines = 1;
  int nd = 0;
  if (x->numel == 0 || k == 0) return AMPL_OK;
  for (int i = 0; i < x->ndim; i++) {
    if (i == d) continue;
    shape[nd] = x->shape[i];
    lines *= shape[nd];
    stride[0][nd] = x->strides[i], stride[1][nd] = values ? values->strides[i] : 0,
    stride[2][nd] = positions->strides[i];
    nd++;
  }
  ampl_cpu_streams_from(3, (const int64_t *const[]){stride[0], stride[1], stride[2]}, nd, shape, false, w.line);
  int threads = ampl_cpu_threads_for(ctx, (double)x->numel * 20);
  if (threads > lines) threads = (int)lines;
  w.each = ampl_cpu_sort_room(w.n) + (size_t)k * sizeof(int64_t);
  if (!(w.room = ampl_cpu_scratch_get(ctx, w.each * (size_t)threads)))
    return ampl_error(ctx, AMPL_ENOMEM, "no memory for %zu bytes of keys", w.each * (size_t)threads);
  const ampl_status s = ampl_cpu_parallel(ctx, threads, lines, sort_job, &w);
  ampl_cpu_scratch_put(ctx, w.room, w.each * (size_t)threads);
  return s;
}

static ampl_status sort(ampl_ctx *ctx, const ampl_args *in, ampl_tensor **out) {
  const ampl_tensor *x = in->t[0];
  int64_t d = in->p[0].i;
  return order_lines(ctx, x, d, x->ndim == 0 ? 1 : x->shape[d], in->p[1].i, out[0], out[1]);
}

static ampl_status argsort(ampl_ctx *ctx, const ampl_args *in, ampl_tensor **out) {
  const ampl_tensor *x = in->t[0];
  int64_t d = in->p[0].i;
  return order_lines(ctx, x, d, x->ndim == 0 ? 1 : x->shape[d], in->p[1].i, NULL, out[0]);
}

static ampl_status topk(ampl_ctx *ctx, const ampl_args *in, ampl_tensor **out) {
  const int64_t k = in->t[0]->ndim == 0 ? 1 : in->p[0].i;       /* a scalar is its own largest, also of none asked */
  return order_lines(ctx, in->t[0], in->p[1].i, k, in->p[2].i, out[0], out[1]);
}

const ampl_kernel ampl_cpu_sort_kernels[] = {{"sort", AMPL_DTYPE_NONE, sort},
                                             {"argsort", AMPL_DTYPE_NONE, argsort},
                                             {"topk", AMPL_DTYPE_NONE, topk},
                                             {NULL, 0, NULL}};
