/* pool.c: pooling.  Images whose channels lie side by side are taken whole, all channels at once; others plane by
 * plane. 16-bit images are widened as a whole: a window reads each value several times. */
#include "ctx.h"
#include "isa/pool.h"
#include "move.h"
#include "ops/pool.h"
#include "stream.h"

#include <string.h>

/* A tensor of images as the passes read or write it. */
typedef struct images {
  ampl_tensor *t;               /* of the call ... */
  ampl_tensor *dense;           /* ... or a copy without gaps, one reference; NULL: not needed */
  void        *wide;            /* its values in f32, where they are 16-bit */
  size_t       wide_bytes;
  char        *data;
  int64_t      stride[4];
} images;

typedef struct pass {
  ampl_ctx           *ctx;
  ampl_cpu_pool_fn    fn;
  ampl_cpu_pool_image image;    /* but for pointers */
  images              x, y, to, places;
  const images       *grid;     /* which of them has the windows' shape */
  int64_t             n, c, size;
  int64_t             band;     /* rows of windows at a time */
  int64_t            *at;       /* [threads][lanes] */
} pass;

static bool is_dense(const ampl_tensor *t) { return t->flags & (AMPL_T_CONTIGUOUS | AMPL_T_CHANNELS_LAST); }

static ampl_status open_images(ampl_ctx *ctx, images *m, ampl_tensor *t, bool read) {
  *m = (images){.t = t};
  if (!t) return AMPL_OK;
  if (!is_dense(t)) {
    AMPL_TRY(ampl_call(ctx, &(ampl_args){OP(contiguous), &t, 1, NULL}, &m->dense));
    t = m->dense;
  }
  memcpy(m->stride, t->strides, sizeof m->stride);
  m->data = t->data;
  if (ampl_dtype_size((ampl_dtype)t->dtype) != 2) return AMPL_OK;
  m->wide_bytes = (size_t)t->numel * sizeof(float);
  if (!(m->wide = ampl_cpu_scratch_get(ctx, m->wide_bytes))) return AMPL_ENOMEM;
  if (read) ampl_cpu_widen(AMPL_WORK_F32, m->wide, t->dtype, t->data, 1, t->numel);
  m->data = m->wide;
  return AMPL_OK;
}

static void close_images(ampl_ctx *ctx, images *m, bool written) {
  if (m->wide && written) ampl_cpu_narrow(AMPL_WORK_F32, m->wide, m->t->dtype, m->t->data, 1, m->t->numel);
  if (m->wide) ampl_cpu_scratch_put(ctx, m->wide, m->wide_bytes);
  ampl_tensor_release(m->dense);
}

/* Window o of `count` on a side of n. */
static ampl_cpu_window window_at(const ampl_value *p, int d, int64_t o, int64_t n) {
  const int64_t count = p[AMPL_POOL_OUTPUT].l.v[d];
  if (p[AMPL_POOL_ADAPTIVE].i) {
    const int64_t first = o * n / count, stop = ((o + 1) * n + count - 1) / count;
    return (ampl_cpu_window){first, stop, 1, stop - first};
  }
  const int64_t step = p[AMPL_POOL_DILATION].l.v[d], pad = p[AMPL_POOL_PADDING].l.v[d];
  const int64_t begin = o * p[AMPL_POOL_STRIDE].l.v[d] - pad, reach = step * (p[AMPL_POOL_KERNEL].l.v[d] - 1) + 1;
  int64_t first = begin, stop = begin + reach;
  if (first < 0) first += (-first + step - 1) / step * step;
  const int64_t span = (stop < n + pad ? stop : n + pad) - begin;
  if (stop > n) stop = n;
  if (first >= n) first = n - 1, stop = n;              /* a window that only touches padding reads the border */
  return (ampl_cpu_window){first, stop, step, span};
}

static void run_image(void *ud, int64_t job, int thread) {
  const pass *s = ud;
  ampl_cpu_pool_image m = s->image;
  const int64_t i = m.lanes > 1 ? job : job / s->c, c = m.lanes > 1 ? 0 : job % s->c;
  const images *const all[] = {&s->x, &s->y, &s->to};
  const char *at[3] = {NULL};
  int windows = 0;
  for (int k = 0; k < 3; k++) {
    if (all[k] == s->grid) windows = k;
    if (all[k]->t) at[k] = all[k]->data + (i * all[k]->stride[0] + c * all[k]->stride[1]) * s->size;
  }
  m.at = s->at + thread * m.lanes;
  if (s->places.t) m.places = (int64_t *)s->places.data + i * s->places.stride[0] + c * s->places.stride[1];
  for (int64_t row = 0; row < s->image.oh && !(row > 0 && ampl_cpu_stop(s->ctx)); row += s->band) {
    m.oh = s->image.oh - row < s->band ? s->image.oh - row : s->band;
    m.x = at[0], m.y = at[1], m.to = (void *)(uintptr_t)at[2];
    s->fn(&m);
    m.rows += m.oh;
    at[windows] += m.oh * s->grid->stride[2] * s->size;
    if (m.places) m.places += m.oh * s->places.stride[2];
  }
}

