/* matmul.c: matrix products: matmul, product (the same with a dtype for the result), linear, and the forms that come
 * down to them: mm bmm mv dot outer addmm baddbmm.
 *   Y = A B:         dA = dY B',  dB = A' dY, summed over the batch where an operand was shared
 *   Y = X W' + b:    dX = dY W,   dW = dY' X,  db = the sum of dY's rows
 * The gradient of a weight that was cast for the call comes in f32, as its products were summed. */
#include "op.h"

#include <string.h>

static ampl_status same_dtype(ampl_ctx *ctx, const ampl_args *in) {
  const ampl_tensor *a = in->t[0];
  for (int i = 1; i < in->nt; i++)
    if (in->t[i] && in->t[i]->dtype != a->dtype)
      return ampl_error(ctx, AMPL_EDTYPE,
                        "operands of %s and %s; bring them to one dtype with x:to(dtype), or use an autocast region",
                        ampl_tensor_text(ctx, a), ampl_tensor_text(ctx, in->t[i]));
  return AMPL_OK;
}

/* ------------------------------------------------------------------------------------------------ matmul ---------- */

static ampl_status infer_matmul(ampl_ctx *ctx, const ampl_args *in, ampl_meta *out) {
  const ampl_tensor *a = in->t[0], *b = in->t[1];
  AMPL_TRY(same_dtype(ctx, in));
  if (a->ndim == 0 || b->ndim == 0)
    return ampl_error(ctx, AMPL_ESHAPE, "operands of %s and %s; scalars have no rows: use mul",
                      ampl_tensor_text(ctx, a), ampl_tensor_text(ctx, b));
  const int64_t k = a->shape[a->ndim - 1], kb = b->shape[b->ndim == 1 ? 0 : b->ndim - 2];
  if (k != kb)
    return ampl_error(ctx, AMPL_ESHAPE,
                      "shapes %s and %s: the last size of the first, %lld, must equal %s of the second, %lld",
                      ampl_shape_text(ctx, a->ndim, a->shape), ampl_shape_text(ctx, b->ndim, b->shape), (long long)k,
                      b->ndim == 1 ? "the size" : "the last but one", (long long)kb);
  out->ndim = 0;
  if (a->ndim > 2) AMPL_TRY(ampl_meta_shape(ctx, out, a->ndim - 2, a->shape));
  if (b->ndim > 2) AMPL_TRY(ampl_meta_broadcast(ctx, out, b->ndim - 2, b->shape));
  if (out->ndim > AMPL_RANK_MAX - 2) return ampl_error(ctx, AMPL_ESHAPE, "more than %d dimensions", AMPL_RANK_MAX);
  if (a->ndim > 1) out->shape[out->ndim++] = a->shape[a->ndim - 2];
  if (b->ndim > 1) out->shape[out->ndim++] = b->shape[b->ndim - 1];
  return ampl_meta_shape(ctx, out, out->ndim, out->shape);
}

static ampl_status infer_product(ampl_ctx *ctx, const ampl_args *in, ampl_meta *out) {
  AMPL_TRY(infer_matmul(ctx, in, out));
  if (in->p[0].i != AMPL_DTYPE_NONE) out->dtype = (int)in->p[0].i;
  return AMPL_OK;
}

static ampl_tensor *turned(ampl_eval *e, ampl_tensor *x) {
  return x ? EV(e, transpose, T(x), P(V_I(x->ndim - 2), V_I(x->ndim - 1))) : NULL;
}

/* (..., n) as (rows, n). */
static ampl_tensor *as_rows(ampl_eval *e, ampl_tensor *x) {
  if (!x || x->ndim == 2) return x;
  const int64_t n = x->shape[x->ndim - 1], shape[2] = {n ? x->numel / n : ampl_leading(x), n};
  return EV(e, reshape, T(x), P(V_L(2, shape)));
}

/* A' B for the gradient of operand i: in f32 where that is what it is summed in. */
static ampl_tensor *weight_gradient(ampl_grad *g, int i, ampl_tensor *a, ampl_tensor *b) {
  return EV(&g->e, product, T(turned(&g->e, a), b), P(V_I(g->wide[i] ? AMPL_F32 : AMPL_DTYPE_NONE)));
}

