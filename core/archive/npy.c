/* npy.c: reads npy files, NumPy's arrays.
 *
 * A file is: \x93NUMPY, two bytes of version, the length of the header (two bytes, from version 2 on four,
 * little-endian), the header, a Python dictionary {'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }, and the
 * elements.  Only these three keys are understood, and only numbers and bools: an array of objects, which NumPy would
 * unpickle, is refused. */
#include "elements.h"

#include <stdlib.h>
#include <string.h>

#define HEADER_MAX (1u << 20)

typedef struct reader {
  ampl_ctx *ctx;
  ampl_file file;
  uint64_t start;  /* of the header in the file */
  ampl_buffer room;
  char *text, *at; /* in it: the header, ended by 0, and how far it is read */
  const ampl_element *type;
  bool big_endian, fortran;
  int ndim;
  int64_t shape[AMPL_RANK_MAX];
  uint64_t numel;
} reader;

#define DAMAGED(r, ...) ampl_error((r)->ctx, AMPL_EFORMAT, "%s: " __VA_ARGS__)

static ampl_status syntax(reader *r, const char *what) {
  return DAMAGED(r, "byte %llu: %s expected in the header, not \"%s\"", r->file.shown,
                 (unsigned long long)(r->start + (uint64_t)(r->at - r->text)), what, ampl_escaped(r->ctx, r->at, 24));
}

static void skip_blanks(reader *r) { r->at += strspn(r->at, " \t\r\n"); }

static bool take(reader *r, const char *word) {
  const size_t n = strlen(word);
  skip_blanks(r);
  if (strncmp(r->at, word, n) != 0) return false;
  r->at += n;
  return true;
}

/* A string of at most n - 1 bytes, without escapes; Python 2 may have written u'...'. */
static ampl_status take_string(reader *r, char *out, size_t n) {
  skip_blanks(r);
  if ((*r->at == 'u' || *r->at == 'b') && (r->at[1] == '\'' || r->at[1] == '"')) r->at++;
  const char quote = *r->at;
  if (quote != '\'' && quote != '"') return syntax(r, "a string");
  const char *end = strchr(r->at + 1, quote);
  if (!end || (size_t)(end - r->at) > n) return syntax(r, "a short string");
  const size_t bytes = (size_t)(end - r->at) - 1;
  memcpy(out, r->at + 1, bytes);
  out[bytes] = 0;
  r->at += bytes + 2;
  return AMPL_OK;
}

static ampl_status take_type(reader *r) {
  char descr[16];
  if (take(r, "["))
    return ampl_error(r->ctx, AMPL_EUNSUPPORTED, "%s: an array of records; ampl has no dtype for it", r->file.shown);
  AMPL_TRY(take_string(r, descr, sizeof descr));
  const char *kind = descr + (descr[0] && strchr("<>|=", descr[0]) ? 1 : 0);
  const char *digit = *kind ? kind + 1 : kind;
  const bool one = *digit >= '1' && *digit <= '9' && digit[1] == 0; /* no number of ours takes ten bytes or more */
  r->type = one && strchr("fiub", *kind) ? ampl_element_find(*kind, *digit - '0') : NULL;
  r->big_endian = descr[0] == '>';
  if (r->type) return AMPL_OK;
  return ampl_error(r->ctx, AMPL_EUNSUPPORTED, "%s: elements of type \"%s\"; ampl has no dtype for them",
                    r->file.shown, ampl_escaped(r->ctx, descr, 64));
}

static ampl_status take_shape(reader *r) {
  if (!take(r, "(")) return syntax(r, "a shape");
  while (!take(r, ")")) {
    char *end;
    skip_blanks(r);
    if (*r->at < '0' || *r->at > '9') return syntax(r, "a size");
    const unsigned long long size = strtoull(r->at, &end, 10);
    if (end - r->at > 18) return syntax(r, "a size that is possible");
    if (r->ndim == AMPL_RANK_MAX)
      return ampl_error(r->ctx, AMPL_EUNSUPPORTED, "%s: more than %d dimensions", r->file.shown, AMPL_RANK_MAX);
    r->shape[r->ndim++] = (int64_t)size;
    r->at = end + (*end == 'L'); /* a long of Python 2 */
    if (!take(r, ",")) {
      if (!take(r, ")")) return syntax(r, "a comma or )");
      break;
    }
  }
  return AMPL_OK;
}

