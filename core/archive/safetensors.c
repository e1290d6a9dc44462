/* safetensors.c: reads and writes safetensors files, the weights that PyTorch and Hugging Face exchange.
 *
 * A file is: 8 bytes, little-endian, the length N of the header; N bytes of JSON, {name: {dtype, shape, data_offsets}},
 * padded with blanks; then the data, row-major.  Offsets count from the first byte of the data.  Everything in a header
 * is checked against the size of the file before a tensor is made: what is not exactly right is refused. */
#include "elements.h"
#include "json.h"

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
  size_t room;
  char *at; /* the next free byte */
  char bytes[];
} box;

static ampl_status box_new(ampl_ctx *ctx, size_t n, size_t nmeta, size_t text, box **out) {
  const size_t lists = n * (sizeof(char *) + sizeof(ampl_tensor *)) + 2 * nmeta * sizeof(char *);
  const size_t room = sizeof(box) + lists + text;
  void *block;
  AMPL_TRY(ampl_mem_get(ctx, ampl_device_at(0), room, AMPL_KIND_SCRATCH, &block));
  box *b = *out = block;
  *b = (box){.ctx = ctx, .room = room};
  ampl_ctx_retain(ctx);
  void **p = (void **)b->bytes;
  b->a.names = (char **)p;
  b->a.tensors = (ampl_tensor **)(p + n);
  b->a.keys = (char **)(p + 2 * n);
  b->a.values = (char **)(p + 2 * n + nmeta);
  b->at = b->bytes + lists;
  return AMPL_OK;
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
  ampl_ctx *ctx = b->ctx;
  for (int64_t i = 0; i < a->n; i++) ampl_tensor_release(a->tensors[i]);
  ampl_mem_put(ctx, ampl_device_at(0), b, b->room, AMPL_KIND_SCRATCH);
  ampl_ctx_release(ctx);
}

/* ------------------------------------------------------------------------------------------------ the header ------ */

typedef struct entry {
  const char *name, *dtype_name; /* in the header's text; no dtype_name: none was given */
  const ampl_element *dtype;
  size_t ndim; /* SIZE_MAX: no shape was given */
  int64_t shape[AMPL_RANK_MAX];
  size_t noffsets; /* 0: none, or no list of natural numbers */
  uint64_t numel, begin, end;
} entry;

typedef struct pair {
  const char *key, *value;
} pair;

typedef struct reader {
  ampl_ctx *ctx;
  ampl_file file;
  uint64_t data; /* where the data begin */
  ampl_buffer text, entry_room, pair_room;
  ampl_json json;
  entry *entries;
  size_t n;
  bool metadata; /* was there */
  pair *pairs;
  size_t npairs;
} reader;

#define DAMAGED(r, ...) ampl_error((r)->ctx, AMPL_EFORMAT, "%s: " __VA_ARGS__)
#define SHOWN(r, s)     ampl_escaped((r)->ctx, s, 100)

static ampl_status read_text(reader *r) {
  unsigned char b[8];
  const uint64_t size = r->file.size;
  if (size < 8)
    return DAMAGED(r, "%llu bytes are no safetensors file: it begins with 8 bytes, the length of its header",
                   r->file.shown, (unsigned long long)size);
  AMPL_TRY(ampl_file_read(&r->file, 0, b, 8));
  uint64_t bytes = 0;
  for (int i = 7; i >= 0; i--) bytes = bytes << 8 | b[i];
  if (bytes > AMPL_SAFETENSORS_HEADER_MAX)
    return DAMAGED(r, "byte 0: a header of %llu bytes; at most %d are allowed", r->file.shown,
                   (unsigned long long)bytes, AMPL_SAFETENSORS_HEADER_MAX);
  if (bytes > size - 8)
    return DAMAGED(r, "byte 0: a header of %llu bytes in a file of %llu: it is cut off or no safetensors file",
                   r->file.shown, (unsigned long long)bytes, (unsigned long long)size);
  if (bytes < 2)
    return DAMAGED(r, "byte 0: a header of %llu bytes; the shortest is {}", r->file.shown, (unsigned long long)bytes);
  AMPL_TRY(ampl_buffer_grow(&r->text, 0, bytes + 1));
  char *text = r->text.p;
  text[bytes] = 0;
  AMPL_TRY(ampl_file_read(&r->file, 8, text, bytes));
  r->data = 8 + bytes;
  r->json = (ampl_json){r->ctx, r->file.shown, 8, text, text, text + bytes};
  if (text[0] == '{') return AMPL_OK;
  return DAMAGED(r, "byte 8: the header begins with byte 0x%02x, not with '{': no safetensors file", r->file.shown,
                 (unsigned char)text[0]);
}

