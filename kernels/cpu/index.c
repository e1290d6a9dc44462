/* index.c: picking, replacing and adding along one dimension. */
#include "group.h"
#include "move.h"
#include "op.h"

#include <string.h>

static int64_t size_at(const ampl_tensor *x, int64_t d) { return x->ndim == 0 ? 1 : x->shape[d]; }
static int64_t stride_at(const ampl_tensor *x, int64_t d) { return x->ndim == 0 ? 1 : x->strides[d]; }
static size_t size_of(const ampl_tensor *x) { return ampl_dtype_size((ampl_dtype)x->dtype); }

/* ------------------------------------------------------------------------------------------------ slices ---------- */

static ampl_status index_select(ampl_ctx *ctx, const ampl_args *in, ampl_tensor **out) {
  const ampl_tensor *x = in->t[0], *index = in->t[1];
  int64_t d = in->p[0].i, *p;
  ampl_cpu_axis axis[AMPL_RANK_MAX];
  AMPL_TRY(ampl_cpu_positions_get(ctx, index, size_at(x, d), "position", &p));
  for (int k = 0; k < x->ndim; k++) axis[k] = (ampl_cpu_axis){out[0]->shape[k], x->strides[k], k == d ? p : NULL};
  const ampl_status s = ampl_cpu_pick(ctx, size_of(x), x->ndim, axis, out[0]->data, x->data, NULL);
  ampl_cpu_positions_put(ctx, index, p);
  return s;
}

/* y[index[k]] += alpha * x[k] along dimension d. */
static ampl_status add_slices(ampl_ctx *ctx, ampl_tensor *y, const ampl_tensor *x, const ampl_tensor *index, int64_t d,
                              double alpha, bool fresh) {
  int64_t *p, n = size_at(y, d), shape[AMPL_RANK_MAX], dst[AMPL_RANK_MAX], src[AMPL_RANK_MAX];
  ampl_cpu_groups g;
  int nd = 0;
  ampl_cpu_adding a = {.dtype = y->dtype, .dst = y->data, .src = x->data, .alpha = alpha, .fresh = fresh, .skip = -1,
                       .dest = ampl_cpu_stream_1d(n, stride_at(y, d)),
                       .source = ampl_cpu_stream_1d(index->numel, x->ndim == 0 ? 0 : x->strides[d])};
  AMPL_TRY(ampl_cpu_positions_get(ctx, index, n, "position", &p));
  ampl_status status = ampl_cpu_groups_get(ctx, p, index->numel, n, &g);
  ampl_cpu_positions_put(ctx, index, p);
  AMPL_TRY(status);
  for (int k = 0; k < y->ndim; k++) {
    if (k == d) continue;
    shape[nd] = y->shape[k], dst[nd] = y->strides[k], src[nd++] = x->strides[k];
  }
  ampl_cpu_streams_from(2, (const int64_t *const[]){dst, src}, nd, shape, true, a.part);
  status = ampl_cpu_add_groups(ctx, &a, &g);
  ampl_cpu_groups_put(ctx, &g);
  return status;
}

static ampl_status index_select_backward(ampl_ctx *ctx, const ampl_args *in, ampl_tensor **out) {
  return add_slices(ctx, out[0], in->t[0], in->t[1], in->p[1].i, 1, true);
}

static ampl_status index_add(ampl_ctx *ctx, const ampl_args *in, ampl_tensor **out) {
  AMPL_TRY(ampl_cpu_copy_all(ctx, out[0], in->t[0]));
  return add_slices(ctx, out[0], in->t[2], in->t[1], in->p[0].i, in->p[1].f, false);
}

/* ------------------------------------------------------------------------------------------------ elements -------- */

/* The index space of `index`, cut into lines along `dim`: side by side along the last dimension (`width` of them) where
 * that is another one; `n` such bundles.  Positions are read and checked some at a time, on the way. */
typedef struct lines {
  ampl_ctx *ctx;
  const ampl_tensor *t[3]; /* the index; what is indexed; what has the index's own places (NULL: one value) */
  size_t  size;
  int     dim, last;
  bool    apart;                        /* lines lie side by side */
  int64_t n, length, width;
  int64_t along[3], across[3];          /* steps of t along a line, and from line to line */
  int64_t number_along;                 /* from one position of a line to the next, counted row-major */
  int64_t positions, base;              /* size of the indexed dimension, and what its first position is called */
  int64_t bad;                          /* the first position that is out of range, row-major; INT64_MAX: none */
  int64_t block;                        /* lines summed at a time */
  double *sums;                         /* room for one block and one row of it, for each thread */
  int64_t room;
  char    value[8];
} lines;

enum { SOME = 512 };                    /* positions read at a time */

