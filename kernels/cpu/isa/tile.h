/*
** tile.h: what the matrix and convolution drivers see of the loops in this folder.
**
** The drivers (gemm.c, conv*.c) are compiled once and know no instruction set; they work through the
** tables at the end, one of each for every ISA.  Arithmetic is in f32 throughout: f16 and bf16 are
** what is stored.  In names of types, `16-bit` is f16 or bf16.
*/
#ifndef AMPL_CPU_TILE_H
#define AMPL_CPU_TILE_H

#include "ampl.h"

enum { AMPL_CPU_TYPES = 3 }; /* f32, f16, bf16: the first dtypes, so tables are indexed by dtype */

/* ---------------------------------------------------------------- one tile of a product */

/* c[i][j] (+)= sum over runs q and steps k of a(i, q, k) * b[q*run_len + k][j],  j < n
**
** b is read as vectors, and must be readable up to a whole number of them.  a is read in place, one
** 4-byte word at a time, in one of two layouts:
**
**   ROWS   a + run[q] + i*a_step + 4*k     a row-major matrix, or pixels of an image under a filter tap
**   COLS   a + run[q] + 4*i + k*a_step     a transposed matrix
**
** In the dot kernels a word is a pair of bf16 that meet the same pair of b, and a step is two of k.
** All steps are in bytes, but ldc, which counts floats. */
enum { AMPL_CPU_ROWS, AMPL_CPU_COLS };

typedef struct ampl_cpu_tile {
  const char *a;
  long a_step;
  const long *run;      /* offsets of the runs; NULL: one run at 0 */
  long runs, run_len;
  const long *quad;     /* ROWS: where rows 4, 8 and 12 begin (quad[1..3]) if not at 4*a_step steps */
  const char *b;
  long b_step;
  float *c;
  long ldc;
  int n;
  bool acc, relu;       /* add to c; max(0, .) at the end */
  const float *bias;    /* n values, or NULL */
} ampl_cpu_tile;

typedef void (*ampl_cpu_tile_fn)(const ampl_cpu_tile *);

enum { AMPL_CPU_ROWS_MAX = 14, AMPL_CPU_VECTORS_MAX = 4 };

/* ---------------------------------------------------------------- a finished tile on its way out */

typedef enum ampl_cpu_act {
  AMPL_CPU_NONE,
  AMPL_CPU_RELU,
  AMPL_CPU_GELU,     /* x * (1 + erf(x / sqrt 2)) / 2 */
  AMPL_CPU_GELU_TANH /* its approximation by tanh */
} ampl_cpu_act;

/* c = act(tile + c if acc + bias), converted; the strides count elements. */
typedef struct ampl_cpu_out {
  const float *tile;
  long ldt;
  int rows, cols;
  bool transposed;   /* element (i, j) is tile[j*ldt + i] */
  void *c;
  int dtype;
  long ldc;
  bool acc;
  ampl_cpu_act act;
  const float *bias; /* cols values, or NULL */
  void *copy;        /* a second result of another dtype, or NULL */
  int copy_dtype;
  long ldcopy;
  bool copy_first;   /* the copy is taken before the activation */
} ampl_cpu_out;

/* ---------------------------------------------------------------- tables */

/* Packing.  `rows`, `cols` are the source's; lds, ldd count elements between rows. */
typedef void ampl_cpu_copy_fn(float *dst, long ldd, const void *src, long lds, long rows, long cols,
                              long pad);
typedef void ampl_cpu_pair_fn(uint32_t *dst, long ldd, const uint16_t *src, long lds, long rows,
                              long cols, long pad);
typedef void ampl_cpu_gather_fn(float *dst, long ldd, const void *src, long row_step, long col_step,
                                long rows, long cols, long pad);

typedef struct ampl_cpu_matrix {
  int vw;            /* floats in a vector */
  int mr, mr4;       /* most rows of a tile 2 vectors wide, and 4 vectors wide */
  bool has_dot;
  ampl_cpu_tile_fn tile[2][2][AMPL_CPU_VECTORS_MAX + 1][AMPL_CPU_ROWS_MAX + 1]; /* [dot][layout][vectors][rows] */
  void (*out)(const ampl_cpu_out *);
  /* dst[r][0..pad) = src[r][0..cols), zero from cols on */
  ampl_cpu_copy_fn *copy[AMPL_CPU_TYPES];
  /* dst[k][j] = src[j][k], j < rows; up to pad (whole vectors) anything finite or copied */
  ampl_cpu_copy_fn *transpose[AMPL_CPU_TYPES];
  /* dst[r][c] = src[r*row_step + c*col_step], zero from cols to pad */
  ampl_cpu_gather_fn *gather[AMPL_CPU_TYPES];
  /* for the dot kernels: dst[r/2][c] = the bf16 of rows r (low half) and r + 1, the last one 0 */
  ampl_cpu_pair_fn *pair;
  /* dst[c/2][r] = the bf16 of columns c (low half) and c + 1 of row r */
  ampl_cpu_pair_fn *pair_transpose;
  void (*store[AMPL_CPU_TYPES])(void *dst, const float *src, long n);
} ampl_cpu_matrix;

/* A window on an image: element (y, x, c) is p[y*ldy + x*ldx + c], for y0 <= y < y1, x0 <= x < x1; the
   rest lies outside of the image. */
typedef struct ampl_cpu_window {
  void *p;
  int dtype;
  long ldy, ldx;
  long y0, y1, x0, x1;
  long c;
} ampl_cpu_window;

/* The transforms of Winograd's algorithm: winograd.c says what each computes. */
typedef struct ampl_cpu_wino {
  void (*input)(float *dst, long ldd, const ampl_cpu_window *src);
  void (*grad)(float *dst, long ldd, const ampl_cpu_window *src);
  void (*output)(const ampl_cpu_window *dst, const float *src, long lds, const float *bias, bool relu);
  void (*filter)(float *dst, long ldd, const float *src, long lds, bool turned, long cols);
  void (*filter_grad)(float *dst, long ldd, const float *src, long lds, long cols);
} ampl_cpu_wino;

/* A row of outputs of a depthwise convolution; the steps count elements.  Pixel i of channel c is
   bias[c] + the sum over taps t of tap[t][i*step + c] * filter[t][c]. */
typedef struct ampl_cpu_depthwise_row {
  void *dst;
  int dst_dtype;
  long dst_step, pixels, c;
  const void *const *tap;
  int dtype;             /* of the taps: dst_dtype, or one of the two is f32 */
  long step;
  const float *const *filter;
  long taps;
  const float *bias;
  bool relu;
} ampl_cpu_depthwise_row;

typedef struct ampl_cpu_depthwise {
  void (*row)(const ampl_cpu_depthwise_row *r);
  /* dw[c] += the sum over n pixels of x * dy; equal dtypes, or one of them f32 */
  void (*grad)(float *dw, const void *x, int x_dtype, long x_step, const void *dy, int dy_dtype, long dy_step, long n,
               long c);
} ampl_cpu_depthwise;

#endif
