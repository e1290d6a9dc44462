/* cross_entropy.c: cross_entropy and nll_loss by class labels, and their gradients.
 *
 * Rows are counted as the labels are, row by row.  Where classes lie side by side (most classifiers, channels-last
 * images) rows are taken one by one; else tiles of neighbouring rows go through the classes together.  16-bit logits
 * are read as they are, arithmetic is f32, and what is kept for each row is f64. */
#include "isa/norm.h"
#include "isa/softmax.h"
#include "move.h"
#include "op.h"
#include "reduce.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { NONE, MEAN, SUM };
enum { BLOCK = AMPL_FOLD_BLOCK, TILE = AMPL_FOLD_COLS / 2, ROWS = AMPL_FOLD_ROWS, IGNORED = -1 };

typedef struct task {
  ampl_cpu_work   work;
  ampl_ctx       *ctx;
  int64_t         classes, rows;
  ampl_cpu_stream row, along;   /* of x: where rows begin; the classes of one */
  ampl_cpu_stream drow, dalong; /* of dx */
  int64_t         m, tiles;     /* neighbouring rows; 0 tiles: rows are taken one by one */
  int64_t        *label;        /* [rows], from 0; IGNORED */
  double         *weight;       /* [classes] */
  const void     *fweight;      /* the same in the working type, or NULL: all are 1 */
  double          smoothing, all_weights;
  double         *loss;         /* [rows]: forward; backward: dy of each row */
  double         *lse;          /* [rows]: log of the sum of exp */
  void           *space;
  size_t          bytes;
} task;

static const ampl_cpu_softmax *loops (void) { return AMPL_CPU_BEST(ampl_cpu_softmax); }
static int64_t at_most (int64_t a, int64_t b) { return a < b ? a : b; }

/* ------------------------------------------------------------------------------------------------ labels ---------- */

static ampl_status bad_label (ampl_ctx *ctx, const ampl_tensor *labels, int64_t row, int64_t v, int64_t classes) {
  const int64_t base = ampl_index_base(ctx);
  const char *hint = base ? " (data.idx and data.csv shift labels with base = 0)" : "";
  char where[64] = "";
  if (labels->ndim == 1) snprintf(where, sizeof where, " at row %lld", (long long)ampl_shown(ctx, row));
  if (labels->ndim > 1)
    snprintf(where, sizeof where, " at element %lld of target, counted row by row", (long long)ampl_shown(ctx, row));
  return ampl_error(ctx, AMPL_EINDEX, "class %lld%s; classes count from %lld to %lld%s", (long long)v, where,
                    (long long)base, (long long)(classes - 1 + base), hint);
}

/* Labels as classes from 0.  ignore_index is a class from 0, too, or negative, as are labels that stand for it. */
static ampl_status read_labels (ampl_ctx *ctx, const ampl_tensor *labels, int64_t ignore, task *t) {
  ampl_cpu_stream s;
  const int64_t base = ampl_index_base(ctx), ignored = ignore < 0 ? ignore : ignore + base;
  ampl_cpu_streams(1, &labels, labels->ndim, labels->shape, false, &s);
  for (int64_t pos = 0; pos < t->rows; pos += BLOCK) {
    int64_t len = at_most(BLOCK, t->rows - pos);
    if (ampl_cpu_stop_at(ctx, pos, BLOCK)) return ampl_cpu_poll(ctx);
    const int64_t *v = ampl_cpu_load(&s, AMPL_WORK_I64, 0, pos, len, t->label + pos);
    for (int64_t i = 0; i < len; i++) {
      int64_t label = v[i];
      if (label == ignored) t->label[pos + i] = IGNORED;
      else if (label < base || label >= t->classes + base) return bad_label(ctx, labels, pos + i, label, t->classes);
      else t->label[pos + i] = label - base;
    }
  }
  return AMPL_OK;
}

static int64_t align (int64_t bytes) { return (bytes + 63) / 64 * 64; }

