/*
** gemm_test.c: matrix multiply against plain loops in double: random sizes round every tile, block and
** thread limit, all orders of the operands, dtypes, epilogues and batches; and the same bits for any
** number of threads.
*/
#include "gemm.h"

#include "sweep.h"

/* Sizes round the limits of tiles (4 6 14 16 28 32), of blocks of k (256, 512) and of rows (512) */
static const long small_sizes[] = {1, 1, 2, 3, 4, 5, 6, 7, 8, 13, 14, 15, 16, 17, 27, 28, 29, 31, 32, 33,
                                   42, 47, 48, 63, 64, 65, 97, 128, 131};
static const long long_sizes[] = {1, 3, 16, 64, 127, 128, 255, 256, 257, 300, 511, 512, 513, 514, 640};

/* How far a result may be off: rounding to its dtype, and the sum's own rounding, relative to the size
   of what was added up */
static double tolerance (int dtype, double want, double magnitude) {
  switch (dtype) {
    case AMPL_F64: return 1e-14 * magnitude;
    case AMPL_F32: return 1.5e-6 * magnitude;
    case AMPL_BF16: return (fabs(want) + 0.001) / 200 + 1.5e-6 * magnitude;
    case AMPL_F16: return (fabs(want) + 0.001) / 1500 + 1.5e-6 * magnitude;
    default: return 0;
  }
}

/* Where the elements of an operand lie */
typedef struct matrix {
  int dtype;
  long rows, cols, row, col, batch[2], length;
  void *p;
} matrix;

/* order 0: by rows, 1: by columns, 2: neither; sometimes with gaps, sometimes a page between rows */
static matrix make_matrix (int dtype, long rows, long cols, int order, const int64_t *batch, bool shared) {
  matrix x = {.dtype = dtype, .rows = rows, .cols = cols};
  long inner = order == 1 ? rows : cols, outer = order == 1 ? cols : rows;
  long gap = order == 2 ? 2 + below(2) : 1, step = (inner > 0 ? inner : 1) * gap;
  if (one_in(2)) step += below(20);
  if (one_in(8) && step < 1024) step = 1024;
  x.row = order == 1 ? gap : step, x.col = order == 1 ? step : gap;
  long one = (outer > 0 ? (outer - 1) * step + (inner > 0 ? (inner - 1) * gap : 0) : 0) + 1 + below(3);
  x.batch[1] = shared ? 0 : one;
  x.batch[0] = shared && one_in(2) ? 0 : shared ? one : one * (batch[1] ? batch[1] : 1);
  x.length = one + x.batch[0] * (batch[0] ? batch[0] - 1 : 0) + x.batch[1] * (batch[1] ? batch[1] - 1 : 0);
  x.p = make(dtype, x.length);
  return x;
}

static double at (const matrix *x, long b0, long b1, long i, long j) {
  return element(x->dtype, x->p, b0 * x->batch[0] + b1 * x->batch[1] + i * x->row + j * x->col);
}

static double activated (ampl_cpu_act act, double x) {
  switch (act) {
    case AMPL_CPU_RELU: return x > 0 ? x : 0;
    case AMPL_CPU_GELU: return 0.5 * x * (1 + erf(x / sqrt(2)));
    case AMPL_CPU_GELU_TANH: return 0.5 * x * (1 + tanh(sqrt(2 / M_PI) * (x + 0.044715 * x * x * x)));
    default: return x;
  }
}

typedef struct product {
  ampl_cpu_gemm_args g;
  matrix a, b, c, copy;
  void *bias;
  int a_order, b_order;
} product;

static product random_product (bool large) {
  static const int floats[] = {AMPL_F32, AMPL_F16, AMPL_BF16};
  product x = {.a_order = one_in(6) ? 2 : (int)below(2), .b_order = one_in(6) ? 2 : (int)below(2)};
  ampl_cpu_gemm_args *g = &x.g;
  g->m = PICK(small_sizes), g->n = PICK(small_sizes), g->k = one_in(3) ? PICK(long_sizes) : PICK(small_sizes);
  if (one_in(25)) g->k = 0;
  if (large) {
    g->m = 40 + below(300), g->n = 40 + below(300), g->k = 100 + below(500);
    if (one_in(4)) g->m = 500 + below(700), g->n = 16 + below(20);
    if (one_in(4)) g->n = 500 + below(700), g->m = 1 + below(30);
    while (2.0 * g->m * g->n * g->k < AMPL_CPU_SERIAL_FLOP) g->k += 64;
  }
  g->a_dtype = PICK(floats), g->b_dtype = one_in(2) ? g->a_dtype : PICK(floats), g->c_dtype = PICK(floats);
  if (one_in(12)) g->a_dtype = g->b_dtype = g->c_dtype = AMPL_F64;
  bool whole = one_in(15) && !large;
  if (whole) g->a_dtype = g->b_dtype = g->c_dtype = AMPL_I64 + (int)below(3);
  if (one_in(4) && !large) g->batch[0] = 1 + below(3), g->batch[1] = 1 + below(3);
  x.a = make_matrix(g->a_dtype, g->m, g->k, x.a_order, g->batch, false);
  x.b = make_matrix(g->b_dtype, g->k, g->n, x.b_order, g->batch, one_in(2));
  x.c = make_matrix(g->c_dtype, g->m, g->n, 0, g->batch, false);
  g->a = x.a.p, g->b = x.b.p;
  g->a_row = x.a.row, g->a_col = x.a.col, g->b_row = x.b.row, g->b_col = x.b.col, g->c_row = x.c.row;
  for (int i = 0; i < 2; i++)
    g->a_batch[i] = x.a.batch[i], g->b_batch[i] = x.b.batch[i], g->c_batch[i] = x.c.batch[i];
  g->acc = one_in(3);
  if (whole) return x;
  g->act = one_in(2) ? AMPL_CPU_NONE : (ampl_cpu_act)below(4);
  g->bias_dtype = g->c_dtype == AMPL_F64 ? AMPL_F64 : PICK(floats);
  if (one_in(2)) g->bias = x.bias = make(g->bias_dtype, g->n);
  if (one_in(3)) {
    g->copy_dtype = g->c_dtype == AMPL_F64 ? AMPL_F64 : PICK(floats);
    x.copy = make_matrix(g->copy_dtype, g->m, g->n, 0, g->batch, false);
    g->copy = x.copy.p, g->copy_row = x.copy.row, g->copy_first = one_in(2);
    g->copy_batch[0] = x.copy.batch[0], g->copy_batch[1] = x.copy.batch[1];
  }
  return x;
}

