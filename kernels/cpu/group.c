/* group.c: see group.h. */
#include "group.h"

#include "isa/rows.h"

#include <string.h>

ampl_status ampl_cpu_groups_get(ampl_ctx *ctx, const int64_t *dest, int64_t n, int64_t ndest, ampl_cpu_groups *g) {
  g->n = n, g->ndest = ndest;
  g->bytes = (size_t)(n + ndest + 1) * sizeof *g->start;
  g->start = ampl_cpu_scratch_get(ctx, g->bytes);
  if (!g->start) return ampl_error(ctx, AMPL_ENOMEM, "no memory to sort %lld positions", (long long)n);
  g->order = g->start + ndest + 1;
  memset(g->start, 0, (size_t)(ndest + 1) * sizeof *g->start);
  for (int64_t k = 0; k < n && !ampl_cpu_stop_at(ctx, k, 1); k++) g->start[dest[k] + 1]++;
  ampl_status s = ampl_cpu_poll(ctx);
  for (int64_t r = 0; s == AMPL_OK && r < ndest; r++) g->start[r + 1] += g->start[r];
  for (int64_t k = 0; s == AMPL_OK && k < n && !ampl_cpu_stop_at(ctx, k, 1); k++) g->order[g->start[dest[k]]++] = k;
  if (s == AMPL_OK) s = ampl_cpu_poll(ctx);
  if (s != AMPL_OK) {
    ampl_cpu_groups_put(ctx, g);
    return s;
  }
  memmove(g->start + 1, g->start, (size_t)ndest * sizeof *g->start);    /* every start has moved to the next one's */
  g->start[0] = 0;
  return AMPL_OK;
}

void ampl_cpu_groups_put(ampl_ctx *ctx, ampl_cpu_groups *g) { ampl_cpu_scratch_put(ctx, g->start, g->bytes); }

ampl_cpu_stream ampl_cpu_stream_1d(int64_t n, int64_t stride) {
  return (ampl_cpu_stream){.nd = 1, .n = n, .shape = {n}, .stride = {stride}};
}

/* ------------------------------------------------------------------------------------------------ one chunk ------- */

enum { CHUNK = 512 };                   /* elements of a destination summed at a time */

typedef struct adding {
  ampl_ctx *ctx;
  const ampl_cpu_adding *a;
  const ampl_cpu_groups *g;
  const ampl_cpu_rows   *rows;
  int64_t each, size;
} adding;

static void add_floats(const adding *w, const char *src, int64_t step, int64_t n, double *sum) {
  int dtype = w->a->dtype;
  if (dtype == AMPL_F64) {
    const double *x = (const double *)src;
    for (int64_t i = 0; i < n; i++) sum[i] += x[i * step];
  } else if (dtype == AMPL_F32 && (step == 1 || n == 1)) {
    w->rows->add(sum, (const float *)src, n);
  } else {
    float x[CHUNK];
    ampl_cpu_widen(AMPL_WORK_F32, x, dtype, src, step, n);
    w->rows->add(sum, x, n);
  }
}

/* n elements of destination r, `to_step` elements apart from dst on, `from_step` apart from src + from in each part. */
static void sum_floats(const adding *w, int64_t r, char *dst, int64_t to_step, int64_t from, int64_t from_step,
                       int64_t n) {
  const ampl_cpu_adding *a = w->a;
  const ampl_cpu_groups *g = w->g;
  int64_t begin = g->start[r], end = r == a->skip ? begin : g->start[r + 1];
  double sum[CHUNK], base[CHUNK], factor = a->alpha / (a->mean && end > begin ? (double)(end - begin) : 1);
  if (!a->fresh) ampl_cpu_widen(AMPL_WORK_F64, base, a->dtype, dst, to_step, n);
  if (!a->fresh && factor == 1) memcpy(sum, base, (size_t)n * sizeof *sum);
  else memset(sum, 0, (size_t)n * sizeof *sum);
  for (int64_t k = begin; k < end && !ampl_cpu_stop_at(w->ctx, (k - begin) * n, n); k++)
    add_floats(w, a->src + (from + ampl_cpu_offset(&a->source, g->order[k])) * w->size, from_step, n, sum);
  if (factor != 1)
    for (int64_t i = 0; i < n; i++) sum[i] = a->fresh ? factor * sum[i] : base[i] + factor * sum[i];
  ampl_cpu_narrow(AMPL_WORK_F64, sum, a->dtype, dst, to_step, n);
}

