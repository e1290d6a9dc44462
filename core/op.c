/* op.c: the op table, and ampl_call: the one path every op takes. */
#include "ctx.h"
#include "autocast.h"
#include "graph.h"
#include "op_table.h"

#include <string.h>
#include <time.h>

/* One call on its way: the operands as they are after autocast and promotion, and what was made for it. */
typedef struct call {
  ampl_ctx           *ctx;
  const ampl_op      *op;
  const ampl_op_info *info;
  ampl_tensor       **t;                /* nt operands; `few` unless there are many */
  ampl_tensor       **made;             /* nmade casts and copies to be released; room for two of each operand */
  int                 nt, nmade, compute;
  bool                grad;
  const char         *why;
  ampl_value          p[AMPL_ARGS_MAX];
  int64_t             dims[2][AMPL_INTS_MAX];   /* of DIMS parameters; a record has two at most */
  ampl_tensor        *few[2 * AMPL_TENSORS_MAX], *few_made[4 * AMPL_TENSORS_MAX];
  ampl_meta           meta[AMPL_OUT_MAX];
} call;

/* What an error calls the op: the one that was called, also where it is composed of others. */
static const char *name_of(const call *c) { return c->ctx->composed ? c->ctx->composed : c->op->name; }

static ampl_args args_of(const call *c) { return (ampl_args){c->op, c->t, c->nt, c->p}; }

/* ------------------------------------------------------------------------------------------------ operands -------- */

static ampl_status bad_dim(ampl_ctx *ctx, const ampl_arg *a, int64_t d, int rank) {
  return ampl_error(ctx, AMPL_EINDEX, "%s %lld is out of range for %d dimensions: give %lld to %lld, or -%d to -1",
                    a->name, (long long)ampl_shown(ctx, d), rank, (long long)ampl_shown(ctx, 0),
                    (long long)(rank - 1 + ctx->index_base), rank);
}

static ampl_status fix_dim(ampl_ctx *ctx, const ampl_arg *a, int64_t d, int rank, int64_t *out) {
  const int r = rank ? rank : 1;        /* a scalar takes 0 and -1 */
  *out = d < 0 ? d + r : d;
  return *out < 0 || *out >= r ? bad_dim(ctx, a, d, r) : AMPL_OK;
}

/* An integer that is not given is its default's. */
static ampl_status take_integer(ampl_ctx *ctx, const ampl_arg *a, int64_t *v) {
  if (*v != AMPL_ABSENT) return AMPL_OK;
  *v = a->def.i;
  return a->flags & AMPL_REQUIRED ? ampl_error(ctx, AMPL_EARG, "%s is missing", a->name) : AMPL_OK;
}

/* Places in an ENUM, booleans and dtypes: one of 0 to n - 1 (or `none`). */
static ampl_status take_choice(ampl_ctx *ctx, const ampl_arg *a, int n, int64_t none, int64_t *v) {
  AMPL_TRY(take_integer(ctx, a, v));
  if ((*v >= 0 && *v < n) || *v == none) return AMPL_OK;
  return ampl_error(ctx, a->kind == AMPL_ARG_DTYPE ? AMPL_EDTYPE : AMPL_EARG, "%s is %lld; it must be from 0 to %d%s%s",
                    a->name, (long long)*v, n - 1, a->choices ? ", the place in " : "", a->choices ? a->choices : "");
}

static int number_of_choices(const char *names) {
  int n = 1;
  for (; *names; names++) n += *names == '|';
  return n;
}

/* `same`: a list may have the length -1, which stands for the padding of that name. */
static ampl_status take_list(ampl_ctx *ctx, const ampl_arg *a, bool same, ampl_ints l) {
  if (l.n > AMPL_INTS_MAX)
    return ampl_error(ctx, AMPL_EARG, "%s has %lld entries; at most %d are taken", a->name, (long long)l.n,
                      AMPL_INTS_MAX);
  if ((l.n < 0 && !(same && l.n == -1)) || (l.n > 0 && !l.v))
    return ampl_error(ctx, AMPL_EARG, "%s is no list: %lld entries at %p", a->name, (long long)l.n, (const void *)l.v);
  return AMPL_OK;
}

/* Dimensions counted from the front, in `fixed`. */
static ampl_status take_dims(ampl_ctx *ctx, const ampl_arg *a, int rank, int64_t *fixed, ampl_ints *l) {
  const ampl_ints given = *l;
  const bool repeats = a->flags & AMPL_REPEATS;
  unsigned seen = 0;
  AMPL_TRY(take_list(ctx, a, false, given));
  if (given.n == 0) return AMPL_OK;
  if (!repeats && given.n > (rank ? rank : 1))
    return ampl_error(ctx, AMPL_EINDEX, "%s has %lld entries for %d dimensions", a->name, (long long)given.n, rank);
  for (int64_t k = 0; k < given.n; k++) {
    AMPL_TRY(fix_dim(ctx, a, given.v[k], rank, &fixed[k]));
    if (!repeats && seen >> fixed[k] & 1)
      return ampl_error(ctx, AMPL_EINDEX, "%s names dimension %lld twice", a->name,
                        (long long)ampl_shown(ctx, fixed[k]));
    seen |= 1u << fixed[k];
  }
  l->v = fixed;
  return AMPL_OK;
}

