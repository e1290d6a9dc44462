/* amp.c: what the GradScaler (core/scaler.c) does to its numbers, on the device; internal ops. */
#include "op.h"

enum { FOUND_INF, FIRST_BAD, INV_SCALE, GRADIENTS };    /* operands of amp_unscale */
enum { SCALE, COUNTERS, FOUND_INFS };                   /* operands of amp_update_scale */

static ampl_status check_number(ampl_ctx *ctx, const char *name, const ampl_tensor *x, ampl_dtype t, int64_t n) {
  if (x->dtype == t && x->numel == n && (x->flags & AMPL_T_CONTIGUOUS)) return AMPL_OK;
  return ampl_error(ctx, AMPL_EARG, "%s must be %lld %s without gaps, not %s", name, (long long)n, ampl_dtype_name(t),
                    ampl_tensor_text(ctx, x));
}

static ampl_status infer_unscale(ampl_ctx *ctx, const ampl_args *in, ampl_meta *out) {
  (void)out;
  AMPL_TRY(check_number(ctx, "found_inf", in->t[FOUND_INF], AMPL_F32, 1));
  AMPL_TRY(check_number(ctx, "first_bad", in->t[FIRST_BAD], AMPL_I32, 1));
  if (in->t[INV_SCALE]) AMPL_TRY(check_number(ctx, "inv_scale", in->t[INV_SCALE], AMPL_F32, 1));
  for (int i = GRADIENTS; i < in->nt; i++) {
    const ampl_tensor *g = in->t[i];
    if (g && !ampl_is_float(g))
      return ampl_error(ctx, AMPL_EDTYPE, "gradient %lld is %s; gradients are floats",
                        (long long)ampl_shown(ctx, i - GRADIENTS), ampl_tensor_text(ctx, g));
  }
  return AMPL_OK;
}

AMPL_OP(amp_unscale,
  .doc = "Multiplies gradients by inv_scale, in place (absent: only looks at them). The first that holds an inf or a "
         "NaN then sets found_inf to 1 and lowers first_bad to its place in the list; entries may be absent.",
  .args = {TENSOR_ONLY("found_inf"), TENSOR_ONLY("first_bad"), TENSOR_OPT("inv_scale"), TENSORS_OR_NONE("gradients")},
  .nout = AMPL_OUT_NONE, .flags = AMPL_OP_INTERNAL | AMPL_OP_MUTATES | AMPL_OP_NO_GRAD, .infer = infer_unscale);

static ampl_status infer_update(ampl_ctx *ctx, const ampl_args *in, ampl_meta *out) {
  (void)out;
  AMPL_TRY(check_number(ctx, "scale", in->t[SCALE], AMPL_F32, 1));
  AMPL_TRY(check_number(ctx, "counters", in->t[COUNTERS], AMPL_I32, 3));
  for (int i = FOUND_INFS; i < in->nt; i++) AMPL_TRY(check_number(ctx, "found_inf", in->t[i], AMPL_F32, 1));
  return AMPL_OK;
}

AMPL_OP(amp_update_scale,
  .doc = "The scale after an iteration: backed off when one of found_infs is not 0, grown after growth_interval "
         "iterations without. counters: the growth tracker, the overflows that hysteresis still forgives, and whether "
         "min_scale held the scale up this time.",
  .args = {TENSOR_ONLY("scale"), TENSOR_ONLY("counters"), TENSORS("found_infs"), FLOAT_REQ("growth_factor"),
           FLOAT_REQ("backoff_factor"), INT_REQ("growth_interval"), INT_REQ("hysteresis"), FLOAT_REQ("min_scale"),
           FLOAT_REQ("max_scale")},
  .nout = AMPL_OUT_NONE, .flags = AMPL_OP_INTERNAL | AMPL_OP_MUTATES | AMPL_OP_NO_GRAD, .infer = infer_update);
