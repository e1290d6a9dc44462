/* stream.c: merged index spaces, and blocks of them in a working type. */
#include "stream.h"
#include "isa/convert.h"

#include <math.h>
#include <string.h>

ampl_cpu_work ampl_cpu_work_of (int t) {
  return t == AMPL_F64 ? AMPL_WORK_F64 : ampl_dtype_is_float((ampl_dtype)t) ? AMPL_WORK_F32 : AMPL_WORK_I64;
}

/* ------------------------------------------------------------------------------------------------ conversion ------ */

/* f16 and bf16 with a step are first gathered here */
enum { GATHER = 128 };

static const ampl_cpu_convert *convert (void) { return AMPL_CPU_BEST(ampl_cpu_convert); }
static int half (int dtype) { return dtype == AMPL_BF16; }

static void widen_half (float *dst, int dtype, const uint16_t *src, int64_t step, int64_t n) {
  if (step == 1) {
    convert()->widen[half(dtype)](dst, src, n);
    return;
  }
  uint16_t part[GATHER];
  for (int64_t i = 0; i < n; i += GATHER) {
    int64_t m = n - i < GATHER ? n - i : GATHER;
    for (int64_t j = 0; j < m; j++) part[j] = src[(i + j) * step];
    convert()->widen[half(dtype)](dst + i, part, m);
  }
}

static void narrow_half (const float *src, int dtype, uint16_t *dst, int64_t step, int64_t n) {
  if (step == 1) {
    convert()->narrow[half(dtype)](dst, src, n);
    return;
  }
  uint16_t part[GATHER];
  for (int64_t i = 0; i < n; i += GATHER) {
    int64_t m = n - i < GATHER ? n - i : GATHER;
    convert()->narrow[half(dtype)](part, src + i, m);
    for (int64_t j = 0; j < m; j++) dst[(i + j) * step] = part[j];
  }
}

/* Floats outside of int64 have no integer: INT64_MIN, as x86 */
static int64_t to_int (double x) { return x >= -0x1p63 && x < 0x1p63 ? (int64_t)x : INT64_MIN; }

#define COPY(TD, TS, expr)                                                                                             \
  do {                                                                                                                 \
    TD *d = dst;                                                                                                       \
    const TS *s = src;                                                                                                 \
    for (int64_t i = 0; i < n; i++) {                                                                                  \
      TS v = s[i * from];                                                                                              \
      d[i * to] = (TD)(expr);                                                                                          \
    }                                                                                                                  \
  } while (0)

/* Whole numbers narrow by dropping the high bits */
#define BY_DTYPE(dtype, X)                                                                                             \
  switch (dtype) {                                                                                                     \
    case AMPL_F32: X(float); break;                                                                                    \
    case AMPL_F64: X(double); break;                                                                                   \
    case AMPL_I64: X(int64_t); break;                                                                                  \
    case AMPL_I32: X(int32_t); break;                                                                                  \
    default: X(uint8_t); break;                                                                                        \
  }

static void widen_plain (ampl_cpu_work w, void *dst, int dtype, const void *src, int64_t from, int64_t n) {
  const int64_t to = 1;
#define TO_F32(T) COPY(float, T, v)
#define TO_F64(T) COPY(double, T, v)
#define TO_I64(T) COPY(int64_t, T, v)
#define CUT(T) COPY(int64_t, T, to_int(v))
  if (w == AMPL_WORK_F32) {
    BY_DTYPE(dtype, TO_F32)
  } else if (w == AMPL_WORK_F64) {
    BY_DTYPE(dtype, TO_F64)
  } else if (dtype == AMPL_F32) {
    CUT(float);
  } else if (dtype == AMPL_F64) {
    CUT(double);
  } else {
    BY_DTYPE(dtype, TO_I64)
  }
}

