/* optim_rules.h: what each optimiser does to one element, and to the numbers of one parameter; written once for every
 * backend and kind of value.
 *
 * A rule gets x[0] the parameter, x[1] the gradient, x[2] ... the state, in the order of the op's lists, and changes
 * them in place; c are the coefficients that ampl_rule_NAME made, once for a parameter and step, from the op's own
 * parameters (p[0] ... of the record in core/ops/optim.c) and the parameter's counts, which it moves on.
 *
 * Included again with AMPL_RULE_REAL defined, the rules themselves are compiled: a type of values with + - * /, and
 * beside it
 *   R_SQRT(a) R_ABS(a) R_MAX(a, b) R_SIGN(a)    R_FMA(a, b, c): a * b + c    AMPL_RULE_FN: how a function begins
 */
#ifndef AMPL_OPTIM_RULES_H
#define AMPL_OPTIM_RULES_H

#include "ampl_backend.h"

#include <math.h>

/* Every rule: name, values it is given (parameter, gradient, state). */
#define AMPL_RULES(X)                                                                                                  \
  X(sgd, 2) X(sgd_momentum, 3) X(sgd_nesterov, 3) X(adam, 4) X(adam_amsgrad, 5) X(adamax, 4) X(nadam, 4) X(radam, 4)   \
  X(rmsprop, 3) X(rmsprop_momentum, 4) X(rmsprop_centered, 4) X(rmsprop_centered_momentum, 5) X(adagrad, 3)            \
  X(adadelta, 4) X(lion, 3) X(lamb_moments, 5) X(lamb, 4)

enum { AMPL_RULE_VALUES = 5, AMPL_RULE_COEFS = 9 };     /* at most */

typedef enum ampl_rule {
#define AMPL_X(name, values) AMPL_RULE_##name,
  AMPL_RULES(AMPL_X)
#undef AMPL_X
  AMPL_RULE_COUNT
} ampl_rule;

/* ------------------------------------------------------------------------------------------------ coefficients ---- */

/* Every rule has these two: what the gradient is multiplied by (its scale and sign), the L2 penalty.  Where a name ends
 * in C, 1 minus something, it is made in double: 1 - 0.999f has lost half its digits. */
enum { GRAD, L2, OWN };

/* What all the ops have: p[1] lr, p[2] weight_decay, p[3] maximize. */
static inline void ampl_rule_common(const ampl_value *p, double inv_scale, bool l2, double *c) {
  c[GRAD] = p[3].i ? -inv_scale : inv_scale;
  c[L2] = l2 ? p[2].f : 0;
}

/* What is left of the parameter after decoupled weight decay. */
static inline double ampl_rule_keep(const ampl_value *p, bool decoupled) { return decoupled ? 1 - p[1].f * p[2].f : 1; }

/* Fills c and moves the counts on; the rule to go by. */
typedef ampl_rule (*ampl_rule_fn)(const ampl_value *p, double inv_scale, double *count, double *c);

enum { SGD_LR = OWN, SGD_MOMENTUM, SGD_TAKE, SGD_LOOK };
/* p: 4 momentum, 5 dampening, 6 nesterov, 7 first */
static inline ampl_rule ampl_rule_sgd(const ampl_value *p, double inv_scale, double *count, double *c) {
  (void)count;
  ampl_rule_common(p, inv_scale, true, c);
  c[SGD_LR] = -p[1].f;
  c[SGD_MOMENTUM] = p[7].i ? 0 : p[4].f;
  c[SGD_TAKE] = p[7].i ? 1 : 1 - p[5].f;
  c[SGD_LOOK] = p[4].f;
  return p[4].f == 0 ? AMPL_RULE_sgd : p[6].i ? AMPL_RULE_sgd_nesterov : AMPL_RULE_sgd_momentum;
}

