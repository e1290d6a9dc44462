/* cat.c: tensors side by side: every operand is copied to its part of the result. */
#include "move.h"
#include "op.h"

static ampl_status cat(ampl_ctx *ctx, const ampl_args *in, ampl_tensor **out) {
  ampl_tensor *y = out[0];
  int64_t d = in->p[0].i, at = 0;
  for (int i = 0; i < in->nt; i++) {
    const ampl_tensor *x = in->t[i];
    if (x->ndim != y->ndim || x->numel == 0) continue;  /* an empty vector has no part */
    AMPL_TRY(ampl_cpu_move(ctx, ampl_dtype_size((ampl_dtype)y->dtype), x->ndim, x->shape,
                           ampl_cpu_at(y, at * y->strides[d]), y->strides, x->data, x->strides));
    at += x->shape[d];
  }
  return AMPL_OK;
}

static ampl_status stack(ampl_ctx *ctx, const ampl_args *in, ampl_tensor **out) {
  ampl_tensor *y = out[0];
  int64_t strides[AMPL_RANK_MAX];
  int d = (int)in->p[0].i;
  for (int k = 0; k < y->ndim - 1; k++) strides[k] = y->strides[k < d ? k : k + 1];
  for (int i = 0; i < in->nt; i++) {
    const ampl_tensor *x = in->t[i];
    AMPL_TRY(ampl_cpu_move(ctx, ampl_dtype_size((ampl_dtype)y->dtype), x->ndim, x->shape,
                           ampl_cpu_at(y, i * y->strides[d]), strides, x->data, x->strides));
  }
  return AMPL_OK;
}

const ampl_kernel ampl_cpu_cat_kernels[] = {
    {"cat", AMPL_DTYPE_NONE, cat}, {"stack", AMPL_DTYPE_NONE, stack}, {NULL, 0, NULL}};
