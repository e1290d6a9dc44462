/* optim.c: optimiser steps over all parameters of a group at once, in one pass over memory; internal ops, called by
 * ampl.optim.
 *
 * `tensors` is a row of lists of n entries each: the parameters, their gradients, then what the record's doc names, in
 * that order; lastly, where wanted, 16-bit copies of the parameters, written in the same pass (an entry may be absent).
 * Parameters are f32, f16, bf16 (their state is f32) or f64 (their gradients and state, too); gradients of the former
 * may be f32, f16 or bf16.  Counts ("steps") are one number for each parameter, f32 or f64, as in PyTorch's state.
 *
 * `inv_scale`, when given, multiplies the gradients as they are read; they are not written.  `found_inf`, when given
 * and not 0, makes the whole step do nothing: no count rises, no version either.  Both are read on the device. */
#include "op.h"

enum { FIXED = 2 };             /* inv_scale and found_inf stand before the lists */

static ampl_status check_scalar(ampl_ctx *ctx, const char *name, const ampl_tensor *x) {
  if (!x || (x->dtype == AMPL_F32 && x->numel == 1)) return AMPL_OK;
  return ampl_error(ctx, AMPL_EARG, "%s must be one f32, not %s", name, ampl_tensor_text(ctx, x));
}

/* One entry of a list: there (unless `may_lack`) and of the parameter's shape. */
static ampl_status check_entry(ampl_ctx *ctx, const char *list, int64_t i, const ampl_tensor *x, const ampl_tensor *p,
                               bool may_lack) {
  if (!x) {
    if (may_lack) return AMPL_OK;
    return ampl_error(ctx, AMPL_EARG, "parameter %lld has no %s", (long long)ampl_shown(ctx, i), list);
  }
  if (!ampl_same_shape(x, p))
    return ampl_error(ctx, AMPL_ESHAPE, "parameter %lld is %s, its %s %s", (long long)ampl_shown(ctx, i),
                      ampl_tensor_text(ctx, p), list, ampl_tensor_text(ctx, x));
  return AMPL_OK;
}

static ampl_status check_dtype(ampl_ctx *ctx, const char *list, int64_t i, const ampl_tensor *x, bool good,
                               const char *wanted) {
  if (good) return AMPL_OK;
  return ampl_error(ctx, AMPL_EDTYPE, "%s of parameter %lld is %s; it must be %s", list, (long long)ampl_shown(ctx, i),
                    ampl_dtype_name((ampl_dtype)x->dtype), wanted);
}

static bool is_16bit(const ampl_tensor *x) { return x->dtype == AMPL_F16 || x->dtype == AMPL_BF16; }

/* Parameter i with everything that belongs to it: entry k of it is t[k * n + i]. */
static ampl_status check_parameter(ampl_ctx *ctx, ampl_tensor *const *t, int64_t n, int64_t i, int states, int counts,
                                   bool low) {
  const ampl_tensor *p = t[i];
  if (!p) return ampl_error(ctx, AMPL_EARG, "parameter %lld is missing", (long long)ampl_shown(ctx, i));
  bool wide = p->dtype == AMPL_F64;
  AMPL_TRY(check_dtype(ctx, "the dtype", i, p, ampl_is_float(p), "a float dtype"));
  t += i + n;
  AMPL_TRY(check_entry(ctx, "gradient", i, *t, p, false));
  AMPL_TRY(check_dtype(ctx, "the gradient", i, *t, ampl_is_float(*t) && ((*t)->dtype == AMPL_F64) == wide,
                       wide ? "f64, as the parameter is" : "f32, f16 or bf16"));
  for (int k = 0; k < states; k++) {
    t += n;
    AMPL_TRY(check_entry(ctx, "state", i, *t, p, false));
    AMPL_TRY(check_dtype(ctx, "the state", i, *t, (*t)->dtype == (wide ? AMPL_F64 : AMPL_F32), wide ? "f64" : "f32"));
  }
  for (int k = 0; k < counts; k++) {
    t += n;
    if (!*t || (*t)->numel != 1 || ((*t)->dtype != AMPL_F32 && (*t)->dtype != AMPL_F64))
      return ampl_error(ctx, AMPL_EARG, "the count of parameter %lld must be one f32 or f64",
                        (long long)ampl_shown(ctx, i));
  }
  if (!low) return AMPL_OK;
  t += n;
  AMPL_TRY(check_entry(ctx, "16-bit copy", i, *t, p, true));
  return *t ? check_dtype(ctx, "the 16-bit copy", i, *t, is_16bit(*t), "f16 or bf16") : AMPL_OK;
}

static ampl_status check(ampl_ctx *ctx, const ampl_args *in, int states, int counts) {
  AMPL_TRY(check_scalar(ctx, "inv_scale", in->t[0]));
  AMPL_TRY(check_scalar(ctx, "found_inf", in->t[1]));
  int64_t n = in->p[0].i, total = in->nt - FIXED, lists = 2 + states + counts;
  if (n < 0 || n > INT32_MAX) return ampl_error(ctx, AMPL_EARG, "%lld parameters", (long long)n);
  bool low = n > 0 && total == (lists + 1) * n;
  if (!low && total != lists * n)
    return ampl_error(ctx, AMPL_EARG, "%lld parameters need %lld tensors, or %lld with 16-bit copies; got %lld",
                      (long long)n, (long long)(lists * n), (long long)((lists + 1) * n), (long long)total);
  for (int64_t i = 0; i < n; i++) AMPL_TRY(check_parameter(ctx, in->t + FIXED, n, i, states, counts, low));
  return AMPL_OK;
}

