/*
** attention.c: see attention.h.  One row after the other; a row of a block fits L1 many times.
*/
#include "isa/attention.h"

#include "isa/vmath.h"

INLINE long row_length (const ampl_cpu_scores *b, long i) {
  const long n = b->limit + i;
  return n < 0 ? 0 : n < b->cols ? n : b->cols;
}

/* x of keys j .. j+VW-1 of row i; lanes from n on are 0 before scale and mask */
INLINE V score (const ampl_cpu_scores *b, long i, long j, long n) {
  const V s = vmul(vldn(b->s + i * b->ld + j, n - j), vset(b->scale));
  return b->mask ? vadd(s, vldn(b->mask + i * b->mask_ld + j, n - j)) : s;
}

/* ---------------------------------------------------------------- forward */

INLINE void store_weights (const ampl_cpu_scores *b, long i, long j, V w, long n) {
  if (b->low) vstn_bf16(b->low + i * b->low_ld + j, w, n);
  else vstn(b->s + i * b->ld + j, w, n);
}

/* 0 from key j on; of pairs, up to a whole one */
INLINE void clear (const ampl_cpu_scores *b, long i, long j) {
  const long end = b->low ? (b->cols + 1) / 2 * 2 : b->cols;
  for (; j < end; j += VW) store_weights(b, i, j, vzero(), end - j);
}

/* Writes x over s; the largest, NaN if there is one */
INLINE float raise (const ampl_cpu_scores *b, long i, long n) {
  V top = vset(b->top[i]);
  for (long j = 0; j < n; j += VW) {
    const V x = score(b, i, j, n);
    vstn(b->s + i * b->ld + j, x, n - j);
    top = vmax_nan(top, n - j >= VW ? x : vselect(mfirst(n - j), x, vset(-INFINITY)));
  }
  return many(visnan(top)) ? NAN : vhmax(top);
}

static void forward (const ampl_cpu_scores *b) {
  for (long i = 0; i < b->rows; i++) {
    const long n = row_length(b, i);
    const float top = raise(b, i, n);
    if (top == -INFINITY) { /* nothing to look at so far */
      clear(b, i, 0);
      continue;
    }
    const V shift = vset(top), fading = vexp(vsub(vset(b->top[i]), shift));
    V sum = vzero();
    for (long j = 0; j < n; j += VW) {
      V w = vexp(vsub(vldn(b->s + i * b->ld + j, n - j), shift));
      if (n - j < VW) w = vselect(mfirst(n - j), w, vzero());
      sum = vadd(sum, w);
      if (b->keep) w = vmul(w, vldn(b->keep + i * b->keep_ld + j, n - j));
      store_weights(b, i, j, w, n - j);
    }
    clear(b, i, n);
    const float old = b->sum[i];
    float fade[VW];
    vst(fade, fading);
    b->sum[i] = old * fade[0] + vsum(sum);
    if (old > 0 && b->top[i] != top)
      for (long j = 0; j < b->width; j += VW) {
        float *acc = b->acc + i * b->acc_ld + j;
        vstn(acc, vmul(vldn(acc, b->width - j), fading), b->width - j);
      }
    b->top[i] = top;
  }
}

/* ---------------------------------------------------------------- backward */

/* w to s and keep * dw to dw, for the n keys that row i sees; the sum of w, and of their products */
INLINE void weights_again (const ampl_cpu_scores *b, long i, long n, float *weight, float *dot) {
  float *s = b->s + i * b->ld, *dw = b->dw + i * b->ld;
  const V log_sum = vset(b->log_sum[i]);
  V sum = vzero(), products = vzero();
  for (long j = 0; j < n; j += VW) {
    V w = vexp(vsub(score(b, i, j, n), log_sum)), d = vldn(dw + j, n - j);
    if (n - j < VW) w = vselect(mfirst(n - j), w, vzero());
    if (b->keep) d = vmul(d, vldn(b->keep + i * b->keep_ld + j, n - j));
    sum = vadd(sum, w), products = vfma(w, d, products);
    vstn(s + j, w, n - j);
    vstn(dw + j, d, n - j);
  }
  *weight = vsum(sum), *dot = vsum(products);
}

static void backward (const ampl_cpu_scores *b) {
  for (long i = 0; i < b->rows; i++) {
    const long n = row_length(b, i);
    float *s = b->s + i * b->ld, *dw = b->dw + i * b->ld;
    float weight, sum;
    weights_again(b, i, n, &weight, &sum);
    /* a whole row is made to sum to 1: log_sum, rounded, is not that exact */
    const float fix = b->dot ? 1 : weight > 0 ? 1 / weight : 0;
    const V dot = vset(b->dot ? b->dot[i] : sum * fix);
    for (long j = 0; j < n; j += VW) {
      const V w = vmul(vldn(s + j, n - j), vset(fix));
      vstn(dw + j, vmul(w, vsub(vldn(dw + j, n - j), dot)), n - j);
      vstn(s + j, b->keep ? vmul(w, vldn(b->keep + i * b->keep_ld + j, n - j)) : w, n - j);
    }
    for (long j = n; j < b->cols; j += VW) {
      vstn(s + j, vzero(), b->cols - j);
      vstn(dw + j, vzero(), b->cols - j);
    }
  }
}

static float dot (const float *a, const float *b, long n) {
  V sum = vzero();
  for (long i = 0; i < n; i += VW) sum = vfma(vldn(a + i, n - i), vldn(b + i, n - i), sum);
  return vsum(sum);
}

const ampl_cpu_attention ISA(ampl_cpu_attention) = {.forward = forward, .backward = backward, .dot = dot};
