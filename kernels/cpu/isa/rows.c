/* rows.c: see rows.h.  The compiler makes vectors of it. */
#include "simd.h"

#include "rows.h"

static void add(double *restrict sum, const float *restrict x, int64_t n) {
  for (int64_t i = 0; i < n; i++) sum[i] += (double)x[i];
}

const ampl_cpu_rows ISA(ampl_cpu_rows) = {add};
