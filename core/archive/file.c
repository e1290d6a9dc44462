/* file.c: reading files in whole, replacing files in one step, and streams that may be compressed.
 *
 * A writer fills a temporary file beside its target and renames it at the end, so a reader sees the old file or the new
 * one, whole, whenever the run is killed.  The temporary is locked while its writer lives: an unlocked one is left over
 * from a run that died, and the next writer removes it.
 */
#define _GNU_SOURCE /* sync_file_range */
#include "file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#define PIECE (1u << 22) /* bytes of one system call: a few milliseconds, between which interruptions are looked for */

ampl_status ampl_file_error(ampl_ctx *ctx, const char *what, const char *shown) {
  char reason[128];
  int e = errno;
#if defined(__GLIBC__) && defined(_GNU_SOURCE)
  const char *text = strerror_r(e, reason, sizeof reason);
#else
  const char *text = strerror_r(e, reason, sizeof reason) == 0 ? reason : "unknown reason";
#endif
  return ampl_error(ctx, e == ENOMEM ? AMPL_ENOMEM : AMPL_EIO, "cannot %s %s: %s (errno %d)", what, shown, text, e);
}

ampl_status ampl_file_result(ampl_ctx *ctx, const char *shown, ampl_status s) {
  char message[sizeof ctx->message];
  if (s != AMPL_ENOMEM || strstr(ctx->message, shown)) return s;
  memcpy(message, ctx->message, sizeof message);
  ctx->op = "";
  return ampl_error(ctx, s, "%s: %s", shown, message);
}

/* ------------------------------------------------------------------------------------------------ memory ---------- */

ampl_status ampl_buffer_grow(ampl_buffer *b, size_t used, size_t need) {
  void *p;
  if (need <= b->room) return AMPL_OK;
  if (need < 2 * b->room) need = 2 * b->room;
  AMPL_TRY(ampl_mem_get(b->ctx, ampl_device_at(0), need, AMPL_KIND_SCRATCH, &p));
  if (used) memcpy(p, b->p, used);
  ampl_buffer_free(b);
  b->p = p;
  b->room = need;
  return AMPL_OK;
}

void ampl_buffer_free(ampl_buffer *b) {
  if (b->p) ampl_mem_put(b->ctx, ampl_device_at(0), b->p, b->room, AMPL_KIND_SCRATCH);
  b->p = NULL;
  b->room = 0;
}

/* ------------------------------------------------------------------------------------------------ reading --------- */

/* What a file is that is no regular file. */
static const char *kind_of_file(mode_t mode) {
  return S_ISDIR(mode)    ? "a folder"
         : S_ISFIFO(mode) ? "a pipe, no regular file"
         : S_ISSOCK(mode) ? "a socket, no regular file"
                          : "a device, no regular file";
}

ampl_status ampl_file_open(ampl_ctx *ctx, const char *path, ampl_file *out) {
  struct stat st;
  *out = (ampl_file){.ctx = ctx, .fd = -1};
  ampl_escape(out->shown, sizeof out->shown, path, strlen(path));
  ctx->op = "";
  /* NONBLOCK: opening a pipe that nobody writes to must not hang. */
  int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) return ampl_file_error(ctx, "open", out->shown);
  if (fstat(fd, &st) != 0) {
    ampl_status s = ampl_file_error(ctx, "read", out->shown);
    close(fd);
    return s;
  }
  if (!S_ISREG(st.st_mode)) {
    close(fd);
    return ampl_error(ctx, AMPL_EIO, "cannot read %s: it is %s", out->shown, kind_of_file(st.st_mode));
  }
  out->fd = fd;
  out->size = (uint64_t)st.st_size;
  return AMPL_OK;
}

ampl_status ampl_file_read(const ampl_file *f, uint64_t at, void *dst, size_t bytes) {
  char *p = dst;
  while (bytes > 0) {
    AMPL_TRY(ampl_file_poll(f->ctx));
    ssize_t n = pread(f->fd, p, bytes < PIECE ? bytes : PIECE, (off_t)at);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return ampl_file_error(f->ctx, "read", f->shown);
    if (n == 0)
      return ampl_error(f->ctx, AMPL_EIO, "cannot read %s: it ended at byte %llu while it was read", f->shown,
                        (unsigned long long)at);
    p += n;
    at += (uint64_t)n;
    bytes -= (size_t)n;
  }
  return AMPL_OK;
}

