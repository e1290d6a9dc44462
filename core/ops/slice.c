/* slice.c: parts of a tensor as views: select, narrow, slice, unfold (windows), and their common gradient.
 *
 * Each op is one function that changes a geometry.  Forward applies it to x's own; backward to that of a row-major
 * tensor of x's shape, and view_backward writes dy there. */
#include "view.h"

typedef ampl_status geometry_fn(ampl_ctx *ctx, const ampl_value *p, ampl_meta *m);
static geometry_fn unfold_geometry;

static ampl_status infer_by(ampl_ctx *ctx, const ampl_args *in, ampl_meta *out, geometry_fn *geometry) {
  if (in->t[0]->ndim == 0 && geometry != unfold_geometry)
    return ampl_error(ctx, AMPL_ESHAPE, "a tensor of rank 0 has no dimension to take a part of");
  view_of(out, in->t[0]);
  return geometry(ctx, in->p, out);
}

static ampl_status backward_by(ampl_grad *g, geometry_fn *geometry) {
  ampl_meta m;
  const ampl_meta *x = &g->xm[0];
  view_row_major(&m, x);
  AMPL_TRY(geometry(g->e.ctx, g->p, &m));
  ampl_grad_set(g, 0, EV(&g->e, view_backward, T(g->dy[0]),
                         P(V_L(x->ndim, x->shape), V_L(m.ndim, m.strides), V_I(m.offset))));
  return AMPL_OK;
}

/* ------------------------------------------------------------------------------------------------ select, narrow -- */

static ampl_status select_geometry(ampl_ctx *ctx, const ampl_value *p, ampl_meta *m) {
  int64_t d = p[0].i, at;
  AMPL_TRY(ampl_resolve_index(ctx, "index", p[1].i, m->shape[d], &at));
  m->offset += at * m->strides[d];
  view_drop(m, (int)d);
  return AMPL_OK;
}

static ampl_status select_infer(ampl_ctx *ctx, const ampl_args *in, ampl_meta *out) {
  return infer_by(ctx, in, out, select_geometry);
}
static ampl_status select_backward(ampl_grad *g) { return backward_by(g, select_geometry); }

AMPL_OP(select,
  .doc = "Position `index` of dimension `dim`, without that dimension.  A view.",
  .args = {TENSOR_ONLY("x"), DIM_REQ("dim"), INDEX_REQ("index")},
  .flags = AMPL_OP_VIEW, .infer = select_infer, .backward = select_backward);

static ampl_status narrow_geometry(ampl_ctx *ctx, const ampl_value *p, ampl_meta *m) {
  int64_t d = p[0].i, start = p[1].i, length = p[2].i, size = m->shape[d], from = start < 0 ? start + size : start;
  if (from < 0 || from > size)
    return ampl_error(ctx, AMPL_EINDEX, "start %lld of a dimension of size %lld",
                      (long long)(start < 0 ? start : ampl_shown(ctx, start)), (long long)size);
  if (length < 0 || length > size - from)
    return ampl_error(ctx, AMPL_EINDEX, "length %lld from position %lld of a dimension of size %lld", (long long)length,
                      (long long)ampl_shown(ctx, from), (long long)size);
  if (length > 0) m->offset += from * m->strides[d];
  m->shape[d] = length;
  return AMPL_OK;
}

static ampl_status narrow_infer(ampl_ctx *ctx, const ampl_args *in, ampl_meta *out) {
  return infer_by(ctx, in, out, narrow_geometry);
}
static ampl_status narrow_backward(ampl_grad *g) { return backward_by(g, narrow_geometry); }

AMPL_OP(narrow,
  .doc = "`length` positions of dimension `dim`, from `start` on.  A view.",
  .args = {TENSOR_ONLY("x"), DIM_REQ("dim"), INDEX_REQ("start"), INT_REQ("length")},
  .flags = AMPL_OP_VIEW, .infer = narrow_infer, .backward = narrow_backward);

/* ------------------------------------------------------------------------------------------------ slice ----------- */

/* A bound of a slice: negative ones from the end, then cut to the dimension. */
static int64_t bound(int64_t i, int64_t size, int64_t otherwise) {
  if (i == AMPL_ABSENT) return otherwise;
  if (i < 0) i += size;
  return i < 0 ? 0 : i > size ? size : i;
}

static ampl_status slice_geometry(ampl_ctx *ctx, const ampl_value *p, ampl_meta *m) {
  int64_t d = p[0].i, step = p[3].i, size = m->shape[d];
  int64_t start = bound(p[1].i, size, 0), stop = bound(p[2].i, size, size);
  if (step < 1)
    return ampl_error(ctx, AMPL_EVALUE, "step %lld; steps are 1 or more (flip turns around)", (long long)step);
  int64_t length = stop > start ? (stop - start - 1) / step + 1 : 0;
  if (length > 0) m->offset += start * m->strides[d];
  m->shape[d] = length;
  if (length > 1) m->strides[d] *= step;
  return AMPL_OK;
}

