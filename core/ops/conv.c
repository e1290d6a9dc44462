/* conv.c: convolution and transposed convolution.
 *
 * All forms come down to three internal ops on images (n, c, h, w) and a filter (k, c/groups, r, s); each is the
 * gradient of the others:
 *   y  = conv_forward(x, w):   dx = conv_data(dy, w),     dw = conv_weight(x, dy)
 *   x  = conv_data(y, w):      dy = conv_forward(dx, w),  dw = conv_weight(dx, y)      (the transposed convolution)
 *   w  = conv_weight(x, y):    dx = conv_data(y, dw),     dy = conv_forward(x, dw)
 * Results are channels-last in memory, which is what the kernels read fastest. */
#include "conv.h"
#include "op.h"
#include "reduce.h"
#include "window.h"

#include <string.h>

#define GEOMETRY                                                                                                       \
  SIZES_REQ("stride"), SIZES_REQ("padding"), SIZES_REQ("dilation"), INT_REQ("groups"), SIZES_REQ("output_size")

/* ------------------------------------------------------------------------------------------------ internal ops ---- */

static ampl_status images(ampl_ctx *ctx, ampl_meta *m, int64_t n, int64_t c, ampl_ints size) {
  m->layout = AMPL_LAYOUT_CHANNELS_LAST;
  return ampl_meta_shape(ctx, m, 4, (const int64_t[]){n, c, size.v[0], size.v[1]});
}

static ampl_status infer_forward(ampl_ctx *ctx, const ampl_args *in, ampl_meta *out) {
  return images(ctx, out, in->t[0]->shape[0], in->t[1]->shape[0], in->p[AMPL_CONV_OUTPUT].l);
}

static ampl_status infer_data(ampl_ctx *ctx, const ampl_args *in, ampl_meta *out) {
  return images(ctx, out, in->t[0]->shape[0], in->t[1]->shape[1] * in->p[AMPL_CONV_GROUPS].i,
                in->p[AMPL_CONV_OUTPUT].l);
}

static ampl_status infer_weight(ampl_ctx *ctx, const ampl_args *in, ampl_meta *out) {
  const ampl_ints size = in->p[AMPL_CONV_OUTPUT].l;
  if (in->p[AMPL_CONV_DTYPE].i != AMPL_DTYPE_NONE) out->dtype = (int)in->p[AMPL_CONV_DTYPE].i;
  return ampl_meta_shape(
      ctx, out, 4,
      (const int64_t[]){in->t[1]->shape[1], in->t[0]->shape[1] / in->p[AMPL_CONV_GROUPS].i, size.v[0], size.v[1]});
}

/* The geometry of g's call, for a result of another size. */
static void geometry(const ampl_grad *g, const int64_t *size, ampl_value *p) {
  memcpy(p, g->p, AMPL_CONV_OUTPUT * sizeof *p);
  p[AMPL_CONV_OUTPUT] = V_L(2, size);
  p[AMPL_CONV_DTYPE] = V_I(AMPL_DTYPE_NONE);
}

static void set_forward(ampl_grad *g, int i, ampl_tensor *x, ampl_tensor *w, const int64_t *size) {
  ampl_value p[AMPL_CONV_DTYPE + 1];
  geometry(g, size, p);
  if (g->need[i]) ampl_grad_set(g, i, ampl_eval_op(&g->e, OP(conv_forward), T(x, w), p, AMPL_CONV_DTYPE));
}

static void set_data(ampl_grad *g, int i, ampl_tensor *y, ampl_tensor *w, const int64_t *size) {
  ampl_value p[AMPL_CONV_DTYPE + 1];
  geometry(g, size, p);
  if (g->need[i]) ampl_grad_set(g, i, ampl_eval_op(&g->e, OP(conv_data), T(y, w), p, AMPL_CONV_DTYPE));
}

static void set_weight(ampl_grad *g, int i, ampl_tensor *x, ampl_tensor *y, const int64_t *size) {
  ampl_value p[AMPL_CONV_DTYPE + 1];
  geometry(g, size, p);
  if (g->wide[i]) p[AMPL_CONV_DTYPE] = V_I(AMPL_F32);
  if (g->need[i]) ampl_grad_set(g, i, ampl_eval_op(&g->e, OP(conv_weight), T(x, y), p, AMPL_CONV_DTYPE + 1));
}

