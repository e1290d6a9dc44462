/*
** conv_grad.c: the gradient of the filter, as matrix products over pixels.
**
**   dw[tap, c][k] = the sum over pixels of  x[pixel + tap][c] * dy[pixel][k]
**
** A is the transposed plane: its columns, one a channel, lie side by side, its runs are image rows.  B is
** dy, packed a panel of 32 output channels and about 256 pixels at a time.
**
** The sum is cut where the shape says: into chunks of images, each with a copy of dw of its own.  A job is
** some panels of one chunk; the chunks are added in order at the end.  So the threads do not show.
*/
#include "conv_parts.h"
#include "gemm.h"

typedef struct weights {
  const ampl_cpu_conv *a;
  const ampl_cpu_matrix *K;
  const ampl_cpu_filter *dw;
  ampl_cpu_image dy;
  plane full, column;          /* what all taps read; what one filter column reads */
  long *ty, *tx;
  bool split;                  /* each filter column has a plane of its own */
  long m, across;              /* rows of dw in a product; products for the taps of a filter row */
  long channels;               /* of x in a group */
  long nr, panels, depth;      /* panels in all groups together; rows of a panel */
  long unit, block;            /* image rows in a run, and in a product */
  long at_once;                /* images whose plane is loaded together */
  long chunks, chunk;          /* parts of the sum; images in each */
  long parts;                  /* jobs that share the panels of a chunk */
  int threads;
  float *sums;                 /* [chunk][panel][depth][nr] */
  char *buffers;
  long plane_room, panel_room, buffer_bytes;
} weights;

static long group_panels (const weights *w) { return w->panels / w->a->groups; }

/* ---------------------------------------------------------------- planning */

/* Short rows make short runs.  At stride 1 a plane cut to what one filter column reads has no gap between
   its rows, so that a run is a whole image. */
static bool should_split (const weights *w) {
  const ampl_cpu_conv *a = w->a;
  return a->ow <= 16 && a->stride[0] == 1 && a->stride[1] == 1 && a->s > 1 && w->channels >= 16;
}

static void plan_products (weights *w, const ampl_cpu_image *x) {
  const ampl_cpu_conv *a = w->a;
  const long step[2] = {a->stride[0], a->stride[1]};
  w->full = ampl_cpu_plane(x, a->h, a->w, a->c, false, a->oh, a->ow, step, a->r, w->ty, a->s, w->tx);
  w->split = should_split(w);
  const bool dense = w->full.pixel == 4 * a->c;
  const bool merged = !w->split && a->groups == 1 && a->dilation[1] == 1 && dense;
  w->across = merged || w->split ? 1 : a->s;
  w->m = merged ? a->s * w->channels : w->channels;
  w->unit = w->split ? a->oh : 1;
  w->block = w->unit * most(1, 256 / (a->ow * w->unit));
}

/* As many chunks as keep the copies small, and long enough that adding them up does not count */
static void plan_chunks (weights *w) {
  const ampl_cpu_conv *a = w->a;
  const long copy = 4 * w->panels * w->depth * w->nr, pixels = a->n * a->oh * a->ow;
  long chunks = least(16, least(a->n, most(1, pixels / 2048)));
  chunks = most(1, least(chunks, (4 << 20) / copy));
  w->chunk = ceil_div(a->n, chunks);
  w->chunks = ceil_div(a->n, w->chunk);
  w->threads = conv_threads(a, conv_flop(a));
  w->parts = least(w->panels, w->threads == 1 ? 1 : ceil_div(2 * w->threads, w->chunks));
}