enum { ADAM_BETA1C = OWN, ADAM_BETA2, ADAM_BETA2C, ADAM_STEP, ADAM_ROOT, ADAM_EPS, ADAM_KEEP };
/* p: 4 beta1, 5 beta2, 6 eps, 7 amsgrad, 8 decoupled */
static inline ampl_rule ampl_rule_adam(const ampl_value *p, double inv_scale, double *count, double *c) {
  double t = count[0] += 1;
  ampl_rule_common(p, inv_scale, !p[8].i, c);
  c[ADAM_BETA1C] = 1 - p[4].f;
  c[ADAM_BETA2] = p[5].f;
  c[ADAM_BETA2C] = 1 - p[5].f;
  c[ADAM_STEP] = -p[1].f / (1 - pow(p[4].f, t));
  c[ADAM_ROOT] = sqrt(1 - pow(p[5].f, t));
  c[ADAM_EPS] = p[6].f;
  c[ADAM_KEEP] = ampl_rule_keep(p, p[8].i);
  return p[7].i ? AMPL_RULE_adam_amsgrad : AMPL_RULE_adam;
}

/* The places of adam's coefficients, where they mean the same.  p: 4 beta1, 5 beta2, 6 eps */
static inline ampl_rule ampl_rule_adamax(const ampl_value *p, double inv_scale, double *count, double *c) {
  double t = count[0] += 1;
  ampl_rule_common(p, inv_scale, true, c);
  c[ADAM_BETA1C] = 1 - p[4].f;
  c[ADAM_BETA2] = p[5].f;
  c[ADAM_BETA2C] = 1 - p[5].f;
  c[ADAM_STEP] = -p[1].f / (1 - pow(p[4].f, t));
  c[ADAM_EPS] = p[6].f;
  return AMPL_RULE_adamax;
}

/* ROOT is folded into both steps and eps here, so that it makes room for the step of the gradient itself. */
enum { NADAM_BETA1C = OWN, NADAM_BETA2, NADAM_BETA2C, NADAM_STEP, NADAM_STEP_GRAD, NADAM_EPS, NADAM_KEEP };
/* p: 4 beta1, 5 beta2, 6 eps, 7 momentum_decay, 8 decoupled; counts: step, mu_product */
static inline ampl_rule ampl_rule_nadam(const ampl_value *p, double inv_scale, double *count, double *c) {
  double t = count[0] += 1, root = sqrt(1 - pow(p[5].f, t));
  double mu = p[4].f * (1 - 0.5 * pow(0.96, t * p[7].f)), next = p[4].f * (1 - 0.5 * pow(0.96, (t + 1) * p[7].f));
  double product = count[1] *= mu;
  ampl_rule_common(p, inv_scale, !p[8].i, c);
  c[NADAM_BETA1C] = 1 - p[4].f;
  c[NADAM_BETA2] = p[5].f;
  c[NADAM_BETA2C] = 1 - p[5].f;
  c[NADAM_STEP] = -p[1].f * next / (1 - product * next) * root;
  c[NADAM_STEP_GRAD] = -p[1].f * (1 - mu) / (1 - product) * root;
  c[NADAM_EPS] = p[6].f * root;
  c[NADAM_KEEP] = ampl_rule_keep(p, p[8].i);
  return AMPL_RULE_nadam;
}

enum { RADAM_BETA1C = OWN, RADAM_BETA2, RADAM_BETA2C, RADAM_STEP, RADAM_PLAIN, RADAM_EPS, RADAM_KEEP };
/* p: 4 beta1, 5 beta2, 6 eps, 7 decoupled.  The variance is trusted (STEP), or it is not (PLAIN). */
static inline ampl_rule ampl_rule_radam(const ampl_value *p, double inv_scale, double *count, double *c) {
  double t = count[0] += 1, power = pow(p[5].f, t), lr = -p[1].f / (1 - pow(p[4].f, t));
  double most = 2 / (1 - p[5].f) - 1, rho = most - 2 * t * power / (1 - power);
  bool trusted = rho > 5;
  ampl_rule_common(p, inv_scale, !p[7].i, c);
  c[RADAM_BETA1C] = 1 - p[4].f;
  c[RADAM_BETA2] = p[5].f;
  c[RADAM_BETA2C] = 1 - p[5].f;
  c[RADAM_STEP] = !trusted ? 0
                           : lr * sqrt(1 - power) *
                               sqrt((rho - 4) * (rho - 2) * most / ((most - 4) * (most - 2) * rho));
  c[RADAM_PLAIN] = trusted ? 0 : lr;
  c[RADAM_EPS] = p[6].f;
  c[RADAM_KEEP] = ampl_rule_keep(p, p[7].i);
  return AMPL_RULE_radam;
}

