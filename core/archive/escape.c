/* escape.c: bytes of files in messages and on terminals. */
#include "escape.h"

#include <stdio.h>
#include <string.h>

size_t ampl_utf8_next(const char *text, size_t n, uint32_t *out) {
  static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
  const unsigned char *s = (const unsigned char *)text;
  const size_t k = *s < 0x80 ? 1 : *s < 0xc0 ? 0 : *s < 0xe0 ? 2 : *s < 0xf0 ? 3 : *s < 0xf8 ? 4 : 0;
  if (k == 0 || k > n) return 0;
  uint32_t c = k == 1 ? *s : *s & (0xffu >> (k + 1));
  for (size_t i = 1; i < k; i++) {
    if ((s[i] & 0xc0) != 0x80) return 0;
    c = c << 6 | (s[i] & 0x3f);
  }
  if (c < least[k] || c > 0x10ffff || (c >= 0xd800 && c < 0xe000)) return 0;
  *out = c;
  return k;
}

/* Characters that a terminal obeys, hides, or reorders text by. */
static bool hidden(uint32_t c) {
  static const uint32_t ranges[][2] = {{0, 0x1f},         {0x7f, 0x9f},     {0xad, 0xad},     {0x61c, 0x61c},
                                       {0x200b, 0x200f},  {0x2028, 0x202e}, {0x2060, 0x206f}, {0xfeff, 0xfeff},
                                       {0xfff9, 0xfffb},  {0xe0000, 0xe0fff}};
  for (size_t i = 0; i < sizeof ranges / sizeof *ranges; i++)
    if (c >= ranges[i][0] && c <= ranges[i][1]) return true;
  return false;
}

/* The character (or stray byte) at s as it is shown, into `out`; the bytes of it that were taken. */
static size_t show(const char *s, size_t n, char out[16]) {
  uint32_t c;
  const size_t k = ampl_utf8_next(s, n, &c);
  const char *letter = k == 1 && c ? strchr("\n\r\t\\", (int)c) : NULL;
  if (k == 0)
    snprintf(out, 16, "\\x%02x", (unsigned char)*s);
  else if (letter)
    snprintf(out, 16, "\\%c", *letter == '\n' ? 'n' : *letter == '\r' ? 'r' : *letter == '\t' ? 't' : '\\');
  else if (hidden(c))
    snprintf(out, 16, c < 0x80 ? "\\x%02x" : "\\u{%x}", c);
  else
    snprintf(out, 16, "%.*s", (int)k, s);
  return k ? k : 1;
}

size_t ampl_escape(char *dst, size_t room, const char *src, size_t n) {
  size_t used = 0, whole = 0; /* whole: what is shown if the text must be cut: "..." fits behind it */
  if (room == 0) return 0;
  for (size_t i = 0; i < n;) {
    char piece[16];
    i += show(src + i, n - i, piece);
    const size_t length = strlen(piece);
    if (used + length >= room) {
      used = whole + (size_t)snprintf(dst + whole, room - whole, "...");
      return used < room ? used : room - 1;
    }
    memcpy(dst + used, piece, length);
    used += length;
    if (used + 3 < room) whole = used;
  }
  dst[used] = 0;
  return used;
}

const char *ampl_escaped(ampl_ctx *ctx, const char *s, size_t most) {
  char *out = ampl_text(ctx);
  ampl_escape(out, most < sizeof ctx->text[0] ? most : sizeof ctx->text[0], s, strlen(s));
  return out;
}