/* Copies the parameters, with dimensions counted from the front. */
static ampl_status take_params(call *c, const ampl_value *p) {
  ampl_ctx *ctx = c->ctx;
  int lists = 0;
  int rank = c->nt && c->t[0] ? c->t[0]->ndim : 0;
  for (int i = 1; c->info->ntensor == 0 && i < c->nt; i++) /* of a list, the highest: cat takes empty vectors along */
    if (c->t[i] && c->t[i]->ndim > rank) rank = c->t[i]->ndim;
  for (int i = 0; i < c->info->nparam; i++) {
    const ampl_arg *a = &c->op->args[c->info->param_arg[i]];
    ampl_value *v = &c->p[i];
    *v = p ? p[i] : a->def;
    switch (a->kind) {
    case AMPL_ARG_DIM:
    case AMPL_ARG_DIM_NEW:
      AMPL_TRY(take_integer(ctx, a, &v->i));
      if (v->i != AMPL_ABSENT) AMPL_TRY(fix_dim(ctx, a, v->i, rank + (a->kind == AMPL_ARG_DIM_NEW), &v->i));
      break;
    case AMPL_ARG_DIMS: AMPL_TRY(take_dims(ctx, a, rank, c->dims[lists++], &v->l)); break;
    case AMPL_ARG_INT:
    case AMPL_ARG_INDEX: AMPL_TRY(take_integer(ctx, a, &v->i)); break;
    case AMPL_ARG_BOOL: AMPL_TRY(take_choice(ctx, a, 2, 0, &v->i)); break;
    case AMPL_ARG_DTYPE: AMPL_TRY(take_choice(ctx, a, AMPL_DTYPE_COUNT, AMPL_DTYPE_NONE, &v->i)); break;
    case AMPL_ARG_ENUM: AMPL_TRY(take_choice(ctx, a, number_of_choices(a->choices), 0, &v->i)); break;
    case AMPL_ARG_SIZES:
    case AMPL_ARG_PADDING: AMPL_TRY(take_list(ctx, a, a->kind == AMPL_ARG_PADDING, v->l)); break;
    case AMPL_ARG_STRING:
      if (!v->s && a->flags & AMPL_REQUIRED) return ampl_error(ctx, AMPL_EARG, "%s is missing", a->name);
      break;
    default: break;
    }
  }
  return AMPL_OK;
}

/* An operand that is absent, or a plain number: whether it may be. */
static ampl_status check_operand(const call *c, int i, const ampl_tensor *x) {
  const bool listed = i >= c->info->ntensor;
  const ampl_arg *a = &c->op->args[listed ? c->info->list : c->info->tensor_arg[i]];
  if (listed && !x && !(a->flags & AMPL_HOLES))
    return ampl_error(c->ctx, AMPL_EARG, "entry %lld of %s is missing: the list has a hole there",
                      (long long)ampl_shown(c->ctx, i - c->info->ntensor), a->name);
  if (!listed && !x && a->flags & AMPL_REQUIRED) return ampl_error(c->ctx, AMPL_EARG, "%s is missing", a->name);
  if (x && (listed || a->flags & AMPL_NO_NUMBER))
    return ampl_error(c->ctx, AMPL_EARG, "%s must be %s, not a plain number", a->name,
                      listed ? "tensors" : "a tensor");
  return AMPL_OK;
}

/* A call that drop_call may end at any time from here on. */
static void begin_call(call *c, ampl_ctx *ctx, const ampl_op *op) {
  c->ctx = ctx;
  c->op = op;
  c->info = ampl_op_info_of(op);
  c->nt = c->nmade = 0;
  c->t = c->few;
  c->made = c->few_made;
  c->why = NULL;
}

static ampl_status take_operands(call *c, const ampl_args *in) {
  const ampl_device *device = NULL;
  c->nt = in->nt;
  if (in->nt > 2 * AMPL_TENSORS_MAX) {
    c->t = ampl_obj_get(c->ctx, 3 * (size_t)in->nt * sizeof *c->t);
    if (!c->t) return ampl_error(c->ctx, AMPL_ENOMEM, "out of memory");
    c->made = c->t + in->nt;
  }
  for (int i = 0; i < in->nt; i++) {
    ampl_tensor *x = c->t[i] = in->t[i];
    if (x && ampl_ctx_of(x) != c->ctx) return ampl_error(c->ctx, AMPL_EARG, AMPL_FOREIGN_TENSOR);
    if (!x || x->flags & AMPL_T_NUMBER) {
      AMPL_TRY(check_operand(c, i, x));
      continue;
    }
    if (!device) device = ampl_device_of(x);
    else if (device != ampl_device_of(x))
      return ampl_error(c->ctx, AMPL_EDEVICE, "operands on %s and %s; bring them together with x:to(device)",
                        device->name, ampl_device_of(x)->name);
  }
  return AMPL_OK;
}

