/* philox.h: the random numbers of every backend: Philox 4x32-10 (Salmon, Moraes, Dror, Shaw 2011).
 *
 * Element e of the stream of a seed is a word of the block of counter (e / 64) * 16 + e % 16, with the seed as the key:
 * its word (e % 64) / 16.  So vectors of 4, 8 or 16 lanes make 64 elements side by side without a transpose.  The
 * counter's third word is a lane of its own: 0, or 1 for the low half of numbers of 64 bits.
 *
 *   even in [0, 1)   the upper 24 bits of the word; 11 for f16, 8 for bf16 (a rounded value could reach 1); 53 for f64
 *   normal           Box and Muller on words 0 and 1, and 2 and 3, of a block: the cosine first, then the sine, by one
 *                    sequence of correctly rounded f32 operations; other dtypes round that value
 *
 * Readable as C11, C++11 and CUDA.
 */
#ifndef AMPL_PHILOX_H
#define AMPL_PHILOX_H

#include <stdint.h>

#define AMPL_PHILOX_M0     0xd2511f53u
#define AMPL_PHILOX_M1     0xcd9e8d57u
#define AMPL_PHILOX_W0     0x9e3779b9u
#define AMPL_PHILOX_W1     0xbb67ae85u
#define AMPL_PHILOX_ROUNDS 10
#define AMPL_PHILOX_GROUP  64           /* elements that four vectors of counters make */

#ifdef __CUDACC__
#define AMPL_PHILOX_FN static __host__ __device__ inline
#else
#define AMPL_PHILOX_FN static inline
#endif

/* The four words of one counter. */
AMPL_PHILOX_FN void ampl_philox(uint64_t seed, uint64_t counter, uint32_t lane, uint32_t out[4]) {
  uint32_t k0 = (uint32_t)seed, k1 = (uint32_t)(seed >> 32);
  uint32_t c0 = (uint32_t)counter, c1 = (uint32_t)(counter >> 32), c2 = lane, c3 = 0;
  for (int i = 0; i < AMPL_PHILOX_ROUNDS; i++) {
    const uint64_t a = (uint64_t)AMPL_PHILOX_M0 * c0, b = (uint64_t)AMPL_PHILOX_M1 * c2;
    c0 = (uint32_t)(b >> 32) ^ c1 ^ k0;
    c1 = (uint32_t)b;
    c2 = (uint32_t)(a >> 32) ^ c3 ^ k1;
    c3 = (uint32_t)a;
    k0 += AMPL_PHILOX_W0;
    k1 += AMPL_PHILOX_W1;
  }
  out[0] = c0, out[1] = c1, out[2] = c2, out[3] = c3;
}

#endif
