/* affine.h: y = dy * a + (x - m) * b + c with constants for each channel: what batch, group and instance norm do to
 * their tensors, forward and backward, once the statistics are known. */
#ifndef AMPL_CPU_AFFINE_H
#define AMPL_CPU_AFFINE_H

#include "stream.h"

typedef struct ampl_cpu_affine {
  const ampl_tensor *x, *dy;            /* dy NULL: none, and a is not read */
  ampl_tensor       *y;
  uint32_t           dims;              /* bit d: constants do not depend on dimension d */
  ampl_cpu_work      work;              /* F32 or F64 */
  const double      *a, *m, *b, *c;     /* for each place of the other dimensions, row-major; m and c NULL: 0 */
} ampl_cpu_affine;

AMPL_CPU_CHECKED ampl_status ampl_cpu_affine_run (ampl_ctx *ctx, const ampl_cpu_affine *k);

#endif