static lines lines_of(ampl_ctx *ctx, const ampl_tensor *index, const ampl_tensor *indexed,
                      const ampl_tensor *other, int64_t dim) {
  lines w = {.ctx = ctx,
             .t = {index, indexed, other},
             .size = size_of(indexed),
             .dim = (int)dim,
             .last = index->ndim - 1,
             .length = size_at(index, dim),
             .width = 1,
             .number_along = 1,
             .positions = size_at(indexed, dim),
             .base = ampl_index_base(ctx),
             .bad = INT64_MAX};
  w.apart = index->ndim > 0 && dim != w.last;
  if (w.apart) w.width = index->shape[w.last];
  for (int k = (int)dim + 1; k <= w.last; k++) w.number_along *= index->shape[k];
  for (int i = 0; i < 3; i++) {
    w.along[i] = w.t[i] ? stride_at(w.t[i], dim) : 0;
    w.across[i] = w.t[i] && w.apart ? w.t[i]->strides[w.last] : 0;
  }
  w.n = index->numel / (w.length * w.width);
  return w;
}

/* Where bundle r begins: its number, row-major, and its places in the three tensors. */
static void bundle_at(const lines *w, int64_t r, int64_t *number, int64_t at[3]) {
  int64_t step = 1;
  *number = at[0] = at[1] = at[2] = 0;
  for (int k = w->last; k >= 0; k--) {
    int64_t size = w->t[0]->shape[k];
    if (k != w->dim && k != w->last) {
      int64_t i = r % size;
      r /= size;
      *number += i * step;
      for (int j = 0; j < 3; j++)
        if (w->t[j]) at[j] += i * w->t[j]->strides[k];
    }
    step *= size;
  }
}

/* n positions from element `at` of the index on, `step` apart, as 0 to positions - 1.  `number` is the first one's,
 * row-major, and rises by `rise`: the lowest bad one is remembered, and position 0 stands for it. */
static void read_positions(lines *w, int64_t at, int64_t step, int64_t n, int64_t number, int64_t rise, int64_t *p) {
  ampl_cpu_widen(AMPL_WORK_I64, p, w->t[0]->dtype, ampl_cpu_at(w->t[0], at), step, n);
  for (int64_t j = 0; j < n; j++) {
    int64_t v = p[j] < 0 ? p[j] + w->positions : p[j] - w->base;
    p[j] = v;
    if (v >= 0 && v < w->positions) continue;
    p[j] = 0;
    int64_t mine = number + j * rise, lowest = __atomic_load_n(&w->bad, __ATOMIC_RELAXED);
    while (mine < lowest &&
           !__atomic_compare_exchange_n(&w->bad, &lowest, mine, true, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
      continue;
  }
}

/* The error for the lowest bad position, if there was one. */
static ampl_status checked(ampl_ctx *ctx, const lines *w) {
  const ampl_tensor *index = w->t[0];
  int64_t at = 0, left = w->bad, v;
  if (w->bad == INT64_MAX) return AMPL_OK;
  for (int d = index->ndim - 1; d >= 0; d--) {
    at += left % index->shape[d] * index->strides[d];
    left /= index->shape[d];
  }
  ampl_cpu_widen(AMPL_WORK_I64, &v, index->dtype, ampl_cpu_at(index, at), 1, 1);
  return ampl_cpu_bad_position(ctx, index, w->bad, v, w->positions, "position");
}

#define BY_SIZE(T)                                                                                                     \
  static void gather_##T(T *y, int64_t step, const T *x, const int64_t *p, int64_t along, int64_t across, int64_t n) { \
    for (int64_t j = 0; j < n; j++) y[j * step] = x[p[j] * along + j * across];                                        \
  }                                                                                                                    \
  static void scatter_##T(const T *v, int64_t step, T *x, const int64_t *p, int64_t along, int64_t across, int64_t n) {\
    for (int64_t j = 0; j < n; j++) x[p[j] * along + j * across] = v[j * step];                                        \
  }
