/*
** blocking.h: small arithmetic that the matrix and convolution drivers share.
*/
#ifndef AMPL_CPU_BLOCKING_H
#define AMPL_CPU_BLOCKING_H

#include "cpu.h"
#include "isa/tile.h"

static inline long least (long a, long b) { return a < b ? a : b; }
static inline long most (long a, long b) { return a > b ? a : b; }
static inline long ceil_div (long a, long b) { return (a + b - 1) / b; }
static inline long round_up (long a, long b) { return ceil_div(a, b) * b; }

/* f32, f16 and bf16 only */
static inline long element_size (int dtype) { return dtype == AMPL_F32 ? 4 : 2; }
static inline bool is_small_float (int dtype) { return dtype >= 0 && dtype < AMPL_CPU_TYPES; }

/* Vectors that n columns need */
static inline long vectors_for (const ampl_cpu_matrix *K, long n) { return ceil_div(n, K->vw); }

/* m rows in tiles of nearly equal height, so that none is much lower than the others: 128 rows in
   tiles of at most 14 are 8 of 13 and 2 of 12, rather than 9 of 14 and one of 2. */
typedef struct tiling {
  long n, height, higher; /* n tiles, the first `higher` of them one row more than height */
} tiling;
static inline tiling tiling_of (long m, long most_rows) {
  long n = ceil_div(m, most_rows), height = n ? m / n : 0;
  return (tiling){n, height, m - n * height};
}
static inline long tile_height (tiling t, long i) { return t.height + (i < t.higher); }

/* Runs the statement with i the number, r the first row and h the height of each tile */
#define FOR_TILES(t, i, r, h)                                                                      \
  for (long i = 0, r = 0, h = tile_height(t, 0); i < (t).n; r += h, i++, h = tile_height(t, i))

/* Lines `bytes` apart share few sets of a cache whose sets repeat every `period` bytes: whether so
   many rows evict each other, at 8 ways.  The period is 4 KiB in L1 on every x86, 128 KiB in L2. */
static inline bool collides (long bytes, long rows, long period) {
  long step = bytes & -bytes; /* gcd(bytes, period), as period is a power of two */
  return step && period / least(period, step) * 8 < rows;
}

#endif
