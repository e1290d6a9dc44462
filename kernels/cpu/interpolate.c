/* interpolate.c: resampling, one dimension after the other: each position of the larger or smaller side is a weighted
 * sum of a few of the other.  Forward works in f32 (f64 for f64), backward, which adds up, in doubles. */
#include "move.h"
#include "op.h"
#include "stream.h"

#include <math.h>
#include <string.h>

enum { NEAREST, LINEAR, CUBIC };        /* the order of the record's `mode` */
enum { SIDES = 3, CHANNELS = 16 }; /* spatial dimensions at most; channels taken together where they lie together */

/* The positions and weights of one side: `taps` for each of n_out outputs. */
typedef struct side {
  int64_t  n_in, n_out, taps;
  int64_t *at;
  double  *weight;
} side;

static int64_t clip(int64_t i, int64_t n) { return i < 0 ? 0 : i >= n ? n - 1 : i; }

static void nearest_taps(side *s, double scale) {
  float ratio = scale > 0 ? (float)(1 / scale) : (float)s->n_in / (float)s->n_out;
  for (int64_t j = 0; j < s->n_out; j++) {
    int64_t i = s->n_out == s->n_in ? j : s->n_out == 2 * s->n_in ? j / 2 : (int64_t)floorf((float)j * ratio);
    s->at[j] = clip(i, s->n_in);
    s->weight[j] = 1;
  }
}

/* Where output j lies among the inputs. */
static double place_of(const side *s, int64_t j, bool align, double scale) {
  if (align) return s->n_out > 1 ? (double)j * (double)(s->n_in - 1) / (double)(s->n_out - 1) : 0;
  return ((double)j + 0.5) * (scale > 0 ? 1 / scale : (double)s->n_in / (double)s->n_out) - 0.5;
}

static void linear_taps(side *s, bool align, double scale) {
  for (int64_t j = 0; j < s->n_out; j++) {
    double at = fmax(place_of(s, j, align, scale), 0), t;
    int64_t i = clip((int64_t)at, s->n_in);
    t = fmin(at - (double)i, 1);
    s->at[2 * j] = i, s->at[2 * j + 1] = clip(i + 1, s->n_in);
    s->weight[2 * j] = 1 - t, s->weight[2 * j + 1] = t;
  }
}

/* Keys' cubic with a = -0.75, at distance d. */
static double cubic(double d) {
  const double a = -0.75;
  d = fabs(d);
  return d <= 1 ? ((a + 2) * d - (a + 3)) * d * d + 1 : d < 2 ? ((a * d - 5 * a) * d + 8 * a) * d - 4 * a : 0;
}

static void cubic_taps(side *s, bool align, double scale) {
  for (int64_t j = 0; j < s->n_out; j++) {
    double at = place_of(s, j, align, scale), low = floor(at);
    for (int k = 0; k < 4; k++) {
      s->at[4 * j + k] = clip((int64_t)low + k - 1, s->n_in);
      s->weight[4 * j + k] = cubic(at - low - (k - 1));
    }
  }
}

/* ------------------------------------------------------------------------------------------------ passes ---------- */

/* (outer, n_in, inner) to (outer, n_out, inner) */
#define PASS(T)                                                                                                        \
  static void gather_##T(ampl_ctx *ctx, const side *s, int64_t outer, int64_t inner, const T *x, T *y) {               \
    for (int64_t o = 0; o < outer; o++, x += s->n_in * inner)                                                          \
      for (int64_t j = 0; j < s->n_out; j++, y += inner) {                                                             \
        if (ampl_cpu_stop_at(ctx, (o * s->n_out + j) * inner, inner)) return;                                          \
        for (int64_t k = j * s->taps; k < (j + 1) * s->taps; k++) {                                                    \
          const T *from = x + s->at[k] * inner, w = (T)s->weight[k];                                                   \
          if (k == j * s->taps) for (int64_t i = 0; i < inner; i++) y[i] = w * from[i];                                \
          else if (w != 0) for (int64_t i = 0; i < inner; i++) y[i] += w * from[i];                                    \
        }                                                                                                              \
      }                                                                                                                \
  }
PASS(float)
PASS(double)

/* (outer, n_out, inner) added up to (outer, n_in, inner) */
static void spread(ampl_ctx *ctx, const side *s, int64_t outer, int64_t inner, const double *y, double *x) {
  memset(x, 0, (size_t)(outer * s->n_in * inner) * sizeof *x);
  for (int64_t o = 0; o < outer; o++, x += s->n_in * inner)
    for (int64_t j = 0; j < s->n_out; j++, y += inner) {
      if (ampl_cpu_stop_at(ctx, (o * s->n_out + j) * inner, inner)) return;
      for (int64_t k = j * s->taps; k < (j + 1) * s->taps; k++) {
        double *to = x + s->at[k] * inner, w = s->weight[k];
        if (w != 0) for (int64_t i = 0; i < inner; i++) to[i] += w * y[i];
      }
    }
}

/* ------------------------------------------------------------------------------------------------ slabs ----------- */

typedef struct resampling {
  ampl_ctx    *ctx;
  const ampl_tensor *from;
  ampl_tensor *to;
  side         side[SIDES];
  int          sides;
  bool         back;
  ampl_cpu_work work;
  int64_t      together, blocks;        /* channels of a slab; slabs of an image */
  int64_t      room;                    /* elements of each of two buffers a thread has */
  char        *buffers;
} resampling;