BY_SIZE(uint8_t)
BY_SIZE(uint16_t)
BY_SIZE(uint32_t)
BY_SIZE(uint64_t)
#define CALL(size, name, ...)                                                                                          \
  ((size) == 1   ? name##_uint8_t(__VA_ARGS__)                                                                         \
   : (size) == 2 ? name##_uint16_t(__VA_ARGS__)                                                                        \
   : (size) == 4 ? name##_uint32_t(__VA_ARGS__)                                                                        \
                 : name##_uint64_t(__VA_ARGS__))

/* Moves n elements between x (indexed, at[1]) and v (at[2]); from line to line when `side`, else along one. */
static void move_some(lines *w, const int64_t at[3], int64_t number, int64_t n, bool side, bool put) {
  int64_t p[SOME], *step = side ? w->across : w->along, across = side ? w->across[1] : 0;
  void *x = ampl_cpu_at(w->t[1], at[1]), *v = w->t[2] ? ampl_cpu_at(w->t[2], at[2]) : w->value;
  read_positions(w, at[0], step[0], n, number, side ? 1 : w->number_along, p);
  if (put) CALL(w->size, scatter, v, step[2], x, p, w->along[1], across, n);
  else CALL(w->size, gather, v, step[2], x, p, w->along[1], across, n);
}

static void move_bundle(lines *w, int64_t r, bool put) {
  int64_t number, at[3], rows = w->apart ? w->length : 1, row = w->apart ? w->width : w->length;
  const int64_t *step = w->apart ? w->across : w->along;
  bundle_at(w, r, &number, at);
  for (int64_t i = 0; i < rows; i++)
    for (int64_t j = 0; j < row; j += SOME) {
      int64_t n = row - j < SOME ? row - j : SOME;
      if (ampl_cpu_stop_at(w->ctx, i * row + j, n)) return;
      /* in what is indexed, positions say how far along it is */
      int64_t here[3] = {at[0] + i * w->along[0] + j * step[0], at[1] + (w->apart ? j * step[1] : 0),
                         at[2] + i * w->along[2] + j * step[2]};
      move_some(w, here, number + i * w->number_along + j * (w->apart ? 1 : w->number_along), n, w->apart, put);
    }
}

static void gather_job(void *ud, int64_t r, int thread) {
  (void)thread;
  move_bundle(ud, r, false);
}

static void scatter_job(void *ud, int64_t r, int thread) {
  (void)thread;
  move_bundle(ud, r, true);
}

/* `width` lines side by side, from places at[] on: their values as doubles (integers as int64), added to what stands
 * there, and back. */
static void add_block(lines *w, const int64_t at[3], int64_t number, int64_t width, double *sum) {
  int dtype = w->t[1]->dtype;
  bool whole = !ampl_dtype_is_float((ampl_dtype)dtype);
  ampl_cpu_work work = whole ? AMPL_WORK_I64 : AMPL_WORK_F64;
  int64_t n = w->positions, p[SOME];
  double *add = sum + n * width;
  uint64_t *isum = (uint64_t *)sum, *iadd = (uint64_t *)add;
  for (int64_t i = 0; i < n; i++)
    ampl_cpu_widen(work, sum + i * width, dtype, ampl_cpu_at(w->t[1], at[1] + i * w->along[1]), w->across[1], width);
  for (int64_t k = 0; k < w->length; k++) {
    if (ampl_cpu_stop_at(w->ctx, k * width, width)) return;
    read_positions(w, at[0] + k * w->along[0], w->across[0], width, number + k * w->number_along, 1, p);
    ampl_cpu_widen(work, add, dtype, ampl_cpu_at(w->t[2], at[2] + k * w->along[2]), w->across[2], width);
    for (int64_t j = 0; j < width; j++) {
      if (whole) isum[p[j] * width + j] += iadd[j];
      else sum[p[j] * width + j] += add[j];
    }
  }
  for (int64_t i = 0; i < n; i++)
    ampl_cpu_narrow(work, sum + i * width, dtype, ampl_cpu_at(w->t[1], at[1] + i * w->along[1]), w->across[1], width);
}

/* One line, which is a block turned by a quarter. */
static void add_line(lines *w, const int64_t at[3], int64_t number, double *sum) {
  int dtype = w->t[1]->dtype;
  bool whole = !ampl_dtype_is_float((ampl_dtype)dtype);
  ampl_cpu_work work = whole ? AMPL_WORK_I64 : AMPL_WORK_F64;
  int64_t p[SOME];
  double add[SOME];
  uint64_t *isum = (uint64_t *)sum, iadd;
  ampl_cpu_widen(work, sum, dtype, ampl_cpu_at(w->t[1], at[1]), w->along[1], w->positions);
  for (int64_t k = 0; k < w->length; k += SOME) {
    int64_t n = w->length - k < SOME ? w->length - k : SOME;
    if (ampl_cpu_stop_at(w->ctx, k, n)) return;
    read_positions(w, at[0] + k * w->along[0], w->along[0], n, number + k * w->number_along, w->number_along, p);
    ampl_cpu_widen(work, add, dtype, ampl_cpu_at(w->t[2], at[2] + k * w->along[2]), w->along[2], n);
    for (int64_t j = 0; j < n; j++) {
      if (whole) memcpy(&iadd, &add[j], sizeof iadd), isum[p[j]] += iadd;
      else sum[p[j]] += add[j];
    }
  }
  ampl_cpu_narrow(work, sum, dtype, ampl_cpu_at(w->t[1], at[1]), w->along[1], w->positions);
}

static void add_job(void *ud, int64_t r, int thread) {
  lines *w = ud;
  int64_t number, at[3];
  double *sum = w->sums + thread * w->room;
  bundle_at(w, r, &number, at);
  for (int64_t j = 0; j < w->width; j += w->block) {
    int64_t width = w->width - j < w->block ? w->width - j : w->block, here[3];
    for (int k = 0; k < 3; k++) here[k] = at[k] + j * w->across[k];
    if (width == 1) add_line(w, here, number + j, sum);
    else add_block(w, here, number + j, width, sum);
  }
}

/* A dimension without positions has none that an index could name. */
static ampl_status want_any(ampl_ctx *ctx, lines *w) {
  if (w->positions > 0) return AMPL_OK;
  w->bad = 0;
  return checked(ctx, w);
}

static ampl_status gather(ampl_ctx *ctx, const ampl_args *in, ampl_tensor **out) {
  const ampl_tensor *x = in->t[0], *index = in->t[1];
  if (index->numel == 0) return AMPL_OK;
  lines w = lines_of(ctx, index, x, out[0], in->p[0].i);
  AMPL_TRY(want_any(ctx, &w));
  AMPL_TRY(ampl_cpu_parallel(ctx, ampl_cpu_threads_for(ctx, (double)index->numel * 2), w.n, gather_job, &w));
  return checked(ctx, &w);
}

static ampl_status scatter(ampl_ctx *ctx, const ampl_args *in, ampl_tensor **out) {
  const ampl_tensor *x = in->t[0], *index = in->t[1], *src = in->t[2];
  AMPL_TRY(ampl_cpu_copy_all(ctx, out[0], x));
  if (index->numel == 0) return AMPL_OK;
  lines w = lines_of(ctx, index, out[0], src->flags & AMPL_T_NUMBER ? NULL : src, in->p[0].i);
  AMPL_TRY(want_any(ctx, &w));
  ampl_cpu_scalar(src, x->dtype, w.value);
  AMPL_TRY(ampl_cpu_parallel(ctx, ampl_cpu_threads_for(ctx, (double)index->numel * 2), w.n, scatter_job, &w));
  return checked(ctx, &w);
}

/* y += src at the positions. */
static ampl_status add_elements(ampl_ctx *ctx, ampl_tensor *y, const ampl_tensor *index, const ampl_tensor *src,
                                int64_t d) {
  if (index->numel == 0) return AMPL_OK;
  lines w = lines_of(ctx, index, y, src, d);
  AMPL_TRY(want_any(ctx, &w));
  w.block = (32 << 10) / w.positions;
  w.block = w.block > SOME ? SOME : w.block;
  w.block = w.block < 1 ? 1 : w.block > w.width ? w.width : w.block;
  w.room = (w.positions + 1) * w.block;
  int threads = ampl_cpu_threads_for(ctx, (double)y->numel + (double)index->numel * 3);
  size_t bytes = (size_t)(w.room * threads) * sizeof(double);
  if (!(w.sums = ampl_cpu_scratch_get(ctx, bytes)))
    return ampl_error(ctx, AMPL_ENOMEM, "no memory for %zu bytes of sums", bytes);
  const ampl_status s = ampl_cpu_parallel(ctx, threads, w.n, add_job, &w);
  ampl_cpu_scratch_put(ctx, w.sums, bytes);
  return s == AMPL_OK ? checked(ctx, &w) : s;
}

static ampl_status gather_backward(ampl_ctx *ctx, const ampl_args *in, ampl_tensor **out) {
  AMPL_TRY(ampl_cpu_zero(ctx, out[0]->data, (size_t)out[0]->numel * size_of(out[0])));
  return add_elements(ctx, out[0], in->t[1], in->t[0], in->p[1].i);
}

static ampl_status scatter_add(ampl_ctx *ctx, const ampl_args *in, ampl_tensor **out) {
  AMPL_TRY(ampl_cpu_copy_all(ctx, out[0], in->t[0]));
  return add_elements(ctx, out[0], in->t[1], in->t[2], in->p[0].i);
}

const ampl_kernel ampl_cpu_index_kernels[] = {{"index_select", AMPL_DTYPE_NONE, index_select},
                                              {"index_select_backward", AMPL_DTYPE_NONE, index_select_backward},
                                              {"index_add", AMPL_DTYPE_NONE, index_add},
                                              {"gather", AMPL_DTYPE_NONE, gather},
                                              {"gather_backward", AMPL_DTYPE_NONE, gather_backward},
                                              {"scatter", AMPL_DTYPE_NONE, scatter},
                                              {"scatter_add", AMPL_DTYPE_NONE, scatter_add},
                                              {NULL, 0, NULL}};
