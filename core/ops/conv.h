/* conv.h: the parameters of the internal convolution ops, in their order. */
#ifndef AMPL_CONV_H
#define AMPL_CONV_H

enum {
  AMPL_CONV_STRIDE,             /* lists have two entries: rows, columns */
  AMPL_CONV_PADDING,            /* on the near side */
  AMPL_CONV_DILATION,
  AMPL_CONV_GROUPS,
  AMPL_CONV_OUTPUT,             /* sides of the result; of a filter: its kernel */
  AMPL_CONV_DTYPE               /* conv_weight only */
};

#endif