static ampl_status slice_infer(ampl_ctx *ctx, const ampl_args *in, ampl_meta *out) {
  return infer_by(ctx, in, out, slice_geometry);
}
static ampl_status slice_backward(ampl_grad *g) { return backward_by(g, slice_geometry); }

AMPL_OP(
    slice,
    .doc =
        "Every step-th position of dimension `dim` from `start` to `stop`, both included; bounds beyond the dimension "
        "are cut to it.  A view.  (In C `stop` is the first position that is left out.)",
    .args = {TENSOR_ONLY("x"), DIM("dim", 0), INDEX_OPT("start"), STOP_OPT("stop", "the last position taken"),
             INT("step", 1)},
    .flags = AMPL_OP_VIEW, .infer = slice_infer, .backward = slice_backward);

/* ------------------------------------------------------------------------------------------------ unfold ---------- */

static ampl_status unfold_geometry(ampl_ctx *ctx, const ampl_value *p, ampl_meta *m) {
  int64_t d = p[0].i, size = p[1].i, step = p[2].i;
  int64_t n = m->ndim == 0 ? 1 : m->shape[d], stride = m->ndim == 0 ? 1 : m->strides[d];
  if (size < 0 || size > n)
    return ampl_error(ctx, AMPL_EVALUE, "windows of %lld in a dimension of size %lld", (long long)size, (long long)n);
  if (step < 1) return ampl_error(ctx, AMPL_EVALUE, "step %lld; steps are 1 or more", (long long)step);
  if (m->ndim == AMPL_RANK_MAX)
    return ampl_error(ctx, AMPL_ESHAPE, "the windows need a dimension, and %s has all that a tensor can have",
                      ampl_meta_text(ctx, m));
  if (m->ndim > 0) {                            /* a tensor of rank 0 is its own only window */
    m->shape[d] = (n - size) / step + 1;
    if (m->shape[d] > 1) m->strides[d] = stride * step;
  }
  view_insert(m, m->ndim, size, stride);
  return AMPL_OK;
}

static ampl_status unfold_infer(ampl_ctx *ctx, const ampl_args *in, ampl_meta *out) {
  return infer_by(ctx, in, out, unfold_geometry);
}
static ampl_status unfold_backward(ampl_grad *g) { return backward_by(g, unfold_geometry); }

AMPL_OP(unfold,
        .doc = "Windows of `size` positions of `dimension`, one every `step`: the dimension counts the windows, a new "
               "last one their elements.  A view.  (F.unfold cuts images into patches.)",
        .args = {TENSOR_ONLY("x"), DIM_REQ("dimension"), INT_REQ("size"), INT_REQ("step")},
        .flags = AMPL_OP_VIEW | AMPL_OP_METHOD_ONLY, .infer = unfold_infer, .backward = unfold_backward);

/* ------------------------------------------------------------------------------------------------ gradients ------- */

/* Whether offset + sum (shape - 1) * strides stays within numel elements */
static ampl_status check_inside(ampl_ctx *ctx, int64_t numel, int ndim, const int64_t *shape, const int64_t *strides,
                                int64_t offset) {
  int64_t last = offset;
  for (int d = 0; d < ndim; d++) {
    if (shape[d] == 0) return AMPL_OK;
    if (strides[d] < 0) return ampl_error(ctx, AMPL_EVALUE, "a negative stride");
    last += (shape[d] - 1) * strides[d];
  }
  if (offset >= 0 && last < numel) return AMPL_OK;
  return ampl_error(ctx, AMPL_EINDEX, "a view of elements %lld to %lld of %lld", (long long)offset, (long long)last,
                    (long long)numel);
}

static ampl_status view_backward_infer(ampl_ctx *ctx, const ampl_args *in, ampl_meta *out) {
  const ampl_tensor *dy = in->t[0];
  AMPL_TRY(ampl_meta_shape(ctx, out, (int)in->p[0].l.n, in->p[0].l.v));
  if (in->p[1].l.n != dy->ndim) return ampl_error(ctx, AMPL_EARG, "%lld strides", (long long)in->p[1].l.n);
  return check_inside(ctx, ampl_meta_numel(out), dy->ndim, dy->shape, in->p[1].l.v, in->p[2].i);
}

static ampl_status view_backward_backward(ampl_grad *g) {
  int64_t strides[AMPL_RANK_MAX];
  const ampl_meta *dy = &g->xm[0], *dx = &g->ym[0];
  row_major(dx->ndim, dx->shape, strides);
  ampl_grad_set(g, 0, EV(&g->e, as_strided, T(g->dy[0]),
                         P(V_L(dy->ndim, dy->shape), g->p[1], g->p[2], V_L(dx->ndim, strides))));
  return AMPL_OK;
}

AMPL_OP(view_backward,
  .doc = "Zeros of `shape`, with dy added at the places that a view (dy's shape, `strides`, `offset`) of it shows.",
  .args = {TENSOR_ONLY("dy"), SIZES_REQ("shape"), SIZES_REQ("strides"), INT_REQ("offset")},
  .flags = AMPL_OP_INTERNAL, .infer = view_backward_infer, .backward = view_backward_backward);
