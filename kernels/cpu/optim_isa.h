/* optim_isa.h: what kernels/cpu/isa/optim.c exports for each instruction set. */
#ifndef AMPL_CPU_OPTIM_ISA_H
#define AMPL_CPU_OPTIM_ISA_H

#include "cpu.h"
#include "optim_rules.h"

typedef struct ampl_cpu_optim_isa {
  /* n elements by a rule: x[k] are the values that the rule names, c AMPL_RULE_COEFS numbers. */
  void (*rule[AMPL_RULE_COUNT])(float *const *x, const float *c, long n);
  /* x *= inv; whether one of x was an inf or a NaN before. */
  bool (*unscale)(float *x, float inv, long n);
  bool (*nonfinite)(const float *x, long n);
  double (*sum_of_squares)(const float *x, long n);
} ampl_cpu_optim_isa;

AMPL_CPU_EACH_ISA(const ampl_cpu_optim_isa, ampl_cpu_optim);

#endif
