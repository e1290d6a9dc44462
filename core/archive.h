/* archive.h: files that hold tensors.  Readers check every length before they believe or allocate it, and run nothing;
 * writers put a whole new file in the place of the old one, or leave the old one as it was.
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

typedef struct ampl_csv_options {
  size_t struct_size; /* sizeof(ampl_csv_options); set by AMPL_CSV_OPTIONS_INIT */
  char separator;     /* 0: the first of , ; tab that the first line has, else blanks */
  int header;         /* 1: the first line is names, 0: it is numbers, -1: names if a field is no number */
  int64_t skip;       /* lines to pass over before that */
  ampl_dtype dtype;   /* of the result: f32 or f64 */
} ampl_csv_options;
#define AMPL_CSV_OPTIONS_INIT                                                                                          \
  { sizeof(ampl_csv_options), 0, -1, 0, AMPL_F32 }

typedef struct ampl_csv {
  ampl_tensor *values; /* rows x columns */
  int64_t n;           /* names; 0 without a header */
  char **names;
} ampl_csv;

/* A table of numbers as text, gzip-compressed or not.  Takes CRLF, a byte order mark, blanks around fields, empty
 * lines, quoted fields, and a last line without an end.  EFORMAT with line and column for anything else.  `options` may
 * be NULL. */
AMPL_API ampl_status ampl_csv_load(ampl_ctx *ctx, const char *path, const ampl_csv_options *options, ampl_csv **out);
AMPL_API void ampl_csv_release(ampl_csv *c);

#ifdef __cplusplus
}
#endif
#endif
