/* scaler.h: the inside of a gradient scaler; the contract is in ampl.h. */
#ifndef AMPL_SCALER_H
#define AMPL_SCALER_H

#include "ctx.h"

/* Two flags on tensors carry what a scaler knows of a gradient.  Each speaks of the gradient as it is, by its version:
 * one that was written in place since, or that another has replaced, is not meant.
 *
 *   AMPL_T_UNSCALED on a gradient: it was divided already.  A parameter that two optimisers share is so divided once,
 *   also if it was clipped in between.  Backward clears the flag when it adds to the gradient, and update() when the
 *   optimiser has stepped.
 *
 *   AMPL_T_SCRATCHED on a parameter: its gradient belongs to a step that was skipped.  It stays readable; backward
 *   replaces it, and unscale drops what backward did not reach: it must not be used a second time. */
static inline bool ampl_is_scratched(const ampl_tensor *x) {
  return x->flags & AMPL_T_SCRATCHED && x->grad && x->mark == x->grad->storage->version;
}

#define AMPL_SCALER_NAME_MAX 128

/* What an iteration knows of one optimiser. */
typedef struct ampl_scaler_record {
  uint64_t      key;
  enum { AMPL_SCALER_UNSCALED, AMPL_SCALER_STEPPED } stage;     /* one that did neither has no record */
  ampl_tensor  *found, *first_bad;      /* on the device: f32 0 or 1; i32 place of the first bad gradient */
  bool          known;                  /* the host has read them: */
  int64_t       bad;                    /* that place, -1: no inf or NaN was found */
  bool          skipped;                /* its step was */
  ampl_tensor **params;                 /* [nparams], one reference each */
  int64_t       nparams;
} ampl_scaler_record;

struct ampl_scaler {
  int                 refs;
  ampl_ctx           *ctx;
  ampl_scaler_options o;
  /* On the device of the first loss; NULL before.  Then the three numbers are in `start`. */
  ampl_tensor        *scale;            /* f32 */
  ampl_tensor        *counters;         /* i32 {3}: growth tracker, hysteresis left, whether the floor held the scale */
  struct { double scale; int64_t tracker, hysteresis; } start;
  bool                loaded;           /* the state came from load_state_dict: gradients may be there already */

  uint64_t            keys;
  ampl_scaler_record *records;
  int                 nrecords, records_cap;

  int64_t             taken, skipped, calibrating;
  int64_t             bad_before;       /* iterations in a row with an overflow, up to the last update */
  bool                bad_now, taken_now;       /* in this iteration */
  bool                last_taken;
  bool                floor_told;       /* the warning was given, and the scale has not grown since */
  int64_t             skip_step, skip_parameter;
  double              skip_scale;
  char                skip_name[AMPL_SCALER_NAME_MAX];
};

#endif