/* Memory, labels and weights; x is a tensor or only a shape (data NULL). */
static ampl_status begin (ampl_ctx *ctx, task *t, int ndim, const int64_t *shape, const ampl_tensor *labels,
                          const ampl_tensor *weight, int64_t ignore) {
  t->ctx = ctx;
  t->classes = shape[ndim > 1];
  t->rows = labels->numel;
  int64_t rows = align(t->rows * 8), classes = align(t->classes * 8);
  t->bytes = (size_t)(3 * rows + 2 * classes);
  if (!(t->space = ampl_cpu_scratch_get(ctx, t->bytes ? t->bytes : 1)))
    return ampl_error(ctx, AMPL_ENOMEM, "no memory for %zu bytes of labels and losses", t->bytes);
  char *at = t->space;
  t->label = (int64_t *)at;
  t->loss = (double *)(at + rows);
  t->lse = (double *)(at + 2 * rows);
  t->weight = (double *)(at + 3 * rows);
  void *floats = at + 3 * rows + classes;
  for (int64_t c = 0; c < t->classes; c++) t->weight[c] = 1;
  if (weight) {
    ampl_cpu_widen(AMPL_WORK_F64, t->weight, weight->dtype, weight->data, weight->strides[0], t->classes);
    ampl_cpu_widen(t->work, floats, weight->dtype, weight->data, weight->strides[0], t->classes);
    t->fweight = floats;
  }
  for (int64_t c = 0; c < t->classes; c++) t->all_weights += t->weight[c];
  ampl_status s = read_labels(ctx, labels, ignore, t);
  if (s != AMPL_OK) ampl_cpu_scratch_put(ctx, t->space, t->bytes ? t->bytes : 1);
  return s;
}
static void end (ampl_ctx *ctx, task *t) { ampl_cpu_scratch_put(ctx, t->space, t->bytes ? t->bytes : 1); }

/* Streams of x's rows and classes; rows in the order of the labels */
static void lay_out (task *t, const ampl_tensor *x, ampl_tensor *dx) {
  const ampl_tensor *both[2] = {x, dx ? dx : x};
  int64_t shape[AMPL_RANK_MAX], stride[2][AMPL_RANK_MAX];
  int dim = x->ndim > 1, nd = 0;
  for (int d = 0; d < x->ndim; d++) {
    if (d == dim) continue;
    shape[nd] = x->shape[d];
    for (int k = 0; k < 2; k++) stride[k][nd] = both[k]->strides[d];
    nd++;
  }
  ampl_cpu_stream s[2], along[2];
  for (int k = 0; k < 2; k++) {
    const int64_t *step = &both[k]->strides[dim];
    s[k] = along[k] = (ampl_cpu_stream){.data = both[k]->data, .dtype = both[k]->dtype};
    ampl_cpu_streams_from(1, &step, 1, &x->shape[dim], false, &along[k]);
  }
  ampl_cpu_streams_from(2, (const int64_t *const[]){stride[0], stride[1]}, nd, shape, false, s);
  t->row = s[0], t->drow = s[1];
  t->along = along[0], t->dalong = along[1];
  t->m = s[0].shape[s[0].nd - 1];
  int64_t step = s[0].stride[s[0].nd - 1], by = x->strides[dim];
  t->tiles = t->m >= 4 && step && t->classes > 1 && by > step ? (t->m + TILE - 1) / TILE : 0;
}

/* One element by its address, whatever its dtype */
static double element (int dtype, const char *p) {
  double v;
  if (dtype == AMPL_F32) return *(const float *)p;
  ampl_cpu_widen(AMPL_WORK_F64, &v, dtype, p, 1, 1);
  return v;
}

/* Value c of the row that begins at `first` */
static double value (const task *t, int64_t first, int64_t c) {
  return element(t->along.dtype, t->along.data + (first + c * t->along.stride[0]) *
                                                     (int64_t)ampl_dtype_size((ampl_dtype)t->along.dtype));
}

