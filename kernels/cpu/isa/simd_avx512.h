/*
** simd_avx512.h: the vector layer on AVX-512 F, BW, VL, DQ (and BF16 for vdot).  See simd.h.
*/
#include <immintrin.h>

#define ISA_SUFFIX _avx512
#define ISA_NAME "avx512"
#define VW 16

typedef __m512 V;
typedef __m512i I;
typedef __mmask16 M;

INLINE I v_as_i (V a) { return _mm512_castps_si512(a); }
INLINE V i_as_v (I a) { return _mm512_castsi512_ps(a); }

INLINE V vzero (void) { return _mm512_setzero_ps(); }
INLINE V vset (float x) { return _mm512_set1_ps(x); }
INLINE I izero (void) { return _mm512_setzero_si512(); }
INLINE I iset (int32_t x) { return _mm512_set1_epi32(x); }
INLINE I iiota (void) {
  return _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
}

INLINE M mfirst (long n) { return n >= VW ? 0xffff : n <= 0 ? 0 : (M)((1u << n) - 1); }
INLINE M mand (M a, M b) { return (M)(a & b); }
INLINE M mor (M a, M b) { return (M)(a | b); }
INLINE M mxor (M a, M b) { return (M)(a ^ b); }
INLINE M mnot (M a) { return (M)~a; }
INLINE M mandnot (M a, M b) { return (M)(~a & b); }
INLINE bool many (M a) { return a != 0; }
INLINE bool mall (M a) { return a == 0xffff; }
INLINE uint32_t mbits (M a) { return a; }

INLINE V vld (const float *p) { return _mm512_loadu_ps(p); }
INLINE V vldn (const float *p, long n) { return _mm512_maskz_loadu_ps(mfirst(n), p); }
INLINE void vst (float *p, V v) { _mm512_storeu_ps(p, v); }
INLINE void vstn (float *p, V v, long n) { _mm512_mask_storeu_ps(p, mfirst(n), v); }
INLINE I ild (const int32_t *p) { return _mm512_loadu_si512(p); }
INLINE I ildn (const int32_t *p, long n) { return _mm512_maskz_loadu_epi32(mfirst(n), p); }
INLINE void ist (int32_t *p, I v) { _mm512_storeu_si512(p, v); }
INLINE void istn (int32_t *p, I v, long n) { _mm512_mask_storeu_epi32(p, mfirst(n), v); }

INLINE V vadd (V a, V b) { return _mm512_add_ps(a, b); }
INLINE V vsub (V a, V b) { return _mm512_sub_ps(a, b); }
INLINE V vmul (V a, V b) { return _mm512_mul_ps(a, b); }
INLINE V vdiv (V a, V b) { return _mm512_div_ps(a, b); }
INLINE V vsqrt (V a) { return _mm512_sqrt_ps(a); }
INLINE V vfma (V a, V b, V c) { return _mm512_fmadd_ps(a, b, c); }
INLINE V vfnma (V a, V b, V c) { return _mm512_fnmadd_ps(a, b, c); }
INLINE V vfma_exact (V a, V b, V c) { return _mm512_fmadd_ps(a, b, c); }
INLINE V vmax (V a, V b) { return _mm512_max_ps(a, b); }
INLINE V vmin (V a, V b) { return _mm512_min_ps(a, b); }
INLINE V vround (V a) { return _mm512_roundscale_ps(a, 8 | _MM_FROUND_TO_NEAREST_INT); }
INLINE V vfloor (V a) { return _mm512_roundscale_ps(a, 8 | _MM_FROUND_TO_NEG_INF); }
INLINE V vceil (V a) { return _mm512_roundscale_ps(a, 8 | _MM_FROUND_TO_POS_INF); }
INLINE V vtrunc (V a) { return _mm512_roundscale_ps(a, 8 | _MM_FROUND_TO_ZERO); }

