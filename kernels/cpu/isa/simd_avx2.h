/*
** simd_avx2.h: the vector layer on AVX2, FMA and F16C.  See simd.h.
*/
#include <immintrin.h>

#define ISA_SUFFIX _avx2
#define ISA_NAME "avx2"
#define VW 8

typedef __m256 V;
typedef __m256i I;
typedef __m256 M; /* all bits of a lane, or none */

INLINE I v_as_i (V a) { return _mm256_castps_si256(a); }
INLINE V i_as_v (I a) { return _mm256_castsi256_ps(a); }

INLINE V vzero (void) { return _mm256_setzero_ps(); }
INLINE V vset (float x) { return _mm256_set1_ps(x); }
INLINE I izero (void) { return _mm256_setzero_si256(); }
INLINE I iset (int32_t x) { return _mm256_set1_epi32(x); }
INLINE I iiota (void) { return _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7); }

INLINE I first_lanes (long n) {
  static const int32_t bits[2 * VW] = {-1, -1, -1, -1, -1, -1, -1, -1};
  return _mm256_loadu_si256((const void *)(bits + VW - (n > VW ? VW : n < 0 ? 0 : n)));
}
INLINE M mfirst (long n) { return i_as_v(first_lanes(n)); }
INLINE M mand (M a, M b) { return _mm256_and_ps(a, b); }
INLINE M mor (M a, M b) { return _mm256_or_ps(a, b); }
INLINE M mxor (M a, M b) { return _mm256_xor_ps(a, b); }
INLINE M mnot (M a) { return _mm256_xor_ps(a, i_as_v(iset(-1))); }
INLINE M mandnot (M a, M b) { return _mm256_andnot_ps(a, b); }
INLINE bool many (M a) { return _mm256_movemask_ps(a) != 0; }
INLINE bool mall (M a) { return _mm256_movemask_ps(a) == 0xff; }
INLINE uint32_t mbits (M a) { return (uint32_t)_mm256_movemask_ps(a); }

INLINE V vld (const float *p) { return _mm256_loadu_ps(p); }
INLINE V vldn (const float *p, long n) { return _mm256_maskload_ps(p, first_lanes(n)); }
INLINE void vst (float *p, V v) { _mm256_storeu_ps(p, v); }
INLINE void vstn (float *p, V v, long n) { _mm256_maskstore_ps(p, first_lanes(n), v); }
INLINE I ild (const int32_t *p) { return _mm256_loadu_si256((const void *)p); }
INLINE I ildn (const int32_t *p, long n) { return _mm256_maskload_epi32(p, first_lanes(n)); }
INLINE void ist (int32_t *p, I v) { _mm256_storeu_si256((void *)p, v); }
INLINE void istn (int32_t *p, I v, long n) { _mm256_maskstore_epi32(p, first_lanes(n), v); }

INLINE V vadd (V a, V b) { return _mm256_add_ps(a, b); }
INLINE V vsub (V a, V b) { return _mm256_sub_ps(a, b); }
INLINE V vmul (V a, V b) { return _mm256_mul_ps(a, b); }
INLINE V vdiv (V a, V b) { return _mm256_div_ps(a, b); }
INLINE V vsqrt (V a) { return _mm256_sqrt_ps(a); }
INLINE V vfma (V a, V b, V c) { return _mm256_fmadd_ps(a, b, c); }
INLINE V vfnma (V a, V b, V c) { return _mm256_fnmadd_ps(a, b, c); }
INLINE V vfma_exact (V a, V b, V c) { return _mm256_fmadd_ps(a, b, c); }
INLINE V vmax (V a, V b) { return _mm256_max_ps(a, b); }
INLINE V vmin (V a, V b) { return _mm256_min_ps(a, b); }
INLINE V vround (V a) { return _mm256_round_ps(a, 8 | _MM_FROUND_TO_NEAREST_INT); }
INLINE V vfloor (V a) { return _mm256_round_ps(a, 8 | _MM_FROUND_TO_NEG_INF); }
INLINE V vceil (V a) { return _mm256_round_ps(a, 8 | _MM_FROUND_TO_POS_INF); }
INLINE V vtrunc (V a) { return _mm256_round_ps(a, 8 | _MM_FROUND_TO_ZERO); }

