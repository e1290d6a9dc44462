/* json.c: a reader of JSON that decodes strings in place and keeps nothing. */
#include "json.h"

#include <string.h>

#define DEPTH_MAX 64 /* of values within values */

ampl_status ampl_json_syntax(const ampl_json *j, const char *what) {
  const long long at = (long long)j->start + (j->at - j->text);
  if (j->at >= j->end)
    return ampl_error(j->ctx, AMPL_EFORMAT, "%s: byte %lld: the header is no valid JSON: %s expected, but it ends",
                      j->shown, at, what);
  return ampl_error(j->ctx, AMPL_EFORMAT, "%s: byte %lld: the header is no valid JSON: %s expected, not \"%s\"",
                    j->shown, at, what, ampl_escaped(j->ctx, j->at, 24));
}

static void skip_blanks(ampl_json *j) {
  while (*j->at == ' ' || *j->at == '\t' || *j->at == '\n' || *j->at == '\r') j->at++;
}

bool ampl_json_take(ampl_json *j, char c) {
  skip_blanks(j);
  if (*j->at != c || j->at >= j->end) return false;
  j->at++;
  return true;
}

/* ------------------------------------------------------------------------------------------------ strings --------- */

/* The four hexadecimal digits at s; -1: there are none. */
static int32_t hex4(const char *s) {
  int32_t v = 0;
  for (int i = 0; i < 4; i++) {
    const char c = s[i], low = (char)(c | 0x20);
    if (c >= '0' && c <= '9')
      v = v * 16 + (c - '0');
    else if (low >= 'a' && low <= 'f')
      v = v * 16 + (low - 'a' + 10);
    else
      return -1;
  }
  return v;
}

static char *put_utf8(char *out, uint32_t c) {
  if (c < 0x80) {
    *out++ = (char)c;
    return out;
  }
  const int more = c < 0x800 ? 1 : c < 0x10000 ? 2 : 3;
  *out++ = (char)((0xffu << (7 - more)) | c >> (6 * more));
  for (int i = more - 1; i >= 0; i--) *out++ = (char)(0x80 | (c >> (6 * i) & 0x3f));
  return out;
}

/* The character behind the backslash at j->at; it is never shorter in the text than in UTF-8. */
static ampl_status escape(ampl_json *j, char **out) {
  static const char from[] = "\"\\/bfnrt", to[] = "\"\\/\b\f\n\r\t";
  const char c = j->at[1], *known = c ? strchr(from, c) : NULL;
  if (known) {
    *(*out)++ = to[known - from];
    j->at += 2;
    return AMPL_OK;
  }
  int32_t code = c == 'u' ? hex4(j->at + 2) : -1;
  if (code == 0) return ampl_json_syntax(j, "a string without zero bytes");
  if (code < 0 || (code >= 0xdc00 && code < 0xe000)) return ampl_json_syntax(j, "an escape sequence");
  if (code >= 0xd800 && code < 0xdc00) {
    const int32_t low = j->at[6] == '\\' && j->at[7] == 'u' ? hex4(j->at + 8) : -1;
    if (low < 0xdc00 || low >= 0xe000) return ampl_json_syntax(j, "a pair of surrogates");
    code = 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00);
    j->at += 6;
  }
  j->at += 6;
  *out = put_utf8(*out, (uint32_t)code);
  return AMPL_OK;
}

ampl_status ampl_json_string(ampl_json *j, char **out) {
  if (!ampl_json_take(j, '"')) return ampl_json_syntax(j, "a string");
  char *to = *out = j->at;
  while (*j->at != '"') {
    uint32_t c;
    const unsigned char byte = (unsigned char)*j->at;
    const size_t n = byte < 0x20 ? 0 : byte < 0x80 ? 1 : ampl_utf8_next(j->at, (size_t)(j->end - j->at), &c);
    if (n == 0) return ampl_json_syntax(j, "UTF-8 without control characters");
    if (byte == '\\') {
      AMPL_TRY(escape(j, &to));
      continue;
    }
    memmove(to, j->at, n);
    to += n;
    j->at += n;
  }
  j->at++;
  *to = 0;
  return AMPL_OK;
}