enum { RMS_LR = OWN, RMS_ALPHA, RMS_ALPHAC, RMS_EPS, RMS_MOMENTUM };
/* p: 4 alpha, 5 eps, 6 momentum, 7 centered */
static inline ampl_rule ampl_rule_rmsprop(const ampl_value *p, double inv_scale, double *count, double *c) {
  count[0] += 1;
  ampl_rule_common(p, inv_scale, true, c);
  c[RMS_LR] = -p[1].f;
  c[RMS_ALPHA] = p[4].f;
  c[RMS_ALPHAC] = 1 - p[4].f;
  c[RMS_EPS] = p[5].f;
  c[RMS_MOMENTUM] = p[6].f;
  return p[7].i ? (p[6].f != 0 ? AMPL_RULE_rmsprop_centered_momentum : AMPL_RULE_rmsprop_centered)
                : (p[6].f != 0 ? AMPL_RULE_rmsprop_momentum : AMPL_RULE_rmsprop);
}

enum { ADAGRAD_LR = OWN, ADAGRAD_EPS };
/* p: 4 lr_decay, 5 eps */
static inline ampl_rule ampl_rule_adagrad(const ampl_value *p, double inv_scale, double *count, double *c) {
  double t = count[0] += 1;
  ampl_rule_common(p, inv_scale, true, c);
  c[ADAGRAD_LR] = -p[1].f / (1 + (t - 1) * p[4].f);
  c[ADAGRAD_EPS] = p[5].f;
  return AMPL_RULE_adagrad;
}

enum { ADADELTA_LR = OWN, ADADELTA_RHO, ADADELTA_RHOC, ADADELTA_EPS };
/* p: 4 rho, 5 eps */
static inline ampl_rule ampl_rule_adadelta(const ampl_value *p, double inv_scale, double *count, double *c) {
  count[0] += 1;
  ampl_rule_common(p, inv_scale, true, c);
  c[ADADELTA_LR] = -p[1].f;
  c[ADADELTA_RHO] = p[4].f;
  c[ADADELTA_RHOC] = 1 - p[4].f;
  c[ADADELTA_EPS] = p[5].f;
  return AMPL_RULE_adadelta;
}

enum { LION_LR = OWN, LION_BETA1, LION_BETA1C, LION_BETA2, LION_BETA2C, LION_KEEP };
/* p: 4 beta1, 5 beta2 */
static inline ampl_rule ampl_rule_lion(const ampl_value *p, double inv_scale, double *count, double *c) {
  (void)count;
  ampl_rule_common(p, inv_scale, false, c);
  c[LION_LR] = -p[1].f;
  c[LION_BETA1] = p[4].f;
  c[LION_BETA1C] = 1 - p[4].f;
  c[LION_BETA2] = p[5].f;
  c[LION_BETA2C] = 1 - p[5].f;
  c[LION_KEEP] = ampl_rule_keep(p, true);
  return AMPL_RULE_lion;
}

/* DECAY stands where the others have the L2 penalty: it is part of the update, not of the gradient.  STEP is the bias
 * correction of m alone until the norms are known: the second pass multiplies it and DECAY by -lr * ratio. */
enum { LAMB_DECAY = L2, LAMB_BETA1C = OWN, LAMB_BETA2, LAMB_BETA2C, LAMB_STEP, LAMB_ROOT, LAMB_EPS };
/* p: 4 beta1, 5 beta2, 6 eps */
static inline ampl_rule ampl_rule_lamb(const ampl_value *p, double inv_scale, double *count, double *c) {
  double t = count[0] += 1;
  ampl_rule_common(p, inv_scale, false, c);
  c[LAMB_DECAY] = p[2].f;
  c[LAMB_BETA1C] = 1 - p[4].f;
  c[LAMB_BETA2] = p[5].f;
  c[LAMB_BETA2C] = 1 - p[5].f;
  c[LAMB_STEP] = 1 / (1 - pow(p[4].f, t));
  c[LAMB_ROOT] = 1 / sqrt(1 - pow(p[5].f, t));
  c[LAMB_EPS] = p[6].f;
  return AMPL_RULE_lamb_moments;
}

