/* archive_test.c: the archive formats from C: whole files come back, damaged ones are named and refused, old files
 * survive failed writes, and every allocation may fail.  Counts like the other tests. */
#include "archive.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

static int passed, failed, skipped;
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

/* ------------------------------------------------------------------------------------------------ allocations ----- */

/* The n-th allocation from now on fails, in every library of the process. */
static long fail_at;

#if defined(__GLIBC__) && !defined(__SANITIZE_ADDRESS__)
#define CAN_FAIL 1
void *__libc_malloc(size_t n);
void *__libc_calloc(size_t n, size_t m);
void *__libc_realloc(void *p, size_t n);

static bool fails(void) {
  if (!fail_at || --fail_at) return false;
  errno = ENOMEM;
  return true;
}
/* Visible, so that the libraries' calls end here, too. */
AMPL_API void *malloc(size_t n) { return fails() ? NULL : __libc_malloc(n); }
AMPL_API void *calloc(size_t n, size_t m) { return fails() ? NULL : __libc_calloc(n, m); }
AMPL_API void *realloc(void *p, size_t n) { return fails() ? NULL : __libc_realloc(p, n); }
#else
#define CAN_FAIL 0
#endif

/* ------------------------------------------------------------------------------------------------ files ----------- */

static const char *path(const char *name) {
  static char text[4][256];
  static int next;
  char *p = text[next++ % 4];
  snprintf(p, 256, "%s/%s", folder, name);
  return p;
}

static void put(const char *name, const void *data, size_t bytes) {
  FILE *f = fopen(path(name), "wb");
  if (bytes) fwrite(data, 1, bytes, f);
  fclose(f);
}

static size_t get(const char *name, char *data, size_t room) {
  FILE *f = fopen(path(name), "rb");
  size_t n = f ? fread(data, 1, room, f) : 0;
  if (f) fclose(f);
  return n;
}

static int entries(void) { /* files in the folder */
  DIR *d = opendir(folder);
  int n = 0;
  for (struct dirent *e; (e = readdir(d)) != NULL;) n += e->d_name[0] != '.' || strlen(e->d_name) > 2;
  closedir(d);
  return n;
}

static void clear(void) {
  DIR *d = opendir(folder);
  for (struct dirent *e; (e = readdir(d)) != NULL;) unlinkat(dirfd(d), e->d_name, 0);
  closedir(d);
}

/* A safetensors file of this header and `bytes` bytes 0, 1, 2 ... of data. */
static void put_header(const char *name, const char *header, size_t bytes) {
  char data[1024];
  const size_t n = strlen(header);
  for (int i = 0; i < 8; i++) data[i] = (char)(n >> (8 * i));
  memcpy(data + 8, header, n);
  for (size_t i = 0; i < bytes; i++) data[8 + n + i] = (char)i;
  put(name, data, 8 + n + bytes);
}

/* ------------------------------------------------------------------------------------------------ safetensors ----- */

static ampl_tensor *filled(ampl_dtype t, int ndim, const int64_t *shape) {
  ampl_tensor *x = NULL;
  if (ampl_empty(ctx, t, ndim, shape, &x) != AMPL_OK) return NULL;
  unsigned char *p = ampl_data(x);
  for (size_t i = 0; i < (size_t)ampl_numel(x) * ampl_dtype_size(t); i++)
    p[i] = t == AMPL_BOOL ? i & 1 : (i * 37 + 5) & 63;
  return x;
}

static bool same(const ampl_tensor *a, const ampl_tensor *b) {
  const size_t bytes = (size_t)ampl_numel(a) * ampl_dtype_size(ampl_tensor_dtype(a));
  if (ampl_tensor_dtype(a) != ampl_tensor_dtype(b) || ampl_ndim(a) != ampl_ndim(b)) return false;
  for (int i = 0; i < ampl_ndim(a); i++)
    if (ampl_shape(a)[i] != ampl_shape(b)[i]) return false;
  return bytes == 0 || memcmp(ampl_data(a), ampl_data(b), bytes) == 0;
}

