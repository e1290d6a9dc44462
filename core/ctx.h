/* ctx.h: the inside of a context.  Included by core/ only. */
#ifndef AMPL_CTX_H
#define AMPL_CTX_H

#include "op.h"

#include <stdarg.h>
#include <stdatomic.h>

/* ------------------------------------------------------------------------------------------------ devices --------- */

struct ampl_device {
  const ampl_backend *backend;
  int                 index;            /* within its backend */
  int                 id;               /* in the registry; the CPU is 0 */
  char                name[24];
  ampl_kernel_fn    (*kernels)[AMPL_DTYPE_COUNT];       /* [op][dtype] */
};

#define AMPL_DEVICES_MAX 32

/* The registry: filled once, which cannot fail for the CPU, constant after.  NULL, with a reason in ctx, when there is
 * no such device. */
ampl_device *ampl_device_find(ampl_ctx *ctx, const char *name);
ampl_device *ampl_device_at(int id);

/* ------------------------------------------------------------------------------------------------ memory ---------- */

typedef struct ampl_pool ampl_pool;     /* the free blocks of one device: alloc.c */

/* `bytes` on `device`, 64-byte aligned, uninitialised, accounted as `kind`.  Collects, trims and retries before it
 * gives up with ENOMEM and a breakdown. */
ampl_status ampl_mem_get(ampl_ctx *ctx, ampl_device *device, size_t bytes, ampl_kind kind, void **out);
void        ampl_mem_put(ampl_ctx *ctx, ampl_device *device, void *p, size_t bytes, ampl_kind kind);
void        ampl_mem_recount(ampl_ctx *ctx, size_t bytes, ampl_kind from, ampl_kind to);
void        ampl_mem_close(ampl_ctx *ctx);
/* Small host objects (tensors, nodes): from free lists, not accounted as tensor memory.  NULL: out of memory. */
void       *ampl_obj_get(ampl_ctx *ctx, size_t bytes);
void        ampl_obj_put(ampl_ctx *ctx, void *p, size_t bytes);
/* realloc, for arrays that grow: free gives them back. */
void       *ampl_heap_resize(ampl_ctx *ctx, void *p, size_t bytes);
/* Testing: the nth next allocation (from 1) of a context fails, and, if `forever`, all after it.  0: off. */
void        ampl_mem_fail_at(ampl_ctx *ctx, long n, bool forever);

#define AMPL_OBJ_CLASSES 24             /* objects of up to 24 * 64 bytes have a free list */
#define AMPL_BINS        424            /* size classes of blocks up to 2^60 bytes */

struct ampl_pool {
  struct { void **block; int n, cap; } bin[AMPL_BINS];
  size_t cached;
};

/* ------------------------------------------------------------------------------------------------ modes ----------- */

/* One entry of the stack of modes; see modes.c.  An entry leaves from wherever it stands. */
typedef struct ampl_mode {
  struct ampl_mode *outer;
  uint64_t          id;
  enum { AMPL_MODE_GRAD, AMPL_MODE_INFERENCE, AMPL_MODE_AUTOCAST } kind;
  bool              on;                 /* grad, inference: the value; autocast: enabled */
  int               dtype;              /* autocast: AMPL_DTYPE_NONE: the device's default */
  int               device;             /* autocast: a device id's backend only, or -1: all */
  bool              cache;
  uint8_t *override; /* [AMPL_OPID_COUNT] ampl_cast + 1 where a region overrides the record; or NULL */
} ampl_mode;

struct ampl_modes {
  bool       grad, inference;           /* what counts now */
  bool       ground, wanted;            /* grad where no entry says otherwise; as entries say, inference apart */
  ampl_mode *autocast;                  /* the innermost enabled-or-not region, NULL: none */
  ampl_mode *top;
  int        regions;                   /* autocast entries on the stack */
  struct ampl_cast_cache *cache;        /* autocast.c */
};