static void plan_buffers (weights *w) {
  const ampl_cpu_conv *a = w->a;
  const long rows = w->full.yhi - w->full.ylo, image = rows * (w->full.xhi - w->full.xlo) * w->full.channels * 4;
  w->at_once = most(1, least(w->chunk, ampl_cpu_cache(2) / 2 / most(1, image)));
  w->plane_room = round_up(w->at_once * image, 64);
  if (w->full.in_place && !w->split) w->plane_room = 0;
  w->panel_room = round_up(4 * w->block * a->ow * w->nr, 64);
  const long runs = round_up(8 * w->block, 64);
  const long end = 4 * ampl_cpu_unpack_tmp(a, w->nr);
  w->buffer_bytes = round_up(most(w->plane_room + w->panel_room + runs, end), 64);
}

/* ---------------------------------------------------------------- products */

/* The state of a job: some panels of a chunk */
typedef struct job {
  const weights *w;
  long first_panel, last_panel;
  float *sums;
  char *plane;
  float *panel;
  long *run;
} job;

/* dy of `rows` grid rows from number y of image n0 on, w channels from k on, as a panel */
static void pack_dy (const job *j, long n0, long y, long rows, long k, long cols) {
  const weights *w = j->w;
  const long size = element_size(w->dy.dtype), oh = w->a->oh, ow = w->a->ow;
  for (long i = 0; i < rows; i++) {
    const long n = n0 + (y + i) / oh, row = (y + i) % oh;
    const char *src = (const char *)w->dy.p + (n * w->dy.image + row * w->dy.row + k) * size;
    w->K->copy[w->dy.dtype](j->panel + i * ow * w->nr, w->nr, src, w->dy.pixel, ow, cols, w->nr);
  }
}

/* One panel of dw += the products over j->run; `in` is the first pixel's first tap, column the filter column
   of a split plane */
static void products (const job *j, const plane *p, const char *in, long runs, long panel, long column, long cols,
                      bool acc) {
  const weights *w = j->w;
  const ampl_cpu_conv *a = w->a;
  const tiling tiles = tiling_of(w->m, w->K->mr);
  const ampl_cpu_tile_fn *kernel = w->K->tile[0][AMPL_CPU_COLS][vectors_for(w->K, cols)];
  ampl_cpu_tile t = {.a_step = a->stride[1] * p->pixel, .run = j->run, .runs = runs, .run_len = w->unit * a->ow,
                     .b = (const char *)j->panel, .b_step = 4 * w->nr, .ldc = w->nr, .n = (int)cols, .acc = acc};
  float *sums = j->sums + panel * w->depth * w->nr;
  const char *base = in + panel / group_panels(w) * w->channels * 4;
  for (long y = 0; y < a->r; y++)
    for (long x = 0; x < w->across; x++) {
      const char *tap = base + y * a->dilation[0] * p->row + x * a->dilation[1] * p->pixel;
      const long number = w->split ? y * a->s + column : y * w->across + x;
      FOR_TILES(tiles, i, r, h) {
        t.a = tap + 4 * r;
        t.c = sums + (number * w->m + r) * w->nr;
        kernel[h](&t);
      }
    }
}

/* Images [n0, n1), filter column `column` if the plane is split */
static void images (const job *j, long n0, long n1, long column, bool acc) {
  const weights *w = j->w;
  const ampl_cpu_conv *a = w->a;
  plane p = w->full;
  if (w->split) {
    p.in_place = false;
    p.xlo = w->tx[column], p.xhi = p.xlo + a->ow;
    p.row = a->ow * p.channels * 4, p.pixel = p.channels * 4;
  }
  long image;
  const char *in = ampl_cpu_plane_load(w->K, &p, j->plane, n0, n1, p.ylo, p.yhi, &image);
  const long rows = (n1 - n0) * a->oh, kg = a->k / a->groups;
  for (long y = 0; y < rows; y += w->block) {
    const long n = least(w->block, rows - y);
    for (long i = 0; i < n / w->unit; i++) {
      const long row = y + i * w->unit;
      j->run[i] = row / a->oh * image + row % a->oh * a->stride[0] * p.row;
    }
    for (long panel = j->first_panel; panel < j->last_panel; panel++) {
      if (ampl_cpu_stop(a->ctx)) return;
      const long k = panel % group_panels(w) * w->nr, cols = least(w->nr, kg - k);
      pack_dy(j, n0, y, n, panel / group_panels(w) * kg + k, cols);
      products(j, &p, in, n / w->unit, panel, column, cols, acc || y > 0);
    }
  }
}

