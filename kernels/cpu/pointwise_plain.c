/* pointwise_plain.c: the formulas of unary.def and binary.def in f64 and i64.  Integers wrap around. */
#include "isa/pointwise.h"
#include "formula.h"

#include <math.h>
#include <string.h>

/* ------------------------------------------------------------------------------------------------ functions ------- */

static double sign(double a) { return (double)((a > 0) - (a < 0)); }
static double softplus(double a) { return (a > 0 ? a : a != a ? a : 0) + log1p(exp(-fabs(a))); }
static double sigmoid(double a) {
  const double e = exp(-fabs(a));
  return (a < 0 ? e : 1) / (1 + e);
}
static double least(double a, double b) { return a < b || a != a ? a : b; }
static double most(double a, double b) { return a > b || a != a ? a : b; }

/* A guess from the closed form of a near relative of erf, then Halley's steps; near +-1 on erfc, where erf has no
 * digits left. */
static double erfinv(double x) {
  const double a = fabs(x);
  if (!(a < 1)) return a == 1 ? copysign(INFINITY, x) : NAN;
  if (a == 0) return x;
  const double w = log1p(-a * a), k = 2 / (M_PI * 0.147) + w / 2;
  double y = sqrt(sqrt(k * k - w / 0.147) - k);
  for (int i = 0; i < 3; i++) {
    const double off = a < 0.5 ? erf(y) - a : (1 - a) - erfc(y), slope = M_2_SQRTPI * exp(-y * y), r = off / slope;
    y -= r / (1 + y * r);
  }
  return copysign(y, x);
}

static double remainder_of(double a, double b) {
  const double r = fmod(a, b);
  return r != 0 && (r < 0) != (b < 0) ? r + b : r;
}
/* (a - fmod(a, b)) / b is whole but for rounding, which is taken out */
static double floor_div(double a, double b) {
  if (b == 0) return a / b;
  const double r = fmod(a, b);
  double q = (a - r) / b;
  if (r != 0 && (r < 0) != (b < 0)) q -= 1;
  if (q == 0) return copysign(0, a / b);
  const double below = floor(q);
  return q - below > 0.5 ? below + 1 : below;
}
static double round_at(double a, int64_t digits) {
  const double ten = pow(10, (double)(digits < 0 ? -digits : digits));
  return digits < 0 ? rint(a / ten) * ten : rint(a * ten) / ten;
}

static int64_t whole(double v) {
  return v != v ? 0 : v >= 0x1p63 ? INT64_MAX : v < -0x1p63 ? INT64_MIN : (int64_t)v;
}
static int64_t wrap(uint64_t v) { return (int64_t)v; }
/* A divisor of 0 is refused before it comes here; -1 is no division, as INT64_MIN / -1 traps */
static int64_t int_div(int64_t a, int64_t b) { return b == 0 ? 0 : b == -1 ? wrap(0 - (uint64_t)a) : a / b; }
static int64_t int_mod(int64_t a, int64_t b) { return b == 0 || b == -1 ? 0 : a % b; }
static int64_t int_remainder(int64_t a, int64_t b) {
  const int64_t r = int_mod(a, b);
  return r != 0 && (r < 0) != (b < 0) ? r + b : r;
}
static int64_t int_floor_div(int64_t a, int64_t b) {
  const int64_t r = int_mod(a, b);
  return int_div(a, b) - (r != 0 && (r < 0) != (b < 0));
}
static int64_t int_pow(int64_t a, int64_t b) {
  if (b < 0) return a == 1 ? 1 : a == -1 ? (b & 1 ? -1 : 1) : 0;
  uint64_t y = 1, x = (uint64_t)a;
  for (; b; b >>= 1, x *= x)
    if (b & 1) y *= x;
  return wrap(y);
}

/* ------------------------------------------------------------------------------------------------ the language ---- */

