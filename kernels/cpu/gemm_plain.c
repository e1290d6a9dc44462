/*
** gemm_plain.c: matrix multiply for f64 and for integers, in portable C.
**
** f64 is for references and gradient checks: a tile of 4x4 sums in registers over packed panels of B,
** good for a few GFLOP/s without any instruction set.  Integers are plain loops.
*/
#include <math.h>
#include <string.h>

#include "blocking.h"
#include "gemm.h"

/* ---------------------------------------------------------------- f64 */

enum { TILE = 4, KC = 256, ROWS = 64, COLS = 64 }; /* a block of B (128 KiB) stays in L2 */

typedef double D __attribute__((vector_size(16)));

static double activate (ampl_cpu_act act, double x) {
  if (act == AMPL_CPU_NONE) return x;
  if (act == AMPL_CPU_RELU) return x > 0 || isnan(x) ? x : 0;
  if (act == AMPL_CPU_GELU) return 0.5 * x * (1 + erf(x * 0.70710678118654752440));
  return 0.5 * x * (1 + tanh(0.79788456080286535588 * x * (1 + 0.044715 * x * x)));
}

/* Panels of 4 columns, [panel][k][4], zeros beyond column n */
static void pack_f64 (double *dst, const double *b, int64_t row, int64_t col, long k, long n) {
  for (long j = 0; j < n; j += TILE)
    for (long p = 0; p < k; p++)
      for (long i = 0; i < TILE; i++) *dst++ = j + i < n ? b[p * row + (j + i) * col] : 0;
}

/* c[4][4] = a (h rows) times a panel; rows from h on repeat row 0 */
static void tile_f64 (double *c, const double *a, int64_t row, int64_t col, long h, const double *panel, long k) {
  const double *r[TILE];
  D sum[TILE][2] = {{{0}}};
  for (int i = 0; i < TILE; i++) r[i] = a + (i < h ? i * row : 0);
  for (long p = 0; p < k; p++) {
    D b0, b1;
    memcpy(&b0, panel + TILE * p, sizeof b0);
    memcpy(&b1, panel + TILE * p + 2, sizeof b1);
    for (int i = 0; i < TILE; i++) {
      D v = {r[i][p * col], r[i][p * col]};
      sum[i][0] += v * b0;
      sum[i][1] += v * b1;
    }
  }
  memcpy(c, sum, sizeof sum);
}

/* Adds one tile to C; after the last block of k, bias, activation and copy */
static void store_f64 (const ampl_cpu_gemm_args *g, const double *tile, long y, long h, long x, long w, bool add,
                       bool last) {
  for (long i = 0; i < h; i++)
    for (long j = 0; j < w; j++) {
      double *c = (double *)g->c + (y + i) * g->c_row + x + j, v = tile[i * TILE + j];
      if (add) v += *c;
      if (last && g->bias) v += ((const double *)g->bias)[x + j];
      if (last && g->copy)
        ((double *)g->copy)[(y + i) * g->copy_row + x + j] = g->copy_first ? v : activate(g->act, v);
      *c = last ? activate(g->act, v) : v;
    }
}

/* One job: COLS columns x ROWS rows of one product */
typedef struct job_f64 {
  const ampl_cpu_gemm_args *g;
  long rows, cols, batch1; /* jobs along each */
  double *scratch;
} job_f64;

