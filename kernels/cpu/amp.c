/* amp.c: the GradScaler's work on the CPU: unscale with the test for inf and NaN, and the rule for the next scale. */
#include "optim_isa.h"
#include "stream.h"

#include <math.h>

enum { FOUND_INF, FIRST_BAD, INV_SCALE, GRADIENTS };    /* operands of amp_unscale */
enum { BLOCK = 2048, JOB = 16 * BLOCK };                /* elements */

typedef struct work {
  const ampl_cpu_optim_isa *isa;
  ampl_tensor *const       *grads;
  int64_t                   n;
  const int64_t            *first_job;  /* [n + 1] */
  const float              *inv;        /* NULL: only look */
  int                       bad;        /* the lowest place of a gradient with an inf or a NaN; n: none */
} work;

/* The test is on the value after the multiplication: an inf or a NaN stays one, and below a scale of 1 a large finite
 * value may become one. */
static bool unscale_f64 (double *x, const float *inv, int64_t n) {
  double a = 0;
  for (int64_t i = 0; i < n; i++) {
    if (inv) x[i] *= (double)*inv;
    a += x[i] * 0;
  }
  return isnan(a);
}

/* Whether what was stored in 16 bits overflowed there. */
static bool overflowed (const work *w, ampl_cpu_stream *s, int64_t pos, int64_t len, void *buf) {
  return w->isa->nonfinite(ampl_cpu_load(s, AMPL_WORK_F32, 0, pos, len, buf), (long)len);
}

static void note_bad (work *w, int place) {
  int seen = __atomic_load_n(&w->bad, __ATOMIC_RELAXED);
  while (place < seen && !__atomic_compare_exchange_n(&w->bad, &seen, place, true, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
    ;
}

static void run_job (void *ud, int64_t job, int thread) {
  work *w = ud;
  (void)thread;
  int64_t lo = 0, hi = w->n;    /* first_job[lo] <= job < first_job[hi] */
  while (hi - lo > 1) {
    int64_t mid = (lo + hi) / 2;
    if (w->first_job[mid] <= job) lo = mid;
    else hi = mid;
  }
  const ampl_tensor *g = w->grads[lo];
  const bool wide = g->dtype == AMPL_F64;
  const ampl_cpu_work type = wide ? AMPL_WORK_F64 : AMPL_WORK_F32;
  ampl_cpu_stream s;
  ampl_cpu_streams(1, &g, g->ndim, g->shape, true, &s);
  _Alignas(64) double buf[BLOCK];
  bool bad = false;
  int64_t pos = (job - w->first_job[lo]) * JOB, end = pos + JOB < s.n ? pos + JOB : s.n;
  for (int64_t len; pos < end; pos += len) {
    len = end - pos < BLOCK ? end - pos : BLOCK;
    void *x = (void *)ampl_cpu_load(&s, type, 0, pos, len, buf);
    if (wide) bad |= unscale_f64(x, w->inv, len);
    else if (w->inv) bad |= w->isa->unscale(x, *w->inv, (long)len);
    else bad |= w->isa->nonfinite(x, (long)len);
    if (!w->inv) continue;
    ampl_cpu_store(&s, type, 0, pos, len, x);
    if (*w->inv > 1 && g->dtype != AMPL_F32 && !wide) bad |= overflowed(w, &s, pos, len, buf);
  }
  if (bad) note_bad(w, (int)lo);
}

static ampl_status amp_unscale (ampl_ctx *ctx, const ampl_args *in, ampl_tensor **out) {
  (void)out;
  ampl_tensor *const *grads = in->t + GRADIENTS;
  const int64_t n = in->nt - GRADIENTS;
  const size_t bytes = (size_t)(n + 1) * sizeof(int64_t);
  int64_t *first_job = ampl_cpu_scratch_get(ctx, bytes), jobs = 0, elements = 0;
  if (!first_job) return ampl_error(ctx, AMPL_ENOMEM, "no memory for the plan of %lld gradients", (long long)n);
  for (int64_t i = 0; i < n; i++) {
    const int64_t numel = grads[i] ? grads[i]->numel : 0;
    first_job[i] = jobs;
    jobs += (numel + JOB - 1) / JOB;
    elements += numel;
  }
  first_job[n] = jobs;
  const ampl_tensor *inv = in->t[INV_SCALE];
  work w = {AMPL_CPU_BEST(ampl_cpu_optim), grads, n, first_job, inv ? inv->data : NULL, (int)n};
  if (w.inv && *w.inv == 1) w.inv = NULL;
  const ampl_status s = ampl_cpu_parallel(NULL, ampl_cpu_threads_for(ctx, (double)elements), jobs, run_job, &w);
  ampl_cpu_scratch_put(ctx, first_job, bytes);
  for (int64_t i = 0; w.inv && i < n; i++)
    if (grads[i]) grads[i]->storage->version++;
  if (w.bad < n) {
    int32_t *first_bad = in->t[FIRST_BAD]->data;
    *(float *)in->t[FOUND_INF]->data = 1;
    if (w.bad < *first_bad) *first_bad = w.bad;
  }
  in->t[FOUND_INF]->storage->version++;
  in->t[FIRST_BAD]->storage->version++;
  return s;
}

/* p: growth_factor, backoff_factor, growth_interval, hysteresis, min_scale, max_scale.  In f32, as on any device. */
static ampl_status amp_update_scale (ampl_ctx *ctx, const ampl_args *in, ampl_tensor **out) {
  (void)ctx, (void)out;
  enum { SCALE, COUNTERS, FOUND_INFS, TRACKER = 0, FORGIVEN, FLOORED };
  float *scale = in->t[SCALE]->data;
  int32_t *counter = in->t[COUNTERS]->data;
  const float growth = (float)in->p[0].f, backoff = (float)in->p[1].f;
  const float lowest = (float)in->p[4].f, highest = (float)in->p[5].f;
  const int32_t hysteresis = (int32_t)in->p[3].i;
  bool found = false;
  for (int i = FOUND_INFS; i < in->nt; i++) found |= *(const float *)in->t[i]->data != 0;
  counter[FLOORED] = 0;
  if (found) {
    counter[TRACKER] = 0;
    if (counter[FORGIVEN] > hysteresis) counter[FORGIVEN] = hysteresis;         /* it was lowered since */
    if (counter[FORGIVEN] > 0) counter[FORGIVEN]--;
    if (counter[FORGIVEN] == 0) {
      const float lower = *scale * backoff;
      counter[FLOORED] = lower < lowest;
      *scale = lower < lowest ? lowest : lower;
    }
  } else {
    counter[FORGIVEN] = hysteresis;
    if (counter[TRACKER] < INT32_MAX) counter[TRACKER]++;
    if (counter[TRACKER] >= in->p[2].i) {
      const float higher = *scale * growth;
      if (isfinite(higher)) *scale = higher > highest ? highest : higher;
      counter[TRACKER] = 0;
    }
  }
  in->t[SCALE]->storage->version++;
  in->t[COUNTERS]->storage->version++;
  return AMPL_OK;
}

const ampl_kernel ampl_cpu_amp_kernels[] = {{"amp_unscale", AMPL_DTYPE_NONE, amp_unscale},
                                            {"amp_update_scale", AMPL_DTYPE_NONE, amp_update_scale},
                                            {NULL, 0, NULL}};
