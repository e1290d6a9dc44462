/* view.c: the same elements in the same order under another shape: view, reshape, flatten, unflatten, squeeze,
 * unsqueeze. */
#include "view.h"

/* The shape that `l` asks for, one -1 worked out from the `numel` elements there are. */
static ampl_status wanted_shape(ampl_ctx *ctx, int64_t numel, ampl_ints l, const char *what, int64_t *shape) {
  int64_t known = 1, reach = 1;         /* reach: without the sizes that are 0 */
  int open = -1;
  if (l.n > AMPL_RANK_MAX)
    return ampl_error(ctx, AMPL_ESHAPE, "%lld dimensions; a tensor has at most %d", (long long)l.n, AMPL_RANK_MAX);
  for (int d = 0; d < l.n; d++) {
    shape[d] = l.v[d];
    if (shape[d] == -1 && open < 0) {
      open = d;
    } else if (shape[d] < 0) {
      return ampl_error(ctx, AMPL_ESHAPE, "%s is no shape: sizes are 0 or more, and one may be -1 (worked out)",
                        ampl_shape_text(ctx, (int)l.n, l.v));
    } else if (__builtin_mul_overflow(reach, shape[d] > 0 ? shape[d] : 1, &reach) || reach > AMPL_NUMEL_MAX) {
      return ampl_error(ctx, AMPL_ESHAPE, "%s has too many elements", ampl_shape_text(ctx, (int)l.n, l.v));
    } else {
      known *= shape[d];
    }
  }
  if (open >= 0 && known == 0)
    return ampl_error(ctx, AMPL_ESHAPE, "the -1 of %s could be any size, as the others have no elements",
                      ampl_shape_text(ctx, (int)l.n, l.v));
  if (open >= 0) {
    shape[open] = numel / known;
    known *= shape[open];
  }
  if (known != numel)
    return ampl_error(ctx, AMPL_ESHAPE, "%s holds %lld elements, not the %lld of %s", what, (long long)numel,
                      (long long)known, ampl_shape_text(ctx, (int)l.n, l.v));
  return AMPL_OK;
}

/* The strides under which `shape` shows x's elements in x's order; false when there are none. */
static bool strides_for(const ampl_tensor *x, int ndim, const int64_t *shape, int64_t *strides) {
  int64_t size[AMPL_RANK_MAX], step[AMPL_RANK_MAX], used = 1, left;
  int runs = 0;
  if (x->numel == 0) {
    row_major(ndim, shape, strides);
    return true;
  }
  for (int d = 0; d < x->ndim; d++) {           /* x as runs of evenly spaced elements */
    if (x->shape[d] == 1) continue;
    if (runs > 0 && step[runs - 1] == x->strides[d] * x->shape[d]) {
      size[runs - 1] *= x->shape[d];
      step[runs - 1] = x->strides[d];
    } else {
      size[runs] = x->shape[d];
      step[runs++] = x->strides[d];
    }
  }
  if (runs == 0) size[0] = step[0] = 1, runs = 1;
  left = size[--runs];
  for (int d = ndim - 1; d >= 0; d--) {         /* every new dimension lies within one run */
    if (shape[d] > 1 && left == 1) left = size[--runs], used = 1;
    if (left % shape[d] != 0) return false;
    strides[d] = step[runs] * used;
    used *= shape[d];
    left /= shape[d];
  }
  return true;
}

static ampl_status view_infer(ampl_ctx *ctx, const ampl_args *in, ampl_meta *out) {
  const ampl_tensor *x = in->t[0];
  ampl_ints l = in->p[0].l;
  out->layout = AMPL_LAYOUT_STRIDED;
  out->offset = 0;
  out->ndim = (int)l.n;
  AMPL_TRY(wanted_shape(ctx, x->numel, l, ampl_tensor_text(ctx, x), out->shape));
  if (strides_for(x, out->ndim, out->shape, out->strides)) return AMPL_OK;
  return ampl_error(ctx, AMPL_ESHAPE, "%s with strides %s cannot be seen as %s without a copy: use reshape",
                    ampl_tensor_text(ctx, x), ampl_shape_text(ctx, x->ndim, x->strides),
                    ampl_shape_text(ctx, out->ndim, out->shape));
}

/* The gradient in the operand's shape: of all ops here. */
static ampl_status back_to_shape(ampl_grad *g) {
  const ampl_meta *x = &g->xm[0];
  ampl_grad_set(g, 0, EV(&g->e, reshape, T(g->dy[0]), P(V_L(x->ndim, x->shape))));
  return AMPL_OK;
}

AMPL_OP(
    view,
    .doc =
        "x's elements under another shape, sharing its memory; one size may be -1.  Where x's strides do not allow it, "
        "an error says so: reshape copies.",
    .args = {TENSOR_ONLY("x"), SHAPE_REQ("size", "the new shape")}, .flags = AMPL_OP_VIEW, .infer = view_infer,
    .backward = back_to_shape);

/* `shape` must have x's number of elements. */
static ampl_status reshaped(ampl_eval *e, ampl_tensor *x, int ndim, const int64_t *shape, ampl_tensor **out) {
  int64_t strides[AMPL_RANK_MAX];
  if (!strides_for(x, ndim, shape, strides)) x = EV(e, contiguous, T(x));
  return ampl_eval_return(e, EV(e, view, T(x), P(V_L(ndim, shape))), out);
}