static void set_bias(ampl_grad *g, int i) {
  static const int64_t dims[] = {0, 2, 3};
  const int wide = g->wide[i] ? AMPL_F32 : AMPL_DTYPE_NONE;
  if (g->need[i]) ampl_grad_set(g, i, EV(&g->e, sum, T(g->dy[0]), P(V_L(3, dims), V_I(false), V_I(wide))));
}

static ampl_status back_forward(ampl_grad *g) {
  set_data(g, 0, g->dy[0], g->x[1], g->xm[0].shape + 2);
  set_weight(g, 1, g->x[0], g->dy[0], g->xm[1].shape + 2);
  set_bias(g, 2);
  return AMPL_OK;
}

static ampl_status back_data(ampl_grad *g) {
  set_forward(g, 0, g->dy[0], g->x[1], g->xm[0].shape + 2);
  set_weight(g, 1, g->dy[0], g->x[0], g->xm[1].shape + 2);
  set_bias(g, 2);
  return AMPL_OK;
}

static ampl_status back_weight(ampl_grad *g) {
  ampl_tensor *dw = g->dy[0];
  if (dw->dtype != g->xm[0].dtype) dw = EV(&g->e, to, T(dw), P(V_I(g->xm[0].dtype)));
  set_data(g, 0, g->x[1], dw, g->xm[0].shape + 2);
  set_forward(g, 1, g->x[0], dw, g->xm[1].shape + 2);
  return AMPL_OK;
}

AMPL_OP(conv_forward, .doc = "Images filtered.",
        .args = {TENSOR_ONLY("x"), TENSOR_ONLY("weight"), TENSOR_OPT("bias"), GEOMETRY},
        .flags = AMPL_OP_INTERNAL | AMPL_OP_CROSS, .save = AMPL_SAVE_X(0) | AMPL_SAVE_X(1), .infer = infer_forward,
        .backward = back_forward);
AMPL_OP(conv_data, .doc = "What images, filtered, came from: the gradient of x, or the transposed convolution.",
        .args = {TENSOR_ONLY("y"), TENSOR_ONLY("weight"), TENSOR_OPT("bias"), GEOMETRY},
        .flags = AMPL_OP_INTERNAL | AMPL_OP_CROSS, .save = AMPL_SAVE_X(0) | AMPL_SAVE_X(1), .infer = infer_data,
        .backward = back_data);
AMPL_OP(conv_weight, .doc = "The gradient of a filter.",
        .args = {TENSOR_ONLY("x"), TENSOR_ONLY("y"), GEOMETRY, DTYPE("dtype")},
        .flags = AMPL_OP_INTERNAL | AMPL_OP_CROSS, .save = AMPL_SAVE_X(0) | AMPL_SAVE_X(1), .infer = infer_weight,
        .backward = back_weight);

/* ------------------------------------------------------------------------------------------------ checks ---------- */

/* A call of conv1d, conv2d, conv3d or their transposes, read.  Lists have three entries, depth, rows, columns; those of
 * sides that it does not have change nothing. */
typedef struct conv {
  int     sides;
  int64_t stride[3], padding[3], dilation[3], groups, output[3];
  bool    same;
} conv;

static ampl_status read_sides(ampl_ctx *ctx, const char *what, ampl_ints l, conv *c, int64_t otherwise, int64_t least,
                              int64_t *to) {
  to[0] = to[1] = otherwise;
  return window_sides(ctx, what, l, c->sides, otherwise, least, to + 3 - c->sides);
}

