/* grid_sample.c: images read at given positions, in doubles; each image is one thread's, so sums have one order. */
#include "move.h"
#include "op.h"
#include "stream.h"

#include <math.h>
#include <string.h>

enum { BILINEAR, NEAREST, BICUBIC };            /* the orders of the record's `mode` and `padding_mode` */
enum { ZEROS, BORDER, REFLECTION };
enum { TAPS = 4 };                              /* along one side, at most */

/* One side of an image, and the positions that one grid value reads: at[k] (-1: outside) with weight[k], whose
 * derivative by the grid value is slope[k]. */
typedef struct side {
  int64_t n;
  int     mode, padding, taps;
  bool    align;
} side;
typedef struct taps {
  int64_t at[TAPS];
  double  weight[TAPS], slope[TAPS];
} taps;

/* Reflected at both ends of the side; *sign: its direction after. */
static double reflect(const side *s, double x, double *sign) {
  double low = s->align ? 0 : -0.5, span = s->align ? (double)(s->n - 1) : (double)s->n;
  if (span == 0) return *sign = 0, 0;
  double from = x - low;
  if (from < 0) from = -from, *sign = -*sign;
  double over = fmod(from, span);
  if (fmod(floor(from / span), 2) == 0) return over + low;
  *sign = -*sign;
  return span - over + low;
}

static double padded(const side *s, double x, double *sign) {
  if (s->padding == REFLECTION) x = reflect(s, x, sign);
  if (s->padding == ZEROS) return x;
  double last = (double)(s->n - 1);
  if (!(x > 0)) *sign = 0, x = 0;
  else if (x >= last) *sign = 0, x = last;
  return x;
}

/* The place of a tap, which may be anywhere, as an index; -1 outside. */
static int64_t index_of(const side *s, double x) { return x >= 0 && x < (double)s->n ? (int64_t)x : -1; }

static void cubic_taps(const side *s, double x, double scale, taps *t) {
  const double a = -0.75;
  double low = floor(x), f = x - low;
  for (int k = 0; k < 4; k++) {
    double d = fabs(f - (k - 1)), sign = f - (k - 1) < 0 ? -1 : 1, none = 1;
    t->weight[k] = d <= 1 ? ((a + 2) * d - (a + 3)) * d * d + 1 : ((a * d - 5 * a) * d + 8 * a) * d - 4 * a;
    t->slope[k] = scale * sign * (d <= 1 ? (3 * (a + 2) * d - 2 * (a + 3)) * d : (3 * a * d - 10 * a) * d + 8 * a);
    t->at[k] = index_of(s, s->padding == ZEROS ? low + k - 1 : padded(s, low + k - 1, &none));
  }
}

static void taps_of(const side *s, double grid, taps *t) {
  double n = (double)s->n, scale = s->align ? (n - 1) / 2 : n / 2, sign = 1;
  double x = s->align ? (grid + 1) / 2 * (n - 1) : ((grid + 1) * n - 1) / 2;
  if (s->mode == BICUBIC) {
    cubic_taps(s, x, scale, t);
    return;
  }
  x = padded(s, x, &sign);
  if (s->mode == NEAREST) {
    t->at[0] = index_of(s, nearbyint(x));
    t->weight[0] = 1, t->slope[0] = 0;
    return;
  }
  double low = floor(x);
  for (int k = 0; k < 2; k++) t->at[k] = index_of(s, low + k);
  t->weight[0] = 1 - (x - low), t->weight[1] = x - low;
  t->slope[0] = -scale * sign, t->slope[1] = scale * sign;
}

typedef struct sampling {
  ampl_ctx *ctx;
  const ampl_tensor *x, *grid, *dy;
  ampl_tensor *y, *dx, *dgrid;
  side         side[2];                 /* height, width */
  double      *sums;                    /* an image for each thread */
} sampling;

static double value_at(const ampl_tensor *x, int64_t offset) {
  double v;
  ampl_cpu_widen(AMPL_WORK_F64, &v, x->dtype, ampl_cpu_at(x, offset), 1, 1);
  return v;
}

static void set_value(ampl_tensor *x, int64_t offset, double v) {
  ampl_cpu_narrow(AMPL_WORK_F64, &v, x->dtype, ampl_cpu_at(x, offset), 1, 1);
}

static void read_taps(const sampling *w, int64_t i, int64_t oh, int64_t ow, taps t[2]) {
  const ampl_tensor *g = w->grid;
  int64_t at = i * g->strides[0] + oh * g->strides[1] + ow * g->strides[2];
  taps_of(&w->side[0], value_at(g, at + g->strides[3]), &t[0]);
  taps_of(&w->side[1], value_at(g, at), &t[1]);
}

