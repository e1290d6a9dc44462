/* convert.c: runs of other dtypes to floats and back. */
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

/* Plain C, which the compiler turns into vectors of this instruction set */
#define RUN(name, to, from, expression)                                                                                \
  static void name(to *restrict dst, const from *restrict src, int64_t n) {                                           \
    for (int64_t i = 0; i < n; i++) {                                                                                  \
      const from v = src[i];                                                                                           \
      dst[i] = (to)(expression);                                                                                       \
    }                                                                                                                  \
  }
RUN(from_u8, float, uint8_t, v)
RUN(from_i32, float, int32_t, v)
RUN(from_i64, float, int64_t, v)
RUN(from_f64, float, double, v)
RUN(to_f64, double, float, v)
RUN(to_bool, uint8_t, float, v != 0)

const ampl_cpu_convert ISA(ampl_cpu_convert) = {
  {from_f16, from_bf16}, {to_f16, to_bf16}, from_u8, from_i32, from_i64, from_f64, to_f64, to_bool};