/* ------------------------------------------------------------------------------------------------ structure ------- */

ampl_status ampl_json_key(ampl_json *j, size_t *n, char **key) {
  *key = NULL;
  AMPL_TRY(ampl_file_poll(j->ctx));
  if (ampl_json_take(j, '}')) return AMPL_OK;
  if (*n > 0 && !ampl_json_take(j, ',')) return ampl_json_syntax(j, "a comma or }");
  AMPL_TRY(ampl_json_string(j, key));
  if (!ampl_json_take(j, ':')) return ampl_json_syntax(j, "a colon");
  ++*n;
  return AMPL_OK;
}

ampl_status ampl_json_element(ampl_json *j, size_t *n, bool *more) {
  *more = false;
  AMPL_TRY(ampl_file_poll(j->ctx));
  if (ampl_json_take(j, ']')) return AMPL_OK;
  if (*n > 0 && !ampl_json_take(j, ',')) return ampl_json_syntax(j, "a comma or ]");
  ++*n;
  *more = true;
  return AMPL_OK;
}

static const char *digits(const char *s) {
  while (*s >= '0' && *s <= '9') s++;
  return s;
}

/* Where the number that begins at s ends; NULL: none begins there. */
static const char *number_end(const char *s) {
  if (*s == '-') s++;
  const char *e = digits(s);
  if (e == s || (*s == '0' && e > s + 1)) return NULL;
  if (*e == '.') {
    if (digits(e + 1) == e + 1) return NULL;
    e = digits(e + 1);
  }
  if (*e == 'e' || *e == 'E') {
    s = e + 1 + (e[1] == '+' || e[1] == '-');
    if (digits(s) == s) return NULL;
    e = digits(s);
  }
  return e;
}

static ampl_status skip_plain(ampl_json *j) { /* a number or a word */
  static const char *const words[] = {"true", "false", "null"};
  for (int i = 0; i < 3; i++)
    if (strncmp(j->at, words[i], strlen(words[i])) == 0) {
      j->at += strlen(words[i]);
      return AMPL_OK;
    }
  const char *end = number_end(j->at);
  if (!end) return ampl_json_syntax(j, "a value");
  j->at += end - j->at;
  return AMPL_OK;
}

static ampl_status skip_value(ampl_json *j, int depth) {
  size_t n = 0;
  char *key;
  skip_blanks(j);
  if (depth > DEPTH_MAX) return ampl_json_syntax(j, "at most 64 values within each other");
  if (*j->at == '"') return ampl_json_string(j, &key);
  if (ampl_json_take(j, '{')) {
    for (;;) {
      AMPL_TRY(ampl_json_key(j, &n, &key));
      if (!key) return AMPL_OK;
      AMPL_TRY(skip_value(j, depth + 1));
    }
  }
  if (!ampl_json_take(j, '[')) return skip_plain(j);
  for (bool more;;) {
    AMPL_TRY(ampl_json_element(j, &n, &more));
    if (!more) return AMPL_OK;
    AMPL_TRY(skip_value(j, depth + 1));
  }
}

ampl_status ampl_json_skip(ampl_json *j) { return skip_value(j, 0); }

ampl_status ampl_json_natural(ampl_json *j, uint64_t *out, ampl_json_kind *kind) {
  *kind = AMPL_JSON_OTHER;
  *out = 0;
  skip_blanks(j);
  const char *start = j->at;
  AMPL_TRY(ampl_json_skip(j));
  if (*start < '0' || *start > '9' || digits(start) != j->at) return AMPL_OK;
  *kind = AMPL_JSON_NATURAL;
  for (const char *s = start; s < j->at; s++)
    if (__builtin_mul_overflow(*out, 10, out) || __builtin_add_overflow(*out, (uint64_t)(*s - '0'), out) ||
        *out > INT64_MAX) {
      *kind = AMPL_JSON_TOO_BIG;
      break;
    }
  return AMPL_OK;
}
