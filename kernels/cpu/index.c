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
  ampl_cpu_pick(ctx, size_of(x), x->ndim, axis, out[0]->data, x->data, NULL);
  ampl_cpu_positions_put(ctx, index, p);
  return AMPL_OK;
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
  ampl_cpu_add_groups(ctx, &a, &g);
  ampl_cpu_groups_put(ctx, &g);
  return AMPL_OK;
}

static ampl_status index_select_backward(ampl_ctx *ctx, const ampl_args *in, ampl_tensor **out) {
  return add_slices(ctx, out[0], in->t[0], in->t[1], in->p[1].i, 1, true);
}

static ampl_status index_add(ampl_ctx *ctx, const ampl_args *in, ampl_tensor **out) {
  ampl_cpu_copy_all(ctx, out[0], in->t[0]);
  return add_slices(ctx, out[0], in->t[2], in->t[1], in->p[0].i, in->p[1].f, false);
}

/* ------------------------------------------------------------------------------------------------ elements -------- */

/* The index space of `index`, cut into lines along `dim`: side by side along the last dimension (`width` of them) where
 * that is another one; `n` such bundles. */
typedef struct lines {
  const ampl_tensor *index, *t[2];      /* t[0] is indexed; t[1] has index's own positions (NULL: one value for all) */
  const int64_t *p;                     /* positions, row-major */
  size_t  size;
  int     dim, last;
  int64_t n, length, width;
  int64_t pstep;                        /* from one position of a line to the next, in p */
  int64_t along[2], across[2];          /* steps of t along a line, and from line to line */
  int64_t block;                        /* lines summed at a time */
  double *sums;                         /* room for one block and two rows, for each thread */
  int64_t room;
  char    value[8];
} lines;

static void lines_of(lines *w, const ampl_tensor *index, const ampl_tensor *indexed, const ampl_tensor *other,
                     int64_t dim, const int64_t *p) {
  *w = (lines){.index = index, .t = {indexed, other}, .p = p, .size = size_of(indexed), .dim = (int)dim,
               .last = index->ndim - 1, .length = size_at(index, dim), .width = 1, .pstep = 1};
  bool apart = index->ndim > 0 && dim != w->last;
  if (apart) w->width = index->shape[w->last];
  for (int k = (int)dim + 1; k <= w->last; k++) w->pstep *= index->shape[k];
  for (int i = 0; i < 2; i++) {
    w->along[i] = w->t[i] ? stride_at(w->t[i], dim) : 0;
    w->across[i] = w->t[i] && apart ? w->t[i]->strides[w->last] : 0;
  }
  w->n = index->numel / (w->length * w->width);
}

/* Where bundle r begins in p and in both tensors. */
static void bundle_at(const lines *w, int64_t r, int64_t *p, int64_t at[2]) {
  int64_t step = 1;
  *p = at[0] = at[1] = 0;
  for (int k = w->last; k >= 0; k--) {
    int64_t size = w->index->shape[k];
    if (k != w->dim && k != w->last) {
      int64_t i = r % size;
      r /= size;
      *p += i * step;
      for (int j = 0; j < 2; j++)
        if (w->t[j]) at[j] += i * w->t[j]->strides[k];
    }
    step *= size;
  }
}

#define BY_SIZE(T)                                                                                                     \
  static void gather_##T(T *y, const T *x, const int64_t *p, int64_t along, int64_t across, int64_t n) {               \
    for (int64_t j = 0; j < n; j++) y[j] = x[p[j] * along + j * across];                                               \
  }                                                                                                                    \
  static void scatter_##T(T *x, const T *v, const int64_t *p, int64_t along, int64_t across, int64_t step, int64_t n) {\
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

