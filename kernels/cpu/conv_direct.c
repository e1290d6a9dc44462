/*
** conv_direct.c: convolution as matrix products without im2col: forward, and the gradient of the input.
**
** The images of a job are copied into a plane (conv_plane.c) with zeros round them.  There the pixels of an
** output row under one filter tap are equally spaced, so the micro-kernel reads them in place as rows of A,
** and the taps are its runs along k; taps next to each other in a row are one longer run.  Nothing is
** copied r*s times.
**
**   forward    y[pixel][k]  = x[pixel + tap][c] . w[tap][c][k]
**   backward   dx[pixel][c] = dy[pixel - tap][k] . w[tap][k][c]
**
** Backward with stride s is s*s convolutions of stride 1, one for each residue of the pixel: those pixels
** see the same taps.
*/
#include <string.h>

#include "conv_parts.h"
#include "gemm.h"

typedef struct direct {
  const ampl_cpu_conv *a;
  const ampl_cpu_matrix *K;
  const ampl_cpu_filter *w;
  bool backward;
  /* the grid of outputs, a part of `out` */
  ampl_cpu_image out;
  long n, gh, gw, step[2];
  /* the taps: offsets in the source, and the pixel of the filter that each is */
  long ny, nx, *ty, *tx, *fy, *fx;
  plane plane;
  long groups, in_group, out_group;    /* channels of a group */
  bool dot;
  long nr, depth;                      /* depth: rows of a panel, in 4-byte words */
  long panels;                         /* of a group */
  long runs, run_len, *run;
  bool flat;                           /* a tile may go on in the next row */
  long mr, pass;                       /* rows of a tile; columns in one pass over the pixels */
  cut cut;
  int threads;
  const float *bias;
  float *packed;                       /* [group][panel][depth][nr] */
  char *buffers;                       /* one a thread: a plane, or what packing needs */
  long buffer_bytes;
} direct;

/* ---------------------------------------------------------------- taps */

static long count_taps (const ampl_cpu_conv *a, int d, long residue, long *at, long *filter) {
  const long size = d ? a->s : a->r;
  long n = 0;
  for (long i = size; i-- > 0;) { /* from the last one down, so that offsets rise */
    const long t = residue + a->pad[d] - i * a->dilation[d];
    if (t % a->stride[d] != 0) continue;
    at[n] = t / a->stride[d];
    filter[n++] = i;
  }
  return n;
}

static void forward_taps (direct *d) {
  const ampl_cpu_conv *a = d->a;
  d->ny = a->r, d->nx = a->s;
  for (long i = 0; i < a->r; i++) d->ty[i] = i * a->dilation[0] - a->pad[0], d->fy[i] = i;
  for (long i = 0; i < a->s; i++) d->tx[i] = i * a->dilation[1] - a->pad[1], d->fx[i] = i;
  d->gh = a->oh, d->gw = a->ow;
  d->step[0] = a->stride[0], d->step[1] = a->stride[1];
}

/* The input pixels whose row is py and column px, modulo the strides; false if no tap reaches them */
static bool residue_taps (direct *d, const ampl_cpu_image *out, long py, long px) {
  const ampl_cpu_conv *a = d->a;
  d->ny = count_taps(a, 0, py, d->ty, d->fy);
  d->nx = count_taps(a, 1, px, d->tx, d->fx);
  d->gh = ceil_div(a->h - py, a->stride[0]);
  d->gw = ceil_div(a->w - px, a->stride[1]);
  d->step[0] = d->step[1] = 1;
  d->out.p = (char *)out->p + (py * out->row + px * out->pixel) * element_size(out->dtype);
  d->out.row = out->row * a->stride[0];
  d->out.pixel = out->pixel * a->stride[1];
  return d->ny > 0 && d->nx > 0;
}

/* ---------------------------------------------------------------- planning */

/* The runs of the micro-kernel, as offsets in the plane: all taps of a filter row at once, where they and
   the channels lie side by side */
static void plan_runs (direct *d) {
  const plane *p = &d->plane;
  bool merged = d->groups == 1 && p->pixel == p->channels * p->size;
  for (long i = 1; i < d->nx; i++) merged &= d->tx[i] == d->tx[i - 1] + 1;
  const long channels = d->groups == 1 ? p->channels : d->in_group, across = merged ? 1 : d->nx;
  d->runs = d->ny * across;
  d->run_len = (merged ? d->nx : 1) * channels * p->size / 4;
  d->depth = d->runs * d->run_len;
  for (long i = 0; i < d->ny; i++)
    for (long j = 0; j < across; j++)
      d->run[i * across + j] = (d->ty[i] - d->ty[0]) * p->row + (d->tx[j] - d->tx[0]) * p->pixel;
}

