/* cross_entropy.c: cross_entropy and nll_loss.
 *
 * By class labels, cross-entropy is one pass over the logits: the log of the sum of exp for each row is kept, and
 * backward is one more pass that turns logits into their gradient; no probabilities are ever stored.  The public ops
 * choose between labels and probabilities; inner ops have the outputs that backward wants. */
#include "reduce.h"

#include <math.h>
#include <string.h>

enum { NONE, MEAN, SUM };
#define REDUCTION ENUM("reduction", "none|mean|sum", MEAN, "what is made of the rows' losses")

static ampl_tensor *num (ampl_eval *e, double v) { return ampl_eval_num(e, v); }

/* ------------------------------------------------------------------------------------------------ shapes ---------- */

/* Which dimension of x counts classes: a lone vector is one row of them */
static int class_dim (int ndim) { return ndim > 1 ? 1 : 0; }

/* Shape of the rows: x without its classes */
static int rows_of (int ndim, const int64_t *shape, int64_t *rows) {
  int n = 0;
  for (int d = 0; d < ndim; d++)
    if (d != class_dim(ndim)) rows[n++] = shape[d];
  return n;
}

static ampl_status check_weight (ampl_ctx *ctx, const ampl_tensor *w, int64_t classes) {
  if (!w) return AMPL_OK;
  AMPL_TRY(ampl_need_float(ctx, "weight", w));
  if (w->ndim == 1 && w->shape[0] == classes) return AMPL_OK;
  return ampl_error(ctx, AMPL_ESHAPE, "weight is %s; there are %lld classes", ampl_shape_text(ctx, w->ndim, w->shape),
                    (long long)classes);
}

static ampl_status check_labels(ampl_ctx *ctx, const ampl_tensor *x, const ampl_tensor *labels,
                                const ampl_tensor *weight) {
  int64_t rows[AMPL_RANK_MAX];
  AMPL_TRY(ampl_need_float(ctx, "x", x));
  if (x->ndim == 0) return ampl_error(ctx, AMPL_ESHAPE, "x is a scalar: a dimension of classes is needed");
  if (ampl_is_float(labels) || labels->dtype == AMPL_BOOL)
    return ampl_error(ctx, AMPL_EDTYPE, "target is %s; class labels are integers: cast them with target:to(\"i64\")",
                      ampl_dtype_name((ampl_dtype)labels->dtype));
  int n = rows_of(x->ndim, x->shape, rows);
  if (labels->ndim != n || memcmp(labels->shape, rows, (size_t)n * sizeof *rows) != 0)
    return ampl_error(ctx, AMPL_ESHAPE, "x is %s, target %s; labels of that x have the shape %s",
                      ampl_shape_text(ctx, x->ndim, x->shape), ampl_shape_text(ctx, labels->ndim, labels->shape),
                      ampl_shape_text(ctx, n, rows));
  return check_weight(ctx, weight, x->shape[class_dim(x->ndim)]);
}

/* The loss: of each row, or one number */
static ampl_status loss_meta (ampl_ctx *ctx, const ampl_tensor *x, int64_t reduction, ampl_meta *out) {
  int64_t rows[AMPL_RANK_MAX];
  int n = rows_of(x->ndim, x->shape, rows);
  return ampl_meta_shape(ctx, out, reduction == NONE ? n : 0, rows);
}

/* dy as it reaches each row, with a dimension for the classes: divided by `total`, the sum of weights, for a mean */
static ampl_tensor *to_rows (ampl_eval *e, ampl_tensor *dy, ampl_tensor *total, int64_t reduction, int ndim) {
  dy = ampl_eval_wide(e, dy);
  if (reduction == MEAN) return EV(e, div, T(dy, ampl_eval_to(e, total, dy ? dy->dtype : 0)));
  return reduction == NONE ? EV(e, unsqueeze, T(dy), P(V_I(class_dim(ndim)))) : dy;
}

/* ------------------------------------------------------------------------------------------------ nll_loss -------- */

