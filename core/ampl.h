/* ampl.h: the public interface of libampl.  What does not appear here is not published.
 *
 * ampl is a deep-learning training engine that fits inside another program: tensors, autograd, automatic mixed
 * precision, and kernels for the CPU and, through plug-ins, for other devices.
 *
 *   ampl_ctx *ctx;  ampl_tensor *x, *y;
 *   if (ampl_ctx_new(NULL, &ctx) != AMPL_OK) ...
 *   ampl_randn(ctx, AMPL_F32, 2, (int64_t[]){3, 4}, &x);
 *   if (ampl_run(ctx, "relu", &(ampl_value){.t = x}, 1, &y, 1) != AMPL_OK) puts(ampl_error_message(ctx));
 *   ampl_tensor_release(x);  ampl_tensor_release(y);  ampl_ctx_release(ctx);
 *
 * Errors.  Every function that can fail returns an ampl_status.  After a failure the text, which names the op, the
 * shapes and what to do, is in the context (ampl_error_message) until the next failure; out-parameters are then NULL,
 * unless said otherwise.  A failure for which there is no context (there is none yet, or NULL was given for it) leaves
 * its text with the thread: ampl_error_message(NULL).  The library never exits, aborts, prints or longjmps.
 *
 * NULL.  Where an object, a name or room for a result is needed, NULL gives EARG.  What returns no status takes it,
 * too: a question about NULL is answered by 0, false, NULL, "" or AMPL_DTYPE_NONE, and a request to NULL does nothing.
 * Pointers that may be NULL and mean something by it are told where they stand.  No other pointer is checked: it must
 * point to what its type says.
 *
 * Ownership.  `_new`, `_clone` and every out-parameter give the caller one reference, to be given back with
 * `_release`; plain accessors lend one.  All `_release` functions take NULL.
 *
 * Threads.  One context is used by one thread at a time, with everything that belongs to it.  Many contexts in many
 * threads are fine.  Contexts and tensors may be released in any order: a context lives until its last tensor is gone.
 *
 * Counting.  In C everything counts from 0: dimensions, positions, class labels.  Negative dimensions count from
 * the end.
 */
#ifndef AMPL_H
#define AMPL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define AMPL_API __attribute__((visibility("default")))
#define AMPL_PRINTF(f, a) __attribute__((format(printf, f, a)))
#else
#define AMPL_API
#define AMPL_PRINTF(f, a)
#endif

#define AMPL_VERSION_MAJOR 0
#define AMPL_VERSION_MINOR 1
#define AMPL_VERSION_PATCH 0
#define AMPL_VERSION_TEXT   "0.1.0"
#define AMPL_VERSION_NUMBER (AMPL_VERSION_MAJOR * 10000 + AMPL_VERSION_MINOR * 100 + AMPL_VERSION_PATCH)

/* The version of the library that runs, as "0.1.0" and as AMPL_VERSION_NUMBER: compare with the header's. */
AMPL_API const char *ampl_version(void);
AMPL_API int         ampl_version_number(void);

/* ------------------------------------------------------------------------------------------------ status ---------- */

/* Every error there is: name, meaning.  Appended to, never renumbered. */
#define AMPL_STATUS_MAP(X)                                                                                             \
  X(OK, "no error")                                                                                                    \
  X(EARG, "a wrong argument: kind, count, unknown option")                                                             \
  X(ESHAPE, "shapes do not fit")                                                                                       \
  X(EDTYPE, "a dtype that the op does not take")                                                                       \
  X(EDEVICE, "tensors on different devices, or no such device")                                                        \
  X(EINDEX, "a dimension, position or label out of range")                                                             \
  X(EVALUE, "a value that is not allowed")                                                                             \
  X(ESTATE, "a call that is out of order")                                                                             \
  X(EGRAD, "the graph cannot be built or walked")                                                                      \
  X(EFREED, "use of a freed tensor")                                                                                   \
  X(ENOMEM, "out of memory")                                                                                           \
  X(EUNSUPPORTED, "no kernel for this op, dtype and device")                                                           \
  X(EIO, "a file could not be read or written")                                                                        \
  X(EFORMAT, "a damaged file")                                                                                         \
  X(EINTR, "interrupted")                                                                                              \
  X(ELOST, "the device is lost")

typedef enum ampl_status {
#define AMPL_X(name, text) AMPL_##name,
  AMPL_STATUS_MAP(AMPL_X)
#undef AMPL_X
  AMPL_STATUS_COUNT
} ampl_status;

/* "ESHAPE" of AMPL_ESHAPE; "?" for a number that is none. */
AMPL_API const char *ampl_status_name(ampl_status s);

/* ------------------------------------------------------------------------------------------------ dtypes ---------- */

/* Every dtype there is: name, Lua name, bytes.  Appended to, never renumbered. */
#define AMPL_DTYPE_MAP(X)                                                                                              \
  X(F32, f32, 4) X(F16, f16, 2) X(BF16, bf16, 2) X(F64, f64, 8) X(I64, i64, 8) X(I32, i32, 4) X(U8, u8, 1)             \
  X(BOOL, bool, 1)