INLINE M vlt (V a, V b) { return _mm256_cmp_ps(a, b, _CMP_LT_OQ); }
INLINE M vle (V a, V b) { return _mm256_cmp_ps(a, b, _CMP_LE_OQ); }
INLINE M vgt (V a, V b) { return _mm256_cmp_ps(a, b, _CMP_GT_OQ); }
INLINE M vge (V a, V b) { return _mm256_cmp_ps(a, b, _CMP_GE_OQ); }
INLINE M veq (V a, V b) { return _mm256_cmp_ps(a, b, _CMP_EQ_OQ); }
INLINE M vne (V a, V b) { return _mm256_cmp_ps(a, b, _CMP_NEQ_UQ); }
INLINE M visnan (V a) { return _mm256_cmp_ps(a, a, _CMP_UNORD_Q); }
INLINE M ieq (I a, I b) { return i_as_v(_mm256_cmpeq_epi32(a, b)); }
INLINE M igt (I a, I b) { return i_as_v(_mm256_cmpgt_epi32(a, b)); }
INLINE V vselect (M m, V a, V b) { return _mm256_blendv_ps(b, a, m); }
INLINE I iselect (M m, I a, I b) { return _mm256_blendv_epi8(b, a, v_as_i(m)); }

INLINE V vand (V a, V b) { return _mm256_and_ps(a, b); }
INLINE V vor (V a, V b) { return _mm256_or_ps(a, b); }
INLINE V vxor (V a, V b) { return _mm256_xor_ps(a, b); }
INLINE V vandnot (V a, V b) { return _mm256_andnot_ps(a, b); }
INLINE I iand (I a, I b) { return _mm256_and_si256(a, b); }
INLINE I ior (I a, I b) { return _mm256_or_si256(a, b); }
INLINE I ixor (I a, I b) { return _mm256_xor_si256(a, b); }
INLINE I iandnot (I a, I b) { return _mm256_andnot_si256(a, b); }
INLINE I inot (I a) { return _mm256_xor_si256(a, iset(-1)); }
INLINE I ishl (I a, const int n) { return _mm256_slli_epi32(a, n); }
INLINE I ishr (I a, const int n) { return _mm256_srli_epi32(a, n); }
INLINE I isar (I a, const int n) { return _mm256_srai_epi32(a, n); }
INLINE I iadd (I a, I b) { return _mm256_add_epi32(a, b); }
INLINE I isub (I a, I b) { return _mm256_sub_epi32(a, b); }
INLINE I imul (I a, I b) { return _mm256_mullo_epi32(a, b); }
INLINE I imax (I a, I b) { return _mm256_max_epi32(a, b); }
INLINE I imin (I a, I b) { return _mm256_min_epi32(a, b); }
INLINE I imulwide (I a, I b, I *hi) {
  I even = _mm256_mul_epu32(a, b);
  I odd = _mm256_mul_epu32(_mm256_srli_epi64(a, 32), _mm256_srli_epi64(b, 32));
  *hi = _mm256_blend_epi32(_mm256_srli_epi64(even, 32), odd, 0xaa);
  return _mm256_blend_epi32(even, _mm256_slli_epi64(odd, 32), 0xaa);
}

INLINE I v_to_i (V a) { return _mm256_cvtps_epi32(a); }
INLINE I v_trunc_to_i (V a) { return _mm256_cvttps_epi32(a); }
INLINE V i_to_v (I a) { return _mm256_cvtepi32_ps(a); }
/* two factors, so that neither leaves the range of normal floats; only the second one rounds */
INLINE V vldexp (V x, I n) {
  I half = isar(n, 1), rest = isub(n, half), bias = iset(127);
  x = vmul(x, i_as_v(ishl(iadd(half, bias), 23)));
  return vmul(x, i_as_v(ishl(iadd(rest, bias), 23)));
}

