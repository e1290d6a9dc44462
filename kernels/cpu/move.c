/* move.c: strided copies, picking along axes, and index tensors brought to plain positions. */
#include "move.h"

#include "op.h"
#include "stream.h"

#include <string.h>

/* ------------------------------------------------------------------------------------------------ by size --------- */

typedef struct rows {                   /* two streams with the same index space, and what part of it a job does */
  ampl_ctx *ctx;
  const ampl_cpu_stream *d, *s;
  size_t  size;
  int     across;                       /* the dimension along which src is dense where the last one is not, or -1 */
  int64_t each;                         /* rows a job */
  int64_t n;                            /* rows */
} rows;

enum { RUNS = 12 };

typedef struct run { int64_t at, from, n; } run;        /* n positions of an axis that come one after the other */

typedef struct picking {
  ampl_ctx     *ctx;
  size_t        size;
  int           nd, runs;               /* runs: of the last axis, 0 where it has too many, or no map */
  ampl_cpu_axis axis[AMPL_CPU_AXES_MAX];
  run           run[RUNS];
  char         *dst;
  const char   *src;
  const void   *fill;
  int64_t       each, n;                /* rows of a job, and in all */
} picking;

#define TILE 16

#define BY_SIZE(T)                                                                                                     \
  static void line_##T(T *restrict d, int64_t ds, const T *restrict s, int64_t ss, int64_t n) {                        \
    if (ds == 1 && ss == 1) memcpy(d, s, (size_t)n * sizeof(T));                                                       \
    else if (ds == 1 && ss == 0) for (int64_t i = 0; i < n; i++) d[i] = s[0];                                          \
    else for (int64_t i = 0; i < n; i++) d[i * ds] = s[i * ss];                                                        \
  }                                                                                                                    \
  /* d[i][j] = s[i][j], i dense in s and j in d */                                                                     \
  static void turn_##T(T *restrict d, int64_t di, const T *restrict s, int64_t sj, int64_t ni, int64_t nj) {           \
    for (int64_t i0 = 0; i0 < ni; i0 += TILE)                                                                          \
      for (int64_t j0 = 0; j0 < nj; j0 += TILE) {                                                                      \
        int64_t i1 = ni - i0 < TILE ? ni : i0 + TILE, j1 = nj - j0 < TILE ? nj : j0 + TILE;                            \
        for (int64_t i = i0; i < i1; i++)                                                                              \
          for (int64_t j = j0; j < j1; j++) d[i * di + j] = s[i + j * sj];                                             \
      }                                                                                                                \
  }                                                                                                                    \
  static void fill_##T(T *d, int64_t n, const T *value) {                                                              \
    for (int64_t i = 0; i < n; i++) d[i] = *value;                                                                     \
  }                                                                                                                    \
  /* a: the last axis, or, without runs, a part of it */                                                               \
  static void pick_##T(T *restrict d, const T *restrict s, const picking *w, const ampl_cpu_axis *a, const T *fill) {  \
    for (int k = 0; k < w->runs; k++) {                                                                                \
      const run *r = &w->run[k];                                                                                       \
      if (r->from < 0) fill_##T(d + r->at, r->n, fill);                                                                \
      else line_##T(d + r->at, 1, s + r->from * a->stride, a->stride, r->n);                                           \
    }                                                                                                                  \
    if (w->runs > 0) return;                                                                                           \
    if (a->map) for (int64_t i = 0; i < a->n; i++) d[i] = a->map[i] < 0 ? *fill : s[a->map[i] * a->stride];            \
    else line_##T(d, 1, s, a->stride, a->n);                                                                           \
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

void ampl_cpu_line(size_t size, void *dst, int64_t ds, const void *src, int64_t ss, int64_t n) {
  CALL(size, line, dst, ds, src, ss, n);
}

void ampl_cpu_fill(size_t size, void *dst, int64_t n, const void *value) { CALL(size, fill, dst, n, value); }

ampl_status ampl_cpu_zero(ampl_ctx *ctx, void *p, size_t bytes) {
  const size_t some = 4 << 20;
  for (size_t at = 0, n; at < bytes; at += n) {
    n = bytes - at < some ? bytes - at : some;
    memset((char *)p + at, 0, n);
    if (n == some) AMPL_TRY(ampl_cpu_poll(ctx));
  }
  return AMPL_OK;
}

/* ------------------------------------------------------------------------------------------------ strided copy ---- */

