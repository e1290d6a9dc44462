/* reduce.c: reductions: sum, mean, prod, var, std, norm, logsumexp, amax, amin, any, all, count_nonzero. */
#include "reduce.h"

#include <math.h>
#include <string.h>

/* ------------------------------------------------------------------------------------------------ shared ---------- */

ampl_tensor *ampl_eval_keepdim (ampl_eval *e, ampl_tensor *t, const ampl_meta *x, ampl_ints dims, bool keepdim) {
  int64_t shape[AMPL_RANK_MAX];
  if (keepdim || !t || x->ndim == 0) return t;
  for (int d = 0; d < x->ndim; d++) shape[d] = dims.n ? x->shape[d] : 1;
  for (int64_t i = 0; i < dims.n; i++) shape[dims.v[i]] = 1;
  return EV(e, reshape, T(t), P(V_L(x->ndim, shape)));
}

ampl_tensor *ampl_eval_spread (ampl_eval *e, ampl_tensor *t, const ampl_meta *x, ampl_ints dims, bool keepdim) {
  t = ampl_eval_keepdim(e, t, x, dims, keepdim);
  return t ? EV(e, expand, T(t), P(V_L(x->ndim, x->shape))) : NULL;
}

int64_t ampl_reduced_count (const ampl_meta *x, ampl_ints dims) {
  int64_t n = 1;
  if (dims.n == 0) return ampl_meta_numel(x);
  for (int64_t i = 0; i < dims.n; i++) n *= x->ndim ? x->shape[dims.v[i]] : 1;
  return n;
}

ampl_tensor *ampl_eval_to (ampl_eval *e, ampl_tensor *x, int dtype) {
  if (!x || e->status != AMPL_OK || x->dtype == dtype) return x;
  return EV(e, to, T(x), P(V_I(dtype)));
}

ampl_tensor *ampl_eval_wide (ampl_eval *e, ampl_tensor *x) {
  bool half = x && (x->dtype == AMPL_F16 || x->dtype == AMPL_BF16);
  return half ? ampl_eval_to(e, x, AMPL_F32) : x;
}

ampl_status ampl_need_float (ampl_ctx *ctx, const char *what, const ampl_tensor *x) {
  if (ampl_is_float(x)) return AMPL_OK;
  return ampl_error(ctx, AMPL_EDTYPE, "%s is %s: a float tensor is needed; cast it with x:to(\"f32\")", what,
                    ampl_dtype_name((ampl_dtype)x->dtype));
}

static bool whole (int t) { return !ampl_dtype_is_float((ampl_dtype)t); }
static ampl_tensor *num (ampl_eval *e, double v) { return ampl_eval_num(e, v); }

/* ------------------------------------------------------------------------------------------------ sum, mean ------- */

/* Parameters dim, keepdim, dtype.  Integers are summed as i64. */
static ampl_status infer_sum (ampl_ctx *ctx, const ampl_args *in, ampl_meta *out) {
  int64_t dtype = in->p[2].i;
  out->dtype = dtype != AMPL_DTYPE_NONE ? (int)dtype : whole(in->t[0]->dtype) ? AMPL_I64 : in->t[0]->dtype;
  return ampl_meta_reduce(ctx, out, in->t[0], in->p[0].l, in->p[1].i);
}

static ampl_status back_sum (ampl_grad *g) {
  ampl_grad_set(g, 0, ampl_eval_spread(&g->e, g->dy[0], &g->xm[0], g->p[0].l, g->p[1].i));
  return g->e.status;
}

AMPL_OP(sum,
  .doc = "The sum over `dim`: one dimension, several, or, without it, all.",
  .args = {TENSOR_ONLY("x"), DIMS("dim"), BOOL("keepdim", false, "whether reduced dimensions stay, with size 1"),
           DTYPE("dtype", "of the sum; integers are summed as i64")},
  .cast = AMPL_CAST_F32_OUT, .infer = infer_sum, .backward = back_sum);

