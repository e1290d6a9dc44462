/* attention.h: the parameters of the internal attention ops, in their order. */
#ifndef AMPL_ATTENTION_H
#define AMPL_ATTENTION_H

#include <stdint.h>

enum {
  AMPL_ATTENTION_DROPOUT,       /* the probability */
  AMPL_ATTENTION_CAUSAL,        /* position i looks at positions 0 to i */
  AMPL_ATTENTION_SCALE,
  AMPL_ATTENTION_PARAMS,
  AMPL_ATTENTION_MASK_GRAD = AMPL_ATTENTION_PARAMS      /* of attention_backward: whether dmask is wanted */
};

/* Dropout draws element (b, h, i, j) of the weights at ((b * heads + h) * rows + i) * ampl_attention_pitch(columns) +
 * j, so that a row begins with a whole group of random numbers. */
static inline int64_t ampl_attention_pitch (int64_t columns) { return (columns + 63) / 64 * 64; }

#endif
