/* reduce_test.c: the CPU's reductions, extremes and running sums against plain loops in f64, over random shapes,
 * strides, dtypes, dimensions and numbers of threads, on each instruction set. */
#include "ampl_backend.h"
#include "op.h"
#include "sweep.h"

extern const ampl_kernel ampl_cpu_reductions_kernels[], ampl_cpu_extreme_kernels[], ampl_cpu_scan_kernels[];

static ampl_ctx *ctx;

/* ------------------------------------------------------------------------------------------------ tensors --------- */

/* A tensor on memory of its own, its dimensions in any order in memory, with gaps, or broadcast */
static ampl_tensor *random_tensor (int dtype, int nd, const int64_t *shape, void **memory) {
  ampl_tensor *x = calloc(1, sizeof *x);
  int order[AMPL_RANK_MAX];
  bool plain = one_in(2);
  int64_t step = 1, span = 1;
  x->dtype = (uint8_t)dtype, x->ndim = (uint8_t)nd, x->numel = 1;
  for (int d = 0; d < nd; d++) order[d] = nd - 1 - d;
  for (int d = 0; d < nd && !plain; d++) {
    int k = (int)below(nd), t = order[d];
    order[d] = order[k], order[k] = t;
  }
  for (int i = 0; i < nd; i++) {
    int d = order[i];
    x->shape[d] = shape[d], x->numel *= shape[d];
    x->strides[d] = !plain && one_in(8) ? 0 : step;
    if (x->strides[d]) step *= shape[d] + (plain || !one_in(4) ? 0 : below(3));
    if (shape[d] > 0) span += (shape[d] - 1) * x->strides[d];
  }
  *memory = x->data = make(dtype, span);
  return x;
}

static ampl_tensor *result (int dtype, const ampl_tensor *x, uint32_t dims, bool keepdim) {
  ampl_tensor *y = calloc(1, sizeof *y);
  int64_t step = 1;
  for (int d = 0; d < x->ndim; d++)
    if (!(dims >> d & 1)) y->shape[y->ndim++] = x->shape[d];
    else if (keepdim) y->shape[y->ndim++] = 1;
  for (int d = y->ndim - 1; d >= 0; d--) y->strides[d] = step, step *= y->shape[d];
  y->dtype = (uint8_t)dtype, y->numel = step;
  y->data = calloc((size_t)(step ? step : 1), size_of(dtype));
  return y;
}

static void drop (ampl_tensor *x) {
  free(x->data);
  free(x);
}

/* Offset of element `i` (row-major) of the dimensions in `dims`, or of the others */
static int64_t place (const ampl_tensor *x, uint32_t dims, bool in, int64_t i) {
  int64_t offset = 0;
  for (int d = x->ndim - 1; d >= 0; d--) {
    if ((dims >> d & 1) != in) continue;
    offset += i % x->shape[d] * x->strides[d];
    i /= x->shape[d];
  }
  return offset;
}

/* ------------------------------------------------------------------------------------------------ references ------ */

typedef struct line { double *v; int64_t n; } line;

static double sum_of (line l) {
  long double s = 0;
  for (int64_t i = 0; i < l.n; i++) s += l.v[i];
  return (double)s;
}
static double size_of_sum (line l) {
  long double s = 0;
  for (int64_t i = 0; i < l.n; i++) s += fabs(l.v[i]);
  return (double)s;
}
static double power_sum (line l, double p) {
  long double s = 0;
  for (int64_t i = 0; i < l.n; i++) s += p == 0 ? l.v[i] != 0 : pow(fabs(l.v[i]), p);
  return (double)s;
}
static double variance_of (line l, double correction) {
  long double mean = sum_of(l) / (double)l.n, s = 0;
  for (int64_t i = 0; i < l.n; i++) s += (l.v[i] - mean) * (l.v[i] - mean);
  return l.n ? (double)s / fmax(0, (double)l.n - correction) : NAN;
}
static double extreme_of (line l, double sign, bool size, int64_t *at) {
  double best = -INFINITY;
  *at = 0;
  for (int64_t i = 0; i < l.n; i++) {
    double v = size ? fabs(l.v[i]) : l.v[i];
    if (sign * v > best) best = sign * v, *at = i;
  }
  return sign * best;
}

typedef struct kase { const char *op; double p; double scale; } kase;