/* Runs without gaps to floats: false where this is none */
static bool widen_run (float *dst, int dtype, const void *src, int64_t n) {
  switch (dtype) {
    case AMPL_F32: memcpy(dst, src, (size_t)n * sizeof *dst); return true;
    case AMPL_F64: convert()->from_f64(dst, src, n); return true;
    case AMPL_I64: convert()->from_i64(dst, src, n); return true;
    case AMPL_I32: convert()->from_i32(dst, src, n); return true;
    case AMPL_U8:
    case AMPL_BOOL: convert()->from_u8(dst, src, n); return true;
    default: return false;
  }
}
static bool narrow_run (const float *src, int dtype, void *dst, int64_t n) {
  switch (dtype) {
    case AMPL_F32: memcpy(dst, src, (size_t)n * sizeof *src); return true;
    case AMPL_F64: convert()->to_f64(dst, src, n); return true;
    case AMPL_BOOL: convert()->to_bool(dst, src, n); return true;
    default: return false;
  }
}
enum { SHORT = 8 };             /* runs that are not worth a call */

void ampl_cpu_widen (ampl_cpu_work w, void *dst, int dtype, const void *src, int64_t step, int64_t n) {
  if (w == AMPL_WORK_F32 && step == 1 && n > SHORT && widen_run(dst, dtype, src, n)) return;
  if (dtype != AMPL_F16 && dtype != AMPL_BF16) {
    widen_plain(w, dst, dtype, src, step, n);
  } else if (w == AMPL_WORK_F32) {
    widen_half(dst, dtype, src, step, n);
  } else {
    float part[GATHER];
    for (int64_t i = 0; i < n; i += GATHER) {
      int64_t m = n - i < GATHER ? n - i : GATHER;
      widen_half(part, dtype, (const uint16_t *)src + i * step, step, m);
      widen_plain(w, (char *)dst + i * 8, AMPL_F32, part, 1, m);
    }
  }
}

static void narrow_plain (ampl_cpu_work w, const void *src, int dtype, void *dst, int64_t to, int64_t n) {
  const int64_t from = 1;
#define FROM_F32(T) COPY(T, float, v)
#define FROM_F64(T) COPY(T, double, v)
#define FROM_I64(T) COPY(T, int64_t, v)
  bool whole = !ampl_dtype_is_float((ampl_dtype)dtype);
  if (dtype == AMPL_BOOL) {
    if (w == AMPL_WORK_F32) COPY(uint8_t, float, v != 0);
    else if (w == AMPL_WORK_F64) COPY(uint8_t, double, v != 0);
    else COPY(uint8_t, int64_t, v != 0);
  } else if (whole && w != AMPL_WORK_I64) {
    int64_t part[GATHER];
    for (int64_t i = 0; i < n; i += GATHER) {
      int64_t m = n - i < GATHER ? n - i : GATHER;
      int t = w == AMPL_WORK_F32 ? AMPL_F32 : AMPL_F64;
      widen_plain(AMPL_WORK_I64, part, t, (const char *)src + i * (int64_t)ampl_cpu_work_size(w), 1, m);
      narrow_plain(AMPL_WORK_I64, part, dtype, (char *)dst + i * to * (int64_t)ampl_dtype_size((ampl_dtype)dtype), to,
                   m);
    }
  } else if (w == AMPL_WORK_F32) {
    BY_DTYPE(dtype, FROM_F32)
  } else if (w == AMPL_WORK_F64) {
    BY_DTYPE(dtype, FROM_F64)
  } else {
    BY_DTYPE(dtype, FROM_I64)
  }
}

/* To f32 on the way to 16 bits: what does not fit is cut off and leaves its mark in the last bit ("round to odd"), so
 * that the rounding to 16 bits comes out as if it had seen all of v. */
static float odd (float nearest, bool exact, bool above) {
  uint32_t bits;
  if (exact || !(nearest - nearest == 0)) return nearest;       /* infinities, NaN */
  memcpy(&bits, &nearest, sizeof bits);
  if (!(bits & 1)) bits += above == (bits >> 31 == 0) ? -1u : 1u;       /* `above`: nearest is above v */
  memcpy(&nearest, &bits, sizeof bits);
  return nearest;
}
static float odd_f64 (double v) {
  const float f = (float)v;
  if (f == 0 && v != 0) return v < 0 ? -0x1p-149f : 0x1p-149f;
  return odd(f, (double)f == v, (double)f > v);
}
static float odd_i64 (int64_t v) {
  const float f = (float)v;
  if (f >= 0x1p63f) return 0x1.fffffep62f;
  return odd(f, (int64_t)f == v, (int64_t)f > v);
}