/* Parameters ignore_index, reduction */
static ampl_status infer_nll (ampl_ctx *ctx, const ampl_args *in, ampl_meta *out) {
  AMPL_TRY(check_labels(ctx, in->t[0], in->t[1], in->t[2]));
  AMPL_TRY(loss_meta(ctx, in->t[0], in->p[1].i, &out[0]));
  out[1].dtype = AMPL_F64;
  return ampl_meta_shape(ctx, &out[1], 0, NULL);
}

static ampl_status back_nll (ampl_grad *g) {
  const ampl_meta *x = &g->xm[0];
  if (!g->dy[0]) return AMPL_OK;
  ampl_tensor *const t[4] = {g->dy[0], g->x[1], g->x[2], g->y[1]};
  const ampl_value p[4] = {V_L(x->ndim, x->shape), g->p[0], g->p[1], V_I(x->dtype)};
  ampl_grad_set(g, 0, ampl_eval_op(&g->e, OP(nll_loss_backward), t, 4, p, 4));
  return g->e.status;
}

#define LABELLED TENSOR_ONLY("x"), LABELS("target"), TENSOR_OPT("weight")

AMPL_OP(nll_loss_rows, .doc = "nll_loss, and the sum of the rows' weights.",
  .args = {LABELLED, CLASS("ignore_index", -100), REDUCTION}, .nout = 2, .flags = AMPL_OP_INTERNAL,
  .save = AMPL_SAVE_X(1) | AMPL_SAVE_X(2) | AMPL_SAVE_Y(1), .infer = infer_nll, .backward = back_nll);

static ampl_status infer_nll_back (ampl_ctx *ctx, const ampl_args *in, ampl_meta *out) {
  out->dtype = (int)in->p[3].i;
  return ampl_meta_shape(ctx, out, (int)in->p[0].l.n, in->p[0].l.v);
}

/* The gradient is linear in dy, so its own gradient is the loss of what comes back */
static ampl_status back_nll_back (ampl_grad *g) {
  ampl_tensor *const t[3] = {g->dy[0], g->x[1], g->x[2]};
  ampl_grad_set(g, 0, ampl_eval_op(&g->e, OP(nll_loss_rows), t, 3, &g->p[1], 2));
  return g->e.status;
}

AMPL_OP(nll_loss_backward, .doc = "The gradient of nll_loss: -weight at the labels, 0 elsewhere.",
        .args = {TENSOR_ONLY("dy"), LABELS("target"), TENSOR_OPT_AS_IS("weight"), TENSOR_OPT_AS_IS("total"),
                 SIZES_REQ("shape"), CLASS("ignore_index", -100), REDUCTION, DTYPE("dtype")},
        .flags = AMPL_OP_INTERNAL, .save = AMPL_SAVE_X(1) | AMPL_SAVE_X(2), .infer = infer_nll_back,
        .backward = back_nll_back);

static ampl_status compose_nll (ampl_eval *e, const ampl_args *in, ampl_tensor **out) {
  return ampl_eval_return(e, ampl_eval_op(e, OP(nll_loss_rows), in->t, 3, in->p, 2), &out[0]);
}

AMPL_OP(nll_loss,
        .doc = "-weight[label] * x[label], x logarithms of probabilities with classes in dimension 2 (1 of a vector).  "
               "A mean is "
               "divided by the sum of the weights; rows whose label is ignore_index do not count.",
        .args = {LABELLED, CLASS("ignore_index", -100), REDUCTION}, .cast = AMPL_CAST_F32, .compose = compose_nll);

/* ------------------------------------------------------------------------------------------------ by labels ------- */

/* Parameters ignore_index, reduction, label_smoothing, dtype */
static ampl_status infer_rows (ampl_ctx *ctx, const ampl_args *in, ampl_meta *out) {
  const ampl_tensor *x = in->t[0];
  AMPL_TRY(check_labels(ctx, x, in->t[1], in->t[2]));
  AMPL_TRY(loss_meta(ctx, x, in->p[1].i, &out[0]));
  if (in->p[3].i != AMPL_DTYPE_NONE) out[0].dtype = (int)in->p[3].i;
  out[1].dtype = out[2].dtype = AMPL_F64;
  AMPL_TRY(loss_meta(ctx, x, NONE, &out[1]));
  return ampl_meta_shape(ctx, &out[2], 0, NULL);
}