#define PF(k) (p[k].f)
#define PI(k) (p[k].i)
#define EQ(a, b) ((a) == (b))
#define NE(a, b) ((a) != (b))
#define LT(a, b) ((a) < (b))
#define LE(a, b) ((a) <= (b))
#define GT(a, b) ((a) > (b))
#define GE(a, b) ((a) >= (b))
#define AND(a, b) ((int)(a) & (int)(b))
#define OR(a, b) ((int)(a) | (int)(b))
#define XOR(a, b) ((a) ^ (b))
#define SELECT(m, a, b) ((m) ? (a) : (b))
#define ZEROS 0
#define WHEN(condition, a, b) ((condition) ? (a) : (b))
#define LET(name, v, formula)                                                                                          \
  __extension__({                                                                                                      \
    value name = (v);                                                                                                  \
    (formula);                                                                                                         \
  })

/* A kernel: one formula over `operands` streams.  `value` and `in` depend on the working type. */
#define LOOP(name, T, operands, load, result)                                                                          \
  static void name(T *out, const T *const *in, const int64_t *step, int64_t n, const ampl_value *given) {              \
    typedef T value;                                                                                                   \
    ampl_value p[AMPL_POINTWISE_PARAMS];                                                                               \
    const T *at[operands];                                                                                             \
    memcpy(p, given, sizeof p);                                                                                        \
    (void)p;                                                                                                           \
    for (int k = 0; k < operands; k++) at[k] = in[k];                                                                  \
    for (int64_t i = 0; i < n; i++) {                                                                                  \
      load out[i] = (T)(result);                                                                                       \
      for (int k = 0; k < operands; k++) at[k] += step[k];                                                             \
    }                                                                                                                  \
  }
#define LOOP_(...) LOOP(__VA_ARGS__)
#define LOAD(k, name)                                                                                                  \
  const value name = *at[k];                                                                                           \
  (void)name;
#define SAVED_X LOAD(1, x)
#define SAVED_Y LOAD(1, y)

/* ------------------------------------------------------------------------------------------------ f64 ------------- */

#define C(v) ((double)(v))
#define ADD(a, b) ((a) + (b))
#define SUB(a, b) ((a) - (b))
#define MUL(a, b) ((a) * (b))
#define DIV(a, b) ((a) / (b))
#define MIN(a, b) least(a, b)
#define MAX(a, b) most(a, b)
#define POW(a, b) pow(a, b)
#define ATAN2(a, b) atan2(a, b)
#define FLOORDIV(a, b) floor_div(a, b)
#define TRUNCDIV(a, b) trunc((a) / (b))
#define REMAINDER(a, b) remainder_of(a, b)
#define NEG(a) (-(a))
#define ABS(a) fabs(a)
#define SIGN(a) sign(a)
#define SQRT(a) sqrt(a)
#define RSQRT(a) (1 / sqrt(a))
#define EXP(a) exp(a)
#define EXPM1(a) expm1(a)
#define LOG(a) log(a)
#define LOG1P(a) log1p(a)
#define LOG2(a) log2(a)
#define LOG10(a) log10(a)
#define SIN(a) sin(a)
#define COS(a) cos(a)
#define TAN(a) tan(a)
#define ASIN(a) asin(a)
#define ACOS(a) acos(a)
#define ATAN(a) atan(a)
#define SINH(a) sinh(a)
#define COSH(a) cosh(a)
#define TANH(a) tanh(a)
#define ERF(a) erf(a)
#define ERFINV(a) erfinv(a)
#define SIGMOID(a) sigmoid(a)
#define SOFTPLUS(a) softplus(a)
#define FLOOR(a) floor(a)
#define CEIL(a) ceil(a)
#define ROUND(a) rint(a)
#define TRUNC(a) trunc(a)
#define ROUND_AT(a, digits) round_at(a, digits)
#define ISNAN(a) ((a) != (a))
#define ISINF(a) (fabs(a) == INFINITY)
#define ISPOSINF(a) ((a) == INFINITY)
#define ISNEGINF(a) ((a) == -INFINITY)
#define ISFINITE(a) (fabs(a) < INFINITY)

