/* grid_sample: an image read at positions that a grid gives, -1 to 1 across it. */
#include "op.h"

#define HOW                                                                                                            \
  ENUM("mode", "bilinear|nearest|bicubic", 0), ENUM("padding_mode", "zeros|border|reflection", 0),                     \
      BOOL("align_corners", false)

static ampl_status infer(ampl_ctx *ctx, const ampl_args *in, ampl_meta *out) {
  const ampl_tensor *x = in->t[0], *grid = in->t[1];
  if (x->ndim != 4 || grid->ndim != 4 || grid->shape[3] != 2 || grid->shape[0] != x->shape[0])
    return ampl_error(ctx, AMPL_ESHAPE, "input is %s, grid is %s; expected (n, c, h, w) and (n, height, width, 2)",
                      ampl_tensor_text(ctx, x), ampl_tensor_text(ctx, grid));
  if (x->shape[2] < 1 || x->shape[3] < 1)
    return ampl_error(ctx, AMPL_ESHAPE, "input is %s: empty images", ampl_tensor_text(ctx, x));
  if (!ampl_is_float(x) || x->dtype != grid->dtype)
    return ampl_error(ctx, AMPL_EDTYPE, "input is %s, grid is %s; both must be floats of one dtype",
                      ampl_tensor_text(ctx, x), ampl_tensor_text(ctx, grid));
  return ampl_meta_shape(ctx, out, 4, (int64_t[]){x->shape[0], x->shape[1], grid->shape[1], grid->shape[2]});
}

static ampl_status back(ampl_grad *g) {
  ampl_tensor *dx[2];
  ampl_eval_outs(&g->e, OP(grid_sample_backward), T(g->dy[0], g->x[0], g->x[1]), g->p, 3, dx);
  for (int i = 0; i < 2; i++)
    if (g->need[i]) ampl_grad_set(g, i, dx[i]);
  return AMPL_OK;
}

AMPL_OP(grid_sample,
        .doc = "The image at the positions in `grid`: (x, y) pairs from -1 (left, top) to 1; between pixels by "
               "`mode`, beyond the image by padding_mode.",
        .args = {TENSOR_ONLY("input"), TENSOR_ONLY("grid"), HOW}, .cast = AMPL_CAST_WIDEST,
        .save = AMPL_SAVE_X(0) | AMPL_SAVE_X(1), .infer = infer, .backward = back);

static ampl_status backward_infer(ampl_ctx *ctx, const ampl_args *in, ampl_meta *out) {
  for (int i = 0; i < 2; i++) AMPL_TRY(ampl_meta_shape(ctx, &out[i], 4, in->t[i + 1]->shape));
  return AMPL_OK;
}

AMPL_OP(grid_sample_backward,
  .doc = "The gradients of grid_sample's input and grid.",
  .args = {TENSOR_ONLY("dy"), TENSOR_ONLY("input"), TENSOR_ONLY("grid"), HOW},
  .nout = 2, .flags = AMPL_OP_INTERNAL, .infer = backward_infer);