static ampl_status back_matmul(ampl_grad *g) {
  ampl_eval *e = &g->e;
  ampl_tensor *a = g->x[0], *b = g->x[1], *dy = g->dy[0];
  const bool row = g->xm[0].ndim == 1, column = g->xm[1].ndim == 1;
  if (dy->dtype != g->xm[0].dtype) dy = EV(e, to, T(dy), P(V_I(g->xm[0].dtype)));
  if (row && a) a = EV(e, unsqueeze, T(a), P(V_I(0)));
  if (column && b) b = EV(e, unsqueeze, T(b), P(V_I(1)));
  if (column && dy) dy = EV(e, unsqueeze, T(dy), P(V_I(dy->ndim)));
  if (row && dy) dy = EV(e, unsqueeze, T(dy), P(V_I(dy->ndim - 1)));
  if (g->need[0]) {
    ampl_tensor *da = EV(e, matmul, T(dy, turned(e, b)));
    if (row && da) da = EV(e, squeeze, T(da), P(V_L(1, ((const int64_t[]){da->ndim - 2}))));
    ampl_grad_set(g, 0, da);
  }
  if (g->need[1] && a && dy) {
    const bool shared = g->xm[1].ndim <= 2 && a->ndim > 2;      /* one matrix for the whole batch: one product */
    ampl_tensor *db = shared ? weight_gradient(g, 1, as_rows(e, a), as_rows(e, dy)) : weight_gradient(g, 1, a, dy);
    if (column && db) db = EV(e, squeeze, T(db), P(V_L(1, ((const int64_t[]){db->ndim - 1}))));
    ampl_grad_set(g, 1, db);
  }
  return e->status;
}

AMPL_OP(matmul,
        .doc = "The matrix product; dimensions before the last two are a batch and broadcast; vectors stand for a row "
               "or a column.",
        .args = {TENSOR_ONLY("x"), TENSOR_ONLY("other")}, .cast = AMPL_CAST_LOW, .flags = AMPL_OP_CROSS,
        .save = AMPL_SAVE_X(0) | AMPL_SAVE_X(1), .infer = infer_matmul, .backward = back_matmul);

AMPL_OP(product, .doc = "matmul with a dtype for the result.",
        .args = {TENSOR_ONLY("x"), TENSOR_ONLY("other"), DTYPE("dtype")}, .flags = AMPL_OP_INTERNAL | AMPL_OP_CROSS,
        .save = AMPL_SAVE_X(0) | AMPL_SAVE_X(1), .infer = infer_product, .backward = back_matmul);

/* ------------------------------------------------------------------------------------------------ linear ---------- */

/* The usual bias: a number for each output. */
static bool is_row(const ampl_tensor *b, int64_t n) {
  return b->ndim == 1 ? b->shape[0] == n : b->ndim == 0 && n == 1;
}

static bool spreads_to(const ampl_tensor *b, const ampl_meta *m) {
  for (int k = 1; k <= b->ndim && k <= m->ndim; k++)
    if (b->shape[b->ndim - k] != 1 && b->shape[b->ndim - k] != m->shape[m->ndim - k]) return false;
  return b->ndim <= m->ndim;
}

static ampl_status infer_linear(ampl_ctx *ctx, const ampl_args *in, ampl_meta *out) {
  const ampl_tensor *x = in->t[0], *w = in->t[1], *b = in->t[2];
  AMPL_TRY(same_dtype(ctx, in));
  if (w->ndim != 2 && w->ndim != 1)
    return ampl_error(ctx, AMPL_ESHAPE, "weight is %s; (outputs, inputs) is needed", ampl_tensor_text(ctx, w));
  if (x->ndim == 0 || x->shape[x->ndim - 1] != w->shape[w->ndim - 1])
    return ampl_error(ctx, AMPL_ESHAPE, "x of %s for a weight of %s: the last size of x must be %lld",
                      ampl_shape_text(ctx, x->ndim, x->shape), ampl_shape_text(ctx, w->ndim, w->shape),
                      (long long)w->shape[w->ndim - 1]);
  AMPL_TRY(ampl_meta_shape(ctx, out, x->ndim - 1, x->shape));
  if (w->ndim == 2) out->shape[out->ndim++] = w->shape[0];
  const int64_t n = w->ndim == 2 ? w->shape[0] : 1;
  if (b && !is_row(b, n) && !(w->ndim == 2 && spreads_to(b, out)))
    return ampl_error(ctx, AMPL_ESHAPE, "bias is %s; {%lld} is needed", ampl_tensor_text(ctx, b), (long long)n);
  return ampl_meta_shape(ctx, out, out->ndim, out->shape);
}