static void drop_call(call *c) {
  for (int i = 0; i < c->nmade; i++) ampl_tensor_release(c->made[i]);
  if (c->t != c->few) ampl_obj_put(c->ctx, c->t, 3 * (size_t)c->nt * sizeof *c->t);
}

static bool as_is(const call *c, int i) {
  return i < c->info->ntensor && c->op->args[c->info->tensor_arg[i]].flags & AMPL_AS_IS;
}

/* Operand i becomes `x`, a reference that the call owns from here on. */
static ampl_status replace(call *c, int i, ampl_tensor *x) {
  if (!x) return ampl_error(c->ctx, AMPL_ENOMEM, "out of memory");
  c->t[i] = c->made[c->nmade++] = x;
  return AMPL_OK;
}

ampl_status ampl_cast_to(ampl_ctx *ctx, ampl_tensor *x, ampl_dtype t, ampl_tensor **out) {
  const ampl_value p = {.i = t};
  return ampl_call(ctx, &(ampl_args){OP(to), &x, 1, &p}, out);
}

/* ------------------------------------------------------------------------------------------------ promotion ------- */

static int category(int t) { return t <= AMPL_F64 ? 2 : t == AMPL_BOOL ? 0 : 1; }

static void widen(int *into, int t) {
  *into = *into < 0 ? t : (int)ampl_dtype_promote((ampl_dtype)*into, (ampl_dtype)t);
}

/* PyTorch's rule: tensors with dimensions decide; scalars, then plain numbers, only by being of a higher kind. */
static int common_dtype(const call *c) {
  int dims = -1, scalars = -1, numbers = -1, result;
  for (int i = 0; i < c->nt; i++) {
    const ampl_tensor *x = c->t[i];
    if (!x || as_is(c, i)) continue;
    if (x->flags & AMPL_T_NUMBER) widen(&numbers, x->dtype == AMPL_F64 ? AMPL_F32 : x->dtype);
    else widen(x->ndim ? &dims : &scalars, x->dtype);
  }
  result = dims;
  if (scalars >= 0 && (result < 0 || category(scalars) > category(result))) widen(&result, scalars);
  if (numbers >= 0 && (result < 0 || category(numbers) > category(result))) widen(&result, numbers);
  return result;
}

/* Whether operand x keeps its dtype beside tensors of dtype t: a scalar of another float is computed with as a number
 * is, at the precision of the arithmetic, not at that of 16-bit results. */
static bool computes_as_number(const call *c, const ampl_tensor *x, int t) {
  return x->ndim == 0 && ampl_is_float(x) && (t == AMPL_F16 || t == AMPL_BF16) && c->op->flags & AMPL_OP_ELEMENTWISE &&
         !(c->op->flags & AMPL_OP_BOOL_OUT);
}

/* The double of an integer for work in dtype t; where it does not fit, its last bit tells so, that a further rounding
 * comes out as if it were the only one. */
static double number_of(int64_t v, int t) {
  double d = (double)v;
  uint64_t bits;
  if (t == AMPL_F64 || d >= 0x1p63 || (int64_t)d == v) return d;
  memcpy(&bits, &d, sizeof bits);
  if (!(bits & 1)) bits = ((int64_t)d > v) == (v > 0) ? bits - 1 : bits + 1;
  memcpy(&d, &bits, sizeof bits);
  return d;
}

static ampl_status promote(call *c) {
  int t = -1;
  bool mixed = false;
  for (int i = 0; i < c->nt; i++) {
    const ampl_tensor *x = c->t[i];
    if (!x || as_is(c, i)) continue;
    if (x->flags & AMPL_T_NUMBER || (t >= 0 && x->dtype != t)) mixed = true;
    t = x->dtype;
  }
  if (mixed) t = common_dtype(c);
  if (c->op->flags & AMPL_OP_FLOAT_OUT && category(t) < 2) t = AMPL_F32, mixed = true;
  c->compute = t;
  for (int i = 0; mixed && i < c->nt; i++) {
    ampl_tensor *x = c->t[i], *y;
    if (!x || as_is(c, i)) continue;
    if (x->flags & AMPL_T_NUMBER) {
      if ((x->dtype == AMPL_F64) == (category(t) == 2)) continue;
      int64_t whole = (int64_t)ampl_number_value(x);
      if (x->dtype != AMPL_F64) memcpy(&whole, x->data, sizeof whole);
      const ampl_dtype kind = category(t) == 2 ? AMPL_F64 : AMPL_I64;
      AMPL_TRY(replace(c, i, ampl_number_new(c->ctx, kind, number_of(whole, t), whole)));
    } else if (x->dtype != t && !computes_as_number(c, x, t)) {
      AMPL_TRY(ampl_cast_to(c->ctx, x, (ampl_dtype)t, &y));
      AMPL_TRY(replace(c, i, y));
    }
  }
  return AMPL_OK;
}

