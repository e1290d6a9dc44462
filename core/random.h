/* random.h: the context's random stream.  Philox 4x32-10 (kernels/philox.h) is counter-based: element i of a draw
 * depends on the seed and the draw's position + i alone, so every backend, any number of threads, and a recompute
 * agree. */
#ifndef AMPL_RANDOM_H
#define AMPL_RANDOM_H

#include "ampl.h"

/* Takes the next n elements of the stream: returns the position of the first, a multiple of 64, and the seed. */
uint64_t ampl_random_take(ampl_ctx *ctx, int64_t n, uint64_t *seed);

#endif
