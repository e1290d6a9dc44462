/*
** vmath.h: elementary functions on vectors of f32.
**
**   vexp vexpm1 vlog vlog1p vlog2 vlog10          vpow(x, y)
**   vsin vcos vtan vasin vacos vatan              vatan2(y, x)
**   vsinh vcosh vtanh verf verfinv vsigmoid vsoftplus
**
** The largest errors, in units of the last place, for each instruction set: spec/c/vmath_test.c, which
** compares with libm in f64 over every exponent of f32.  Infinities, NaN, zeros and subnormals come out
** as C's functions have them.
**
** Coefficients are our own: minimax fits, the lower ones rounded to f32 before the higher ones are
** fitted.  A polynomial is written from its lowest coefficient, POLY(t, c0, c1, ...).
*/
#ifndef AMPL_CPU_VMATH_H
#define AMPL_CPU_VMATH_H

#include "simd.h"

#include <math.h>

#define POLY2(t, a, b) vfma(t, vset(b), vset(a))
#define POLY3(t, a, ...) vfma(t, POLY2(t, __VA_ARGS__), vset(a))
#define POLY4(t, a, ...) vfma(t, POLY3(t, __VA_ARGS__), vset(a))
#define POLY5(t, a, ...) vfma(t, POLY4(t, __VA_ARGS__), vset(a))
#define POLY6(t, a, ...) vfma(t, POLY5(t, __VA_ARGS__), vset(a))
#define POLY7(t, a, ...) vfma(t, POLY6(t, __VA_ARGS__), vset(a))
#define POLY8(t, a, ...) vfma(t, POLY7(t, __VA_ARGS__), vset(a))
#define POLY9(t, a, ...) vfma(t, POLY8(t, __VA_ARGS__), vset(a))

/* ln 2 in two parts; the first has 15 bits, so that an exponent times it is exact */
#define LN2_HI 0x1.62e4p-1f
#define LN2_LO 0x1.7f7d1cp-20f
#define LOG2_E 0x1.715476p+0f

/* ---------------------------------------------------------------- exp */

/* x = n ln 2 + r, |r| <= ln 2 / 2 */
INLINE V exp_reduce (V x, I *n) {
  V k = vround(vmul(x, vset(LOG2_E)));
  *n = v_to_i(k);
  return vfnma(k, vset(LN2_LO), vfnma(k, vset(LN2_HI), x));
}

/* e^x * 2^shift; a NaN passes through the clamp, as max and min give their second operand then */
INLINE V exp_shifted (V x, int32_t shift) {
  I n;
  x = vmin(vset(90.0f), vmax(vset(-105.0f), x));
  V r = exp_reduce(x, &n);
  V q = POLY5(r, 0x1.fffffcp-2f, 0x1.55548cp-3f, 0x1.555858p-5f, 0x1.123dep-7f, 0x1.6ac74ep-10f);
  V p = vadd(vset(1), vfma(vmul(r, r), q, r));
  return vldexp(p, iadd(n, iset(shift)));
}
INLINE V vexp (V x) { return exp_shifted(x, 0); }

/* e^r - 1 for |r| <= ln 2 / 2 */
INLINE V expm1_core (V r) {
  V q = POLY5(r, 0x1.555556p-3f, 0x1.5554ecp-5f, 0x1.110f66p-7f, 0x1.6d491p-10f, 0x1.a3c47p-13f);
  V rr = vmul(r, r);
  return vadd(r, vfma(vmul(rr, r), q, vmul(vset(0.5f), rr)));
}
/* 2^n (p + 1) - 1, at half its size, so that 2^128 does not overflow on the way */
INLINE V vexpm1 (V x) {
  I n;
  V inside = vmin(vset(89.0f), vmax(vset(-25.0f), x));
  V p = expm1_core(exp_reduce(inside, &n));
  V s = vldexp(vset(1), isub(n, iset(1)));
  V half = vfma(s, p, vsub(s, vset(0.5f)));
  return vselect(veq(x, vzero()), x, vmul(vset(2), half));
}

