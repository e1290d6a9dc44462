/* index.c: elements picked, replaced and added to along one dimension, by index tensors: index_select and index_add
 * take whole slices; gather, scatter, scatter_add and take_along_dim single elements. */
#include "positions.h"

/* ------------------------------------------------------------------------------------------------ slices ---------- */

static ampl_status want_vector(ampl_ctx *ctx, const ampl_tensor *index) {
  AMPL_TRY(want_positions(ctx, "index", index));
  if (index->ndim <= 1) return AMPL_OK;
  return ampl_error(ctx, AMPL_ESHAPE, "index is %s; it must be a vector", ampl_tensor_text(ctx, index));
}

static ampl_status index_select_infer(ampl_ctx *ctx, const ampl_args *in, ampl_meta *out) {
  const ampl_tensor *x = in->t[0], *index = in->t[1];
  int64_t shape[AMPL_RANK_MAX];
  AMPL_TRY(want_vector(ctx, index));
  if (x->ndim == 0 && index->numel != 1)
    return ampl_error(ctx, AMPL_ESHAPE, "%lld positions of a tensor of rank 0", (long long)index->numel);
  memcpy(shape, x->shape, sizeof shape);
  if (x->ndim > 0) shape[in->p[0].i] = index->numel;
  return ampl_meta_shape(ctx, out, x->ndim, shape);
}

static ampl_status index_select_back(ampl_grad *g) {
  const ampl_meta *x = &g->xm[0];
  ampl_grad_set(g, 0, EV(&g->e, index_select_backward, T(g->dy[0], g->x[1]), P(V_L(x->ndim, x->shape), g->p[0])));
  return AMPL_OK;
}

AMPL_OP(index_select,
  .doc = "The slices of dimension `dim` at the positions in `index`, in that order.",
  .args = {TENSOR_ONLY("x"), DIM_REQ("dim"), LABELS("index")},
  .save = AMPL_SAVE_X(1), .infer = index_select_infer, .backward = index_select_back);

static ampl_status shape_given(ampl_ctx *ctx, const ampl_args *in, ampl_meta *out) {
  return ampl_meta_shape(ctx, out, (int)in->p[0].l.n, in->p[0].l.v);
}

static ampl_status index_select_backward_back(ampl_grad *g) {
  ampl_grad_set(g, 0, EV(&g->e, index_select, T(g->dy[0], g->x[1]), P(g->p[1])));
  return AMPL_OK;
}

AMPL_OP(index_select_backward,
  .doc = "Zeros of `shape`, with the slices of dy added at the positions in `index`.",
  .args = {TENSOR_ONLY("dy"), LABELS("index"), SIZES_REQ("shape"), DIM_REQ("dim")},
  .flags = AMPL_OP_INTERNAL, .save = AMPL_SAVE_X(1), .infer = shape_given, .backward = index_select_backward_back);

static ampl_status index_add_infer(ampl_ctx *ctx, const ampl_args *in, ampl_meta *out) {
  const ampl_tensor *x = in->t[0], *index = in->t[1], *source = in->t[2];
  int64_t want[AMPL_RANK_MAX];
  AMPL_TRY(want_vector(ctx, index));
  AMPL_TRY(want_same_dtype(ctx, "source", source, x));
  memcpy(want, x->shape, sizeof want);
  if (x->ndim > 0) want[in->p[0].i] = index->numel;
  bool fits = x->ndim == 0
                  ? source->numel == 1 && index->numel == 1
                  : source->ndim == x->ndim && memcmp(want, source->shape, (size_t)x->ndim * sizeof *want) == 0;
  if (!fits)
    return ampl_error(ctx, AMPL_ESHAPE, "source is %s; x %s with %lld positions along dim %lld wants %s",
                      ampl_tensor_text(ctx, source), ampl_shape_text(ctx, x->ndim, x->shape), (long long)index->numel,
                      (long long)ampl_shown(ctx, in->p[0].i), ampl_shape_text(ctx, x->ndim, want));
  return ampl_meta_shape(ctx, out, x->ndim, x->shape);
}

static ampl_status index_add_back(ampl_grad *g) {
  if (g->need[0]) ampl_grad_set(g, 0, g->dy[0]);
  if (g->need[2]) {
    ampl_tensor *v = EV(&g->e, index_select, T(g->dy[0], g->x[1]), P(g->p[0]));
    if (g->p[1].f != 1) v = EV(&g->e, mul, T(v, ampl_eval_num(&g->e, g->p[1].f)));
    ampl_grad_set(g, 2, EV(&g->e, reshape, T(v), P(V_L(g->xm[2].ndim, g->xm[2].shape))));
  }
  return AMPL_OK;
}

