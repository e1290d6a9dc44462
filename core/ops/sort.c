/* sort.c: values in order: sort, argsort, topk, unique.  NaN counts as the largest value; equal values keep their
 * order. */
#include "op.h"

#include <string.h>

static ampl_status sort_infer(ampl_ctx *ctx, const ampl_args *in, ampl_meta *out) {
  const ampl_tensor *x = in->t[0];
  out[1].dtype = AMPL_I64;
  AMPL_TRY(ampl_meta_shape(ctx, &out[0], x->ndim, x->shape));
  return ampl_meta_shape(ctx, &out[1], x->ndim, x->shape);
}

/* The values' gradients go where the values came from.  `dim` is parameter d. */
static ampl_status to_origin(ampl_grad *g, int d) {
  const ampl_meta *x = &g->xm[0];
  if (g->dy[0])
    ampl_grad_set(g, 0, EV(&g->e, gather_backward, T(g->dy[0], g->y[1]), P(V_L(x->ndim, x->shape), g->p[d])));
  return AMPL_OK;
}

static ampl_status sort_back(ampl_grad *g) { return to_origin(g, 0); }

AMPL_OP(sort,
  .doc = "The values along `dim` in rising (or falling) order, and where they stood.  Equal values keep their order.",
  .args = {TENSOR_ONLY("x"), DIM("dim", -1), BOOL("descending", false), BOOL("stable", false)},
  .nout = 2, .save = AMPL_SAVE_Y(1), .infer = sort_infer, .backward = sort_back);

static ampl_status argsort_infer(ampl_ctx *ctx, const ampl_args *in, ampl_meta *out) {
  out->dtype = AMPL_I64;
  return ampl_meta_shape(ctx, out, in->t[0]->ndim, in->t[0]->shape);
}

AMPL_OP(argsort,
  .doc = "Where the values of the sorted x stood, along `dim`.",
  .args = {TENSOR_ONLY("x"), DIM("dim", -1), BOOL("descending", false), BOOL("stable", false)},
  .flags = AMPL_OP_NO_GRAD, .infer = argsort_infer);

static ampl_status topk_infer(ampl_ctx *ctx, const ampl_args *in, ampl_meta *out) {
  const ampl_tensor *x = in->t[0];
  int64_t k = in->p[0].i, d = in->p[1].i, size = x->ndim == 0 ? 1 : x->shape[d], shape[AMPL_RANK_MAX];
  if (k < 0 || k > size)
    return ampl_error(ctx, AMPL_EVALUE, "k is %lld; dim %lld of %s has %lld values", (long long)k,
                      (long long)ampl_shown(ctx, d), ampl_tensor_text(ctx, x), (long long)size);
  memcpy(shape, x->shape, sizeof shape);
  shape[d] = k;
  out[1].dtype = AMPL_I64;
  AMPL_TRY(ampl_meta_shape(ctx, &out[0], x->ndim, shape));
  return ampl_meta_shape(ctx, &out[1], x->ndim, shape);
}

static ampl_status topk_back(ampl_grad *g) { return to_origin(g, 1); }

AMPL_OP(topk,
  .doc = "The k largest (or smallest) values along `dim`, in order, and where they stand; the first of equal ones.",
  .args = {TENSOR_ONLY("x"), INT_REQ("k"), DIM("dim", -1), BOOL("largest", true), BOOL("sorted", true)},
  .nout = 2, .save = AMPL_SAVE_Y(1), .infer = topk_infer, .backward = topk_back);

static ampl_status unique_infer(ampl_ctx *ctx, const ampl_args *in, ampl_meta *out) {
  (void)ctx, (void)in;
  out[1].dtype = out[2].dtype = AMPL_I64;
  return AMPL_OK;
}

AMPL_OP(unique,
        .doc = "The different values of x, or of its slices along `dim`, in rising order; with return_inverse, also "
               "where each element of x is among them; with return_counts, how often each occurs.",
        .args = {TENSOR_ONLY("x"), BOOL("sorted", true), BOOL("return_inverse", false), BOOL("return_counts", false),
                 DIM_OPT("dim")},
        .nout = 3, .flags = AMPL_OP_DYNAMIC, .infer = unique_infer);
