/* multinomial: positions drawn with given weights, with or without putting them back. */
#include "op.h"

enum { SAMPLES, REPLACEMENT };          /* parameters */

static ampl_status compose(ampl_eval *e, const ampl_args *in, ampl_tensor **out) {
  ampl_tensor *x = in->t[0];
  int64_t k = in->p[SAMPLES].i, n = x->ndim > 0 ? x->shape[x->ndim - 1] : 0;
  if (x->ndim != 1 && x->ndim != 2)
    return ampl_error(e->ctx, AMPL_ESHAPE, "weights are %s; they must be a vector, or a row for each draw",
                      ampl_tensor_text(e->ctx, x));
  if (!ampl_is_float(x))
    return ampl_error(e->ctx, AMPL_EDTYPE, "weights are %s; they must be floats", ampl_tensor_text(e->ctx, x));
  if (k < 1 || n < 1 || (!in->p[REPLACEMENT].i && k > n))
    return ampl_error(e->ctx, AMPL_EVALUE, "%lld draws from %lld classes%s", (long long)k, (long long)n,
                      in->p[REPLACEMENT].i ? "" : " without replacement");
  const int64_t size[2] = {x->ndim == 2 ? x->shape[0] : 1, in->p[REPLACEMENT].i ? k : n};
  ampl_tensor *u = ampl_eval_op(e, OP(rand), NULL, 0, P(V_L(2, size), V_I(AMPL_F64), V_S(ampl_tensor_device(x))));
  return ampl_eval_return(e, EV(e, multinomial_draw, T(x, u), P(in->p[SAMPLES], in->p[REPLACEMENT])), out);
}

AMPL_OP(multinomial,
        .doc = "num_samples positions, each drawn with a probability in proportion to its weight: of a vector, or of "
               "every row of a matrix.",
        .args = {TENSOR_ONLY("x"), INT_REQ("num_samples"), BOOL("replacement", false)},
        .flags = AMPL_OP_NO_GRAD | AMPL_OP_RANDOM, .compose = compose);

static ampl_status draw_infer(ampl_ctx *ctx, const ampl_args *in, ampl_meta *out) {
  const ampl_tensor *x = in->t[0];
  int64_t shape[2] = {x->shape[0], in->p[SAMPLES].i};
  out->dtype = AMPL_I64;
  return ampl_meta_shape(ctx, out, x->ndim, shape + 2 - x->ndim);
}

AMPL_OP(multinomial_draw,
  .doc = "multinomial by the uniform numbers u: one for each draw, or, without replacement, one for each class.",
  .args = {TENSOR_ONLY("x"), MASK("u"), INT_REQ("num_samples"), BOOL("replacement", false)},
  .flags = AMPL_OP_INTERNAL | AMPL_OP_NO_GRAD, .infer = draw_infer);
