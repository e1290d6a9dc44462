/* pointwise.c: the formulas of unary.def and binary.def, in loops over vectors of f32. */
#include "isa/pointwise.h"
#include "isa/vmath.h"
#include "formula.h"

/* ------------------------------------------------------------------------------------------------ the language ---- */

typedef V value;
#define C(v) vset((float)(v))
#define PF(k) (p[k].f)
#define PI(k) (p[k].i)
#define ADD(a, b) vadd(a, b)
#define SUB(a, b) vsub(a, b)
#define MUL(a, b) vmul(a, b)
#define DIV(a, b) vdiv(a, b)
#define MIN(a, b) vmin_nan(a, b)
#define MAX(a, b) vmax_nan(a, b)
#define POW(a, b) vpow(a, b)
#define ATAN2(a, b) vatan2(a, b)
#define FLOORDIV(a, b) floor_div(a, b)
#define TRUNCDIV(a, b) vtrunc(vdiv(a, b))
#define REMAINDER(a, b) remainder_of(a, b)
#define NEG(a) vneg(a)
#define ABS(a) vabs(a)
#define SIGN(a) sign(a)
#define SQRT(a) vsqrt(a)
#define RSQRT(a) vdiv(vset(1), vsqrt(a))
#define EXP(a) vexp(a)
#define EXPM1(a) vexpm1(a)
#define LOG(a) vlog(a)
#define LOG1P(a) vlog1p(a)
#define LOG2(a) vlog2(a)
#define LOG10(a) vlog10(a)
#define SIN(a) vsin(a)
#define COS(a) vcos(a)
#define TAN(a) vtan(a)
#define ASIN(a) vasin(a)
#define ACOS(a) vacos(a)
#define ATAN(a) vatan(a)
#define SINH(a) vsinh(a)
#define COSH(a) vcosh(a)
#define TANH(a) vtanh(a)
#define ERF(a) verf(a)
#define ERFINV(a) verfinv(a)
#define SIGMOID(a) vsigmoid(a)
#define SOFTPLUS(a) vsoftplus(a)
#define FLOOR(a) vfloor(a)
#define CEIL(a) vceil(a)
#define ROUND(a) vround(a)
#define TRUNC(a) vtrunc(a)
#define ROUND_AT(a, digits) round_at(a, digits)
#define EQ(a, b) veq(a, b)
#define NE(a, b) vne(a, b)
#define LT(a, b) vlt(a, b)
#define LE(a, b) vle(a, b)
#define GT(a, b) vgt(a, b)
#define GE(a, b) vge(a, b)
#define ISNAN(a) visnan(a)
#define ISINF(a) veq(vabs(a), vset(INFINITY))
#define ISPOSINF(a) veq(a, vset(INFINITY))
#define ISNEGINF(a) veq(a, vset(-INFINITY))
#define ISFINITE(a) vlt(vabs(a), vset(INFINITY))
#define AND(a, b) mand(a, b)
#define OR(a, b) mor(a, b)
#define XOR(a, b) mxor(a, b)
#define SELECT(m, a, b) vselect(m, a, b)
#define ZEROS vzero()
#define WHEN(condition, a, b) ((condition) ? (a) : (b))
#define LET(name, v, formula)                                                                                          \
  __extension__({                                                                                                      \
    value name = (v);                                                                                                  \
    (formula);                                                                                                         \
  })

INLINE V sign (V a) {
  V one = vcopysign(vset(1), a);
  return vselect(vgt(vabs(a), vzero()), one, vzero());
}

/* fmod lane by lane: it is exact, which no quotient in f32 is */
INLINE V modulo (V a, V b) {
  float x[VW], y[VW];
  vst(x, a), vst(y, b);
  for (int i = 0; i < VW; i++) x[i] = fmodf(x[i], y[i]);
  return vld(x);
}
INLINE M signs_differ (V a, V b) { return mxor(vlt(a, vzero()), vlt(b, vzero())); }
INLINE V remainder_of (V a, V b) {
  V r = modulo(a, b);
  return vselect(mand(vne(r, vzero()), signs_differ(r, b)), vadd(r, b), r);
}
/* (a - fmod(a, b)) / b is whole but for rounding, which is taken out */
INLINE V floor_div (V a, V b) {
  V r = modulo(a, b), q = vdiv(vsub(a, r), b);
  q = vselect(mand(vne(r, vzero()), signs_differ(r, b)), vsub(q, vset(1)), q);
  V below = vfloor(q);
  below = vselect(vgt(vsub(q, below), vset(0.5f)), vadd(below, vset(1)), below);
  V zero = vcopysign(vzero(), vdiv(a, b));
  below = vselect(veq(q, vzero()), zero, below);
  return vselect(veq(b, vzero()), vdiv(a, b), below);
}

static __attribute__((noinline)) V round_at (V a, int64_t digits) {
  V ten = vset((float)pow(10, (double)(digits < 0 ? -digits : digits)));
  return digits < 0 ? vmul(vround(vdiv(a, ten)), ten) : vdiv(vround(vmul(a, ten)), ten);
}

/* ------------------------------------------------------------------------------------------------ loops ----------- */

/* A loop over whole vectors, and once more over a copy of what is left, so that the formula stands in the code once.
 * The parameters are copied where no store can change them: what depends on them alone leaves the loop. */