void ampl_cpu_narrow (ampl_cpu_work w, const void *src, int dtype, void *dst, int64_t step, int64_t n) {
  if (w == AMPL_WORK_F32 && step == 1 && n > SHORT && narrow_run(src, dtype, dst, n)) return;
  if (dtype != AMPL_F16 && dtype != AMPL_BF16) {
    narrow_plain(w, src, dtype, dst, step, n);
  } else if (w == AMPL_WORK_F32) {
    narrow_half(src, dtype, dst, step, n);
  } else {
    float part[GATHER];
    for (int64_t i = 0; i < n; i += GATHER) {
      int64_t m = n - i < GATHER ? n - i : GATHER;
      for (int64_t j = 0; j < m; j++)
        part[j] = w == AMPL_WORK_F64 ? odd_f64(((const double *)src)[i + j]) : odd_i64(((const int64_t *)src)[i + j]);
      narrow_half(part, dtype, (uint16_t *)dst + i * step, step, m);
    }
  }
}

/* ------------------------------------------------------------------------------------------------ index spaces ---- */

static void swap (int64_t *a, int64_t *b) {
  int64_t t = *a;
  *a = *b;
  *b = t;
}

/* Larger steps of the first stream outside; a step of 0 counts as the largest, it is no direction to run along */
static bool belongs_before (int64_t a, int64_t b) { return b != 0 && (a == 0 || a > b); }

void ampl_cpu_streams_from (int count, const int64_t *const *stride, int nd, const int64_t *shape, bool sorted,
                            ampl_cpu_stream *out) {
  int64_t at[AMPL_RANK_MAX], n = 1;
  int m = 0;
  for (int d = 0; d < nd; d++) {
    n *= shape[d];
    if (shape[d] != 1) at[m++] = d;
  }
  if (n == 0) {                 /* one dimension of nothing: positions are divided by the inner sizes */
    for (int k = 0; k < count; k++) out[k].nd = 1, out[k].n = out[k].shape[0] = 0, out[k].stride[0] = 1;
    return;
  }
  if (sorted)
    for (int i = 1; i < m; i++)
      for (int j = i; j > 0 && belongs_before(stride[0][at[j]], stride[0][at[j - 1]]); j--) swap(&at[j], &at[j - 1]);
  int last = -1;                /* dimension of `out` that is being merged into */
  for (int i = 0; i < m; i++) {
    int64_t d = at[i];
    bool merge = last >= 0;
    for (int k = 0; k < count && merge; k++) merge = out[k].stride[last] == stride[k][d] * shape[d];
    if (!merge) last++;
    for (int k = 0; k < count; k++) {
      out[k].shape[last] = merge ? out[k].shape[last] * shape[d] : shape[d];
      out[k].stride[last] = stride[k][d];
    }
  }
  for (int k = 0; k < count; k++) {
    if (last < 0) out[k].shape[0] = 1, out[k].stride[0] = 1;
    out[k].nd = last < 0 ? 1 : last + 1;
    out[k].n = n;
  }
}

enum { STREAMS_MAX = 8 };

void ampl_cpu_streams (int count, const ampl_tensor *const *t, int nd, const int64_t *shape, bool sorted,
                       ampl_cpu_stream *out) {
  int64_t stride[STREAMS_MAX][AMPL_RANK_MAX] = {{0}};
  const int64_t *rows[STREAMS_MAX];
  for (int k = 0; k < count; k++) {
    rows[k] = stride[k];
    out[k].data = t[k] ? t[k]->data : NULL;
    out[k].dtype = t[k] ? t[k]->dtype : AMPL_F32;
    for (int d = 0, lead = t[k] ? nd - t[k]->ndim : nd; d < nd; d++)
      stride[k][d] = d < lead || t[k]->shape[d - lead] == 1 ? 0 : t[k]->strides[d - lead];
  }
  ampl_cpu_streams_from(count, rows, nd, shape, sorted, out);
}

