/* overhead_bench.c: what one small op costs from C: an f32 add of 16 elements, with and without a graph node. */
#include <ampl.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { BATCHES = 41, INNER = 5000 };

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static int ascending(const void *a, const void *b) {
  double d = *(const double *)a - *(const double *)b;
  return d < 0 ? -1 : d > 0;
}

/* The median over batches, in nanoseconds; negative when an op failed. */
static double add_ns(ampl_ctx *ctx, const ampl_op *add, ampl_tensor *x, ampl_tensor *y) {
  double batch[BATCHES];
  for (int i = 0; i < BATCHES; i++) {
    double t = now();
    for (int k = 0; k < INNER; k++) {
      ampl_tensor *z;
      if (ampl_run_op(ctx, add, (ampl_value[]){{.t = x}, {.t = y}}, 2, &z, 1) != AMPL_OK) return -1;
      ampl_tensor_release(z);
    }
    batch[i] = (now() - t) / INNER * 1e9;
  }
  qsort(batch, BATCHES, sizeof *batch, ascending);
  return batch[BATCHES / 2];
}

int main(void) {
  ampl_ctx *ctx;
  ampl_tensor *x, *y;
  const int64_t shape[] = {16};
  if (ampl_ctx_new(NULL, &ctx) != AMPL_OK || ampl_randn(ctx, AMPL_F32, 1, shape, &x) != AMPL_OK ||
      ampl_randn(ctx, AMPL_F32, 1, shape, &y) != AMPL_OK)
    return 1;
  const ampl_op *add = ampl_op_find("add");
  ampl_set_threads(ctx, 1);
  double plain = add_ns(ctx, add, x, y);
  if (ampl_set_requires_grad(x, true) != AMPL_OK) return 1;
  double graph = add_ns(ctx, add, x, y);
  printf("add of 16 f32 elements from C: %.0f ns, %.0f ns with a graph node\n", plain, graph);
  ampl_tensor_release(x);
  ampl_tensor_release(y);
  ampl_ctx_release(ctx);
  return plain < 0 || graph < 0;
}