/* Whole fours of pixels may lie anywhere, so with rows a multiple of four long and a dense result the
   pixels of all rows are one sequence; otherwise a tile stays within its row. */
static bool can_be_flat (const direct *d) {
  return d->gw % 4 == 0 && d->gw % 12 != 0 && d->K->mr >= 12 && d->out.row == d->gw * d->out.pixel &&
         d->out.image == d->gh * d->out.row;
}

static void plan (direct *d, const ampl_cpu_image *in) {
  const ampl_cpu_conv *a = d->a;
  const ampl_cpu_matrix *K = d->K;
  const long c = d->groups * d->in_group;
  d->plane = ampl_cpu_plane(in, d->backward ? a->oh : a->h, d->backward ? a->ow : a->w, c, d->dot, d->gh, d->gw,
                            d->step, d->ny, d->ty, d->nx, d->tx);
  plan_runs(d);
  d->flat = can_be_flat(d);
  const bool narrow = d->gw <= K->mr4 && d->gw % 4 != 0;
  d->nr = (narrow ? 4 : 2) * K->vw;
  d->mr = d->flat ? 12 : narrow ? K->mr4 : K->mr;
  d->panels = ceil_div(d->out_group, d->nr);
  d->pass = most(1, ampl_cpu_cache(2) / 4 / (4 * d->depth * d->nr)) * d->nr;
  const plane *p = &d->plane;
  const long span = p->yhi - p->ylo, row_bytes = (p->xhi - p->xlo) * p->channels * p->size;
  d->threads = conv_threads(a, 2.0 * d->n * d->gh * d->gw * d->depth * d->groups * d->out_group);
  d->cut = ampl_cpu_cut(d->n, d->gh, span * row_bytes, ampl_cpu_cache(2) / 2, d->threads);
  const long rows = (d->cut.band - 1) * d->step[0] + d->ty[d->ny - 1] - d->ty[0] + 1;
  const long packing = 4 * (d->ny * d->nx * 16 * d->nr + ampl_cpu_filter_tmp(a, d->nr));
  d->buffer_bytes = round_up(most(packing, plane_bytes(p, d->cut.images, rows)), 64);
}

/* ---------------------------------------------------------------- packing the filter */

/* Two rows of f32 that came from bf16, as one row of pairs */
static void join (float *dst, const float *low, const float *high, long n) {
  for (long i = 0; i < n; i++) {
    uint32_t l, h = 0;
    memcpy(&l, low + i, 4);
    if (high) memcpy(&h, high + i, 4);
    l = l >> 16 | (h & 0xffff0000u);
    memcpy(dst + i, &l, 4);
  }
}

static void pack_job (void *ud, int64_t job, int thread) {
  const direct *d = ud;
  const long group = job / d->panels, j = job % d->panels * d->nr, nr = d->nr, taps = d->ny * d->nx;
  const long cols = least(nr, d->out_group - j);
  const filter_view w = ampl_cpu_filter_view(d->a, d->w, d->backward, group);
  float *dst = d->packed + job * d->depth * nr, *tmp = (float *)(d->buffers + thread * d->buffer_bytes);
  if (!d->dot) {
    ampl_cpu_pack_filter(d->K, &w, dst, d->in_group * nr, nr, d->ny, d->fy, d->nx, d->fx, 0, d->in_group, j, cols, tmp);
    return;
  }
  float *part = tmp + ampl_cpu_filter_tmp(d->a, nr); /* 16 channels at a time */
  const long tap_step = d->depth / taps * nr;
  for (long c = 0; c < d->in_group; c += 16) {
    const long n = least(16, d->in_group - c);
    ampl_cpu_pack_filter(d->K, &w, part, 16 * nr, nr, d->ny, d->fy, d->nx, d->fx, c, n, j, cols, tmp);
    for (long t = 0; t < taps; t++)
      for (long i = 0; i < n; i += 2) {
        const float *low = part + (t * 16 + i) * nr;
        join(dst + t * tap_step + (c + i) / 2 * nr, low, i + 1 < n ? low + nr : NULL, nr);
      }
  }
}

/* ---------------------------------------------------------------- the product */