/* The weights of row r's targets: of the label's own, and of every class times its weight */
static double label_part (const task *t, int64_t r) { return (1 - t->smoothing) * t->weight[t->label[r]]; }
static double each_part (const task *t) { return t->smoothing / (double)t->classes; }

/* ------------------------------------------------------------------------------------------------ forward --------- */

/* From what a row came to: its largest value, its sum of exp, and, for smoothing, its weighted sum */
static void row_loss (const task *t, int64_t r, int64_t first, const ampl_cpu_part *part, double weighted_sum) {
  double top = part->a.f, log_sum = log(part->b.f);
  if (isinf(top)) top = 0, log_sum = part->a.f > 0 ? NAN : log_sum;     /* as log_softmax: inf - inf */
  t->lse[r] = top + log_sum;
  if (t->label[r] == IGNORED) {
    t->loss[r] = 0;
    return;
  }
  double loss = label_part(t, r) * ((top - value(t, first, t->label[r])) + log_sum);
  if (t->smoothing > 0) loss += each_part(t) * (t->all_weights * t->lse[r] - weighted_sum);
  t->loss[r] = loss;
}

static double f64_dot (const double *x, int64_t step, const double *w, int64_t n) {
  double s = 0;
  for (int64_t i = 0; i < n; i++) s += x[i * step] * w[i];
  return s;
}

/* The weighted sum of values from class c on */
static double weighted_sum (const task *t, const void *x, int64_t c, int64_t n) {
  double a, b;
  if (t->work == AMPL_WORK_F64) return f64_dot(x, 1, t->weight + c, n);
  if (!t->fweight) {
    ampl_cpu_part sum;
    ampl_cpu_fold_row(AMPL_FOLD_SUM, t->work, 0, x, n, &sum);
    return sum.a.f;
  }
  AMPL_CPU_BEST(ampl_cpu_folds)->dot_row(x, (const float *)t->fweight + c, n, 0, &a, &b);
  return b;
}

static void row_job (void *ud, int64_t r, int thread) {
  const task *t = ud;
  double buf[BLOCK], sum = 0;
  ampl_cpu_part all = ampl_cpu_fold_none(AMPL_FOLD_LOG_SUM_EXP, t->work), one;
  (void)thread;
  if (t->label[r] == IGNORED) {
    t->lse[r] = t->loss[r] = 0;
    return;
  }
  int64_t first = ampl_cpu_offset(&t->row, r);
  for (int64_t c = 0; c < t->classes; c += BLOCK) {
    int64_t n = at_most(BLOCK, t->classes - c);
    if (c > 0 && ampl_cpu_stop_at(t->ctx, c, BLOCK)) return;
    const void *x = ampl_cpu_load(&t->along, t->work, first, c, n, buf);
    ampl_cpu_fold_row(AMPL_FOLD_LOG_SUM_EXP, t->work, 0, x, n, &one);
    ampl_cpu_fold_merge(AMPL_FOLD_LOG_SUM_EXP, t->work, &all, c, &one, n, 1);
    if (t->smoothing > 0) sum += weighted_sum(t, x, c, n);
  }
  row_loss(t, r, first, &all, sum);
}

/* The rows that tile `job` is; their number */
static int64_t tile_of (const task *t, int64_t job, int64_t *row) {
  int64_t column = job % t->tiles * TILE;
  *row = job / t->tiles * t->m + column;
  return at_most(TILE, t->m - column);
}

static void add_weighted (const task *t, const void *x, int64_t ld, int64_t c, int64_t rows, int64_t m, double *sum) {
  for (int64_t k = 0; k < rows; k++) {
    double w = t->weight[c + k];
    if (t->work == AMPL_WORK_F64)
      for (int64_t j = 0; j < m; j++) sum[j] += w * ((const double *)x)[k * ld + j];
    else
      for (int64_t j = 0; j < m; j++) sum[j] += w * (double)((const float *)x)[k * ld + j];
  }
}

