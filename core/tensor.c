/* tensor.c: tensors and their storage: making, viewing, reading, releasing. */
#include "ctx.h"
#include "graph.h"

#include <stdio.h>
#include <string.h>

/* ------------------------------------------------------------------------------------------------ metas ----------- */

int64_t ampl_meta_numel(const ampl_meta *m) {
  int64_t n = 1;
  for (int d = 0; d < m->ndim; d++) n *= m->shape[d];
  return n;
}

/* The product of all sizes but those of 0 must be in reach, too: strides are made of it, and a reduction of the empty
 * dimension leaves it. */
static bool in_reach(int ndim, const int64_t *shape) {
  int64_t n = 1;
  for (int d = 0; d < ndim; d++)
    if (shape[d] > 0 && (__builtin_mul_overflow(n, shape[d], &n) || n > AMPL_NUMEL_MAX)) return false;
  return true;
}

static ampl_status too_large(ampl_ctx *ctx, int ndim, const int64_t *shape) {
  return ampl_error(ctx, AMPL_ESHAPE, "shape %s: its sizes multiply to more elements than memory has addresses",
                    ampl_shape_text(ctx, ndim, shape));
}

ampl_status ampl_meta_shape(ampl_ctx *ctx, ampl_meta *m, int ndim, const int64_t *shape) {
  if (ndim < 0 || ndim > AMPL_RANK_MAX)
    return ampl_error(ctx, AMPL_ESHAPE, "%d dimensions; a tensor has at most %d", ndim, AMPL_RANK_MAX);
  for (int d = 0; d < ndim; d++)
    if (shape[d] < 0)
      return ampl_error(ctx, AMPL_ESHAPE, "negative size in shape %s", ampl_shape_text(ctx, ndim, shape));
  if (!in_reach(ndim, shape)) return too_large(ctx, ndim, shape);
  m->ndim = ndim;
  if (ndim && m->shape != shape) memcpy(m->shape, shape, (size_t)ndim * sizeof *shape);
  return AMPL_OK;
}

ampl_status ampl_meta_like(ampl_meta *m, const ampl_tensor *x) {
  m->dtype = x->dtype;
  m->ndim = x->ndim;
  m->layout = x->flags & AMPL_T_CONTIGUOUS      ? AMPL_LAYOUT_ROW_MAJOR
              : x->flags & AMPL_T_CHANNELS_LAST ? AMPL_LAYOUT_CHANNELS_LAST
                                                : AMPL_LAYOUT_ROW_MAJOR;
  m->offset = 0;
  memcpy(m->shape, x->shape, sizeof m->shape);
  return AMPL_OK;
}

void ampl_layout_strides(ampl_meta *m) {
  int64_t s = 1;
  if (m->layout == AMPL_LAYOUT_STRIDED) return;
  if (m->layout == AMPL_LAYOUT_CHANNELS_LAST && m->ndim >= 3) {         /* (n, c, spatial ...): c runs fastest */
    m->strides[1] = 1;
    s = m->shape[1] > 1 ? m->shape[1] : 1;
    for (int d = m->ndim - 1; d >= 2; d--) m->strides[d] = s, s *= m->shape[d] > 1 ? m->shape[d] : 1;
    m->strides[0] = s;
    return;
  }
  for (int d = m->ndim - 1; d >= 0; d--) m->strides[d] = s, s *= m->shape[d] > 1 ? m->shape[d] : 1;
}

void ampl_tensor_set_layout_flags(ampl_tensor *x) {
  bool row = true, last = x->ndim >= 3;
  int64_t s = 1;
  x->flags &= (uint8_t) ~(AMPL_T_CONTIGUOUS | AMPL_T_CHANNELS_LAST);
  for (int d = x->ndim - 1; d >= 0 && row; d--) {
    if (x->shape[d] != 1 && x->strides[d] != s && x->numel) row = false;
    s *= x->shape[d];
  }
  if (row) x->flags |= AMPL_T_CONTIGUOUS;
  if (!last) return;
  s = 1;
  for (int k = 0; k < x->ndim && last; k++) {
    const int d = k == 0 ? 1 : k < x->ndim - 1 ? x->ndim - k : 0;       /* c, last, last but one ..., n */
    if (x->shape[d] != 1 && x->strides[d] != s && x->numel) last = false;
    s *= x->shape[d];
  }
  if (last) x->flags |= AMPL_T_CHANNELS_LAST;
}