static void round_trip(void) {
  static const int64_t shapes[][3] = {{2, 3, 5}, {0, 4, 1}, {7, 1, 1}};
  const char *names[2 * AMPL_DTYPE_COUNT + 1];
  ampl_tensor *tensors[2 * AMPL_DTYPE_COUNT + 1];
  char text[2 * AMPL_DTYPE_COUNT][16];
  int n = 0;
  for (int t = 0; t < AMPL_DTYPE_COUNT; t++)
    for (int k = 0; k < 2; k++, n++) {
      snprintf(text[n], sizeof text[n], "%c\"\\\n%s%d", 'z' - t, ampl_dtype_name(t), k);
      names[n] = text[n];
      tensors[n] = filled(t, k ? 3 : t % 3, shapes[(t + k) % 3]);
    }
  names[n] = "";
  tensors[n++] = filled(AMPL_F32, 0, NULL);
  const char *keys[] = {"b", "a"}, *values[] = {"2 \xc3\xa9\n", ""};
  check(ampl_safetensors_save(ctx, path("all"), n, names, tensors, 2, keys, values) == AMPL_OK, "save");
  ampl_archive *a = NULL;
  check(ampl_safetensors_load(ctx, path("all"), &a) == AMPL_OK, "load");
  check(a && a->n == n && a->nmeta == 2, "counts");
  for (int i = 0; a && i < n; i++) {
    int64_t k = 0;
    while (k < a->n && strcmp(a->names[k], names[i]) != 0) k++;
    check(k < a->n && same(a->tensors[k], tensors[i]), "tensor %s", names[i]);
  }
  check(a && strcmp(a->keys[0], "a") == 0 && strcmp(a->values[1], values[0]) == 0, "metadata");
  static char first[4096], second[4096];
  const size_t bytes = get("all", first, sizeof first);
  for (int i = 0; i < n / 2; i++) { /* another order, the same bytes */
    const char *name = names[i];
    ampl_tensor *x = tensors[i];
    names[i] = names[n - 1 - i], tensors[i] = tensors[n - 1 - i];
    names[n - 1 - i] = name, tensors[n - 1 - i] = x;
  }
  check(ampl_safetensors_save(ctx, path("all"), n, names, tensors, 2, keys, values) == AMPL_OK, "save again");
  check(get("all", second, sizeof second) == bytes && memcmp(first, second, bytes) == 0, "the same bytes");
  check(entries() == 1, "one file in the folder, not %d", entries());
  ampl_archive_release(a);
  for (int i = 0; i < n; i++) ampl_tensor_release(tensors[i]);
}

typedef struct hostile {
  const char *header;
  size_t bytes;
  ampl_status status;
  const char *says;
} hostile;

static const hostile damaged[] = {
    {"{\"a\":{\"dtype\":\"U8\",\"shape\":[2],\"data_offsets\":[0,2]},\"a\":{}}", 2, AMPL_EFORMAT,
     "duplicate object key"},
    {"{\"a\":{\"dtype\":\"U8\",\"shape\":[2],\"data_offsets\":[1,3]}}", 3, AMPL_EFORMAT, "a hole: bytes 0 to 1"},
    {"{\"a\":{\"dtype\":\"U8\",\"shape\":[2],\"data_offsets\":[0,2]},"
     "\"b\":{\"dtype\":\"U8\",\"shape\":[2],\"data_offsets\":[1,3]}}",
     3, AMPL_EFORMAT, "an overlap: tensor \"b\""},
    {"{\"a\":{\"dtype\":\"U8\",\"shape\":[2],\"data_offsets\":[0,2]}}", 1, AMPL_EFORMAT, "ends at byte 2"},
    {"{\"a\":{\"dtype\":\"U8\",\"shape\":[2],\"data_offsets\":[0,2]}}", 3, AMPL_EFORMAT, "1 bytes behind the last"},
    {"{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,4]}}", 4, AMPL_EFORMAT, "needs 8 bytes"},
    {"{\"a\":{\"dtype\":\"U8\",\"shape\":[2],\"data_offsets\":[2,0]}}", 2, AMPL_EFORMAT, "before it begins"},
    {"{\"a\":{\"dtype\":\"U8\",\"shape\":[-1],\"data_offsets\":[0,2]}}", 2, AMPL_EFORMAT, "no natural number"},
    {"{\"a\":{\"dtype\":\"U8\",\"shape\":[1.5],\"data_offsets\":[0,2]}}", 2, AMPL_EFORMAT, "no natural number"},
    {"{\"a\":{\"dtype\":\"U8\",\"shape\":[2],\"data_offsets\":[0]}}", 2, AMPL_EFORMAT, "two natural numbers"},
    {"{\"a\":{\"dtype\":\"U8\",\"shape\":[2],\"data_offsets\":[0,\"2\"]}}", 2, AMPL_EFORMAT, "two natural numbers"},
    {"{\"a\":{\"dtype\":\"U8\",\"shape\":[4294967296,4294967296],\"data_offsets\":[0,0]}}", 0, AMPL_EFORMAT,
     "elements"},
    {"{\"a\":{\"dtype\":\"F64\",\"shape\":[1152921504606846976],\"data_offsets\":[0,0]}}", 0, AMPL_EFORMAT, "elements"},
    {"{\"a\":{\"dtype\":\"U8\",\"shape\":[99999999999999999999],\"data_offsets\":[0,0]}}", 0, AMPL_EFORMAT, "too big"},
    {"{\"a\":{\"dtype\":\"U8\",\"shape\":[1,1,1,1,1,1,1,1,1],\"data_offsets\":[0,1]}}", 1, AMPL_EUNSUPPORTED, "9 dim"},
    {"{\"a\":{\"dtype\":\"F8_E4M3\",\"shape\":[1],\"data_offsets\":[0,1]}}", 1, AMPL_EUNSUPPORTED, "F8_E4M3"},
    {"{\"a\":{\"dtype\":7,\"shape\":[1],\"data_offsets\":[0,1]}}", 1, AMPL_EFORMAT, "no dtype"},
    {"{\"a\":{\"dtype\":\"U8\",\"data_offsets\":[0,1]}}", 1, AMPL_EFORMAT, "no shape"},
    {"{\"a\":[]}", 0, AMPL_EFORMAT, "no object"},
    {"{\"__metadata__\":{\"k\":1}}", 0, AMPL_EFORMAT, "no string"},
    {"{\"__metadata__\":[]}", 0, AMPL_EFORMAT, "no object"},
    {"[]", 0, AMPL_EFORMAT, "not with '{'"},
    {"{\"a\"", 0, AMPL_EFORMAT, "no valid JSON"},
    {"{}x", 0, AMPL_EFORMAT, "no valid JSON"},
    {"{\"a\\u0000\":{}}", 0, AMPL_EFORMAT, "no valid JSON"},
    {"{\"\xff\":{}}", 0, AMPL_EFORMAT, "no valid JSON"},
};

