/* fold.h: what a block of floats comes to: its sum, its largest value ...; the loops under reduce.c. */
#ifndef AMPL_CPU_FOLD_H
#define AMPL_CPU_FOLD_H

#include "cpu.h"

/* What a reduction makes of n values: one or two numbers, `a` and `b`. */
typedef enum ampl_cpu_fold {
  AMPL_FOLD_SUM,
  AMPL_FOLD_SUM_ABS,
  AMPL_FOLD_SUM_SQUARES,
  AMPL_FOLD_NONZERO,            /* how many are not 0 */
  AMPL_FOLD_PROD,
  AMPL_FOLD_MAX,                /* NaN where there is one; so are the next three */
  AMPL_FOLD_MIN,
  AMPL_FOLD_MAX_ABS,
  AMPL_FOLD_MIN_ABS,
  AMPL_FOLD_MOMENTS,            /* a: the mean, b: the sum of (x - mean)^2 */
  AMPL_FOLD_LOG_SUM_EXP,        /* a: the largest value, b: the sum of exp(x - a), or of exp(x) where a is infinite */
  AMPL_FOLD_SUM_POW,            /* |x|^p; not in the tables below */
  /* of two tensors: a: the sum of x, b: the sum of x * (z - center); by dot_row, dot_cols */
  AMPL_FOLD_DOT,
  AMPL_FOLD_COUNT
} ampl_cpu_fold;

/* Blocks are short (AMPL_FOLD_BLOCK elements, AMPL_FOLD_ROWS rows), so that sums in f32 stay exact to a few last bits.
 * */
enum { AMPL_FOLD_BLOCK = 2048, AMPL_FOLD_ROWS = 32, AMPL_FOLD_COLS = 256 };

/* n >= 1 values side by side. */
typedef void (*ampl_cpu_fold_row_fn)(const float *x, int64_t n, double *a, double *b);
/* Every one of m columns of `rows` rows, `ld` apart. */
typedef void (*ampl_cpu_fold_cols_fn)(const float *x, int64_t ld, int64_t rows, int64_t m, float *a, float *b);

/* The largest (or smallest) of 1 <= n < 2^31 values, or the first NaN, and the first place where it stands. */
typedef void (*ampl_cpu_best_row_fn)(const float *x, int64_t n, float *best, int64_t *at);
/* Row `r` of m columns against the best of the rows before it (of none, where r is 0). */
typedef void (*ampl_cpu_best_cols_fn)(const float *row, int64_t m, int32_t r, float *best, int32_t *at);

typedef struct ampl_cpu_folds {
  ampl_cpu_fold_row_fn  row[AMPL_FOLD_COUNT];
  ampl_cpu_fold_cols_fn cols[AMPL_FOLD_COUNT];
  void (*dot_row)(const float *x, const float *z, int64_t n, float center, double *a, double *b);
  void (*dot_cols)(const float *x, int64_t ldx, const float *z, int64_t ldz, int64_t rows, int64_t m,
                   const float *center, float *a, float *b);
  ampl_cpu_best_row_fn  best_row[2];    /* [0]: largest, [1]: smallest */
  ampl_cpu_best_cols_fn best_cols[2];
} ampl_cpu_folds;

AMPL_CPU_EACH_ISA(const ampl_cpu_folds, ampl_cpu_folds);

#endif