static bool lanes_fit(const images *m) { return !m->t || m->stride[1] == 1; }

/* x, y, to: any may be NULL; `image` is the tensor with the image's shape and strides, `grid` that with the windows'.
 * */
static ampl_status run_pass(ampl_ctx *ctx, pass *s, const images *image, const images *grid, const ampl_value *p) {
  const int64_t h = image->t->shape[2], w = image->t->shape[3], oh = grid->t->shape[2], ow = grid->t->shape[3];
  const size_t table = (size_t)(oh + ow) * sizeof(ampl_cpu_window);
  s->ctx = ctx;
  s->grid = grid;
  s->n = image->t->shape[0];
  s->c = image->t->shape[1];
  if (!image->t->numel || !grid->t->numel) return AMPL_OK;
  const bool lanes = s->c > 1 && lanes_fit(&s->x) && lanes_fit(&s->y) && lanes_fit(&s->to) && lanes_fit(&s->places);
  const int64_t jobs = lanes ? s->n : s->n * s->c;
  const int threads = ampl_cpu_threads_for(ctx, (double)image->t->numel);
  ampl_cpu_window *windows = ampl_cpu_scratch_get(ctx, table);
  s->image.lanes = lanes ? s->c : 1;
  s->band = 1 + (1 << 18) * oh / (1 + h * w * s->image.lanes);
  const size_t at_bytes = (size_t)(threads * s->image.lanes) * sizeof(int64_t);
  s->at = ampl_cpu_scratch_get(ctx, at_bytes);
  ampl_status status = AMPL_ENOMEM;
  if (windows && s->at) {
    for (int64_t o = 0; o < oh; o++) windows[o] = window_at(p, 0, o, h);
    for (int64_t o = 0; o < ow; o++) windows[oh + o] = window_at(p, 1, o, w);
    s->image.rows = windows;
    s->image.columns = windows + oh;
    s->image.h = h, s->image.w = w, s->image.oh = oh, s->image.ow = ow;
    memcpy(s->image.xs, image->stride + 2, sizeof s->image.xs);
    memcpy(s->image.ys, grid->stride + 2, sizeof s->image.ys);
    memcpy(s->image.ps, s->places.stride + 2, sizeof s->image.ps);
    status = ampl_cpu_parallel(ctx, threads, jobs, run_image, s);
  }
  if (windows) ampl_cpu_scratch_put(ctx, windows, table);
  if (s->at) ampl_cpu_scratch_put(ctx, s->at, at_bytes);
  return status;
}

static const ampl_cpu_pool *loops(const ampl_tensor *t) {
  return t->dtype == AMPL_F64 ? &ampl_cpu_pool_f64 : AMPL_CPU_BEST(ampl_cpu_pool);
}

static int64_t size_of(const ampl_tensor *t) { return t->dtype == AMPL_F64 ? 8 : 4; }

static ampl_status zero(ampl_ctx *ctx, const images *m, int64_t size) {
  return ampl_cpu_zero(ctx, m->data, (size_t)(m->t->numel * size));
}

static ampl_status end_pass(ampl_ctx *ctx, pass *s, ampl_status st) {
  close_images(ctx, &s->x, false);
  close_images(ctx, &s->y, false);
  close_images(ctx, &s->to, st == AMPL_OK);
  return st;
}

/* pool_max(x) -> y, places */
static ampl_status pool_max(ampl_ctx *ctx, const ampl_args *in, ampl_tensor **out) {
  pass s = {.fn = loops(in->t[0])->max, .size = size_of(in->t[0])};
  s.image.base = ampl_index_base(ctx);
  ampl_status st = open_images(ctx, &s.x, in->t[0], true);
  if (st == AMPL_OK) st = open_images(ctx, &s.to, out[0], false);
  if (st == AMPL_OK) st = open_images(ctx, &s.places, out[1], false);
  if (st == AMPL_OK) st = run_pass(ctx, &s, &s.x, &s.to, in->p);
  return end_pass(ctx, &s, st);
}

