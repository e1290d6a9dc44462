/*
** attention_grad.c: the gradients of attention, block by block, with the weights computed again from the logarithms of
** their sums.  For a block of keys and one of queries, w the weights and w' what dropout left of them:
**
**   dv += w'' dy      dw = dropout(dy v')      ds = w * (dw - sum(dy * y))      dq += scale ds k      dk += scale ds' q
**
** A job is a head of keys with all heads of queries that share it.  Its blocks of keys are taken in order, and for each
** of them the queries, so every sum has one order, whatever the number of threads.  All products are of f32.
*/
#include <math.h>
#include <string.h>

#include "attention_parts.h"

typedef struct backward {
  attention_call c;
  const ampl_tensor *dy, *y;
  const float *sums;
  ampl_tensor *dq, *dk, *dv, *dmask; /* dmask NULL: not wanted */
  long rows, group;                  /* of a block of queries; heads of queries in a job */
  char *scratch;
  long bytes;
} backward;

/* The buffers of a thread.  Panels: kt of K', vt of V', k of K; qp of Q, dyp of dY. */
typedef struct buffers {
  float *kt, *vt, *k, *qp, *dyp, *q, *dy, *s, *dw, *mask, *keep, *dk, *dv, *dq, *dot;
} buffers;

static long lay_out (const backward *w, char *base, buffers *b) {
  const attention_call *c = &w->c;
  const long rows = AMPL_ATTENTION_ROWS, cols = AMPL_ATTENTION_COLS, e = round_up(c->e, c->nr),
             f = round_up(c->f, c->nr);
  long used = 0;
#define TAKE(member, count)                                                                                            \
  b->member = base ? (void *)(base + used) : NULL;                                                                     \
  used += round_up((long)sizeof *b->member * (count), 64)
  TAKE(kt, round_up(cols, c->nr) * c->e);
  TAKE(vt, round_up(cols, c->nr) * c->f);
  TAKE(k, e * cols);
  TAKE(qp, e * rows);
  TAKE(dyp, f * rows);
  TAKE(q, rows * c->e);
  TAKE(dy, rows * c->f);
  TAKE(s, rows * cols);
  TAKE(dw, rows * cols);
  TAKE(mask, c->mask ? rows * cols : 0);
  TAKE(keep, c->limit ? rows * cols : 0);
  TAKE(dk, cols * c->e);
  TAKE(dv, cols * c->f);
  TAKE(dq, w->group * c->l * c->e);
  TAKE(dot, w->group * c->l);
#undef TAKE
  return used;
}

/* Where a job stands: head `h` of queries, number g of its group, and the blocks from i0 and j0 on */
typedef struct place { long b, kv, h, g, i0, rows, j0, cols; } place;

/* All keys are one block: sum(dy * y) comes out of the weights, and more exactly than from a y rounded to 16 bits. */
static bool one_block (const attention_call *c) { return c->s <= AMPL_ATTENTION_COLS; }

/* sum(dy * y) of every row of a head; m->dy and m->dv serve as buffers */
static void row_dots (const backward *w, const buffers *m, const place *at) {
  const attention_call *c = &w->c;
  for (long i = 0; i < c->l && !ampl_cpu_stop_at(c->ctx, i * c->f, c->f); i++) {
    long step;
    const float *dy =
        ampl_cpu_attention_rows(c, m->dy, w->dy->dtype, attention_row(w->dy, at->b, at->h, i), 0, 1, c->f, &step);
    const float *y =
        ampl_cpu_attention_rows(c, m->dv, w->y->dtype, attention_row(w->y, at->b, at->h, i), 0, 1, c->f, &step);
    m->dot[at->g * c->l + i] = AMPL_CPU_BEST(ampl_cpu_attention)->dot(dy, y, c->f);
  }
}

