/* archive_limits_test.c: readers under a memory limit, interruptions, disks that are full, targets that are no files,
 * and text from files in messages.  Counts like the other tests. */
#include "archive.h"

#include <dirent.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#define LIMIT ((size_t)32 << 20)

static int passed, failed;
static char folder[64];
static ampl_ctx *ctx;

static void check(bool ok, const char *fmt, ...) {
  va_list args;
  if (ok) {
    passed++;
    return;
  }
  failed++;
  va_start(args, fmt);
  printf("FAILED: ");
  vprintf(fmt, args);
  printf(" (%s)\n", ampl_error_message(ctx));
  va_end(args);
}

static const char *path(const char *name) {
  static char text[4][256];
  static int next;
  char *p = text[next++ % 4];
  snprintf(p, 256, "%s/%s", folder, name);
  return p;
}

static int entries(void) {
  DIR *d = opendir(folder);
  int n = 0;
  for (struct dirent *e; (e = readdir(d)) != NULL;) n += strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0;
  closedir(d);
  return n;
}

static void clear(void) {
  DIR *d = opendir(folder);
  for (struct dirent *e; (e = readdir(d)) != NULL;) unlinkat(dirfd(d), e->d_name, 0);
  closedir(d);
}

static void put(const char *name, const char *text) {
  FILE *f = fopen(path(name), "wb");
  fwrite(text, 1, strlen(text), f);
  fclose(f);
}

/* `text` again and again, compressed. */
static void put_packed(const char *name, const char *text, size_t times) {
  gzFile f = gzopen(path(name), "wb1");
  for (size_t i = 0; i < times; i++) gzwrite(f, text, (unsigned)strlen(text));
  gzclose(f);
}

/* A safetensors file whose header is `piece` again and again, between braces. */
static void put_header(const char *name, const char *piece, size_t times) {
  FILE *f = fopen(path(name), "wb");
  const uint64_t bytes = strlen(piece) * times + 2;
  for (int i = 0; i < 8; i++) fputc((int)(bytes >> (8 * i) & 255), f);
  fputc('{', f);
  for (size_t i = 0; i < times; i++) fputs(piece, f);
  fputc('}', f);
  fclose(f);
}

/* ------------------------------------------------------------------------------------------------ readers --------- */

static ampl_status load_safetensors(const char *name) {
  ampl_archive *a = NULL;
  const ampl_status s = ampl_safetensors_load(ctx, path(name), &a);
  if (s != AMPL_OK && a) check(false, "an archive in spite of an error");
  ampl_archive_release(a);
  return s;
}

static ampl_status load_csv(const char *name) {
  ampl_csv *c = NULL;
  const ampl_status s = ampl_csv_load(ctx, path(name), NULL, &c);
  if (s != AMPL_OK && c) check(false, "a table in spite of an error");
  ampl_csv_release(c);
  return s;
}

static ampl_status load_idx(const char *name) {
  ampl_tensor *t = NULL;
  const ampl_status s = ampl_idx_load(ctx, path(name), &t);
  ampl_tensor_release(t);
  return s;
}

static ampl_status load_npy(const char *name) {
  ampl_tensor *t = NULL;
  const ampl_status s = ampl_npy_load(ctx, path(name), &t);
  ampl_tensor_release(t);
  return s;
}

static ampl_status load_text(const char *name) {
  ampl_tensor *t = NULL;
  const ampl_status s = ampl_text_load(ctx, path(name), true, &t);
  ampl_tensor_release(t);
  return s;
}

static ampl_status save_to(const char *where) {
  static ampl_tensor *x;
  const char *name = "x";
  if (!x && ampl_zeros(ctx, AMPL_F32, 1, (int64_t[]){40000}, &x) != AMPL_OK) return AMPL_ENOMEM;
  return ampl_safetensors_save(ctx, where, 1, &name, &x, 0, NULL, NULL);
}

static ampl_status save(const char *name) { return save_to(path(name)); }

/* ------------------------------------------------------------------------------------------------ memory ---------- */