ampl_status ampl_file_next(void *file, void *dst, size_t bytes) {
  ampl_file *f = file;
  f->at += bytes;
  return ampl_file_read(f, f->at - bytes, dst, bytes);
}

void ampl_file_close(ampl_file *f) {
  if (f->fd >= 0) close(f->fd);
  f->fd = -1;
}

ampl_status ampl_file_tensor(ampl_ctx *ctx, ampl_dtype t, int ndim, const int64_t *shape, ampl_tensor **out) {
  ampl_meta m = {.dtype = t, .layout = AMPL_LAYOUT_ROW_MAJOR};
  *out = NULL;
  ampl_status s = ampl_meta_shape(ctx, &m, ndim, shape);
  return s == AMPL_OK ? ampl_tensor_new(ctx, ampl_device_at(0), &m, AMPL_KIND_TENSOR, out) : s;
}

/* ------------------------------------------------------------------------------------------------ writing --------- */

#define BUFFER   (1u << 16)
#define STEP     (1u << 23) /* bytes that are on their way to the disk while the next are written */
#define ATTEMPTS 1000 /* names a temporary may have: as many writers of one file at a time */

struct ampl_writer {
  ampl_ctx *ctx;
  char *path; /* where the file goes, links resolved */
  char *temp; /* NULL: written directly */
  int fd;
  uint64_t written, begun; /* bytes the system was given, and of those, bytes it was told to bring to disk */
  size_t used;
  char shown[AMPL_PATH_SHOWN];
  char buffer[BUFFER];
};

/* Length of the folder part of path, with its slash; 0: the current folder. */
static size_t folder_length(const char *path) {
  const char *slash = strrchr(path, '/');
  return slash ? (size_t)(slash - path) + 1 : 0;
}

static DIR *open_folder(const char *path) {
  size_t n = folder_length(path);
  if (n == 0) return opendir(".");
  char *folder = strndup(path, n);
  DIR *d = folder ? opendir(folder) : NULL;
  free(folder);
  return d;
}

/* What the names of all temporaries of `path` start with: the folder, a dot, and the name (cut: a name may have 255
 * bytes in all). */
static int temp_prefix(const char *path, char **out) {
  size_t n = folder_length(path);
  size_t room = strlen(path) + 16;
  *out = malloc(room);
  if (*out) snprintf(*out, room, "%.*s.%.200s.ampl-", (int)n, path, path + n);
  return *out != NULL;
}

