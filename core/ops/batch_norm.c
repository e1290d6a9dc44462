/* batch_norm.c: normalisation of channels: batch_norm, group_norm, instance_norm. */
#include "reduce.h"

#include <string.h>

/* ------------------------------------------------------------------------------------------------ checks ---------- */

/* t[k] must be a float vector with one value for each channel of x */
static ampl_status check_vectors (ampl_ctx *ctx, const ampl_args *in, int from, int to) {
  const ampl_tensor *x = in->t[0];
  int64_t c = x->ndim > 1 ? x->shape[1] : 0;
  AMPL_TRY(ampl_need_float(ctx, "x", x));
  if (x->ndim < 2)
    return ampl_error(ctx, AMPL_ESHAPE, "x is %s: a dimension of samples and one of channels are needed",
                      ampl_tensor_text(ctx, x));
  int k = 0;
  for (int a = 0; a < AMPL_ARGS_MAX && in->op->args[a].name; a++) {
    int kind = in->op->args[a].kind;
    if (kind != AMPL_ARG_TENSOR && kind != AMPL_ARG_TENSOR_OPT) continue;
    const ampl_tensor *v = in->t[k];
    if (k++ < from || k > to || !v) continue;
    AMPL_TRY(ampl_need_float(ctx, in->op->args[a].name, v));
    if (v->ndim != 1 || v->shape[0] != c)
      return ampl_error(ctx, AMPL_ESHAPE, "%s is %s; x, of shape %s, has %lld channels", in->op->args[a].name,
                        ampl_shape_text(ctx, v->ndim, v->shape), ampl_shape_text(ctx, x->ndim, x->shape), (long long)c);
  }
  return AMPL_OK;
}

static int sum_dtype (const ampl_tensor *x) { return x->dtype == AMPL_F64 ? AMPL_F64 : AMPL_F32; }

/* Outputs dx, dweight, dbias; the last parameters say whether the first and whether the others are wanted */
static ampl_status infer_back (ampl_ctx *ctx, const ampl_args *in, ampl_meta *out) {
  const ampl_tensor *x = in->t[1];
  int64_t none[1] = {0};
  AMPL_TRY(ampl_meta_like(&out[0], x));
  if (!in->p[2].i) AMPL_TRY(ampl_meta_shape(ctx, &out[0], 1, none));
  for (int k = 1; k < 3; k++) {
    out[k].dtype = sum_dtype(x);
    AMPL_TRY(ampl_meta_shape(ctx, &out[k], 1, in->p[3].i ? &x->shape[1] : none));
  }
  return AMPL_OK;
}

/* A vector over the channels, as it broadcasts with x */
static ampl_tensor *by_channel (ampl_eval *e, ampl_tensor *v, const ampl_tensor *x) {
  int64_t shape[AMPL_RANK_MAX];
  if (!v) return NULL;
  for (int d = 0; d < x->ndim; d++) shape[d] = d == 1 ? x->shape[1] : 1;
  return EV(e, reshape, T(ampl_eval_wide(e, v)), P(V_L(x->ndim, shape)));
}

/* Something of x's shape summed over all but the channels */
static ampl_tensor *to_channels (ampl_eval *e, ampl_tensor *v) {
  int64_t dims[AMPL_RANK_MAX];
  int n = 0;
  if (!v) return NULL;
  for (int d = 0; d < v->ndim; d++)
    if (d != 1) dims[n++] = d;
  return EV(e, sum, T(v), P(V_L(n, dims)));
}

static ampl_status return_three (ampl_eval *e, ampl_tensor *dx, ampl_tensor *dw, ampl_tensor *dy, ampl_tensor **out) {
  AMPL_TRY(ampl_eval_return(e, dx, &out[0]));
  AMPL_TRY(ampl_eval_return(e, to_channels(e, dw), &out[1]));
  return ampl_eval_return(e, to_channels(e, ampl_eval_wide(e, dy)), &out[2]);
}

/* ------------------------------------------------------------------------------------------------ batch_norm ------ */

