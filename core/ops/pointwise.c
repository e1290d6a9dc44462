/* pointwise.c: the records of kernels/unary.def and kernels/binary.def.  Each formula for a gradient is compiled here
 * into ops, so that it can be differentiated again; the usual case takes a fused kernel. */
#include "op.h"

#include <math.h>

/* ------------------------------------------------------------------------------------------------ the language ---- */

/* The formulas' macros, for tensors.  `e` and `p` are in scope wherever a formula is compiled. */
typedef ampl_tensor *value;
#define C(v) ampl_eval_num(e, v)
#define PF(k) (p[k].f)
#define PI(k) (p[k].i)
#define ONE_OP(name, a) EV(e, name, T(a))
#define TWO_OP(name, a, b) EV(e, name, T(a, b))
#define ADD(a, b) TWO_OP(add, a, b)
#define SUB(a, b) TWO_OP(sub, a, b)
#define MUL(a, b) TWO_OP(mul, a, b)
#define DIV(a, b) TWO_OP(div, a, b)
#define MIN(a, b) TWO_OP(minimum, a, b)
#define MAX(a, b) TWO_OP(maximum, a, b)
#define POW(a, b) TWO_OP(pow, a, b)
#define FLOORDIV(a, b) EV(e, div, T(a, b), P(V_I(2)))
#define NEG(a) ONE_OP(neg, a)
#define ABS(a) ONE_OP(abs, a)
#define SIGN(a) ONE_OP(sign, a)
#define RSQRT(a) ONE_OP(rsqrt, a)
#define EXP(a) ONE_OP(exp, a)
#define LOG(a) ONE_OP(log, a)
#define LOG1P(a) ONE_OP(log1p, a)
#define SIN(a) ONE_OP(sin, a)
#define COS(a) ONE_OP(cos, a)
#define SINH(a) ONE_OP(sinh, a)
#define COSH(a) ONE_OP(cosh, a)
#define TANH(a) ONE_OP(tanh, a)
#define ERF(a) ONE_OP(erf, a)
#define ERFINV(a) ONE_OP(erfinv, a)
#define SIGMOID(a) ONE_OP(sigmoid, a)
#define SOFTPLUS(a) ONE_OP(softplus, a)
#define EQ(a, b) TWO_OP(eq, a, b)
#define NE(a, b) TWO_OP(ne, a, b)
#define GT(a, b) TWO_OP(gt, a, b)
#define GE(a, b) TWO_OP(ge, a, b)
#define LT(a, b) TWO_OP(lt, a, b)
#define LE(a, b) TWO_OP(le, a, b)
#define AND(a, b) TWO_OP(logical_and, a, b)
#define OR(a, b) TWO_OP(logical_or, a, b)
#define ISFINITE(a) ONE_OP(isfinite, a)
#define SELECT(m, a, b) EV(e, where, T(m, a, b))
#define ZEROS EV(e, zeros_like, T(dy))
#define WHEN(condition, a, b) ((condition) ? (a) : (b))
#define LET(name, v, formula)                                                                                          \
  __extension__({                                                                                                      \
    value name = (v);                                                                                                  \
    (formula);                                                                                                         \
  })
#include "formula.h"

/* ------------------------------------------------------------------------------------------------ backward -------- */

/* A gradient's formula; what the record does not save is NULL. */
typedef value (*unary_formula)(ampl_eval *e, const ampl_value *p, value dy, value x, value y);
typedef value (*binary_formula)(ampl_eval *e, const ampl_value *p, int which, value dy, value a, value b, value c);

static int operands(const ampl_op *op) {
  int n = 0;
  while (op->args[n].name && op->args[n].kind <= AMPL_ARG_TENSORS) n++;
  return n;
}

static int params(const ampl_op *op) {
  int n = operands(op), all = n;
  while (all < AMPL_ARGS_MAX && op->args[all].name) all++;
  return all - n;
}

/* `fused`: the op with a kernel for the formula, or NULL; it stays out where the gradient will be differentiated. */
static ampl_status unary_backward(ampl_grad *g, const ampl_op *fused, unary_formula formula) {
  ampl_eval *e = &g->e;
  value dy = g->dy[0], x = g->x[0], y = g->y[0];
  value dx = !fused || ampl_grad_enabled(e->ctx)
               ? formula(e, g->p, dy, x, y)
               : ampl_eval_op(e, fused, (value[]){dy, x ? x : y}, 2, g->p, params(g->op));
  ampl_grad_set(g, 0, dx);
  return e->status;
}

