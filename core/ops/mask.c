/* mask.c: where a condition holds: masked_select takes those elements, nonzero says where they are. */
#include "positions.h"

static ampl_status masked_select_back(ampl_grad *g) {
  ampl_meta both = g->xm[0];
  AMPL_TRY(ampl_meta_broadcast(g->e.ctx, &both, g->xm[1].ndim, g->xm[1].shape));
  ampl_grad_set(g, 0, EV(&g->e, masked_select_backward, T(g->dy[0], g->x[1]), P(V_L(both.ndim, both.shape))));
  return AMPL_OK;
}

static ampl_status masked_select_infer(ampl_ctx *ctx, const ampl_args *in, ampl_meta *out) {
  const ampl_tensor *x = in->t[0], *mask = in->t[1];
  if (mask->dtype != AMPL_BOOL)
    return ampl_error(ctx, AMPL_EDTYPE, "mask is %s, not bool", ampl_tensor_text(ctx, mask));
  AMPL_TRY(ampl_meta_shape(ctx, out, x->ndim, x->shape));
  return ampl_meta_broadcast(ctx, out, mask->ndim, mask->shape);
}

AMPL_OP(masked_select,
  .doc = "The elements of x where the mask is true, as a vector; x and mask broadcast.",
  .args = {TENSOR_ONLY("x"), MASK("mask")},
  .flags = AMPL_OP_DYNAMIC, .save = AMPL_SAVE_X(1), .infer = masked_select_infer, .backward = masked_select_back);

static ampl_status masked_select_backward_infer(ampl_ctx *ctx, const ampl_args *in, ampl_meta *out) {
  return ampl_meta_shape(ctx, out, (int)in->p[0].l.n, in->p[0].l.v);
}

static ampl_status masked_select_backward_back(ampl_grad *g) {
  ampl_grad_set(g, 0, EV(&g->e, masked_select, T(g->dy[0], g->x[1])));
  return AMPL_OK;
}

AMPL_OP(masked_select_backward,
  .doc = "Zeros of `shape`, with the elements of dy, in order, where the mask (broadcast) is true.",
  .args = {TENSOR_ONLY("dy"), MASK("mask"), SIZES_REQ("shape")},
  .flags = AMPL_OP_INTERNAL, .save = AMPL_SAVE_X(1), .infer = masked_select_backward_infer,
  .backward = masked_select_backward_back);

AMPL_OP(nonzero,
        .doc = "The positions of the elements that are not 0: one row each, one column for each dimension, in "
               "row-major order.",
        .args = {TENSOR_ONLY("x")}, .flags = AMPL_OP_NO_GRAD | AMPL_OP_DYNAMIC);
