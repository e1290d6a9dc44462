/* pool.c: pooling: the largest or mean value of each window of an image.
 *
 * All forms come down to two internal ops on (n, c, h, w): pool_max and pool_mean, whose windows lie on a grid (kernel,
 * stride, padding, dilation) or share out the image (adaptive).  Backward of pool_max sends dy to where the largest
 * value stood (pool_max_scatter), and backward of that picks what stood there (pool_max_gather).  pool_mean is linear:
 * its backward is pool_mean_scatter, whose backward is pool_mean. */
#include "op.h"
#include "pool.h"
#include "window.h"

#include <string.h>

#define MAX_PARAMS (AMPL_POOL_ADAPTIVE + 1)
#define POOL                                                                                                           \
  SIZES_REQ("output_size"), SIZES_REQ("kernel_size"), SIZES_REQ("stride"), SIZES_REQ("padding"),                       \
      SIZES_REQ("dilation"), BOOL("adaptive", false)

/* ------------------------------------------------------------------------------------------------ windows --------- */

/* The windows of an image as the internal ops take them; sides that an op does not have are 1. */
typedef struct windows { int64_t output[2], kernel[2], stride[2], padding[2], dilation[2]; } windows;

static ampl_status check_image(ampl_ctx *ctx, const ampl_tensor *x, int sides) {
  if (x->ndim == sides + 1 || x->ndim == sides + 2) return AMPL_OK;
  return ampl_error(ctx, AMPL_ESHAPE, "x is %s; %s are needed, or a batch of them", ampl_tensor_text(ctx, x),
                    sides == 1 ? "(channels, length)" : "(channels, height, width)");
}

/* Number of windows on a side of n; ceil_mode lets the last one hang over, if it starts inside. */
static ampl_status count_windows(ampl_ctx *ctx, windows *w, int d, int64_t n, bool ceil_mode) {
  const int64_t reach = window_reach(w->kernel[d], w->dilation[d]), room = n + 2 * w->padding[d] - reach;
  if (2 * w->padding[d] > w->kernel[d])
    return ampl_error(ctx, AMPL_EVALUE, "padding %lld is more than half of kernel_size %lld", (long long)w->padding[d],
                      (long long)w->kernel[d]);
  if (room < 0 && !(ceil_mode && room > -w->stride[d]))
    return ampl_error(
        ctx, AMPL_ESHAPE,
        "a window of %lld (kernel_size %lld, dilation %lld) does not fit a side of %lld with padding %lld",
        (long long)reach, (long long)w->kernel[d], (long long)w->dilation[d], (long long)n, (long long)w->padding[d]);
  int64_t count = (room + (ceil_mode ? w->stride[d] - 1 : 0)) / w->stride[d] + 1;
  if (ceil_mode && (count - 1) * w->stride[d] >= n + w->padding[d]) count--;
  w->output[d] = count;
  return AMPL_OK;
}

/* Reads kernel_size, stride (absent: the kernel's), padding, dilation (or NULL) of an image with `sides` sides. */
static ampl_status grid(ampl_ctx *ctx, const ampl_tensor *x, int sides, const ampl_value *kernel,
                        const ampl_value *stride, const ampl_value *padding, const ampl_value *dilation, bool ceil_mode,
                        windows *w) {
  static const ampl_ints none = {NULL, 0};
  const int at = 2 - sides;
  AMPL_TRY(check_image(ctx, x, sides));
  *w = (windows){{1, 1}, {1, 1}, {1, 1}, {0, 0}, {1, 1}};
  if (kernel->l.n == 0) return ampl_error(ctx, AMPL_EARG, "kernel_size is empty");
  AMPL_TRY(window_sides(ctx, "kernel_size", kernel->l, sides, 1, 1, w->kernel + at));
  AMPL_TRY(window_sides(ctx, "stride", stride->l.n ? stride->l : kernel->l, sides, 1, 1, w->stride + at));
  AMPL_TRY(window_sides(ctx, "padding", padding->l, sides, 0, 0, w->padding + at));
  AMPL_TRY(window_sides(ctx, "dilation", dilation ? dilation->l : none, sides, 1, 1, w->dilation + at));
  for (int s = 0; s < sides; s++)
    AMPL_TRY(count_windows(ctx, w, at + s, x->shape[x->ndim - sides + s], ceil_mode));
  return AMPL_OK;
}

