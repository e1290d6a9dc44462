/* where.c: choosing by a mask or by bounds: where, masked_fill, clamp.  Their kernels stand in kernels/binary.def. */
#include "op.h"

#define TENSOR_AS_IS(n) {.name = n, .kind = AMPL_ARG_TENSOR, .flags = AMPL_REQUIRED | AMPL_AS_IS, .doc = ""}

static ampl_tensor *number(ampl_eval *e, double v) { return ampl_eval_num(e, v); }

/* ------------------------------------------------------------------------------------------------ where ----------- */

static ampl_status back_where(ampl_grad *g) {
  ampl_eval *e = &g->e;
  ampl_tensor *mask = g->x[0], *dy = g->dy[0];
  if (g->need[1]) ampl_grad_set(g, 1, EV(e, where, T(mask, dy, number(e, 0))));
  if (g->need[2]) ampl_grad_set(g, 2, EV(e, where, T(mask, number(e, 0), dy)));
  return e->status;
}

AMPL_OP(where,
  .doc = "x where the condition is true (or not 0), else y.",
  .args = {MASK("condition"), TENSOR("x"), TENSOR("y")},
  .flags = AMPL_OP_ELEMENTWISE, .save = AMPL_SAVE_X(0), .backward = back_where);

/* ------------------------------------------------------------------------------------------------ masked_fill ----- */

static ampl_status infer_masked_fill(ampl_ctx *ctx, const ampl_args *in, ampl_meta *out) {
  const ampl_tensor *x = in->t[0], *value = in->t[2];
  (void)out;
  if (value->ndim != 0)
    return ampl_error(ctx, AMPL_ESHAPE, "the value must be a number or a scalar, it is %s; use where(mask, value, x)",
                      ampl_tensor_text(ctx, value));
  if (ampl_is_float(value) && !(value->flags & AMPL_T_NUMBER) && !ampl_is_float(x))
    return ampl_error(ctx, AMPL_EDTYPE, "a value of dtype %s does not fit into %s", ampl_dtype_name(value->dtype),
                      ampl_dtype_name(x->dtype));
  return AMPL_OK;
}

static ampl_status back_masked_fill(ampl_grad *g) {
  ampl_eval *e = &g->e;
  ampl_tensor *mask = g->x[1], *dy = g->dy[0];
  if (g->need[0]) ampl_grad_set(g, 0, EV(e, where, T(mask, number(e, 0), dy)));
  if (g->need[2]) ampl_grad_set(g, 2, EV(e, where, T(mask, dy, number(e, 0))));
  return e->status;
}

AMPL_OP(masked_fill,
  .doc = "x with `value` wherever the mask is true.",
  .args = {TENSOR_ONLY("x"), MASK("mask"), TENSOR_AS_IS("value")},
  .flags = AMPL_OP_ELEMENTWISE | AMPL_OP_INPLACE, .save = AMPL_SAVE_X(1), .infer = infer_masked_fill,
  .backward = back_masked_fill);

/* ------------------------------------------------------------------------------------------------ clamp ----------- */

static ampl_status infer_clamp(ampl_ctx *ctx, const ampl_args *in, ampl_meta *out) {
  (void)out;
  if (!in->t[1] && !in->t[2]) return ampl_error(ctx, AMPL_EARG, "give min, max or both");
  return AMPL_OK;
}

/* The part of dy that goes to a in max(a, b) (`loses` = lt) or min(a, b) (`loses` = gt): half of it where they are
 * equal. */
static ampl_tensor *share(ampl_eval *e, ampl_tensor *dy, ampl_tensor *a, ampl_tensor *b, const ampl_op *loses) {
  ampl_tensor *lost = ampl_eval_op(e, loses, (ampl_tensor *[]){a, b}, 2, NULL, 0);
  ampl_tensor *kept = EV(e, where, T(lost, number(e, 0), dy));
  return EV(e, where, T(EV(e, eq, T(a, b)), EV(e, mul, T(dy, number(e, 0.5))), kept));
}

static bool plain(const ampl_tensor *bound) { return !bound || bound->flags & AMPL_T_NUMBER; }

/* With number bounds an element on a bound gets no gradient, and neither does NaN; tensor bounds share it. */
static ampl_status back_clamp(ampl_grad *g) {
  ampl_eval *e = &g->e;
  ampl_tensor *x = g->x[0], *min = g->x[1], *max = g->x[2], *dy = g->dy[0];
  if (plain(min) && plain(max)) {
    ampl_tensor *above = min ? EV(e, gt, T(x, min)) : NULL, *below = max ? EV(e, lt, T(x, max)) : NULL;
    ampl_tensor *inside = above && below ? EV(e, logical_and, T(above, below)) : above ? above : below;
    ampl_grad_set(g, 0, EV(e, where, T(inside, dy, number(e, 0))));
    return e->status;
  }
  ampl_tensor *raised = min ? EV(e, maximum, T(x, min)) : x;            /* y = min(raised, max) */
  if (max && g->need[2]) ampl_grad_set(g, 2, share(e, dy, max, raised, OP(gt)));
  if (max) dy = share(e, dy, raised, max, OP(gt));
  if (min && g->need[1]) ampl_grad_set(g, 1, share(e, dy, min, x, OP(lt)));
  if (g->need[0]) ampl_grad_set(g, 0, min ? share(e, dy, x, min, OP(lt)) : dy);
  return e->status;
}

AMPL_OP(clamp,
  .doc = "x brought into [min, max]: numbers, or tensors that broadcast with x.",
  .args = {TENSOR("x"), TENSOR_OPT("min"), TENSOR_OPT("max")},
  .flags = AMPL_OP_ELEMENTWISE | AMPL_OP_INPLACE, .save = AMPL_SAVE_X(0) | AMPL_SAVE_X(1) | AMPL_SAVE_X(2),
  .infer = infer_clamp, .backward = back_clamp);