typedef enum ampl_dtype {
#define AMPL_X(NAME, name, bytes) AMPL_##NAME,
  AMPL_DTYPE_MAP(AMPL_X)
#undef AMPL_X
  AMPL_DTYPE_COUNT
} ampl_dtype;

#define AMPL_DTYPE_NONE (-1)    /* "not given", where a dtype may be left open */
#define AMPL_RANK_MAX   8       /* a tensor has at most this many dimensions */

AMPL_API const char *ampl_dtype_name(ampl_dtype t);
AMPL_API size_t      ampl_dtype_size(ampl_dtype t);
AMPL_API bool        ampl_dtype_is_float(ampl_dtype t);
/* AMPL_DTYPE_NONE when `name` is no dtype. */
AMPL_API int         ampl_dtype_from_name(const char *name);
/* PyTorch's type promotion of two tensors of any rank. */
AMPL_API ampl_dtype  ampl_dtype_promote(ampl_dtype a, ampl_dtype b);

/* ------------------------------------------------------------------------------------------------ context --------- */

typedef struct ampl_ctx    ampl_ctx;
typedef struct ampl_tensor ampl_tensor;
typedef struct ampl_op     ampl_op;

typedef struct ampl_ctx_options {
  size_t   struct_size;         /* sizeof(ampl_ctx_options); set by AMPL_CTX_OPTIONS_INIT */
  int      threads;             /* kernel threads; 0: OMP_NUM_THREADS, else as many as the machine (or cgroup) gives */
  /* bytes of tensors and scratch at most; 0: AMPL_MEMORY_LIMIT ("1.5g", "512MiB", "80%"), else 80 % of the machine (or
     cgroup) */
  size_t   memory_limit;
  uint64_t seed;                /* of the random stream */
} ampl_ctx_options;
#define AMPL_CTX_OPTIONS_INIT {sizeof(ampl_ctx_options), 0, 0, 0}

/* A context: error state, modes, random stream, allocator.  `options` may be NULL.  The environment is read here:
 * AMPL_MEMORY_LIMIT, AMPL_CPU (c, avx2 or avx512: the most that kernels may use) and AMPL_ALLOC (plain: no free lists,
 * for checkers of memory); EVALUE for one that says something else.  The text of an error is the thread's. */
AMPL_API ampl_status ampl_ctx_new(const ampl_ctx_options *options, ampl_ctx **out);
AMPL_API void        ampl_ctx_retain(ampl_ctx *ctx);
AMPL_API void        ampl_ctx_release(ampl_ctx *ctx);

/* What went wrong last: text, code, and the op's name ("" when it was no op).  NULL: in this thread, where there was no
 * context to say it in. */
AMPL_API const char *ampl_error_message(const ampl_ctx *ctx);
AMPL_API ampl_status ampl_error_code(const ampl_ctx *ctx);
AMPL_API const char *ampl_error_op(const ampl_ctx *ctx);

/* Ask the running call, and every following one, to end with AMPL_EINTR until ampl_interrupt_clear.
 * Async-signal-safe, and good from any thread.
 *
 * A call that ends so has done nothing: its outputs are NULL, an operand that it should have written holds what it held
 * (and has its version), and the random stream stands where it stood.  Calls look every few milliseconds.  What is
 * written in place is not cut short: a result that takes long is made apart first, then copied as a whole; an
 * optimiser's step and a gradient scaler's unscale are whole for the list they are given, running statistics change
 * when everything else is done; so a call may also end well after it was asked.  ampl_backward stops between ops:
 * gradients that it has added by then stay. */
AMPL_API void ampl_interrupt(ampl_ctx *ctx);
AMPL_API void ampl_interrupt_clear(ampl_ctx *ctx);
AMPL_API bool ampl_interrupted(const ampl_ctx *ctx);      /* asked, and not yet cleared */

/* Warnings (a scale at its floor ...) go to this callback; without one they are dropped.  `code` is one word. */
typedef void (*ampl_warn_fn)(void *ud, const char *code, const char *message);
AMPL_API void ampl_on_warning(ampl_ctx *ctx, ampl_warn_fn fn, void *ud);

AMPL_API void ampl_set_threads(ampl_ctx *ctx, int n);   /* n < 1 counts as 1, n > 4096 as 4096 */
AMPL_API int  ampl_threads(const ampl_ctx *ctx);

/* ------------------------------------------------------------------------------------------------ memory ---------- */

/* What memory is used for; the breakdown of an out-of-memory error. */
#define AMPL_KIND_MAP(X) X(TENSOR, tensors) X(GRAD, gradients) X(SAVED, saved) X(LOW_COPY, low_copy) X(SCRATCH, scratch)
typedef enum ampl_kind {
#define AMPL_X(NAME, name) AMPL_KIND_##NAME,
  AMPL_KIND_MAP(AMPL_X)
#undef AMPL_X
  AMPL_KIND_COUNT
} ampl_kind;

typedef struct ampl_memory_info {
  size_t live, peak, cached, limit;             /* bytes */
  size_t by_kind[AMPL_KIND_COUNT];              /* live bytes */
  size_t tensors, storages, nodes;              /* numbers of objects alive */
} ampl_memory_info;