/* The reductions, spelled once: `op` is add, max or min */
#define V_REDUCE(name, op)                                                                         \
  INLINE float name (V a) {                                                                        \
    __m128 q = _mm_##op##_ps(_mm256_castps256_ps128(a), _mm256_extractf128_ps(a, 1));              \
    q = _mm_##op##_ps(q, _mm_movehl_ps(q, q));                                                     \
    return _mm_cvtss_f32(_mm_##op##_ss(q, _mm_movehdup_ps(q)));                                    \
  }
V_REDUCE(vsum, add)
V_REDUCE(vhmax, max)
V_REDUCE(vhmin, min)
#undef V_REDUCE

/* 16-bit lanes: there is no masked form, so a part of a vector goes through memory */
INLINE __m128i ld16 (const uint16_t *p) { return _mm_loadu_si128((const void *)p); }
INLINE __m128i ld16n (const uint16_t *p, long n) {
  if (n >= VW) return ld16(p);
  uint16_t t[VW] = {0};
  for (long i = 0; i < n; i++) t[i] = p[i];
  return ld16(t);
}
INLINE void st16 (uint16_t *p, __m128i v) { _mm_storeu_si128((void *)p, v); }
INLINE void st16n (uint16_t *p, __m128i v, long n) {
  if (n >= VW) {
    st16(p, v);
    return;
  }
  uint16_t t[VW];
  st16(t, v);
  for (long i = 0; i < n; i++) p[i] = t[i];
}
INLINE V widen_bf16 (__m128i h) { return i_as_v(ishl(_mm256_cvtepu16_epi32(h), 16)); }
INLINE V vld_bf16 (const uint16_t *p) { return widen_bf16(ld16(p)); }
INLINE V vldn_bf16 (const uint16_t *p, long n) { return widen_bf16(ld16n(p, n)); }
INLINE V vld_f16 (const uint16_t *p) { return _mm256_cvtph_ps(ld16(p)); }
INLINE V vldn_f16 (const uint16_t *p, long n) { return _mm256_cvtph_ps(ld16n(p, n)); }
INLINE I bf16_bits (V v);
INLINE __m128i narrow_bf16 (V v) {
  I r = ishr(bf16_bits(v), 16);
  return _mm_packus_epi32(_mm256_castsi256_si128(r), _mm256_extracti128_si256(r, 1));
}
INLINE void vst_bf16 (uint16_t *p, V v) { st16(p, narrow_bf16(v)); }
INLINE void vstn_bf16 (uint16_t *p, V v, long n) { st16n(p, narrow_bf16(v), n); }
INLINE void vst_f16 (uint16_t *p, V v) { st16(p, _mm256_cvtps_ph(v, 8)); }
INLINE void vstn_f16 (uint16_t *p, V v, long n) { st16n(p, _mm256_cvtps_ph(v, 8), n); }

/* 4x4 blocks inside the 128-bit lanes, then the lanes */
INLINE void vtrans (V r[VW]) {
  V t[VW];
  UNROLL for (int i = 0; i < VW; i += 4) {
    V a = _mm256_unpacklo_ps(r[i], r[i + 1]), b = _mm256_unpackhi_ps(r[i], r[i + 1]);
    V c = _mm256_unpacklo_ps(r[i + 2], r[i + 3]), d = _mm256_unpackhi_ps(r[i + 2], r[i + 3]);
    t[i] = _mm256_shuffle_ps(a, c, 0x44), t[i + 1] = _mm256_shuffle_ps(a, c, 0xee);
    t[i + 2] = _mm256_shuffle_ps(b, d, 0x44), t[i + 3] = _mm256_shuffle_ps(b, d, 0xee);
  }
  UNROLL for (int i = 0; i < 4; i++) {
    r[i] = _mm256_permute2f128_ps(t[i], t[i + 4], 0x20);
    r[i + 4] = _mm256_permute2f128_ps(t[i], t[i + 4], 0x31);
  }
}
