/*
** attention_parts.h: what attention's two passes (attention.c, attention_grad.c) share: operands by head, packing, and
** products that leave out what a causal mask hides.
*/
#ifndef AMPL_CPU_ATTENTION_PARTS_H
#define AMPL_CPU_ATTENTION_PARTS_H

#include "blocking.h"
#include "gemm.h"
#include "isa/attention.h"
#include "op.h"
#include "ops/attention.h"

enum { AMPL_ATTENTION_ROWS = 128, AMPL_ATTENTION_COLS = 128 }; /* of a block; columns: whole groups of random numbers */

/* The sizes of a call and what all heads share. */
typedef struct attention_call {
    ampl_ctx *ctx;
  const ampl_cpu_matrix *K;
  long b, h, shared, l, s, e, f;    /* q (b, h, l, e), k (b, shared, s, e), v (b, shared, s, f) */
  long nr;
  float scale;
  bool causal;
  const ampl_tensor *q, *k, *v, *mask;
  float keep;                       /* dropout: what stays is multiplied by it; 0 without dropout */
  uint32_t limit;
  uint64_t seed, first;
} attention_call;

attention_call ampl_cpu_attention_call(ampl_ctx *ctx, const ampl_tensor *q, const ampl_tensor *k, const ampl_tensor *v,
                                       const ampl_tensor *mask, const ampl_value *p);

/* Row `row` of head (b, h) of a tensor of rank 4. */
static inline char *attention_row (const ampl_tensor *x, long b, long h, long row) {
  const long at = b * x->strides[0] + h * x->strides[1] + row * x->strides[2];
  return (char *)x->data + at * (long)ampl_dtype_size((ampl_dtype)x->dtype);
}

/* Blocks of nearly equal height, each a job or a step of one. */
static inline long attention_height (long l) { return ceil_div(l, most(1, ceil_div(l, AMPL_ATTENTION_ROWS))); }

/* Row i of the block from (i0, j0) on sees so many columns, plus i. */
static inline long attention_limit(const attention_call *c, long i0, long j0) { return c->causal ? i0 - j0 + 1 : c->s; }

/* The block's part of the mask as numbers to be added, and of what dropout multiplies by; NULL where there is none. */
const float *ampl_cpu_attention_mask(const attention_call *c, float *buf, long b, long h, long i0, long rows, long j0,
                                     long cols, long *ld);
const float *ampl_cpu_attention_keep(const attention_call *c, float *buf, long b, long h, long i0, long rows, long j0,
                                     long cols);

/* A matrix as panels [ceil(n/nr)][k][nr] of f32, or of pairs of bf16 where `dot`: `turned`: its rows, `cols` of them,
 * are
   the columns of the result. */
void ampl_cpu_attention_pack(const attention_call *c, float *dst, int dtype, const void *src, long ld, long rows,
                             long cols, bool turned, bool dot);
/* Its rows as f32, in place where they are that, else in buf. */
const float *ampl_cpu_attention_rows(const attention_call *c, float *buf, int dtype, const void *src, long ld,
                                     long rows, long cols, long *step);

/* C (m, n) (+)= A (m, k) B.  What a causal mask makes 0 is left out: the block's row i sees columns below limit + i. */
typedef struct attention_product {
  bool dot, acc;
  int layout;
  enum { ALL, COLUMNS_SEEN, DEPTH_SEEN, DEPTH_SEEING } cut; /* C's rows are queries; so are A's; C's rows are keys */
  long limit, m, n, k;
  const void *a;
  long a_step;                      /* bytes */
  const float *panels;
  float *c;
  long ldc;
} attention_product;
void ampl_cpu_attention_product(const attention_call *c, const attention_product *p);

/* dst = factor * src, n values, as dtype; src is changed. */
void ampl_cpu_attention_store(const attention_call *c, int dtype, void *dst, float *src, long n, float factor);

ampl_status ampl_cpu_attention_backward(ampl_ctx *ctx, const ampl_args *in, ampl_tensor **out);

#endif
