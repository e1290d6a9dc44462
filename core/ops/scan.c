/* scan.c: running sums and products along a dimension: cumsum, cumprod, and what their gradients are made of. */
#include "reduce.h"

/* ------------------------------------------------------------------------------------------------ cumsum ---------- */

/* Parameters dim, dtype; integers are added up as i64 */
static ampl_status infer_cumulative (ampl_ctx *ctx, const ampl_args *in, ampl_meta *out) {
  const ampl_tensor *x = in->t[0];
  int64_t dtype = in->p[1].i;
  (void)ctx;
  AMPL_TRY(ampl_meta_like(out, x));
  out->dtype = dtype != AMPL_DTYPE_NONE ? (int)dtype : ampl_is_float(x) ? x->dtype : AMPL_I64;
  return AMPL_OK;
}

static ampl_status back_cumsum (ampl_grad *g) {
  ampl_grad_set(g, 0, EV(&g->e, cumsum_reverse, T(g->dy[0]), P(g->p[0])));
  return g->e.status;
}

AMPL_OP(cumsum,
  .doc = "Running sums along `dim`.",
  .args = {TENSOR_ONLY("x"), DIM_REQ("dim"), DTYPE("dtype", "of the sums; integers are summed as i64")},
  .cast = AMPL_CAST_F32_OUT, .infer = infer_cumulative, .backward = back_cumsum);

static ampl_status back_cumsum_reverse (ampl_grad *g) {
  ampl_grad_set(g, 0, EV(&g->e, cumsum, T(g->dy[0]), P(g->p[0])));
  return g->e.status;
}

AMPL_OP(cumsum_reverse, .doc = "Running sums from the end.", .args = {TENSOR_ONLY("x"), DIM_REQ("dim")},
        .flags = AMPL_OP_INTERNAL, .backward = back_cumsum_reverse);

/* ------------------------------------------------------------------------------------------------ recurrence ------ */

/* y[k] = x[k] + b[k] y[k-1]; with `reverse`, y[k] = x[k] + b[k+1] y[k+1].  Each is the gradient of the other: nothing
 * is divided, so a 0 in b does no harm. */

/* x moved by one position along dim, away from the start or towards it; `fill` comes in. */
static ampl_tensor *shift (ampl_eval *e, ampl_tensor *x, int64_t dim, bool away, double fill) {
  if (!x || e->status != AMPL_OK) return NULL;
  int64_t n = x->ndim ? x->shape[dim] : 1;
  if (x->ndim == 0) return EV(e, full_like, T(x, ampl_eval_num(e, fill)));
  if (n == 0) return x;
  ampl_tensor *rest = EV(e, narrow, T(x), P(V_I(dim), V_I(away ? 0 : 1), V_I(n - 1)));
  ampl_tensor *edge = EV(e, full_like, T(EV(e, narrow, T(x), P(V_I(dim), V_I(0), V_I(1))), ampl_eval_num(e, fill)));
  ampl_tensor *parts[2] = {away ? edge : rest, away ? rest : edge};
  const ampl_value at = V_I(dim);
  return ampl_eval_op(e, OP(cat), parts, 2, &at, 1);
}

static ampl_status back_recurrence (ampl_grad *g) {
  ampl_eval *e = &g->e;
  int64_t dim = g->p[0].i;
  bool reverse = g->p[1].i;
  ampl_tensor *s = EV(e, recurrence, T(g->dy[0], g->x[1]), P(V_I(dim), V_I(!reverse)));
  ampl_grad_set(g, 0, s);
  if (g->need[1])
    ampl_grad_set(g, 1, reverse ? EV(e, mul, T(shift(e, s, dim, true, 0), g->y[0]))
                                : EV(e, mul, T(s, shift(e, g->y[0], dim, true, 0))));
  return e->status;
}

AMPL_OP(recurrence,
  .doc = "y[k] = x[k] + b[k] * y[k - 1] along `dim`; in reverse y[k] = x[k] + b[k + 1] * y[k + 1].",
  .args = {TENSOR_ONLY("x"), TENSOR_ONLY("b"), DIM_REQ("dim"), BOOL("reverse", false)},
  .flags = AMPL_OP_INTERNAL | AMPL_OP_PROMOTE, .save = AMPL_SAVE_X(1) | AMPL_SAVE_Y(0), .backward = back_recurrence);

/* ------------------------------------------------------------------------------------------------ cumprod --------- */

/* y[k] is the product of all x before k.  With s the gradient of y: dx[k] = y[k] * (sum over i > k of s[i] times the
 * product of x between k and i), and that sum is a recurrence. */
static ampl_status back_exclusive (ampl_grad *g) {
  ampl_eval *e = &g->e;
  int64_t dim = g->p[0].i;
  bool reverse = g->p[1].i;
  ampl_tensor *dy = shift(e, g->dy[0], dim, reverse, 0);
  ampl_tensor *x = reverse ? shift(e, g->x[0], dim, true, 0) : g->x[0];
  ampl_tensor *sums = EV(e, recurrence, T(dy, x), P(V_I(dim), V_I(!reverse)));
  ampl_grad_set(g, 0, EV(e, mul, T(g->y[0], sums)));
  return e->status;
}

AMPL_OP(cumprod_exclusive,
  .doc = "The product of all values before each one along `dim`; in reverse, of all behind it.",
  .args = {TENSOR_ONLY("x"), DIM_REQ("dim"), BOOL("reverse", false)},
  .flags = AMPL_OP_INTERNAL, .save = AMPL_SAVE_X(0) | AMPL_SAVE_Y(0), .backward = back_exclusive);

/* dx[k] = (product before k) * (sum over i >= k of dy[i] times the product of x between k and i) */
static ampl_status back_cumprod (ampl_grad *g) {
  ampl_eval *e = &g->e;
  int64_t dim = g->p[0].i;
  ampl_tensor *x = ampl_eval_wide(e, g->x[0]);
  ampl_tensor *dy = ampl_eval_to(e, g->dy[0], x ? x->dtype : 0);
  ampl_tensor *before = EV(e, cumprod_exclusive, T(x), P(V_I(dim), V_I(false)));
  ampl_grad_set(g, 0, EV(e, mul, T(before, EV(e, recurrence, T(dy, x), P(V_I(dim), V_I(true))))));
  return e->status;
}

AMPL_OP(cumprod,
  .doc = "Running products along `dim`.",
  .args = {TENSOR_ONLY("x"), DIM_REQ("dim"), DTYPE("dtype", "of the products; integers are multiplied as i64")},
  .cast = AMPL_CAST_F32_OUT, .save = AMPL_SAVE_X(0), .infer = infer_cumulative, .backward = back_cumprod);
