/* fold.c: blocks of floats to one or two numbers. */
#include "isa/fold.h"
#include "isa/simd.h"
#include "isa/vmath.h"

#include <math.h>

/* Every simple fold is pre() of each value, put together by join(), beginning with start().  A value of absent() makes
 * no difference. */
INLINE V pre(const int fold, V x) {
  if (fold == AMPL_FOLD_SUM_ABS || fold == AMPL_FOLD_MAX_ABS || fold == AMPL_FOLD_MIN_ABS) return vabs(x);
  if (fold == AMPL_FOLD_SUM_SQUARES) return vmul(x, x);
  if (fold == AMPL_FOLD_NONZERO) return vselect(vne(x, vzero()), vset(1), vzero());
  return x;
}

INLINE V join(const int fold, V a, V b) {
  if (fold == AMPL_FOLD_PROD) return vmul(a, b);
  if (fold == AMPL_FOLD_MAX || fold == AMPL_FOLD_MAX_ABS) return vmax_nan(a, b);
  if (fold == AMPL_FOLD_MIN || fold == AMPL_FOLD_MIN_ABS) return vmin_nan(a, b);
  return vadd(a, b);
}

INLINE float absent(const int fold) {
  if (fold == AMPL_FOLD_PROD) return 1;
  if (fold == AMPL_FOLD_MAX) return -INFINITY;
  if (fold == AMPL_FOLD_MIN || fold == AMPL_FOLD_MIN_ABS) return INFINITY;
  return 0;
}

INLINE float across(const int fold, V v) {
  if (fold == AMPL_FOLD_PROD) {
    float part[VW], p = 1;
    vst(part, v);
    for (int i = 0; i < VW; i++) p *= part[i];
    return p;
  }
  if (fold == AMPL_FOLD_MAX || fold == AMPL_FOLD_MAX_ABS) return many(visnan(v)) ? NAN : vhmax(v);
  if (fold == AMPL_FOLD_MIN || fold == AMPL_FOLD_MIN_ABS) return many(visnan(v)) ? NAN : vhmin(v);
  return vsum(v);
}

INLINE V loadn(const int fold, const float *x, int64_t n) {
  return absent(fold) == 0 ? vldn(x, n) : vselect(mfirst(n), vldn(x, n), vset(absent(fold)));
}

/* ------------------------------------------------------------------------------------------------ rows ------------ */

INLINE float row(const int fold, const float *x, int64_t n) {
  if (n <= VW) return across(fold, pre(fold, loadn(fold, x, n)));
  V a = vset(absent(fold)), b = a, c = a, d = a;
  int64_t i = 0;
  for (; i + 4 * VW <= n; i += 4 * VW) {
    a = join(fold, a, pre(fold, vld(x + i)));
    b = join(fold, b, pre(fold, vld(x + i + VW)));
    c = join(fold, c, pre(fold, vld(x + i + 2 * VW)));
    d = join(fold, d, pre(fold, vld(x + i + 3 * VW)));
  }
  for (; i < n; i += VW) a = join(fold, a, pre(fold, loadn(fold, x + i, n - i)));
  return across(fold, join(fold, join(fold, a, b), join(fold, c, d)));
}

#define ROW(name, fold)                                                                                                \
  static void row_##name(const float *x, int64_t n, double *a, double *b) { *a = row(fold, x, n), *b = 0; }
ROW(sum, AMPL_FOLD_SUM)
ROW(sum_abs, AMPL_FOLD_SUM_ABS)
ROW(sum_squares, AMPL_FOLD_SUM_SQUARES)
ROW(nonzero, AMPL_FOLD_NONZERO)
ROW(prod, AMPL_FOLD_PROD)
ROW(max, AMPL_FOLD_MAX)
ROW(min, AMPL_FOLD_MIN)
ROW(max_abs, AMPL_FOLD_MAX_ABS)
ROW(min_abs, AMPL_FOLD_MIN_ABS)

static void row_moments(const float *x, int64_t n, double *a, double *b) {
  const float mean = (float)((double)row(AMPL_FOLD_SUM, x, n) / (double)n);
  const V m = vset(mean);
  V s0 = vzero(), s1 = s0, d0 = s0, d1 = s0;
  int64_t i = 0;
  for (; i + 2 * VW <= n; i += 2 * VW) {
    V u = vsub(vld(x + i), m), v = vsub(vld(x + i + VW), m);
    d0 = vadd(d0, u), d1 = vadd(d1, v);
    s0 = vfma(u, u, s0), s1 = vfma(v, v, s1);
  }
  for (; i < n; i += VW) {
    V u = vselect(mfirst(n - i), vsub(vldn(x + i, n - i), m), vzero());
    d0 = vadd(d0, u), s0 = vfma(u, u, s0);
  }
  /* what rounding took from the mean shows up as a sum of differences that is not 0 */
  const double d = vsum(vadd(d0, d1)), s = vsum(vadd(s0, s1));
  *a = mean + d / (double)n;
  *b = s > d * d / (double)n ? s - d * d / (double)n : s == s ? 0 : s;
}