AMPL_API void ampl_memory(const ampl_ctx *ctx, ampl_memory_info *out);
AMPL_API void ampl_memory_reset_peak(ampl_ctx *ctx);
AMPL_API void ampl_memory_set_limit(ampl_ctx *ctx, size_t bytes);
/* For hosts with a garbage collector, which cannot see tensors: whether a soft maximum of live bytes is passed, so
 * that a full collection is due, and that one was done (the maximum is raised when little came back). */
AMPL_API bool ampl_memory_pressed(const ampl_ctx *ctx);
AMPL_API void ampl_memory_collected(ampl_ctx *ctx);
AMPL_API void ampl_memory_trim(ampl_ctx *ctx);          /* gives cached blocks back to the system */

/* Called when an allocation has failed or the soft maximum is passed: a host with a garbage collector frees what it
 * can.  Called at most once for each failing allocation, never re-entered. */
typedef void (*ampl_collect_fn)(void *ud);
AMPL_API void ampl_on_collect(ampl_ctx *ctx, ampl_collect_fn fn, void *ud);

/* ------------------------------------------------------------------------------------------------ tensors --------- */

AMPL_API ampl_status ampl_empty(ampl_ctx *ctx, ampl_dtype t, int ndim, const int64_t *shape, ampl_tensor **out);
AMPL_API ampl_status ampl_zeros(ampl_ctx *ctx, ampl_dtype t, int ndim, const int64_t *shape, ampl_tensor **out);
AMPL_API ampl_status ampl_full(ampl_ctx *ctx, ampl_dtype t, int ndim, const int64_t *shape, double v,
                               ampl_tensor **out);
AMPL_API ampl_status ampl_randn(ampl_ctx *ctx, ampl_dtype t, int ndim, const int64_t *shape, ampl_tensor **out);
/* A copy of `bytes` at `data`, row-major; `bytes` must be exactly what the shape needs. */
AMPL_API ampl_status ampl_from_bytes(ampl_ctx *ctx, ampl_dtype t, int ndim, const int64_t *shape, const void *data,
                                     size_t bytes, ampl_tensor **out);
/* Borrows the host's row-major buffer.  `release(ud)` is called once, when the last tensor on it is gone, also when
 * this call fails.  `release` may be NULL. */
AMPL_API ampl_status ampl_from_memory(ampl_ctx *ctx, ampl_dtype t, int ndim, const int64_t *shape, void *data,
                                      void (*release)(void *ud), void *ud, ampl_tensor **out);

AMPL_API void ampl_tensor_retain(ampl_tensor *x);
AMPL_API void ampl_tensor_release(ampl_tensor *x);

AMPL_API int            ampl_ndim(const ampl_tensor *x);
AMPL_API const int64_t *ampl_shape(const ampl_tensor *x);       /* ampl_ndim numbers */
AMPL_API const int64_t *ampl_strides(const ampl_tensor *x);     /* in elements */
AMPL_API int64_t        ampl_numel(const ampl_tensor *x);
AMPL_API ampl_dtype     ampl_tensor_dtype(const ampl_tensor *x);
AMPL_API const char    *ampl_tensor_device(const ampl_tensor *x);   /* "cpu", "cuda:1" */
AMPL_API bool           ampl_is_contiguous(const ampl_tensor *x);
/* The first element, on the tensor's device. */
AMPL_API void          *ampl_data(const ampl_tensor *x);
/* Copies the elements, row-major, into `dst` of `bytes` (exactly what is needed): waits for the device. */
AMPL_API ampl_status    ampl_to_bytes(const ampl_tensor *x, void *dst, size_t bytes);
/* The one element, as a double. */
AMPL_API ampl_status    ampl_item(const ampl_tensor *x, double *out);
/* The same, and as an integer where the dtype is one (else 0). */
AMPL_API ampl_status    ampl_item_any(const ampl_tensor *x, double *f, int64_t *i);

/* ------------------------------------------------------------------------------------------------ ops ------------- */

typedef struct ampl_ints { const int64_t *v; int64_t n; } ampl_ints;
typedef struct ampl_list { ampl_tensor *const *v; int64_t n; } ampl_list;

/* One argument of an op.  The op's record says which member counts; see AMPL_ARG_MAP in core/op.h. */
typedef union ampl_value {
  ampl_tensor *t;               /* a tensor; NULL: absent */
  ampl_list    ts;              /* a list of tensors */
  int64_t      i;               /* integers, booleans, dtypes, places in an ENUM */
  double       f;
  ampl_ints    l;               /* a list of integers */
  const char  *s;
} ampl_value;

/* Ops describe themselves: what follows is what a binding, a document or a host's dialog is made from. */