static ampl_status infer_mean (ampl_ctx *ctx, const ampl_args *in, ampl_meta *out) {
  int64_t dtype = in->p[2].i;
  if (whole(dtype == AMPL_DTYPE_NONE ? in->t[0]->dtype : (int)dtype))
    return ampl_error(ctx, AMPL_EDTYPE, "the mean of %s is no %s: ask for a float with {dtype = \"f32\"}",
                      ampl_dtype_name((ampl_dtype)in->t[0]->dtype),
                      ampl_dtype_name((ampl_dtype)(dtype == AMPL_DTYPE_NONE ? in->t[0]->dtype : dtype)));
  return infer_sum(ctx, in, out);
}

static ampl_status back_mean (ampl_grad *g) {
  ampl_eval *e = &g->e;
  double n = (double)ampl_reduced_count(&g->xm[0], g->p[0].l);
  ampl_tensor *part = EV(e, div, T(g->dy[0], num(e, n)));
  ampl_grad_set(g, 0, ampl_eval_spread(e, part, &g->xm[0], g->p[0].l, g->p[1].i));
  return e->status;
}

AMPL_OP(mean,
  .doc = "The mean over `dim`: one dimension, several, or, without it, all.  NaN where there are no values.",
  .args = {TENSOR_ONLY("x"), DIMS("dim"), BOOL("keepdim", false), DTYPE("dtype")},
  .infer = infer_mean, .backward = back_mean);

/* ------------------------------------------------------------------------------------------------ prod ------------ */

static ampl_status infer_prod (ampl_ctx *ctx, const ampl_args *in, ampl_meta *out) {
  int64_t dtype = in->p[2].i;
  out->dtype = dtype != AMPL_DTYPE_NONE ? (int)dtype : whole(in->t[0]->dtype) ? AMPL_I64 : in->t[0]->dtype;
  return ampl_meta_reduce(ctx, out, in->t[0], ampl_one_dim(&in->p[0].i), in->p[1].i);
}

/* The derivative by x[k] is the product of all others: those before it times those behind it, so a 0 does no harm. */
static ampl_status back_prod (ampl_grad *g) {
  ampl_eval *e = &g->e;
  const ampl_meta *xm = &g->xm[0];
  ampl_ints dims = ampl_one_dim(&g->p[0].i);
  int64_t dim = dims.n ? dims.v[0] : 0, all[1] = {-1};
  ampl_tensor *x = ampl_eval_wide(e, g->x[0]);
  if (dims.n == 0) x = EV(e, reshape, T(x), P(V_L(1, all)));
  ampl_tensor *before = EV(e, cumprod_exclusive, T(x), P(V_I(dim), V_I(false)));
  ampl_tensor *behind = EV(e, cumprod_exclusive, T(x), P(V_I(dim), V_I(true)));
  ampl_tensor *others = EV(e, mul, T(before, behind));
  if (dims.n == 0) others = EV(e, reshape, T(others), P(V_L(xm->ndim, xm->shape)));
  ampl_tensor *dy = ampl_eval_keepdim(e, g->dy[0], xm, dims, g->p[1].i);
  ampl_grad_set(g, 0, EV(e, mul, T(others, dy)));
  return e->status;
}

AMPL_OP(prod,
  .doc = "The product over dimension `dim`, or of all values.",
  .args = {TENSOR_ONLY("x"), DIM_OPT("dim"), BOOL("keepdim", false), DTYPE("dtype")},
  .cast = AMPL_CAST_F32_OUT, .save = AMPL_SAVE_X(0), .infer = infer_prod, .backward = back_prod);

/* ------------------------------------------------------------------------------------------------ var, std -------- */

/* Parameters dim, correction, keepdim */
static ampl_status infer_var (ampl_ctx *ctx, const ampl_args *in, ampl_meta *out) {
  AMPL_TRY(ampl_need_float(ctx, "x", in->t[0]));
  return ampl_meta_reduce(ctx, out, in->t[0], in->p[0].l, in->p[2].i);
}

