/* scaler.h: the inside of a gradient scaler; the contract is in ampl.h. */
#ifndef AMPL_SCALER_H
#define AMPL_SCALER_H

#include "ctx.h"

#define AMPL_SCALER_NAME_MAX 128

/* What an iteration knows of one optimiser. */
typedef struct ampl_scaler_record {
  uint64_t      key;
  enum { AMPL_SCALER_UNSCALED, AMPL_SCALER_STEPPED } stage;     /* one that did neither has no record */
  ampl_tensor  *found, *first_bad;      /* on the device: f32 0 or 1; i32 place of the first bad gradient */
  bool          known;                  /* the host has read them: */
  int64_t       bad;                    /* that place, -1: no inf or NaN was found */
  ampl_tensor **skipped;                /* parameters whose step was skipped, one reference each */
  int64_t       nskipped;
} ampl_scaler_record;

struct ampl_scaler {
  int                 refs;
  ampl_ctx           *ctx;
  ampl_scaler_options o;
  /* On the device of the first loss; NULL before.  Then the three numbers are in `start`. */
  ampl_tensor        *scale;            /* f32 */
  ampl_tensor        *counters;         /* i32 {3}: growth tracker, hysteresis left, whether the floor held the scale */
  struct { double scale; int64_t tracker, hysteresis; } start;

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
