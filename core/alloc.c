/* alloc.c: memory of tensors and of small objects.
 *
 * Blocks come in size classes, eight to a power of two (at most 12.5 % lost), and go back to the pool of their device,
 * so a training step, which asks for the same sizes again and again, stops asking the system after its first round.
 * What is live is counted in the bytes of classes: it is what memory is really taken. */
#include "ctx.h"
#include "guest.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ------------------------------------------------------------------------------------------------ classes --------- */

/* The class of `bytes` and its size: 64-byte steps up to 512, then eight steps to a power of two. */
static int size_class(size_t bytes, size_t *size) {
  if (bytes <= 512) {
    const int c = bytes ? (int)((bytes + 63) / 64) - 1 : 0;
    *size = (size_t)(c + 1) * 64;
    return c;
  }
  const int top = 63 - __builtin_clzll(bytes - 1);              /* 2^top <= bytes - 1 < 2^(top + 1) */
  const int step = top - 3;
  const size_t k = ((bytes - 1) >> step) - 8;                   /* 0..7 within the power of two */
  *size = (k + 9) << step;
  return 8 + (top - 9) * 8 + (int)k;
}

static size_t class_size(int class) {
  if (class < 8) return (size_t)(class + 1) * 64;
  return (size_t)((class - 8) % 8 + 9) << ((class - 8) / 8 + 6);
}

/* ------------------------------------------------------------------------------------------------ blocks ---------- */

static bool must_fail(ampl_ctx *c) {
  if (!c->fail_at) return false;
  if (c->fail_at == 1) {
    if (!c->fail_forever) c->fail_at = 0;
    return true;
  }
  c->fail_at--;
  return false;
}

void ampl_mem_fail_at(ampl_ctx *c, long n, bool forever) {
  c->fail_at = n;
  c->fail_forever = forever;
}

static size_t cached(const ampl_ctx *c) {
  size_t n = 0;
  for (int d = 0; d < AMPL_DEVICES_MAX; d++)
    if (c->pool[d]) n += c->pool[d]->cached;
  return n;
}

static void trim_pool(ampl_ctx *c, int d) {
  ampl_pool *p = c->pool[d];
  if (!p || !p->cached) return;
  const ampl_device *device = ampl_device_at(d);
  for (int b = 0; b < AMPL_BINS; b++)
    while (p->bin[b].n > 0) device->backend->deallocate(device->index, p->bin[b].block[--p->bin[b].n], class_size(b));
  p->cached = 0;
}

void ampl_memory_trim(ampl_ctx *c) {
  for (int d = 0; c && d < AMPL_DEVICES_MAX; d++) trim_pool(c, d);
}

static ampl_pool *pool_of(ampl_ctx *c, const ampl_device *device) {
  ampl_pool *p = c->pool[device->id];
  if (!p) p = c->pool[device->id] = must_fail(c) ? NULL : calloc(1, sizeof *p);
  return p;
}

/* One attempt: the pool, else the system as far as the limit allows. */
static void *take(ampl_ctx *c, ampl_device *device, int class, size_t size) {
  ampl_pool *p = pool_of(c, device);
  void *block = NULL;
  if (!p) return NULL;
  if (p->bin[class].n > 0) {
    p->cached -= size;
    return p->bin[class].block[--p->bin[class].n];
  }
  if (c->live + size > c->limit) return NULL;
  if (c->live + cached(c) + size > c->limit) ampl_memory_trim(c);
  return device->backend->allocate(device->index, size, &block) == AMPL_OK ? block : NULL;
}

static ampl_status no_memory(ampl_ctx *c, size_t bytes) {
  static const char *const kinds[] = {
#define AMPL_X(NAME, name) #name,
      AMPL_KIND_MAP(AMPL_X)
#undef AMPL_X
  };
  char parts[256];
  size_t n = 0;
  parts[0] = 0;
  for (int k = 0; k < AMPL_KIND_COUNT; k++)
    if (c->by_kind[k])
      n = ampl_append(parts, sizeof parts, n, ", %s %.1f MB", kinds[k], (double)c->by_kind[k] / 1e6);
  return ampl_error(c, AMPL_ENOMEM,
                    "out of memory: %.1f MB asked, %.1f MB live of a limit of %.1f MB%s; free tensors, use a "
                    "smaller batch, or raise the limit (ampl.memory_limit, AMPL_MEMORY_LIMIT)",
                    (double)bytes / 1e6, (double)c->live / 1e6, (double)c->limit / 1e6, parts);
}

static void collect(ampl_ctx *c) {
  const char *op = c->op;
  if (c->collecting) return;
  c->collecting = true;
  if (c->collect) c->collect(c->collect_ud);
  ampl_guests_collect(c);
  c->collecting = false;
  c->op = op;
}

