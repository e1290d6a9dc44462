/* reduce.c: the walk over a tensor that a reduction makes.
 *
 * Dimensions are sorted by stride and merged.  If the one with the smallest stride is reduced, every output is a sum of
 * rows: runs of memory ("by rows").  If it is kept, outputs lie side by side as the data do, and rows of them are added
 * up ("by columns").
 */
#include "reduce.h"

#include <string.h>

/* Chunks: what one thread takes of one output.  Outputs are split only where there are few of them. */
enum { FEW_OUTPUTS = 64, CHUNK = 1 << 16, CHUNKS_MAX = 64, JOB = 1 << 14, GROUP_MAX = AMPL_FOLD_COLS };
enum { FEW_TILES = 32, CHUNK_ROWS = 512 };

typedef struct plan {
  ampl_ctx *ctx;
  const ampl_cpu_reduction *r;
  ampl_cpu_stream kept, gone, out;      /* of x: dimensions that stay, that are reduced; of y */
  ampl_cpu_stream zkept, zgone;         /* of z */
  int64_t outputs, n;                   /* results, and values in each */
  int64_t inner, outer, tiles;          /* by columns: outputs = outer * inner, inner in `tiles` tiles */
  int64_t chunk, chunks;                /* of the n values of an output */
  int64_t group, jobs;                  /* by rows: outputs a job takes; by columns: tiles */
  bool short_rows;                      /* a block holds many of them */
  ampl_cpu_part *parts;                 /* [chunks][outputs], where there is more than one chunk */
} plan;

static int64_t ceil_div (int64_t a, int64_t b) { return (a + b - 1) / b; }
static int64_t at_most (int64_t a, int64_t b) { return a < b ? a : b; }

uint32_t ampl_cpu_dims_mask (ampl_ints dims, int ndim) {
  uint32_t mask = 0;
  for (int64_t i = 0; i < dims.n; i++) mask |= 1u << dims.v[i];
  return dims.n > 0 ? mask : (1u << ndim) - 1;
}

static void index_spaces (plan *p) {
  const ampl_tensor *x = p->r->x, *y = p->r->y, *z = p->r->z ? p->r->z : x;
  int64_t kept_shape[AMPL_RANK_MAX], gone_shape[AMPL_RANK_MAX], kept[3][AMPL_RANK_MAX], gone[2][AMPL_RANK_MAX];
  int nk = 0, ng = 0;
  for (int d = 0; d < x->ndim; d++) {
    if (p->r->dims >> d & 1) {
      gone_shape[ng] = x->shape[d];
      gone[0][ng] = x->strides[d];
      gone[1][ng++] = z->strides[d];
    } else {
      kept_shape[nk] = x->shape[d];
      kept[0][nk] = x->strides[d];
      kept[1][nk] = z->strides[d];
      kept[2][nk] = y ? y->strides[y->ndim == x->ndim ? d : nk] : 0;
      nk++;
    }
  }
  ampl_cpu_stream a[3] = {{.data = x->data, .dtype = x->dtype}, {.data = z->data, .dtype = z->dtype},
                          {.data = y ? y->data : NULL, .dtype = y ? y->dtype : AMPL_F32}};
  ampl_cpu_stream b[2] = {a[0], a[1]};
  ampl_cpu_streams_from(2, (const int64_t *const[]){gone[0], gone[1]}, ng, gone_shape, true, b);
  ampl_cpu_streams_from(y ? 3 : 2, (const int64_t *const[]){kept[0], kept[1], kept[2]}, nk, kept_shape, y != NULL, a);
  p->kept = a[0], p->zkept = a[1], p->out = a[2];
  p->gone = b[0], p->zgone = b[1];
  p->outputs = p->kept.n;
  p->n = p->gone.n;
}

/* ------------------------------------------------------------------------------------------------ results --------- */

static void deliver (const plan *p, const ampl_cpu_part *parts, int64_t first, int64_t m) {
  const ampl_cpu_reduction *r = p->r;
  if (!r->y) {
    r->finish(r->ud, parts, first, m, p->n, NULL);
    return;
  }
  double values[GROUP_MAX];
  ampl_cpu_work w = ampl_cpu_work_of(r->y->dtype);
  r->finish(r->ud, parts, first, m, p->n, values);
  ampl_cpu_store(&p->out, w, 0, first, m, values);
}

/* Puts the chunks of every output together, in their order */
static void gather_chunks (const plan *p) {
  const ampl_cpu_reduction *r = p->r;
  for (int64_t first = 0; first < p->outputs; first += GROUP_MAX) {
    int64_t m = at_most(GROUP_MAX, p->outputs - first);
    ampl_cpu_part *into = p->parts + first;
    for (int64_t c = 1; c < p->chunks; c++)
      ampl_cpu_fold_merge(r->fold, r->work, into, c * p->chunk, p->parts + c * p->outputs + first,
                          at_most(p->chunk, p->n - c * p->chunk), m);
    deliver(p, into, first, m);
  }
}