/* 1 / (1 + e) or e / (1 + e) with e = e^-|x|, which cannot overflow */
INLINE V vsigmoid (V x) {
  V e = vexp(vneg(vabs(x)));
  return vdiv(vselect(vlt(x, vzero()), e, vset(1)), vadd(vset(1), e));
}

/* t / (t + 2) with t = e^(2|x|) - 1 */
INLINE V vtanh (V x) {
  I n;
  V a = vmin(vset(20.0f), vabs(vadd(x, x)));
  V p = expm1_core(exp_reduce(a, &n));
  V s = vldexp(vset(1), n);
  V t = vfma(s, p, vsub(s, vset(1)));
  return vselect(visnan(x), x, vcopysign(vdiv(t, vadd(t, vset(2))), x));
}

/* ---------------------------------------------------------------- log */

/* x = m 2^e with m in [sqrt(1/2), sqrt(2)); x positive, subnormals too */
INLINE V log_reduce (V x, V *e) {
  M tiny = vlt(x, vset(0x1p-126f));
  x = vselect(tiny, vmul(x, vset(0x1p24f)), x);
  I bits = isub(v_as_i(x), iset(0x3f3504f3)); /* sqrt(1/2) */
  *e = vsub(i_to_v(isar(bits, 23)), vselect(tiny, vset(24), vzero()));
  return i_as_v(iadd(iand(bits, iset(0x7fffff)), iset(0x3f3504f3)));
}

/* log(1 + f) - f for 1 + f in [sqrt(1/2), sqrt(2)) */
INLINE V log1p_core (V f) {
  V q = POLY9(f, 0x1.555546p-2f, -0x1.0000c8p-2f, 0x1.99a6bp-3f, -0x1.550a82p-3f, 0x1.22c9acp-3f,
              -0x1.035784p-3f, 0x1.f7cc42p-4f, -0x1.a7368ep-4f, 0x1.5925dap-5f);
  V ff = vmul(f, f);
  return vfma(vmul(ff, f), q, vmul(vset(-0.5f), ff));
}

/* What all logarithms give for x that is not positive and finite: y elsewhere */
INLINE V log_special (V x, V y) {
  y = vselect(vlt(x, vset(INFINITY)), y, x); /* infinity, NaN */
  y = vselect(vlt(x, vzero()), vset(NAN), y);
  return vselect(veq(x, vzero()), vset(-INFINITY), y);
}

INLINE V vlog (V x) {
  V e, f = vsub(log_reduce(x, &e), vset(1));
  V low = vfma(e, vset(LN2_LO), log1p_core(f));
  return log_special(x, vfma(e, vset(LN2_HI), vadd(f, low)));
}
/* e + (f + rest) log2(e), where log2(e) = 1.5 - 0.0573...: the part of f that matters stays exact */
INLINE V vlog2 (V x) {
  V e, f = vsub(log_reduce(x, &e), vset(1));
  V rest = log1p_core(f);
  V low = vfma(f, vset(-0x1.d57136p-5f), vmul(rest, vset(LOG2_E)));
  return log_special(x, vadd(e, vfma(f, vset(1.5f), low)));
}
/* log10(2) in two parts, the first of 15 bits; log10(e) = 0.4375 - 0.0032... */
INLINE V vlog10 (V x) {
  V e, f = vsub(log_reduce(x, &e), vset(1));
  V rest = log1p_core(f);
  V low = vfma(f, vset(-0x1.a42756p-9f), vmul(rest, vset(0x1.bcb7b2p-2f)));
  low = vfma(e, vset(0x1.3509f8p-18f), low);
  return log_special(x, vfma(e, vset(0x1.344p-2f), vfma(f, vset(0.4375f), low)));
}