/* ------------------------------------------------------------------------------------------------ shapes ---------- */

/* Whether x fills its memory without gaps in some order of dimensions; then results keep that order. */
static bool dense_in_some_order(const ampl_tensor *x) {
  int64_t span = 1;
  for (int d = 0; d < x->ndim; d++) {
    if (x->shape[d] > 1 && x->strides[d] == 0) return false;
    span += (x->shape[d] - 1) * x->strides[d];
  }
  return span == x->numel;
}

static ampl_status infer_elementwise(call *c) {
  ampl_meta *m = &c->meta[0];
  const ampl_tensor *like = NULL;
  m->ndim = 0;
  m->offset = 0;
  for (int i = 0; i < c->nt; i++) {
    const ampl_tensor *x = c->t[i];
    if (!x || x->ndim == 0) continue;
    if (m->ndim == 0) {
      m->ndim = x->ndim;
      memcpy(m->shape, x->shape, (size_t)x->ndim * sizeof *x->shape);
    } else if (m->ndim != x->ndim || memcmp(m->shape, x->shape, (size_t)x->ndim * sizeof *x->shape) != 0) {
      AMPL_TRY(ampl_meta_broadcast(c->ctx, m, x->ndim, x->shape));
    }
  }
  m->dtype = c->op->flags & AMPL_OP_BOOL_OUT ? AMPL_BOOL : c->compute;
  m->layout = AMPL_LAYOUT_ROW_MAJOR;
  for (int i = 0; i < c->nt; i++) {     /* the first operand of the full shape says how the result lies in memory */
    const ampl_tensor *x = c->t[i];
    if (!x || x->ndim != m->ndim || memcmp(m->shape, x->shape, (size_t)x->ndim * sizeof *x->shape) != 0) continue;
    if (x->flags & AMPL_T_CONTIGUOUS) return AMPL_OK;
    if (!like && dense_in_some_order(x)) like = x;
  }
  if (like) {
    m->layout = AMPL_LAYOUT_STRIDED;
    memcpy(m->strides, like->strides, sizeof m->strides);
  }
  return AMPL_OK;
}

static ampl_status infer(call *c) {
  const ampl_args in = args_of(c);
  if (c->op->flags & AMPL_OP_ELEMENTWISE) {     /* the record's own rule checks or changes what stands already */
    AMPL_TRY(infer_elementwise(c));
    return c->op->infer ? c->op->infer(c->ctx, &in, c->meta) : AMPL_OK;
  }
  if (!c->op->infer) return ampl_meta_like(&c->meta[0], c->t[0]);
  for (int k = 0; k < c->info->nout; k++) {
    c->meta[k].dtype = c->op->flags & AMPL_OP_BOOL_OUT ? AMPL_BOOL : c->compute;
    c->meta[k].layout = AMPL_LAYOUT_ROW_MAJOR;
    c->meta[k].ndim = 0;
    c->meta[k].offset = 0;
  }
  return c->op->infer(c->ctx, &in, c->meta);
}

/* ------------------------------------------------------------------------------------------------ running --------- */

static ampl_device *device_of_call(const call *c) {
  for (int i = 0; i < c->nt; i++)
    if (c->t[i] && !(c->t[i]->flags & AMPL_T_NUMBER)) return ampl_device_of(c->t[i]);
  for (int i = 0; i < c->info->nparam; i++)
    if (c->op->args[c->info->param_arg[i]].kind == AMPL_ARG_DEVICE && c->p[i].s)
      return ampl_device_find(c->ctx, c->p[i].s);
  return c->ctx->device;
}

/* The kernel has left something out, whatever it says. */
static __attribute__((noinline)) ampl_status left_out(ampl_ctx *ctx, ampl_status s) {
  atomic_store_explicit(&ctx->stopped, false, memory_order_relaxed);
  return s == AMPL_OK ? ampl_error(ctx, AMPL_EINTR, "interrupted") : s;
}

/* The ops that a kernel calls are part of its own: they record no graph and cast nothing. */
static inline ampl_status call_kernel(call *c, ampl_kernel_fn kernel, const ampl_args *in, ampl_tensor **out) {
  ampl_modes *m = c->ctx->modes;
  const bool grad = m->grad;
  ampl_mode *region = m->autocast;
  m->grad = false;
  m->autocast = NULL;
  const ampl_status s = kernel(c->ctx, in, out);
  m->grad = grad;
  m->autocast = region;
  return atomic_load_explicit(&c->ctx->stopped, memory_order_relaxed) ? left_out(c->ctx, s) : s;
}