static ampl_status back_rows (ampl_grad *g) {
  if (!g->dy[0]) return AMPL_OK;
  ampl_tensor *const t[6] = {g->dy[0], g->x[0], g->x[1], g->x[2], g->y[1], g->y[2]};
  ampl_grad_set(g, 0, ampl_eval_op(&g->e, OP(cross_entropy_backward), t, 6, g->p, 3));
  return g->e.status;
}

AMPL_OP(cross_entropy_rows,
  .doc = "cross_entropy by labels; the log of the sum of exp of each row; the sum of the rows' weights.",
  .args = {TENSOR_ONLY("x"), LABELS("target"), TENSOR_OPT_AS_IS("weight"), CLASS("ignore_index", -100), REDUCTION,
           FLOAT("label_smoothing", 0), DTYPE("dtype")},
  .nout = 3, .flags = AMPL_OP_INTERNAL,
  .save = AMPL_SAVE_X(0) | AMPL_SAVE_X(1) | AMPL_SAVE_X(2) | AMPL_SAVE_Y(1) | AMPL_SAVE_Y(2),
  .infer = infer_rows, .backward = back_rows);

static ampl_status infer_back (ampl_ctx *ctx, const ampl_args *in, ampl_meta *out) {
  (void)ctx;
  return ampl_meta_like(out, in->t[1]);
}

/* dx = dy * (softmax(x) * (sum of the row's targets) - targets) */
static ampl_status compose_back (ampl_eval *e, const ampl_args *in, ampl_tensor **out) {
  ampl_tensor *x = in->t[1];
  int64_t dim[1] = {class_dim(x->ndim)};
  ampl_tensor *targets = ampl_eval_op(e, OP(class_targets), &in->t[1], 3, (const ampl_value[]){in->p[0], in->p[2]}, 2);
  ampl_tensor *all = EV(e, sum, T(targets), P(V_L(1, dim), V_I(true)));
  ampl_tensor *p = EV(e, softmax, T(ampl_eval_wide(e, x)), P(V_I(dim[0])));
  ampl_tensor *dy = to_rows(e, in->t[0], in->t[5], in->p[1].i, x->ndim);
  ampl_tensor *dx = EV(e, mul, T(EV(e, sub, T(EV(e, mul, T(p, all)), targets)), dy));
  return ampl_eval_return(e, ampl_eval_to(e, dx, x->dtype), &out[0]);
}

AMPL_OP(cross_entropy_backward, .doc = "The gradient of cross_entropy by labels.",
  .args = {TENSOR_ONLY("dy"), TENSOR_ONLY("x"), LABELS("target"), TENSOR_OPT_AS_IS("weight"), TENSOR_OPT_AS_IS("lse"),
           TENSOR_OPT_AS_IS("total"), CLASS("ignore_index", -100), REDUCTION, FLOAT("label_smoothing", 0)},
  .flags = AMPL_OP_INTERNAL, .infer = infer_back, .compose = compose_back);

static ampl_status infer_targets (ampl_ctx *ctx, const ampl_args *in, ampl_meta *out) {
  (void)ctx;
  AMPL_TRY(ampl_meta_like(out, in->t[0]));
  out->dtype = in->t[0]->dtype == AMPL_F64 ? AMPL_F64 : AMPL_F32;
  return AMPL_OK;
}

AMPL_OP(class_targets,
        .doc = "Labels as the weights that cross_entropy gives to each class: smoothed, weighted, 0 where ignored.",
        .args = {TENSOR_ONLY("x"), LABELS("target"), TENSOR_OPT_AS_IS("weight"), CLASS("ignore_index", -100),
                 FLOAT("label_smoothing", 0)},
        .flags = AMPL_OP_INTERNAL | AMPL_OP_NO_GRAD, .infer = infer_targets);

/* ------------------------------------------------------------------------------------------------ probabilities --- */