#endif

/* ------------------------------------------------------------------------------------------------ rules ----------- */

#ifdef AMPL_RULE_REAL
#define RULE(name) AMPL_RULE_FN void rule_##name(AMPL_RULE_REAL *x, const AMPL_RULE_REAL *c)

/* The gradient to go by: unscaled, turned round to maximize, with the L2 penalty. */
AMPL_RULE_FN AMPL_RULE_REAL rule_gradient(const AMPL_RULE_REAL *x, const AMPL_RULE_REAL *c) {
  return R_FMA(c[L2], x[0], x[1] * c[GRAD]);
}

/* Running means of the gradient in x[2], of its square in x[3]; b: 1 - beta1, beta2, 1 - beta2. */
AMPL_RULE_FN void rule_moments(AMPL_RULE_REAL *x, AMPL_RULE_REAL g, const AMPL_RULE_REAL *b) {
  x[2] = R_FMA(b[0], g - x[2], x[2]);
  x[3] = b[1] * x[3] + b[2] * g * g;
}

RULE(sgd) { x[0] = R_FMA(c[SGD_LR], rule_gradient(x, c), x[0]); }

RULE(sgd_momentum) {
  x[2] = R_FMA(c[SGD_MOMENTUM], x[2], c[SGD_TAKE] * rule_gradient(x, c));
  x[0] = R_FMA(c[SGD_LR], x[2], x[0]);
}

RULE(sgd_nesterov) {
  AMPL_RULE_REAL g = rule_gradient(x, c);
  x[2] = R_FMA(c[SGD_MOMENTUM], x[2], c[SGD_TAKE] * g);
  x[0] = R_FMA(c[SGD_LR], R_FMA(c[SGD_LOOK], x[2], g), x[0]);
}

RULE(adam) {
  rule_moments(x, rule_gradient(x, c), c + ADAM_BETA1C);
  AMPL_RULE_REAL d = R_SQRT(x[3]) / c[ADAM_ROOT] + c[ADAM_EPS];
  x[0] = x[0] * c[ADAM_KEEP] + c[ADAM_STEP] * x[2] / d;
}

RULE(adam_amsgrad) {
  rule_moments(x, rule_gradient(x, c), c + ADAM_BETA1C);
  x[4] = R_MAX(x[4], x[3]);
  AMPL_RULE_REAL d = R_SQRT(x[4]) / c[ADAM_ROOT] + c[ADAM_EPS];
  x[0] = x[0] * c[ADAM_KEEP] + c[ADAM_STEP] * x[2] / d;
}

RULE(adamax) {
  AMPL_RULE_REAL g = rule_gradient(x, c);
  x[2] = R_FMA(c[ADAM_BETA1C], g - x[2], x[2]);
  x[3] = R_MAX(x[3] * c[ADAM_BETA2], R_ABS(g) + c[ADAM_EPS]);
  x[0] = R_FMA(c[ADAM_STEP], x[2] / x[3], x[0]);
}

RULE(nadam) {
  AMPL_RULE_REAL g = rule_gradient(x, c);
  rule_moments(x, g, c + NADAM_BETA1C);
  AMPL_RULE_REAL step = R_FMA(c[NADAM_STEP_GRAD], g, c[NADAM_STEP] * x[2]);
  x[0] = R_FMA(x[0], c[NADAM_KEEP], step / (R_SQRT(x[3]) + c[NADAM_EPS]));
}

RULE(radam) {
  rule_moments(x, rule_gradient(x, c), c + RADAM_BETA1C);
  AMPL_RULE_REAL step = R_FMA(c[RADAM_STEP], x[2] / (R_SQRT(x[3]) + c[RADAM_EPS]), c[RADAM_PLAIN] * x[2]);
  x[0] = R_FMA(x[0], c[RADAM_KEEP], step);
}