ampl_status ampl_mem_get(ampl_ctx *c, ampl_device *device, size_t bytes, ampl_kind kind, void **out) {
  size_t size;
  *out = NULL;
  if (bytes > (SIZE_MAX >> 4)) return no_memory(c, bytes);
  const int class = size_class(bytes, &size);
  if (must_fail(c)) return no_memory(c, bytes);
  void *block = take(c, device, class, size);
  if (!block) {                         /* what a host's collector and our own cache hold may be enough */
    collect(c);
    ampl_memory_trim(c);
    block = take(c, device, class, size);
    if (!block) return no_memory(c, bytes);
  }
  c->live += size;
  c->by_kind[kind] += size;
  if (c->live > c->peak) c->peak = c->live;
  *out = block;
  return AMPL_OK;
}

void ampl_mem_put(ampl_ctx *c, ampl_device *device, void *block, size_t bytes, ampl_kind kind) {
  size_t size;
  if (!block) return;
  const int class = size_class(bytes, &size);
  ampl_pool *p = c->pool[device->id];
  c->live -= size;
  c->by_kind[kind] -= size;
  if (!c->plain && p) {
    if (p->bin[class].n == p->bin[class].cap) {
      const int cap = p->bin[class].cap ? 2 * p->bin[class].cap : 8;
      void **more = ampl_heap_resize(c, p->bin[class].block, (size_t)cap * sizeof *more);
      if (more) p->bin[class].block = more, p->bin[class].cap = cap;
    }
    if (p->bin[class].n < p->bin[class].cap) {
      p->bin[class].block[p->bin[class].n++] = block;
      p->cached += size;
      return;
    }
  }
  device->backend->deallocate(device->index, block, size);
}

void ampl_mem_recount(ampl_ctx *c, size_t bytes, ampl_kind from, ampl_kind to) {
  size_t size;
  size_class(bytes, &size);
  c->by_kind[from] -= size;
  c->by_kind[to] += size;
}

/* ------------------------------------------------------------------------------------------------ objects --------- */

void *ampl_heap_resize(ampl_ctx *c, void *p, size_t bytes) { return must_fail(c) ? NULL : realloc(p, bytes); }

void *ampl_obj_get(ampl_ctx *c, size_t bytes) {
  const size_t class = (bytes + 63) / 64;
  if (must_fail(c)) return NULL;
  if (class >= AMPL_OBJ_CLASSES || c->plain) return malloc(bytes);
  void **o = c->objects[class];
  if (!o) return malloc(class * 64);
  c->objects[class] = *o;
  return o;
}

void ampl_obj_put(ampl_ctx *c, void *p, size_t bytes) {
  const size_t class = (bytes + 63) / 64;
  if (!p) return;
  if (class >= AMPL_OBJ_CLASSES || c->plain) {
    free(p);
    return;
  }
  *(void **)p = c->objects[class];
  c->objects[class] = p;
}

void ampl_mem_close(ampl_ctx *c) {
  ampl_memory_trim(c);
  for (int d = 0; d < AMPL_DEVICES_MAX; d++) {
    if (!c->pool[d]) continue;
    for (int b = 0; b < AMPL_BINS; b++) free(c->pool[d]->bin[b].block);
    free(c->pool[d]);
  }
  for (int k = 0; k < AMPL_OBJ_CLASSES; k++)
    for (void **o = c->objects[k], **next; o; o = next) next = *o, free(o);
}

/* ------------------------------------------------------------------------------------------------ public ---------- */

void ampl_memory(const ampl_ctx *c, ampl_memory_info *out) {
  if (!out) return;
  *out = (ampl_memory_info){0};
  if (!c) return;
  *out = (ampl_memory_info){.live = c->live, .peak = c->peak, .cached = cached(c), .limit = c->limit,
                            .tensors = c->tensors, .storages = c->storages, .nodes = c->nodes};
  memcpy(out->by_kind, c->by_kind, sizeof out->by_kind);
}

void ampl_memory_reset_peak(ampl_ctx *c) {
  if (c) c->peak = c->live;
}

void ampl_memory_set_limit(ampl_ctx *c, size_t bytes) {
  if (!c) return;
  c->limit = bytes;
  c->soft = bytes / 2 < ((size_t)300 << 20) ? bytes / 2 : (size_t)300 << 20;
}

void ampl_on_collect(ampl_ctx *c, ampl_collect_fn fn, void *ud) {
  if (!c) return;
  c->collect = fn;
  c->collect_ud = ud;
}

bool ampl_memory_pressed(const ampl_ctx *c) { return c && c->live > c->soft; }

/* torch7's rule: when more than 80 % stays live, the maximum grows by 40 %. */
void ampl_memory_collected(ampl_ctx *c) {
  if (c && c->live > c->soft / 10 * 8) c->soft = c->live / 10 * 14;
}
