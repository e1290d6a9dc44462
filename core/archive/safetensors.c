/* safetensors.c: reads and writes safetensors files, the weights that PyTorch and Hugging Face exchange.
 *
 * A file is: 8 bytes, little-endian, the length N of the header; N bytes of JSON, {name: {dtype, shape, data_offsets}},
 * padded with blanks; then the data, row-major.  Offsets count from the first byte of the data.  Everything in a header
 * is checked against the size of the file before a tensor is made: what is not exactly right is refused. */
#include "elements.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

static const char metadata_key[] = "__metadata__";

/* What elements are called. */
static const struct {
  const char *name;
  char kind;
  int bytes;
} dtypes[] = {
    {"F32", 'f', 4}, {"F16", 'f', 2},  {"BF16", 'e', 2}, {"F64", 'f', 8}, {"I64", 'i', 8}, {"I32", 'i', 4},
    {"U8", 'u', 1},  {"BOOL", 'b', 1}, {"I8", 'i', 1},   {"I16", 'i', 2}, {"U16", 'u', 2}, {"U32", 'u', 4},
};
#define DTYPES (sizeof dtypes / sizeof *dtypes)

static const ampl_element *dtype_named(const char *name) {
  for (size_t i = 0; i < DTYPES; i++)
    if (strcmp(dtypes[i].name, name) == 0) return ampl_element_find(dtypes[i].kind, dtypes[i].bytes);
  return NULL;
}

static const char *dtype_text(const ampl_element *e) {
  for (size_t i = 0; i < DTYPES; i++)
    if (dtypes[i].kind == e->kind && dtypes[i].bytes == e->bytes) return dtypes[i].name;
  return NULL;
}

/* ------------------------------------------------------------------------------------------------ archives -------- */

/* An archive and all its strings are one block. */
typedef struct box {
  ampl_archive a;
  ampl_ctx *ctx;
  char *at; /* the next free byte */
  char bytes[];
} box;

static box *box_new(ampl_ctx *ctx, size_t n, size_t nmeta, size_t text) {
  const size_t lists = n * (sizeof(char *) + sizeof(ampl_tensor *)) + 2 * nmeta * sizeof(char *);
  box *b = calloc(1, sizeof *b + lists + text);
  if (!b) return NULL;
  b->ctx = ctx;
  ampl_ctx_retain(ctx);
  void **p = (void **)b->bytes;
  b->a.names = (char **)p;
  b->a.tensors = (ampl_tensor **)(p + n);
  b->a.keys = (char **)(p + 2 * n);
  b->a.values = (char **)(p + 2 * n + nmeta);
  b->at = b->bytes + lists;
  return b;
}

static char *box_text(box *b, const char *s) {
  const size_t n = strlen(s) + 1;
  char *copy = memcpy(b->at, s, n);
  b->at += n;
  return copy;
}

void ampl_archive_release(ampl_archive *a) {
  if (!a) return;
  box *b = (box *)a;
  for (int64_t i = 0; i < a->n; i++) ampl_tensor_release(a->tensors[i]);
  ampl_ctx_release(b->ctx);
  free(b);
}

/* ------------------------------------------------------------------------------------------------ the header ------ */

typedef struct entry {
  const char *name;
  const ampl_element *dtype;
  int ndim;
  int64_t shape[AMPL_RANK_MAX];
  uint64_t numel, begin, end;
} entry;

typedef struct reader {
  ampl_ctx *ctx;
  ampl_file file;
  uint64_t data;    /* where the data begin */
  json_t *header;   /* owns every string of the entries */
  json_t *metadata; /* lent; NULL: none */
  entry *entries;
  size_t n;
} reader;

#define DAMAGED(r, ...) ampl_error((r)->ctx, AMPL_EFORMAT, "%.300s: " __VA_ARGS__)

static ampl_status parse_header(reader *r, const char *text, size_t bytes) {
  json_error_t e;
  if (text[0] != '{')
    return DAMAGED(r, "byte 8: the header begins with byte 0x%02x, not with '{': no safetensors file", r->file.path,
                   (unsigned char)text[0]);
  /* A lack of memory is often reported as a syntax error: what is really damaged is so the second time, too. */
  for (int i = 0; i < 2 && !r->header; i++) r->header = json_loadb(text, bytes, JSON_REJECT_DUPLICATES, &e);
  if (r->header) return AMPL_OK;
  if (json_error_code(&e) == json_error_out_of_memory || !e.text[0])
    return ampl_error(r->ctx, AMPL_ENOMEM, "%.300s: out of memory for a header of %zu bytes", r->file.path, bytes);
  return DAMAGED(r, "byte %lld: the header is no valid JSON: %s", r->file.path, 8 + (long long)e.position, e.text);
}