void ampl_modes_init(ampl_modes *m);
/* Drops every entry. */
void ampl_modes_close(ampl_ctx *ctx, ampl_modes *m);
/* Enters a copy of `mode`; its id, 0 when out of memory. */
uint64_t ampl_mode_enter(ampl_ctx *ctx, const ampl_mode *mode);
/* Removes the entry `id` from `m`; false when it is not there (left already). */
bool     ampl_mode_leave(ampl_ctx *ctx, ampl_modes *m, uint64_t id);

/* ------------------------------------------------------------------------------------------------ context --------- */

typedef struct ampl_trace_event {
  const ampl_op *op;
  int            dtype_in, dtype_out;
  size_t         bytes;
  double         seconds;
  const char    *why;                   /* why this dtype: the cast category's text, or NULL */
} ampl_trace_event;
typedef void (*ampl_trace_fn)(void *ud, ampl_ctx *ctx, const ampl_trace_event *event, const ampl_args *in,
                              ampl_tensor **out);

struct ampl_ctx {
  int          refs;                    /* holders and storages; __atomic */
  atomic_int   interrupted;             /* AMPL_ASKED: to stop, by any thread or a signal handler; AMPL_LOOKS_COUNT */
  atomic_long  looks;                   /* after so many it is asked */
  atomic_bool  stopped;                 /* the kernel that runs has left something out */
  int          whole;                   /* > 0: what runs now is not cut short */
  int          threads;
  int64_t      index_base;
  uint64_t     seed, offset;            /* of the random stream: random.c */
  uint64_t     seq, mode_ids;           /* node and mode numbers given out */
  ampl_modes  *modes, own_modes;        /* the current ones; those of C callers */
  ampl_guest  *guest, *guests;          /* whose call is running, NULL: the host's; all that have joined: guest.c */
  ampl_modes  *host_modes;              /* the host's, while a guest's call is running */
  int64_t      host_base;
  const char  *host_op;

  /* memory */
  ampl_pool   *pool[AMPL_DEVICES_MAX];
  void        *objects[AMPL_OBJ_CLASSES];
  size_t       live, peak, limit, by_kind[AMPL_KIND_COUNT];
  size_t       soft;                    /* past it, the next entry of a collecting host collects */
  size_t       tensors, storages, nodes;
  bool         plain;                   /* AMPL_ALLOC=plain: no free lists */
  bool         collecting;
  long         fail_at;
  bool         fail_forever;
  ampl_collect_fn collect;
  void           *collect_ud;

  /* release of long chains: graph.c */
  ampl_node   *dead;
  bool         releasing;

  ampl_storage *number_storage;         /* what plain numbers share */
  ampl_device  *device;                 /* where new tensors go */

  ampl_warn_fn  warn;
  void         *warn_ud;
  ampl_trace_fn trace;
  void         *trace_ud;
  struct ampl_anomaly *anomaly;         /* trace.c; NULL: off */
  ampl_cast_stats cast_stats;           /* of the weight-cast caches of all modes: autocast.c */

  /* the last error */
  ampl_status   code;
  const char   *op;                     /* name of the op that runs, "" */
  const char   *failed;                 /* what `op` was at the last error */
  const char   *composed;               /* name of the op whose compose runs, NULL: none */
  char          message[1024];
  char          text[8][208];           /* ring of small texts: the longest dtype and shape fit */
  unsigned      text_next;
};

/* Whether what runs is to end with AMPL_EINTR.  Between `whole++` and `whole--` it never is: a part that writes what
 * others hold is done as a whole, or not begun. */
enum { AMPL_ASKED = 1, AMPL_LOOKS_COUNT = 2 };
bool ampl_must_stop(ampl_ctx *ctx);
static inline bool ampl_should_stop(ampl_ctx *ctx) {
  return atomic_load_explicit(&ctx->interrupted, memory_order_relaxed) && ampl_must_stop(ctx);
}
/* Testing: the nth next look at whether to stop (from 1) finds the context interrupted. */
void ampl_interrupt_at(ampl_ctx *ctx, long n);

