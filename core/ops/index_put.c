/* index_put.c: indexing with a list of index tensors, one for each of the first dimensions, some absent, some masks:
 * index reads, index_put writes.
 *
 * The list becomes one tensor of flat positions within the indexed dimensions (index_positions: masks opened, index
 * tensors broadcast); take_at and put_at read and write there, and are each other's gradients. */
#include "positions.h"

/* The dimensions of x that the list names: an index tensor one, a mask of rank k its next k.  ESHAPE. */
static ampl_status indexed_dims(ampl_ctx *ctx, const ampl_tensor *x, ampl_tensor *const *index, int n, int64_t *dims,
                                int *ndims) {
  int d = 0;
  *ndims = 0;
  for (int i = 0; i < n; i++) {
    const ampl_tensor *v = index[i];
    int takes = v && v->dtype == AMPL_BOOL ? v->ndim : 1;
    if (v && v->dtype != AMPL_BOOL) AMPL_TRY(want_positions(ctx, "an index", v));
    if (d + takes > x->ndim)
      return ampl_error(ctx, AMPL_ESHAPE, "indices for %d or more dimensions, x is %s", d + takes,
                        ampl_tensor_text(ctx, x));
    for (int k = 0; k < takes; k++, d++) {
      if (!v) continue;
      dims[(*ndims)++] = d;
      if (v->dtype == AMPL_BOOL && v->shape[k] != x->shape[d])
        return ampl_error(ctx, AMPL_ESHAPE, "the mask %s does not fit x %s at dimension %lld",
                          ampl_shape_text(ctx, v->ndim, v->shape), ampl_shape_text(ctx, x->ndim, x->shape),
                          (long long)ampl_shown(ctx, d));
    }
  }
  return AMPL_OK;
}

AMPL_OP(index_positions,
  .doc = "Flat positions, from 0, within the dimensions of x that `indices` name.",
  .args = {TENSOR_ONLY("x"), TENSORS_OR_NONE("indices")},
  .flags = AMPL_OP_INTERNAL | AMPL_OP_NO_GRAD | AMPL_OP_DYNAMIC);

/* ------------------------------------------------------------------------------------------------ at positions ---- */

/* What x at `positions` looks like: their shape in place of the indexed dimensions where these are neighbours, else in
 * front. */
static ampl_status taken_shape(ampl_ctx *ctx, int ndim, const int64_t *x, ampl_ints dims, int pdim, const int64_t *p,
                               ampl_meta *out) {
  int64_t shape[2 * AMPL_RANK_MAX];
  int n = 0;
  bool neighbours = dims.n > 0 && dims.v[dims.n - 1] - dims.v[0] == dims.n - 1;
  int front = neighbours ? (int)dims.v[0] : 0;
  for (int d = 0, k = 0; d <= ndim; d++) {
    if (d == front)
      for (int i = 0; i < pdim; i++) shape[n++] = p[i];
    if (d == ndim) break;
    if (k < dims.n && dims.v[k] == d) k++;
    else shape[n++] = x[d];
  }
  return ampl_meta_shape(ctx, out, n, shape);
}

static ampl_status take_at_infer(ampl_ctx *ctx, const ampl_args *in, ampl_meta *out) {
  const ampl_tensor *x = in->t[0], *p = in->t[1];
  return taken_shape(ctx, x->ndim, x->shape, in->p[0].l, p->ndim, p->shape, out);
}

static ampl_status take_at_back(ampl_grad *g) {
  const ampl_meta *x = &g->xm[0];
  ampl_grad_set(g, 0, EV(&g->e, take_at_backward, T(g->dy[0], g->x[1]), P(V_L(x->ndim, x->shape), g->p[0])));
  return AMPL_OK;
}

#define POSITIONS MASK("positions")

AMPL_OP(take_at,
  .doc = "x at flat positions within its dimensions `dims`.",
  .args = {TENSOR_ONLY("x"), POSITIONS, SIZES_REQ("dims")},
  .flags = AMPL_OP_INTERNAL, .save = AMPL_SAVE_X(1), .infer = take_at_infer, .backward = take_at_back);

static ampl_status take_at_backward_infer(ampl_ctx *ctx, const ampl_args *in, ampl_meta *out) {
  return ampl_meta_shape(ctx, out, (int)in->p[0].l.n, in->p[0].l.v);
}

static ampl_status take_at_backward_back(ampl_grad *g) {
  ampl_grad_set(g, 0, EV(&g->e, take_at, T(g->dy[0], g->x[1]), P(g->p[1])));
  return AMPL_OK;
}

AMPL_OP(take_at_backward, .doc = "Zeros of `shape`, with dy added at flat positions within the dimensions `dims`.",
        .args = {TENSOR_ONLY("dy"), POSITIONS, SIZES_REQ("shape"), SIZES_REQ("dims")}, .flags = AMPL_OP_INTERNAL,
        .save = AMPL_SAVE_X(1), .infer = take_at_backward_infer, .backward = take_at_backward_back);