/* With u = 1 + x rounded: log u + (what rounding lost) / u */
INLINE V vlog1p (V x) {
  V u = vadd(vset(1), x), e;
  V lost = vselect(vgt(x, vset(1)), vsub(vset(1), vsub(u, x)), vsub(x, vsub(u, vset(1))));
  V m = log_reduce(u, &e);
  M near = veq(e, vzero());
  V f = vselect(near, x, vsub(m, vset(1)));
  V low = vselect(near, vzero(), vdiv(lost, u));
  low = vfma(e, vset(LN2_LO), vadd(low, log1p_core(f)));
  V y = vfma(e, vset(LN2_HI), vadd(f, low));
  y = log_special(u, y);
  return vselect(veq(x, vzero()), x, y);
}

/* log(1 + e^x), exact on both sides */
INLINE V vsoftplus (V x) {
  return vadd(vmax_nan(x, vzero()), vlog1p(vexp(vneg(vabs(x)))));
}

/* ---------------------------------------------------------------- sin, cos, tan */

/* Beyond this size the reduction below loses bits, and libm takes over, lane by lane */
#define TRIG_MAX 12000.0f

/* x = n pi/2 + r, |r| <= pi/4.  pi/2 in four parts, three of 11 bits: their products with n are exact */
INLINE V trig_reduce (V x, I *n) {
  V k = vround(vmul(x, vset(0x1.45f306p-1f)));
  *n = v_to_i(k);
  V r = vfnma(k, vset(0x1.92p+0f), x);
  r = vfnma(k, vset(0x1.fb4p-12f), r);
  r = vfnma(k, vset(0x1.444p-24f), r);
  return vfnma(k, vset(0x1.68c234p-39f), r);
}
INLINE V sin_core (V r, V t) {
  V q = POLY4(t, -0x1.555556p-3f, 0x1.111176p-7f, -0x1.a05bbcp-13f, 0x1.7cd93ap-19f);
  return vfma(vmul(r, t), q, r);
}
INLINE V cos_core (V t) {
  V q = POLY3(t, 0x1.55554ap-5f, -0x1.6c0c28p-10f, 0x1.99e80cp-16f);
  return vadd(vset(1), vfma(vmul(t, t), q, vmul(vset(-0.5f), t)));
}

/* y with f(x) in the lanes of m */
INLINE V by_libm (V x, V y, M m, float (*f)(float)) {
  float in[VW], out[VW];
  if (!many(m)) return y;
  vst(in, x), vst(out, y);
  uint32_t bits = mbits(m);
  for (int i = 0; i < VW; i++)
    if (bits >> i & 1) out[i] = f(in[i]);
  return vld(out);
}
INLINE M too_big (V x) { return mnot(vlt(vabs(x), vset(TRIG_MAX))); }

/* The sine of a quarter turn n plus r */
INLINE V sin_turned (V r, I n) {
  V t = vmul(r, r);
  M odd = ieq(iand(n, iset(1)), iset(1));
  V y = vselect(odd, cos_core(t), sin_core(r, t));
  return vxor(y, i_as_v(ishl(iand(n, iset(2)), 30)));
}
INLINE V vsin (V x) {
  I n;
  V r = trig_reduce(x, &n);
  V y = vselect(veq(x, vzero()), x, sin_turned(r, n)); /* the reduction turns -0 into 0 */
  return by_libm(x, y, too_big(x), sinf);
}
INLINE V vcos (V x) {
  I n;
  V r = trig_reduce(x, &n);
  return by_libm(x, sin_turned(r, iadd(n, iset(1))), too_big(x), cosf);
}
INLINE V vtan (V x) {
  I n;
  V r = trig_reduce(x, &n), t = vmul(r, r), s = sin_core(r, t), c = cos_core(t);
  M odd = ieq(iand(n, iset(1)), iset(1));
  V y = vdiv(vselect(odd, vneg(c), s), vselect(odd, s, c));
  return by_libm(x, vselect(veq(x, vzero()), x, y), too_big(x), tanf);
}

/* ---------------------------------------------------------------- asin, acos, atan */