INLINE M vlt (V a, V b) { return _mm512_cmp_ps_mask(a, b, _CMP_LT_OQ); }
INLINE M vle (V a, V b) { return _mm512_cmp_ps_mask(a, b, _CMP_LE_OQ); }
INLINE M vgt (V a, V b) { return _mm512_cmp_ps_mask(a, b, _CMP_GT_OQ); }
INLINE M vge (V a, V b) { return _mm512_cmp_ps_mask(a, b, _CMP_GE_OQ); }
INLINE M veq (V a, V b) { return _mm512_cmp_ps_mask(a, b, _CMP_EQ_OQ); }
INLINE M vne (V a, V b) { return _mm512_cmp_ps_mask(a, b, _CMP_NEQ_UQ); }
INLINE M visnan (V a) { return _mm512_cmp_ps_mask(a, a, _CMP_UNORD_Q); }
INLINE M ieq (I a, I b) { return _mm512_cmpeq_epi32_mask(a, b); }
INLINE M igt (I a, I b) { return _mm512_cmpgt_epi32_mask(a, b); }
INLINE V vselect (M m, V a, V b) { return _mm512_mask_blend_ps(m, b, a); }
INLINE I iselect (M m, I a, I b) { return _mm512_mask_blend_epi32(m, b, a); }

INLINE V vand (V a, V b) { return _mm512_and_ps(a, b); }
INLINE V vor (V a, V b) { return _mm512_or_ps(a, b); }
INLINE V vxor (V a, V b) { return _mm512_xor_ps(a, b); }
INLINE V vandnot (V a, V b) { return _mm512_andnot_ps(a, b); }
INLINE I iand (I a, I b) { return _mm512_and_si512(a, b); }
INLINE I ior (I a, I b) { return _mm512_or_si512(a, b); }
INLINE I ixor (I a, I b) { return _mm512_xor_si512(a, b); }
INLINE I iandnot (I a, I b) { return _mm512_andnot_si512(a, b); }
INLINE I inot (I a) { return _mm512_ternarylogic_epi32(a, a, a, 0x55); }
INLINE I ishl (I a, const int n) { return _mm512_slli_epi32(a, (unsigned)n); }
INLINE I ishr (I a, const int n) { return _mm512_srli_epi32(a, (unsigned)n); }
INLINE I isar (I a, const int n) { return _mm512_srai_epi32(a, (unsigned)n); }
INLINE I iadd (I a, I b) { return _mm512_add_epi32(a, b); }
INLINE I isub (I a, I b) { return _mm512_sub_epi32(a, b); }
INLINE I imul (I a, I b) { return _mm512_mullo_epi32(a, b); }
INLINE I imax (I a, I b) { return _mm512_max_epi32(a, b); }
INLINE I imin (I a, I b) { return _mm512_min_epi32(a, b); }
INLINE I imulwide (I a, I b, I *hi) {
  I even = _mm512_mul_epu32(a, b);
  I odd = _mm512_mul_epu32(_mm512_srli_epi64(a, 32), _mm512_srli_epi64(b, 32));
  *hi = _mm512_mask_blend_epi32(0xaaaa, _mm512_srli_epi64(even, 32), odd);
  return _mm512_mask_blend_epi32(0xaaaa, even, _mm512_slli_epi64(odd, 32));
}

INLINE I v_to_i (V a) { return _mm512_cvtps_epi32(a); }
INLINE I v_trunc_to_i (V a) { return _mm512_cvttps_epi32(a); }
INLINE V i_to_v (I a) { return _mm512_cvtepi32_ps(a); }
INLINE V vldexp (V x, I n) { return _mm512_scalef_ps(x, i_to_v(n)); }

