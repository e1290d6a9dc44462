/* interpolate.c: images and rows resampled to another size, each dimension for itself: every output position is a
 * weighted sum of 1 (nearest), 2 (linear) or 4 (cubic) input positions.  Backward spreads by the same weights. */
#include "op.h"

#include <string.h>

#define MODES "nearest|linear|cubic"
#define HOW                                                                                                            \
  ENUM("mode", MODES, 0), BOOL("align_corners", false), FLOAT("scale_0", 0), FLOAT("scale_1", 0), FLOAT("scale_2", 0)

static ampl_status want_images(ampl_ctx *ctx, const ampl_tensor *x, ampl_ints size) {
  if (x->ndim < 3 || x->ndim > 5 || size.n != x->ndim - 2)
    return ampl_error(ctx, AMPL_ESHAPE,
                      "size has %lld numbers, x is %s: it must be (n, channels) and one to three dimensions",
                      (long long)size.n, ampl_tensor_text(ctx, x));
  return AMPL_OK;
}

static ampl_status infer(ampl_ctx *ctx, const ampl_args *in, ampl_meta *out) {
  const ampl_tensor *x = in->t[0];
  ampl_ints size = in->p[0].l;
  int64_t shape[AMPL_RANK_MAX];
  AMPL_TRY(want_images(ctx, x, size));
  memcpy(shape, x->shape, sizeof shape);
  for (int d = 0; d < size.n; d++) {
    shape[2 + d] = size.v[d];
    if (size.v[d] < 1 || x->shape[2 + d] < 1)
      return ampl_error(ctx, AMPL_ESHAPE, "%s cannot be resampled to %s", ampl_tensor_text(ctx, x),
                        ampl_shape_text(ctx, (int)size.n, size.v));
  }
  out->layout = x->flags & AMPL_T_CHANNELS_LAST && !(x->flags & AMPL_T_CONTIGUOUS) ? AMPL_LAYOUT_CHANNELS_LAST
                                                                                   : AMPL_LAYOUT_ROW_MAJOR;
  return ampl_meta_shape(ctx, out, x->ndim, shape);
}

static ampl_status back(ampl_grad *g) {
  const ampl_meta *x = &g->xm[0];
  ampl_grad_set(g, 0,
                EV(&g->e, resample_backward, T(g->dy[0]),
                   P(V_L(x->ndim - 2, x->shape + 2), g->p[1], g->p[2], g->p[3], g->p[4], g->p[5])));
  return AMPL_OK;
}

AMPL_OP(resample,
        .doc = "Images or rows resampled to `size`.  A scale that is not 0 is used in place of the ratio of sizes.  "
               "In Lua this is F.interpolate.",
        .args = {TENSOR_ONLY("x"), SIZES_REQ("size"), HOW}, .cast = AMPL_CAST_F32, .flags = AMPL_OP_F_ONLY,
        .infer = infer, .backward = back);

static ampl_status backward_back(ampl_grad *g) {
  const ampl_meta *dy = &g->xm[0];
  ampl_grad_set(g, 0,
                EV(&g->e, resample, T(g->dy[0]),
                   P(V_L(dy->ndim - 2, dy->shape + 2), g->p[1], g->p[2], g->p[3], g->p[4], g->p[5])));
  return AMPL_OK;
}

AMPL_OP(resample_backward,
  .doc = "The gradient of resample for an input of `size`.",
  .args = {TENSOR_ONLY("dy"), SIZES_REQ("size"), HOW},
  .flags = AMPL_OP_INTERNAL, .infer = infer, .backward = backward_back);
