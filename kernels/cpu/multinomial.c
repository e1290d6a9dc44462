/* multinomial.c: draws by weights.  With replacement: where a uniform number falls among the sums of weights.  Without:
 * weight / exponential number is largest for class i with probability in proportion to weight i, the next largest for
 * the next draw, and so on. */
#include "move.h"
#include "op.h"
#include "sort.h"

#include <math.h>

/* A row of weights as doubles, checked. */
static ampl_status read_row(ampl_ctx *ctx, const ampl_tensor *x, int64_t row, int64_t n, int64_t least,
                            double *weight) {
  int64_t used = 0;
  double sum = 0;
  ampl_cpu_widen(AMPL_WORK_F64, weight, x->dtype, ampl_cpu_at(x, x->ndim == 2 ? row * x->strides[0] : 0),
                 x->strides[x->ndim - 1], n);
  for (int64_t i = 0; i < n; i++) {
    if (ampl_cpu_stop_at(ctx, i, 1)) return ampl_cpu_poll(ctx);
    if (!(weight[i] >= 0) || isinf(weight[i]))
      return ampl_error(ctx, AMPL_EVALUE, "weight %g of class %lld in row %lld; weights are finite and not negative",
                        weight[i], (long long)ampl_shown(ctx, i), (long long)ampl_shown(ctx, row));
    used += weight[i] > 0;
    sum += weight[i];
  }
  if (used < least || isinf(sum))
    return ampl_error(ctx, AMPL_EVALUE, "row %lld has %lld classes with a weight above 0, %lld are needed",
                      (long long)ampl_shown(ctx, row), (long long)used, (long long)least);
  return AMPL_OK;
}

/* The first class whose sum of weights lies above v. */
static int64_t find(const double *sum, int64_t n, double v) {
  int64_t low = 0, high = n - 1;
  while (low < high) {
    int64_t middle = low + (high - low) / 2;
    if (sum[middle] > v) high = middle;
    else low = middle + 1;
  }
  return low;
}

static void with_replacement(ampl_ctx *ctx, double *weight, int64_t n, const double *u, int64_t k, int64_t *out) {
  int64_t last = 0;                     /* rounding must not carry a draw beyond the last class that can be */
  for (int64_t i = 0; i < n; i++) {
    if (weight[i] > 0) last = i;
    if (i > 0) weight[i] += weight[i - 1];
  }
  for (int64_t j = 0; j < k && !ampl_cpu_stop_at(ctx, j, 1); j++) out[j] = find(weight, last + 1, u[j] * weight[last]);
}

static void without(ampl_ctx *ctx, double *weight, int64_t n, const double *u, int64_t k, int64_t *out, void *room) {
  for (int64_t i = 0; i < n && !ampl_cpu_stop_at(ctx, i, 1); i++) weight[i] /= -log(u[i] + 0x1p-60);    /* u may be 0 */
  if (!ampl_cpu_select(ctx, AMPL_F64, (const char *)weight, 1, n, k, true, out, room)) return;
}

static ampl_status draw(ampl_ctx *ctx, const ampl_args *in, ampl_tensor **out) {
  const ampl_tensor *x = in->t[0], *u = in->t[1];
  int64_t n = x->shape[x->ndim - 1], rows = x->ndim == 2 ? x->shape[0] : 1, k = in->p[0].i, base = ampl_index_base(ctx);
  bool back = in->p[1].i;
  size_t bytes = (size_t)n * sizeof(double) + ampl_cpu_sort_room(n);
  double *weight = ampl_cpu_scratch_get(ctx, bytes);
  ampl_status status = AMPL_OK;
  if (!weight) return ampl_error(ctx, AMPL_ENOMEM, "no memory for %zu bytes of weights", bytes);
  for (int64_t r = 0; r < rows && status == AMPL_OK; r++) {
    int64_t *y = (int64_t *)out[0]->data + r * k;
    const double *ur = (const double *)u->data + r * u->shape[1];
    status = read_row(ctx, x, r, n, back ? 1 : k, weight);
    if (status != AMPL_OK) break;
    if (back) with_replacement(ctx, weight, n, ur, k, y);
    else without(ctx, weight, n, ur, k, y, weight + n);
    status = ampl_cpu_poll(ctx);
    for (int64_t j = 0; status == AMPL_OK && j < k; j++) y[j] += base;
  }
  ampl_cpu_scratch_put(ctx, weight, bytes);
  return status;
}

const ampl_kernel ampl_cpu_multinomial_kernels[] = {{"multinomial_draw", AMPL_DTYPE_NONE, draw}, {NULL, 0, NULL}};
