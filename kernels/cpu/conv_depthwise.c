/*
** conv_depthwise.c: convolutions in which every channel has a filter of its own (c = k = groups).
**
** There is no sum over channels to make a matrix product of.  Rows of outputs are computed from the image
** where it lies: a row is cut where taps enter or leave the image, and each part is one call of the loop in
** isa/depthwise.c with the taps that it sees.
*/
#include <string.h>

#include "conv_parts.h"
#include "gemm.h"

AMPL_CPU_EACH_ISA(const ampl_cpu_depthwise, ampl_cpu_depthwise);

/* One dimension of a convolution: output position x sees, through tap i, input position x*step + at[i] */
typedef struct axis {
  long n, step, size, taps;  /* outputs, inputs */
  long *at, *filter;         /* of each tap: offset, and which row or column of the filter it is */
} axis;

/* Outputs [*lo, *hi) see an input through tap i */
static void seen (const axis *x, long i, long *lo, long *hi) {
  const long at = x->at[i];
  *lo = at >= 0 ? 0 : ceil_div(-at, x->step);
  *hi = least(x->n, x->size > at ? ceil_div(x->size - at, x->step) : 0);
}

/* ---------------------------------------------------------------- forward, and the gradient of the input */

typedef struct apply {
  const ampl_cpu_conv *a;
  const ampl_cpu_depthwise *D;
  ampl_cpu_image in, out;
  axis y, x;
  long channels;
  const float *filter, *bias;   /* filter: [r*s][channels] */
  char *buffers;                /* per thread: two lists of r*s pointers */
  long buffer_bytes;
} apply;

static void row_job (void *ud, int64_t job, int thread) {
  const apply *p = ud;
  const long n = job / p->y.n, y = job % p->y.n, in_size = element_size(p->in.dtype);
  const void **tap = (const void **)(p->buffers + thread * p->buffer_bytes);
  const float **filter = (const float **)(tap + p->a->r * p->a->s);
  const char *image = (const char *)p->in.p + n * p->in.image * in_size;
  char *out = (char *)p->out.p + (n * p->out.image + y * p->out.row) * element_size(p->out.dtype);
  ampl_cpu_depthwise_row r = {.dst_dtype = p->out.dtype, .dst_step = p->out.pixel, .c = p->channels, .tap = tap,
                              .dtype = p->in.dtype, .step = p->x.step * p->in.pixel, .filter = filter,
                              .bias = p->bias, .relu = p->a->relu};
  for (long x = 0, next; x < p->x.n; x = next) {
    next = p->x.n;
    r.taps = 0;
    for (long j = 0; j < p->x.taps; j++) {
      long lo, hi;
      seen(&p->x, j, &lo, &hi);
      if (x < lo) next = least(next, lo);
      if (x < lo || x >= hi) continue;
      next = least(next, hi);
      for (long i = 0; i < p->y.taps; i++) {
        const long row = y * p->y.step + p->y.at[i], col = x * p->x.step + p->x.at[j];
        if (row < 0 || row >= p->y.size) continue;
        tap[r.taps] = image + (row * p->in.row + col * p->in.pixel) * in_size;
        filter[r.taps++] = p->filter + (p->y.filter[i] * p->a->s + p->x.filter[j]) * p->channels;
      }
    }
    r.dst = out + x * p->out.pixel * element_size(p->out.dtype);
    r.pixels = next - x;
    p->D->row(&r);
  }
}

static void forward_axis (axis *x, const ampl_cpu_conv *a, int d) {
  x->n = d ? a->ow : a->oh, x->size = d ? a->w : a->h, x->step = a->stride[d], x->taps = d ? a->s : a->r;
  for (long i = 0; i < x->taps; i++) x->at[i] = i * a->dilation[d] - a->pad[d], x->filter[i] = i;
}

