/* convert.c: runs of f16 and bf16 to floats and back. */
#include "isa/convert.h"
#include "isa/simd.h"
#include "isa/typed.h"

INLINE void widen(const int dtype, float *dst, const uint16_t *src, int64_t n) {
  int64_t i = 0;
  for (; i + VW <= n; i += VW) vst(dst + i, vload(dtype, src, i));
  if (i < n) vstn(dst + i, vloadn(dtype, src, i, n - i), n - i);
}

INLINE void narrow(const int dtype, uint16_t *dst, const float *src, int64_t n) {
  int64_t i = 0;
  for (; i + VW <= n; i += VW) vstore(dtype, dst, i, vld(src + i));
  if (i < n) vstoren(dtype, dst, i, vldn(src + i, n - i), n - i);
}

static void from_f16(float *dst, const uint16_t *src, int64_t n) { widen(AMPL_F16, dst, src, n); }
static void from_bf16(float *dst, const uint16_t *src, int64_t n) { widen(AMPL_BF16, dst, src, n); }
static void to_f16(uint16_t *dst, const float *src, int64_t n) { narrow(AMPL_F16, dst, src, n); }
static void to_bf16(uint16_t *dst, const float *src, int64_t n) { narrow(AMPL_BF16, dst, src, n); }

const ampl_cpu_convert ISA(ampl_cpu_convert) = {{from_f16, from_bf16}, {to_f16, to_bf16}};
