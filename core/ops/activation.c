/* activation.c: activations that are more than one formula: prelu and glu. */
#include "op.h"

/* x: (n, c, ...), one slope for each c, or one for all. */
static ampl_status compose_prelu(ampl_eval *e, const ampl_args *in, ampl_tensor **out) {
  ampl_tensor *x = in->t[0], *w = in->t[1];
  const int64_t channels = x->ndim > 1 ? x->shape[1] : 1;
  if (w->ndim > 1 || (w->numel != 1 && w->numel != channels))
    return ampl_error(e->ctx, AMPL_ESHAPE, "the weight must hold 1 or %lld slopes for x of %s, it is %s",
                      (long long)channels, ampl_tensor_text(e->ctx, x), ampl_tensor_text(e->ctx, w));
  if (w->ndim == 1) {
    int64_t shape[AMPL_RANK_MAX];
    const int n = x->ndim > 0 ? x->ndim : 0;
    for (int d = 0; d < n; d++) shape[d] = d == 1 || n == 1 ? w->numel : 1;
    w = EV(e, reshape, T(w), P(V_L(n, shape)));
  }
  return ampl_eval_return(e, EV(e, prelu_spread, T(x, w)), out);
}

AMPL_OP(prelu, .doc = "x where it is positive, else x times a learnt slope: one for all, or one for each channel.",
        .args = {TENSOR("x"), TENSOR("weight")}, .cast = AMPL_CAST_LOW, .flags = AMPL_OP_PROMOTE,
        .compose = compose_prelu);

static ampl_status compose_glu(ampl_eval *e, const ampl_args *in, ampl_tensor **out) {
  ampl_tensor *x = in->t[0];
  const int64_t dim = in->p[0].i;
  if (x->ndim == 0) return ampl_error(e->ctx, AMPL_ESHAPE, "x has no dimension to halve");
  const int64_t half = x->shape[dim] / 2;
  if (x->shape[dim] % 2 != 0)
    return ampl_error(e->ctx, AMPL_ESHAPE, "dimension %lld of x must be even to be halved, x is %s",
                      (long long)ampl_shown(e->ctx, dim), ampl_tensor_text(e->ctx, x));
  ampl_tensor *a = EV(e, narrow, T(x), P(V_I(dim), V_I(0), V_I(half)));
  ampl_tensor *b = EV(e, narrow, T(x), P(V_I(dim), V_I(half), V_I(half)));
  return ampl_eval_return(e, EV(e, mul, T(a, EV(e, sigmoid, T(b)))), out);
}

AMPL_OP(glu, .doc = "The first half of x along `dim`, times the sigmoid of the second half.",
        .args = {TENSOR("x"), DIM("dim", -1)}, .compose = compose_glu);