#define VECTORS                                                                                                        \
  TENSOR_OPT_AS_IS("running_mean"), TENSOR_OPT_AS_IS("running_var"), TENSOR_OPT_AS_IS("weight"),                       \
      TENSOR_OPT_AS_IS("bias")

static ampl_status infer_train (ampl_ctx *ctx, const ampl_args *in, ampl_meta *out) {
  const ampl_tensor *x = in->t[0];
  AMPL_TRY(check_vectors(ctx, in, 1, 5));
  if (x->numel > 0 && x->numel == x->shape[1])
    return ampl_error(ctx, AMPL_EVALUE, "x is %s: of one value for each channel there is no variance; train on larger "
                      "batches, or call model:eval()", ampl_tensor_text(ctx, x));
  AMPL_TRY(ampl_meta_like(&out[0], x));
  for (int k = 1; k < 3; k++) {
    out[k].dtype = sum_dtype(x);
    AMPL_TRY(ampl_meta_shape(ctx, &out[k], 1, &x->shape[1]));
  }
  return AMPL_OK;
}

static ampl_status gradients (ampl_grad *g, ampl_tensor *mean, ampl_tensor *rstd, double eps, bool training) {
  ampl_tensor *got[3];
  ampl_tensor *const t[5] = {g->dy[0], g->x[0], g->x[3], mean, rstd};
  const ampl_value p[4] = {V_F(eps), V_I(training), V_I(g->need[0]), V_I(g->need[3] || g->need[4])};
  if (!g->dy[0]) return AMPL_OK;
  ampl_eval_outs(&g->e, OP(batch_norm_backward), t, 5, p, 4, got);
  if (g->need[0]) ampl_grad_set(g, 0, got[0]);
  if (g->need[3]) ampl_grad_set(g, 3, got[1]);
  if (g->need[4]) ampl_grad_set(g, 4, got[2]);
  return g->e.status;
}

static ampl_status back_train (ampl_grad *g) { return gradients(g, g->y[1], g->y[2], g->p[1].f, true); }

AMPL_OP(batch_norm_train,
        .doc = "batch_norm by the statistics of x, which go into the running ones; y, mean, 1 / deviation.",
        .args = {TENSOR_ONLY("x"), VECTORS, FLOAT("momentum", 0.1), FLOAT("eps", 1e-5)}, .nout = 3,
        .flags = AMPL_OP_INTERNAL | AMPL_OP_MUTATES,
        .save = AMPL_SAVE_X(0) | AMPL_SAVE_X(3) | AMPL_SAVE_Y(1) | AMPL_SAVE_Y(2), .infer = infer_train,
        .backward = back_train);

static ampl_status infer_eval (ampl_ctx *ctx, const ampl_args *in, ampl_meta *out) {
  if (!in->t[1] || !in->t[2])
    return ampl_error(ctx, AMPL_EARG, "without training, running_mean and running_var are needed");
  AMPL_TRY(check_vectors(ctx, in, 1, 5));
  return ampl_meta_like(out, in->t[0]);
}

static ampl_status back_eval (ampl_grad *g) {
  ampl_eval *e = &g->e;
  ampl_tensor *rstd = EV(e, rsqrt, T(EV(e, add, T(ampl_eval_wide(e, g->x[2]), ampl_eval_num(e, g->p[0].f)))));
  return gradients(g, g->x[1], rstd, g->p[0].f, false);
}

AMPL_OP(batch_norm_eval, .doc = "batch_norm by the running statistics.",
        .args = {TENSOR_ONLY("x"), VECTORS, FLOAT("eps", 1e-5)}, .flags = AMPL_OP_INTERNAL,
        .save = AMPL_SAVE_X(0) | AMPL_SAVE_X(1) | AMPL_SAVE_X(2) | AMPL_SAVE_X(3), .infer = infer_eval,
        .backward = back_eval);