static ampl_status back_linear(ampl_grad *g) {
  ampl_eval *e = &g->e;
  ampl_tensor *dy = g->dy[0], *w = g->x[1];
  const bool vector = g->xm[1].ndim == 1;
  if (vector) dy = EV(e, unsqueeze, T(dy), P(V_I(dy->ndim)));
  if (vector && w) w = EV(e, unsqueeze, T(w), P(V_I(0)));
  if (g->need[0]) ampl_grad_set(g, 0, EV(e, matmul, T(dy, w)));
  if (g->need[1]) {
    ampl_tensor *dw = weight_gradient(g, 1, as_rows(e, dy), as_rows(e, g->x[0]));
    if (vector && dw) dw = EV(e, squeeze, T(dw), P(V_L(1, ((const int64_t[]){0}))));
    ampl_grad_set(g, 1, dw);
  }
  const ampl_meta *b = &g->xm[2];
  if (g->need[2] && dy && (b->ndim > 1 || ampl_meta_numel(b) != dy->shape[dy->ndim - 1])) {
    ampl_grad_set(g, 2, dy);            /* a bias that broadcast: the sum over where it did */
  } else if (g->need[2] && dy) {
    const int64_t rows = 0;
    const int wide = g->wide[2] ? AMPL_F32 : AMPL_DTYPE_NONE;
    ampl_tensor *db = EV(e, sum, T(as_rows(e, dy)), P(V_L(1, &rows), V_I(false), V_I(wide)));
    if (g->xm[2].ndim == 0 && db) db = EV(e, reshape, T(db), P(V_L(0, &rows)));
    ampl_grad_set(g, 2, db);
  }
  return e->status;
}

AMPL_OP(
    linear,
    .doc = "x times the transposed weight, plus bias: x (..., inputs), weight (outputs, inputs), bias (outputs), or "
           "what broadcasts to the result.",
    .args = {TENSOR_ONLY("x"), TENSOR_ONLY("weight"), TENSOR_OPT("bias")}, .cast = AMPL_CAST_LOW,
    .flags = AMPL_OP_CROSS, .save = AMPL_SAVE_X(0) | AMPL_SAVE_X(1), .infer = infer_linear, .backward = back_linear);

/* ------------------------------------------------------------------------------------------------ forms ----------- */

static ampl_status ranks(ampl_ctx *ctx, const ampl_args *in, int first, int ra, int rb, const char *need) {
  const ampl_tensor *a = in->t[first], *b = in->t[first + 1];
  if (a->ndim == ra && b->ndim == rb) return AMPL_OK;
  return ampl_error(ctx, AMPL_ESHAPE, "operands of %s and %s; %s are needed", ampl_shape_text(ctx, a->ndim, a->shape),
                    ampl_shape_text(ctx, b->ndim, b->shape), need);
}

static ampl_status times(ampl_eval *e, const ampl_args *in, ampl_tensor **out) {
  return ampl_eval_return(e, EV(e, matmul, T(in->t[0], in->t[1])), out);
}

static ampl_status mm(ampl_eval *e, const ampl_args *in, ampl_tensor **out) {
  AMPL_TRY(ranks(e->ctx, in, 0, 2, 2, "two matrices"));
  return times(e, in, out);
}

static ampl_status bmm(ampl_eval *e, const ampl_args *in, ampl_tensor **out) {
  AMPL_TRY(ranks(e->ctx, in, 0, 3, 3, "two batches of matrices"));
  if (in->t[0]->shape[0] != in->t[1]->shape[0])
    return ampl_error(e->ctx, AMPL_ESHAPE, "batches of %lld and %lld matrices", (long long)in->t[0]->shape[0],
                      (long long)in->t[1]->shape[0]);
  return times(e, in, out);
}

static ampl_status mv(ampl_eval *e, const ampl_args *in, ampl_tensor **out) {
  AMPL_TRY(ranks(e->ctx, in, 0, 2, 1, "a matrix and a vector"));
  return times(e, in, out);
}

