/*
** attention.c: scaled dot product attention, block by block (Dao et al. 2022): of each head a block of queries meets
** one block of keys after the other.  The softmax is kept up to date as larger scores turn up, so no more than one
** block of scores exists at a time.
**
** A job is a block of queries of one head; its keys are taken in order.  bf16 goes through the dot instruction where
** that is in use, the weights then rounded to bf16; else products are of f32.
*/
#include "attention_parts.h"

#include <math.h>
#include <string.h>

#include "isa/random.h"
#include "random.h"
#include "stream.h"

/* ---------------------------------------------------------------- shared parts */

attention_call ampl_cpu_attention_call(ampl_ctx *ctx, const ampl_tensor *q, const ampl_tensor *k, const ampl_tensor *v,
                                       const ampl_tensor *mask, const ampl_value *p) {
  attention_call c = {.ctx = ctx, .K = ampl_cpu_matrix_used(),
                      .b = q->shape[0],
                      .h = q->shape[1],
                      .shared = k->shape[1],
                      .l = q->shape[2],
                      .s = k->shape[2],
                      .e = q->shape[3],
                      .f = v->shape[3],
                      .q = q,
                      .k = k,
                      .v = v,
                      .mask = mask,
                      .scale = (float)p[AMPL_ATTENTION_SCALE].f,
                      .causal = p[AMPL_ATTENTION_CAUSAL].i};
  const double drop = p[AMPL_ATTENTION_DROPOUT].f, limit = ceil(drop * 0x1p24);
  c.nr = 2 * c.K->vw;
  c.limit = (uint32_t)limit;
  c.keep = drop > 0 && drop < 1 ? (float)(1 / (1 - drop)) : 0;
  return c;
}

static bool drops (const attention_call *c) { return c->limit > 0; }

const float *ampl_cpu_attention_mask(const attention_call *c, float *buf, long b, long h, long i0, long rows, long j0,
                                     long cols, long *ld) {
  const ampl_tensor *m = c->mask;
  if (!m) return NULL;
  const long different = m->strides[2] == 0 ? 1 : rows, step = m->strides[3];
  *ld = different == 1 ? 0 : AMPL_ATTENTION_COLS;
  for (long i = 0; i < different; i++) {
    const char *src = attention_row(m, b, h, i0 + i) + j0 * step * (long)ampl_dtype_size((ampl_dtype)m->dtype);
    float *dst = buf + i * AMPL_ATTENTION_COLS;
    if (m->dtype == AMPL_BOOL)
      for (long j = 0; j < cols; j++) dst[j] = src[j * step] ? 0 : -INFINITY;
    else if (m->dtype == AMPL_F64)
      for (long j = 0; j < cols; j++) dst[j] = (float)((const double *)src)[j * step];
    else ampl_cpu_widen(AMPL_WORK_F32, dst, m->dtype, src, step, cols);
  }
  return buf;
}

const float *ampl_cpu_attention_keep(const attention_call *c, float *buf, long b, long h, long i0, long rows, long j0,
                                     long cols) {
  if (!drops(c)) return NULL;
  const long pitch = ampl_attention_pitch(c->s);
  for (long i = 0; i < rows; i++) {
    const uint64_t at = c->first + (uint64_t)(((b * c->h + h) * c->l + i0 + i) * pitch + j0);
    AMPL_CPU_BEST(ampl_cpu_random)
        ->keep(buf + i * AMPL_ATTENTION_COLS, ceil_div(cols, 64), c->seed, at, c->limit, c->keep);
  }
  return buf;
}

