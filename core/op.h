/* op.h: what an op is.  Files in core/ops/ include this and nothing else of core/.
 *
 * An op is declared once, by a record (AMPL_OP below) and a line in ops.def.  From the record come dispatch, autograd,
 * autocast, the Lua binding, the documentation and the tests.  Kernels are not in it: a backend lists them by name.
 *
 * The life of a call, in ampl_call (op.c): count and kinds, dimensions made non-negative -> autocast by `cast` ->
 * promotion -> infer -> allocate -> the kernel, else compose -> a graph node.
 */
#ifndef AMPL_OP_H
#define AMPL_OP_H

#include "ampl_backend.h"

#define AMPL_TRY(call)                          \
  do {                                          \
    ampl_status try_ = (call);                  \
    if (try_ != AMPL_OK) return try_;           \
  } while (0)

/* ------------------------------------------------------------------------------------------------ arguments ------- */

/* How a record spells its arguments.  The trailing argument, optional, is the doc: DIM("dim", -1, "what is summed"). */
#define TENSOR(n, ...)         {.name = n, .kind = AMPL_ARG_TENSOR, .flags = AMPL_REQUIRED, .doc = "" __VA_ARGS__}
#define TENSOR_ONLY(n, ...)                                                                                            \
  { .name = n, .kind = AMPL_ARG_TENSOR, .flags = AMPL_REQUIRED | AMPL_NO_NUMBER, .doc = "" __VA_ARGS__ }
#define LABELS(n, ...)                                                                                                 \
  {                                                                                                                    \
    .name = n, .kind = AMPL_ARG_TENSOR, .flags = AMPL_REQUIRED | AMPL_NO_NUMBER | AMPL_AS_IS | AMPL_LABELS,            \
    .doc = "" __VA_ARGS__                                                                                              \
  }
#define MASK(n, ...)                                                                                                   \
  { .name = n, .kind = AMPL_ARG_TENSOR, .flags = AMPL_REQUIRED | AMPL_NO_NUMBER | AMPL_AS_IS, .doc = "" __VA_ARGS__ }
#define TENSOR_OPT_AS_IS(n, ...) {.name = n, .kind = AMPL_ARG_TENSOR_OPT, .flags = AMPL_AS_IS, .doc = "" __VA_ARGS__}
#define TENSOR_OPT(n, ...)     {.name = n, .kind = AMPL_ARG_TENSOR_OPT, .doc = "" __VA_ARGS__}
#define TENSORS(n, ...)        {.name = n, .kind = AMPL_ARG_TENSORS, .flags = AMPL_REQUIRED, .doc = "" __VA_ARGS__}
#define TENSORS_OR_NONE(n, ...)                                                                                        \
  { .name = n, .kind = AMPL_ARG_TENSORS, .flags = AMPL_REQUIRED | AMPL_HOLES, .doc = "" __VA_ARGS__ }
#define DIM(n, d, ...)         {.name = n, .kind = AMPL_ARG_DIM, .def = {.i = d}, .doc = "" __VA_ARGS__}
#define DIM_OPT(n, ...)        DIM(n, AMPL_ABSENT, __VA_ARGS__)
#define DIM_REQ(n, ...)        {.name = n, .kind = AMPL_ARG_DIM, .flags = AMPL_REQUIRED, .doc = "" __VA_ARGS__}
#define DIM_NEW(n, d, ...)     {.name = n, .kind = AMPL_ARG_DIM_NEW, .def = {.i = d}, .doc = "" __VA_ARGS__}
#define DIM_NEW_REQ(n, ...)    {.name = n, .kind = AMPL_ARG_DIM_NEW, .flags = AMPL_REQUIRED, .doc = "" __VA_ARGS__}
#define DIMS(n, ...)           {.name = n, .kind = AMPL_ARG_DIMS, .doc = "" __VA_ARGS__}
#define DIMS_REPEATED(n, ...)  {.name = n, .kind = AMPL_ARG_DIMS, .flags = AMPL_REPEATS, .doc = "" __VA_ARGS__}
#define DIMS_REQ(n, ...)                                                                                               \
  { .name = n, .kind = AMPL_ARG_DIMS, .flags = AMPL_REQUIRED | AMPL_VARARG, .doc = "" __VA_ARGS__ }