/* Every kind of argument: name, what a message calls it.  The comment says which member of ampl_value counts. */
#define AMPL_ARG_MAP(X)                                                                                                \
  X(TENSOR, "a tensor or a number")     /* t */                                                                        \
  X(TENSOR_OPT, "a tensor or nothing")  /* t, NULL: absent */                                                          \
  X(TENSORS, "a list of tensors")       /* ts; at most one in a record; entries may be NULL with AMPL_HOLES */         \
  X(DIM, "a dimension")                 /* i; counted from the operand's rank */                                       \
  X(DIM_NEW, "a dimension")             /* i; of an output with one dimension more */                                  \
  X(DIMS, "a dimension or a list of them")   /* l; n = 0: none given or an empty list, all dimensions */               \
  X(INDEX, "a position")                /* i; from 0, negative from the end: infer resolves it */                      \
  X(INT, "an integer")                  /* i */                                                                        \
  X(SIZES, "an integer or a list")      /* l */                                                                        \
  X(PADDING, "an integer, a list, \"valid\" or \"same\"")   /* l; "valid": n = 0; "same": n = -1 */                    \
  X(FLOAT, "a number")                  /* f */                                                                        \
  X(BOOL, "a boolean")                  /* i */                                                                        \
  X(ENUM, "a name")                     /* i: the place in `choices` */                                                \
  X(DTYPE, "a dtype")                   /* i; AMPL_DTYPE_NONE: absent */                                               \
  X(STRING, "a string")                 /* s */                                                                        \
  X(DEVICE, "a device")                 /* s; NULL: the context's current one */

typedef enum ampl_arg_kind {
#define AMPL_X(name, text) AMPL_ARG_##name,
  AMPL_ARG_MAP(AMPL_X)
#undef AMPL_X
} ampl_arg_kind;

enum {                          /* ampl_arg.flags */
  AMPL_REQUIRED = 1,            /* has no default */
  AMPL_VARARG   = 2,            /* may be given as loose integers: zeros(2, 3) */
  AMPL_LABELS   = 4,            /* a tensor of positions or class labels: from 1 in Lua, negative ones unchanged */
  AMPL_COUNT1   = 8,            /* an INT or SIZES that counts from 1 in Lua (ignore_index, blank, padding_idx) */
  AMPL_NO_NUMBER = 16,          /* a TENSOR that a plain number may not stand for */
  /* a TENSOR that promotion and autocast leave alone: a mask, an index, running statistics */
  AMPL_AS_IS    = 32,
  /* an INT that ends a range: left out in C, the last one taken in Lua, where it counts from 1 (3 is 3, -1 is absent,
     -2 is -1); "end" is an alias of its name there */
  AMPL_STOP     = 64,
  AMPL_HOLES    = 128,          /* TENSORS of which some may be absent (NULL) */
  AMPL_REPEATS  = 256           /* DIMS that may name a dimension more than once */
};

/* The value of an argument that is not given, where it is an integer (INT, INDEX, DIM, BOOL, ENUM, DTYPE): its default
 * counts.  A FLOAT without a default is absent as NAN; where there is one, NAN is a number like others. */
#define AMPL_ABSENT   INT64_MIN
#define AMPL_INTS_MAX 64        /* the numbers in a list of integers at most */

typedef struct ampl_arg {
  const char   *name;
  uint8_t       kind;
  uint16_t      flags;
  ampl_value    def;
  const char   *choices;        /* ENUM: "mean|sum|none" */
  const char   *doc;
} ampl_arg;

enum {                          /* ampl_op.flags */
  AMPL_OP_VIEW        = 1,      /* output 0 is a view of operand 0: infer gives strides and offset; no kernel */
  AMPL_OP_INPLACE     = 2,      /* has an in-place form `name_` that writes operand 0 */
  AMPL_OP_RANDOM      = 4,      /* draws from the context's stream */
  AMPL_OP_ELEMENTWISE = 8,      /* operands broadcast and promote together; strides are kept; `infer`, where there is
                                   one, changes or refuses the result.  A plain
                                   number (AMPL_T_NUMBER) arrives at the kernel as f64 where it computes in floats, else
                                   as i64: x * 1e-9 is no 0 in f16 */
  AMPL_OP_NO_GRAD     = 16,     /* has no gradient by nature: integer or bool results, creators */
  AMPL_OP_DENSE       = 32,     /* its kernels want every operand row-major without gaps */
  AMPL_OP_DYNAMIC     = 64,     /* the shapes of outputs depend on data: the kernel makes them */
  AMPL_OP_INTERNAL    = 128,    /* exists for backward or for other ops: no Lua name; it trusts its arguments, so
                                   ampl_op_find does not know it and ampl_run_op refuses it, but for AMPL_OP_HOST */
  AMPL_OP_CROSS       = 256,    /* operand i is saved only for the gradients of the other operands, as in mul */
  AMPL_OP_CREATOR     = 512,    /* makes a tensor from nothing: takes dtype, device and requires_grad */
  AMPL_OP_PROMOTE     = 1024,   /* operands are brought to one dtype without broadcasting (cat, where ...) */
  AMPL_OP_METHOD_ONLY = 2048,   /* x:name() and no function */
  AMPL_OP_F_ONLY      = 4096,   /* only in ampl.nn.functional */
  AMPL_OP_MUTATES     = 8192,   /* writes some of its operands (batch_norm's running statistics) */
  AMPL_OP_FLOAT_OUT   = 16384,  /* element-wise: integer operands are brought to f32 (exp, div, sigmoid ...) */
  AMPL_OP_BOOL_OUT    = 32768,  /* element-wise: the result is bool (eq, isnan ...) */
  AMPL_OP_HOST        = 65536   /* internal, yet for hosts: an optimiser's step, a cast.  It checks its arguments */
};