void ampl_cpu_attention_pack(const attention_call *c, float *dst, int dtype, const void *src, long ld, long rows,
                             long cols, bool turned, bool dot) {
  const ampl_cpu_matrix *K = c->K;
  const long n = turned ? rows : cols, k = turned ? cols : rows, depth = dot ? ceil_div(k, 2) : k, nr = c->nr;
  for (long j = 0; j < n; j += nr, dst += depth * nr) {
    const long w = least(nr, n - j);
    const char *from = (const char *)src + j * (turned ? ld : 1) * element_size(dtype);
    if (dot && turned) K->pair_transpose((uint32_t *)dst, nr, (const void *)from, ld, w, k, nr);
    else if (dot) K->pair((uint32_t *)dst, nr, (const void *)from, ld, k, w, nr);
    else if (turned) K->transpose[dtype](dst, nr, from, ld, w, k, nr);
    else K->copy[dtype](dst, nr, from, ld, k, w, nr);
  }
}

const float *ampl_cpu_attention_rows(const attention_call *c, float *buf, int dtype, const void *src, long ld,
                                     long rows, long cols, long *step) {
  *step = dtype == AMPL_F32 ? ld : cols;
  if (dtype == AMPL_F32) return src;
  c->K->copy[dtype](buf, cols, src, ld, rows, cols, cols);
  return buf;
}

void ampl_cpu_attention_product (const attention_call *c, const attention_product *p) {
  const tiling tiles = tiling_of(p->m, c->K->mr);
  const long pace = p->dot ? 2 : 1, depth = ceil_div(p->k, pace);
  ampl_cpu_tile t = {.a_step = p->a_step, .runs = 1, .b_step = 4 * c->nr, .ldc = p->ldc, .acc = p->acc};
  for (long j = 0; j < p->n; j += c->nr) {
    const ampl_cpu_tile_fn *kernel;
    t.n = (int)least(c->nr, p->n - j);
    kernel = c->K->tile[p->dot][p->layout][vectors_for(c->K, t.n)];
    FOR_TILES(tiles, i, r, h) {
      const long seen = p->limit + r + h - 1; /* columns that the last row of the tile sees */
      long k0 = 0, k1 = depth;
      if (p->cut == COLUMNS_SEEN && j >= seen) continue;
      if (p->cut == DEPTH_SEEN) k1 = most(0, least(depth, ceil_div(seen, pace)));
      if (p->cut == DEPTH_SEEING) k0 = least(depth, most(0, r - p->limit + 1)); /* the first query that sees key r */
      t.run_len = k1 - k0;
      t.a = (const char *)p->a + (p->layout == AMPL_CPU_ROWS ? r * p->a_step + 4 * k0 : 4 * r + k0 * p->a_step);
      t.b = (const char *)(p->panels + j * depth + k0 * c->nr);
      t.c = p->c + r * p->ldc + j;
      kernel[h](&t);
    }
  }
}

void ampl_cpu_attention_store (const attention_call *c, int dtype, void *dst, float *src, long n, float factor) {
  for (long i = 0; i < n; i++) src[i] *= factor;
  c->K->store[dtype](dst, src, n);
}

/* ---------------------------------------------------------------- forward */

typedef struct forward {
  attention_call c;
  ampl_tensor *y, *sums;
  bool dot;
  long rows, blocks;                /* of queries */
  char *scratch;
  long bytes;
} forward;

/* The buffers of a thread */
typedef struct buffers {
  float *q, *kt, *v, *s, *acc, *top, *sum, *mask, *keep;
  uint16_t *low;
} buffers;

static long lay_out (const forward *w, char *base, buffers *b) {
  const attention_call *c = &w->c;
  const long rows = AMPL_ATTENTION_ROWS, cols = AMPL_ATTENTION_COLS;
  long used = 0;
#define TAKE(member, count)                                                                                            \
  b->member = base ? (void *)(base + used) : NULL;                                                                     \
  used += round_up((long)sizeof *b->member * (count), 64)
  TAKE(q, rows * round_up(c->e, 2));
  TAKE(kt, round_up(cols, c->nr) * c->e + c->nr);
  TAKE(v, round_up(c->f, c->nr) * cols);
  TAKE(s, rows * cols);
  TAKE(low, w->dot ? rows * cols : 0);
  TAKE(acc, rows * c->f);
  TAKE(top, rows);
  TAKE(sum, rows);
  TAKE(mask, c->mask ? rows * cols : 0);
  TAKE(keep, drops(c) ? rows * cols : 0);
#undef TAKE
  return used;
}

