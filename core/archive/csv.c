/* csv.c: reads tables of numbers written as text.
 *
 * The file is read once, a line at a time; numbers are kept in the result's dtype in a buffer that doubles.  A number
 * is parsed in one step where that is exact (at most 15 digits, a power of ten up to 22), else by strtod in the C
 * locale, so a host's decimal comma changes nothing. */
#define _GNU_SOURCE /* strtod_l */
#include "file.h"

#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define LINE_MAX_BYTES (1u << 26) /* a longer line is no table */
#define FIELD_MAX      400        /* bytes of a number: every double has a shorter name */

typedef struct reader {
  ampl_ctx *ctx;
  ampl_stream stream;
  ampl_csv_options o;
  locale_t c_locale;
  char buffer[1u << 16]; /* what was read and not yet taken: [from, to) */
  size_t from, to;
  char *line; /* the current one, ended by 0 */
  size_t used, room;
  int64_t number;               /* of the line, from 1 */
  char separator;               /* ' ': blanks */
  int64_t columns;              /* -1: no line yet */
  int64_t rows, wide, capacity; /* capacity in elements, wide: bytes of one */
  char *values;
  char **names;
  int64_t nnames;
} reader;

#define DAMAGED(r, ...) ampl_error((r)->ctx, AMPL_EFORMAT, "%.300s: line %lld" __VA_ARGS__)
#define AT(r)           (r)->stream.path, (long long)(r)->number

static ampl_status no_memory(reader *r) {
  return ampl_error(r->ctx, AMPL_ENOMEM, "%.300s: out of memory at line %lld", AT(r));
}

/* ------------------------------------------------------------------------------------------------ lines ----------- */

static ampl_status grow_line(reader *r, size_t bytes) {
  if (r->used + bytes + 1 <= r->room) return AMPL_OK;
  size_t room = r->room ? r->room : 4096;
  while (room < r->used + bytes + 1) room *= 2;
  if (room > LINE_MAX_BYTES) return DAMAGED(r, " is longer than %u bytes: this is no table", AT(r), LINE_MAX_BYTES);
  char *line = realloc(r->line, room);
  if (!line) return no_memory(r);
  r->line = line;
  r->room = room;
  return AMPL_OK;
}

/* The next line without its end, blanks around it, and (before the first) the byte order mark; *end when there is none.
 */
static ampl_status next_line(reader *r, bool *end) {
  r->used = 0;
  r->number++;
  bool any = false;
  for (;;) {
    if (r->from == r->to) {
      r->from = 0;
      AMPL_TRY(ampl_stream_read(&r->stream, r->buffer, sizeof r->buffer, &r->to));
      if (r->to == 0) break;
    }
    any = true;
    const char *start = r->buffer + r->from, *stop = memchr(start, '\n', r->to - r->from);
    const size_t n = stop ? (size_t)(stop - start) : r->to - r->from;
    AMPL_TRY(grow_line(r, n));
    memcpy(r->line + r->used, start, n);
    r->used += n;
    r->from += n + (stop ? 1 : 0);
    if (stop) break;
  }
  *end = !any;
  AMPL_TRY(grow_line(r, 0));
  r->line[r->used] = 0;
  if (memchr(r->line, 0, r->used)) return DAMAGED(r, ": a zero byte: this is no text (UTF-16 is not read)", AT(r));
  if (r->number == 1 && r->used >= 3 && memcmp(r->line, "\xef\xbb\xbf", 3) == 0) {
    memmove(r->line, r->line + 3, r->used - 2);
    r->used -= 3;
  }
  return AMPL_OK;
}

static bool blank(char c) { return c == ' ' || c == '\t' || c == '\r'; }

static bool empty(const char *s) {
  while (blank(*s)) s++;
  return *s == 0;
}

/* The next line that is not empty. */
static ampl_status next_row(reader *r, bool *end) {
  do AMPL_TRY(next_line(r, end));
  while (!*end && empty(r->line));
  return AMPL_OK;
}

/* ------------------------------------------------------------------------------------------------ fields ---------- */

static char find_separator(const char *line) {
  for (const char *c = ",;\t"; *c; c++)
    if (strchr(line, *c)) return *c;
  return ' ';
}

/* Cuts the field that begins at *s out of the line: ends it by 0, steps *s behind it, without blanks and quotes.  *s is
 * NULL behind the last. */