static ampl_status put_at_infer(ampl_ctx *ctx, const ampl_args *in, ampl_meta *out) {
  const ampl_tensor *x = in->t[0], *p = in->t[1], *values = in->t[2];
  ampl_meta taken;
  AMPL_TRY(want_same_dtype(ctx, "values", values, x));
  AMPL_TRY(taken_shape(ctx, x->ndim, x->shape, in->p[0].l, p->ndim, p->shape, &taken));
  bool fits = values->ndim <= taken.ndim;
  for (int d = 0; fits && d < values->ndim; d++)
    fits = values->shape[d] == 1 || values->shape[d] == taken.shape[d + taken.ndim - values->ndim];
  if (!fits)
    return ampl_error(ctx, AMPL_ESHAPE, "values %s do not broadcast to the indexed part %s",
                      ampl_shape_text(ctx, values->ndim, values->shape), ampl_shape_text(ctx, taken.ndim, taken.shape));
  return ampl_meta_shape(ctx, out, x->ndim, x->shape);
}

static ampl_status put_at_back(ampl_grad *g) {
  bool accumulate = g->p[1].i;
  if (g->need[0])
    ampl_grad_set(g, 0, accumulate ? g->dy[0]
                                   : EV(&g->e, put_at, T(g->dy[0], g->x[1], ampl_eval_num(&g->e, 0)), P(g->p[0])));
  if (g->need[2]) {
    ampl_tensor *v = EV(&g->e, take_at, T(g->dy[0], g->x[1]), P(g->p[0]));
    ampl_grad_set(g, 2, ampl_eval_sum_to(&g->e, v, g->xm[2].ndim, g->xm[2].shape));
  }
  return AMPL_OK;
}

AMPL_OP(put_at,
  .doc = "x with values (broadcast) written, or added, at flat positions within its dimensions `dims`.",
  .args = {TENSOR_ONLY("x"), POSITIONS, TENSOR("values"), SIZES_REQ("dims"), BOOL("accumulate", false)},
  .flags = AMPL_OP_INTERNAL, .save = AMPL_SAVE_X(1), .infer = put_at_infer, .backward = put_at_back);

/* ------------------------------------------------------------------------------------------------ by lists -------- */

/* The list's flat positions and dimensions.  `list`: x in front of the index tensors. */
static ampl_tensor *positions_of(ampl_eval *e, ampl_tensor *x, ampl_tensor *const *index, int n, int64_t *dims,
                                 int *ndims) {
  ampl_tensor *list[AMPL_RANK_MAX + 1];
  if (n == 0 || n > AMPL_RANK_MAX) {
    e->status = ampl_error(e->ctx, AMPL_EARG, "%d indices for x %s", n, ampl_shape_text(e->ctx, x->ndim, x->shape));
    return NULL;
  }
  e->status = indexed_dims(e->ctx, x, index, n, dims, ndims);
  list[0] = x;
  memcpy(list + 1, index, (size_t)n * sizeof *list);
  return ampl_eval_op(e, OP(index_positions), list, n + 1, NULL, 0);
}

static ampl_status index_compose(ampl_eval *e, const ampl_args *in, ampl_tensor **out) {
  int64_t dims[AMPL_RANK_MAX];
  int ndims;
  ampl_tensor *p = positions_of(e, in->t[0], in->t + 1, in->nt - 1, dims, &ndims);
  if (!p) return e->status;
  return ampl_eval_return(e, EV(e, take_at, T(in->t[0], p), P(V_L(ndims, dims))), out);
}

AMPL_OP(
    index,
    .doc =
        "x at the positions that a list of index tensors and masks picks, one for each of the first dimensions (a mask "
        "stands for as many as it has): what x[idx] and x[mask] read.",
    .args = {TENSOR_ONLY("x"), TENSORS_OR_NONE("indices")}, .flags = AMPL_OP_METHOD_ONLY, .compose = index_compose);

static ampl_status index_put_compose(ampl_eval *e, const ampl_args *in, ampl_tensor **out) {
  int64_t dims[AMPL_RANK_MAX];
  int ndims;
  ampl_tensor *p = positions_of(e, in->t[0], in->t + 2, in->nt - 2, dims, &ndims);
  if (!p) return e->status;
  return ampl_eval_return(e, EV(e, put_at, T(in->t[0], p, in->t[1]), P(V_L(ndims, dims), in->p[0])), out);
}

AMPL_OP(index_put,
  .doc = "x with `values` (broadcast) at the positions that a list of index tensors and masks picks, as x:index does; "
         "added to what is there with `accumulate`, else of several for one place the last one stays.",
  .args = {TENSOR_ONLY("x"), TENSORS_OR_NONE("indices"), TENSOR("values"), BOOL("accumulate", false)},
  .cast = AMPL_CAST_WIDEST, .flags = AMPL_OP_INPLACE, .compose = index_put_compose);
