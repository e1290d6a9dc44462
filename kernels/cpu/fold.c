/* fold.c: folds of blocks of doubles and integers, the merging of parts, and the choice of the loops for floats. */
#include "reduce.h"

#include <math.h>

/* ------------------------------------------------------------------------------------------------ plain folds ----- */

static double dmax (double a, double b) { return a > b || a != a ? a : b; }
static double dmin (double a, double b) { return a < b || a != a ? a : b; }
static int64_t imax (int64_t a, int64_t b) { return a > b ? a : b; }
static int64_t imin (int64_t a, int64_t b) { return a < b ? a : b; }
/* Sums and products of integers wrap around */
static int64_t iadd (int64_t a, int64_t b) { return (int64_t)((uint64_t)a + (uint64_t)b); }
static int64_t imul (int64_t a, int64_t b) { return (int64_t)((uint64_t)a * (uint64_t)b); }
static int64_t iabs (int64_t a) { return a < 0 ? (int64_t)(0 - (uint64_t)a) : a; }
static double dadd (double a, double b) { return a + b; }
static double dmul (double a, double b) { return a * b; }

/* The value of one element, how two are put together, and what makes no difference.  X(fold, f64 value, f64 join, f64
 * start, i64 value, i64 join, i64 start) */
#define SIMPLE_FOLDS(X)                                                                                                \
  X(SUM, v, dadd, 0.0, v, iadd, 0)                                                                                     \
  X(SUM_ABS, fabs(v), dadd, 0.0, iabs(v), iadd, 0)                                                              \
  X(SUM_SQUARES, v *v, dadd, 0.0, imul(v, v), iadd, 0)                                                                 \
  X(NONZERO, v != 0, dadd, 0.0, v != 0, iadd, 0)                                                                       \
  X(PROD, v, dmul, 1.0, v, imul, 1)                                                                                    \
  X(MAX, v, dmax, -INFINITY, v, imax, INT64_MIN)                                                                       \
  X(MIN, v, dmin, INFINITY, v, imin, INT64_MAX)                                                                        \
  X(MAX_ABS, fabs(v), dmax, 0.0, iabs(v), imax, 0)                                                              \
  X(MIN_ABS, fabs(v), dmin, INFINITY, iabs(v), imin, INT64_MAX)                                                 \
  X(SUM_POW, pow(fabs(v), p), dadd, 0.0, v, iadd, 0)

/* Four sums at a time in a row; a column is a row with a step */
#define FOLD(T, name, value, join, start)                                                                              \
  static T name (const T *x, int64_t step, int64_t n, double p) {                                                      \
    T s[4] = {start, start, start, start}, v;                                                                          \
    int64_t i = 0;                                                                                                     \
    (void)p;                                                                                                           \
    for (; i + 4 <= n; i += 4)                                                                                         \
      for (int k = 0; k < 4; k++) {                                                                                    \
        v = x[(i + k) * step];                                                                                         \
        s[k] = join(s[k], value);                                                                                      \
      }                                                                                                                \
    for (; i < n; i++) {                                                                                               \
      v = x[i * step];                                                                                                 \
      s[0] = join(s[0], value);                                                                                        \
    }                                                                                                                  \
    return join(join(s[0], s[1]), join(s[2], s[3]));                                                                   \
  }
#define BOTH(fold, fv, fj, fs, iv, ij, is) FOLD(double, f64_##fold, fv, fj, fs) FOLD(int64_t, i64_##fold, iv, ij, is)
SIMPLE_FOLDS(BOTH)
#undef BOTH

typedef double (*f64_fn)(const double *x, int64_t step, int64_t n, double p);
typedef int64_t (*i64_fn)(const int64_t *x, int64_t step, int64_t n, double p);
#define F64(fold, ...) [AMPL_FOLD_##fold] = f64_##fold,
#define I64(fold, ...) [AMPL_FOLD_##fold] = i64_##fold,
static const f64_fn f64_folds[AMPL_FOLD_COUNT] = {SIMPLE_FOLDS(F64)};
static const i64_fn i64_folds[AMPL_FOLD_COUNT] = {SIMPLE_FOLDS(I64)};

static void f64_moments (const double *x, int64_t step, int64_t n, ampl_cpu_part *part) {
  double mean = f64_SUM(x, step, n, 0) / (double)n, s = 0, d = 0;
  for (int64_t i = 0; i < n; i++) {
    double u = x[i * step] - mean;
    d += u;
    s += u * u;
  }
  part->a.f = mean + d / (double)n;
  s -= d * d / (double)n;
  part->b.f = s < 0 ? 0 : s;
}

