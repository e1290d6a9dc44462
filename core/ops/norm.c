/* norm.c: normalisation of rows: layer_norm, rms_norm; normalize, local_response_norm. */
#include "reduce.h"

#include <float.h>
#include <math.h>
#include <string.h>

static ampl_tensor *num (ampl_eval *e, double v) { return ampl_eval_num(e, v); }

void ampl_eval_norm_back (ampl_eval *e, ampl_tensor *dy, ampl_tensor *x, ampl_tensor *w, int nd, const int64_t *shape,
                          ampl_ints dims, bool centered, double eps, ampl_tensor **dx, ampl_tensor **dw) {
  dy = ampl_eval_wide(e, dy);
  x = ampl_eval_wide(e, x);
  *dx = *dw = NULL;
  if (e->status != AMPL_OK) return;
  ampl_meta whole;
  ampl_meta_like(&whole, x);
#define MEAN(t) EV(e, mean, T(t), P(V_L(dims.n, dims.v), V_I(true)))
  ampl_tensor *g = EV(e, reshape, T(w ? EV(e, mul, T(dy, w)) : dy), P(V_L(nd, shape)));
  ampl_tensor *off = EV(e, reshape, T(x), P(V_L(nd, shape)));
  if (centered) off = EV(e, sub, T(off, MEAN(off)));
  ampl_tensor *scale = EV(e, rsqrt, T(EV(e, add, T(MEAN(EV(e, mul, T(off, off))), num(e, eps)))));
  ampl_tensor *xhat = EV(e, mul, T(off, scale));
  ampl_tensor *rest = EV(e, sub, T(g, EV(e, mul, T(xhat, MEAN(EV(e, mul, T(g, xhat)))))));
  if (centered) rest = EV(e, sub, T(rest, MEAN(g)));
#undef MEAN
  *dx = EV(e, reshape, T(EV(e, mul, T(rest, scale))), P(V_L(whole.ndim, whole.shape)));
  *dw = EV(e, mul, T(dy, EV(e, reshape, T(xhat), P(V_L(whole.ndim, whole.shape)))));
}

/* ------------------------------------------------------------------------------------------------ checks ---------- */

/* normalized_shape must be x's last sizes, and weight and bias have that shape */
static ampl_status check_rows (ampl_ctx *ctx, const ampl_args *in, int operands) {
  const ampl_tensor *x = in->t[0];
  ampl_ints shape = in->p[0].l;
  AMPL_TRY(ampl_need_float(ctx, "x", x));
  bool fits = shape.n >= 1 && shape.n <= x->ndim;
  for (int64_t i = 0; fits && i < shape.n; i++) fits = x->shape[x->ndim - shape.n + i] == shape.v[i];
  if (!fits)
    return ampl_error(ctx, AMPL_ESHAPE, "normalized_shape %s is not how the shape of x, %s, ends",
                      ampl_shape_text(ctx, (int)shape.n, shape.v), ampl_shape_text(ctx, x->ndim, x->shape));
  for (int k = 1; k < operands; k++) {
    const ampl_tensor *w = in->t[k];
    if (!w) continue;
    AMPL_TRY(ampl_need_float(ctx, k == 1 ? "weight" : "bias", w));
    if (w->ndim != shape.n || memcmp(w->shape, shape.v, (size_t)shape.n * sizeof *shape.v) != 0)
      return ampl_error(ctx, AMPL_ESHAPE, "%s is %s; it must have the normalized_shape %s", k == 1 ? "weight" : "bias",
                        ampl_shape_text(ctx, w->ndim, w->shape), ampl_shape_text(ctx, (int)shape.n, shape.v));
  }
  return AMPL_OK;
}

/* Outputs dx, dweight, dbias of a backward op with operands dy, x, weight; those not wanted are empty. The gradients of
 * parameters come in f32 or f64. */
static ampl_status infer_back (ampl_ctx *ctx, const ampl_args *in, ampl_meta *out) {
  const ampl_tensor *x = in->t[1];
  int inner = (int)in->p[0].i, n = in->op->nout;
  int64_t none[1] = {0};
  AMPL_TRY(ampl_meta_like(&out[0], x));
  if (!in->p[2].i) AMPL_TRY(ampl_meta_shape(ctx, &out[0], 1, none));
  for (int k = 1; k < n; k++) {
    out[k].dtype = x->dtype == AMPL_F64 ? AMPL_F64 : AMPL_F32;
    AMPL_TRY(in->p[3].i ? ampl_meta_shape(ctx, &out[k], inner, x->shape + x->ndim - inner)
                        : ampl_meta_shape(ctx, &out[k], 1, none));
  }
  return AMPL_OK;
}

