/* reductions.c: sum, mean, prod, var, std, norm, logsumexp, amax, amin, any, all, count_nonzero: a fold each, and what
 * is made of its parts. */
#include "op.h"
#include "reduce.h"

#include <math.h>

typedef struct job {
  ampl_cpu_work in, out;        /* working types of the values and of the result */
  double        p;              /* exponent, correction ... */
} job;

/* Stores v as value j of the output's working type */
static void put (const job *k, void *values, int64_t j, double v) {
  if (k->out == AMPL_WORK_F32) ((float *)values)[j] = (float)v;
  else if (k->out == AMPL_WORK_F64) ((double *)values)[j] = v;
  else ((int64_t *)values)[j] = (int64_t)v;
}

#define FINISH(name, expr)                                                                                             \
  static void name (void *ud, const ampl_cpu_part *parts, int64_t first, int64_t m, int64_t count, void *values) {     \
    const job *k = ud;                                                                                                 \
    const double n = (double)count, p = k->p;                                                                          \
    (void)first, (void)n, (void)p;                                                                                     \
    for (int64_t j = 0; j < m; j++) {                                                                                  \
      const double a = parts[j].a.f, b = parts[j].b.f;                                                                 \
      (void)a, (void)b;                                                                                                \
      put(k, values, j, expr);                                                                                         \
    }                                                                                                                  \
  }

/* The divisor of a variance is never negative, but may be 0: then the result is infinite or NaN */
static double rest (double n, double correction) { return n > correction ? n - correction : 0; }

FINISH(as_it_is, a)
FINISH(mean_of_sum, a / n)
FINISH(variance, count ? b / rest(n, p) : NAN)
FINISH(deviation, count ? sqrt(b / rest(n, p)) : NAN)
FINISH(root, sqrt(a))
FINISH(pth_root, pow(a, 1 / p))
FINISH(log_of_sum, isinf(a) ? a : a + log(b))

static void integers (void *ud, const ampl_cpu_part *parts, int64_t first, int64_t m, int64_t n, void *values) {
  (void)ud, (void)first, (void)n;
  for (int64_t j = 0; j < m; j++) ((int64_t *)values)[j] = parts[j].a.i;
}

/* Counts are integers in the working type of integers, and whole floats else */
static int64_t count_of (const job *k, const ampl_cpu_part *part) {
  return k->in == AMPL_WORK_I64 ? part->a.i : (int64_t)part->a.f;
}
static void counts (void *ud, const ampl_cpu_part *parts, int64_t first, int64_t m, int64_t n, void *values) {
  (void)first, (void)n;
  for (int64_t j = 0; j < m; j++) ((int64_t *)values)[j] = count_of(ud, &parts[j]);
}
static void are_all (void *ud, const ampl_cpu_part *parts, int64_t first, int64_t m, int64_t n, void *values) {
  (void)first;
  for (int64_t j = 0; j < m; j++) ((int64_t *)values)[j] = count_of(ud, &parts[j]) == n;
}

static ampl_status run(ampl_ctx *ctx, const ampl_args *in, ampl_tensor *y, ampl_cpu_fold fold, ampl_ints dims, double p,
                       ampl_cpu_work w, ampl_cpu_finish_fn finish) {
  const ampl_tensor *x = in->t[0];
  job k = {w, ampl_cpu_work_of(y->dtype), p};
  const ampl_cpu_reduction r = {.fold = fold, .work = w, .p = p, .x = x, .dims = ampl_cpu_dims_mask(dims, x->ndim),
                                .y = y, .finish = finish, .ud = &k};
  return ampl_cpu_reduce(ctx, &r);
}

/* Where the dtype of the result may differ from x's: the wider of the two decides, and integers that become a float are
 * added up as f64 */
static ampl_cpu_work work_for (const ampl_tensor *x, const ampl_tensor *y) {
  ampl_cpu_work a = ampl_cpu_work_of(x->dtype), b = ampl_cpu_work_of(y->dtype);
  return b == AMPL_WORK_I64 ? AMPL_WORK_I64 : a == AMPL_WORK_F32 && b == AMPL_WORK_F32 ? AMPL_WORK_F32 : AMPL_WORK_F64;
}

static ampl_ints one_dim (const int64_t *dim) { return (ampl_ints){dim, *dim != AMPL_ABSENT}; }