/* exp(x - top), where top may be infinite: then exp(x) */
static double shift_of (double top) { return isinf(top) ? 0 : top; }

static void f64_log_sum_exp (const double *x, int64_t step, int64_t n, ampl_cpu_part *part) {
  double top = f64_MAX(x, step, n, 0), s = 0;
  for (int64_t i = 0; i < n; i++) s += exp(x[i * step] - shift_of(top));
  part->a.f = top;
  part->b.f = s;
}

/* One row or column of a plain working type */
static void plain (ampl_cpu_fold fold, ampl_cpu_work w, double p, const void *x, int64_t step, int64_t n,
                   ampl_cpu_part *part) {
  part->b.i = 0;
  if (w == AMPL_WORK_I64) part->a.i = i64_folds[fold](x, step, n, p);
  else if (fold == AMPL_FOLD_MOMENTS) f64_moments(x, step, n, part);
  else if (fold == AMPL_FOLD_LOG_SUM_EXP) f64_log_sum_exp(x, step, n, part);
  else part->a.f = f64_folds[fold](x, step, n, p);
}

/* ------------------------------------------------------------------------------------------------ floats ---------- */

static const ampl_cpu_folds *folds (void) { return AMPL_CPU_BEST(ampl_cpu_folds); }

static double sum_pow (const float *x, int64_t step, int64_t n, double p) {
  double s = 0;
  for (int64_t i = 0; i < n; i++) s += pow(fabs((double)x[i * step]), p);
  return s;
}

/* Squares leave the range of f32 long before a norm does: what overflows or loses bits there is done again in f64 */
static bool safe_squares (double s) { return s > 0x1p-90 && s <= 0x1p127; }
static double squares (const float *x, int64_t step, int64_t n) {
  double s = 0;
  for (int64_t i = 0; i < n; i++) s += (double)x[i * step] * x[i * step];
  return s;
}

void ampl_cpu_fold_row (ampl_cpu_fold fold, ampl_cpu_work w, double p, const void *x, int64_t n, ampl_cpu_part *part) {
  if (w != AMPL_WORK_F32) {
    plain(fold, w, p, x, 1, n, part);
  } else if (fold == AMPL_FOLD_SUM_POW) {
    part->a.f = sum_pow(x, 1, n, p);
  } else {
    folds()->row[fold](x, n, &part->a.f, &part->b.f);
    if (fold == AMPL_FOLD_SUM_SQUARES && !safe_squares(part->a.f)) part->a.f = squares(x, 1, n);
  }
}

void ampl_cpu_fold_rows (ampl_cpu_fold fold, ampl_cpu_work w, double p, const void *x, int64_t ld, int64_t m, int64_t n,
                         ampl_cpu_part *part) {
  if (w != AMPL_WORK_F32 || fold == AMPL_FOLD_SUM_POW || fold == AMPL_FOLD_SUM_SQUARES) {
    for (int64_t i = 0; i < m; i++)
      ampl_cpu_fold_row(fold, w, p, (const char *)x + i * ld * (int64_t)ampl_cpu_work_size(w), n, &part[i]);
    return;
  }
  ampl_cpu_fold_row_fn row = folds()->row[fold];
  for (int64_t i = 0; i < m; i++) row((const float *)x + i * ld, n, &part[i].a.f, &part[i].b.f);
}

void ampl_cpu_fold_cols (ampl_cpu_fold fold, ampl_cpu_work w, double p, const void *x, int64_t ld, int64_t rows,
                         int64_t m, ampl_cpu_part *part) {
  float a[AMPL_FOLD_COLS], b[AMPL_FOLD_COLS];
  if (w != AMPL_WORK_F32) {
    for (int64_t j = 0; j < m; j++) plain(fold, w, p, (const char *)x + j * 8, ld, rows, &part[j]);
  } else if (fold == AMPL_FOLD_SUM_POW) {
    for (int64_t j = 0; j < m; j++) part[j].a.f = sum_pow((const float *)x + j, ld, rows, p);
  } else {
    bool two = fold == AMPL_FOLD_MOMENTS || fold == AMPL_FOLD_LOG_SUM_EXP;
    folds()->cols[fold](x, ld, rows, m, a, b);
    for (int64_t j = 0; j < m; j++) {
      part[j].a.f = a[j];
      part[j].b.f = two ? b[j] : 0;
      if (fold == AMPL_FOLD_SUM_SQUARES && !safe_squares(a[j])) part[j].a.f = squares((const float *)x + j, ld, rows);
    }
  }
}

/* ------------------------------------------------------------------------------------------------ two tensors ----- */