static ampl_status next_field(reader *r, int64_t column, char **s, char **field) {
  char *p = *s;
  const char sep = r->separator;
  while (blank(*p) && (sep == ' ' || *p != sep)) p++;
  char *start = p, *stop;
  if (*p == '"') {
    start = stop = ++p;
    for (;; p++) {
      if (*p == 0) return DAMAGED(r, ", column %lld: the quote is not closed", AT(r), (long long)column);
      if (*p == '"' && *++p != '"') break;
      *stop++ = *p;
    }
    while (blank(*p) && *p != sep) p++;
    if (*p != 0 && *p != sep && !(sep == ' ' && blank(p[-1])))
      return DAMAGED(r, ", column %lld: text behind a closing quote", AT(r), (long long)column);
  } else {
    while (*p != 0 && *p != sep && !(sep == ' ' && blank(*p))) p++;
    for (stop = p; stop > start && blank(stop[-1]); stop--) {
    }
  }
  if (sep == ' ')
    while (blank(*p)) *p++ = 0; /* a run of blanks is one separator */
  *s = *p == 0 ? NULL : sep == ' ' ? p : p + 1;
  *stop = 0;
  *field = start;
  return AMPL_OK;
}

static bool special_number(const char *s, double *out) {
  const bool minus = *s == '-';
  if (*s == '-' || *s == '+') s++;
  if (strcasecmp(s, "nan") == 0)
    *out = NAN;
  else if (strcasecmp(s, "inf") == 0 || strcasecmp(s, "infinity") == 0)
    *out = minus ? -INFINITY : INFINITY;
  else
    return false;
  return true;
}

/* The number that `s` is, all of it. */
static bool number(const reader *r, const char *s, double *out) {
  static const double ten[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,  1e8,  1e9,  1e10, 1e11,
                               1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};
  const char *p = s;
  uint64_t digits = 0;
  int n = 0, scale = 0, exponent = 0; /* digits that count, digits behind the point */
  bool point = false, some = false;
  if (*p == '-' || *p == '+') p++;
  for (; (*p >= '0' && *p <= '9') || (*p == '.' && !point); p++) {
    if (*p == '.') {
      point = true;
      continue;
    }
    some = true;
    if (digits || *p != '0') n++;
    if (n < 19) digits = digits * 10 + (uint64_t)(*p - '0');
    scale += point;
  }
  if (!some) return special_number(s, out);
  if (*p == 'e' || *p == 'E') {
    const bool minus = *++p == '-';
    if (*p == '-' || *p == '+') p++;
    if (*p < '0' || *p > '9') return false;
    for (; *p >= '0' && *p <= '9'; p++)
      if (exponent < 100000) exponent = exponent * 10 + (*p - '0');
    if (minus) exponent = -exponent;
  }
  if (*p != 0 || p - s > FIELD_MAX) return false;
  exponent -= scale;
  if (n <= 15 && exponent >= -22 && exponent <= 22) {
    const double v = exponent < 0 ? (double)digits / ten[-exponent] : (double)digits * ten[exponent];
    *out = *s == '-' ? -v : v;
  } else {
    *out = strtod_l(s, NULL, r->c_locale);
  }
  return true;
}

/* ------------------------------------------------------------------------------------------------ rows ------------ */

static ampl_status keep(reader *r, int64_t i, double v) {
  if (i == r->capacity) {
    const int64_t more = r->capacity ? 2 * r->capacity : 1024;
    char *values = realloc(r->values, (size_t)(more * r->wide));
    if (!values) return no_memory(r);
    r->values = values;
    r->capacity = more;
  }
  if (r->o.dtype == AMPL_F64)
    ((double *)r->values)[i] = v;
  else
    ((float *)r->values)[i] = (float)v;
  return AMPL_OK;
}

static ampl_status check_columns(reader *r, int64_t n) {
  if (r->columns < 0) r->columns = n;
  if (n == r->columns) return AMPL_OK;
  return DAMAGED(
      r, ", column %lld: it has %lld columns, the lines before it %lld (option skip passes over lines at the top)",
      AT(r), (long long)(n < r->columns ? n : r->columns) + 1, (long long)n, (long long)r->columns);
}

static ampl_status take_row(reader *r) {
  int64_t column = 0;
  char *field;
  for (char *s = r->line; s;) {
    double v = 0;
    if (r->separator == ' ' && empty(s)) break;
    AMPL_TRY(next_field(r, ++column, &s, &field));
    if (!number(r, field, &v)) {
      if (*field == 0)
        return DAMAGED(r, ", column %lld: an empty field, where a number should stand", AT(r), (long long)column);
      return DAMAGED(r, ", column %lld: \"%.40s\" is no number", AT(r), (long long)column, field);
    }
    if (r->columns >= 0 && column > r->columns) continue; /* counted only: the row will be refused */
    AMPL_TRY(keep(r, r->rows * (r->columns < 0 ? 0 : r->columns) + column - 1, v));
  }
  AMPL_TRY(check_columns(r, column));
  r->rows++;
  return AMPL_OK;
}

