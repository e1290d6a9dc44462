/* rows.h: a row of floats added to a row of doubles. */
#ifndef AMPL_CPU_ROWS_H
#define AMPL_CPU_ROWS_H

#include "cpu.h"

typedef struct ampl_cpu_rows {
  void (*add)(double *sum, const float *x, int64_t n);
} ampl_cpu_rows;

AMPL_CPU_EACH_ISA(const ampl_cpu_rows, ampl_cpu_rows);

#endif