static void expect(const char *name, ampl_status status, const char *says) {
  ampl_archive *a = (ampl_archive *)ctx;
  const ampl_status s = ampl_safetensors_load(ctx, path(name), &a);
  const char *text = ampl_error_message(ctx);
  check(s == status && !a, "status %s, expected %s", ampl_status_name(s), ampl_status_name(status));
  check(strstr(text, says) != NULL && strstr(text, name) != NULL, "the message should say \"%s\"", says);
}

static void refused(void) {
  for (size_t i = 0; i < sizeof damaged / sizeof *damaged; i++) {
    put_header("bad", damaged[i].header, damaged[i].bytes);
    expect("bad", damaged[i].status, damaged[i].says);
  }
  put("bad", "", 0);
  expect("bad", AMPL_EFORMAT, "8 bytes");
  put("bad", "\1\0\0\0\0\0\0\0{", 9);
  expect("bad", AMPL_EFORMAT, "the shortest");
  put("bad", "\377\377\377\377\377\377\377\377{}", 10);
  expect("bad", AMPL_EFORMAT, "at most 100000000");
  put("bad", "\1\341\365\5\0\0\0\0{}", 10); /* 100,000,001 */
  expect("bad", AMPL_EFORMAT, "a header of 100000001 bytes; at most");
  put("bad", "\0\341\365\5\0\0\0\0{}", 10); /* 100,000,000 in a file of ten bytes */
  expect("bad", AMPL_EFORMAT, "in a file of 10");
  expect("nowhere", AMPL_EIO, "No such file");
  mkdir(path("dir"), 0700);
  expect("dir", AMPL_EIO, "a folder");
  rmdir(path("dir"));
  mkfifo(path("pipe"), 0600);
  expect("pipe", AMPL_EIO, "no regular file");
  clear();
}

