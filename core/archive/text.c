/* text.c: files of text, as bytes or as characters. */
#include "file.h"

static ampl_status load_bytes(ampl_file *f, ampl_tensor **out) {
  AMPL_TRY(ampl_file_tensor(f->ctx, AMPL_U8, 1, (int64_t[]){(int64_t)f->size}, out));
  return ampl_file_next(f, ampl_data(*out), f->size);
}

/* The number of characters in [s, s + n). */
static ampl_status count(const ampl_file *f, const char *s, size_t n, int64_t *out) {
  uint32_t c;
  *out = 0;
  for (size_t at = 0, k; at < n; at += k, ++*out) {
    if (*out % 65536 == 0) AMPL_TRY(ampl_file_poll(f->ctx));
    k = ampl_utf8_next(s + at, n - at, &c);
    if (k == 0)
      return ampl_error(f->ctx, AMPL_EFORMAT, "%s: byte %zu: it is no valid UTF-8", f->shown, at);
  }
  return AMPL_OK;
}

static ampl_status load_characters(ampl_file *f, ampl_buffer *text, ampl_tensor **out) {
  int64_t n;
  AMPL_TRY(ampl_buffer_grow(text, 0, f->size + 1));
  const char *s = text->p, *end = s + f->size;
  AMPL_TRY(ampl_file_next(f, text->p, f->size));
  AMPL_TRY(count(f, s, f->size, &n));
  AMPL_TRY(ampl_file_tensor(f->ctx, AMPL_I32, 1, &n, out));
  int32_t *to = ampl_data(*out);
  for (uint32_t c; s < end; *to++ = (int32_t)c) s += ampl_utf8_next(s, (size_t)(end - s), &c);
  return AMPL_OK;
}

ampl_status ampl_text_load(ampl_ctx *ctx, const char *path, bool utf8, ampl_tensor **out) {
  ampl_file f;
  ampl_buffer text = {.ctx = ctx};
  *out = NULL;
  ampl_status s = ampl_file_open(ctx, path, &f);
  if (s == AMPL_OK)
    s = ampl_file_result(ctx, f.shown, utf8 ? load_characters(&f, &text, out) : load_bytes(&f, out));
  ampl_buffer_free(&text);
  ampl_file_close(&f);
  if (s != AMPL_OK) {
    ampl_tensor_release(*out);
    *out = NULL;
  }
  return s;
}
