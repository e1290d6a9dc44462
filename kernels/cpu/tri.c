/* tri.c: triangles and diagonals. */
#include "move.h"
#include "op.h"
#include "stream.h"

#include <string.h>

typedef struct triangle {
  const char *x;
  char       *y;
  size_t      size;
  int64_t     rows, columns, diagonal, each, n;
  bool        lower;
} triangle;

static void triangle_job(void *ud, int64_t job, int thread) {
  const triangle *w = ud;
  int64_t end = (job + 1) * w->each < w->n ? (job + 1) * w->each : w->n;
  (void)thread;
  for (int64_t r = job * w->each; r < end; r++) {
    /* columns below `edge` belong to the lower triangle, the others to the upper one */
    int64_t edge = r % w->rows + w->diagonal + (w->lower ? 1 : 0);
    edge = edge < 0 ? 0 : edge > w->columns ? w->columns : edge;
    size_t row = (size_t)w->columns * w->size, cut = (size_t)edge * w->size;
    char *y = w->y + (size_t)r * row;
    const char *x = w->x + (size_t)r * row;
    if (w->lower) memcpy(y, x, cut), memset(y + cut, 0, row - cut);
    else memset(y, 0, cut), memcpy(y + cut, x + cut, row - cut);
  }
}

static ampl_status tri(ampl_ctx *ctx, const ampl_args *in, ampl_tensor **out, bool lower) {
  const ampl_tensor *x = in->t[0];      /* row-major */
  triangle w = {.x = x->data, .y = out[0]->data, .size = ampl_dtype_size((ampl_dtype)x->dtype), .lower = lower};
  if (x->numel == 0) return AMPL_OK;
  w.rows = x->shape[x->ndim - 2], w.columns = x->shape[x->ndim - 1], w.n = x->numel / w.columns;
  int64_t k = in->p[0].i;               /* beyond the matrix it makes no difference how far */
  w.diagonal = k < -w.rows ? -w.rows : k > w.columns ? w.columns : k;
  w.each = 1 + (int64_t)(64 << 10) / (w.columns * (int64_t)w.size);
  return ampl_cpu_parallel(ctx, ampl_cpu_threads_for(ctx, (double)x->numel * (double)w.size / 8),
                           (w.n + w.each - 1) / w.each, triangle_job, &w);
}

static ampl_status tril(ampl_ctx *ctx, const ampl_args *in, ampl_tensor **out) { return tri(ctx, in, out, true); }
static ampl_status triu(ampl_ctx *ctx, const ampl_args *in, ampl_tensor **out) { return tri(ctx, in, out, false); }

static ampl_status diag(ampl_ctx *ctx, const ampl_args *in, ampl_tensor **out) {
  const ampl_tensor *x = in->t[0];
  ampl_tensor *y = out[0];
  const ampl_tensor *matrix = x->ndim == 2 ? x : y;
  int64_t k = in->p[0].i, first = k < 0 ? -k * matrix->strides[0] : k * matrix->strides[1];
  int64_t step = matrix->strides[0] + matrix->strides[1], n = x->ndim == 2 ? y->numel : x->numel;
  size_t size = ampl_dtype_size((ampl_dtype)x->dtype);
  if (matrix == y) AMPL_TRY(ampl_cpu_zero(ctx, y->data, (size_t)y->numel * size));
  if (n == 0) return AMPL_OK;
  return matrix == y ? ampl_cpu_move(ctx, size, 1, &n, ampl_cpu_at(y, first), &step, x->data, x->strides)
                     : ampl_cpu_move(ctx, size, 1, &n, y->data, y->strides, ampl_cpu_at(x, first), &step);
}

const ampl_kernel ampl_cpu_tri_kernels[] = {{"tril", AMPL_DTYPE_NONE, tril},
                                            {"triu", AMPL_DTYPE_NONE, triu},
                                            {"diag", AMPL_DTYPE_NONE, diag},
                                            {NULL, 0, NULL}};
