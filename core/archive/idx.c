/* idx.c: reads IDX files (MNIST's format), compressed by gzip or not.
 *
 * A file is: two bytes 0, a byte for the type, a byte for the number of dimensions; each size in 4 bytes, big-endian;
 * the elements, row-major, big-endian.  The size of the file is checked before the tensor is made; gzip packs at most
 * 1032 to 1, so a small compressed file cannot ask for much. */
#include "file.h"

#include <string.h>

#define GZIP_RATIO 1032

static uint64_t big_endian(const unsigned char *p, int bytes) {
  uint64_t v = 0;
  for (int i = 0; i < bytes; i++) v = v << 8 | p[i];
  return v;
}

/* What a type byte stands for: bytes in the file, dtype, and how n elements become ours. */
typedef struct idx_type {
  unsigned char code;
  uint8_t bytes, dtype;
  void (*convert)(void *dst, const unsigned char *src, size_t n); /* NULL: the bytes are the same */
} idx_type;

#define CONVERT(name, bits, bytes, value, to)                                                                          \
  static void name(void *dst, const unsigned char *src, size_t n) {                                                    \
    for (size_t i = 0; i < n; i++) {                                                                                   \
      const bits b = (bits)big_endian(src + i * (bytes), bytes);                                                       \
      value v;                                                                                                         \
      memcpy(&v, &b, sizeof v);                                                                                        \
      ((to *)dst)[i] = (to)v;                                                                                          \
    }                                                                                                                  \
  }
CONVERT(from_i8, uint8_t, 1, int8_t, int32_t)
CONVERT(from_i16, uint16_t, 2, int16_t, int32_t)
CONVERT(from_i32, uint32_t, 4, int32_t, int32_t)
CONVERT(from_f32, uint32_t, 4, float, float)
CONVERT(from_f64, uint64_t, 8, double, double)

static const idx_type types[] = {
    {0x08, 1, AMPL_U8, NULL},      {0x09, 1, AMPL_I32, from_i8},  {0x0b, 2, AMPL_I32, from_i16},
    {0x0c, 4, AMPL_I32, from_i32}, {0x0d, 4, AMPL_F32, from_f32}, {0x0e, 8, AMPL_F64, from_f64},
};

#define DAMAGED(s, ...) ampl_error((s)->ctx, AMPL_EFORMAT, "%.300s: " __VA_ARGS__)

static ampl_status need(ampl_stream *s, void *dst, size_t bytes) {
  size_t got;
  AMPL_TRY(ampl_stream_read(s, dst, bytes, &got));
  if (got == bytes) return AMPL_OK;
  return DAMAGED(s, "byte %llu: it ends here, %zu bytes too early: cut off, or no IDX file", s->path,
                 (unsigned long long)s->at, bytes - got);
}

typedef struct header {
  const idx_type *type;
  int ndim;
  int64_t shape[AMPL_RANK_MAX];
  uint64_t numel;
} header;

static ampl_status read_header(ampl_stream *s, header *h) {
  unsigned char b[4];
  AMPL_TRY(need(s, b, 4));
  if (b[0] != 0 || b[1] != 0)
    return DAMAGED(s, "byte 0: it begins with %02x %02x, not with 00 00: no IDX file", s->path, b[0], b[1]);
  for (size_t i = 0; i < sizeof types / sizeof *types; i++)
    if (types[i].code == b[2]) h->type = &types[i];
  if (!h->type) return DAMAGED(s, "byte 2: type %02x is none of IDX", s->path, b[2]);
  if (b[3] < 1 || b[3] > AMPL_RANK_MAX)
    return DAMAGED(s, "byte 3: %d dimensions; 1 to %d are possible", s->path, b[3], AMPL_RANK_MAX);
  h->ndim = b[3];
  h->numel = 1;
  bool zero = false;
  for (int i = 0; i < h->ndim; i++) {
    AMPL_TRY(need(s, b, 4));
    const uint64_t size = big_endian(b, 4);
    h->shape[i] = (int64_t)size;
    if (size == 0)
      zero = true;
    else if (__builtin_mul_overflow(h->numel, size, &h->numel) || h->numel > INT64_MAX / 8)
      return DAMAGED(s, "byte %llu: more elements than a file can hold", s->path, (unsigned long long)s->at - 4);
  }
  if (zero) h->numel = 0;
  return AMPL_OK;
}

/* Whether the file is big enough for what its header says. */
static ampl_status check_size(ampl_stream *s, const header *h) {
  const uint64_t bytes = h->numel * h->type->bytes, all = s->at + bytes;
  if (!s->packed && all != s->size)
    return DAMAGED(s, "its header asks for %llu bytes of elements, but %llu follow: %s", s->path,
                   (unsigned long long)bytes, (unsigned long long)(s->size - s->at),
                   all > s->size ? "it is cut off" : "it is too long");
  if (s->packed && all / GZIP_RATIO > s->size)
    return DAMAGED(s, "its header asks for %llu bytes of elements, more than %llu compressed bytes can hold", s->path,
                   (unsigned long long)bytes, (unsigned long long)s->size);
  return AMPL_OK;
}

static ampl_status read_elements(ampl_stream *s, const header *h, ampl_tensor *t) {
  if (!h->type->convert) return need(s, ampl_data(t), (size_t)h->numel);
  unsigned char piece[4096];
  const size_t per = sizeof piece / h->type->bytes, wide = ampl_dtype_size(h->type->dtype);
  for (uint64_t i = 0; i < h->numel; i += per) {
    const size_t n = h->numel - i < per ? (size_t)(h->numel - i) : per;
    AMPL_TRY(need(s, piece, n * h->type->bytes));
    h->type->convert((char *)ampl_data(t) + i * wide, piece, n);
  }
  return AMPL_OK;
}

static ampl_status load(ampl_stream *s, ampl_tensor **out) {
  header h = {0};
  unsigned char more;
  size_t got;
  AMPL_TRY(read_header(s, &h));
  AMPL_TRY(check_size(s, &h));
  AMPL_TRY(ampl_file_tensor(s->ctx, h.type->dtype, h.ndim, h.shape, out));
  AMPL_TRY(read_elements(s, &h, *out));
  AMPL_TRY(ampl_stream_read(s, &more, 1, &got)); /* at the end of the data zlib compares its checksum */
  if (got) return DAMAGED(s, "byte %llu: bytes behind the last element", s->path, (unsigned long long)s->at - 1);
  return AMPL_OK;
}

ampl_status ampl_idx_load(ampl_ctx *ctx, const char *path, ampl_tensor **out) {
  ampl_stream s;
  *out = NULL;
  ampl_status status = ampl_stream_open(ctx, path, &s);
  if (status == AMPL_OK) status = load(&s, out);
  ampl_stream_close(&s);
  if (status != AMPL_OK) {
    ampl_tensor_release(*out);
    *out = NULL;
  }
  return status;
}