static void gather_job(void *ud, int64_t r, int thread) {
  const lines *w = ud;
  int64_t p, at[2];
  (void)thread;
  bundle_at(w, r, &p, at);
  char *y = ampl_cpu_at(w->t[1], at[1]);
  const char *x = ampl_cpu_at(w->t[0], at[0]);
  if (w->dim == w->last || w->last < 0) {
    CALL(w->size, gather, (void *)y, (const void *)x, w->p + p, w->along[0], 0, w->length);
    return;
  }
  for (int64_t i = 0; i < w->length; i++)
    CALL(w->size, gather, (void *)(y + i * w->along[1] * (int64_t)w->size), (const void *)x, w->p + p + i * w->pstep,
         w->along[0], w->across[0], w->width);
}

static void scatter_job(void *ud, int64_t r, int thread) {
  const lines *w = ud;
  int64_t p, at[2];
  (void)thread;
  bundle_at(w, r, &p, at);
  char *x = ampl_cpu_at(w->t[0], at[0]);
  const char *v = w->t[1] ? ampl_cpu_at(w->t[1], at[1]) : w->value;
  if (w->dim == w->last || w->last < 0) {
    CALL(w->size, scatter, (void *)x, (const void *)v, w->p + p, w->along[0], 0, w->along[1], w->length);
    return;
  }
  for (int64_t i = 0; i < w->length; i++)
    CALL(w->size, scatter, (void *)x, (const void *)(v + i * w->along[1] * (int64_t)w->size), w->p + p + i * w->pstep,
         w->along[0], w->across[0], w->across[1], w->width);
}

/* One line: its values as doubles (integers as int64), added to what stands there, and back. */
static void add_line(const lines *w, char *x, const char *v, const int64_t *p, double *sum) {
  int dtype = w->t[0]->dtype;
  bool whole = !ampl_dtype_is_float((ampl_dtype)dtype);
  ampl_cpu_work work = whole ? AMPL_WORK_I64 : AMPL_WORK_F64;
  int64_t n = size_at(w->t[0], w->dim);
  double *add = sum + n;
  uint64_t *isum = (uint64_t *)sum, *iadd = (uint64_t *)add;
  ampl_cpu_widen(work, sum, dtype, x, w->along[0], n);
  ampl_cpu_widen(work, add, dtype, v, w->along[1], w->length);
  for (int64_t k = 0; k < w->length; k++) {
    if (whole) isum[p[k * w->pstep]] += iadd[k];
    else sum[p[k * w->pstep]] += add[k];
  }
  ampl_cpu_narrow(work, sum, dtype, x, w->along[0], n);
}

/* `width` lines side by side. */
static void add_block(const lines *w, char *x, const char *v, const int64_t *p, double *sum, int64_t width) {
  int dtype = w->t[0]->dtype;
  bool whole = !ampl_dtype_is_float((ampl_dtype)dtype);
  ampl_cpu_work work = whole ? AMPL_WORK_I64 : AMPL_WORK_F64;
  int64_t n = w->t[0]->shape[w->dim], step[2] = {w->along[0] * (int64_t)w->size, w->along[1] * (int64_t)w->size};
  double *add = sum + n * width;
  uint64_t *isum = (uint64_t *)sum, *iadd = (uint64_t *)add;
  for (int64_t i = 0; i < n; i++) ampl_cpu_widen(work, sum + i * width, dtype, x + i * step[0], w->across[0], width);
  for (int64_t k = 0; k < w->length; k++) {
    ampl_cpu_widen(work, add, dtype, v + k * step[1], w->across[1], width);
    for (int64_t j = 0; j < width; j++) {
      int64_t at = p[k * w->pstep + j] * width + j;
      if (whole) isum[at] += iadd[j];
      else sum[at] += add[j];
    }
  }
  for (int64_t i = 0; i < n; i++) ampl_cpu_narrow(work, sum + i * width, dtype, x + i * step[0], w->across[0], width);
}

