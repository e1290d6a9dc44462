/* pointwise_run.c: broadcasting, strides and dtypes around the loops of isa/pointwise.c and pointwise_plain.c.
 *
 * Row-major data of one dtype go to the loop as they lie, 16-bit ones through blocks of f32 (`flat`).  Else the index
 * space is walked in the order of the output's memory (`plan`), in runs along its innermost dimension.  Operands that
 * are broadcast there are splats, those in another dtype are brought to the working type run by run.  Three things
 * would be slow that way and are avoided:
 *   - an operand that runs crosswise, as in x + x:t(): a slab of it is first copied to scratch memory, tile by tile;
 *   - a short row that is repeated, as a bias of ten: as many copies as fit a block are laid side by side once;
 *   - other short rows: they are gathered to blocks. */
#include "isa/pointwise.h"
#include "move.h"
#include "op.h"
#include "stream.h"

#include <string.h>

enum { BLOCK = 512, CHUNK = 32 * BLOCK, SHORT_ROW = 32, OPERANDS = AMPL_POINTWISE_OPERANDS, ALL = OPERANDS + 1 };
enum { SLAB_ROWS = 16, SLAB_MOST = 1 << 20 };

/* A vector's worth of one value; a block of values */
typedef union splat { float f[AMPL_POINTWISE_SPLAT]; double d; int64_t i; } splat;
typedef union block { float f[BLOCK]; double d[BLOCK]; int64_t i[BLOCK]; } block;

static void spread(splat *s, ampl_cpu_work w, int dtype, const void *value) {
  ampl_cpu_widen(w, s, dtype, value, 1, 1);
  for (int i = 1; w == AMPL_WORK_F32 && i < AMPL_POINTWISE_SPLAT; i++) s->f[i] = s->f[0];
}

/* The one value of x.  A number, or a scalar of a wider float, that is compared or chosen counts as a value of the
 * other operands' `dtype`, which rounds it once; one that is computed with keeps its digits (`dtype`: the working
 * type's). */
static void spread_one(splat *s, ampl_cpu_work w, const ampl_tensor *x, int dtype) {
  uint64_t rounded;
  if (x->dtype == dtype || !ampl_dtype_is_float((ampl_dtype)dtype)) {
    spread(s, w, x->dtype, x->data);
    return;
  }
  ampl_cpu_scalar(x, dtype, &rounded);
  spread(s, w, dtype, &rounded);
}

/* Whether results are values of the operands, or tell how they compare */
static bool chooses(int op, const ampl_tensor *y) {
  return y->dtype == AMPL_BOOL || op == AMPL_PW_where || op == AMPL_PW_masked_fill || op == AMPL_PW_clamp ||
         op == AMPL_PW_minimum || op == AMPL_PW_maximum;
}

/* ------------------------------------------------------------------------------------------------ flat ------------ */

typedef struct flat {
  ampl_pointwise_f32 f;
  char             *out;
  const char       *in[OPERANDS];
  int64_t           step[OPERANDS], n;
  int               nin, dtype, out_dtype;
  const ampl_value *p;
} flat;

static void flat_f32(const flat *t, int64_t pos, int64_t n) {
  const float *in[OPERANDS];
  for (int k = 0; k < t->nin; k++) in[k] = (const float *)t->in[k] + pos * t->step[k];
  t->f((float *)t->out + pos, in, t->step, n, t->p);
}

static void flat_blocks(const flat *t, int64_t pos, int64_t end) {
  const int64_t size = (int64_t)ampl_dtype_size((ampl_dtype)t->dtype);
  const int64_t out_size = (int64_t)ampl_dtype_size((ampl_dtype)t->out_dtype);
  const float *in[OPERANDS];
  float buf[ALL][BLOCK];
  for (; pos < end; pos += BLOCK) {
    const int64_t n = end - pos < BLOCK ? end - pos : BLOCK;
    for (int k = 0; k < t->nin; k++) {
      const char *x = t->in[k] + pos * t->step[k] * size;
      in[k] = (const float *)(const void *)x;
      if (t->step[k] && t->dtype != AMPL_F32) {
        ampl_cpu_widen(AMPL_WORK_F32, buf[k], t->dtype, x, 1, n);
        in[k] = buf[k];
      }
    }
    t->f(buf[OPERANDS], in, t->step, n, t->p);
    ampl_cpu_narrow(AMPL_WORK_F32, buf[OPERANDS], t->out_dtype, t->out + pos * out_size, 1, n);
  }
}

