/*
** conv_plain.c: convolution in f64, for references and gradient checks: the windows that the taps see are
** written out as a matrix (im2col), a band of rows at a time, and the rest is f64 matrix multiply.
*/
#include <string.h>

#include "conv_parts.h"
#include "gemm.h"

enum { BAND_BYTES = 1 << 20 };

typedef struct f64 {
  const ampl_cpu_conv *a;
  const ampl_cpu_image *x;       /* the image that windows are taken from, or added to */
  long channels, depth;          /* of a group; and times taps: columns of the matrix, in order tap, channel */
  long band;                     /* rows of outputs at a time */
  double *cols;                  /* [band*ow][depth] */
  double *w;                     /* the filter of a group, [depth][k/groups] */
  size_t bytes;
  /* the present band */
  long n, y0, rows, group;
} f64;

static ampl_status begin (f64 *p, const ampl_cpu_conv *a, const ampl_cpu_image *x) {
  *p = (f64){.a = a, .x = x, .channels = a->c / a->groups};
  p->depth = p->channels * a->r * a->s;
  p->band = most(1, least(a->oh, BAND_BYTES / (8 * a->ow * p->depth)));
  const size_t cols = (size_t)(p->band * a->ow * p->depth), w = (size_t)(p->depth * (a->k / a->groups));
  p->bytes = sizeof(double) * (cols + w);
  p->cols = ampl_cpu_scratch_get(a->ctx, p->bytes);
  if (!p->cols) return AMPL_ENOMEM;
  p->w = p->cols + cols;
  return AMPL_OK;
}

static void end (f64 *p) { ampl_cpu_scratch_put(p->a->ctx, p->cols, p->bytes); }

/* Runs the statement for every band of every image */
#define FOR_BANDS(p)                                                                               \
  for ((p)->n = 0; (p)->n < (p)->a->n; (p)->n++)                                                    \
    for ((p)->y0 = 0; (p)->rows = least((p)->band, (p)->a->oh - (p)->y0), (p)->y0 < (p)->a->oh;      \
         (p)->y0 += (p)->band)

/* One row of outputs: between the image and its rows of the matrix */
static void window_row (const f64 *p, long i, bool back) {
  const ampl_cpu_conv *a = p->a;
  for (long x = 0; x < a->ow; x++)
    for (long t = 0; t < a->r * a->s; t++) {
      const long y = (p->y0 + i) * a->stride[0] + t / a->s * a->dilation[0] - a->pad[0];
      const long z = x * a->stride[1] + t % a->s * a->dilation[1] - a->pad[1];
      const bool there = y >= 0 && y < a->h && z >= 0 && z < a->w;
      double *col = p->cols + (i * a->ow + x) * p->depth + t * p->channels;
      double *pixel = there ? (double *)p->x->p + p->n * p->x->image + y * p->x->row + z * p->x->pixel +
                                  p->group * p->channels
                            : NULL;
      if (back) {
        for (long c = 0; there && c < p->channels; c++) pixel[c] += col[c];
      } else if (there) memcpy(col, pixel, sizeof(double) * (size_t)p->channels);
      else memset(col, 0, sizeof(double) * (size_t)p->channels);
    }
}

static void window_job (void *ud, int64_t row, int thread) {
  (void)thread;
  window_row(ud, row, false);
}

static ampl_status take_windows (const f64 *p) {
  f64 copy = *p;
  return ampl_cpu_parallel(p->a->ctx, p->a->threads, p->rows, window_job, &copy);
}

static void pack (const f64 *p, const ampl_cpu_filter *w) {
  const ampl_cpu_conv *a = p->a;
  const long kg = a->k / a->groups;
  for (long t = 0; t < a->r * a->s; t++)
    for (long c = 0; c < p->channels; c++)
      for (long k = 0; k < kg; k++)
        p->w[(t * p->channels + c) * kg + k] =
            ((const double *)w->p)[(p->group * kg + k) * w->k + c * w->c + t / a->s * w->r + t % a->s * w->s];
}

/* Element (row y0, pixel 0) of the group's channels in the image of outputs */
static double *outputs (const f64 *p, const ampl_cpu_image *y) {
  return (double *)y->p + p->n * y->image + p->y0 * y->row + p->group * (p->a->k / p->a->groups);
}

/* Rows of outputs as a batch of products, so that any row step will do */
static ampl_cpu_gemm_args product (const f64 *p) {
  return (ampl_cpu_gemm_args){.ctx = p->a->ctx, .threads = p->a->threads, .a_dtype = AMPL_F64, .b_dtype = AMPL_F64,
                              .c_dtype = AMPL_F64, .batch = {1, p->rows}};
}

