/* index_put.c: reading and writing at lists of index tensors and masks. */
#include "group.h"
#include "move.h"
#include "op.h"

#include <string.h>

static size_t size_of(const ampl_tensor *x) { return ampl_dtype_size((ampl_dtype)x->dtype); }

/* ------------------------------------------------------------------------------------------------ lists ----------- */

/* How many elements of a mask are true. */
static int64_t count_true(ampl_ctx *ctx, const ampl_tensor *mask) {
  ampl_cpu_stream s;
  int64_t n = 0;
  ampl_cpu_streams(1, &mask, mask->ndim, mask->shape, false, &s);
  for (int64_t i = 0; i < mask->numel && !ampl_cpu_stop_at(ctx, i, 1); i++)
    n += *(const uint8_t *)(s.data + ampl_cpu_offset(&s, i)) != 0;
  return n;
}

/* The flat places, within the mask, of its true elements. */
static void true_places(ampl_ctx *ctx, const ampl_tensor *mask, int64_t *out) {
  ampl_cpu_stream s;
  ampl_cpu_streams(1, &mask, mask->ndim, mask->shape, false, &s);
  for (int64_t i = 0; i < mask->numel && !ampl_cpu_stop_at(ctx, i, 1); i++)
    if (*(const uint8_t *)(s.data + ampl_cpu_offset(&s, i)) != 0) *out++ = i;
}

/* Shape of all index tensors broadcast; a mask counts as a vector. */
static ampl_status common_shape(ampl_ctx *ctx, const ampl_args *in, ampl_meta *m) {
  m->ndim = 0;
  for (int i = 1; i < in->nt; i++) {
    const ampl_tensor *v = in->t[i];
    if (!v) continue;
    int64_t n = v->dtype == AMPL_BOOL ? count_true(ctx, v) : 0;
    AMPL_TRY(ampl_cpu_poll(ctx));
    if (v->dtype == AMPL_BOOL) AMPL_TRY(ampl_meta_broadcast(ctx, m, 1, &n));
    else AMPL_TRY(ampl_meta_broadcast(ctx, m, v->ndim, v->shape));
  }
  return AMPL_OK;
}

/* all = all * size + this, where `these` (row-major, of shape `shape`) broadcasts to the result. */
static void combine(ampl_ctx *ctx, ampl_tensor *all, int64_t size, const int64_t *these, int nd, const int64_t *shape) {
  int64_t stride[AMPL_RANK_MAX] = {0}, n = 1, *p = all->data;
  for (int d = nd - 1; d >= 0; d--) {
    if (shape[d] != 1) stride[all->ndim - nd + d] = n;
    n *= shape[d];
  }
  ampl_cpu_stream s;
  ampl_cpu_streams_from(1, (const int64_t *const[]){stride}, all->ndim, all->shape, false, &s);
  for (int64_t i = 0; i < all->numel && !ampl_cpu_stop_at(ctx, i, 1); i++)
    p[i] = p[i] * size + these[ampl_cpu_offset(&s, i)];
}

static ampl_status index_positions(ampl_ctx *ctx, const ampl_args *in, ampl_tensor **out) {
  const ampl_tensor *x = in->t[0];
  ampl_meta m = {.ndim = 0};
  AMPL_TRY(common_shape(ctx, in, &m));
  AMPL_TRY(ampl_cpu_new(ctx, x, AMPL_I64, m.ndim, m.shape, &out[0]));
  AMPL_TRY(ampl_cpu_zero(ctx, out[0]->data, (size_t)out[0]->numel * sizeof(int64_t)));
  for (int i = 1, d = 0; i < in->nt; i++) {
    const ampl_tensor *v = in->t[i];
    int64_t size = 1, *p;
    if (!v) {
      d++;
    } else if (v->dtype == AMPL_BOOL) {
      int64_t n = count_true(ctx, v);
      AMPL_TRY(ampl_cpu_poll(ctx));
      size_t bytes = (size_t)(n > 0 ? n : 1) * sizeof *p;
      for (int k = 0; k < v->ndim; k++) size *= x->shape[d++];
      if (!(p = ampl_cpu_scratch_get(ctx, bytes)))
        return ampl_error(ctx, AMPL_ENOMEM, "no memory for %zu bytes", bytes);
      true_places(ctx, v, p);
      const ampl_status s = ampl_cpu_poll(ctx);
      if (s == AMPL_OK) combine(ctx, out[0], size, p, 1, &n);
      ampl_cpu_scratch_put(ctx, p, bytes);
    } else {
      size = x->shape[d++];
      AMPL_TRY(ampl_cpu_positions_get(ctx, v, size, "position", &p));
      combine(ctx, out[0], size, p, v->ndim, v->shape);
      ampl_cpu_positions_put(ctx, v, p);
    }
  }
  return ampl_cpu_poll(ctx);
}

