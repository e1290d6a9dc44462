/* optim.c: optimiser steps over all parameters of a group; see core/ops/optim.c for the operands, optim_rules.h for
 * what happens to an element.
 *
 * The elements are cut into jobs by shape alone; a job goes through its piece in blocks that stay in the first cache,
 * as floats or doubles, so that every dtype and layout shares one loop and the 16-bit copy is made from hot data. */
#include "optim_isa.h"
#include "stream.h"

#include <string.h>

enum {
  FIXED = 2,                    /* operands before the lists: inv_scale, found_inf */
  BLOCK = 1024,                 /* elements: five blocks of doubles fit the first cache */
  JOB = 16 * BLOCK,
  LOW = AMPL_RULE_VALUES        /* the 16-bit copy's place among the streams */
};

/* The f64 forms of the rules. */
#define AMPL_RULE_REAL double
#define AMPL_RULE_FN static inline
#define R_FMA(a, b, c) ((a) * (b) + (c))
#define R_SQRT(a) sqrt(a)
#define R_ABS(a) fabs(a)
#define R_MAX(a, b) ((a) > (b) || (a) != (a) ? (a) : (b))
#define R_SIGN(a) (double)(((a) > 0) - ((a) < 0))
#include "optim_rules.h"

#define AMPL_X(name, values)                                                                                           \
  static void name##_f64 (double *const *x, const double *c, long n) {                                                 \
    double v[values];                                                                                                  \
    for (long i = 0; i < n; i++) {                                                                                     \
      for (int k = 0; k < values; k++) v[k] = x[k][i];                                                                 \
      rule_##name(v, c);                                                                                               \
      for (int k = 0; k < values; k++)                                                                                 \
        if (k != 1) x[k][i] = v[k];                                                                                    \
    }                                                                                                                  \
  }
AMPL_RULES(AMPL_X)
#undef AMPL_X

static void (*const rules_f64[])(double *const *x, const double *c, long n) = {
#define AMPL_X(name, values) name##_f64,
  AMPL_RULES(AMPL_X)
#undef AMPL_X
};

static const int rule_values[] = {
#define AMPL_X(name, values) values,
  AMPL_RULES(AMPL_X)
#undef AMPL_X
};

/* ------------------------------------------------------------------------------------------------ a step ---------- */

/* One parameter. */
typedef struct item {
  ampl_rule rule;
  double    c[AMPL_RULE_COEFS];
  int64_t   first_job;
} item;

typedef struct step {
  ampl_ctx                 *ctx;
  const ampl_cpu_optim_isa *isa;
  const ampl_args          *in;
  int64_t                   n, jobs, elements;
  int                       states, counts;
  bool                      low;
  item                     *items;      /* n, and one more for the end */
  double                   *sums;       /* [jobs][2]: squares of the parameter, of the update; NULL where not wanted */
} step;

/* Entry `list` of parameter i: 0 the parameter, 1 the gradient, 2 ... the state, the counts, the 16-bit copy. */
static ampl_tensor *entry (const step *s, int list, int64_t i) { return s->in->t[FIXED + list * s->n + i]; }

static int64_t item_of_job (const step *s, int64_t job) {
  int64_t lo = 0, hi = s->n;    /* items[lo].first_job <= job < items[hi].first_job */
  while (hi - lo > 1) {
    int64_t mid = (lo + hi) / 2;
    if (s->items[mid].first_job <= job) lo = mid;
    else hi = mid;
  }
  return lo;
}

static double sum_of_squares (const step *s, bool wide, const void *x, int64_t n) {
  if (!wide) return s->isa->sum_of_squares(x, (long)n);
  double sum = 0;
  for (int64_t i = 0; i < n; i++) sum += ((const double *)x)[i] * ((const double *)x)[i];
  return sum;
}