static ampl_status parse_header(reader *r) {
  char key[16];
  bool order = false, shape = false;
  if (!take(r, "{")) return syntax(r, "{");
  while (!take(r, "}")) {
    AMPL_TRY(take_string(r, key, sizeof key));
    if (!take(r, ":")) return syntax(r, "a colon");
    if (strcmp(key, "descr") == 0 && !r->type)
      AMPL_TRY(take_type(r));
    else if (strcmp(key, "shape") == 0 && !shape) {
      AMPL_TRY(take_shape(r));
      shape = true;
    } else if (strcmp(key, "fortran_order") == 0 && !order) {
      r->fortran = take(r, "True");
      if (!r->fortran && !take(r, "False")) return syntax(r, "True or False");
      order = true;
    } else
      return DAMAGED(r, "the key '%s' in the header is unknown or a second one", r->file.shown,
                     ampl_escaped(r->ctx, key, 64));
    if (!take(r, ",")) {
      if (!take(r, "}")) return syntax(r, "a comma or }");
      break;
    }
  }
  skip_blanks(r);
  if (*r->at) return syntax(r, "the end");
  if (r->type && shape && order) return AMPL_OK;
  return DAMAGED(r, "the header lacks %s", r->file.shown, !r->type ? "descr" : shape ? "fortran_order" : "shape");
}

static ampl_status read_header(reader *r) {
  unsigned char b[12] = {0};
  const uint64_t size = r->file.size;
  AMPL_TRY(ampl_file_read(&r->file, 0, b, size < sizeof b ? (size_t)size : sizeof b));
  if (size < 10 || memcmp(b, "\x93NUMPY", 6) != 0) return DAMAGED(r, "byte 0: no npy file", r->file.shown);
  if (b[6] < 1 || b[6] > 3 || b[7] != 0)
    return DAMAGED(r, "byte 6: version %d.%d of the format is unknown", r->file.shown, b[6], b[7]);
  r->start = b[6] == 1 ? 10 : 12;
  uint64_t bytes = (uint64_t)b[8] | (uint64_t)b[9] << 8;
  if (b[6] > 1) bytes |= (uint64_t)b[10] << 16 | (uint64_t)b[11] << 24;
  if (size < r->start || bytes > size - r->start || bytes > HEADER_MAX)
    return DAMAGED(r, "byte 8: a header of %llu bytes in a file of %llu; at most %u are allowed", r->file.shown,
                   (unsigned long long)bytes, (unsigned long long)size, HEADER_MAX);
  AMPL_TRY(ampl_buffer_grow(&r->room, 0, (size_t)bytes + 1));
  r->text = r->at = r->room.p;
  r->text[bytes] = 0;
  AMPL_TRY(ampl_file_read(&r->file, r->start, r->text, (size_t)bytes));
  if (strlen(r->text) != bytes) return DAMAGED(r, "a zero byte in the header", r->file.shown);
  r->file.at = r->start + bytes;
  return parse_header(r);
}

static ampl_status check_size(reader *r) {
  const uint64_t held = r->file.size - r->file.at;
  if (!ampl_elements_count(r->ndim, r->shape, &r->numel))
    return DAMAGED(r, "its shape has more elements than a file can hold", r->file.shown);
  const uint64_t bytes = r->numel * r->type->bytes;
  if (bytes == held) return AMPL_OK;
  return DAMAGED(r, "its header asks for %llu bytes of elements, but %llu follow: it is %s", r->file.shown,
                 (unsigned long long)bytes, (unsigned long long)held, bytes > held ? "cut off" : "too long");
}

/* Column-major elements are the row-major ones of the shape in reverse: *out becomes a view that turns it again. */
static ampl_status turn_dimensions(reader *r, ampl_tensor **out) {
  int64_t order[AMPL_RANK_MAX];
  ampl_tensor *turned;
  for (int i = 0; i < r->ndim; i++) order[i] = r->ndim - 1 - i;
  AMPL_TRY(ampl_run(r->ctx, "permute", (ampl_value[]){{.t = *out}, {.l = {order, r->ndim}}}, 2, &turned, 1));
  ampl_tensor_release(*out);
  *out = turned;
  return AMPL_OK;
}

static ampl_status load(reader *r, ampl_tensor **out) {
  AMPL_TRY(read_header(r));
  AMPL_TRY(check_size(r));
  const bool turn = r->fortran && r->ndim > 1;
  for (int i = 0; turn && i < r->ndim / 2; i++) {
    const int64_t size = r->shape[i];
    r->shape[i] = r->shape[r->ndim - 1 - i];
    r->shape[r->ndim - 1 - i] = size;
  }
  AMPL_TRY(ampl_file_tensor(r->ctx, r->type->dtype, r->ndim, r->shape, out));
  AMPL_TRY(ampl_elements_read(r->type, r->big_endian, r->numel, ampl_data(*out), ampl_file_next, &r->file));
  return turn ? turn_dimensions(r, out) : AMPL_OK;
}

ampl_status ampl_npy_load(ampl_ctx *ctx, const char *path, ampl_tensor **out) {
  reader r = {.ctx = ctx, .room = {.ctx = ctx}};
  *out = NULL;
  ampl_status s = ampl_file_open(ctx, path, &r.file);
  if (s == AMPL_OK) s = ampl_file_result(ctx, r.file.shown, load(&r, out));
  ampl_buffer_free(&r.room);
  ampl_file_close(&r.file);
  if (s != AMPL_OK) {
    ampl_tensor_release(*out);
    *out = NULL;
  }
  return s;
}
