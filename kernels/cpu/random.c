/* random.c: random tensors and dropout.  Element i, row-major, of a result belongs to element i of its draw, whatever
 * the strides; work is cut in blocks of whole groups, so threads change nothing. */
#include "isa/pointwise.h"
#include "isa/random.h"
#include "move.h"
#include "op.h"
#include "philox.h"
#include "random.h"
#include "stream.h"

#include <string.h>

enum { BLOCK = 512, CHUNK = 16 * BLOCK, SIGNIFICANT = 24 };

typedef struct draw draw;
typedef void (*draw_block)(draw *d, int64_t pos, int64_t n);

struct draw {
  uint64_t        seed, first;
  ampl_cpu_stream y, x;                 /* the output; the operand, where there is one */
  draw_block      block;
  double          scale;                /* dropout: of what stays */
  uint32_t        limit;                /* dropout: the least upper 24 bits that stay */
  int64_t         low;                  /* randint */
  uint64_t        range;
  int64_t         bad;                  /* bernoulli: the first element that is no probability, or INT64_MAX */
};

static const ampl_cpu_random *isa(void) { return AMPL_CPU_BEST(ampl_cpu_random); }
static int64_t groups(int64_t n) { return (n + AMPL_PHILOX_GROUP - 1) / AMPL_PHILOX_GROUP; }

static void job(void *ud, int64_t job, int thread) {
  draw *d = ud;
  const int64_t end = (job + 1) * CHUNK < d->y.n ? (job + 1) * CHUNK : d->y.n;
  (void)thread;
  for (int64_t pos = job * CHUNK; pos < end; pos += BLOCK) d->block(d, pos, end - pos < BLOCK ? end - pos : BLOCK);
}

/* Fills y block by block; x may be NULL.  `cost`: nanoseconds an element. */
static ampl_status run(ampl_ctx *ctx, draw *d, ampl_tensor *y, const ampl_tensor *x, double cost) {
  if (y->numel == 0) return AMPL_OK;
  ampl_cpu_stream s[2];
  ampl_cpu_streams(x ? 2 : 1, (const ampl_tensor *const[]){y, x}, y->ndim, y->shape, false, s);
  d->y = s[0];
  if (x) d->x = s[1];
  return ampl_cpu_parallel(ctx, ampl_cpu_threads_for(ctx, cost * (double)y->numel), (y->numel + CHUNK - 1) / CHUNK,
                           job, d);
}

/* Takes the draw of y from the context's stream. */
static draw take(ampl_ctx *ctx, const ampl_tensor *y, draw_block block) {
  draw d = {.block = block, .bad = INT64_MAX};
  d.first = ampl_random_take(ctx, y->numel, &d.seed);
  return d;
}

/* ------------------------------------------------------------------------------------------------ rand, randn ----- */

static void uniform_block(draw *d, int64_t pos, int64_t n) {
  const uint64_t first = d->first + (uint64_t)pos;
  uint32_t high[BLOCK], low[BLOCK];
  union { float f[BLOCK]; double d[BLOCK]; } v;
  if (d->y.dtype == AMPL_F32) {
    isa()->uniform(v.f, groups(n), d->seed, first);
    ampl_cpu_store(&d->y, AMPL_WORK_F32, 0, pos, n, v.f);
    return;
  }
  isa()->bits(high, groups(n), d->seed, first, 0);
  if (d->y.dtype == AMPL_F64) {
    isa()->bits(low, groups(n), d->seed, first, 1);
    for (int64_t i = 0; i < n; i++) v.d[i] = (double)(((uint64_t)high[i] << 32 | low[i]) >> 11) * 0x1p-53;
    ampl_cpu_store(&d->y, AMPL_WORK_F64, 0, pos, n, v.d);
    return;
  }
  const int bits = d->y.dtype == AMPL_F16 ? 11 : 8;
  const float unit = 1.0f / (float)(1 << bits);
  for (int64_t i = 0; i < n; i++) v.f[i] = (float)(high[i] >> (32 - bits)) * unit;
  ampl_cpu_store(&d->y, AMPL_WORK_F32, 0, pos, n, v.f);
}

static void normal_block(draw *d, int64_t pos, int64_t n) {
  float v[BLOCK];
  isa()->normal(v, groups(n), d->seed, d->first + (uint64_t)pos);
  ampl_cpu_store(&d->y, AMPL_WORK_F32, 0, pos, n, v);
}

