/* count.c: one_hot, bincount, histc. */
#include "move.h"
#include "op.h"
#include "stream.h"

#include <math.h>
#include <string.h>

static void integers_put(ampl_ctx *ctx, const ampl_tensor *x, int64_t *v) {
  if (v) ampl_cpu_scratch_put(ctx, v, (size_t)(x->numel + 1) * 8);
}

/* x's integers, row-major; scratch of numel + 1. */
static ampl_status integers_get(ampl_ctx *ctx, const ampl_tensor *x, int64_t **out) {
  int64_t dense[AMPL_RANK_MAX], step = 1;
  size_t size = ampl_dtype_size((ampl_dtype)x->dtype);
  *out = ampl_cpu_scratch_get(ctx, (size_t)(x->numel + 1) * 8);
  if (!*out) return ampl_error(ctx, AMPL_ENOMEM, "no memory for %lld integers", (long long)x->numel);
  for (int d = x->ndim - 1; d >= 0; d--) dense[d] = step, step *= x->shape[d];
  char *raw = (char *)*out + (8 - size) * (size_t)x->numel;     /* widened from behind their own places */
  ampl_status s = ampl_cpu_move(ctx, size, x->ndim, x->shape, raw, dense, x->data, x->strides);
  for (int64_t i = 0; s == AMPL_OK && i < x->numel && !ampl_cpu_stop_at(ctx, i, 1); i++)
    ampl_cpu_widen(AMPL_WORK_I64, *out + i, x->dtype, raw + i * (int64_t)size, 1, 1);
  if (s == AMPL_OK) s = ampl_cpu_poll(ctx);
  if (s != AMPL_OK) integers_put(ctx, x, *out);
  return s;
}

static ampl_status bad_class(ampl_ctx *ctx, int64_t v, int64_t at, int64_t classes, int64_t base) {
  return ampl_error(ctx, AMPL_EINDEX, "class %lld at position %lld; classes count from %lld to %lld", (long long)v,
                    (long long)ampl_shown(ctx, at), (long long)base, (long long)(classes - 1 + base));
}

static ampl_status fill_one_hot(ampl_ctx *ctx, const ampl_tensor *x, const int64_t *v, int64_t classes,
                                ampl_tensor **out) {
  int64_t base = ampl_index_base(ctx), shape[AMPL_RANK_MAX];
  if (classes == -1) {
    if (x->numel == 0) return ampl_error(ctx, AMPL_EVALUE, "num_classes is needed: x is empty");
    for (int64_t i = 0; i < x->numel; i++) classes = v[i] - base >= classes ? v[i] - base + 1 : classes;
  }
  for (int64_t i = 0; i < x->numel; i++) {
    if (ampl_cpu_stop_at(ctx, i, 1)) return ampl_cpu_poll(ctx);
    if (v[i] < base || v[i] - base >= classes) return bad_class(ctx, v[i], i, classes, base);
  }
  memcpy(shape, x->shape, sizeof shape);
  shape[x->ndim] = classes;
  AMPL_TRY(ampl_cpu_new(ctx, x, AMPL_I64, x->ndim + 1, shape, out));
  int64_t *y = (*out)->data;
  AMPL_TRY(ampl_cpu_zero(ctx, y, (size_t)(*out)->numel * sizeof *y));
  for (int64_t i = 0; i < x->numel && !ampl_cpu_stop_at(ctx, i, 1); i++) y[i * classes + v[i] - base] = 1;
  return ampl_cpu_poll(ctx);
}

static ampl_status one_hot(ampl_ctx *ctx, const ampl_args *in, ampl_tensor **out) {
  int64_t *v;
  AMPL_TRY(integers_get(ctx, in->t[0], &v));
  ampl_status status = fill_one_hot(ctx, in->t[0], v, in->p[0].i, &out[0]);
  integers_put(ctx, in->t[0], v);
  return status;
}

/* Sums in doubles, rounded once. */
static ampl_status sum_weights(ampl_ctx *ctx, const ampl_tensor *weights, const int64_t *v, int64_t base,
                               ampl_tensor *y) {
  size_t bytes = (size_t)(y->numel + 1) * sizeof(double);
  double *sum = ampl_cpu_scratch_get(ctx, bytes), w;
  if (!sum) return ampl_error(ctx, AMPL_ENOMEM, "no memory for %zu bytes of sums", bytes);
  memset(sum, 0, bytes);
  for (int64_t i = 0; i < weights->numel && !ampl_cpu_stop_at(ctx, i, 1); i++) {
    ampl_cpu_widen(AMPL_WORK_F64, &w, weights->dtype, ampl_cpu_at(weights, i * weights->strides[0]), 1, 1);
    sum[v[i] - base] += w;
  }
  ampl_cpu_narrow(AMPL_WORK_F64, sum, y->dtype, y->data, 1, y->numel);
  ampl_cpu_scratch_put(ctx, sum, bytes);
  return ampl_cpu_poll(ctx);
}

