/* pointwise.c: element-wise kernels: broadcasting, strides and dtypes around the loops of isa/pointwise.c and
 * pointwise_plain.c.
 *
 * Three ways, the first that fits: row-major data of one dtype go to the loop as they lie, 16-bit ones through blocks
 * of f32; data that lie in the working type go row by row; all else is brought to the working type block by block.
 */
#include "isa/pointwise.h"
#include "move.h"
#include "op.h"
#include "stream.h"

#include <float.h>
#include <math.h>
#include <string.h>

enum { BLOCK = 512, CHUNK = 32 * BLOCK, ALL = AMPL_POINTWISE_OPERANDS + 1 };

/* A vector's worth of one value */
typedef union splat {
  float   f[AMPL_POINTWISE_SPLAT];
  double  d;
  int64_t i;
} splat;

typedef struct task {
  int             op, nin;
  ampl_cpu_work   work;
  const ampl_value *p;
  ampl_cpu_stream s[ALL];                               /* the output, then the operands */
  bool            one[ALL];                             /* operand k is a single value: splat[k] */
  splat           splat[ALL];
  bool            rows;                                 /* nothing has to be converted or gathered */
  bool            divides;                              /* operand 1 is an integer divisor */
  int             zero_divisor;                         /* set by any thread */
} task;

static const ampl_value no_params[AMPL_POINTWISE_PARAMS];

static void loop(const task *t, void *out, const void *const *in, const int64_t *step, int64_t n) {
  if (t->work == AMPL_WORK_F32)
    AMPL_CPU_BEST(ampl_pointwise_table)->f[t->op](out, (const float *const *)in, step, n, t->p);
  else if (t->work == AMPL_WORK_F64) ampl_pointwise_in_f64[t->op](out, (const double *const *)in, step, n, t->p);
  else ampl_pointwise_in_i64[t->op](out, (const int64_t *const *)in, step, n, t->p);
}

/* ------------------------------------------------------------------------------------------------ operands -------- */

static void set_splat(splat *s, ampl_cpu_work w, const ampl_tensor *x, int dtype) {
  const bool number = x->flags & AMPL_T_NUMBER;
  if (number && ampl_dtype_is_float((ampl_dtype)dtype) && dtype != x->dtype) {  /* as a value of the others' dtype */
    uint64_t rounded;
    ampl_cpu_scalar(x, dtype, &rounded);
    ampl_cpu_widen(w, s, dtype, &rounded, 1, 1);
  } else {
    ampl_cpu_widen(w, s, x->dtype, x->data, 1, 1);
  }
  for (int i = 1; w == AMPL_WORK_F32 && i < AMPL_POINTWISE_SPLAT; i++) s->f[i] = s->f[0];
}

/* The dtype that the values are compared in: of the operands, not of the bool output */
static int operand_dtype(const ampl_args *in) {
  int number = AMPL_I64;
  for (int k = 0; k < in->nt; k++) {
    if (!(in->t[k]->flags & AMPL_T_NUMBER)) return in->t[k]->dtype;
    if (in->t[k]->dtype == AMPL_F64) number = AMPL_F64;
  }
  return number;
}

/* ------------------------------------------------------------------------------------------------ jobs ------------ */

static void check_divisor(task *t, const int64_t *b, int64_t step, int64_t n) {
  for (int64_t i = 0; i < n; i++)
    if (b[i * step] == 0) {
      __atomic_store_n(&t->zero_divisor, 1, __ATOMIC_RELAXED);
      return;
    }
}

/* Elements from pos to end, in runs of the innermost dimension */
static void do_rows(task *t, int64_t pos, int64_t end) {
  const int last = t->s[0].nd - 1;
  const int64_t row = t->s[0].shape[last], size = (int64_t)ampl_cpu_work_size(t->work);
  splat spread[ALL];
  while (pos < end) {
    int64_t n = row - pos % row, step[AMPL_POINTWISE_OPERANDS];
    const void *in[AMPL_POINTWISE_OPERANDS];
    if (n > end - pos) n = end - pos;
    for (int k = 1; k <= t->nin; k++) {
      const ampl_cpu_stream *s = &t->s[k];
      step[k - 1] = !t->one[k] && s->stride[last] != 0;
      in[k - 1] = t->one[k] ? (const void *)&t->splat[k] : s->data + ampl_cpu_offset(s, pos) * size;
      if (!t->one[k] && s->stride[last] == 0 && t->work == AMPL_WORK_F32) {
        for (int i = 0; i < AMPL_POINTWISE_SPLAT; i++) spread[k].f[i] = *(const float *)in[k - 1];
        in[k - 1] = spread[k].f;
      }
    }
    if (t->divides) check_divisor(t, in[1], step[1], n);
    loop(t, t->s[0].data + ampl_cpu_offset(&t->s[0], pos) * size, in, step, n);
    pos += n;
  }
}