static ampl_tensor *by_class (ampl_eval *e, ampl_tensor *w, const ampl_tensor *x) {
  int64_t shape[AMPL_RANK_MAX], c = class_dim(x->ndim);
  for (int d = 0; d < x->ndim; d++) shape[d] = d == c ? x->shape[d] : 1;
  return EV(e, reshape, T(w), P(V_L(x->ndim, shape)));
}

/* -sum over classes of weight * smoothed target * log_softmax(x); a mean is over the rows */
static ampl_status by_probabilities (ampl_eval *e, const ampl_args *in, int64_t reduction, double smoothing, int dtype,
                                     ampl_tensor **out) {
  ampl_tensor *x = in->t[0], *t = in->t[1];
  int64_t c = class_dim(x->ndim), dim[1] = {c}, classes = x->ndim ? x->shape[c] : 1;
  AMPL_TRY(ampl_need_float(e->ctx, "x", x));
  AMPL_TRY(check_weight(e->ctx, in->t[2], classes));
  int out_dtype = dtype != AMPL_DTYPE_NONE ? dtype : x->dtype, wide = out_dtype == AMPL_F64 ? AMPL_F64 : AMPL_F32;
  ampl_tensor *log_p = EV(e, log_softmax, T(x), P(V_I(c), V_I(wide)));
  t = ampl_eval_to(e, t, wide);
  if (smoothing > 0) t = EV(e, add, T(EV(e, mul, T(t, num(e, 1 - smoothing))), num(e, smoothing / (double)classes)));
  if (in->t[2]) t = EV(e, mul, T(t, by_class(e, ampl_eval_to(e, in->t[2], wide), x)));
  ampl_tensor *loss = EV(e, neg, T(EV(e, sum, T(EV(e, mul, T(t, log_p))), P(V_L(1, dim)))));
  if (reduction == MEAN) loss = EV(e, mean, T(loss));
  if (reduction == SUM) loss = EV(e, sum, T(loss));
  return ampl_eval_return(e, ampl_eval_to(e, loss, out_dtype), &out[0]);
}

/* Parameters ignore_index, reduction, label_smoothing, dtype */
static ampl_status compose_cross_entropy (ampl_eval *e, const ampl_args *in, ampl_tensor **out) {
  const ampl_tensor *x = in->t[0], *t = in->t[1];
  double smoothing = in->p[2].f;
  if (!(smoothing >= 0 && smoothing <= 1))
    return ampl_error(e->ctx, AMPL_EVALUE, "label_smoothing is %g, it must be from 0 to 1", smoothing);
  if (in->p[3].i != AMPL_DTYPE_NONE && !ampl_dtype_is_float((ampl_dtype)in->p[3].i))
    return ampl_error(e->ctx, AMPL_EDTYPE, "a loss is no %s: ask for a float dtype",
                      ampl_dtype_name((ampl_dtype)in->p[3].i));
  if (ampl_is_float(t) && ampl_same_shape(x, t))
    return by_probabilities(e, in, in->p[1].i, smoothing, (int)in->p[3].i, out);
  if (ampl_is_float(t))
    return ampl_error(e->ctx, AMPL_ESHAPE,
                      "target is %s: class probabilities have the shape of x, %s; class labels are "
                      "integers, cast them with target:to(\"i64\")",
                      ampl_tensor_text(e->ctx, t), ampl_shape_text(e->ctx, x->ndim, x->shape));
  return ampl_eval_return(e, ampl_eval_op(e, OP(cross_entropy_rows), in->t, 3, in->p, 4), &out[0]);
}

AMPL_OP(cross_entropy,
        .doc =
            "-log(softmax(x)[label]), classes in dimension 2 of x (1 of a vector); or, with a target of x's shape, the "
            "cross-entropy of those probabilities.  A mean by labels is divided by the sum of their weights; rows "
            "whose label "
            "is ignore_index do not count.",
        .args = {TENSOR_ONLY("x", "scores, not probabilities"), LABELS("target"), TENSOR_OPT_AS_IS("weight"),
                 CLASS("ignore_index", -100), REDUCTION, FLOAT("label_smoothing", 0),
                 DTYPE("dtype", "of the loss: that of x by default, f32 under autocast")},
        .cast = AMPL_CAST_F32_OUT, .compose = compose_cross_entropy);
