/* expand: dimensions of size 1 shown any number of times.  Backward: the sum over the copies. */
#include "view.h"

static ampl_status infer(ampl_ctx *ctx, const ampl_args *in, ampl_meta *out) {
  const ampl_tensor *x = in->t[0];
  ampl_ints size = in->p[0].l;
  int more = (int)size.n - x->ndim;
  if (more < 0 || size.n > AMPL_RANK_MAX)
    return ampl_error(ctx, AMPL_ESHAPE, "%s cannot become %s: %s", ampl_tensor_text(ctx, x),
                      ampl_shape_text(ctx, size.n > AMPL_RANK_MAX ? AMPL_RANK_MAX : (int)size.n, size.v),
                      more < 0 ? "it has more dimensions" : "a tensor has at most 8 dimensions");
  view_of(out, x);
  for (int d = 0; d < more; d++) view_insert(out, d, 1, 0);
  for (int d = 0; d < size.n; d++) {
    int64_t n = size.v[d];
    if (n == out->shape[d] || (n == -1 && d >= more)) continue;
    if (n < 0 || out->shape[d] != 1)
      return ampl_error(ctx, AMPL_ESHAPE,
                        "%s cannot become %s: dimension %lld has size %lld; only size 1 expands, -1 keeps a size",
                        ampl_tensor_text(ctx, x), ampl_shape_text(ctx, (int)size.n, size.v),
                        (long long)ampl_shown(ctx, d), (long long)out->shape[d]);
    out->shape[d] = n;
    out->strides[d] = 0;
  }
  return AMPL_OK;
}

static ampl_status backward(ampl_grad *g) {
  ampl_grad_set(g, 0, ampl_eval_sum_to(&g->e, g->dy[0], g->xm[0].ndim, g->xm[0].shape));
  return AMPL_OK;
}

AMPL_OP(expand,
  .doc = "x with dimensions of size 1, and new ones in front, repeated to `size`; -1 keeps a size.  A view: nothing "
         "is copied.",
  .args = {TENSOR_ONLY("x"), SHAPE_REQ("size")},
  .flags = AMPL_OP_VIEW, .infer = infer, .backward = backward);
