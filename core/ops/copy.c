/* copy.c: copies and casts: to, clone, contiguous, and what copy_, fill_ and zero_ write. */
#include "op.h"

static ampl_status pass_on(ampl_grad *g) {      /* the graph brings the dtype back by itself */
  ampl_grad_set(g, 0, g->dy[0]);
  return AMPL_OK;
}

static ampl_status infer_to(ampl_ctx *ctx, const ampl_args *in, ampl_meta *out) {
  (void)ctx;
  if (in->p[0].i != AMPL_DTYPE_NONE) out->dtype = (int)in->p[0].i;
  return AMPL_OK;
}

AMPL_OP(to,
  .doc = "x in another dtype, rounded once, to the nearest (halves to even).",
  .args = {TENSOR("x"), DTYPE("dtype")},
  .flags = AMPL_OP_INTERNAL | AMPL_OP_HOST | AMPL_OP_ELEMENTWISE, .infer = infer_to, .backward = pass_on);

AMPL_OP(clone,
  .doc = "A copy of x.",
  .args = {TENSOR("x")},
  .flags = AMPL_OP_ELEMENTWISE, .backward = pass_on);

static ampl_status infer_contiguous(ampl_ctx *ctx, const ampl_args *in, ampl_meta *out) {
  (void)ctx;
  AMPL_TRY(ampl_meta_like(out, in->t[0]));
  out->layout = AMPL_LAYOUT_ROW_MAJOR;
  return AMPL_OK;
}

AMPL_OP(contiguous,
  .doc = "A copy of x that is row-major in memory.",
  .args = {TENSOR("x")},
  .flags = AMPL_OP_INTERNAL | AMPL_OP_HOST, .infer = infer_contiguous, .backward = pass_on);

/* ------------------------------------------------------------------------------------------------ writes ---------- */

/* What is overwritten has no part in the result. */
static ampl_status back_overwritten(ampl_grad *g) {
  if (g->need[0]) ampl_grad_set(g, 0, EV(&g->e, zeros_like, T(g->dy[0])));
  if (g->nx > 1 && g->need[1]) ampl_grad_set(g, 1, g->dy[0]);
  return g->e.status;
}

#define TAKES_SRC(n) {.name = n, .kind = AMPL_ARG_TENSOR, .flags = AMPL_REQUIRED | AMPL_AS_IS, .doc = ""}

AMPL_OP(copy,
  .doc = "copy_ writes src, broadcast and cast, into x.",
  .args = {TENSOR_ONLY("x"), TAKES_SRC("src")},
  .flags = AMPL_OP_ELEMENTWISE | AMPL_OP_INPLACE | AMPL_OP_METHOD_ONLY, .backward = back_overwritten);

AMPL_OP(fill,
  .doc = "fill_ writes one value into every element of x.",
  .args = {TENSOR_ONLY("x"), TAKES_SRC("value")},
  .flags = AMPL_OP_ELEMENTWISE | AMPL_OP_INPLACE | AMPL_OP_METHOD_ONLY, .backward = back_overwritten);

AMPL_OP(zero,
  .doc = "zero_ writes 0 into every element of x.",
  .args = {TENSOR_ONLY("x")},
  .flags = AMPL_OP_ELEMENTWISE | AMPL_OP_INPLACE | AMPL_OP_METHOD_ONLY, .backward = back_overwritten);