static double reference (const kase *k, line l, double *scale) {
  int64_t at;
  *scale = size_of_sum(l);
  if (strcmp(k->op, "sum") == 0) return sum_of(l);
  if (strcmp(k->op, "mean") == 0) return *scale /= (double)l.n, sum_of(l) / (double)l.n;
  if (strcmp(k->op, "var") == 0) return *scale = variance_of(l, k->p);
  if (strcmp(k->op, "std") == 0) return *scale = 0.1 + sqrt(variance_of(l, k->p)), sqrt(variance_of(l, k->p));
  if (strcmp(k->op, "amax") == 0) return *scale = 0, extreme_of(l, 1, false, &at);
  if (strcmp(k->op, "amin") == 0) return *scale = 0, extreme_of(l, -1, false, &at);
  if (strcmp(k->op, "any") == 0) return power_sum(l, 0) > 0;
  if (strcmp(k->op, "all") == 0) return power_sum(l, 0) == (double)l.n;
  if (strcmp(k->op, "count_nonzero") == 0) return power_sum(l, 0);
  if (strcmp(k->op, "logsumexp") == 0) {
    double top = extreme_of(l, 1, false, &at), s = 0;
    for (int64_t i = 0; i < l.n; i++) s += exp(l.v[i] - top);
    return *scale = 1 + fabs(top), l.n ? top + log(s) : -INFINITY;
  }
  if (isinf(k->p)) return *scale = 0, extreme_of(l, k->p > 0 ? 1 : -1, true, &at);
  double s = power_sum(l, k->p);
  return *scale = k->p == 0 || k->p == 1 ? s : pow(s, 1 / k->p);
}

/* ------------------------------------------------------------------------------------------------ reductions ------ */

static ampl_kernel_fn kernel (const ampl_kernel *list, const char *op) {
  while (strcmp(list->op, op) != 0) list++;
  return list->fn;
}

/* How far a result may be off: rounding to its dtype, and the rounding of sums of that size */
static double slack_of (int dtype, double want, double size) {
  switch (dtype) {
    case AMPL_F64: return 1e-14 * size;
    case AMPL_F32: return 1.5e-6 * size;
    case AMPL_BF16: return (fabs(want) + 0.001) / 200 + 1.5e-6 * size;
    case AMPL_F16: return (fabs(want) + 0.001) / 1500 + 1.5e-6 * size;
    default: return 0;
  }
}

static bool close_to (double got, double want, double slack) {
  if (fabs(want) > 65519 && isinf(got)) return true;    /* beyond f16 */
  return got == want || (got != got && want != want) || fabs(got - want) <= slack;
}

static void check_values (const kase *k, const ampl_tensor *x, const ampl_tensor *y, uint32_t dims) {
  int64_t n = 1, gone = 1;
  for (int d = 0; d < x->ndim; d++) *(dims >> d & 1 ? &gone : &n) *= x->shape[d];
  line l = {malloc(sizeof(double) * (size_t)(gone ? gone : 1)), gone};
  for (int64_t o = 0; o < n; o++) {
    int64_t base = place(x, dims, false, o);
    for (int64_t i = 0; i < gone; i++) l.v[i] = element(x->dtype, x->data, base + place(x, dims, true, i));
    double scale, want = reference(k, l, &scale), got = element(y->dtype == AMPL_BOOL ? AMPL_U8 : y->dtype, y->data, o);
    if (!close_to(got, want, slack_of(y->dtype, want, scale)))
      fault("%s p %g dtype %d, %d dims, mask %x: output %ld of %ld values is %.9g, expected %.9g", k->op, k->p,
            x->dtype, x->ndim, dims, (long)o, (long)gone, got, want);
  }
  free(l.v);
}

static int64_t random_shape (int nd, int64_t *shape, bool large) {
  int64_t n = 1;
  for (int d = 0; d < nd; d++) {
    int64_t most = large ? 100000 / n / (d + 1 < nd ? 2 : 1) : 12;
    shape[d] = large && one_in(2) ? 1 + below(most > 0 ? most : 1)
               : one_in(20)       ? 0
                                  : 1 + below(most < 12 ? most + 1 : 12);
    if (large && shape[d] == 0) shape[d] = 1;
    n *= shape[d] ? shape[d] : 1;
  }
  return n;
}

static const kase kases[] = {
    {"sum", 0, 0}, {"mean", 0, 0}, {"var", 1, 0}, {"std", 0, 0}, {"amax", 0, 0}, {"amin", 0, 0}, {"any", 0, 0},
    {"all", 0, 0}, {"count_nonzero", 0, 0}, {"norm", 2, 0}, {"norm", 1, 0}, {"norm", 0, 0}, {"norm", 3, 0},
    {"norm", INFINITY, 0}, {"norm", -INFINITY, 0}, {"logsumexp", 0, 0},
};