/* Of the gradient: the input positions congruent to `residue` modulo the stride, which see the same taps */
static void backward_axis (axis *x, const ampl_cpu_conv *a, int d, long residue) {
  x->n = ceil_div((d ? a->w : a->h) - residue, a->stride[d]), x->size = d ? a->ow : a->oh, x->step = 1, x->taps = 0;
  for (long i = d ? a->s : a->r; i-- > 0;) {
    const long t = residue + a->pad[d] - i * a->dilation[d];
    if (t % a->stride[d] != 0) continue;
    x->at[x->taps] = t / a->stride[d];
    x->filter[x->taps++] = i;
  }
}

static ampl_status run_residues (apply *p, const ampl_cpu_image *out, int threads) {
  const ampl_cpu_conv *a = p->a;
  for (long py = 0; py < least(a->stride[0], a->h); py++)
    for (long px = 0; px < least(a->stride[1], a->w); px++) {
      backward_axis(&p->y, a, 0, py);
      backward_axis(&p->x, a, 1, px);
      p->out.p = (char *)out->p + (py * out->row + px * out->pixel) * element_size(out->dtype);
      p->out.row = out->row * a->stride[0];
      p->out.pixel = out->pixel * a->stride[1];
      const ampl_status s = ampl_cpu_parallel(a->ctx, threads, a->n * p->y.n, row_job, p);
      if (s != AMPL_OK) return s;
    }
  return AMPL_OK;
}

/* The filter as f32, channels side by side */
static void load_filter (const ampl_cpu_matrix *K, const ampl_cpu_conv *a, const ampl_cpu_filter *w, float *dst) {
  for (long t = 0; t < a->r * a->s; t++)
    K->gather[w->dtype](dst + t * a->c, a->c,
                        (const char *)w->p + (t / a->s * w->r + t % a->s * w->s) * element_size(w->dtype), 0, w->k, 1,
                        a->c, a->c);
}

/* Twice the arithmetic takes about as long as in a matrix product: memory is the limit */
static int threads_for (const ampl_cpu_conv *a) { return conv_threads(a, 8 * conv_flop(a)); }

static float *lay_out (apply *p, const ampl_cpu_matrix *K, arena *m, int threads) {
  const ampl_cpu_conv *a = p->a;
  p->y.at = arena_take(m, 8 * a->r), p->y.filter = arena_take(m, 8 * a->r);
  p->x.at = arena_take(m, 8 * a->s), p->x.filter = arena_take(m, 8 * a->s);
  p->bias = ampl_cpu_conv_bias(K, a, p->channels, m);
  p->buffer_bytes = round_up(16 * a->r * a->s, 64);
  p->buffers = arena_take(m, threads * p->buffer_bytes);
  float *filter = arena_take(m, 4 * a->r * a->s * a->c);
  p->filter = filter;
  return filter;
}

ampl_status ampl_cpu_depthwise_apply (const ampl_cpu_conv *a, const ampl_cpu_image *in, const ampl_cpu_filter *w,
                                      const ampl_cpu_image *out, bool backward) {
  const ampl_cpu_matrix *K = ampl_cpu_matrix_used();
  apply p = {.a = a, .D = AMPL_CPU_BEST(ampl_cpu_depthwise), .in = *in, .out = *out, .channels = a->c};
  const int threads = threads_for(a);
  arena m = {NULL, 0};
  lay_out(&p, K, &m, threads);
  const size_t bytes = m.used;
  m = (arena){ampl_cpu_scratch_get(a->ctx, bytes), 0};
  if (!m.base) return AMPL_ENOMEM;
  load_filter(K, a, w, lay_out(&p, K, &m, threads));
  ampl_status s;
  if (backward) s = run_residues(&p, out, threads);
  else {
    forward_axis(&p.y, a, 0);
    forward_axis(&p.x, a, 1);
    s = ampl_cpu_parallel(a->ctx, threads, a->n * p.y.n, row_job, &p);
  }
  ampl_cpu_scratch_put(a->ctx, m.base, bytes);
  return s;
}

/* ---------------------------------------------------------------- the gradient of the filter */

enum { CHUNKS = 16, CHANNELS = 128 };