ampl_status ampl_meta_broadcast(ampl_ctx *ctx, ampl_meta *m, int ndim, const int64_t *shape) {
  const int n = ndim > m->ndim ? ndim : m->ndim;
  int64_t out[AMPL_RANK_MAX];
  for (int k = 1; k <= n; k++) {
    const int64_t a = k <= m->ndim ? m->shape[m->ndim - k] : 1, b = k <= ndim ? shape[ndim - k] : 1;
    if (a != b && a != 1 && b != 1)
      return ampl_error(ctx, AMPL_ESHAPE,
                        "shapes %s and %s do not broadcast: sizes %lld and %lld in dimension -%d; sizes must be "
                        "equal or 1",
                        ampl_shape_text(ctx, m->ndim, m->shape), ampl_shape_text(ctx, ndim, shape), (long long)a,
                        (long long)b, k);
    out[n - k] = a == 1 ? b : a;
  }
  if (!in_reach(n, out)) return too_large(ctx, n, out);
  m->ndim = n;
  memcpy(m->shape, out, (size_t)n * sizeof *out);
  return AMPL_OK;
}

ampl_status ampl_meta_reduce(ampl_ctx *ctx, ampl_meta *m, const ampl_tensor *x, ampl_ints dims, bool keepdim) {
  unsigned gone = dims.n ? 0 : ~0u;
  (void)ctx;
  for (int64_t i = 0; i < dims.n; i++) gone |= 1u << dims.v[i];
  m->ndim = 0;
  m->layout = AMPL_LAYOUT_ROW_MAJOR;
  for (int d = 0; d < x->ndim; d++) {
    if (!(gone >> d & 1)) m->shape[m->ndim++] = x->shape[d];
    else if (keepdim) m->shape[m->ndim++] = 1;
  }
  return AMPL_OK;
}

ampl_status ampl_resolve_index(ampl_ctx *ctx, const char *what, int64_t i, int64_t size, int64_t *out) {
  *out = i < 0 ? i + size : i;
  if (*out >= 0 && *out < size) return AMPL_OK;
  return ampl_error(ctx, AMPL_EINDEX, "%s %lld is out of range: positions go from %lld to %lld, or from -%lld to -1",
                    what, (long long)ampl_shown(ctx, i), (long long)ampl_shown(ctx, 0),
                    (long long)(size - 1 + ctx->index_base), (long long)size);
}

int64_t ampl_nth(ampl_ints l, int k, int64_t otherwise) { return l.n <= 0 ? otherwise : l.n == 1 ? l.v[0] : l.v[k]; }

ampl_status ampl_check_nth(ampl_ctx *ctx, const char *what, ampl_ints l, int n) {
  if (l.n <= 1 || l.n == n) return AMPL_OK;
  return ampl_error(ctx, AMPL_ESHAPE, "%s has %lld entries; give one number or %d", what, (long long)l.n, n);
}

int64_t ampl_leading(const ampl_tensor *x) {
  int64_t n = 1;
  for (int d = 0; d + 1 < x->ndim; d++) n *= x->shape[d];
  return n;
}

bool ampl_is_float(const ampl_tensor *x) { return ampl_dtype_is_float((ampl_dtype)x->dtype); }

bool ampl_same_shape(const ampl_tensor *a, const ampl_tensor *b) {
  return a->ndim == b->ndim && memcmp(a->shape, b->shape, (size_t)a->ndim * sizeof *a->shape) == 0;
}

/* ------------------------------------------------------------------------------------------------ storage --------- */

static ampl_status storage_new(ampl_ctx *ctx, ampl_device *device, size_t bytes, ampl_kind kind, ampl_storage **out) {
  ampl_storage *s = ampl_obj_get(ctx, sizeof *s);
  if (!s) return ampl_error(ctx, AMPL_ENOMEM, "out of memory");
  *s = (ampl_storage){.refs = 1, .kind = (uint8_t)kind, .ctx = ctx, .device = device, .bytes = bytes};
  if (bytes) {
    const ampl_status st = ampl_mem_get(ctx, device, bytes, kind, &s->ptr);
    if (st != AMPL_OK) {
      ampl_obj_put(ctx, s, sizeof *s);
      return st;
    }
  }
  ctx->storages++;
  ampl_ctx_retain(ctx);
  *out = s;
  return AMPL_OK;
}

