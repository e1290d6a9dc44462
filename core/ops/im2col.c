/* im2col.c: images cut into patches, one column each (im2col, in Lua F.unfold), and patches added up to images
 * (fold). */
#include "window.h"

enum { DILATION = 1, PADDING, STRIDE };         /* parameters, behind kernel_size */

#define WINDOW SIZES_REQ("kernel_size"), SIZES("dilation"), SIZES("padding"), SIZES("stride")

/* n: how many windows there are along each side of an image, the area of one, and how many there are in all.
 * p: kernel_size, dilation, padding, stride. */
static ampl_status windows(ampl_ctx *ctx, const ampl_value *p, const int64_t *image, int64_t *n) {
  int64_t kernel[2], dilation[2], padding[2], stride[2];
  if (p[0].l.n == 0) return ampl_error(ctx, AMPL_EARG, "kernel_size is empty");
  AMPL_TRY(window_sides(ctx, "kernel_size", p[0].l, 2, 1, 1, kernel));
  AMPL_TRY(window_sides(ctx, "dilation", p[DILATION].l, 2, 1, 1, dilation));
  AMPL_TRY(window_sides(ctx, "padding", p[PADDING].l, 2, 0, 0, padding));
  AMPL_TRY(window_sides(ctx, "stride", p[STRIDE].l, 2, 1, 1, stride));
  for (int d = 0; d < 2; d++) {
    const int64_t room = image[d] + 2 * padding[d] - window_reach(kernel[d], dilation[d]);
    if (room < 0)
      return ampl_error(ctx, AMPL_ESHAPE,
                        "a kernel of %lld (dilation %lld) does not fit an image side of %lld with padding %lld",
                        (long long)kernel[d], (long long)dilation[d], (long long)image[d], (long long)padding[d]);
    n[d] = room / stride[d] + 1;
  }
  n[2] = kernel[0] * kernel[1];
  if (__builtin_mul_overflow(n[0], n[1], &n[3]))
    return ampl_error(ctx, AMPL_ESHAPE, "%lld x %lld patches are too many", (long long)n[0], (long long)n[1]);
  return AMPL_OK;
}

static ampl_status im2col_infer(ampl_ctx *ctx, const ampl_args *in, ampl_meta *out) {
  const ampl_tensor *x = in->t[0];
  int64_t n[4], rows;
  if (x->ndim != 3 && x->ndim != 4)
    return ampl_error(ctx, AMPL_ESHAPE, "x is %s; images are (channels, height, width), or several of them",
                      ampl_tensor_text(ctx, x));
  const int64_t *image = x->shape + x->ndim - 3;
  AMPL_TRY(windows(ctx, in->p, image + 1, n));
  if (__builtin_mul_overflow(image[0], n[2], &rows))
    return ampl_error(ctx, AMPL_ESHAPE, "patches of %lld channels x %lld are too large", (long long)image[0],
                      (long long)n[2]);
  return x->ndim == 3 ? ampl_meta_shape(ctx, out, 2, (int64_t[]){rows, n[3]})
                      : ampl_meta_shape(ctx, out, 3, (int64_t[]){x->shape[0], rows, n[3]});
}

static ampl_status im2col_back(ampl_grad *g) {
  const ampl_meta *x = &g->xm[0];
  ampl_grad_set(g, 0,
                EV(&g->e, fold, T(g->dy[0]), P(V_L(2, x->shape + x->ndim - 2), g->p[0], g->p[1], g->p[2], g->p[3])));
  return AMPL_OK;
}

AMPL_OP(im2col,
        .doc = "Images cut into patches, which may overlap: (n, c, h, w) to (n, c * kernel size, number of patches).  "
               "In Lua this is F.unfold.",
        .args = {TENSOR_ONLY("x"), WINDOW}, .flags = AMPL_OP_F_ONLY, .infer = im2col_infer, .backward = im2col_back);

static ampl_status fold_infer(ampl_ctx *ctx, const ampl_args *in, ampl_meta *out) {
  const ampl_tensor *x = in->t[0];
  ampl_ints size = in->p[0].l;
  int64_t n[4];
  if (x->ndim != 2 && x->ndim != 3)
    return ampl_error(ctx, AMPL_ESHAPE, "x is %s; patches are (elements, number), or several of them",
                      ampl_tensor_text(ctx, x));
  if (size.n == 0) return ampl_error(ctx, AMPL_EARG, "output_size is empty");
  AMPL_TRY(ampl_check_nth(ctx, "output_size", size, 2));
  const int64_t image[2] = {ampl_nth(size, 0, 1), ampl_nth(size, 1, 1)};
  for (int d = 0; d < 2; d++) AMPL_TRY(window_option(ctx, "output_size", image[d], 1));
  AMPL_TRY(windows(ctx, in->p + 1, image, n));
  const int64_t area = n[2], *patches = x->shape + x->ndim - 2;
  if (patches[0] % area != 0 || patches[1] != n[3])
    return ampl_error(
        ctx, AMPL_ESHAPE, "x is %s; an image of %lld x %lld has %lld patches, of a multiple of %lld elements",
        ampl_tensor_text(ctx, x), (long long)image[0], (long long)image[1], (long long)n[3], (long long)area);
  return x->ndim == 2 ? ampl_meta_shape(ctx, out, 3, (int64_t[]){patches[0] / area, image[0], image[1]})
                      : ampl_meta_shape(ctx, out, 4, (int64_t[]){x->shape[0], patches[0] / area, image[0], image[1]});
}

static ampl_status fold_back(ampl_grad *g) {
  ampl_grad_set(g, 0, EV(&g->e, im2col, T(g->dy[0]), P(g->p[1], g->p[2], g->p[3], g->p[4])));
  return AMPL_OK;
}

AMPL_OP(fold,
  .doc = "Patches added up to images of output_size: what F.unfold does, turned around.",
  .args = {TENSOR_ONLY("x"), SIZES_REQ("output_size"), WINDOW},
  .flags = AMPL_OP_DENSE, .infer = fold_infer, .backward = fold_back);