/* A job is up to 128 channels of one chunk of images; chunks follow from the shape, and are added in order */
typedef struct weights {
  const ampl_cpu_conv *a;
  const ampl_cpu_depthwise *D;
  const ampl_cpu_image *x, *dy;
  axis row, col;
  long chunk, chunks, blocks;
  float *sums;                  /* [chunk][r*s][c] */
} weights;

static void grad_job (void *ud, int64_t job, int thread) {
  const weights *w = ud;
  const ampl_cpu_conv *a = w->a;
  const long q = job / w->blocks, c0 = job % w->blocks * CHANNELS, c = least(CHANNELS, a->c - c0);
  const long end = least(a->n, (q + 1) * w->chunk);
  float *sums = w->sums + q * a->r * a->s * a->c + c0;
  (void)thread;
  for (long t = 0; t < a->r * a->s; t++) memset(sums + t * a->c, 0, sizeof(float) * (size_t)c);
  for (long n = q * w->chunk; n < end; n++)
    for (long y = 0; y < a->oh && !ampl_cpu_stop(a->ctx); y++)
      for (long i = 0; i < a->r; i++) {
        const long row = y * w->row.step + w->row.at[i];
        if (row < 0 || row >= a->h) continue;
        for (long j = 0; j < a->s; j++) {
          long lo, hi;
          seen(&w->col, j, &lo, &hi);
          if (lo >= hi) continue;
          const long from = n * w->x->image + row * w->x->row + (lo * w->col.step + w->col.at[j]) * w->x->pixel + c0;
          const long grad = n * w->dy->image + y * w->dy->row + lo * w->dy->pixel + c0;
          w->D->grad(sums + (i * a->s + j) * a->c, (const char *)w->x->p + from * element_size(w->x->dtype),
                     w->x->dtype, w->col.step * w->x->pixel, (const char *)w->dy->p + grad * element_size(w->dy->dtype),
                     w->dy->dtype, w->dy->pixel, hi - lo, c);
        }
      }
}

ampl_status ampl_cpu_depthwise_weights (const ampl_cpu_conv *a, const ampl_cpu_image *x, const ampl_cpu_image *dy,
                                        const ampl_cpu_filter *dw) {
  const ampl_cpu_matrix *K = ampl_cpu_matrix_used();
  weights w = {.a = a, .D = AMPL_CPU_BEST(ampl_cpu_depthwise), .x = x, .dy = dy};
  w.chunk = ceil_div(a->n, CHUNKS);
  w.chunks = ceil_div(a->n, w.chunk);
  w.blocks = ceil_div(a->c, CHANNELS);
  const long taps = a->r * a->s, size = taps * a->c;
  arena m = {NULL, 0};
  for (;;) {
    w.row.at = arena_take(&m, 8 * a->r), w.row.filter = arena_take(&m, 8 * a->r);
    w.col.at = arena_take(&m, 8 * a->s), w.col.filter = arena_take(&m, 8 * a->s);
    w.sums = arena_take(&m, 4 * w.chunks * size);
    if (m.base) break;
    m = (arena){ampl_cpu_scratch_get(a->ctx, m.used), 0};
    if (!m.base) return AMPL_ENOMEM;
  }
  forward_axis(&w.row, a, 0);
  forward_axis(&w.col, a, 1);
  const ampl_status s = ampl_cpu_parallel(a->ctx, threads_for(a), w.chunks * w.blocks, grad_job, &w);
  for (long q = 1; s == AMPL_OK && q < w.chunks; q++)
    for (long i = 0; i < size; i++) w.sums[i] += w.sums[q * size + i];
  for (long t = 0; s == AMPL_OK && t < taps; t++)
    for (long c = 0; c < a->c; c++)
      K->store[dw->dtype]((char *)dw->p + (c * dw->k + t / a->s * dw->r + t % a->s * dw->s) * element_size(dw->dtype),
                          w.sums + t * a->c + c, 1);
  ampl_cpu_scratch_put(a->ctx, m.base, m.used);
  return s;
}