static void flat_job(void *ud, int64_t job, int thread) {
  const flat *t = ud;
  const int64_t pos = job * CHUNK, n = t->n - pos < CHUNK ? t->n - pos : CHUNK;
  (void)thread;
  if (t->out_dtype == AMPL_F32 && t->dtype == AMPL_F32) flat_f32(t, pos, n);
  else flat_blocks(t, pos, pos + n);
}

/* Whether all operands are row-major f32, f16 or bf16 of the output's size, or single values; then it is done, and `s`
 * says how. */
static bool run_flat(ampl_ctx *ctx, int op, ampl_tensor *y, ampl_tensor *const *x, int nin, const ampl_value *p,
                     ampl_status *s) {
  flat t = {.out = y->data, .n = y->numel, .nin = nin, .p = p, .dtype = -1, .out_dtype = y->dtype};
  splat one[OPERANDS];
  for (int k = 0; k < nin; k++) {
    t.step[k] = x[k]->numel == y->numel && !(x[k]->flags & AMPL_T_NUMBER);
    if (!t.step[k]) {
      if (x[k]->numel != 1) return false;
      continue;
    }
    if (!(x[k]->flags & AMPL_T_CONTIGUOUS) || (t.dtype >= 0 && x[k]->dtype != t.dtype)) return false;
    t.dtype = x[k]->dtype;
    t.in[k] = x[k]->data;
  }
  if (t.dtype != AMPL_F32 && t.dtype != AMPL_F16 && t.dtype != AMPL_BF16) return false;
  if (y->dtype != t.dtype && y->dtype != AMPL_BOOL) return false;
  for (int k = 0; k < nin; k++) {
    if (t.step[k]) continue;
    spread_one(&one[k], AMPL_WORK_F32, x[k], chooses(op, y) ? t.dtype : AMPL_F32);
    t.in[k] = (const char *)one[k].f;
  }
  t.f = AMPL_CPU_BEST(ampl_pointwise_table)->f[op];
  if (t.n <= CHUNK) flat_job(&t, 0, 0);
  else
    *s = ampl_cpu_parallel(ctx, ampl_cpu_threads_for(ctx, 0.5 * (double)t.n), (t.n + CHUNK - 1) / CHUNK, flat_job, &t);
  return true;
}

/* ------------------------------------------------------------------------------------------------ plan ------------ */

/* Where element pos of the walk is in operand k: at s[k].data + first[k] + the stream's offset of pos */
typedef struct place {
  ampl_cpu_stream s[ALL];                       /* the output, then the operands */
  int64_t         first[ALL];
} place;

typedef struct plan {
  int               op, nin;
  ampl_cpu_work     work;
  const ampl_value *p;
  place             at;
  bool              one[ALL];                   /* a single value: splat[k] */
  splat             splat[ALL];
  int64_t           job;                        /* elements a job, the last ones less */
  bool              gather;                     /* short rows: blocks instead of runs */
  int64_t           period;                     /* of repeated rows; 0: none */
  bool              periodic[ALL];
  block            *repeated;                   /* [ALL] */
  int64_t           most;                       /* elements a run */
  int               slab_dim;                   /* -1: none */
  int64_t           slab_rows, slab_inner;
  bool              crosswise[ALL];
  char             *scratch;                    /* of each thread */
  size_t            scratch_bytes;
  bool              divides;                    /* operand 1 is an integer divisor */
  int               zero_divisor;               /* set by any thread */
} plan;

