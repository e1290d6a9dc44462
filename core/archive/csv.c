/* csv.c: reads tables of numbers written as text.
 *
 * The file is read once, a line at a time.  Numbers are kept in their tensor's dtype in blocks, each twice as long as
 * the one before, and copied into the tensor when their number is known; all of it counts against the memory limit. */
#define _GNU_SOURCE /* strcasecmp_l */
#include "file.h"
#include "number.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define LINE_MAX_BYTES (1u << 26) /* a longer line is no table */
#define BLOCK_MIN      1024       /* elements of the first block, and of the longest */
#define BLOCK_MAX      (1 << 22)

typedef struct block {
  struct block *next;
  int64_t n, room;
  char data[];
} block;

/* Numbers of one dtype, added one by one. */
typedef struct column {
  ampl_dtype dtype;
  block *first, *last;
} column;

typedef struct reader {
  ampl_ctx *ctx;
  ampl_stream stream;
  ampl_csv_options o;
  locale_t c_locale;
  char buffer[1u << 16]; /* what was read and not yet taken: [from, to) */
  size_t from, to;
  bool after_cr;    /* the last line ended in CR: a LF that follows belongs to it */
  ampl_buffer room; /* of the line */
  char *line;       /* the current one, ended by 0 */
  size_t used;
  ampl_buffer copy; /* of a line that is looked at first */
  int64_t number;   /* of the line, from 1 */
  char separator;   /* ' ': blanks */
  int64_t columns, label, rows; /* label: the column's number, -1: none */
  column values, labels;
  struct table *table; /* with the names, once there are any */
} reader;

#define DAMAGED(r, ...) ampl_error((r)->ctx, AMPL_EFORMAT, "%s: line %lld" __VA_ARGS__)
#define AT(r)           (r)->stream.shown, (long long)(r)->number

/* ------------------------------------------------------------------------------------------------ lines ----------- */

static ampl_status grow_line(reader *r, size_t bytes) {
  if (r->used + bytes + 1 > LINE_MAX_BYTES)
    return DAMAGED(r, " is longer than %u bytes: this is no table", AT(r), LINE_MAX_BYTES);
  AMPL_TRY(ampl_buffer_grow(&r->room, r->used, r->used + bytes + 1));
  r->line = r->room.p;
  return AMPL_OK;
}

/* Where the line that begins at s ends: at a LF or a CR; NULL: not in these n bytes. */
static const char *line_end(const char *s, size_t n) {
  const char *lf = memchr(s, '\n', n), *cr = memchr(s, '\r', lf ? (size_t)(lf - s) : n);
  return cr ? cr : lf;
}