static void row_log_sum_exp(const float *x, int64_t n, double *a, double *b) {
  const float top = row(AMPL_FOLD_MAX, x, n);
  const V shift = vset(isinf(top) ? 0 : top);
  V s0 = vzero(), s1 = s0;
  int64_t i = 0;
  for (; i + 2 * VW <= n; i += 2 * VW) {
    s0 = vadd(s0, vexp(vsub(vld(x + i), shift)));
    s1 = vadd(s1, vexp(vsub(vld(x + i + VW), shift)));
  }
  for (; i < n; i += VW)
    s0 = vadd(s0, vselect(mfirst(n - i), vexp(vsub(vldn(x + i, n - i), shift)), vzero()));
  *a = top;
  *b = vsum(vadd(s0, s1));
}

/* ------------------------------------------------------------------------------------------------ columns --------- */

/* The first n columns of a vector of them; whole vectors are loaded and stored as such */
INLINE V ldcol(const float *p, int64_t n) { return n >= VW ? vld(p) : vldn(p, n); }
INLINE void stcol(float *p, V v, int64_t n) {
  if (n >= VW) vst(p, v);
  else vstn(p, v, n);
}

/* Four rows at a time: fewer visits to the results */
INLINE void cols(const int fold, const float *x, int64_t ld, int64_t rows, int64_t m, float *a) {
  int64_t r = 0;
  for (; r + 4 <= rows; r += 4) {
    const float *p = x + r * ld;
    for (int64_t j = 0, n = m; j < m; j += VW, n -= VW) {
#define AT(i) pre(fold, ldcol(p + (i)*ld + j, n))
      V v = join(fold, join(fold, AT(0), AT(1)), join(fold, AT(2), AT(3)));
      stcol(a + j, r ? join(fold, ldcol(a + j, n), v) : v, n);
#undef AT
    }
  }
  for (; r < rows; r++)
    for (int64_t j = 0, n = m; j < m; j += VW, n -= VW) {
      V v = pre(fold, ldcol(x + r * ld + j, n));
      stcol(a + j, r ? join(fold, ldcol(a + j, n), v) : v, n);
    }
}

#define COLS(name, fold)                                                                                               \
  static void cols_##name(const float *x, int64_t ld, int64_t rows, int64_t m, float *a, float *b) {                   \
    (void)b;                                                                                                           \
    cols(fold, x, ld, rows, m, a);                                                                                     \
  }
COLS(sum, AMPL_FOLD_SUM)
COLS(sum_abs, AMPL_FOLD_SUM_ABS)
COLS(sum_squares, AMPL_FOLD_SUM_SQUARES)
COLS(nonzero, AMPL_FOLD_NONZERO)
COLS(prod, AMPL_FOLD_PROD)
COLS(max, AMPL_FOLD_MAX)
COLS(min, AMPL_FOLD_MIN)
COLS(max_abs, AMPL_FOLD_MAX_ABS)
COLS(min_abs, AMPL_FOLD_MIN_ABS)

static void cols_moments(const float *x, int64_t ld, int64_t rows, int64_t m, float *a, float *b) {
  cols(AMPL_FOLD_SUM, x, ld, rows, m, a);
  const V inverse = vset(1.0f / (float)rows);
  for (int64_t j = 0, n = m; j < m; j += VW, n -= VW) {
    const V mean = vmul(ldcol(a + j, n), inverse);
    V s = vzero(), d = s;
    for (int64_t r = 0; r < rows; r++) {
      V u = vsub(ldcol(x + r * ld + j, n), mean);
      d = vadd(d, u), s = vfma(u, u, s);
    }
    const V shift = vmul(d, inverse), rest = vfnma(shift, d, s);
    stcol(a + j, vadd(mean, shift), n);
    stcol(b + j, vselect(vlt(rest, vzero()), vzero(), rest), n);
  }
}

static void cols_log_sum_exp(const float *x, int64_t ld, int64_t rows, int64_t m, float *a, float *b) {
  cols(AMPL_FOLD_MAX, x, ld, rows, m, a);
  for (int64_t j = 0, n = m; j < m; j += VW, n -= VW) {
    const V top = ldcol(a + j, n);
    const V shift = vselect(veq(vabs(top), vset(INFINITY)), vzero(), top);
    V s = vzero();
    for (int64_t r = 0; r < rows; r++) s = vadd(s, vexp(vsub(ldcol(x + r * ld + j, n), shift)));
    stcol(b + j, s, n);
  }
}

/* ------------------------------------------------------------------------------------------------ two tensors ----- */

