/* loss.c: losses that compare element by element: what one element contributes is a formula of kernels/loss.def.
 *
 * A loss has a kernel that computes and adds up in one pass; its gradient is that of the formula, an element-wise op.
 * */
#include "reduce.h"

#include <string.h>

enum { NONE, MEAN, SUM, BATCHMEAN };
#define REDUCTION ENUM("reduction", "none|mean|sum", MEAN, "what is made of the elements' losses")

/* ------------------------------------------------------------------------------------------------ shapes ---------- */

static bool broadcasts (const ampl_tensor *a, const ampl_tensor *b) {
  for (int k = 1; k <= a->ndim && k <= b->ndim; k++) {
    int64_t m = a->shape[a->ndim - k], n = b->shape[b->ndim - k];
    if (m != n && m != 1 && n != 1) return false;
  }
  return true;
}

/* Shapes that merely broadcast are nearly always a mistake, (n) against (n, 1) the classic one: every prediction would
 * meet every target, and the model learn nothing. */
static ampl_status same_shapes (ampl_ctx *ctx, const ampl_tensor *x, const ampl_tensor *t, const char *name) {
  if (t->flags & AMPL_T_NUMBER || ampl_same_shape(x, t)) return AMPL_OK;
  const char *xs = ampl_shape_text(ctx, x->ndim, x->shape), *ts = ampl_shape_text(ctx, t->ndim, t->shape);
  if (x->numel == t->numel)
    return ampl_error(ctx, AMPL_ESHAPE,
                      "x is %s, %s %s: the shapes must be equal; call %s:reshape(%s), or x:reshape(%s)", xs, name, ts,
                      name, xs, ts);
  if (broadcasts(x, t))
    return ampl_error(ctx, AMPL_ESHAPE,
                      "x is %s, %s %s: the shapes must be equal; if broadcasting is meant, say so with "
                      "%s:expand(%s)",
                      xs, name, ts, t->numel < x->numel ? name : "x", t->numel < x->numel ? xs : ts);
  return ampl_error(ctx, AMPL_ESHAPE, "x is %s, %s %s: the shapes must be equal", xs, name, ts);
}

/* What the first n operands broadcast to, where that cannot be taken for the mistake above: they have the same number
 * of dimensions, or one of them has the shape of the result. */
static ampl_status spread (ampl_ctx *ctx, const ampl_args *in, int n, ampl_meta *m) {
  bool ranks = true, whole = false;
  m->ndim = 0;
  for (int i = 0; i < n; i++) {
    const ampl_tensor *t = in->t[i];
    AMPL_TRY(ampl_meta_broadcast(ctx, m, t->ndim, t->shape));
    ranks &= t->flags & AMPL_T_NUMBER || t->ndim == in->t[0]->ndim;
  }
  for (int i = 0; i < n; i++)
    whole |= in->t[i]->ndim == m->ndim && memcmp(in->t[i]->shape, m->shape, (size_t)m->ndim * sizeof *m->shape) == 0;
  if (ranks || whole) return AMPL_OK;
  return same_shapes(ctx, in->t[0], in->t[1], in->op->args[1].name);
}

static int64_t spread_numel (const ampl_grad *g, int n) {
  ampl_meta m = {.ndim = 0};
  for (int i = 0; i < n; i++)
    if (ampl_meta_broadcast(g->e.ctx, &m, g->xm[i].ndim, g->xm[i].shape) != AMPL_OK) return 0;
  return ampl_meta_numel(&m);
}

static ampl_status spread_result (ampl_ctx *ctx, const ampl_args *in, int n, int64_t reduction, ampl_meta *out) {
  ampl_meta m;
  AMPL_TRY(spread(ctx, in, n, &m));
  for (int i = 0; i < n && reduction == NONE; i++)      /* in memory as an operand of that shape, if there is one */
    if (in->t[i]->ndim == m.ndim && memcmp(in->t[i]->shape, m.shape, (size_t)m.ndim * sizeof *m.shape) == 0) {
      const int dtype = out->dtype;
      AMPL_TRY(ampl_meta_like(out, in->t[i]));
      out->dtype = dtype;
      return AMPL_OK;
    }
  return ampl_meta_shape(ctx, out, reduction == NONE ? m.ndim : 0, m.shape);
}

