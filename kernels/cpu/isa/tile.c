/*
** tile.c: the micro-kernel, the innermost loop of every matrix product and convolution.
**
** A tile of ROWS x VECTORS vectors of C stays in registers.  AVX-512 has 32 of them: 14x2 sums, 2 for
** B, 1 for A.  A step of k is then 28 multiply-adds and 16 loads; with two units for each, the
** multiply-adds are the limit.  AVX2 and SSE have 16: 6x2 sums.  A latency of 4 cycles on two units
** asks for 8 sums at least, so tiles of few rows are made 4 vectors wide.
**
** The loop is written once and instantiated for every height, width and layout, so that all the
** addresses are known to the compiler: 14 rows need no more than 4 pointers, because x86 adds
** s, 2*s or 3*s (kept in registers) to each for free.  Unrolling over k gains nothing.
*/
#include "isa/simd.h"

#include "isa/tile.h"

/* Keeps the compiler from seeing through x, and so from making up more pointers than there are
   registers. */
#define OPAQUE(x) __asm__("" : "+r"(x))

/* C is fetched this many steps before the end of the sum: late enough to leave the memory pipes to A
   and B, early enough to be there. */
enum { PREFETCH_STEPS = 32 };

INLINE V multiply_add (V a, V b, V c, const bool dot) {
#ifdef HAVE_VDOT
  if (dot) return vdot(a, b, c);
#endif
  (void)dot;
  return vfma(a, b, c);
}

/* A word of A: an f32, or two bf16 that may lie at an odd multiple of two bytes */
typedef float word_of_a __attribute__((aligned(2), may_alias));

/* The address of row i's word: ROWS has a pointer for every fourth row, COLS just one */
INLINE const word_of_a *word (const char *const *p, int i, long s, long s3, const int layout) {
  if (layout == AMPL_CPU_COLS) return (const word_of_a *)(p[0] + 4 * i);
  return (const word_of_a *)(p[i / 4] + (i % 4 == 3 ? s3 : i % 4 * s));
}

INLINE void finish (const ampl_cpu_tile *t, V c[][AMPL_CPU_VECTORS_MAX], const int rows, const int vectors) {
  const long full = vectors - 1, rest = t->n - full * VW; /* lanes of the last vector; others are full */
  if (t->acc)
    UNROLL for (int i = 0; i < rows; i++) UNROLL for (int j = 0; j < vectors; j++) {
      const float *p = t->c + i * t->ldc + j * VW;
      c[i][j] = vadd(c[i][j], j < full ? vld(p) : vldn(p, rest));
    }
  if (t->bias)
    UNROLL for (int j = 0; j < vectors; j++) {
      V v = j < full ? vld(t->bias + j * VW) : vldn(t->bias + j * VW, rest);
      UNROLL for (int i = 0; i < rows; i++) c[i][j] = vadd(c[i][j], v);
    }
  if (t->relu) /* in this order of operands NaN stays NaN */
    UNROLL for (int i = 0; i < rows; i++) UNROLL for (int j = 0; j < vectors; j++)
      c[i][j] = vmax(vzero(), c[i][j]);
  UNROLL for (int i = 0; i < rows; i++) UNROLL for (int j = 0; j < vectors; j++) {
    float *p = t->c + i * t->ldc + j * VW;
    if (j < full) vst(p, c[i][j]); else vstn(p, c[i][j], rest);
  }
}

INLINE void tile (const ampl_cpu_tile *t, const int rows, const int vectors, const bool dot, const int layout) {
  const int pointers = layout == AMPL_CPU_ROWS ? (rows + 3) / 4 : 1;
  const long a_next = layout == AMPL_CPU_ROWS ? 4 : t->a_step, s = t->a_step, bs = t->b_step;
  long s3 = 3 * s;
  OPAQUE(s3);
  V c[AMPL_CPU_ROWS_MAX][AMPL_CPU_VECTORS_MAX];
  UNROLL for (int i = 0; i < rows; i++) UNROLL for (int j = 0; j < vectors; j++) c[i][j] = vzero();
  const char *b = t->b;
  for (long q = 0; q < t->runs; q++) {
    const char *p[(AMPL_CPU_ROWS_MAX + 3) / 4];
    p[0] = t->a + (t->run ? t->run[q] : 0);
    UNROLL for (int i = 1; i < pointers; i++) p[i] = t->quad ? p[0] + t->quad[i] : p[i - 1] + 4 * s;
    long late = q < t->runs - 1 ? 0 : t->run_len < PREFETCH_STEPS ? t->run_len : PREFETCH_STEPS;
    for (long k = t->run_len - late;;) {
      for (; k > 0; k--) {
        V bv[AMPL_CPU_VECTORS_MAX];
        UNROLL for (int j = 0; j < vectors; j++) bv[j] = vld((const float *)b + j * VW);
        UNROLL for (int i = 0; i < rows; i++) {
          V av = vset(*word(p, i, s, s3, layout));
          UNROLL for (int j = 0; j < vectors; j++) c[i][j] = multiply_add(av, bv[j], c[i][j], dot);
        }
        UNROLL for (int i = 0; i < pointers; i++) {
          p[i] += a_next;
          OPAQUE(p[i]);
        }
        b += bs;
        OPAQUE(b);
      }
      if (late == 0) break;
      for (int i = 0; i < rows; i++)
        for (int j = 0; j < vectors; j++) __builtin_prefetch(t->c + i * t->ldc + j * VW, 1);
      k = late, late = 0;
    }
  }
  finish(t, c, rows, vectors);
}

