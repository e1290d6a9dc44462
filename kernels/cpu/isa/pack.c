/*
** pack.c: how operands are brought into the form that the micro-kernel reads: rows widened to f32,
** transposed panels, pairs of bf16 for the dot kernels.
*/
#include "isa/typed.h"

#include "isa/tile.h"

INLINE long element_size (const int dtype) { return dtype == AMPL_F32 ? 4 : 2; }
INLINE long least (long a, long b) { return a < b ? a : b; }

/* ---------------------------------------------------------------- rows */

/* Rows no longer than a vector: tiles of A by columns, panels of narrow B */
INLINE void copy_short (const int dtype, float *dst, long ldd, const char *src, long step, long rows,
                        long cols, long pad) {
  for (long r = 0; r < rows; r++, dst += ldd, src += step) {
    __builtin_prefetch(src + 16 * step);
    vstn(dst, vloadn(dtype, src, 0, cols), pad);
  }
}

INLINE void copy (const int dtype, float *dst, long ldd, const void *from, long lds, long rows, long cols,
                  long pad) {
  const long size = element_size(dtype), step = lds * size;
  const char *src = from;
  if (pad <= VW) {
    copy_short(dtype, dst, ldd, src, step, rows, cols, pad);
    return;
  }
  for (long r = 0; r < rows; r++, dst += ldd, src += step) {
    long j = 0;
    for (; j + VW <= cols; j += VW) {
      __builtin_prefetch(src + 8 * step + j * size);
      vst(dst + j, vload(dtype, src, j));
    }
    if (j < cols) vstn(dst + j, vloadn(dtype, src, j, cols - j), pad - j), j += VW;
    for (; j < pad; j += VW) vstn(dst + j, vzero(), pad - j);
  }
}

/* Elements at any distance are collected into a vector first, then widened */
INLINE void gather (const int dtype, float *dst, long ldd, const void *src, long row_step, long col_step,
                    long rows, long cols, long pad) {
  for (long r = 0; r < rows; r++)
    for (long j = 0; j < pad; j += VW) {
      const long n = least(VW, cols - j), at = r * row_step + j * col_step;
      float words[VW] = {0};
      uint16_t halves[VW] = {0};
      for (long i = 0; i < n; i++)
        if (dtype == AMPL_F32) words[i] = ((const float *)src)[at + i * col_step];
        else halves[i] = ((const uint16_t *)src)[at + i * col_step];
      vstn(dst + r * ldd + j, vload(dtype, dtype == AMPL_F32 ? (void *)words : halves, 0), pad - j);
    }
}

/* ---------------------------------------------------------------- transposed */

/* dst[k][j] = word k of row j, for whole vectors of k (words >= VW); a short last block of k overlaps
   the one before.  Columns beyond the last row repeat it: the kernel computes with them, nobody reads
   the result.  split: the two bf16 of word k become rows 2k and 2k+1. */
INLINE void transpose_words (float *dst, long ldd, const char *src, long step, long rows, long words,
                             long pad, const bool split) {
  for (long j = 0; j < pad; j += VW) {
    const float *row[VW];
    for (int i = 0; i < VW; i++) row[i] = (const float *)(src + least(j + i, rows - 1) * step);
    for (long at = 0; at < words; at += VW) {
      const long k = least(at, words - VW);
      V v[VW];
      vldtrans(v, row, k);
      UNROLL for (int i = 0; i < VW; i++) {
        if (!split) vst(dst + (k + i) * ldd + j, v[i]);
        else {
          vst(dst + (k + i) * 2 * ldd + j, vlow16(v[i]));
          vst(dst + ((k + i) * 2 + 1) * ldd + j, vhigh16(v[i]));
        }
      }
    }
  }
}

/* The same from column k0 on for any dtype and any number of columns */
INLINE void transpose_rest (const int dtype, float *dst, long ldd, const void *src, long lds, long rows,
                            long k0, long cols, long pad) {
  for (long j = 0; j < pad; j += VW)
    for (long k = k0; k < cols; k += VW) {
      const long n = least(VW, cols - k);
      V v[VW];
      for (int i = 0; i < VW; i++)
        v[i] = j + i < rows ? vloadn(dtype, src, (j + i) * lds + k, n) : vzero();
      vtrans(v);
      for (int i = 0; i < n; i++) vst(dst + (k + i) * ldd + j, v[i]);
    }
}

