/* file.h: reading and replacing files for the archive formats. */
#ifndef AMPL_FILE_H
#define AMPL_FILE_H

#include "archive.h"
#include "ctx.h"

#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "safetensors files are little-endian: this machine would need a byte swap in core/archive"
#endif

typedef struct ampl_file {
  ampl_ctx *ctx;
  const char *path;
  int fd;
  uint64_t size, at; /* at: where ampl_file_next goes on */
} ampl_file;

/* Opens a regular file for reading; EIO. */
ampl_status ampl_file_open(ampl_ctx *ctx, const char *path, ampl_file *out);
/* All of [at, at + bytes), which must lie inside the file; EIO, also when the file has meanwhile been cut. */
ampl_status ampl_file_read(const ampl_file *f, uint64_t at, void *dst, size_t bytes);
/* The next bytes from f->at, likewise; `file` is the ampl_file. */
ampl_status ampl_file_next(void *file, void *dst, size_t bytes);
void ampl_file_close(ampl_file *f);
/* A tensor on the CPU, uninitialised, for what a file holds. */
ampl_status ampl_file_tensor(ampl_ctx *ctx, ampl_dtype t, int ndim, const int64_t *shape, ampl_tensor **out);
/* EIO: "cannot WHAT PATH: reason", reason from errno. */
ampl_status ampl_file_error(ampl_ctx *ctx, const char *what, const char *path);

typedef struct ampl_writer ampl_writer;

/* Starts a file that takes the place of `path` at the end.  Devices and pipes are written to directly. */
ampl_status ampl_writer_open(ampl_ctx *ctx, const char *path, ampl_writer **out);
ampl_status ampl_writer_put(ampl_writer *w, const void *src, size_t bytes);
/* Frees `w`.  With `good` the file is brought to disk and put in place, else (or when that fails) all traces go. */
ampl_status ampl_writer_close(ampl_writer *w, bool good);

/* Decompressed or plain bytes, one after the other. */
typedef struct ampl_stream {
  ampl_ctx *ctx;
  const char *path;
  void *gz;
  uint64_t size; /* of the file as it lies on disk */
  bool packed;
  uint64_t at; /* bytes handed out so far */
} ampl_stream;

ampl_status ampl_stream_open(ampl_ctx *ctx, const char *path, ampl_stream *out);
/* Up to `bytes`; fewer only at the end.  EFORMAT for damaged compressed data, wrong checksum included. */
ampl_status ampl_stream_read(ampl_stream *s, void *dst, size_t bytes, size_t *got);
void ampl_stream_close(ampl_stream *s);

#endif
