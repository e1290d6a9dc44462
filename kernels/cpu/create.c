/* create.c: tensors made of numbers alone.  Values are worked out in f64 (integers exactly) and rounded once. */
#include "move.h"
#include "op.h"
#include "stream.h"

#include <string.h>

enum { BLOCK = 512, SOME = 1 << 20 };

/* Every element of y, which is fresh and without gaps, gets the one value of x. */
static ampl_status fill(ampl_ctx *ctx, ampl_tensor *y, const ampl_tensor *x) {
  uint64_t value = 0;
  if (y->numel == 0) return AMPL_OK;
  ampl_cpu_scalar(x, y->dtype, &value);
  const size_t size = ampl_dtype_size((ampl_dtype)y->dtype);
  for (int64_t at = 0, n; at < y->numel; at += n) {
    n = y->numel - at < SOME ? y->numel - at : SOME;
    ampl_cpu_fill(size, (char *)y->data + at * (int64_t)size, n, &value);
    if (n == SOME) AMPL_TRY(ampl_cpu_poll(ctx));
  }
  return AMPL_OK;
}

static ampl_status zeros(ampl_ctx *ctx, const ampl_args *in, ampl_tensor **out) {
  (void)in;
  return ampl_cpu_zero(ctx, out[0]->data, (size_t)out[0]->numel * ampl_dtype_size((ampl_dtype)out[0]->dtype));
}

static ampl_status ones(ampl_ctx *ctx, const ampl_args *in, ampl_tensor **out) {
  int64_t one = 1;
  const ampl_tensor x = {.dtype = AMPL_I64, .numel = 1, .data = &one};
  (void)in;
  return fill(ctx, out[0], &x);
}

static ampl_status empty(ampl_ctx *ctx, const ampl_args *in, ampl_tensor **out) {
  (void)ctx, (void)in, (void)out;
  return AMPL_OK;
}

/* full(size, value), full_like(x, value): the value is the last operand */
static ampl_status full(ampl_ctx *ctx, const ampl_args *in, ampl_tensor **out) {
  const ampl_tensor *value = in->t[in->nt - 1];
  if (value->numel != 1)
    return ampl_error(ctx, AMPL_ESHAPE, "fill_value must be one number, it is %s", ampl_tensor_text(ctx, value));
  return fill(ctx, out[0], value);
}

/* ------------------------------------------------------------------------------------------------ ranges ---------- */

typedef union number { double f; int64_t i; } number;

static ampl_status arange(ampl_ctx *ctx, const ampl_args *in, ampl_tensor **out) {
  ampl_tensor *y = out[0], *const *t = in->t;
  const int64_t size = (int64_t)ampl_dtype_size((ampl_dtype)y->dtype);
  bool whole = true;
  number start = {.i = 0}, step = {.i = 1};
  for (int k = 0; k < 3; k++) whole &= !t[k] || t[k]->dtype == AMPL_I64;
  const ampl_cpu_work w = whole ? AMPL_WORK_I64 : AMPL_WORK_F64;
  if (!whole) start.f = 0, step.f = 1;
  if (t[1]) ampl_cpu_widen(w, &start, t[0]->dtype, t[0]->data, 1, 1);
  if (t[2]) ampl_cpu_widen(w, &step, t[2]->dtype, t[2]->data, 1, 1);
  for (int64_t pos = 0; pos < y->numel && !ampl_cpu_stop_at(ctx, pos, BLOCK); pos += BLOCK) {
    number v[BLOCK];
    const int64_t n = y->numel - pos < BLOCK ? y->numel - pos : BLOCK;
    for (int64_t i = 0; i < n; i++) {
      if (whole) v[i].i = start.i + (pos + i) * step.i;
      else v[i].f = start.f + (double)(pos + i) * step.f;
    }
    ampl_cpu_narrow(w, v, y->dtype, (char *)y->data + pos * size, 1, n);
  }
  return ampl_cpu_poll(ctx);
}

/* Each half is counted from its own end, so that both ends are exact. */
static ampl_status linspace(ampl_ctx *ctx, const ampl_args *in, ampl_tensor **out) {
  ampl_tensor *y = out[0];
  const double start = in->p[0].f, end = in->p[1].f;
  const int64_t steps = y->numel, size = (int64_t)ampl_dtype_size((ampl_dtype)y->dtype);
  const double step = steps > 1 ? (end - start) / (double)(steps - 1) : 0;
  for (int64_t pos = 0; pos < steps && !ampl_cpu_stop_at(ctx, pos, BLOCK); pos += BLOCK) {
    double v[BLOCK];
    const int64_t n = steps - pos < BLOCK ? steps - pos : BLOCK;
    for (int64_t i = 0; i < n; i++) {
      const int64_t at = pos + i;
      v[i] = at < (steps + 1) / 2 ? start + step * (double)at : end - step * (double)(steps - 1 - at);
    }
    ampl_cpu_narrow(AMPL_WORK_F64, v, y->dtype, (char *)y->data + pos * size, 1, n);
  }
  return ampl_cpu_poll(ctx);
}

static ampl_status eye(ampl_ctx *ctx, const ampl_args *in, ampl_tensor **out) {
  ampl_tensor *y = out[0];
  const int64_t n = y->shape[0] < y->shape[1] ? y->shape[0] : y->shape[1], one = 1;
  const size_t size = ampl_dtype_size((ampl_dtype)y->dtype);
  AMPL_TRY(zeros(ctx, in, out));
  for (int64_t i = 0; i < n; i++)
    ampl_cpu_narrow(AMPL_WORK_I64, &one, y->dtype, (char *)y->data + (size_t)(i * (y->shape[1] + 1)) * size, 1, 1);
  return AMPL_OK;
}

const ampl_kernel ampl_cpu_create_kernels[] = {
  {"zeros", AMPL_DTYPE_NONE, zeros},
  {"zeros_like", AMPL_DTYPE_NONE, zeros},
  {"ones", AMPL_DTYPE_NONE, ones},
  {"ones_like", AMPL_DTYPE_NONE, ones},
  {"empty", AMPL_DTYPE_NONE, empty},
  {"empty_like", AMPL_DTYPE_NONE, empty},
  {"full", AMPL_DTYPE_NONE, full},
  {"full_like", AMPL_DTYPE_NONE, full},
  {"arange", AMPL_DTYPE_NONE, arange},
  {"linspace", AMPL_DTYPE_NONE, linspace},
  {"eye", AMPL_DTYPE_NONE, eye},
  {NULL, 0, NULL}
};
