/* norm.c: layer_norm and rms_norm: rows (the last dimensions of x) with a mean and a scale each.
 *
 * A row is read from memory once, forward and backward: mean and variance are made again in backward while the row is
 * in the cache, which is cheaper than to keep and to read them. */
#include "isa/norm.h"
#include "op.h"
#include "reduce.h"

#include <math.h>
#include <string.h>

enum { BLOCK = AMPL_FOLD_BLOCK, PARAM_ROWS = 64 };      /* sums over this many rows are in f32 */
enum { X, Y, DY = Y, DX };                              /* streams: forward x, y; backward x, dy, dx */

typedef struct norm {
  ampl_ctx       *ctx;
  ampl_cpu_work   work;
  bool            centered;     /* layer_norm; rms_norm has no mean */
  double          eps;
  int64_t         n, rows, chunk, chunks;
  ampl_cpu_stream lead[3], row[3];
  bool            wants_params;
  int             threads;
  const void     *weight, *bias;        /* n values of the working type, or NULL */
  char           *space;        /* all of the scratch memory: weight, bias, buffers, params */
  char           *buffers;      /* three rows a thread */
  char           *params;       /* [chunks][2][n]: sums for dweight and dbias; NULL: not wanted */
} norm;

static const ampl_cpu_norm *loops (void) { return AMPL_CPU_BEST(ampl_cpu_norm); }
static int64_t at_most (int64_t a, int64_t b) { return a < b ? a : b; }
static int64_t width (const norm *k) { return (int64_t)ampl_cpu_work_size(k->work); }

/* ------------------------------------------------------------------------------------------------ f64 ------------- */

static double factor (const double *weight, int64_t i) { return weight ? weight[i] : 1; }

static void f64_row (const norm *k, double *y, const double *x, double mean, double scale) {
  const double *w = k->weight, *b = k->bias;
  for (int64_t i = 0; i < k->n; i++) y[i] = (x[i] - mean) * scale * factor(w, i) + (b ? b[i] : 0);
}

static void f64_sums (const norm *k, const double *dy, const double *x, double mean, double *a, double *b) {
  for (int64_t i = 0; i < k->n; i++) {
    double g = dy[i] * factor(k->weight, i);
    *a += g;
    *b += g * (x[i] - mean);
  }
}

static void f64_back (const norm *k, double *dx, const double *dy, const double *x, double mean, double scale, double b,
                      double c) {
  for (int64_t i = 0; i < k->n; i++) dx[i] = dy[i] * factor(k->weight, i) * scale + (x[i] - mean) * b + c;
}

static void f64_params (const norm *k, double *dw, double *db, const double *dy, const double *x, double mean,
                        double scale) {
  for (int64_t i = 0; i < k->n; i++) {
    dw[i] += dy[i] * (x[i] - mean) * scale;
    db[i] += dy[i];
  }
}

/* ------------------------------------------------------------------------------------------------ rows ------------ */

static void statistics (const norm *k, const void *x, double *mean, double *scale) {
  ampl_cpu_fold fold = k->centered ? AMPL_FOLD_MOMENTS : AMPL_FOLD_SUM_SQUARES;
  ampl_cpu_part all, one;
  for (int64_t pos = 0; pos < k->n && !ampl_cpu_stop_at(k->ctx, pos, BLOCK); pos += BLOCK) {
    int64_t len = at_most(BLOCK, k->n - pos);
    ampl_cpu_fold_row(fold, k->work, 0, (const char *)x + pos * width(k), len, &one);
    ampl_cpu_fold_merge(fold, k->work, &all, pos, &one, len, 1);
  }
  *mean = k->centered ? all.a.f : 0;
  *scale = 1 / sqrt((k->centered ? all.b.f : all.a.f) / (double)k->n + k->eps);
}

static void forward_job (void *ud, int64_t job, int thread) {
  const norm *k = ud;
  char *buf = k->buffers + thread * 3 * k->n * width(k);
  for (int64_t r = job * k->chunk, end = at_most(r + k->chunk, k->rows); r < end; r++) {
    int64_t from = ampl_cpu_offset(&k->lead[X], r), to = ampl_cpu_offset(&k->lead[Y], r);
    double mean, scale;
    if (ampl_cpu_stop_at(k->ctx, r * k->n, k->n)) return;
    const void *x = ampl_cpu_load(&k->row[X], k->work, from, 0, k->n, buf);
    void *y = ampl_cpu_target(&k->row[Y], k->work, to, 0, k->n, buf);
    statistics(k, x, &mean, &scale);
    if (k->work == AMPL_WORK_F32) loops()->row(y, x, k->weight, k->bias, k->n, (float)mean, (float)scale);
    else f64_row(k, y, x, mean, scale);
    ampl_cpu_store(&k->row[Y], k->work, to, 0, k->n, y);
  }
}