static ampl_status compose_batch_norm (ampl_eval *e, const ampl_args *in, ampl_tensor **out) {
  bool training = in->p[0].i;
  ampl_tensor *got[3] = {NULL}, *x = in->t[0];
  const ampl_value train[2] = {in->p[1], in->p[2]};
  if (x->ndim < 2 && x->numel == 0) return ampl_eval_return(e, EV(e, clone, T(x)), &out[0]);
  if (training) ampl_eval_outs(e, OP(batch_norm_train), in->t, 5, train, 2, got);
  else ampl_eval_outs(e, OP(batch_norm_eval), in->t, 5, &in->p[2], 1, got);
  return ampl_eval_return(e, got[0], &out[0]);
}

AMPL_OP(batch_norm,
        .doc = "(x - mean) / sqrt(var + eps) * weight + bias for every channel (dimension 2).  In training mean and "
               "variance are "
               "those of the batch, and the running ones move towards them by `momentum`; else the running ones are "
               "used.  x may "
               "be 16-bit while the others are f32.",
        .args = {TENSOR_ONLY("x"), VECTORS, BOOL("training", false), FLOAT("momentum", 0.1), FLOAT("eps", 1e-5)},
        .flags = AMPL_OP_MUTATES, .compose = compose_batch_norm);

/* With constant statistics the gradient is a product; else it goes through the mean and the variance, too */
static ampl_status compose_batch_back (ampl_eval *e, const ampl_args *in, ampl_tensor **out) {
  ampl_tensor *dy = in->t[0], *x = in->t[1], *w = by_channel(e, in->t[2], x), *dx, *dw;
  int64_t dims[AMPL_RANK_MAX];
  int n = 0;
  for (int d = 0; d < x->ndim; d++)
    if (d != 1) dims[n++] = d;
  if (in->p[1].i) {
    ampl_eval_norm_back(e, dy, x, w, x->ndim, x->shape, (ampl_ints){dims, n}, true, in->p[0].f, &dx, &dw);
  } else {
    ampl_tensor *g = ampl_eval_wide(e, dy), *mean = by_channel(e, in->t[3], x), *rstd = by_channel(e, in->t[4], x);
    dx = EV(e, mul, T(g, w ? EV(e, mul, T(w, rstd)) : rstd));
    dw = EV(e, mul, T(g, EV(e, mul, T(EV(e, sub, T(ampl_eval_wide(e, x), mean)), rstd))));
  }
  return return_three(e, dx, dw, dy, out);
}

AMPL_OP(batch_norm_backward, .doc = "The gradients of x, weight and bias.",
  .args = {TENSOR_ONLY("dy"), TENSOR_ONLY("x"), TENSOR_OPT("weight"), TENSOR_OPT("mean"), TENSOR_OPT("rstd"),
           FLOAT_REQ("eps"), BOOL("training", true), BOOL("wants_x", true), BOOL("wants_params", true)}, .nout = 3,
  .flags = AMPL_OP_INTERNAL, .infer = infer_back, .compose = compose_batch_back);

/* ------------------------------------------------------------------------------------------------ group_norm ------ */

static ampl_status infer_group (ampl_ctx *ctx, const ampl_args *in, ampl_meta *out) {
  const ampl_tensor *x = in->t[0];
  int64_t groups = in->p[0].i;
  AMPL_TRY(check_vectors(ctx, in, 1, 3));
  if (groups < 1 || x->shape[1] % groups != 0)
    return ampl_error(ctx, AMPL_ESHAPE,
                      "the %lld channels of x, of shape %s, cannot be put into %lld groups of one size",
                      (long long)x->shape[1], ampl_shape_text(ctx, x->ndim, x->shape), (long long)groups);
  return ampl_meta_like(out, x);
}

static ampl_status back_group (ampl_grad *g) {
  ampl_tensor *got[3];
  ampl_tensor *const t[3] = {g->dy[0], g->x[0], g->x[1]};
  const ampl_value p[4] = {g->p[0], g->p[1], V_I(g->need[0]), V_I(g->need[1] || g->need[2])};
  ampl_eval_outs(&g->e, OP(group_norm_backward), t, 3, p, 4, got);
  if (g->need[0]) ampl_grad_set(g, 0, got[0]);
  if (g->need[1]) ampl_grad_set(g, 1, got[1]);
  if (g->need[2]) ampl_grad_set(g, 2, got[2]);
  return g->e.status;
}