bool ampl_cpu_lines (int count, const ampl_tensor *const *t, int64_t dim, ampl_cpu_stream *x, ampl_cpu_stream *along) {
  int64_t stride[STREAMS_MAX][AMPL_RANK_MAX] = {{0}}, shape[AMPL_RANK_MAX];
  const int64_t *rows[STREAMS_MAX];
  int nd = 0;
  for (int d = 0; d < t[0]->ndim; d++) {
    if (d == dim) continue;
    for (int k = 0; k < count; k++)
      if (t[k]) stride[k][nd] = t[k]->strides[d];
    shape[nd++] = t[0]->shape[d];
  }
  for (int k = 0; k < count; k++) {
    rows[k] = stride[k];
    x[k].data = t[k] ? t[k]->data : NULL;
    x[k].dtype = t[k] ? t[k]->dtype : AMPL_F32;
    along[k] = x[k];
    along[k].nd = 1;
    along[k].n = along[k].shape[0] = t[0]->ndim ? t[0]->shape[dim] : 1;
    along[k].stride[0] = t[k] && t[k]->ndim ? t[k]->strides[dim] : 1;
  }
  ampl_cpu_streams_from(count, rows, nd, shape, true, x);
  int64_t step = x[0].stride[x[0].nd - 1];
  return x[0].shape[x[0].nd - 1] >= 4 && step && along[0].n > 1 && along[0].stride[0] > step;
}

bool ampl_cpu_runs_along (const ampl_tensor *x, uint32_t dims) {
  int64_t least = INT64_MAX;
  bool along = true;
  for (int d = 0; d < x->ndim; d++) {
    if (x->shape[d] == 1 || x->strides[d] == 0 || x->strides[d] > least) continue;
    least = x->strides[d];
    along = dims >> d & 1;
  }
  return along;
}

/* ------------------------------------------------------------------------------------------------ blocks ---------- */

/* Where element pos is, and its place in every dimension */
static int64_t locate (const ampl_cpu_stream *s, int64_t pos, int64_t *at) {
  int64_t offset = 0;
  for (int d = s->nd - 1; d > 0; d--) {
    int64_t q = pos / s->shape[d];
    at[d] = pos - q * s->shape[d];
    offset += at[d] * s->stride[d];
    pos = q;
  }
  at[0] = pos;
  return offset + pos * s->stride[0];
}

int64_t ampl_cpu_offset (const ampl_cpu_stream *s, int64_t pos) {
  int64_t at[AMPL_RANK_MAX];
  return s->nd == 1 ? pos * s->stride[0] : locate(s, pos, at);
}

/* From the end of an inner run to the start of the next one */
static int64_t carry (const ampl_cpu_stream *s, int64_t offset, int64_t *at) {
  int d = s->nd - 1;
  offset += (s->shape[d] - at[d]) * s->stride[d];
  at[d] = s->shape[d];
  while (d > 0 && at[d] == s->shape[d]) {
    offset -= s->shape[d] * s->stride[d];
    at[d--] = 0;
    at[d]++;
    offset += s->stride[d];
  }
  return offset;
}

static bool native (const ampl_cpu_stream *s, ampl_cpu_work w) {
  return s->dtype == (w == AMPL_WORK_F32 ? AMPL_F32 : w == AMPL_WORK_F64 ? AMPL_F64 : AMPL_I64);
}

int64_t ampl_cpu_run (const ampl_cpu_stream *s, int64_t pos, int64_t most) {
  enum { WORTH_IT = 256 };
  int64_t inner = s->shape[s->nd - 1], left = inner - (s->nd > 1 ? pos % inner : pos);
  return inner >= WORTH_IT && left < most ? left : most;
}

/* The block in place, NULL where it does not lie there as it is needed */
static void *in_place (const ampl_cpu_stream *s, ampl_cpu_work w, int64_t first, int64_t pos, int64_t len) {
  int d = s->nd - 1;
  if (!native(s, w) || s->stride[d] != 1) return NULL;
  int64_t inner = d ? pos % s->shape[d] : pos;
  if (inner + len > s->shape[d]) return NULL;
  return s->data + (first + ampl_cpu_offset(s, pos)) * (int64_t)ampl_cpu_work_size(w);
}

const void *ampl_cpu_load (const ampl_cpu_stream *s, ampl_cpu_work w, int64_t first, int64_t pos, int64_t len,
                           void *buf) {
  const void *there = in_place(s, w, first, pos, len);
  if (there) return there;
  int64_t at[AMPL_RANK_MAX], offset = first + locate(s, pos, at);
  int d = s->nd - 1;
  int64_t size = (int64_t)ampl_dtype_size((ampl_dtype)s->dtype), wide = (int64_t)ampl_cpu_work_size(w);
  for (char *dst = buf; len > 0;) {
    int64_t run = s->shape[d] - at[d];
    if (run > len) run = len;
    ampl_cpu_widen(w, dst, s->dtype, s->data + offset * size, s->stride[d], run);
    dst += run * wide;
    len -= run;
    if (len > 0) offset = carry(s, offset, at);
  }
  return buf;
}