static ampl_status compose_back (ampl_eval *e, const ampl_args *in, ampl_tensor **out, bool centered) {
  ampl_tensor *dy = in->t[0], *x = in->t[1], *w = in->t[2], *dx, *dw;
  int inner = (int)in->p[0].i;
  int64_t dims[AMPL_RANK_MAX];
  const int64_t *rows = x->shape + x->ndim - inner;
  for (int i = 0; i < inner; i++) dims[i] = x->ndim - inner + i;
  ampl_eval_norm_back(e, dy, x, w, x->ndim, x->shape, (ampl_ints){dims, inner}, centered, in->p[1].f, &dx, &dw);
  AMPL_TRY(ampl_eval_return(e, dx, &out[0]));
  AMPL_TRY(ampl_eval_return(e, ampl_eval_sum_to(e, dw, inner, rows), &out[1]));
  return centered ? ampl_eval_return(e, ampl_eval_sum_to(e, dy, inner, rows), &out[2]) : e->status;
}

/* ------------------------------------------------------------------------------------------------ layer_norm ------ */

static ampl_status infer_layer_norm (ampl_ctx *ctx, const ampl_args *in, ampl_meta *out) {
  AMPL_TRY(check_rows(ctx, in, 3));
  return ampl_meta_like(out, in->t[0]);
}

static ampl_status back_layer_norm (ampl_grad *g) {
  ampl_tensor *got[3];
  ampl_tensor *const t[3] = {g->dy[0], g->x[0], g->x[1]};
  bool params = g->need[1] || g->need[2];
  const ampl_value p[4] = {V_I(g->p[0].l.n), V_F(g->p[1].f), V_I(g->need[0]), V_I(params)};
  ampl_eval_outs(&g->e, OP(layer_norm_backward), t, 3, p, 4, got);
  if (g->need[0]) ampl_grad_set(g, 0, got[0]);
  if (g->need[1]) ampl_grad_set(g, 1, got[1]);
  if (g->need[2]) ampl_grad_set(g, 2, got[2]);
  return g->e.status;
}

AMPL_OP(layer_norm,
        .doc = "(x - mean) / sqrt(var + eps) * weight + bias, mean and variance over the last dimensions, those of "
               "normalized_shape.",
        .args = {TENSOR_ONLY("x"), SIZES_REQ("normalized_shape"), TENSOR_OPT("weight"), TENSOR_OPT("bias"),
                 FLOAT("eps", 1e-5)},
        .cast = AMPL_CAST_F32, .save = AMPL_SAVE_X(0) | AMPL_SAVE_X(1), .infer = infer_layer_norm,
        .backward = back_layer_norm);

static ampl_status compose_layer_norm_back (ampl_eval *e, const ampl_args *in, ampl_tensor **out) {
  return compose_back(e, in, out, true);
}

#define BACK_ARGS                                                                                                      \
  {                                                                                                                    \
    TENSOR_ONLY("dy"), TENSOR_ONLY("x"), TENSOR_OPT("weight"), INT_REQ("dims"), FLOAT_REQ("eps"),                      \
        BOOL("wants_x", true), BOOL("wants_params", true)                                                              \
  }

AMPL_OP(layer_norm_backward, .doc = "The gradients of x, weight and bias.", .args = BACK_ARGS, .nout = 3,
  .flags = AMPL_OP_INTERNAL, .infer = infer_back, .compose = compose_layer_norm_back);

/* ------------------------------------------------------------------------------------------------ rms_norm -------- */

/* The public op knows the default of eps; the other does the work. */
static ampl_status compose_rms_norm (ampl_eval *e, const ampl_args *in, ampl_tensor **out) {
  double step = in->t[0]->dtype == AMPL_F64 ? DBL_EPSILON : FLT_EPSILON, eps = isnan(in->p[1].f) ? step : in->p[1].f;
  return ampl_eval_return(e, EV(e, rms_norm_rows, T(in->t[0], in->t[1]), P(in->p[0], V_F(eps))), &out[0]);
}

AMPL_OP(rms_norm,
  .doc = "x / sqrt(mean of x^2 + eps) * weight, the mean over the last dimensions, those of normalized_shape.",
  .args = {TENSOR_ONLY("x"), SIZES_REQ("normalized_shape"), TENSOR_OPT("weight"),
           FLOAT_OPT("eps", "by default the smallest step at 1 of the floats it is computed in: 2^-23, for f64 2^-52")},
  .cast = AMPL_CAST_F32, .compose = compose_rms_norm);

static ampl_status infer_rms_norm (ampl_ctx *ctx, const ampl_args *in, ampl_meta *out) {
  AMPL_TRY(check_rows(ctx, in, 2));
  return ampl_meta_like(out, in->t[0]);
}

