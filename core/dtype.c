/* dtype.c: names, sizes and promotion of dtypes. */
#include "ampl.h"

#include <string.h>

static const struct { const char *name; uint8_t size; } dtypes[] = {
#define AMPL_X(NAME, name, bytes) {#name, bytes},
    AMPL_DTYPE_MAP(AMPL_X)
#undef AMPL_X
};

const char *ampl_dtype_name(ampl_dtype t) { return (unsigned)t < AMPL_DTYPE_COUNT ? dtypes[t].name : "?"; }
size_t ampl_dtype_size(ampl_dtype t) { return (unsigned)t < AMPL_DTYPE_COUNT ? dtypes[t].size : 0; }
bool ampl_dtype_is_float(ampl_dtype t) { return (unsigned)t <= AMPL_F64; }

int ampl_dtype_from_name(const char *name) {
  for (int t = 0; name && t < AMPL_DTYPE_COUNT; t++)
    if (strcmp(name, dtypes[t].name) == 0) return t;
  return AMPL_DTYPE_NONE;
}

/* Floats beat integers beat bool; within a kind the wider one wins, and f16 with bf16, neither of which holds the
 * other, give f32; u8 with a signed integer gives that integer. */
ampl_dtype ampl_dtype_promote(ampl_dtype a, ampl_dtype b) {
  static const uint8_t rank[] = {[AMPL_BOOL] = 0, [AMPL_U8] = 1,   [AMPL_I32] = 2, [AMPL_I64] = 3,
                                 [AMPL_F16] = 4,  [AMPL_BF16] = 4, [AMPL_F32] = 5, [AMPL_F64] = 6};
  if ((unsigned)a >= AMPL_DTYPE_COUNT || (unsigned)b >= AMPL_DTYPE_COUNT) return (ampl_dtype)AMPL_DTYPE_NONE;
  if (a == b) return a;
  if (rank[a] == rank[b]) return AMPL_F32;
  return rank[a] > rank[b] ? a : b;
}
