/* embedding.c: rows of a table, and the gradient that goes to them. */
#include "group.h"
#include "move.h"
#include "op.h"

static ampl_status embedding(ampl_ctx *ctx, const ampl_args *in, ampl_tensor **out) {
  const ampl_tensor *input = in->t[0], *weight = in->t[1];
  int64_t *p;
  AMPL_TRY(ampl_cpu_positions_get(ctx, input, weight->shape[0], "row", &p));
  ampl_cpu_axis axis[] = {{input->numel, weight->strides[0], p}, {weight->shape[1], weight->strides[1], NULL}};
  const ampl_status s =
      ampl_cpu_pick(ctx, ampl_dtype_size((ampl_dtype)weight->dtype), 2, axis, out[0]->data, weight->data, NULL);
  ampl_cpu_positions_put(ctx, input, p);
  return s;
}

/* The positions in `input` sorted by row. */
static ampl_status uses_get(ampl_ctx *ctx, const ampl_tensor *input, int64_t rows, ampl_cpu_groups *g) {
  int64_t *p;
  AMPL_TRY(ampl_cpu_positions_get(ctx, input, rows, "row", &p));
  ampl_status status = ampl_cpu_groups_get(ctx, p, input->numel, rows, g);
  ampl_cpu_positions_put(ctx, input, p);
  return status;
}

static ampl_status embedding_backward(ampl_ctx *ctx, const ampl_args *in, ampl_tensor **out) {
  const ampl_tensor *dy = in->t[0], *input = in->t[1];
  ampl_tensor *dw = out[0];
  int last = dy->ndim - 1;
  int64_t rows = in->p[0].i, padding = in->p[1].i;
  ampl_cpu_groups g;
  AMPL_TRY(uses_get(ctx, input, rows, &g));
  ampl_cpu_adding a = {
      .dtype = dw->dtype,
      .dst = dw->data,
      .src = dy->data,
      .alpha = 1,
      .fresh = true,
      .mean = in->p[2].i,
      .skip = padding == AMPL_ABSENT ? -1 : padding,
      .dest = ampl_cpu_stream_1d(rows, dw->strides[0]),
      .part = {ampl_cpu_stream_1d(dw->shape[1], 1), ampl_cpu_stream_1d(dw->shape[1], dy->strides[last])}};
  ampl_cpu_streams_from(1, (const int64_t *const[]){dy->strides}, last, dy->shape, false, &a.source);
  const ampl_status s = ampl_cpu_add_groups(ctx, &a, &g);
  ampl_cpu_groups_put(ctx, &g);
  return s;
}

static ampl_status embedding_factor(ampl_ctx *ctx, const ampl_args *in, ampl_tensor **out) {
  int64_t rows = out[0]->shape[0];
  ampl_cpu_groups g;
  AMPL_TRY(uses_get(ctx, in->t[1], rows, &g));
  for (int64_t r = 0; r < rows && !ampl_cpu_stop_at(ctx, r, 1); r++) {
    int64_t uses = g.start[r + 1] - g.start[r];
    double factor = r == in->p[0].i ? 0 : in->p[1].i && uses > 0 ? 1 / (double)uses : 1;
    ampl_cpu_narrow(AMPL_WORK_F64, &factor, out[0]->dtype, ampl_cpu_at(out[0], r), 1, 1);
  }
  ampl_cpu_groups_put(ctx, &g);
  return ampl_cpu_poll(ctx);
}

const ampl_kernel ampl_cpu_embedding_kernels[] = {{"embedding", AMPL_DTYPE_NONE, embedding},
                                                  {"embedding_backward", AMPL_DTYPE_NONE, embedding_backward},
                                                  {"embedding_factor", AMPL_DTYPE_NONE, embedding_factor},
                                                  {NULL, 0, NULL}};
