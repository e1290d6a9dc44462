/*
** conv.h: 2-D convolution, its gradients and its transpose, as plain C functions on memory.
**
** One-dimensional convolutions are those with h = r = 1.  The transposed convolution of x is
** ampl_cpu_conv_backward_data with x for dy; its gradients are forward and backward_weights with the
** roles exchanged.
*/
#ifndef AMPL_CPU_CONV_H
#define AMPL_CPU_CONV_H

#include "cpu.h"

/* Pixels in memory: the channels of a pixel lie side by side.  Steps in elements. */
typedef struct ampl_cpu_image {
  void *p;
  int dtype;
  int64_t image, row, pixel;
} ampl_cpu_image;

/* A filter (k, c/groups, r, s) in memory, at any strides. */
typedef struct ampl_cpu_filter {
  void *p;
  int dtype;
  int64_t k, c, r, s;
} ampl_cpu_filter;

/* x: n images of h x w pixels of c channels;  y: oh x ow pixels of k channels.  Output pixel (i, j) sees
** the input pixels (i*stride[0] + u*dilation[0] - pad[0], j*stride[1] + v*dilation[1] - pad[1]) for
** 0 <= u < r, 0 <= v < s; those outside of the image are zero.  All of oh, ow, stride, dilation and
** groups are at least 1; padding on the far side is whatever oh and ow ask for. */
typedef struct ampl_cpu_conv {
  ampl_ctx *ctx;            /* accounts for the scratch memory; may be NULL */
  int threads;
  int64_t n, c, h, w, k, oh, ow, r, s;
  int64_t stride[2], pad[2], dilation[2], groups;
  const void *bias;         /* added to each pixel of the result of forward and backward_data, or NULL */
  int bias_dtype;
  bool relu;                /* then max(0, .) */
} ampl_cpu_conv;

/* y = conv(x, w);  dx: the gradient of x, or the transposed convolution of dy;  dw: the gradient of w.
** Dtypes are any of f32, f16 and bf16, each operand its own, with sums in f32; or all are f64.
** The results do not depend on the number of threads.  AMPL_ENOMEM: the result is unfinished. */
ampl_status ampl_cpu_conv_forward(const ampl_cpu_conv *a, const ampl_cpu_image *x, const ampl_cpu_filter *w,
                                  const ampl_cpu_image *y);
ampl_status ampl_cpu_conv_backward_data(const ampl_cpu_conv *a, const ampl_cpu_image *dy, const ampl_cpu_filter *w,
                                        const ampl_cpu_image *dx);
ampl_status ampl_cpu_conv_backward_weights(const ampl_cpu_conv *a, const ampl_cpu_image *x, const ampl_cpu_image *dy,
                                           const ampl_cpu_filter *dw);

/* db[k] = the sum of dy over images and pixels; db_dtype f32, f16 or bf16, or f64 with an f64 dy. */
ampl_status ampl_cpu_conv_backward_bias(const ampl_cpu_conv *a, const ampl_cpu_image *dy, void *db, int db_dtype);

#endif
