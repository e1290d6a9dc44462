/* number.c: reads numbers as the C library does, and faster where that is exact: at most 15 digits and a power of ten
 * up to 22 need one division or multiplication.  The locale of the process changes nothing. */
#define _GNU_SOURCE /* strtod_l */
#include "number.h"

#include <math.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define FIELD_MAX 400 /* bytes of a number: every double has a shorter name */

static bool special_number(const char *s, locale_t c, double *out) {
  const bool minus = *s == '-';
  if (*s == '-' || *s == '+') s++;
  if (strcasecmp_l(s, "nan", c) == 0)
    *out = NAN;
  else if (strcasecmp_l(s, "inf", c) == 0 || strcasecmp_l(s, "infinity", c) == 0)
    *out = minus ? -INFINITY : INFINITY;
  else
    return false;
  return true;
}

bool ampl_number_parse(const char *s, locale_t c, double *out) {
  static const double ten[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,  1e8,  1e9,  1e10, 1e11,
                               1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};
  const char *p = s;
  uint64_t digits = 0;
  int n = 0, scale = 0, exponent = 0; /* digits that count, digits behind the point */
  bool point = false, some = false;
  if (*p == '-' || *p == '+') p++;
  for (; (*p >= '0' && *p <= '9') || (*p == '.' && !point); p++) {
    if (*p == '.') {
      point = true;
      continue;
    }
    some = true;
    if (digits || *p != '0') n++;
    if (n < 19) digits = digits * 10 + (uint64_t)(*p - '0');
    scale += point;
  }
  if (!some) return special_number(s, c, out);
  if (*p == 'e' || *p == 'E') {
    const bool minus = *++p == '-';
    if (*p == '-' || *p == '+') p++;
    if (*p < '0' || *p > '9') return false;
    for (; *p >= '0' && *p <= '9'; p++)
      if (exponent < 100000) exponent = exponent * 10 + (*p - '0');
    if (minus) exponent = -exponent;
  }
  if (*p != 0 || p - s > FIELD_MAX) return false;
  exponent -= scale;
  if (n <= 15 && exponent >= -22 && exponent <= 22) {
    const double v = exponent < 0 ? (double)digits / ten[-exponent] : (double)digits * ten[exponent];
    *out = *s == '-' ? -v : v;
  } else {
    *out = strtod_l(s, NULL, c);
  }
  return true;
}

/* v * 10 + sign * digit; false when that is too big. */
static bool append_digit(int64_t *v, int sign, int digit) {
  return !__builtin_mul_overflow(*v, 10, v) && !__builtin_add_overflow(*v, sign * digit, v);
}

bool ampl_integer_parse(const char *s, locale_t c, int64_t *out) {
  const int sign = *s == '-' ? -1 : 1;
  const char *p = s + (*s == '-' || *s == '+');
  long zeros = 0, scale = 0; /* zeros at the end up to now; digits behind the point */
  bool point = false;
  double v;
  *out = 0;
  if (!ampl_number_parse(s, c, &v)) return false;
  for (; (*p >= '0' && *p <= '9') || *p == '.'; p++) {
    if (*p == '.') {
      point = true;
      continue;
    }
    scale += point;
    zeros++;
    if (*p == '0') continue;
    for (; zeros > 1; zeros--)
      if (!append_digit(out, sign, 0)) return false;
    if (!append_digit(out, sign, *p - '0')) return false;
    zeros = 0;
  }
  if (*p != 0 && *p != 'e' && *p != 'E') return false; /* nan, inf */
  if (*out == 0) return true;
  zeros += (*p ? strtol(p + 1, NULL, 10) : 0) - scale;
  for (; zeros > 0; zeros--)
    if (!append_digit(out, sign, 0)) return false;
  return zeros == 0;
}
