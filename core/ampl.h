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
 * unless said otherwise.  The library never exits, aborts, prints or longjmps.
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
  int      threads;             /* kernel threads; 0: as many as the machine (or cgroup) gives */
  size_t   memory_limit;        /* bytes of tensors and scratch at most; 0: AMPL_MEMORY_LIMIT, else 80 % of the machine */
  uint64_t seed;                /* of the random stream */
} ampl_ctx_options;
#define AMPL_CTX_OPTIONS_INIT {sizeof(ampl_ctx_options), 0, 0, 0}

/* A context: error state, modes, random stream, allocator.  `options` may be NULL. */
AMPL_API ampl_status ampl_ctx_new(const ampl_ctx_options *options, ampl_ctx **out);
AMPL_API void        ampl_ctx_retain(ampl_ctx *ctx);
AMPL_API void        ampl_ctx_release(ampl_ctx *ctx);

/* What went wrong last: text, code, and the op's name ("" when it was no op). */
AMPL_API const char *ampl_error_message(const ampl_ctx *ctx);
AMPL_API ampl_status ampl_error_code(const ampl_ctx *ctx);
AMPL_API const char *ampl_error_op(const ampl_ctx *ctx);

/* Ask the running call, and every following one, to end with AMPL_EINTR until ampl_interrupt_clear.
 * Async-signal-safe, and good from any thread. */
AMPL_API void ampl_interrupt(ampl_ctx *ctx);
AMPL_API void ampl_interrupt_clear(ampl_ctx *ctx);
AMPL_API bool ampl_interrupted(const ampl_ctx *ctx);      /* asked, and not yet cleared */

/* Warnings (a scale at its floor ...) go to this callback; without one they are dropped.  `code` is one word. */
typedef void (*ampl_warn_fn)(void *ud, const char *code, const char *message);
AMPL_API void ampl_on_warning(ampl_ctx *ctx, ampl_warn_fn fn, void *ud);

AMPL_API void ampl_set_threads(ampl_ctx *ctx, int n);   /* n < 1 counts as 1 */
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
AMPL_API void ampl_memory_trim(ampl_ctx *ctx);          /* gives cached blocks back to the system */

/* Called when an allocation has failed or the soft maximum is passed: a host with a garbage collector frees what it
 * can.  Called at most once for each failing allocation, never re-entered. */
typedef void (*ampl_collect_fn)(void *ud);
AMPL_API void ampl_on_collect(ampl_ctx *ctx, ampl_collect_fn fn, void *ud);

/* ------------------------------------------------------------------------------------------------ tensors --------- */

AMPL_API ampl_status ampl_empty(ampl_ctx *ctx, ampl_dtype t, int ndim, const int64_t *shape, ampl_tensor **out);
AMPL_API ampl_status ampl_zeros(ampl_ctx *ctx, ampl_dtype t, int ndim, const int64_t *shape, ampl_tensor **out);
AMPL_API ampl_status ampl_full(ampl_ctx *ctx, ampl_dtype t, int ndim, const int64_t *shape, double v, ampl_tensor **out);
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

/* Runs the op `name` as its record says: arguments in the record's order, missing ones at the end take their
 * defaults.  `out` gets up to `nout` results, one reference each.  EARG when there is no such op. */
AMPL_API ampl_status ampl_run(ampl_ctx *ctx, const char *name, const ampl_value *args, int nargs, ampl_tensor **out,
                              int nout);
/* The same without the look-up. */
AMPL_API const ampl_op *ampl_op_find(const char *name);
AMPL_API ampl_status    ampl_run_op(ampl_ctx *ctx, const ampl_op *op, const ampl_value *args, int nargs,
                                    ampl_tensor **out, int nout);

/* ------------------------------------------------------------------------------------------------ autograd -------- */

AMPL_API ampl_status ampl_set_requires_grad(ampl_tensor *x, bool on);   /* EGRAD: not a leaf, not a float */
AMPL_API bool        ampl_requires_grad(const ampl_tensor *x);
AMPL_API bool        ampl_is_leaf(const ampl_tensor *x);
AMPL_API ampl_tensor *ampl_grad_of(const ampl_tensor *x);               /* lent; NULL: none */
AMPL_API ampl_status ampl_set_grad(ampl_tensor *x, ampl_tensor *grad);  /* NULL: none */

#define AMPL_RETAIN_GRAPH 1     /* keep what backward needs, so that it can run again */
#define AMPL_CREATE_GRAPH 2     /* record backward itself: gradients of gradients */
#define AMPL_ALLOW_UNUSED 4     /* ampl_gradients: an input that the outputs do not depend on gets NULL, not an error */

/* d(sum of x * grad)/d(every leaf), added to the leaves' gradients.  `grad` may be NULL when x has one element. */
AMPL_API ampl_status ampl_backward(ampl_tensor *x, ampl_tensor *grad, unsigned flags);
/* The gradients of `outputs` with regard to `inputs`, not accumulated anywhere; out: one reference or NULL each.
 * grad_outputs, or single entries of it, may be NULL. */
AMPL_API ampl_status ampl_gradients(ampl_ctx *ctx, int nout, ampl_tensor *const *outputs, ampl_tensor *const *grad_outputs,
                               int nin, ampl_tensor *const *inputs, unsigned flags, ampl_tensor **out);

/* Whether ops record a graph.  Returns what was set before. */
AMPL_API bool ampl_set_grad_enabled(ampl_ctx *ctx, bool on);
AMPL_API bool ampl_grad_enabled(const ampl_ctx *ctx);

/* ------------------------------------------------------------------------------------------------ autocast -------- */

/* Enters a region in which ops cast their operands by category; `dtype` is the low one (AMPL_DTYPE_NONE: the device's
 * default).  Regions nest; ampl_autocast_leave ends the innermost.  The casts of weights are kept until the outermost
 * region ends. */
AMPL_API ampl_status ampl_autocast_enter(ampl_ctx *ctx, bool enabled, int dtype, bool cache);
AMPL_API void        ampl_autocast_leave(ampl_ctx *ctx);

/* ------------------------------------------------------------------------------------------------ random ---------- */

AMPL_API void ampl_manual_seed(ampl_ctx *ctx, uint64_t seed);

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
  int64_t taken, skipped, consecutive_skips;
} ampl_scaler_state;

typedef struct ampl_scaler_stats {
  int64_t     taken, skipped;   /* steps, of all optimisers */
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
 * `key`, after unscale and before the next backward.  With `back_off` the scale falls at once, as update would do. */
AMPL_API ampl_status ampl_scaler_again(ampl_scaler *s, uint64_t key, bool back_off);
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