static void back_row (const norm *k, int64_t r, char *buf, char *dw, char *db) {
  int64_t at[3];
  double mean, scale, a = 0, b = 0;
  for (int i = 0; i < 3; i++) at[i] = ampl_cpu_offset(&k->lead[i], r);
  const void *x = ampl_cpu_load(&k->row[X], k->work, at[X], 0, k->n, buf);
  const void *dy = ampl_cpu_load(&k->row[DY], k->work, at[DY], 0, k->n, buf + k->n * width(k));
  bool small = k->work == AMPL_WORK_F32;
  statistics(k, x, &mean, &scale);
  if (dw) {
    if (small) loops()->row_params((float *)dw, (float *)db, dy, x, k->n, (float)mean, (float)scale);
    else f64_params(k, (double *)dw, (double *)db, dy, x, mean, scale);
  }
  if (!k->row[DX].data || ampl_cpu_stop_at(k->ctx, r * k->n, k->n)) return;
  if (small) loops()->row_sums(dy, x, k->weight, k->n, (float)mean, &a, &b);
  else f64_sums(k, dy, x, mean, &a, &b);
  /* dx = scale * (g - mean of g - xhat * mean of g * xhat), g = dy * weight */
  b = -b * scale * scale * scale / (double)k->n;
  a = k->centered ? -a * scale / (double)k->n : 0;
  void *dx = ampl_cpu_target(&k->row[DX], k->work, at[DX], 0, k->n, buf + 2 * k->n * width(k));
  if (small) loops()->row_back(dx, dy, x, k->weight, k->n, (float)mean, (float)scale, (float)b, (float)a);
  else f64_back(k, dx, dy, x, mean, scale, b, a);
  ampl_cpu_store(&k->row[DX], k->work, at[DX], 0, k->n, dx);
}

static void backward_job (void *ud, int64_t job, int thread) {
  const norm *k = ud;
  int64_t bytes = k->n * width(k);
  char *buf = k->buffers + thread * 3 * bytes, *dw = k->params ? k->params + job * 2 * bytes : NULL;
  if (dw) memset(dw, 0, (size_t)(2 * bytes));
  for (int64_t r = job * k->chunk, end = at_most(r + k->chunk, k->rows); r < end; r++) {
    if (ampl_cpu_stop_at(k->ctx, r * k->n, k->n)) return;
    back_row(k, r, buf, dw, dw ? dw + bytes : NULL);
  }
}

/* ------------------------------------------------------------------------------------------------ setting up ------ */

/* Streams of the rows of t[i], whose last `inner` dimensions are a row */
static void rows_of (norm *k, int count, const ampl_tensor *const *t, int inner) {
  const ampl_tensor *x = t[X];
  int lead = x->ndim - inner;
  const int64_t *outside[3], *inside[3];
  for (int i = 0; i < count; i++) {
    const ampl_tensor *s = t[i] ? t[i] : x;
    outside[i] = s->strides;
    inside[i] = s->strides + lead;
    k->lead[i].data = k->row[i].data = t[i] ? t[i]->data : NULL;
    k->lead[i].dtype = k->row[i].dtype = s->dtype;
    if (ampl_cpu_work_of(s->dtype) == AMPL_WORK_F64) k->work = AMPL_WORK_F64;
  }
  ampl_cpu_streams_from(count, outside, lead, x->shape, false, k->lead);
  ampl_cpu_streams_from(count, inside, inner, x->shape + lead, false, k->row);
  k->rows = k->lead[X].n;
  k->n = k->row[X].n;
}

/* The values of a weight or bias, in their tensor or at *space, which then moves on */
static const void *values_of (const norm *k, const ampl_tensor *t, char **space) {
  ampl_cpu_stream s;
  if (!t) return NULL;
  ampl_cpu_streams(1, &t, t->ndim, t->shape, false, &s);
  const void *v = ampl_cpu_load(&s, k->work, 0, 0, k->n, *space);
  if (v == *space) *space += k->n * width(k);
  return v;
}

static size_t space_of (const norm *k) {
  size_t rows = (size_t)k->threads * 3 + 2 + (k->wants_params ? (size_t)k->chunks * 2 : 0);
  return rows * (size_t)(k->n * width(k));
}

static void release (ampl_ctx *ctx, norm *k) { ampl_cpu_scratch_put(ctx, k->space, space_of(k)); }

/* Runs `job` over chunks of rows, with scratch memory that k keeps until release(), but for an error */
static ampl_status run(ampl_ctx *ctx, norm *k, const ampl_tensor *weight, const ampl_tensor *bias,
                       ampl_cpu_job_fn job) {
  double cost = job == forward_job ? 0.7 : 1.5;
  k->ctx = ctx;
  k->threads = ampl_cpu_threads_for(ctx, cost * (double)(k->rows * k->n));
  k->chunk = k->wants_params ? PARAM_ROWS : at_most(64, 1 + (1 << 14) / k->n);
  k->chunks = (k->rows + k->chunk - 1) / k->chunk;
  char *at = k->space = ampl_cpu_scratch_get(ctx, space_of(k));
  if (!k->space) return ampl_error(ctx, AMPL_ENOMEM, "no memory for %zu bytes of scratch", space_of(k));
  int64_t row = k->n * width(k);
  k->weight = values_of(k, weight, &at);
  k->bias = values_of(k, bias, &at);
  k->buffers = k->space + 2 * row;
  k->params = k->wants_params ? k->buffers + k->threads * 3 * row : NULL;
  const ampl_status s = ampl_cpu_parallel(ctx, k->threads, k->chunks, job, k);
  if (s != AMPL_OK) release(ctx, k);
  return s;
}