/* s = the weights after dropout, dw = ds */
static long weigh(const backward *w, const buffers *m, const place *at, const float *q, long q_step, const float *dy,
                  long dy_step) {
  const attention_call *c = &w->c;
  const long row = (at->b * c->h + at->h) * c->l + at->i0, ld = AMPL_ATTENTION_COLS,
             limit = attention_limit(c, at->i0, at->j0);
  attention_product p = {
      .layout = AMPL_CPU_ROWS, .cut = COLUMNS_SEEN, .limit = limit, .m = at->rows, .n = at->cols, .ldc = ld};
  p.k = c->e, p.a = q, p.a_step = 4 * q_step, p.panels = m->kt, p.c = m->s;
  ampl_cpu_attention_product(c, &p);
  p.k = c->f, p.a = dy, p.a_step = 4 * dy_step, p.panels = m->vt, p.c = m->dw;
  ampl_cpu_attention_product(c, &p);
  ampl_cpu_scores x = {.s = m->s,
                       .ld = ld,
                       .rows = at->rows,
                       .cols = at->cols,
                       .limit = limit,
                       .scale = c->scale,
                       .keep_ld = ld,
                       .dw = m->dw,
                       .log_sum = w->sums + row,
                       .dot = one_block(c) ? NULL : m->dot + at->g * c->l + at->i0};
  x.mask = ampl_cpu_attention_mask(c, m->mask, at->b, at->h, at->i0, at->rows, at->j0, at->cols, &x.mask_ld);
  x.keep = ampl_cpu_attention_keep(c, m->keep, at->b, at->h, at->i0, at->rows, at->j0, at->cols);
  AMPL_CPU_BEST(ampl_cpu_attention)->backward(&x);
  for (long i = 0; w->dmask && i < at->rows; i++)
    c->K->store[w->dmask->dtype](attention_row(w->dmask, at->b, at->h, at->i0 + i) +
                                     at->j0 * element_size(w->dmask->dtype),
                                 m->dw + i * ld, at->cols);
  return limit;
}

/* One block of queries meets the job's present block of keys */
static void add_block (const backward *w, const buffers *m, const place *at) {
  const attention_call *c = &w->c;
  const long ld = AMPL_ATTENTION_COLS;
  long q_step, dy_step;
  const float *q = ampl_cpu_attention_rows(c, m->q, c->q->dtype, attention_row(c->q, at->b, at->h, at->i0),
                                           c->q->strides[2], at->rows, c->e, &q_step);
  const float *dy = ampl_cpu_attention_rows(c, m->dy, w->dy->dtype, attention_row(w->dy, at->b, at->h, at->i0),
                                            w->dy->strides[2], at->rows, c->f, &dy_step);
  const long limit = weigh(w, m, at, q, q_step, dy, dy_step);
  ampl_cpu_attention_pack(c, m->qp, AMPL_F32, q, q_step, at->rows, c->e, false, false);
  ampl_cpu_attention_pack(c, m->dyp, AMPL_F32, dy, dy_step, at->rows, c->f, false, false);
  attention_product p = {.acc = true,
                         .layout = AMPL_CPU_COLS,
                         .cut = DEPTH_SEEING,
                         .limit = limit,
                         .m = at->cols,
                         .k = at->rows,
                         .a_step = 4 * ld};
  p.n = c->f, p.a = m->s, p.panels = m->dyp, p.c = m->dv, p.ldc = c->f;
  ampl_cpu_attention_product(c, &p);
  p.n = c->e, p.a = m->dw, p.panels = m->qp, p.c = m->dk, p.ldc = c->e;
  ampl_cpu_attention_product(c, &p);
  p = (attention_product){.acc = at->j0 > 0,
                          .layout = AMPL_CPU_ROWS,
                          .cut = DEPTH_SEEN,
                          .limit = limit,
                          .m = at->rows,
                          .n = c->e,
                          .k = at->cols,
                          .a = m->dw,
                          .a_step = 4 * ld,
                          .panels = m->k,
                          .c = m->dq + (at->g * c->l + at->i0) * c->e,
                          .ldc = c->e};
  ampl_cpu_attention_product(c, &p);
}

/* All queries for the block of keys from j0 on, and its part of dk and dv */
static void key_block (const backward *w, const buffers *m, place *at) {
  const attention_call *c = &w->c;
  const char *k = attention_row(c->k, at->b, at->kv, at->j0), *v = attention_row(c->v, at->b, at->kv, at->j0);
  ampl_cpu_attention_pack(c, m->kt, c->k->dtype, k, c->k->strides[2], at->cols, c->e, true, false);
  ampl_cpu_attention_pack(c, m->k, c->k->dtype, k, c->k->strides[2], at->cols, c->e, false, false);
  ampl_cpu_attention_pack(c, m->vt, c->v->dtype, v, c->v->strides[2], at->cols, c->f, true, false);
  memset(m->dk, 0, sizeof(float) * (size_t)(at->cols * c->e));
  memset(m->dv, 0, sizeof(float) * (size_t)(at->cols * c->f));
  for (at->g = 0; at->g < w->group; at->g++)
    for (at->i0 = 0; at->i0 < c->l; at->i0 += w->rows) {
      if (ampl_cpu_stop(c->ctx)) return;
      at->h = at->kv * w->group + at->g;
      at->rows = least(w->rows, c->l - at->i0);
      if (attention_limit(c, at->i0, at->j0) + at->rows - 1 > 0) add_block(w, m, at);
    }
  for (long j = 0; j < at->cols; j++) {
    ampl_cpu_attention_store(c, w->dk->dtype, attention_row(w->dk, at->b, at->kv, at->j0 + j), m->dk + j * c->e, c->e,
                             c->scale);
    ampl_cpu_attention_store(c, w->dv->dtype, attention_row(w->dv, at->b, at->kv, at->j0 + j), m->dv + j * c->f, c->f,
                             1);
  }
}