static void do_blocks(task *t, int64_t pos, int64_t end) {
  union { float f[BLOCK]; double d[BLOCK]; int64_t i[BLOCK]; } buf[ALL];
  for (; pos < end; pos += BLOCK) {
    const int64_t n = end - pos < BLOCK ? end - pos : BLOCK;
    int64_t step[AMPL_POINTWISE_OPERANDS];
    const void *in[AMPL_POINTWISE_OPERANDS];
    for (int k = 1; k <= t->nin; k++) {
      step[k - 1] = !t->one[k];
      in[k - 1] = t->one[k] ? (const void *)&t->splat[k] : ampl_cpu_load(&t->s[k], t->work, 0, pos, n, &buf[k]);
    }
    if (t->divides) check_divisor(t, in[1], step[1], n);
    void *out = ampl_cpu_target(&t->s[0], t->work, 0, pos, n, &buf[0]);
    loop(t, out, in, step, n);
    ampl_cpu_store(&t->s[0], t->work, 0, pos, n, out);
  }
}

static void job(void *ud, int64_t job, int thread) {
  task *t = ud;
  const int64_t pos = job * CHUNK, end = pos + CHUNK < t->s[0].n ? pos + CHUNK : t->s[0].n;
  (void)thread;
  if (t->rows) do_rows(t, pos, end);
  else do_blocks(t, pos, end);
}

/* ------------------------------------------------------------------------------------------------ running --------- */

/* Row-major operands of one dtype, f32 or 16 bits, cut in chunks */
typedef struct flat {
  ampl_pointwise_f32 f;
  char             *out;
  const char       *in[AMPL_POINTWISE_OPERANDS];
  int64_t           step[AMPL_POINTWISE_OPERANDS], n;
  int               nin, dtype, out_dtype;
  const ampl_value *p;
} flat;

static void flat_f32(const flat *t, int64_t pos, int64_t n) {
  const float *in[AMPL_POINTWISE_OPERANDS];
  for (int k = 0; k < t->nin; k++) in[k] = (const float *)t->in[k] + pos * t->step[k];
  t->f((float *)t->out + pos, in, t->step, n, t->p);
}

static void flat_blocks(const flat *t, int64_t pos, int64_t end) {
  const int64_t size = (int64_t)ampl_dtype_size((ampl_dtype)t->dtype);
  const int64_t out_size = (int64_t)ampl_dtype_size((ampl_dtype)t->out_dtype);
  const float *in[AMPL_POINTWISE_OPERANDS];
  float buf[ALL][BLOCK];
  for (; pos < end; pos += BLOCK) {
    const int64_t n = end - pos < BLOCK ? end - pos : BLOCK;
    for (int k = 0; k < t->nin; k++) {
      const char *x = t->in[k] + pos * t->step[k] * size;
      in[k] = (const float *)x;
      if (t->step[k] && t->dtype != AMPL_F32) {
        ampl_cpu_widen(AMPL_WORK_F32, buf[k], t->dtype, x, 1, n);
        in[k] = buf[k];
      }
    }
    t->f(buf[ALL - 1], in, t->step, n, t->p);
    ampl_cpu_narrow(AMPL_WORK_F32, buf[ALL - 1], t->out_dtype, t->out + pos * out_size, 1, n);
  }
}

static void flat_job(void *ud, int64_t job, int thread) {
  const flat *t = ud;
  const int64_t pos = job * CHUNK, n = t->n - pos < CHUNK ? t->n - pos : CHUNK;
  (void)thread;
  if (t->out_dtype == AMPL_F32 && t->dtype == AMPL_F32) flat_f32(t, pos, n);
  else flat_blocks(t, pos, pos + n);
}

/* Whether all operands are row-major f32, f16 or bf16 of the output's size, or single values; then it is done. */
static bool run_flat(ampl_ctx *ctx, int op, ampl_tensor *y, ampl_tensor *const *x, int nin, const ampl_value *p) {
  flat t = {.out = y->data, .n = y->numel, .nin = nin, .p = p, .dtype = -1, .out_dtype = y->dtype};
  splat one[AMPL_POINTWISE_OPERANDS];
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
    set_splat(&one[k], AMPL_WORK_F32, x[k], y->dtype == AMPL_BOOL ? t.dtype : x[k]->dtype);
    t.in[k] = (const char *)one[k].f;
  }
  t.f = AMPL_CPU_BEST(ampl_pointwise_table)->f[op];
  if (t.n <= CHUNK) flat_job(&t, 0, 0);
  else ampl_cpu_parallel(ampl_cpu_threads_for(ctx, 0.5 * (double)t.n), (t.n + CHUNK - 1) / CHUNK, flat_job, &t);
  return true;
}

