/* distance_loss.c: cosine_similarity, and losses of distances and margins that are composed of other ops. */
#include "reduce.h"

#include <string.h>

enum { NONE, MEAN, SUM };
#define REDUCTION ENUM("reduction", "none|mean|sum", MEAN, "what is made of the samples' losses")

static ampl_tensor *num (ampl_eval *e, double v) { return ampl_eval_num(e, v); }

static ampl_status finish (ampl_eval *e, ampl_tensor *loss, int64_t reduction, int dtype, ampl_tensor **out) {
  if (reduction == MEAN) loss = EV(e, mean, T(loss));
  if (reduction == SUM) loss = EV(e, sum, T(loss));
  return ampl_eval_return(e, ampl_eval_to(e, loss, dtype), &out[0]);
}

/* max(x, 0) whose gradient at 0 is 0 */
static ampl_tensor *positive_part (ampl_eval *e, ampl_tensor *x) { return EV(e, relu, T(x)); }

/* ------------------------------------------------------------------------------------------------ cosine ---------- */

/* The norm of x over dim, at least eps, though its gradient does not know of eps */
static ampl_tensor *raised_norm (ampl_eval *e, ampl_tensor *x, int64_t dim, double eps) {
  int64_t dims[1] = {dim};
  return EV(e, raised, T(EV(e, norm, T(x), P(V_F(2), V_L(1, dims), V_I(true))), num(e, eps)));
}

static ampl_status compose_similarity (ampl_eval *e, const ampl_args *in, ampl_tensor **out) {
  const ampl_tensor *a = in->t[0], *b = in->t[1];
  ampl_meta m = {.ndim = 0};
  AMPL_TRY(ampl_need_float(e->ctx, "x1", a));
  AMPL_TRY(ampl_need_float(e->ctx, "x2", b));
  AMPL_TRY(ampl_meta_broadcast(e->ctx, &m, a->ndim, a->shape));
  AMPL_TRY(ampl_meta_broadcast(e->ctx, &m, b->ndim, b->shape));
  const int rank = m.ndim ? m.ndim : 1;         /* scalars are vectors of one element here, as for a norm */
  int64_t dim[1] = {in->p[0].i < 0 ? in->p[0].i + rank : in->p[0].i};
  if (dim[0] < 0 || dim[0] >= rank)
    return ampl_error(e->ctx, AMPL_EINDEX, "dim %lld of operands of %d dimensions",
                      (long long)(in->p[0].i < 0 ? in->p[0].i : ampl_shown(e->ctx, in->p[0].i)), m.ndim);
  int dtype = ampl_dtype_promote((ampl_dtype)a->dtype, (ampl_dtype)b->dtype);
  ampl_tensor *x = EV(e, expand, T(ampl_eval_wide(e, in->t[0])), P(V_L(m.ndim, m.shape)));
  ampl_tensor *y = EV(e, expand, T(ampl_eval_wide(e, in->t[1])), P(V_L(m.ndim, m.shape)));
  x = EV(e, div, T(x, raised_norm(e, x, dim[0], in->p[1].f)));
  y = EV(e, div, T(y, raised_norm(e, y, dim[0], in->p[1].f)));
  ampl_tensor *cosine = EV(e, sum, T(EV(e, mul, T(x, y))), P(V_L(1, dim)));
  return ampl_eval_return(e, ampl_eval_to(e, cosine, dtype), &out[0]);
}

/* The dimension counts in what the operands broadcast to, which no operand alone knows. */
AMPL_OP(
    cosine_similarity,
    .doc =
        "The cosine of the angle between x1 and x2 along `dim` of what they broadcast to; norms count as at least eps.",
    .args = {TENSOR_ONLY("x1"), TENSOR_ONLY("x2"), CLASS("dim", 1), FLOAT("eps", 1e-8)}, .cast = AMPL_CAST_F32,
    .compose = compose_similarity);

static ampl_tensor *dot (ampl_eval *e, ampl_tensor *x, ampl_tensor *y) {
  int64_t last[1] = {-1};
  return EV(e, sum, T(EV(e, mul, T(x, y))), P(V_L(1, last)));
}