static void backward_job (void *ud, int64_t job, int thread) {
  const backward *w = ud;
  const attention_call *c = &w->c;
  buffers m;
  lay_out(w, w->scratch + thread * w->bytes, &m);
  place at = {.b = job / c->shared, .kv = job % c->shared};
  memset(m.dq, 0, sizeof(float) * (size_t)(w->group * c->l * c->e));
  for (at.g = 0; !one_block(c) && at.g < w->group; at.g++) {
    at.h = at.kv * w->group + at.g;
    row_dots(w, &m, &at);
  }
  for (at.j0 = 0; at.j0 < c->s; at.j0 += AMPL_ATTENTION_COLS) {
    if (ampl_cpu_stop(c->ctx)) return;
    at.cols = least(AMPL_ATTENTION_COLS, c->s - at.j0);
    key_block(w, &m, &at);
  }
  for (long i = 0; i < w->group * c->l; i++)
    ampl_cpu_attention_store(c, w->dq->dtype, attention_row(w->dq, at.b, at.kv * w->group + i / c->l, i % c->l),
                             m.dq + i * c->e, c->e, c->scale);
}

/* Operands dy, q, k, v, y with rows without gaps inside, then sums, draw, mask */
static ampl_status run (ampl_ctx *ctx, ampl_tensor *const *t, const ampl_args *in, ampl_tensor **out) {
  backward w = {.c = ampl_cpu_attention_call(ctx, t[1], t[2], t[3], in->t[7], in->p),
                .dy = t[0],
                .y = t[4],
                .sums = in->t[5]->data,
                .dq = out[0],
                .dk = out[1],
                .dv = out[2],
                .dmask = in->p[AMPL_ATTENTION_MASK_GRAD].i ? out[3] : NULL};
  attention_call *c = &w.c;
  buffers unused;
  uint64_t draw[2];
  memcpy(draw, in->t[6]->data, sizeof draw);
  c->seed = draw[0], c->first = draw[1];
  if (w.dmask && w.dmask->numel > 0) memset(w.dmask->data, 0, (size_t)(w.dmask->numel * element_size(w.dmask->dtype)));
  if (c->b == 0 || c->h == 0) return AMPL_OK;
  w.rows = attention_height(c->l);
  w.group = c->h / c->shared;
  w.bytes = lay_out(&w, NULL, &unused);
  const double flop = 2.0 * c->b * c->h * c->l * c->s * (3 * c->e + 2 * c->f) * (c->causal ? 0.5 : 1);
  const int threads = flop < AMPL_CPU_SERIAL_FLOP ? 1 : (int)least(ampl_threads(ctx), c->b * c->shared);
  const size_t bytes = (size_t)(threads * w.bytes);
  if (!(w.scratch = ampl_cpu_scratch_get(ctx, bytes))) return AMPL_ENOMEM;
  const ampl_status s = ampl_cpu_parallel(ctx, threads, c->b * c->shared, backward_job, &w);
  ampl_cpu_scratch_put(ctx, w.scratch, bytes);
  return s;
}

ampl_status ampl_cpu_attention_backward (ampl_ctx *ctx, const ampl_args *in, ampl_tensor **out) {
  ampl_tensor *t[5] = {NULL};
  ampl_status s = AMPL_OK;
  for (int i = 0; i < 5 && s == AMPL_OK; i++) {
    ampl_tensor *x = in->t[i];
    if (x->strides[3] == 1 || x->shape[3] == 1) ampl_tensor_retain(t[i] = x);
    else s = ampl_call(ctx, &(ampl_args){OP(contiguous), &x, 1, NULL}, &t[i]);
  }
  if (s == AMPL_OK) s = run(ctx, t, in, out);
  for (int i = 0; i < 5; i++) ampl_tensor_release(t[i]);
  return s;
}
