/*
** gemm.h: matrix multiply, C = act(A B + bias), as plain C functions on memory.
*/
#ifndef AMPL_CPU_GEMM_H
#define AMPL_CPU_GEMM_H

#include "cpu.h"
#include "isa/tile.h"

typedef struct ampl_cpu_gemm_args {
  ampl_ctx *ctx;            /* accounts for the scratch memory; may be NULL */
  int threads;
  int64_t m, n, k;          /* A: (m, k), B: (k, n), C: (m, n) */
  const void *a, *b;
  void *c;
  int a_dtype, b_dtype, c_dtype;
  int64_t a_row, a_col;     /* strides in elements, any; fastest where one of the two is 1 */
  int64_t b_row, b_col;
  int64_t c_row;            /* the columns of C lie side by side */
  bool acc;                 /* C += A B */
  ampl_cpu_act act;
  const void *bias;         /* n values added to each row before `act`, or NULL */
  int bias_dtype;
  void *copy;               /* a second result in another dtype, or NULL */
  int copy_dtype;
  int64_t copy_row;
  bool copy_first;          /* the second result is taken before `act` */
  int64_t batch[2];         /* two loops over products; 0 counts as 1 */
  int64_t a_batch[2], b_batch[2], c_batch[2]; /* their strides; 0 in a_batch or b_batch: shared */
  int64_t copy_batch[2];
} ampl_cpu_gemm_args;

/* Computes C, and the copy.  The dtypes of A, B, C, bias and copy are any of f32, f16 and bf16, with
   sums in f32; or all f64; or A, B and C are all i64, i32 or u8 (wrapping around; no bias, act or
   copy).  C and the copy must not overlap anything else.
   The result does not depend on the number of threads.  AMPL_ENOMEM: C is unfinished. */
ampl_status ampl_cpu_gemm(const ampl_cpu_gemm_args *g);

/* The parts of ampl_cpu_gemm for f64 and for integers (gemm_plain.c). */
ampl_status ampl_cpu_gemm_f64(const ampl_cpu_gemm_args *g);
ampl_status ampl_cpu_gemm_int(const ampl_cpu_gemm_args *g);

/* C = A * B (+ C), all f32, A row-major, B packed in panels [ceil(n/nr)][k][nr], nr = 2 vectors; on the
   calling thread. */
void ampl_cpu_panels_product(const ampl_cpu_matrix *K, long m, long n, long k, const float *a, long lda,
                             const float *panels, float *c, long ldc, bool acc);

/* The loops of the instruction set in use. */
const ampl_cpu_matrix *ampl_cpu_matrix_used(void);

#endif