/* A row, and a plane, in parts: either may be all there is. */
static void copy_row(const rows *w, char *dst, const char *src) {
  const int last = w->d->nd - 1;
  const int64_t ds = w->d->stride[last], ss = w->s->stride[last], some = 1 << 18, size = (int64_t)w->size;
  for (int64_t i = 0, n; i < w->d->shape[last]; i += n) {
    n = w->d->shape[last] - i < some ? w->d->shape[last] - i : some;
    CALL(w->size, line, (void *)(dst + i * ds * size), ds, (const void *)(src + i * ss * size), ss, n);
    if (n == some && ampl_cpu_stop(w->ctx)) return;
  }
}

static void turn_plane(const rows *w, char *dst, const char *src) {
  const int last = w->d->nd - 1;
  const int64_t all = w->d->shape[w->across], row = w->d->shape[last], step = w->d->stride[w->across];
  const int64_t some = ((1 << 18) / row / TILE + 1) * TILE, size = (int64_t)w->size;
  for (int64_t i = 0, n; i < all; i += n) {
    n = all - i < some ? all - i : some;
    CALL(w->size, turn, (void *)(dst + i * step * size), step, (const void *)(src + i * size), w->s->stride[last], n,
         row);
    if (n == some && ampl_cpu_stop(w->ctx)) return;
  }
}

/* Rows are the index space without the last dimension and without `across`. */
static void rows_job(void *ud, int64_t job, int thread) {
  const rows *w = ud;
  const ampl_cpu_stream *d = w->d, *s = w->s;
  int last = d->nd - 1;
  int64_t end = (job + 1) * w->each < w->n ? (job + 1) * w->each : w->n;
  (void)thread;
  for (int64_t r = job * w->each; r < end; r++) {
    int64_t left = r, od = 0, os = 0;
    for (int k = last - 1; k >= 0; k--) {
      if (k == w->across) continue;
      int64_t i = left % d->shape[k];
      left /= d->shape[k];
      od += i * d->stride[k], os += i * s->stride[k];
    }
    char *dst = d->data + od * (int64_t)w->size;
    const char *src = s->data + os * (int64_t)w->size;
    if (w->across < 0) copy_row(w, dst, src);
    else turn_plane(w, dst, src);
  }
}

/* A single dense or evenly spaced run, cut in pieces */
static void run_job(void *ud, int64_t job, int thread) {
  const rows *w = ud;
  int64_t from = job * w->each, n = w->n - from < w->each ? w->n - from : w->each;
  (void)thread;
  CALL(w->size, line, (void *)(w->d->data + from * w->d->stride[0] * (int64_t)w->size), w->d->stride[0],
       (const void *)(w->s->data + from * w->s->stride[0] * (int64_t)w->size), w->s->stride[0], n);
}

ampl_status ampl_cpu_move(ampl_ctx *ctx, size_t size, int nd, const int64_t *shape, void *dst,
                          const int64_t *dst_strides, const void *src, const int64_t *src_strides) {
  ampl_cpu_stream st[2] = {{.data = dst}, {.data = (char *)(uintptr_t)src}};
  int64_t total = 1;
  for (int k = 0; k < nd; k++) total *= shape[k];
  if (total == 0) return AMPL_OK;
  ampl_cpu_streams_from(2, (const int64_t *const[]){dst_strides, src_strides}, nd, shape, true, st);
  rows w = {.ctx = ctx, .d = &st[0], .s = &st[1], .size = size, .across = -1};
  int threads = ampl_cpu_threads_for(ctx, (double)total * (double)size / 8), last = st[0].nd - 1;
  if (last == 0) {
    w.n = total, w.each = (int64_t)((256 << 10) / size);
    return ampl_cpu_parallel(ctx, threads, (w.n + w.each - 1) / w.each, run_job, &w);
  }
  if (st[0].stride[last] == 1 && st[1].stride[last] > 1)
    for (int k = 0; k < last; k++)
      if (st[1].stride[k] == 1 && st[0].shape[k] > 1) w.across = k;
  int64_t row = st[0].shape[last] * (w.across < 0 ? 1 : st[0].shape[w.across]);
  w.n = total / row;
  if (w.across >= 0 && w.n < threads) {         /* few planes: their rows are the jobs */
    w.across = -1, row = st[0].shape[last], w.n = total / row;
  }
  w.each = row * (int64_t)size >= 64 << 10 ? 1 : (int64_t)(64 << 10) / (row * (int64_t)size);
  return ampl_cpu_parallel(ctx, threads, (w.n + w.each - 1) / w.each, rows_job, &w);
}