static void widened(void) {
  put_header("w",
             "{\"a\":{\"dtype\":\"I8\",\"shape\":[2],\"data_offsets\":[0,2]},"
             "\"b\":{\"dtype\":\"U16\",\"shape\":[1],\"data_offsets\":[2,4]},"
             "\"c\":{\"dtype\":\"U32\",\"shape\":[],\"data_offsets\":[4,8]},"
             "\"d\":{\"dtype\":\"BOOL\",\"shape\":[2],\"data_offsets\":[8,10]},\"e\":{\"dtype\":\"I16\",\"shape\":[0],"
             "\"data_offsets\":[10,10]}}  ",
             10);
  ampl_archive *a = NULL;
  check(ampl_safetensors_load(ctx, path("w"), &a) == AMPL_OK && a->n == 5, "widened dtypes");
  if (!a) return;
  check(ampl_tensor_dtype(a->tensors[0]) == AMPL_I32 && ((int32_t *)ampl_data(a->tensors[0]))[1] == 1, "I8");
  check(((int32_t *)ampl_data(a->tensors[1]))[0] == 0x0302, "U16");
  check(((int64_t *)ampl_data(a->tensors[2]))[0] == 0x07060504, "U32");
  check(((unsigned char *)ampl_data(a->tensors[3]))[0] == 1, "BOOL holds 0 and 1 only");
  ampl_archive_release(a);
  clear();
}

/* Every prefix of a good file is refused, and no single changed byte of its header brings anything but a clean answer.
 */
static void cut_and_bent(void) {
  static char good[4096], bad[4096];
  const char *names[] = {"weight", "bias"};
  ampl_tensor *tensors[] = {filled(AMPL_F32, 2, (int64_t[]){3, 4}), filled(AMPL_I64, 1, (int64_t[]){3})};
  ampl_safetensors_save(ctx, path("good"), 2, names, tensors, 0, NULL, NULL);
  const size_t n = get("good", good, sizeof good);
  ampl_archive *a;
  int loaded = 0, other = 0;
  for (size_t i = 0; i < n; i++) {
    put("cut", good, i);
    if (ampl_safetensors_load(ctx, path("cut"), &a) != AMPL_EFORMAT) other++;
  }
  check(n > 0 && other == 0, "%d prefixes were not refused as damaged", other);
  for (size_t i = 0; i < n - 72; i++)
    for (int bit = 0; bit < 8; bit++) {
      memcpy(bad, good, n);
      bad[i] ^= (char)(1 << bit);
      put("cut", bad, n);
      const ampl_status s = ampl_safetensors_load(ctx, path("cut"), &a);
      loaded += s == AMPL_OK;
      other += s != AMPL_OK && s != AMPL_EFORMAT && s != AMPL_EUNSUPPORTED;
      ampl_archive_release(a);
    }
  check(other == 0 && loaded > 0, "%d changed headers gave another error", other);
  ampl_tensor_release(tensors[0]);
  ampl_tensor_release(tensors[1]);
  clear();
}

/* ------------------------------------------------------------------------------------------------ replacing ------- */

static ampl_status save_one(const char *where, ampl_tensor *x) {
  const char *name = "x";
  return ampl_safetensors_save(ctx, where, 1, &name, &x, 0, NULL, NULL);
}

static void replaced(void) {
  static char before[4096], after[4096];
  struct stat st;
  ampl_tensor *x = filled(AMPL_F32, 1, (int64_t[]){100}), *y = filled(AMPL_F64, 1, (int64_t[]){100});
  check(save_one(path("f"), x) == AMPL_OK, "save");
  chmod(path("f"), 0640);
  const size_t n = get("f", before, sizeof before);
  const char *twice[] = {"x", "x"};
  ampl_tensor *both[] = {x, y};
  check(ampl_safetensors_save(ctx, path("f"), 2, twice, both, 0, NULL, NULL) == AMPL_EARG, "a name given twice");
  check(get("f", after, sizeof after) == n && memcmp(before, after, n) == 0, "the old file stays");
  put(".f.ampl-1-0.tmp", "left over", 9);
  check(save_one(path("f"), y) == AMPL_OK && entries() == 1, "what a killed run left is removed: %d files", entries());
  check(stat(path("f"), &st) == 0 && (st.st_mode & 0777) == 0640, "the mode of the old file");
  check(symlink("f", path("link")) == 0 && save_one(path("link"), x) == AMPL_OK, "through a link");
  check(lstat(path("link"), &st) == 0 && S_ISLNK(st.st_mode), "the link stays one");
  check(get("f", after, sizeof after) == n && memcmp(before, after, n) == 0, "its target is replaced");
  check(save_one("/dev/full", x) == AMPL_EIO && strstr(ampl_error_message(ctx), "/dev/full") &&
            strstr(ampl_error_message(ctx), "No space left"),
        "a full disk");
  check(stat("/dev/full", &st) == 0 && S_ISCHR(st.st_mode), "/dev/full is still a device");
  check(save_one(path("none/f"), x) == AMPL_EIO && strstr(ampl_error_message(ctx), "No such file"), "no folder");
  check(save_one(folder, x) == AMPL_EIO, "a folder in the place of the file");
  const char *bad = "\xc0\x80", *good = "x";
  check(ampl_safetensors_save(ctx, path("f"), 1, &bad, &x, 0, NULL, NULL) == AMPL_EVALUE, "a name that is no UTF-8");
  check(ampl_safetensors_save(ctx, path("f"), 1, &good, &x, 1, &good, &bad) == AMPL_EVALUE, "a value that is no UTF-8");
  bad = "__metadata__";
  check(ampl_safetensors_save(ctx, path("f"), 1, &bad, &x, 0, NULL, NULL) == AMPL_EARG, "the name of the metadata");
  ampl_tensor_release(x);
  ampl_tensor_release(y);
  clear();
}