/* With every operand row-major, for kernels that ask for it. */
static ampl_status run_dense(call *c, ampl_kernel_fn kernel, ampl_tensor **out) {
  ampl_tensor *few[2 * AMPL_TENSORS_MAX], **t = few;
  ampl_status s = AMPL_OK;
  bool strided = false;
  for (int i = 0; i < c->nt; i++) strided |= c->t[i] && !(c->t[i]->flags & AMPL_T_CONTIGUOUS);
  ampl_args in = args_of(c);
  if (!strided) return call_kernel(c, kernel, &in, out);
  if (c->nt > 2 * AMPL_TENSORS_MAX && !(t = ampl_obj_get(c->ctx, (size_t)c->nt * sizeof *t)))
    return ampl_error(c->ctx, AMPL_ENOMEM, "out of memory");
  const bool grad = c->ctx->modes->grad;
  c->ctx->modes->grad = false;
  int made = 0;
  for (; made < c->nt && s == AMPL_OK; made++) {
    t[made] = c->t[made];
    if (t[made] && !(t[made]->flags & AMPL_T_CONTIGUOUS))
      s = ampl_call(c->ctx, &(ampl_args){OP(contiguous), &c->t[made], 1, NULL}, &t[made]);
  }
  c->ctx->modes->grad = grad;
  c->ctx->op = name_of(c);
  in.t = t;
  if (s == AMPL_OK) s = call_kernel(c, kernel, &in, out);
  for (int i = 0; i < made; i++)
    if (t[i] != c->t[i]) ampl_tensor_release(t[i]);
  if (t != few) ampl_obj_put(c->ctx, t, (size_t)c->nt * sizeof *t);
  return s;
}

static ampl_status unsupported(call *c, const ampl_device *device) {
  return ampl_error(c->ctx, AMPL_EUNSUPPORTED, "not available in %s on %s; cast the operands with x:to(dtype)",
                    ampl_dtype_name((ampl_dtype)c->compute), device->name);
}

/* Runs compose; with `recorded`, its ops build the graph. */
static ampl_status run_compose(call *c, bool recorded, ampl_tensor **out) {
  ampl_modes *m = c->ctx->modes;
  const bool grad = m->grad;
  ampl_mode *region = m->autocast;
  const char *outer = c->ctx->composed;
  const ampl_args in = args_of(c);
  ampl_eval e;
  if (!outer) c->ctx->composed = c->op->name;
  m->grad = grad && recorded;
  m->autocast = NULL;                   /* the casts are made; what is inside runs in these dtypes */
  ampl_eval_begin(&e, c->ctx);
  ampl_status s = c->op->compose(&e, &in, out);
  if (s == AMPL_OK) s = e.status;
  const ampl_status end = ampl_eval_end(&e);
  if (s == AMPL_OK) s = end;
  m->grad = grad;
  m->autocast = region;
  c->ctx->composed = outer;
  return s;
}

/* Views may show more elements than memory holds (expand); a kernel that works through them would never come back.
 * What would not fit into memory, were it copied, is not worked on. */
static ampl_status check_reach(const call *c) {
  for (int i = 0; i < c->nt; i++) {
    const ampl_tensor *x = c->t[i];
    if (!x || x->flags & AMPL_T_CONTIGUOUS) continue;
    const size_t bytes = (size_t)x->numel * ampl_dtype_size((ampl_dtype)x->dtype);
    if (bytes > c->ctx->limit)
      return ampl_error(c->ctx, AMPL_ENOMEM,
                        "operand %lld is %s: its elements would take %.1f MB of a memory limit of %.1f MB; take a part "
                        "of it first",
                        (long long)ampl_shown(c->ctx, i), ampl_tensor_text(c->ctx, x), (double)bytes / 1e6,
                        (double)c->ctx->limit / 1e6);
  }
  return AMPL_OK;
}

/* Where all results are empty there is nothing to compute. */
static bool nothing_to_do(const call *c, ampl_tensor *const *out) {
  if (c->op->flags & (AMPL_OP_MUTATES | AMPL_OP_DYNAMIC)) return false;
  for (int k = 0; k < c->info->nout; k++)
    if (out[k]->numel) return false;
  return c->info->nout > 0;
}

static ampl_status run_kernel(call *c, ampl_tensor **out, bool given) {
  ampl_device *device = device_of_call(c);
  if (!device) return c->ctx->code;
  const ampl_kernel_fn kernel = device->kernels[c->op->id][c->compute];
  if (!kernel) {
    if (!c->op->compose || given) return unsupported(c, device);
    return run_compose(c, false, out);
  }
  for (int k = 0; !given && k < c->info->nout && !(c->op->flags & AMPL_OP_DYNAMIC); k++)
    AMPL_TRY(ampl_tensor_new(c->ctx, device, &c->meta[k], AMPL_KIND_TENSOR, &out[k]));
  if (nothing_to_do(c, out)) return AMPL_OK;
  AMPL_TRY(check_reach(c));
  if (c->op->flags & AMPL_OP_DENSE) return run_dense(c, kernel, out);
  const ampl_args in = args_of(c);
  return call_kernel(c, kernel, &in, out);
}