#define LOOP(name, operands, load, result)                                                                             \
  static void name (float *out, const float *const *in, const int64_t *step, int64_t n, const ampl_value *given) {     \
    ampl_value p[AMPL_POINTWISE_PARAMS];                                                                               \
    const float *at[operands];                                                                                         \
    long by[operands];                                                                                                 \
    float part[operands][VW], last[VW], *home = NULL;                                                                  \
    long whole = n / VW, left = n % VW;                                                                                \
    memcpy(p, given, sizeof p);                                                                                        \
    (void)p;                                                                                                           \
    for (int k = 0; k < operands; k++) at[k] = in[k], by[k] = step[k] ? VW : 0;                                        \
    for (;;) {                                                                                                         \
      for (long i = 0; i < whole; i++) {                                                                               \
        load vst(out, result);                                                                                         \
        out += VW;                                                                                                     \
        UNROLL for (int k = 0; k < operands; k++) at[k] += by[k];                                                      \
      }                                                                                                                \
      if (home) vstn(home, vld(last), left);                                                                           \
      if (home || !left) return;                                                                                       \
      UNROLL for (int k = 0; k < operands; k++) {                                                                      \
        vst(part[k], vldn(at[k], left));                                                                               \
        at[k] = part[k];                                                                                               \
      }                                                                                                                \
      home = out, out = last, whole = 1;                                                                               \
    }                                                                                                                  \
  }

#define LOAD(k, name)                                                                                                  \
  V name = vld(at[k]);                                                                                                 \
  (void)name;
#define TRUTH(mask) vselect(mask, vset(1), vzero())

#define UNARY_PLAIN(name, kind, save, F, ...) LOOP(name##_f32, 1, LOAD(0, x), F)
#define UNARY(name, kind, save, F, D, ...)                                                                             \
  LOOP(name##_f32, 1, LOAD(0, x), F)                                                                                   \
  LOOP(name##_backward_f32, 2, LOAD(0, dy) SAVED_##save, D)
#define SAVED_X LOAD(1, x)
#define SAVED_Y LOAD(1, y)
#define UNARY_TEST(name, F, doc) LOOP(name##_f32, 1, LOAD(0, x), TRUTH(F))
#include "unary.def"

#define BINARY_PLAIN(name, kind, save, F, ...) LOOP(name##_f32, 2, LOAD(0, a) LOAD(1, b), F)
#define BINARY_FLAT(name, kind, F, ...) LOOP(name##_f32, 2, LOAD(0, a) LOAD(1, b), F)
#define BINARY_TEST(name, F, doc) LOOP(name##_f32, 2, LOAD(0, a) LOAD(1, b), TRUTH(F))
#define TERNARY_KERNEL(name, F) LOOP(name##_f32, 3, LOAD(0, a) LOAD(1, b) LOAD(2, c), F)
#define BINARY(name, kind, save, F, DA, DB, ...) LOOP(name##_f32, 2, LOAD(0, a) LOAD(1, b), F)
#define TERNARY(name, kind, save, F, ...) LOOP(name##_f32, 3, LOAD(0, a) LOAD(1, b) LOAD(2, c), F)
#include "binary.def"

/* p[0] of a gradient's kernel says whose it is; the formula's own parameters follow. */
#undef PF
#undef PI
#define PF(k) (p[(k) + 1].f)
#define PI(k) (p[(k) + 1].i)
#define TAKE_AB 3, LOAD(0, dy) LOAD(1, a) LOAD(2, b)
#define TAKE_ABC 4, LOAD(0, dy) LOAD(1, a) LOAD(2, b) LOAD(3, c)
#define LOOP_(...) LOOP(__VA_ARGS__)
#define BINARY(name, kind, save, F, DA, DB, ...)                                                                       \
  LOOP_(name##_backward_f32, TAKE_##save, p[0].i == 0 ? (DA) : (DB))
#define TERNARY(name, kind, save, F, DA, DB, DC, ...)                                                                  \
  LOOP_(name##_backward_f32, TAKE_##save, p[0].i == 0 ? (DA) : p[0].i == 1 ? (DB) : (DC))
#include "binary.def"

/* ------------------------------------------------------------------------------------------------ pow ------------- */

/* Powers by one plain number, which are most of them, and their gradients. */
LOOP(cube, 1, LOAD(0, x), vmul(x, vmul(x, x)))
LOOP(twice_product, 2, LOAD(0, dy) LOAD(1, a), vmul(dy, vmul(vset(2), a)))
LOOP(thrice_square, 2, LOAD(0, dy) LOAD(1, a), vmul(dy, vmul(vset(3), vmul(a, a))))

static void pow_by (float *out, const float *const *in, const int64_t *step, int64_t n, const ampl_value *p) {
  static const struct { float e; ampl_pointwise_f32 f; } simple[] = {
    {2, square_f32}, {3, cube}, {0.5f, sqrt_f32}, {-0.5f, rsqrt_f32}, {-1, reciprocal_f32}};
  for (unsigned k = 0; step[1] == 0 && k < sizeof simple / sizeof *simple; k++)
    if (in[1][0] == simple[k].e) {
      simple[k].f(out, in, step, n, p);
      return;
    }
  pow_f32(out, in, step, n, p);
}

static void pow_backward_by (float *out, const float *const *in, const int64_t *step, int64_t n, const ampl_value *p) {
  bool simple = p[0].i == 0 && step[2] == 0;
  if (simple && in[2][0] == 2) twice_product(out, in, step, n, p);
  else if (simple && in[2][0] == 3) thrice_square(out, in, step, n, p);
  else pow_backward_f32(out, in, step, n, p);
}

/* ------------------------------------------------------------------------------------------------ table ----------- */

#define pow_f32          pow_by
#define pow_backward_f32 pow_backward_by

const ampl_pointwise_table ISA(ampl_pointwise_table) = {{
#define ENTRY(name) [AMPL_PW_##name] = name##_f32,
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
}};