/* dvar/dx = 2 / (n - correction) * (x - mean) */
static ampl_tensor *var_gradient (ampl_grad *g, ampl_tensor *dvar) {
  ampl_eval *e = &g->e;
  ampl_ints dims = g->p[0].l;
  double left = (double)ampl_reduced_count(&g->xm[0], dims) - g->p[1].f;
  ampl_tensor *x = ampl_eval_wide(e, g->x[0]);
  ampl_tensor *off = EV(e, sub, T(x, EV(e, mean, T(x), P(V_L(dims.n, dims.v), V_I(true)))));
  ampl_tensor *scale = EV(e, mul, T(dvar, num(e, 2 / (left > 0 ? left : 0))));
  return EV(e, mul, T(off, ampl_eval_keepdim(e, scale, &g->xm[0], dims, g->p[2].i)));
}

static ampl_status back_var (ampl_grad *g) {
  ampl_grad_set(g, 0, var_gradient(g, ampl_eval_wide(&g->e, g->dy[0])));
  return g->e.status;
}

AMPL_OP(var,
  .doc = "The variance over `dim`: squared distances from the mean, their sum divided by n - correction.",
  .args = {TENSOR_ONLY("x"), DIMS("dim"), FLOAT("correction", 1), BOOL("keepdim", false)},
  .save = AMPL_SAVE_X(0), .infer = infer_var, .backward = back_var);

/* dstd = dvar / (2 std), 0 where std is 0 */
static ampl_status back_std (ampl_grad *g) {
  ampl_eval *e = &g->e;
  ampl_tensor *y = ampl_eval_wide(e, g->y[0]), *dy = ampl_eval_wide(e, g->dy[0]);
  ampl_tensor *half = EV(e, div, T(dy, EV(e, mul, T(y, num(e, 2)))));
  half = EV(e, where, T(EV(e, eq, T(y, num(e, 0))), num(e, 0), half));
  ampl_grad_set(g, 0, var_gradient(g, half));
  return e->status;
}

AMPL_OP(std,
  .doc = "The standard deviation over `dim`: the square root of var.",
  .args = {TENSOR_ONLY("x"), DIMS("dim"), FLOAT("correction", 1), BOOL("keepdim", false)},
  .save = AMPL_SAVE_X(0) | AMPL_SAVE_Y(0), .infer = infer_var, .backward = back_std);

/* ------------------------------------------------------------------------------------------------ norm ------------ */

/* Parameters p, dim, keepdim, dtype */
static ampl_status infer_norm (ampl_ctx *ctx, const ampl_args *in, ampl_meta *out) {
  int64_t dtype = in->p[3].i;
  AMPL_TRY(ampl_need_float(ctx, "x", in->t[0]));
  if (dtype != AMPL_DTYPE_NONE && whole((int)dtype))
    return ampl_error(ctx, AMPL_EDTYPE, "a norm is no %s: ask for a float dtype", ampl_dtype_name((ampl_dtype)dtype));
  if (isnan(in->p[0].f)) return ampl_error(ctx, AMPL_EVALUE, "p is NaN");
  if (dtype != AMPL_DTYPE_NONE) out->dtype = (int)dtype;
  return ampl_meta_reduce(ctx, out, in->t[0], in->p[1].l, in->p[2].i);
}

/* For p inf or -inf: the elements whose size is the norm share the gradient. */
static ampl_tensor *extreme_norm (ampl_eval *e, ampl_tensor *x, ampl_tensor *y, ampl_tensor *dy, ampl_ints dims) {
  ampl_tensor *size = EV(e, abs, T(x));
  ampl_tensor *mask = EV(e, logical_or, T(EV(e, eq, T(size, y)), EV(e, isnan, T(size))));
  ampl_tensor *share = EV(e, div, T(dy, EV(e, sum, T(mask), P(V_L(dims.n, dims.v), V_I(true)))));
  return EV(e, mul, T(EV(e, sign, T(x)), EV(e, where, T(mask, share, num(e, 0)))));
}

/* sign(x) (|x| / y)^(p - 1) dy: a ratio of sizes neither overflows nor vanishes.  At a zero vector the gradient is 0.
 * */