static void f64_dot (const double *x, int64_t xstep, const double *z, int64_t zstep, int64_t n, double center,
                     ampl_cpu_part *part) {
  double a = 0, b = 0;
  for (int64_t i = 0; i < n; i++) {
    a += x[i * xstep];
    b += x[i * xstep] * (z[i * zstep] - center);
  }
  part->a.f = a;
  part->b.f = b;
}

void ampl_cpu_fold_dot_row (ampl_cpu_work w, const void *x, const void *z, int64_t n, double center,
                            ampl_cpu_part *part) {
  if (w == AMPL_WORK_F64) {
    f64_dot(x, 1, z, 1, n, center, part);
    return;
  }
  float c = (float)center;
  folds()->dot_row(x, z, n, c, &part->a.f, &part->b.f);
  part->b.f += part->a.f * ((double)c - center);        /* what rounding did to the centre */
}

void ampl_cpu_fold_dot_cols (ampl_cpu_work w, const void *x, int64_t ldx, const void *z, int64_t ldz, int64_t rows,
                             int64_t m, const double *center, ampl_cpu_part *part) {
  float a[AMPL_FOLD_COLS], b[AMPL_FOLD_COLS], c[AMPL_FOLD_COLS];
  if (w == AMPL_WORK_F64) {
    for (int64_t j = 0; j < m; j++)
      f64_dot((const double *)x + j, ldx, (const double *)z + j, ldz, rows, center[j], &part[j]);
    return;
  }
  for (int64_t j = 0; j < m; j++) c[j] = (float)center[j];
  folds()->dot_cols(x, ldx, z, ldz, rows, m, c, a, b);
  for (int64_t j = 0; j < m; j++) {
    part[j].a.f = a[j];
    part[j].b.f = b[j] + (double)a[j] * ((double)c[j] - center[j]);
  }
}

/* ------------------------------------------------------------------------------------------------ parts ----------- */

ampl_cpu_part ampl_cpu_fold_none (ampl_cpu_fold fold, ampl_cpu_work w) {
#define START(fold, fv, fj, fs, iv, ij, is) [AMPL_FOLD_##fold] = {fs, is},
  static const struct { double f; int64_t i; } start[AMPL_FOLD_COUNT] = {SIMPLE_FOLDS(START)};
  ampl_cpu_part none = {{.f = 0}, {.f = 0}};
  if (w == AMPL_WORK_I64) none.a.i = start[fold].i;
  else none.a.f = fold == AMPL_FOLD_LOG_SUM_EXP ? -INFINITY : start[fold].f;
  return none;
}

static void merge_moments (ampl_cpu_part *into, double n, const ampl_cpu_part *from, double more) {
  double d = from->a.f - into->a.f, all = n + more;
  into->a.f += d * (more / all);
  into->b.f += from->b.f + d * d * (n / all * more);
}

static void merge_log_sum_exp (ampl_cpu_part *into, const ampl_cpu_part *from) {
  double top = dmax(into->a.f, from->a.f), shift = shift_of(top);
  /* a sum of 0 is one of -inf alone: its shift means nothing */
  double s = into->b.f == 0 ? 0 : into->b.f * exp(shift_of(into->a.f) - shift);
  into->b.f = s + (from->b.f == 0 ? 0 : from->b.f * exp(shift_of(from->a.f) - shift));
  into->a.f = top;
}

void ampl_cpu_fold_merge(ampl_cpu_fold fold, ampl_cpu_work w, ampl_cpu_part *into, int64_t n, const ampl_cpu_part *from,
                         int64_t more, int64_t m) {
  if (n == 0) {
    for (int64_t j = 0; j < m; j++) into[j] = from[j];
    return;
  }
#define MERGE(fold, fv, fj, fs, iv, ij, is)                                                                            \
  case AMPL_FOLD_##fold:                                                                                               \
    if (w == AMPL_WORK_I64) for (int64_t j = 0; j < m; j++) into[j].a.i = ij(into[j].a.i, from[j].a.i);                \
    else for (int64_t j = 0; j < m; j++) into[j].a.f = fj(into[j].a.f, from[j].a.f);                                   \
    break;
  switch (fold) {
    SIMPLE_FOLDS(MERGE)
    case AMPL_FOLD_MOMENTS:
      for (int64_t j = 0; j < m; j++) merge_moments(&into[j], (double)n, &from[j], (double)more);
      break;
    case AMPL_FOLD_LOG_SUM_EXP:
      for (int64_t j = 0; j < m; j++) merge_log_sum_exp(&into[j], &from[j]);
      break;
    case AMPL_FOLD_DOT:
      for (int64_t j = 0; j < m; j++) into[j].a.f += from[j].a.f, into[j].b.f += from[j].b.f;
      break;
    default: break;
  }
}