static void dot_row(const float *x, const float *z, int64_t n, float center, double *a, double *b) {
  const V c = vset(center);
  V s0 = vzero(), s1 = s0, d0 = s0, d1 = s0;
  int64_t i = 0;
  for (; i + 2 * VW <= n; i += 2 * VW) {
    const V u = vld(x + i), v = vld(x + i + VW);
    s0 = vadd(s0, u), s1 = vadd(s1, v);
    d0 = vfma(u, vsub(vld(z + i), c), d0), d1 = vfma(v, vsub(vld(z + i + VW), c), d1);
  }
  for (; i < n; i += VW) {
    const V u = ldcol(x + i, n - i);
    s0 = vadd(s0, u), d0 = vfma(u, vsub(ldcol(z + i, n - i), c), d0);
  }
  *a = vsum(vadd(s0, s1));
  *b = vsum(vadd(d0, d1));
}

static void dot_cols(const float *x, int64_t ldx, const float *z, int64_t ldz, int64_t rows, int64_t m,
                     const float *center, float *a, float *b) {
  for (int64_t j = 0, n = m; j < m; j += VW, n -= VW) {
    const V c = ldcol(center + j, n);
    V s = vzero(), d = s;
    for (int64_t r = 0; r < rows; r++) {
      const V u = ldcol(x + r * ldx + j, n);
      s = vadd(s, u), d = vfma(u, vsub(ldcol(z + r * ldz + j, n), c), d);
    }
    stcol(a + j, s, n);
    stcol(b + j, d, n);
  }
}

/* ------------------------------------------------------------------------------------------------ positions ------- */

INLINE M beats(const bool least, V v, V best) {
  return mor(least ? vlt(v, best) : vgt(v, best), mandnot(visnan(best), visnan(v)));
}

INLINE void best_row(const bool least, const float *x, int64_t n, float *best, int64_t *at) {
  const float none = least ? INFINITY : -INFINITY;
  V b = vset(none);
  I where = iset(INT32_MAX);
  for (int64_t i = 0; i < n; i += VW) {
    const M in = mfirst(n - i);
    const V v = n - i >= VW ? vld(x + i) : vselect(in, vldn(x + i, n - i), vset(none));
    /* the first vector is taken as it is: it may hold nothing but -inf */
    const M m = i == 0 ? in : beats(least, v, b);
    b = vselect(m, v, b);
    where = iselect(m, iadd(iset((int32_t)i), iiota()), where);
  }
  float values[VW];
  int32_t places[VW];
  vst(values, b);
  ist(places, where);
  *best = values[0];
  *at = places[0];
  for (int k = 1; k < VW && k < n; k++) {
    const float v = values[k];
    const bool wins = (least ? v < *best : v > *best) || (v != v && *best == *best);
    const bool ties = v == *best || (v != v && *best != *best);
    if (wins || (ties && places[k] < *at)) *best = v, *at = places[k];
  }
}

INLINE void best_cols(const bool least, const float *row, int64_t m, int32_t r, float *best, int32_t *at) {
  for (int64_t j = 0, n = m; j < m; j += VW, n -= VW) {
    const V v = ldcol(row + j, n);
    const V b = ldcol(best + j, n);
    const M wins = r == 0 ? mfirst(n) : beats(least, v, b);
    stcol(best + j, vselect(wins, v, b), n);
    if (n >= VW) ist(at + j, iselect(wins, iset(r), ild(at + j)));
    else istn(at + j, iselect(wins, iset(r), ildn(at + j, n)), n);
  }
}

static void max_row(const float *x, int64_t n, float *best, int64_t *at) { best_row(false, x, n, best, at); }
static void min_row(const float *x, int64_t n, float *best, int64_t *at) { best_row(true, x, n, best, at); }
static void max_cols(const float *row, int64_t m, int32_t r, float *best, int32_t *at) {
  best_cols(false, row, m, r, best, at);
}
static void min_cols(const float *row, int64_t m, int32_t r, float *best, int32_t *at) {
  best_cols(true, row, m, r, best, at);
}

/* -------------------------------------------------------------------------------------------- */

#define BOTH(kind, name) .row[kind] = row_##name, .cols[kind] = cols_##name
const ampl_cpu_folds ISA(ampl_cpu_folds) = {
    BOTH(AMPL_FOLD_SUM, sum),
    BOTH(AMPL_FOLD_SUM_ABS, sum_abs),
    BOTH(AMPL_FOLD_SUM_SQUARES, sum_squares),
    BOTH(AMPL_FOLD_NONZERO, nonzero),
    BOTH(AMPL_FOLD_PROD, prod),
    BOTH(AMPL_FOLD_MAX, max),
    BOTH(AMPL_FOLD_MIN, min),
    BOTH(AMPL_FOLD_MAX_ABS, max_abs),
    BOTH(AMPL_FOLD_MIN_ABS, min_abs),
    BOTH(AMPL_FOLD_MOMENTS, moments),
    BOTH(AMPL_FOLD_LOG_SUM_EXP, log_sum_exp),
    .dot_row = dot_row,
    .dot_cols = dot_cols,
    .best_row = {max_row, min_row},
    .best_cols = {max_cols, min_cols},
};