static ampl_status back_rms_norm (ampl_grad *g) {
  ampl_tensor *got[2];
  ampl_tensor *const t[3] = {g->dy[0], g->x[0], g->x[1]};
  const ampl_value p[4] = {V_I(g->p[0].l.n), V_F(g->p[1].f), V_I(g->need[0]), V_I(g->need[1])};
  ampl_eval_outs(&g->e, OP(rms_norm_backward), t, 3, p, 4, got);
  if (g->need[0]) ampl_grad_set(g, 0, got[0]);
  if (g->need[1]) ampl_grad_set(g, 1, got[1]);
  return g->e.status;
}

AMPL_OP(rms_norm_rows, .doc = "rms_norm with eps given.",
  .args = {TENSOR_ONLY("x"), SIZES_REQ("normalized_shape"), TENSOR_OPT("weight"), FLOAT_REQ("eps")},
  .flags = AMPL_OP_INTERNAL, .save = AMPL_SAVE_X(0) | AMPL_SAVE_X(1), .infer = infer_rms_norm,
  .backward = back_rms_norm);

static ampl_status compose_rms_norm_back (ampl_eval *e, const ampl_args *in, ampl_tensor **out) {
  return compose_back(e, in, out, false);
}

AMPL_OP(rms_norm_backward, .doc = "The gradients of x and weight.", .args = BACK_ARGS, .nout = 2,
  .flags = AMPL_OP_INTERNAL, .infer = infer_back, .compose = compose_rms_norm_back);

/* ------------------------------------------------------------------------------------------------ normalize ------- */

static ampl_status compose_normalize (ampl_eval *e, const ampl_args *in, ampl_tensor **out) {
  int64_t dim[1] = {in->p[1].i};
  AMPL_TRY(ampl_need_float(e->ctx, "x", in->t[0]));
  ampl_tensor *x = ampl_eval_wide(e, in->t[0]);
  ampl_tensor *size = EV(e, norm, T(x), P(in->p[0], V_L(1, dim), V_I(true)));
  ampl_tensor *y = EV(e, div, T(x, EV(e, clamp, T(size, num(e, in->p[2].f)))));
  return ampl_eval_return(e, ampl_eval_to(e, y, in->t[0]->dtype), &out[0]);
}

AMPL_OP(normalize,
  .doc = "x / max(p-norm of x over `dim`, eps)",
  .args = {TENSOR_ONLY("x"), FLOAT("p", 2), DIM("dim", 1), FLOAT("eps", 1e-12)}, .cast = AMPL_CAST_F32,
  .compose = compose_normalize);

/* ------------------------------------------------------------------------------------------------ across channels - */

static ampl_status compose_local_response_norm (ampl_eval *e, const ampl_args *in, ampl_tensor **out) {
  int64_t size = in->p[0].i, border[2 * AMPL_RANK_MAX] = {0}, last[1] = {-1};
  const ampl_tensor *given = in->t[0];
  AMPL_TRY(ampl_need_float(e->ctx, "x", given));
  if (given->ndim < 3)
    return ampl_error(e->ctx, AMPL_ESHAPE, "x is %s; samples, channels and at least one more dimension are needed",
                      ampl_tensor_text(e->ctx, given));
  if (size < 1) return ampl_error(e->ctx, AMPL_EVALUE, "size is %lld, at least 1 channel is needed", (long long)size);
  int channels = given->ndim - 2;       /* pairs for the dimensions behind the channels come first */
  border[2 * channels] = size / 2;
  border[2 * channels + 1] = (size - 1) / 2;
  ampl_tensor *x = ampl_eval_wide(e, in->t[0]);
  ampl_tensor *square = EV(e, pad, T(EV(e, mul, T(x, x))), P(V_L(2 * (channels + 1), border)));
  ampl_tensor *around = EV(e, mean, T(EV(e, unfold, T(square), P(V_I(1), V_I(size), V_I(1)))), P(V_L(1, last)));
  ampl_tensor *base = EV(e, add, T(EV(e, mul, T(around, num(e, in->p[1].f))), num(e, in->p[3].f)));
  ampl_tensor *y = EV(e, div, T(x, EV(e, pow, T(base, num(e, in->p[2].f)))));
  return ampl_eval_return(e, ampl_eval_to(e, y, given->dtype), &out[0]);
}

AMPL_OP(local_response_norm,
  .doc = "x / (k + alpha * mean of x^2 over `size` neighbouring channels)^beta",
  .args = {TENSOR_ONLY("x"), INT_REQ("size"), FLOAT("alpha", 1e-4), FLOAT("beta", 0.75), FLOAT("k", 1)},
  .cast = AMPL_CAST_F32, .compose = compose_local_response_norm);