static ampl_status uniform(ampl_ctx *ctx, const ampl_args *in, ampl_tensor **out) {
  draw d = take(ctx, out[0], uniform_block);
  (void)in;
  return run(ctx, &d, out[0], NULL, 1);
}

static ampl_status normal(ampl_ctx *ctx, const ampl_args *in, ampl_tensor **out) {
  draw d = take(ctx, out[0], normal_block);
  (void)in;
  return run(ctx, &d, out[0], NULL, 3);
}

/* ------------------------------------------------------------------------------------------------ integers -------- */

__extension__ typedef unsigned __int128 u128;

/* 64 random bits as an integer below range; 0: all of them */
static uint64_t below(uint64_t bits, uint64_t range) { return range ? (uint64_t)((u128)bits * range >> 64) : bits; }

static void bits64(uint64_t *out, int64_t n, uint64_t seed, uint64_t first) {
  uint32_t high[BLOCK], low[BLOCK];
  isa()->bits(high, groups(n), seed, first, 0);
  isa()->bits(low, groups(n), seed, first, 1);
  for (int64_t i = 0; i < n; i++) out[i] = (uint64_t)high[i] << 32 | low[i];
}

static void integer_block(draw *d, int64_t pos, int64_t n) {
  uint64_t v[BLOCK];
  bits64(v, n, d->seed, d->first + (uint64_t)pos);
  for (int64_t i = 0; i < n; i++) v[i] = (uint64_t)d->low + below(v[i], d->range);
  ampl_cpu_store(&d->y, AMPL_WORK_I64, 0, pos, n, v);
}

static ampl_status randint(ampl_ctx *ctx, const ampl_args *in, ampl_tensor **out) {
  draw d = take(ctx, out[0], integer_block);
  d.low = in->p[0].i;
  d.range = (uint64_t)in->p[1].i - (uint64_t)d.low;
  return run(ctx, &d, out[0], NULL, 3);
}

/* From the last place down, each is swapped with one that is not behind it. */
static ampl_status randperm(ampl_ctx *ctx, const ampl_args *in, ampl_tensor **out) {
  ampl_tensor *y = out[0];
  const int64_t n = y->numel, base = ampl_index_base(ctx);
  const size_t bytes = (size_t)n * sizeof(int64_t);
  uint64_t seed, first = ampl_random_take(ctx, n, &seed), part[BLOCK];
  (void)in;
  if (n == 0) return AMPL_OK;
  int64_t *v = ampl_cpu_scratch_get(ctx, bytes);
  if (!v) return ampl_error(ctx, AMPL_ENOMEM, "no memory for %lld positions", (long long)n);
  for (int64_t i = 0; i < n; i++) v[i] = i + base;
  for (int64_t pos = 0; pos < n && !ampl_cpu_stop_at(ctx, pos, BLOCK); pos += BLOCK) {
    const int64_t m = n - pos < BLOCK ? n - pos : BLOCK;
    bits64(part, m, seed, first + (uint64_t)pos);
    for (int64_t k = 0; k < m; k++) {
      const int64_t i = n - 1 - (pos + k), j = (int64_t)below(part[k], (uint64_t)i + 1), kept = v[i];
      v[i] = v[j];
      v[j] = kept;
    }
  }
  ampl_cpu_narrow(AMPL_WORK_I64, v, y->dtype, y->data, 1, n);
  ampl_cpu_scratch_put(ctx, v, bytes);
  return ampl_cpu_poll(ctx);
}

/* ------------------------------------------------------------------------------------------------ bernoulli ------- */