static ampl_tensor *finite_norm (ampl_eval *e, double p, ampl_tensor *x, ampl_tensor *y, ampl_tensor *dy) {
  if (p == 0) return EV(e, zeros_like, T(x));
  if (p == 1) return EV(e, mul, T(EV(e, sign, T(x)), dy));
  ampl_tensor *empty = EV(e, eq, T(y, num(e, 0)));
  ampl_tensor *safe = EV(e, where, T(empty, num(e, 1), y));
  dy = EV(e, where, T(empty, num(e, 0), dy));
  if (p == 2) return EV(e, mul, T(EV(e, div, T(x, safe)), dy));
  ampl_tensor *ratio = EV(e, div, T(EV(e, abs, T(x)), safe));
  if (p < 2) {                  /* the power of a 0 would be infinite, and so would its gradient */
    ampl_tensor *zero = EV(e, eq, T(x, num(e, 0)));
    ratio = EV(e, where, T(zero, num(e, 1), ratio));
  }
  ampl_tensor *power = EV(e, pow, T(ratio, num(e, p - 1)));
  return EV(e, mul, T(EV(e, mul, T(EV(e, sign, T(x)), power)), dy));
}

static ampl_status back_norm (ampl_grad *g) {
  ampl_eval *e = &g->e;
  double p = g->p[0].f;
  ampl_ints dims = g->p[1].l;
  ampl_tensor *x = ampl_eval_wide(e, g->x[0]);
  /* y may be of another dtype than x, by the dtype parameter */
  ampl_tensor *y = ampl_eval_wide(e, ampl_eval_keepdim(e, g->y[0], &g->xm[0], dims, g->p[2].i));
  ampl_tensor *dy = ampl_eval_wide(e, ampl_eval_keepdim(e, g->dy[0], &g->xm[0], dims, g->p[2].i));
  if (y && x && y->dtype == AMPL_F64) x = ampl_eval_to(e, x, AMPL_F64);
  if (isinf(p) && y) y = ampl_eval_to(e, y, x->dtype);
  ampl_grad_set(g, 0, isinf(p) ? extreme_norm(e, x, y, dy, dims) : finite_norm(e, p, x, y, dy));
  return e->status;
}

AMPL_OP(
    norm,
    .doc =
        "The p-norm over `dim`: (sum of |x|^p)^(1/p), the largest or smallest size for p = inf or -inf, the number of "
        "values that are not 0 for p = 0.",
    .args = {TENSOR_ONLY("x"),
             {.name = "p", .kind = AMPL_ARG_FLOAT, .def = {.f = 2}, .choices = "fro", .doc = "a number; \"fro\" is 2"},
             DIMS("dim"),
             BOOL("keepdim", false),
             DTYPE("dtype")},
    .cast = AMPL_CAST_F32_OUT, .save = AMPL_SAVE_X(0) | AMPL_SAVE_Y(0), .infer = infer_norm, .backward = back_norm);

/* ------------------------------------------------------------------------------------------------ logsumexp ------- */

static ampl_status infer_logsumexp (ampl_ctx *ctx, const ampl_args *in, ampl_meta *out) {
  AMPL_TRY(ampl_need_float(ctx, "x", in->t[0]));
  return ampl_meta_reduce(ctx, out, in->t[0], in->p[0].l, in->p[1].i);
}

static ampl_status back_logsumexp (ampl_grad *g) {
  ampl_eval *e = &g->e;
  ampl_ints dims = g->p[0].l;
  ampl_tensor *y = ampl_eval_keepdim(e, ampl_eval_wide(e, g->y[0]), &g->xm[0], dims, g->p[1].i);
  ampl_tensor *dy = ampl_eval_keepdim(e, ampl_eval_wide(e, g->dy[0]), &g->xm[0], dims, g->p[1].i);
  ampl_tensor *share = EV(e, exp, T(EV(e, sub, T(ampl_eval_wide(e, g->x[0]), y))));
  ampl_grad_set(g, 0, EV(e, mul, T(share, dy)));
  return e->status;
}

AMPL_OP(logsumexp,
  .doc = "log(sum of exp(x)) over `dim`, exact also where exp(x) is no float.",
  .args = {TENSOR_ONLY("x"), DIMS("dim"), BOOL("keepdim", false)},
  .cast = AMPL_CAST_F32, .save = AMPL_SAVE_X(0) | AMPL_SAVE_Y(0), .infer = infer_logsumexp, .backward = back_logsumexp);