static ampl_status read_metadata(reader *r) {
  ampl_json *j = &r->json;
  char *key, *value;
  size_t n = 0;
  if (r->metadata) return DAMAGED(r, "a duplicate object key: __metadata__", r->file.shown);
  r->metadata = true;
  if (!ampl_json_take(j, '{')) return DAMAGED(r, "__metadata__ is no object", r->file.shown);
  for (;;) {
    AMPL_TRY(ampl_json_key(j, &n, &key));
    if (!key) return AMPL_OK;
    if (!ampl_json_take(j, '"'))
      return DAMAGED(r, "__metadata__: the value of \"%s\" is no string", r->file.shown, SHOWN(r, key));
    j->at--;
    AMPL_TRY(ampl_json_string(j, &value));
    AMPL_TRY(ampl_buffer_grow(&r->pair_room, r->npairs * sizeof(pair), (r->npairs + 1) * sizeof(pair)));
    r->pairs = r->pair_room.p;
    r->pairs[r->npairs++] = (pair){key, value};
  }
}

static ampl_status read_shape(reader *r, entry *e) {
  ampl_json *j = &r->json;
  size_t n = 0;
  if (!ampl_json_take(j, '[')) return ampl_json_skip(j);
  for (bool more;;) {
    uint64_t size;
    ampl_json_kind kind;
    AMPL_TRY(ampl_json_element(j, &n, &more));
    if (!more) break;
    AMPL_TRY(ampl_json_natural(j, &size, &kind));
    if (kind != AMPL_JSON_NATURAL)
      return DAMAGED(r, "tensor \"%s\": size %zu of its shape is %s", r->file.shown, SHOWN(r, e->name), n,
                     kind == AMPL_JSON_TOO_BIG ? "too big" : "no natural number");
    if (n <= AMPL_RANK_MAX) e->shape[n - 1] = (int64_t)size;
  }
  e->ndim = n;
  return AMPL_OK;
}

static ampl_status read_offsets(reader *r, entry *e) {
  ampl_json *j = &r->json;
  size_t n = 0;
  bool good = true;
  if (!ampl_json_take(j, '[')) return ampl_json_skip(j);
  for (bool more;;) {
    uint64_t at;
    ampl_json_kind kind;
    AMPL_TRY(ampl_json_element(j, &n, &more));
    if (!more) break;
    AMPL_TRY(ampl_json_natural(j, &at, &kind));
    good = good && kind == AMPL_JSON_NATURAL;
    if (n == 1) e->begin = at;
    if (n == 2) e->end = at;
  }
  e->noffsets = good ? n : 0;
  return AMPL_OK;
}