static void sum_integers(const adding *w, int64_t r, char *dst, int64_t to_step, int64_t from, int64_t from_step,
                         int64_t n) {
  const ampl_cpu_adding *a = w->a;
  const ampl_cpu_groups *g = w->g;
  uint64_t sum[CHUNK], x[CHUNK], factor = (uint64_t)(int64_t)a->alpha;  /* unsigned: it wraps around */
  for (int64_t i = 0; i < n; i++) sum[i] = 0;
  for (int64_t k = g->start[r]; k < g->start[r + 1]; k++) {
    if (ampl_cpu_stop_at(w->ctx, (k - g->start[r]) * n, n)) return;
    const char *src = a->src + (from + ampl_cpu_offset(&a->source, g->order[k])) * w->size;
    ampl_cpu_widen(AMPL_WORK_I64, x, a->dtype, src, from_step, n);
    for (int64_t i = 0; i < n; i++) sum[i] += factor * x[i];
  }
  if (!a->fresh) {
    ampl_cpu_widen(AMPL_WORK_I64, x, a->dtype, dst, to_step, n);
    for (int64_t i = 0; i < n; i++) sum[i] += x[i];
  }
  ampl_cpu_narrow(AMPL_WORK_I64, sum, a->dtype, dst, to_step, n);
}

/* ------------------------------------------------------------------------------------------------ all ------------- */

static void destination(const adding *w, int64_t r) {
  const ampl_cpu_adding *a = w->a;
  const ampl_cpu_stream *d = &a->part[0], *s = &a->part[1];
  int last = d->nd - 1;
  int64_t n = d->shape[last], first = ampl_cpu_offset(&a->dest, r);
  bool nothing = w->g->start[r] == w->g->start[r + 1] || r == a->skip;
  if (nothing && !a->fresh) return;
  for (int64_t pos = 0; pos < d->n; pos += n) {
    int64_t to = first + ampl_cpu_offset(d, pos), from = ampl_cpu_offset(s, pos);
    if (nothing && d->stride[last] == 1) {
      memset(a->dst + to * w->size, 0, (size_t)(n * w->size));
      continue;
    }
    for (int64_t i = 0; i < n; i += CHUNK) {
      int64_t m = n - i < CHUNK ? n - i : CHUNK;
      (ampl_dtype_is_float((ampl_dtype)a->dtype) ? sum_floats : sum_integers)(
          w, r, a->dst + (to + i * d->stride[last]) * w->size, d->stride[last], from + i * s->stride[last],
          s->stride[last], m);
    }
  }
}

static void job(void *ud, int64_t i, int thread) {
  const adding *w = ud;
  int64_t end = (i + 1) * w->each < w->g->ndest ? (i + 1) * w->each : w->g->ndest;
  (void)thread;
  for (int64_t r = i * w->each; r < end; r++) destination(w, r);
}

ampl_status ampl_cpu_add_groups(ampl_ctx *ctx, const ampl_cpu_adding *a, const ampl_cpu_groups *g) {
  adding w = {ctx, a, g, AMPL_CPU_BEST(ampl_cpu_rows), 1, (int64_t)ampl_dtype_size((ampl_dtype)a->dtype)};
  if (a->part[0].n == 0 || g->ndest == 0) return AMPL_OK;
  w.each = (g->ndest + 63) / 64;
  double work = ((double)g->n + (double)g->ndest / 8) * ((double)a->part[0].n / 4 + 8);
  return ampl_cpu_parallel(ctx, ampl_cpu_threads_for(ctx, work), (g->ndest + w.each - 1) / w.each, job, &w);
}
