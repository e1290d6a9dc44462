/* pixel_shuffle: channels rearranged into a finer image: (..., c r r, h, w) to (..., c, h r, w r). */
#include "op.h"

#include <string.h>

static ampl_status compose(ampl_eval *e, const ampl_args *in, ampl_tensor **out) {
  ampl_tensor *x = in->t[0];
  int64_t r = in->p[0].i, shape[AMPL_RANK_MAX], n = 1;
  if (x->ndim < 3)
    return ampl_error(e->ctx, AMPL_ESHAPE, "x is %s; images have three or more dimensions",
                      ampl_tensor_text(e->ctx, x));
  const int64_t *image = x->shape + x->ndim - 3;
  if (r < 1 || image[0] % (r * r) != 0)
    return ampl_error(e->ctx, AMPL_EVALUE,
                      "upscale_factor %lld: the %lld channels of %s must be a multiple of its square", (long long)r,
                      (long long)image[0], ampl_tensor_text(e->ctx, x));
  for (int d = 0; d < x->ndim - 3; d++) n *= x->shape[d];
  int64_t c = image[0] / (r * r), h = image[1], w = image[2];
  memcpy(shape, x->shape, sizeof shape);
  shape[x->ndim - 3] = c, shape[x->ndim - 2] = h * r, shape[x->ndim - 1] = w * r;
  ampl_tensor *y = EV(e, reshape, T(x), P(V_L(6, ((int64_t[]){n, c, r, r, h, w}))));
  y = EV(e, permute, T(y), P(V_L(6, ((int64_t[]){0, 1, 4, 2, 5, 3}))));
  return ampl_eval_return(e, EV(e, reshape, T(y), P(V_L(x->ndim, shape))), out);
}

AMPL_OP(pixel_shuffle,
  .doc = "Groups of upscale_factor^2 channels rearranged into an image that is finer by that factor.",
  .args = {TENSOR_ONLY("x"), INT_REQ("upscale_factor")},
  .compose = compose);