/* x (n, c, sides) or without n, weight (k, c/groups, sides), bias (channels of the result). */
static ampl_status check_operands(ampl_ctx *ctx, const ampl_args *in, const conv *c, bool transposed) {
  const ampl_tensor *x = in->t[0], *w = in->t[1], *b = in->t[2];
  const int rank = c->sides + 2;
  if (w->ndim != rank || (x->ndim != rank && x->ndim != rank - 1))
    return ampl_error(ctx, AMPL_ESHAPE, "x of %s and weight of %s; x has %d dimensions (%d without a batch), weight %d",
                      ampl_shape_text(ctx, x->ndim, x->shape), ampl_shape_text(ctx, w->ndim, w->shape), rank, rank - 1,
                      rank);
  for (int i = 1; i < 3; i++)
    if (in->t[i] && in->t[i]->dtype != x->dtype)
      return ampl_error(ctx, AMPL_EDTYPE,
                        "x is %s, %s is %s; bring them to one dtype with x:to(dtype), or use an autocast region",
                        ampl_tensor_text(ctx, x), i == 1 ? "weight" : "bias", ampl_tensor_text(ctx, in->t[i]));
  const int64_t channels = x->shape[x->ndim - 1 - c->sides], k = w->shape[0];
  int64_t of_groups;                    /* channels on the far side of the weight */
  if (c->groups < 1 || channels % c->groups || k % c->groups ||
      __builtin_mul_overflow(w->shape[1], c->groups, &of_groups))
    return ampl_error(ctx, AMPL_EVALUE, "groups is %lld; it must divide %lld channels of x and %lld filters",
                      (long long)c->groups, (long long)channels, (long long)k);
  const int64_t expected = transposed ? k : of_groups;
  if (channels != expected)
    return ampl_error(ctx, AMPL_ESHAPE, "x of %s has %lld channels; weight of %s with groups = %lld takes %lld",
                      ampl_shape_text(ctx, x->ndim, x->shape), (long long)channels,
                      ampl_shape_text(ctx, w->ndim, w->shape), (long long)c->groups, (long long)expected);
  const int64_t made = transposed ? of_groups : k;
  if (b && (b->ndim != 1 || b->shape[0] != made))
    return ampl_error(ctx, AMPL_ESHAPE, "bias is %s; {%lld} is needed", ampl_tensor_text(ctx, b), (long long)made);
  for (int s = 0; s < c->sides; s++)
    if (w->shape[2 + s] < 1 || w->shape[2 + s] > AMPL_WINDOW_MAX)
      return ampl_error(ctx, AMPL_ESHAPE, "weight of %s has %s kernel", ampl_shape_text(ctx, w->ndim, w->shape),
                        w->shape[2 + s] < 1 ? "an empty" : "too large a");
  return AMPL_OK;
}

static ampl_status size_of_output(ampl_ctx *ctx, const ampl_tensor *x, const ampl_tensor *w, conv *c) {
  for (int s = 0; s < c->sides; s++) {
    const int d = 3 - c->sides + s;
    const int64_t n = x->shape[x->ndim - c->sides + s], reach = window_reach(w->shape[2 + s], c->dilation[d]);
    if (c->same && c->stride[d] != 1)
      return ampl_error(ctx, AMPL_EVALUE, "padding \"same\" needs stride 1, not %lld", (long long)c->stride[d]);
    if (c->same) {                      /* the odd one on the far side */
      c->padding[d] = (reach - 1) / 2;
      c->output[d] = n;
      continue;
    }
    const int64_t room = n + 2 * c->padding[d] - reach;
    if (room < 0)
      return ampl_error(
          ctx, AMPL_ESHAPE, "x of %s: a kernel that reaches over %lld does not fit a side of %lld with padding %lld",
          ampl_shape_text(ctx, x->ndim, x->shape), (long long)reach, (long long)n, (long long)c->padding[d]);
    c->output[d] = room / c->stride[d] + 1;
  }
  return AMPL_OK;
}

/* ------------------------------------------------------------------------------------------------ forms ----------- */

static ampl_tensor *on_images(ampl_eval *e, const ampl_op *op, ampl_tensor *x, ampl_tensor *w, ampl_tensor *bias,
                              const conv *c) {
  const ampl_value p[] = {V_L(2, c->stride + 1), V_L(2, c->padding + 1), V_L(2, c->dilation + 1), V_I(c->groups),
                          V_L(2, c->output + 1)};
  return ampl_eval_op(e, op, T(x, w, bias), p, AMPL_CONV_DTYPE);
}

/* Runs an internal op on x as images and gives the result the rank of x. */
static ampl_status run(ampl_eval *e, const ampl_op *op, const ampl_args *in, const conv *c, ampl_tensor **out) {
  ampl_tensor *x = in->t[0], *w = in->t[1];
  const int ndim = x->ndim;
  if (ndim == c->sides + 1) x = EV(e, unsqueeze, T(x), P(V_I(0)));
  if (c->sides == 1) x = EV(e, unsqueeze, T(x), P(V_I(2)));
  if (c->sides == 1) w = EV(e, unsqueeze, T(w), P(V_I(2)));
  ampl_tensor *y = on_images(e, op, x, w, in->t[2], c);
  if (c->sides == 1) y = EV(e, squeeze, T(y), P(V_L(1, ((const int64_t[]){2}))));
  if (ndim == c->sides + 1) y = EV(e, squeeze, T(y), P(V_L(1, ((const int64_t[]){0}))));
  return ampl_eval_return(e, y, out);
}

