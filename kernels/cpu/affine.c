/* affine.c: see affine.h.  As in reduce.c, memory runs either along what shares its constants ("by rows") or along
 * channels ("by columns"). */
#include "affine.h"
#include "isa/norm.h"

enum { BLOCK = 2048, TILE = 128, ROWS = 32, CHUNK = 1 << 15 };
enum { X, DY, Y };

typedef struct plan {
  const ampl_cpu_affine *k;
  ampl_cpu_stream kept[3], gone[3];
  int64_t outputs, n, inner, tiles, chunk, chunks;
} plan;

static const ampl_cpu_norm *loops (void) { return AMPL_CPU_BEST(ampl_cpu_norm); }
static int64_t at_most (int64_t a, int64_t b) { return a < b ? a : b; }
static double constant (const double *v, int64_t i) { return v ? v[i] : 0; }

static void f64_row (double *y, const double *dy, const double *x, int64_t n, double a, double m, double b, double c) {
  for (int64_t i = 0; i < n; i++) y[i] = (dy ? dy[i] * a : 0) + (x[i] - m) * b + c;
}

static void row_job (void *ud, int64_t job, int thread) {
  const plan *p = ud;
  const ampl_cpu_affine *k = p->k;
  double buf[2][BLOCK];
  (void)thread;
  int64_t output = job / p->chunks, from = job % p->chunks * p->chunk, to = at_most(from + p->chunk, p->n), first[3];
  const double a = constant(k->a, output), m = constant(k->m, output), b = k->b[output], c = constant(k->c, output);
  for (int i = 0; i < 3; i++) first[i] = p->kept[i].data ? ampl_cpu_offset(&p->kept[i], output) : 0;
  for (int64_t pos = from, len; pos < to; pos += len) {
    len = ampl_cpu_run(&p->gone[X], pos, at_most(BLOCK, to - pos));
    const void *x = ampl_cpu_load(&p->gone[X], k->work, first[X], pos, len, buf[0]);
    const void *dy = k->dy ? ampl_cpu_load(&p->gone[DY], k->work, first[DY], pos, len, buf[1]) : NULL;
    void *y = ampl_cpu_target(&p->gone[Y], k->work, first[Y], pos, len, buf[0]);
    if (k->work == AMPL_WORK_F32) loops()->affine_row(y, dy, x, len, (float)a, (float)m, (float)b, (float)c);
    else f64_row(y, dy, x, len, a, m, b, c);
    ampl_cpu_store(&p->gone[Y], k->work, first[Y], pos, len, y);
  }
}

/* Constants of a tile as floats */
typedef struct tile { float a[TILE], m[TILE], b[TILE], c[TILE]; } tile;

static void tile_of (const ampl_cpu_affine *k, int64_t output, int64_t n, tile *t) {
  for (int64_t j = 0; j < n; j++) {
    t->a[j] = (float)constant(k->a, output + j);
    t->m[j] = (float)constant(k->m, output + j);
    t->b[j] = (float)k->b[output + j];
    t->c[j] = (float)constant(k->c, output + j);
  }
}

static void f64_cols (const ampl_cpu_affine *k, double *y, int64_t ldy, const double *dy, int64_t lddy, const double *x,
                      int64_t ldx, int64_t rows, int64_t n, int64_t output) {
  for (int64_t r = 0; r < rows; r++)
    for (int64_t j = 0; j < n; j++)
      f64_row(y + r * ldy + j, dy ? dy + r * lddy + j : NULL, x + r * ldx + j, 1, constant(k->a, output + j),
              constant(k->m, output + j), k->b[output + j], constant(k->c, output + j));
}

