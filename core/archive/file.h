/* file.h: reading and replacing files for the archive formats. */
#ifndef AMPL_FILE_H
#define AMPL_FILE_H

#include "escape.h"

#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "safetensors files are little-endian: this machine would need a byte swap in core/archive"
#endif

#define AMPL_PATH_SHOWN 304 /* bytes of a path that messages show, its 0 included */

typedef struct ampl_file {
  ampl_ctx *ctx;
  int fd;
  uint64_t size, at; /* at: where ampl_file_next goes on */
  char shown[AMPL_PATH_SHOWN]; /* the path, for messages */
} ampl_file;

/* EINTR when the context was interrupted: to be asked every few milliseconds by whatever runs longer. */
static inline ampl_status ampl_file_poll(ampl_ctx *ctx) {
  return ampl_interrupted(ctx) ? ampl_error(ctx, AMPL_EINTR, "interrupted") : AMPL_OK;
}

/* What a reader returns: s; a lack of memory is told with the file that asked for it. */
ampl_status ampl_file_result(ampl_ctx *ctx, const char *shown, ampl_status s);

/* Memory that a reader needs while it reads, counted as scratch. */
typedef struct ampl_buffer {
  ampl_ctx *ctx;
  void *p;
  size_t room;
} ampl_buffer;

/* Makes room for `need` bytes, at least doubling, and keeps the first `used`; ENOMEM. */
ampl_status ampl_buffer_grow(ampl_buffer *b, size_t used, size_t need);
void ampl_buffer_free(ampl_buffer *b);

/* Opens a regular file for reading; EIO.  Errors from here on are no op's. */
ampl_status ampl_file_open(ampl_ctx *ctx, const char *path, ampl_file *out);
/* All of [at, at + bytes), which must lie inside the file; EIO, also when the file has meanwhile been cut. */
ampl_status ampl_file_read(const ampl_file *f, uint64_t at, void *dst, size_t bytes);
/* The next bytes from f->at, likewise; `file` is the ampl_file. */
ampl_status ampl_file_next(void *file, void *dst, size_t bytes);
void ampl_file_close(ampl_file *f);
/* A tensor on the CPU, uninitialised, for what a file holds. */
ampl_status ampl_file_tensor(ampl_ctx *ctx, ampl_dtype t, int ndim, const int64_t *shape, ampl_tensor **out);
/* EIO: "cannot WHAT PATH: reason", reason from errno, the path escaped already. */
ampl_status ampl_file_error(ampl_ctx *ctx, const char *what, const char *shown);

typedef struct ampl_writer ampl_writer;

/* Starts a file that takes the place of `path` at the end.  Character devices are written to directly. */
ampl_status ampl_writer_open(ampl_ctx *ctx, const char *path, ampl_writer **out);
ampl_status ampl_writer_put(ampl_writer *w, const void *src, size_t bytes);
/* Frees `w`.  With `good` the file is brought to disk and put in place, else (or when that fails) all traces go. */
ampl_status ampl_writer_close(ampl_writer *w, bool good);

/* Decompressed or plain bytes, one after the other. */
typedef struct ampl_stream {
  ampl_ctx *ctx;
  void *gz;
  uint64_t size; /* of the file as it lies on disk */
  bool packed;
  uint64_t at; /* bytes handed out so far */
  char shown[AMPL_PATH_SHOWN];
} ampl_stream;

ampl_status ampl_stream_open(ampl_ctx *ctx, const char *path, ampl_stream *out);
/* Up to `bytes`; fewer only at the end.  EFORMAT for damaged compressed data, wrong checksum included. */
ampl_status ampl_stream_read(ampl_stream *s, void *dst, size_t bytes, size_t *got);
void ampl_stream_close(ampl_stream *s);

#endif