/* ------------------------------------------------------------------------------------------------ geometry -------- */

/* A tensor x with indexed dimensions, and t, which looks like the part of x that is read or written: the positions'
 * dimensions stand in t from `front` on, the dimensions of x that are not indexed around them. */
typedef struct parts {
  int             front, nrest, ndims;
  int64_t         shape[AMPL_RANK_MAX], of_x[AMPL_RANK_MAX], of_t[AMPL_RANK_MAX];       /* the rest's */
  ampl_cpu_stream dest, source;         /* where a position begins: in x by flat position, in t by number */
} parts;

static void parts_of(parts *w, const ampl_tensor *x, ampl_ints dims, const ampl_tensor *p, const int64_t *tstride) {
  *w = (parts){.ndims = (int)dims.n};
  bool neighbours = dims.n > 0 && dims.v[dims.n - 1] - dims.v[0] == dims.n - 1;
  w->front = neighbours ? (int)dims.v[0] : 0;
  w->dest = (ampl_cpu_stream){.nd = w->ndims, .n = 1};
  for (int k = 0; k < w->ndims; k++) {
    w->dest.shape[k] = x->shape[dims.v[k]], w->dest.stride[k] = x->strides[dims.v[k]];
    w->dest.n *= x->shape[dims.v[k]];
  }
  if (w->ndims == 0) w->dest = ampl_cpu_stream_1d(1, 0);
  w->source = (ampl_cpu_stream){.nd = p->ndim, .n = p->numel};
  for (int k = 0; k < p->ndim; k++) w->source.shape[k] = p->shape[k], w->source.stride[k] = tstride[w->front + k];
  if (p->ndim == 0) w->source = ampl_cpu_stream_1d(1, 0);
  for (int d = 0, k = 0, at = 0; d < x->ndim; d++) {
    if (k < dims.n && dims.v[k] == d) {
      k++;
      continue;
    }
    if (at == w->front) at += p->ndim;
    w->shape[w->nrest] = x->shape[d], w->of_x[w->nrest] = x->strides[d];
    w->of_t[w->nrest++] = tstride[at++];
  }
}

/* ------------------------------------------------------------------------------------------------ take ------------ */

static ampl_status take_at(ampl_ctx *ctx, const ampl_args *in, ampl_tensor **out) {
  const ampl_tensor *x = in->t[0], *p = in->t[1];
  ampl_tensor *y = out[0];
  parts w;
  ampl_cpu_axis axis[AMPL_RANK_MAX + 1];
  int nd = 0, rest = 0;
  if (y->numel == 0) return AMPL_OK;
  parts_of(&w, x, in->p[0].l, p, y->strides);
  size_t bytes = (size_t)p->numel * sizeof(int64_t);
  int64_t *offset = ampl_cpu_scratch_get(ctx, bytes);
  if (!offset) return ampl_error(ctx, AMPL_ENOMEM, "no memory for %zu bytes of positions", bytes);
  for (int64_t i = 0; i < p->numel && !ampl_cpu_stop_at(ctx, i, 1); i++)
    offset[i] = ampl_cpu_offset(&w.dest, ((const int64_t *)p->data)[i]);
  for (; rest < w.front; rest++) axis[nd++] = (ampl_cpu_axis){w.shape[rest], w.of_x[rest], NULL};
  axis[nd++] = (ampl_cpu_axis){p->numel, 1, offset};
  for (; rest < w.nrest; rest++) axis[nd++] = (ampl_cpu_axis){w.shape[rest], w.of_x[rest], NULL};
  ampl_status s = ampl_cpu_poll(ctx);
  if (s == AMPL_OK) s = ampl_cpu_pick(ctx, size_of(x), nd, axis, y->data, x->data, NULL);
  ampl_cpu_scratch_put(ctx, offset, bytes);
  return s;
}