/* ------------------------------------------------------------------------------------------------ tables ---------- */

static void put_gz(const char *name, const void *data, size_t bytes) {
  gzFile f = gzopen(path(name), "wb");
  gzwrite(f, data, (unsigned)bytes);
  gzclose(f);
}

static void idx(void) {
  const unsigned char good[] = {0, 0, 0x0b, 2, 0, 0, 0, 1, 0, 0, 0, 2, 0xff, 0xfe, 1, 2};
  ampl_tensor *t = NULL;
  put("i", good, sizeof good);
  check(ampl_idx_load(ctx, path("i"), &t) == AMPL_OK, "idx");
  check(t && ampl_ndim(t) == 2 && ampl_tensor_dtype(t) == AMPL_I32 && ((int32_t *)ampl_data(t))[0] == -2 &&
            ((int32_t *)ampl_data(t))[1] == 258,
        "its elements");
  ampl_tensor_release(t);
  put_gz("i.gz", good, sizeof good);
  check(ampl_idx_load(ctx, path("i.gz"), &t) == AMPL_OK, "idx, compressed");
  ampl_tensor_release(t);
  char packed[256];
  const size_t n = get("i.gz", packed, sizeof packed);
  int wrong = 0;
  for (size_t i = 0; i < sizeof good; i++) {
    put("i", good, i);
    wrong += ampl_idx_load(ctx, path("i"), &t) != AMPL_EFORMAT || t;
  }
  for (size_t i = 0; i < n; i++) {
    put("i.gz", packed, i);
    wrong += ampl_idx_load(ctx, path("i.gz"), &t) != AMPL_EFORMAT || t;
  }
  packed[n - 6] ^= 1; /* the checksum */
  put("i.gz", packed, n);
  wrong += ampl_idx_load(ctx, path("i.gz"), &t) != AMPL_EFORMAT || t;
  check(wrong == 0, "%d damaged IDX files were not refused", wrong);
  const unsigned char huge[] = {0, 0, 8, 3, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0, 0, 0, 1, 0};
  put_gz("i.gz", huge, sizeof huge);
  check(ampl_idx_load(ctx, path("i.gz"), &t) == AMPL_EFORMAT, "a huge compressed IDX");
  put("i", "\0\0\10\1\0\0\0\1ab", 10);
  check(ampl_idx_load(ctx, path("i"), &t) == AMPL_EFORMAT && strstr(ampl_error_message(ctx), "too long"), "too long");
  put("i", "\0\0\7\1\0\0\0\0", 8);
  check(ampl_idx_load(ctx, path("i"), &t) == AMPL_EFORMAT && strstr(ampl_error_message(ctx), "type 07"), "type");
  clear();
}

/* An npy file of version 1 with this dictionary and `bytes` bytes 0, 1, 2 ... */
static size_t put_npy(const char *name, const char *dictionary, size_t bytes) {
  char data[512] = "\x93NUMPY\1";
  const size_t n = strlen(dictionary);
  data[8] = (char)n;
  memcpy(data + 10, dictionary, n);
  for (size_t i = 0; i < bytes; i++) data[10 + n + i] = (char)i;
  put(name, data, 10 + n + bytes);
  return 10 + n + bytes;
}

