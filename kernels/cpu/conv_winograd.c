/*
** conv_winograd.c: 3x3 convolutions of stride 1 by Winograd's F(4x4, 3x3); isa/winograd.c explains it.
**
** All tiles of all images are one sequence, worked on in blocks whose transforms stay in L2: 36 products
** [tiles x channels][channels x filters] for each block.  Forward, the gradient of the input (the same with
** the filter turned by 180 degrees), and the gradient of the filter.
*/
#include "conv_parts.h"
#include "gemm.h"

AMPL_CPU_EACH_ISA(const ampl_cpu_wino, ampl_cpu_wino);

enum { POINTS = 36, TILES_AT_LEAST = 64, CHANNELS_AT_LEAST = 32 };

bool ampl_cpu_wino_pays (const ampl_cpu_conv *a) {
  /* 36 x c x k transformed weights must be worth their while */
  const long tiles = a->n * ceil_div(a->oh, 4) * ceil_div(a->ow, 4);
  return ampl_cpu_winograd() && a->r == 3 && a->s == 3 && a->stride[0] == 1 && a->stride[1] == 1 &&
         a->dilation[0] == 1 && a->dilation[1] == 1 && a->groups == 1 && a->c % 16 == 0 && a->k % 16 == 0 &&
         a->c >= CHANNELS_AT_LEAST && a->k >= CHANNELS_AT_LEAST && tiles >= TILES_AT_LEAST;
}

/* ---------------------------------------------------------------- tiles */

typedef struct tiles {
  long down, across, all;  /* in an image, and altogether */
} tiles;

static tiles tiles_of (long n, long h, long w) {
  const long down = ceil_div(h, 4), across = ceil_div(w, 4);
  return (tiles){down, across, n * down * across};
}

/* Transforms of so many tiles take five eighths of L2; but at least two full micro-tiles of rows */
static long block_tiles (long in, long out) {
  return most(28, least(140, ampl_cpu_cache(2) * 5 / 8 / (POINTS * 4 * (in + out))));
}

/* The size x size window of tile number i, shifted by -pad */
static ampl_cpu_window window_of (const ampl_cpu_image *x, const tiles *t, long i, long h, long w, long c, long size,
                                  const long pad[2]) {
  const long n = i / (t->down * t->across), y = i / t->across % t->down * 4 - pad[0], z = i % t->across * 4 - pad[1];
  return (ampl_cpu_window){
    .p = (char *)x->p + (n * x->image + y * x->row + z * x->pixel) * element_size(x->dtype), .dtype = x->dtype,
    .ldy = x->row, .ldx = x->pixel, .c = c,
    .y0 = most(0, -y), .y1 = least(size, h - y), .x0 = most(0, -z), .x1 = least(size, w - z),
  };
}

/* ---------------------------------------------------------------- forward, and the gradient of the input */

typedef struct apply {
  const ampl_cpu_conv *a;
  const ampl_cpu_matrix *K;
  const ampl_cpu_wino *W;
  const ampl_cpu_image *in, *out;
  const ampl_cpu_filter *w;
  bool backward;
  long ci, co, ih, iw, gh, gw, pad[2];
  tiles t;
  long block, nr, panels;
  float *u;                /* transformed filters: [point][panel][ci][nr] */
  const float *bias;
  char *buffers;
  long v_bytes, buffer_bytes;
} apply;

/* One panel of transformed filters */
static void filter_job (void *ud, int64_t panel, int thread) {
  static const long three[3] = {0, 1, 2};
  enum { AT_ONCE = 16 };
  const apply *p = ud;
  const long nr = p->nr, j = panel * nr;
  const filter_view w = ampl_cpu_filter_view(p->a, p->w, p->backward, 0);
  float *part = (float *)(p->buffers + thread * p->buffer_bytes), *tmp = part + 9 * AT_ONCE * nr;
  for (long c = 0; c < p->ci && !ampl_cpu_stop(p->a->ctx); c += AT_ONCE) {
    ampl_cpu_pack_filter(p->K, &w, part, AT_ONCE * nr, nr, 3, three, 3, three, c, AT_ONCE, j, least(nr, p->co - j),
                         tmp);
    for (long i = 0; i < AT_ONCE; i++)
      p->W->filter(p->u + (j * p->ci) + (c + i) * nr, p->panels * p->ci * nr, part + i * nr, AT_ONCE * nr, p->backward,
                   nr);
  }
}

