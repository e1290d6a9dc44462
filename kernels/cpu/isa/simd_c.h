/*
** simd_c.h: the vector layer in portable C, with the vector extension of gcc and clang; the compiler
** makes SSE2, NEON or plain scalar code of it.  See simd.h.
*/
#include <math.h>

#define ISA_SUFFIX _c
#define ISA_NAME "c"
#define VW 4

typedef float V __attribute__((vector_size(16)));
typedef int32_t I __attribute__((vector_size(16)));
typedef uint32_t U __attribute__((vector_size(16))); /* for what must wrap or shift in zeros */
typedef I M;                                         /* -1 or 0 */

INLINE I v_as_i (V a) { return (I)a; }
INLINE V i_as_v (I a) { return (V)a; }

INLINE V vset (float x) { return (V){x, x, x, x}; }
INLINE V vzero (void) { return vset(0); }
INLINE I iset (int32_t x) { return (I){x, x, x, x}; }
INLINE I izero (void) { return iset(0); }
INLINE I iiota (void) { return (I){0, 1, 2, 3}; }

INLINE M mfirst (long n) { return iiota() < iset(n > VW ? VW : n < 0 ? 0 : (int32_t)n); }
INLINE M mand (M a, M b) { return a & b; }
INLINE M mor (M a, M b) { return a | b; }
INLINE M mxor (M a, M b) { return a ^ b; }
INLINE M mnot (M a) { return ~a; }
INLINE M mandnot (M a, M b) { return ~a & b; }
INLINE uint32_t mbits (M a) {
  return (uint32_t)((a[0] & 1) | (a[1] & 2) | (a[2] & 4) | (a[3] & 8));
}
INLINE bool many (M a) { return mbits(a) != 0; }
INLINE bool mall (M a) { return mbits(a) == 15; }

/* Defines ld, ldn, st, stn for a vector type of 4-byte elements */
#define MEMORY(prefix, vec, element)                                                               \
  INLINE vec prefix##ld (const element *p) {                                                       \
    vec v;                                                                                         \
    memcpy(&v, p, sizeof v);                                                                       \
    return v;                                                                                      \
  }                                                                                                \
  INLINE vec prefix##ldn (const element *p, long n) {                                              \
    vec v = {0};                                                                                   \
    for (int i = 0; i < VW && i < n; i++) v[i] = p[i];                                             \
    return v;                                                                                      \
  }                                                                                                \
  INLINE void prefix##st (element *p, vec v) { memcpy(p, &v, sizeof v); }                          \
  INLINE void prefix##stn (element *p, vec v, long n) {                                            \
    for (int i = 0; i < VW && i < n; i++) p[i] = v[i];                                             \
  }
MEMORY(v, V, float)
MEMORY(i, I, int32_t)
#undef MEMORY

INLINE M vlt (V a, V b) { return a < b; }
INLINE M vle (V a, V b) { return a <= b; }
INLINE M vgt (V a, V b) { return a > b; }
INLINE M vge (V a, V b) { return a >= b; }
INLINE M veq (V a, V b) { return a == b; }
INLINE M vne (V a, V b) { return a != b; }
INLINE M visnan (V a) { return a != a; }
INLINE M ieq (I a, I b) { return a == b; }
INLINE M igt (I a, I b) { return a > b; }
INLINE I iselect (M m, I a, I b) { return (m & a) | (~m & b); }
INLINE V vselect (M m, V a, V b) { return (V)iselect(m, (I)a, (I)b); }

INLINE V vand (V a, V b) { return (V)((I)a & (I)b); }
INLINE V vor (V a, V b) { return (V)((I)a | (I)b); }
INLINE V vxor (V a, V b) { return (V)((I)a ^ (I)b); }
INLINE V vandnot (V a, V b) { return (V)(~(I)a & (I)b); }
INLINE I iand (I a, I b) { return a & b; }
INLINE I ior (I a, I b) { return a | b; }
INLINE I ixor (I a, I b) { return a ^ b; }
INLINE I iandnot (I a, I b) { return ~a & b; }
INLINE I inot (I a) { return ~a; }
INLINE I ishl (I a, const int n) { return (I)((U)a << n); }
INLINE I ishr (I a, const int n) { return (I)((U)a >> n); }
INLINE I isar (I a, const int n) { return a >> n; }
INLINE I iadd (I a, I b) { return (I)((U)a + (U)b); }
INLINE I isub (I a, I b) { return (I)((U)a - (U)b); }
INLINE I imul (I a, I b) { return (I)((U)a * (U)b); }
INLINE I imax (I a, I b) { return iselect(a > b, a, b); }
INLINE I imin (I a, I b) { return iselect(a < b, a, b); }
INLINE I imulwide (I a, I b, I *hi) {
  I lo;
  for (int i = 0; i < VW; i++) {
    uint64_t p = (uint64_t)(uint32_t)a[i] * (uint32_t)b[i];
    lo[i] = (int32_t)(uint32_t)p;
    (*hi)[i] = (int32_t)(uint32_t)(p >> 32);
  }
  return lo;
}

INLINE V vadd (V a, V b) { return a + b; }
INLINE V vsub (V a, V b) { return a - b; }
INLINE V vmul (V a, V b) { return a * b; }
INLINE V vdiv (V a, V b) { return a / b; }
INLINE V vsqrt (V a) { return (V){sqrtf(a[0]), sqrtf(a[1]), sqrtf(a[2]), sqrtf(a[3])}; }
INLINE V vfma (V a, V b, V c) { return a * b + c; }
INLINE V vfnma (V a, V b, V c) { return c - a * b; }
INLINE V vfma_exact (V a, V b, V c) {
  for (int i = 0; i < VW; i++) c[i] = fmaf(a[i], b[i], c[i]);
  return c;
}
INLINE V vmax (V a, V b) { return vselect(a > b, a, b); }
INLINE V vmin (V a, V b) { return vselect(a < b, a, b); }