static ampl_status run_view(call *c, ampl_tensor **out) {
  AMPL_TRY(ampl_meta_shape(c->ctx, &c->meta[0], c->meta[0].ndim, c->meta[0].shape));
  if (!(out[0] = ampl_tensor_view(c->ctx, c->t[0], &c->meta[0])))
    return ampl_error(c->ctx, AMPL_ENOMEM, "out of memory");
  return c->ctx->modes->grad ? ampl_graph_view(c->ctx, out[0], c->t[0]) : AMPL_OK;
}

static ampl_status record(call *c, ampl_tensor **out) {
  const ampl_args in = args_of(c);
  return ampl_graph_record(c->ctx, &in, c->info->nout, out, 0);
}

/* A float result that nobody can differentiate must not pass silently. */
static ampl_status check_differentiable(const call *c) {
  for (int k = 0; k < c->info->nout; k++)
    if (ampl_dtype_is_float((ampl_dtype)c->meta[k].dtype))
      return ampl_error(c->ctx, AMPL_EGRAD, "has no gradient; call it on x:detach() or under ampl.no_grad");
  return AMPL_OK;
}

static bool any_wants_grad(const call *c) {
  if (!c->ctx->modes->grad || c->op->flags & AMPL_OP_NO_GRAD) return false;
  for (int i = 0; i < c->nt; i++)
    if (ampl_wants_grad(c->t[i])) return true;
  return false;
}

static void find_compute_dtype(call *c) {
  c->compute = -1;
  for (int i = 0; i < c->nt && c->compute < 0; i++)
    if (c->t[i] && !as_is(c, i)) c->compute = c->t[i]->dtype;
  for (int i = 0; i < c->nt && c->compute < 0; i++)
    if (c->t[i]) c->compute = c->t[i]->dtype;
  if (c->compute < 0) c->compute = AMPL_F32;
}

/* Everything before the data: operands, parameters, autocast, promotion. */
static ampl_status prepare(call *c, const ampl_args *in) {
  AMPL_TRY(take_operands(c, in));
  if (ampl_should_stop(c->ctx)) return ampl_error(c->ctx, AMPL_EINTR, "interrupted");
  AMPL_TRY(take_params(c, in->p));
  const ampl_mode *region = c->ctx->modes->autocast;
  if (region && region->on && c->nt)
    AMPL_TRY(ampl_autocast_apply(c->ctx, c->op, c->t, c->nt, c->p, c->made, &c->nmade, &c->why));
  if (c->op->flags & (AMPL_OP_ELEMENTWISE | AMPL_OP_PROMOTE)) AMPL_TRY(promote(c));
  else find_compute_dtype(c);
  /* A view whose base was written since gets its new node before the call's own is numbered. */
  for (int i = 0; c->ctx->modes->grad && i < c->nt; i++)
    if (c->t[i] && c->t[i]->view) AMPL_TRY(ampl_graph_settle(c->ctx, c->t[i]));
  c->grad = any_wants_grad(c);
  return AMPL_OK;
}

static ampl_status execute(call *c, ampl_tensor **out) {
  if (!c->op->backward && c->op->compose) {
    const ampl_device *device = device_of_call(c);
    if (!device) return c->ctx->code;
    if (c->grad || !device->kernels[c->op->id][c->compute]) return run_compose(c, true, out);
  }
  AMPL_TRY(infer(c));
  if (c->info->nout && c->nt == 0) c->compute = c->meta[0].dtype;
  const bool differentiable = c->grad && c->op->backward;
  if (c->grad && !c->op->backward) AMPL_TRY(check_differentiable(c));
  if (c->op->flags & AMPL_OP_VIEW) AMPL_TRY(run_view(c, out));
  else AMPL_TRY(run_kernel(c, out, false));
  return differentiable ? record(c, out) : AMPL_OK;
}

static void trace_call(call *c, ampl_tensor **out, const struct timespec *t0) {
  struct timespec t1;
  clock_gettime(CLOCK_MONOTONIC, &t1);
  const ampl_args in = args_of(c);
  const bool has = c->info->nout && out[0];
  const ampl_trace_event e = {.op = c->op,
                              .dtype_in = c->compute,
                              .dtype_out = has ? out[0]->dtype : -1,
                              .bytes = has ? (size_t)out[0]->numel * ampl_dtype_size((ampl_dtype)out[0]->dtype) : 0,
                              .seconds = (double)(t1.tv_sec - t0->tv_sec) + 1e-9 * (double)(t1.tv_nsec - t0->tv_nsec),
                              .why = c->why};
  c->ctx->trace(c->ctx->trace_ud, c->ctx, &e, &in, out);
}

