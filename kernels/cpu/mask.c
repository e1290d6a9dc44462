/* mask.c: the elements a mask picks, in row-major order. */
#include "move.h"
#include "op.h"
#include "stream.h"

#include <string.h>

/* Runs of the mask's stream: is element `pos` of it true? */
static bool is_true(const ampl_cpu_stream *s, int64_t pos) { return s->data[ampl_cpu_offset(s, pos)] != 0; }

static ampl_status broadcast(ampl_ctx *ctx, ampl_meta *m, const ampl_tensor *a, const ampl_tensor *b) {
  AMPL_TRY(ampl_meta_shape(ctx, m, a->ndim, a->shape));
  return ampl_meta_broadcast(ctx, m, b->ndim, b->shape);
}

static ampl_status masked_select(ampl_ctx *ctx, const ampl_args *in, ampl_tensor **out) {
  const ampl_tensor *both[2] = {in->t[1], in->t[0]};
  ampl_cpu_stream s[2];
  ampl_meta m;
  size_t size = ampl_dtype_size((ampl_dtype)both[1]->dtype);
  int64_t n = 0;
  AMPL_TRY(broadcast(ctx, &m, both[1], both[0]));
  ampl_cpu_streams(2, both, m.ndim, m.shape, false, s);
  for (int64_t i = 0; i < s[0].n; i++) n += is_true(&s[0], i);
  AMPL_TRY(ampl_cpu_new(ctx, both[1], both[1]->dtype, 1, &n, &out[0]));
  char *y = out[0]->data;
  for (int64_t i = 0; i < s[0].n; i++) {
    if (!is_true(&s[0], i)) continue;
    memcpy(y, s[1].data + ampl_cpu_offset(&s[1], i) * (int64_t)size, size);
    y += size;
  }
  return AMPL_OK;
}

static ampl_status masked_select_backward(ampl_ctx *ctx, const ampl_args *in, ampl_tensor **out) {
  const ampl_tensor *dy = in->t[0], *mask = in->t[1];
  ampl_tensor *dx = out[0];
  ampl_cpu_stream s;
  size_t size = ampl_dtype_size((ampl_dtype)dx->dtype);
  int64_t used = 0, step = dy->strides[0] * (int64_t)size;
  (void)ctx;
  ampl_cpu_streams(1, &mask, dx->ndim, dx->shape, false, &s);
  memset(dx->data, 0, (size_t)dx->numel * size);
  for (int64_t i = 0; i < dx->numel && used < dy->numel; i++)
    if (is_true(&s, i)) memcpy(ampl_cpu_at(dx, i), (const char *)dy->data + used++ * step, size);
  return AMPL_OK;
}

/* Whether each of n elements is not 0. */
static void flags(const ampl_tensor *x, const char *data, int64_t step, int64_t n, uint8_t *flag) {
  double f[256];
  int64_t whole[256];
  bool is_float = ampl_dtype_is_float((ampl_dtype)x->dtype);
  if (is_float) ampl_cpu_widen(AMPL_WORK_F64, f, x->dtype, data, step, n);
  else ampl_cpu_widen(AMPL_WORK_I64, whole, x->dtype, data, step, n);
  for (int64_t i = 0; i < n; i++) flag[i] = is_float ? f[i] != 0 : whole[i] != 0;
}

static ampl_status nonzero(ampl_ctx *ctx, const ampl_args *in, ampl_tensor **out) {
  const ampl_tensor *x = in->t[0];
  ampl_cpu_stream s;
  size_t bytes = (size_t)x->numel + 1, size = ampl_dtype_size((ampl_dtype)x->dtype);
  uint8_t *flag = ampl_cpu_scratch_get(ctx, bytes);
  int64_t found = 0, base = ampl_index_base(ctx);
  if (!flag) return ampl_error(ctx, AMPL_ENOMEM, "no memory for %zu bytes of flags", bytes);
  ampl_cpu_streams(1, &x, x->ndim, x->shape, false, &s);
  for (int64_t i = 0, run; i < x->numel; i += run) {
    int64_t length = s.shape[s.nd - 1];
    run = length - i % length < 256 ? length - i % length : 256;
    flags(x, s.data + ampl_cpu_offset(&s, i) * (int64_t)size, s.stride[s.nd - 1], run, flag + i);
    for (int64_t k = 0; k < run; k++) found += flag[i + k];
  }
  ampl_status status = ampl_cpu_new(ctx, x, AMPL_I64, 2, (int64_t[]){found, x->ndim}, &out[0]);
  int64_t *p = status == AMPL_OK ? out[0]->data : NULL;
  for (int64_t i = 0; p && i < x->numel; i++) {
    if (!flag[i]) continue;
    int64_t left = i;
    for (int d = x->ndim - 1; d >= 0; d--) {
      p[d] = left % x->shape[d] + base;
      left /= x->shape[d];
    }
    p += x->ndim;
  }
  ampl_cpu_scratch_put(ctx, flag, bytes);
  return status;
}

const ampl_kernel ampl_cpu_mask_kernels[] = {{"masked_select", AMPL_DTYPE_NONE, masked_select},
                                             {"masked_select_backward", AMPL_DTYPE_NONE, masked_select_backward},
                                             {"nonzero", AMPL_DTYPE_NONE, nonzero},
                                             {NULL, 0, NULL}};