void *ampl_cpu_target (const ampl_cpu_stream *s, ampl_cpu_work w, int64_t first, int64_t pos, int64_t len, void *buf) {
  void *there = in_place(s, w, first, pos, len);
  return there ? there : buf;
}

void ampl_cpu_store (const ampl_cpu_stream *s, ampl_cpu_work w, int64_t first, int64_t pos, int64_t len,
                     const void *values) {
  if (values == in_place(s, w, first, pos, len)) return;
  int64_t at[AMPL_RANK_MAX], offset = first + locate(s, pos, at);
  int d = s->nd - 1;
  int64_t size = (int64_t)ampl_dtype_size((ampl_dtype)s->dtype), wide = (int64_t)ampl_cpu_work_size(w);
  for (const char *src = values; len > 0;) {
    int64_t run = s->shape[d] - at[d];
    if (run > len) run = len;
    ampl_cpu_narrow(w, src, s->dtype, s->data + offset * size, s->stride[d], run);
    src += run * wide;
    len -= run;
    if (len > 0) offset = carry(s, offset, at);
  }
}

/* ------------------------------------------------------------------------------------------------ rows ------------ */

const void *ampl_cpu_load_rows (const ampl_cpu_stream *s, ampl_cpu_work w, int64_t first, int64_t step, int64_t pos,
                                int64_t rows, int64_t m, void *buf, int64_t *ld) {
  const void *there = in_place(s, w, first, pos, m);
  *ld = there ? step : m;
  if (there) return there;
  int64_t inner = s->stride[s->nd - 1], size = (int64_t)ampl_dtype_size((ampl_dtype)s->dtype);
  const char *src = s->data + (first + ampl_cpu_offset(s, pos)) * size;
  if (inner == 1 && step == m) ampl_cpu_widen(w, buf, s->dtype, src, 1, rows * m);
  else
    for (int64_t i = 0; i < rows; i++)
      ampl_cpu_widen(w, (char *)buf + i * m * (int64_t)ampl_cpu_work_size(w), s->dtype, src + i * step * size, inner,
                     m);
  return buf;
}

const void *ampl_cpu_load_grid (const ampl_cpu_stream *s, const ampl_cpu_stream *down, ampl_cpu_work w, int64_t pos,
                                int64_t from, int64_t rows, int64_t m, void *buf, int64_t *ld) {
  if (down->nd == 1) return ampl_cpu_load_rows(s, w, from * down->stride[0], down->stride[0], pos, rows, m, buf, ld);
  *ld = m;
  for (int64_t i = 0; i < rows; i++) {
    void *row = (char *)buf + i * m * (int64_t)ampl_cpu_work_size(w);
    const void *at = ampl_cpu_load(s, w, ampl_cpu_offset(down, from + i), pos, m, row);
    if (at != row) memcpy(row, at, (size_t)m * ampl_cpu_work_size(w));
  }
  return buf;
}

void *ampl_cpu_target_rows (const ampl_cpu_stream *s, ampl_cpu_work w, int64_t first, int64_t step, int64_t pos,
                            int64_t m, void *buf, int64_t *ld) {
  void *there = in_place(s, w, first, pos, m);
  *ld = there ? step : m;
  return there ? there : buf;
}

void ampl_cpu_store_rows (const ampl_cpu_stream *s, ampl_cpu_work w, int64_t first, int64_t step, int64_t pos,
                          int64_t rows, int64_t m, const void *values) {
  if (values == in_place(s, w, first, pos, m)) return;
  int64_t inner = s->stride[s->nd - 1], size = (int64_t)ampl_dtype_size((ampl_dtype)s->dtype);
  char *dst = s->data + (first + ampl_cpu_offset(s, pos)) * size;
  if (inner == 1 && step == m) ampl_cpu_narrow(w, values, s->dtype, dst, 1, rows * m);
  else
    for (int64_t i = 0; i < rows; i++)
      ampl_cpu_narrow(w, (const char *)values + i * m * (int64_t)ampl_cpu_work_size(w), s->dtype, dst + i * step * size,
                      inner, m);
}