AMPL_API int             ampl_op_number(void);
AMPL_API const ampl_op  *ampl_op_at(int i);                     /* 0 <= i < ampl_op_number() */
AMPL_API const ampl_op  *ampl_op_find(const char *name);        /* NULL: there is none that a host may call */
AMPL_API const char     *ampl_op_name(const ampl_op *op);
AMPL_API const char     *ampl_op_doc(const ampl_op *op);
AMPL_API const ampl_arg *ampl_op_args(const ampl_op *op);       /* ends at name == NULL */
AMPL_API int             ampl_op_nout(const ampl_op *op);
AMPL_API unsigned        ampl_op_flags(const ampl_op *op);      /* AMPL_OP_* */
AMPL_API bool            ampl_op_has_backward(const ampl_op *op);
/* of autocast: "LOW" ... and what it means */
AMPL_API const char     *ampl_op_category(const ampl_op *op, const char **why);

/* Runs the op `name` as its record says: arguments in the record's order, missing ones at the end take their
 * defaults.  `out` gets up to `nout` results, one reference each.  EARG when there is no such op. */
AMPL_API ampl_status ampl_run(ampl_ctx *ctx, const char *name, const ampl_value *args, int nargs, ampl_tensor **out,
                              int nout);
/* The same without the look-up. */
AMPL_API ampl_status ampl_run_op(ampl_ctx *ctx, const ampl_op *op, const ampl_value *args, int nargs, ampl_tensor **out,
                                 int nout);
/* The in-place form: the result is written into the first tensor operand.  One that is written with what its own graph
 * comes from (y = w * x, then x += y) is held by that graph, which has no backward, for good: write a copy. */
AMPL_API ampl_status ampl_run_op_inplace(ampl_ctx *ctx, const ampl_op *op, const ampl_value *args, int nargs);
/* A plain number as an operand: it promotes weakly, as a number in an expression does. */
AMPL_API ampl_status ampl_number(ampl_ctx *ctx, double v, ampl_tensor **out);
AMPL_API ampl_status ampl_integer(ampl_ctx *ctx, int64_t v, ampl_tensor **out);
AMPL_API ampl_status ampl_boolean(ampl_ctx *ctx, bool v, ampl_tensor **out);

/* What the first element of a dimension is called in index tensors, labels and messages: 0, or 1 (any other number) for
 * a language that counts from 1.  Returns what was set before. */
AMPL_API int64_t ampl_set_index_base(ampl_ctx *ctx, int64_t base);

/* ------------------------------------------------------------------------------------------------ autograd -------- */

AMPL_API ampl_status ampl_set_requires_grad(ampl_tensor *x, bool on);   /* EGRAD: not a leaf, not a float */
AMPL_API bool        ampl_requires_grad(const ampl_tensor *x);
AMPL_API bool        ampl_is_leaf(const ampl_tensor *x);
AMPL_API ampl_tensor *ampl_grad_of(const ampl_tensor *x);               /* lent; NULL: none */
/* NULL: none.  Of x's shape and dtype; a f32 gradient suits a 16-bit tensor, too. */
AMPL_API ampl_status ampl_set_grad(ampl_tensor *x, ampl_tensor *grad);

#define AMPL_RETAIN_GRAPH 1     /* keep what backward needs, so that it can run again */
#define AMPL_CREATE_GRAPH 2     /* record backward itself: gradients of gradients */
#define AMPL_ALLOW_UNUSED 4     /* ampl_gradients: an input that the outputs do not depend on gets NULL, not an error */

/* d(sum of x * grad)/d(every leaf), added to the leaves' gradients.  `grad` may be NULL when x has one element. */
AMPL_API ampl_status ampl_backward(ampl_tensor *x, ampl_tensor *grad, unsigned flags);
/* The gradients of `outputs` with regard to `inputs`, not accumulated anywhere; out: one reference or NULL each.
 * grad_outputs, or single entries of it, may be NULL. */
AMPL_API ampl_status ampl_gradients(ampl_ctx *ctx, int nout, ampl_tensor *const *outputs,
                                    ampl_tensor *const *grad_outputs, int nin, ampl_tensor *const *inputs,
                                    unsigned flags, ampl_tensor **out);

/* Whether ops record a graph.  Returns what was set before. */
AMPL_API bool ampl_set_grad_enabled(ampl_ctx *ctx, bool on);
AMPL_API bool ampl_grad_enabled(const ampl_ctx *ctx);

/* ------------------------------------------------------------------------------------------------ autocast -------- */

/* Enters a region in which ops cast their operands by category; `dtype` is the low one (AMPL_DTYPE_NONE: the device's
 * default).  Regions nest; ampl_autocast_leave ends the innermost.  The casts of weights are kept until the outermost
 * region ends. */