/* The next line without its end and (before the first) the byte order mark; *end when there is none. */
static ampl_status next_line(reader *r, bool *end) {
  bool any = false;
  r->used = 0;
  r->number++;
  for (;;) {
    if (r->from == r->to) {
      r->from = 0;
      AMPL_TRY(ampl_stream_read(&r->stream, r->buffer, sizeof r->buffer, &r->to));
      if (r->to == 0) break;
    }
    if (r->after_cr && r->buffer[r->from] == '\n') r->from++;
    r->after_cr = false;
    if (r->from == r->to) continue;
    any = true;
    const char *start = r->buffer + r->from, *stop = line_end(start, r->to - r->from);
    const size_t n = stop ? (size_t)(stop - start) : r->to - r->from;
    AMPL_TRY(grow_line(r, n));
    memcpy(r->line + r->used, start, n);
    r->used += n;
    r->from += n + (stop ? 1 : 0);
    r->after_cr = stop && *stop == '\r';
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

static bool blank(char c) { return c == ' ' || c == '\t'; }

static bool empty(const char *s) {
  while (blank(*s)) s++;
  return *s == 0;
}

/* Where a comment begins in a line, outside quotes; NULL: nowhere. */
static char *find_comment(const reader *r, char *s) {
  bool quoted = false;
  if (!r->o.comment || !strchr(s, r->o.comment)) return NULL;
  for (; *s; s++) {
    if (*s == '"') quoted = !quoted;
    if (*s == r->o.comment && !quoted) return s;
  }
  return NULL;
}

/* Steps over line ends that follow each other: a file may hold hundreds of millions of them. */
static void pass_empty_lines(reader *r) {
  for (; r->from < r->to && (r->buffer[r->from] == '\n' || r->buffer[r->from] == '\r'); r->from++) {
    const bool cr = r->buffer[r->from] == '\r';
    r->number += cr || !r->after_cr;
    r->after_cr = cr;
  }
}

/* The next line that holds more than blanks and a comment. */
static ampl_status next_row(reader *r, bool *end) {
  for (;;) {
    pass_empty_lines(r);
    AMPL_TRY(next_line(r, end));
    const char *s = r->line;
    while (blank(*s)) s++;
    if (*end || (*s && !(r->o.comment && *s == r->o.comment))) return AMPL_OK;
  }
}

/* ------------------------------------------------------------------------------------------------ fields ---------- */

static char find_separator(const char *line) {
  for (const char *c = ",;\t"; *c; c++)
    if (strchr(line, *c)) return *c;
  return ' ';
}

/* Cuts the field that begins at *s out of the line: ends it by 0, steps *s behind it, without blanks and quotes.  *s is
 * NULL behind the last.  EINTR ends long lines. */
static ampl_status next_field(reader *r, int64_t at, char **s, char **field) {
  char *p = *s;
  const char sep = r->separator;
  if (at % 1024 == 0) AMPL_TRY(ampl_file_poll(r->ctx));
  while (blank(*p) && (sep == ' ' || *p != sep)) p++;
  char *start = p, *stop;
  if (*p == '"') {
    start = stop = ++p;
    for (;; p++) {
      if (*p == 0) return DAMAGED(r, ", column %lld: the quote is not closed", AT(r), (long long)at);
      if (*p == '"' && *++p != '"') break;
      *stop++ = *p;
    }
    while (blank(*p) && *p != sep) p++;
    if (*p != 0 && *p != sep && !(sep == ' ' && blank(p[-1])))
      return DAMAGED(r, ", column %lld: text behind a closing quote", AT(r), (long long)at);
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

/* The next field of a line from *s on, which counts in *at from 1; *field is NULL at the end. */
static ampl_status each_field(reader *r, int64_t *at, char **s, char **field) {
  *field = NULL;
  if (!*s || (r->separator == ' ' && empty(*s))) return AMPL_OK;
  return next_field(r, ++*at, s, field);
}

/* What the fields of a line are. */
typedef struct fields {
  int64_t all, numbers, words; /* words: neither numbers nor empty nor a sign for a missing number */
} fields;

static bool missing(const reader *r, const char *s) {
  static const char *const signs[] = {"", "na", "n/a", "#n/a", "null", "nil", "none", "missing", "?", "-", ".", "*"};
  for (size_t i = 0; i < sizeof signs / sizeof *signs; i++)
    if (strcasecmp_l(s, signs[i], r->c_locale) == 0) return true;
  return false;
}

/* Looks at the fields of the current line, up to `stop` if that is not NULL; the line stays as it is. */
static ampl_status look(reader *r, const char *stop, fields *out) {
  const size_t n = stop ? (size_t)(stop - r->line) : r->used;
  double v;
  *out = (fields){0};
  AMPL_TRY(ampl_buffer_grow(&r->copy, 0, n + 1));
  char *s = memcpy(r->copy.p, r->line, n), *field;
  s[n] = 0;
  r->separator = r->o.separator ? r->o.separator : find_separator(s);
  for (;;) {
    AMPL_TRY(each_field(r, &out->all, &s, &field));
    if (!field) return AMPL_OK;
    if (ampl_number_parse(field, r->c_locale, &v))
      out->numbers++;
    else if (!missing(r, field))
      out->words++;
  }
}

/* ------------------------------------------------------------------------------------------------ columns --------- */

static size_t block_bytes(const column *c, int64_t room) {
  return sizeof(block) + (size_t)room * ampl_dtype_size(c->dtype);
}

/* Room for one more element; NULL with the context's error. */
static void *column_push(reader *r, column *c) {
  if (!c->last || c->last->n == c->last->room) {
    const int64_t room = !c->last ? BLOCK_MIN : c->last->room < BLOCK_MAX ? 2 * c->last->room : BLOCK_MAX;
    void *p;
    if (ampl_mem_get(r->ctx, ampl_device_at(0), block_bytes(c, room), AMPL_KIND_SCRATCH, &p) != AMPL_OK) return NULL;
    block *b = p;
    *b = (block){.room = room};
    if (c->last)
      c->last->next = b;
    else
      c->first = b;
    c->last = b;
  }
  return c->last->data + (size_t)c->last->n++ * ampl_dtype_size(c->dtype);
}

static void column_free(ampl_ctx *ctx, column *c) {
  for (block *b = c->first, *next; b; b = next) {
    next = b->next;
    ampl_mem_put(ctx, ampl_device_at(0), b, block_bytes(c, b->room), AMPL_KIND_SCRATCH);
  }
  c->first = c->last = NULL;
}

/* The numbers as a tensor. */
static ampl_status column_tensor(reader *r, const column *c, int ndim, const int64_t *shape, ampl_tensor **out) {
  AMPL_TRY(ampl_file_tensor(r->ctx, c->dtype, ndim, shape, out));
  char *p = ampl_data(*out);
  for (const block *b = c->first; b; b = b->next) {
    const size_t bytes = (size_t)b->n * ampl_dtype_size(c->dtype);
    memcpy(p, b->data, bytes);
    p += bytes;
  }
  return AMPL_OK;
}

static ampl_status keep(reader *r, column *c, double v) {
  void *p = column_push(r, c);
  if (!p) return ampl_error_code(r->ctx);
  if (c->dtype == AMPL_F64)
    *(double *)p = v;
  else
    *(float *)p = (float)v;
  return AMPL_OK;
}

/* ------------------------------------------------------------------------------------------------ rows ------------ */

/* The number of a class as the context counts. */
static ampl_status keep_class(reader *r, int64_t at, const char *field) {
  int64_t v;
  if (!ampl_integer_parse(field, r->c_locale, &v))
    return DAMAGED(r, ", column %lld: label \"%s\" is no integer", AT(r), (long long)at,
                   ampl_escaped(r->ctx, field, 48));
  if (__builtin_sub_overflow(v, r->o.first_class, &v) || __builtin_add_overflow(v, r->ctx->index_base, &v))
    return DAMAGED(r, ", column %lld: label \"%s\" is too big", AT(r), (long long)at,
                   ampl_escaped(r->ctx, field, 48));
  int64_t *p = column_push(r, &r->labels);
  if (!p) return ampl_error_code(r->ctx);
  *p = v;
  return AMPL_OK;
}

static ampl_status bad_field(reader *r, int64_t at, const char *field) {
  if (*field == 0)
    return DAMAGED(r, ", column %lld: an empty field, where a number should stand", AT(r), (long long)at);
  return DAMAGED(r, ", column %lld: \"%s\" is no number%s", AT(r), (long long)at, ampl_escaped(r->ctx, field, 48),
                 r->rows == 0 && !r->table ? " (option header = true takes this line as names)" : "");
}

static ampl_status take_row(reader *r) {
  int64_t at = 0;
  char *field, *s = r->line, *comment = find_comment(r, s);
  if (comment) *comment = 0;
  for (;;) {
    double v = 0;
    AMPL_TRY(each_field(r, &at, &s, &field));
    if (!field) break;
    if (at > r->columns) continue; /* counted only: the row will be refused */
    if (at - 1 == r->label && r->o.classes) {
      AMPL_TRY(keep_class(r, at, field));
      continue;
    }
    if (!ampl_number_parse(field, r->c_locale, &v)) return bad_field(r, at, field);
    AMPL_TRY(keep(r, at - 1 == r->label ? &r->labels : &r->values, v));
  }
  r->rows++;
  if (at == r->columns) return AMPL_OK;
  return DAMAGED(
      r, ", column %lld: it has %lld columns, the lines before it %lld (option skip passes over lines at the top)",
      AT(r), (long long)(at < r->columns ? at : r->columns) + 1, (long long)at, (long long)r->columns);
}

/* ------------------------------------------------------------------------------------------------ names ----------- */

/* A table, its list of names and their text are one block. */
typedef struct table {
  ampl_csv c;
  ampl_ctx *ctx;
  size_t room;
  char *names[];
} table;

static ampl_status table_new(reader *r, int64_t names, size_t text) {
  const size_t room = sizeof(table) + (size_t)names * sizeof(char *) + text;
  void *p;
  AMPL_TRY(ampl_mem_get(r->ctx, ampl_device_at(0), room, AMPL_KIND_SCRATCH, &p));
  r->table = p;
  *r->table = (table){.ctx = r->ctx, .room = room};
  r->table->c.names = names ? r->table->names : NULL;
  ampl_ctx_retain(r->ctx);
  return AMPL_OK;
}

void ampl_csv_release(ampl_csv *c) {
  if (!c) return;
  table *t = (table *)c;
  ampl_ctx *ctx = t->ctx;
  ampl_tensor_release(c->values);
  ampl_tensor_release(c->labels);
  ampl_mem_put(ctx, ampl_device_at(0), t, t->room, AMPL_KIND_SCRATCH);
  ampl_ctx_release(ctx);
}

/* Takes the current line, which has r->columns fields, as names. */
static ampl_status take_header(reader *r) {
  int64_t n = 0;
  char *field, *s = r->line;
  AMPL_TRY(table_new(r, r->columns, r->used + 1));
  ampl_csv *c = &r->table->c;
  char *text = memcpy((char *)(r->table->names + r->columns), r->line, r->used + 1);
  for (s = text;;) {
    AMPL_TRY(each_field(r, &n, &s, &field));
    if (!field) return AMPL_OK;
    c->names[c->n++] = field;
  }
}

static ampl_status no_such_name(reader *r) {
  char list[400];
  size_t used = 0;
  const ampl_csv *c = r->table ? &r->table->c : NULL;
  const char *wanted = ampl_escaped(r->ctx, r->o.label_name, 100);
  if (!c)
    return ampl_error(r->ctx, AMPL_EARG, "%s: the file has no header to look for column \"%s\" in", r->stream.shown,
                      wanted);
  for (int64_t i = 0; i < c->n && i < 8; i++)
    used = ampl_append(list, sizeof list, used, "%s\"%s\"", i ? ", " : "", ampl_escaped(r->ctx, c->names[i], 40));
  return ampl_error(r->ctx, AMPL_EARG, "%s: no column is called \"%s\"; there are %s%s", r->stream.shown, wanted, list,
                    c->n > 8 ? ", ..." : "");
}

/* Finds the column of labels, and takes it out of the names. */
static ampl_status find_label(reader *r) {
  const int64_t label = r->o.label;
  ampl_csv *c = r->table ? &r->table->c : NULL;
  if (r->o.label_name) {
    for (int64_t i = 0; c && i < c->n && r->label < 0; i++)
      if (strcmp(c->names[i], r->o.label_name) == 0) r->label = i;
    if (r->label < 0) return no_such_name(r);
  } else if (label != AMPL_CSV_NO_LABEL) {
    if (label < -r->columns || label >= r->columns)
      return ampl_error(r->ctx, AMPL_EINDEX, "%s: label = %lld; there are %lld columns", r->stream.shown,
                        (long long)ampl_shown(r->ctx, label), (long long)r->columns);
    r->label = label < 0 ? label + r->columns : label;
  }
  if (!c || r->label < 0) return AMPL_OK;
  memmove(c->names + r->label, c->names + r->label + 1, (size_t)(--c->n - r->label) * sizeof *c->names);
  return AMPL_OK;
}

/* ------------------------------------------------------------------------------------------------ tables ---------- */

/* Whether the first line is names: if it is said, or if no field of it is a number and a field is a word.  A comment
 * behind numbers is none of its fields; in a line of names there are no comments. */
static ampl_status take_first(reader *r, bool *names) {
  fields f = {0};
  const char *comment = r->o.header == 1 ? NULL : find_comment(r, r->line);
  *names = r->o.header == 1;
  if (comment) AMPL_TRY(look(r, comment, &f));
  if (!comment || (f.numbers < f.all && r->o.header != 0)) {
    AMPL_TRY(look(r, NULL, &f));
    if (r->o.header < 0) *names = f.numbers == 0 && f.words > 0;
  }
  r->columns = f.all;
  return *names ? take_header(r) : AMPL_OK;
}

static ampl_status read_table(reader *r) {
  bool end, names;
  for (int64_t i = 0; i < r->o.skip; i++) {
    AMPL_TRY(next_line(r, &end));
    if (end)
      return ampl_error(r->ctx, AMPL_EFORMAT, "%s: skip = %lld, but it has %lld lines", r->stream.shown,
                        (long long)r->o.skip, (long long)r->number - 1);
  }
  AMPL_TRY(next_row(r, &end));
  if (end) return ampl_error(r->ctx, AMPL_EFORMAT, "%s: an empty file holds no table", r->stream.shown);
  AMPL_TRY(take_first(r, &names));
  AMPL_TRY(find_label(r));
  if (names) {
    AMPL_TRY(next_row(r, &end));
    if (end) return DAMAGED(r, ": names of columns, but no numbers below them", AT(r));
  }
  while (!end) {
    AMPL_TRY(take_row(r));
    AMPL_TRY(next_row(r, &end));
  }
  return AMPL_OK;
}

static ampl_status finish(reader *r, ampl_csv **out) {
  const int64_t shape[2] = {r->rows, r->columns - (r->label >= 0)};
  if (!r->table) AMPL_TRY(table_new(r, 0, 0));
  ampl_csv *c = &r->table->c;
  AMPL_TRY(column_tensor(r, &r->values, 2, shape, &c->values));
  if (r->label >= 0) AMPL_TRY(column_tensor(r, &r->labels, 1, shape, &c->labels));
  r->table = NULL;
  *out = c;
  return AMPL_OK;
}

static ampl_status check_options(ampl_ctx *ctx, const ampl_csv_options *o) {
  ctx->op = "";
  if (o->dtype != AMPL_F32 && o->dtype != AMPL_F64)
    return ampl_error(ctx, AMPL_EDTYPE, "dtype must be f32 or f64, not %s", ampl_dtype_name(o->dtype));
  if (o->separator && strchr("\n\r\"+-.0123456789eE", o->separator))
    return ampl_error(ctx, AMPL_EVALUE, "separator \"%s\" can be part of a number, a quote or the end of a line",
                      ampl_escaped(ctx, (char[]){o->separator, 0}, 8));
  const char *separators = o->separator ? (char[]){o->separator, 0} : ",;\t ";
  if (o->comment && (strchr(separators, o->comment) || strchr("\n\r\"+-.0123456789eE", o->comment)))
    return ampl_error(ctx, AMPL_EVALUE, "comment \"%s\" can be part of a number, a separator, a quote or a line's end",
                      ampl_escaped(ctx, (char[]){o->comment, 0}, 8));
  if (o->skip < 0) return ampl_error(ctx, AMPL_EVALUE, "skip = %lld; it must be 0 or more", (long long)o->skip);
  return AMPL_OK;
}

ampl_status ampl_csv_load(ampl_ctx *ctx, const char *path, const ampl_csv_options *options, ampl_csv **out) {
  ampl_csv_options o = AMPL_CSV_OPTIONS_INIT;
  *out = NULL;
  if (options) memcpy(&o, options, options->struct_size < sizeof o ? options->struct_size : sizeof o);
  AMPL_TRY(check_options(ctx, &o));
  reader *r = calloc(1, sizeof *r);
  if (!r) return ampl_error(ctx, AMPL_ENOMEM, "out of memory for reading a table");
  *r = (reader){.ctx = ctx, .o = o, .room = {.ctx = ctx}, .copy = {.ctx = ctx}, .label = -1};
  r->values.dtype = o.dtype;
  r->labels.dtype = o.classes ? AMPL_I64 : o.dtype;
  r->c_locale = newlocale(LC_ALL_MASK, "C", (locale_t)0);
  ampl_status s = r->c_locale ? ampl_stream_open(ctx, path, &r->stream)
                              : ampl_error(ctx, AMPL_ENOMEM, "out of memory for reading a table");
  if (s == AMPL_OK) s = read_table(r);
  if (s == AMPL_OK) s = finish(r, out);
  s = ampl_file_result(ctx, r->stream.shown, s);
  ampl_stream_close(&r->stream);
  if (r->c_locale) freelocale(r->c_locale);
  if (r->table) ampl_csv_release(&r->table->c);
  column_free(ctx, &r->values);
  column_free(ctx, &r->labels);
  ampl_buffer_free(&r->room);
  ampl_buffer_free(&r->copy);
  free(r);
  return s;
}