static void run_f64 (void *ud, int64_t job, int thread) {
  const job_f64 *w = ud;
  ampl_cpu_gemm_args g = *w->g;
  const long part = job % (w->rows * w->cols), product = job / (w->rows * w->cols);
  const long bx = product / w->batch1, by = product % w->batch1;
  const long m0 = part / w->cols * ROWS, n0 = part % w->cols * COLS;
  const long m1 = least(g.m, m0 + ROWS), n = least(COLS, g.n - n0);
  double *panels = w->scratch + (long)thread * KC * COLS;
  const double *a = (const double *)g.a + bx * g.a_batch[0] + by * g.a_batch[1];
  const double *b = (const double *)g.b + bx * g.b_batch[0] + by * g.b_batch[1];
  g.c = (double *)g.c + bx * g.c_batch[0] + by * g.c_batch[1];
  if (g.copy) g.copy = (double *)g.copy + bx * g.copy_batch[0] + by * g.copy_batch[1];
  for (long p = 0; p == 0 || p < g.k; p += KC) {
    if (p > 0 && ampl_cpu_stop(g.ctx)) return;
    const long k = least(KC, g.k - p);
    pack_f64(panels, b + p * g.b_row + n0 * g.b_col, g.b_row, g.b_col, k, n);
    for (long y = m0; y < m1; y += TILE)
      for (long x = 0; x < n; x += TILE) {
        double tile[TILE * TILE];
        const long h = least(TILE, m1 - y);
        tile_f64(tile, a + y * g.a_row + p * g.a_col, g.a_row, g.a_col, h, panels + x * k, k);
        store_f64(&g, tile, y, h, n0 + x, least(TILE, n - x), g.acc || p > 0, p + k >= g.k);
      }
  }
}

static long products (const ampl_cpu_gemm_args *g) { return most(1, g->batch[0]) * most(1, g->batch[1]); }

static int threads_for (const ampl_cpu_gemm_args *g) {
  return 16.0 * g->m * g->n * g->k * products(g) < AMPL_CPU_SERIAL_FLOP ? 1 : (int)most(1, g->threads);
}

ampl_status ampl_cpu_gemm_f64 (const ampl_cpu_gemm_args *g) {
  const int threads = threads_for(g);
  const size_t bytes = sizeof(double) * KC * COLS * (size_t)threads;
  job_f64 w = {g, ceil_div(g->m, ROWS), ceil_div(g->n, COLS), most(1, g->batch[1]), NULL};
  w.scratch = ampl_cpu_scratch_get(g->ctx, bytes);
  if (!w.scratch) return AMPL_ENOMEM;
  const ampl_status s = ampl_cpu_parallel(g->ctx, threads, products(g) * w.rows * w.cols, run_f64, &w);
  ampl_cpu_scratch_put(g->ctx, w.scratch, bytes);
  return s;
}

/* ---------------------------------------------------------------- integers */

/* One job: one row of one product.  Sums are unsigned, so that overflow wraps around. */
#define INTEGER(name, type, sum_type)                                                              \
  static void run_##name (void *ud, int64_t job, int thread) {                                      \
    const ampl_cpu_gemm_args *g = ud;                                                              \
    const long i = job % g->m, batch1 = most(1, g->batch[1]);                                      \
    const long x = job / g->m / batch1, y = job / g->m % batch1;                                   \
    const type *a = (const type *)g->a + x * g->a_batch[0] + y * g->a_batch[1] + i * g->a_row;      \
    const type *b = (const type *)g->b + x * g->b_batch[0] + y * g->b_batch[1];                     \
    type *c = (type *)g->c + x * g->c_batch[0] + y * g->c_batch[1] + i * g->c_row;                  \
    (void)thread;                                                                                  \
    for (long j = 0; j < g->n; j++) {                                                              \
      if (ampl_cpu_stop_at(g->ctx, j * g->k, g->k)) return;                                        \
      sum_type sum = g->acc ? (sum_type)c[j] : 0;                                                  \
      for (long p = 0; p < g->k; p++)                                                              \
        sum += (sum_type)a[p * g->a_col] * (sum_type)b[p * g->b_row + j * g->b_col];                \
      c[j] = (type)sum;                                                                            \
    }                                                                                              \
  }
INTEGER(i64, int64_t, uint64_t)
INTEGER(i32, int32_t, uint32_t)
INTEGER(u8, uint8_t, uint32_t)

ampl_status ampl_cpu_gemm_int (const ampl_cpu_gemm_args *g) {
  ampl_cpu_gemm_args args = *g;
  ampl_cpu_job_fn run = g->c_dtype == AMPL_I64   ? run_i64
                        : g->c_dtype == AMPL_I32 ? run_i32
                        : g->c_dtype == AMPL_U8  ? run_u8
                                                 : NULL;
  if (!run) return AMPL_EDTYPE;
  return ampl_cpu_parallel(g->ctx, threads_for(g), products(g) * g->m, run, &args);
}
