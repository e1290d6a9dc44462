/* trace.h: anomaly mode. */
#ifndef AMPL_TRACE_H
#define AMPL_TRACE_H

#include "ctx.h"

/* What ctx->anomaly points to while the mode is on. */
typedef struct ampl_anomaly {
  bool nan, inf;                /* what is looked for in gradients */
  bool scaled;                  /* a loss scaler is active: an overflow is a warning */
  /* Writes "train.lua:12", where the running call stands, into text. */
  void (*where)(void *ud, char *text, size_t n);
  void *ud;
} ampl_anomaly;

#endif