static ampl_status reshape_compose(ampl_eval *e, const ampl_args *in, ampl_tensor **out) {
  int64_t shape[AMPL_RANK_MAX];
  ampl_tensor *x = in->t[0];
  AMPL_TRY(wanted_shape(e->ctx, x->numel, in->p[0].l, ampl_tensor_text(e->ctx, x), shape));
  return reshaped(e, x, (int)in->p[0].l.n, shape, out);
}

AMPL_OP(reshape,
  .doc = "x's elements under another shape; one size may be -1.  A view where x's strides allow it, else a copy.",
  .args = {TENSOR_ONLY("x"), SHAPE_REQ("shape", "the new shape")},
  .compose = reshape_compose);

static ampl_status flatten_compose(ampl_eval *e, const ampl_args *in, ampl_tensor **out) {
  ampl_tensor *x = in->t[0];
  int from = (int)in->p[0].i, to = (int)in->p[1].i, n = 0;
  int64_t shape[AMPL_RANK_MAX], merged = 1;
  if (x->ndim == 0) return reshaped(e, x, 1, &merged, out);
  if (from > to)
    return ampl_error(e->ctx, AMPL_EARG, "start_dim %lld is behind end_dim %lld", (long long)ampl_shown(e->ctx, from),
                      (long long)ampl_shown(e->ctx, to));
  for (int d = 0; d < from; d++) shape[n++] = x->shape[d];
  for (int d = from; d <= to; d++) merged *= x->shape[d];
  shape[n++] = merged;
  for (int d = to + 1; d < x->ndim; d++) shape[n++] = x->shape[d];
  return reshaped(e, x, n, shape, out);
}

AMPL_OP(flatten,
  .doc = "Dimensions start_dim to end_dim made one.  A view where x's strides allow it, else a copy.",
  .args = {TENSOR_ONLY("x"), DIM("start_dim", 0), DIM("end_dim", -1)},
  .compose = flatten_compose);

static ampl_status unflatten_infer(ampl_ctx *ctx, const ampl_args *in, ampl_meta *out) {
  const ampl_tensor *x = in->t[0];
  int64_t d = in->p[0].i, shape[AMPL_RANK_MAX];
  ampl_ints l = in->p[1].l;
  if (x->ndim == 0) return ampl_error(ctx, AMPL_ESHAPE, "a tensor of rank 0 has no dimension to unflatten");
  if (l.n == 0) return ampl_error(ctx, AMPL_EARG, "sizes is empty");
  AMPL_TRY(wanted_shape(ctx, x->shape[d], l, "the dimension", shape));
  if (x->ndim - 1 + l.n > AMPL_RANK_MAX)
    return ampl_error(ctx, AMPL_ESHAPE, "%lld dimensions; a tensor has at most %d", (long long)(x->ndim - 1 + l.n),
                      AMPL_RANK_MAX);
  view_of(out, x);
  int64_t stride = x->strides[d];
  view_drop(out, (int)d);
  for (int k = (int)l.n - 1; k >= 0; k--) {
    view_insert(out, (int)d, shape[k], stride);
    if (x->shape[d] > 0) stride *= shape[k];    /* of an empty dimension they mean nothing, and may be too large */
  }
  return AMPL_OK;
}

AMPL_OP(unflatten,
  .doc = "Dimension `dim` seen as several, of the given sizes; one size may be -1.  A view.",
  .args = {TENSOR_ONLY("x"), DIM_REQ("dim"), SIZES_REQ("sizes", "their product is the size of `dim`")},
  .flags = AMPL_OP_VIEW, .infer = unflatten_infer, .backward = back_to_shape);

static ampl_status squeeze_infer(ampl_ctx *ctx, const ampl_args *in, ampl_meta *out) {
  const ampl_tensor *x = in->t[0];
  ampl_ints dims = in->p[0].l;
  (void)ctx;
  view_of(out, x);
  for (int d = x->ndim - 1; d >= 0; d--) {
    bool drop = !dims.v;                        /* none given; an empty list names none */
    for (int k = 0; k < dims.n; k++) drop |= dims.v[k] == d;
    if (drop && x->shape[d] == 1) view_drop(out, d);
  }
  return AMPL_OK;
}

AMPL_OP(squeeze,
  .doc = "Without the dimensions of size 1: all of them, or those of `dim` that have size 1.  A view.",
  .args = {TENSOR_ONLY("x"), DIMS("dim")},
  .flags = AMPL_OP_VIEW, .infer = squeeze_infer, .backward = back_to_shape);

static ampl_status unsqueeze_infer(ampl_ctx *ctx, const ampl_args *in, ampl_meta *out) {
  const ampl_tensor *x = in->t[0];
  int d = (int)in->p[0].i;
  if (x->ndim == AMPL_RANK_MAX)
    return ampl_error(ctx, AMPL_ESHAPE, "%s has as many dimensions as a tensor can have", ampl_tensor_text(ctx, x));
  view_of(out, x);
  view_insert(out, d, 1, d < x->ndim ? x->shape[d] * x->strides[d] : 1);
  return AMPL_OK;
}

AMPL_OP(unsqueeze,
  .doc = "x with a dimension of size 1 more, at `dim`.  A view.",
  .args = {TENSOR_ONLY("x"), DIM_NEW_REQ("dim")},
  .flags = AMPL_OP_VIEW, .infer = unsqueeze_infer, .backward = back_to_shape);