static void apply_job (void *ud, int64_t number, int thread) {
  static const long none[2] = {0, 0};
  const apply *p = ud;
  const long first = number * p->block, nb = least(p->block, p->t.all - first);
  float *v = (float *)(p->buffers + thread * p->buffer_bytes), *m = (float *)((char *)v + p->v_bytes);
  for (long i = 0; i < nb; i++) {
    const ampl_cpu_window in = window_of(p->in, &p->t, first + i, p->ih, p->iw, p->ci, 6, p->pad);
    p->W->input(v + i * p->ci, nb * p->ci, &in);
  }
  for (long q = 0; q < POINTS && !ampl_cpu_stop(p->a->ctx); q++)
    ampl_cpu_panels_product(p->K, nb, p->co, p->ci, v + q * nb * p->ci, p->ci, p->u + q * p->panels * p->nr * p->ci,
                            m + q * nb * p->co, p->co, false);
  for (long i = 0; i < nb; i++) {
    const ampl_cpu_window out = window_of(p->out, &p->t, first + i, p->gh, p->gw, p->co, 4, none);
    p->W->output(&out, m + i * p->co, nb * p->co, p->bias, p->a->relu);
  }
}

static void lay_out (apply *p, arena *m, int threads) {
  p->bias = ampl_cpu_conv_bias(p->K, p->a, p->co, m);
  p->u = arena_take(m, 4 * POINTS * p->panels * p->nr * p->ci);
  p->v_bytes = round_up(4 * POINTS * p->block * p->ci, 64);
  const long packing = 4 * (9 * 16 * p->nr + ampl_cpu_filter_tmp(p->a, p->nr));
  p->buffer_bytes = round_up(most(packing, p->v_bytes + 4 * POINTS * p->block * p->co), 64);
  p->buffers = arena_take(m, threads * p->buffer_bytes);
}

ampl_status ampl_cpu_wino_apply (const ampl_cpu_conv *a, const ampl_cpu_image *in, const ampl_cpu_filter *w,
                                 const ampl_cpu_image *out, bool backward) {
  apply p = {.a = a, .K = ampl_cpu_matrix_used(), .W = AMPL_CPU_BEST(ampl_cpu_wino), .in = in, .out = out, .w = w,
             .backward = backward};
  p.ci = backward ? a->k : a->c, p.co = backward ? a->c : a->k;
  p.ih = backward ? a->oh : a->h, p.iw = backward ? a->ow : a->w;
  p.gh = backward ? a->h : a->oh, p.gw = backward ? a->w : a->ow;
  for (int i = 0; i < 2; i++) p.pad[i] = backward ? 2 - a->pad[i] : a->pad[i];
  p.t = tiles_of(a->n, p.gh, p.gw);
  p.nr = 2 * p.K->vw;
  p.panels = ceil_div(p.co, p.nr);
  const int threads = conv_threads(a, conv_flop(a));
  p.block = least(block_tiles(p.ci, p.co), most(p.K->mr, ceil_div(p.t.all, threads)));
  arena m = {NULL, 0};
  lay_out(&p, &m, threads);
  const size_t bytes = m.used;
  m = (arena){ampl_cpu_scratch_get(a->ctx, bytes), 0};
  if (!m.base) return AMPL_ENOMEM;
  lay_out(&p, &m, threads);
  ampl_status s = ampl_cpu_parallel(a->ctx, threads, p.panels, filter_job, &p);
  if (s == AMPL_OK) s = ampl_cpu_parallel(a->ctx, threads, ceil_div(p.t.all, p.block), apply_job, &p);
  ampl_cpu_scratch_put(a->ctx, m.base, bytes);
  return s;
}

/* ---------------------------------------------------------------- the gradient of the filter */

/* Block by block, so that the order of the sum over tiles is always the same: first the threads share the
   tiles of the block, then the products */
typedef struct weights {
  const ampl_cpu_conv *a;
  const ampl_cpu_matrix *K;
  const ampl_cpu_wino *W;
  const ampl_cpu_image *x, *dy;
  const ampl_cpu_filter *dw;
  tiles t;
  long nr, panels;
  long first, nb;          /* the present block */
  float *v, *m, *sums;     /* [point][tile][c], [point][tile][k], [point][c][k] */
  char *buffers;
  long buffer_bytes;
} weights;

enum { TILES_IN_JOB = 8 };