AMPL_OP(index_add,
  .doc = "x with alpha * source added, slice by slice, at the positions in `index` of dimension `dim`.  Sums are in a "
         "fixed order.",
  .args = {TENSOR_ONLY("x"), DIM_REQ("dim"), LABELS("index"), TENSOR_ONLY("source"), FLOAT("alpha", 1)},
  .cast = AMPL_CAST_WIDEST, .flags = AMPL_OP_INPLACE, .save = AMPL_SAVE_X(1), .infer = index_add_infer,
  .backward = index_add_back);

/* ------------------------------------------------------------------------------------------------ elements -------- */

/* `index` has x's rank and, but for `dim` (and for `all`, there too), none of its sizes is larger than `in`'s. */
static ampl_status want_inside(ampl_ctx *ctx, const ampl_tensor *index, const char *name, const ampl_tensor *in,
                               int64_t dim, bool all) {
  bool fits = index->ndim == in->ndim || (index->ndim <= 1 && in->ndim <= 1);
  for (int d = 0; fits && d < index->ndim && in->ndim > 0; d++)
    fits = (d == dim && !all) || index->shape[d] <= in->shape[d];
  if (fits) return AMPL_OK;
  return ampl_error(ctx, AMPL_ESHAPE, "index is %s, %s is %s: it must have the same rank and fit inside%s",
                    ampl_shape_text(ctx, index->ndim, index->shape), name, ampl_shape_text(ctx, in->ndim, in->shape),
                    all ? "" : " but along dim");
}

static ampl_status gather_infer(ampl_ctx *ctx, const ampl_args *in, ampl_meta *out) {
  AMPL_TRY(want_positions(ctx, "index", in->t[1]));
  if (in->t[1]->numel > 0) AMPL_TRY(want_inside(ctx, in->t[1], "x", in->t[0], in->p[0].i, false));
  return ampl_meta_shape(ctx, out, in->t[1]->ndim, in->t[1]->shape);
}

static ampl_status gather_back(ampl_grad *g) {
  const ampl_meta *x = &g->xm[0];
  ampl_grad_set(g, 0, EV(&g->e, gather_backward, T(g->dy[0], g->x[1]), P(V_L(x->ndim, x->shape), g->p[0])));
  return AMPL_OK;
}

AMPL_OP(gather,
        .doc = "The elements of x at the positions in `index` along `dim`: y[i][j] = x[index[i][j]][j] for the first "
               "dimension.",
        .args = {TENSOR_ONLY("x"), DIM_REQ("dim"), LABELS("index")}, .save = AMPL_SAVE_X(1), .infer = gather_infer,
        .backward = gather_back);

static ampl_status gather_backward_back(ampl_grad *g) {
  ampl_grad_set(g, 0, EV(&g->e, gather, T(g->dy[0], g->x[1]), P(g->p[1])));
  return AMPL_OK;
}

AMPL_OP(gather_backward,
  .doc = "Zeros of `shape`, with dy's elements added at the positions in `index` along `dim`.",
  .args = {TENSOR_ONLY("dy"), LABELS("index"), SIZES_REQ("shape"), DIM_REQ("dim")},
  .flags = AMPL_OP_INTERNAL, .save = AMPL_SAVE_X(1), .infer = shape_given, .backward = gather_backward_back);

static ampl_status scatter_infer(ampl_ctx *ctx, const ampl_args *in, ampl_meta *out) {
  const ampl_tensor *x = in->t[0], *index = in->t[1], *src = in->t[2];
  AMPL_TRY(want_positions(ctx, "index", index));
  AMPL_TRY(want_same_dtype(ctx, "src", src, x));
  if (index->numel > 0) {
    AMPL_TRY(want_inside(ctx, index, "x", x, in->p[0].i, false));
    if (!(src->flags & AMPL_T_NUMBER)) AMPL_TRY(want_inside(ctx, index, "src", src, in->p[0].i, true));
  }
  return ampl_meta_shape(ctx, out, x->ndim, x->shape);
}