/* The streams of parameter i; values that the rule only computes (LAMB's update) have none. */
static void streams_of (const step *s, int64_t i, int values, ampl_cpu_stream *out) {
  const ampl_tensor *t[LOW + 1] = {NULL};
  const ampl_tensor *p = entry(s, 0, i);
  for (int k = 0; k < values && k < 2 + s->states; k++) t[k] = entry(s, k, i);
  if (s->low) t[LOW] = entry(s, 2 + s->states + s->counts, i);
  ampl_cpu_streams(LOW + 1, t, p->ndim, p->shape, true, out);
}

static void run_job (void *ud, int64_t job, int thread) {
  const step *s = ud;
  (void)thread;
  const int64_t i = item_of_job(s, job);
  const item *it = &s->items[i];
  const int values = rule_values[it->rule];
  ampl_cpu_stream stream[LOW + 1];
  streams_of(s, i, values, stream);
  const bool wide = stream[0].dtype == AMPL_F64;
  const ampl_cpu_work w = wide ? AMPL_WORK_F64 : AMPL_WORK_F32;
  _Alignas(64) double buf[AMPL_RULE_VALUES][BLOCK];
  float c[AMPL_RULE_COEFS];
  double sums[2] = {0, 0};
  for (int k = 0; k < AMPL_RULE_COEFS; k++) c[k] = (float)it->c[k];
  int64_t pos = (job - it->first_job) * JOB, end = pos + JOB < stream[0].n ? pos + JOB : stream[0].n;
  for (int64_t len; pos < end; pos += len) {
    void *x[AMPL_RULE_VALUES];
    len = end - pos < BLOCK ? end - pos : BLOCK;
    for (int k = 0; k < values; k++)
      x[k] = stream[k].data ? (void *)ampl_cpu_load(&stream[k], w, 0, pos, len, buf[k]) : buf[k];
    if (s->sums) sums[0] += sum_of_squares(s, wide, x[0], len);
    if (wide) rules_f64[it->rule]((double *const *)x, it->c, (long)len);
    else s->isa->rule[it->rule]((float *const *)x, c, (long)len);
    if (s->sums) sums[1] += sum_of_squares(s, wide, x[AMPL_RULE_VALUES - 1], len);
    for (int k = 0; k < values; k++)
      if (k != 1 && stream[k].data) ampl_cpu_store(&stream[k], w, 0, pos, len, x[k]);
    if (stream[LOW].data && !s->sums) ampl_cpu_store(&stream[LOW], w, 0, pos, len, x[0]);
  }
  if (s->sums) memcpy(s->sums + 2 * job, sums, sizeof sums);
}

static double read_number (const ampl_tensor *x) {
  return x->dtype == AMPL_F64 ? *(const double *)x->data : (double)*(const float *)x->data;
}

static void write_number (ampl_tensor *x, double v) {
  if (x->dtype == AMPL_F64) *(double *)x->data = v;
  else *(float *)x->data = (float)v;
  x->storage->version++;
}

/* The coefficients of every parameter, with its counts moved on, and the jobs. */
static void make_items (step *s, ampl_rule_fn fn) {
  const double inv = s->in->t[0] ? read_number(s->in->t[0]) : 1;
  int64_t job = 0;
  for (int64_t i = 0; i < s->n; i++) {
    double count[2] = {0, 0};
    for (int k = 0; k < s->counts; k++) count[k] = read_number(entry(s, 2 + s->states + k, i));
    s->items[i].rule = fn(s->in->p, inv, count, s->items[i].c);
    for (int k = 0; k < s->counts; k++) write_number(entry(s, 2 + s->states + k, i), count[k]);
    s->items[i].first_job = job;
    job += (entry(s, 0, i)->numel + JOB - 1) / JOB;
  }
  s->items[s->n].first_job = job;
}

static void raise_versions (const step *s) {
  for (int64_t i = 0; i < s->n; i++) {
    for (int k = 0; k < 2 + s->states; k++)
      if (k != 1) entry(s, k, i)->storage->version++;
    ampl_tensor *low = s->low ? entry(s, 2 + s->states + s->counts, i) : NULL;
    if (low) low->storage->version++;
  }
}

