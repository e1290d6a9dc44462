/* view.h: what the records of views share.  A view is a geometry: shape, strides and offset in elements of its base. */
#ifndef AMPL_OPS_VIEW_H
#define AMPL_OPS_VIEW_H

#include "op.h"

#include <string.h>

/* m = the geometry of x itself. */
static inline void view_of(ampl_meta *m, const ampl_tensor *x) {
  m->ndim = x->ndim;
  m->layout = AMPL_LAYOUT_STRIDED;
  m->offset = 0;
  memcpy(m->shape, x->shape, sizeof m->shape);
  memcpy(m->strides, x->strides, sizeof m->strides);
}

/* Row-major strides of `shape`. */
static inline void row_major(int ndim, const int64_t *shape, int64_t *strides) {
  int64_t n = 1;
  for (int d = ndim - 1; d >= 0; d--) {
    strides[d] = n;
    n *= shape[d] > 0 ? shape[d] : 1;
  }
}

/* m = the geometry of a row-major tensor of base's shape. */
static inline void view_row_major(ampl_meta *m, const ampl_meta *base) {
  *m = *base;
  m->layout = AMPL_LAYOUT_STRIDED;
  m->offset = 0;
  row_major(m->ndim, m->shape, m->strides);
}

/* Takes out dimension d, or puts one in front of d. */
static inline void view_drop(ampl_meta *m, int d) {
  for (m->ndim--; d < m->ndim; d++) m->shape[d] = m->shape[d + 1], m->strides[d] = m->strides[d + 1];
}

static inline void view_insert(ampl_meta *m, int d, int64_t size, int64_t stride) {
  for (int k = m->ndim++; k > d; k--) m->shape[k] = m->shape[k - 1], m->strides[k] = m->strides[k - 1];
  m->shape[d] = size;
  m->strides[d] = stride;
}

#endif
