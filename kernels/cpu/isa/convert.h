/* convert.h: runs of f16 and bf16 to floats and back, by the instruction set in use. */
#ifndef AMPL_CPU_CONVERT_H
#define AMPL_CPU_CONVERT_H

#include "cpu.h"

typedef struct ampl_cpu_convert {
  /* [0]: f16, [1]: bf16 */
  void (*widen[2])(float *dst, const uint16_t *src, int64_t n);
  void (*narrow[2])(uint16_t *dst, const float *src, int64_t n);
} ampl_cpu_convert;

AMPL_CPU_EACH_ISA(const ampl_cpu_convert, ampl_cpu_convert);

#endif
