/* escape.h: text from outside, which may hold anything, and text that may be shown. */
#ifndef AMPL_ESCAPE_H
#define AMPL_ESCAPE_H

#include "archive.h"
#include "ctx.h"

/* The bytes of the UTF-8 character that begins at s, n > 0 bytes of text, and its code point; 0: there is none (no
 * overlong forms, no surrogates, nothing above U+10FFFF). */
size_t ampl_utf8_next(const char *s, size_t n, uint32_t *out);

/* s escaped (ampl_escape), at most `most` - 1 bytes, in a small text of the context that lives as long as a message is
 * being made. */
const char *ampl_escaped(ampl_ctx *ctx, const char *s, size_t most);

#endif