static ampl_status read_entry(reader *r, entry *e) {
  static const char *const fields[] = {"dtype", "shape", "data_offsets"};
  ampl_json *j = &r->json;
  bool seen[3] = {false};
  size_t n = 0;
  char *key, *dtype;
  if (!ampl_json_take(j, '{'))
    return DAMAGED(r, "tensor \"%s\": its entry is no object", r->file.shown, SHOWN(r, e->name));
  for (;;) {
    AMPL_TRY(ampl_json_key(j, &n, &key));
    if (!key) return AMPL_OK;
    int field = 0;
    while (field < 3 && strcmp(key, fields[field]) != 0) field++;
    if (field < 3 && seen[field])
      return DAMAGED(r, "tensor \"%s\": a duplicate object key: %s", r->file.shown, SHOWN(r, e->name), key);
    if (field < 3) seen[field] = true;
    if (field == 0 && ampl_json_take(j, '"')) {
      j->at--;
      AMPL_TRY(ampl_json_string(j, &dtype));
      e->dtype_name = dtype;
    } else {
      AMPL_TRY(field == 1 ? read_shape(r, e) : field == 2 ? read_offsets(r, e) : ampl_json_skip(j));
    }
  }
}

static ampl_status read_header(reader *r) {
  ampl_json *j = &r->json;
  char *key;
  AMPL_TRY(read_text(r));
  ampl_json_take(j, '{');
  for (size_t n = 0;;) {
    AMPL_TRY(ampl_json_key(j, &n, &key));
    if (!key) break;
    if (strcmp(key, metadata_key) == 0) {
      AMPL_TRY(read_metadata(r));
      continue;
    }
    AMPL_TRY(ampl_buffer_grow(&r->entry_room, r->n * sizeof(entry), (r->n + 1) * sizeof(entry)));
    r->entries = r->entry_room.p;
    entry *e = &r->entries[r->n++];
    *e = (entry){.name = key, .ndim = SIZE_MAX};
    AMPL_TRY(read_entry(r, e));
  }
  ampl_json_take(j, ' '); /* and all blanks behind it */
  return j->at == j->end ? AMPL_OK : ampl_json_syntax(j, "the end");
}

/* ------------------------------------------------------------------------------------------------ its checks ------ */

static int by_key(const void *a, const void *b) { return strcmp(((const pair *)a)->key, ((const pair *)b)->key); }
static int by_name(const void *a, const void *b) { return strcmp(((const entry *)a)->name, ((const entry *)b)->name); }

static ampl_status check_names(reader *r) {
  if (r->n) qsort(r->entries, r->n, sizeof(entry), by_name);
  for (size_t i = 1; i < r->n; i++)
    if (by_name(&r->entries[i - 1], &r->entries[i]) == 0)
      return DAMAGED(r, "a duplicate object key: tensor \"%s\" stands there twice", r->file.shown,
                     SHOWN(r, r->entries[i].name));
  if (r->npairs) qsort(r->pairs, r->npairs, sizeof(pair), by_key);
  for (size_t i = 1; i < r->npairs; i++)
    if (by_key(&r->pairs[i - 1], &r->pairs[i]) == 0)
      return DAMAGED(r, "__metadata__: a duplicate object key: \"%s\"", r->file.shown, SHOWN(r, r->pairs[i].key));
  return AMPL_OK;
}

static ampl_status check_offsets(reader *r, entry *e) {
  const uint64_t held = r->file.size - r->data;
  if (e->noffsets != 2)
    return DAMAGED(r, "tensor \"%s\": data_offsets are not two natural numbers", r->file.shown, SHOWN(r, e->name));
  if (e->begin > e->end)
    return DAMAGED(r, "tensor \"%s\" ends at %llu, before it begins at %llu", r->file.shown, SHOWN(r, e->name),
                   (unsigned long long)e->end, (unsigned long long)e->begin);
  if (e->end > held)
    return DAMAGED(
        r, "tensor \"%s\" ends at byte %llu of the data, but the file holds %llu bytes of data: it is cut off",
        r->file.shown, SHOWN(r, e->name), (unsigned long long)e->end, (unsigned long long)held);
  const uint64_t bytes = e->numel * e->dtype->bytes; /* numel <= 2^60: no overflow */
  if (e->end - e->begin == bytes) return AMPL_OK;
  return DAMAGED(r, "tensor \"%s\": %s of its shape needs %llu bytes, but its data_offsets span %llu", r->file.shown,
                 SHOWN(r, e->name), dtype_text(e->dtype), (unsigned long long)bytes,
                 (unsigned long long)(e->end - e->begin));
}

