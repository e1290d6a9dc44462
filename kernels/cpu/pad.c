/* pad.c: borders, and their gradient: every position of a padded dimension comes from one of x or from nowhere. */
#include "move.h"
#include "op.h"
#include "stream.h"

#include <math.h>
#include <string.h>

enum { CONSTANT, REFLECT, REPLICATE, CIRCULAR };        /* the order of the record's `mode` */

static void border_map(int mode, int64_t n, int64_t before, int64_t behind, int64_t *map) {
  int64_t cut = before < 0 ? -before : 0, inside = n - cut - (behind < 0 ? -behind : 0);
  for (int64_t i = 0; i < n + before + behind; i++) {
    int64_t p = i - before;
    if (mode == CONSTANT) map[i] = p < 0 || p >= n ? -1 : p;
    else if (mode == REFLECT) map[i] = p < 0 ? -p : p >= n ? 2 * (n - 1) - p : p;
    else if (mode == REPLICATE) map[i] = p < 0 ? 0 : p >= n ? n - 1 : p;
    else map[i] = cut + ((p - cut) % inside + inside) % inside;
  }
}

/* The maps of the padded dimensions of a tensor of rank nd and sizes n, in one block; map[d] is NULL where nothing is
 * added or cut. */
static ampl_status maps_get(ampl_ctx *ctx, int nd, const int64_t *n, ampl_ints pad, int mode, const int64_t **map,
                            int64_t **block, size_t *bytes) {
  *bytes = 0;
  for (int k = 0; k < pad.n / 2; k++)
    *bytes += (size_t)(n[nd - 1 - k] + pad.v[2 * k] + pad.v[2 * k + 1]) * sizeof(int64_t);
  for (int d = 0; d < nd; d++) map[d] = NULL;
  int64_t *at = *block = ampl_cpu_scratch_get(ctx, *bytes);
  if (!at) return ampl_error(ctx, AMPL_ENOMEM, "no memory for %zu bytes of positions", *bytes);
  for (int k = 0; k < pad.n / 2; k++) {
    int d = nd - 1 - k;
    int64_t before = pad.v[2 * k], behind = pad.v[2 * k + 1];
    if (before == 0 && behind == 0) continue;
    border_map(mode, n[d], before, behind, at);
    map[d] = at;
    at += n[d] + before + behind;
  }
  return AMPL_OK;
}

static ampl_status pad(ampl_ctx *ctx, const ampl_args *in, ampl_tensor **out) {
  const ampl_tensor *x = in->t[0];
  ampl_tensor *y = out[0];
  const int64_t *map[AMPL_RANK_MAX];
  ampl_cpu_axis axis[AMPL_RANK_MAX];
  int64_t *block;
  uint64_t fill = 0;
  size_t bytes;
  if (y->numel == 0) return AMPL_OK;
  double v = in->p[2].f;
  ampl_cpu_narrow(AMPL_WORK_F64, &v, y->dtype, &fill, 1, 1);
  AMPL_TRY(maps_get(ctx, x->ndim, x->shape, in->p[0].l, (int)in->p[1].i, map, &block, &bytes));
  for (int d = 0; d < x->ndim; d++) axis[d] = (ampl_cpu_axis){y->shape[d], x->strides[d], map[d]};
  const ampl_status s =
      ampl_cpu_pick(ctx, ampl_dtype_size((ampl_dtype)y->dtype), x->ndim, axis, y->data, x->data, &fill);
  ampl_cpu_scratch_put(ctx, block, bytes);
  return s;
}

/* to (before, n, behind) += from (before, wide, behind), by the map from wide to n positions; doubles. */
static void add_dimension(ampl_ctx *ctx, double *to, const double *from, int64_t before, int64_t wide, int64_t n,
                          int64_t behind, const int64_t *map) {
  memset(to, 0, (size_t)(before * n * behind) * sizeof *to);
  for (int64_t b = 0; b < before; b++)
    for (int64_t i = 0; i < wide; i++) {
      if (ampl_cpu_stop_at(ctx, (b * wide + i) * behind, behind)) return;
      const double *s = from + (b * wide + i) * behind;
      double *d = to + (b * n + map[i]) * behind;
      for (int64_t j = 0; j < behind; j++) d[j] += s[j];
    }
}

/* One padded dimension after the other is added up, in doubles, and rounded once. */
static ampl_status pad_backward(ampl_ctx *ctx, const ampl_args *in, ampl_tensor **out) {
  const ampl_tensor *dy = in->t[0];     /* row-major */
  ampl_tensor *dx = out[0];
  const int64_t *map[AMPL_RANK_MAX];
  int64_t *block, shape[AMPL_RANK_MAX], n = dy->numel, most = dy->numel;
  size_t bytes;
  if (dx->numel == 0) return AMPL_OK;
  if (dy->numel == 0) {
    return ampl_cpu_zero(ctx, dx->data, (size_t)dx->numel * ampl_dtype_size((ampl_dtype)dx->dtype));
  }
  AMPL_TRY(maps_get(ctx, dx->ndim, dx->shape, in->p[1].l, (int)in->p[2].i, map, &block, &bytes));
  for (int d = 0; d < dx->ndim; d++) {          /* the largest of the shapes on the way */
    n = n / dy->shape[d] * dx->shape[d];
    if (n > most) most = n;
  }
  size_t work = 2 * (size_t)most * sizeof(double);
  double *a = ampl_cpu_scratch_get(ctx, work), *b = a ? a + most : NULL;
  if (!a) {
    ampl_cpu_scratch_put(ctx, block, bytes);
    return ampl_error(ctx, AMPL_ENOMEM, "no memory for %zu bytes of sums", work);
  }
  ampl_cpu_widen(AMPL_WORK_F64, a, dy->dtype, dy->data, 1, dy->numel);
  memcpy(shape, dy->shape, sizeof shape);
  for (int d = 0; d < dx->ndim; d++) {
    int64_t before = 1, behind = 1;
    if (!map[d]) continue;
    for (int k = 0; k < d; k++) before *= shape[k];
    for (int k = d + 1; k < dx->ndim; k++) behind *= shape[k];
    add_dimension(ctx, b, a, before, shape[d], dx->shape[d], behind, map[d]);
    shape[d] = dx->shape[d];
    double *t = a;
    a = b, b = t;
  }
  ampl_cpu_narrow(AMPL_WORK_F64, a, dx->dtype, dx->data, 1, dx->numel);
  ampl_cpu_scratch_put(ctx, a < b ? a : b, work);
  ampl_cpu_scratch_put(ctx, block, bytes);
  return ampl_cpu_poll(ctx);
}

const ampl_kernel ampl_cpu_pad_kernels[] = {{"pad", AMPL_DTYPE_NONE, pad},
                                            {"pad_backward", AMPL_F32, pad_backward},
                                            {"pad_backward", AMPL_F64, pad_backward},
                                            {"pad_backward", AMPL_F16, pad_backward},
                                            {"pad_backward", AMPL_BF16, pad_backward},
                                            {NULL, 0, NULL}};
