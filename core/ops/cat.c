/* cat.c: tensors joined along a dimension there is (cat) or a new one (stack). */
#include "op.h"

#include <string.h>

/* An empty vector fits anywhere, as in PyTorch. */
static bool is_nothing(const ampl_tensor *x) { return x->ndim == 1 && x->shape[0] == 0; }

/* Channels last when all operands are so (and not merely of a shape for which it makes no difference). */
static uint8_t common_layout(const ampl_args *in) {
  bool strict = false;
  for (int i = 0; i < in->nt; i++) {
    if (!(in->t[i]->flags & AMPL_T_CHANNELS_LAST)) return AMPL_LAYOUT_ROW_MAJOR;
    strict |= !(in->t[i]->flags & AMPL_T_CONTIGUOUS);
  }
  return strict ? AMPL_LAYOUT_CHANNELS_LAST : AMPL_LAYOUT_ROW_MAJOR;
}

static ampl_status cat_infer(ampl_ctx *ctx, const ampl_args *in, ampl_meta *out) {
  const ampl_tensor *first = NULL;
  int64_t d = in->p[0].i, n = 0, shape[AMPL_RANK_MAX];
  if (in->nt == 0) return ampl_error(ctx, AMPL_EARG, "an empty list of tensors");
  for (int i = 0; i < in->nt && !first; i++)
    if (!is_nothing(in->t[i])) first = in->t[i];
  if (!first) return ampl_meta_shape(ctx, out, 1, (int64_t[]){0});
  if (first->ndim == 0)
    return ampl_error(ctx, AMPL_ESHAPE, "tensors of rank 0 have no dimension to join along: use stack");
  if (d >= first->ndim)
    return ampl_error(ctx, AMPL_EINDEX, "dim %lld of %s", (long long)ampl_shown(ctx, d), ampl_tensor_text(ctx, first));
  for (int i = 0; i < in->nt; i++) {
    const ampl_tensor *x = in->t[i];
    if (is_nothing(x)) continue;
    bool fits = x->ndim == first->ndim;
    for (int k = 0; fits && k < x->ndim; k++) fits = k == d || x->shape[k] == first->shape[k];
    if (!fits)
      return ampl_error(ctx, AMPL_ESHAPE, "tensor %lld is %s, the first %s: all sizes but that of dim %lld must agree",
                        (long long)ampl_shown(ctx, i), ampl_shape_text(ctx, x->ndim, x->shape),
                        ampl_shape_text(ctx, first->ndim, first->shape), (long long)ampl_shown(ctx, d));
    if (__builtin_add_overflow(n, x->shape[d], &n))
      return ampl_error(ctx, AMPL_ESHAPE, "tensor %lld is %s: dim %lld of the result would be too large",
                        (long long)ampl_shown(ctx, i), ampl_shape_text(ctx, x->ndim, x->shape),
                        (long long)ampl_shown(ctx, d));
  }
  memcpy(shape, first->shape, sizeof shape);
  shape[d] = n;
  out->layout = common_layout(in);
  return ampl_meta_shape(ctx, out, first->ndim, shape);
}

static ampl_status cat_backward(ampl_grad *g) {
  int64_t d = g->p[0].i, at = 0;
  for (int i = 0; i < g->nx; i++) {
    const ampl_meta *x = &g->xm[i];
    if (x->ndim != g->ym[0].ndim) {             /* an empty vector among tensors of higher rank */
      ampl_tensor *row = EV(&g->e, reshape, T(g->dy[0]), P(V_L(1, ((int64_t[]){-1}))));
      if (g->need[i]) ampl_grad_set(g, i, EV(&g->e, narrow, T(row), P(V_I(0), V_I(0), V_I(0))));
      continue;
    }
    int64_t n = x->shape[d];
    if (g->need[i]) ampl_grad_set(g, i, EV(&g->e, narrow, T(g->dy[0]), P(V_I(d), V_I(at), V_I(n))));
    at += n;
  }
  return AMPL_OK;
}

AMPL_OP(cat,
  .doc = "Tensors joined along dimension `dim`; all other sizes must agree.",
  .args = {TENSORS("tensors"), DIM("dim", 0)},
  .cast = AMPL_CAST_WIDEST, .flags = AMPL_OP_PROMOTE, .infer = cat_infer, .backward = cat_backward);

static ampl_status stack_infer(ampl_ctx *ctx, const ampl_args *in, ampl_meta *out) {
  int64_t d = in->p[0].i, shape[AMPL_RANK_MAX];
  if (in->nt == 0) return ampl_error(ctx, AMPL_EARG, "an empty list of tensors");
  const ampl_tensor *first = in->t[0];
  if (first->ndim == AMPL_RANK_MAX)
    return ampl_error(ctx, AMPL_ESHAPE, "%s has as many dimensions as a tensor can have", ampl_tensor_text(ctx, first));
  for (int i = 1; i < in->nt; i++)
    if (!ampl_same_shape(in->t[i], first))
      return ampl_error(ctx, AMPL_ESHAPE, "tensor %lld is %s, the first %s: all must have one shape",
                        (long long)ampl_shown(ctx, i), ampl_shape_text(ctx, in->t[i]->ndim, in->t[i]->shape),
                        ampl_shape_text(ctx, first->ndim, first->shape));
  for (int k = 0; k <= first->ndim; k++) shape[k] = k < d ? first->shape[k] : k == d ? in->nt : first->shape[k - 1];
  return ampl_meta_shape(ctx, out, first->ndim + 1, shape);
}

static ampl_status stack_backward(ampl_grad *g) {
  for (int i = 0; i < g->nx; i++)
    if (g->need[i]) ampl_grad_set(g, i, EV(&g->e, select, T(g->dy[0]), P(g->p[0], V_I(i))));
  return AMPL_OK;
}

AMPL_OP(stack,
  .doc = "Tensors of one shape along a new dimension `dim`.",
  .args = {TENSORS("tensors"), DIM_NEW("dim", 0)},
  .cast = AMPL_CAST_WIDEST, .flags = AMPL_OP_PROMOTE, .infer = stack_infer, .backward = stack_backward);