static void storage_release(ampl_storage *s) {
  ampl_ctx *ctx = s->ctx;
  if (__atomic_sub_fetch(&s->refs, 1, __ATOMIC_ACQ_REL) > 0) return;
  if (s->release) s->release(s->ud);
  else if (s->bytes) ampl_mem_put(ctx, s->device, s->ptr, s->bytes, (ampl_kind)s->kind);
  ampl_obj_put(ctx, s, sizeof *s);
  ctx->storages--;
  ampl_ctx_release(ctx);
}

/* ------------------------------------------------------------------------------------------------ tensors --------- */

/* A header on `storage`, whose reference it takes; NULL: out of memory, the reference stays the caller's. */
static ampl_tensor *header_new(ampl_ctx *ctx, ampl_storage *storage, const ampl_meta *m) {
  ampl_tensor *x = ampl_obj_get(ctx, sizeof *x);
  if (!x) return NULL;
  x->refs = 1;
  x->dtype = (uint8_t)m->dtype;
  x->ndim = (uint8_t)m->ndim;
  x->flags = 0;
  x->storage = storage;
  x->numel = ampl_meta_numel(m);
  memcpy(x->shape, m->shape, (size_t)m->ndim * sizeof *m->shape);
  memcpy(x->strides, m->strides, (size_t)m->ndim * sizeof *m->strides);
  x->node = NULL;
  x->out_index = 0;
  x->grad = NULL;
  x->hooks = NULL;
  x->view = NULL;
  if (m->ndim == 0) x->flags = AMPL_T_CONTIGUOUS;
  else if (m->layout == AMPL_LAYOUT_ROW_MAJOR && m->ndim < 3) x->flags = AMPL_T_CONTIGUOUS;
  else ampl_tensor_set_layout_flags(x);
  ctx->tensors++;
  return x;
}

ampl_status ampl_tensor_new(ampl_ctx *ctx, ampl_device *device, const ampl_meta *meta, ampl_kind kind,
                            ampl_tensor **out) {
  ampl_meta m = *meta;
  ampl_storage *s = NULL;
  *out = NULL;
  if (!in_reach(m.ndim, m.shape)) return too_large(ctx, m.ndim, m.shape);
  if (m.layout != AMPL_LAYOUT_STRIDED) ampl_layout_strides(&m);
  int64_t n = ampl_meta_numel(&m);
  AMPL_TRY(storage_new(ctx, device, (size_t)n * ampl_dtype_size((ampl_dtype)m.dtype), kind, &s));
  ampl_tensor *x = header_new(ctx, s, &m);
  if (!x) {
    storage_release(s);
    return ampl_error(ctx, AMPL_ENOMEM, "out of memory");
  }
  x->data = s->ptr;
  if (ctx->modes->inference) x->flags |= AMPL_T_INFERENCE;
  *out = x;
  return AMPL_OK;
}

/* For plug-ins: as a tensor's memory. */
ampl_status ampl_tensor_new_default(ampl_ctx *ctx, ampl_device *device, const ampl_meta *meta, ampl_tensor **out) {
  return ampl_tensor_new(ctx, device, meta, AMPL_KIND_TENSOR, out);
}

ampl_tensor *ampl_tensor_view(ampl_ctx *ctx, const ampl_tensor *x, const ampl_meta *meta) {
  ampl_meta m = *meta;
  if (m.layout != AMPL_LAYOUT_STRIDED) ampl_layout_strides(&m);
  m.layout = AMPL_LAYOUT_STRIDED;
  ampl_tensor *y = header_new(ctx, x->storage, &m);
  if (!y) return NULL;
  __atomic_add_fetch(&x->storage->refs, 1, __ATOMIC_RELAXED);
  y->data = (char *)x->data + m.offset * (int64_t)ampl_dtype_size((ampl_dtype)x->dtype);
  y->flags |= x->flags & AMPL_T_INFERENCE;
  return y;
}

ampl_tensor *ampl_tensor_alias(const ampl_tensor *x) {
  ampl_ctx *ctx = ampl_ctx_of(x);
  ampl_tensor *y = ampl_obj_get(ctx, sizeof *y);
  if (!y) return NULL;
  *y = *x;
  y->refs = 1;
  y->flags &= AMPL_T_CONTIGUOUS | AMPL_T_CHANNELS_LAST | AMPL_T_NUMBER | AMPL_T_INFERENCE;
  y->node = NULL;
  y->grad = NULL;
  y->hooks = NULL;
  y->view = NULL;
  if (x->flags & AMPL_T_NUMBER) {
    y->data = y->strides;
    ampl_ctx_retain(ctx);               /* as each number does, and no storage */
  }
  __atomic_add_fetch(&x->storage->refs, 1, __ATOMIC_RELAXED);
  ctx->tensors++;
  return y;
}