static void tile_job (void *ud, int64_t job, int thread) {
  const task *t = ud;
  double buf[ROWS * TILE], sum[TILE] = {0};
  ampl_cpu_part all[TILE], some[TILE];
  (void)thread;
  int64_t r, ld, m = tile_of(t, job, &r), step = t->along.stride[0];
  for (int64_t c = 0; c < t->classes; c += ROWS) {
    int64_t rows = at_most(ROWS, t->classes - c);
    if (c > 0 && ampl_cpu_stop_at(t->ctx, c * m, ROWS * m)) return;
    const void *x = ampl_cpu_load_rows(&t->row, t->work, c * step, step, r, rows, m, buf, &ld);
    ampl_cpu_fold_cols(AMPL_FOLD_LOG_SUM_EXP, t->work, 0, x, ld, rows, m, c ? some : all);
    if (c) ampl_cpu_fold_merge(AMPL_FOLD_LOG_SUM_EXP, t->work, all, c, some, rows, m);
    if (t->smoothing > 0) add_weighted(t, x, ld, c, rows, m, sum);
  }
  const int64_t first = ampl_cpu_offset(&t->row, r), next = t->row.stride[t->row.nd - 1];
  for (int64_t j = 0; j < m; j++) row_loss(t, r + j, first + j * next, &all[j], sum[j]);
}

static double total_weight (const task *t) {
  double s = 0;
  for (int64_t r = 0; r < t->rows; r++)
    if (t->label[r] != IGNORED) s += t->weight[t->label[r]];
  return s;
}

static void store_scalar(ampl_tensor *out, double v) {
  ampl_cpu_narrow(AMPL_WORK_F64, &v, out->dtype, out->data, 1, 1);
}

/* The rows' losses as they are, added up, or that divided by the total weight */
static void store_loss (const task *t, int64_t reduction, double total, ampl_tensor *out) {
  if (reduction == NONE) {
    ampl_cpu_stream s;
    const ampl_tensor *y = out;
    ampl_cpu_streams(1, &y, y->ndim, y->shape, false, &s);
    ampl_cpu_store(&s, AMPL_WORK_F64, 0, 0, t->rows, t->loss);
    return;
  }
  double sum = 0;
  for (int64_t r = 0; r < t->rows; r++) sum += t->loss[r];
  store_scalar(out, reduction == MEAN ? sum / total : sum);
}

static ampl_cpu_work work_of (const ampl_tensor *x) { return x->dtype == AMPL_F64 ? AMPL_WORK_F64 : AMPL_WORK_F32; }

/* Operands x, target, weight; parameters ignore_index, reduction, label_smoothing, dtype; outputs loss, lse, total */
static ampl_status cross_entropy (ampl_ctx *ctx, const ampl_args *in, ampl_tensor **out) {
  const ampl_tensor *x = in->t[0];
  task t = {.work = work_of(x), .smoothing = in->p[2].f};
  AMPL_TRY(begin(ctx, &t, x->ndim, x->shape, in->t[1], in->t[2], in->p[0].i));
  lay_out(&t, x, NULL);
  ampl_status s = AMPL_OK;
  if (t.rows) {
    int threads = ampl_cpu_threads_for(ctx, (double)x->numel + 20.0 * (double)t.rows);
    s = ampl_cpu_parallel(ctx, threads, t.tiles ? t.rows / t.m * t.tiles : t.rows, t.tiles ? tile_job : row_job, &t);
  }
  if (s == AMPL_OK) {
    if (t.rows) memcpy(out[1]->data, t.lse, (size_t)t.rows * sizeof *t.lse);
    double total = total_weight(&t);
    store_scalar(out[2], total);
    store_loss(&t, in->p[1].i, total, out[0]);
  }
  end(ctx, &t);
  return s;
}

/* ------------------------------------------------------------------------------------------------ backward -------- */

