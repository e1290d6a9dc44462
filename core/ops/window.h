/* window.h: the windows that convolution, pooling and im2col move over an image: their options, read and bounded once,
 * so that no sum or product of them overflows. */
#ifndef AMPL_OPS_WINDOW_H
#define AMPL_OPS_WINDOW_H

#include "op.h"

enum { AMPL_WINDOW_MAX = INT32_MAX };   /* of a kernel's side, stride, padding, dilation */

/* ESHAPE or EVALUE unless `what` is at least `least` and not too large. */
static inline ampl_status window_option(ampl_ctx *ctx, const char *what, int64_t v, int64_t least) {
  if (v >= least && v <= AMPL_WINDOW_MAX) return AMPL_OK;
  return ampl_error(ctx, AMPL_EVALUE,
                    v < least ? "%s is %lld, it must be at least %lld" : "%s is %lld, which is too large", what,
                    (long long)v, (long long)least);
}

/* Option `what` for each of `sides` sides: one number for all, a list of one for each, nothing for `otherwise`. */
static inline ampl_status window_sides(ampl_ctx *ctx, const char *what, ampl_ints l, int sides, int64_t otherwise,
                                       int64_t least, int64_t *to) {
  AMPL_TRY(ampl_check_nth(ctx, what, l, sides));
  for (int s = 0; s < sides; s++) AMPL_TRY(window_option(ctx, what, to[s] = ampl_nth(l, s, otherwise), least));
  return AMPL_OK;
}

/* How far a window reaches: from its first place to behind its last. */
static inline int64_t window_reach(int64_t kernel, int64_t dilation) { return dilation * (kernel - 1) + 1; }

#endif
