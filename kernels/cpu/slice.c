/* slice.c: the gradient of a part of a tensor, put where the part was. */
#include "move.h"
#include "op.h"
#include "stream.h"

#include <string.h>

/* Whether two elements of the view may be one of the base: sorted by stride, each step must pass all smaller ones. */
static bool may_overlap(int nd, const int64_t *shape, const int64_t *stride) {
  int64_t reach = 0;                    /* of the dimensions taken so far, the smallest strides first */
  unsigned taken = 0;
  for (int n = 0; n < nd; n++) {
    int d = -1;
    for (int k = 0; k < nd; k++)
      if (!(taken >> k & 1) && (d < 0 || stride[k] < stride[d])) d = k;
    taken |= 1u << d;
    if (shape[d] == 1) continue;
    if (stride[d] <= reach) return true;
    reach += (shape[d] - 1) * stride[d];
  }
  return false;
}

/* dx += dy through the view, in doubles. */
static ampl_status add_windows(ampl_ctx *ctx, ampl_tensor *dx, const ampl_tensor *dy, const int64_t *stride,
                               int64_t offset) {
  size_t bytes = (size_t)(dx->numel + dy->shape[dy->ndim - 1]) * sizeof(double);
  double *sum = ampl_cpu_scratch_get(ctx, bytes), *row = sum ? sum + dx->numel : NULL;
  int last = dy->ndim - 1;
  int64_t n = dy->shape[last];
  if (!sum) return ampl_error(ctx, AMPL_ENOMEM, "no memory for %zu bytes of sums", bytes);
  memset(sum, 0, (size_t)dx->numel * sizeof *sum);
  for (int64_t r = 0; r < dy->numel / n && !ampl_cpu_stop_at(ctx, r * n, n); r++) {
    int64_t left = r, to = offset, from = 0;
    for (int d = last - 1; d >= 0; d--) {
      int64_t i = left % dy->shape[d];
      left /= dy->shape[d];
      to += i * stride[d], from += i * dy->strides[d];
    }
    ampl_cpu_widen(AMPL_WORK_F64, row, dy->dtype, ampl_cpu_at(dy, from), dy->strides[last], n);
    for (int64_t i = 0; i < n; i++) sum[to + i * stride[last]] += row[i];
  }
  ampl_cpu_narrow(AMPL_WORK_F64, sum, dx->dtype, dx->data, 1, dx->numel);
  ampl_cpu_scratch_put(ctx, sum, bytes);
  return ampl_cpu_poll(ctx);
}

static ampl_status view_backward(ampl_ctx *ctx, const ampl_args *in, ampl_tensor **out) {
  const ampl_tensor *dy = in->t[0];
  ampl_tensor *dx = out[0];
  const int64_t *stride = in->p[1].l.v, offset = in->p[2].i;
  size_t size = ampl_dtype_size((ampl_dtype)dx->dtype);
  if (dy->numel > 0 && may_overlap(dy->ndim, dy->shape, stride)) return add_windows(ctx, dx, dy, stride, offset);
  if (dy->numel < dx->numel) AMPL_TRY(ampl_cpu_zero(ctx, dx->data, (size_t)dx->numel * size));
  return ampl_cpu_move(ctx, size, dy->ndim, dy->shape, ampl_cpu_at(dx, offset), stride, dy->data, dy->strides);
}

const ampl_kernel ampl_cpu_slice_kernels[] = {{"view_backward", AMPL_F32, view_backward},
                                              {"view_backward", AMPL_F64, view_backward},
                                              {"view_backward", AMPL_F16, view_backward},
                                              {"view_backward", AMPL_BF16, view_backward},
                                              {NULL, 0, NULL}};