/* Takes the current line as names. */
static ampl_status take_header(reader *r) {
  int64_t n = 0, room = 0;
  char *field;
  for (char *s = r->line; s;) {
    if (r->separator == ' ' && empty(s)) break;
    AMPL_TRY(next_field(r, n + 1, &s, &field));
    if (n == room) {
      room = room ? 2 * room : 16;
      char **names = realloc(r->names, (size_t)room * sizeof *names);
      if (!names) return no_memory(r);
      r->names = names;
    }
    r->names[n] = strdup(field);
    if (!r->names[n]) return no_memory(r);
    r->nnames = ++n;
  }
  return check_columns(r, n);
}

/* Whether a field of the current line is neither a number nor empty; the line stays as it is. */
static ampl_status looks_like_names(reader *r, bool *yes) {
  char *copy = strdup(r->line), *field;
  double v;
  ampl_status s = copy ? AMPL_OK : no_memory(r);
  *yes = false;
  for (char *p = copy; s == AMPL_OK && p && !*yes;) {
    if (r->separator == ' ' && empty(p)) break;
    s = next_field(r, 1, &p, &field);
    *yes = s == AMPL_OK && *field && !number(r, field, &v);
  }
  free(copy);
  return s;
}

static ampl_status read_table(reader *r) {
  bool end, names = r->o.header == 1;
  for (int64_t i = 0; i < r->o.skip; i++) {
    AMPL_TRY(next_line(r, &end));
    if (end)
      return ampl_error(r->ctx, AMPL_EFORMAT, "%.300s: skip = %lld, but it has %lld lines", r->stream.path,
                        (long long)r->o.skip, (long long)r->number - 1);
  }
  AMPL_TRY(next_row(r, &end));
  if (end) return ampl_error(r->ctx, AMPL_EFORMAT, "%.300s: an empty file holds no table", r->stream.path);
  r->separator = r->o.separator ? r->o.separator : find_separator(r->line);
  if (r->o.header < 0) AMPL_TRY(looks_like_names(r, &names));
  if (names) {
    AMPL_TRY(take_header(r));
    AMPL_TRY(next_row(r, &end));
    if (end) return DAMAGED(r, ": names of columns, but no numbers below them", AT(r));
  }
  while (!end) {
    AMPL_TRY(take_row(r));
    AMPL_TRY(next_row(r, &end));
  }
  return AMPL_OK;
}

/* ------------------------------------------------------------------------------------------------ loading --------- */

static ampl_status finish(reader *r, ampl_csv **out) {
  const int64_t shape[2] = {r->rows, r->columns};
  ampl_csv *c = calloc(1, sizeof *c);
  if (!c) return no_memory(r);
  ampl_status s = ampl_file_tensor(r->ctx, r->o.dtype, 2, shape, &c->values);
  if (s != AMPL_OK) {
    free(c);
    return s;
  }
  memcpy(ampl_data(c->values), r->values, (size_t)(r->rows * r->columns * r->wide));
  c->names = r->names;
  c->n = r->nnames;
  r->names = NULL;
  r->nnames = 0;
  *out = c;
  return AMPL_OK;
}

static void free_names(char **names, int64_t n) {
  for (int64_t i = 0; i < n; i++) free(names[i]);
  free(names);
}

ampl_status ampl_csv_load(ampl_ctx *ctx, const char *path, const ampl_csv_options *options, ampl_csv **out) {
  const ampl_csv_options defaults = AMPL_CSV_OPTIONS_INIT;
  *out = NULL;
  if (!options) options = &defaults;
  if (options->dtype != AMPL_F32 && options->dtype != AMPL_F64)
    return ampl_error(ctx, AMPL_EDTYPE, "a table of text is read as f32 or f64");
  reader *r = calloc(1, sizeof *r);
  if (!r) return ampl_error(ctx, AMPL_ENOMEM, "%.300s: out of memory", path);
  r->ctx = ctx;
  r->o = *options;
  r->columns = -1;
  r->wide = (int64_t)ampl_dtype_size(options->dtype);
  r->c_locale = newlocale(LC_ALL_MASK, "C", (locale_t)0);
  ampl_status s = r->c_locale ? ampl_stream_open(ctx, path, &r->stream) : no_memory(r);
  if (s == AMPL_OK) s = read_table(r);
  if (s == AMPL_OK) s = finish(r, out);
  ampl_stream_close(&r->stream);
  if (r->c_locale) freelocale(r->c_locale);
  free_names(r->names, r->nnames);
  free(r->values);
  free(r->line);
  free(r);
  return s;
}

void ampl_csv_release(ampl_csv *c) {
  if (!c) return;
  ampl_tensor_release(c->values);
  free_names(c->names, c->n);
  free(c);
}