static const struct {
  const char *dictionary;
  size_t bytes;
  ampl_status status;
  const char *says;
} arrays[] = {
    {"{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }  \n", 24, AMPL_OK, ""},
    {"{\"shape\":(),\"descr\":\"|b1\",\"fortran_order\":True}", 1, AMPL_OK, ""},
    {"{'descr': '<i8', 'fortran_order': False, 'shape': (0,), }", 0, AMPL_OK, ""},
    {"{'descr': '|O', 'fortran_order': False, 'shape': (2,), }", 16, AMPL_EUNSUPPORTED, "type \"|O\""},
    {"{'descr': '<c8', 'fortran_order': False, 'shape': (2,), }", 16, AMPL_EUNSUPPORTED, "type \"<c8\""},
    {"{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (2,), }", 8, AMPL_EUNSUPPORTED, "records"},
    {"{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }", 7, AMPL_EFORMAT, "cut off"},
    {"{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }", 9, AMPL_EFORMAT, "too long"},
    {"{'descr': '<f4', 'fortran_order': False, 'shape': (-2,), }", 8, AMPL_EFORMAT, "a size"},
    {"{'descr': '<f4', 'fortran_order': False, 'shape': (4294967296, 4294967296), }", 0, AMPL_EFORMAT, "elements"},
    {"{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999999999999,), }", 0, AMPL_EFORMAT, "possible"},
    {"{'descr': '<f4', 'fortran_order': False, 'shape': (1,1,1,1,1,1,1,1,1), }", 4, AMPL_EUNSUPPORTED, "dimensions"},
    {"{'descr': '<f4', 'fortran_order': False, }", 4, AMPL_EFORMAT, "lacks shape"},
    {"{'descr': '<f4', 'shape': (1,), 'shape': (1,)}", 4, AMPL_EFORMAT, "second"},
    {"{'descr': '<f4', 'shape': (1,), 'x': 1}", 4, AMPL_EFORMAT, "'x'"},
    {"{'descr': '<f4', 'fortran_order': 0, 'shape': (1,)}", 4, AMPL_EFORMAT, "True or False"},
    {"{'descr': __import__('os'), 'fortran_order': False, 'shape': (1,)}", 4, AMPL_EFORMAT, "a string"},
};

static void npy(void) {
  ampl_tensor *t = NULL;
  for (size_t i = 0; i < sizeof arrays / sizeof *arrays; i++) {
    put_npy("a", arrays[i].dictionary, arrays[i].bytes);
    const ampl_status s = ampl_npy_load(ctx, path("a"), &t);
    check(s == arrays[i].status && (t != NULL) == (s == AMPL_OK), "npy %zu: %s", i, ampl_status_name(s));
    check(s == AMPL_OK || strstr(ampl_error_message(ctx), arrays[i].says), "npy %zu: %s", i, arrays[i].says);
    ampl_tensor_release(t);
  }
  const size_t n = put_npy("a", "{'descr': '>i2', 'fortran_order': True, 'shape': (2, 3)}", 12);
  int32_t got[6] = {0};
  static const int32_t want[6] = {0x0001, 0x0405, 0x0809, 0x0203, 0x0607, 0x0a0b};
  check(ampl_npy_load(ctx, path("a"), &t) == AMPL_OK && ampl_shape(t)[0] == 2 && ampl_shape(t)[1] == 3, "npy, turned");
  check(t && ampl_to_bytes(t, got, sizeof got) == AMPL_OK && memcmp(got, want, sizeof got) == 0, "its elements");
  ampl_tensor_release(t);
  char good[256];
  int wrong = 0;
  get("a", good, sizeof good);
  for (size_t i = 0; i < n; i++) {
    put("a", good, i);
    wrong += ampl_npy_load(ctx, path("a"), &t) != AMPL_EFORMAT || t;
  }
  check(wrong == 0, "%d cut npy files were not refused", wrong);
  for (size_t i = 0; i < n; i++)
    for (int bit = 0; bit < 8; bit++) {
      good[i] ^= (char)(1 << bit);
      put("a", good, n);
      good[i] ^= (char)(1 << bit);
      const ampl_status s = ampl_npy_load(ctx, path("a"), &t);
      wrong += s != AMPL_OK && s != AMPL_EFORMAT && s != AMPL_EUNSUPPORTED;
      ampl_tensor_release(t);
    }
  check(wrong == 0, "%d changed npy files gave another error", wrong);
  clear();
}