static ampl_status check_entry(reader *r, entry *e) {
  if (!e->dtype_name) return DAMAGED(r, "tensor \"%s\" has no dtype", r->file.shown, SHOWN(r, e->name));
  e->dtype = dtype_named(e->dtype_name);
  if (!e->dtype)
    return ampl_error(r->ctx, AMPL_EUNSUPPORTED, "%s: tensor \"%s\" has dtype %s, which ampl does not have",
                      r->file.shown, SHOWN(r, e->name), ampl_escaped(r->ctx, e->dtype_name, 24));
  if (e->ndim == SIZE_MAX) return DAMAGED(r, "tensor \"%s\" has no shape", r->file.shown, SHOWN(r, e->name));
  if (e->ndim > AMPL_RANK_MAX)
    return ampl_error(r->ctx, AMPL_EUNSUPPORTED, "%s: tensor \"%s\" has %zu dimensions; at most %d are possible",
                      r->file.shown, SHOWN(r, e->name), e->ndim, AMPL_RANK_MAX);
  if (ampl_elements_count((int)e->ndim, e->shape, &e->numel)) return check_offsets(r, e);
  return DAMAGED(r, "tensor \"%s\": its shape has more elements than a file can hold", r->file.shown,
                 SHOWN(r, e->name));
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
  if (r->n) qsort(r->entries, r->n, sizeof(entry), by_place);
  for (size_t i = 0; i < r->n; i++) {
    const entry *e = &r->entries[i];
    if (e->begin > at)
      return DAMAGED(r, "a hole: bytes %llu to %llu of the data, before tensor \"%s\", belong to no tensor",
                     r->file.shown, (unsigned long long)at, (unsigned long long)e->begin, SHOWN(r, e->name));
    if (e->begin < at)
      return DAMAGED(r, "an overlap: tensor \"%s\" begins at byte %llu of the data, but \"%s\" goes on to %llu",
                     r->file.shown, SHOWN(r, e->name), (unsigned long long)e->begin,
                     SHOWN(r, i ? r->entries[i - 1].name : ""), (unsigned long long)at);
    at = e->end;
  }
  if (r->data + at == r->file.size) return AMPL_OK;
  return DAMAGED(r, "byte %llu: %llu bytes behind the last tensor", r->file.shown, (unsigned long long)(r->data + at),
                 (unsigned long long)(r->file.size - r->data - at));
}

/* ------------------------------------------------------------------------------------------------ loading --------- */

static ampl_status read_tensors(reader *r, box *b) {
  for (size_t i = 0; i < r->n; i++) {
    const entry *e = &r->entries[i];
    ampl_tensor *t;
    AMPL_TRY(ampl_file_poll(r->ctx));
    AMPL_TRY(ampl_file_tensor(r->ctx, e->dtype->dtype, (int)e->ndim, e->shape, &t));
    b->a.names[i] = box_text(b, e->name);
    b->a.tensors[i] = t;
    b->a.n++;
    r->file.at = r->data + e->begin;
    AMPL_TRY(ampl_elements_read(e->dtype, false, e->numel, ampl_data(t), ampl_file_next, &r->file));
  }
  return AMPL_OK;
}