/* A scalar, or, without a reduction, something of x's shape */
static ampl_status result (ampl_ctx *ctx, const ampl_tensor *x, int64_t reduction, ampl_meta *out) {
  int dtype = out->dtype;
  if (reduction != NONE) return ampl_meta_shape(ctx, out, 0, NULL);
  AMPL_TRY(ampl_meta_like(out, x));
  out->dtype = dtype;
  return AMPL_OK;
}

static ampl_status need_floats (ampl_ctx *ctx, const ampl_args *in) {
  AMPL_TRY(ampl_need_float(ctx, "x", in->t[0]));
  return in->t[0]->flags & AMPL_T_NUMBER ? ampl_error(ctx, AMPL_EARG, "x must be a tensor") : AMPL_OK;
}

/* ------------------------------------------------------------------------------------------------ pieces ---------- */

/* What a loss is made of: the formula's ops, which parameter is the reduction, how many operands the formula takes */
typedef struct formula {
  const ampl_op *pair, *back;
  int            reduction, operands;
} formula;

/* The formula's own parameters: all of the loss's but the reduction; their number */
static int own_params (const formula *f, const ampl_op *op, const ampl_value *p, ampl_value *own) {
  int n = 0, k = 0;
  for (int a = 0; a < AMPL_ARGS_MAX && op->args[a].name; a++) {
    if (op->args[a].kind <= AMPL_ARG_TENSORS) continue;
    if (k != f->reduction) own[n++] = p[k];
    k++;
  }
  return n;
}

static ampl_tensor *reduced (ampl_eval *e, ampl_tensor *elements, int64_t reduction, const ampl_tensor *x) {
  if (reduction == MEAN) return EV(e, mean, T(elements));
  if (reduction == NONE || !elements) return elements;
  ampl_tensor *sum = EV(e, sum, T(elements));
  if (reduction == SUM) return sum;
  return EV(e, div, T(sum, ampl_eval_num(e, x->ndim ? (double)x->shape[0] : 1)));
}

static ampl_status compose (ampl_eval *e, const ampl_args *in, ampl_tensor **out, const formula *f) {
  ampl_value own[AMPL_ARGS_MAX];
  int n = own_params(f, in->op, in->p, own);
  ampl_tensor *elements = ampl_eval_op(e, f->pair, in->t, f->operands, own, n);
  return ampl_eval_return(e, reduced(e, elements, in->p[f->reduction].i, in->t[0]), &out[0]);
}

/* dy, as it reaches each element */
static ampl_tensor *gradient_of_each (ampl_grad *g, int64_t reduction, int64_t n) {
  ampl_eval *e = &g->e;
  ampl_tensor *dy = g->dy[0];
  const ampl_meta *x = &g->xm[0];
  if (reduction == MEAN) return EV(e, div, T(ampl_eval_wide(e, dy), ampl_eval_num(e, (double)n)));
  if (reduction == BATCHMEAN)
    return EV(e, div, T(ampl_eval_wide(e, dy), ampl_eval_num(e, x->ndim ? (double)x->shape[0] : 1)));
  return dy;
}

/* The gradients of the operands whose bit is set in `which` */
static ampl_status back(ampl_grad *g, const formula *f, ampl_tensor *dy, ampl_tensor *const *operands, unsigned which) {
  ampl_value p[AMPL_ARGS_MAX];
  int n = own_params(f, g->op, g->p, p + 1);
  ampl_tensor *t[4] = {dy, operands[0], operands[1], f->operands == 3 ? operands[2] : NULL};
  for (int i = 0; i < f->operands; i++) {
    if (!(which >> i & 1)) continue;
    p[0] = V_I(i);
    ampl_grad_set(g, i, ampl_eval_op(&g->e, f->back, t, 1 + f->operands, p, 1 + n));
  }
  return g->e.status;
}

static unsigned wanted (const ampl_grad *g) {
  unsigned which = 0;
  for (int i = 0; i < g->nx; i++) which |= (unsigned)g->need[i] << i;
  return which;
}

/* ------------------------------------------------------------------------------------------------ two operands ---- */

/* Whether x and target of a loss may broadcast: of regressions that has cost people weeks. */
static ampl_status strict (ampl_ctx *ctx, const ampl_args *in, int64_t reduction, ampl_meta *out) {
  AMPL_TRY(need_floats(ctx, in));
  AMPL_TRY(same_shapes(ctx, in->t[0], in->t[1], "target"));
  return result(ctx, in->t[0], reduction, out);
}

