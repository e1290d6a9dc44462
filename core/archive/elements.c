/* elements.c: the elements of files as elements of tensors: small integers are widened, big-endian ones turned round.
 */
#include "elements.h"

#include <string.h>

#define WIDEN(name, from, to)                                                                                          \
  static void name(void *dst, const void *src, size_t n) {                                                             \
    const unsigned char *s = src;                                                                                      \
    for (size_t i = 0; i < n; i++) {                                                                                   \
      from v;                                                                                                          \
      memcpy(&v, s + i * sizeof v, sizeof v);                                                                          \
      ((to *)dst)[i] = (to)v;                                                                                          \
    }                                                                                                                  \
  }
WIDEN(widen_i8, int8_t, int32_t)
WIDEN(widen_i16, int16_t, int32_t)
WIDEN(widen_u16, uint16_t, int32_t)
WIDEN(widen_u32, uint32_t, int64_t)

static void to_bool(void *dst, const void *src, size_t n) { /* any byte but 0 is true; ours are 0 and 1 only */
  const unsigned char *s = src;
  for (size_t i = 0; i < n; i++) ((unsigned char *)dst)[i] = s[i] != 0;
}

/* The first of each dtype is what it is written as. */
static const ampl_element elements[] = {
    {'f', 4, AMPL_F32, NULL},      {'f', 2, AMPL_F16, NULL},      {'e', 2, AMPL_BF16, NULL},
    {'f', 8, AMPL_F64, NULL},      {'i', 8, AMPL_I64, NULL},      {'i', 4, AMPL_I32, NULL},
    {'u', 1, AMPL_U8, NULL},       {'b', 1, AMPL_BOOL, to_bool},  {'i', 1, AMPL_I32, widen_i8},
    {'i', 2, AMPL_I32, widen_i16}, {'u', 2, AMPL_I32, widen_u16}, {'u', 4, AMPL_I64, widen_u32},
};
#define ELEMENTS (sizeof elements / sizeof *elements)

const ampl_element *ampl_element_find(char kind, int bytes) {
  for (size_t i = 0; i < ELEMENTS; i++)
    if (elements[i].kind == kind && elements[i].bytes == bytes) return &elements[i];
  return NULL;
}

const ampl_element *ampl_element_of(ampl_dtype t) {
  for (size_t i = 0; i < ELEMENTS; i++)
    if (elements[i].dtype == t) return &elements[i];
  return NULL;
}

static void turn_round(unsigned char *p, size_t bytes, size_t n) {
  for (size_t i = 0; i < n; i++, p += bytes)
    for (size_t a = 0, b = bytes - 1; a < b; a++, b--) {
      const unsigned char c = p[a];
      p[a] = p[b];
      p[b] = c;
    }
}

ampl_status ampl_elements_read(const ampl_element *e, bool big_endian, uint64_t n, void *dst, ampl_source_fn read,
                               void *ud) {
  unsigned char piece[8192];
  const size_t wide = ampl_dtype_size(e->dtype), per = sizeof piece / e->bytes;
  if (n == 0) return AMPL_OK;
  if (!e->convert && (!big_endian || e->bytes == 1)) return read(ud, dst, (size_t)n * e->bytes);
  for (uint64_t i = 0; i < n; i += per) {
    const size_t m = n - i < per ? (size_t)(n - i) : per;
    AMPL_TRY(read(ud, piece, m * e->bytes));
    if (big_endian) turn_round(piece, e->bytes, m);
    if (e->convert)
      e->convert((char *)dst + i * wide, piece, m);
    else
      memcpy((char *)dst + i * wide, piece, m * wide);
  }
  return AMPL_OK;
}

bool ampl_elements_count(int ndim, const int64_t *shape, uint64_t *out) {
  bool zero = false;
  *out = 1;
  for (int i = 0; i < ndim; i++) {
    if (shape[i] == 0)
      zero = true;
    else if (__builtin_mul_overflow(*out, (uint64_t)shape[i], out) || *out > INT64_MAX / 8)
      return false;
  }
  if (zero) *out = 0;
  return true;
}