/* The value stands in the header itself: a number needs no block of memory. */
ampl_tensor *ampl_number_new(ampl_ctx *ctx, ampl_dtype t, double f, int64_t i) {
  static const ampl_meta scalar = {.layout = AMPL_LAYOUT_STRIDED};
  ampl_tensor *x = header_new(ctx, ctx->number_storage, &scalar);
  if (!x) return NULL;
  __atomic_add_fetch(&ctx->number_storage->refs, 1, __ATOMIC_RELAXED);
  ampl_ctx_retain(ctx);
  x->dtype = (uint8_t)t;
  x->flags |= AMPL_T_NUMBER;
  x->data = x->strides;
  if (t == AMPL_F64) memcpy(x->data, &f, sizeof f);
  else memcpy(x->data, &i, sizeof i);
  return x;
}

double ampl_number_value(const ampl_tensor *x) {
  return x->dtype == AMPL_F64 ? *(const double *)x->data : (double)*(const int64_t *)x->data;
}

void ampl_tensor_retain(ampl_tensor *x) {
  if (x) __atomic_add_fetch(&x->refs, 1, __ATOMIC_RELAXED);
}

void ampl_tensor_release(ampl_tensor *x) {
  if (!x || __atomic_sub_fetch(&x->refs, 1, __ATOMIC_ACQ_REL) > 0) return;
  ampl_ctx *ctx = ampl_ctx_of(x);
  ampl_graph_forget(ctx, x);            /* node, grad, hooks, view; long chains without recursion */
  ampl_storage *s = x->storage;
  ctx->tensors--;
  if (x->flags & AMPL_T_NUMBER) {       /* shared storage, one context reference a number */
    __atomic_sub_fetch(&s->refs, 1, __ATOMIC_RELAXED);
    ampl_obj_put(ctx, x, sizeof *x);
    ampl_ctx_release(ctx);
    return;
  }
  ampl_obj_put(ctx, x, sizeof *x);
  storage_release(s);
}

bool ampl_tensor_overlaps_itself(const ampl_tensor *x) {
  bool shared = false;
  for (int d = 0; d < x->ndim; d++) {
    if (x->shape[d] == 0) return false;
    if (x->shape[d] > 1 && x->strides[d] == 0) shared = true;
  }
  return shared;
}

ampl_status ampl_check_list(ampl_ctx *ctx, const char *what, int64_t n, ampl_tensor *const *v, bool holes) {
  if (n < 0 || (n > 0 && !v))
    return ampl_error(ctx, AMPL_EARG, "%s: %lld tensors at %p", what, (long long)n, (const void *)v);
  for (int64_t i = 0; i < n; i++) {
    if (!v[i] && !holes) return ampl_error(ctx, AMPL_EARG, "%s: entry %lld is NULL", what, (long long)i);
    if (v[i] && ampl_ctx_of(v[i]) != ctx) return ampl_error(ctx, AMPL_EARG, "%s: " AMPL_FOREIGN_TENSOR, what);
  }
  return AMPL_OK;
}

/* ------------------------------------------------------------------------------------------------ public ---------- */

static ampl_status meta_of(ampl_ctx *ctx, ampl_dtype t, int ndim, const int64_t *shape, ampl_meta *m) {
  ctx->op = "";
  *m = (ampl_meta){.dtype = (int)t};
  if ((unsigned)t >= AMPL_DTYPE_COUNT) return ampl_error(ctx, AMPL_EDTYPE, "no dtype has the number %d", (int)t);
  if (ndim < 0) return ampl_error(ctx, AMPL_ESHAPE, "%d dimensions", ndim);
  if (ndim > 0 && !shape) return ampl_error(ctx, AMPL_EARG, "%d dimensions, and their shape is NULL", ndim);
  return ampl_meta_shape(ctx, m, ndim, shape);
}

ampl_status ampl_empty(ampl_ctx *ctx, ampl_dtype t, int ndim, const int64_t *shape, ampl_tensor **out) {
  ampl_meta m;
  AMPL_NEED(NULL, ctx);
  AMPL_NEED(ctx, out);
  *out = NULL;
  AMPL_TRY(meta_of(ctx, t, ndim, shape, &m));
  return ampl_tensor_new(ctx, ctx->device, &m, AMPL_KIND_TENSOR, out);
}