static ampl_status lenient (ampl_ctx *ctx, const ampl_args *in, int64_t reduction, ampl_meta *out) {
  AMPL_TRY(need_floats(ctx, in));
  return spread_result(ctx, in, 2, reduction, out);
}

/* Defines the infer, compose and backward of a loss of x and target; `how`: strict or lenient. */
#define PAIR_LOSS(name, formula_name, at, how)                                                                         \
  static const formula name##_formula = {OP(formula_name), OP(formula_name##_backward), at, 2};                        \
  static ampl_status name##_infer (ampl_ctx *ctx, const ampl_args *in, ampl_meta *out) {                               \
    return how(ctx, in, in->p[at].i, out);                                                                             \
  }                                                                                                                    \
  static ampl_status name##_compose (ampl_eval *e, const ampl_args *in, ampl_tensor **out) {                           \
    return compose(e, in, out, &name##_formula);                                                                       \
  }                                                                                                                    \
  static ampl_status name##_back (ampl_grad *g) {                                                                      \
    ampl_tensor *dy = gradient_of_each(g, g->p[at].i, spread_numel(g, 2));                                             \
    return back(g, &name##_formula, dy, g->x, wanted(g));                                                              \
  }

#define X_AND_TARGET TENSOR("x", "the prediction"), TENSOR("target")
#define PAIR_RECORD(name)                                                                                              \
  .cast = AMPL_CAST_F32, .flags = AMPL_OP_PROMOTE, .save = AMPL_SAVE_X(0) | AMPL_SAVE_X(1), .infer = name##_infer,     \
  .compose = name##_compose, .backward = name##_back

PAIR_LOSS(mse_loss, mse_pair, 0, strict)
AMPL_OP(mse_loss, .doc = "The mean (or sum, or each) of (x - target)^2.", .args = {X_AND_TARGET, REDUCTION},
        PAIR_RECORD(mse_loss));

PAIR_LOSS(l1_loss, l1_pair, 0, strict)
AMPL_OP(l1_loss, .doc = "The mean (or sum, or each) of |x - target|.", .args = {X_AND_TARGET, REDUCTION},
        PAIR_RECORD(l1_loss));

static ampl_status check_width (ampl_ctx *ctx, const char *what, double v, bool zero) {
  if (v > 0 || (zero && v == 0)) return AMPL_OK;
  return ampl_error(ctx, AMPL_EVALUE, "%s is %g, it must be %s 0", what, v, zero ? "at least" : "above");
}

PAIR_LOSS(smooth_l1, smooth_l1_pair, 0, strict)

static ampl_status infer_smooth_l1 (ampl_ctx *ctx, const ampl_args *in, ampl_meta *out) {
  AMPL_TRY(check_width(ctx, "beta", in->p[1].f, true));
  return smooth_l1_infer(ctx, in, out);
}

/* With beta = 0 there is nothing to round off, and no division */
static ampl_status back_smooth_l1 (ampl_grad *g) {
  static const formula sharp = {OP(l1_pair), OP(l1_pair_backward), 0, 2};
  if (g->p[1].f > 0) return smooth_l1_back(g);
  ampl_tensor *dy = gradient_of_each(g, g->p[0].i, ampl_meta_numel(&g->xm[0]));
  for (int i = 0; i < 2; i++) {
    const ampl_value which = V_I(i);
    if (g->need[i])
      ampl_grad_set(g, i, ampl_eval_op(&g->e, sharp.back, (ampl_tensor *[]){dy, g->x[0], g->x[1]}, 3, &which, 1));
  }
  return g->e.status;
}

AMPL_OP(smooth_l1_loss,
  .doc = "The mean (or sum, or each) of |x - target| - beta / 2, or, where |x - target| is below beta, of "
         "(x - target)^2 / (2 beta).",
  .args = {X_AND_TARGET, REDUCTION, FLOAT("beta", 1)},
  .cast = AMPL_CAST_F32, .flags = AMPL_OP_PROMOTE, .save = AMPL_SAVE_X(0) | AMPL_SAVE_X(1), .infer = infer_smooth_l1,
  .compose = smooth_l1_compose, .backward = back_smooth_l1);

PAIR_LOSS(huber, huber_pair, 0, strict)

static ampl_status infer_huber (ampl_ctx *ctx, const ampl_args *in, ampl_meta *out) {
  AMPL_TRY(check_width(ctx, "delta", in->p[1].f, false));
  return huber_infer(ctx, in, out);
}

