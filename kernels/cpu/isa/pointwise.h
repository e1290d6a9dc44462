/* pointwise.h: the loops behind element-wise kernels, one for each formula of unary.def and binary.def and each working
 * type: f32 by instruction set, f64 and i64 in portable C. */
#ifndef AMPL_CPU_POINTWISE_H
#define AMPL_CPU_POINTWISE_H

#include "ampl_backend.h"
#include "cpu.h"

/* out[i] = formula(in[0][i], in[1][i] ...) for i in [0, n).  step[k] is 1, or 0 where operand k is one value: then
 * in[k] points to AMPL_POINTWISE_SPLAT copies of it.  p: AMPL_POINTWISE_PARAMS values at least.  out may be one of the
 * operands. */
typedef void (*ampl_pointwise_f32)(float *out, const float *const *in, const int64_t *step, int64_t n,
                                   const ampl_value *p);
typedef void (*ampl_pointwise_f64)(double *out, const double *const *in, const int64_t *step, int64_t n,
                                   const ampl_value *p);
typedef void (*ampl_pointwise_i64)(int64_t *out, const int64_t *const *in, const int64_t *step, int64_t n,
                                   const ampl_value *p);

enum { AMPL_POINTWISE_SPLAT = 16, AMPL_POINTWISE_PARAMS = 4, AMPL_POINTWISE_OPERANDS = 4 };

/* The formulas' numbers: AMPL_PW_exp, AMPL_PW_tanh_backward ... */
enum {
#define UNARY(name, ...) AMPL_PW_##name, AMPL_PW_##name##_backward,
#define UNARY_PLAIN(name, ...) AMPL_PW_##name,
#define UNARY_TEST(name, ...) AMPL_PW_##name,
#include "unary.def"
#define BINARY(name, ...) AMPL_PW_##name, AMPL_PW_##name##_backward,
#define BINARY_PLAIN(name, ...) AMPL_PW_##name,
#define BINARY_FLAT(name, ...) AMPL_PW_##name,
#define BINARY_TEST(name, ...) AMPL_PW_##name,
#define TERNARY(name, ...) AMPL_PW_##name, AMPL_PW_##name##_backward,
#define TERNARY_KERNEL(name, ...) AMPL_PW_##name,
#include "binary.def"
  AMPL_PW_COUNT
};

typedef struct ampl_pointwise_table { ampl_pointwise_f32 f[AMPL_PW_COUNT]; } ampl_pointwise_table;
AMPL_CPU_EACH_ISA(const ampl_pointwise_table, ampl_pointwise_table);

/* NULL where there is none: integers do not take the formula. */
extern const ampl_pointwise_f64 ampl_pointwise_in_f64[AMPL_PW_COUNT];
extern const ampl_pointwise_i64 ampl_pointwise_in_i64[AMPL_PW_COUNT];

/* y = formula `op` of nin operands of any strides and dtypes, which broadcast to y's shape.  y may be one of them.
 * p: AMPL_POINTWISE_PARAMS values. */
ampl_status ampl_cpu_pointwise(ampl_ctx *ctx, int op, ampl_tensor *y, ampl_tensor *const *x, int nin,
                               const ampl_value *p);

#endif