/* The gradient of src: what stands where it was written; nothing where index does not reach. */
static ampl_tensor *source_gradient(ampl_grad *g) {
  const ampl_meta *src = &g->xm[2], *index = &g->xm[1];
  ampl_tensor *v = EV(&g->e, gather, T(g->dy[0], g->x[1]), P(g->p[0]));
  int64_t border[2 * AMPL_RANK_MAX] = {0};
  bool larger = false;
  if (src->ndim != index->ndim) return EV(&g->e, reshape, T(v), P(V_L(src->ndim, src->shape)));
  for (int d = 0; d < src->ndim; d++) {
    border[2 * (src->ndim - 1 - d) + 1] = src->shape[d] - index->shape[d];
    larger |= src->shape[d] != index->shape[d];
  }
  return larger ? EV(&g->e, pad, T(v), P(V_L(2 * src->ndim, border))) : v;
}

static ampl_status scatter_back(ampl_grad *g) {
  if (g->need[0]) ampl_grad_set(g, 0, EV(&g->e, scatter, T(g->dy[0], g->x[1], ampl_eval_num(&g->e, 0)), P(g->p[0])));
  if (g->need[2]) ampl_grad_set(g, 2, source_gradient(g));
  return AMPL_OK;
}

AMPL_OP(scatter,
        .doc = "x with the elements of src (or one number) at the positions in `index` along `dim`; of several for "
               "one place, the last one stays.",
        .args = {TENSOR_ONLY("x"), DIM_REQ("dim"), LABELS("index"), TENSOR("src")}, .cast = AMPL_CAST_WIDEST,
        .flags = AMPL_OP_INPLACE, .save = AMPL_SAVE_X(1), .infer = scatter_infer, .backward = scatter_back);

static ampl_status scatter_add_back(ampl_grad *g) {
  if (g->need[0]) ampl_grad_set(g, 0, g->dy[0]);
  if (g->need[2]) ampl_grad_set(g, 2, source_gradient(g));
  return AMPL_OK;
}

AMPL_OP(scatter_add,
  .doc = "x with the elements of src added at the positions in `index` along `dim`.  Sums are in a fixed order.",
  .args = {TENSOR_ONLY("x"), DIM_REQ("dim"), LABELS("index"), TENSOR_ONLY("src")},
  .cast = AMPL_CAST_WIDEST, .flags = AMPL_OP_INPLACE, .save = AMPL_SAVE_X(1), .infer = scatter_infer,
  .backward = scatter_add_back);

/* Without dim both are taken as one row; with it they broadcast against each other in the other dimensions. */
static ampl_status take_along_dim_compose(ampl_eval *e, const ampl_args *in, ampl_tensor **out) {
  ampl_tensor *x = in->t[0], *index = in->t[1];
  int64_t d = in->p[0].i, shape[AMPL_RANK_MAX];
  AMPL_TRY(want_positions(e->ctx, "indices", index));
  if (d == AMPL_ABSENT) {
    const int64_t row = -1;
    x = EV(e, reshape, T(x), P(V_L(1, &row)));
    index = EV(e, reshape, T(index), P(V_L(1, &row)));
    return ampl_eval_return(e, EV(e, gather, T(x, index), P(V_I(0))), out);
  }
  if (x->ndim != index->ndim)
    return ampl_error(e->ctx, AMPL_ESHAPE, "indices are %s, x is %s: with a dim they must have the same rank",
                      ampl_shape_text(e->ctx, index->ndim, index->shape), ampl_shape_text(e->ctx, x->ndim, x->shape));
  for (int k = 0; k < x->ndim; k++) {
    int64_t a = x->shape[k], b = index->shape[k];
    if (k != d && a != b && a != 1 && b != 1)
      return ampl_error(e->ctx, AMPL_ESHAPE, "indices are %s, x is %s: sizes must agree, or be 1, but along dim",
                        ampl_shape_text(e->ctx, index->ndim, index->shape), ampl_shape_text(e->ctx, x->ndim, x->shape));
    shape[k] = k == d ? -1 : a == 1 ? b : a;
  }
  x = EV(e, expand, T(x), P(V_L(x->ndim, shape)));
  index = EV(e, expand, T(index), P(V_L(index->ndim, shape)));
  return ampl_eval_return(e, EV(e, gather, T(x, index), P(V_I(d))), out);
}

AMPL_OP(
    take_along_dim,
    .doc =
        "gather with broadcasting; without `dim`, on x and indices as one row each.  Takes what argsort or argmax with "
        "keepdim return.",
    .args = {TENSOR_ONLY("x"), LABELS("indices"), DIM_OPT("dim")}, .compose = take_along_dim_compose);
