/* im2col.c: images to columns of patches, and back by adding up. */
#include "move.h"
#include "op.h"
#include "stream.h"

#include <string.h>

/* An image side and the windows along it. */
typedef struct side {
  int64_t size, kernel, dilation, padding, stride, windows;
} side;

typedef struct patches {
  ampl_ctx *ctx;
  side    h, w;
  int64_t channels;                     /* of all images together: a job each */
  size_t  size;
  int     dtype;
  const char *x;
  char   *y;
  const ampl_tensor *image;             /* im2col reads it by its strides */
  double *sums;                         /* fold: one plane and one row for each thread */
} patches;

/* p: kernel_size, dilation, padding, stride */
static side side_of(const ampl_value *p, int d, int64_t size) {
  side s = {size, ampl_nth(p[0].l, d, 1), ampl_nth(p[1].l, d, 1), ampl_nth(p[2].l, d, 0), ampl_nth(p[3].l, d, 1), 0};
  s.windows = (size + 2 * s.padding - s.dilation * (s.kernel - 1) - 1) / s.stride + 1;
  return s;
}

/* The windows whose element k lies in the image: from *first to below *end. */
static void inside(const side *s, int64_t k, int64_t *first, int64_t *end) {
  int64_t at = k * s->dilation - s->padding;            /* in the first window */
  *first = at >= 0 ? 0 : (-at + s->stride - 1) / s->stride;
  *end = at >= s->size ? 0 : (s->size - 1 - at) / s->stride + 1;
  if (*end > s->windows) *end = s->windows;
  if (*first > *end) *first = *end;
}

static void im2col_job(void *ud, int64_t c, int thread) {
  const patches *w = ud;
  const ampl_tensor *t = w->image;
  int nd = t->ndim;
  int64_t size = (int64_t)w->size, row = w->w.windows * size, own = t->shape[nd - 3];
  int64_t begin = c % own * t->strides[nd - 3] + (nd == 4 ? c / own * t->strides[0] : 0), sh = t->strides[nd - 2],
          sw = t->strides[nd - 1];
  char *y = w->y + c * w->h.kernel * w->w.kernel * w->h.windows * row;
  (void)thread;
  for (int64_t i = 0; i < w->h.kernel; i++)
    for (int64_t j = 0; j < w->w.kernel; j++) {
      int64_t h0, h1, w0, w1;
      inside(&w->h, i, &h0, &h1);
      inside(&w->w, j, &w0, &w1);
      for (int64_t oh = 0; oh < w->h.windows; oh++, y += row) {
        if (ampl_cpu_stop_at(w->ctx, oh * w->w.windows, w->w.windows)) return;
        if (oh < h0 || oh >= h1 || w0 == w1) {
          memset(y, 0, (size_t)row);
          continue;
        }
        int64_t ih = oh * w->h.stride + i * w->h.dilation - w->h.padding;
        int64_t iw = w0 * w->w.stride + j * w->w.dilation - w->w.padding;
        memset(y, 0, (size_t)(w0 * size));
        memset(y + w1 * size, 0, (size_t)((w->w.windows - w1) * size));
        ampl_cpu_line(w->size, y + w0 * size, 1, ampl_cpu_at(t, begin + ih * sh + iw * sw), w->w.stride * sw, w1 - w0);
      }
    }
}

static ampl_status im2col(ampl_ctx *ctx, const ampl_args *in, ampl_tensor **out) {
  const ampl_tensor *x = in->t[0];
  patches w = {.ctx = ctx, .h = side_of(in->p, 0, x->shape[x->ndim - 2]), .w = side_of(in->p, 1, x->shape[x->ndim - 1]),
               .channels = x->shape[x->ndim - 3] * (x->ndim == 4 ? x->shape[0] : 1), .image = x, .y = out[0]->data,
               .size = ampl_dtype_size((ampl_dtype)x->dtype)};
  if (out[0]->numel == 0) return AMPL_OK;
  return ampl_cpu_parallel(ctx, ampl_cpu_threads_for(ctx, (double)out[0]->numel), w.channels, im2col_job, &w);
}

/* One channel of one image: a plane of sums, patch row by patch row. */
static void fold_job(void *ud, int64_t c, int thread) {
  const patches *w = ud;
  int64_t size = (int64_t)w->size, area = w->h.size * w->w.size;
  double *sum = w->sums + thread * (area + w->w.windows), *v = sum + area;
  const char *x = w->x + c * w->h.kernel * w->w.kernel * w->h.windows * w->w.windows * size;
  memset(sum, 0, (size_t)area * sizeof *sum);
  for (int64_t i = 0; i < w->h.kernel; i++)
    for (int64_t j = 0; j < w->w.kernel; j++) {
      int64_t h0, h1, w0, w1;
      inside(&w->h, i, &h0, &h1);
      inside(&w->w, j, &w0, &w1);
      for (int64_t oh = 0; oh < w->h.windows; oh++, x += w->w.windows * size) {
        if (ampl_cpu_stop_at(w->ctx, oh * w->w.windows, w->w.windows)) return;
        if (oh < h0 || oh >= h1) continue;
        int64_t ih = oh * w->h.stride + i * w->h.dilation - w->h.padding;
        double *to = sum + ih * w->w.size + j * w->w.dilation - w->w.padding;
        ampl_cpu_widen(AMPL_WORK_F64, v, w->dtype, x, 1, w->w.windows);
        for (int64_t ow = w0; ow < w1; ow++) to[ow * w->w.stride] += v[ow];
      }
    }
  ampl_cpu_narrow(AMPL_WORK_F64, sum, w->dtype, w->y + c * area * size, 1, area);
}

static ampl_status fold(ampl_ctx *ctx, const ampl_args *in, ampl_tensor **out) {
  const ampl_tensor *x = in->t[0];      /* row-major */
  ampl_tensor *y = out[0];
  int64_t height = y->shape[y->ndim - 2], width = y->shape[y->ndim - 1];
  patches w = {.ctx = ctx,
               .h = side_of(in->p + 1, 0, height),
               .w = side_of(in->p + 1, 1, width),
               .x = x->data,
               .y = y->data,
               .dtype = x->dtype,
               .size = ampl_dtype_size((ampl_dtype)x->dtype)};
  if (y->numel == 0) return AMPL_OK;
  w.channels = y->numel / (height * width);
  int threads = ampl_cpu_threads_for(ctx, (double)x->numel);
  size_t bytes = (size_t)threads * (size_t)(height * width + w.w.windows) * sizeof(double);
  if (!(w.sums = ampl_cpu_scratch_get(ctx, bytes)))
    return ampl_error(ctx, AMPL_ENOMEM, "no memory for %zu bytes of sums", bytes);
  const ampl_status s = ampl_cpu_parallel(ctx, threads, w.channels, fold_job, &w);
  ampl_cpu_scratch_put(ctx, w.sums, bytes);
  return s;
}

const ampl_kernel ampl_cpu_im2col_kernels[] = {{"im2col", AMPL_DTYPE_NONE, im2col},
                                               {"fold", AMPL_F32, fold},
                                               {"fold", AMPL_F64, fold},
                                               {"fold", AMPL_F16, fold},
                                               {"fold", AMPL_BF16, fold},
                                               {NULL, 0, NULL}};