static ampl_status sum (ampl_ctx *ctx, const ampl_args *in, ampl_tensor **out) {
  ampl_cpu_work w = work_for(in->t[0], out[0]);
  return run(ctx, in, out[0], AMPL_FOLD_SUM, in->p[0].l, 0, w, w == AMPL_WORK_I64 ? integers : as_it_is);
}
static ampl_status mean (ampl_ctx *ctx, const ampl_args *in, ampl_tensor **out) {
  return run(ctx, in, out[0], AMPL_FOLD_SUM, in->p[0].l, 0, work_for(in->t[0], out[0]), mean_of_sum);
}
static ampl_status prod (ampl_ctx *ctx, const ampl_args *in, ampl_tensor **out) {
  ampl_cpu_work w = work_for(in->t[0], out[0]);
  return run(ctx, in, out[0], AMPL_FOLD_PROD, one_dim(&in->p[0].i), 0, w, w == AMPL_WORK_I64 ? integers : as_it_is);
}
static ampl_status var (ampl_ctx *ctx, const ampl_args *in, ampl_tensor **out) {
  return run(ctx, in, out[0], AMPL_FOLD_MOMENTS, in->p[0].l, in->p[1].f, work_for(in->t[0], out[0]), variance);
}
static ampl_status std_ (ampl_ctx *ctx, const ampl_args *in, ampl_tensor **out) {
  return run(ctx, in, out[0], AMPL_FOLD_MOMENTS, in->p[0].l, in->p[1].f, work_for(in->t[0], out[0]), deviation);
}

static ampl_status norm (ampl_ctx *ctx, const ampl_args *in, ampl_tensor **out) {
  double p = in->p[0].f;
  ampl_cpu_fold fold = p == 0          ? AMPL_FOLD_NONZERO
                       : p == 1        ? AMPL_FOLD_SUM_ABS
                       : p == 2        ? AMPL_FOLD_SUM_SQUARES
                       : p == INFINITY  ? AMPL_FOLD_MAX_ABS
                       : p == -INFINITY ? AMPL_FOLD_MIN_ABS
                                        : AMPL_FOLD_SUM_POW;
  ampl_cpu_finish_fn finish = fold == AMPL_FOLD_SUM_SQUARES ? root : fold == AMPL_FOLD_SUM_POW ? pth_root : as_it_is;
  return run(ctx, in, out[0], fold, in->p[1].l, p, work_for(in->t[0], out[0]), finish);
}

static ampl_status logsumexp (ampl_ctx *ctx, const ampl_args *in, ampl_tensor **out) {
  return run(ctx, in, out[0], AMPL_FOLD_LOG_SUM_EXP, in->p[0].l, 0, work_for(in->t[0], out[0]), log_of_sum);
}

static ampl_status extreme (ampl_ctx *ctx, const ampl_args *in, ampl_tensor *y, ampl_cpu_fold fold) {
  ampl_cpu_work w = ampl_cpu_work_of(in->t[0]->dtype);
  return run(ctx, in, y, fold, in->p[0].l, 0, w, w == AMPL_WORK_I64 ? integers : as_it_is);
}
static ampl_status amax (ampl_ctx *ctx, const ampl_args *in, ampl_tensor **out) {
  return extreme(ctx, in, out[0], AMPL_FOLD_MAX);
}
static ampl_status amin (ampl_ctx *ctx, const ampl_args *in, ampl_tensor **out) {
  return extreme(ctx, in, out[0], AMPL_FOLD_MIN);
}

static ampl_status count (ampl_ctx *ctx, const ampl_args *in, ampl_tensor *y, ampl_cpu_finish_fn finish) {
  return run(ctx, in, y, AMPL_FOLD_NONZERO, in->p[0].l, 0, ampl_cpu_work_of(in->t[0]->dtype), finish);
}
static ampl_status any(ampl_ctx *ctx, const ampl_args *in, ampl_tensor **out) { return count(ctx, in, out[0], counts); }
static ampl_status all(ampl_ctx *ctx, const ampl_args *in, ampl_tensor **out) {
  return count(ctx, in, out[0], are_all);
}
static ampl_status count_nonzero (ampl_ctx *ctx, const ampl_args *in, ampl_tensor **out) {
  return count(ctx, in, out[0], counts);
}

const ampl_kernel ampl_cpu_reductions_kernels[] = {
    {"sum", AMPL_DTYPE_NONE, sum},
    {"mean", AMPL_DTYPE_NONE, mean},
    {"prod", AMPL_DTYPE_NONE, prod},
    {"var", AMPL_DTYPE_NONE, var},
    {"std", AMPL_DTYPE_NONE, std_},
    {"norm", AMPL_DTYPE_NONE, norm},
    {"logsumexp", AMPL_DTYPE_NONE, logsumexp},
    {"amax", AMPL_DTYPE_NONE, amax},
    {"amin", AMPL_DTYPE_NONE, amin},
    {"any", AMPL_DTYPE_NONE, any},
    {"all", AMPL_DTYPE_NONE, all},
    {"count_nonzero", AMPL_DTYPE_NONE, count_nonzero},
    {NULL, 0, NULL},
};