#define PI_F      0x1.921fb6p+1f
#define PI_F_LO   -0x1.777a5cp-24f
#define HALF_PI   0x1.921fb6p+0f
#define HALF_PI_LO -0x1.777a5cp-25f

/* asin(r) - r for |r| <= 1/2, t = r^2 */
INLINE V asin_core (V r, V t) {
  V q = POLY6(t, 0x1.55554cp-3f, 0x1.3338aap-4f, 0x1.6ca7dcp-5f, 0x1.04cd0cp-5f, 0x1.d589f4p-7f, 0x1.349e46p-5f);
  return vmul(vmul(r, t), q);
}
/* Beyond 1/2: asin x = pi/2 - 2 asin(sqrt((1 - x) / 2)) */
INLINE V vasin (V x) {
  V a = vabs(x), half = vmul(vset(0.5f), vsub(vset(1), a));
  M big = vgt(a, vset(0.5f));
  V t = vselect(big, half, vmul(a, a)), r = vselect(big, vsqrt(half), a);
  V rest = asin_core(r, t);
  V from_top = vsub(vset(HALF_PI), vmul(vset(2), vadd(r, vadd(rest, vset(-HALF_PI_LO / 2)))));
  return vcopysign(vselect(big, from_top, vadd(r, rest)), x);
}
INLINE V vacos (V x) {
  V a = vabs(x), half = vmul(vset(0.5f), vsub(vset(1), a));
  M big = vgt(a, vset(0.5f)), negative = vlt(x, vzero());
  V t = vselect(big, half, vmul(a, a)), r = vselect(big, vsqrt(half), a);
  V rest = asin_core(r, t);
  V twice = vmul(vset(2), vadd(r, rest));
  V far = vselect(negative, vsub(vset(PI_F), vsub(twice, vset(PI_F_LO))), twice);
  V s = vcopysign(r, x), near = vsub(vset(HALF_PI), vadd(s, vsub(vcopysign(rest, x), vset(HALF_PI_LO))));
  return vselect(big, far, near);
}

/* The angle of the point (b, a), a and b not negative: tan of it is a / b.  It is taken from 0, pi/4 or
   pi/2, whichever is within pi/8: (a - b) / (a + b) is the tangent of the angle from pi/4. */
INLINE V atan_quadrant (V a, V b) {
  M mid = vgt(a, vmul(b, vset(0x1.a82798p-2f))), high = vgt(a, vmul(b, vset(0x1.3504f4p+1f)));
  V top = vselect(high, vneg(b), vselect(mid, vsub(a, b), a));
  V bottom = vselect(high, a, vselect(mid, vadd(a, b), b));
  V base = vselect(high, vset(HALF_PI), vselect(mid, vset(HALF_PI / 2), vzero()));
  V base_low = vselect(high, vset(HALF_PI_LO), vselect(mid, vset(HALF_PI_LO / 2), vzero()));
  V r = vdiv(top, bottom), t = vmul(r, r);
  V q = POLY5(t, -0x1.55554ap-2f, 0x1.9991e8p-3f, -0x1.23ba44p-3f, 0x1.b22f08p-4f, -0x1.f31f26p-5f);
  return vadd(base, vadd(r, vfma(vmul(r, t), q, base_low)));
}
INLINE V vatan (V x) {
  V a = vmin(vset(0x1p100f), vabs(x));
  return vcopysign(atan_quadrant(a, vset(1)), x);
}
INLINE V vatan2 (V y, V x) {
  V a = vabs(y), b = vabs(x);
  /* only the ratio counts: bring huge and tiny pairs to where a + b neither overflows nor vanishes */
  V most = vmax(a, b);
  V scale = vselect(vlt(most, vset(0x1p-60f)), vset(0x1p60f), vset(1));
  scale = vselect(vgt(most, vset(0x1p100f)), vset(0x1p-60f), scale);
  M both_inf = mand(veq(a, vset(INFINITY)), veq(b, vset(INFINITY)));
  M both_zero = veq(most, vzero());
  V ra = vselect(both_inf, vset(1), vmul(a, scale)), rb = vselect(mor(both_inf, both_zero), vset(1), vmul(b, scale));
  V angle = vselect(veq(rb, vset(INFINITY)), vzero(), atan_quadrant(ra, rb));
  angle = vselect(veq(ra, vset(INFINITY)), vset(HALF_PI), angle);
  M left = igt(izero(), v_as_i(x)); /* the sign bit: -0 counts */
  angle = vselect(left, vsub(vset(PI_F), vsub(angle, vset(PI_F_LO))), angle);
  return vselect(mor(visnan(x), visnan(y)), vset(NAN), vcopysign(angle, y));
}