static int native(ampl_cpu_work w) { return w == AMPL_WORK_F32 ? AMPL_F32 : w == AMPL_WORK_F64 ? AMPL_F64 : AMPL_I64; }
static int64_t inner_stride(const ampl_cpu_stream *s) { return s->stride[s->nd - 1]; }

static void check_divisor(plan *t, const int64_t *b, int64_t step, int64_t n) {
  for (int64_t i = 0; i < n; i++)
    if (b[i * step] == 0) {
      __atomic_store_n(&t->zero_divisor, 1, __ATOMIC_RELAXED);
      return;
    }
}

static void loop(plan *t, void *out, const void *const *in, const int64_t *step, int64_t n) {
  if (t->divides) check_divisor(t, in[1], step[1], n);
  if (t->work == AMPL_WORK_F32)
    AMPL_CPU_BEST(ampl_pointwise_table)->f[t->op](out, (const float *const *)in, step, n, t->p);
  else if (t->work == AMPL_WORK_F64) ampl_pointwise_in_f64[t->op](out, (const double *const *)in, step, n, t->p);
  else ampl_pointwise_in_i64[t->op](out, (const int64_t *const *)in, step, n, t->p);
}

/* Whether do_runs copies operand k, or the output (0), by way of a block, which then bounds a run */
static bool goes_through_block(const plan *t, int k) {
  const ampl_cpu_stream *s = &t->at.s[k];
  const int64_t stride = t->crosswise[k] ? 1 : inner_stride(s);
  if (t->one[k] || (k > 0 && stride == 0)) return false;
  return stride != 1 || s->dtype != native(t->work);
}

/* n values of operand k from pos on, all in one row */
static const void *operand(const plan *t, const place *at, int k, int64_t pos, int64_t n, block *buf, splat *one,
                           int64_t *step) {
  const ampl_cpu_stream *s = &at->s[k];
  const int64_t stride = inner_stride(s), offset = at->first[k] + (t->one[k] ? 0 : ampl_cpu_offset(s, pos));
  const char *x = s->data + offset * (int64_t)ampl_dtype_size((ampl_dtype)s->dtype);
  *step = 1;
  if (t->periodic[k]) return &t->repeated[k];
  if (t->one[k] || stride == 0) {
    *step = 0;
    if (t->one[k]) return &t->splat[k];
    spread(one, t->work, s->dtype, x);
    return one;
  }
  if (stride == 1 && s->dtype == native(t->work)) return x;
  ampl_cpu_widen(t->work, buf, s->dtype, x, stride, n);
  return buf;
}

static void do_runs(plan *t, const place *at, int64_t pos, int64_t end) {
  const ampl_cpu_stream *y = &at->s[0];
  const int64_t row = y->shape[y->nd - 1], size = (int64_t)ampl_dtype_size((ampl_dtype)y->dtype);
  const bool direct = y->dtype == native(t->work) && inner_stride(y) == 1;
  const void *in[OPERANDS];
  int64_t step[OPERANDS];
  block buf[ALL];
  splat one[ALL];
  while (pos < end) {
    int64_t n = row - pos % row;
    if (n > end - pos) n = end - pos;
    if (n > t->most) n = t->most;
    for (int k = 1; k <= t->nin; k++) in[k - 1] = operand(t, at, k, pos, n, &buf[k], &one[k], &step[k - 1]);
    char *out = y->data + (at->first[0] + ampl_cpu_offset(y, pos)) * size;
    loop(t, direct ? (void *)out : &buf[0], in, step, n);
    if (!direct) ampl_cpu_narrow(t->work, &buf[0], y->dtype, out, inner_stride(y), n);
    pos += n;
  }
}

