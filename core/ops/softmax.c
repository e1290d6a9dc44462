/* softmax.c: y = exp(x - max x) / sum along one dimension, and its logarithm.
 * Backward: dx = y * (dy - sum(dy * y)); of the logarithm dx = dy - exp(y) * sum(dy). */
#include "reduce.h"

/* Parameters dim, dtype */
static ampl_status infer (ampl_ctx *ctx, const ampl_args *in, ampl_meta *out) {
  int64_t dtype = in->p[1].i;
  AMPL_TRY(ampl_meta_like(out, in->t[0]));
  if (dtype == AMPL_DTYPE_NONE) return ampl_need_float(ctx, "x", in->t[0]);
  out->dtype = (int)dtype;
  if (ampl_dtype_is_float((ampl_dtype)dtype)) return AMPL_OK;
  return ampl_error(ctx, AMPL_EDTYPE, "a softmax is no %s: ask for a float dtype", ampl_dtype_name((ampl_dtype)dtype));
}

static ampl_status back_softmax (ampl_grad *g) {
  ampl_grad_set(g, 0, EV(&g->e, softmax_backward, T(g->dy[0], g->y[0]), P(g->p[0], V_I(g->xm[0].dtype))));
  return g->e.status;
}

AMPL_OP(softmax,
  .doc = "Rescales x along `dim` so that the entries are positive and sum to 1.",
  .args = {TENSOR_ONLY("x"), DIM("dim", -1), DTYPE("dtype", "of the result")},
  .cast = AMPL_CAST_F32_OUT, .save = AMPL_SAVE_Y(0), .infer = infer, .backward = back_softmax);

static ampl_status back_log_softmax (ampl_grad *g) {
  ampl_grad_set(g, 0, EV(&g->e, log_softmax_backward, T(g->dy[0], g->y[0]), P(g->p[0], V_I(g->xm[0].dtype))));
  return g->e.status;
}

AMPL_OP(log_softmax,
  .doc = "The logarithm of softmax, exact also where softmax vanishes.",
  .args = {TENSOR_ONLY("x"), DIM("dim", -1), DTYPE("dtype", "of the result")},
  .cast = AMPL_CAST_F32_OUT, .save = AMPL_SAVE_Y(0), .infer = infer, .backward = back_log_softmax);

/* ------------------------------------------------------------------------------------------------ gradients ------- */

static ampl_status infer_back (ampl_ctx *ctx, const ampl_args *in, ampl_meta *out) {
  (void)ctx;
  AMPL_TRY(ampl_meta_like(out, in->t[1]));
  out->dtype = (int)in->p[1].i;
  return AMPL_OK;
}

static ampl_status compose_back (ampl_eval *e, const ampl_args *in, ampl_tensor **out) {
  ampl_tensor *dy = in->t[0], *y = in->t[1];
  int64_t dim[1] = {in->p[0].i};
  ampl_tensor *dot = EV(e, sum, T(EV(e, mul, T(dy, y))), P(V_L(1, dim), V_I(true)));
  ampl_tensor *dx = EV(e, mul, T(y, EV(e, sub, T(dy, dot))));
  return ampl_eval_return(e, ampl_eval_to(e, dx, (int)in->p[1].i), &out[0]);
}

AMPL_OP(softmax_backward, .doc = "y * (dy - sum(dy * y))",
  .args = {TENSOR_ONLY("dy"), TENSOR_ONLY("y"), DIM_REQ("dim"), DTYPE("dtype")}, .flags = AMPL_OP_INTERNAL,
  .infer = infer_back, .compose = compose_back);

static ampl_status compose_log_back (ampl_eval *e, const ampl_args *in, ampl_tensor **out) {
  ampl_tensor *dy = in->t[0], *y = in->t[1];
  int64_t dim[1] = {in->p[0].i};
  ampl_tensor *dot = EV(e, sum, T(dy), P(V_L(1, dim), V_I(true)));
  ampl_tensor *dx = EV(e, sub, T(dy, EV(e, mul, T(EV(e, exp, T(y)), dot))));
  return ampl_eval_return(e, ampl_eval_to(e, dx, (int)in->p[1].i), &out[0]);
}

AMPL_OP(log_softmax_backward, .doc = "dy - exp(y) * sum(dy)",
  .args = {TENSOR_ONLY("dy"), TENSOR_ONLY("y"), DIM_REQ("dim"), DTYPE("dtype")}, .flags = AMPL_OP_INTERNAL,
  .infer = infer_back, .compose = compose_log_back);