static ampl_status read_header(reader *r) {
  unsigned char b[8];
  const uint64_t size = r->file.size;
  if (size < 8)
    return DAMAGED(r, "%llu bytes are no safetensors file: it begins with 8 bytes, the length of its header",
                   r->file.path, (unsigned long long)size);
  AMPL_TRY(ampl_file_read(&r->file, 0, b, 8));
  uint64_t bytes = 0;
  for (int i = 7; i >= 0; i--) bytes = bytes << 8 | b[i];
  if (bytes > AMPL_SAFETENSORS_HEADER_MAX)
    return DAMAGED(r, "byte 0: a header of %llu bytes; at most %d are allowed", r->file.path, (unsigned long long)bytes,
                   AMPL_SAFETENSORS_HEADER_MAX);
  if (bytes > size - 8)
    return DAMAGED(r, "byte 0: a header of %llu bytes in a file of %llu: it is cut off or no safetensors file",
                   r->file.path, (unsigned long long)bytes, (unsigned long long)size);
  if (bytes < 2)
    return DAMAGED(r, "byte 0: a header of %llu bytes; the shortest is {}", r->file.path, (unsigned long long)bytes);
  char *text = malloc(bytes);
  if (!text)
    return ampl_error(r->ctx, AMPL_ENOMEM, "%.300s: out of memory for a header of %llu bytes", r->file.path,
                      (unsigned long long)bytes);
  ampl_status s = ampl_file_read(&r->file, 8, text, bytes);
  if (s == AMPL_OK) s = parse_header(r, text, bytes);
  free(text);
  r->data = 8 + bytes;
  return s;
}

static ampl_status check_metadata(reader *r) {
  const char *key;
  json_t *value;
  if (!json_is_object(r->metadata)) return DAMAGED(r, "__metadata__ is no object", r->file.path);
  json_object_foreach(r->metadata, key, value) if (!json_is_string(value)) return DAMAGED(
      r, "__metadata__: the value of \"%.100s\" is no string", r->file.path, key);
  return AMPL_OK;
}

static bool natural(const json_t *j, uint64_t *out) {
  if (!json_is_integer(j) || json_integer_value(j) < 0) return false;
  *out = (uint64_t)json_integer_value(j);
  return true;
}

static ampl_status read_shape(reader *r, entry *e, const json_t *shape) {
  const size_t ndim = json_array_size(shape);
  if (!json_is_array(shape)) return DAMAGED(r, "tensor \"%.100s\" has no shape", r->file.path, e->name);
  if (ndim > AMPL_RANK_MAX)
    return ampl_error(r->ctx, AMPL_EUNSUPPORTED,
                      "%.300s: tensor \"%.100s\" has %zu dimensions; at most %d are possible", r->file.path, e->name,
                      ndim, AMPL_RANK_MAX);
  for (size_t i = 0; i < ndim; i++) {
    uint64_t size;
    if (!natural(json_array_get(shape, i), &size))
      return DAMAGED(r, "tensor \"%.100s\": size %zu of its shape is no natural number", r->file.path, e->name, i + 1);
    e->shape[i] = (int64_t)size;
  }
  e->ndim = (int)ndim;
  if (ampl_elements_count(e->ndim, e->shape, &e->numel)) return AMPL_OK;
  return DAMAGED(r, "tensor \"%.100s\": its shape has more elements than a file can hold", r->file.path, e->name);
}

static ampl_status read_offsets(reader *r, entry *e, const json_t *offsets) {
  const uint64_t held = r->file.size - r->data;
  if (json_array_size(offsets) != 2 || !natural(json_array_get(offsets, 0), &e->begin) ||
      !natural(json_array_get(offsets, 1), &e->end))
    return DAMAGED(r, "tensor \"%.100s\": data_offsets are not two natural numbers", r->file.path, e->name);
  if (e->begin > e->end)
    return DAMAGED(r, "tensor \"%.100s\" ends at %llu, before it begins at %llu", r->file.path, e->name,
                   (unsigned long long)e->end, (unsigned long long)e->begin);
  if (e->end > held)
    return DAMAGED(
        r, "tensor \"%.100s\" ends at byte %llu of the data, but the file holds %llu bytes of data: it is cut off",
        r->file.path, e->name, (unsigned long long)e->end, (unsigned long long)held);
  const uint64_t bytes = e->numel * e->dtype->bytes; /* numel <= 2^60: no overflow */
  if (e->end - e->begin != bytes)
    return DAMAGED(r, "tensor \"%.100s\": %s of its shape needs %llu bytes, but its data_offsets span %llu",
                   r->file.path, e->name, dtype_text(e->dtype), (unsigned long long)bytes,
                   (unsigned long long)(e->end - e->begin));
  return AMPL_OK;
}