static void do_blocks(plan *t, const place *at, int64_t pos, int64_t end) {
  const void *in[OPERANDS];
  int64_t step[OPERANDS];
  block buf[ALL];
  for (; pos < end; pos += BLOCK) {
    const int64_t n = end - pos < BLOCK ? end - pos : BLOCK;
    for (int k = 1; k <= t->nin; k++) {
      step[k - 1] = !t->one[k];
      in[k - 1] = &t->splat[k];
      if (!t->one[k]) in[k - 1] = ampl_cpu_load(&at->s[k], t->work, at->first[k], pos, n, &buf[k]);
    }
    void *out = ampl_cpu_target(&at->s[0], t->work, at->first[0], pos, n, &buf[0]);
    loop(t, out, in, step, n);
    ampl_cpu_store(&at->s[0], t->work, at->first[0], pos, n, out);
  }
}

/* ------------------------------------------------------------------------------------------------ slabs ----------- */

/* Brings elements pos to end of the operands that lie crosswise into order, and returns where everything is now. */
static place take_slab(plan *t, int64_t pos, int64_t end, char *scratch) {
  place at = t->at;
  for (int k = 1; k <= t->nin; k++) {
    ampl_cpu_stream *s = &at.s[k];
    if (!t->crosswise[k]) continue;
    const size_t size = ampl_dtype_size((ampl_dtype)s->dtype);
    const int d = t->slab_dim, nd = s->nd - d;
    int64_t shape[AMPL_RANK_MAX], strides[AMPL_RANK_MAX], step = 1;
    const char *from = s->data + ampl_cpu_offset(s, pos) * (int64_t)size;
    for (int i = nd - 1; i >= 0; i--) {
      shape[i] = i ? s->shape[d + i] : (end - pos) / t->slab_inner;
      strides[i] = step;
      step *= shape[i];
    }
    const ampl_status moved = ampl_cpu_move(NULL, size, nd, shape, scratch, strides, from, s->stride + d);
    (void)moved;                        /* without a context nothing ends it */
    s->data = scratch, s->nd = 1, s->shape[0] = s->n, s->stride[0] = 1;
    at.first[k] = -pos;
    scratch += (size_t)(t->slab_rows * t->slab_inner) * size;
  }
  return at;
}

/* Jobs of a slab end with its dimension: `job` numbers slabs within it, then the outer dimensions. */
static void slab_range(const plan *t, int64_t job, int64_t *pos, int64_t *end) {
  const int64_t rows = t->at.s[0].shape[t->slab_dim], slabs = (rows + t->slab_rows - 1) / t->slab_rows;
  const int64_t outer = job / slabs, row = job % slabs * t->slab_rows;
  const int64_t n = rows - row < t->slab_rows ? rows - row : t->slab_rows;
  *pos = (outer * rows + row) * t->slab_inner;
  *end = *pos + n * t->slab_inner;
}

static int64_t slab_jobs(const plan *t) {
  const int64_t rows = t->at.s[0].shape[t->slab_dim];
  return t->at.s[0].n / (rows * t->slab_inner) * ((rows + t->slab_rows - 1) / t->slab_rows);
}

/* Slabs for operands that have their neighbours along another dimension than the output, where that is worth while. */
static void plan_slabs(ampl_ctx *ctx, plan *t, int threads) {
  const ampl_cpu_stream *s = t->at.s;
  size_t bytes = 0;
  t->slab_dim = -1;
  for (int k = 1; k <= t->nin; k++)
    for (int d = 0; d < s[k].nd - 1 && !t->one[k] && inner_stride(&s[k]) > 1; d++)
      if (s[k].stride[d] == 1 && s[k].shape[d] >= SLAB_ROWS && t->slab_dim < 0) t->slab_dim = d;
  if (t->slab_dim < 0) return;
  t->slab_inner = 1;
  for (int d = t->slab_dim + 1; d < s[0].nd; d++) t->slab_inner *= s[0].shape[d];
  t->slab_rows = 4 * CHUNK / t->slab_inner > SLAB_ROWS ? 4 * CHUNK / t->slab_inner : SLAB_ROWS;
  if (t->slab_rows > s[0].shape[t->slab_dim]) t->slab_rows = s[0].shape[t->slab_dim];
  for (int k = 1; k <= t->nin; k++) {
    t->crosswise[k] = !t->one[k] && inner_stride(&s[k]) > 1;
    if (t->crosswise[k]) bytes += (size_t)(t->slab_rows * t->slab_inner) * ampl_dtype_size((ampl_dtype)s[k].dtype);
  }
  t->scratch_bytes = (bytes + 63) / 64 * 64;
  if (t->slab_rows * t->slab_inner <= SLAB_MOST)
    t->scratch = ampl_cpu_scratch_get(ctx, t->scratch_bytes * (size_t)threads);
  if (!t->scratch) t->slab_dim = -1;    /* without, it is slower */
}

