/* sort.h: the order of a line of values of any dtype: NaN is the largest, -0 equals 0, equal values keep their
 * order. */
#ifndef AMPL_CPU_SORT_H
#define AMPL_CPU_SORT_H

#include "stream.h"

/* Bytes of scratch that sorting n values takes. */
size_t ampl_cpu_sort_room(int64_t n);

/* order[i] = which of the n values, `step` elements apart, is the i-th in rising (or falling) order.  False:
 * `ctx`, which may be NULL, was interrupted, and the order is not there (see ampl_cpu_stop). */
AMPL_CPU_CHECKED bool ampl_cpu_sort(ampl_ctx *ctx, int dtype, const char *data, int64_t step, int64_t n, bool falling,
                                    int64_t *order, void *room);

/* The first k (<= n) of that order. */
AMPL_CPU_CHECKED bool ampl_cpu_select(ampl_ctx *ctx, int dtype, const char *data, int64_t step, int64_t n, int64_t k,
                                      bool falling, int64_t *order, void *room);

/* Numbers in the order of the values; equal values have equal numbers, NaN has UINT64_MAX where the dtype is a float.
 * `key` may need 8 bytes a value, and the values are read through it. */
void ampl_cpu_sort_keys(int dtype, const char *data, int64_t step, int64_t n, uint64_t *key);

#endif