static ampl_status run_streams(ampl_ctx *ctx, int op, const ampl_args *in, ampl_tensor *y, ampl_tensor *const *x,
                               int nin, const ampl_value *p) {
  const int dtype = y->dtype == AMPL_BOOL ? operand_dtype(in) : y->dtype;
  task t = {.op = op, .nin = nin, .work = ampl_cpu_work_of(dtype), .p = p};
  const ampl_tensor *all[ALL] = {y};
  if (t.work == AMPL_WORK_I64 && !ampl_pointwise_in_i64[op])
    return ampl_error(ctx, AMPL_EDTYPE, "is not defined for %s; cast with x:to(\"f32\")",
                      ampl_dtype_name((ampl_dtype)dtype));
  memcpy(all + 1, x, (size_t)nin * sizeof *x);
  ampl_cpu_streams(1 + nin, all, y->ndim, y->shape, true, t.s);
  const int last = t.s[0].nd - 1;
  t.rows = true;
  for (int k = 0; k <= nin; k++) {
    const int native = t.work == AMPL_WORK_F32 ? AMPL_F32 : t.work == AMPL_WORK_F64 ? AMPL_F64 : AMPL_I64;
    t.one[k] = k > 0 && all[k]->numel == 1;
    if (t.one[k]) set_splat(&t.splat[k], t.work, all[k], y->dtype == AMPL_BOOL ? dtype : all[k]->dtype);
    else t.rows &= t.s[k].dtype == native && (t.s[k].stride[last] == 1 || (k > 0 && t.s[k].stride[last] == 0));
  }
  t.divides = t.work == AMPL_WORK_I64 && (op == AMPL_PW_div || op == AMPL_PW_floor_div || op == AMPL_PW_remainder);
  ampl_cpu_parallel(ampl_cpu_threads_for(ctx, (double)y->numel), (y->numel + CHUNK - 1) / CHUNK, job, &t);
  return t.zero_divisor ? ampl_error(ctx, AMPL_EVALUE, "integer division by zero") : AMPL_OK;
}

static ampl_status run_operands(ampl_ctx *ctx, int op, const ampl_args *in, ampl_tensor *y, ampl_tensor *const *x,
                                int nin, const ampl_value *p) {
  if (y->numel == 0) return AMPL_OK;
  if (y->flags & AMPL_T_CONTIGUOUS && run_flat(ctx, op, y, x, nin, p)) return AMPL_OK;
  return run_streams(ctx, op, in, y, x, nin, p);
}

static ampl_status run(ampl_ctx *ctx, int op, int params, const ampl_args *in, ampl_tensor *y) {
  ampl_value p[AMPL_POINTWISE_PARAMS];
  if (params == 0) return run_operands(ctx, op, in, y, in->t, in->nt, no_params);
  for (int i = 0; i < AMPL_POINTWISE_PARAMS; i++) p[i] = i < params ? in->p[i] : no_params[i];
  return run_operands(ctx, op, in, y, in->t, in->nt, p);
}

static ampl_status refuse_bool(ampl_ctx *ctx, const ampl_tensor *y) {
  if (y->dtype != AMPL_BOOL) return AMPL_OK;
  return ampl_error(ctx, AMPL_EDTYPE, "is not defined for bool; use the logical ops, or cast with x:to(dtype)");
}

/* ------------------------------------------------------------------------------------------------ kernels --------- */

#define NO_PARAMS
#define PARAMS(...) __VA_ARGS__
#define COUNT(params) (int)(sizeof((const ampl_arg[]){{0}, params}) / sizeof(ampl_arg)) - 1

/* Which kinds of op take bool */
#define CHECK_REAL
#define CHECK_HIDDEN
#define CHECK_ANY
#define CHECK_PRODUCT
#define CHECK_NUMERIC AMPL_TRY(refuse_bool(ctx, out[0]));
#define CHECK_QUOTIENT AMPL_TRY(refuse_bool(ctx, out[0]));

#define KERNEL(name, kind, params)                                                                                     \
  static ampl_status name##_kernel(ampl_ctx *ctx, const ampl_args *in, ampl_tensor **out) {                            \
    CHECK_##kind return run(ctx, AMPL_PW_##name, params, in, out[0]);                                                  \
  }
