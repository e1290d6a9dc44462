/* norm.h: the loops of normalisation layers. */
#ifndef AMPL_CPU_NORM_H
#define AMPL_CPU_NORM_H

#include "cpu.h"

typedef struct ampl_cpu_norm {
  /* y = dy * a + (x - m) * b + c; dy may be NULL, y may be x or dy.  One set of constants ... */
  void (*affine_row)(float *y, const float *dy, const float *x, int64_t n, float a, float m, float b, float c);
  /* ... or one for each of n columns, over `rows` rows. */
  void (*affine_cols)(float *y, int64_t ldy, const float *dy, int64_t lddy, const float *x, int64_t ldx, int64_t rows,
                      int64_t n, const float *a, const float *m, const float *b, const float *c);

  /* A row of layer_norm or rms_norm: y = (x - mean) * scale * weight + bias; weight and bias may be NULL. */
  void (*row)(float *y, const float *x, const float *weight, const float *bias, int64_t n, float mean, float scale);
  /* *a: the sum of dy * weight; *b: of dy * weight * (x - mean). */
  void (*row_sums)(const float *dy, const float *x, const float *weight, int64_t n, float mean, double *a, double *b);
  /* dx = dy * weight * scale + (x - mean) * b + c; dx may be dy or x. */
  void (*row_back)(float *dx, const float *dy, const float *x, const float *weight, int64_t n, float mean, float scale,
                   float b, float c);
  /* dweight += dy * (x - mean) * scale, dbias += dy; dbias may be NULL. */
  void (*row_params)(float *dweight, float *dbias, const float *dy, const float *x, int64_t n, float mean, float scale);
} ampl_cpu_norm;

AMPL_CPU_EACH_ISA(const ampl_cpu_norm, ampl_cpu_norm);

#endif