INLINE void transpose (const int dtype, float *dst, long ldd, const void *src, long lds, long rows,
                       long cols, long pad) {
  long done = 0;
  if (rows <= 0) return;
  if (dtype == AMPL_F32 && cols >= VW) {
    transpose_words(dst, ldd, src, 4 * lds, rows, cols, pad, false);
    done = cols;
  } else if (dtype == AMPL_BF16 && cols >= 2 * VW) {
    transpose_words(dst, ldd, src, 2 * lds, rows, cols / 2, pad, true);
    done = cols / 2 * 2;
  }
  transpose_rest(dtype, dst, ldd, src, lds, rows, done, cols, pad);
}

/* ---------------------------------------------------------------- pairs of bf16 */

INLINE uint32_t pair_of (uint16_t low, uint16_t high) { return low | (uint32_t)high << 16; }

#ifdef ISA_AVX512
INLINE I pair_vector (const uint16_t *low, const uint16_t *high, long n) {
  I v = i_widen(ld16n(low, n));
  return high ? ior(v, ishl(i_widen(ld16n(high, n)), 16)) : v;
}
#else
INLINE I pair_vector (const uint16_t *low, const uint16_t *high, long n) {
  int32_t t[VW] = {0};
  for (long i = 0; i < VW && i < n; i++) t[i] = (int32_t)pair_of(low[i], high ? high[i] : 0);
  return ild(t);
}
#endif

extern ampl_cpu_pair_fn ISA(ampl_cpu_pair), ISA(ampl_cpu_pair_transpose);

void ISA(ampl_cpu_pair) (uint32_t *dst, long ldd, const uint16_t *src, long lds, long rows, long cols,
                         long pad) {
  for (long r = 0; r < rows; r += 2, dst += ldd, src += 2 * lds)
    for (long j = 0; j < pad; j += VW) {
      I v = pair_vector(src + j, r + 1 < rows ? src + lds + j : NULL, cols - j);
      istn((int32_t *)dst + j, v, pad - j);
    }
}

void ISA(ampl_cpu_pair_transpose) (uint32_t *dst, long ldd, const uint16_t *src, long lds, long rows,
                                   long cols, long pad) {
  long k = 0; /* a pair is already one word of the source */
  if (cols >= 2 * VW && rows > 0) {
    k = cols / 2;
    transpose_words((float *)dst, ldd, (const char *)src, 2 * lds, rows, k, pad, false);
  }
  for (; 2 * k < cols; k++)
    for (long j = 0; j < pad; j++) {
      const uint16_t *p = src + least(j, rows - 1) * lds + 2 * k;
      dst[k * ldd + j] = pair_of(p[0], 2 * k + 1 < cols ? p[1] : 0);
    }
}

/* ---------------------------------------------------------------- one of each for every dtype */

#define EACH(name, dtype)                                                                          \
  extern ampl_cpu_copy_fn ISA(ampl_cpu_copy_##name), ISA(ampl_cpu_transpose_##name);                \
  extern ampl_cpu_gather_fn ISA(ampl_cpu_gather_##name);                                           \
  void ISA(ampl_cpu_store_##name)(void *dst, const float *src, long n);                            \
  void ISA(ampl_cpu_copy_##name) (float *dst, long ldd, const void *src, long lds, long rows,       \
                                  long cols, long pad) {                                           \
    copy(dtype, dst, ldd, src, lds, rows, cols, pad);                                              \
  }                                                                                                \
  void ISA(ampl_cpu_transpose_##name) (float *dst, long ldd, const void *src, long lds, long rows,  \
                                       long cols, long pad) {                                      \
    transpose(dtype, dst, ldd, src, lds, rows, cols, pad);                                         \
  }                                                                                                \
  void ISA(ampl_cpu_gather_##name) (float *dst, long ldd, const void *src, long row_step,           \
                                    long col_step, long rows, long cols, long pad) {               \
    gather(dtype, dst, ldd, src, row_step, col_step, rows, cols, pad);                             \
  }                                                                                                \
  void ISA(ampl_cpu_store_##name) (void *dst, const float *src, long n) {                          \
    long i = 0;                                                                                    \
    for (; i + VW <= n; i += VW) vstore(dtype, dst, i, vld(src + i));                              \
    if (i < n) vstoren(dtype, dst, i, vldn(src + i, n - i), n - i);                                \
  }
EACH(f32, AMPL_F32)
EACH(f16, AMPL_F16)
EACH(bf16, AMPL_BF16)