/* What was made is dropped where it could not be filled. */
static ampl_status filled(ampl_status s, ampl_tensor **out) {
  if (s == AMPL_OK) return s;
  ampl_tensor_release(*out);
  *out = NULL;
  return s;
}

typedef enum transfer { ZERO, FROM_HOST, TO_HOST } transfer;

/* Of memory of `device`, in parts, so that an interrupt ends it; what takes no time is not interrupted. */
static ampl_status move_bytes(ampl_ctx *ctx, const ampl_device *device, transfer how, void *dst, const void *src,
                              size_t bytes) {
  const size_t most = (size_t)32 << 20;
  const ampl_backend *b = device->backend;
  for (size_t at = 0, n; at < bytes; at += n) {
    n = bytes - at < most ? bytes - at : most;
    void *to = (char *)dst + at;
    const void *from = src ? (const char *)src + at : NULL;
    if (at > 0 && ampl_should_stop(ctx)) return ampl_error(ctx, AMPL_EINTR, "interrupted");
    AMPL_TRY(how == ZERO        ? b->zero(device->index, to, n)
             : how == FROM_HOST ? b->copy_from_host(device->index, to, from, n)
                                : b->copy_to_host(device->index, to, from, n));
  }
  return AMPL_OK;
}

ampl_status ampl_zeros(ampl_ctx *ctx, ampl_dtype t, int ndim, const int64_t *shape, ampl_tensor **out) {
  AMPL_TRY(ampl_empty(ctx, t, ndim, shape, out));
  const ampl_storage *s = (*out)->storage;
  return filled(move_bytes(ctx, s->device, ZERO, s->ptr, NULL, s->bytes), out);
}

ampl_status ampl_full(ampl_ctx *ctx, ampl_dtype t, int ndim, const int64_t *shape, double v, ampl_tensor **out) {
  ampl_meta m;
  AMPL_NEED(NULL, ctx);
  AMPL_NEED(ctx, out);
  *out = NULL;
  AMPL_TRY(meta_of(ctx, t, ndim, shape, &m));
  ampl_value args[] = {{.l = {shape, ndim}}, {.t = ampl_number_new(ctx, AMPL_F64, v, 0)}, {.i = (int64_t)t}};
  if (!args[1].t) return ampl_error(ctx, AMPL_ENOMEM, "out of memory");
  const ampl_status s = ampl_run_op(ctx, OP(full), args, 3, out, 1);
  ampl_tensor_release(args[1].t);
  return s;
}

ampl_status ampl_randn(ampl_ctx *ctx, ampl_dtype t, int ndim, const int64_t *shape, ampl_tensor **out) {
  const ampl_value args[] = {{.l = {shape, ndim}}, {.i = (int64_t)t}};
  ampl_meta m;
  AMPL_NEED(NULL, ctx);
  AMPL_NEED(ctx, out);
  *out = NULL;
  AMPL_TRY(meta_of(ctx, t, ndim, shape, &m));
  return ampl_run_op(ctx, OP(randn), args, 2, out, 1);
}

ampl_status ampl_from_bytes(ampl_ctx *ctx, ampl_dtype t, int ndim, const int64_t *shape, const void *data, size_t bytes,
                            ampl_tensor **out) {
  ampl_meta m;
  AMPL_NEED(NULL, ctx);
  AMPL_NEED(ctx, out);
  *out = NULL;
  AMPL_TRY(meta_of(ctx, t, ndim, shape, &m));
  if (bytes) AMPL_NEED(ctx, data);
  const size_t need = (size_t)ampl_meta_numel(&m) * ampl_dtype_size(t);
  if (need != bytes)
    return ampl_error(ctx, AMPL_ESHAPE, "%zu bytes given, %zu needed for %s", bytes, need, ampl_meta_text(ctx, &m));
  AMPL_TRY(ampl_tensor_new(ctx, ctx->device, &m, AMPL_KIND_TENSOR, out));
  const ampl_storage *s = (*out)->storage;
  return filled(move_bytes(ctx, s->device, FROM_HOST, s->ptr, data, bytes), out);
}