ampl_status ampl_call(ampl_ctx *ctx, const ampl_args *in, ampl_tensor **out) {
  const char *outer = ctx->op;
  const uint64_t drawn = ctx->offset;
  struct timespec t0;
  call c;
  begin_call(&c, ctx, in->op);
  ctx->op = name_of(&c);
  for (int k = 0; k < c.info->nout; k++) out[k] = NULL;
  if (ctx->trace) clock_gettime(CLOCK_MONOTONIC, &t0);
  ampl_status s = prepare(&c, in);
  ctx->op = name_of(&c);
  if (s == AMPL_OK) s = execute(&c, out);
  if (s == AMPL_OK && ctx->trace) trace_call(&c, out, &t0);
  drop_call(&c);
  ctx->op = outer;
  if (s == AMPL_OK) return s;
  ctx->offset = drawn;                  /* what gives nothing draws nothing */
  for (int k = 0; k < c.info->nout; k++) {
    ampl_tensor_release(out[k]);
    out[k] = NULL;
  }
  return s;
}

/* ------------------------------------------------------------------------------------------------ in place -------- */

static ampl_status check_target(call *c, const ampl_tensor *self) {
  if (!(c->op->flags & AMPL_OP_INPLACE)) return ampl_error(c->ctx, AMPL_EARG, "has no in-place form");
  if (ampl_tensor_overlaps_itself(self))
    return ampl_error(
        c->ctx, AMPL_EVALUE,
        "cannot write in place: several elements of %s share one place in memory (expand); call x:clone() first",
        ampl_tensor_text(c->ctx, self));
  if (!c->ctx->modes->grad) return AMPL_OK;
  const ampl_tensor *base = self->view ? self->view->base : self;
  if ((self->flags & AMPL_T_REQUIRES_GRAD && !self->node) || (base->flags & AMPL_T_REQUIRES_GRAD && !base->node))
    return ampl_error(c->ctx, AMPL_EGRAD,
                      "a leaf that requires a gradient cannot be written in place; do it under ampl.no_grad");
  return AMPL_OK;
}

static ampl_status check_result(call *c, const ampl_tensor *self) {
  const ampl_meta *m = &c->meta[0];
  if (m->ndim != self->ndim || memcmp(m->shape, self->shape, (size_t)m->ndim * sizeof *m->shape) != 0)
    return ampl_error(c->ctx, AMPL_ESHAPE, "the result of shape %s cannot be written in place into shape %s",
                      ampl_shape_text(c->ctx, m->ndim, m->shape), ampl_shape_text(c->ctx, self->ndim, self->shape));
  if (category(m->dtype) > category(self->dtype))
    return ampl_error(c->ctx, AMPL_EDTYPE, "a result of dtype %s cannot be written in place into %s",
                      ampl_dtype_name((ampl_dtype)m->dtype), ampl_dtype_name((ampl_dtype)self->dtype));
  return AMPL_OK;
}

/* Whether the op's backward reads the operand that is written. */
static bool keeps_target(const call *c) {
  if (!(c->op->save & (AMPL_SAVE_X(0) | AMPL_SAVE_ALL))) return false;
  for (int i = 1; c->op->flags & AMPL_OP_CROSS && i < c->nt; i++)
    if (ampl_wants_grad(c->t[i])) return true;
  return !(c->op->flags & AMPL_OP_CROSS);
}

/* An operand that backward reads and that lies in the memory which is written: x:mul_(x), x:mul_(x[1]).  Its gradient
 * wants what stood there before; and the node, which x holds from here on, must not hold x in turn. */
static bool keeps_written(const call *c, int i, const ampl_tensor *self) {
  const ampl_tensor *x = c->t[i];
  if (i == 0) return keeps_target(c);
  return x && !(x->flags & AMPL_T_NUMBER) && x->storage == self->storage &&
         c->op->save & (i < c->info->ntensor ? AMPL_SAVE_X(i) | AMPL_SAVE_ALL : AMPL_SAVE_ALL);
}

/* Writes the result of op through a temporary: kernels that cannot write over their operand, other dtypes, views with a
 * graph. */
static ampl_status inplace_by_copy(call *c, ampl_tensor *self) {
  for (int i = 0; c->grad && i < c->nt; i++) {
    ampl_tensor *before;
    if (!keeps_written(c, i, self)) continue;
    AMPL_TRY(ampl_call(c->ctx, &(ampl_args){OP(clone), i ? &c->t[i] : &self, 1, NULL}, &before));
    AMPL_TRY(replace(c, i, before));
  }
  ampl_tensor *value = NULL, *t2[2] = {self, NULL};
  const ampl_args in = args_of(c);
  ampl_modes *m = c->ctx->modes;
  ampl_mode *region = m->autocast;
  m->autocast = NULL;
  ampl_status s = ampl_call(c->ctx, &in, &value);
  if (s == AMPL_OK && c->grad && value->dtype != self->dtype) {
    ampl_tensor *cast = NULL;
    s = ampl_cast_to(c->ctx, value, (ampl_dtype)self->dtype, &cast);
    ampl_tensor_release(value);
    value = cast;
  }
  if (s == AMPL_OK) {
    const bool grad = m->grad;
    m->grad = false;
    t2[1] = value;
    c->ctx->whole++;
    s = ampl_call_inplace(c->ctx, &(ampl_args){OP(copy), t2, 2, NULL});
    c->ctx->whole--;
    m->grad = grad;
  }
  m->autocast = region;
  if (s == AMPL_OK && c->grad) s = ampl_graph_rebase(c->ctx, self, value);
  ampl_tensor_release(value);
  return s;
}