/* Without a context, as where there is none yet, an error is the thread's: ampl_error_message(NULL). */
ampl_status ampl_error_va(ampl_ctx *ctx, ampl_status s, const char *fmt, va_list args);
ampl_status ampl_error_null(ampl_ctx *ctx, const char *function, const char *what);
/* The first lines of what a host calls: EARG where a pointer that is needed is NULL.  `ctx`: NULL as long as none is at
 * hand. */
#define AMPL_NEED(ctx, pointer)                                                                                        \
  do {                                                                                                                 \
    if (!(pointer)) return ampl_error_null(ctx, __func__, #pointer);                                                   \
  } while (0)

/* Until the block ends, however it ends, `call` is what runs: errors name it. */
typedef struct ampl_named { ampl_ctx *ctx; const char *outer; } ampl_named;
static inline ampl_named ampl_name_call(ampl_ctx *ctx, const char *call) {
  const ampl_named n = {ctx, ctx->op};
  ctx->op = call;
  return n;
}
static inline void ampl_unname(ampl_named *n) { n->ctx->op = n->outer; }
#define AMPL_NAMED(ctx, call)                                                                                          \
  __attribute__((cleanup(ampl_unname), unused)) ampl_named named_ = ampl_name_call(ctx, call)

/* EARG for a list without room or with a negative count, and for an entry that is NULL (unless `holes`) or belongs to
 * another context.  `what` names the list. */
ampl_status ampl_check_list(ampl_ctx *ctx, const char *what, int64_t n, ampl_tensor *const *v, bool holes);
/* Each context counts and frees what is its own. */
#define AMPL_FOREIGN_TENSOR "a tensor belongs to another context; take its values over with ampl_to_bytes"

void        ampl_warning(ampl_ctx *ctx, const char *code, const char *fmt, ...) AMPL_PRINTF(3, 4);
char       *ampl_text(ampl_ctx *ctx);   /* the next buffer of the ring, sizeof ctx->text[0] */

/* ------------------------------------------------------------------------------------------------ tensors --------- */

/* A tensor as `m` says on `device`, uninitialised. */
ampl_status  ampl_tensor_new(ampl_ctx *ctx, ampl_device *device, const ampl_meta *m, ampl_kind kind, ampl_tensor **out);
ampl_status  ampl_tensor_new_default(ampl_ctx *ctx, ampl_device *device, const ampl_meta *m, ampl_tensor **out);
/* A tensor of m's shape and strides on x's storage, m->offset elements from x's first. */
ampl_tensor *ampl_tensor_view(ampl_ctx *ctx, const ampl_tensor *x, const ampl_meta *m);
/* x without its graph, on the same storage; NULL: out of memory. */
ampl_tensor *ampl_tensor_alias(const ampl_tensor *x);
/* A plain number; dtype f64 or i64. */
ampl_tensor *ampl_number_new(ampl_ctx *ctx, ampl_dtype t, double f, int64_t i);
double       ampl_number_value(const ampl_tensor *x);
ampl_status  ampl_host_scalar(const ampl_tensor *x, double *f, int64_t *i);   /* of a one-element tensor; waits */
void         ampl_layout_strides(ampl_meta *m);         /* fills strides from layout */
void         ampl_tensor_set_layout_flags(ampl_tensor *x);
/* x in another dtype, differentiable. */
ampl_status  ampl_cast_to(ampl_ctx *ctx, ampl_tensor *x, ampl_dtype t, ampl_tensor **out);
bool         ampl_tensor_overlaps_itself(const ampl_tensor *x);   /* broadcast: more names than places */

static inline ampl_ctx *ampl_ctx_of(const ampl_tensor *x) { return x->storage->ctx; }
static inline ampl_device *ampl_device_of(const ampl_tensor *x) { return x->storage->device; }
static inline bool ampl_wants_grad(const ampl_tensor *x) {
  return x && (x->node || (x->flags & AMPL_T_REQUIRES_GRAD));
}

#endif