/* ---------------------------------------------------------------- sinh, cosh */

INLINE V vcosh (V x) {
  V e = exp_shifted(vabs(x), -1);
  return vadd(e, vdiv(vset(0.25f), e));
}
INLINE V vsinh (V x) {
  V a = vabs(x), t = vmul(a, a), e = exp_shifted(a, -1);
  V q = POLY4(t, 0x1.555556p-3f, 0x1.1110e2p-7f, 0x1.a02156p-13f, 0x1.75a6f4p-19f);
  V y = vselect(vlt(a, vset(1)), vfma(vmul(a, t), q, a), vsub(e, vdiv(vset(0.25f), e)));
  return vcopysign(y, x);
}

/* ---------------------------------------------------------------- erf */

/* table[i] for i in 0 .. 15, lane by lane */
INLINE V look_up (const float *table, I i) {
#if defined ISA_AVX512
  return _mm512_permutexvar_ps(i, _mm512_loadu_ps(table));
#elif defined ISA_AVX2
  V low = _mm256_permutevar8x32_ps(_mm256_loadu_ps(table), i);
  V high = _mm256_permutevar8x32_ps(_mm256_loadu_ps(table + 8), i);
  return _mm256_blendv_ps(low, high, i_as_v(ishl(i, 28))); /* by bit 3 */
#else
  return (V){table[i[0]], table[i[1]], table[i[2]], table[i[3]]};
#endif
}

/* erf(a) = a P(u) for a in [i / 4, (i + 1) / 4), u = a minus the middle of that interval; row k holds the coefficients
   of u^k.  From 3.92 on erf rounds to 1; at 0x1.fffffcp1, which stands for all beyond, the formula gives just that,
   fused or not: 1 - erf must vanish there. */