/* A call that writes its operand as it goes is not cut short (see ampl_interrupt), so one that takes long must go
 * through a temporary.  How long an element takes differs a hundredfold, so where the operand is large it is measured,
 * on the first rows. */
static bool takes_long(call *c, const ampl_tensor *self) {
  enum { FEW = 1 << 22, SAMPLE = 1 << 14 };
  const double most = 0.15;             /* seconds */
  const int64_t share = self->numel / c->ctx->threads;
  if (share <= FEW) return false;
  const int64_t row = self->numel / self->shape[0], rows = SAMPLE / row + 1;
  if (c->nt > 2 * AMPL_TENSORS_MAX || self->shape[0] < 64 * rows) return share > 8 * FEW;
  ampl_tensor part[2 * AMPL_TENSORS_MAX], *t[2 * AMPL_TENSORS_MAX], *out = NULL;
  for (int i = 0; i < c->nt; i++) {
    t[i] = c->t[i];
    if (!t[i] || t[i]->ndim != self->ndim || t[i]->shape[0] != self->shape[0]) continue;
    part[i] = *t[i];
    part[i].numel = part[i].numel / part[i].shape[0] * rows;
    part[i].shape[0] = rows;
    t[i] = &part[i];
  }
  ampl_meta m = {.dtype = self->dtype, .ndim = self->ndim};
  memcpy(m.shape, t[0]->shape, sizeof m.shape);
  const ampl_args in = {c->op, t, c->nt, c->p};
  struct timespec from, to;
  if (ampl_tensor_new(c->ctx, ampl_device_of(self), &m, AMPL_KIND_TENSOR, &out) != AMPL_OK) return false;
  clock_gettime(CLOCK_MONOTONIC, &from);
  const ampl_status s = call_kernel(c, ampl_device_of(self)->kernels[c->op->id][c->compute], &in, &out);
  clock_gettime(CLOCK_MONOTONIC, &to);
  ampl_tensor_release(out);
  const double takes = (double)(to.tv_sec - from.tv_sec) + 1e-9 * (double)(to.tv_nsec - from.tv_nsec);
  return s != AMPL_OK || takes * (double)share > most * (double)(rows * row);
}

static ampl_status inplace(call *c, ampl_tensor *self) {
  AMPL_TRY(check_target(c, self));
  AMPL_TRY(infer(c));
  AMPL_TRY(check_result(c, self));
  const bool direct = c->op->flags & AMPL_OP_ELEMENTWISE && c->meta[0].dtype == self->dtype && c->compute >= 0 &&
                      !(c->op->flags & AMPL_OP_BOOL_OUT) && c->t[0] == self &&
                      ampl_device_of(self)->kernels[c->op->id][c->compute];
  if (!direct || c->grad || takes_long(c, self)) return inplace_by_copy(c, self);
  ampl_tensor *out[AMPL_OUT_MAX] = {self};
  c->ctx->whole++;
  const ampl_status s = run_kernel(c, out, true);
  c->ctx->whole--;
  if (s == AMPL_OK) self->storage->version++;
  return s;
}

ampl_status ampl_call_inplace(ampl_ctx *ctx, const ampl_args *in) {
  const char *outer = ctx->op;
  ampl_tensor *self = in->t[0];
  call c;
  begin_call(&c, ctx, in->op);
  ctx->op = name_of(&c);
  /* Autocast leaves self alone: the others are brought to its dtype by promotion. */
  ampl_mode *region = ctx->modes->autocast;
  ctx->modes->autocast = NULL;
  ampl_status s = prepare(&c, in);
  ctx->op = name_of(&c);
  for (int i = 1; s == AMPL_OK && region && region->on && i < c.nt; i++) {
    ampl_tensor *x = c.t[i], *y;
    if (!x || x->flags & AMPL_T_NUMBER || as_is(&c, i) || x->dtype == self->dtype || !ampl_is_float(x) ||
        !ampl_is_float(self) || computes_as_number(&c, x, self->dtype))
      continue;
    if ((s = ampl_cast_to(ctx, x, (ampl_dtype)self->dtype, &y)) == AMPL_OK) s = replace(&c, i, y);
    c.t[0] = self;
    c.compute = self->dtype;
  }
  if (s == AMPL_OK) s = inplace(&c, self);
  ctx->modes->autocast = region;
  drop_call(&c);
  ctx->op = outer;
  return s;
}