#define UNARY(name, kind, save, F, D, cast, params, doc)                                                               \
  KERNEL(name, kind, COUNT(PARAMS(params)))                                                                            \
  KERNEL(name##_backward, REAL, COUNT(PARAMS(params)))
#define UNARY_PLAIN(name, kind, save, F, D, cast, params, doc) KERNEL(name, kind, COUNT(PARAMS(params)))
#define UNARY_TEST(name, F, doc) KERNEL(name, ANY, 0)
#include "unary.def"
#define BINARY(name, kind, save, F, DA, DB, cast, params, doc)                                                         \
  KERNEL(name, kind, COUNT(PARAMS(params)))                                                                            \
  KERNEL(name##_backward, REAL, 1 + COUNT(PARAMS(params)))
#define BINARY_PLAIN(name, kind, save, F, DA, DB, cast, params, doc) KERNEL(name, kind, COUNT(PARAMS(params)))
#define BINARY_FLAT(name, kind, F, cast, params, doc) KERNEL(name, kind, COUNT(PARAMS(params)))
#define BINARY_TEST(name, F, doc) KERNEL(name, ANY, 0)
#define TERNARY(name, kind, save, F, DA, DB, DC, cast, a, b, c, params, doc)                                           \
  KERNEL(name, kind, COUNT(PARAMS(params)))                                                                            \
  KERNEL(name##_backward, REAL, 1 + COUNT(PARAMS(params)))
#define TERNARY_KERNEL(name, F) KERNEL(name, ANY, 0)
#include "binary.def"


/* What infinities become where it is not told: the largest numbers of the dtype */
static double largest(int dtype) {
  return dtype == AMPL_F16 ? 65504 : dtype == AMPL_BF16 ? 0x1.fep127 : dtype == AMPL_F32 ? FLT_MAX : DBL_MAX;
}
static ampl_status finite_numbers(ampl_ctx *ctx, const ampl_args *in, ampl_tensor **out) {
  ampl_value p[AMPL_POINTWISE_PARAMS] = {in->p[0], in->p[1], in->p[2]};
  if (p[1].f != p[1].f) p[1].f = largest(out[0]->dtype);
  if (p[2].f != p[2].f) p[2].f = -largest(out[0]->dtype);
  return nan_to_num_kernel(ctx, &(ampl_args){in->op, in->t, 1, p}, out);
}

/* A bound that is not there lets everything pass */
static ampl_status within_bounds(ampl_ctx *ctx, const ampl_args *in, ampl_tensor **out) {
  const bool whole = !ampl_dtype_is_float((ampl_dtype)out[0]->dtype);
  union { double f; int64_t i; } low = {.f = -INFINITY}, high = {.f = INFINITY};
  if (whole) low.i = INT64_MIN, high.i = INT64_MAX;
  ampl_tensor bound = {.dtype = whole ? AMPL_I64 : AMPL_F64, .flags = AMPL_T_NUMBER | AMPL_T_CONTIGUOUS, .numel = 1};
  ampl_tensor min = bound, max = bound;
  min.data = &low, max.data = &high;
  ampl_tensor *x[] = {in->t[0], in->t[1] ? in->t[1] : &min, in->t[2] ? in->t[2] : &max};
  AMPL_TRY(refuse_bool(ctx, out[0]));
  return clamp_kernel(ctx, &(ampl_args){in->op, x, 3, NULL}, out);
}

const ampl_kernel ampl_cpu_pointwise_kernels[] = {
/* Two know more than their formulas. */
#define nan_to_num_kernel finite_numbers
#define clamp_kernel within_bounds
#define ENTRY(name) {#name, AMPL_DTYPE_NONE, name##_kernel},
#define UNARY(name, ...) ENTRY(name) ENTRY(name##_backward)
#define UNARY_PLAIN(name, ...) ENTRY(name)
#define UNARY_TEST(name, ...) ENTRY(name)
#include "unary.def"
#define BINARY(name, ...) ENTRY(name) ENTRY(name##_backward)
#define BINARY_PLAIN(name, ...) ENTRY(name)
#define BINARY_FLAT(name, ...) ENTRY(name)
#define BINARY_TEST(name, ...) ENTRY(name)
#define TERNARY(name, ...) ENTRY(name) ENTRY(name##_backward)
#define TERNARY_KERNEL(name, ...) ENTRY(name)
#include "binary.def"
  {NULL, 0, NULL}
};