static void transform_job (void *ud, int64_t number, int thread) {
  static const long none[2] = {0, 0};
  const weights *w = ud;
  const ampl_cpu_conv *a = w->a;
  const long pad[2] = {a->pad[0], a->pad[1]}, end = least(w->nb, (number + 1) * TILES_IN_JOB);
  (void)thread;
  for (long i = number * TILES_IN_JOB; i < end; i++) {
    const ampl_cpu_window in = window_of(w->x, &w->t, w->first + i, a->h, a->w, a->c, 6, pad);
    w->W->input(w->v + i * a->c, w->nb * a->c, &in);
    const ampl_cpu_window grad = window_of(w->dy, &w->t, w->first + i, a->oh, a->ow, a->k, 4, none);
    w->W->grad(w->m + i * a->k, w->nb * a->k, &grad);
  }
}

static void product_job (void *ud, int64_t number, int thread) {
  const weights *w = ud;
  const long c = w->a->c, k = w->a->k, q = number / w->panels, j = number % w->panels * w->nr;
  const long cols = least(w->nr, k - j);
  const tiling rows = tiling_of(c, w->K->mr);
  const ampl_cpu_tile_fn *kernel = w->K->tile[0][AMPL_CPU_COLS][vectors_for(w->K, cols)];
  ampl_cpu_tile t = {.a_step = 4 * c, .runs = 1, .run_len = w->nb, .b = (const char *)(w->m + q * w->nb * k + j),
                     .b_step = 4 * k, .ldc = k, .n = (int)cols, .acc = w->first > 0};
  (void)thread;
  FOR_TILES(rows, i, r, h) {
    t.a = (const char *)(w->v + q * w->nb * c + r);
    t.c = w->sums + (q * c + r) * k + j;
    kernel[h](&t);
  }
}

static void finish_job (void *ud, int64_t panel, int thread) {
  const weights *w = ud;
  const long c = w->a->c, k = w->a->k, j = panel * w->nr, cols = least(w->nr, k - j);
  float *back = (float *)(w->buffers + thread * w->buffer_bytes); /* [tap][c][nr] */
  for (long i = 0; i < c; i++)
    w->W->filter_grad(back + i * w->nr, c * w->nr, w->sums + i * k + j, c * k, cols);
  ampl_cpu_unpack_filter(w->K, w->a, w->dw, back, w->nr, j, cols, back + 9 * c * w->nr);
}

static void lay_out_weights (weights *w, arena *m, long block, int threads) {
  const long c = w->a->c, k = w->a->k;
  w->v = arena_take(m, 4 * POINTS * block * c);
  w->m = arena_take(m, 4 * POINTS * block * k);
  w->sums = arena_take(m, 4 * POINTS * c * k);
  w->buffer_bytes = round_up(4 * (9 * c * w->nr + ampl_cpu_unpack_tmp(w->a, w->nr)), 64);
  w->buffers = arena_take(m, threads * w->buffer_bytes);
}

ampl_status ampl_cpu_wino_weights (const ampl_cpu_conv *a, const ampl_cpu_image *x, const ampl_cpu_image *dy,
                                   const ampl_cpu_filter *dw) {
  weights w = {.a = a, .K = ampl_cpu_matrix_used(), .W = AMPL_CPU_BEST(ampl_cpu_wino), .x = x, .dy = dy, .dw = dw};
  w.t = tiles_of(a->n, a->oh, a->ow);
  w.nr = 2 * w.K->vw;
  w.panels = ceil_div(a->k, w.nr);
  const int threads = conv_threads(a, conv_flop(a));
  /* tiles are the k of the products here: longer is better */
  const long block = least(w.t.all, most(64, block_tiles(a->c, a->k)));
  arena m = {NULL, 0};
  lay_out_weights(&w, &m, block, threads);
  const size_t bytes = m.used;
  m = (arena){ampl_cpu_scratch_get(a->ctx, bytes), 0};
  if (!m.base) return AMPL_ENOMEM;
  lay_out_weights(&w, &m, block, threads);
  ampl_status s = AMPL_OK;
  for (w.first = 0; s == AMPL_OK && w.first < w.t.all; w.first += block) {
    w.nb = least(block, w.t.all - w.first);
    s = ampl_cpu_parallel(a->ctx, threads, ceil_div(w.nb, TILES_IN_JOB), transform_job, &w);
    if (s == AMPL_OK) s = ampl_cpu_parallel(a->ctx, threads, POINTS * w.panels, product_job, &w);
  }
  if (s == AMPL_OK) s = ampl_cpu_parallel(a->ctx, threads, w.panels, finish_job, &w);
  ampl_cpu_scratch_put(a->ctx, m.base, bytes);
  return s;
}