/* ------------------------------------------------------------------------------------------------ by rows --------- */

static void row_part (const plan *p, int64_t output, int64_t from, int64_t to, void *buf, void *zbuf,
                      ampl_cpu_part *part) {
  const ampl_cpu_reduction *r = p->r;
  int64_t first = ampl_cpu_offset(&p->kept, output), zfirst = r->z ? ampl_cpu_offset(&p->zkept, output) : 0;
  for (int64_t pos = from, len; pos < to; pos += len) {
    len = ampl_cpu_run(&p->gone, pos, at_most(AMPL_FOLD_BLOCK, to - pos));
    if (pos > from && ampl_cpu_stop_at(p->ctx, pos - from, len)) return;
    const void *x = ampl_cpu_load(&p->gone, r->work, first, pos, len, buf);
    ampl_cpu_part one;
    if (r->z) {
      const void *z = ampl_cpu_load(&p->zgone, r->work, zfirst, pos, len, zbuf);
      ampl_cpu_fold_dot_row(r->work, x, z, len, r->center[output], &one);
    } else {
      ampl_cpu_fold_row(r->fold, r->work, r->p, x, len, &one);
    }
    ampl_cpu_fold_merge(r->fold, r->work, part, pos - from, &one, len, 1);
  }
}

/* Rows of a few values, as many at a time as lie at one distance and fit a block */
static void short_rows (const plan *p, int64_t output, int64_t m, void *buf, ampl_cpu_part *parts) {
  const ampl_cpu_reduction *r = p->r;
  int last = p->kept.nd - 1;
  int64_t inner = p->kept.shape[last], step = p->kept.stride[last], most = AMPL_FOLD_BLOCK / p->n, ld;
  for (int64_t end = output + m, rows; output < end; output += rows, parts += rows) {
    rows = at_most(at_most(end - output, most), inner - output % inner);
    const void *x =
        ampl_cpu_load_rows(&p->gone, r->work, ampl_cpu_offset(&p->kept, output), step, 0, rows, p->n, buf, &ld);
    ampl_cpu_fold_rows(r->fold, r->work, r->p, x, ld, rows, p->n, parts);
  }
}

static void row_job (void *ud, int64_t job, int thread) {
  const plan *p = ud;
  double buf[AMPL_FOLD_BLOCK], zbuf[AMPL_FOLD_BLOCK];
  (void)thread;
  if (p->chunks > 1) {
    int64_t output = job / p->chunks, c = job % p->chunks;
    row_part(p, output, c * p->chunk, at_most((c + 1) * p->chunk, p->n), buf, zbuf,
             p->parts + c * p->outputs + output);
    return;
  }
  ampl_cpu_part parts[GROUP_MAX];
  int64_t first = job * p->group, m = at_most(p->group, p->outputs - first);
  if (p->short_rows) short_rows(p, first, m, buf, parts);
  else
    for (int64_t j = 0; j < m; j++) row_part(p, first + j, 0, p->n, buf, zbuf, &parts[j]);
  deliver(p, parts, first, m);
}

static void plan_rows (plan *p) {
  p->chunk = p->n;
  p->chunks = 1;
  if (p->outputs < FEW_OUTPUTS && p->n > CHUNK) {
    int64_t blocks = ceil_div(ceil_div(p->n, CHUNKS_MAX), AMPL_FOLD_BLOCK);
    p->chunk = blocks * AMPL_FOLD_BLOCK > CHUNK ? blocks * AMPL_FOLD_BLOCK : CHUNK;
    p->chunks = ceil_div(p->n, p->chunk);
  }
  int64_t group = JOB / p->n;
  p->short_rows = p->gone.nd == 1 && p->n <= AMPL_FOLD_BLOCK / 8 && !p->r->z;
  p->group = p->chunks > 1 || group < 1 ? 1 : at_most(group, GROUP_MAX);
  p->jobs = ceil_div(p->outputs, p->group) * p->chunks;
}

/* ------------------------------------------------------------------------------------------------ by columns ------ */

enum { SPACE = AMPL_FOLD_ROWS * AMPL_FOLD_COLS, ROWS_MAX = 256 };