static ampl_status read_entry(reader *r, entry *e, const json_t *j) {
  if (!json_is_object(j)) return DAMAGED(r, "tensor \"%.100s\": its entry is no object", r->file.path, e->name);
  const char *dtype = json_string_value(json_object_get(j, "dtype"));
  if (!dtype) return DAMAGED(r, "tensor \"%.100s\" has no dtype", r->file.path, e->name);
  e->dtype = dtype_named(dtype);
  if (!e->dtype)
    return ampl_error(r->ctx, AMPL_EUNSUPPORTED, "%.300s: tensor \"%.100s\" has dtype %.20s, which ampl does not have",
                      r->file.path, e->name, dtype);
  AMPL_TRY(read_shape(r, e, json_object_get(j, "shape")));
  return read_offsets(r, e, json_object_get(j, "data_offsets"));
}

static int by_place(const void *a, const void *b) {
  const entry *x = a, *y = b;
  if (x->begin != y->begin) return x->begin < y->begin ? -1 : 1;
  if (x->end != y->end) return x->end < y->end ? -1 : 1;
  return strcmp(x->name, y->name);
}

/* The data must be covered once, from its first byte to the file's last. */
static ampl_status check_cover(reader *r) {
  uint64_t at = 0;
  for (size_t i = 0; i < r->n; i++) {
    const entry *e = &r->entries[i];
    if (e->begin > at)
      return DAMAGED(r, "a hole: bytes %llu to %llu of the data, before tensor \"%.100s\", belong to no tensor",
                     r->file.path, (unsigned long long)at, (unsigned long long)e->begin, e->name);
    if (e->begin < at)
      return DAMAGED(r, "an overlap: tensor \"%.100s\" begins at byte %llu of the data, but \"%.100s\" goes on to %llu",
                     r->file.path, e->name, (unsigned long long)e->begin, i ? r->entries[i - 1].name : "",
                     (unsigned long long)at);
    at = e->end;
  }
  if (r->data + at != r->file.size)
    return DAMAGED(r, "byte %llu: %llu bytes behind the last tensor", r->file.path, (unsigned long long)(r->data + at),
                   (unsigned long long)(r->file.size - r->data - at));
  return AMPL_OK;
}

static ampl_status read_entries(reader *r) {
  const char *key;
  json_t *value;
  r->metadata = json_object_get(r->header, metadata_key);
  if (r->metadata) AMPL_TRY(check_metadata(r));
  const size_t n = json_object_size(r->header) - (r->metadata ? 1 : 0);
  r->entries = calloc(n ? n : 1, sizeof *r->entries);
  if (!r->entries) return ampl_error(r->ctx, AMPL_ENOMEM, "%.300s: out of memory for %zu entries", r->file.path, n);
  json_object_foreach(r->header, key, value) {
    if (value == r->metadata) continue;
    entry *e = &r->entries[r->n++];
    e->name = key;
    AMPL_TRY(read_entry(r, e, value));
  }
  qsort(r->entries, r->n, sizeof *r->entries, by_place);
  return check_cover(r);
}

/* ------------------------------------------------------------------------------------------------ loading --------- */

static ampl_status read_tensors(reader *r, box *b) {
  for (size_t i = 0; i < r->n; i++) {
    const entry *e = &r->entries[i];
    ampl_tensor *t;
    AMPL_TRY(ampl_file_tensor(r->ctx, e->dtype->dtype, e->ndim, e->shape, &t));
    b->a.names[i] = box_text(b, e->name);
    b->a.tensors[i] = t;
    b->a.n++;
    r->file.at = r->data + e->begin;
    AMPL_TRY(ampl_elements_read(e->dtype, false, e->numel, ampl_data(t), ampl_file_next, &r->file));
  }
  return AMPL_OK;
}

static ampl_status load(reader *r, ampl_archive **out) {
  AMPL_TRY(read_header(r));
  AMPL_TRY(read_entries(r));
  const char *key;
  json_t *value;
  size_t text = 0;
  for (size_t i = 0; i < r->n; i++) text += strlen(r->entries[i].name) + 1;
  json_object_foreach(r->metadata, key, value) text += strlen(key) + json_string_length(value) + 2;
  box *b = box_new(r->ctx, r->n, json_object_size(r->metadata), text);
  if (!b) return ampl_error(r->ctx, AMPL_ENOMEM, "%.300s: out of memory for %zu names", r->file.path, r->n);
  json_object_foreach(r->metadata, key, value) {
    b->a.keys[b->a.nmeta] = box_text(b, key);
    b->a.values[b->a.nmeta++] = box_text(b, json_string_value(value));
  }
  ampl_status s = read_tensors(r, b);
  if (s == AMPL_OK)
    *out = &b->a;
  else
    ampl_archive_release(&b->a);
  return s;
}

