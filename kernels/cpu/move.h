/* move.h: moving elements without looking at them, so by their size alone: 1, 2, 4 or 8 bytes serve all dtypes. */
#ifndef AMPL_CPU_MOVE_H
#define AMPL_CPU_MOVE_H

#include "ampl_backend.h"
#include "cpu.h"

#include <string.h>

/* dst = src, element by element, over the index space `shape`, each with its strides (in elements, none negative). */
AMPL_CPU_CHECKED ampl_status ampl_cpu_move(ampl_ctx *ctx, size_t size, int nd, const int64_t *shape, void *dst,
                   const int64_t *dst_strides, const void *src, const int64_t *src_strides);

/* The same for one line of n elements, on the calling thread; steps may be negative here. */
void ampl_cpu_line(size_t size, void *dst, int64_t dst_step, const void *src, int64_t src_step, int64_t n);

/* Where an axis of a result lies in its source: position i is at map[i] * stride, or at i * stride without a map; a
 * negative map[i] is nowhere. */
typedef struct ampl_cpu_axis {
  int64_t        n, stride;
  const int64_t *map;
} ampl_cpu_axis;

#define AMPL_CPU_AXES_MAX (2 * AMPL_RANK_MAX)

/* dst, row-major, is picked from src along nd axes; what comes from nowhere gets *fill (which may be NULL where no map
 * has such a place). */
AMPL_CPU_CHECKED ampl_status ampl_cpu_pick(ampl_ctx *ctx, size_t size, int nd, const ampl_cpu_axis *axis, void *dst,
                                           const void *src, const void *fill);

/* Zeros; an empty tensor has no memory, which memset must not be given. */
AMPL_CPU_CHECKED ampl_status ampl_cpu_zero(ampl_ctx *ctx, void *p, size_t bytes);

/* n elements of *value. */
void ampl_cpu_fill(size_t size, void *dst, int64_t n, const void *value);

/* *dst = the one element of x (a plain number, too) as dtype t. */
void ampl_cpu_scalar(const ampl_tensor *x, int t, void *dst);

/* out = x; same shape and dtype, any strides. */
AMPL_CPU_CHECKED ampl_status ampl_cpu_copy_all(ampl_ctx *ctx, ampl_tensor *out, const ampl_tensor *x);

/* An uninitialised row-major tensor on x's device: an output whose shape only the kernel knows. */
ampl_status ampl_cpu_new(ampl_ctx *ctx, const ampl_tensor *x, int dtype, int ndim, const int64_t *shape,
                         ampl_tensor **out);

static inline char *ampl_cpu_at(const ampl_tensor *x, int64_t offset) {
  return (char *)x->data + offset * (int64_t)ampl_dtype_size((ampl_dtype)x->dtype);
}

/* ------------------------------------------------------------------------------------------------ positions ------- */

/* The values of index tensor `index` (i64 or i32, any strides), row-major, as positions 0 to size - 1: one block of
 * scratch memory, to be given back by ampl_cpu_positions_put.  EINDEX names the first value that is out of range, and
 * where it stands; `what` says what it should have been ("row"). */
ampl_status ampl_cpu_positions_get(ampl_ctx *ctx, const ampl_tensor *index, int64_t size, const char *what,
                                   int64_t **out);
void        ampl_cpu_positions_put(ampl_ctx *ctx, const ampl_tensor *index, int64_t *positions);

/* The error for value `v` at row-major position `at` of a tensor of index values. */
ampl_status ampl_cpu_bad_position(ampl_ctx *ctx, const ampl_tensor *index, int64_t at, int64_t v, int64_t size,
                                  const char *what);

#endif
