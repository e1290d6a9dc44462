/* flip.c: positions in another order: flip turns dimensions around, roll moves them on, what falls out comes in
 * again. */
#include "op.h"

static ampl_status like_x(ampl_ctx *ctx, const ampl_args *in, ampl_meta *out) {
  return ampl_meta_shape(ctx, out, in->t[0]->ndim, in->t[0]->shape);
}

static ampl_status flip_backward(ampl_grad *g) {
  ampl_grad_set(g, 0, EV(&g->e, flip, T(g->dy[0]), P(g->p[0])));
  return AMPL_OK;
}

AMPL_OP(flip,
  .doc = "The positions of dimensions `dims` in reverse order.",
  .args = {TENSOR_ONLY("x"), DIMS_REQ("dims")},
  .infer = like_x, .backward = flip_backward);

static ampl_status roll_infer(ampl_ctx *ctx, const ampl_args *in, ampl_meta *out) {
  ampl_ints shifts = in->p[0].l, dims = in->p[1].l;
  if (shifts.n == 0) return ampl_error(ctx, AMPL_EARG, "shifts is empty");
  if (shifts.n != dims.n && !(dims.n == 0 && shifts.n == 1))
    return ampl_error(ctx, AMPL_EARG, "%lld shifts for %lld dims; without dims, one shift moves x as one row",
                      (long long)shifts.n, (long long)dims.n);
  return like_x(ctx, in, out);
}

static ampl_status roll_backward(ampl_grad *g) {
  int64_t back[AMPL_INTS_MAX];
  const ampl_meta *x = &g->xm[0];
  ampl_ints shifts = g->p[0].l, dims = g->p[1].l;
  for (int k = 0; k < shifts.n; k++) {          /* within one turn: the least integer has no opposite */
    const int64_t n = dims.n == 0 || x->ndim == 0 ? ampl_meta_numel(x) : x->shape[dims.v[k]];
    back[k] = n > 0 ? -(shifts.v[k] % n) : 0;
  }
  ampl_grad_set(g, 0, EV(&g->e, roll, T(g->dy[0]), P(V_L(shifts.n, back), g->p[1])));
  return AMPL_OK;
}

AMPL_OP(roll,
        .doc = "Dimensions `dims` moved on by `shifts` positions, the last ones coming in at the front; without dims, "
               "x as one row.",
        .args = {TENSOR_ONLY("x"), SIZES_REQ("shifts"), DIMS_REPEATED("dims", "one named twice is moved twice")},
        .flags = AMPL_OP_DENSE, .infer = roll_infer, .backward = roll_backward);