ampl_status ampl_safetensors_load(ampl_ctx *ctx, const char *path, ampl_archive **out) {
  reader r = {.ctx = ctx};
  *out = NULL;
  ampl_status s = ampl_file_open(ctx, path, &r.file);
  if (s == AMPL_OK) s = load(&r, out);
  json_decref(r.header);
  free(r.entries);
  ampl_file_close(&r.file);
  return s;
}

/* ------------------------------------------------------------------------------------------------ saving ---------- */

typedef struct item {
  const char *name;
  ampl_tensor *t;
} item;
typedef struct pair {
  const char *key, *value;
} pair;

static int by_size_and_name(const void *a, const void *b) {
  const item *x = a, *y = b;
  const size_t p = ampl_dtype_size(ampl_tensor_dtype(x->t)), q = ampl_dtype_size(ampl_tensor_dtype(y->t));
  return p != q ? (p > q ? -1 : 1) : strcmp(x->name, y->name);
}

static int by_key(const void *a, const void *b) { return strcmp(((const pair *)a)->key, ((const pair *)b)->key); }

static ampl_status no_memory(ampl_ctx *ctx) { return ampl_error(ctx, AMPL_ENOMEM, "out of memory for a file header"); }

/* Whether s is UTF-8: no overlong forms, no surrogates, nothing above U+10FFFF. */
static bool is_utf8(const char *text) {
  for (const unsigned char *s = (const unsigned char *)text; *s;) {
    static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
    const int n = *s < 0x80 ? 1 : *s < 0xc0 ? 0 : *s < 0xe0 ? 2 : *s < 0xf0 ? 3 : *s < 0xf8 ? 4 : 0;
    if (n == 0) return false;
    uint32_t c = n == 1 ? *s : *s & (0xffu >> (n + 1));
    for (int i = 1; i < n; i++) {
      if ((s[i] & 0xc0) != 0x80) return false;
      c = c << 6 | (s[i] & 0x3f);
    }
    if (c < least[n] || c > 0x10ffff || (c >= 0xd800 && c < 0xe000)) return false;
    s += n;
  }
  return true;
}

/* object[key] = value, which is given away; `key` must be new there. */
static ampl_status put(ampl_ctx *ctx, json_t *object, const char *key, json_t *value) {
  ampl_status s = AMPL_OK;
  if (json_object_get(object, key))
    s = ampl_error(ctx, AMPL_EARG, "the name \"%.100s\" is given twice", key);
  else if (!is_utf8(key))
    s = ampl_error(ctx, AMPL_EVALUE, "the name \"%.100s\" is no valid UTF-8", key);
  if (s != AMPL_OK) {
    json_decref(value);
    return s;
  }
  return json_object_set_new(object, key, value) == 0 ? AMPL_OK : no_memory(ctx);
}

static ampl_status metadata_object(ampl_ctx *ctx, json_t *header, int64_t n, const char *const *keys,
                                   const char *const *values) {
  if (n == 0) return AMPL_OK;
  pair *pairs = malloc((size_t)n * sizeof *pairs);
  json_t *object = json_object();
  ampl_status s = pairs && object ? AMPL_OK : no_memory(ctx);
  if (s == AMPL_OK) {
    for (int64_t i = 0; i < n; i++) pairs[i] = (pair){keys[i], values[i]};
    qsort(pairs, (size_t)n, sizeof *pairs, by_key);
  }
  for (int64_t i = 0; s == AMPL_OK && i < n; i++) {
    if (!is_utf8(pairs[i].value)) {
      s = ampl_error(ctx, AMPL_EVALUE, "metadata: the value of \"%.100s\" is no valid UTF-8", pairs[i].key);
      break;
    }
    json_t *value = json_string(pairs[i].value);
    s = value ? put(ctx, object, pairs[i].key, value) : no_memory(ctx);
  }
  free(pairs);
  if (s == AMPL_OK) return put(ctx, header, metadata_key, object);
  json_decref(object);
  return s;
}