/* Queries as the dot kernels read them: whole pairs */
static void copy_pairs (uint16_t *dst, long step, const uint16_t *src, long ld, long rows, long cols) {
  for (long i = 0; i < rows; i++) {
    memcpy(dst + i * step, src + i * ld, 2 * (size_t)cols);
    if (cols < step) dst[i * step + cols] = 0;
  }
}

/* One block of keys for the job's queries */
static void add_block(const forward *w, const buffers *m, ampl_cpu_scores *x, long b, long h, long i0, long j0,
                      const void *q, long q_step) {
  const attention_call *c = &w->c;
  const long cols = x->cols, kv = h / (c->h / c->shared);
  ampl_cpu_attention_pack(c, m->kt, c->k->dtype, attention_row(c->k, b, kv, j0), c->k->strides[2], cols, c->e, true,
                          w->dot);
  ampl_cpu_attention_pack(c, m->v, c->v->dtype, attention_row(c->v, b, kv, j0), c->v->strides[2], cols, c->f, false,
                          w->dot);
  x->limit = attention_limit(c, i0, j0);
  x->mask = ampl_cpu_attention_mask(c, m->mask, b, h, i0, x->rows, j0, cols, &x->mask_ld);
  x->keep = ampl_cpu_attention_keep(c, m->keep, b, h, i0, x->rows, j0, cols);
  ampl_cpu_attention_product(c, &(attention_product){.dot = w->dot,
                                                     .layout = AMPL_CPU_ROWS,
                                                     .cut = COLUMNS_SEEN,
                                                     .limit = x->limit,
                                                     .m = x->rows,
                                                     .n = cols,
                                                     .k = c->e,
                                                     .a = q,
                                                     .a_step = q_step,
                                                     .panels = m->kt,
                                                     .c = m->s,
                                                     .ldc = AMPL_ATTENTION_COLS});
  AMPL_CPU_BEST(ampl_cpu_attention)->forward(x);
  ampl_cpu_attention_product(c, &(attention_product){.dot = w->dot,
                                                     .acc = j0 > 0,
                                                     .layout = AMPL_CPU_ROWS,
                                                     .cut = DEPTH_SEEN,
                                                     .limit = x->limit,
                                                     .m = x->rows,
                                                     .n = c->f,
                                                     .k = cols,
                                                     .a = w->dot ? (void *)m->low : m->s,
                                                     .a_step = AMPL_ATTENTION_COLS * (w->dot ? 2 : 4),
                                                     .panels = m->v,
                                                     .c = m->acc,
                                                     .ldc = c->f});
}

static void forward_job (void *ud, int64_t job, int thread) {
  const forward *w = ud;
  const attention_call *c = &w->c;
  buffers m;
  lay_out(w, w->scratch + thread * w->bytes, &m);
  const long i0 = job % w->blocks * w->rows, rows = least(w->rows, c->l - i0), head = job / w->blocks, b = head / c->h,
             h = head % c->h;
  const void *q = attention_row(c->q, b, h, i0);
  long step = round_up(c->e, 2);
  if (w->dot) copy_pairs((uint16_t *)m.q, step, q, c->q->strides[2], rows, c->e), q = m.q;
  else q = ampl_cpu_attention_rows(c, m.q, c->q->dtype, q, c->q->strides[2], rows, c->e, &step);
  ampl_cpu_scores x = {.s = m.s,
                       .ld = AMPL_ATTENTION_COLS,
                       .rows = rows,
                       .scale = c->scale,
                       .keep_ld = AMPL_ATTENTION_COLS,
                       .top = m.top,
                       .sum = m.sum,
                       .acc = m.acc,
                       .acc_ld = c->f,
                       .width = c->f,
                       .low = w->dot ? m.low : NULL,
                       .low_ld = AMPL_ATTENTION_COLS};
  for (long i = 0; i < rows; i++) m.top[i] = -INFINITY, m.sum[i] = 0;
  memset(m.acc, 0, sizeof(float) * (size_t)(rows * c->f));
  for (long j0 = 0; j0 < c->s && attention_limit(c, i0, j0) + rows - 1 > 0; j0 += AMPL_ATTENTION_COLS) {
    if (ampl_cpu_stop(c->ctx)) return;
    x.cols = least(AMPL_ATTENTION_COLS, c->s - j0);
    add_block(w, &m, &x, b, h, i0, j0, q, step * (w->dot ? 2 : 4));
  }
  float *sums = (float *)w->sums->data + (b * c->h + h) * c->l + i0;
  for (long i = 0; i < rows; i++) {
    const bool dead = m.sum[i] == 0; /* nothing to look at: the result is 0 */
    ampl_cpu_attention_store(c, w->y->dtype, attention_row(w->y, b, h, i0 + i), m.acc + i * c->f, c->f,
                             dead ? 0 : 1 / m.sum[i]);
    sums[i] = dead ? INFINITY : m.top[i] + logf(m.sum[i]);
  }
}

