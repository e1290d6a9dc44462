/*
** typed.h: loads and stores of vectors by dtype, for code in which the dtype is a constant, so that
** the choice costs nothing.  f32, f16 and bf16 only.
*/
#ifndef AMPL_CPU_TYPED_H
#define AMPL_CPU_TYPED_H

#include "isa/simd.h"

#include "ampl.h"

/* Elements i .. i+VW-1 of p. */
INLINE V vload (const int dtype, const void *p, long i) {
  if (dtype == AMPL_F32) return vld((const float *)p + i);
  return dtype == AMPL_BF16 ? vld_bf16((const uint16_t *)p + i) : vld_f16((const uint16_t *)p + i);
}

/* Elements i .. i+n-1; 0 in the other lanes. */
INLINE V vloadn (const int dtype, const void *p, long i, long n) {
  if (dtype == AMPL_F32) return vldn((const float *)p + i, n);
  return dtype == AMPL_BF16 ? vldn_bf16((const uint16_t *)p + i, n)
                            : vldn_f16((const uint16_t *)p + i, n);
}

INLINE void vstore (const int dtype, void *p, long i, V v) {
  if (dtype == AMPL_F32) vst((float *)p + i, v);
  else if (dtype == AMPL_BF16) vst_bf16((uint16_t *)p + i, v);
  else vst_f16((uint16_t *)p + i, v);
}

INLINE void vstoren (const int dtype, void *p, long i, V v, long n) {
  if (dtype == AMPL_F32) vstn((float *)p + i, v, n);
  else if (dtype == AMPL_BF16) vstn_bf16((uint16_t *)p + i, v, n);
  else vstn_f16((uint16_t *)p + i, v, n);
}

#endif
