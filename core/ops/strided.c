/* as_strided, view_put: a window of a tensor's memory, read and written, with gradients.  Internal: they carry the
 * graph of views whose base was written in place (graph.c), where no data has to move.
 *   as_strided(x): the window.             dx = view_put(0, dy)
 *   view_put(x, v): x with the window = v. dx = view_put(dy, 0), dv = as_strided(dy)
 * Strides and offset count in x's memory as it lay then: `base_stride`. */
#include "../ctx.h"

#include <string.h>

enum { SIZE, STRIDE, OFFSET, BASE_STRIDE };

static ampl_meta window_of(const ampl_value *p, int dtype) {
  ampl_meta m = {.dtype = dtype, .ndim = (int)p[SIZE].l.n, .layout = AMPL_LAYOUT_STRIDED, .offset = p[OFFSET].i};
  for (int d = 0; d < m.ndim; d++) m.shape[d] = p[SIZE].l.v[d], m.strides[d] = p[STRIDE].l.v[d];
  return m;
}

/* A copy of x that lies in memory as the base did. */
static ampl_tensor *lay_out(ampl_eval *e, ampl_tensor *x, ampl_ints strides) {
  ampl_meta m = {.dtype = x->dtype, .ndim = x->ndim, .layout = AMPL_LAYOUT_STRIDED};
  ampl_tensor *y;
  if (e->status != AMPL_OK) return NULL;
  memcpy(m.shape, x->shape, sizeof m.shape);
  for (int d = 0; d < m.ndim; d++) m.strides[d] = strides.v[d];
  e->status = ampl_tensor_new(e->ctx, ampl_device_of(x), &m, AMPL_KIND_TENSOR, &y);
  if (e->status != AMPL_OK) return NULL;
  ampl_eval_own(e, y);
  e->status = ampl_call_inplace(e->ctx, &(ampl_args){OP(copy), (ampl_tensor *[]){y, x}, 2, NULL});
  return y;
}

static ampl_tensor *window(ampl_eval *e, ampl_tensor *x, const ampl_value *p) {
  const ampl_meta m = window_of(p, x->dtype);
  ampl_tensor *y = ampl_tensor_view(e->ctx, x, &m);
  if (!y) e->status = ampl_error(e->ctx, AMPL_ENOMEM, "out of memory");
  return ampl_eval_own(e, y);
}

static ampl_status read_window(ampl_eval *e, const ampl_args *in, ampl_tensor **out) {
  ampl_tensor *x = lay_out(e, in->t[0], in->p[BASE_STRIDE].l);
  if (!x || !(x = window(e, x, in->p))) return e->status;
  return ampl_eval_return(e, EV(e, contiguous, T(x)), out);
}

static ampl_status write_window(ampl_eval *e, const ampl_args *in, ampl_tensor **out) {
  ampl_tensor *x = lay_out(e, in->t[0], in->p[BASE_STRIDE].l), *w;
  if (!x || !(w = window(e, x, in->p))) return e->status;
  AMPL_TRY(ampl_call_inplace(e->ctx, &(ampl_args){OP(copy), (ampl_tensor *[]){w, in->t[1]}, 2, NULL}));
  return ampl_eval_return(e, x, out);
}

static ampl_tensor *zeros(ampl_grad *g, int dtype, int ndim, const int64_t *shape) {
  const ampl_value p[] = {V_L(ndim, shape), V_I(dtype), V_S(ampl_tensor_device(g->dy[0]))};
  return ampl_eval_op(&g->e, OP(zeros), NULL, 0, p, 3);
}

static ampl_status read_backward(ampl_grad *g) {
  ampl_tensor *z = zeros(g, g->dy[0]->dtype, g->xm[0].ndim, g->xm[0].shape);
  ampl_grad_set(g, 0, ampl_eval_op(&g->e, OP(view_put), T(z, g->dy[0]), g->p, 4));
  return AMPL_OK;
}

static ampl_status write_backward(ampl_grad *g) {
  if (g->need[0]) {
    ampl_tensor *z = zeros(g, g->dy[0]->dtype, g->xm[1].ndim, g->xm[1].shape);
    ampl_grad_set(g, 0, ampl_eval_op(&g->e, OP(view_put), T(g->dy[0], z), g->p, 4));
  }
  if (g->need[1]) ampl_grad_set(g, 1, ampl_eval_op(&g->e, OP(as_strided), T(g->dy[0]), g->p, 4));
  return AMPL_OK;
}

static ampl_status infer_read(ampl_ctx *ctx, const ampl_args *in, ampl_meta *out) {
  return ampl_meta_shape(ctx, &out[0], (int)in->p[SIZE].l.n, in->p[SIZE].l.v);
}

#define WINDOW SIZES_REQ("size"), SIZES_REQ("stride"), INT_REQ("offset"), SIZES_REQ("base_stride")

AMPL_OP(as_strided,
  .doc = "A window of x's memory.",
  .args = {TENSOR_ONLY("x"), WINDOW},
  .flags = AMPL_OP_INTERNAL, .infer = infer_read, .compose = read_window, .backward = read_backward);

AMPL_OP(view_put,
  .doc = "x with a window of its memory replaced by v.",
  .args = {TENSOR_ONLY("x"), TENSOR_ONLY("v"), WINDOW},
  .flags = AMPL_OP_INTERNAL, .compose = write_window, .backward = write_backward);
