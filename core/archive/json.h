/* json.h: reads JSON piece by piece where it lies: nothing is allocated, whatever a file says. */
#ifndef AMPL_JSON_H
#define AMPL_JSON_H

#include "file.h"

/* The text, which strings are decoded into, and how far it is read.  A 0 must follow its last byte. */
typedef struct ampl_json {
  ampl_ctx *ctx;
  const char *shown; /* the file's path, for messages */
  uint64_t start;    /* of the text in the file */
  char *text, *at, *end;
} ampl_json;

/* EFORMAT: "PATH: byte N: the header is no valid JSON: WHAT expected, not ...". */
ampl_status ampl_json_syntax(const ampl_json *j, const char *what);
/* Steps over blanks, and over `c` when it follows. */
bool ampl_json_take(ampl_json *j, char c);
/* A string, ended by 0, in the text: UTF-8 without zero bytes. */
ampl_status ampl_json_string(ampl_json *j, char **out);
/* The next key of an object, after its '{' and after each value; *key is NULL at its end.  `*n` counts keys from 0.
 * EINTR ends long objects. */
ampl_status ampl_json_key(ampl_json *j, size_t *n, char **key);
/* Whether an array has another element, after its '[' and after each element, which `*n` counts from 0. */
ampl_status ampl_json_element(ampl_json *j, size_t *n, bool *more);
/* Steps over any value. */
ampl_status ampl_json_skip(ampl_json *j);

typedef enum ampl_json_kind { AMPL_JSON_NATURAL, AMPL_JSON_TOO_BIG, AMPL_JSON_OTHER } ampl_json_kind;
/* Steps over any value, which may be an integer from 0 to 2^63 - 1. */
ampl_status ampl_json_natural(ampl_json *j, uint64_t *out, ampl_json_kind *kind);

#endif