#define UNARY_PLAIN(name, kind, save, F, ...) LOOP(name##_f64, double, 1, LOAD(0, x), F)
#define UNARY(name, kind, save, F, D, ...)                                                                             \
  LOOP(name##_f64, double, 1, LOAD(0, x), F)                                                                           \
  LOOP(name##_backward_f64, double, 2, LOAD(0, dy) SAVED_##save, D)
#define UNARY_TEST(name, F, doc) LOOP(name##_f64, double, 1, LOAD(0, x), F)
#include "unary.def"

#define BINARY_PLAIN(name, kind, save, F, ...) LOOP(name##_f64, double, 2, LOAD(0, a) LOAD(1, b), F)
#define BINARY_FLAT(name, kind, F, ...) LOOP(name##_f64, double, 2, LOAD(0, a) LOAD(1, b), F)
#define BINARY_TEST(name, F, doc) LOOP(name##_f64, double, 2, LOAD(0, a) LOAD(1, b), F)
#define TERNARY_KERNEL(name, F) LOOP(name##_f64, double, 3, LOAD(0, a) LOAD(1, b) LOAD(2, c), F)
#define BINARY(name, kind, save, F, ...) LOOP(name##_f64, double, 2, LOAD(0, a) LOAD(1, b), F)
#define TERNARY(name, kind, save, F, ...) LOOP(name##_f64, double, 3, LOAD(0, a) LOAD(1, b) LOAD(2, c), F)
#include "binary.def"

/* p[0] of a gradient's kernel says whose it is; the formula's own parameters follow. */
#undef PF
#undef PI
#define PF(k) (p[(k) + 1].f)
#define PI(k) (p[(k) + 1].i)
#define TAKE_AB double, 3, LOAD(0, dy) LOAD(1, a) LOAD(2, b)
#define TAKE_ABC double, 4, LOAD(0, dy) LOAD(1, a) LOAD(2, b) LOAD(3, c)
#define BINARY(name, kind, save, F, DA, DB, ...)                                                                       \
  LOOP_(name##_backward_f64, TAKE_##save, p[0].i == 0 ? (DA) : (DB))
#define TERNARY(name, kind, save, F, DA, DB, DC, ...)                                                                  \
  LOOP_(name##_backward_f64, TAKE_##save, p[0].i == 0 ? (DA) : p[0].i == 1 ? (DB) : (DC))
#include "binary.def"

const ampl_pointwise_f64 ampl_pointwise_in_f64[AMPL_PW_COUNT] = {
#define ENTRY(name) [AMPL_PW_##name] = name##_f64,
#define UNARY(name, ...) ENTRY(name) ENTRY(name##_backward)
#define UNARY_PLAIN(name, ...) ENTRY(name)
#define UNARY_TEST(name, ...) ENTRY(name)
#include "unary.def"
#define BINARY(name, ...) ENTRY(name) ENTRY(name##_backward)
#define BINARY_PLAIN(name, ...) ENTRY(name)
#define BINARY_FLAT(name, ...) ENTRY(name)
#define BINARY_TEST(name, ...) ENTRY(name)
#define TERNARY(name, ...) ENTRY(name) ENTRY(name##_backward)
#define TERNARY_KERNEL(name, ...) ENTRY(name)
#include "binary.def"
#undef ENTRY
};

/* ------------------------------------------------------------------------------------------------ i64 ------------- */

#undef C
#undef PF
#undef PI
#undef ADD
#undef SUB
#undef MUL
#undef DIV
#undef MIN
#undef MAX
#undef POW
#undef FLOORDIV
#undef TRUNCDIV
#undef REMAINDER
#undef NEG
#undef ABS
#undef SIGN
#undef FLOOR
#undef CEIL
#undef ROUND
#undef TRUNC
#undef ROUND_AT
#undef ISNAN
#undef ISINF
#undef ISPOSINF
#undef ISNEGINF
#undef ISFINITE
#define PF(k) (p[k].f)
#define PI(k) (p[k].i)
#define C(v) whole((double)(v))
#define ADD(a, b) wrap((uint64_t)(a) + (uint64_t)(b))
#define SUB(a, b) wrap((uint64_t)(a) - (uint64_t)(b))
#define MUL(a, b) wrap((uint64_t)(a) * (uint64_t)(b))
#define DIV(a, b) int_div(a, b)
#define MIN(a, b) ((a) < (b) ? (a) : (b))
#define MAX(a, b) ((a) > (b) ? (a) : (b))
#define POW(a, b) int_pow(a, b)
#define FLOORDIV(a, b) int_floor_div(a, b)
#define TRUNCDIV(a, b) int_div(a, b)
#define REMAINDER(a, b) int_remainder(a, b)
#define NEG(a) wrap(0 - (uint64_t)(a))
#define ABS(a) ((a) < 0 ? NEG(a) : (a))
#define SIGN(a) (((a) > 0) - ((a) < 0))
#define FLOOR(a) (a)
#define CEIL(a) (a)
#define ROUND(a) (a)
#define TRUNC(a) (a)
#define ROUND_AT(a, digits) (a)
#define ISNAN(a) 0
#define ISINF(a) 0
#define ISPOSINF(a) 0
#define ISNEGINF(a) 0
#define ISFINITE(a) 1

/* Which kinds of op integers take */
#define IF_REAL(...)
#define IF_HIDDEN(...)
#define IF_NUMERIC(...) __VA_ARGS__
#define IF_ANY(...) __VA_ARGS__
#define IF_PRODUCT(...) __VA_ARGS__
#define IF_QUOTIENT(...) __VA_ARGS__

#define UNARY_PLAIN(name, kind, save, F, ...) IF_##kind(LOOP(name##_i64, int64_t, 1, LOAD(0, x), F))
#define UNARY(name, kind, save, F, ...) IF_##kind(LOOP(name##_i64, int64_t, 1, LOAD(0, x), F))
#define UNARY_TEST(name, F, doc) LOOP(name##_i64, int64_t, 1, LOAD(0, x), F)
#include "unary.def"
#define BINARY_PLAIN(name, kind, save, F, ...) IF_##kind(LOOP(name##_i64, int64_t, 2, LOAD(0, a) LOAD(1, b), F))
#define BINARY_FLAT(name, kind, F, ...) IF_##kind(LOOP(name##_i64, int64_t, 2, LOAD(0, a) LOAD(1, b), F))
#define BINARY_TEST(name, F, doc) LOOP(name##_i64, int64_t, 2, LOAD(0, a) LOAD(1, b), F)
#define TERNARY_KERNEL(name, F) LOOP(name##_i64, int64_t, 3, LOAD(0, a) LOAD(1, b) LOAD(2, c), F)
#define BINARY(name, kind, save, F, ...) IF_##kind(LOOP(name##_i64, int64_t, 2, LOAD(0, a) LOAD(1, b), F))
#define TERNARY(name, kind, save, F, ...)                                                                              \
  IF_##kind(LOOP(name##_i64, int64_t, 3, LOAD(0, a) LOAD(1, b) LOAD(2, c), F))
#include "binary.def"

const ampl_pointwise_i64 ampl_pointwise_in_i64[AMPL_PW_COUNT] = {
#define ENTRY(name) [AMPL_PW_##name] = name##_i64,
#define UNARY(name, kind, ...) IF_##kind(ENTRY(name))
#define UNARY_PLAIN(name, kind, ...) IF_##kind(ENTRY(name))
#define UNARY_TEST(name, ...) ENTRY(name)
#include "unary.def"
#define BINARY(name, kind, ...) IF_##kind(ENTRY(name))
#define BINARY_PLAIN(name, kind, ...) IF_##kind(ENTRY(name))
#define BINARY_FLAT(name, kind, ...) IF_##kind(ENTRY(name))
#define BINARY_TEST(name, ...) ENTRY(name)
#define TERNARY(name, kind, ...) IF_##kind(ENTRY(name))
#define TERNARY_KERNEL(name, ...) ENTRY(name)
#include "binary.def"
};
