/* pixel_shuffle: channels rearranged into a finer image: (..., c r r, h, w) to (..., c, h r, w r). */
#include "op.h"

#include <string.h>

static ampl_status compose(ampl_eval *e, const ampl_args *in, ampl_tensor **out) {
  ampl_tensor *x = in->t[0];
  int64_t r = in->p[0].i, square, shape[AMPL_RANK_MAX], n = 1;
  if (x->ndim < 3)
    return ampl_error(e->ctx, AMPL_ESHAPE, "x is %s; images have three or more dimensions",
                      ampl_tensor_text(e->ctx, x));
  const int64_t *image = x->shape + x->ndim - 3;
  if (r < 1 || __builtin_mul_overflow(r, r, &square) || image[0] % square != 0)
    return ampl_error(e->ctx, AMPL_EVALUE,
                      "upscale_factor %lld: the %lld channels of %s must be a multiple of its square", (long long)r,
                      (long long)image[0], ampl_tensor_text(e->ctx, x));
  for (int d = 0; d < x->ndim - 3; d++) n *= x->shape[d];
  int64_t c = image[0] / square, h = image[1], w = image[2];
  memcpy(shape, x->shape, sizeof shape);
  shape[x->ndim - 3] = c;
  for (int d = x->ndim - 2; d < x->ndim; d++)
    if (__builtin_mul_overflow(shape[d], r, &shape[d]))
      return ampl_error(e->ctx, AMPL_EVALUE, "upscale_factor %lld makes images of %s too large", (long long)r,
                        ampl_tensor_text(e->ctx, x));
  ampl_tensor *y = EV(e, reshape, T(x), P(V_L(6, ((int64_t[]){n, c, r, r, h, w}))));
  y = EV(e, permute, T(y), P(V_L(6, ((int64_t[]){0, 1, 4, 2, 5, 3}))));
  return ampl_eval_return(e, EV(e, reshape, T(y), P(V_L(x->ndim, shape))), out);
}

AMPL_OP(pixel_shuffle,
  .doc = "Groups of upscale_factor^2 channels rearranged into an image that is finer by that factor.",
  .args = {TENSOR_ONLY("x"), INT_REQ("upscale_factor")},
  .compose = compose);