/* y += t at the positions. */
static ampl_status add_at(ampl_ctx *ctx, ampl_tensor *y, const ampl_tensor *p, ampl_ints dims, int dtype,
                          const void *data, const int64_t *tstride, bool fresh) {
  parts w;
  ampl_cpu_groups g;
  parts_of(&w, y, dims, p, tstride);
  ampl_cpu_adding a = {.dtype = dtype, .dst = y->data, .src = data, .dest = w.dest, .source = w.source, .alpha = 1,
                       .fresh = fresh, .skip = -1};
  AMPL_TRY(ampl_cpu_groups_get(ctx, p->data, p->numel, w.dest.n, &g));
  ampl_cpu_streams_from(2, (const int64_t *const[]){w.of_x, w.of_t}, w.nrest, w.shape, true, a.part);
  const ampl_status s = ampl_cpu_add_groups(ctx, &a, &g);
  ampl_cpu_groups_put(ctx, &g);
  return s;
}

static ampl_status take_at_backward(ampl_ctx *ctx, const ampl_args *in, ampl_tensor **out) {
  const ampl_tensor *dy = in->t[0];
  return add_at(ctx, out[0], in->t[1], in->p[1].l, dy->dtype, dy->data, dy->strides, true);
}

/* ------------------------------------------------------------------------------------------------ put ------------- */

/* In order, so that of several values for one place the last one stays. */
static ampl_status put_in_order(ampl_ctx *ctx, ampl_tensor *y, const ampl_tensor *p, const parts *w,
                                const char *values) {
  ampl_cpu_stream part[2];
  int64_t size = (int64_t)size_of(y);
  ampl_cpu_streams_from(2, (const int64_t *const[]){w->of_x, w->of_t}, w->nrest, w->shape, true, part);
  int last = part[0].nd - 1;
  int64_t n = part[0].shape[last], ds = part[0].stride[last], ss = part[1].stride[last];
  for (int64_t k = 0; k < p->numel && !ampl_cpu_stop_at(ctx, k * part[0].n, part[0].n); k++) {
    char *d = ampl_cpu_at(y, ampl_cpu_offset(&w->dest, ((const int64_t *)p->data)[k]));
    const char *s = values + ampl_cpu_offset(&w->source, k) * size;
    for (int64_t pos = 0; pos < part[0].n; pos += n) {
      ampl_cpu_line((size_t)size, d + ampl_cpu_offset(&part[0], pos) * size, ds,
                    s + ampl_cpu_offset(&part[1], pos) * size, ss, n);
    }
  }
  return ampl_cpu_poll(ctx);
}

static ampl_status put_at(ampl_ctx *ctx, const ampl_args *in, ampl_tensor **out) {
  const ampl_tensor *x = in->t[0], *p = in->t[1], *values = in->t[2];
  ampl_tensor *y = out[0];
  ampl_ints dims = in->p[0].l;
  int tdim = x->ndim - (int)dims.n + p->ndim;
  int64_t tstride[2 * AMPL_RANK_MAX] = {0};
  uint64_t number;
  const void *data = values->data;
  AMPL_TRY(ampl_cpu_copy_all(ctx, y, x));
  if (p->numel == 0 || y->numel == 0) return AMPL_OK;
  for (int d = 0; d < values->ndim; d++)
    if (values->shape[d] != 1) tstride[tdim - values->ndim + d] = values->strides[d];
  if (values->dtype != y->dtype) {      /* a plain number */
    ampl_cpu_scalar(values, y->dtype, &number);
    data = &number;
  }
  if (in->p[1].i) return add_at(ctx, y, p, dims, y->dtype, data, tstride, false);
  parts w;
  parts_of(&w, y, dims, p, tstride);
  return put_in_order(ctx, y, p, &w, data);
}

const ampl_kernel ampl_cpu_index_put_kernels[] = {{"index_positions", AMPL_DTYPE_NONE, index_positions},
                                                  {"take_at", AMPL_DTYPE_NONE, take_at},
                                                  {"take_at_backward", AMPL_DTYPE_NONE, take_at_backward},
                                                  {"put_at", AMPL_DTYPE_NONE, put_at},
                                                  {NULL, 0, NULL}};