AMPL_API ampl_status ampl_autocast_enter(ampl_ctx *ctx, bool enabled, int dtype, bool cache);
AMPL_API void        ampl_autocast_leave(ampl_ctx *ctx);

/* ------------------------------------------------------------------------------------------------ modes ----------- */

/* Grad mode, inference mode and autocast regions form a stack, and each stack belongs to a thread of control.  A
 * context has one of its own; a host with coroutines gives each of them another and switches. */
typedef struct ampl_modes ampl_modes;
AMPL_API ampl_status ampl_modes_new(ampl_ctx *ctx, ampl_modes **out);
AMPL_API void        ampl_modes_free(ampl_ctx *ctx, ampl_modes *m);
/* NULL: the context's own; what was used before */
AMPL_API ampl_modes *ampl_modes_use(ampl_ctx *ctx, ampl_modes *m);

/* Enter a mode; its number, 0 after an error.  A number leaves once, from wherever its entry stands. */
AMPL_API uint64_t ampl_enter_grad(ampl_ctx *ctx, bool on);
AMPL_API uint64_t ampl_enter_inference(ampl_ctx *ctx, bool on);
typedef struct ampl_autocast_options {
  const char        *device;            /* "cpu", "cuda": only there; NULL: everywhere */
  int                dtype;             /* AMPL_DTYPE_NONE: the device's default */
  bool               enabled;
  int                cache;             /* 0, 1; -1: as outside */
  const char *const *f32, *const *low;  /* ops whose category is overridden: names, NULL at the end; or NULL */
} ampl_autocast_options;
AMPL_API uint64_t ampl_enter_autocast(ampl_ctx *ctx, const ampl_autocast_options *options);
/* Leaves the entry `id` of `m` (NULL: the modes in use); false: it was left already. */
AMPL_API bool     ampl_leave(ampl_ctx *ctx, ampl_modes *m, uint64_t id);
AMPL_API bool     ampl_inference_enabled(const ampl_ctx *ctx);
/* Whether a region is in force on `device` (NULL: "cpu"), and its low dtype. */
AMPL_API bool     ampl_autocast_enabled(ampl_ctx *ctx, const char *device);
AMPL_API int      ampl_autocast_low_dtype(ampl_ctx *ctx, const char *device);
/* The caches of weight casts, of all modes together: hits and casts since the start, what they hold now. */
typedef struct ampl_cast_stats { int64_t hits, casts, entries, bytes; } ampl_cast_stats;
AMPL_API void     ampl_autocast_cache_stats(const ampl_ctx *ctx, ampl_cast_stats *out);
AMPL_API void     ampl_autocast_clear_cache(ampl_ctx *ctx);

/* ------------------------------------------------------------------------------------------------ guests ---------- */

/* Anomaly mode asks for the place of a forward call: file and line, or what the language has. */
typedef void (*ampl_where_fn)(void *ud, char *text, size_t n);

/* A guest is a language on the context.  While one of its calls runs, the context has the guest's modes, counts as the
 * guest does, and calls the guest back; before and after, everything is the host's.  Several may share a context, and
 * call each other. */
typedef struct ampl_guest {
  ampl_modes     *modes;        /* of the thread of control that calls; NULL: the context's own */
  int64_t         index_base;   /* see ampl_set_index_base */
  ampl_warn_fn    warn;         /* NULL: the context's (ampl_on_warning ...) */
  ampl_collect_fn collect;
  ampl_where_fn   where;
  void           *ud;
  const char         *op;       /* the library's */
  struct ampl_guest  *next;
} ampl_guest;

/* A call of g begins (NULL: a call of the host's, inside a guest's); returns whose call it is in.  `g` stays the
 * caller's, and where it is, until the call ends. */
AMPL_API ampl_guest *ampl_guest_enter(ampl_ctx *ctx, ampl_guest *g);
/* It ends.  Returns ampl_memory_pressed(ctx). */
AMPL_API bool        ampl_guest_leave(ampl_ctx *ctx, ampl_guest *before);
/* From now on g is asked to collect when an allocation fails, and hears the warnings of the host's calls where the host
 * has no callback. */
AMPL_API void        ampl_guest_join(ampl_ctx *ctx, ampl_guest *g);
AMPL_API void        ampl_guest_part(ampl_ctx *ctx, ampl_guest *g);

/* ------------------------------------------------------------------------------------------------ devices --------- */

AMPL_API int         ampl_device_count(void);
AMPL_API const char *ampl_device_name(int i);           /* NULL: there is no i-th */
/* The i-th backend that was looked at: its file and, if it was refused, why ("" if not); false: there is no i-th. */
AMPL_API bool        ampl_backend_candidate(int i, const char **name, const char **why);
AMPL_API ampl_status ampl_synchronize(ampl_ctx *ctx);
/* The CPU's settings, for the whole process: the instruction set in use ("c", "avx2", "avx512"), and two switches, set
 * by 0 or 1 and only read by -1; what holds after.  See kernels/cpu/cpu.h. */