static const struct {
  const char *text;
  const char *says;
  int64_t rows, columns;
} tables[] = {
    {"1,2\n3,4.5\n", NULL, 2, 2},
    {"1,2\r\n3,4.5\r\n", NULL, 2, 2},
    {"\xef\xbb\xbf"
     "1,2\n3,4.5",
     NULL, 2, 2},
    {" 1 , 2 \t\n\n 3 ,\t4.5 \n \n", NULL, 2, 2},
    {"a,b\n1,2\n3,4.5\n", NULL, 2, 2},
    {"\"a, b\",\"c \"\"d\"\"\"\n\"1\",2\n3,\"4.5\"", NULL, 2, 2},
    {"1;2\n3;4.5\n", NULL, 2, 2},
    {"1\t2\n3\t4.5\n", NULL, 2, 2},
    {"1   2\n  3 4.5  \n", NULL, 2, 2},
    {"1\n2\n3\n4.5\n", NULL, 4, 1},
    {"1,2\n3\n", "line 2, column 2", 0, 0},
    {"1,2\n3,4,5\n", "line 2, column 3", 0, 0},
    {"1,2\n3,abc\n", "line 2, column 2: \"abc\"", 0, 0},
    {"1,2\n\n3,1.2.3\n", "line 3, column 2: \"1.2.3\"", 0, 0},
    {"1,2\n3,\n", "line 2, column 2: an empty field", 0, 0},
    {"1,0x10\n2,3\n4,0x10", "line 1, column 2: \"0x10\"", 0, 0},
    {"1,2\r3,4.5\r", NULL, 2, 2},
    {"\r\n1,2\r\r\n3,4.5", NULL, 2, 2},
    {"1,2\r3,x\r", "line 2, column 2", 0, 0},
    {"1,2\r\n\r\n3,x\r\n", "line 3, column 2", 0, 0},
    {"# a, b\n1,2\n # c\n3,4.5 # d, \"e\n#", NULL, 2, 2},
    {"1,2 # one, two\n3,4.5", NULL, 2, 2},
    {"item #,count\n1,2\n3,4.5", NULL, 2, 2},
    {"\"a#\",b\n1,2\n3,4.5", NULL, 2, 2},
    {"NA,1\n3,4.5\n", "line 1, column 1: \"NA\" is no number (option header", 0, 0},
    {"x,1\n3,4.5\n", "line 1, column 1: \"x\"", 0, 0},
    {"NA,N/A\n3,4.5\n", "line 1, column 1: \"NA\"", 0, 0},
    {",\n3,4.5\n", "line 1, column 1: an empty field", 0, 0},
    {"1,\x1b[31m\xff\n", "\"\\x1b[31m\\xff\"", 0, 0},
    {"", "an empty file", 0, 0},
    {"\n \n", "an empty file", 0, 0},
    {"a,b\n", "no numbers below", 0, 0},
    {"a,b\n1,2,3\n", "line 2, column 3", 0, 0},
    {"1,2\n3,\"4\n", "line 2, column 2: the quote", 0, 0},
    {"1,2\n3,\"4\"5\n", "line 2, column 2: text behind", 0, 0},
};

static void csv(void) {
  for (size_t i = 0; i < sizeof tables / sizeof *tables; i++) {
    ampl_csv *c = NULL;
    put("t", tables[i].text, strlen(tables[i].text));
    const ampl_status s = ampl_csv_load(ctx, path("t"), NULL, &c);
    if (tables[i].says) {
      check(s == AMPL_EFORMAT && !c && strstr(ampl_error_message(ctx), tables[i].says), "table %zu: %s", i,
            tables[i].says);
    } else {
      check(s == AMPL_OK && ampl_shape(c->values)[0] == tables[i].rows &&
                ampl_shape(c->values)[1] == tables[i].columns &&
                ((float *)ampl_data(c->values))[ampl_numel(c->values) - 1] == 4.5f,
            "table %zu", i);
    }
    ampl_csv_release(c);
  }
  put("t", "a\0b", 3);
  ampl_csv *c = NULL;
  check(ampl_csv_load(ctx, path("t"), NULL, &c) == AMPL_EFORMAT, "a zero byte");
  clear();
}

/* Numbers come as the C library reads them. */
static void numbers(void) {
  static const char *const list[] = {"0.1",
                                     "-0",
                                     "1e22",
                                     "1e23",
                                     "123456789012345678901234567890",
                                     "1.7976931348623157e308",
                                     "4.9e-324",
                                     "2.2250738585072011e-308",
                                     "9007199254740993",
                                     "0.000000000000000000001",
                                     "-1.5E+3",
                                     "+7",
                                     ".5",
                                     "5.",
                                     "1e400",
                                     "1e-400",
                                     "00000000000000000000000.25"};
  for (size_t i = 0; i < sizeof list / sizeof *list; i++) {
    ampl_csv_options o = AMPL_CSV_OPTIONS_INIT;
    ampl_csv *c = NULL;
    o.dtype = AMPL_F64;
    put("n", list[i], strlen(list[i]));
    check(ampl_csv_load(ctx, path("n"), &o, &c) == AMPL_OK, "%s", list[i]);
    const double want = strtod(list[i], NULL);
    check(c && memcmp(ampl_data(c->values), &want, 8) == 0, "%s is another number", list[i]);
    ampl_csv_release(c);
  }
  clear();
}