AMPL_OP(huber_loss,
  .doc = "The mean (or sum, or each) of (x - target)^2 / 2, or, where |x - target| is above delta, of "
         "delta (|x - target| - delta / 2).",
  .args = {X_AND_TARGET, REDUCTION, FLOAT("delta", 1)},
  .cast = AMPL_CAST_F32, .flags = AMPL_OP_PROMOTE, .save = AMPL_SAVE_X(0) | AMPL_SAVE_X(1), .infer = infer_huber,
  .compose = huber_compose, .backward = huber_back);

PAIR_LOSS(kl_div, kl_pair, 0, lenient)
AMPL_OP(kl_div,
  .doc = "target (log(target) - x), x a logarithm of probabilities, so is target with log_target.  batchmean: the sum "
         "divided by the number of samples, which is what the mathematical definition gives.",
  .args = {X_AND_TARGET, ENUM("reduction", "none|mean|sum|batchmean", MEAN), BOOL("log_target", false)},
  PAIR_RECORD(kl_div));

PAIR_LOSS(soft_margin_loss, soft_margin_pair, 0, lenient)
AMPL_OP(soft_margin_loss, .doc = "log(1 + exp(-target x)), target 1 or -1.", .args = {X_AND_TARGET, REDUCTION},
        PAIR_RECORD(soft_margin_loss));

PAIR_LOSS(hinge_embedding_loss, hinge_pair, 1, lenient)
AMPL_OP(hinge_embedding_loss, .doc = "x where target is 1, max(0, margin - x) where it is -1.",
        .args = {X_AND_TARGET, FLOAT("margin", 1), REDUCTION}, PAIR_RECORD(hinge_embedding_loss));

PAIR_LOSS(poisson_nll_loss, poisson_pair, 3, lenient)
AMPL_OP(poisson_nll_loss,
  .doc = "exp(x) - target x, or, without log_input, x - target log(x + eps); with `full` an approximation of "
         "log(target!) is added.",
  .args = {X_AND_TARGET, BOOL("log_input", true), BOOL("full", false), FLOAT("eps", 1e-8), REDUCTION},
  PAIR_RECORD(poisson_nll_loss));

/* ------------------------------------------------------------------------------------------------ cross-entropy --- */

/* An optional operand that scales elements must broadcast to x's shape */
static ampl_status check_scale (ampl_ctx *ctx, const char *name, const ampl_tensor *w, const ampl_tensor *x) {
  if (!w) return AMPL_OK;
  AMPL_TRY(ampl_need_float(ctx, name, w));
  bool fits = w->ndim <= x->ndim;
  for (int k = 1; fits && k <= w->ndim; k++)
    fits = w->shape[w->ndim - k] == 1 || w->shape[w->ndim - k] == x->shape[x->ndim - k];
  if (fits) return AMPL_OK;
  return ampl_error(ctx, AMPL_ESHAPE, "%s is %s, which does not broadcast to the shape of x, %s", name,
                    ampl_shape_text(ctx, w->ndim, w->shape), ampl_shape_text(ctx, x->ndim, x->shape));
}

static ampl_tensor *weighted (ampl_eval *e, ampl_tensor *x, ampl_tensor *w) {
  return w && x ? EV(e, mul, T(x, ampl_eval_to(e, w, x->dtype))) : x;
}

static const formula bce_formula = {OP(bce_pair), OP(bce_pair_backward), 0, 2};

static ampl_status infer_bce (ampl_ctx *ctx, const ampl_args *in, ampl_meta *out) {
  AMPL_TRY(need_floats(ctx, in));
  AMPL_TRY(same_shapes(ctx, in->t[0], in->t[1], "target"));
  AMPL_TRY(check_scale(ctx, "weight", in->t[2], in->t[0]));
  return result(ctx, in->t[0], in->p[0].i, out);
}

static ampl_status compose_bce (ampl_eval *e, const ampl_args *in, ampl_tensor **out) {
  ampl_tensor *elements = weighted(e, EV(e, bce_pair, T(in->t[0], in->t[1])), in->t[2]);
  return ampl_eval_return(e, reduced(e, elements, in->p[0].i, in->t[0]), &out[0]);
}

static ampl_status back_bce (ampl_grad *g) {
  ampl_tensor *dy = gradient_of_each(g, g->p[0].i, ampl_meta_numel(&g->xm[0]));
  return back(g, &bce_formula, weighted(&g->e, dy, g->x[2]), g->x, wanted(g));
}

