/* pool.h: the parameters of the internal pooling ops, in their order. */
#ifndef AMPL_POOL_H
#define AMPL_POOL_H

enum {
  AMPL_POOL_OUTPUT,             /* all lists have two entries: rows, columns */
  AMPL_POOL_KERNEL,
  AMPL_POOL_STRIDE,
  AMPL_POOL_PADDING,
  AMPL_POOL_DILATION,
  AMPL_POOL_ADAPTIVE,           /* windows share out the image: only OUTPUT counts */
  AMPL_POOL_INCLUDE_PAD,        /* of means, from here on */
  AMPL_POOL_DIVISOR,            /* 0: the number of places */
  AMPL_POOL_PARAMS
};

#endif
