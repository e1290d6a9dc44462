/* archive.h: files that hold tensors.  Readers check every length before they believe or allocate it, and run nothing;
 * writers put a whole new file in the place of the old one, or leave the old one as it was.  What reading needs counts
 * against the context's memory limit, and ampl_interrupt ends readers and writers with EINTR.  Only regular files are
 * read; devices that take characters may be written to.
 *
 * Errors: EIO when the system refuses (the text has the path and the system's reason), EFORMAT for a damaged file
 * (path, position, what is wrong), EUNSUPPORTED for what is no error but has no tensor here (a dtype).  Paths are as
 * the system takes them.  Numbers are read and written alike in every locale.
 */
#ifndef AMPL_ARCHIVE_H
#define AMPL_ARCHIVE_H

#include "ampl.h"

#ifdef __cplusplus
extern "C" {
#endif

/* What every message and every program should quote from a file by, paths included: at most room - 1 bytes of `dst` and
 * a 0.  Control characters, characters that hide or reorder text, bytes that are no UTF-8, and backslashes are written
 * as \n, \x1b, \u{202e}; "..." ends what was cut.  4 * n + 1 bytes are always enough.  Returns the bytes written. */
AMPL_API size_t ampl_escape(char *dst, size_t room, const char *src, size_t n);

/* ------------------------------------------------------------------------------------------------ safetensors ----- */

#define AMPL_SAFETENSORS_HEADER_MAX 100000000 /* bytes of JSON at most, as everywhere */

/* What a file held: `n` tensors in the order of their data, and the strings of its metadata. */
typedef struct ampl_archive {
  int64_t n;
  char **names;
  ampl_tensor **tensors;
  int64_t nmeta;
  char **keys, **values;
} ampl_archive;

/* Dtypes: F32 F16 BF16 F64 I64 I32 U8 BOOL; I8 I16 U16 come as i32, U32 as i64. */
AMPL_API ampl_status ampl_safetensors_load(ampl_ctx *ctx, const char *path, ampl_archive **out);
AMPL_API void ampl_archive_release(ampl_archive *a);

/* Writes n tensors and nmeta strings; the same tensors give the same bytes, whatever their order.  Data stand by size
 * of dtype, then name, so that each is aligned for readers that map the file.  A file at `path` is replaced when the
 * new one is whole and on disk; a symbolic link keeps pointing where it points.  What a killed run left half-written is
 * removed. */
AMPL_API ampl_status ampl_safetensors_save(ampl_ctx *ctx, const char *path, int64_t n, const char *const *names,
                                           ampl_tensor *const *tensors, int64_t nmeta, const char *const *keys,
                                           const char *const *values);

/* ------------------------------------------------------------------------------------------------ data sets ------- */

/* An IDX file (MNIST's format), gzip-compressed or not.  Unsigned bytes come as u8; signed bytes, 16 and 32 bits as
 * i32; floats as f32 and f64. */
AMPL_API ampl_status ampl_idx_load(ampl_ctx *ctx, const char *path, ampl_tensor **out);

/* An npy file, NumPy's array of numbers or bools.  Small integers are widened as above. */
AMPL_API ampl_status ampl_npy_load(ampl_ctx *ctx, const char *path, ampl_tensor **out);

#define AMPL_CSV_NO_LABEL INT64_MAX

typedef struct ampl_csv_options {
  size_t struct_size; /* sizeof(ampl_csv_options); set by AMPL_CSV_OPTIONS_INIT */
  char separator;     /* 0: the first of , ; tab that the first line has, else blanks */
  int header;         /* 1: the first line is names, 0: it is numbers, -1: names if no field is a number */
  int64_t skip;       /* lines to pass over before that */
  ampl_dtype dtype;   /* of the result: f32 or f64 */
  char comment;       /* what comments begin with, to the end of their line; 0: there are none */
  int64_t label;      /* the column of labels, negative from the end; AMPL_CSV_NO_LABEL */
  const char *label_name; /* the same by the header; NULL */
  bool classes;           /* labels are integers, read exactly as i64, and count as the context's indices do */
  int64_t first_class;    /* how the file calls the first of them */
} ampl_csv_options;
#define AMPL_CSV_OPTIONS_INIT                                                                                          \
  { sizeof(ampl_csv_options), 0, -1, 0, AMPL_F32, '#', AMPL_CSV_NO_LABEL, NULL, false, 0 }

typedef struct ampl_csv {
  ampl_tensor *values; /* rows x columns, the labels' apart */
  ampl_tensor *labels; /* rows; NULL: none were asked for */
  int64_t n;           /* names, the labels' apart; 0 without a header */
  char **names;
} ampl_csv;

/* A table of numbers as text, gzip-compressed or not.  Takes lines that end in LF, CRLF or CR, a byte order mark,
 * blanks around fields, empty lines, comments, quoted fields, and a last line without an end.  EFORMAT with line and
 * column for anything else, a label that is no integer included; EINDEX or EARG where there is no such label column.
 * `options` may be NULL. */
AMPL_API ampl_status ampl_csv_load(ampl_ctx *ctx, const char *path, const ampl_csv_options *options, ampl_csv **out);
AMPL_API void ampl_csv_release(ampl_csv *c);

/* The bytes of a file as u8 or, with `utf8`, its characters' code points as i32; EFORMAT where it is no UTF-8. */
AMPL_API ampl_status ampl_text_load(ampl_ctx *ctx, const char *path, bool utf8, ampl_tensor **out);

#ifdef __cplusplus
}
#endif
#endif
