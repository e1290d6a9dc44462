/* random.c: tensors of random numbers, and dropout.  Element i of a draw depends on the stream's seed and position
 * + i alone (core/random.h), so every backend, thread count and recompute agree. */
#include "op.h"

#define WHERE DTYPE("dtype"), DEVICE("device")
#define DRAWS AMPL_OP_CREATOR | AMPL_OP_NO_GRAD | AMPL_OP_RANDOM

static int otherwise(int64_t dtype, int t) { return dtype == AMPL_DTYPE_NONE ? t : (int)dtype; }

static ampl_status need_float(ampl_ctx *ctx, int dtype) {
  if (ampl_dtype_is_float((ampl_dtype)dtype)) return AMPL_OK;
  return ampl_error(ctx, AMPL_EDTYPE, "draws floats, not %s; use randint", ampl_dtype_name((ampl_dtype)dtype));
}

/* ------------------------------------------------------------------------------------------------ by shape -------- */

static ampl_status infer_size(ampl_ctx *ctx, const ampl_args *in, ampl_meta *out) {
  out->dtype = otherwise(in->p[1].i, AMPL_F32);
  AMPL_TRY(need_float(ctx, out->dtype));
  return ampl_meta_shape(ctx, out, (int)in->p[0].l.n, in->p[0].l.v);
}

AMPL_OP(rand, .doc = "Numbers evenly spread over [0, 1).", .args = {SHAPE_REQ("size"), WHERE}, .flags = DRAWS,
        .infer = infer_size);
AMPL_OP(randn, .doc = "Numbers of the normal distribution with mean 0 and variance 1.",
        .args = {SHAPE_REQ("size"), WHERE}, .flags = DRAWS, .infer = infer_size);

static ampl_status infer_like(ampl_ctx *ctx, const ampl_args *in, ampl_meta *out) {
  AMPL_TRY(ampl_meta_like(out, in->t[0]));
  out->dtype = otherwise(in->p[0].i, in->t[0]->dtype);
  return need_float(ctx, out->dtype);
}

AMPL_OP(rand_like, .doc = "rand in x's shape and, unless told otherwise, dtype and device.",
        .args = {TENSOR_ONLY("x"), WHERE}, .flags = DRAWS, .infer = infer_like);
AMPL_OP(randn_like, .doc = "randn in x's shape and, unless told otherwise, dtype and device.",
        .args = {TENSOR_ONLY("x"), WHERE}, .flags = DRAWS, .infer = infer_like);

static ampl_status infer_randint(ampl_ctx *ctx, const ampl_args *in, ampl_meta *out) {
  const int64_t low = in->p[0].i, high = in->p[1].i;
  if (low >= high)
    return ampl_error(ctx, AMPL_EVALUE, "there is no integer from %lld to below %lld", (long long)low, (long long)high);
  out->dtype = otherwise(in->p[3].i, AMPL_I64);
  return ampl_meta_shape(ctx, out, (int)in->p[2].l.n, in->p[2].l.v);
}

AMPL_OP(randint, .doc = "Integers evenly spread over low, low + 1 ... high - 1.",
        .args = {INT_REQ("low"), INT_REQ("high"), SHAPE_REQ("size"), WHERE}, .flags = DRAWS, .infer = infer_randint);

static ampl_status infer_randperm(ampl_ctx *ctx, const ampl_args *in, ampl_meta *out) {
  const int64_t n = in->p[0].i;
  if (n < 0) return ampl_error(ctx, AMPL_EVALUE, "n is %lld, a count is needed", (long long)n);
  out->dtype = otherwise(in->p[1].i, AMPL_I64);
  return ampl_meta_shape(ctx, out, 1, &n);
}

AMPL_OP(randperm, .doc = "The positions of n elements in random order.", .args = {INT_REQ("n"), WHERE}, .flags = DRAWS,
        .infer = infer_randperm);

/* ------------------------------------------------------------------------------------------------ bernoulli ------- */

static ampl_status back_zeros(ampl_grad *g) {
  ampl_grad_set(g, 0, EV(&g->e, zeros_like, T(g->dy[0])));
  return g->e.status;
}

static ampl_status infer_bernoulli(ampl_ctx *ctx, const ampl_args *in, ampl_meta *out) {
  const ampl_tensor *x = in->t[0];
  if (!ampl_is_float(x))
    return ampl_error(ctx, AMPL_EDTYPE, "probabilities are floats, these are %s",
                      ampl_dtype_name((ampl_dtype)x->dtype));
  return ampl_meta_like(out, x);
}

AMPL_OP(bernoulli, .doc = "1 with the probability x, else 0.", .args = {TENSOR_ONLY("x")},
        .flags = AMPL_OP_RANDOM, .infer = infer_bernoulli, .backward = back_zeros);

/* ------------------------------------------------------------------------------------------------ dropout --------- */

/* The second output holds seed and position of the draw: backward draws the mask again instead of keeping it. */
static ampl_status infer_dropout(ampl_ctx *ctx, const ampl_args *in, ampl_meta *out) {
  if (!ampl_is_float(in->t[0]))
    return ampl_error(ctx, AMPL_EDTYPE, "works on floats, x is %s", ampl_dtype_name((ampl_dtype)in->t[0]->dtype));
  AMPL_TRY(ampl_meta_like(&out[0], in->t[0]));
  out[1].dtype = AMPL_I64;
  return ampl_meta_shape(ctx, &out[1], 1, (int64_t[]){2});
}

static ampl_status back_dropout(ampl_grad *g) {
  if (g->dy[0]) ampl_grad_set(g, 0, EV(&g->e, dropout_backward, T(g->dy[0], g->y[1]), P(g->p[0])));
  return g->e.status;
}

AMPL_OP(dropout_draw, .doc = "dropout, and where its draw starts.", .args = {TENSOR("x"), FLOAT("p", 0.5)}, .nout = 2,
        .flags = AMPL_OP_RANDOM | AMPL_OP_INTERNAL, .save = AMPL_SAVE_Y(1), .infer = infer_dropout,
        .backward = back_dropout);

/* Linear in dy, so its gradient is itself. */
static ampl_status back_again(ampl_grad *g) {
  ampl_grad_set(g, 0, EV(&g->e, dropout_backward, T(g->dy[0], g->x[1]), P(g->p[0])));
  return g->e.status;
}

AMPL_OP(dropout_backward, .doc = "The mask of an earlier draw, applied again.",
        .args = {TENSOR("dy"), TENSOR_OPT_AS_IS("draw"), FLOAT("p", 0.5)}, .flags = AMPL_OP_INTERNAL,
        .save = AMPL_SAVE_X(1), .backward = back_again);

static ampl_status compose_dropout(ampl_eval *e, const ampl_args *in, ampl_tensor **out) {
  const double p = in->p[0].f;
  if (!(p >= 0 && p <= 1)) return ampl_error(e->ctx, AMPL_EVALUE, "p is %g, a probability is between 0 and 1", p);
  if (!in->p[1].i || p == 0) return ampl_eval_return(e, in->t[0], out);
  ampl_tensor *made[2];
  ampl_eval_outs(e, OP(dropout_draw), in->t, 1, in->p, 1, made);
  return ampl_eval_return(e, made[0], out);
}

AMPL_OP(dropout, .doc = "x with each element set to 0 with probability p and the others divided by 1 - p.",
        .args = {TENSOR("x"), FLOAT("p", 0.5), BOOL("training", true, "false: x as it is")},
        .flags = AMPL_OP_RANDOM | AMPL_OP_INPLACE, .compose = compose_dropout);
