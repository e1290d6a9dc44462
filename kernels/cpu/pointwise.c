/* pointwise.c: the kernels of unary.def and binary.def. */
#include "isa/pointwise.h"
#include "move.h"
#include "op.h"

#include <float.h>
#include <math.h>
#include <string.h>

static const ampl_value no_params[AMPL_POINTWISE_PARAMS];

/* 0.5 times an integer is no integer */
static ampl_status whole_params(ampl_ctx *ctx, const ampl_args *in, const ampl_tensor *y) {
  const ampl_arg *a = in->op->args + in->nt;
  for (int i = 0; a[i].name; i++)
    if (a[i].kind == AMPL_ARG_FLOAT && in->p[i].f != floor(in->p[i].f) && in->p[i].f == in->p[i].f)
      return ampl_error(ctx, AMPL_EARG, "%s is %g, but the tensors hold %s; give an integer, or cast them", a[i].name,
                        in->p[i].f, ampl_dtype_name((ampl_dtype)y->dtype));
  return AMPL_OK;
}

static ampl_status run(ampl_ctx *ctx, int op, int params, const ampl_args *in, ampl_tensor *y) {
  ampl_value p[AMPL_POINTWISE_PARAMS];
  if (params == 0) return ampl_cpu_pointwise(ctx, op, y, in->t, in->nt, no_params);
  if (!ampl_dtype_is_float((ampl_dtype)y->dtype)) AMPL_TRY(whole_params(ctx, in, y));
  for (int i = 0; i < AMPL_POINTWISE_PARAMS; i++) p[i] = i < params ? in->p[i] : no_params[i];
  return ampl_cpu_pointwise(ctx, op, y, in->t, in->nt, p);
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

/* Numbers that become values of the result are rounded once, to its dtype */
static void round_params(ampl_value *to, const ampl_value *p, int n, const ampl_tensor *y) {
  for (int i = 0; i < n; i++) {
    ampl_tensor number = {.dtype = AMPL_F64, .numel = 1}, rounded = {.dtype = y->dtype, .numel = 1};
    uint64_t v;
    to[i] = p[i];
    number.data = &to[i].f, rounded.data = &v;
    if (!ampl_dtype_is_float((ampl_dtype)y->dtype)) continue;
    ampl_cpu_scalar(&number, y->dtype, &v);
    ampl_cpu_scalar(&rounded, AMPL_F64, &to[i].f);
  }
}

/* What infinities become where it is not told: the largest numbers of the dtype */
static double largest(int dtype) {
  return dtype == AMPL_F16 ? 65504 : dtype == AMPL_BF16 ? 0x1.fep127 : dtype == AMPL_F32 ? FLT_MAX : DBL_MAX;
}
static ampl_status finite_numbers(ampl_ctx *ctx, const ampl_args *in, ampl_tensor **out) {
  ampl_value p[AMPL_POINTWISE_PARAMS];
  round_params(p, in->p, 3, out[0]);
  if (p[1].f != p[1].f) p[1].f = largest(out[0]->dtype);
  if (p[2].f != p[2].f) p[2].f = -largest(out[0]->dtype);
  return nan_to_num_kernel(ctx, &(ampl_args){in->op, in->t, 1, p}, out);
}

static ampl_status between_bounds(ampl_ctx *ctx, const ampl_args *in, ampl_tensor **out) {
  ampl_value p[2];
  round_params(p, in->p, 2, out[0]);
  return hardtanh_kernel(ctx, &(ampl_args){in->op, in->t, in->nt, p}, out);
}
static ampl_status between_bounds_backward(ampl_ctx *ctx, const ampl_args *in, ampl_tensor **out) {
  ampl_value p[2];
  round_params(p, in->p, 2, in->t[1]);
  return hardtanh_backward_kernel(ctx, &(ampl_args){in->op, in->t, in->nt, p}, out);
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

/* Integers have no fraction to give for x ^ -2 */
static ampl_status power(ampl_ctx *ctx, const ampl_args *in, ampl_tensor **out) {
  const ampl_tensor *b = in->t[1];
  int64_t exponent = 0;
  if (b->flags & AMPL_T_NUMBER && b->dtype == AMPL_I64) memcpy(&exponent, b->data, sizeof exponent);
  if (exponent < 0 && !ampl_dtype_is_float((ampl_dtype)out[0]->dtype))
    return ampl_error(ctx, AMPL_EVALUE, "integers to the power %lld are no integers; cast with x:to(\"f32\")",
                      (long long)exponent);
  return pow_kernel(ctx, in, out);
}

const ampl_kernel ampl_cpu_pointwise_kernels[] = {
/* These know more than their formulas. */
#define hardtanh_kernel between_bounds
#define hardtanh_backward_kernel between_bounds_backward
#define nan_to_num_kernel finite_numbers
#define clamp_kernel within_bounds
#define pow_kernel power
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
