/* reduce.h: reductions over any dimensions of a tensor of any strides.
 *
 * x is read once.  Blocks of it are folded to parts in its working type, parts are merged in f64 in the order of the
 * blocks.  Blocks, and the chunks that threads take, are cut by shape, so the result does not depend on the threads.
 */
#ifndef AMPL_CPU_REDUCE_H
#define AMPL_CPU_REDUCE_H

#include "isa/fold.h"
#include "stream.h"

/* What a fold has come to; `i` counts in the working type AMPL_WORK_I64. */
typedef union ampl_cpu_cell { double f; int64_t i; } ampl_cpu_cell;
typedef struct ampl_cpu_part { ampl_cpu_cell a, b; } ampl_cpu_part;

/* The part of n >= 1 values side by side, and those of m columns of `rows` >= 1 rows (at most AMPL_FOLD_COLS columns).
 *  p is the exponent of AMPL_FOLD_SUM_POW. */
void ampl_cpu_fold_row (ampl_cpu_fold fold, ampl_cpu_work w, double p, const void *x, int64_t n, ampl_cpu_part *part);
/* The parts of m rows of n values each, `ld` apart. */
void ampl_cpu_fold_rows (ampl_cpu_fold fold, ampl_cpu_work w, double p, const void *x, int64_t ld, int64_t m, int64_t n,
                         ampl_cpu_part *part);
void ampl_cpu_fold_cols (ampl_cpu_fold fold, ampl_cpu_work w, double p, const void *x, int64_t ld, int64_t rows,
                         int64_t m, ampl_cpu_part *part);
/* The same for AMPL_FOLD_DOT. */
void ampl_cpu_fold_dot_row(ampl_cpu_work w, const void *x, const void *z, int64_t n, double center,
                           ampl_cpu_part *part);
void ampl_cpu_fold_dot_cols (ampl_cpu_work w, const void *x, int64_t ldx, const void *z, int64_t ldz, int64_t rows,
                             int64_t m, const double *center, ampl_cpu_part *part);
/* The part of no value. */
ampl_cpu_part ampl_cpu_fold_none (ampl_cpu_fold fold, ampl_cpu_work w);
/* into[j], of n values, gets from[j], of more values, added. */
void ampl_cpu_fold_merge(ampl_cpu_fold fold, ampl_cpu_work w, ampl_cpu_part *into, int64_t n, const ampl_cpu_part *from,
                         int64_t more, int64_t m);

/* Makes results of parts: those of outputs first ... first + m - 1, each of n values.  `values` is room for m values of
 * the working type of the output; NULL when the reduction has no output tensor. */
typedef void (*ampl_cpu_finish_fn)(void *ud, const ampl_cpu_part *parts, int64_t first, int64_t m, int64_t n,
                                   void *values);

typedef struct ampl_cpu_reduction {
  ampl_cpu_fold      fold;
  ampl_cpu_work      work;
  double             p;
  const ampl_tensor *x;
  uint32_t           dims;      /* bit d: dimension d is reduced */
  ampl_tensor       *y;         /* x without those dimensions, or with size 1 there; NULL: `finish` keeps the results */
  ampl_cpu_finish_fn finish;
  void              *ud;
  /* AMPL_FOLD_DOT (without y): the second tensor, of x's shape, and the centre of each output */
  const ampl_tensor *z;
  const double      *center;
} ampl_cpu_reduction;

/* ENOMEM, or OK.  Without y the outputs are numbered in row-major order of the dimensions that are kept. */
ampl_status ampl_cpu_reduce (ampl_ctx *ctx, const ampl_cpu_reduction *r);

/* Bits of the dimensions in a DIMS parameter: none given, all. */
uint32_t ampl_cpu_dims_mask (ampl_ints dims, int ndim);

#endif