/* Whether the gradient of operand i is a sum of 16-bit numbers: these are worked out in f32 then. */
static bool to_be_summed(const ampl_grad *g, int i) {
  const ampl_tensor *dy = g->dy[0];
  return (dy->dtype == AMPL_F16 || dy->dtype == AMPL_BF16) && ampl_meta_numel(&g->xm[i]) < dy->numel;
}

/* The fused op takes dy, the operands, which of them the gradient is wanted for, and the parameters. */
static ampl_status binary_backward(ampl_grad *g, const ampl_op *fused, binary_formula formula) {
  ampl_eval *e = &g->e;
  value t[4] = {g->dy[0]};
  for (int i = 0; i < g->nx; i++) t[1 + i] = g->x[i];
  ampl_value p[AMPL_ARGS_MAX];
  int n = params(g->op);
  for (int i = 0; i < n; i++) p[1 + i] = g->p[i];
  bool again = !fused || ampl_grad_enabled(e->ctx);
  for (int i = 0; i < g->nx; i++) {
    if (!g->need[i]) continue;
    p[0] = V_I(i);
    t[0] = to_be_summed(g, i) ? EV(e, to, T(g->dy[0]), P(V_I(AMPL_F32))) : g->dy[0];
    ampl_grad_set(g, i, again ? formula(e, g->p, i, t[0], t[1], t[2], t[3])
                              : ampl_eval_op(e, fused, t, 1 + g->nx, p, 1 + n));
  }
  return e->status;
}

/* ------------------------------------------------------------------------------------------------ infer ----------- */

/* x / y of integers is f32; rounded, it stays an integer.  The shape stands already. */
static ampl_status infer_quotient(ampl_ctx *ctx, const ampl_args *in, ampl_meta *out) {
  (void)ctx;
  if (!ampl_dtype_is_float((ampl_dtype)out->dtype) && in->p[0].i == 0) out->dtype = AMPL_F32;
  return AMPL_OK;
}

/* ------------------------------------------------------------------------------------------------ records --------- */

#define PARAMS(...) __VA_ARGS__
#define NO_PARAMS

#define POINTWISE       (AMPL_OP_ELEMENTWISE | AMPL_OP_INPLACE)
#define FLAGS_REAL      .flags = POINTWISE | AMPL_OP_FLOAT_OUT
#define FLAGS_NUMERIC   .flags = POINTWISE
#define FLAGS_ANY       .flags = POINTWISE
#define FLAGS_HIDDEN    .flags = AMPL_OP_ELEMENTWISE | AMPL_OP_INTERNAL | AMPL_OP_FLOAT_OUT
#define FLAGS_PRODUCT   .flags = POINTWISE | AMPL_OP_CROSS
#define FLAGS_QUOTIENT  .flags = POINTWISE, .infer = infer_quotient
#define FLAGS_TEST      .flags = AMPL_OP_ELEMENTWISE | AMPL_OP_BOOL_OUT | AMPL_OP_NO_GRAD
#define FLAGS_GRADIENT  .flags = AMPL_OP_ELEMENTWISE | AMPL_OP_INTERNAL

/* the `save` column: the record's mask, the fused op's operands, and how its compose finds them */
#define SAVE_NONE 0
#define SAVE_X    AMPL_SAVE_X(0)
#define SAVE_Y    AMPL_SAVE_Y(0)
#define SAVE_AB   (AMPL_SAVE_X(0) | AMPL_SAVE_X(1))
#define SAVE_ABC  (SAVE_AB | AMPL_SAVE_X(2))
#define GIVE_X    in->t[1], NULL
#define GIVE_Y    NULL, in->t[1]
#define GIVE_AB   in->t[1], in->t[2], NULL
#define GIVE_ABC  in->t[1], in->t[2], in->t[3]
#define TAKE_AB   TENSOR("a"), TENSOR("b")
#define TAKE_ABC  TENSOR("a"), TENSOR("b"), TENSOR("c")

#define UNARY_FORMULA(name, D)                                                                                         \
  static value name##_gradient(ampl_eval *e, const ampl_value *p, value dy, value x, value y) {                        \
    (void)e, (void)p, (void)dy, (void)x, (void)y;                                                                      \
    return D;                                                                                                          \
  }