/* `load` ends with `status`, and neither while it ran nor after took more than it may. */
static void within_limit(const char *what, ampl_status (*load)(const char *name), ampl_status status) {
  ampl_memory_info before, m;
  ampl_memory(ctx, &before);
  ampl_memory_reset_peak(ctx);
  const ampl_status s = load("f");
  ampl_memory(ctx, &m);
  check(s == status, "%s: %s, not %s", what, ampl_status_name(s), ampl_status_name(status));
  check(s == AMPL_OK || strstr(ampl_error_message(ctx), "/f"), "%s: the message names the file", what);
  check(m.peak <= LIMIT, "%s: %zu bytes at the peak", what, m.peak);
  check(m.live == before.live && m.tensors == before.tensors, "%s: %zu bytes stay", what, m.live - before.live);
}

static void limits(void) {
  put_packed("f", "1,2\n", 16 << 20);
  within_limit("rows", load_csv, AMPL_ENOMEM);
  put_packed("f", "1,2,", 8 << 20);
  within_limit("a line", load_csv, AMPL_ENOMEM);
  put_packed("f", "a,", 4 << 20);
  within_limit("names", load_csv, AMPL_ENOMEM);
  put_packed("f", "\r\n", 8 << 20);
  within_limit("empty lines", load_csv, AMPL_EFORMAT);
  put_packed("f", "1 2 3 4 5 6 7 8\n", 1 << 16);
  within_limit("a table that has room", load_csv, AMPL_OK);
  put_header("f", "\"a\":{\"x\":[[[[", 1 << 20);
  within_limit("nested values", load_safetensors, AMPL_EFORMAT);
  put_header("f", "\"\":{},", 1 << 19);
  within_limit("entries without a dtype", load_safetensors, AMPL_ENOMEM);
  put_header("f", "\"__metadata__\":{\"\":0,", 1 << 20);
  within_limit("metadata", load_safetensors, AMPL_EFORMAT);
  put_header("f", " ", 40 << 20);
  within_limit("a header that is too big", load_safetensors, AMPL_ENOMEM);
  clear();
}

/* ------------------------------------------------------------------------------------------------ interruption ---- */

static void interrupted(void) {
  static const struct {
    const char *what;
    ampl_status (*call)(const char *name);
    const char *text;
  } calls[] = {
      {"safetensors", load_safetensors, "\2\0\0\0\0\0\0"},
      {"csv", load_csv, "1,2\n3,4\n"},
      {"idx", load_idx, ""},
      {"npy", load_npy, "\x93NUMPY"},
      {"text", load_text, "abc"},
  };
  put("old", "what was there");
  for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
    put("f", calls[i].text);
    if (calls[i].call == load_idx || calls[i].call == load_safetensors) put_packed("f", "0123456789", 10);
    ampl_interrupt(ctx);
    check(calls[i].call("f") == AMPL_EINTR, "%s ends", calls[i].what);
    ampl_interrupt_clear(ctx);
  }
  ampl_interrupt(ctx);
  check(save("old") == AMPL_EINTR, "a writer ends");
  ampl_interrupt_clear(ctx);
  check(entries() == 2, "no temporary file stays: %d files", entries());
  check(load_text("old") == AMPL_OK, "the old file stays");
  clear();
}

/* ------------------------------------------------------------------------------------------------ writers --------- */

/* The disk is full after n bytes, for every n. */
static void full_disk(void) {
  struct rlimit before, full;
  struct stat st;
  int wrong = 0;
  put("f", "what was there");
  getrlimit(RLIMIT_FSIZE, &before);
  signal(SIGXFSZ, SIG_IGN);
  for (rlim_t n = 0; n < 160000; n = n < 20 ? n + 1 : n + n / 3) {
    full = (struct rlimit){n, before.rlim_max};
    setrlimit(RLIMIT_FSIZE, &full);
    wrong += save("f") != AMPL_EIO || entries() != 1 || stat(path("f"), &st) != 0 || st.st_size != 14;
  }
  setrlimit(RLIMIT_FSIZE, &before);
  check(wrong == 0, "%d writes to a full disk lost the old file or left something", wrong);
  check(save("f") == AMPL_OK && entries() == 1 && load_safetensors("f") == AMPL_OK, "with room again");
  clear();
}