INLINE __m256 v_low_half (V a) { return _mm512_castps512_ps256(a); }
INLINE __m256 v_high_half (V a) { return _mm512_extractf32x8_ps(a, 1); }
/* The reductions, spelled once: `op` is add, max or min */
#define V_REDUCE(name, op)                                                                         \
  INLINE float name (V a) {                                                                        \
    __m256 h = _mm256_##op##_ps(v_low_half(a), v_high_half(a));                                    \
    __m128 q = _mm_##op##_ps(_mm256_castps256_ps128(h), _mm256_extractf128_ps(h, 1));              \
    q = _mm_##op##_ps(q, _mm_movehl_ps(q, q));                                                     \
    return _mm_cvtss_f32(_mm_##op##_ss(q, _mm_movehdup_ps(q)));                                    \
  }
V_REDUCE(vsum, add)
V_REDUCE(vhmax, max)
V_REDUCE(vhmin, min)
#undef V_REDUCE

/* 16-bit lanes */
INLINE I i_widen (__m256i h) { return _mm512_cvtepu16_epi32(h); }
INLINE __m256i ld16n (const uint16_t *p, long n) { return _mm256_maskz_loadu_epi16(mfirst(n), p); }
INLINE __m256i ld16 (const uint16_t *p) { return _mm256_loadu_si256((const void *)p); }
INLINE V vld_bf16 (const uint16_t *p) { return i_as_v(ishl(i_widen(ld16(p)), 16)); }
INLINE V vldn_bf16 (const uint16_t *p, long n) { return i_as_v(ishl(i_widen(ld16n(p, n)), 16)); }
INLINE V vld_f16 (const uint16_t *p) { return _mm512_cvtph_ps(ld16(p)); }
INLINE V vldn_f16 (const uint16_t *p, long n) { return _mm512_cvtph_ps(ld16n(p, n)); }
/* integer rounding is as fast as vcvtneps2bf16 and, unlike it, keeps subnormals */
INLINE I bf16_bits (V v);
INLINE void vst_bf16 (uint16_t *p, V v) {
  _mm256_storeu_si256((void *)p, _mm512_cvtepi32_epi16(ishr(bf16_bits(v), 16)));
}
INLINE void vstn_bf16 (uint16_t *p, V v, long n) {
  _mm512_mask_cvtepi32_storeu_epi16(p, mfirst(n), ishr(bf16_bits(v), 16));
}
INLINE void vst_f16 (uint16_t *p, V v) { _mm256_storeu_si256((void *)p, _mm512_cvtps_ph(v, 8)); }
INLINE void vstn_f16 (uint16_t *p, V v, long n) {
  _mm256_mask_storeu_epi16(p, mfirst(n), _mm512_cvtps_ph(v, 8));
}

/* c + the products of two bf16 pairs, for every 32-bit lane; flushes bf16 subnormals to 0 */
#define HAVE_VDOT 1
INLINE V vdot (V a, V b, V c) { return _mm512_dpbf16_ps(c, (__m512bh)a, (__m512bh)b); }

/* The in-lane half of a transpose: 4x4 blocks of four rows, each block in its own 128-bit lane */
INLINE void trans_blocks (V o[4], V r0, V r1, V r2, V r3) {
  V a = _mm512_unpacklo_ps(r0, r1), b = _mm512_unpackhi_ps(r0, r1);
  V c = _mm512_unpacklo_ps(r2, r3), d = _mm512_unpackhi_ps(r2, r3);
  o[0] = _mm512_shuffle_ps(a, c, 0x44), o[1] = _mm512_shuffle_ps(a, c, 0xee);
  o[2] = _mm512_shuffle_ps(b, d, 0x44), o[3] = _mm512_shuffle_ps(b, d, 0xee);
}
INLINE void vtrans (V r[VW]) {
  V t[VW];
  UNROLL for (int i = 0; i < VW; i += 4) trans_blocks(t + i, r[i], r[i + 1], r[i + 2], r[i + 3]);
  UNROLL for (int i = 0; i < 4; i++) {
    V a = _mm512_shuffle_f32x4(t[i], t[i + 4], 0x88), b = _mm512_shuffle_f32x4(t[i], t[i + 4], 0xdd);
    V c = _mm512_shuffle_f32x4(t[i + 8], t[i + 12], 0x88);
    V d = _mm512_shuffle_f32x4(t[i + 8], t[i + 12], 0xdd);
    r[i] = _mm512_shuffle_f32x4(a, c, 0x88), r[i + 8] = _mm512_shuffle_f32x4(a, c, 0xdd);
    r[i + 4] = _mm512_shuffle_f32x4(b, d, 0x88), r[i + 12] = _mm512_shuffle_f32x4(b, d, 0xdd);
  }
}

/* VW x VW from memory, row i at row[i] + at.  Blocks of 4x4 are brought into their lanes by loads, so
   that only the in-lane half of the shuffles is left. */
#define HAVE_VLDTRANS 1
INLINE V ld_lanes (const float *const row[], long at) {
  V v = _mm512_castps128_ps512(_mm_loadu_ps(row[0] + at));
  v = _mm512_insertf32x4(v, _mm_loadu_ps(row[4] + at), 1);
  v = _mm512_insertf32x4(v, _mm_loadu_ps(row[8] + at), 2);
  return _mm512_insertf32x4(v, _mm_loadu_ps(row[12] + at), 3);
}
INLINE void vldtrans (V r[VW], const float *const row[VW], long at) {
  UNROLL for (int q = 0; q < 4; q++) {
    V v[4];
    UNROLL for (int i = 0; i < 4; i++) v[i] = ld_lanes(row + i, at + 4 * q);
    trans_blocks(r + 4 * q, v[0], v[1], v[2], v[3]);
  }
}
