/* positions.h: what the records with index tensors share. */
#ifndef AMPL_OPS_POSITIONS_H
#define AMPL_OPS_POSITIONS_H

#include "op.h"

#include <string.h>

static inline ampl_status want_positions(ampl_ctx *ctx, const char *name, const ampl_tensor *index) {
  if (index->dtype == AMPL_I64 || index->dtype == AMPL_I32) return AMPL_OK;
  return ampl_error(ctx, AMPL_EDTYPE, "%s is %s; positions are i64 or i32", name, ampl_tensor_text(ctx, index));
}

static inline ampl_status want_same_dtype(ampl_ctx *ctx, const char *name, const ampl_tensor *value,
                                          const ampl_tensor *x) {
  if (value->dtype == x->dtype || value->flags & AMPL_T_NUMBER) return AMPL_OK;
  return ampl_error(ctx, AMPL_EDTYPE, "%s is %s, x is %s: bring them to one dtype with x:to(dtype)", name,
                    ampl_dtype_name((ampl_dtype)value->dtype), ampl_dtype_name((ampl_dtype)x->dtype));
}

/* A tensor of rank 0 counts as a vector of one element here. */
static inline int64_t size_at(const ampl_tensor *x, int64_t d) { return x->ndim == 0 ? 1 : x->shape[d]; }

#endif