/* Where the pixels of a tile are, in the plane and in the result */
typedef struct walk {
  long image, row, col;   /* of the next pixel, within the job */
} walk;

typedef struct job {
  const direct *d;
  const char *in;         /* the first pixel's first tap */
  char *out;              /* the first pixel of the result */
  long image_step;        /* of the plane, bytes */
  long rows;              /* grid rows of an image in this job */
} job;

static long pixel_offset (const job *j, const walk *w) {
  const direct *d = j->d;
  return w->image * j->image_step + w->row * d->step[0] * d->plane.row + w->col * d->step[1] * d->plane.pixel;
}

static void advance (const job *j, walk *w, long pixels) {
  if ((w->col += pixels) < j->d->gw) return;
  w->col = 0;
  if (++w->row == j->rows) w->row = 0, w->image++;
}

/* All columns [c0, c1) of group g for one tile of h pixels, whose fours begin at quad[] */
static void tile_columns (const job *j, ampl_cpu_tile *t, long g, long c0, long c1, long h, char *out) {
  const direct *d = j->d;
  const ampl_cpu_matrix *K = d->K;
  const bool f32 = d->out.dtype == AMPL_F32;
  float tmp[AMPL_CPU_ROWS_MAX * 64];
  for (long c = c0; c < c1; c += d->nr) {
    const long w = least(d->nr, d->out_group - c), channel = g * d->out_group + c;
    void *dst = out + channel * element_size(d->out.dtype);
    t->n = (int)w;
    t->b = (const char *)(d->packed + (g * d->panels * d->nr + c) * d->depth);
    t->bias = d->bias ? d->bias + channel : NULL;
    t->c = f32 ? dst : tmp;
    t->ldc = f32 ? d->out.pixel : d->nr;
    K->tile[d->dot][AMPL_CPU_ROWS][vectors_for(K, w)][h](t);
    if (f32) continue;
    K->out(&(ampl_cpu_out){.tile = tmp, .ldt = d->nr, .rows = (int)h, .cols = (int)w, .c = dst,
                           .dtype = d->out.dtype, .ldc = d->out.pixel});
  }
}

/* All pixels of the job for columns [c0, c1) of group g: a line is a row of the grid, or all pixels */
static void lines (const job *j, long images, long g, long c0, long c1) {
  const direct *d = j->d;
  const long size = element_size(d->out.dtype), all = images * j->rows * d->gw;
  const long count = d->flat ? 1 : images * j->rows, length = d->flat ? all : d->gw;
  const char *in = j->in + g * d->in_group * d->plane.size;
  walk at = {0, 0, 0};
  for (long line = 0; line < count; line++) {
    const long row = d->flat ? 0 : line % j->rows, image = d->flat ? 0 : line / j->rows;
    char *out = j->out + (image * d->out.image + row * d->out.row) * size;
    const tiling even = tiling_of(length, d->mr);
    for (long i = 0, x = 0, h; i < even.n; i++, x += h) {
      long quad[4] = {0};
      h = d->flat ? least(d->mr, length - x) : tile_height(even, i);
      if (ampl_cpu_stop_at(d->a->ctx, i * d->mr * d->depth, d->mr * d->depth)) return;
      for (long q = 0; q < (d->flat ? h : 1); q += 4) {
        quad[q / 4] = pixel_offset(j, &at);
        advance(j, &at, d->flat ? 4 : h);
      }
      ampl_cpu_tile t = {.a = in + quad[0], .a_step = d->step[1] * d->plane.pixel, .run = d->run, .runs = d->runs,
                         .run_len = d->run_len, .b_step = 4 * d->nr, .relu = d->a->relu};
      for (int q = 1; q < 4; q++) quad[q] -= quad[0];
      if (d->flat) t.quad = quad;
      tile_columns(j, &t, g, c0, c1, h, out + x * d->out.pixel * size);
    }
  }
}

static void run_job (void *ud, int64_t number, int thread) {
  const direct *d = ud;
  const piece p = piece_of(&d->cut, number);
  const long y0 = p.y0 * d->step[0] + d->ty[0], y1 = (p.y1 - 1) * d->step[0] + d->ty[d->ny - 1] + 1;
  job j = {.d = d, .rows = p.y1 - p.y0};
  j.in = ampl_cpu_plane_load(d->K, &d->plane, d->buffers + thread * d->buffer_bytes, p.n0, p.n1, y0, y1, &j.image_step);
  j.out = (char *)d->out.p + (p.n0 * d->out.image + p.y0 * d->out.row) * element_size(d->out.dtype);
  for (long g = 0; g < d->groups; g++)
    for (long c = 0; c < d->out_group; c += d->pass)
      lines(&j, p.n1 - p.n0, g, c, least(d->out_group, c + d->pass));
}