static void describe (const product *x, const char *what, double got, double want) {
  const ampl_cpu_gemm_args *g = &x->g;
  fault("%s: %ldx%ldx%ld orders %d%d dtypes %d%d%d acc %d act %d bias %d copy %d batch %ldx%ld: %g, expected %g",
        what, (long)g->m, (long)g->n, (long)g->k, x->a_order, x->b_order, g->a_dtype, g->b_dtype, g->c_dtype, g->acc,
        g->act, g->bias != NULL, g->copy != NULL, (long)g->batch[0], (long)g->batch[1], got, want);
}

static void check_element (const product *x, const void *old, long b0, long b1, long i, long j) {
  const ampl_cpu_gemm_args *g = &x->g;
  const long to = b0 * x->c.batch[0] + b1 * x->c.batch[1] + i * x->c.row + j;
  const double before = g->acc ? element(g->c_dtype, old, to) : 0;
  double sum = before, size = fabs(before) + 0.01;
  for (long p = 0; p < g->k; p++) {
    double v = at(&x->a, b0, b1, i, p) * at(&x->b, b0, b1, p, j);
    sum += v, size += fabs(v);
  }
  if (g->bias) sum += element(g->bias_dtype, g->bias, j), size += 1;
  if (g->c_dtype == AMPL_I32) sum = (int32_t)(uint32_t)(int64_t)sum;
  if (g->c_dtype == AMPL_U8) sum = (uint8_t)(int64_t)sum;
  const double want = activated(g->act, sum), got = element(g->c_dtype, g->c, to);
  if (!(fabs(got - want) <= tolerance(g->c_dtype, want, size))) describe(x, "wrong", got, want);
  if (!g->copy) return;
  const double second = g->copy_first ? sum : want;
  const double copied = at(&x->copy, b0, b1, i, j);
  if (!(fabs(copied - second) <= tolerance(g->copy_dtype, second, size))) describe(x, "copy", copied, second);
}

/* What lies between the rows of C must be as before */
static void check_gaps (const product *x, const void *old) {
  const ampl_cpu_gemm_args *g = &x->g;
  char *inside = calloc(1, (size_t)x->c.length);
  long b0 = g->batch[0] ? g->batch[0] : 1, b1 = g->batch[1] ? g->batch[1] : 1;
  for (long i = 0; i < b0 * b1 * g->m; i++)
    memset(inside + i / g->m / b1 * x->c.batch[0] + i / g->m % b1 * x->c.batch[1] + i % g->m * x->c.row, 1,
           (size_t)g->n);
  for (long i = 0; i < x->c.length; i++)
    if (!inside[i] && memcmp((const char *)g->c + i * size_of(g->c_dtype), (const char *)old + i * size_of(g->c_dtype),
                             size_of(g->c_dtype)) != 0)
      describe(x, "outside of C", (double)i, 0);
  free(inside);
}

static void run_threads (product *x, void *old, int threads, void *first) {
  const size_t bytes = size_of(x->g.c_dtype) * (size_t)x->c.length;
  x->g.threads = threads;
  x->g.c = copy_of(old, bytes);
  if (ampl_cpu_gemm(&x->g) != AMPL_OK) describe(x, "status", 0, 0);
  if (memcmp(x->g.c, first, bytes) != 0) describe(x, "bits differ with threads", threads, 1);
  free(x->g.c);
}

static void check_product (bool large) {
  product x = random_product(large);
  ampl_cpu_gemm_args *g = &x.g;
  void *old = copy_of(x.c.p, size_of(g->c_dtype) * (size_t)x.c.length);
  const long b0 = g->batch[0] ? g->batch[0] : 1, b1 = g->batch[1] ? g->batch[1] : 1;
  g->c = x.c.p, g->threads = 1;
  if (ampl_cpu_gemm(g) != AMPL_OK) describe(&x, "status", 0, 0);
  const long some = large ? 2000 : 1 << 30; /* of a large product, a sample is checked */
  if (b0 * b1 * g->m * g->n <= some)
    for (long q = 0; q < b0 * b1 * g->m * g->n; q++)
      check_element(&x, old, q / g->n / g->m / b1, q / g->n / g->m % b1, q / g->n % g->m, q % g->n);
  else
    for (long q = 0; q < some; q++) check_element(&x, old, 0, 0, below(g->m), below(g->n));
  check_gaps(&x, old);
  run_threads(&x, old, 2, x.c.p);
  if (large) run_threads(&x, old, 3, x.c.p);
  end_case();
  free(x.a.p), free(x.b.p), free(x.c.p), free(x.copy.p), free(x.bias), free(old);
}

static void sweep (void) {
  for (int dot = 0; dot < 2; dot++) {
    if (ampl_cpu_set_bf16_dot(dot) != dot) continue;
    for (int i = 0; i < 900; i++) check_product(false);
    for (int i = 0; i < 60; i++) check_product(true);
  }
}

int main (void) { return run_sweeps(sweep); }