#define STEP_OP(id, text, check_infer, ...)                                                                            \
  AMPL_OP(id, .doc = text, .nout = AMPL_OUT_NONE, .infer = check_infer,                                                \
          .flags = AMPL_OP_INTERNAL | AMPL_OP_HOST | AMPL_OP_MUTATES | AMPL_OP_NO_GRAD,                                \
          .args = {TENSOR_OPT("inv_scale"), TENSOR_OPT("found_inf"), TENSORS_OR_NONE("tensors"), INT_REQ("n"),         \
                   FLOAT("lr", 1e-3), FLOAT("weight_decay", 0), BOOL("maximize", 0), __VA_ARGS__})

/* p[4]: momentum */
static ampl_status infer_sgd(ampl_ctx *ctx, const ampl_args *in, ampl_meta *out) {
  (void)out;
  return check(ctx, in, in->p[4].f != 0 ? 1 : 0, 0);
}
STEP_OP(sgd_step, "SGD: p -= lr * g, with momentum. Lists: parameters, gradients, and momentum buffers where momentum "
                  "is not 0.  `first`: the buffers are new and take the gradient as it is.",
        infer_sgd, FLOAT("momentum", 0), FLOAT("dampening", 0), BOOL("nesterov", 0), BOOL("first", 0));

/* p[7]: amsgrad */
static ampl_status infer_adam(ampl_ctx *ctx, const ampl_args *in, ampl_meta *out) {
  (void)out;
  return check(ctx, in, in->p[7].i ? 3 : 2, 1);
}
STEP_OP(adam_step, "Adam, and AdamW with `decoupled`. Lists: parameters, gradients, exp_avg, exp_avg_sq, "
                   "max_exp_avg_sq with amsgrad, steps.",
        infer_adam, FLOAT("beta1", 0.9), FLOAT("beta2", 0.999), FLOAT("eps", 1e-8), BOOL("amsgrad", 0),
        BOOL("decoupled", 0));

static ampl_status infer_2_1(ampl_ctx *ctx, const ampl_args *in, ampl_meta *out) {
  (void)out;
  return check(ctx, in, 2, 1);
}
STEP_OP(adamax_step, "Adamax. Lists: parameters, gradients, exp_avg, exp_inf, steps.", infer_2_1, FLOAT("beta1", 0.9),
        FLOAT("beta2", 0.999), FLOAT("eps", 1e-8));

static ampl_status infer_2_2(ampl_ctx *ctx, const ampl_args *in, ampl_meta *out) {
  (void)out;
  return check(ctx, in, 2, 2);
}
STEP_OP(nadam_step, "NAdam. Lists: parameters, gradients, exp_avg, exp_avg_sq, steps, mu_products (1 at first).",
        infer_2_2, FLOAT("beta1", 0.9), FLOAT("beta2", 0.999), FLOAT("eps", 1e-8), FLOAT("momentum_decay", 4e-3),
        BOOL("decoupled", 0));

STEP_OP(radam_step, "RAdam. Lists: parameters, gradients, exp_avg, exp_avg_sq, steps.", infer_2_1, FLOAT("beta1", 0.9),
        FLOAT("beta2", 0.999), FLOAT("eps", 1e-8), BOOL("decoupled", 0));

/* p[6]: momentum, p[7]: centered */
static ampl_status infer_rmsprop(ampl_ctx *ctx, const ampl_args *in, ampl_meta *out) {
  (void)out;
  return check(ctx, in, 1 + (in->p[7].i ? 1 : 0) + (in->p[6].f != 0 ? 1 : 0), 1);
}
STEP_OP(rmsprop_step, "RMSprop. Lists: parameters, gradients, square_avg, grad_avg with centered, momentum buffers "
                      "where momentum is not 0, steps.",
        infer_rmsprop, FLOAT("alpha", 0.99), FLOAT("eps", 1e-8), FLOAT("momentum", 0), BOOL("centered", 0));

static ampl_status infer_1_1(ampl_ctx *ctx, const ampl_args *in, ampl_meta *out) {
  (void)out;
  return check(ctx, in, 1, 1);
}
STEP_OP(adagrad_step, "Adagrad. Lists: parameters, gradients, sums, steps.", infer_1_1, FLOAT("lr_decay", 0),
        FLOAT("eps", 1e-10));

STEP_OP(adadelta_step, "Adadelta. Lists: parameters, gradients, square_avg, acc_delta, steps.", infer_2_1,
        FLOAT("rho", 0.9), FLOAT("eps", 1e-6));

static ampl_status infer_1_0(ampl_ctx *ctx, const ampl_args *in, ampl_meta *out) {
  (void)out;
  return check(ctx, in, 1, 0);
}
STEP_OP(lion_step, "Lion. Lists: parameters, gradients, exp_avg.", infer_1_0, FLOAT("beta1", 0.9),
        FLOAT("beta2", 0.99));

STEP_OP(lamb_step, "LAMB: Adam whose step is scaled by norm(p) / norm(update), parameter by parameter. Lists: "
                   "parameters, gradients, exp_avg, exp_avg_sq, steps.",
        infer_2_1, FLOAT("beta1", 0.9), FLOAT("beta2", 0.999), FLOAT("eps", 1e-6));
