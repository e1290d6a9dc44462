/* create.c: tensors from nothing: zeros, ones, full, empty, arange, linspace, eye, and their _like forms. */
#include "op.h"

#include <math.h>
#include <string.h>

#define WHERE DTYPE("dtype"), DEVICE("device")
#define TENSOR_AS_IS(n) {.name = n, .kind = AMPL_ARG_TENSOR, .flags = AMPL_REQUIRED | AMPL_AS_IS, .doc = ""}
#define CREATOR AMPL_OP_CREATOR | AMPL_OP_NO_GRAD

static int otherwise(int64_t dtype, int t) { return dtype == AMPL_DTYPE_NONE ? t : (int)dtype; }

/* The dtype that a plain number stands for when none is asked: any float f32. */
static int dtype_of(const ampl_tensor *number) { return number->dtype == AMPL_F64 ? AMPL_F32 : number->dtype; }

/* The value of a plain number, which lives on the host. */
static double value_of(const ampl_tensor *number) {
  double f;
  int64_t i;
  if (number->dtype == AMPL_F64) return memcpy(&f, number->data, sizeof f), f;
  return memcpy(&i, number->data, sizeof i), (double)i;
}

static ampl_status plain_number(ampl_ctx *ctx, const char *what, const ampl_tensor *x) {
  if (!x || x->flags & AMPL_T_NUMBER) return AMPL_OK;
  return ampl_error(ctx, AMPL_EARG, "%s must be a plain number, it is %s", what, ampl_tensor_text(ctx, x));
}

/* ------------------------------------------------------------------------------------------------ by shape -------- */

static ampl_status infer_size(ampl_ctx *ctx, const ampl_args *in, ampl_meta *out) {
  out->dtype = otherwise(in->p[1].i, AMPL_F32);
  return ampl_meta_shape(ctx, out, (int)in->p[0].l.n, in->p[0].l.v);
}

AMPL_OP(zeros, .doc = "A tensor of zeros.", .args = {SHAPE_REQ("size"), WHERE}, .flags = CREATOR, .infer = infer_size);
AMPL_OP(ones, .doc = "A tensor of ones.", .args = {SHAPE_REQ("size"), WHERE}, .flags = CREATOR, .infer = infer_size);
AMPL_OP(empty, .doc = "A tensor whose values are whatever memory holds.", .args = {SHAPE_REQ("size"), WHERE},
        .flags = CREATOR, .infer = infer_size);

static ampl_status infer_full(ampl_ctx *ctx, const ampl_args *in, ampl_meta *out) {
  AMPL_TRY(plain_number(ctx, "fill_value", in->t[0]));
  out->dtype = otherwise(in->p[1].i, dtype_of(in->t[0]));
  return ampl_meta_shape(ctx, out, (int)in->p[0].l.n, in->p[0].l.v);
}

AMPL_OP(full, .doc = "A tensor of one value.", .args = {SIZES_REQ("size"), TENSOR_AS_IS("fill_value"), WHERE},
        .flags = CREATOR, .infer = infer_full);

/* ------------------------------------------------------------------------------------------------ like x ---------- */

static ampl_status infer_like(ampl_ctx *ctx, const ampl_args *in, ampl_meta *out) {
  (void)ctx;
  AMPL_TRY(ampl_meta_like(out, in->t[0]));
  out->dtype = otherwise(in->p[0].i, in->t[0]->dtype);
  return AMPL_OK;
}

#define LIKE(name, what)                                                                                               \
  AMPL_OP(name, .doc = "A tensor of " what ", in x's shape and, unless told otherwise, dtype and device.",             \
          .args = {TENSOR_ONLY("x"), WHERE}, .flags = CREATOR, .infer = infer_like)
LIKE(zeros_like, "zeros");
LIKE(ones_like, "ones");
LIKE(empty_like, "whatever memory holds");

AMPL_OP(full_like, .doc = "A tensor of one value, in x's shape and, unless told otherwise, dtype and device.",
        .args = {TENSOR_ONLY("x"), TENSOR_AS_IS("fill_value"), WHERE}, .flags = CREATOR, .infer = infer_like);

/* ------------------------------------------------------------------------------------------------ ranges ---------- */

/* arange(end), arange(start, end[, step]) */
static ampl_status infer_arange(ampl_ctx *ctx, const ampl_args *in, ampl_meta *out) {
  ampl_tensor *const *t = in->t;
  int dtype = AMPL_I64;
  for (int i = 0; i < 3; i++) {
    AMPL_TRY(plain_number(ctx, in->op->args[i].name, t[i]));
    if (t[i] && t[i]->dtype == AMPL_F64) dtype = AMPL_F32;
  }
  const double start = t[1] ? value_of(t[0]) : 0, end = value_of(t[t[1] ? 1 : 0]), step = t[2] ? value_of(t[2]) : 1;
  if (!isfinite(start) || !isfinite(end) || !isfinite(step))
    return ampl_error(ctx, AMPL_EVALUE, "start %g, end %g and step %g must be finite", start, end, step);
  if (step == 0) return ampl_error(ctx, AMPL_EVALUE, "step is 0");
  if ((step > 0 && end < start) || (step < 0 && end > start))
    return ampl_error(ctx, AMPL_EVALUE, "from %g to %g there is no way with step %g", start, end, step);
  const double n = ceil((end - start) / step);
  if (n > 0x1p62) return ampl_error(ctx, AMPL_EVALUE, "%g elements are too many", n);
  out->dtype = otherwise(in->p[0].i, dtype);
  return ampl_meta_shape(ctx, out, 1, (int64_t[]){(int64_t)n});
}

AMPL_OP(arange, .doc = "start, start + step ... below end; arange(end) starts at 0.",
        .args = {TENSOR_AS_IS("start"), TENSOR_OPT_AS_IS("end"), TENSOR_OPT_AS_IS("step"), WHERE},
        .flags = CREATOR, .infer = infer_arange);

static ampl_status infer_linspace(ampl_ctx *ctx, const ampl_args *in, ampl_meta *out) {
  const int64_t n = in->p[2].i;
  if (n < 0) return ampl_error(ctx, AMPL_EVALUE, "steps is %lld, a count is needed", (long long)n);
  out->dtype = otherwise(in->p[3].i, AMPL_F32);
  return ampl_meta_shape(ctx, out, 1, &n);
}

AMPL_OP(linspace, .doc = "`steps` numbers at equal distances from start to end, both included.",
        .args = {FLOAT_REQ("start"), FLOAT_REQ("end"), INT_REQ("steps"), WHERE}, .flags = CREATOR,
        .infer = infer_linspace);

static ampl_status infer_eye(ampl_ctx *ctx, const ampl_args *in, ampl_meta *out) {
  const int64_t n = in->p[0].i, m = in->p[1].i == AMPL_ABSENT ? n : in->p[1].i;
  if (n < 0 || m < 0)
    return ampl_error(ctx, AMPL_EVALUE, "a matrix of %lld x %lld cannot be", (long long)n, (long long)m);
  out->dtype = otherwise(in->p[2].i, AMPL_F32);
  return ampl_meta_shape(ctx, out, 2, (int64_t[]){n, m});
}

AMPL_OP(eye, .doc = "The n x m matrix with ones on its diagonal; m is n where it is not given.",
        .args = {INT_REQ("n"), INT_OPT("m"), WHERE}, .flags = CREATOR, .infer = infer_eye);
