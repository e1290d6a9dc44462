/* softmax.c: see softmax.h.  The largest value is subtracted first, so exp cannot overflow. */
#include "isa/softmax.h"
#include "isa/simd.h"
#include "isa/vmath.h"

INLINE V ldpart(const float *p, int64_t n) { return n >= VW ? vld(p) : vldn(p, n); }
INLINE void stpart(float *p, V v, int64_t n) {
  if (n >= VW) vst(p, v);
  else vstn(p, v, n);
}

/* ------------------------------------------------------------------------------------------------ forward --------- */

static float largest(const float *x, int64_t n) {
  V a = vset(-INFINITY), b = a;
  int64_t i = 0;
  for (; i + 2 * VW <= n; i += 2 * VW) a = vmax_nan(a, vld(x + i)), b = vmax_nan(b, vld(x + i + VW));
  for (; i < n; i += VW) a = vmax_nan(a, vselect(mfirst(n - i), ldpart(x + i, n - i), vset(-INFINITY)));
  a = vmax_nan(a, b);
  return many(visnan(a)) ? NAN : vhmax(a);
}

/* The sum of exp(x - top), which is also stored where `y` wants it */
INLINE float sum_exp(float *y, const float *x, int64_t n, float top) {
  const V shift = vset(top);
  V s0 = vzero(), s1 = s0;
  int64_t i = 0;
  for (; i + 2 * VW <= n; i += 2 * VW) {
    const V a = vexp(vsub(vld(x + i), shift)), b = vexp(vsub(vld(x + i + VW), shift));
    if (y) vst(y + i, a), vst(y + i + VW, b);
    s0 = vadd(s0, a), s1 = vadd(s1, b);
  }
  for (; i < n; i += VW) {
    const V a = vselect(mfirst(n - i), vexp(vsub(ldpart(x + i, n - i), shift)), vzero());
    if (y) stpart(y + i, a, n - i);
    s0 = vadd(s0, a);
  }
  return vsum(vadd(s0, s1));
}

static void softmax_row(float *y, const float *x, int64_t n) {
  const V scale = vset(1.0f / sum_exp(y, x, n, largest(x, n)));
  for (int64_t i = 0; i < n; i += VW) stpart(y + i, vmul(ldpart(y + i, n - i), scale), n - i);
}

/* (x - top) - log(sum), not x - (top + log(sum)): the first difference is exact where it matters */
static void log_part(float *y, const float *x, int64_t n, float a, float b) {
  for (int64_t i = 0; i < n; i += VW) stpart(y + i, vsub(vsub(ldpart(x + i, n - i), vset(a)), vset(b)), n - i);
}

static void log_softmax_row(float *y, const float *x, int64_t n) {
  const float top = largest(x, n);
  log_part(y, x, n, top, logf(sum_exp(NULL, x, n, top)));
}

static void softmax_part(float *y, const float *x, int64_t n, float a, float b) {
  for (int64_t i = 0; i < n; i += VW)
    stpart(y + i, vmul(vexp(vsub(ldpart(x + i, n - i), vset(a))), vset(b)), n - i);
}

INLINE void cols(const bool is_log, float *y, int64_t ldy, const float *x, int64_t ldx, int64_t rows, int64_t m,
                 const float *a, const float *b) {
  for (int64_t j = 0; j < m; j += VW) {
    const int64_t n = m - j;
    const V va = ldpart(a + j, n), vb = ldpart(b + j, n);
    for (int64_t r = 0; r < rows; r++) {
      const V off = vsub(ldpart(x + r * ldx + j, n), va);
      stpart(y + r * ldy + j, is_log ? vsub(off, vb) : vmul(vexp(off), vb), n);
    }
  }
}

static void softmax_cols(float *y, int64_t ldy, const float *x, int64_t ldx, int64_t rows, int64_t m, const float *a,
                         const float *b) {
  cols(false, y, ldy, x, ldx, rows, m, a, b);
}
static void log_softmax_cols(float *y, int64_t ldy, const float *x, int64_t ldx, int64_t rows, int64_t m,
                             const float *a, const float *b) {
  cols(true, y, ldy, x, ldx, rows, m, a, b);
}

