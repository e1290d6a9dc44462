/* ctx.c: contexts, errors, warnings, interruption. */
#include "cpu.h"
#include "ctx.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

const char *ampl_version(void) { return AMPL_VERSION_TEXT; }
int ampl_version_number(void) { return AMPL_VERSION_NUMBER; }

const char *ampl_status_name(ampl_status s) {
  static const char *const names[] = {
#define AMPL_X(name, text) #name,
      AMPL_STATUS_MAP(AMPL_X)
#undef AMPL_X
  };
  return (unsigned)s < AMPL_STATUS_COUNT ? names[s] : "?";
}

/* ------------------------------------------------------------------------------------------------ life ------------ */

/* What a container may use, where the kernel says so; 0: no limit known. */
static size_t cgroup_limit(void) {
  static const char *const files[] = {"/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"};
  for (int i = 0; i < 2; i++) {
    FILE *f = fopen(files[i], "r");
    unsigned long long n = 0;
    if (!f) continue;
    const int got = fscanf(f, "%llu", &n);
    fclose(f);
    if (got == 1 && n < (1ull << 60)) return (size_t)n;
  }
  return 0;
}

static size_t default_limit(void) {
  const char *e = getenv("AMPL_MEMORY_LIMIT");
  char *end;
  if (e && *e) {
    double n = strtod(e, &end);
    if (*end == 'k' || *end == 'K') n *= 1 << 10;
    if (*end == 'm' || *end == 'M') n *= 1 << 20;
    if (*end == 'g' || *end == 'G') n *= 1 << 30;
    if (n >= 1) return (size_t)n;
  }
  const size_t machine = (size_t)sysconf(_SC_PHYS_PAGES) * (size_t)sysconf(_SC_PAGESIZE), group = cgroup_limit();
  return (group && group < machine ? group : machine) / 10 * 8;
}

ampl_status ampl_ctx_new(const ampl_ctx_options *options, ampl_ctx **out) {
  ampl_ctx_options o = AMPL_CTX_OPTIONS_INIT;
  *out = NULL;
  if (options) memcpy(&o, options, options->struct_size < sizeof o ? options->struct_size : sizeof o);
  ampl_ctx *c = calloc(1, sizeof *c);
  if (!c) return AMPL_ENOMEM;
  const char *alloc = getenv("AMPL_ALLOC");
  c->refs = 1;
  c->op = c->failed = "";
  c->threads = o.threads > 0 ? o.threads : ampl_cpu_count();
  c->seed = o.seed;
  c->limit = o.memory_limit ? o.memory_limit : default_limit();
  c->plain = alloc && strcmp(alloc, "plain") == 0;
  ampl_memory_set_limit(c, c->limit);
  ampl_modes_init(&c->own_modes);
  c->modes = &c->own_modes;
  c->device = ampl_device_find(c, "cpu");
  if (!c->device || !(c->number_storage = ampl_obj_get(c, sizeof(ampl_storage)))) {
    ampl_mem_close(c);
    free(c);
    return AMPL_ENOMEM;
  }
  *c->number_storage = (ampl_storage){.refs = 1, .ctx = c, .device = c->device};
  *out = c;
  return AMPL_OK;
}

void ampl_ctx_retain(ampl_ctx *c) { __atomic_add_fetch(&c->refs, 1, __ATOMIC_RELAXED); }

void ampl_ctx_release(ampl_ctx *c) {
  if (!c || __atomic_sub_fetch(&c->refs, 1, __ATOMIC_ACQ_REL) > 0) return;
  ampl_modes_close(c, &c->own_modes);
  ampl_obj_put(c, c->number_storage, sizeof(ampl_storage));
  ampl_mem_close(c);
  free(c);
}