ampl_status ampl_cpu_copy_all(ampl_ctx *ctx, ampl_tensor *out, const ampl_tensor *x) {
  return ampl_cpu_move(ctx, ampl_dtype_size((ampl_dtype)x->dtype), x->ndim, x->shape, out->data, out->strides, x->data,
                       x->strides);
}

/* ------------------------------------------------------------------------------------------------ picking --------- */

/* Where position i of an axis is; 0, and counted in *gone, where it is nowhere. */
static int64_t place_on(const ampl_cpu_axis *a, int64_t i, int *gone) {
  if (a->map) i = a->map[i];
  if (i >= 0) return i * a->stride;
  ++*gone;
  return 0;
}

/* A row in parts, as it may be all there is. */
static void pick_row(const picking *w, char *dst, const char *src) {
  const ampl_cpu_axis *a = &w->axis[w->nd - 1];
  const int64_t some = 1 << 18, size = (int64_t)w->size;
  for (int64_t i = 0, n; i < a->n; i += n) {
    n = w->runs > 0 || a->n - i < some ? a->n - i : some;
    const ampl_cpu_axis part = {n, a->stride, a->map ? a->map + i : NULL};
    CALL(w->size, pick, (void *)(dst + i * size), (const void *)(a->map ? src : src + i * a->stride * size), w, &part,
         w->fill);
    if (n == some && ampl_cpu_stop(w->ctx)) return;
  }
}

static void pick_job(void *ud, int64_t job, int thread) {
  const picking *w = ud;
  int64_t at[AMPL_CPU_AXES_MAX], place[AMPL_CPU_AXES_MAX], from = 0, row = w->axis[w->nd - 1].n;
  int64_t begin = job * w->each, end = begin + w->each < w->n ? begin + w->each : w->n, left = begin;
  int gone = 0;                         /* axes on which the row is nowhere */
  (void)thread;
  for (int k = w->nd - 2; k >= 0; k--) {
    at[k] = left % w->axis[k].n;
    left /= w->axis[k].n;
    from += place[k] = place_on(&w->axis[k], at[k], &gone);
  }
  for (int64_t r = begin; r < end; r++) {
    char *dst = w->dst + r * row * (int64_t)w->size;
    if (ampl_cpu_stop_at(w->ctx, (r - begin) * row, row)) return;
    if (gone > 0) ampl_cpu_fill(w->size, dst, row, w->fill);
    else pick_row(w, dst, w->src + from * (int64_t)w->size);
    for (int k = w->nd - 2; k >= 0; k--) {
      const ampl_cpu_axis *a = &w->axis[k];
      if (a->map && a->map[at[k]] < 0) gone--;
      at[k] = at[k] + 1 == a->n ? 0 : at[k] + 1;
      from -= place[k];
      from += place[k] = place_on(a, at[k], &gone);
      if (at[k] > 0) break;
    }
  }
}

/* The runs of a map; 0 when there are more than are worth it. */
static int runs_of(const ampl_cpu_axis *a, run *r) {
  int n = 0;
  for (int64_t i = 0, j; a->map && i < a->n; i = j) {
    int64_t m = a->map[i];
    if (n == RUNS) return 0;
    for (j = i + 1; j < a->n && (m < 0 ? a->map[j] < 0 : a->map[j] == m + (j - i)); j++) continue;
    r[n++] = (run){i, m, j - i};
  }
  return a->n >= 4 * n ? n : 0;
}

ampl_status ampl_cpu_pick(ampl_ctx *ctx, size_t size, int nd, const ampl_cpu_axis *axis, void *dst, const void *src,
                          const void *fill) {
  picking w = {.ctx = ctx, .size = size, .dst = dst, .src = src, .fill = fill};
  int64_t total = 1;
  for (int k = 0; k < nd; k++) {
    const ampl_cpu_axis *a = &axis[k];
    ampl_cpu_axis *before = w.nd > 0 ? &w.axis[w.nd - 1] : NULL;
    total *= a->n;
    if (a->n == 1 && !a->map) continue;
    if (before && !before->map && !a->map && before->stride == a->n * a->stride) {
      before->n *= a->n, before->stride = a->stride;
    } else {
      w.axis[w.nd++] = *a;
    }
  }
  if (total == 0) return AMPL_OK;
  if (w.nd == 0) w.axis[w.nd++] = (ampl_cpu_axis){1, 1, NULL};
  const ampl_cpu_axis *last = &w.axis[w.nd - 1];
  w.runs = runs_of(last, w.run);
  w.n = total / last->n;
  w.each = last->n * (int64_t)size >= 64 << 10 ? 1 : (int64_t)(64 << 10) / (last->n * (int64_t)size);
  const double work = (double)total * (last->map && w.runs == 0 ? 1 : (double)size / 8);
  return ampl_cpu_parallel(ctx, ampl_cpu_threads_for(ctx, work), (w.n + w.each - 1) / w.each, pick_job, &w);
}

