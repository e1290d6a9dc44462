/* number.h: numbers as text. */
#ifndef AMPL_NUMBER_H
#define AMPL_NUMBER_H

#include <locale.h>
#include <stdbool.h>
#include <stdint.h>

/* The number that `s` is, all of it: decimal, with or without point and exponent, or nan, inf, infinity.  `c` is the C
 * locale. */
bool ampl_number_parse(const char *s, locale_t c, double *out);

/* The integer that `s` is, exactly; false for a fraction, for what is not finite or no number, and for what is too big
 * to be known exactly. */
bool ampl_integer_parse(const char *s, locale_t c, int64_t *out);

#endif
