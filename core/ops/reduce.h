/* reduce.h: what the records of reductions, norms and losses share. */
#ifndef AMPL_OPS_REDUCE_H
#define AMPL_OPS_REDUCE_H

#include "op.h"

/* A result t of a reduction of something of shape x over dims (n = 0: all), with the reduced dimensions kept as size 1,
 * and spread over all of x's shape: views both. */
ampl_tensor *ampl_eval_keepdim (ampl_eval *e, ampl_tensor *t, const ampl_meta *x, ampl_ints dims, bool keepdim);
ampl_tensor *ampl_eval_spread (ampl_eval *e, ampl_tensor *t, const ampl_meta *x, ampl_ints dims, bool keepdim);
/* The number of values that a reduction over dims puts into each result. */
int64_t ampl_reduced_count (const ampl_meta *x, ampl_ints dims);
/* A dimension parameter that may be absent, as a list. */
static inline ampl_ints ampl_one_dim (const int64_t *dim) { return (ampl_ints){dim, *dim != AMPL_ABSENT}; }

/* 16-bit tensors are brought to f32, so that formulas of several ops round once, at the end. */
ampl_tensor *ampl_eval_wide (ampl_eval *e, ampl_tensor *x);
ampl_tensor *ampl_eval_to (ampl_eval *e, ampl_tensor *x, int dtype);

/* The gradient of y = xhat * w + b, xhat = (x - mean) / sqrt(var + eps) over `dims` of x seen in a shape of nd sizes
 * (not `centered`: x / sqrt(mean of x^2 + eps)), in ops.  w, which may be NULL, broadcasts with x.  *dx, and *dw = dy
 * * xhat in x's shape. */
void ampl_eval_norm_back (ampl_eval *e, ampl_tensor *dy, ampl_tensor *x, ampl_tensor *w, int nd, const int64_t *shape,
                          ampl_ints dims, bool centered, double eps, ampl_tensor **dx, ampl_tensor **dw);

ampl_status ampl_need_float (ampl_ctx *ctx, const char *what, const ampl_tensor *x);

#endif