AMPL_API const char *ampl_cpu_isa_text(void);
AMPL_API bool        ampl_cpu_use_bf16_dot(int on);
AMPL_API bool        ampl_cpu_use_winograd(int on);
AMPL_API ampl_status ampl_to_device(ampl_tensor *x, const char *device, ampl_tensor **out);

/* ------------------------------------------------------------------------------------------------ hooks ----------- */

/* A hook sees, and may replace, the gradient of x on its way: *replacement is one reference or NULL. */
typedef ampl_status (*ampl_hook_fn)(void *ud, ampl_ctx *ctx, ampl_tensor *dy, ampl_tensor **replacement);
AMPL_API ampl_status ampl_register_hook(ampl_tensor *x, ampl_hook_fn fn, void (*release)(void *ud), void *ud,
                                        uint64_t *id);
AMPL_API void        ampl_remove_hook(ampl_tensor *x, uint64_t id);
AMPL_API ampl_status ampl_retain_grad(ampl_tensor *x);

/* A function of the host's as a node of the graph.  dx[i]: one reference or NULL for each operand with need[i].
 * release: called once: after a backward that keeps no graph, and then the node cannot be walked again, or when the
 * node dies.  With `drop`, such a backward calls drop(ud) instead, which lets go of what only backward reads.  The node
 * can be walked again, so `backward` itself answers for what is missing; release comes when the node dies. */
typedef struct ampl_function {
  const char *name;
  ampl_status (*backward)(void *ud, ampl_ctx *ctx, int ny, ampl_tensor *const *dy, int nx, ampl_tensor **dx,
                          const bool *need);
  void (*release)(void *ud);
  void *ud;
  void (*drop)(void *ud);
} ampl_function;
/* Makes outputs y, fresh tensors without a graph, the results of f on operands x. */
AMPL_API ampl_status ampl_record_function(ampl_ctx *ctx, const ampl_function *f, int nx, ampl_tensor *const *x, int ny,
                                          ampl_tensor **y);
/* x without its graph, on the same memory. */
AMPL_API ampl_status ampl_detach(ampl_tensor *x, ampl_tensor **out);
AMPL_API uint32_t    ampl_tensor_version(const ampl_tensor *x);
/* Sets the context's error as ampl's own functions do, for callbacks; returns `s`. */
AMPL_API ampl_status ampl_fail(ampl_ctx *ctx, ampl_status s, const char *message);

/* Anomaly mode: backward stops at the first bad gradient (with `scaled`: warns), naming the op and, through `where`,
 * the place of its forward call (a guest's own `where` for calls of the guest). */
AMPL_API ampl_status ampl_set_anomaly(ampl_ctx *ctx, bool on, bool nan, bool inf, bool scaled, ampl_where_fn where,
                                      void *ud);
AMPL_API bool        ampl_anomaly_enabled(const ampl_ctx *ctx);

/* ------------------------------------------------------------------------------------------------ random ---------- */

AMPL_API void ampl_manual_seed(ampl_ctx *ctx, uint64_t seed);          /* and the stream starts anew */
AMPL_API void ampl_random_state(const ampl_ctx *ctx, uint64_t *seed, uint64_t *offset);
AMPL_API void ampl_set_random_state(ampl_ctx *ctx, uint64_t seed, uint64_t offset);

/* ------------------------------------------------------------------------------------------------ amp ------------- */

/* The gradient scaler.  An iteration is: scale the loss, run backward, for each optimiser ask ampl_scaler_step_allowed
 * and, if so, step it and say so by ampl_scaler_stepped, then ampl_scaler_update once.
 *
 *   ampl_scaler_scale(s, loss, &scaled);  ampl_backward(scaled, NULL, 0);
 *   ampl_scaler_step_allowed(s, key, &params, &allowed);
 *   if (allowed) { my_step(...);  ampl_scaler_stepped(s, key); }
 *   ampl_scaler_update(s);
 *
 * Scale, growth tracker and the flags for overflows live on the device of the first loss; step_allowed waits for one
 * flag, and an overflow makes update wait, too.  Gradients of a step that was not allowed stay readable; the next
 * backward that reaches their parameter replaces them, and an unscale before that drops them. */
typedef struct ampl_scaler ampl_scaler;

/* What happens when an overflow would take the scale below min_scale. */
#define AMPL_ON_FLOOR_MAP(X) X(WARN, warn) X(RAISE, raise) X(KEEP, keep)
typedef enum ampl_on_floor {
#define AMPL_X(NAME, name) AMPL_ON_FLOOR_##NAME,
  AMPL_ON_FLOOR_MAP(AMPL_X)
#undef AMPL_X
  AMPL_ON_FLOOR_COUNT
} ampl_on_floor;

typedef struct ampl_scaler_options {
  size_t  struct_size;          /* sizeof(ampl_scaler_options); set by AMPL_SCALER_OPTIONS_INIT */
  bool    enabled;              /* false: scale gives the loss back, every step is allowed */
  double  init_scale, growth_factor, backoff_factor;
  int64_t growth_interval;      /* iterations without an overflow until the scale grows */
  double  min_scale, max_scale;
  int64_t hysteresis;           /* the scale falls at the nth overflow in a row */
  int64_t max_consecutive_skips;        /* so many iterations with an overflow in a row are an error; 0: no limit */
  int     on_floor;             /* ampl_on_floor */
} ampl_scaler_options;
#define AMPL_SCALER_OPTIONS_INIT {sizeof(ampl_scaler_options), true, 65536, 2, 0.5, 2000, 0x1p-126, 0x1p127, 1, 0, 0}

