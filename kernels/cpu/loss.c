/* loss.c: element by element losses: the formula of loss.def and the sum, in one pass over the operands. */
#include "isa/pointwise.h"
#include "op.h"
#include "reduce.h"

#include <math.h>
#include <string.h>

enum { NONE, MEAN, SUM, BATCHMEAN };
enum { BLOCK = 1024, CHUNK = 16 * BLOCK, OPERANDS = 3, WEIGHT = OPERANDS, OUT, ALL };

/* A value for each lane, where an operand is the same for all elements */
typedef union same {
  float  f[AMPL_POINTWISE_SPLAT];
  double d[AMPL_POINTWISE_SPLAT];
} same;

typedef struct task {
  int             op, operands;
  ampl_cpu_work   work;
  ampl_value      p[AMPL_POINTWISE_PARAMS];
  ampl_cpu_stream s[ALL];       /* operands, weight, output; data NULL: not there */
  same            one;          /* the third operand where it is not there: 1 */
  bool            probabilities;        /* x must lie in [0, 1] */
  double         *parts;        /* the sum of each chunk; NULL: no reduction */
  int64_t         bad;          /* the first element that does not */
} task;

static void loop (const task *t, int op, void *out, const void *const *in, const int64_t *step, int64_t n) {
  if (t->work == AMPL_WORK_F32)
    AMPL_CPU_BEST(ampl_pointwise_table)->f[op](out, (const float *const *)in, step, n, t->p);
  else
    ampl_pointwise_in_f64[op](out, (const double *const *)in, step, n, t->p);
}