/* Operands (rank 4) whose rows have no gaps inside */
static ampl_status dense_rows (ampl_ctx *ctx, ampl_tensor *x, ampl_tensor **out) {
  if (x->strides[3] == 1 || x->shape[3] == 1) {
    ampl_tensor_retain(*out = x);
    return AMPL_OK;
  }
  return ampl_call(ctx, &(ampl_args){OP(contiguous), &x, 1, NULL}, out);
}

static ampl_status run_forward (ampl_ctx *ctx, ampl_tensor *const *t, const ampl_args *in, ampl_tensor **out) {
  forward w = {.c = ampl_cpu_attention_call(ctx, t[0], t[1], t[2], in->t[3], in->p), .y = out[0], .sums = out[1]};
  attention_call *c = &w.c;
  buffers unused;
  memset(out[2]->data, 0, 2 * sizeof(int64_t));
  if (drops(c)) {
    c->first = ampl_random_take(ctx, c->b * c->h * c->l * ampl_attention_pitch(c->s), &c->seed);
    memcpy(out[2]->data, (uint64_t[]){c->seed, c->first}, 2 * sizeof(uint64_t));
  }
  if (out[0]->numel == 0) return AMPL_OK;
  w.dot = t[0]->dtype == AMPL_BF16 && c->K->has_dot && ampl_cpu_bf16_dot();
  w.rows = attention_height(c->l);
  w.blocks = ceil_div(c->l, w.rows);
  w.bytes = lay_out(&w, NULL, &unused);
  const double flop = 2.0 * c->b * c->h * c->l * c->s * (c->e + c->f) * (c->causal ? 0.5 : 1);
  const int threads = flop < AMPL_CPU_SERIAL_FLOP ? 1 : ampl_threads(ctx);
  const size_t bytes = (size_t)(threads * w.bytes);
  if (!(w.scratch = ampl_cpu_scratch_get(ctx, bytes))) return AMPL_ENOMEM;
  const ampl_status s = ampl_cpu_parallel(ctx, threads, c->b * c->h * w.blocks, forward_job, &w);
  ampl_cpu_scratch_put(ctx, w.scratch, bytes);
  return s;
}

static ampl_status attention (ampl_ctx *ctx, const ampl_args *in, ampl_tensor **out) {
  ampl_tensor *t[3] = {NULL};
  ampl_status s = AMPL_OK;
  for (int i = 0; i < 3 && s == AMPL_OK; i++) s = dense_rows(ctx, in->t[i], &t[i]);
  if (s == AMPL_OK) s = run_forward(ctx, t, in, out);
  for (int i = 0; i < 3; i++) ampl_tensor_release(t[i]);
  return s;
}

#define FLOATS(name, fn) {name, AMPL_F32, fn}, {name, AMPL_F16, fn}, {name, AMPL_BF16, fn}
const ampl_kernel ampl_cpu_attention_kernels[] = {
    FLOATS("attention", attention), FLOATS("attention_backward", ampl_cpu_attention_backward), {NULL, 0, NULL}};
