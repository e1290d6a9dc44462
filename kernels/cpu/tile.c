/* tile.c: repeated tensors, and the positions that repeat_interleave takes. */
#include "move.h"
#include "op.h"
#include "stream.h"

/* Every dimension as two axes: the repetitions, which stay where they are, and its positions. */
static ampl_status tile(ampl_ctx *ctx, const ampl_args *in, ampl_tensor **out) {
  const ampl_tensor *x = in->t[0];
  ampl_tensor *y = out[0];
  ampl_cpu_axis axis[AMPL_CPU_AXES_MAX];
  if (y->numel == 0) return AMPL_OK;
  for (int d = 0; d < y->ndim; d++) {
    int of_x = d - (y->ndim - x->ndim);
    int64_t size = of_x < 0 ? 1 : x->shape[of_x];
    axis[2 * d] = (ampl_cpu_axis){y->shape[d] / size, 0, NULL};
    axis[2 * d + 1] = (ampl_cpu_axis){size, of_x < 0 ? 0 : x->strides[of_x], NULL};
  }
  return ampl_cpu_pick(ctx, ampl_dtype_size((ampl_dtype)y->dtype), 2 * y->ndim, axis, y->data, x->data, NULL);
}

static ampl_status repeat_positions(ampl_ctx *ctx, const ampl_args *in, ampl_tensor **out) {
  const ampl_tensor *repeats = in->t[0];
  int64_t n = repeats->numel, total = 0, base = ampl_index_base(ctx), r;
  for (int64_t i = 0; i < n; i++) {
    if (ampl_cpu_stop_at(ctx, i, 1)) return ampl_cpu_poll(ctx);
    ampl_cpu_widen(AMPL_WORK_I64, &r, repeats->dtype, ampl_cpu_at(repeats, i * repeats->strides[0]), 1, 1);
    if (r < 0 || __builtin_add_overflow(total, r, &total))
      return ampl_error(ctx, AMPL_EVALUE, "%lld repetitions of position %lld", (long long)r,
                        (long long)ampl_shown(ctx, i));
  }
  AMPL_TRY(ampl_cpu_new(ctx, repeats, AMPL_I64, 1, &total, &out[0]));
  int64_t *p = out[0]->data;
  for (int64_t i = 0; i < n && !ampl_cpu_stop_at(ctx, i, 1); i++) {
    ampl_cpu_widen(AMPL_WORK_I64, &r, repeats->dtype, ampl_cpu_at(repeats, i * repeats->strides[0]), 1, 1);
    while (r-- > 0)
      if (ampl_cpu_stop_at(ctx, r, 1)) break;
      else *p++ = i + base;
  }
  return ampl_cpu_poll(ctx);
}

const ampl_kernel ampl_cpu_tile_kernels[] = {
    {"tile", AMPL_DTYPE_NONE, tile}, {"repeat_positions", AMPL_DTYPE_NONE, repeat_positions}, {NULL, 0, NULL}};