static void note_bad(draw *d, int64_t at) {
  int64_t seen = __atomic_load_n(&d->bad, __ATOMIC_RELAXED);
  while (at < seen && !__atomic_compare_exchange_n(&d->bad, &seen, at, true, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
    continue;
}

static void bernoulli_block(draw *d, int64_t pos, int64_t n) {
  double buf[BLOCK], v[BLOCK];
  uint32_t bits[BLOCK];
  const double *p = ampl_cpu_load(&d->x, AMPL_WORK_F64, 0, pos, n, buf);
  isa()->bits(bits, groups(n), d->seed, d->first + (uint64_t)pos, 0);
  for (int64_t i = 0; i < n; i++) {
    if (!(p[i] >= 0 && p[i] <= 1)) note_bad(d, pos + i);
    v[i] = (double)(bits[i] >> (32 - SIGNIFICANT)) * 0x1p-24 < p[i];
  }
  ampl_cpu_store(&d->y, AMPL_WORK_F64, 0, pos, n, v);
}

static ampl_status bernoulli(ampl_ctx *ctx, const ampl_args *in, ampl_tensor **out) {
  const ampl_tensor *x = in->t[0];
  draw d = take(ctx, out[0], bernoulli_block);
  int64_t at[AMPL_RANK_MAX], left;
  double value;
  AMPL_TRY(run(ctx, &d, out[0], x, 3));
  if ((left = d.bad) == INT64_MAX) return AMPL_OK;
  const int64_t offset = ampl_cpu_offset(&d.x, left);
  for (int k = x->ndim - 1; k >= 0; left /= x->shape[k--]) at[k] = ampl_shown(ctx, left % x->shape[k]);
  ampl_cpu_widen(AMPL_WORK_F64, &value, x->dtype, ampl_cpu_at(x, offset), 1, 1);
  return ampl_error(ctx, AMPL_EVALUE, "%g at %s is no probability; they lie between 0 and 1", value,
                    ampl_shape_text(ctx, x->ndim, at));
}

/* ------------------------------------------------------------------------------------------------ dropout --------- */

/* Multiplied by 0 or scale: NaN and infinities show where they are dropped, too. */
static void dropout_block(draw *d, int64_t pos, int64_t n) {
  const uint64_t first = d->first + (uint64_t)pos;
  float factor[BLOCK];
  if (d->y.dtype == AMPL_F64) {
    double buf[BLOCK], v[BLOCK];
    const double *x = ampl_cpu_load(&d->x, AMPL_WORK_F64, 0, pos, n, buf);
    isa()->keep(factor, groups(n), d->seed, first, d->limit, 1);
    for (int64_t i = 0; i < n; i++) v[i] = x[i] * (factor[i] * d->scale);
    ampl_cpu_store(&d->y, AMPL_WORK_F64, 0, pos, n, v);
    return;
  }
  static const ampl_value no_params[AMPL_POINTWISE_PARAMS];
  float buf[BLOCK], v[BLOCK];
  const float *in[] = {ampl_cpu_load(&d->x, AMPL_WORK_F32, 0, pos, n, buf), factor};
  isa()->keep(factor, groups(n), d->seed, first, d->limit, (float)d->scale);
  float *y = ampl_cpu_target(&d->y, AMPL_WORK_F32, 0, pos, n, v);
  AMPL_CPU_BEST(ampl_pointwise_table)->f[AMPL_PW_mul](y, in, (const int64_t[]){1, 1}, n, no_params);
  ampl_cpu_store(&d->y, AMPL_WORK_F32, 0, pos, n, y);
}

static ampl_status drop(ampl_ctx *ctx, draw *d, ampl_tensor *y, const ampl_tensor *x, double p) {
  const double limit = p * 0x1p24;
  d->limit = (uint32_t)limit + (limit > (double)(uint32_t)limit);
  d->scale = p < 1 ? 1 / (1 - p) : 0;
  return run(ctx, d, y, x, 1.5);
}

static ampl_status dropout(ampl_ctx *ctx, const ampl_args *in, ampl_tensor **out) {
  draw d = take(ctx, out[0], dropout_block);
  memcpy(out[1]->data, (uint64_t[]){d.seed, d.first}, 2 * sizeof(uint64_t));
  return drop(ctx, &d, out[0], in->t[0], in->p[0].f);
}

static ampl_status dropout_backward(ampl_ctx *ctx, const ampl_args *in, ampl_tensor **out) {
  uint64_t state[2];
  memcpy(state, in->t[1]->data, sizeof state);
  draw d = {.block = dropout_block, .seed = state[0], .first = state[1]};
  return drop(ctx, &d, out[0], in->t[0], in->p[0].f);
}

const ampl_kernel ampl_cpu_random_kernels[] = {
  {"rand", AMPL_DTYPE_NONE, uniform},
  {"rand_like", AMPL_DTYPE_NONE, uniform},
  {"randn", AMPL_DTYPE_NONE, normal},
  {"randn_like", AMPL_DTYPE_NONE, normal},
  {"randint", AMPL_DTYPE_NONE, randint},
  {"randperm", AMPL_DTYPE_NONE, randperm},
  {"bernoulli", AMPL_DTYPE_NONE, bernoulli},
  {"dropout_draw", AMPL_DTYPE_NONE, dropout},
  {"dropout_backward", AMPL_DTYPE_NONE, dropout_backward},
  {NULL, 0, NULL}
};