static void run_job (void *ud, int64_t number, int thread) {
  const weights *w = ud;
  const long chunk = number / w->parts, part = number % w->parts;
  char *buffer = w->buffers + thread * w->buffer_bytes;
  const job j = {.w = w, .first_panel = part * w->panels / w->parts, .last_panel = (part + 1) * w->panels / w->parts,
                 .sums = w->sums + chunk * w->panels * w->depth * w->nr, .plane = buffer,
                 .panel = (float *)(buffer + w->plane_room), .run = (long *)(buffer + w->plane_room + w->panel_room)};
  const long first = chunk * w->chunk, end = least(w->a->n, first + w->chunk);
  for (long n = first; n < end; n += w->at_once)
    for (long column = 0; column < (w->split ? w->a->s : 1); column++)
      images(&j, n, least(end, n + w->at_once), column, n > first);
}

/* Adds up one panel of all chunks, and stores it */
static void finish_job (void *ud, int64_t panel, int thread) {
  const weights *w = ud;
  const long size = w->depth * w->nr, kg = w->a->k / w->a->groups;
  float *sum = w->sums + panel * size;
  for (long q = 1; q < w->chunks; q++) {
    const float *more = w->sums + (q * w->panels + panel) * size;
    for (long i = 0; i < size; i++) sum[i] += more[i];
  }
  const long k = panel % group_panels(w) * w->nr;
  ampl_cpu_unpack_filter(w->K, w->a, w->dw, sum, w->nr, panel / group_panels(w) * kg + k, least(w->nr, kg - k),
                         (float *)(w->buffers + thread * w->buffer_bytes));
}

ampl_status ampl_cpu_conv_direct_weights (const ampl_cpu_conv *a, const ampl_cpu_image *x, const ampl_cpu_image *dy,
                                          const ampl_cpu_filter *dw) {
  weights w = {.a = a, .K = ampl_cpu_matrix_used(), .dw = dw, .dy = *dy, .channels = a->c / a->groups};
  const size_t taps_bytes = (size_t)round_up(8 * (a->r + a->s), 64);
  w.ty = ampl_cpu_scratch_get(a->ctx, taps_bytes);
  if (!w.ty) return AMPL_ENOMEM;
  w.tx = w.ty + a->r;
  for (long i = 0; i < a->r; i++) w.ty[i] = i * a->dilation[0] - a->pad[0];
  for (long i = 0; i < a->s; i++) w.tx[i] = i * a->dilation[1] - a->pad[1];
  w.nr = 2 * w.K->vw;
  w.panels = a->groups * ceil_div(a->k / a->groups, w.nr);
  w.depth = a->r * a->s * w.channels;
  plan_products(&w, x);
  plan_chunks(&w);
  plan_buffers(&w);
  const long sums = round_up(4 * w.chunks * w.panels * w.depth * w.nr, 64);
  const size_t bytes = (size_t)(sums + w.threads * w.buffer_bytes);
  ampl_status s = AMPL_ENOMEM;
  w.sums = ampl_cpu_scratch_get(a->ctx, bytes);
  if (w.sums) {
    w.buffers = (char *)w.sums + sums;
    s = ampl_cpu_parallel(a->ctx, w.threads, w.chunks * w.parts, run_job, &w);
    if (s == AMPL_OK) s = ampl_cpu_parallel(a->ctx, w.threads, w.panels, finish_job, &w);
    ampl_cpu_scratch_put(a->ctx, w.sums, bytes);
  }
  ampl_cpu_scratch_put(a->ctx, w.ty, taps_bytes);
  return s;
}