AMPL_OP(binary_cross_entropy,
  .doc = "-weight (target log(x) + (1 - target) log(1 - x)); x is a probability, the logarithms end at -100.  "
         "binary_cross_entropy_with_logits is exact where this one is not.",
  .args = {X_AND_TARGET, TENSOR_OPT_AS_IS("weight"), REDUCTION},
  .cast = AMPL_CAST_REFUSE, .flags = AMPL_OP_PROMOTE, .save = AMPL_SAVE_X(0) | AMPL_SAVE_X(1) | AMPL_SAVE_X(2),
  .infer = infer_bce, .compose = compose_bce, .backward = back_bce);

static const formula logits_formula = {OP(bce_logits_pair), OP(bce_logits_pair_backward), 0, 3};

static ampl_status infer_logits (ampl_ctx *ctx, const ampl_args *in, ampl_meta *out) {
  AMPL_TRY(check_scale(ctx, "pos_weight", in->t[3], in->t[0]));
  return infer_bce(ctx, in, out);
}

static ampl_tensor *positive (ampl_eval *e, ampl_tensor *pos_weight, int dtype) {
  return pos_weight ? ampl_eval_to(e, pos_weight, dtype) : ampl_eval_num(e, 1);
}

static ampl_status compose_logits (ampl_eval *e, const ampl_args *in, ampl_tensor **out) {
  ampl_tensor *pos = positive(e, in->t[3], in->t[0]->dtype);
  ampl_tensor *elements = weighted(e, EV(e, bce_logits_pair, T(in->t[0], in->t[1], pos)), in->t[2]);
  return ampl_eval_return(e, reduced(e, elements, in->p[0].i, in->t[0]), &out[0]);
}

/* The formula's third operand is the loss's fourth */
static ampl_status back_logits (ampl_grad *g) {
  ampl_eval *e = &g->e;
  ampl_tensor *dy = gradient_of_each(g, g->p[0].i, ampl_meta_numel(&g->xm[0]));
  ampl_tensor *const t[3] = {g->x[0], g->x[1], positive(e, g->x[3], g->x[0]->dtype)};
  dy = weighted(e, dy, g->x[2]);
  AMPL_TRY(back(g, &logits_formula, dy, t, wanted(g) & 3u));
  const ampl_value which = V_I(2);
  if (g->need[3])
    ampl_grad_set(g, 3, ampl_eval_op(e, logits_formula.back, (ampl_tensor *[]){dy, t[0], t[1], t[2]}, 4, &which, 1));
  return e->status;
}

AMPL_OP(binary_cross_entropy_with_logits,
  .doc = "binary_cross_entropy of sigmoid(x), exact for every x; pos_weight scales the positive targets' term.",
  .args = {X_AND_TARGET, TENSOR_OPT_AS_IS("weight"), REDUCTION, TENSOR_OPT_AS_IS("pos_weight")},
  .cast = AMPL_CAST_F32, .flags = AMPL_OP_PROMOTE,
  .save = AMPL_SAVE_X(0) | AMPL_SAVE_X(1) | AMPL_SAVE_X(2) | AMPL_SAVE_X(3), .infer = infer_logits,
  .compose = compose_logits, .backward = back_logits);

/* ------------------------------------------------------------------------------------------------ three operands -- */

static const formula ranking_formula = {OP(ranking_pair), OP(ranking_pair_backward), 1, 3};

static ampl_status infer_ranking (ampl_ctx *ctx, const ampl_args *in, ampl_meta *out) {
  AMPL_TRY(need_floats(ctx, in));
  for (int i = 1; i < 3; i++)
    if (!(in->t[i]->flags & AMPL_T_NUMBER) && in->t[i]->ndim != in->t[0]->ndim)
      return ampl_error(ctx, AMPL_ESHAPE, "x1 is %s, %s %s: all three have the same number of dimensions",
                        ampl_shape_text(ctx, in->t[0]->ndim, in->t[0]->shape), in->op->args[i].name,
                        ampl_shape_text(ctx, in->t[i]->ndim, in->t[i]->shape));
  return spread_result(ctx, in, 3, in->p[1].i, out);
}

static ampl_status compose_ranking (ampl_eval *e, const ampl_args *in, ampl_tensor **out) {
  return compose(e, in, out, &ranking_formula);
}

static ampl_status back_ranking (ampl_grad *g) {
  ampl_tensor *dy = gradient_of_each(g, g->p[1].i, spread_numel(g, 3));
  return back(g, &ranking_formula, dy, g->x, wanted(g));
}