ampl_status ampl_cpu_new(ampl_ctx *ctx, const ampl_tensor *x, int dtype, int ndim, const int64_t *shape,
                         ampl_tensor **out) {
  ampl_meta m = {.dtype = dtype, .layout = AMPL_LAYOUT_ROW_MAJOR};
  AMPL_TRY(ampl_meta_shape(ctx, &m, ndim, shape));
  return ampl_tensor_new_default(ctx, x->storage->device, &m, out);
}

void ampl_cpu_scalar(const ampl_tensor *x, int t, void *dst) {
  const bool low = t == AMPL_F16 || t == AMPL_BF16;     /* rounded once, not by way of f32 */
  const ampl_cpu_work w = ampl_cpu_work_of(low ? x->dtype : t);
  uint64_t value;
  ampl_cpu_widen(w, &value, x->dtype, x->data, 1, 1);
  ampl_cpu_narrow(w, &value, t, dst, 1, 1);
}

/* ------------------------------------------------------------------------------------------------ positions ------- */

ampl_status ampl_cpu_bad_position(ampl_ctx *ctx, const ampl_tensor *index, int64_t at, int64_t v, int64_t size,
                                  const char *what) {
  int64_t place[AMPL_RANK_MAX];
  for (int d = index->ndim - 1; d >= 0; d--) {
    place[d] = ampl_shown(ctx, at % index->shape[d]);
    at /= index->shape[d];
  }
  if (size == 0)
    return ampl_error(ctx, AMPL_EINDEX, "%s %lld at %s, where there is none", what, (long long)v,
                      ampl_shape_text(ctx, index->ndim, place));
  return ampl_error(ctx, AMPL_EINDEX, "%s %lld at %s; they count from %lld to %lld, or from the end: -1 to %lld", what,
                    (long long)v, ampl_shape_text(ctx, index->ndim, place), (long long)ampl_shown(ctx, 0),
                    (long long)ampl_shown(ctx, size - 1), (long long)-size);
}

static size_t positions_bytes(const ampl_tensor *index) { return (size_t)(index->numel > 0 ? index->numel : 1) * 8; }

ampl_status ampl_cpu_positions_get(ampl_ctx *ctx, const ampl_tensor *index, int64_t size, const char *what,
                                   int64_t **out) {
  int64_t base = ampl_index_base(ctx), *p = ampl_cpu_scratch_get(ctx, positions_bytes(index));
  *out = NULL;
  if (!p) return ampl_error(ctx, AMPL_ENOMEM, "no memory for %lld positions", (long long)index->numel);
  ampl_cpu_stream s;
  ampl_cpu_streams(1, &index, index->ndim, index->shape, false, &s);
  for (int64_t at = 0; at < index->numel;) {    /* within the last dimension, so that any strides will do */
    const int64_t row = s.shape[s.nd - 1], left = row - at % row;
    const int64_t n = left < 1 << 14 ? left : 1 << 14;
    if (ampl_cpu_stop_at(ctx, at, n)) break;
    ampl_cpu_widen(AMPL_WORK_I64, p + at, index->dtype,
                   s.data + ampl_cpu_offset(&s, at) * (int64_t)ampl_dtype_size((ampl_dtype)index->dtype),
                   s.stride[s.nd - 1], n);
    at += n;
  }
  ampl_status status = ampl_cpu_poll(ctx);
  for (int64_t i = 0; status == AMPL_OK && i < index->numel; i++) {
    if (ampl_cpu_stop_at(ctx, i, 1)) break;
    int64_t v = p[i] < 0 ? p[i] + size : p[i] - base;
    if (v < 0 || v >= size) {
      status = ampl_cpu_bad_position(ctx, index, i, p[i], size, what);
      ampl_cpu_positions_put(ctx, index, p);
      return status;
    }
    p[i] = v;
  }
  status = ampl_cpu_poll(ctx);
  if (status == AMPL_OK) *out = p;
  else ampl_cpu_positions_put(ctx, index, p);
  return status;
}

void ampl_cpu_positions_put(ampl_ctx *ctx, const ampl_tensor *index, int64_t *positions) {
  if (positions) ampl_cpu_scratch_put(ctx, positions, positions_bytes(index));
}
