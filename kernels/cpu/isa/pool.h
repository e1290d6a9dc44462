/* pool.h: one image of a pooling pass: `lanes` channels side by side, or one plane. */
#ifndef AMPL_CPU_POOL_H
#define AMPL_CPU_POOL_H

#include "cpu.h"

/* The part of a side that window o covers: places first, first + step ... below stop; `pad` counts those in the
 * padding. */
typedef struct ampl_cpu_window { int64_t first, stop, step, span; } ampl_cpu_window;

/* A pass over one image.  Strides in elements; lanes lie side by side in every tensor. */
typedef struct ampl_cpu_pool_image {
  int64_t lanes;
  int64_t h, w, oh, ow;
  const ampl_cpu_window *rows, *columns;        /* [oh], [ow] */
  int64_t xs[2], ys[2];                         /* strides of rows and columns: image, windows */
  const void *x, *y;                            /* what is read, of the image and of the windows */
  void   *to;                                   /* what is written */
  int64_t *at;                                  /* [lanes]: scratch */
  int64_t *places;                              /* pool_max: flat places, strides ps; or NULL */
  int64_t  ps[2], base;
  double   divisor;                             /* mean: 0: the number of places; else this */
  bool     include_pad;
} ampl_cpu_pool_image;

typedef void (*ampl_cpu_pool_fn)(const ampl_cpu_pool_image *);
typedef struct ampl_cpu_pool {
  ampl_cpu_pool_fn max;                         /* to: the windows */
  ampl_cpu_pool_fn scatter;                     /* to: the image, zeroed before; x: who has the largest value, y: dy */
  ampl_cpu_pool_fn gather; /* to: the windows; x: who has the largest value; y: values, strides of x */
  ampl_cpu_pool_fn mean;                        /* to: the windows */
  ampl_cpu_pool_fn mean_scatter;                /* to: the image, zeroed before; y: dy */
} ampl_cpu_pool;

AMPL_CPU_EACH_ISA(const ampl_cpu_pool, ampl_cpu_pool);
extern const ampl_cpu_pool ampl_cpu_pool_f64;

#endif