/* LAMB's second pass: the norms are known now, parts added in order. */
static void use_norms (step *s) {
  const double lr = s->in->p[1].f;
  for (int64_t i = 0; i < s->n; i++) {
    item *it = &s->items[i];
    double p = 0, u = 0;
    for (int64_t job = it->first_job; job < it[1].first_job; job++) p += s->sums[2 * job], u += s->sums[2 * job + 1];
    const double ratio = p > 0 && u > 0 ? sqrt(p) / sqrt(u) : 1;
    it->c[LAMB_STEP] *= -lr * ratio;
    it->c[LAMB_DECAY] *= -lr * ratio;
    it->rule = AMPL_RULE_lamb;
  }
  s->sums = NULL;
}

static ampl_status run_step (ampl_ctx *ctx, const ampl_args *in, ampl_rule_fn fn, int states, int counts, bool norms) {
  const ampl_tensor *found = in->t[1];
  step s = {.ctx = ctx, .isa = AMPL_CPU_BEST(ampl_cpu_optim), .in = in, .n = in->p[0].i, .states = states,
            .counts = counts};
  if (s.n == 0 || (found && read_number(found) != 0)) return AMPL_OK;
  s.low = in->nt - FIXED > (2 + states + counts) * s.n;
  for (int64_t i = 0; i < s.n; i++) {
    s.elements += entry(&s, 0, i)->numel;
    s.jobs += (entry(&s, 0, i)->numel + JOB - 1) / JOB;
  }
  const size_t item_bytes = (size_t)(s.n + 1) * sizeof(item);
  const size_t sum_bytes = norms ? 2 * (size_t)s.jobs * sizeof(double) : 0;
  char *scratch = ampl_cpu_scratch_get(ctx, item_bytes + sum_bytes);
  if (!scratch)
    return ampl_error(ctx, AMPL_ENOMEM, "no memory for the plan of %lld parameters (%zu bytes)", (long long)s.n,
                      item_bytes + sum_bytes);
  s.items = (item *)scratch;
  double *sums = s.sums = norms ? (double *)(scratch + item_bytes) : NULL;
  const int threads = ampl_cpu_threads_for(ctx, 2.0 * (double)s.elements);
  make_items(&s, fn);
  ampl_status status = ampl_cpu_parallel(NULL, threads, s.jobs, run_job, &s);
  if (sums) {
    use_norms(&s);
    status = ampl_cpu_parallel(NULL, threads, s.jobs, run_job, &s);
  }
  raise_versions(&s);
  ampl_cpu_scratch_put(ctx, scratch, item_bytes + sum_bytes);
  return status;
}

/* ------------------------------------------------------------------------------------------------ the ops --------- */

#define STEP(name, states, counts, norms)                                                                              \
  static ampl_status name##_step (ampl_ctx *ctx, const ampl_args *in, ampl_tensor **out) {                             \
    (void)out;                                                                                                         \
    return run_step(ctx, in, ampl_rule_##name, states, counts, norms);                                                 \
  }
STEP(sgd, in->p[4].f != 0 ? 1 : 0, 0, false)
STEP(adam, in->p[7].i ? 3 : 2, 1, false)
STEP(adamax, 2, 1, false)
STEP(nadam, 2, 2, false)
STEP(radam, 2, 1, false)
STEP(rmsprop, 1 + (in->p[7].i ? 1 : 0) + (in->p[6].f != 0 ? 1 : 0), 1, false)
STEP(adagrad, 1, 1, false)
STEP(adadelta, 2, 1, false)
STEP(lion, 1, 0, false)
STEP(lamb, 2, 1, true)

const ampl_kernel ampl_cpu_optim_kernels[] = {
#define K(name) {#name, AMPL_DTYPE_NONE, name}
  K(sgd_step), K(adam_step), K(adamax_step), K(nadam_step), K(radam_step), K(rmsprop_step), K(adagrad_step),
  K(adadelta_step), K(lion_step), K(lamb_step), {NULL, 0, NULL}};
