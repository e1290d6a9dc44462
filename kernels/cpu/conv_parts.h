/*
** conv_parts.h: what the files of the convolution (conv*.c) share.
*/
#ifndef AMPL_CPU_CONV_PARTS_H
#define AMPL_CPU_CONV_PARTS_H

#include "blocking.h"
#include "conv.h"

/* ---------------------------------------------------------------- scratch memory */

/* Hands out parts of one block.  A plan is laid out twice: first with base NULL, to learn its size. */
typedef struct arena {
  char *base;
  size_t used;
} arena;

static inline void *arena_take (arena *a, long bytes) {
  void *p = a->base ? a->base + a->used : NULL;
  a->used += (size_t)round_up(bytes, 64);
  return p;
}

/* ---------------------------------------------------------------- filters: conv_filter.c */

/* A filter as a set of matrices, one for each tap: rows are the channels that are summed over, columns
   those of the result. */
typedef struct filter_view {
  const char *p;
  int dtype;
  long col, row, r, s;  /* steps in elements */
  long rows_r, cols_s;  /* filter size */
} filter_view;

/* Forward: rows are input channels; backward: output channels.  `group` counts from 0. */
filter_view ampl_cpu_filter_view(const ampl_cpu_conv *a, const ampl_cpu_filter *w, bool backward, long group);

/* dst[(t*tap_step + i*nr + j)] = f32 of row r0 + i, column j0 + j of tap t, for i < rows, j < cols; columns
   up to nr hold anything finite.  Tap t is filter pixel (fy[t / nx], fx[t % nx]), t < ny*nx.
   tmp: ampl_cpu_filter_tmp floats. */
void ampl_cpu_pack_filter(const ampl_cpu_matrix *K, const filter_view *w, float *dst, long tap_step, long nr,
                          long ny, const long *fy, long nx, const long *fx, long r0, long rows, long j0, long cols,
                          float *tmp);
long ampl_cpu_filter_tmp(const ampl_cpu_conv *a, long nr);

/* The other way: dw[j0 + j][c][tap] = src[(tap*channels + c)*nr + j], j < cols, as dw's dtype. */
void ampl_cpu_unpack_filter(const ampl_cpu_matrix *K, const ampl_cpu_conv *a, const ampl_cpu_filter *dw,
                            const float *src, long nr, long j0, long cols, float *tmp);
long ampl_cpu_unpack_tmp(const ampl_cpu_conv *a, long nr);

/* ---------------------------------------------------------------- planes: conv_plane.c */

/* The part of the images that a convolution reads, as the micro-kernel wants it: f32, or pairs of bf16 for
   the dot kernels, with zeros where taps reach beyond the image.  In place where the image is so already. */
typedef struct plane {
  ampl_cpu_image src;
  long h, w, c;              /* of the source */
  long ylo, yhi, xlo, xhi;   /* the pixels of an image that are read; may lie outside */
  bool in_place;
  long size;                 /* bytes of an element: 4, or 2 for the dot kernels */
  long channels;             /* of a pixel in the plane: c, or c + 1 for the dot kernels where c is odd */
  long pixel, row;           /* steps in bytes */
} plane;

/* Taps at ty[0..ny) x tx[0..nx), ascending, over a grid of gh x gw outputs `step` pixels apart. */
plane ampl_cpu_plane(const ampl_cpu_image *src, long h, long w, long c, bool pairs, long gh, long gw,
                     const long step[2], long ny, const long *ty, long nx, const long *tx);

/* Loads rows [y0, y1) of images [n0, n1), one image after the other, to buf if they are not in place.
   Returns pixel (y0, xlo) of image n0; *image is the step between images in bytes. */
const char *ampl_cpu_plane_load(const ampl_cpu_matrix *K, const plane *p, char *buf, long n0, long n1, long y0,
                                long y1, long *image);
static inline long plane_bytes (const plane *p, long images, long rows) {
  return p->in_place ? 0 : images * rows * (p->xhi - p->xlo) * p->channels * p->size;
}

/* ---------------------------------------------------------------- cutting the images */

/* Images in jobs: several whole ones, or bands of rows of one. */
typedef struct cut {
  long n, rows;              /* images, and grid rows in each */
  long images, band, bands;  /* of a job; bands in an image */
  long jobs;
} cut;

/* So that a job reads at most about `most_bytes`, and, where results do not depend on it, each thread gets
   some jobs. */
cut ampl_cpu_cut(long n, long rows, long image_bytes, long most_bytes, int threads);

typedef struct piece { long n0, n1, y0, y1; } piece;
static inline piece piece_of (const cut *c, long job) {
  const long y = job % c->bands * c->band, n = job / c->bands * c->images;
  return (piece){n, least(c->n, n + c->images), y, least(c->rows, y + c->band)};
}

/* ---------------------------------------------------------------- algorithms */

static inline int conv_threads (const ampl_cpu_conv *a, double flop) {
  return flop < AMPL_CPU_SERIAL_FLOP ? 1 : (int)most(1, a->threads);
}
static inline double conv_flop (const ampl_cpu_conv *a) {
  return 2.0 * a->n * a->oh * a->ow * a->k * (a->c / a->groups) * a->r * a->s;
}

/* The bias as f32: itself, or converted into the arena (with K), or NULL. */
const float *ampl_cpu_conv_bias(const ampl_cpu_matrix *K, const ampl_cpu_conv *a, long channels, arena *m);

ampl_status ampl_cpu_conv_direct(const ampl_cpu_conv *a, const ampl_cpu_image *in, const ampl_cpu_filter *w,
                                 const ampl_cpu_image *out, bool backward);
ampl_status ampl_cpu_conv_direct_weights(const ampl_cpu_conv *a, const ampl_cpu_image *x, const ampl_cpu_image *dy,
                                         const ampl_cpu_filter *dw);

/* Whether Winograd's algorithm applies and pays. */
bool ampl_cpu_wino_pays(const ampl_cpu_conv *a);
ampl_status ampl_cpu_wino_apply(const ampl_cpu_conv *a, const ampl_cpu_image *in, const ampl_cpu_filter *w,
                                const ampl_cpu_image *out, bool backward);
ampl_status ampl_cpu_wino_weights(const ampl_cpu_conv *a, const ampl_cpu_image *x, const ampl_cpu_image *dy,
                                  const ampl_cpu_filter *dw);

/* Every channel a filter of its own: c = k = groups. */
ampl_status ampl_cpu_depthwise_apply(const ampl_cpu_conv *a, const ampl_cpu_image *in, const ampl_cpu_filter *w,
                                     const ampl_cpu_image *out, bool backward);
ampl_status ampl_cpu_depthwise_weights(const ampl_cpu_conv *a, const ampl_cpu_image *x, const ampl_cpu_image *dy,
                                       const ampl_cpu_filter *dw);

/* f64. */
ampl_status ampl_cpu_conv_f64_forward(const ampl_cpu_conv *a, const ampl_cpu_image *x, const ampl_cpu_filter *w,
                                      const ampl_cpu_image *y);
ampl_status ampl_cpu_conv_f64_backward_data(const ampl_cpu_conv *a, const ampl_cpu_image *dy,
                                            const ampl_cpu_filter *w, const ampl_cpu_image *dx);
ampl_status ampl_cpu_conv_f64_backward_weights(const ampl_cpu_conv *a, const ampl_cpu_image *x,
                                               const ampl_cpu_image *dy, const ampl_cpu_filter *dw);

#endif