static ampl_status fill_bincount(ampl_ctx *ctx, const ampl_args *in, const int64_t *v, ampl_tensor **out) {
  const ampl_tensor *x = in->t[0], *weights = in->t[1];
  int64_t base = ampl_index_base(ctx), n = in->p[0].i;
  for (int64_t i = 0; i < x->numel; i++) {
    if (ampl_cpu_stop_at(ctx, i, 1)) return ampl_cpu_poll(ctx);
    if (v[i] < base)
      return ampl_error(ctx, AMPL_EINDEX, "value %lld at position %lld; values count from %lld", (long long)v[i],
                        (long long)ampl_shown(ctx, i), (long long)base);
    if (v[i] - base >= n) n = v[i] - base + 1;
  }
  bool whole = !weights || x->numel == 0;
  AMPL_TRY(ampl_cpu_new(ctx, x, whole ? AMPL_I64 : ampl_is_float(weights) ? weights->dtype : AMPL_F64, 1, &n, out));
  if (!whole) return sum_weights(ctx, weights, v, base, *out);
  int64_t *y = (*out)->data;
  AMPL_TRY(ampl_cpu_zero(ctx, y, (size_t)n * sizeof *y));
  for (int64_t i = 0; i < x->numel && !ampl_cpu_stop_at(ctx, i, 1); i++) y[v[i] - base]++;
  return ampl_cpu_poll(ctx);
}

static ampl_status bincount(ampl_ctx *ctx, const ampl_args *in, ampl_tensor **out) {
  int64_t *v;
  AMPL_TRY(integers_get(ctx, in->t[0], &v));
  ampl_status status = fill_bincount(ctx, in, v, &out[0]);
  integers_put(ctx, in->t[0], v);
  return status;
}

/* Elements read at a time. */
enum { BLOCK = 512 };

static ampl_status histc(ampl_ctx *ctx, const ampl_args *in, ampl_tensor **out) {
  const ampl_tensor *x = in->t[0];
  ampl_tensor *y = out[0];
  double min = in->p[1].f, max = in->p[2].f, buf[BLOCK];
  int64_t bins = in->p[0].i;
  ampl_cpu_stream s;
  size_t bytes = (size_t)bins * sizeof(int64_t);
  ampl_cpu_streams(1, &x, x->ndim, x->shape, true, &s);
  if (min == max && x->numel > 0) {
    min = INFINITY, max = -INFINITY;
    for (int64_t i = 0; i < x->numel; i += BLOCK) {
      int64_t n = x->numel - i < BLOCK ? x->numel - i : BLOCK;
      if (ampl_cpu_stop_at(ctx, i, n)) return ampl_cpu_poll(ctx);
      const double *v = ampl_cpu_load(&s, AMPL_WORK_F64, 0, i, n, buf);
      for (int64_t k = 0; k < n; k++)
        min = v[k] < min || v[k] != v[k] ? v[k] : min, max = v[k] > max || v[k] != v[k] ? v[k] : max;
    }
    if (!isfinite(min) || !isfinite(max))
      return ampl_error(ctx, AMPL_EVALUE, "x has values that are not finite: give min and max");
  }
  if (min == max) min -= 1, max += 1;
  int64_t *count = ampl_cpu_scratch_get(ctx, bytes);
  if (!count) return ampl_error(ctx, AMPL_ENOMEM, "no memory for %zu bytes of counts", bytes);
  memset(count, 0, bytes);
  for (int64_t i = 0; i < x->numel; i += BLOCK) {
    int64_t n = x->numel - i < BLOCK ? x->numel - i : BLOCK;
    if (ampl_cpu_stop_at(ctx, i, n)) break;
    const double *v = ampl_cpu_load(&s, AMPL_WORK_F64, 0, i, n, buf);
    for (int64_t k = 0; k < n; k++) {
      if (!(v[k] >= min && v[k] <= max)) continue;
      int64_t bin = (int64_t)((v[k] - min) * (double)bins / (max - min));
      count[bin < bins ? bin : bins - 1]++;
    }
  }
  ampl_cpu_narrow(AMPL_WORK_I64, count, y->dtype, y->data, 1, bins);
  ampl_cpu_scratch_put(ctx, count, bytes);
  return ampl_cpu_poll(ctx);
}

const ampl_kernel ampl_cpu_count_kernels[] = {{"one_hot", AMPL_DTYPE_NONE, one_hot},
                                              {"bincount", AMPL_DTYPE_NONE, bincount},
                                              {"histc", AMPL_DTYPE_NONE, histc},
                                              {NULL, 0, NULL}};