/* NaN passes: it is for whoever looks for non-finite losses to find */
static void check_probabilities (task *t, const void *x, int64_t pos, int64_t n) {
  int64_t i = 0;
  if (t->work == AMPL_WORK_F32)
    for (const float *v = x; i < n && !(v[i] < 0 || v[i] > 1);) i++;
  else
    for (const double *v = x; i < n && !(v[i] < 0 || v[i] > 1);) i++;
  if (i == n) return;
  int64_t old = __atomic_load_n(&t->bad, __ATOMIC_RELAXED);
  while (pos + i < old &&
         !__atomic_compare_exchange_n(&t->bad, &old, pos + i, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
  }
}

static void block (task *t, int64_t pos, int64_t n, ampl_cpu_part *part) {
  double buf[ALL][BLOCK];
  const void *in[OPERANDS];
  int64_t step[OPERANDS];
  for (int k = 0; k < t->operands; k++) {
    step[k] = t->s[k].data != NULL;
    in[k] = step[k] ? ampl_cpu_load(&t->s[k], t->work, 0, pos, n, buf[k]) : &t->one;
  }
  if (t->probabilities) check_probabilities(t, in[0], pos, n);
  void *out = t->parts ? buf[OUT] : ampl_cpu_target(&t->s[OUT], t->work, 0, pos, n, buf[OUT]);
  loop(t, t->op, out, in, step, n);
  if (t->s[WEIGHT].data) {
    const void *both[2] = {out, ampl_cpu_load(&t->s[WEIGHT], t->work, 0, pos, n, buf[WEIGHT])};
    loop(t, AMPL_PW_mul, out, both, (const int64_t[]){1, 1}, n);
  }
  if (t->parts) ampl_cpu_fold_row(AMPL_FOLD_SUM, t->work, 0, out, n, part);
  else ampl_cpu_store(&t->s[OUT], t->work, 0, pos, n, out);
}

static void job (void *ud, int64_t job, int thread) {
  task *t = ud;
  double sum = 0;
  (void)thread;
  for (int64_t pos = job * CHUNK, end = pos + CHUNK < t->s[0].n ? pos + CHUNK : t->s[0].n; pos < end; pos += BLOCK) {
    ampl_cpu_part part = {{0}, {0}};
    block(t, pos, end - pos < BLOCK ? end - pos : BLOCK, &part);
    sum += part.a.f;
  }
  if (t->parts) t->parts[job] = sum;
}

static ampl_status improbable (ampl_ctx *ctx, const task *t) {
  double v;
  const double *there = ampl_cpu_load(&t->s[0], AMPL_WORK_F64, 0, t->bad, 1, &v);
  return ampl_error(ctx, AMPL_EVALUE,
                    "x has %g as element %lld (counted row by row); it takes probabilities, from 0 to 1: "
                    "apply sigmoid, or use binary_cross_entropy_with_logits",
                    *there, (long long)ampl_shown(ctx, t->bad));
}

/* Operands x, target, perhaps a third one; `weight` may be NULL */
static ampl_status run(ampl_ctx *ctx, task *t, ampl_tensor *const *operands, const ampl_tensor *weight,
                       int64_t reduction, ampl_tensor *out) {
  const ampl_tensor *x = operands[0];
  const ampl_tensor *all[ALL] = {x, operands[1], t->operands == 3 ? operands[2] : NULL, weight,
                                 reduction == NONE ? out : NULL};
  t->work = ampl_cpu_work_of(out->dtype);
  for (int i = 0; i < AMPL_POINTWISE_SPLAT; i++)
    if (t->work == AMPL_WORK_F32) t->one.f[i] = 1;
    else t->one.d[i] = 1;
  ampl_meta both = {.ndim = 0};
  for (int k = 0; k < t->operands && operands[k]; k++)
    AMPL_TRY(ampl_meta_broadcast(ctx, &both, operands[k]->ndim, operands[k]->shape));
  /* positions count row by row where they are reported */
  ampl_cpu_streams(ALL, all, both.ndim, both.shape, !t->probabilities, t->s);
  t->bad = INT64_MAX;
  int64_t n = t->s[0].n, jobs = (n + CHUNK - 1) / CHUNK;
  size_t bytes = (size_t)jobs * sizeof *t->parts;
  if (reduction != NONE && !(t->parts = ampl_cpu_scratch_get(ctx, bytes)))
    return ampl_error(ctx, AMPL_ENOMEM, "no memory for %zu bytes of partial sums", bytes);
  const ampl_status s = ampl_cpu_parallel(ctx, ampl_cpu_threads_for(ctx, 1.0 * (double)n), jobs, job, t);
  if (t->parts) {
    double sum = 0;
    for (int64_t i = 0; s == AMPL_OK && i < jobs; i++) sum += t->parts[i];
    ampl_cpu_scratch_put(ctx, t->parts, bytes);
    if (reduction == MEAN) sum /= (double)n;
    if (reduction == BATCHMEAN && x->ndim) sum /= (double)x->shape[0];
    ampl_cpu_narrow(AMPL_WORK_F64, &sum, out->dtype, out->data, 1, 1);
  }
  return s == AMPL_OK && t->bad < INT64_MAX ? improbable(ctx, t) : s;
}

/* A loss whose reduction is parameter `at`, the formula's parameters being the others, in their order */
static ampl_status plain(ampl_ctx *ctx, const ampl_args *in, ampl_tensor *out, int op, int operands, int at,
                         int params) {
  task t = {.op = op, .operands = operands};
  for (int k = 0, n = 0; k <= params; k++)
    if (k != at) t.p[n++] = in->p[k];
  return run(ctx, &t, in->t, NULL, in->p[at].i, out);
}

#define LOSS(name, formula, operands, at, params)                                                                      \
  static ampl_status name (ampl_ctx *ctx, const ampl_args *in, ampl_tensor **out) {                                    \
    return plain(ctx, in, out[0], AMPL_PW_##formula, operands, at, params);                                            \
  }
LOSS(mse_loss, mse_pair, 2, 0, 0)
LOSS(l1_loss, l1_pair, 2, 0, 0)
LOSS(smooth_l1_loss, smooth_l1_pair, 2, 0, 1)
LOSS(huber_loss, huber_pair, 2, 0, 1)
LOSS(kl_div, kl_pair, 2, 0, 1)
LOSS(soft_margin_loss, soft_margin_pair, 2, 0, 0)
LOSS(hinge_embedding_loss, hinge_pair, 2, 1, 1)
LOSS(poisson_nll_loss, poisson_pair, 2, 3, 3)
LOSS(margin_ranking_loss, ranking_pair, 3, 1, 1)
LOSS(gaussian_nll, gaussian_pair, 3, 2, 2)

static ampl_status binary_cross_entropy (ampl_ctx *ctx, const ampl_args *in, ampl_tensor **out) {
  task t = {.op = AMPL_PW_bce_pair, .operands = 2, .probabilities = true};
  return run(ctx, &t, in->t, in->t[2], in->p[0].i, out[0]);
}

static ampl_status with_logits (ampl_ctx *ctx, const ampl_args *in, ampl_tensor **out) {
  task t = {.op = AMPL_PW_bce_logits_pair, .operands = 3};
  ampl_tensor *const operands[3] = {in->t[0], in->t[1], in->t[3]};
  return run(ctx, &t, operands, in->t[2], in->p[0].i, out[0]);
}

const ampl_kernel ampl_cpu_loss_kernels[] = {
    {"mse_loss", AMPL_DTYPE_NONE, mse_loss},
    {"l1_loss", AMPL_DTYPE_NONE, l1_loss},
    {"smooth_l1_loss", AMPL_DTYPE_NONE, smooth_l1_loss},
    {"huber_loss", AMPL_DTYPE_NONE, huber_loss},
    {"kl_div", AMPL_DTYPE_NONE, kl_div},
    {"soft_margin_loss", AMPL_DTYPE_NONE, soft_margin_loss},
    {"hinge_embedding_loss", AMPL_DTYPE_NONE, hinge_embedding_loss},
    {"poisson_nll_loss", AMPL_DTYPE_NONE, poisson_nll_loss},
    {"margin_ranking_loss", AMPL_DTYPE_NONE, margin_ranking_loss},
    {"gaussian_nll", AMPL_DTYPE_NONE, gaussian_nll},
    {"binary_cross_entropy", AMPL_DTYPE_NONE, binary_cross_entropy},
    {"binary_cross_entropy_with_logits", AMPL_DTYPE_NONE, with_logits},
    {NULL, 0, NULL},
};