#define UNARY_RECORD(name_, kind, save_, cast_, params_, doc_, fused)                                                  \
  static ampl_status name_##_back(ampl_grad *g) { return unary_backward(g, fused, name_##_gradient); }                 \
  AMPL_OP(name_, .doc = doc_, .args = {TENSOR("x"), params_}, .cast = AMPL_CAST_##cast_, FLAGS_##kind,                 \
          .save = SAVE_##save_, .backward = name_##_back);
#define UNARY_PLAIN(name_, kind, save_, F, D, cast_, params_, doc_)                                                    \
  UNARY_FORMULA(name_, D)                                                                                              \
  UNARY_RECORD(name_, kind, save_, cast_, PARAMS(params_), doc_, NULL)
#define UNARY(name_, kind, save_, F, D, cast_, params_, doc_)                                                          \
  UNARY_FORMULA(name_, D)                                                                                              \
  static ampl_status name_##_compose(ampl_eval *e, const ampl_args *in, ampl_tensor **out) {                           \
    return ampl_eval_return(e, name_##_gradient(e, in->p, in->t[0], GIVE_##save_), out);                               \
  }                                                                                                                    \
  AMPL_OP(name_##_backward, .doc = "The gradient of " #name_ ".", .args = {TENSOR("dy"), TENSOR("saved"), params_},    \
          FLAGS_GRADIENT, .compose = name_##_compose);                                                                 \
  UNARY_RECORD(name_, kind, save_, cast_, PARAMS(params_), doc_, &ampl_op_##name_##_backward)
#define UNARY_TEST(name_, F, doc_) AMPL_OP(name_, .doc = doc_, .args = {TENSOR("x")}, FLAGS_TEST);
#include "unary.def"

#define GRADIENT_FORMULA(name, DA, DB, DC)                                                                             \
  static value name##_gradient(ampl_eval *e, const ampl_value *p, int which, value dy, value a, value b, value c) {    \
    (void)e, (void)p, (void)a, (void)b, (void)c;                                                                       \
    return which == 0 ? (DA) : which == 1 ? (DB) : (DC);                                                               \
  }
#define GRADIENT_OP(name_, save_, params_)                                                                             \
  static ampl_status name_##_compose(ampl_eval *e, const ampl_args *in, ampl_tensor **out) {                           \
    return ampl_eval_return(e, name_##_gradient(e, in->p + 1, (int)in->p[0].i, in->t[0], GIVE_##save_), out);          \
  }                                                                                                                    \
  AMPL_OP(name_##_backward, .doc = "The gradients of " #name_ ".",                                                     \
          .args = {TENSOR("dy"), TAKE_##save_, INT_REQ("which", "the operand whose gradient is wanted"), params_},     \
          FLAGS_GRADIENT, .compose = name_##_compose);
#define BINARY_RECORD(name_, kind, save_, cast_, operands_, params_, doc_, fused)                                      \
  static ampl_status name_##_back(ampl_grad *g) { return binary_backward(g, fused, name_##_gradient); }                \
  AMPL_OP(name_, .doc = doc_, .args = {operands_, params_}, .cast = AMPL_CAST_##cast_, FLAGS_##kind,                   \
          .save = SAVE_##save_, .backward = name_##_back);
#define TWO PARAMS(TENSOR("x"), TENSOR("y"))
#define BINARY_PLAIN(name_, kind, save_, F, DA, DB, cast_, params_, doc_)                                              \
  GRADIENT_FORMULA(name_, DA, DB, NULL)                                                                                \
  BINARY_RECORD(name_, kind, save_, cast_, TWO, PARAMS(params_), doc_, NULL)
#define BINARY(name_, kind, save_, F, DA, DB, cast_, params_, doc_)                                                    \
  GRADIENT_FORMULA(name_, DA, DB, NULL)                                                                                \
  GRADIENT_OP(name_, save_, PARAMS(params_))                                                                           \
  BINARY_RECORD(name_, kind, save_, cast_, TWO, PARAMS(params_), doc_, &ampl_op_##name_##_backward)
#define BINARY_FLAT(name_, kind, F, cast_, params_, doc_)                                                              \
  AMPL_OP(name_, .doc = doc_, .args = {TWO, params_}, .cast = AMPL_CAST_##cast_, FLAGS_##kind);
#define BINARY_TEST(name_, F, doc_) AMPL_OP(name_, .doc = doc_, .args = {TWO}, FLAGS_TEST);
#define TERNARY(name_, kind, save_, F, DA, DB, DC, cast_, a_, b_, c_, params_, doc_)                                   \
  GRADIENT_FORMULA(name_, DA, DB, DC)                                                                                  \
  GRADIENT_OP(name_, save_, PARAMS(params_))                                                                           \
  BINARY_RECORD(name_, kind, save_, cast_, PARAMS(TENSOR(a_), TENSOR(b_), TENSOR(c_)), PARAMS(params_), doc_,          \
                &ampl_op_##name_##_backward)
#include "binary.def"