/* The parameters of one optimiser; names, and single entries of it, may be NULL. */
typedef struct ampl_params {
  ampl_tensor *const *v;
  const char *const  *names;
  int64_t             n;
} ampl_params;

typedef struct ampl_scaler_state {
  double  scale, growth_factor, backoff_factor;
  int64_t growth_interval, growth_tracker;
  int64_t hysteresis_left;      /* overflows until the scale falls */
  int64_t taken, skipped, calibrating, consecutive_skips;        /* as in ampl_scaler_stats */
} ampl_scaler_state;

typedef struct ampl_scaler_stats {
  int64_t     taken, skipped;   /* steps, of all optimisers */
  int64_t     calibrating;      /* of those skipped: before the first one was taken, while the scale came down */
  int64_t     consecutive_skips;        /* iterations in a row, up to now, with an overflow */
  bool        last_taken;       /* the last step was taken (also before the first one) */
  int64_t     skip_step;        /* the last skip: which step it was, from 1 (0: there was none), ... */
  int64_t     skip_parameter;   /* ... the first parameter with an inf or a NaN in its gradient, ... */
  const char *skip_name;        /* ... its name or NULL, good until the next skip, ... */
  double      skip_scale;       /* ... and the scale then */
} ampl_scaler_stats;

/* `options` may be NULL.  EVALUE for a value out of its range. */
AMPL_API ampl_status ampl_scaler_new(ampl_ctx *ctx, const ampl_scaler_options *options, ampl_scaler **out);
AMPL_API void        ampl_scaler_retain(ampl_scaler *s);
AMPL_API void        ampl_scaler_release(ampl_scaler *s);

/* A name for an optimiser; none is given twice, so a new optimiser at a dead one's address inherits nothing. */
AMPL_API uint64_t ampl_scaler_key(ampl_scaler *s);

/* x * scale; f32 at least, in any rank. */
AMPL_API ampl_status ampl_scaler_scale(ampl_scaler *s, ampl_tensor *x, ampl_tensor **out);
/* Divides the gradients of `p` by the scale, each once until backward writes it again, and looks for inf and NaN.  A
 * f16 gradient becomes f32.  ESTATE when `key` was unscaled or stepped in this iteration, or nothing was scaled yet. */
AMPL_API ampl_status ampl_scaler_unscale(ampl_scaler *s, uint64_t key, const ampl_params *p);
/* Whether the optimiser may step: unscales, if that was not done, and waits for the flag. */
AMPL_API ampl_status ampl_scaler_step_allowed(ampl_scaler *s, uint64_t key, const ampl_params *p, bool *allowed);
/* The optimiser has stepped. */
AMPL_API ampl_status ampl_scaler_stepped(ampl_scaler *s, uint64_t key);
/* Ends the iteration: the scale backs off or grows, and the optimisers' records are forgotten. */
AMPL_API ampl_status ampl_scaler_update(ampl_scaler *s);
/* The same with a scale of the caller's; the growth tracker and hysteresis start over. */
AMPL_API ampl_status ampl_scaler_set_scale(ampl_scaler *s, double scale);

/* For optimisers that evaluate the loss themselves, maybe several times a step: takes back what this iteration knows of
 * `key`, before the next backward, which then replaces the gradients of `p` (NULL: adds to them).  With `back_off` the
 * scale falls at once, as update would do it.  ESTATE when `key` was stepped. */
AMPL_API ampl_status ampl_scaler_again(ampl_scaler *s, uint64_t key, const ampl_params *p, bool back_off);
/* After unscale: whether it met an inf or a NaN (waits); the place of the first parameter that held one, else -1. */
AMPL_API ampl_status ampl_scaler_found(ampl_scaler *s, uint64_t key, int64_t *parameter);
/* Ends the step of `key` as skipped although nothing asked step_allowed. */
AMPL_API ampl_status ampl_scaler_skip(ampl_scaler *s, uint64_t key, const ampl_params *p);

/* 1 when disabled; waits. */
AMPL_API ampl_status ampl_scaler_get_scale(ampl_scaler *s, double *out);
AMPL_API void        ampl_scaler_get_options(const ampl_scaler *s, ampl_scaler_options *out);
/* All but `enabled` and init_scale may be changed at any time. */
AMPL_API ampl_status ampl_scaler_set_options(ampl_scaler *s, const ampl_scaler_options *options);
AMPL_API ampl_status ampl_scaler_get_state(ampl_scaler *s, ampl_scaler_state *out);
AMPL_API ampl_status ampl_scaler_set_state(ampl_scaler *s, const ampl_scaler_state *state);
AMPL_API void        ampl_scaler_get_stats(const ampl_scaler *s, ampl_scaler_stats *out);

#ifdef __cplusplus
}
#endif
#endif