static ampl_status compose_cosine_loss (ampl_eval *e, const ampl_args *in, ampl_tensor **out) {
  const ampl_tensor *x1 = in->t[0];
  AMPL_TRY(ampl_need_float(e->ctx, "x1", x1));
  AMPL_TRY(ampl_need_float(e->ctx, "x2", in->t[1]));
  if (x1->ndim < 1 || x1->ndim > 2 || in->t[1]->ndim != x1->ndim || in->t[2]->ndim != x1->ndim - 1)
    return ampl_error(e->ctx, AMPL_ESHAPE,
                      "x1 is %s, x2 %s, target %s; two vectors and a scalar are needed, or two matrices and a vector "
                      "with a number for each row",
                      ampl_shape_text(e->ctx, x1->ndim, x1->shape),
                      ampl_shape_text(e->ctx, in->t[1]->ndim, in->t[1]->shape),
                      ampl_shape_text(e->ctx, in->t[2]->ndim, in->t[2]->shape));
  ampl_tensor *x = ampl_eval_wide(e, in->t[0]), *y = ampl_eval_wide(e, in->t[1]), *t = in->t[2];
  ampl_tensor *xx = EV(e, add, T(dot(e, x, x), num(e, 1e-12))), *yy = EV(e, add, T(dot(e, y, y), num(e, 1e-12)));
  ampl_tensor *cosine = EV(e, div, T(dot(e, x, y), EV(e, sqrt, T(EV(e, mul, T(xx, yy))))));
  ampl_tensor *near = EV(e, sub, T(num(e, 1), cosine));
  ampl_tensor *far = positive_part(e, EV(e, sub, T(cosine, num(e, in->p[0].f))));
  ampl_tensor *loss = EV(e, where, T(EV(e, eq, T(t, num(e, -1))), far, num(e, 0)));
  loss = EV(e, where, T(EV(e, eq, T(t, num(e, 1))), near, loss));
  return finish(e, loss, in->p[1].i, x1->dtype, out);
}

AMPL_OP(cosine_embedding_loss,
  .doc = "1 - cosine of x1 and x2 where target is 1, max(0, cosine - margin) where it is -1.",
  .args = {TENSOR_ONLY("x1"), TENSOR_ONLY("x2"), MASK("target"), FLOAT("margin", 0), REDUCTION},
  .cast = AMPL_CAST_F32, .compose = compose_cosine_loss);

/* ------------------------------------------------------------------------------------------------ triplet --------- */

static ampl_tensor *distance (ampl_eval *e, ampl_tensor *x, ampl_tensor *y, double p, double eps) {
  int64_t last[1] = {-1};
  ampl_tensor *off = EV(e, add, T(EV(e, sub, T(x, y)), num(e, eps)));
  return EV(e, norm, T(off), P(V_F(p), V_L(1, last)));
}

/* Parameters margin, p, eps, swap, reduction */
static ampl_status compose_triplet (ampl_eval *e, const ampl_args *in, ampl_tensor **out) {
  const ampl_tensor *anchor = in->t[0];
  static const char *const names[] = {"anchor", "positive", "negative"};
  ampl_meta m = {.ndim = 0};
  for (int k = 0; k < 3; k++) {
    AMPL_TRY(ampl_need_float(e->ctx, names[k], in->t[k]));
    if (in->t[k]->ndim != anchor->ndim)
      return ampl_error(e->ctx, AMPL_ESHAPE, "anchor is %s, %s %s; all three have the same number of dimensions",
                        ampl_shape_text(e->ctx, anchor->ndim, anchor->shape), names[k],
                        ampl_shape_text(e->ctx, in->t[k]->ndim, in->t[k]->shape));
    AMPL_TRY(ampl_meta_broadcast(e->ctx, &m, in->t[k]->ndim, in->t[k]->shape));
  }
  if (!(in->p[0].f > 0)) return ampl_error(e->ctx, AMPL_EVALUE, "margin is %g, it must be above 0", in->p[0].f);
  double p = in->p[1].f, eps = in->p[2].f;
  ampl_tensor *a = ampl_eval_wide(e, in->t[0]), *near = ampl_eval_wide(e, in->t[1]), *far = ampl_eval_wide(e, in->t[2]);
  ampl_tensor *to_far = distance(e, a, far, p, eps);
  if (in->p[3].i) to_far = EV(e, minimum, T(to_far, distance(e, near, far, p, eps)));
  ampl_tensor *off = EV(e, sub, T(distance(e, a, near, p, eps), to_far));
  return finish(e, positive_part(e, EV(e, add, T(off, num(e, in->p[0].f)))), in->p[4].i, anchor->dtype, out);
}