/* ------------------------------------------------------------------------------------------------ short rows ------ */

/* Repeated rows of up to a quarter block: where the others run on from row to row, so can all. */
static bool plan_period(plan *t) {
  ampl_cpu_stream *s = t->at.s;
  const int64_t row = s[0].shape[s[0].nd - 1];
  if (s[0].nd != 2 || row > BLOCK / 4) return false;
  for (int k = 0; k <= t->nin; k++) {
    if (t->one[k]) continue;
    if (inner_stride(&s[k]) != 1 || (s[k].stride[0] != row && (k == 0 || s[k].stride[0] != 0))) return false;
  }
  t->most = t->period = BLOCK / row * row;
  for (int k = 0; k <= t->nin; k++) {
    t->periodic[k] = !t->one[k] && s[k].stride[0] == 0;
    if (t->periodic[k]) ampl_cpu_load(&s[k], t->work, 0, 0, t->period < s[k].n ? t->period : s[k].n, &t->repeated[k]);
  }
  for (int k = 0; k <= t->nin; k++) s[k].nd = 1, s[k].shape[0] = s[k].n, s[k].stride[0] = 1;
  return true;
}

/* ------------------------------------------------------------------------------------------------ running --------- */

static void job(void *ud, int64_t job, int thread) {
  plan *t = ud;
  int64_t pos = job * t->job, end = pos + t->job < t->at.s[0].n ? pos + t->job : t->at.s[0].n;
  if (t->slab_dim >= 0) {
    slab_range(t, job, &pos, &end);
    const place at = take_slab(t, pos, end, t->scratch + (size_t)thread * t->scratch_bytes);
    do_runs(t, &at, pos, end);
  } else if (t->gather) {
    do_blocks(t, &t->at, pos, end);
  } else {
    do_runs(t, &t->at, pos, end);
  }
}

/* What is compared or computed: for a bool result, the dtype of the operands */
static int common_dtype(const ampl_tensor *y, ampl_tensor *const *x, int nin) {
  int number = AMPL_I64;
  for (int k = 0; k < nin && y->dtype == AMPL_BOOL; k++) {
    if (!(x[k]->flags & AMPL_T_NUMBER)) return x[k]->dtype;
    if (x[k]->dtype == AMPL_F64) number = AMPL_F64;
  }
  return y->dtype == AMPL_BOOL ? number : y->dtype;
}