static ampl_status shares(ampl_ctx *ctx, const ampl_tensor *x, int sides, ampl_ints size, windows *w) {
  AMPL_TRY(check_image(ctx, x, sides));
  if (size.n == 0) return ampl_error(ctx, AMPL_EARG, "output_size is empty");
  AMPL_TRY(ampl_check_nth(ctx, "output_size", size, sides));
  *w = (windows){{1, 1}, {1, 1}, {1, 1}, {0, 0}, {1, 1}};
  for (int s = 0; s < sides; s++) {
    const int64_t n = ampl_nth(size, s, 1);
    if (n < 0) return ampl_error(ctx, AMPL_EVALUE, "output_size %lld is negative", (long long)n);
    if (n > 0 && x->shape[x->ndim - sides + s] == 0)
      return ampl_error(ctx, AMPL_ESHAPE, "x is %s: an empty side has no windows", ampl_tensor_text(ctx, x));
    w->output[2 - sides + s] = n;
  }
  return AMPL_OK;
}

/* x as (n, c, h, w). */
static ampl_tensor *as_images(ampl_eval *e, ampl_tensor *x, int sides) {
  if (sides == 1) x = EV(e, unsqueeze, T(x), P(V_I(x->ndim - 1)));
  if (x && x->ndim == 3) x = EV(e, unsqueeze, T(x), P(V_I(0)));
  return x;
}

static ampl_tensor *as_given(ampl_eval *e, ampl_tensor *y, int sides, int ndim) {
  if (y && ndim == sides + 1) y = EV(e, squeeze, T(y), P(V_L(1, ((const int64_t[]){0}))));
  if (y && sides == 1) y = EV(e, squeeze, T(y), P(V_L(1, ((const int64_t[]){ndim == sides + 1 ? 1 : 2}))));
  return y;
}

/* ------------------------------------------------------------------------------------------------ internal ops ---- */

static ampl_status infer_pool(ampl_ctx *ctx, const ampl_args *in, ampl_meta *out) {
  const ampl_tensor *x = in->t[0];
  AMPL_TRY(ampl_meta_like(out, x));
  out->shape[2] = in->p[AMPL_POOL_OUTPUT].l.v[0];
  out->shape[3] = in->p[AMPL_POOL_OUTPUT].l.v[1];
  if (in->op->nout == 2) {
    out[1] = out[0];
    out[1].dtype = AMPL_I64;
  }
  return ampl_meta_shape(ctx, out, 4, out->shape);
}

/* Of dy, in the shape and layout of x. */
static ampl_status infer_scatter(ampl_ctx *ctx, const ampl_args *in, ampl_meta *out) {
  (void)ctx;
  const int dtype = out->dtype;
  AMPL_TRY(ampl_meta_like(out, in->t[1]));
  out->dtype = dtype;
  return AMPL_OK;
}

/* Of v, in the shape of the windows. */
static ampl_status infer_gather(ampl_ctx *ctx, const ampl_args *in, ampl_meta *out) { return infer_pool(ctx, in, out); }

static ampl_status back_max(ampl_grad *g) {
  if (g->dy[0]) ampl_grad_set(g, 0, ampl_eval_op(&g->e, OP(pool_max_scatter), T(g->dy[0], g->x[0]), g->p, MAX_PARAMS));
  return AMPL_OK;
}

static ampl_status back_scatter(ampl_grad *g) {
  ampl_grad_set(g, 0, ampl_eval_op(&g->e, OP(pool_max_gather), T(g->dy[0], g->x[1]), g->p, MAX_PARAMS));
  return AMPL_OK;
}

static ampl_status back_gather(ampl_grad *g) {
  ampl_grad_set(g, 0, ampl_eval_op(&g->e, OP(pool_max_scatter), T(g->dy[0], g->x[1]), g->p, MAX_PARAMS));
  return AMPL_OK;
}

AMPL_OP(pool_max, .doc = "The largest value of each window, and its place in the plane.",
        .args = {TENSOR_ONLY("x"), POOL}, .nout = 2, .flags = AMPL_OP_INTERNAL, .save = AMPL_SAVE_X(0),
        .infer = infer_pool, .backward = back_max);
AMPL_OP(pool_max_scatter, .doc = "dy added where the largest value of x stood.",
        .args = {TENSOR_ONLY("dy"), TENSOR_ONLY("x"), POOL}, .flags = AMPL_OP_INTERNAL, .save = AMPL_SAVE_X(1),
        .infer = infer_scatter, .backward = back_scatter);
