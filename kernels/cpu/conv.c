/*
** conv.c: which way a convolution is computed.
**
**   f64                                   im2col and f64 products       conv_plain.c
**   1x1 on dense images                   one matrix product            gemm.c
**   a filter for every channel            loops over rows               conv_depthwise.c
**   3x3, stride 1, 32 channels or more    Winograd                      conv_winograd.c
**   all others                            products over taps            conv_direct.c, conv_grad.c
**
** The choice follows from shape and dtypes alone, never from the number of threads.
*/
#include "conv.h"

#include <string.h>

#include "conv_parts.h"
#include "gemm.h"

/* dw of no images */
static void clear (const ampl_cpu_conv *a, const ampl_cpu_filter *dw) {
  const long size = dw->dtype == AMPL_F64 ? 8 : element_size(dw->dtype);
  for (long k = 0; k < a->k; k++)
    for (long i = 0; i < a->c / a->groups * a->r * a->s; i++) {
      const long c = i / (a->r * a->s), r = i / a->s % a->r, s = i % a->s;
      memset((char *)dw->p + (k * dw->k + c * dw->c + r * dw->r + s * dw->s) * size, 0, (size_t)size);
    }
}

static bool empty (const ampl_cpu_conv *a) { return a->n <= 0 || a->c <= 0 || a->k <= 0; }

/* All pixels of all images are one sequence at equal distance */
static bool dense (const ampl_cpu_image *x, long n, long h, long w) {
  return (h == 1 || x->row == w * x->pixel) && (n == 1 || x->image == h * w * x->pixel);
}

/* A pixel of the result depends on the same pixel of the operand only */
static bool pointwise (const ampl_cpu_conv *a, const ampl_cpu_image *x, const ampl_cpu_image *y) {
  return a->r == 1 && a->s == 1 && a->stride[0] == 1 && a->stride[1] == 1 && a->pad[0] == 0 && a->pad[1] == 0 &&
         a->groups == 1 && a->oh == a->h && a->ow == a->w && dense(x, a->n, a->h, a->w) && dense(y, a->n, a->h, a->w);
}

static bool depthwise (const ampl_cpu_conv *a, const ampl_cpu_image *x, const ampl_cpu_image *y) {
  const bool types = x->dtype == y->dtype || x->dtype == AMPL_F32 || y->dtype == AMPL_F32;
  return types && a->groups > 1 && a->groups == a->c && a->groups == a->k;
}

static ampl_cpu_gemm_args over_pixels (const ampl_cpu_conv *a, const ampl_cpu_image *in, const ampl_cpu_filter *w,
                                       const ampl_cpu_image *out) {
  return (ampl_cpu_gemm_args){
    .ctx = a->ctx, .threads = a->threads, .m = a->n * a->h * a->w,
    .a = in->p, .a_dtype = in->dtype, .a_row = in->pixel, .a_col = 1,
    .b = w->p, .b_dtype = w->dtype,
    .c = out->p, .c_dtype = out->dtype, .c_row = out->pixel,
    .bias = a->bias, .bias_dtype = a->bias_dtype, .act = a->relu ? AMPL_CPU_RELU : AMPL_CPU_NONE,
  };
}

ampl_status ampl_cpu_conv_forward (const ampl_cpu_conv *a, const ampl_cpu_image *x, const ampl_cpu_filter *w,
                                   const ampl_cpu_image *y) {
  if (empty(a)) return AMPL_OK;
  if (y->dtype == AMPL_F64) return ampl_cpu_conv_f64_forward(a, x, w, y);
  if (pointwise(a, x, y)) {
    ampl_cpu_gemm_args g = over_pixels(a, x, w, y);
    g.n = a->k, g.k = a->c, g.b_row = w->c, g.b_col = w->k;
    return ampl_cpu_gemm(&g);
  }
  if (depthwise(a, x, y)) return ampl_cpu_depthwise_apply(a, x, w, y, false);
  if (ampl_cpu_wino_pays(a)) return ampl_cpu_wino_apply(a, x, w, y, false);
  return ampl_cpu_conv_direct(a, x, w, y, false);
}