static void check_reduction (bool large) {
  static const int floats[] = {AMPL_F32, AMPL_F64, AMPL_F16, AMPL_BF16};
  kase k = PICK(kases);
  int nd = (int)below(5), dtype = PICK(floats);
  int64_t shape[AMPL_RANK_MAX], list[AMPL_RANK_MAX], n = 0;
  void *memory;
  random_shape(nd, shape, large);
  uint32_t dims = 0;
  for (int d = 0; d < nd; d++)
    if (one_in(2)) dims |= 1u << d, list[n++] = d;
  if (n == 0) dims = (1u << nd) - 1;
  ampl_tensor *x = random_tensor(dtype, nd, shape, &memory);
  int out = strcmp(k.op, "count_nonzero") == 0 ? AMPL_I64 : k.op[0] == 'a' && k.op[1] != 'm' ? AMPL_BOOL : dtype;
  ampl_tensor *y = result(out, x, dims, one_in(2)), *again = result(out, x, dims, false);
  bool extreme = k.op[0] == 'a' && k.op[1] == 'm';
  if (!(extreme && x->numel == 0) && !(isinf(k.p) && x->numel == 0)) {
    ampl_value l = V_L(n, list), p[4] = {l, V_F(0), V_I(0), V_I(0)};
    if (strcmp(k.op, "norm") == 0) p[0] = V_F(k.p), p[1] = l;
    if (strcmp(k.op, "var") == 0 || strcmp(k.op, "std") == 0) p[1] = V_F(k.p);
    const ampl_args in = {NULL, &x, 1, p};
    ampl_kernel_fn run = kernel(ampl_cpu_reductions_kernels, k.op);
    ampl_set_threads(ctx, 1);
    if (run(ctx, &in, &y) != AMPL_OK) fault("%s: status", k.op);
    check_values(&k, x, y, dims);
    ampl_set_threads(ctx, 3);
    if (run(ctx, &in, &again) != AMPL_OK) fault("%s: status", k.op);
    if (memcmp(y->data, again->data, size_of(out) * (size_t)y->numel) != 0) fault("%s: bits differ with threads", k.op);
  }
  end_case();
  drop(x), drop(y), drop(again);
}

/* ------------------------------------------------------------------------------------------------ positions ------- */

/* Few different values, so that there are ties, and now and then a NaN */
static void coarse (ampl_tensor *x) {
  int64_t span = 1;
  for (int d = 0; d < x->ndim; d++) span += (x->shape[d] - 1) * x->strides[d];
  for (int64_t i = 0; i < span; i++) {
    double v = (double)below(5) / 4;
    put(x->dtype, x->data, i, v);
    if (one_in(60) && x->dtype == AMPL_F32) ((float *)x->data)[i] = NAN;
    if (one_in(60) && x->dtype == AMPL_F64) ((double *)x->data)[i] = NAN;
  }
}

static int by_value (const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return x < y ? -1 : x > y;
}

/* Position of the extreme or the median, by counting */
static int64_t position_of (const char *op, line l) {
  for (int64_t i = 0; i < l.n; i++)
    if (l.v[i] != l.v[i]) return i;
  int64_t at;
  if (strstr(op, "max")) return extreme_of(l, 1, false, &at), at;
  if (strstr(op, "min")) return extreme_of(l, -1, false, &at), at;
  double *sorted = malloc(sizeof(double) * (size_t)l.n);
  memcpy(sorted, l.v, sizeof(double) * (size_t)l.n);
  qsort(sorted, (size_t)l.n, sizeof(double), by_value);
  int64_t k = (l.n - 1) / 2, equal = 0;
  double v = sorted[k];
  while (k > 0 && sorted[k - 1] == v) k--, equal++;
  free(sorted);
  for (at = 0; l.v[at] != v || equal-- > 0; at++) {}
  return at;
}