/* dy of every row, in t->loss; 0 for those that are ignored */
static void spread_gradient (task *t, const ampl_tensor *dy, int64_t reduction, const ampl_tensor *total) {
  ampl_cpu_stream s;
  double one, all = 1;
  ampl_cpu_streams(1, &dy, dy->ndim, dy->shape, false, &s);
  if (reduction == NONE) {
    const double *v = ampl_cpu_load(&s, AMPL_WORK_F64, 0, 0, t->rows, t->loss);
    if (v != t->loss && t->rows) memcpy(t->loss, v, (size_t)t->rows * sizeof *v);
  } else {
    const double *v = ampl_cpu_load(&s, AMPL_WORK_F64, 0, 0, 1, &one);
    if (reduction == MEAN) ampl_cpu_widen(AMPL_WORK_F64, &all, total->dtype, total->data, 1, 1);
    for (int64_t r = 0; r < t->rows; r++) t->loss[r] = *v / all;
  }
  for (int64_t r = 0; r < t->rows; r++)
    if (t->label[r] == IGNORED) t->loss[r] = 0;
}

/* dx[c] = dy * (exp(x[c] - lse) * all - each * weight[c] - (c is the label) * own), as exp(x - a) * b - ... with a the
 * float next to lse, and what it is off in b */
typedef struct constants { double a, b, each, own; } constants;

static constants constants_of (const task *t, int64_t r) {
  double own = label_part(t, r), each = each_part(t), g = t->loss[r],
         a = t->work == AMPL_WORK_F32 ? (float)t->lse[r] : t->lse[r];
  return (constants){a, g * (own + each * t->all_weights) * exp(a - t->lse[r]), g * each, g * own};
}

/* y -= each * weight, from class c on */
static void subtract_weights (const task *t, void *y, int64_t c, int64_t n, double each) {
  if (t->work == AMPL_WORK_F64) {
    for (int64_t i = 0; i < n; i++) ((double *)y)[i] -= each * t->weight[c + i];
    return;
  }
  const ampl_cpu_norm *affine = AMPL_CPU_BEST(ampl_cpu_norm);
  if (t->fweight) affine->affine_row(y, y, (const float *)t->fweight + c, n, 1, 0, (float)-each, 0);
  else affine->affine_row(y, NULL, y, n, 0, 0, 1, (float)-each);
}

static void back_row_job (void *ud, int64_t r, int thread) {
  const task *t = ud;
  double buf[BLOCK];
  (void)thread;
  int64_t from = ampl_cpu_offset(&t->row, r), to = ampl_cpu_offset(&t->drow, r), label = t->label[r];
  constants k = label == IGNORED ? (constants){0, 0, 0, 0} : constants_of(t, r);
  for (int64_t c = 0; c < t->classes; c += BLOCK) {
    int64_t n = at_most(BLOCK, t->classes - c);
    if (c > 0 && ampl_cpu_stop_at(t->ctx, c, BLOCK)) return;
    void *y = ampl_cpu_target(&t->dalong, t->work, to, c, n, buf);
    if (label == IGNORED) {
      memset(y, 0, (size_t)n * ampl_cpu_work_size(t->work));
      ampl_cpu_store(&t->dalong, t->work, to, c, n, y);
      continue;
    }
    const void *x = ampl_cpu_load(&t->along, t->work, from, c, n, buf);
    if (t->work == AMPL_WORK_F32) loops()->part[0](y, x, n, (float)k.a, (float)k.b);
    else
      for (int64_t i = 0; i < n; i++) ((double *)y)[i] = exp(((const double *)x)[i] - k.a) * k.b;
    if (t->smoothing > 0) subtract_weights(t, y, c, n, k.each);
    if (label >= c && label < c + n) {
      if (t->work == AMPL_WORK_F32) ((float *)y)[label - c] = (float)((double)((float *)y)[label - c] - k.own);
      else ((double *)y)[label - c] -= k.own;
    }
    ampl_cpu_store(&t->dalong, t->work, to, c, n, y);
  }
}

/* Element c of the row of dx that begins at `first` */
static void set (const task *t, int64_t first, int64_t c, double v) {
  int64_t size = (int64_t)ampl_dtype_size((ampl_dtype)t->dalong.dtype);
  char *p = t->dalong.data + (first + c * t->dalong.stride[0]) * size;
  if (t->dalong.dtype == AMPL_F32) *(float *)p = (float)v;
  else ampl_cpu_narrow(AMPL_WORK_F64, &v, t->dalong.dtype, p, 1, 1);
}