static ampl_status tensor_object(ampl_ctx *ctx, json_t *header, const item *it, uint64_t *at) {
  if (strcmp(it->name, metadata_key) == 0)
    return ampl_error(ctx, AMPL_EARG, "a tensor cannot have the name %s", metadata_key);
  const uint64_t bytes = (uint64_t)ampl_numel(it->t) * ampl_dtype_size(ampl_tensor_dtype(it->t));
  json_t *shape = json_array();
  for (int i = 0; shape && i < ampl_ndim(it->t); i++)
    if (json_array_append_new(shape, json_integer(ampl_shape(it->t)[i])) != 0) {
      json_decref(shape);
      shape = NULL;
    }
  if (!shape) return no_memory(ctx);
  json_t *info = json_pack("{s:s, s:o, s:[I, I]}", "dtype", dtype_text(ampl_element_of(ampl_tensor_dtype(it->t))),
                           "shape", shape, "data_offsets", (json_int_t)*at, (json_int_t)(*at + bytes));
  if (!info) return no_memory(ctx);
  *at += bytes;
  return put(ctx, header, it->name, info);
}

/* The header's text, padded so that the data begin at a multiple of 8; to be freed. */
static ampl_status header_text(ampl_ctx *ctx, const json_t *header, char **out, size_t *bytes) {
  const size_t n = json_dumpb(header, NULL, 0, JSON_COMPACT), padded = (n + 7) / 8 * 8;
  if (n == 0) return no_memory(ctx);
  if (padded > AMPL_SAFETENSORS_HEADER_MAX)
    return ampl_error(ctx, AMPL_EVALUE, "the names and metadata take %zu bytes; a header has at most %d", padded,
                      AMPL_SAFETENSORS_HEADER_MAX);
  char *text = malloc(padded);
  if (!text) return no_memory(ctx);
  memset(text + n, ' ', padded - n);
  if (json_dumpb(header, text, n, JSON_COMPACT) != n) {
    free(text);
    return no_memory(ctx);
  }
  *out = text;
  *bytes = padded;
  return AMPL_OK;
}

static ampl_status write_tensor(ampl_ctx *ctx, ampl_writer *w, const ampl_tensor *t) {
  const size_t bytes = (size_t)ampl_numel(t) * ampl_dtype_size(ampl_tensor_dtype(t));
  if (bytes == 0) return AMPL_OK;
  if (ampl_is_contiguous(t) && ampl_device_of(t) == ampl_device_at(0)) return ampl_writer_put(w, ampl_data(t), bytes);
  void *copy;
  AMPL_TRY(ampl_mem_get(ctx, ampl_device_at(0), bytes, AMPL_KIND_SCRATCH, &copy));
  ampl_status s = ampl_to_bytes(t, copy, bytes);
  if (s == AMPL_OK) s = ampl_writer_put(w, copy, bytes);
  ampl_mem_put(ctx, ampl_device_at(0), copy, bytes, AMPL_KIND_SCRATCH);
  return s;
}

static ampl_status write_file(ampl_ctx *ctx, const char *path, const char *text, size_t bytes, const item *items,
                              int64_t n) {
  ampl_writer *w;
  unsigned char length[8];
  AMPL_TRY(ampl_writer_open(ctx, path, &w));
  for (int i = 0; i < 8; i++) length[i] = (unsigned char)((uint64_t)bytes >> (8 * i));
  ampl_status s = ampl_writer_put(w, length, 8);
  if (s == AMPL_OK) s = ampl_writer_put(w, text, bytes);
  for (int64_t i = 0; s == AMPL_OK && i < n; i++) s = write_tensor(ctx, w, items[i].t);
  if (s == AMPL_OK) return ampl_writer_close(w, true);
  ampl_writer_close(w, false);
  return s;
}

ampl_status ampl_safetensors_save(ampl_ctx *ctx, const char *path, int64_t n, const char *const *names,
                                  ampl_tensor *const *tensors, int64_t nmeta, const char *const *keys,
                                  const char *const *values) {
  char *text = NULL;
  size_t bytes = 0;
  uint64_t at = 0;
  json_t *header = json_object();
  item *items = malloc((size_t)(n > 0 ? n : 1) * sizeof *items);
  ampl_status s = header && items ? metadata_object(ctx, header, nmeta, keys, values) : no_memory(ctx);
  if (s == AMPL_OK) {
    for (int64_t i = 0; i < n; i++) items[i] = (item){names[i], tensors[i]};
    qsort(items, (size_t)n, sizeof *items, by_size_and_name);
  }
  for (int64_t i = 0; s == AMPL_OK && i < n; i++) s = tensor_object(ctx, header, &items[i], &at);
  if (s == AMPL_OK) s = header_text(ctx, header, &text, &bytes);
  if (s == AMPL_OK) s = write_file(ctx, path, text, bytes, items, n);
  json_decref(header);
  free(items);
  free(text);
  return s;
}
