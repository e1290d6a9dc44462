/*
** simd.h: the vector layer that every kernel in this folder is written with.
**
** Each .c file here is compiled three times, and -m flags and a define choose what the names below
** stand for: ISA_AVX512 (16 floats), ISA_AVX2 with FMA and F16C (8 floats), neither: portable C (4
** floats, the vector extension of gcc and clang).  No other folder may include this header.
**
** Types:  V  VW floats          I  VW 32-bit integers          M  VW truth values (a lane mask)
** Use the functions, never operators, on I and M: on some ISA they mean other lanes.
**
** A name starts with the type it works on.  Names ending in `n` touch the first n lanes only: loads
** give 0 in the others, stores leave memory alone, neither reads or writes beyond lane n (n may be
** below 0 or above VW).
**
**   exports        ISA(name): the name with _avx512, _avx2 or _c behind it
**   make           vzero() vset(x) izero() iset(x) iiota(): 0 1 2 ...
**   memory         vld vldn vst vstn (float), ild ildn ist istn (int32_t)
**                  vld_bf16 vldn_bf16 vst_bf16 vstn_bf16, the same with _f16 (uint16_t)
**                  Storing rounds to nearest even, keeps subnormals; NaN stays a (quiet) NaN
**   arithmetic     vadd vsub vmul vdiv vsqrt vneg vabs vcopysign(size, sign)
**                  vfma(a, b, c) = a*b + c, vfnma(a, b, c) = c - a*b: one rounding on AVX, two in
**                  portable C;  vfma_exact: one rounding everywhere, slow in portable C
**   min, max       vmax(a, b) = a > b ? a : b, vmin(a, b) = a < b ? a : b: with a NaN in either, b
**                  vmax_nan, vmin_nan: with a NaN in either, NaN
**   rounding       vround (to nearest even) vfloor vceil vtrunc; they keep the sign of zero
**   compare        vlt vle vgt vge veq (false for NaN) vne (true for NaN) visnan; ieq igt (signed)
**   masks          mfirst(n) mand mor mxor mnot mandnot(a, b) = ~a & b; many mall (to bool)
**                  mbits (lane 0 is bit 0)
**   choose         vselect(m, a, b) = m ? a : b; iselect
**   bits           vand vor vxor vandnot(a, b) = ~a & b, on the bits of floats; viota: 0 1 2 ...
**                  iand ior ixor iandnot inot; ishl ishr isar (count a constant)
**   integers       iadd isub imul imax imin; imulwide(a, b, &hi): unsigned, returns the low half
**   convert        v_to_i (nearest even) v_trunc_to_i i_to_v; v_as_i i_as_v keep the bits
**                  vldexp(x, n): x * 2^n, rounded once (n within +-252 for |x| near 1)
**   across lanes   vsum vhmax vhmin: lane i with lane i + w/2, again until one is left, so that the
**                  result depends on nothing but the lanes
**   transpose      vtrans(V r[VW]): VW x VW in place; vldtrans(r, row, at): row i from row[i] + at
**   16-bit pairs   vlow16 vhigh16: bf16 in the low or high half of each 32-bit lane, as floats
*/
#ifndef AMPL_CPU_SIMD_H
#define AMPL_CPU_SIMD_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#define INLINE static inline __attribute__((always_inline))
#define UNROLL _Pragma("GCC unroll 16")

#define ISA_PASTE_(name, suffix) name##suffix
#define ISA_PASTE(name, suffix) ISA_PASTE_(name, suffix)
#define ISA(name) ISA_PASTE(name, ISA_SUFFIX)

#if defined ISA_AVX512
#include "simd_avx512.h"
#elif defined ISA_AVX2
#include "simd_avx2.h"
#else
#include "simd_c.h"
#endif

/* ---------------------------------------------------------------- the same on every ISA */

INLINE V vneg (V a) { return vxor(a, vset(-0.0f)); }
INLINE V vabs (V a) { return vandnot(vset(-0.0f), a); }
INLINE V vcopysign (V size, V sign) {
  return vor(vandnot(vset(-0.0f), size), vand(vset(-0.0f), sign));
}
INLINE V viota (void) { return i_to_v(iiota()); }

/* a NaN in b comes out of vmax and vmin anyway; a NaN in a must be put back */
INLINE V vmax_nan (V a, V b) { return vselect(visnan(a), a, vmax(a, b)); }
INLINE V vmin_nan (V a, V b) { return vselect(visnan(a), a, vmin(a, b)); }

INLINE V vlow16 (V v) { return i_as_v(ishl(v_as_i(v), 16)); }
INLINE V vhigh16 (V v) { return i_as_v(iand(v_as_i(v), iset((int32_t)0xffff0000u))); }

#ifndef HAVE_VLDTRANS
INLINE void vldtrans (V r[VW], const float *const row[VW], long at) {
  UNROLL for (int i = 0; i < VW; i++) r[i] = vld(row[i] + at);
  vtrans(r);
}
#endif

/* f32 bits to bf16 in the high half, rounded to nearest even; a NaN gets its quiet bit set first, so
   that dropping the low half cannot make it an infinity */
INLINE I bf16_bits (V v) {
  I u = v_as_i(v), odd = iand(ishr(u, 16), iset(1));
  I rounded = iadd(u, iadd(iset(0x7fff), odd));
  return iselect(visnan(v), ior(u, iset(0x400000)), rounded);
}

#endif
