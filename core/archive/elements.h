/* elements.h: how elements stand in files, and how they become ours. */
#ifndef AMPL_ELEMENTS_H
#define AMPL_ELEMENTS_H

#include "file.h"

/* A kind of element: 'f' float, 'e' bf16, 'i' signed, 'u' unsigned integer, 'b' bool; its bytes in a file; the dtype it
 * is read as. */
typedef struct ampl_element {
  char kind;
  uint8_t bytes, dtype;
  void (*convert)(void *dst, const void *src, size_t n); /* NULL: the bytes are the same */
} ampl_element;

/* NULL: ampl has no dtype for it. */
const ampl_element *ampl_element_find(char kind, int bytes);
/* What tensors of dtype `t` are written as. */
const ampl_element *ampl_element_of(ampl_dtype t);

/* All of the next `bytes` of a source. */
typedef ampl_status (*ampl_source_fn)(void *ud, void *dst, size_t bytes);

/* The next n elements of a source, into dst. */
ampl_status ampl_elements_read(const ampl_element *e, bool big_endian, uint64_t n, void *dst, ampl_source_fn read,
                               void *ud);

/* Product of sizes, 0 where one is 0; false when it is more than a file can hold. */
bool ampl_elements_count(int ndim, const int64_t *shape, uint64_t *out);

#endif
