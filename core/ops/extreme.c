/* extreme.c: values and their positions: max, min, median, argmax, argmin.
 *
 * max(x) is one value; max(x, dim) gives values and positions, by an op with two outputs. */
#include "reduce.h"

#include <string.h>

/* ------------------------------------------------------------------------------------------------ along dim ------- */

/* Parameters dim (perhaps absent), keepdim */
static ampl_status infer_one (ampl_ctx *ctx, const ampl_args *in, ampl_meta *out) {
  const ampl_tensor *x = in->t[0];
  int64_t dim = in->p[0].i;
  AMPL_TRY(ampl_meta_reduce(ctx, out, x, ampl_one_dim(&in->p[0].i), in->p[1].i));
  if (x->numel > 0 || (dim != AMPL_ABSENT && x->shape[dim] > 0)) return AMPL_OK;
  if (dim == AMPL_ABSENT)
    return ampl_error(ctx, AMPL_ESHAPE, "x is %s: of no values there is no extreme", ampl_tensor_text(ctx, x));
  if (ampl_meta_numel(out) == 0) return AMPL_OK;
  return ampl_error(ctx, AMPL_ESHAPE, "dim %lld of %s is empty: of no values there is no extreme",
                    (long long)ampl_shown(ctx, dim), ampl_tensor_text(ctx, x));
}

static ampl_status infer_both (ampl_ctx *ctx, const ampl_args *in, ampl_meta *out) {
  AMPL_TRY(infer_one(ctx, in, &out[0]));
  out[1] = out[0];
  out[1].dtype = AMPL_I64;
  return AMPL_OK;
}

/* The value at the position that was returned gets all of the gradient. */
static ampl_status back_both (ampl_grad *g) {
  ampl_eval *e = &g->e;
  ampl_ints dims = ampl_one_dim(&g->p[0].i);
  bool keepdim = g->p[1].i;
  const ampl_meta *x = &g->xm[0];
  if (!g->dy[0]) return AMPL_OK;
  if (x->ndim == 0) {
    ampl_grad_set(g, 0, g->dy[0]);
    return AMPL_OK;
  }
  ampl_tensor *dy = ampl_eval_keepdim(e, g->dy[0], x, dims, keepdim);
  ampl_tensor *at = ampl_eval_keepdim(e, g->y[1], x, dims, keepdim);
  ampl_tensor *none = EV(e, zeros_like, T(EV(e, expand, T(dy), P(V_L(x->ndim, x->shape)))));
  ampl_grad_set(g, 0, EV(e, scatter_add, T(none, at, dy), P(g->p[0])));
  return e->status;
}

#define ALONG(name, what)                                                                                              \
  AMPL_OP(name, .doc = what " along `dim`, and where it stands.", .args = {TENSOR_ONLY("x"), DIM_REQ("dim"),           \
          BOOL("keepdim", false)}, .nout = 2, .flags = AMPL_OP_INTERNAL, .save = AMPL_SAVE_Y(1), .infer = infer_both,  \
          .backward = back_both)
ALONG(max_along, "The largest value");
ALONG(min_along, "The smallest value");
ALONG(median_along, "The median");

/* ------------------------------------------------------------------------------------------------ of all ---------- */

static ampl_status infer_all (ampl_ctx *ctx, const ampl_args *in, ampl_meta *out) {
  if (in->t[0]->numel == 0)
    return ampl_error(ctx, AMPL_ESHAPE, "x is %s: of no values there is no median", ampl_tensor_text(ctx, in->t[0]));
  return ampl_meta_shape(ctx, out, 0, NULL);
}

static ampl_status back_all (ampl_grad *g) {
  ampl_eval *e = &g->e;
  ampl_tensor *x = g->x[0], *y = g->y[0];
  ampl_tensor *mask = EV(e, logical_or, T(EV(e, eq, T(x, y)), EV(e, isnan, T(x))));
  ampl_tensor *share = EV(e, div, T(g->dy[0], EV(e, sum, T(mask))));
  ampl_grad_set(g, 0, EV(e, where, T(mask, share, ampl_eval_num(e, 0))));
  return e->status;
}

AMPL_OP(median_all, .doc = "The median of all values.", .args = {TENSOR_ONLY("x")}, .flags = AMPL_OP_INTERNAL,
        .save = AMPL_SAVE_X(0) | AMPL_SAVE_Y(0), .infer = infer_all, .backward = back_all);

/* ------------------------------------------------------------------------------------------------ public ---------- */

static ampl_status choose (ampl_eval *e, const ampl_args *in, ampl_tensor **out, const ampl_op *all,
                           const ampl_op *along) {
  ampl_tensor *got[2] = {NULL, NULL};
  if (in->p[0].i == AMPL_ABSENT) ampl_eval_outs(e, all, in->t, 1, NULL, 0, got);
  else ampl_eval_outs(e, along, in->t, 1, in->p, 2, got);
  for (int k = 0; k < 2; k++) AMPL_TRY(ampl_eval_return(e, got[k], &out[k]));
  return e->status;
}

#define CHOICE(name, all_op, what)                                                                                     \
  static ampl_status compose_##name(ampl_eval *e, const ampl_args *in, ampl_tensor **out) {                            \
    return choose(e, in, out, OP(all_op), OP(name##_along));                                                           \
  }                                                                                                                    \
  AMPL_OP(name, .doc = what, .args = {TENSOR_ONLY("x"), DIM_OPT("dim"), BOOL("keepdim", false)}, .nout = 2,            \
          .compose = compose_##name)
CHOICE(max, amax, "The largest value; along `dim` the largest values and their positions, the first of equal ones.");
CHOICE(min, amin, "The smallest value; along `dim` the smallest values and their positions, the first of equal ones.");
CHOICE(median, median_all,
       "The value in the middle, the lower one of two; along `dim` the values in the middle and their positions.");

static ampl_status infer_position (ampl_ctx *ctx, const ampl_args *in, ampl_meta *out) {
  out->dtype = AMPL_I64;
  return infer_one(ctx, in, out);
}

AMPL_OP(argmax,
        .doc = "Where the largest value stands, the first of equal ones: along `dim`, or in x as one row.  NaN is the "
               "largest.",
        .args = {TENSOR_ONLY("x"), DIM_OPT("dim"), BOOL("keepdim", false)}, .flags = AMPL_OP_NO_GRAD,
        .infer = infer_position);

AMPL_OP(argmin,
        .doc = "Where the smallest value stands, the first of equal ones: along `dim`, or in x as one row.  NaN is the "
               "smallest.",
        .args = {TENSOR_ONLY("x"), DIM_OPT("dim"), BOOL("keepdim", false)}, .flags = AMPL_OP_NO_GRAD,
        .infer = infer_position);