/* ------------------------------------------------------------------------------------------------ failures -------- */

static ampl_status load_safetensors(void) {
  ampl_archive *a = NULL;
  const ampl_status s = ampl_safetensors_load(ctx, path("s"), &a);
  ampl_archive_release(a);
  return s;
}

static ampl_status save_safetensors(void) {
  static const char *const names[] = {"b", "a"}, *const keys[] = {"k"}, *const values[] = {"v"};
  static ampl_tensor *tensors[2];
  if (!tensors[0]) {
    tensors[0] = filled(AMPL_F32, 1, (int64_t[]){3});
    tensors[1] = filled(AMPL_U8, 1, (int64_t[]){3});
  }
  return ampl_safetensors_save(ctx, path("s"), 2, names, tensors, 1, keys, values);
}

static ampl_status load_idx(void) {
  ampl_tensor *t = NULL;
  const ampl_status s = ampl_idx_load(ctx, path("i.gz"), &t);
  ampl_tensor_release(t);
  return s;
}

static ampl_status load_npy(void) {
  ampl_tensor *t = NULL;
  const ampl_status s = ampl_npy_load(ctx, path("a"), &t);
  ampl_tensor_release(t);
  return s;
}

static ampl_status load_text(void) {
  ampl_tensor *t = NULL;
  const ampl_status s = ampl_text_load(ctx, path("t"), true, &t);
  ampl_tensor_release(t);
  return s;
}

static ampl_status load_csv(void) {
  ampl_csv *c = NULL;
  ampl_csv_options o = AMPL_CSV_OPTIONS_INIT;
  o.label_name = "b";
  o.classes = true;
  const ampl_status s = ampl_csv_load(ctx, path("t"), &o, &c);
  ampl_csv_release(c);
  return s;
}

/* Fails the 1st, 2nd, 3rd ... allocation until the call needs no more of them. */
static void without_memory(const char *name, ampl_status (*call)(void)) {
  ampl_memory_info before, after;
  ampl_status s;
  long n = 0;
  check(call() == AMPL_OK, "%s", name);
  ampl_memory(ctx, &before);
  do {
    fail_at = ++n;
    s = call();
    const bool reached = fail_at == 0;
    fail_at = 0;
    if (!reached) break;
    if (s != AMPL_OK && s != AMPL_ENOMEM) check(false, "%s: allocation %ld gave %s", name, n, ampl_status_name(s));
    if (call() != AMPL_OK) check(false, "%s: the call after allocation %ld", name, n);
  } while (n < 10000);
  ampl_memory(ctx, &after);
  check(n > 1 && s == AMPL_OK, "%s ends well after %ld allocations", name, n);
  check(before.live == after.live && before.tensors == after.tensors, "%s: memory is back", name);
}

int main(void) {
  snprintf(folder, sizeof folder, "/tmp/ampl-archive-XXXXXX");
  setenv("AMPL_ALLOC", "plain", 1); /* the context asks the system for all its memory, so that it can fail */
  if (!mkdtemp(folder) || ampl_ctx_new(NULL, &ctx) != AMPL_OK) return 1;
  round_trip();
  clear();
  refused();
  widened();
  cut_and_bent();
  replaced();
  idx();
  npy();
  csv();
  numbers();
  if (CAN_FAIL) {
    put_gz("i.gz", "\0\0\10\1\0\0\0\2ab", 10);
    put("t", "a,b\n1,2\n3,4\n", 12);
    without_memory("saving safetensors", save_safetensors);
    without_memory("loading safetensors", load_safetensors);
    without_memory("loading IDX", load_idx);
    without_memory("loading CSV", load_csv);
    put_npy("a", "{'descr': '>i2', 'fortran_order': True, 'shape': (2, 3)}", 12);
    without_memory("loading npy", load_npy);
    without_memory("loading text", load_text);
    check(entries() == 4, "nothing is left over: %d files", entries());
  } else {
    skipped++;
  }
  clear();
  rmdir(folder);
  ampl_ctx_release(ctx);
  printf("%d passed, %d failed, %d skipped\n", passed, failed, skipped);
  return failed > 0;
}
