/* convert.h: runs of other dtypes to floats and back, by the instruction set in use. */
#ifndef AMPL_CPU_CONVERT_H
#define AMPL_CPU_CONVERT_H

#include "cpu.h"

typedef struct ampl_cpu_convert {
  /* [0]: f16, [1]: bf16 */
  void (*widen[2])(float *dst, const uint16_t *src, int64_t n);
  void (*narrow[2])(uint16_t *dst, const float *src, int64_t n);
  /* from u8 and bool, i32, i64, f64; to f64, and to bool (1: not 0) */
  void (*from_u8)(float *dst, const uint8_t *src, int64_t n);
  void (*from_i32)(float *dst, const int32_t *src, int64_t n);
  void (*from_i64)(float *dst, const int64_t *src, int64_t n);
  void (*from_f64)(float *dst, const double *src, int64_t n);
  void (*to_f64)(double *dst, const float *src, int64_t n);
  void (*to_bool)(uint8_t *dst, const float *src, int64_t n);
} ampl_cpu_convert;

AMPL_CPU_EACH_ISA(const ampl_cpu_convert, ampl_cpu_convert);

#endif