static ampl_status run_plan(ampl_ctx *ctx, int op, ampl_tensor *y, ampl_tensor *const *x, int nin,
                            const ampl_value *p) {
  const int dtype = common_dtype(y, x, nin), threads = ampl_cpu_threads_for(ctx, (double)y->numel);
  plan t = {.op = op, .nin = nin, .work = ampl_cpu_work_of(dtype), .p = p, .slab_dim = -1};
  const ampl_tensor *all[ALL] = {y};
  block repeated[ALL];
  t.repeated = repeated;
  if (t.work == AMPL_WORK_I64 && !ampl_pointwise_in_i64[op])
    return ampl_error(ctx, AMPL_EDTYPE, "is not defined for %s; cast with x:to(\"f32\")",
                      ampl_dtype_name((ampl_dtype)dtype));
  memcpy(all + 1, x, (size_t)nin * sizeof *x);
  ampl_cpu_streams(1 + nin, all, y->ndim, y->shape, true, t.at.s);
  for (int k = 1; k <= nin; k++) {
    t.one[k] = all[k]->numel == 1;
    if (t.one[k]) spread_one(&t.splat[k], t.work, all[k], chooses(op, y) ? dtype : native(t.work));
  }
  t.divides = t.work == AMPL_WORK_I64 && (op == AMPL_PW_div || op == AMPL_PW_floor_div || op == AMPL_PW_remainder);
  t.job = CHUNK;
  if (plan_period(&t)) {
    t.job = CHUNK / t.period * t.period;
  } else {
    if (y->numel > CHUNK) plan_slabs(ctx, &t, threads);
    t.gather = t.slab_dim < 0 && t.at.s[0].shape[t.at.s[0].nd - 1] < SHORT_ROW;
    t.most = CHUNK;
    for (int k = 0; k <= nin; k++)
      if (goes_through_block(&t, k)) t.most = BLOCK;
  }
  const int64_t jobs = t.slab_dim >= 0 ? slab_jobs(&t) : (y->numel + t.job - 1) / t.job;
  const ampl_status s = ampl_cpu_parallel(ctx, threads, jobs, job, &t);
  if (t.scratch) ampl_cpu_scratch_put(ctx, t.scratch, t.scratch_bytes * (size_t)threads);
  return t.zero_divisor ? ampl_error(ctx, AMPL_EVALUE, "integer division by zero") : s;
}

/* Whether writing y may change elements of x that are still to be read. */
static bool in_the_way(const ampl_tensor *y, const ampl_tensor *x) {
  if (x->storage != y->storage || x->flags & AMPL_T_NUMBER) return false;
  if (x->data != y->data || x->dtype != y->dtype || x->ndim != y->ndim) return true;
  for (int d = 0; d < y->ndim; d++)
    if (x->shape[d] != y->shape[d] || (x->shape[d] != 1 && x->strides[d] != y->strides[d])) return true;
  return false;
}

/* With a copy of operand k, which lies in the output's memory */
static ampl_status run_aside(ampl_ctx *ctx, int op, ampl_tensor *y, ampl_tensor *const *x, int nin, const ampl_value *p,
                             int k) {
  const size_t bytes = (size_t)x[k]->numel * ampl_dtype_size((ampl_dtype)x[k]->dtype);
  ampl_tensor copy = *x[k], *all[OPERANDS];
  int64_t step = 1;
  copy.storage = NULL;
  copy.flags |= AMPL_T_CONTIGUOUS;
  copy.data = ampl_cpu_scratch_get(ctx, bytes);
  if (!copy.data) return ampl_error(ctx, AMPL_ENOMEM, "no memory for a copy of %s", ampl_tensor_text(ctx, x[k]));
  for (int d = copy.ndim - 1; d >= 0; step *= copy.shape[d--]) copy.strides[d] = step;
  ampl_status s = ampl_cpu_copy_all(ctx, &copy, x[k]);
  memcpy(all, x, (size_t)nin * sizeof *x);
  all[k] = &copy;
  if (s == AMPL_OK) s = ampl_cpu_pointwise(ctx, op, y, all, nin, p);
  ampl_cpu_scratch_put(ctx, copy.data, bytes);
  return s;
}

ampl_status ampl_cpu_pointwise(ampl_ctx *ctx, int op, ampl_tensor *y, ampl_tensor *const *x, int nin,
                               const ampl_value *p) {
  if (y->numel == 0) return AMPL_OK;
  for (int k = 0; k < nin; k++)
    if (in_the_way(y, x[k]) && x[k]->numel > 0) return run_aside(ctx, op, y, x, nin, p, k);
  ampl_status s = AMPL_OK;
  if (y->flags & AMPL_T_CONTIGUOUS && run_flat(ctx, op, y, x, nin, p, &s)) return s;
  return run_plan(ctx, op, y, x, nin, p);
}