#define INDEX_REQ(n, ...)      {.name = n, .kind = AMPL_ARG_INDEX, .flags = AMPL_REQUIRED, .doc = "" __VA_ARGS__}
#define INDEX_OPT(n, ...)      {.name = n, .kind = AMPL_ARG_INDEX, .def = {.i = AMPL_ABSENT}, .doc = "" __VA_ARGS__}
#define INT(n, d, ...)         {.name = n, .kind = AMPL_ARG_INT, .def = {.i = d}, .doc = "" __VA_ARGS__}
#define INT_OPT(n, ...)        INT(n, AMPL_ABSENT, __VA_ARGS__)
#define INT_REQ(n, ...)        {.name = n, .kind = AMPL_ARG_INT, .flags = AMPL_REQUIRED, .doc = "" __VA_ARGS__}
#define STOP_OPT(n, ...)                                                                                               \
  { .name = n, .kind = AMPL_ARG_INT, .flags = AMPL_STOP, .def = {.i = AMPL_ABSENT}, .doc = "" __VA_ARGS__ }
#define CLASS(n, d, ...)                                                                                               \
  { .name = n, .kind = AMPL_ARG_INT, .flags = AMPL_COUNT1, .def = {.i = d}, .doc = "" __VA_ARGS__ }
#define SIZES(n, ...)          {.name = n, .kind = AMPL_ARG_SIZES, .doc = "" __VA_ARGS__}
#define SIZES_REQ(n, ...)      {.name = n, .kind = AMPL_ARG_SIZES, .flags = AMPL_REQUIRED, .doc = "" __VA_ARGS__}
#define SHAPE_REQ(n, ...)                                                                                              \
  { .name = n, .kind = AMPL_ARG_SIZES, .flags = AMPL_REQUIRED | AMPL_VARARG, .doc = "" __VA_ARGS__ }
#define PADDING(n, ...)        {.name = n, .kind = AMPL_ARG_PADDING, .doc = "" __VA_ARGS__}
#define FLOAT(n, d, ...)       {.name = n, .kind = AMPL_ARG_FLOAT, .def = {.f = d}, .doc = "" __VA_ARGS__}
#define FLOAT_OPT(n, ...)      FLOAT(n, __builtin_nan(""), __VA_ARGS__)
#define FLOAT_REQ(n, ...)      {.name = n, .kind = AMPL_ARG_FLOAT, .flags = AMPL_REQUIRED, .doc = "" __VA_ARGS__}
#define BOOL(n, d, ...)        {.name = n, .kind = AMPL_ARG_BOOL, .def = {.i = d}, .doc = "" __VA_ARGS__}
#define ENUM(n, names, d, ...)                                                                                         \
  { .name = n, .kind = AMPL_ARG_ENUM, .def = {.i = d}, .choices = names, .doc = "" __VA_ARGS__ }
#define DTYPE(n, ...)          {.name = n, .kind = AMPL_ARG_DTYPE, .def = {.i = AMPL_DTYPE_NONE}, .doc = "" __VA_ARGS__}
#define STRING_REQ(n, ...)     {.name = n, .kind = AMPL_ARG_STRING, .flags = AMPL_REQUIRED, .doc = "" __VA_ARGS__}
#define DEVICE(n, ...)         {.name = n, .kind = AMPL_ARG_DEVICE, .doc = "" __VA_ARGS__}

#define AMPL_ARGS_MAX    16     /* arguments of a record */
#define AMPL_TENSORS_MAX 8      /* fixed tensor operands of a record (a TENSORS list has no limit) */
#define AMPL_OUT_MAX     8      /* outputs */
#define AMPL_OUT_NONE                                                                                                  \
  0xff /* nout of an op that only writes operands (AMPL_OP_MUTATES): its kernel raises the version of each
                                   storage it writes */

/* ------------------------------------------------------------------------------------------------ records --------- */

/* The autocast categories: name, what ampl.amp.policy says.  core/autocast.c acts on them. */
#define AMPL_CAST_MAP(X)                                                                                               \
  X(KEEP, "runs in the dtype of its operands")                                                                         \
  X(LOW, "operands are cast to the region's low dtype: fast there, and products are summed in f32")                    \
  X(F32, "operands are cast to f32: it must be exact")                                                                 \
  X(F32_OUT, "a 16-bit operand is read as it is; the result is f32")                                                   \
  X(WIDEST, "operands are cast to the widest float dtype among them")                                                  \
  X(REFUSE, "refused on 16-bit operands: its gradient does not fit")

typedef enum ampl_cast {
#define AMPL_X(name, text) AMPL_CAST_##name,
  AMPL_CAST_MAP(AMPL_X)
#undef AMPL_X
} ampl_cast;

/* What backward reads: operand i, output i.  AMPL_SAVE_ALL: every operand, lists too. */
#define AMPL_SAVE_X(i) (1u << (i))
#define AMPL_SAVE_Y(i) (1u << (16 + (i)))
#define AMPL_SAVE_ALL  0x8000u