/* The slab of channels c to c + n of image i as a stream: the sides, then the channels. */
static ampl_cpu_stream slab_of(const ampl_tensor *x, int64_t i, int64_t c, int64_t n) {
  ampl_cpu_stream s = {.data = ampl_cpu_at(x, i * x->strides[0] + c * x->strides[1]), .dtype = x->dtype};
  int64_t shape[SIDES + 1], stride[SIDES + 1];
  int nd = x->ndim - 2;
  for (int d = 0; d < nd; d++) shape[d] = x->shape[2 + d], stride[d] = x->strides[2 + d];
  shape[nd] = n, stride[nd] = x->strides[1];
  ampl_cpu_streams_from(1, (const int64_t *const[]){stride}, nd + 1, shape, false, &s);
  return s;
}

static void slab_job(void *ud, int64_t job, int thread) {
  const resampling *w = ud;
  int64_t size = (int64_t)ampl_cpu_work_size(w->work), c = job % w->blocks * w->together, n = w->from->shape[1] - c;
  if (n > w->together) n = w->together;
  char *a = w->buffers + 2 * thread * w->room * size, *b = a + w->room * size;
  ampl_cpu_stream from = slab_of(w->from, job / w->blocks, c, n), to = slab_of(w->to, job / w->blocks, c, n);
  const void *x = ampl_cpu_load(&from, w->work, 0, 0, from.n, a);
  int64_t outer = 1, inner = from.n;
  for (int d = 0; d < w->sides; d++) {
    const side *s = &w->side[d];
    inner /= w->back ? s->n_out : s->n_in;
    void *y = x == b ? a : b;
    if (w->back) spread(w->ctx, s, outer, inner, x, y);
    else if (w->work == AMPL_WORK_F32) gather_float(w->ctx, s, outer, inner, x, y);
    else gather_double(w->ctx, s, outer, inner, x, y);
    outer *= w->back ? s->n_in : s->n_out;
    x = y;
    if (ampl_cpu_stop(w->ctx)) return;
  }
  ampl_cpu_store(&to, w->work, 0, 0, to.n, x);
}

/* Taps of all sides in one block. */
static ampl_status taps_get(ampl_ctx *ctx, resampling *w, const ampl_args *in, const ampl_tensor *small,
                            const ampl_tensor *result, size_t *bytes) {
  static const int64_t taps[] = {1, 2, 4};
  int64_t mode = in->p[1].i, n = 0;
  for (int d = 0; d < w->sides; d++) n += result->shape[2 + d] * taps[mode];
  *bytes = (size_t)n * (sizeof(double) + sizeof(int64_t));
  double *weight = ampl_cpu_scratch_get(ctx, *bytes);
  if (!weight) return ampl_error(ctx, AMPL_ENOMEM, "no memory for %zu bytes of weights", *bytes);
  int64_t *at = (int64_t *)(weight + n);
  for (int d = 0; d < w->sides; d++) {
    side *s = &w->side[d];
    *s = (side){small->shape[2 + d], result->shape[2 + d], taps[mode], at, weight};
    if (mode == NEAREST) nearest_taps(s, in->p[3 + d].f);
    else if (mode == LINEAR) linear_taps(s, in->p[2].i, in->p[3 + d].f);
    else cubic_taps(s, in->p[2].i, in->p[3 + d].f);
    at += s->n_out * s->taps, weight += s->n_out * s->taps;
  }
  return AMPL_OK;
}

static ampl_status run(ampl_ctx *ctx, const ampl_args *in, ampl_tensor **out, bool back) {
  resampling w = {.ctx = ctx, .from = in->t[0], .to = out[0], .sides = in->t[0]->ndim - 2, .back = back,
                  .work = back ? AMPL_WORK_F64 : ampl_cpu_work_of(in->t[0]->dtype), .together = 1};
  size_t bytes;
  if (w.to->numel == 0) return AMPL_OK;
  if (w.from->strides[1] == 1 && w.to->strides[1] == 1)
    w.together = w.from->shape[1] < CHANNELS ? w.from->shape[1] : CHANNELS;
  w.blocks = (w.from->shape[1] + w.together - 1) / w.together;
  AMPL_TRY(taps_get(ctx, &w, in, back ? w.to : w.from, back ? w.from : w.to, &bytes));
  w.room = w.together;                  /* the largest shape on the way */
  for (int d = 0; d < w.sides; d++) w.room *= w.side[d].n_in > w.side[d].n_out ? w.side[d].n_in : w.side[d].n_out;
  int threads = ampl_cpu_threads_for(ctx, (double)(w.from->numel + w.to->numel) * (double)w.side[0].taps);
  size_t room = (size_t)threads * 2 * (size_t)w.room * ampl_cpu_work_size(w.work);
  ampl_status status = AMPL_OK;
  if ((w.buffers = ampl_cpu_scratch_get(ctx, room))) {
    status = ampl_cpu_parallel(ctx, threads, w.from->shape[0] * w.blocks, slab_job, &w);
    ampl_cpu_scratch_put(ctx, w.buffers, room);
  } else {
    status = ampl_error(ctx, AMPL_ENOMEM, "no memory for %zu bytes of rows", room);
  }
  ampl_cpu_scratch_put(ctx, w.side[0].weight, bytes);
  return status;
}

static ampl_status resample(ampl_ctx *ctx, const ampl_args *in, ampl_tensor **out) { return run(ctx, in, out, false); }
static ampl_status resample_backward(ampl_ctx *ctx, const ampl_args *in, ampl_tensor **out) {
  return run(ctx, in, out, true);
}

#define FLOATS(name) {#name, AMPL_F32, name}, {#name, AMPL_F64, name}, {#name, AMPL_F16, name}, {#name, AMPL_BF16, name}
const ampl_kernel ampl_cpu_interpolate_kernels[] = {FLOATS(resample), FLOATS(resample_backward), {NULL, 0, NULL}};