static void sample_job(void *ud, int64_t i, int thread) {
  const sampling *w = ud;
  const ampl_tensor *x = w->x;
  ampl_tensor *y = w->y;
  (void)thread;
  for (int64_t oh = 0; oh < y->shape[2]; oh++)
    for (int64_t ow = 0; ow < y->shape[3]; ow++) {
      taps t[2];
      if (ampl_cpu_stop_at(w->ctx, (oh * y->shape[3] + ow) * y->shape[1], y->shape[1])) return;
      read_taps(w, i, oh, ow, t);
      for (int64_t c = 0; c < y->shape[1]; c++) {
        double sum = 0;
        for (int a = 0; a < w->side[0].taps; a++)
          for (int b = 0; b < w->side[1].taps; b++)
            if (t[0].at[a] >= 0 && t[1].at[b] >= 0)
              sum += t[0].weight[a] * t[1].weight[b] *
                     value_at(x, i * x->strides[0] + c * x->strides[1] + t[0].at[a] * x->strides[2] +
                                     t[1].at[b] * x->strides[3]);
        set_value(y, i * y->strides[0] + c * y->strides[1] + oh * y->strides[2] + ow * y->strides[3], sum);
      }
    }
}

/* One element of dy: its share of dx, and of the gradients of the two grid values. */
static void spread(const sampling *w, int64_t i, int64_t c, const taps t[2], double dy, double *sums, double dgrid[2]) {
  const ampl_tensor *x = w->x;
  int64_t height = x->shape[2], width = x->shape[3];
  for (int a = 0; a < w->side[0].taps; a++)
    for (int b = 0; b < w->side[1].taps; b++) {
      int64_t h = t[0].at[a], v = t[1].at[b];
      if (h < 0 || v < 0) continue;
      double pixel = value_at(x, i * x->strides[0] + c * x->strides[1] + h * x->strides[2] + v * x->strides[3]);
      sums[(c * height + h) * width + v] += dy * t[0].weight[a] * t[1].weight[b];
      dgrid[0] += dy * pixel * t[0].slope[a] * t[1].weight[b];
      dgrid[1] += dy * pixel * t[0].weight[a] * t[1].slope[b];
    }
}

static void backward_job(void *ud, int64_t i, int thread) {
  const sampling *w = ud;
  const ampl_tensor *dy = w->dy;
  int64_t image = w->x->shape[1] * w->x->shape[2] * w->x->shape[3];
  double *sums = w->sums + thread * image;
  memset(sums, 0, (size_t)image * sizeof *sums);
  for (int64_t oh = 0; oh < dy->shape[2]; oh++)
    for (int64_t ow = 0; ow < dy->shape[3]; ow++) {
      taps t[2];
      double dgrid[2] = {0, 0};
      if (ampl_cpu_stop_at(w->ctx, (oh * dy->shape[3] + ow) * dy->shape[1], dy->shape[1])) return;
      read_taps(w, i, oh, ow, t);
      for (int64_t c = 0; c < dy->shape[1]; c++)
        spread(w, i, c, t,
               value_at(dy, i * dy->strides[0] + c * dy->strides[1] + oh * dy->strides[2] + ow * dy->strides[3]), sums,
               dgrid);
      int64_t at = ((i * dy->shape[2] + oh) * dy->shape[3] + ow) * 2;
      set_value(w->dgrid, at, dgrid[1]);
      set_value(w->dgrid, at + 1, dgrid[0]);
    }
  ampl_cpu_narrow(AMPL_WORK_F64, sums, w->dx->dtype, ampl_cpu_at(w->dx, i * image), 1, image);
}

static void sides_of(sampling *w, const ampl_value *p) {
  static const int taps[] = {2, 1, 4};
  for (int d = 0; d < 2; d++) w->side[d] = (side){w->x->shape[2 + d], (int)p[0].i, (int)p[1].i, taps[p[0].i], p[2].i};
}

static ampl_status grid_sample(ampl_ctx *ctx, const ampl_args *in, ampl_tensor **out) {
  sampling w = {.ctx = ctx, .x = in->t[0], .grid = in->t[1], .y = out[0]};
  sides_of(&w, in->p);
  return ampl_cpu_parallel(ctx, ampl_cpu_threads_for(ctx, (double)w.y->numel * 40), w.x->shape[0], sample_job, &w);
}

static ampl_status grid_sample_backward(ampl_ctx *ctx, const ampl_args *in, ampl_tensor **out) {
  sampling w = {.ctx = ctx, .dy = in->t[0], .x = in->t[1], .grid = in->t[2], .dx = out[0], .dgrid = out[1]};
  sides_of(&w, in->p);
  int threads = ampl_cpu_threads_for(ctx, (double)w.dy->numel * 80);
  int64_t image = w.x->shape[1] * w.x->shape[2] * w.x->shape[3];
  size_t bytes = (size_t)(image * threads + 1) * sizeof(double);
  if (!(w.sums = ampl_cpu_scratch_get(ctx, bytes)))
    return ampl_error(ctx, AMPL_ENOMEM, "no memory for %zu bytes of sums", bytes);
  const ampl_status s = ampl_cpu_parallel(ctx, threads, w.x->shape[0], backward_job, &w);
  ampl_cpu_scratch_put(ctx, w.sums, bytes);
  return s;
}

#define FLOATS(name) {#name, AMPL_F32, name}, {#name, AMPL_F64, name}, {#name, AMPL_F16, name}, {#name, AMPL_BF16, name}
const ampl_kernel ampl_cpu_grid_sample_kernels[] = {FLOATS(grid_sample), FLOATS(grid_sample_backward), {NULL, 0, NULL}};