/* The labels' own elements, and rows that do not count, whatever x is there */
static void finish_tile (const task *t, int64_t r, int64_t m, const constants *k) {
  const int64_t from = ampl_cpu_offset(&t->row, r), to = ampl_cpu_offset(&t->drow, r);
  const int64_t xnext = t->row.stride[t->row.nd - 1], next = t->drow.stride[t->drow.nd - 1];
  for (int64_t j = 0; j < m; j++) {
    int64_t label = t->label[r + j], at = to + j * next;
    if (label == IGNORED)
      for (int64_t c = 0; c < t->classes; c++) set(t, at, c, 0);
    else
      set(t, at, label,
          exp(value(t, from + j * xnext, label) - k[j].a) * k[j].b - k[j].each * t->weight[label] - k[j].own);
  }
}

static void back_tile_job (void *ud, int64_t job, int thread) {
  const task *t = ud;
  double buf[ROWS * TILE];
  constants k[TILE];
  float a[TILE], b[TILE];
  (void)thread;
  int64_t r, m = tile_of(t, job, &r), from = t->along.stride[0], to = t->dalong.stride[0];
  for (int64_t j = 0; j < m; j++) {
    k[j] = t->label[r + j] == IGNORED ? (constants){0, 0, 0, 0} : constants_of(t, r + j);
    a[j] = (float)k[j].a, b[j] = (float)k[j].b;
  }
  for (int64_t c = 0; c < t->classes; c += ROWS) {
    if (c > 0 && ampl_cpu_stop_at(t->ctx, c * m, ROWS * m)) return;
    int64_t rows = at_most(ROWS, t->classes - c), ldx, ldy;
    const void *x = ampl_cpu_load_rows(&t->row, t->work, c * from, from, r, rows, m, buf, &ldx);
    void *y = ampl_cpu_target_rows(&t->drow, t->work, c * to, to, r, m, buf, &ldy);
    if (t->work == AMPL_WORK_F32) loops()->cols[0](y, ldy, x, ldx, rows, m, a, b);
    for (int64_t i = 0; i < rows; i++) {
      double w = t->weight[c + i];
      if (t->work == AMPL_WORK_F64)
        for (int64_t j = 0; j < m; j++)
          ((double *)y)[i * ldy + j] = exp(((const double *)x)[i * ldx + j] - k[j].a) * k[j].b - k[j].each * w;
      else if (t->smoothing > 0)
        for (int64_t j = 0; j < m; j++) ((float *)y)[i * ldy + j] -= (float)(k[j].each * w);
    }
    ampl_cpu_store_rows(&t->drow, t->work, c * to, to, r, rows, m, y);
  }
  finish_tile(t, r, m, k);
}

/* Operands dy, x, target, weight, lse, total; parameters ignore_index, reduction, label_smoothing */
static ampl_status cross_entropy_backward (ampl_ctx *ctx, const ampl_args *in, ampl_tensor **out) {
  const ampl_tensor *x = in->t[1];
  task t = {.work = work_of(x), .smoothing = in->p[2].f};
  AMPL_TRY(begin(ctx, &t, x->ndim, x->shape, in->t[2], in->t[3], in->p[0].i));
  lay_out(&t, x, out[0]);
  ampl_status s = AMPL_OK;
  if (t.rows) {
    memcpy(t.lse, in->t[4]->data, (size_t)t.rows * sizeof *t.lse);
    spread_gradient(&t, in->t[0], in->p[1].i, in->t[5]);
    int threads = ampl_cpu_threads_for(ctx, (double)x->numel + 20.0 * (double)t.rows);
    s = ampl_cpu_parallel(ctx, threads, t.tiles ? t.rows / t.m * t.tiles : t.rows,
                          t.tiles ? back_tile_job : back_row_job, &t);
  }
  end(ctx, &t);
  return s;
}

