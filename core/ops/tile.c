/* tile.c: a tensor several times over: tile repeats it as a whole, repeat_interleave every position. */
#include "op.h"

#include <string.h>

static ampl_status tile_infer(ampl_ctx *ctx, const ampl_args *in, ampl_meta *out) {
  const ampl_tensor *x = in->t[0];
  ampl_ints times = in->p[0].l;
  int64_t shape[AMPL_RANK_MAX];
  int nd = times.n > x->ndim ? (int)times.n : x->ndim;
  if (nd > AMPL_RANK_MAX)
    return ampl_error(ctx, AMPL_ESHAPE, "%d dimensions; a tensor has at most %d", nd, AMPL_RANK_MAX);
  for (int d = 0; d < nd; d++) {
    int of_x = d - (nd - x->ndim), of_times = d - (nd - (int)times.n);
    int64_t n = of_times < 0 ? 1 : times.v[of_times], size = of_x < 0 ? 1 : x->shape[of_x];
    if (n < 0) return ampl_error(ctx, AMPL_EVALUE, "%lld repetitions", (long long)n);
    if (__builtin_mul_overflow(n, size, &shape[d]))
      return ampl_error(ctx, AMPL_ESHAPE, "%lld repetitions are too many", (long long)n);
  }
  return ampl_meta_shape(ctx, out, nd, shape);
}

/* Dimension by dimension: (before, times, size, behind) summed over times. */
static ampl_status tile_backward(ampl_grad *g) {
  const ampl_meta *x = &g->xm[0], *y = &g->ym[0];
  ampl_tensor *v = g->dy[0];
  int64_t before = 1, behind[AMPL_RANK_MAX + 1] = {0};
  behind[y->ndim] = 1;
  for (int d = y->ndim - 1; d >= 0; d--) behind[d] = behind[d + 1] * y->shape[d];
  for (int d = 0; d < y->ndim; d++) {
    int of_x = d - (y->ndim - x->ndim);
    int64_t size = of_x < 0 ? 1 : x->shape[of_x], times = size == 0 ? 1 : y->shape[d] / size;
    if (times != 1) {
      v = EV(&g->e, reshape, T(v), P(V_L(4, ((int64_t[]){before, times, size, behind[d + 1]}))));
      v = EV(&g->e, sum, T(v), P(V_L(1, ((int64_t[]){1})), V_I(0)));
    }
    before *= size;
  }
  ampl_grad_set(g, 0, EV(&g->e, reshape, T(v), P(V_L(x->ndim, x->shape))));
  return AMPL_OK;
}

AMPL_OP(tile,
  .doc = "x repeated dims[k] times along each dimension, the last numbers for the last dimensions.",
  .args = {TENSOR_ONLY("x"), SHAPE_REQ("dims", "how many times, by dimension")},
  .infer = tile_infer, .backward = tile_backward);

/* Every position `n` times: a new dimension, expanded and merged. */
static ampl_tensor *repeat_evenly(ampl_eval *e, ampl_tensor *x, int d, int64_t n) {
  int64_t size[AMPL_RANK_MAX + 1], merged[AMPL_RANK_MAX];
  memcpy(merged, x->shape, sizeof merged);
  for (int k = 0; k <= x->ndim; k++) size[k] = k == d + 1 ? n : -1;
  if (__builtin_mul_overflow(merged[d], n, &merged[d])) {
    e->status = ampl_error(e->ctx, AMPL_ESHAPE, "repeats is %lld, which is too many for %s", (long long)n,
                           ampl_tensor_text(e->ctx, x));
    return NULL;
  }
  ampl_tensor *y = EV(e, unsqueeze, T(x), P(V_I(d + 1)));
  y = EV(e, expand, T(y), P(V_L(x->ndim + 1, size)));
  return EV(e, reshape, T(y), P(V_L(x->ndim, merged)));
}

static ampl_status repeat_interleave_compose(ampl_eval *e, const ampl_args *in, ampl_tensor **out) {
  ampl_tensor *x = in->t[0], *repeats = in->t[1], *y;
  int64_t d = in->p[0].i;
  if (d == AMPL_ABSENT || x->ndim == 0) {
    d = 0;
    x = EV(e, reshape, T(x), P(V_L(1, (int64_t[]){-1})));
    if (!x) return e->status;
  }
  if (repeats->dtype == AMPL_BOOL || (ampl_is_float(repeats) && !(repeats->flags & AMPL_T_NUMBER)))
    return ampl_error(e->ctx, AMPL_EDTYPE, "repeats is %s; it must hold integers", ampl_tensor_text(e->ctx, repeats));
  if (repeats->numel == 1) {
    double n;
    AMPL_TRY(ampl_item(repeats, &n));
    if (!(n >= 0 && n < 0x1p63) || n != (double)(int64_t)n) return ampl_error(e->ctx, AMPL_EVALUE, "repeats is %g", n);
    y = repeat_evenly(e, x, (int)d, (int64_t)n);
  } else {
    if (repeats->ndim != 1 || repeats->numel != x->shape[d])
      return ampl_error(e->ctx, AMPL_ESHAPE, "repeats is %s; dimension %lld of %s wants {%lld}",
                        ampl_tensor_text(e->ctx, repeats), (long long)ampl_shown(e->ctx, d),
                        ampl_tensor_text(e->ctx, x), (long long)x->shape[d]);
    y = EV(e, index_select, T(x, EV(e, repeat_positions, T(repeats))), P(V_I(d)));
  }
  return ampl_eval_return(e, y, out);
}

AMPL_OP(repeat_interleave,
        .doc = "Every position of dimension `dim` (without it: of x as one row) repeated `repeats` times: a number, "
               "or one for each position.",
        .args = {TENSOR_ONLY("x"), TENSOR("repeats"), DIM_OPT("dim")}, .compose = repeat_interleave_compose);

AMPL_OP(repeat_positions,
  .doc = "Position i as often as repeats[i] says, in order.",
  .args = {TENSOR_ONLY("repeats")},
  .flags = AMPL_OP_INTERNAL | AMPL_OP_NO_GRAD | AMPL_OP_DYNAMIC);