static void check_position (bool large) {
  static const char *const ops[] = {"argmax", "argmin", "max_along", "min_along", "median_along"};
  static const int dtypes[] = {AMPL_F32, AMPL_F64, AMPL_F16, AMPL_BF16, AMPL_I64, AMPL_I32, AMPL_U8};
  const char *op = PICK(ops);
  int nd = 1 + (int)below(4), dtype = PICK(dtypes);
  int64_t shape[AMPL_RANK_MAX], dim = below(nd);
  void *memory;
  random_shape(nd, shape, large);
  for (int d = 0; d < nd; d++) shape[d] = shape[d] ? shape[d] : 1;
  bool flat = op[0] == 'a' && one_in(4);
  uint32_t dims = flat ? (1u << nd) - 1 : 1u << dim;
  ampl_tensor *x = random_tensor(dtype, nd, shape, &memory);
  coarse(x);
  ampl_tensor *out[2] = {result(op[0] == 'a' ? AMPL_I64 : dtype, x, dims, one_in(2)), NULL};
  out[1] = result(AMPL_I64, x, dims, out[0]->ndim == x->ndim);
  ampl_value p[2] = {V_I(flat ? AMPL_ABSENT : dim), V_I(0)};
  const ampl_args in = {NULL, &x, 1, p};
  ampl_set_threads(ctx, 1 + (int)below(3));
  if (kernel(ampl_cpu_extreme_kernels, op)(ctx, &in, out) != AMPL_OK) fault("%s: status", op);
  int64_t n = 1, gone = 1;
  for (int d = 0; d < nd; d++) *(dims >> d & 1 ? &gone : &n) *= x->shape[d];
  line l = {malloc(sizeof(double) * (size_t)gone), gone};
  for (int64_t o = 0; o < n; o++) {
    for (int64_t i = 0; i < gone; i++)
      l.v[i] = element(dtype, x->data, place(x, dims, false, o) + place(x, dims, true, i));
    int64_t want = position_of(op, l), got = ((int64_t *)out[op[0] == 'a' ? 0 : 1]->data)[o];
    if (got != want)
      fault("%s dtype %d: position %ld of %ld, expected %ld", op, dtype, (long)got, (long)gone, (long)want);
    if (op[0] != 'a' && !close_to(element(dtype, out[0]->data, o), l.v[want], 0)) fault("%s: value", op);
  }
  end_case();
  free(l.v), drop(x), drop(out[0]), drop(out[1]);
}

/* ------------------------------------------------------------------------------------------------ scans ----------- */

static void check_scan (bool large) {
  static const char *const ops[] = {"cumsum", "cumsum_reverse", "cumprod", "cumprod_exclusive", "recurrence"};
  static const int floats[] = {AMPL_F32, AMPL_F64, AMPL_F16, AMPL_BF16};
  int which = (int)below(5), nd = 1 + (int)below(4), dtype = PICK(floats);
  int64_t shape[AMPL_RANK_MAX], dim = below(nd);
  void *memory;
  bool reverse = which == 1 || (which >= 3 && one_in(2));
  random_shape(nd, shape, large);
  ampl_tensor *t[2] = {random_tensor(dtype, nd, shape, &memory), random_tensor(dtype, nd, shape, &memory)};
  ampl_tensor *y = result(dtype, t[0], 0, false);
  ampl_value p[2] = {V_I(dim), V_I(reverse)};
  const ampl_args in = {NULL, t, which == 4 ? 2 : 1, p};
  ampl_set_threads(ctx, 1 + (int)below(3));
  if (kernel(ampl_cpu_scan_kernels, ops[which])(ctx, &in, &y) != AMPL_OK) fault("%s: status", ops[which]);
  uint32_t dims = 1u << dim;
  int64_t n = shape[dim], lines = n ? t[0]->numel / n : 0;
  for (int64_t o = 0; o < lines; o++) {
    double acc = which == 2 || which == 3, b_before = 0, size = 0;
    for (int64_t k = 0; k < n; k++) {
      int64_t i = reverse ? n - 1 - k : k;
      double x = element(dtype, t[0]->data, place(t[0], dims, false, o) + i * t[0]->strides[dim]);
      double b = element(dtype, t[1]->data, place(t[1], dims, false, o) + i * t[1]->strides[dim]), want;
      if (which < 2) want = acc += x, size += fabs(x);
      else if (which == 2) want = acc *= x, size = 1e-30 + fabs(acc);
      else if (which == 3) want = acc, acc *= x, size = 1e-30 + fabs(want);
      else want = acc = x + (reverse ? b_before : b) * (k ? acc : 0), size = 1 + fabs(acc);
      b_before = b;
      double got = element(dtype, y->data, place(y, dims, false, o) + i * y->strides[dim]);
      if (!close_to(got, want, slack_of(dtype, want, size)))
        fault("%s dtype %d reverse %d: element %ld of %ld is %.9g, expected %.9g", ops[which], dtype, reverse, (long)i,
              (long)n, got, want);
    }
  }
  end_case();
  drop(t[0]), drop(t[1]), drop(y);
}

static void sweep (void) {
  if (ampl_ctx_new(NULL, &ctx) != AMPL_OK) return;
  for (int i = 0; i < 3000; i++) check_reduction(false);
  for (int i = 0; i < 300; i++) check_reduction(true);
  for (int i = 0; i < 1000; i++) check_position(false);
  for (int i = 0; i < 100; i++) check_position(true);
  for (int i = 0; i < 1000; i++) check_scan(false);
  for (int i = 0; i < 50; i++) check_scan(true);
  ampl_ctx_release(ctx);
}

int main (void) { return run_sweeps(sweep); }