RULE(rmsprop) {
  AMPL_RULE_REAL g = rule_gradient(x, c);
  x[2] = R_FMA(c[RMS_ALPHA], x[2], c[RMS_ALPHAC] * g * g);
  x[0] = R_FMA(c[RMS_LR], g / (R_SQRT(x[2]) + c[RMS_EPS]), x[0]);
}

RULE(rmsprop_momentum) {
  AMPL_RULE_REAL g = rule_gradient(x, c);
  x[2] = R_FMA(c[RMS_ALPHA], x[2], c[RMS_ALPHAC] * g * g);
  x[3] = R_FMA(c[RMS_MOMENTUM], x[3], g / (R_SQRT(x[2]) + c[RMS_EPS]));
  x[0] = R_FMA(c[RMS_LR], x[3], x[0]);
}

/* The size to divide by, about the mean: the two running means of rmsprop with `centered`. */
AMPL_RULE_FN AMPL_RULE_REAL rule_centered(AMPL_RULE_REAL *x, AMPL_RULE_REAL g, const AMPL_RULE_REAL *c) {
  x[2] = R_FMA(c[RMS_ALPHA], x[2], c[RMS_ALPHAC] * g * g);
  x[3] = R_FMA(c[RMS_ALPHAC], g - x[3], x[3]);
  return R_SQRT(x[2] - x[3] * x[3]) + c[RMS_EPS];
}

RULE(rmsprop_centered) {
  AMPL_RULE_REAL g = rule_gradient(x, c), d = rule_centered(x, g, c);
  x[0] = R_FMA(c[RMS_LR], g / d, x[0]);
}

RULE(rmsprop_centered_momentum) {
  AMPL_RULE_REAL g = rule_gradient(x, c), d = rule_centered(x, g, c);
  x[4] = R_FMA(c[RMS_MOMENTUM], x[4], g / d);
  x[0] = R_FMA(c[RMS_LR], x[4], x[0]);
}

RULE(adagrad) {
  AMPL_RULE_REAL g = rule_gradient(x, c);
  x[2] = R_FMA(g, g, x[2]);
  x[0] = R_FMA(c[ADAGRAD_LR], g / (R_SQRT(x[2]) + c[ADAGRAD_EPS]), x[0]);
}

RULE(adadelta) {
  AMPL_RULE_REAL g = rule_gradient(x, c);
  x[2] = R_FMA(c[ADADELTA_RHO], x[2], c[ADADELTA_RHOC] * g * g);
  AMPL_RULE_REAL d = R_SQRT(x[3] + c[ADADELTA_EPS]) / R_SQRT(x[2] + c[ADADELTA_EPS]) * g;
  x[3] = R_FMA(c[ADADELTA_RHO], x[3], c[ADADELTA_RHOC] * d * d);
  x[0] = R_FMA(c[ADADELTA_LR], d, x[0]);
}

RULE(lion) {
  AMPL_RULE_REAL g = x[1] * c[GRAD], way = R_FMA(c[LION_BETA1], x[2], c[LION_BETA1C] * g);
  x[0] = R_FMA(c[LION_LR], R_SIGN(way), x[0] * c[LION_KEEP]);
  x[2] = R_FMA(c[LION_BETA2], x[2], c[LION_BETA2C] * g);
}

AMPL_RULE_FN AMPL_RULE_REAL rule_lamb_update(const AMPL_RULE_REAL *x, const AMPL_RULE_REAL *c) {
  AMPL_RULE_REAL d = R_FMA(R_SQRT(x[3]), c[LAMB_ROOT], c[LAMB_EPS]);
  return R_FMA(c[LAMB_DECAY], x[0], c[LAMB_STEP] * x[2] / d);
}

/* First pass: the moments, and in x[4] the update whose norm is wanted. */
RULE(lamb_moments) {
  rule_moments(x, x[1] * c[GRAD], c + LAMB_BETA1C);
  x[4] = rule_lamb_update(x, c);
}
/* Second pass: STEP and DECAY are those of the whole step. */
RULE(lamb) { x[0] = x[0] + rule_lamb_update(x, c); }

#undef RULE
#endif
