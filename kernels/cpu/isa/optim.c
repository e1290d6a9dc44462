/* optim.c: the f32 loops of optimiser steps and of the GradScaler's unscale. */
#include "isa/simd.h"
#include "optim_isa.h"

#define AMPL_RULE_REAL V
#define AMPL_RULE_FN INLINE
#define R_FMA(a, b, c) vfma((a), (b), (c))
#define R_SQRT(a) vsqrt(a)
#define R_ABS(a) vabs(a)
#define R_MAX(a, b) vmax_nan((a), (b))
#define R_SIGN(a) vsub(vselect(vgt((a), vzero()), vset(1), vzero()), vselect(vlt((a), vzero()), vset(1), vzero()))
#include "optim_rules.h"

/* Everything but the gradient, x[1], is written back. */
#define AMPL_X(name, values)                                                                                           \
  static void name##_block(float *const *x, const float *coef, long n) {                                               \
    V c[AMPL_RULE_COEFS], v[values];                                                                                   \
    for (int k = 0; k < AMPL_RULE_COEFS; k++) c[k] = vset(coef[k]);                                                    \
    for (long i = 0; i < n; i += VW) {                                                                                 \
      bool whole = i + VW <= n;                                                                                        \
      for (int k = 0; k < values; k++) v[k] = whole ? vld(x[k] + i) : vldn(x[k] + i, n - i);                           \
      rule_##name(v, c);                                                                                               \
      for (int k = 0; k < values; k++) {                                                                               \
        if (k == 1) continue;                                                                                          \
        if (whole) vst(x[k] + i, v[k]);                                                                                \
        else vstn(x[k] + i, v[k], n - i);                                                                              \
      }                                                                                                                \
    }                                                                                                                  \
  }
AMPL_RULES(AMPL_X)
#undef AMPL_X

/* 0 * x is 0 for numbers and NaN for the rest, and a NaN stays in a sum. */
static bool nonfinite (const float *x, long n) {
  V a = vzero(), b = vzero();
  long i = 0;
  for (; i + 2 * VW <= n; i += 2 * VW) {
    a = vfma(vld(x + i), vzero(), a);
    b = vfma(vld(x + i + VW), vzero(), b);
  }
  for (; i < n; i += VW) a = vfma(vldn(x + i, n - i), vzero(), a);
  return many(visnan(vadd(a, b)));
}

static bool unscale (float *x, float inv, long n) {
  V a = vzero(), s = vset(inv);
  long i = 0;
  for (; i + VW <= n; i += VW) {
    V v = vmul(vld(x + i), s);
    a = vfma(v, vzero(), a);
    vst(x + i, v);
  }
  if (i < n) {
    V v = vmul(vldn(x + i, n - i), s);
    a = vfma(v, vzero(), a);
    vstn(x + i, v, n - i);
  }
  return many(visnan(a));
}

static double sum_of_squares (const float *x, long n) {
  V a = vzero(), b = vzero();
  long i = 0;
  for (; i + 2 * VW <= n; i += 2 * VW) {
    V u = vld(x + i), v = vld(x + i + VW);
    a = vfma(u, u, a);
    b = vfma(v, v, b);
  }
  for (; i < n; i += VW) {
    V u = vldn(x + i, n - i);
    a = vfma(u, u, a);
  }
  return (double)vsum(vadd(a, b));
}

const ampl_cpu_optim_isa ISA(ampl_cpu_optim) = {
  .rule = {
#define AMPL_X(name, values) [AMPL_RULE_##name] = name##_block,
    AMPL_RULES(AMPL_X)
#undef AMPL_X
  },
  .unscale = unscale, .nonfinite = nonfinite, .sum_of_squares = sum_of_squares};
