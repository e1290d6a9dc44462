/* permute.c: dimensions in another order: transpose, t, permute, movedim.  Views all. */
#include "view.h"

/* m's dimension d = the geometry's dimension order[d]. */
static void reorder(ampl_meta *m, const ampl_tensor *x, const int64_t *order) {
  view_of(m, x);
  for (int d = 0; d < x->ndim; d++) m->shape[d] = x->shape[order[d]], m->strides[d] = x->strides[order[d]];
}

/* The gradient of reordering by `order`: reordered back. */
static ampl_status reorder_back(ampl_grad *g, const int64_t *order) {
  int64_t back[AMPL_RANK_MAX];
  int n = g->xm[0].ndim;
  for (int d = 0; d < n; d++) back[order[d]] = d;
  ampl_grad_set(g, 0, EV(&g->e, permute, T(g->dy[0]), P(V_L(n, back))));
  return AMPL_OK;
}

static ampl_status transpose_infer(ampl_ctx *ctx, const ampl_args *in, ampl_meta *out) {
  const ampl_tensor *x = in->t[0];
  int64_t a = in->p[0].i, b = in->p[1].i;
  (void)ctx;
  view_of(out, x);
  if (x->ndim == 0) return AMPL_OK;
  out->shape[a] = x->shape[b], out->strides[a] = x->strides[b];
  out->shape[b] = x->shape[a], out->strides[b] = x->strides[a];
  return AMPL_OK;
}

static ampl_status transpose_backward(ampl_grad *g) {
  ampl_grad_set(g, 0, EV(&g->e, transpose, T(g->dy[0]), P(g->p[0], g->p[1])));
  return AMPL_OK;
}

AMPL_OP(transpose,
  .doc = "x with dimensions dim0 and dim1 swapped.  A view.",
  .args = {TENSOR_ONLY("x"), DIM_REQ("dim0"), DIM_REQ("dim1")},
  .flags = AMPL_OP_VIEW, .infer = transpose_infer, .backward = transpose_backward);

static ampl_status t_infer(ampl_ctx *ctx, const ampl_args *in, ampl_meta *out) {
  const ampl_tensor *x = in->t[0];
  if (x->ndim > 2)
    return ampl_error(ctx, AMPL_ESHAPE, "wants a matrix or a vector, got %s: use transpose(dim0, dim1)",
                      ampl_tensor_text(ctx, x));
  if (x->ndim < 2) view_of(out, x);
  else reorder(out, x, (const int64_t[]){1, 0});
  return AMPL_OK;
}

static ampl_status t_backward(ampl_grad *g) {
  ampl_grad_set(g, 0, EV(&g->e, t, T(g->dy[0])));
  return AMPL_OK;
}

AMPL_OP(t,
  .doc = "The transpose of a matrix; a vector as it is.  A view.",
  .args = {TENSOR_ONLY("x")},
  .flags = AMPL_OP_VIEW, .infer = t_infer, .backward = t_backward);

static ampl_status permute_infer(ampl_ctx *ctx, const ampl_args *in, ampl_meta *out) {
  const ampl_tensor *x = in->t[0];
  ampl_ints dims = in->p[0].l;
  if (dims.n != x->ndim)
    return ampl_error(ctx, AMPL_EARG, "%lld dims for %s: every dimension must be named once", (long long)dims.n,
                      ampl_tensor_text(ctx, x));
  reorder(out, x, dims.v);
  return AMPL_OK;
}

static ampl_status permute_backward(ampl_grad *g) { return reorder_back(g, g->p[0].l.v); }

AMPL_OP(permute,
  .doc = "x with its dimensions in the order `dims`.  A view.",
  .args = {TENSOR_ONLY("x"), DIMS_REQ("dims")},
  .flags = AMPL_OP_VIEW, .infer = permute_infer, .backward = permute_backward);

/* Dimension source[k] goes to destination[k]; the others keep their order. */
static ampl_status movedim_order(ampl_ctx *ctx, int ndim, ampl_ints source, ampl_ints destination, int64_t *order) {
  bool moved[AMPL_RANK_MAX] = {false}, taken[AMPL_RANK_MAX] = {false};
  if (source.n != destination.n)
    return ampl_error(ctx, AMPL_EARG, "%lld source and %lld destination dimensions", (long long)source.n,
                      (long long)destination.n);
  for (int k = 0; k < source.n && ndim > 0; k++) {
    moved[source.v[k]] = taken[destination.v[k]] = true;
    order[destination.v[k]] = source.v[k];
  }
  for (int d = 0, s = 0; d < ndim; d++) {
    if (taken[d]) continue;
    while (moved[s]) s++;
    order[d] = s++;
  }
  return AMPL_OK;
}

static ampl_status movedim_infer(ampl_ctx *ctx, const ampl_args *in, ampl_meta *out) {
  int64_t order[AMPL_RANK_MAX];
  AMPL_TRY(movedim_order(ctx, in->t[0]->ndim, in->p[0].l, in->p[1].l, order));
  reorder(out, in->t[0], order);
  return AMPL_OK;
}

static ampl_status movedim_backward(ampl_grad *g) {
  int64_t order[AMPL_RANK_MAX];
  AMPL_TRY(movedim_order(g->e.ctx, g->xm[0].ndim, g->p[0].l, g->p[1].l, order));
  return reorder_back(g, order);
}

/* Two lists side by side: loose integers would all be the first one's. */
#define SEVERAL(n) {.name = n, .kind = AMPL_ARG_DIMS, .flags = AMPL_REQUIRED, .doc = ""}

AMPL_OP(movedim,
  .doc = "x with the dimensions `source` moved to the places `destination`; the others keep their order.  A view.",
  .args = {TENSOR_ONLY("x"), SEVERAL("source"), SEVERAL("destination")},
  .flags = AMPL_OP_VIEW, .infer = movedim_infer, .backward = movedim_backward);