static ampl_status load(reader *r, ampl_archive **out) {
  size_t text = 0;
  box *b;
  AMPL_TRY(read_header(r));
  AMPL_TRY(check_names(r));
  for (size_t i = 0; i < r->n; i++) AMPL_TRY(check_entry(r, &r->entries[i]));
  AMPL_TRY(check_cover(r));
  for (size_t i = 0; i < r->n; i++) text += strlen(r->entries[i].name) + 1;
  for (size_t i = 0; i < r->npairs; i++) text += strlen(r->pairs[i].key) + strlen(r->pairs[i].value) + 2;
  AMPL_TRY(box_new(r->ctx, r->n, r->npairs, text, &b));
  for (size_t i = 0; i < r->npairs; i++) {
    b->a.keys[b->a.nmeta] = box_text(b, r->pairs[i].key);
    b->a.values[b->a.nmeta++] = box_text(b, r->pairs[i].value);
  }
  const ampl_status s = read_tensors(r, b);
  if (s == AMPL_OK)
    *out = &b->a;
  else
    ampl_archive_release(&b->a);
  return s;
}

ampl_status ampl_safetensors_load(ampl_ctx *ctx, const char *path, ampl_archive **out) {
  reader r = {.ctx = ctx, .text = {.ctx = ctx}, .entry_room = {.ctx = ctx}, .pair_room = {.ctx = ctx}};
  *out = NULL;
  ampl_status s = ampl_file_open(ctx, path, &r.file);
  if (s == AMPL_OK) s = ampl_file_result(ctx, r.file.shown, load(&r, out));
  ampl_buffer_free(&r.text);
  ampl_buffer_free(&r.entry_room);
  ampl_buffer_free(&r.pair_room);
  ampl_file_close(&r.file);
  return s;
}

/* ------------------------------------------------------------------------------------------------ saving ---------- */

typedef struct item {
  const char *name;
  ampl_tensor *t;
} item;

static int by_size_and_name(const void *a, const void *b) {
  const item *x = a, *y = b;
  const size_t p = ampl_dtype_size(ampl_tensor_dtype(x->t)), q = ampl_dtype_size(ampl_tensor_dtype(y->t));
  return p != q ? (p > q ? -1 : 1) : strcmp(x->name, y->name);
}

static ampl_status no_memory(ampl_ctx *ctx) { return ampl_error(ctx, AMPL_ENOMEM, "out of memory for a file header"); }

static bool is_utf8(const char *s) {
  size_t n = strlen(s);
  uint32_t c;
  for (size_t k; n > 0; s += k, n -= k)
    if ((k = ampl_utf8_next(s, n, &c)) == 0) return false;
  return true;
}

/* object[key] = value, which is given away; `key` must be new there. */
static ampl_status put(ampl_ctx *ctx, json_t *object, const char *key, json_t *value) {
  ampl_status s = AMPL_OK;
  if (json_object_get(object, key))
    s = ampl_error(ctx, AMPL_EARG, "the name \"%s\" is given twice", ampl_escaped(ctx, key, 100));
  else if (!is_utf8(key))
    s = ampl_error(ctx, AMPL_EVALUE, "the name \"%s\" is no valid UTF-8", ampl_escaped(ctx, key, 100));
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
      s = ampl_error(ctx, AMPL_EVALUE, "metadata: the value of \"%s\" is no valid UTF-8",
                     ampl_escaped(ctx, pairs[i].key, 100));
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
  ctx->op = "";
  json_t *header = json_object();
  item *items = malloc((size_t)(n > 0 ? n : 1) * sizeof *items);
  ampl_status s = header && items ? metadata_object(ctx, header, nmeta, keys, values) : no_memory(ctx);
  if (s == AMPL_OK) {
    for (int64_t i = 0; i < n; i++) items[i] = (item){names[i], tensors[i]};
    qsort(items, (size_t)n, sizeof *items, by_size_and_name);
  }
  for (int64_t i = 0; s == AMPL_OK && i < n; i++) {
    s = ampl_file_poll(ctx);
    if (s == AMPL_OK) s = tensor_object(ctx, header, &items[i], &at);
  }
  if (s == AMPL_OK) s = header_text(ctx, header, &text, &bytes);
  if (s == AMPL_OK) s = write_file(ctx, path, text, bytes, items, n);
  json_decref(header);
  free(items);
  free(text);
  return s;
}