static ampl_status dot(ampl_eval *e, const ampl_args *in, ampl_tensor **out) {
  AMPL_TRY(ranks(e->ctx, in, 0, 1, 1, "two vectors"));
  return times(e, in, out);
}

static ampl_status outer(ampl_eval *e, const ampl_args *in, ampl_tensor **out) {
  AMPL_TRY(ranks(e->ctx, in, 0, 1, 1, "two vectors"));
  return ampl_eval_return(e, EV(e, mul, T(EV(e, unsqueeze, T(in->t[0]), P(V_I(1))), in->t[1])), out);
}

#define TWO TENSOR_ONLY("x"), TENSOR_ONLY("other")
AMPL_OP(mm, .doc = "The product of two matrices.", .args = {TWO}, .cast = AMPL_CAST_LOW, .compose = mm);
AMPL_OP(bmm, .doc = "The products of two batches of matrices.", .args = {TWO}, .cast = AMPL_CAST_LOW, .compose = bmm);
AMPL_OP(mv, .doc = "A matrix times a vector.", .args = {TWO}, .cast = AMPL_CAST_LOW, .compose = mv);
AMPL_OP(dot, .doc = "The sum of the products of two vectors.", .args = {TWO}, .cast = AMPL_CAST_WIDEST,
        .flags = AMPL_OP_PROMOTE, .compose = dot);
AMPL_OP(outer, .doc = "All products of the elements of two vectors.", .args = {TWO}, .compose = outer);

/* beta * x + alpha * (a b); beta = 0 leaves x out, NaNs and all. */
static ampl_status add_product(ampl_eval *e, const ampl_args *in, ampl_tensor **out) {
  const double beta = in->p[0].f, alpha = in->p[1].f;
  ampl_tensor *y = EV(e, matmul, T(in->t[1], in->t[2])), *x = in->t[0];
  if (!y) return e->status;
  ampl_meta m = {.ndim = y->ndim};
  memcpy(m.shape, y->shape, sizeof m.shape);
  AMPL_TRY(ampl_meta_broadcast(e->ctx, &m, x->ndim, x->shape));
  if (m.ndim != y->ndim || memcmp(m.shape, y->shape, (size_t)m.ndim * sizeof *m.shape) != 0)
    return ampl_error(e->ctx, AMPL_ESHAPE, "x of %s does not broadcast to the product's %s",
                      ampl_shape_text(e->ctx, x->ndim, x->shape), ampl_shape_text(e->ctx, y->ndim, y->shape));
  if (alpha != 1) y = EV(e, mul, T(y, ampl_eval_num(e, alpha)));
  if (beta == 0) {                      /* x counts for nothing, but its gradient is 0 and not absent */
    const ampl_value shape_and_dtype[] = {V_L(0, m.shape), V_I(AMPL_BOOL)};
    ampl_tensor *no = ampl_eval_op(e, OP(zeros), NULL, 0, shape_and_dtype, 2);
    x = EV(e, where, T(no, x, ampl_eval_num(e, 0)));
  } else if (beta != 1) x = EV(e, mul, T(x, ampl_eval_num(e, beta)));
  return ampl_eval_return(e, EV(e, add, T(y, x)), out);
}

static ampl_status addmm(ampl_eval *e, const ampl_args *in, ampl_tensor **out) {
  AMPL_TRY(ranks(e->ctx, in, 1, 2, 2, "two matrices"));
  return add_product(e, in, out);
}

static ampl_status baddbmm(ampl_eval *e, const ampl_args *in, ampl_tensor **out) {
  AMPL_TRY(ranks(e->ctx, in, 1, 3, 3, "two batches of matrices"));
  return add_product(e, in, out);
}

#define SUM_ARGS(a, b) TENSOR_ONLY("x"), TENSOR_ONLY(a), TENSOR_ONLY(b), FLOAT("beta", 1), FLOAT("alpha", 1)
AMPL_OP(addmm, .doc = "beta * x + alpha * the product of two matrices.", .args = {SUM_ARGS("mat1", "mat2")},
        .cast = AMPL_CAST_LOW, .compose = addmm);
AMPL_OP(baddbmm, .doc = "beta * x + alpha * the products of two batches of matrices.",
        .args = {SUM_ARGS("batch1", "batch2")}, .cast = AMPL_CAST_LOW, .compose = baddbmm);
