/* autocast.h: what ampl_call and the modes need of autocast. */
#ifndef AMPL_AUTOCAST_H
#define AMPL_AUTOCAST_H

#include "ctx.h"

/* Casts the operands of a call as the region says: `t` (a copy of in->t that may be written) and `p` are changed in
 * place; casts that were made are appended to `made` (room for nt) and counted.  *why: what was done, for traces. */
ampl_status ampl_autocast_apply(ampl_ctx *ctx, const ampl_op *op, ampl_tensor **t, int nt, ampl_value *p,
                                ampl_tensor **made, int *nmade, const char **why);
ampl_status ampl_autocast_check_dtype(ampl_ctx *ctx, int dtype);
/* The low dtype of the innermost region on `device`. */
int  ampl_autocast_dtype(const ampl_ctx *ctx, const ampl_device *device);
bool ampl_autocast_on(const ampl_ctx *ctx, const ampl_device *device);

void ampl_autocast_cache_clear(ampl_ctx *ctx, ampl_modes *m);
void ampl_autocast_cache_free(ampl_ctx *ctx, ampl_modes *m);

#endif
