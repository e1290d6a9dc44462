/* convolution.c: the internal convolution ops as calls of conv.h.  Images are brought to channels-last memory where
 * they do not lie so. */
#include "conv.h"
#include "ctx.h"
#include "ops/conv.h"

#include <string.h>

/* An operand as conv.h takes it, and the copy that may have been needed. */
typedef struct operand { ampl_cpu_image image; ampl_tensor *copy; } operand;

static ampl_status open_image(ampl_ctx *ctx, ampl_tensor *x, operand *o) {
  o->copy = NULL;
  if (x->strides[1] != 1 && x->shape[1] != 1) {
    ampl_meta m;
    AMPL_TRY(ampl_meta_like(&m, x));
    m.layout = AMPL_LAYOUT_CHANNELS_LAST;
    AMPL_TRY(ampl_tensor_new(ctx, ampl_device_of(x), &m, AMPL_KIND_SCRATCH, &o->copy));
    const ampl_status s = ampl_call_inplace(ctx, &(ampl_args){OP(copy), (ampl_tensor *[]){o->copy, x}, 2, NULL});
    if (s != AMPL_OK) {
      ampl_tensor_release(o->copy);
      o->copy = NULL;
      return s;
    }
    x = o->copy;
  }
  o->image = (ampl_cpu_image){x->data, x->dtype, x->strides[0], x->strides[2], x->strides[3]};
  return AMPL_OK;
}

static ampl_cpu_filter filter_of(const ampl_tensor *w) {
  return (ampl_cpu_filter){w->data, w->dtype, w->strides[0], w->strides[1], w->strides[2], w->strides[3]};
}

/* x: the images with c channels, y: those with k. */
static ampl_cpu_conv describe(ampl_ctx *ctx, const ampl_tensor *x, const ampl_tensor *y, const ampl_tensor *w,
                              const ampl_value *p) {
  ampl_cpu_conv a = {.ctx = ctx,
                     .threads = ampl_threads(ctx),
                     .n = x->shape[0],
                     .c = x->shape[1],
                     .h = x->shape[2],
                     .w = x->shape[3],
                     .k = y->shape[1],
                     .oh = y->shape[2],
                     .ow = y->shape[3],
                     .r = w->shape[2],
                     .s = w->shape[3],
                     .groups = p[AMPL_CONV_GROUPS].i};
  memcpy(a.stride, p[AMPL_CONV_STRIDE].l.v, sizeof a.stride);
  memcpy(a.pad, p[AMPL_CONV_PADDING].l.v, sizeof a.pad);
  memcpy(a.dilation, p[AMPL_CONV_DILATION].l.v, sizeof a.dilation);
  return a;
}

static ampl_status zeros(ampl_ctx *ctx, ampl_tensor *y, ampl_tensor *bias) {
  AMPL_TRY(ampl_call_inplace(ctx, &(ampl_args){OP(zero), &y, 1, NULL}));
  if (!bias || !y->numel) return AMPL_OK;
  ampl_tensor *column = NULL;
  const ampl_meta m = {.dtype = bias->dtype, .ndim = 3, .layout = AMPL_LAYOUT_STRIDED, .shape = {bias->shape[0], 1, 1},
                       .strides = {bias->strides[0], 1, 1}};
  if (!(column = ampl_tensor_view(ctx, bias, &m))) return ampl_error(ctx, AMPL_ENOMEM, "out of memory");
  const ampl_status s = ampl_call_inplace(ctx, &(ampl_args){OP(copy), (ampl_tensor *[]){y, column}, 2, NULL});
  ampl_tensor_release(column);
  return s;
}

/* A bias whose values lie side by side: a reference of its own. */
static ampl_status open_bias(ampl_ctx *ctx, ampl_tensor *bias, ampl_tensor **dense, ampl_cpu_conv *a) {
  *dense = NULL;
  if (!bias) return AMPL_OK;
  AMPL_TRY(ampl_call(ctx, &(ampl_args){OP(contiguous), &bias, 1, NULL}, dense));
  a->bias = (*dense)->data;
  a->bias_dtype = (*dense)->dtype;
  return AMPL_OK;
}

typedef ampl_status (*filter_fn)(const ampl_cpu_conv *, const ampl_cpu_image *, const ampl_cpu_filter *,
                                 const ampl_cpu_image *);

static ampl_status filter(ampl_ctx *ctx, const ampl_args *in, ampl_tensor *out, ampl_cpu_conv *a, filter_fn fn) {
  operand x, y;
  ampl_tensor *bias;
  const ampl_cpu_filter w = filter_of(in->t[1]);
  if (!out->numel || !in->t[0]->numel || !in->t[1]->numel) return zeros(ctx, out, in->t[2]);
  AMPL_TRY(open_image(ctx, in->t[0], &x));
  ampl_status s = open_image(ctx, out, &y);             /* channels-last by infer: never a copy */
  if (s == AMPL_OK) s = open_bias(ctx, in->t[2], &bias, a);
  if (s == AMPL_OK) {
    s = fn(a, &x.image, &w, &y.image);
    ampl_tensor_release(bias);
  }
  ampl_tensor_release(x.copy);
  return s;
}

static ampl_status conv_forward(ampl_ctx *ctx, const ampl_args *in, ampl_tensor **out) {
  ampl_cpu_conv a = describe(ctx, in->t[0], out[0], in->t[1], in->p);
  return filter(ctx, in, out[0], &a, ampl_cpu_conv_forward);
}

static ampl_status conv_data(ampl_ctx *ctx, const ampl_args *in, ampl_tensor **out) {
  ampl_cpu_conv a = describe(ctx, out[0], in->t[0], in->t[1], in->p);
  return filter(ctx, in, out[0], &a, ampl_cpu_conv_backward_data);
}

static ampl_status conv_weight(ampl_ctx *ctx, const ampl_args *in, ampl_tensor **out) {
  operand x, y;
  const ampl_cpu_filter dw = filter_of(out[0]);
  const ampl_cpu_conv a = describe(ctx, in->t[0], in->t[1], out[0], in->p);
  if (!out[0]->numel || !in->t[0]->numel || !in->t[1]->numel) return zeros(ctx, out[0], NULL);
  AMPL_TRY(open_image(ctx, in->t[0], &x));
  ampl_status s = open_image(ctx, in->t[1], &y);
  if (s == AMPL_OK) s = ampl_cpu_conv_backward_weights(&a, &x.image, &y.image, &dw);
  ampl_tensor_release(x.copy);
  ampl_tensor_release(y.copy);
  return s;
}

#define FLOATS(name) {#name, AMPL_F32, name}, {#name, AMPL_F16, name}, {#name, AMPL_BF16, name}, {#name, AMPL_F64, name}
const ampl_kernel ampl_cpu_convolution_kernels[] = {
    FLOATS(conv_forward), FLOATS(conv_data), FLOATS(conv_weight), {NULL, 0, NULL}};