static const float erf_table[6][16] = {
  {0x1.1f5e1ap+0f, 0x1.13e08cp+0f, 0x1.fe8f16p-1f, 0x1.cacbc2p-1f, 0x1.9450bcp-1f, 0x1.611066p-1f,
   0x1.3448f8p-1f, 0x1.0ee122p-1f, 0x1.e09a7ap-2f, 0x1.aed2p-2f, 0x1.8603ep-2f, 0x1.642828p-2f,
   0x1.47ad4p-2f, 0x1.2f6828p-2f, 0x1.1a7b9p-2f, 0x1.08421p-2f},
  {-0x1.7d900ap-4f, -0x1.09ac3cp-2f, -0x1.7edef6p-2f, -0x1.b29324p-2f, -0x1.ad1534p-2f, -0x1.82ad18p-2f,
   -0x1.48b7c4p-2f, -0x1.0e9e18p-2f, -0x1.b87062p-3f, -0x1.67575ap-3f, -0x1.284242p-3f, -0x1.ef1beep-4f,
   -0x1.a35764p-4f, -0x1.6793eep-4f, -0x1.37b3d8p-4f, -0x1.10c83ap-4f},
  {-0x1.766afp-2f, -0x1.276b4ep-2f, -0x1.527662p-3f, -0x1.4579d6p-5f, 0x1.bbf076p-5f, 0x1.ab144ep-4f,
   0x1.df89cp-4f, 0x1.b7ea86p-4f, 0x1.6bfc1ep-4f, 0x1.1e3198p-4f, 0x1.ba0a1ap-5f, 0x1.560bdap-5f,
   0x1.0bd90cp-5f, 0x1.a9f504p-6f, 0x1.57e93cp-6f, 0x1.19936ap-6f},
  {0x1.c5a67cp-5f, 0x1.24d544p-3f, 0x1.671ac4p-3f, 0x1.367a8p-3f, 0x1.8a285ap-4f, 0x1.3fc2f2p-5f,
   -0x1.681ffap-10f, -0x1.5d2a96p-6f, -0x1.ae6beep-6f, -0x1.834a5p-6f, -0x1.3244fcp-6f, -0x1.cac458p-7f,
   -0x1.52a6ccp-7f, -0x1.f70a74p-8f, -0x1.7b269p-8f, -0x1.229a76p-8f},
  {0x1.b26622p-4f, 0x1.00cffep-4f, 0x1.039134p-9f, -0x1.6bb9dap-5f, -0x1.ee48e6p-5f, -0x1.9d322cp-5f,
   -0x1.e8067ep-6f, -0x1.715754p-7f, -0x1.0b1908p-13f, 0x1.1ec982p-8f, 0x1.4a631cp-8f, 0x1.14193ep-8f,
   0x1.9a7116p-9f, 0x1.2502f4p-9f, 0x1.a0c6ap-10f, 0x1.2c06d4p-10f},
  {-0x1.3e92d4p-6f, -0x1.7a7cdep-5f, -0x1.7c4664p-5f, -0x1.a1dcd2p-6f, -0x1.54df7ep-11f, 0x1.d75b1ap-7f,
   0x1.14e166p-6f, 0x1.8aa7ep-7f, 0x1.8382d4p-8f, 0x1.b7dd9cp-10f, -0x1.4075ccp-12f, -0x1.c4d5dp-11f,
   -0x1.ab2b0ep-11f, -0x1.415554p-11f, -0x1.c026b6p-12f, -0x1.336a42p-12f},
};
INLINE V verf (V x) {
  V a = vmin(vset(0x1.fffffcp1f), vabs(x)), k = vtrunc(vmul(a, vset(4)));
  V u = vsub(vfnma(k, vset(0.25f), a), vset(0.125f)); /* exact */
  I i = iand(v_to_i(k), iset(15)); /* a NaN must not reach beyond the table */
  V p = look_up(erf_table[5], i);
  UNROLL for (int row = 4; row >= 0; row--) p = vfma(p, u, look_up(erf_table[row], i));
  return vselect(visnan(x), x, vcopysign(vmin(vset(1), vmul(a, p)), x));
}

/* x P(w) with w = -log(1 - x^2): one polynomial up to w = 5, one of sqrt(w) beyond */
INLINE V verfinv (V x) {
  V w = vneg(vlog(vmul(vsub(vset(1), x), vadd(vset(1), x))));
  w = vselect(vlt(vabs(x), vset(0.25f)), vneg(vlog1p(vneg(vmul(x, x)))), w);
  V c = vsub(w, vset(2.5f)), s = vsub(vsqrt(w), vset(3));
  V p = POLY9(c, 0x1.805c5ep+0f, 0x1.f91ed2p-3f, -0x1.11c8c6p-8f, -0x1.48b084p-10f, 0x1.ca39b2p-13f, -0x1.237a7ep-18f,
              -0x1.d50c48p-19f, 0x1.6b4fb2p-22f, 0x1.b25f82p-26f);
  V q = POLY9(s, 0x1.6a9efcp+1f, 0x1.006d9p+0f, 0x1.3572d4p-7f, -0x1.f1758p-8f, 0x1.759026p-8f, -0x1.ef89c8p-9f,
              0x1.7f09fcp-10f, 0x1.a99dfcp-13f, -0x1.3d231ap-12f);
  V y = vmul(x, vselect(vlt(w, vset(5)), p, q));
  return vselect(veq(vabs(x), vset(1)), vcopysign(vset(INFINITY), x), y);
}

/* ---------------------------------------------------------------- pow */

