/* count.c: classes and counts: one_hot, bincount, histc. */
#include "positions.h"

static ampl_status one_hot_infer(ampl_ctx *ctx, const ampl_args *in, ampl_meta *out) {
  const ampl_tensor *x = in->t[0];
  AMPL_TRY(want_positions(ctx, "x", x));
  if (in->p[0].i == 0 || in->p[0].i < -1)
    return ampl_error(ctx, AMPL_EVALUE, "num_classes is %lld; give a count, or -1 for the largest class",
                      (long long)in->p[0].i);
  if (x->ndim == AMPL_RANK_MAX)
    return ampl_error(ctx, AMPL_ESHAPE, "%s has all dimensions that a tensor can have", ampl_tensor_text(ctx, x));
  out->dtype = AMPL_I64;
  return AMPL_OK;
}

AMPL_OP(one_hot,
        .doc = "For every class in x a row of num_classes zeros with a 1 at the class; -1: as many as the largest "
               "class needs.",
        .args = {LABELS("x"), INT("num_classes", -1)}, .flags = AMPL_OP_NO_GRAD | AMPL_OP_DYNAMIC,
        .infer = one_hot_infer);

static ampl_status bincount_infer(ampl_ctx *ctx, const ampl_args *in, ampl_meta *out) {
  const ampl_tensor *x = in->t[0], *weights = in->t[1];
  if (x->ndim != 1 || ampl_is_float(x) || x->dtype == AMPL_BOOL)
    return ampl_error(ctx, x->ndim != 1 ? AMPL_ESHAPE : AMPL_EDTYPE, "x is %s; it must be a vector of integers",
                      ampl_tensor_text(ctx, x));
  if (weights && !ampl_same_shape(x, weights))
    return ampl_error(ctx, AMPL_ESHAPE, "weights are %s, x is %s: the shapes must agree",
                      ampl_tensor_text(ctx, weights), ampl_tensor_text(ctx, x));
  if (in->p[0].i < 0) return ampl_error(ctx, AMPL_EVALUE, "minlength is %lld", (long long)in->p[0].i);
  out->dtype = !weights || x->numel == 0 ? AMPL_I64 : ampl_is_float(weights) ? weights->dtype : AMPL_F64;
  return AMPL_OK;
}

AMPL_OP(bincount,
        .doc = "How often each of 1, 2, 3 ... (in C: 0, 1, 2 ...) occurs in x, or the sum of its weights, up to the "
               "largest value or minlength.",
        .args = {LABELS("x"), TENSOR_OPT("weights"), INT("minlength", 0)}, .flags = AMPL_OP_DYNAMIC,
        .infer = bincount_infer);

static ampl_status histc_infer(ampl_ctx *ctx, const ampl_args *in, ampl_meta *out) {
  const ampl_tensor *x = in->t[0];
  double min = in->p[1].f, max = in->p[2].f;
  if (!ampl_is_float(x)) return ampl_error(ctx, AMPL_EDTYPE, "x is %s; it must hold floats", ampl_tensor_text(ctx, x));
  if (in->p[0].i < 1) return ampl_error(ctx, AMPL_EVALUE, "%lld bins", (long long)in->p[0].i);
  if (!(min <= max) || min - min != 0 || max - max != 0)
    return ampl_error(ctx, AMPL_EVALUE, "bins from %g to %g", min, max);
  return ampl_meta_shape(ctx, out, 1, &in->p[0].i);
}

AMPL_OP(histc,
        .doc = "How many values of x lie in each of `bins` equal parts of min to max (0 and 0: of the values there "
               "are); values outside are not counted.",
        .args = {TENSOR_ONLY("x"), INT("bins", 100), FLOAT("min", 0), FLOAT("max", 0)}, .flags = AMPL_OP_NO_GRAD,
        .infer = histc_infer);
