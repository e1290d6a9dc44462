/* trace.h: anomaly mode. */
#ifndef AMPL_TRACE_H
#define AMPL_TRACE_H

#include "ctx.h"

/* What ctx->anomaly points to while the mode is on. */
typedef struct ampl_anomaly {
  bool nan, inf;                /* what is looked for in gradients */
  bool scaled;                  /* a loss scaler is active: an overflow is a warning */
  ampl_where_fn where;          /* writes "train.lua:12", where the running call stands */
  void *ud;
} ampl_anomaly;

#endif