/* ------------------------------------------------------------------------------------------------ backward -------- */

INLINE V term(const bool is_log, V dy, V y) { return is_log ? dy : vmul(dy, y); }

INLINE double dot(const bool is_log, const float *dy, const float *y, int64_t n) {
  V s0 = vzero(), s1 = s0;
  int64_t i = 0;
  for (; i + 2 * VW <= n; i += 2 * VW) {
    s0 = vadd(s0, term(is_log, vld(dy + i), vld(y + i)));
    s1 = vadd(s1, term(is_log, vld(dy + i + VW), vld(y + i + VW)));
  }
  for (; i < n; i += VW) s0 = vadd(s0, term(is_log, ldpart(dy + i, n - i), ldpart(y + i, n - i)));
  return vsum(vadd(s0, s1));
}

INLINE void dot_cols(const bool is_log, const float *dy, int64_t lddy, const float *y, int64_t ldy, int64_t rows,
                     int64_t m, float *sum) {
  for (int64_t j = 0; j < m; j += VW) {
    V s = vzero();
    for (int64_t r = 0; r < rows; r++)
      s = vadd(s, term(is_log, ldpart(dy + r * lddy + j, m - j), ldpart(y + r * ldy + j, m - j)));
    stpart(sum + j, s, m - j);
  }
}

INLINE V gradient(const bool is_log, V dy, V y, V sum) {
  return is_log ? vfnma(vexp(y), sum, dy) : vmul(y, vsub(dy, sum));
}

INLINE void back(const bool is_log, float *dx, const float *dy, const float *y, int64_t n, float sum) {
  for (int64_t i = 0; i < n; i += VW)
    stpart(dx + i, gradient(is_log, ldpart(dy + i, n - i), ldpart(y + i, n - i), vset(sum)), n - i);
}

INLINE void back_cols(const bool is_log, float *dx, int64_t lddx, const float *dy, int64_t lddy, const float *y,
                      int64_t ldy, int64_t rows, int64_t m, const float *sum) {
  for (int64_t j = 0; j < m; j += VW) {
    const int64_t n = m - j;
    const V s = ldpart(sum + j, n);
    for (int64_t r = 0; r < rows; r++)
      stpart(dx + r * lddx + j, gradient(is_log, ldpart(dy + r * lddy + j, n), ldpart(y + r * ldy + j, n), s), n);
  }
}

#define BOTH(suffix, is_log)                                                                                           \
  static double dot_##suffix(const float *dy, const float *y, int64_t n) { return dot(is_log, dy, y, n); }             \
  static void dot_cols_##suffix(const float *dy, int64_t lddy, const float *y, int64_t ldy, int64_t rows, int64_t m,   \
                                float *sum) {                                                                          \
    dot_cols(is_log, dy, lddy, y, ldy, rows, m, sum);                                                                  \
  }                                                                                                                    \
  static void back_##suffix(float *dx, const float *dy, const float *y, int64_t n, float sum) {                        \
    back(is_log, dx, dy, y, n, sum);                                                                                   \
  }                                                                                                                    \
  static void back_cols_##suffix(float *dx, int64_t lddx, const float *dy, int64_t lddy, const float *y, int64_t ldy,  \
                                 int64_t rows, int64_t m, const float *sum) {                                          \
    back_cols(is_log, dx, lddx, dy, lddy, y, ldy, rows, m, sum);                                                       \
  }
BOTH(plain, false)
BOTH(log, true)

const ampl_cpu_softmax ISA(ampl_cpu_softmax) = {
    .row = {softmax_row, log_softmax_row},
    .part = {softmax_part, log_part},
    .cols = {softmax_cols, log_softmax_cols},
    .dot = {dot_plain, dot_log},
    .dot_cols = {dot_cols_plain, dot_cols_log},
    .back = {back_plain, back_log},
    .back_cols = {back_cols_plain, back_cols_log},
};
