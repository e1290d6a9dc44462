/* softmax.h: rows and columns of softmax and log_softmax, forward and backward. */
#ifndef AMPL_CPU_SOFTMAX_H
#define AMPL_CPU_SOFTMAX_H

#include "cpu.h"

/* In all: [0] softmax, [1] log_softmax. */
typedef struct ampl_cpu_softmax {
  /* A row as a whole; y may be x. */
  void (*row[2])(float *y, const float *x, int64_t n);
  /* Part of a row whose sums are known: y = exp(x - a) * b, or y = x - a - b. */
  void (*part[2])(float *y, const float *x, int64_t n, float a, float b);
  /* `rows` rows of m columns, each column with its own a and b. */
  void (*cols[2])(float *y, int64_t ldy, const float *x, int64_t ldx, int64_t rows, int64_t m, const float *a,
                  const float *b);

  /* What the gradient needs of n places: the sum of dy * y, or of dy. */
  double (*dot[2])(const float *dy, const float *y, int64_t n);
  /* The same for m columns of `rows` rows. */
  void (*dot_cols[2])(const float *dy, int64_t lddy, const float *y, int64_t ldy, int64_t rows, int64_t m, float *dot);
  /* dx = y * (dy - dot), or dx = dy - exp(y) * dot; dx may be dy or y. */
  void (*back[2])(float *dx, const float *dy, const float *y, int64_t n, float dot);
  void (*back_cols[2])(float *dx, int64_t lddx, const float *dy, int64_t lddy, const float *y, int64_t ldy,
                       int64_t rows, int64_t m, const float *dot);
} ampl_cpu_softmax;

AMPL_CPU_EACH_ISA(const ampl_cpu_softmax, ampl_cpu_softmax);

#endif