/* ---------------------------------------------------------------- instances */

#define F32(m, n)                                                                                  \
  static void rows_##m##_##n (const ampl_cpu_tile *t) { tile(t, m, n, false, AMPL_CPU_ROWS); }      \
  static void cols_##m##_##n (const ampl_cpu_tile *t) { tile(t, m, n, false, AMPL_CPU_COLS); }
#define DOT(m, n)                                                                                  \
  static void dot_rows_##m##_##n (const ampl_cpu_tile *t) { tile(t, m, n, true, AMPL_CPU_ROWS); }   \
  static void dot_cols_##m##_##n (const ampl_cpu_tile *t) { tile(t, m, n, true, AMPL_CPU_COLS); }

#define TO2(X, n) X(1, n) X(2, n)
#define TO6(X, n) TO2(X, n) X(3, n) X(4, n) X(5, n) X(6, n)
#define TO14(X, n) TO6(X, n) X(7, n) X(8, n) X(9, n) X(10, n) X(11, n) X(12, n) X(13, n) X(14, n)

#define F32_ENTRY(m, n)                                                                            \
  [0][AMPL_CPU_ROWS][n][m] = rows_##m##_##n, [0][AMPL_CPU_COLS][n][m] = cols_##m##_##n,
#define DOT_ENTRY(m, n)                                                                            \
  [1][AMPL_CPU_ROWS][n][m] = dot_rows_##m##_##n, [1][AMPL_CPU_COLS][n][m] = dot_cols_##m##_##n,

#if defined ISA_AVX512
enum { HIGH = 14, WIDE = 6 };
#define ALL(X) TO14(X, 1) TO14(X, 2) TO6(X, 3) TO6(X, 4)
ALL(F32)
ALL(DOT)
#define ENTRIES ALL(F32_ENTRY) ALL(DOT_ENTRY)
#else
enum { HIGH = 6, WIDE = 2 };
#define ALL(X) TO6(X, 1) TO6(X, 2) TO2(X, 3) TO2(X, 4)
ALL(F32)
#define ENTRIES ALL(F32_ENTRY)
#endif

/* ---------------------------------------------------------------- the table */

#define EACH_TYPE(name) {ISA(name##_f32), ISA(name##_f16), ISA(name##_bf16)}
extern ampl_cpu_copy_fn ISA(ampl_cpu_copy_f32), ISA(ampl_cpu_copy_f16), ISA(ampl_cpu_copy_bf16);
extern ampl_cpu_copy_fn ISA(ampl_cpu_transpose_f32), ISA(ampl_cpu_transpose_f16),
    ISA(ampl_cpu_transpose_bf16);
extern ampl_cpu_gather_fn ISA(ampl_cpu_gather_f32), ISA(ampl_cpu_gather_f16), ISA(ampl_cpu_gather_bf16);
extern ampl_cpu_pair_fn ISA(ampl_cpu_pair), ISA(ampl_cpu_pair_transpose);
void ISA(ampl_cpu_store_f32)(void *, const float *, long);
void ISA(ampl_cpu_store_f16)(void *, const float *, long);
void ISA(ampl_cpu_store_bf16)(void *, const float *, long);
void ISA(ampl_cpu_out)(const ampl_cpu_out *);

extern const ampl_cpu_matrix ISA(ampl_cpu_matrix);
const ampl_cpu_matrix ISA(ampl_cpu_matrix) = {
  .vw = VW,
  .mr = HIGH,
  .mr4 = WIDE,
#ifdef HAVE_VDOT
  .has_dot = true,
#endif
  .tile = {ENTRIES},
  .out = ISA(ampl_cpu_out),
  .copy = EACH_TYPE(ampl_cpu_copy),
  .transpose = EACH_TYPE(ampl_cpu_transpose),
  .gather = EACH_TYPE(ampl_cpu_gather),
  .pair = ISA(ampl_cpu_pair),
  .pair_transpose = ISA(ampl_cpu_pair_transpose),
  .store = EACH_TYPE(ampl_cpu_store),
};
