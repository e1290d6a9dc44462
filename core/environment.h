/* environment.h: what a context takes from the environment. */
#ifndef AMPL_ENVIRONMENT_H
#define AMPL_ENVIRONMENT_H

#include "ampl.h"

typedef struct ampl_environment {
  size_t memory_limit;          /* bytes: AMPL_MEMORY_LIMIT, else 80 % of the machine or the container */
  bool   plain;                 /* AMPL_ALLOC=plain: no free lists, so that a checker of memory sees every object */
} ampl_environment;

/* Reads AMPL_ALLOC, AMPL_CPU and, with `limit`, AMPL_MEMORY_LIMIT.  A variable that is set, not empty, and says nothing
 * that is known, is refused by name: EVALUE, the text in the thread's error. */
ampl_status ampl_environment_read(bool limit, ampl_environment *out);

/* "1.5g", "512 MiB", "80%" (of `whole`), "1000000": a decimal number with a point in every locale, and a unit: b, k, m,
 * g, t (powers of 1024, with or without b or ib), or %.  Blanks may stand around both.  false: it is something else,
 * less than a byte, more than `whole` or more than memory has addresses. */
bool ampl_bytes_from_text(const char *text, size_t whole, size_t *out);

#endif