static void add_job(void *ud, int64_t r, int thread) {
  const lines *w = ud;
  int64_t p, at[2], size = (int64_t)w->size;
  double *sum = w->sums + thread * w->room;
  bundle_at(w, r, &p, at);
  char *x = ampl_cpu_at(w->t[0], at[0]);
  const char *v = ampl_cpu_at(w->t[1], at[1]);
  for (int64_t j = 0; j < w->width; j += w->block) {
    int64_t width = w->width - j < w->block ? w->width - j : w->block;
    char *xj = x + j * w->across[0] * size;
    const char *vj = v + j * w->across[1] * size;
    if (width == 1) add_line(w, xj, vj, w->p + p + j, sum);
    else add_block(w, xj, vj, w->p + p + j, sum, width);
  }
}

static ampl_status gather(ampl_ctx *ctx, const ampl_args *in, ampl_tensor **out) {
  const ampl_tensor *x = in->t[0], *index = in->t[1];
  int64_t d = in->p[0].i, *p;
  lines w;
  if (index->numel == 0) return AMPL_OK;
  AMPL_TRY(ampl_cpu_positions_get(ctx, index, size_at(x, d), "position", &p));
  lines_of(&w, index, x, out[0], d, p);
  ampl_cpu_parallel(ampl_cpu_threads_for(ctx, (double)index->numel * 2), w.n, gather_job, &w);
  ampl_cpu_positions_put(ctx, index, p);
  return AMPL_OK;
}

static ampl_status scatter(ampl_ctx *ctx, const ampl_args *in, ampl_tensor **out) {
  const ampl_tensor *x = in->t[0], *index = in->t[1], *src = in->t[2];
  int64_t d = in->p[0].i, *p;
  lines w;
  ampl_cpu_copy_all(ctx, out[0], x);
  if (index->numel == 0) return AMPL_OK;
  AMPL_TRY(ampl_cpu_positions_get(ctx, index, size_at(x, d), "position", &p));
  lines_of(&w, index, out[0], src->flags & AMPL_T_NUMBER ? NULL : src, d, p);
  ampl_cpu_scalar(src, x->dtype, w.value);
  ampl_cpu_parallel(ampl_cpu_threads_for(ctx, (double)index->numel * 2), w.n, scatter_job, &w);
  ampl_cpu_positions_put(ctx, index, p);
  return AMPL_OK;
}

/* y += src at the positions. */
static ampl_status add_elements(ampl_ctx *ctx, ampl_tensor *y, const ampl_tensor *index, const ampl_tensor *src,
                                int64_t d) {
  int64_t *p, n = size_at(y, d);
  lines w;
  ampl_status status = AMPL_OK;
  if (index->numel == 0) return AMPL_OK;
  AMPL_TRY(ampl_cpu_positions_get(ctx, index, n, "position", &p));
  lines_of(&w, index, y, src, d, p);
  w.block = n > 0 ? (32 << 10) / n : 1;
  w.block = w.block < 1 ? 1 : w.block > w.width ? w.width : w.block;
  w.room = n * w.block + (w.length > w.block ? w.length : w.block);
  int threads = ampl_cpu_threads_for(ctx, (double)y->numel + (double)index->numel * 3);
  size_t bytes = (size_t)(w.room * threads) * sizeof(double);
  if (!(w.sums = ampl_cpu_scratch_get(ctx, bytes)))
    status = ampl_error(ctx, AMPL_ENOMEM, "no memory for %zu bytes of sums", bytes);
  if (w.sums) {
    ampl_cpu_parallel(threads, w.n, add_job, &w);
    ampl_cpu_scratch_put(ctx, w.sums, bytes);
  }
  ampl_cpu_positions_put(ctx, index, p);
  return status;
}

static ampl_status gather_backward(ampl_ctx *ctx, const ampl_args *in, ampl_tensor **out) {
  memset(out[0]->data, 0, (size_t)out[0]->numel * size_of(out[0]));
  return add_elements(ctx, out[0], in->t[1], in->t[0], in->p[1].i);
}

static ampl_status scatter_add(ampl_ctx *ctx, const ampl_args *in, ampl_tensor **out) {
  ampl_cpu_copy_all(ctx, out[0], in->t[0]);
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