ampl_status ampl_cpu_conv_backward_data (const ampl_cpu_conv *a, const ampl_cpu_image *dy, const ampl_cpu_filter *w,
                                         const ampl_cpu_image *dx) {
  if (empty(a)) return AMPL_OK;
  if (dx->dtype == AMPL_F64) return ampl_cpu_conv_f64_backward_data(a, dy, w, dx);
  if (pointwise(a, dy, dx)) {
    ampl_cpu_gemm_args g = over_pixels(a, dy, w, dx);
    g.n = a->c, g.k = a->k, g.b_row = w->k, g.b_col = w->c;
    return ampl_cpu_gemm(&g);
  }
  if (depthwise(a, dy, dx)) return ampl_cpu_depthwise_apply(a, dy, w, dx, true);
  if (ampl_cpu_wino_pays(a)) return ampl_cpu_wino_apply(a, dy, w, dx, true);
  return ampl_cpu_conv_direct(a, dy, w, dx, true);
}

ampl_status ampl_cpu_conv_backward_weights (const ampl_cpu_conv *a, const ampl_cpu_image *x, const ampl_cpu_image *dy,
                                            const ampl_cpu_filter *dw) {
  if (a->n <= 0) clear(a, dw);
  if (empty(a)) return AMPL_OK;
  if (dw->dtype == AMPL_F64) return ampl_cpu_conv_f64_backward_weights(a, x, dy, dw);
  if (pointwise(a, x, dy) && (dw->c == 1 || a->c == 1)) {
    const ampl_cpu_gemm_args g = {
      .ctx = a->ctx, .threads = a->threads, .m = a->k, .n = a->c, .k = a->n * a->h * a->w,
      .a = dy->p, .a_dtype = dy->dtype, .a_row = 1, .a_col = dy->pixel,
      .b = x->p, .b_dtype = x->dtype, .b_row = x->pixel, .b_col = 1,
      .c = dw->p, .c_dtype = dw->dtype, .c_row = dw->k,
    };
    return ampl_cpu_gemm(&g);
  }
  if (depthwise(a, x, dy)) return ampl_cpu_depthwise_weights(a, x, dy, dw);
  if (ampl_cpu_wino_pays(a)) return ampl_cpu_wino_weights(a, x, dy, dw);
  return ampl_cpu_conv_direct_weights(a, x, dy, dw);
}

/* A row of ones times dy; where its pixels are not one sequence, image row by image row */
ampl_status ampl_cpu_conv_backward_bias (const ampl_cpu_conv *a, const ampl_cpu_image *dy, void *db, int db_dtype) {
  static const float one_f32 = 1;
  static const double one_f64 = 1;
  const bool f64 = dy->dtype == AMPL_F64, one = dense(dy, a->n, a->oh, a->ow);
  const long size = f64 ? 8 : element_size(dy->dtype), rows = one ? 1 : a->n * a->oh;
  const size_t bytes = 8 * (size_t)a->k;
  void *sum = ampl_cpu_scratch_get(a->ctx, bytes); /* 16-bit sums of parts would be rounded too often */
  if (!sum) return AMPL_ENOMEM;
  ampl_cpu_gemm_args g = {
    .ctx = a->ctx, .threads = a->threads, .m = 1, .n = a->k, .k = one ? a->n * a->oh * a->ow : a->ow,
    .a = f64 ? (const void *)&one_f64 : &one_f32, .a_dtype = f64 ? AMPL_F64 : AMPL_F32,
    .b_dtype = dy->dtype, .b_row = dy->pixel, .b_col = 1, .c_row = a->k,
  };
  ampl_status s = AMPL_OK;
  for (long i = 0; i < rows && s == AMPL_OK; i++) {
    g.b = (const char *)dy->p + (i / a->oh * dy->image + i % a->oh * dy->row) * size;
    g.acc = i > 0;
    g.c = one ? db : sum;
    g.c_dtype = one ? db_dtype : f64 ? AMPL_F64 : AMPL_F32;
    s = ampl_cpu_gemm(&g);
  }
  if (s == AMPL_OK && !one) { /* converts: 1 * sum, or 0 where there were no rows */
    g.b = sum, g.b_dtype = f64 ? AMPL_F64 : AMPL_F32, g.k = rows > 0, g.acc = false, g.c = db, g.c_dtype = db_dtype;
    s = ampl_cpu_gemm(&g);
  }
  ampl_cpu_scratch_put(a->ctx, sum, bytes);
  return s;
}
