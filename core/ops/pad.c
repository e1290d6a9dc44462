/* pad: a border around the last dimensions; negative sizes cut off.  Pairs (before, behind), the last dimension
 * first. */
#include "op.h"

#include <string.h>

enum { CONSTANT, REFLECT, REPLICATE, CIRCULAR };
#define PAD_MAX AMPL_NUMEL_MAX  /* so that sums with a size do not overflow */
#define MODES "constant|reflect|replicate|circular"

static ampl_status check_mode(ampl_ctx *ctx, int mode, int64_t n, int64_t before, int64_t behind, int d) {
  int64_t most = mode == REFLECT ? n - 1 : mode == CIRCULAR ? n : before > 0 || behind > 0 ? INT64_MAX : 0;
  if (mode == REPLICATE && n > 0) return AMPL_OK;
  if (n > 0 && before <= most && behind <= most) return AMPL_OK;
  return ampl_error(ctx, AMPL_ESHAPE, "mode \"%s\" cannot put %lld and %lld around dimension %lld of size %lld%s",
                    mode == REFLECT ? "reflect" : mode == CIRCULAR ? "circular" : "replicate", (long long)before,
                    (long long)behind, (long long)ampl_shown(ctx, d), (long long)n,
                    mode == REFLECT ? ": a reflection is shorter than the dimension" : "");
}

/* The shape of x padded. */
static ampl_status padded_shape(ampl_ctx *ctx, int nd, const int64_t *x, ampl_ints pad, int mode, int64_t *shape) {
  if (pad.n % 2 != 0 || pad.n / 2 > nd)
    return ampl_error(ctx, AMPL_EARG,
                      "%lld numbers for %s: pad holds pairs (before, behind), the last dimension's first",
                      (long long)pad.n, ampl_shape_text(ctx, nd, x));
  memcpy(shape, x, (size_t)nd * sizeof *shape);
  for (int k = 0; k < pad.n / 2; k++) {
    int d = nd - 1 - k;
    int64_t before = pad.v[2 * k], behind = pad.v[2 * k + 1];
    if (before > PAD_MAX || behind > PAD_MAX || before < -PAD_MAX || behind < -PAD_MAX)
      return ampl_error(ctx, AMPL_EVALUE, "pad %lld and %lld of dimension %lld: that is too large", (long long)before,
                        (long long)behind, (long long)ampl_shown(ctx, d));
    if (mode != CONSTANT && (before != 0 || behind != 0)) AMPL_TRY(check_mode(ctx, mode, x[d], before, behind, d));
    shape[d] += before + behind;
    if (shape[d] < 0 ||
        (mode == CIRCULAR && (before < 0 ? -before : 0) + (behind < 0 ? -behind : 0) >= x[d] && x[d] > 0))
      return ampl_error(ctx, AMPL_ESHAPE, "nothing is left of dimension %lld (size %lld) with %lld and %lld",
                        (long long)ampl_shown(ctx, d), (long long)x[d], (long long)before, (long long)behind);
  }
  return AMPL_OK;
}

static ampl_status infer(ampl_ctx *ctx, const ampl_args *in, ampl_meta *out) {
  int64_t shape[AMPL_RANK_MAX];
  const ampl_tensor *x = in->t[0];
  AMPL_TRY(padded_shape(ctx, x->ndim, x->shape, in->p[0].l, (int)in->p[1].i, shape));
  return ampl_meta_shape(ctx, out, x->ndim, shape);
}

static ampl_status backward(ampl_grad *g) {
  const ampl_meta *x = &g->xm[0];
  ampl_ints pad = g->p[0].l;
  int64_t back[2 * AMPL_RANK_MAX];
  if (g->p[1].i == CONSTANT) {
    for (int k = 0; k < pad.n; k++) back[k] = -pad.v[k];
    ampl_grad_set(g, 0, EV(&g->e, pad, T(g->dy[0]), P(V_L(pad.n, back))));
  } else {
    ampl_grad_set(g, 0, EV(&g->e, pad_backward, T(g->dy[0]), P(V_L(x->ndim, x->shape), g->p[0], g->p[1])));
  }
  return AMPL_OK;
}

AMPL_OP(pad,
  .doc = "x with a border around its last dimensions: `value` (constant), the mirrored inside (reflect), the edge "
         "(replicate), or the other end (circular).  Negative sizes cut off.",
  .args = {TENSOR_ONLY("x"), SIZES_REQ("pad", "pairs (before, behind), the last dimension's first"),
           ENUM("mode", MODES, CONSTANT), FLOAT("value", 0)},
  .infer = infer, .backward = backward);

static ampl_status backward_infer(ampl_ctx *ctx, const ampl_args *in, ampl_meta *out) {
  const ampl_tensor *dy = in->t[0];
  ampl_ints shape = in->p[0].l;
  int64_t padded[AMPL_RANK_MAX];
  AMPL_TRY(ampl_meta_shape(ctx, out, (int)shape.n, shape.v));
  AMPL_TRY(padded_shape(ctx, out->ndim, out->shape, in->p[1].l, (int)in->p[2].i, padded));
  if (dy->ndim == out->ndim && memcmp(padded, dy->shape, (size_t)out->ndim * sizeof *padded) == 0) return AMPL_OK;
  return ampl_error(ctx, AMPL_ESHAPE, "%s, expected %s", ampl_tensor_text(ctx, dy),
                    ampl_shape_text(ctx, out->ndim, padded));
}

static ampl_status backward_backward(ampl_grad *g) {
  ampl_grad_set(g, 0, EV(&g->e, pad, T(g->dy[0]), P(g->p[1], g->p[2])));
  return AMPL_OK;
}

AMPL_OP(pad_backward,
  .doc = "The gradient of pad in any mode but constant: every element's copies added up.",
  .args = {TENSOR_ONLY("dy"), SIZES_REQ("shape"), SIZES_REQ("pad"), ENUM("mode", MODES, CONSTANT)},
  .flags = AMPL_OP_INTERNAL | AMPL_OP_DENSE, .infer = backward_infer, .backward = backward_backward);