ampl_status ampl_cpu_conv_f64_forward (const ampl_cpu_conv *a, const ampl_cpu_image *x, const ampl_cpu_filter *w,
                                       const ampl_cpu_image *y) {
  f64 p;
  ampl_status s = begin(&p, a, x);
  if (s != AMPL_OK) return s;
  const long kg = a->k / a->groups;
  for (p.group = 0; p.group < a->groups && s == AMPL_OK; p.group++) {
    pack(&p, w);
    FOR_BANDS(&p) {
      if ((s = take_windows(&p)) != AMPL_OK) break;
      ampl_cpu_gemm_args g = product(&p);
      g.m = a->ow, g.n = kg, g.k = p.depth;
      g.a = p.cols, g.a_row = p.depth, g.a_col = 1, g.a_batch[1] = a->ow * p.depth;
      g.b = p.w, g.b_row = kg, g.b_col = 1;
      g.c = outputs(&p, y), g.c_row = y->pixel, g.c_batch[1] = y->row;
      if (a->bias) g.bias = (const double *)a->bias + p.group * kg, g.bias_dtype = AMPL_F64;
      g.act = a->relu ? AMPL_CPU_RELU : AMPL_CPU_NONE;
      if ((s = ampl_cpu_gemm(&g)) != AMPL_OK) break;
    }
  }
  end(&p);
  return s;
}

/* dx begins as the bias, or zero; relu comes at the end */
static void fill (const ampl_cpu_conv *a, const ampl_cpu_image *dx, bool at_end) {
  for (long i = 0; i < a->n * a->h * a->w && !ampl_cpu_stop_at(a->ctx, i * a->c, a->c); i++) {
    double *p = (double *)dx->p + i / (a->h * a->w) * dx->image + i / a->w % a->h * dx->row + i % a->w * dx->pixel;
    for (long c = 0; c < a->c; c++)
      if (at_end) p[c] = p[c] < 0 ? 0 : p[c];
      else p[c] = a->bias ? ((const double *)a->bias)[c] : 0;
  }
}

ampl_status ampl_cpu_conv_f64_backward_data (const ampl_cpu_conv *a, const ampl_cpu_image *dy,
                                             const ampl_cpu_filter *w, const ampl_cpu_image *dx) {
  f64 p;
  ampl_status s = begin(&p, a, dx);
  if (s != AMPL_OK) return s;
  const long kg = a->k / a->groups;
  fill(a, dx, false);
  for (p.group = 0; p.group < a->groups && s == AMPL_OK; p.group++) {
    pack(&p, w);
    FOR_BANDS(&p) {
      ampl_cpu_gemm_args g = product(&p);
      g.m = a->ow, g.n = p.depth, g.k = kg;
      g.a = outputs(&p, dy), g.a_row = dy->pixel, g.a_col = 1, g.a_batch[1] = dy->row;
      g.b = p.w, g.b_row = 1, g.b_col = kg;
      g.c = p.cols, g.c_row = p.depth, g.c_batch[1] = a->ow * p.depth;
      if ((s = ampl_cpu_gemm(&g)) != AMPL_OK) break;
      for (long i = 0; i < p.rows; i++) window_row(&p, i, true); /* rows overlap in dx: in order */
    }
  }
  if (a->relu) fill(a, dx, true);
  end(&p);
  return s;
}

ampl_status ampl_cpu_conv_f64_backward_weights (const ampl_cpu_conv *a, const ampl_cpu_image *x,
                                                const ampl_cpu_image *dy, const ampl_cpu_filter *dw) {
  f64 p;
  ampl_status s = begin(&p, a, x);
  if (s != AMPL_OK) return s;
  const long kg = a->k / a->groups;
  for (p.group = 0; p.group < a->groups && s == AMPL_OK; p.group++) {
    memset(p.w, 0, sizeof(double) * (size_t)(p.depth * kg));
    FOR_BANDS(&p) {
      s = take_windows(&p);
      for (long i = 0; i < p.rows && s == AMPL_OK; i++) {
        ampl_cpu_gemm_args g = product(&p);
        g.batch[1] = 1, g.acc = true;
        g.m = p.depth, g.n = kg, g.k = a->ow;
        g.a = p.cols + i * a->ow * p.depth, g.a_row = 1, g.a_col = p.depth;
        g.b = outputs(&p, dy) + i * dy->row, g.b_row = dy->pixel, g.b_col = 1;
        g.c = p.w, g.c_row = kg;
        s = ampl_cpu_gemm(&g);
      }
      if (s != AMPL_OK) break;
    }
    for (long i = 0; s == AMPL_OK && i < p.depth * kg; i++) {
      const long k = i % kg, c = i / kg % p.channels, t = i / kg / p.channels;
      ((double *)dw->p)[(p.group * kg + k) * dw->k + c * dw->c + t / a->s * dw->r + t % a->s * dw->s] = p.w[i];
    }
  }
  end(&p);
  return s;
}