static void refuses(const char *where, const char *says) {
  const ampl_status s = save_to(where);
  check(s == AMPL_EIO && strstr(ampl_error_message(ctx), says), "%s: %s, without \"%s\"", where, ampl_status_name(s),
        says);
}

static void targets(void) {
  struct stat st;
  mkfifo(path("pipe"), 0600);
  check(symlink("nowhere", path("dangling")) == 0 && symlink("loop", path("loop")) == 0, "links");
  check(symlink("pipe", path("to_pipe")) == 0, "a link to a pipe");
  refuses(path("pipe"), "it is a pipe");
  refuses(path("to_pipe"), "it is a pipe");
  refuses(path("dangling"), "a symbolic link to a file that does not exist");
  refuses(path("loop"), "symbolic links");
  refuses(folder, "it is a folder");
  refuses("/dev/full", "No space left");
  refuses("", "No such file");
  refuses("/proc/version/x", "Not a directory");
  check(save_to("/dev/null") == AMPL_OK, "a device that takes everything");
  check(lstat(path("dangling"), &st) == 0 && S_ISLNK(st.st_mode) && entries() == 4, "all stay what they are");
  if (geteuid() != 0) {
    put("protected", "old");
    chmod(path("protected"), 0444);
    refuses(path("protected"), "Permission denied");
  }
  check(load_csv("pipe") == AMPL_EIO && strstr(ampl_error_message(ctx), "a pipe"), "a pipe is not read");
  check(load_text("pipe") == AMPL_EIO && load_npy("to_pipe") == AMPL_EIO && load_idx("loop") == AMPL_EIO, "nor others");
  clear();
}

/* ------------------------------------------------------------------------------------------------ text ------------ */

static void escapes(const char *text, size_t room, const char *want) {
  char got[64];
  const size_t n = ampl_escape(got, room, text, strlen(text));
  check(n == strlen(want) && strcmp(got, want) == 0, "\"%s\", not \"%s\"", got, want);
}

static void text(void) {
  escapes("plain \"text\" \xc3\xa9 \xf0\x9f\x98\x80", 64, "plain \"text\" \xc3\xa9 \xf0\x9f\x98\x80");
  escapes("\x1b[31m\r\n\t\\\x7f", 64, "\\x1b[31m\\r\\n\\t\\\\\\x7f");
  escapes("\xff\xc3(\xed\xa0\x80", 64, "\\xff\\xc3(\\xed\\xa0\\x80");
  escapes("\xc2\x9b" "1m\xe2\x80\xae" "abc", 64, "\\u{9b}1m\\u{202e}abc");
  escapes("0123456789", 11, "0123456789");
  escapes("0123456789", 10, "012345...");
  escapes("01234567\x1b", 10, "012345...");
  escapes("0123", 3, "..");
  escapes("0123", 1, "");
  check(ampl_escape(NULL, 0, "x", 1) == 0, "no room");
  put("f", "1,\x1b]0;x\x07\xff\n");
  check(load_csv("f") == AMPL_EFORMAT && strstr(ampl_error_message(ctx), "\"\\x1b]0;x\\x07\\xff\""), "a field");
  check(load_csv("a\n\x1b[1m") == AMPL_EIO && strstr(ampl_error_message(ctx), "/a\\n\\x1b[1m:"), "a path");
  clear();
}

int main(void) {
  ampl_ctx_options o = AMPL_CTX_OPTIONS_INIT;
  o.memory_limit = LIMIT;
  snprintf(folder, sizeof folder, "/tmp/ampl-limits-XXXXXX");
  if (!mkdtemp(folder) || ampl_ctx_new(&o, &ctx) != AMPL_OK) return 1;
  limits();
  interrupted();
  full_disk();
  targets();
  text();
  clear();
  rmdir(folder);
  printf("%d passed, %d failed, 0 skipped\n", passed, failed);
  return failed > 0;
}