void ampl_set_threads(ampl_ctx *c, int n) { c->threads = n < 1 ? 1 : n; }
int  ampl_threads(const ampl_ctx *c) { return c->threads; }
void ampl_interrupt(ampl_ctx *c) { atomic_store_explicit(&c->interrupted, true, memory_order_relaxed); }
void ampl_interrupt_clear(ampl_ctx *c) { atomic_store_explicit(&c->interrupted, false, memory_order_relaxed); }
bool ampl_interrupted(const ampl_ctx *c) { return atomic_load_explicit(&c->interrupted, memory_order_relaxed); }

int64_t ampl_set_index_base(ampl_ctx *c, int64_t base) {
  const int64_t before = c->index_base;
  c->index_base = base;
  return before;
}

int64_t ampl_index_base(const ampl_ctx *c) { return c->index_base; }
int64_t ampl_shown(const ampl_ctx *c, int64_t i) { return i < 0 ? i : i + c->index_base; }

/* ------------------------------------------------------------------------------------------------ errors ---------- */

ampl_status ampl_error_va(ampl_ctx *c, ampl_status s, const char *fmt, va_list args) {
  const size_t n = *c->op ? ampl_append(c->message, sizeof c->message, 0, "%s: ", c->op) : 0;
  vsnprintf(c->message + n, sizeof c->message - n, fmt, args);
  c->code = s;
  c->failed = c->op;
  return s;
}

ampl_status ampl_error(ampl_ctx *c, ampl_status s, const char *fmt, ...) {
  va_list args;
  va_start(args, fmt);
  ampl_error_va(c, s, fmt, args);
  va_end(args);
  return s;
}

ampl_status ampl_fail(ampl_ctx *c, ampl_status s, const char *message) { return ampl_error(c, s, "%s", message); }

const char *ampl_error_message(const ampl_ctx *c) { return c->message; }
ampl_status ampl_error_code(const ampl_ctx *c) { return c->code; }
const char *ampl_error_op(const ampl_ctx *c) { return c->failed; }

void ampl_on_warning(ampl_ctx *c, ampl_warn_fn fn, void *ud) {
  c->warn = fn;
  c->warn_ud = ud;
}

void ampl_warning(ampl_ctx *c, const char *code, const char *fmt, ...) {
  if (!c->warn) return;
  char text[512];
  va_list args;
  va_start(args, fmt);
  vsnprintf(text, sizeof text, fmt, args);
  va_end(args);
  c->warn(c->warn_ud, code, text);
}

/* ------------------------------------------------------------------------------------------------ texts ----------- */

size_t ampl_append(char *text, size_t size, size_t at, const char *fmt, ...) {
  va_list args;
  va_start(args, fmt);
  const int n = vsnprintf(text + at, size - at, fmt, args);
  va_end(args);
  if (n < 0) return at;
  return (size_t)n < size - at ? at + (size_t)n : size - 1;
}

char *ampl_text(ampl_ctx *c) { return c->text[c->text_next++ % 8]; }

const char *ampl_shape_text(ampl_ctx *c, int ndim, const int64_t *shape) {
  char *s = ampl_text(c);
  const size_t size = sizeof c->text[0];
  size_t n = ampl_append(s, size, 0, "{");
  for (int d = 0; d < ndim; d++) n = ampl_append(s, size, n, d ? ", %lld" : "%lld", (long long)shape[d]);
  ampl_append(s, size, n, "}");
  return s;
}

const char *ampl_meta_text(ampl_ctx *c, const ampl_meta *m) {
  const char *shape = ampl_shape_text(c, m->ndim, m->shape);
  char *s = ampl_text(c);
  ampl_append(s, sizeof c->text[0], 0, "%s %s", ampl_dtype_name((ampl_dtype)m->dtype), shape);
  return s;
}

const char *ampl_tensor_text(ampl_ctx *c, const ampl_tensor *x) {
  const char *shape = ampl_shape_text(c, x->ndim, x->shape);
  char *s = ampl_text(c);
  ampl_append(s, sizeof c->text[0], 0, "%s %s", ampl_dtype_name((ampl_dtype)x->dtype), shape);
  return s;
}