AMPL_OP(
    group_norm,
    .doc =
        "(x - mean) / sqrt(var + eps) * weight + bias, mean and variance over each of num_groups groups of channels of "
        "each sample.",
    .args = {TENSOR_ONLY("x"), INT_REQ("num_groups"), TENSOR_OPT("weight"), TENSOR_OPT("bias"), FLOAT("eps", 1e-5)},
    .cast = AMPL_CAST_F32, .save = AMPL_SAVE_X(0) | AMPL_SAVE_X(1), .infer = infer_group, .backward = back_group);

static ampl_status compose_group_back (ampl_eval *e, const ampl_args *in, ampl_tensor **out) {
  ampl_tensor *dy = in->t[0], *x = in->t[1], *dx, *dw;
  int64_t groups = in->p[0].i, shape[3] = {x->shape[0], groups, 1}, dims[1] = {2};
  shape[2] = x->shape[1] / groups;
  for (int d = 2; d < x->ndim; d++) shape[2] *= x->shape[d];
  ampl_eval_norm_back(e, dy, x, by_channel(e, in->t[2], x), 3, shape, (ampl_ints){dims, 1}, true, in->p[1].f, &dx, &dw);
  return return_three(e, dx, dw, dy, out);
}

AMPL_OP(group_norm_backward, .doc = "The gradients of x, weight and bias.",
  .args = {TENSOR_ONLY("dy"), TENSOR_ONLY("x"), TENSOR_OPT("weight"), INT_REQ("num_groups"), FLOAT_REQ("eps"),
           BOOL("wants_x", true), BOOL("wants_params", true)}, .nout = 3,
  .flags = AMPL_OP_INTERNAL, .infer = infer_back, .compose = compose_group_back);

/* ------------------------------------------------------------------------------------------------ instance_norm --- */

static ampl_status infer_update (ampl_ctx *ctx, const ampl_args *in, ampl_meta *out) {
  (void)out;
  return check_vectors(ctx, in, 1, 3);
}

AMPL_OP(instance_norm_update, .doc = "The running statistics of instance_norm move towards those of x.",
  .args = {TENSOR_ONLY("x"), TENSOR_OPT_AS_IS("running_mean"), TENSOR_OPT_AS_IS("running_var"), FLOAT("momentum", 0.1)},
  .nout = AMPL_OUT_NONE, .flags = AMPL_OP_INTERNAL | AMPL_OP_MUTATES | AMPL_OP_NO_GRAD, .infer = infer_update);

static ampl_status compose_instance_norm (ampl_eval *e, const ampl_args *in, ampl_tensor **out) {
  ampl_tensor *x = in->t[0], *got[3] = {NULL};
  if (!in->p[0].i) {
    ampl_eval_outs(e, OP(batch_norm_eval), in->t, 5, &in->p[2], 1, got);
    return ampl_eval_return(e, got[0], &out[0]);
  }
  AMPL_TRY(check_vectors(e->ctx, in, 1, 5));
  if (x->numel > 0 && x->numel == x->shape[0] * x->shape[1])
    return ampl_error(e->ctx, AMPL_EVALUE, "x is %s: of one value for each channel there is no variance",
                      ampl_tensor_text(e->ctx, x));
  if (in->t[1] || in->t[2]) ampl_eval_outs(e, OP(instance_norm_update), in->t, 3, &in->p[1], 1, got);
  ampl_tensor *const t[3] = {x, in->t[3], in->t[4]};
  const ampl_value p[2] = {V_I(x->shape[1]), in->p[2]};
  return ampl_eval_return(e, ampl_eval_op(e, OP(group_norm), t, 3, p, 2), &out[0]);
}

AMPL_OP(
    instance_norm,
    .doc =
        "(x - mean) / sqrt(var + eps) * weight + bias, mean and variance over each channel of each sample, or, without "
        "use_input_stats, the running ones.",
    .args = {TENSOR_ONLY("x"), VECTORS, BOOL("use_input_stats", true), FLOAT("momentum", 0.1), FLOAT("eps", 1e-5)},
    .flags = AMPL_OP_MUTATES, .compose = compose_instance_norm);