typedef struct ampl_eval ampl_eval;
typedef struct ampl_grad ampl_grad;

struct ampl_op {
  const char *name, *doc;
  ampl_arg    args[AMPL_ARGS_MAX];      /* ends at name == NULL */
  uint16_t    id;                       /* its place in the table */
  uint8_t     nout;                     /* outputs; 0 counts as 1 */
  uint8_t     cast;                     /* ampl_cast */
  uint32_t    flags;
  uint32_t    save;
  /* Shape, dtype and layout of every output; no data.  On entry every out[i] has operand 0's dtype. */
  ampl_status (*infer)(ampl_ctx *ctx, const ampl_args *in, ampl_meta *out);
  /* Written with ops, so it runs on every backend and is differentiable again. */
  ampl_status (*backward)(ampl_grad *g);
  /* How to do without a kernel.  With a backward it runs unrecorded, without one it is differentiated through.
   * out[i]: one reference each. */
  ampl_status (*compose)(ampl_eval *e, const ampl_args *in, ampl_tensor **out);
};

/* AMPL_OP(softmax, .doc = ..., .args = {TENSOR("x"), DIM("dim", -1)}, ...) */
#define AMPL_OP(name_, ...) const ampl_op ampl_op_##name_ = {.name = #name_, .id = AMPL_OPID_##name_, __VA_ARGS__}

enum {                                  /* the op's number */
#define OP(id) AMPL_OPID_##id,
#include "ops.def"
#undef OP
  AMPL_OPID_COUNT
};
#define OP(id) extern const ampl_op ampl_op_##id;
#include "ops.def"
#undef OP
#define OP(id) (&ampl_op_##id)

/* ------------------------------------------------------------------------------------------------ calling --------- */

/* Runs an op.  `in->t` and `in->p` hold exactly what the record asks for (in->p may be NULL: all defaults).
 * out: room for the op's outputs, one reference each; all NULL after an error. */
ampl_status ampl_call(ampl_ctx *ctx, const ampl_args *in, ampl_tensor **out);

/* The in-place form: the result is written into operand 0, whose version rises.  EGRAD for a leaf that requires a
 * gradient, ESHAPE when the result has another shape. */
ampl_status ampl_call_inplace(ampl_ctx *ctx, const ampl_args *in);

/* Expressions over ops, for backward and compose: each result is owned by the eval and released with it, and after a
 * first failure everything returns NULL, so a formula is written as it is read:
 *     EV(e, mul, T(g->dy[0], EV(e, cos, T(g->x[0]))))
 * T(...) are the tensors (first operands, then the elements of a list), P(...) the parameters that differ from their
 * defaults at the front: EV(e, sum, T(x), P(V_L(1, dims), V_I(1))). */
struct ampl_eval {
  ampl_ctx    *ctx;
  ampl_status  status;
  int          n, cap;
  ampl_tensor **made;           /* grows past `first` on the heap */
  ampl_tensor *first[24];
};

#define T(...)                                                                                                         \
  ((ampl_tensor *const[]){__VA_ARGS__}), (int)(sizeof((ampl_tensor *const[]){__VA_ARGS__}) / sizeof(void *))
#define P(...)                                                                                                         \
  ((const ampl_value[]){__VA_ARGS__}), (int)(sizeof((const ampl_value[]){__VA_ARGS__}) / sizeof(ampl_value))
#define V_I(x)    ((ampl_value){.i = (x)})
#define V_F(x)    ((ampl_value){.f = (x)})
#define V_S(x)    ((ampl_value){.s = (x)})
#define V_L(n, v) ((ampl_value){.l = {(v), (n)}})
#define EV_(e, id, t, nt, p, np, ...) ampl_eval_op(e, &ampl_op_##id, t, nt, p, np)
#define EV(e, id, ...) EV_(e, id, __VA_ARGS__, NULL, 0, 0)

void         ampl_eval_begin(ampl_eval *e, ampl_ctx *ctx);
ampl_status  ampl_eval_end(ampl_eval *e);               /* releases everything; the first failure */
/* The first output of op, owned by e; NULL after a failure. */
ampl_tensor *ampl_eval_op(ampl_eval *e, const ampl_op *op, ampl_tensor *const *t, int nt, const ampl_value *p, int np);
/* All outputs. */
void         ampl_eval_outs(ampl_eval *e, const ampl_op *op, ampl_tensor *const *t, int nt, const ampl_value *p, int np,
                            ampl_tensor **out);
/* Gives x to e. */
ampl_tensor *ampl_eval_own(ampl_eval *e, ampl_tensor *x);
/* *out = x with a reference of its own; the usual last line of compose. */
ampl_status  ampl_eval_return(ampl_eval *e, ampl_tensor *x, ampl_tensor **out);
/* A plain number as an operand, in x's float dtype where it meets one. */
ampl_tensor *ampl_eval_num(ampl_eval *e, double v);

