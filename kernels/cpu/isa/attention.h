/*
** attention.h: what attention does to a block of scores, by the instruction set in use.
*/
#ifndef AMPL_CPU_ATTENTION_ISA_H
#define AMPL_CPU_ATTENTION_ISA_H

#include "cpu.h"

/* Scores s[i][j] of `rows` queries and `cols` keys.  Query i looks at keys below limit + i (and below cols)
** only: what lies behind is not read, and becomes 0.  With x = scale * s + mask: */
typedef struct ampl_cpu_scores {
  float *s;
  long ld, rows, cols, limit;
  float scale;
  const float *mask;     /* NULL: none */
  long mask_ld;
  const float *keep;     /* what dropout multiplies weights by; NULL: nothing */
  long keep_ld;
  float *top, *sum;      /* of each row so far: the largest x, and the sum of exp(x - top) */
  float *acc;            /* what forward multiplies by exp(old top - new top) */
  long acc_ld, width;
  /* forward: where the weights go as bf16, instead of to s; an odd last one is followed by a 0 */
  uint16_t *low;
  long low_ld;
  const float *log_sum;  /* backward: of each row, top + log(sum) */
  const float *dot;      /* and the sum of dy * y; NULL where the row is all in this block and tells it itself */
  float *dw;             /* dy v', of the step ld */
} ampl_cpu_scores;

typedef struct ampl_cpu_attention {
  /* s = keep * exp(x - top), after top, sum and acc have been brought to the new top */
  void (*forward)(const ampl_cpu_scores *b);
  /* w = exp(x - log_sum);  s = keep * w;  dw = w * (keep * dw - dot) */
  void (*backward)(const ampl_cpu_scores *b);
  float (*dot)(const float *a, const float *b, long n);
} ampl_cpu_attention;

AMPL_CPU_EACH_ISA(const ampl_cpu_attention, ampl_cpu_attention);

#endif
