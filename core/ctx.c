/* ctx.c: contexts, errors, warnings, interruption. */
#include "cpu.h"
#include "ctx.h"
#include "environment.h"
#include "guest.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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

ampl_status ampl_ctx_new(const ampl_ctx_options *options, ampl_ctx **out) {
  ampl_ctx_options o = AMPL_CTX_OPTIONS_INIT;
  ampl_environment env;
  AMPL_NEED(NULL, out);
  *out = NULL;
  if (options) memcpy(&o, options, options->struct_size < sizeof o ? options->struct_size : sizeof o);
  AMPL_TRY(ampl_environment_read(!o.memory_limit, &env));
  ampl_ctx *c = calloc(1, sizeof *c);
  if (!c) return ampl_error(NULL, AMPL_ENOMEM, "out of memory for a context");
  c->refs = 1;
  c->op = c->failed = c->host_op = "";
  ampl_set_threads(c, o.threads > 0 ? o.threads : ampl_cpu_count());
  c->seed = o.seed;
  c->plain = env.plain;
  ampl_memory_set_limit(c, o.memory_limit ? o.memory_limit : env.memory_limit);
  ampl_modes_init(&c->own_modes);
  c->modes = c->host_modes = &c->own_modes;
  c->device = ampl_device_find(c, "cpu");
  if (!(c->number_storage = ampl_obj_get(c, sizeof(ampl_storage)))) {
    free(c);
    return ampl_error(NULL, AMPL_ENOMEM, "out of memory for a context");
  }
  *c->number_storage = (ampl_storage){.refs = 1, .ctx = c, .device = c->device};
  *out = c;
  return AMPL_OK;
}

void ampl_ctx_retain(ampl_ctx *c) {
  if (c) __atomic_add_fetch(&c->refs, 1, __ATOMIC_RELAXED);
}

void ampl_ctx_release(ampl_ctx *c) {
  if (!c || __atomic_sub_fetch(&c->refs, 1, __ATOMIC_ACQ_REL) > 0) return;
  ampl_modes_close(c, &c->own_modes);
  ampl_set_anomaly(c, false, false, false, false, NULL, NULL);
  ampl_obj_put(c, c->number_storage, sizeof(ampl_storage));
  ampl_mem_close(c);
  free(c);
}

void ampl_set_threads(ampl_ctx *c, int n) {
  if (c) c->threads = n < 1 ? 1 : n > AMPL_CPU_THREADS_MAX ? AMPL_CPU_THREADS_MAX : n;
}
int ampl_threads(const ampl_ctx *c) { return c ? c->threads : 0; }

/* Lock-free, or it could not be called in a signal handler. */
_Static_assert(ATOMIC_INT_LOCK_FREE == 2, "ampl_interrupt is async-signal-safe");
void ampl_interrupt(ampl_ctx *c) {
  if (c) atomic_fetch_or_explicit(&c->interrupted, AMPL_ASKED, memory_order_relaxed);
}
void ampl_interrupt_clear(ampl_ctx *c) {
  if (c) atomic_store_explicit(&c->interrupted, 0, memory_order_relaxed);
}
bool ampl_interrupted(const ampl_ctx *c) {
  return c && atomic_load_explicit(&c->interrupted, memory_order_relaxed) & AMPL_ASKED;
}

void ampl_interrupt_at(ampl_ctx *c, long n) {
  atomic_store_explicit(&c->looks, n, memory_order_relaxed);
  atomic_fetch_or_explicit(&c->interrupted, AMPL_LOOKS_COUNT, memory_order_relaxed);
}

bool ampl_must_stop(ampl_ctx *c) {
  if (c->whole > 0) return false;
  const int is = atomic_load_explicit(&c->interrupted, memory_order_relaxed);
  if (is & AMPL_LOOKS_COUNT && atomic_fetch_sub_explicit(&c->looks, 1, memory_order_relaxed) == 1) ampl_interrupt(c);
  return ampl_interrupted(c);
}

int64_t ampl_set_index_base(ampl_ctx *c, int64_t base) {
  if (!c) return 0;
  const int64_t before = c->index_base;
  c->index_base = base != 0;
  return before;
}

int64_t ampl_index_base(const ampl_ctx *c) { return c->index_base; }
int64_t ampl_shown(const ampl_ctx *c, int64_t i) { return i < 0 || i == INT64_MAX ? i : i + c->index_base; }

/* ------------------------------------------------------------------------------------------------ errors ---------- */

/* What went wrong where there is no context to say it in.  The initial-exec model: the room is there from the thread's
 * start, since a C library that must find it later ends the process when there is no memory. */
static _Thread_local struct { ampl_status code; char message[512]; } of_thread
  __attribute__((tls_model("initial-exec")));

ampl_status ampl_error_va(ampl_ctx *c, ampl_status s, const char *fmt, va_list args) {
  if (!c) {
    vsnprintf(of_thread.message, sizeof of_thread.message, fmt, args);
    return of_thread.code = s;
  }
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

ampl_status ampl_error_null(ampl_ctx *c, const char *function, const char *what) {
  if (c) c->op = "";
  return ampl_error(c, AMPL_EARG, "%s: %s is NULL", function, what);
}

ampl_status ampl_fail(ampl_ctx *c, ampl_status s, const char *message) {
  return ampl_error(c, s, "%s", message ? message : "");
}

const char *ampl_error_message(const ampl_ctx *c) { return c ? c->message : of_thread.message; }
ampl_status ampl_error_code(const ampl_ctx *c) { return c ? c->code : of_thread.code; }
const char *ampl_error_op(const ampl_ctx *c) { return c ? c->failed : ""; }

void ampl_on_warning(ampl_ctx *c, ampl_warn_fn fn, void *ud) {
  if (!c) return;
  c->warn = fn;
  c->warn_ud = ud;
}

void ampl_warning(ampl_ctx *c, const char *code, const char *fmt, ...) {
  const char *op = c->op;               /* callbacks may run ops */
  char text[512];
  va_list args;
  va_start(args, fmt);
  vsnprintf(text, sizeof text, fmt, args);
  va_end(args);
  if (!ampl_guests_warn(c, code, text) && c->warn) c->warn(c->warn_ud, code, text);
  c->op = op;
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