static void col_parts (const plan *p, int64_t output, int64_t m, int64_t from, int64_t to, double (*buf)[SPACE],
                       ampl_cpu_part *parts) {
  const ampl_cpu_reduction *r = p->r;
  ampl_cpu_part some[AMPL_FOLD_COLS];
  const int64_t most = at_most(SPACE / m, ROWS_MAX);    /* narrow tiles take more rows: parts cost time, too */
  int64_t ld, ldz;
  for (int64_t pos = from; pos < to; pos += most) {
    int64_t rows = at_most(most, to - pos);
    if (pos > from && ampl_cpu_stop_at(p->ctx, (pos - from) * m, rows * m)) return;
    const void *x = ampl_cpu_load_grid(&p->kept, &p->gone, r->work, output, pos, rows, m, buf[0], &ld);
    ampl_cpu_part *into = pos == from ? parts : some;
    if (r->z) {
      const void *z = ampl_cpu_load_grid(&p->zkept, &p->zgone, r->work, output, pos, rows, m, buf[1], &ldz);
      ampl_cpu_fold_dot_cols(r->work, x, ld, z, ldz, rows, m, r->center + output, into);
    } else {
      ampl_cpu_fold_cols(r->fold, r->work, r->p, x, ld, rows, m, into);
    }
    if (into == some) ampl_cpu_fold_merge(r->fold, r->work, parts, pos - from, some, rows, m);
  }
}

static void col_job (void *ud, int64_t job, int thread) {
  const plan *p = ud;
  double buf[2][SPACE];
  ampl_cpu_part parts[AMPL_FOLD_COLS];
  (void)thread;
  int64_t c = job % p->chunks, tile = job / p->chunks * p->group;
  int64_t from = c * p->chunk, to = at_most(from + p->chunk, p->n);
  for (int64_t end = at_most(tile + p->group, p->outer * p->tiles); tile < end; tile++) {
    int64_t outer = tile / p->tiles, column = tile % p->tiles * AMPL_FOLD_COLS;
    int64_t m = at_most(AMPL_FOLD_COLS, p->inner - column), output = outer * p->inner + column;
    col_parts(p, output, m, from, to, buf, p->chunks > 1 ? p->parts + c * p->outputs + output : parts);
    if (p->chunks == 1) deliver(p, parts, output, m);
  }
}

static void plan_cols (plan *p) {
  p->inner = p->kept.shape[p->kept.nd - 1];
  p->outer = p->outputs / p->inner;
  p->tiles = ceil_div(p->inner, AMPL_FOLD_COLS);
  int64_t units = p->outer * p->tiles;
  p->chunk = p->n;
  p->chunks = 1;
  if (units < FEW_TILES && p->n > CHUNK_ROWS) {
    int64_t rows = ceil_div(p->n, CHUNKS_MAX);
    p->chunk = ceil_div(rows > CHUNK_ROWS ? rows : CHUNK_ROWS, AMPL_FOLD_ROWS) * AMPL_FOLD_ROWS;
    p->chunks = ceil_div(p->n, p->chunk);
  }
  int64_t group = JOB / (p->n * at_most(p->inner, AMPL_FOLD_COLS));
  p->group = p->chunks > 1 || group < 1 ? 1 : group;
  p->jobs = ceil_div(units, p->group) * p->chunks;
}

/* ------------------------------------------------------------------------------------------------ the whole ------- */

static void deliver_none (const plan *p) {
  ampl_cpu_part parts[GROUP_MAX];
  for (int64_t j = 0; j < GROUP_MAX; j++) parts[j] = ampl_cpu_fold_none(p->r->fold, p->r->work);
  for (int64_t first = 0; first < p->outputs; first += GROUP_MAX)
    deliver(p, parts, first, at_most(GROUP_MAX, p->outputs - first));
}

ampl_status ampl_cpu_reduce (ampl_ctx *ctx, const ampl_cpu_reduction *r) {
  plan p = {.ctx = ctx, .r = r};
  index_spaces(&p);
  if (p.outputs == 0) return AMPL_OK;
  if (p.n == 0) {
    deliver_none(&p);
    return AMPL_OK;
  }
  bool rows = ampl_cpu_runs_along(r->x, r->dims);
  if (rows) plan_rows(&p);
  else plan_cols(&p);
  size_t bytes = (size_t)(p.chunks * p.outputs) * sizeof *p.parts;
  if (p.chunks > 1 && !(p.parts = ampl_cpu_scratch_get(ctx, bytes)))
    return ampl_error(ctx, AMPL_ENOMEM, "no memory for %zu bytes of partial results", bytes);
  double cost = r->fold >= AMPL_FOLD_LOG_SUM_EXP ? 4 : r->fold == AMPL_FOLD_MOMENTS ? 0.5 : 0.25;
  const ampl_status s = ampl_cpu_parallel(ctx, ampl_cpu_threads_for(ctx, cost * (double)r->x->numel), p.jobs,
                                          rows ? row_job : col_job, &p);
  if (p.chunks > 1) {
    if (s == AMPL_OK) gather_chunks(&p);
    ampl_cpu_scratch_put(ctx, p.parts, bytes);
  }
  return s;
}