/* ------------------------------------------------------------------------------------------------ targets --------- */

/* Operands x, target, weight; parameters ignore_index, label_smoothing */
static ampl_status class_targets (ampl_ctx *ctx, const ampl_args *in, ampl_tensor **out) {
  const ampl_tensor *x = in->t[0];
  task t = {.work = work_of(x), .smoothing = in->p[1].f};
  AMPL_TRY(begin(ctx, &t, x->ndim, x->shape, in->t[1], in->t[2], in->p[0].i));
  lay_out(&t, x, out[0]);
  for (int64_t r = 0; r < t.rows && !ampl_cpu_stop_at(ctx, r * t.classes, t.classes); r++) {
    int64_t first = ampl_cpu_offset(&t.drow, r);
    for (int64_t c = 0; c < t.classes; c++) {
      bool counts = t.label[r] != IGNORED;
      double each = counts ? each_part(&t) * t.weight[c] : 0;
      set(&t, first, c, counts && t.label[r] == c ? label_part(&t, r) + each : each);
    }
  }
  end(ctx, &t);
  return ampl_cpu_poll(ctx);
}

/* ------------------------------------------------------------------------------------------------ nll_loss -------- */

/* Operands x, target, weight; parameters ignore_index, reduction; outputs loss, total */
static ampl_status nll_loss (ampl_ctx *ctx, const ampl_args *in, ampl_tensor **out) {
  const ampl_tensor *x = in->t[0];
  task t = {.work = work_of(x)};
  AMPL_TRY(begin(ctx, &t, x->ndim, x->shape, in->t[1], in->t[2], in->p[0].i));
  lay_out(&t, x, NULL);
  for (int64_t r = 0; r < t.rows && !ampl_cpu_stop_at(ctx, r, 1); r++)
    t.loss[r] = t.label[r] == IGNORED ? 0 : -t.weight[t.label[r]] * value(&t, ampl_cpu_offset(&t.row, r), t.label[r]);
  double total = total_weight(&t);
  store_scalar(out[1], total);
  store_loss(&t, in->p[1].i, total, out[0]);
  end(ctx, &t);
  return ampl_cpu_poll(ctx);
}

/* Operands dy, target, weight, total; parameters shape, ignore_index, reduction, dtype */
static ampl_status nll_loss_backward (ampl_ctx *ctx, const ampl_args *in, ampl_tensor **out) {
  ampl_tensor *dx = out[0];
  task t = {.work = work_of(dx)};
  AMPL_TRY(begin(ctx, &t, dx->ndim, dx->shape, in->t[1], in->t[2], in->p[1].i));
  lay_out(&t, dx, dx);
  const ampl_status s = ampl_cpu_zero(ctx, dx->data, (size_t)dx->numel * ampl_dtype_size((ampl_dtype)dx->dtype));
  if (s != AMPL_OK) {
    end(ctx, &t);
    return s;
  }
  spread_gradient(&t, in->t[0], in->p[2].i, in->t[3]);
  for (int64_t r = 0; r < t.rows && !ampl_cpu_stop_at(ctx, r, 1); r++)
    if (t.label[r] != IGNORED) set(&t, ampl_cpu_offset(&t.drow, r), t.label[r], -t.weight[t.label[r]] * t.loss[r]);
  end(ctx, &t);
  return ampl_cpu_poll(ctx);
}

const ampl_kernel ampl_cpu_cross_entropy_kernels[] = {
    {"cross_entropy_rows", AMPL_DTYPE_NONE, cross_entropy},
    {"cross_entropy_backward", AMPL_DTYPE_NONE, cross_entropy_backward},
    {"class_targets", AMPL_DTYPE_NONE, class_targets},
    {"nll_loss_rows", AMPL_DTYPE_NONE, nll_loss},
    {"nll_loss_backward", AMPL_DTYPE_NONE, nll_loss_backward},
    {NULL, 0, NULL},
};
