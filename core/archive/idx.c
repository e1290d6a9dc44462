/* idx.c: reads IDX files (MNIST's format), compressed by gzip or not.
 *
 * A file is: two bytes 0, a byte for the type, a byte for the number of dimensions; each size in 4 bytes, big-endian;
 * the elements, row-major, big-endian.  The size of the file is checked before the tensor is made; gzip packs at most
 * 1032 to 1, so a small compressed file cannot ask for much. */
#include "elements.h"

#define GZIP_RATIO 1032

/* What a type byte stands for. */
static const struct {
  unsigned char code;
  char kind;
  int bytes;
} types[] = {{0x08, 'u', 1}, {0x09, 'i', 1}, {0x0b, 'i', 2}, {0x0c, 'i', 4}, {0x0d, 'f', 4}, {0x0e, 'f', 8}};

#define DAMAGED(s, ...) ampl_error((s)->ctx, AMPL_EFORMAT, "%s: " __VA_ARGS__)

static ampl_status need(void *stream, void *dst, size_t bytes) {
  ampl_stream *s = stream;
  size_t got;
  AMPL_TRY(ampl_stream_read(s, dst, bytes, &got));
  if (got == bytes) return AMPL_OK;
  return DAMAGED(s, "byte %llu: it ends here, %zu bytes too early: cut off, or no IDX file", s->shown,
                 (unsigned long long)s->at, bytes - got);
}

typedef struct header {
  const ampl_element *type;
  int ndim;
  int64_t shape[AMPL_RANK_MAX];
  uint64_t numel;
} header;

static ampl_status read_header(ampl_stream *s, header *h) {
  unsigned char b[4];
  AMPL_TRY(need(s, b, 4));
  if (b[0] != 0 || b[1] != 0)
    return DAMAGED(s, "byte 0: it begins with %02x %02x, not with 00 00: no IDX file", s->shown, b[0], b[1]);
  for (size_t i = 0; i < sizeof types / sizeof *types; i++)
    if (types[i].code == b[2]) h->type = ampl_element_find(types[i].kind, types[i].bytes);
  if (!h->type) return DAMAGED(s, "byte 2: type %02x is none of IDX", s->shown, b[2]);
  if (b[3] < 1 || b[3] > AMPL_RANK_MAX)
    return DAMAGED(s, "byte 3: %d dimensions; 1 to %d are possible", s->shown, b[3], AMPL_RANK_MAX);
  h->ndim = b[3];
  for (int i = 0; i < h->ndim; i++) {
    AMPL_TRY(need(s, b, 4));
    h->shape[i] = (int64_t)b[0] << 24 | b[1] << 16 | b[2] << 8 | b[3];
  }
  if (ampl_elements_count(h->ndim, h->shape, &h->numel)) return AMPL_OK;
  return DAMAGED(s, "byte 4: more elements than a file can hold", s->shown);
}

/* Whether the file is big enough for what its header says. */
static ampl_status check_size(ampl_stream *s, const header *h) {
  const uint64_t bytes = h->numel * h->type->bytes, all = s->at + bytes;
  if (!s->packed && all != s->size)
    return DAMAGED(s, "its header asks for %llu bytes of elements, but %llu follow: %s", s->shown,
                   (unsigned long long)bytes, (unsigned long long)(s->size - s->at),
                   all > s->size ? "it is cut off" : "it is too long");
  if (s->packed && all / GZIP_RATIO > s->size)
    return DAMAGED(s, "its header asks for %llu bytes of elements, more than %llu compressed bytes can hold", s->shown,
                   (unsigned long long)bytes, (unsigned long long)s->size);
  return AMPL_OK;
}

static ampl_status load(ampl_stream *s, ampl_tensor **out) {
  header h = {0};
  unsigned char more;
  size_t got;
  AMPL_TRY(read_header(s, &h));
  AMPL_TRY(check_size(s, &h));
  AMPL_TRY(ampl_file_tensor(s->ctx, h.type->dtype, h.ndim, h.shape, out));
  AMPL_TRY(ampl_elements_read(h.type, true, h.numel, ampl_data(*out), need, s));
  AMPL_TRY(ampl_stream_read(s, &more, 1, &got)); /* at the end of the data zlib compares its checksum */
  if (got) return DAMAGED(s, "byte %llu: bytes behind the last element", s->shown, (unsigned long long)s->at - 1);
  return AMPL_OK;
}

ampl_status ampl_idx_load(ampl_ctx *ctx, const char *path, ampl_tensor **out) {
  ampl_stream s;
  *out = NULL;
  ampl_status status = ampl_stream_open(ctx, path, &s);
  if (status == AMPL_OK) status = ampl_file_result(ctx, s.shown, load(&s, out));
  ampl_stream_close(&s);
  if (status != AMPL_OK) {
    ampl_tensor_release(*out);
    *out = NULL;
  }
  return status;
}