static ampl_status check_borrowed(ampl_ctx *ctx, ampl_dtype t, int ndim, const int64_t *shape, const void *data,
                                  ampl_meta *m) {
  AMPL_TRY(meta_of(ctx, t, ndim, shape, m));
  if (!data && ampl_meta_numel(m))
    return ampl_error(ctx, AMPL_EARG, "no memory given (data is NULL) for %s", ampl_meta_text(ctx, m));
  return AMPL_OK;
}

ampl_status ampl_from_memory(ampl_ctx *ctx, ampl_dtype t, int ndim, const int64_t *shape, void *data,
                             void (*release)(void *ud), void *ud, ampl_tensor **out) {
  ampl_meta m;
  ampl_storage *s = NULL;
  if (out) *out = NULL;
  ampl_status st = ctx && out ? check_borrowed(ctx, t, ndim, shape, data, &m)
                              : ampl_error_null(ctx, __func__, ctx ? "out" : "ctx");
  if (st == AMPL_OK) st = storage_new(ctx, ampl_device_at(0), 0, AMPL_KIND_TENSOR, &s);
  if (st == AMPL_OK) {
    ampl_layout_strides(&m);
    s->ptr = data;
    s->release = release;
    s->ud = ud;
    *out = header_new(ctx, s, &m);
    if (*out) {
      (*out)->data = data;
      return AMPL_OK;
    }
    storage_release(s);                 /* calls `release` */
    return ampl_error(ctx, AMPL_ENOMEM, "out of memory");
  }
  if (release) release(ud);
  return st;
}

int ampl_ndim(const ampl_tensor *x) { return x ? x->ndim : 0; }
const int64_t *ampl_shape(const ampl_tensor *x) { return x ? x->shape : NULL; }
const int64_t *ampl_strides(const ampl_tensor *x) { return x ? x->strides : NULL; }
int64_t ampl_numel(const ampl_tensor *x) { return x ? x->numel : 0; }
ampl_dtype ampl_tensor_dtype(const ampl_tensor *x) { return (ampl_dtype)(x ? x->dtype : AMPL_DTYPE_NONE); }
const char *ampl_tensor_device(const ampl_tensor *x) { return x ? x->storage->device->name : ""; }
bool ampl_is_contiguous(const ampl_tensor *x) { return x && x->flags & AMPL_T_CONTIGUOUS; }
void *ampl_data(const ampl_tensor *x) { return x ? x->data : NULL; }

ampl_status ampl_to_bytes(const ampl_tensor *x, void *dst, size_t bytes) {
  AMPL_NEED(NULL, x);
  ampl_ctx *ctx = ampl_ctx_of(x);
  const size_t need = (size_t)x->numel * ampl_dtype_size((ampl_dtype)x->dtype);
  ampl_tensor *dense = NULL;
  AMPL_NAMED(ctx, "");
  if (bytes != need) return ampl_error(ctx, AMPL_ESHAPE, "room for %zu bytes, %zu needed", bytes, need);
  if (!need) return AMPL_OK;
  AMPL_NEED(ctx, dst);
  if (!(x->flags & AMPL_T_CONTIGUOUS)) {
    ampl_tensor *alias = ampl_tensor_alias(x);
    if (!alias) return ampl_error(ctx, AMPL_ENOMEM, "out of memory");
    const ampl_status s = ampl_call(ctx, &(ampl_args){.op = OP(contiguous), .t = &alias, .nt = 1}, &dense);
    ampl_tensor_release(alias);
    AMPL_TRY(s);
    x = dense;
  }
  const ampl_status s = move_bytes(ctx, ampl_device_of(x), TO_HOST, dst, x->data, need);
  ampl_tensor_release(dense);
  return s;
}

/* f16 of its bits, exactly. */
static double from_f16(uint16_t h) {
  const int e = h >> 10 & 31, m = h & 1023;
  const double v = e == 0    ? m * 0x1p-24
                   : e == 31 ? (m ? __builtin_nan("") : __builtin_inf())
                             : (1024 + m) * __builtin_ldexp(1, e - 25);
  return h >> 15 ? -v : v;
}