AMPL_OP(triplet_margin_loss,
        .doc = "max(0, margin + distance to the positive - distance to the negative), p-norms over the last dimension "
               "of what they broadcast to; "
               "with swap "
               "the negative's distance to the positive counts where it is smaller.",
        .args = {TENSOR_ONLY("anchor"), TENSOR_ONLY("positive"), TENSOR_ONLY("negative"), FLOAT("margin", 1),
                 FLOAT("p", 2), FLOAT("eps", 1e-6), BOOL("swap", false), REDUCTION},
        .cast = AMPL_CAST_F32, .compose = compose_triplet);

/* ------------------------------------------------------------------------------------------------ multi_margin ---- */

/* Parameters p, margin, reduction */
static ampl_status compose_multi_margin (ampl_eval *e, const ampl_args *in, ampl_tensor **out) {
  const ampl_tensor *x0 = in->t[0], *t0 = in->t[1];
  int64_t classes = x0->ndim ? x0->shape[x0->ndim - 1] : 1, rows = x0->ndim > 1 ? x0->shape[0] : 1, last[1] = {1};
  AMPL_TRY(ampl_need_float(e->ctx, "x", x0));
  if (x0->ndim > 2 || t0->numel != rows || t0->ndim > 1)
    return ampl_error(e->ctx, AMPL_ESHAPE,
                      "x is %s, target %s; samples and classes, and a label for each sample are needed",
                      ampl_shape_text(e->ctx, x0->ndim, x0->shape), ampl_shape_text(e->ctx, t0->ndim, t0->shape));
  if (in->p[0].i != 1 && in->p[0].i != 2)
    return ampl_error(e->ctx, AMPL_EVALUE, "p is %lld, it must be 1 or 2", (long long)in->p[0].i);
  if (in->t[2] && (in->t[2]->ndim != 1 || in->t[2]->shape[0] != classes))
    return ampl_error(e->ctx, AMPL_ESHAPE, "weight is %s; there are %lld classes",
                      ampl_shape_text(e->ctx, in->t[2]->ndim, in->t[2]->shape), (long long)classes);
  const int64_t grid[2] = {rows, classes};
  ampl_tensor *x = EV(e, reshape, T(ampl_eval_wide(e, in->t[0])), P(V_L(2, grid)));
  ampl_tensor *label = EV(e, reshape, T(in->t[1]), P(V_L(1, &rows)));
  /* all labels are checked here: nothing is ignored */
  ampl_tensor *own = EV(e, class_targets, T(x, label), P(V_I(INT32_MIN)));
  ampl_tensor *score = EV(e, sum, T(EV(e, mul, T(x, own))), P(V_L(1, last), V_I(true)));
  ampl_tensor *over = positive_part(e, EV(e, add, T(EV(e, sub, T(x, score)), num(e, in->p[1].f))));
  if (in->p[0].i == 2) over = EV(e, mul, T(over, over));
  ampl_tensor *others = EV(e, sub, T(num(e, 1 / (double)classes), EV(e, div, T(own, num(e, (double)classes)))));
  if (in->t[2]) {
    ampl_tensor *w = EV(e, mul, T(own, ampl_eval_to(e, in->t[2], x ? x->dtype : 0)));
    others = EV(e, mul, T(others, EV(e, sum, T(w), P(V_L(1, last), V_I(true)))));
  }
  ampl_tensor *loss = EV(e, sum, T(EV(e, mul, T(over, others))), P(V_L(1, last)));
  if (in->p[2].i == NONE) loss = EV(e, reshape, T(loss), P(V_L(t0->ndim, t0->shape)));
  return finish(e, loss, in->p[2].i, x0->dtype, out);
}

AMPL_OP(multi_margin_loss,
  .doc = "The mean over the other classes of max(0, margin - x[label] + x)^p, times weight[label].",
  .args = {TENSOR_ONLY("x"), LABELS("target"), INT("p", 1), FLOAT("margin", 1), TENSOR_OPT_AS_IS("weight"), REDUCTION},
  .cast = AMPL_CAST_F32, .compose = compose_multi_margin);