AMPL_OP(pool_max_gather, .doc = "v where the largest value of x stands.",
        .args = {TENSOR_ONLY("v"), TENSOR_ONLY("x"), POOL}, .flags = AMPL_OP_INTERNAL, .save = AMPL_SAVE_X(1),
        .infer = infer_gather, .backward = back_gather);

#define MEAN POOL, BOOL("count_include_pad", true), INT("divisor", 0)

/* The sides of x travel as a parameter: its values are not needed. */
static ampl_status back_mean(ampl_grad *g) {
  ampl_value p[AMPL_POOL_PARAMS + 1];
  memcpy(p, g->p, AMPL_POOL_PARAMS * sizeof *p);
  p[AMPL_POOL_PARAMS] = V_L(2, g->xm[0].shape + 2);
  ampl_grad_set(g, 0, ampl_eval_op(&g->e, OP(pool_mean_scatter), T(g->dy[0]), p, AMPL_POOL_PARAMS + 1));
  return AMPL_OK;
}

static ampl_status back_mean_scatter(ampl_grad *g) {
  ampl_grad_set(g, 0, ampl_eval_op(&g->e, OP(pool_mean), T(g->dy[0]), g->p, AMPL_POOL_PARAMS));
  return AMPL_OK;
}

static ampl_status infer_mean_scatter(ampl_ctx *ctx, const ampl_args *in, ampl_meta *out) {
  AMPL_TRY(ampl_meta_like(out, in->t[0]));
  memcpy(out->shape + 2, in->p[AMPL_POOL_PARAMS].l.v, 2 * sizeof *out->shape);
  return ampl_meta_shape(ctx, out, 4, out->shape);
}

AMPL_OP(pool_mean, .doc = "The mean of each window.", .args = {TENSOR_ONLY("x"), MEAN}, .flags = AMPL_OP_INTERNAL,
        .infer = infer_pool, .backward = back_mean);
AMPL_OP(pool_mean_scatter, .doc = "dy shared out evenly over each window.",
        .args = {TENSOR_ONLY("dy"), MEAN, SIZES_REQ("image_size")}, .flags = AMPL_OP_INTERNAL,
        .infer = infer_mean_scatter, .backward = back_mean_scatter);

/* ------------------------------------------------------------------------------------------------ maximum --------- */

static ampl_status run_max(ampl_eval *e, ampl_tensor *x, int sides, const windows *w, bool adaptive, bool indices,
                           ampl_tensor **out) {
  ampl_tensor *both[2];
  const ampl_value p[] = {V_L(2, w->output),  V_L(2, w->kernel),   V_L(2, w->stride),
                          V_L(2, w->padding), V_L(2, w->dilation), V_I(adaptive)};
  ampl_tensor *images = as_images(e, x, sides);
  if (!images) return e->status;
  ampl_eval_outs(e, OP(pool_max), T(images), p, MAX_PARAMS, both);
  if (e->status != AMPL_OK) return e->status;
  AMPL_TRY(ampl_eval_return(e, as_given(e, both[0], sides, x->ndim), &out[0]));
  if (!indices) return e->status;
  return ampl_eval_return(e, as_given(e, both[1], sides, x->ndim), &out[1]);
}

static ampl_status max_pool(ampl_eval *e, const ampl_args *in, ampl_tensor **out, int sides) {
  windows w;
  AMPL_TRY(grid(e->ctx, in->t[0], sides, &in->p[0], &in->p[1], &in->p[2], &in->p[3], in->p[4].i, &w));
  return run_max(e, in->t[0], sides, &w, false, in->p[5].i, out);
}

static ampl_status max_pool1d(ampl_eval *e, const ampl_args *in, ampl_tensor **out) { return max_pool(e, in, out, 1); }
static ampl_status max_pool2d(ampl_eval *e, const ampl_args *in, ampl_tensor **out) { return max_pool(e, in, out, 2); }

#define MAX_ARGS                                                                                                       \
  TENSOR_ONLY("x"), SIZES_REQ("kernel_size"), SIZES("stride", "kernel_size where not given"), SIZES("padding"),        \
      SIZES("dilation"), BOOL("ceil_mode", false), BOOL("return_indices", false)
AMPL_OP(max_pool1d, .doc = "The largest value of each window; with return_indices also its position.",
        .args = {MAX_ARGS}, .nout = 2, .compose = max_pool1d);