/* Removes the temporaries of runs that died.  Nothing here is an error: the new file does not depend on it. */
static void remove_stale(const char *path, const char *prefix) {
  DIR *d = open_folder(path);
  struct dirent *entry;
  const char *start = prefix + folder_length(prefix);
  size_t n = strlen(start);
  if (!d) return;
  while ((entry = readdir(d)) != NULL) {
    size_t length = strlen(entry->d_name);
    if (length <= n + 4 || strncmp(entry->d_name, start, n) != 0) continue;
    if (strcmp(entry->d_name + length - 4, ".tmp") != 0) continue;
    int fd = openat(dirfd(d), entry->d_name, O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (fd < 0) continue;
    if (flock(fd, LOCK_EX | LOCK_NB) == 0) unlinkat(dirfd(d), entry->d_name, 0);
    close(fd);
  }
  closedir(d);
}

/* Makes and locks a temporary; its descriptor, or -1 with errno. */
static int make_temp(ampl_writer *w, const char *prefix) {
  size_t room = strlen(prefix) + 48;
  w->temp = malloc(room);
  if (!w->temp) return errno = ENOMEM, -1;
  for (int i = 0; i < ATTEMPTS; i++) {
    struct stat st;
    snprintf(w->temp, room, "%s%ld-%d.tmp", prefix, (long)getpid(), i);
    int fd = open(w->temp, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (fd < 0 && errno == EEXIST) continue;
    if (fd < 0) break;
    /* Between these two calls another writer may take the file for a left-over: then it is locked or gone. */
    bool lost = flock(fd, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK;
    if (!lost && fstat(fd, &st) == 0 && st.st_nlink > 0) return fd;
    close(fd);
  }
  int e = errno;
  free(w->temp);
  w->temp = NULL;
  return errno = e, -1;
}

/* The path with its links resolved, so that a link to a file on another disk stays a link. */
static ampl_status resolve(ampl_writer *w, const char *path) {
  struct stat st;
  const bool link = lstat(path, &st) == 0 && S_ISLNK(st.st_mode);
  w->path = link ? realpath(path, NULL) : strdup(path);
  if (w->path) return AMPL_OK;
  if (errno != ENOENT) return ampl_file_error(w->ctx, "write", w->shown);
  return ampl_error(w->ctx, AMPL_EIO, "cannot write %s: it is a symbolic link to a file that does not exist", w->shown);
}

/* A device is written to as it is.  A pipe could make a write wait for ever, or end the process by a signal. */
static ampl_status open_device(ampl_writer *w, mode_t mode) {
  if (!S_ISCHR(mode))
    return ampl_error(w->ctx, AMPL_EIO, "cannot write %s: it is %s", w->shown, kind_of_file(mode));
  w->fd = open(w->path, O_WRONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
  return w->fd < 0 ? ampl_file_error(w->ctx, "write", w->shown) : AMPL_OK;
}

static ampl_status open_target(ampl_writer *w) {
  struct stat st;
  bool there = stat(w->path, &st) == 0;
  if (there && !S_ISREG(st.st_mode)) return open_device(w, st.st_mode);
  if (there && access(w->path, W_OK) != 0) return ampl_file_error(w->ctx, "write", w->shown); /* it is protected */
  char *prefix;
  if (!temp_prefix(w->path, &prefix)) return errno = ENOMEM, ampl_file_error(w->ctx, "write", w->shown);
  remove_stale(w->path, prefix);
  w->fd = make_temp(w, prefix);
  ampl_status s = w->fd < 0 ? ampl_file_error(w->ctx, "write", w->shown) : AMPL_OK;
  free(prefix);
  if (s == AMPL_OK && there) (void)!fchmod(w->fd, st.st_mode & 07777); /* where it may not, the umask decides */
  return s;
}

static void writer_free(ampl_writer *w) {
  free(w->temp);
  free(w->path);
  free(w);
}

ampl_status ampl_writer_open(ampl_ctx *ctx, const char *path, ampl_writer **out) {
  *out = NULL;
  ampl_writer *w = malloc(sizeof *w);
  if (!w) return ampl_error(ctx, AMPL_ENOMEM, "out of memory for writing a file");
  *w = (ampl_writer){.ctx = ctx, .fd = -1};
  ampl_escape(w->shown, sizeof w->shown, path, strlen(path));
  ampl_status s = resolve(w, path);
  if (s == AMPL_OK) s = open_target(w);
  if (s != AMPL_OK) {
    writer_free(w);
    return s;
  }
  *out = w;
  return AMPL_OK;
}

/* Has the disk begin with what was written, and waits for what was begun a step before: the fsync at the end, which
 * nothing interrupts, has little left to do. */
static void write_behind(ampl_writer *w) {
#ifdef SYNC_FILE_RANGE_WRITE
  const unsigned wait = SYNC_FILE_RANGE_WAIT_BEFORE | SYNC_FILE_RANGE_WRITE | SYNC_FILE_RANGE_WAIT_AFTER;
  for (; w->temp && w->written - w->begun >= STEP; w->begun += STEP) {
    (void)!sync_file_range(w->fd, (off_t)w->begun, STEP, SYNC_FILE_RANGE_WRITE); /* errors are fsync's to tell */
    if (w->begun >= STEP) (void)!sync_file_range(w->fd, (off_t)(w->begun - STEP), STEP, wait);
  }
#else
  (void)w;
#endif
}

static ampl_status write_all(ampl_writer *w, const char *p, size_t bytes) {
  while (bytes > 0) {
    AMPL_TRY(ampl_file_poll(w->ctx));
    ssize_t n = write(w->fd, p, bytes < PIECE ? bytes : PIECE);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return ampl_file_error(w->ctx, "write", w->shown);
    p += n;
    bytes -= (size_t)n;
    w->written += (uint64_t)n;
    write_behind(w);
  }
  return AMPL_OK;
}

static ampl_status flush(ampl_writer *w) {
  size_t used = w->used;
  w->used = 0;
  return write_all(w, w->buffer, used);
}

ampl_status ampl_writer_put(ampl_writer *w, const void *src, size_t bytes) {
  if (w->used + bytes > BUFFER) {
    ampl_status s = flush(w);
    if (s != AMPL_OK) return s;
  }
  if (bytes > BUFFER) return write_all(w, src, bytes);
  if (bytes > 0) memcpy(w->buffer + w->used, src, bytes);
  w->used += bytes;
  return AMPL_OK;
}

/* Brings the folder's entry to disk.  Filesystems that cannot say EINVAL and the like: they have nothing to bring. */
static ampl_status sync_folder(ampl_writer *w) {
  DIR *d = open_folder(w->path);
  ampl_status s = AMPL_OK;
  if (!d) return AMPL_OK; /* a folder that may be written but not read */
  if (fsync(dirfd(d)) != 0 && errno == EIO) s = ampl_file_error(w->ctx, "bring to disk", w->shown);
  closedir(d);
  return s;
}

static ampl_status put_in_place(ampl_writer *w) {
  ampl_status s = flush(w);
  if (s == AMPL_OK) s = ampl_file_poll(w->ctx);
  if (s != AMPL_OK) return s;
  if (fsync(w->fd) != 0 && (w->temp || (errno != EINVAL && errno != EROFS)))
    return ampl_file_error(w->ctx, "write", w->shown);
  if (!w->temp) return AMPL_OK;
  if (rename(w->temp, w->path) != 0) return ampl_file_error(w->ctx, "replace", w->shown);
  free(w->temp);
  w->temp = NULL;
  return sync_folder(w);
}

ampl_status ampl_writer_close(ampl_writer *w, bool good) {
  if (!w) return AMPL_OK;
  ampl_status s = good ? put_in_place(w) : AMPL_OK;
  if (w->temp) unlink(w->temp);
  close(w->fd);
  writer_free(w);
  return s;
}

/* ------------------------------------------------------------------------------------------------ streams --------- */

ampl_status ampl_stream_open(ampl_ctx *ctx, const char *path, ampl_stream *out) {
  ampl_file f;
  *out = (ampl_stream){.ctx = ctx};
  ampl_status s = ampl_file_open(ctx, path, &f);
  memcpy(out->shown, f.shown, sizeof f.shown);
  if (s != AMPL_OK) return s;
  out->size = f.size;
  unsigned char magic[2];
  if (f.size >= 2) {
    s = ampl_file_read(&f, 0, magic, 2);
    if (s != AMPL_OK) return ampl_file_close(&f), s;
    out->packed = magic[0] == 0x1f && magic[1] == 0x8b;
  }
  errno = ENOMEM;                /* gzdopen fails for nothing else */
  out->gz = gzdopen(f.fd, "rb"); /* reads plain files as they are */
  if (!out->gz) {
    s = ampl_file_error(ctx, "read", f.shown);
    ampl_file_close(&f);
    return s;
  }
  gzbuffer(out->gz, 1u << 17);
  return AMPL_OK;
}

static ampl_status stream_error(ampl_stream *s) {
  int code;
  const char *text = gzerror(s->gz, &code);
  if (code == Z_ERRNO) return ampl_file_error(s->ctx, "read", s->shown);
  if (code == Z_MEM_ERROR) return errno = ENOMEM, ampl_file_error(s->ctx, "read", s->shown);
  return ampl_error(s->ctx, AMPL_EFORMAT, "%s: damaged compressed data behind byte %llu of its content: %s",
                    s->shown, (unsigned long long)s->at, code == Z_BUF_ERROR ? "it ends too early" : text);
}

ampl_status ampl_stream_read(ampl_stream *s, void *dst, size_t bytes, size_t *got) {
  char *p = dst;
  *got = 0;
  while (*got < bytes) {
    AMPL_TRY(ampl_file_poll(s->ctx));
    size_t left = bytes - *got;
    int n = gzread(s->gz, p + *got, left < PIECE ? (unsigned)left : PIECE);
    if (n < 0) return stream_error(s);
    if (n == 0) {
      int code;
      gzerror(s->gz, &code);
      return code == Z_OK || code == Z_STREAM_END ? AMPL_OK : stream_error(s);
    }
    *got += (size_t)n;
    s->at += (uint64_t)n;
  }
  return AMPL_OK;
}

void ampl_stream_close(ampl_stream *s) {
  if (s->gz) gzclose_r(s->gz);
  s->gz = NULL;
}