static void zero (ampl_tensor *x) { memset(x->data, 0, (size_t)x->numel * ampl_dtype_size((ampl_dtype)x->dtype)); }

/* dweight or dbias (`which`: 0 or 1): the chunks' sums, added in their order */
static void add_params (const norm *k, int which, ampl_tensor *out) {
  ampl_cpu_stream s;
  double sum[BLOCK];
  float small[BLOCK];
  const ampl_tensor *t = out;
  ampl_cpu_streams(1, &t, out->ndim, out->shape, false, &s);
  for (int64_t pos = 0; pos < k->n && !ampl_cpu_stop_at(k->ctx, pos * k->chunks, BLOCK * k->chunks); pos += BLOCK) {
    int64_t len = at_most(BLOCK, k->n - pos);
    memset(sum, 0, sizeof sum);
    for (int64_t c = 0; c < k->chunks; c++) {
      const char *part = k->params + ((2 * c + which) * k->n + pos) * width(k);
      for (int64_t i = 0; i < len; i++)
        sum[i] += k->work == AMPL_WORK_F32 ? (double)((const float *)part)[i] : ((const double *)part)[i];
    }
    for (int64_t i = 0; i < len; i++) small[i] = (float)sum[i];
    if (ampl_cpu_work_of(out->dtype) == AMPL_WORK_F32) ampl_cpu_store(&s, AMPL_WORK_F32, 0, pos, len, small);
    else ampl_cpu_store(&s, AMPL_WORK_F64, 0, pos, len, sum);
  }
}

/* ------------------------------------------------------------------------------------------------ kernels --------- */

/* Operands x, weight, bias; parameters normalized_shape, eps */
static ampl_status layer_norm (ampl_ctx *ctx, const ampl_args *in, ampl_tensor **out) {
  const ampl_tensor *t[2] = {in->t[0], out[0]};
  norm k = {.centered = true, .eps = in->p[1].f};
  rows_of(&k, 2, t, (int)in->p[0].l.n);
  if (t[0]->numel == 0) return AMPL_OK;
  AMPL_TRY(run(ctx, &k, in->t[1], in->t[2], forward_job));
  release(ctx, &k);
  return AMPL_OK;
}

/* Operands x, weight; parameters normalized_shape, eps */
static ampl_status rms_norm (ampl_ctx *ctx, const ampl_args *in, ampl_tensor **out) {
  const ampl_tensor *t[2] = {in->t[0], out[0]};
  norm k = {.centered = false, .eps = in->p[1].f};
  rows_of(&k, 2, t, (int)in->p[0].l.n);
  if (t[0]->numel == 0) return AMPL_OK;
  AMPL_TRY(run(ctx, &k, in->t[1], NULL, forward_job));
  release(ctx, &k);
  return AMPL_OK;
}

/* Operands dy, x, weight; parameters: number of dimensions in a row, eps, whether dx and whether the gradients of
 * weight and bias are wanted */
static ampl_status backward (ampl_ctx *ctx, const ampl_args *in, ampl_tensor **out, bool centered) {
  bool wants_x = in->p[2].i;
  const ampl_tensor *t[3] = {[X] = in->t[1], [DY] = in->t[0], [DX] = wants_x ? out[0] : NULL};
  norm k = {.centered = centered, .eps = in->p[1].f, .wants_params = in->p[3].i};
  rows_of(&k, 3, t, (int)in->p[0].i);
  if (t[X]->numel == 0) {
    zero(out[1]);
    if (centered) zero(out[2]);
    return AMPL_OK;
  }
  AMPL_TRY(run(ctx, &k, in->t[2], NULL, backward_job));
  if (k.wants_params) {
    add_params(&k, 0, out[1]);
    if (centered) add_params(&k, 1, out[2]);
  }
  release(ctx, &k);
  return ampl_cpu_poll(ctx);
}

static ampl_status layer_norm_backward (ampl_ctx *ctx, const ampl_args *in, ampl_tensor **out) {
  return backward(ctx, in, out, true);
}
static ampl_status rms_norm_backward (ampl_ctx *ctx, const ampl_args *in, ampl_tensor **out) {
  return backward(ctx, in, out, false);
}

const ampl_kernel ampl_cpu_norm_kernels[] = {
    {"layer_norm", AMPL_DTYPE_NONE, layer_norm},
    {"rms_norm_rows", AMPL_DTYPE_NONE, rms_norm},
    {"layer_norm_backward", AMPL_DTYPE_NONE, layer_norm_backward},
    {"rms_norm_backward", AMPL_DTYPE_NONE, rms_norm_backward},
    {NULL, 0, NULL},
};