/* Parameters: stride, padding, dilation, groups */
static ampl_status read_call(ampl_ctx *ctx, const ampl_args *in, int sides, conv *c) {
  *c = (conv){.sides = sides, .groups = in->p[3].i, .output = {1, 1, 1}, .same = in->p[1].l.n < 0};
  AMPL_TRY(read_sides(ctx, "stride", in->p[0].l, c, 1, 1, c->stride));
  AMPL_TRY(read_sides(ctx, "padding", c->same ? (ampl_ints){NULL, 0} : in->p[1].l, c, 0, 0, c->padding));
  AMPL_TRY(read_sides(ctx, "dilation", in->p[2].l, c, 1, 1, c->dilation));
  AMPL_TRY(check_operands(ctx, in, c, false));
  return size_of_output(ctx, in->t[0], in->t[1], c);
}

static ampl_status convolve(ampl_eval *e, const ampl_args *in, ampl_tensor **out, int sides) {
  conv c;
  AMPL_TRY(read_call(e->ctx, in, sides, &c));
  return run(e, OP(conv_forward), in, &c, out);
}

static ampl_status conv1d(ampl_eval *e, const ampl_args *in, ampl_tensor **out) { return convolve(e, in, out, 1); }
static ampl_status conv2d(ampl_eval *e, const ampl_args *in, ampl_tensor **out) { return convolve(e, in, out, 2); }

/* Parameters: stride, padding, output_padding, groups, dilation */
static ampl_status transposed(ampl_eval *e, const ampl_args *in, ampl_tensor **out, int sides) {
  const ampl_tensor *x = in->t[0], *w = in->t[1];
  conv c = {.sides = sides, .groups = in->p[3].i, .output = {1, 1, 1}};
  int64_t more[3];
  AMPL_TRY(read_sides(e->ctx, "stride", in->p[0].l, &c, 1, 1, c.stride));
  AMPL_TRY(read_sides(e->ctx, "padding", in->p[1].l, &c, 0, 0, c.padding));
  AMPL_TRY(read_sides(e->ctx, "output_padding", in->p[2].l, &c, 0, 0, more));
  AMPL_TRY(read_sides(e->ctx, "dilation", in->p[4].l, &c, 1, 1, c.dilation));
  AMPL_TRY(check_operands(e->ctx, in, &c, true));
  for (int s = 0; s < sides; s++) {
    const int d = 3 - sides + s;
    if (more[d] >= c.stride[d] && more[d] >= c.dilation[d])
      return ampl_error(e->ctx, AMPL_EVALUE, "output_padding %lld must be below stride %lld or dilation %lld",
                        (long long)more[d], (long long)c.stride[d], (long long)c.dilation[d]);
    const int64_t reach = window_reach(w->shape[2 + s], c.dilation[d]);
    int64_t span;                       /* of the windows' first places */
    if (__builtin_mul_overflow(x->shape[x->ndim - sides + s] - 1, c.stride[d], &span) ||
        __builtin_add_overflow(span, reach + more[d] - 2 * c.padding[d], &c.output[d]))
      return ampl_error(e->ctx, AMPL_ESHAPE, "x of %s with stride %lld gives too large a side",
                        ampl_shape_text(e->ctx, x->ndim, x->shape), (long long)c.stride[d]);
    if (c.output[d] < 1)
      return ampl_error(e->ctx, AMPL_ESHAPE, "x of %s gives a side of %lld with padding %lld",
                        ampl_shape_text(e->ctx, x->ndim, x->shape), (long long)c.output[d], (long long)c.padding[d]);
  }
  return run(e, OP(conv_data), in, &c, out);
}

static ampl_status conv_transpose1d(ampl_eval *e, const ampl_args *in, ampl_tensor **out) {
  return transposed(e, in, out, 1);
}
static ampl_status conv_transpose2d(ampl_eval *e, const ampl_args *in, ampl_tensor **out) {
  return transposed(e, in, out, 2);
}