AMPL_OP(margin_ranking_loss, .doc = "max(0, margin - target (x1 - x2)), target 1 or -1.",
  .args = {TENSOR("x1"), TENSOR("x2"), TENSOR("target"), FLOAT("margin", 0), REDUCTION},
  .cast = AMPL_CAST_F32, .flags = AMPL_OP_PROMOTE, .save = AMPL_SAVE_X(0) | AMPL_SAVE_X(1) | AMPL_SAVE_X(2),
  .infer = infer_ranking, .compose = compose_ranking, .backward = back_ranking);

static const formula gaussian_formula = {OP(gaussian_pair), OP(gaussian_pair_backward), 2, 3};

/* var has x's shape, or 1 in place of one of its sizes, or lacks the last one; a number stands for all. */
static ampl_status check_variance (ampl_ctx *ctx, const ampl_tensor *var, const ampl_tensor *x) {
  const size_t size = sizeof *x->shape;
  int differ = 0;
  if (var->flags & AMPL_T_NUMBER) return AMPL_OK;
  AMPL_TRY(ampl_need_float(ctx, "var", var));
  if (var->ndim == x->ndim - 1 && memcmp(var->shape, x->shape, (size_t)var->ndim * size) == 0) return AMPL_OK;
  for (int d = 0; d < x->ndim && var->ndim == x->ndim; d++)
    if (var->shape[d] != x->shape[d]) differ += var->shape[d] == 1 ? 1 : 2;
  if (var->ndim == x->ndim && differ <= 1) return AMPL_OK;
  return ampl_error(ctx, AMPL_ESHAPE,
                    "var is %s; for x of %s it has that shape, with 1 in place of one of the sizes or without the last "
                    "one, or it is a number",
                    ampl_shape_text(ctx, var->ndim, var->shape), ampl_shape_text(ctx, x->ndim, x->shape));
}

static ampl_status infer_gaussian (ampl_ctx *ctx, const ampl_args *in, ampl_meta *out) {
  return spread_result(ctx, in, 3, in->p[2].i, out);
}

static ampl_status compose_gaussian (ampl_eval *e, const ampl_args *in, ampl_tensor **out) {
  return compose(e, in, out, &gaussian_formula);
}

static ampl_status back_gaussian (ampl_grad *g) {
  ampl_tensor *dy = gradient_of_each(g, g->p[2].i, spread_numel(g, 3));
  return back(g, &gaussian_formula, dy, g->x, wanted(g));
}

#define GAUSSIAN X_AND_TARGET, TENSOR("var"), BOOL("full", false), FLOAT("eps", 1e-6), REDUCTION
AMPL_OP(gaussian_nll, .doc = "gaussian_nll_loss with a var that broadcasts.", .args = {GAUSSIAN},
        .flags = AMPL_OP_INTERNAL | AMPL_OP_PROMOTE, .save = AMPL_SAVE_X(0) | AMPL_SAVE_X(1) | AMPL_SAVE_X(2),
        .infer = infer_gaussian, .compose = compose_gaussian, .backward = back_gaussian);

/* One variance for each row is a column. */
static ampl_status compose_gaussian_loss (ampl_eval *e, const ampl_args *in, ampl_tensor **out) {
  ampl_tensor *x = in->t[0], *var = in->t[2];
  ampl_meta m;
  AMPL_TRY(need_floats(e->ctx, in));
  AMPL_TRY(check_variance(e->ctx, var, x));
  AMPL_TRY(check_width(e->ctx, "eps", in->p[1].f, false));
  AMPL_TRY(spread(e->ctx, in, 2, &m));
  if (!(var->flags & AMPL_T_NUMBER) && var->ndim < x->ndim) var = EV(e, unsqueeze, T(var), P(V_I(-1)));
  return ampl_eval_return(e, ampl_eval_op(e, OP(gaussian_nll), T(x, in->t[1], var), in->p, 3), out);
}

AMPL_OP(gaussian_nll_loss,
  .doc = "(log(var) + (x - target)^2 / var) / 2, var at least eps; with `full`, log(2 pi) / 2 is added.  var: of x's "
         "shape, or with 1 in place of one of the sizes, or one value for each row, or a number.",
  .args = {GAUSSIAN}, .cast = AMPL_CAST_F32, .flags = AMPL_OP_PROMOTE, .compose = compose_gaussian_loss);