/* x summed down to `shape` (what broadcasting had spread); x itself when there is nothing to do. */
ampl_tensor *ampl_eval_sum_to(ampl_eval *e, ampl_tensor *x, int ndim, const int64_t *shape);

/* What backward is given.  Gradients for operands that need none are simply not set. */
struct ampl_grad {
  ampl_eval            e;
  const ampl_op       *op;
  int                  nx, ny;
  ampl_tensor *const  *dy;      /* gradient of each output, NULL where there is none (at least one is there) */
  ampl_tensor *const  *x;       /* saved operands, NULL where not saved */
  ampl_tensor *const  *y;       /* saved outputs, NULL where not saved */
  const ampl_meta     *xm, *ym; /* shape and dtype of every operand and output, saved or not */
  const ampl_value    *p;
  const bool          *need;    /* need[i]: operand i wants a gradient */
  /* wide[i]: its gradients are summed in f32, so one in f32 is welcome (a weight's cast) */
  const bool          *wide;
  ampl_tensor        **dx;      /* to be filled, lent from e */
};

/* dx[i] = v, summed down to operand i's shape where it was broadcast.  The dtype is brought to the operand's after. */
void ampl_grad_set(ampl_grad *g, int i, ampl_tensor *v);

/* ------------------------------------------------------------------------------------------------ for infer ------- */

/* Sets `m` to x's shape, dtype and (layout) strides. */
ampl_status ampl_meta_like(ampl_meta *m, const ampl_tensor *x);
/* Every tensor and view has a shape that passes here, or broadcasts from such: the sizes that are not 0 multiply to at
 * most this many elements, so that products of sizes and strides of one tensor need no look any more. */
#define AMPL_NUMEL_MAX (INT64_MAX / 16)

/* Sets shape; ESHAPE for more than AMPL_RANK_MAX dimensions, negative sizes, or more elements than AMPL_NUMEL_MAX. */
ampl_status ampl_meta_shape(ampl_ctx *ctx, ampl_meta *m, int ndim, const int64_t *shape);
/* Broadcasts `shape` into m's; ESHAPE naming both. */
ampl_status ampl_meta_broadcast(ampl_ctx *ctx, ampl_meta *m, int ndim, const int64_t *shape);
int64_t     ampl_meta_numel(const ampl_meta *m);
/* The reduction of x over dims (n = 0: all): shape of m. */
ampl_status ampl_meta_reduce(ampl_ctx *ctx, ampl_meta *m, const ampl_tensor *x, ampl_ints dims, bool keepdim);
/* Position i of a dimension of `size`, negative ones from the end; EINDEX. `what` names it in the message. */
ampl_status ampl_resolve_index(ampl_ctx *ctx, const char *what, int64_t i, int64_t size, int64_t *out);
/* Entry k of an int-or-list parameter of n entries: one number stands for all, nothing for `otherwise`. */
int64_t     ampl_nth(ampl_ints l, int k, int64_t otherwise);
/* ESHAPE unless l has 0, 1 or n entries. */
ampl_status ampl_check_nth(ampl_ctx *ctx, const char *what, ampl_ints l, int n);

/* What the first element of a dimension is called in index tensors and labels: 0 for calls from C, 1 for calls from Lua
 * (negative positions count from the end in both).  Constant from a call to its backward. */
int64_t     ampl_index_base(const ampl_ctx *ctx);

/* The number of rows, the product of all sizes but the last. */
int64_t     ampl_leading(const ampl_tensor *x);
bool ampl_is_float(const ampl_tensor *x);
bool ampl_same_shape(const ampl_tensor *a, const ampl_tensor *b);

/* Writes on at text[at], in `size` bytes with the closing zero; what does not fit is cut off.  Where the text ends now:
 * the place for the next call. */
size_t ampl_append(char *text, size_t size, size_t at, const char *fmt, ...) AMPL_PRINTF(4, 5);

/* Text for messages, in a ring of buffers of the context: good until the 8th next call. */
const char *ampl_shape_text(ampl_ctx *ctx, int ndim, const int64_t *shape);     /* "{2, 3}" */
const char *ampl_tensor_text(ampl_ctx *ctx, const ampl_tensor *x);              /* "f32 {2, 3}" */
const char *ampl_meta_text(ampl_ctx *ctx, const ampl_meta *m);
/* A position or dimension as the caller counts it (Lua: from 1). */
int64_t     ampl_shown(const ampl_ctx *ctx, int64_t i);

#endif