static void col_job (void *ud, int64_t job, int thread) {
  const plan *p = ud;
  const ampl_cpu_affine *k = p->k;
  double buf[2][ROWS * TILE];
  tile t;
  (void)thread;
  int64_t from = job % p->chunks * p->chunk, to = at_most(from + p->chunk, p->n), unit = job / p->chunks;
  int64_t column = unit % p->tiles * TILE, n = at_most(TILE, p->inner - column);
  int64_t output = unit / p->tiles * p->inner + column;
  tile_of(k, output, n, &t);
  /* without one step from row to row, rows are taken one by one */
  int64_t most = p->gone[X].nd == 1 ? ROWS : 1;
  for (int64_t pos = from; pos < to; pos += most) {
    int64_t rows = at_most(most, to - pos), first[3], step[3], ld[3] = {0};
    for (int i = 0; i < 3; i++) {
      first[i] = ampl_cpu_offset(&p->gone[i], pos);
      step[i] = p->gone[i].stride[0];
    }
    const void *x = ampl_cpu_load_rows(&p->kept[X], k->work, first[X], step[X], output, rows, n, buf[0], &ld[X]);
    const void *dy =
        k->dy ? ampl_cpu_load_rows(&p->kept[DY], k->work, first[DY], step[DY], output, rows, n, buf[1], &ld[DY]) : NULL;
    void *y = ampl_cpu_target_rows(&p->kept[Y], k->work, first[Y], step[Y], output, n, buf[0], &ld[Y]);
    if (k->work == AMPL_WORK_F32)
      loops()->affine_cols(y, ld[Y], dy, ld[DY], x, ld[X], rows, n, t.a, t.m, t.b, t.c);
    else
      f64_cols(k, y, ld[Y], dy, ld[DY], x, ld[X], rows, n, output);
    ampl_cpu_store_rows(&p->kept[Y], k->work, first[Y], step[Y], output, rows, n, y);
  }
}

static void index_spaces (plan *p) {
  const ampl_cpu_affine *k = p->k;
  const ampl_tensor *t[3] = {k->x, k->dy, k->y};
  int64_t kept_shape[AMPL_RANK_MAX], gone_shape[AMPL_RANK_MAX];
  int64_t kept[3][AMPL_RANK_MAX] = {{0}}, gone[3][AMPL_RANK_MAX] = {{0}};
  int nk = 0, ng = 0;
  for (int d = 0; d < k->x->ndim; d++) {
    bool is_gone = k->dims >> d & 1;
    for (int i = 0; i < 3; i++)
      if (t[i]) *(is_gone ? &gone[i][ng] : &kept[i][nk]) = t[i]->strides[d];
    if (is_gone) gone_shape[ng++] = k->x->shape[d];
    else kept_shape[nk++] = k->x->shape[d];
  }
  for (int i = 0; i < 3; i++) {
    p->kept[i].data = p->gone[i].data = t[i] ? t[i]->data : NULL;
    p->kept[i].dtype = p->gone[i].dtype = t[i] ? t[i]->dtype : AMPL_F32;
  }
  ampl_cpu_streams_from(3, (const int64_t *const[]){gone[0], gone[1], gone[2]}, ng, gone_shape, true, p->gone);
  ampl_cpu_streams_from(3, (const int64_t *const[]){kept[0], kept[1], kept[2]}, nk, kept_shape, false, p->kept);
}

ampl_status ampl_cpu_affine_run (ampl_ctx *ctx, const ampl_cpu_affine *k) {
  plan p = {.k = k};
  if (k->x->numel == 0) return AMPL_OK;
  index_spaces(&p);
  bool rows = ampl_cpu_runs_along(k->x, k->dims);
  p.n = p.gone[X].n;
  p.outputs = p.kept[X].n;
  p.inner = p.kept[X].shape[p.kept[X].nd - 1];
  p.tiles = (p.inner + TILE - 1) / TILE;
  int64_t across = rows ? 1 : at_most(p.inner, TILE);
  p.chunk = (CHUNK + across - 1) / across;
  p.chunks = (p.n + p.chunk - 1) / p.chunk;
  int64_t units = rows ? p.outputs : p.outputs / p.inner * p.tiles;
  return ampl_cpu_parallel(ctx, ampl_cpu_threads_for(ctx, 0.5 * (double)k->x->numel), units * p.chunks,
                           rows ? row_job : col_job, &p);
}
