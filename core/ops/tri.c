/* tri.c: the triangles of matrices (tril, triu) and their diagonals (diag). */
#include "op.h"

static ampl_status tri_infer(ampl_ctx *ctx, const ampl_args *in, ampl_meta *out) {
  const ampl_tensor *x = in->t[0];
  if (x->ndim < 2) return ampl_error(ctx, AMPL_ESHAPE, "wants matrices, got %s", ampl_tensor_text(ctx, x));
  return ampl_meta_shape(ctx, out, x->ndim, x->shape);
}

static ampl_status tril_backward(ampl_grad *g) {
  ampl_grad_set(g, 0, EV(&g->e, tril, T(g->dy[0]), P(g->p[0])));
  return AMPL_OK;
}

AMPL_OP(tril,
        .doc = "The lower triangle of a matrix (the last two dimensions), up to a diagonal: 0 the main one, 1 the one "
               "above; 0 elsewhere.",
        .args = {TENSOR_ONLY("x"), INT("diagonal", 0)}, .flags = AMPL_OP_INPLACE | AMPL_OP_DENSE, .infer = tri_infer,
        .backward = tril_backward);

static ampl_status triu_backward(ampl_grad *g) {
  ampl_grad_set(g, 0, EV(&g->e, triu, T(g->dy[0]), P(g->p[0])));
  return AMPL_OK;
}

AMPL_OP(triu,
        .doc = "The upper triangle of a matrix (the last two dimensions), from a diagonal on: 0 the main one, 1 the "
               "one above; 0 elsewhere.",
        .args = {TENSOR_ONLY("x"), INT("diagonal", 0)}, .flags = AMPL_OP_INPLACE | AMPL_OP_DENSE, .infer = tri_infer,
        .backward = triu_backward);

/* Where diagonal k of a rows x columns matrix starts, and its length. */
static int64_t diagonal_of(int64_t rows, int64_t columns, int64_t k, int64_t *row, int64_t *column) {
  *row = k < 0 ? -k : 0;
  *column = k > 0 ? k : 0;
  int64_t n = rows - *row < columns - *column ? rows - *row : columns - *column;
  return n > 0 ? n : 0;
}

static ampl_status diag_infer(ampl_ctx *ctx, const ampl_args *in, ampl_meta *out) {
  const ampl_tensor *x = in->t[0];
  int64_t k = in->p[0].i, row, column, side;
  if (x->ndim == 1) {
    if (k == INT64_MIN || __builtin_add_overflow(x->shape[0], k < 0 ? -k : k, &side))
      return ampl_error(ctx, AMPL_EVALUE, "diagonal %lld", (long long)k);
    return ampl_meta_shape(ctx, out, 2, (int64_t[]){side, side});
  }
  if (x->ndim == 2)
    return ampl_meta_shape(ctx, out, 1, (int64_t[]){diagonal_of(x->shape[0], x->shape[1], k, &row, &column)});
  return ampl_error(ctx, AMPL_ESHAPE, "wants a vector or a matrix, got %s", ampl_tensor_text(ctx, x));
}

static ampl_status diag_backward(ampl_grad *g) {
  const ampl_meta *x = &g->xm[0];
  int64_t row, column;
  if (x->ndim == 1) {
    ampl_grad_set(g, 0, EV(&g->e, diag, T(g->dy[0]), P(g->p[0])));
    return AMPL_OK;
  }
  int64_t n = diagonal_of(x->shape[0], x->shape[1], g->p[0].i, &row, &column), stride = x->shape[1] + 1;
  ampl_grad_set(g, 0, EV(&g->e, view_backward, T(g->dy[0]), P(V_L(2, x->shape), V_L(1, &stride),
                                                              V_I(n > 0 ? row * x->shape[1] + column : 0))));
  return AMPL_OK;
}

AMPL_OP(diag,
  .doc = "A diagonal of a matrix, as a vector; of a vector, the matrix with that diagonal and zeros.",
  .args = {TENSOR_ONLY("x"), INT("diagonal", 0)},
  .infer = diag_infer, .backward = diag_backward);