/* What slice t of the kernel adds to y: for each slice of y it sees one slice of x, and these are so many images. */
static ampl_tensor *one_slice(ampl_eval *e, ampl_tensor *x, ampl_tensor *w, ampl_tensor *bias, const conv *c,
                              int64_t t) {
  static const int64_t order[] = {0, 2, 1, 3, 4};
  const int64_t first = t * c->dilation[0], past = first + (c->output[0] - 1) * c->stride[0] + 1;
  x = EV(e, slice, T(x), P(V_I(2), V_I(first), V_I(past), V_I(c->stride[0])));
  x = EV(e, permute, T(x), P(V_L(5, order)));           /* (n, depth, c, h, w) */
  if (!x) return NULL;
  const int64_t images[] = {x->shape[0] * x->shape[1], x->shape[2], x->shape[3], x->shape[4]};
  return on_images(e, OP(conv_forward), EV(e, reshape, T(x), P(V_L(4, images))), EV(e, select, T(w), P(V_I(2), V_I(t))),
                   bias, c);
}

enum { SLICES_MAX = 1 << 16 };

/* 16-bit operands in f32, so that adding up the slices does not round. */
static ampl_status conv3d(ampl_eval *e, const ampl_args *in, ampl_tensor **out) {
  static const int64_t order[] = {0, 2, 1, 3, 4};
  conv c;
  AMPL_TRY(read_call(e->ctx, in, 3, &c));
  if (in->t[1]->shape[2] > SLICES_MAX)
    return ampl_error(e->ctx, AMPL_ESHAPE, "weight of %s: a kernel reaches over %d slices at most",
                      ampl_shape_text(e->ctx, in->t[1]->ndim, in->t[1]->shape), SLICES_MAX);
  ampl_tensor *x = ampl_eval_wide(e, in->t[0]), *w = ampl_eval_wide(e, in->t[1]), *bias = ampl_eval_wide(e, in->t[2]),
              *y = NULL;
  if (!x || !w) return e->status;
  const int64_t reach = c.dilation[0] * (w->shape[2] - 1);
  const int64_t pad[] = {0, 0, 0, 0, c.padding[0], c.same ? reach - c.padding[0] : c.padding[0]};
  const bool single = x->ndim == 4;
  if (single) x = EV(e, unsqueeze, T(x), P(V_I(0)));
  if (pad[4] || pad[5]) x = EV(e, pad, T(x), P(V_L(6, pad)));
  for (int64_t t = 0; t < w->shape[2] && e->status == AMPL_OK; t++) {
    ampl_tensor *part = one_slice(e, x, w, t ? NULL : bias, &c, t);
    y = t ? EV(e, add, T(y, part)) : part;
  }
  if (!y || !x) return e->status;
  const int64_t apart[] = {x->shape[0], c.output[0], w->shape[0], c.output[1], c.output[2]};
  y = EV(e, permute, T(EV(e, reshape, T(y), P(V_L(5, apart)))), P(V_L(5, order)));
  if (single) y = EV(e, squeeze, T(y), P(V_L(1, ((const int64_t[]){0}))));
  return ampl_eval_return(e, ampl_eval_to(e, y, in->t[0]->dtype), out);
}

#define OPERANDS TENSOR_ONLY("x"), TENSOR_ONLY("weight"), TENSOR_OPT("bias")
#define CONV     OPERANDS, SIZES("stride"), PADDING("padding"), SIZES("dilation"), INT("groups", 1)
#define UPWARD                                                                                                         \
  OPERANDS, SIZES("stride"), SIZES("padding"), SIZES("output_padding"), INT("groups", 1), SIZES("dilation")
AMPL_OP(conv1d, .doc = "Convolution of lines (n, c, length) with filters (k, c/groups, size).", .args = {CONV},
        .cast = AMPL_CAST_LOW, .compose = conv1d);
AMPL_OP(conv2d, .doc = "Convolution of images (n, c, h, w) with filters (k, c/groups, r, s).", .args = {CONV},
        .cast = AMPL_CAST_LOW, .compose = conv2d);
AMPL_OP(conv3d, .doc = "Convolution of volumes (n, c, d, h, w) with filters (k, c/groups, t, r, s).", .args = {CONV},
        .cast = AMPL_CAST_LOW, .compose = conv3d);
AMPL_OP(conv_transpose1d, .doc = "Transposed convolution of lines (n, c, length) with filters (c, k/groups, size).",
        .args = {UPWARD}, .cast = AMPL_CAST_LOW, .compose = conv_transpose1d);
AMPL_OP(conv_transpose2d, .doc = "Transposed convolution of images (n, c, h, w) with filters (c, k/groups, r, s).",
        .args = {UPWARD}, .cast = AMPL_CAST_LOW, .compose = conv_transpose2d);