AMPL_OP(max_pool2d, .doc = "The largest value of each window; with return_indices also its flat position in the plane.",
        .args = {MAX_ARGS}, .nout = 2, .compose = max_pool2d);

static ampl_status adaptive_max_pool2d(ampl_eval *e, const ampl_args *in, ampl_tensor **out) {
  windows w;
  AMPL_TRY(shares(e->ctx, in->t[0], 2, in->p[0].l, &w));
  return run_max(e, in->t[0], 2, &w, true, in->p[1].i, out);
}

AMPL_OP(adaptive_max_pool2d, .doc = "The largest value of each of output_size windows that share out the image.",
        .args = {TENSOR_ONLY("x"), SIZES_REQ("output_size"), BOOL("return_indices", false)}, .nout = 2,
        .compose = adaptive_max_pool2d);

/* ------------------------------------------------------------------------------------------------ mean ------------ */

static ampl_status run_mean(ampl_eval *e, ampl_tensor *x, int sides, const windows *w, bool adaptive, bool include_pad,
                            int64_t divisor, ampl_tensor **out) {
  const ampl_value p[] = {V_L(2, w->output),   V_L(2, w->kernel), V_L(2, w->stride), V_L(2, w->padding),
                          V_L(2, w->dilation), V_I(adaptive),     V_I(include_pad),  V_I(divisor)};
  ampl_tensor *y = ampl_eval_op(e, OP(pool_mean), T(as_images(e, x, sides)), p, AMPL_POOL_PARAMS);
  return ampl_eval_return(e, as_given(e, y, sides, x->ndim), out);
}

static ampl_status avg_pool1d(ampl_eval *e, const ampl_args *in, ampl_tensor **out) {
  windows w;
  AMPL_TRY(grid(e->ctx, in->t[0], 1, &in->p[0], &in->p[1], &in->p[2], NULL, in->p[3].i, &w));
  return run_mean(e, in->t[0], 1, &w, false, in->p[4].i, 0, out);
}

static ampl_status avg_pool2d(ampl_eval *e, const ampl_args *in, ampl_tensor **out) {
  windows w;
  AMPL_TRY(grid(e->ctx, in->t[0], 2, &in->p[0], &in->p[1], &in->p[2], NULL, in->p[3].i, &w));
  if (in->p[5].i == 0) return ampl_error(e->ctx, AMPL_EVALUE, "divisor_override is 0");
  return run_mean(e, in->t[0], 2, &w, false, in->p[4].i, in->p[5].i == AMPL_ABSENT ? 0 : in->p[5].i, out);
}

#define AVG_ARGS                                                                                                       \
  TENSOR_ONLY("x"), SIZES_REQ("kernel_size"), SIZES("stride", "kernel_size where not given"), SIZES("padding"),        \
      BOOL("ceil_mode", false), BOOL("count_include_pad", true)
AMPL_OP(avg_pool1d, .doc = "The mean of each window.", .args = {AVG_ARGS}, .compose = avg_pool1d);
AMPL_OP(avg_pool2d, .doc = "The mean of each window.", .args = {AVG_ARGS, INT_OPT("divisor_override")},
        .compose = avg_pool2d);

static ampl_status adaptive_mean(ampl_eval *e, const ampl_args *in, ampl_tensor **out, int sides) {
  windows w;
  AMPL_TRY(shares(e->ctx, in->t[0], sides, in->p[0].l, &w));
  return run_mean(e, in->t[0], sides, &w, true, true, 0, out);
}

static ampl_status adaptive_avg_pool1d(ampl_eval *e, const ampl_args *in, ampl_tensor **out) {
  return adaptive_mean(e, in, out, 1);
}
static ampl_status adaptive_avg_pool2d(ampl_eval *e, const ampl_args *in, ampl_tensor **out) {
  return adaptive_mean(e, in, out, 2);
}

AMPL_OP(adaptive_avg_pool1d, .doc = "The mean of each of output_size windows that share out the line.",
        .args = {TENSOR_ONLY("x"), SIZES_REQ("output_size")}, .compose = adaptive_avg_pool1d);
AMPL_OP(adaptive_avg_pool2d, .doc = "The mean of each of output_size windows that share out the image.",
        .args = {TENSOR_ONLY("x"), SIZES_REQ("output_size")}, .compose = adaptive_avg_pool2d);