/* The logarithm must be known to 2^-32 for its product with y to give every bit of the power: here the
   vectors are of f64, half the lanes at a time. */
typedef double D __attribute__((vector_size(VW * 4)));
typedef int64_t L __attribute__((vector_size(VW * 4)));

INLINE D dset (double x) { return x - (D){0}; }
INLINE D dselect (L m, D a, D b) { return (D)((m & (L)a) | (~m & (L)b)); }

#define DPOLY5(t, a, b, c, d, e) (a + t * (b + t * (c + t * (d + t * e))))

/* log2(x) for x > 0 normal (every f32 is, as a double) */
INLINE D dlog2 (D x) {
  L bits = (L)x - 0x3fe6a09e667f3bcd; /* sqrt(1/2) */
  L e = bits >> 52;
  D m = (D)((bits & 0xfffffffffffff) + 0x3fe6a09e667f3bcd);
  D s = (m - 1) / (m + 1), t = s * s;
  D q = DPOLY5(t, 0x1.55555555e85e4p-2, 0x1.99999718d3f47p-3, 0x1.2493eb246fad2p-3, 0x1.c6362ab9000a3p-4,
               0x1.90862b74e13cp-4);
  return __builtin_convertvector(e, D) + (s + s * t * q) * (2 * 0x1.71547652b82fep+0);
}
/* 2^x, 0 or infinity of f32 outside its range */
INLINE D dexp2 (D x) {
  x = dselect(x > 200, dset(200), dselect(x < -200, dset(-200), x));
  D shifted = x + 0x1.8p52;
  D r = x - (shifted - 0x1.8p52);
  D q = DPOLY5(r, 0x1.c6b08df45aad5p-5, 0x1.3b29f0fe5c47bp-7, 0x1.5d8723ab30b2p-10, 0x1.445e6a504ca02p-13,
               0x1.00f1326940ae2p-16);
  D p = 1 + r * (0x1.62e42fef7b655p-1 + r * (0x1.ebfbe07ab7de2p-3 + r * q));
  return (D)((L)p + ((L)shifted << 52));
}

INLINE V vpow (V x, V y) {
  typedef float H __attribute__((vector_size(VW * 2)));
  V size = vabs(x);
  M zero = veq(size, vzero()), inf = veq(size, vset(INFINITY)), one = veq(size, vset(1));
  V base = vselect(mor(zero, inf), vset(1), size), result;
  float b[VW], g[VW], h[VW];
  vst(b, base), vst(g, y);
  for (int i = 0; i < VW; i += VW / 2) {
    H bh, gh;
    memcpy(&bh, b + i, sizeof bh), memcpy(&gh, g + i, sizeof gh);
    H r = __builtin_convertvector(dexp2(__builtin_convertvector(gh, D) * dlog2(__builtin_convertvector(bh, D))), H);
    memcpy(h + i, &r, sizeof r);
  }
  result = vld(h);
  M up = mxor(vgt(y, vzero()), zero); /* whether 0 or infinity goes to infinity */
  result = vselect(mor(zero, inf), vselect(up, vset(INFINITY), vzero()), result);
  /* whole y: even ones drop the sign of x; every float from 2^24 on is even */
  V whole = vtrunc(y), halved = vmul(vset(0.5f), y);
  M integer = veq(whole, y), odd = mand(integer, vne(vtrunc(halved), halved));
  M negative = igt(izero(), v_as_i(x));
  result = vxor(result, vselect(mand(negative, odd), vset(-0.0f), vzero()));
  M undefined = mand(mand(vlt(x, vzero()), mnot(inf)), mnot(mor(integer, zero)));
  result = vselect(undefined, vset(NAN), result);
  result = vselect(mor(visnan(x), visnan(y)), vset(NAN), result);
  M to_one = mor(veq(y, vzero()), veq(x, vset(1)));
  to_one = mor(to_one, mand(one, veq(vabs(y), vset(INFINITY))));
  return vselect(to_one, vset(1), result);
}

#endif