INLINE V i_to_v (I a) { return __builtin_convertvector(a, V); }
/* out of range, NaN: as the x86 instructions do it, instead of undefined behaviour */
INLINE I v_trunc_to_i (V a) {
  M fits = (a >= vset(-0x1p31f)) & (a < vset(0x1p31f));
  I r = __builtin_convertvector(vselect(fits, a, vzero()), I);
  return iselect(fits, r, iset(INT32_MIN));
}

/* Adding and taking away 2^23 rounds to an integer; floats from 2^23 on have no fraction */
INLINE V vround (V a) {
  V sign = vand(a, vset(-0.0f)), size = vxor(a, sign), big = vset(0x1p23f);
  V r = (size + big) - big;
  return vor(vselect(size < big, r, size), sign);
}
INLINE V vfloor (V a) {
  V sign = vand(a, vset(-0.0f)), r = vround(a);
  return vor(vselect(r > a, r - vset(1), r), sign);
}
INLINE V vceil (V a) {
  V sign = vand(a, vset(-0.0f)), r = vround(a);
  return vor(vselect(r < a, r + vset(1), r), sign);
}
INLINE V vtrunc (V a) {
  V sign = vand(a, vset(-0.0f)), size = vxor(a, sign), r = vround(size);
  return vor(vselect(r > size, r - vset(1), r), sign);
}
INLINE I v_to_i (V a) { return v_trunc_to_i(vround(a)); }
/* two factors, so that neither leaves the range of normal floats; only the second one rounds */
INLINE V vldexp (V x, I n) {
  I half = isar(n, 1), rest = isub(n, half), bias = iset(127);
  return x * (V)ishl(iadd(half, bias), 23) * (V)ishl(iadd(rest, bias), 23);
}

INLINE float vsum (V a) { return (a[0] + a[2]) + (a[1] + a[3]); }
INLINE float max2 (float a, float b) { return a > b ? a : b; }
INLINE float min2 (float a, float b) { return a < b ? a : b; }
INLINE float vhmax (V a) { return max2(max2(a[0], a[2]), max2(a[1], a[3])); }
INLINE float vhmin (V a) { return min2(min2(a[0], a[2]), min2(a[1], a[3])); }

/* 16-bit lanes, as integers */
INLINE I ld16n (const uint16_t *p, long n) {
  I v = izero();
  for (int i = 0; i < VW && i < n; i++) v[i] = p[i];
  return v;
}
INLINE void st16n (uint16_t *p, I v, long n) {
  for (int i = 0; i < VW && i < n; i++) p[i] = (uint16_t)v[i];
}
INLINE V vldn_bf16 (const uint16_t *p, long n) { return (V)ishl(ld16n(p, n), 16); }
INLINE V vld_bf16 (const uint16_t *p) { return vldn_bf16(p, VW); }
INLINE I bf16_bits (V v);
INLINE void vstn_bf16 (uint16_t *p, V v, long n) { st16n(p, ishr(bf16_bits(v), 16), n); }
INLINE void vst_bf16 (uint16_t *p, V v) { vstn_bf16(p, v, VW); }

/* The exponent is moved from bias 15 to bias 127 by a multiplication, which is exact and normalises
   subnormals on the way; infinities and NaNs then get the exponent they need. */
INLINE V widen_f16 (I h) {
  I size = ishl(iand(h, iset(0x7fff)), 13), sign = ishl(iand(h, iset(0x8000)), 16);
  I bits = v_as_i(i_as_v(size) * vset(0x1p112f));
  M nan = size > iset(0x7c00 << 13), special = size >= iset(0x7c00 << 13);
  bits = ior(bits, iand(special, iset(0x7f800000)));
  bits = ior(bits, iand(nan, iset(0x400000)));
  return (V)ior(bits, sign);
}
/* Normal results: round the 13 bits that go away, in integers.  Subnormal results: adding 0.5 shifts
   the value to where the last bit of its sum is the last bit of the f16, and rounds it there. */
INLINE I narrow_f16 (V v) {
  I bits = v_as_i(v), sign = iand(ishr(bits, 16), iset(0x8000)), size = iand(bits, iset(0x7fffffff));
  I odd = iand(ishr(size, 13), iset(1));
  I normal = ishr(iadd(isub(size, iset(112 << 23)), iadd(iset(0xfff), odd)), 13);
  I small = isub(v_as_i(i_as_v(size) + vset(0.5f)), iset(126 << 23));
  I r = iselect(size < iset(113 << 23), small, normal);
  r = iselect(size >= iset(143 << 23), iset(0x7c00), r);
  I nan = ior(iset(0x7e00), iand(ishr(size, 13), iset(0x3ff)));
  return ior(iselect(size > iset(0x7f800000), nan, r), sign);
}
INLINE V vldn_f16 (const uint16_t *p, long n) { return widen_f16(ld16n(p, n)); }
INLINE V vld_f16 (const uint16_t *p) { return vldn_f16(p, VW); }
INLINE void vstn_f16 (uint16_t *p, V v, long n) { st16n(p, narrow_f16(v), n); }
INLINE void vst_f16 (uint16_t *p, V v) { vstn_f16(p, v, VW); }

INLINE void vtrans (V r[VW]) {
  for (int i = 0; i < VW; i++)
    for (int j = 0; j < i; j++) {
      float t = r[i][j];
      r[i][j] = r[j][i];
      r[j][i] = t;
    }
}