ampl_status ampl_host_scalar(const ampl_tensor *x, double *f, int64_t *i) {
  union { float f32; uint16_t h; double f64; int64_t i64; int32_t i32; uint8_t u8; uint32_t u; } v;
  const ampl_device *device = ampl_device_of(x);
  if (x->flags & AMPL_T_NUMBER) memcpy(&v, x->data, 8);
  else AMPL_TRY(device->backend->copy_to_host(device->index, &v, x->data, ampl_dtype_size((ampl_dtype)x->dtype)));
  *i = 0;
  switch ((ampl_dtype)x->dtype) {
  case AMPL_F32: *f = v.f32; return AMPL_OK;
  case AMPL_F16: *f = from_f16(v.h); return AMPL_OK;
  case AMPL_BF16: v.u = (uint32_t)v.h << 16; *f = v.f32; return AMPL_OK;
  case AMPL_F64: *f = v.f64; return AMPL_OK;
  case AMPL_I64: *i = v.i64; break;
  case AMPL_I32: *i = v.i32; break;
  default: *i = v.u8;
  }
  *f = (double)*i;
  return AMPL_OK;
}

ampl_status ampl_item_any(const ampl_tensor *x, double *f, int64_t *i) {
  AMPL_NEED(NULL, x);
  AMPL_NEED(ampl_ctx_of(x), f);
  AMPL_NEED(ampl_ctx_of(x), i);
  ampl_ctx *ctx = ampl_ctx_of(x);
  AMPL_NAMED(ctx, "item");
  if (x->numel != 1)
    return ampl_error(ctx, AMPL_ESHAPE, "a tensor of %s has %lld elements, not one", ampl_tensor_text(ctx, x),
                      (long long)x->numel);
  return ampl_host_scalar(x, f, i);
}

ampl_status ampl_item(const ampl_tensor *x, double *out) {
  AMPL_NEED(NULL, x);
  AMPL_NEED(ampl_ctx_of(x), out);
  int64_t i;
  return ampl_item_any(x, out, &i);
}

ampl_status ampl_number(ampl_ctx *ctx, double v, ampl_tensor **out) {
  AMPL_NEED(NULL, ctx);
  AMPL_NEED(ctx, out);
  *out = ampl_number_new(ctx, AMPL_F64, v, 0);
  return *out ? AMPL_OK : ampl_error(ctx, AMPL_ENOMEM, "out of memory");
}

ampl_status ampl_integer(ampl_ctx *ctx, int64_t v, ampl_tensor **out) {
  AMPL_NEED(NULL, ctx);
  AMPL_NEED(ctx, out);
  *out = ampl_number_new(ctx, AMPL_I64, 0, v);
  return *out ? AMPL_OK : ampl_error(ctx, AMPL_ENOMEM, "out of memory");
}

ampl_status ampl_boolean(ampl_ctx *ctx, bool v, ampl_tensor **out) {
  AMPL_NEED(NULL, ctx);
  AMPL_NEED(ctx, out);
  *out = ampl_number_new(ctx, AMPL_BOOL, 0, v);
  return *out ? AMPL_OK : ampl_error(ctx, AMPL_ENOMEM, "out of memory");
}

/* Through the host where two backends meet; unrecorded. */
ampl_status ampl_to_device(ampl_tensor *x, const char *name, ampl_tensor **out) {
  AMPL_NEED(NULL, x);
  AMPL_NEED(ampl_ctx_of(x), name);
  AMPL_NEED(ampl_ctx_of(x), out);
  ampl_ctx *ctx = ampl_ctx_of(x);
  ampl_tensor *dense = NULL;
  ampl_meta m;
  void *host = NULL;
  *out = NULL;
  AMPL_NAMED(ctx, "to");
  ampl_device *device = ampl_device_find(ctx, name);
  if (!device) return AMPL_EDEVICE;
  if (device == ampl_device_of(x)) {
    ampl_tensor_retain(*out = x);
    return AMPL_OK;
  }
  AMPL_TRY(ampl_meta_like(&m, x));
  m.layout = AMPL_LAYOUT_ROW_MAJOR;
  AMPL_TRY(ampl_tensor_new(ctx, device, &m, AMPL_KIND_TENSOR, &dense));
  const size_t bytes = dense->storage->bytes;
  ampl_status s = ampl_mem_get(ctx, ampl_device_at(0), bytes, AMPL_KIND_SCRATCH, &host);
  if (s == AMPL_OK) s = ampl_to_bytes(x, host, bytes);
  if (s == AMPL_OK) s = move_bytes(ctx, device, FROM_HOST, dense->data, host, bytes);
  ampl_mem_put(ctx, ampl_device_at(0), host, bytes, AMPL_KIND_SCRATCH);
  if (s == AMPL_OK) *out = dense;
  else ampl_tensor_release(dense);
  return s;
}