/* ------------------------------------------------------------------------------------------------ extremes -------- */

static ampl_status infer_extreme (ampl_ctx *ctx, const ampl_args *in, ampl_meta *out) {
  const ampl_tensor *x = in->t[0];
  ampl_ints dims = in->p[0].l;
  AMPL_TRY(ampl_meta_reduce(ctx, out, x, dims, in->p[1].i));
  for (int64_t i = 0; x->numel == 0 && i < dims.n; i++)
    if (ampl_meta_numel(out) > 0 && x->shape[dims.v[i]] == 0)
      return ampl_error(ctx, AMPL_ESHAPE, "dim %lld of %s is empty: of no values there is no extreme",
                        (long long)ampl_shown(ctx, dims.v[i]), ampl_tensor_text(ctx, x));
  if (x->numel == 0 && ampl_meta_numel(out) > 0)
    return ampl_error(ctx, AMPL_ESHAPE, "x is %s: of no values there is no extreme", ampl_tensor_text(ctx, x));
  return AMPL_OK;
}

/* Equal ones share the gradient; where the result is NaN, nothing equals it: 0 / 0. */
static ampl_status back_extreme (ampl_grad *g) {
  ampl_eval *e = &g->e;
  ampl_ints dims = g->p[0].l;
  ampl_tensor *x = g->x[0], *y = ampl_eval_keepdim(e, g->y[0], &g->xm[0], dims, g->p[1].i);
  ampl_tensor *dy = ampl_eval_keepdim(e, g->dy[0], &g->xm[0], dims, g->p[1].i);
  ampl_tensor *mask = EV(e, eq, T(x, y)), *count = EV(e, sum, T(mask), P(V_L(dims.n, dims.v), V_I(true)));
  ampl_grad_set(g, 0, EV(e, div, T(EV(e, mul, T(dy, mask)), count)));
  return e->status;
}

AMPL_OP(amax,
  .doc = "The largest value over `dim`; NaN where there is one.  Equal ones share the gradient.",
  .args = {TENSOR_ONLY("x"), DIMS("dim"), BOOL("keepdim", false)},
  .save = AMPL_SAVE_X(0) | AMPL_SAVE_Y(0), .infer = infer_extreme, .backward = back_extreme);

AMPL_OP(amin,
  .doc = "The smallest value over `dim`; NaN where there is one.  Equal ones share the gradient.",
  .args = {TENSOR_ONLY("x"), DIMS("dim"), BOOL("keepdim", false)},
  .save = AMPL_SAVE_X(0) | AMPL_SAVE_Y(0), .infer = infer_extreme, .backward = back_extreme);

/* ------------------------------------------------------------------------------------------------ counts ---------- */

static ampl_status infer_truth (ampl_ctx *ctx, const ampl_args *in, ampl_meta *out) {
  out->dtype = AMPL_BOOL;
  return ampl_meta_reduce(ctx, out, in->t[0], in->p[0].l, in->p[1].i);
}

AMPL_OP(any,
  .doc = "Whether any value over `dim` is true (not 0).",
  .args = {TENSOR_ONLY("x"), DIMS("dim"), BOOL("keepdim", false)}, .flags = AMPL_OP_NO_GRAD, .infer = infer_truth);

AMPL_OP(all,
  .doc = "Whether all values over `dim` are true (not 0).",
  .args = {TENSOR_ONLY("x"), DIMS("dim"), BOOL("keepdim", false)}, .flags = AMPL_OP_NO_GRAD, .infer = infer_truth);

static ampl_status infer_count (ampl_ctx *ctx, const ampl_args *in, ampl_meta *out) {
  out->dtype = AMPL_I64;
  return ampl_meta_reduce(ctx, out, in->t[0], in->p[0].l, false);
}

AMPL_OP(count_nonzero,
  .doc = "How many values over `dim` are not 0.",
  .args = {TENSOR_ONLY("x"), DIMS("dim")}, .flags = AMPL_OP_NO_GRAD, .infer = infer_count);
