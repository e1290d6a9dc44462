/* random.h: runs of random numbers (kernels/philox.h says which), by the instruction set in use. */
#ifndef AMPL_CPU_RANDOM_H
#define AMPL_CPU_RANDOM_H

#include "cpu.h"

/* Elements first, first + 1 ... of the seed's stream, in whole groups of 64; first is a multiple of 64. */
typedef struct ampl_cpu_random {
  void (*bits)(uint32_t *out, int64_t groups, uint64_t seed, uint64_t first, uint32_t lane);
  void (*uniform)(float *out, int64_t groups, uint64_t seed, uint64_t first);
  void (*normal)(float *out, int64_t groups, uint64_t seed, uint64_t first);
  /* value where the upper 24 bits are `limit` or more, else 0 */
  void (*keep)(float *out, int64_t groups, uint64_t seed, uint64_t first, uint32_t limit, float value);
} ampl_cpu_random;

AMPL_CPU_EACH_ISA(const ampl_cpu_random, ampl_cpu_random);

#endif