/* A place in x is the same place in dx: what infer_scatter asks for, but for the strides of sides of one. */
static ampl_status share_places(ampl_ctx *ctx, const images *x, images *dx) {
  for (int d = 0; d < 4; d++) {
    if (x->t->shape[d] == 1) dx->stride[d] = x->stride[d];
    if (x->stride[d] != dx->stride[d]) return ampl_error(ctx, AMPL_ESHAPE, "dx and x lie differently in memory");
  }
  return AMPL_OK;
}

/* pool_max_scatter(dy, x) -> dx */
static ampl_status pool_max_scatter(ampl_ctx *ctx, const ampl_args *in, ampl_tensor **out) {
  pass s = {.fn = loops(in->t[0])->scatter, .size = size_of(in->t[0])};
  ampl_status st = open_images(ctx, &s.y, in->t[0], true);
  if (st == AMPL_OK) st = open_images(ctx, &s.x, in->t[1], true);
  if (st == AMPL_OK) st = open_images(ctx, &s.to, out[0], false);
  if (st == AMPL_OK) st = zero(ctx, &s.to, s.size);
  if (st == AMPL_OK && s.x.t->numel) st = share_places(ctx, &s.x, &s.to);
  if (st == AMPL_OK) st = run_pass(ctx, &s, &s.x, &s.y, in->p);
  return end_pass(ctx, &s, st);
}

/* pool_max_gather(v, x) -> what v has where x is largest */
static ampl_status pool_max_gather(ampl_ctx *ctx, const ampl_args *in, ampl_tensor **out) {
  pass s = {.fn = loops(in->t[0])->gather, .size = size_of(in->t[0])};
  ampl_tensor *v = NULL, *x = NULL;     /* both row-major, so that one place serves both */
  ampl_status st = ampl_call(ctx, &(ampl_args){OP(contiguous), (ampl_tensor *[]){in->t[0]}, 1, NULL}, &v);
  if (st == AMPL_OK) st = ampl_call(ctx, &(ampl_args){OP(contiguous), (ampl_tensor *[]){in->t[1]}, 1, NULL}, &x);
  if (st == AMPL_OK) st = open_images(ctx, &s.y, v, true);
  if (st == AMPL_OK) st = open_images(ctx, &s.x, x, true);
  if (st == AMPL_OK) st = open_images(ctx, &s.to, out[0], false);
  if (st == AMPL_OK) st = run_pass(ctx, &s, &s.x, &s.to, in->p);
  st = end_pass(ctx, &s, st);
  ampl_tensor_release(v);
  ampl_tensor_release(x);
  return st;
}

static void mean_of(pass *s, const ampl_args *in) {
  s->image.include_pad = in->p[AMPL_POOL_INCLUDE_PAD].i;
  s->image.divisor = (double)in->p[AMPL_POOL_DIVISOR].i;
}

static ampl_status pool_mean(ampl_ctx *ctx, const ampl_args *in, ampl_tensor **out) {
  pass s = {.fn = loops(in->t[0])->mean, .size = size_of(in->t[0])};
  mean_of(&s, in);
  ampl_status st = open_images(ctx, &s.x, in->t[0], true);
  if (st == AMPL_OK) st = open_images(ctx, &s.to, out[0], false);
  if (st == AMPL_OK) st = run_pass(ctx, &s, &s.x, &s.to, in->p);
  return end_pass(ctx, &s, st);
}

static ampl_status pool_mean_scatter(ampl_ctx *ctx, const ampl_args *in, ampl_tensor **out) {
  pass s = {.fn = loops(in->t[0])->mean_scatter, .size = size_of(in->t[0])};
  mean_of(&s, in);
  ampl_status st = open_images(ctx, &s.y, in->t[0], true);
  if (st == AMPL_OK) st = open_images(ctx, &s.to, out[0], false);
  if (st == AMPL_OK) st = zero(ctx, &s.to, s.size);
  if (st == AMPL_OK) st = run_pass(ctx, &s, &s.to, &s.y, in->p);
  return end_pass(ctx, &s, st);
}

#define FLOATS(name) {#name, AMPL_F32, name}, {#name, AMPL_F16, name}, {#name, AMPL_BF16, name}, {#name, AMPL_F64, name}
const ampl_kernel ampl_cpu_pool_kernels[] = {FLOATS(pool_max),  FLOATS(pool_max_scatter),  FLOATS(pool_max_gather),
                                             FLOATS(pool_mean), FLOATS(pool_mean_scatter), {NULL, 0, NULL}};