/* ---------------------------------------------------------------- running */

/* One convolution of stride d->step over the grid: forward, or one residue of backward */
static ampl_status run (direct *d, const ampl_cpu_image *in) {
  plan(d, in);
  const long panels = d->groups * d->panels;
  const size_t bytes = (size_t)round_up(4 * panels * d->depth * d->nr, 64) + (size_t)(d->threads * d->buffer_bytes);
  char *scratch = ampl_cpu_scratch_get(d->a->ctx, bytes);
  if (!scratch) return AMPL_ENOMEM;
  d->packed = (float *)scratch;
  d->buffers = scratch + round_up(4 * panels * d->depth * d->nr, 64);
  const bool small = panels * d->depth * d->nr < 100000;
  ampl_status s = ampl_cpu_parallel(d->a->ctx, small ? 1 : d->threads, panels, pack_job, d);
  if (s == AMPL_OK) s = ampl_cpu_parallel(d->a->ctx, d->threads, d->cut.jobs, run_job, d);
  ampl_cpu_scratch_put(d->a->ctx, scratch, bytes);
  return s;
}

/* Pixels that no tap reaches are the bias alone */
static void fill (const direct *d) {
  const long size = element_size(d->out.dtype), c = d->groups * d->out_group;
  for (long n = 0; n < d->n; n++)
    for (long y = 0; y < d->gh && !ampl_cpu_stop(d->a->ctx); y++)
      for (long x = 0; x < d->gw; x++) {
        char *p = (char *)d->out.p + (n * d->out.image + y * d->out.row + x * d->out.pixel) * size;
        if (!d->bias) memset(p, 0, (size_t)(c * size));
        else
          d->K->out(&(ampl_cpu_out){.tile = d->bias, .ldt = c, .rows = 1, .cols = (int)c, .c = p, .ldc = c,
                                    .dtype = d->out.dtype, .act = d->a->relu ? AMPL_CPU_RELU : AMPL_CPU_NONE});
      }
}

static ampl_status run_residues (direct *d, const ampl_cpu_image *in, const ampl_cpu_image *out) {
  const ampl_cpu_conv *a = d->a;
  for (long py = 0; py < least(a->stride[0], a->h); py++)
    for (long px = 0; px < least(a->stride[1], a->w); px++) {
      ampl_status s = AMPL_OK;
      if (residue_taps(d, out, py, px)) s = run(d, in);
      else fill(d);
      if (s != AMPL_OK) return s;
    }
  return AMPL_OK;
}

ampl_status ampl_cpu_conv_direct (const ampl_cpu_conv *a, const ampl_cpu_image *in, const ampl_cpu_filter *w,
                                  const ampl_cpu_image *out, bool backward) {
  direct d = {.a = a, .K = ampl_cpu_matrix_used(), .w = w, .backward = backward, .out = *out, .n = a->n,
              .groups = a->groups};
  d.in_group = (backward ? a->k : a->c) / a->groups;
  d.out_group = (backward ? a->c : a->k) / a->groups;
  d.dot = in->dtype == AMPL_BF16 && w->dtype == AMPL_BF16 && d.K->has_dot && ampl_cpu_bf16_dot() &&
          (a->groups == 1 || d.in_group % 2 == 0);
  arena m = {NULL, 0};
  size_t bytes = 0;
  for (int round = 0; round < 2; round++) {
    d.ty = arena_take(&m, 8 * a->r), d.fy = arena_take(&m, 8 * a->r);
    d.tx = arena_take(&m, 8 * a->s), d.fx = arena_take(&m, 8 * a->s);
    d.run = arena_take(&m, 8 * a->r * a->s);
    d.bias = ampl_cpu_conv_bias(d.K, a, d.groups * d.out_group, &m);
    if (m.base) break;
    bytes = m.used;
    m = (arena){ampl_cpu_scratch_get(a->ctx, bytes), 0};
    if (!m.base) return AMPL_ENOMEM;
  }
  ampl_status s;
  if (backward) s = run_residues(&d, in, out);
  else forward_taps(&d), s = run(&d, in);
  ampl_cpu_scratch_put(a->ctx, m.base, bytes);
  return s;
}
