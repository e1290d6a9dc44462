/* extreme.c: extremes and medians with their positions: argmax, argmin, max, min and median along a dimension.
 *
 * The first of equal values wins, and NaN wins over numbers, so the result is one whatever the order of the work. */
#include "op.h"
#include "reduce.h"

#include <math.h>
#include <string.h>

enum { BLOCK = AMPL_FOLD_BLOCK, TILE = AMPL_FOLD_COLS, CHUNK = 1 << 16 };

typedef struct best { ampl_cpu_cell v; int64_t at; } best;

typedef struct search {
  ampl_ctx       *ctx;
  bool            least;
  ampl_cpu_work   work;
  int64_t         base;         /* what the first position is called */
  int64_t         n;            /* values in each line */
  ampl_cpu_stream along, x;     /* of x: a line; the lines */
  ampl_cpu_stream values, at;   /* results; data NULL where not wanted */
  int64_t         lines, m, tiles, group, chunks;
  best           *parts;        /* of the chunks of a single line */
  struct entry   *scratch;      /* median: n entries a thread */
} search;

static const ampl_cpu_folds *folds (void) { return AMPL_CPU_BEST(ampl_cpu_folds); }
static int64_t at_most (int64_t a, int64_t b) { return a < b ? a : b; }

/* ------------------------------------------------------------------------------------------------ comparing ------- */

static bool beats (const search *s, ampl_cpu_cell v, ampl_cpu_cell than) {
  if (s->work == AMPL_WORK_I64) return s->least ? v.i < than.i : v.i > than.i;
  if (v.f != v.f) return than.f == than.f;
  return s->least ? v.f < than.f : v.f > than.f;
}

static ampl_cpu_cell cell (const search *s, const void *x, int64_t i) {
  ampl_cpu_cell c;
  if (s->work == AMPL_WORK_I64) c.i = ((const int64_t *)x)[i];
  else c.f = s->work == AMPL_WORK_F64 ? ((const double *)x)[i] : (double)((const float *)x)[i];
  return c;
}

/* The best of positions from ... to - 1 of a line that begins at `first` */
static best best_in (const search *s, int64_t first, int64_t from, int64_t to, void *buf) {
  best b = {{0}, -1};
  for (int64_t pos = from; pos < to && !ampl_cpu_stop_at(s->ctx, pos - from, BLOCK); pos += BLOCK) {
    int64_t len = at_most(BLOCK, to - pos);
    const void *x = ampl_cpu_load(&s->along, s->work, first, pos, len, buf);
    if (s->work == AMPL_WORK_F32) {
      float value;
      int64_t at;
      folds()->best_row[s->least](x, len, &value, &at);
      ampl_cpu_cell v = {.f = value};
      if (b.at < 0 || beats(s, v, b.v)) b = (best){v, pos + at};
    } else {
      for (int64_t i = 0; i < len; i++) {
        ampl_cpu_cell v = cell(s, x, i);
        if (b.at < 0 || beats(s, v, b.v)) b = (best){v, pos + i};
      }
    }
  }
  return b;
}

/* ------------------------------------------------------------------------------------------------ walking --------- */

static void deliver (const search *s, int64_t line, const best *b, int64_t m) {
  double values[TILE];
  int64_t at[TILE] = {0};
  for (int64_t j = 0; j < m; j++) at[j] = b[j].at + s->base;
  ampl_cpu_store(&s->at, AMPL_WORK_I64, 0, line, m, at);
  if (!s->values.data) return;
  for (int64_t j = 0; j < m; j++) {
    if (s->work == AMPL_WORK_I64) ((int64_t *)values)[j] = b[j].v.i;
    else if (s->work == AMPL_WORK_F64) values[j] = b[j].v.f;
    else ((float *)values)[j] = (float)b[j].v.f;
  }
  ampl_cpu_store(&s->values, s->work, 0, line, m, values);
}

static void line_job (void *ud, int64_t job, int thread) {
  const search *s = ud;
  double buf[BLOCK];
  best b[TILE];
  (void)thread;
  int64_t line = job * s->group, m = at_most(s->group, s->lines - line);
  for (int64_t j = 0; j < m; j++) b[j] = best_in(s, ampl_cpu_offset(&s->x, line + j), 0, s->n, buf);
  deliver(s, line, b, m);
}

/* A part of the only line */
static void chunk_job (void *ud, int64_t job, int thread) {
  const search *s = ud;
  double buf[BLOCK];
  (void)thread;
  s->parts[job] = best_in(s, 0, job * CHUNK, at_most((job + 1) * CHUNK, s->n), buf);
}

/* Neighbouring lines go through the dimension together */
static void tile_job (void *ud, int64_t job, int thread) {
  const search *s = ud;
  double buf[TILE];
  best b[TILE];
  float value[TILE];
  int32_t at[TILE];
  (void)thread;
  int64_t column = job % s->tiles * TILE, line = job / s->tiles * s->m + column, m = at_most(TILE, s->m - column);
  memset(value, 0, sizeof value);
  memset(at, 0, sizeof at);
  for (int64_t k = 0; k < s->n; k++) {
    if (ampl_cpu_stop_at(s->ctx, k * m, m)) return;
    const void *x = ampl_cpu_load(&s->x, s->work, k * s->along.stride[0], line, m, buf);
    if (s->work == AMPL_WORK_F32) {
      folds()->best_cols[s->least](x, m, (int32_t)k, value, at);
    } else {
      for (int64_t j = 0; j < m; j++) {
        ampl_cpu_cell v = cell(s, x, j);
        if (k == 0 || beats(s, v, b[j].v)) b[j] = (best){v, k};
      }
    }
  }
  for (int64_t j = 0; j < m && s->work == AMPL_WORK_F32; j++) b[j] = (best){{.f = value[j]}, at[j]};
  deliver(s, line, b, m);
}

/* ------------------------------------------------------------------------------------------------ setting up ------ */

/* x's lines along `dim` (AMPL_ABSENT: all of x is one), and where the results go */
static void lines_of(ampl_ctx *ctx, search *s, const ampl_tensor *x, int64_t dim, ampl_tensor *values,
                     ampl_tensor *at) {
  int64_t shape[AMPL_RANK_MAX], stride[3][AMPL_RANK_MAX] = {{0}};
  int nd = 0;
  s->ctx = ctx;
  s->work = ampl_cpu_work_of(x->dtype);
  s->base = ampl_index_base(ctx);
  s->x = (ampl_cpu_stream){.data = x->data, .dtype = x->dtype};
  s->along = s->x;
  s->values = (ampl_cpu_stream){.data = values ? values->data : NULL, .dtype = values ? values->dtype : AMPL_F32};
  s->at = (ampl_cpu_stream){.data = at ? at->data : NULL, .dtype = AMPL_I64};
  for (int d = 0; d < x->ndim && dim != AMPL_ABSENT; d++) {
    const ampl_tensor *y = at ? at : values;
    int k = y->ndim == x->ndim ? d : nd;
    if (d == dim) continue;
    shape[nd] = x->shape[d];
    stride[0][nd] = x->strides[d];
    if (values) stride[1][nd] = values->strides[k];
    if (at) stride[2][nd] = at->strides[k];
    nd++;
  }
  ampl_cpu_stream all[3] = {s->x, s->values, s->at};
  ampl_cpu_streams_from(3, (const int64_t *const[]){stride[0], stride[1], stride[2]}, nd, shape, true, all);
  s->x = all[0], s->values = all[1], s->at = all[2];
  if (dim == AMPL_ABSENT) {
    ampl_cpu_streams(1, &x, x->ndim, x->shape, false, &s->along);
  } else {
    const int64_t one = 1, *row = x->ndim ? &x->strides[dim] : &one;
    ampl_cpu_streams_from(1, &row, 1, x->ndim ? &x->shape[dim] : &one, false, &s->along);
  }
  s->n = s->along.n;
  s->lines = s->x.n;
}

static ampl_status one_line (ampl_ctx *ctx, search *s) {
  int64_t chunks = (s->n + CHUNK - 1) / CHUNK;
  size_t bytes = (size_t)chunks * sizeof *s->parts;
  s->parts = ampl_cpu_scratch_get(ctx, bytes);
  if (!s->parts) return ampl_error(ctx, AMPL_ENOMEM, "no memory for %zu bytes of partial results", bytes);
  const ampl_status status =
      ampl_cpu_parallel(ctx, ampl_cpu_threads_for(ctx, 0.3 * (double)s->n), chunks, chunk_job, s);
  if (status == AMPL_OK) {
    best b = s->parts[0];
    for (int64_t c = 1; c < chunks; c++)
      if (beats(s, s->parts[c].v, b.v)) b = s->parts[c];
    deliver(s, 0, &b, 1);
  }
  ampl_cpu_scratch_put(ctx, s->parts, bytes);
  return status;
}

static ampl_status run (ampl_ctx *ctx, const ampl_args *in, bool least, ampl_tensor *values, ampl_tensor *at) {
  search s = {.least = least};
  lines_of(ctx, &s, in->t[0], in->p[0].i, values, at);
  if (s.lines == 0) return AMPL_OK;
  if (s.lines == 1) return one_line(ctx, &s);
  int threads = ampl_cpu_threads_for(ctx, 0.3 * (double)in->t[0]->numel);
  int64_t step = s.x.stride[s.x.nd - 1];
  s.m = s.x.shape[s.x.nd - 1];
  s.tiles = (s.m + TILE - 1) / TILE;
  if (s.m >= 4 && step && s.along.stride[0] > step && s.n < INT32_MAX)
    return ampl_cpu_parallel(ctx, threads, s.lines / s.m * s.tiles, tile_job, &s);
  int64_t group = (1 << 14) / s.n;
  s.group = group < 1 ? 1 : at_most(group, TILE);
  return ampl_cpu_parallel(ctx, threads, (s.lines + s.group - 1) / s.group, line_job, &s);
}

static ampl_status argmax (ampl_ctx *ctx, const ampl_args *in, ampl_tensor **out) {
  return run(ctx, in, false, NULL, out[0]);
}
static ampl_status argmin (ampl_ctx *ctx, const ampl_args *in, ampl_tensor **out) {
  return run(ctx, in, true, NULL, out[0]);
}
static ampl_status max_along (ampl_ctx *ctx, const ampl_args *in, ampl_tensor **out) {
  return run(ctx, in, false, out[0], out[1]);
}
static ampl_status min_along (ampl_ctx *ctx, const ampl_args *in, ampl_tensor **out) {
  return run(ctx, in, true, out[0], out[1]);
}

/* ------------------------------------------------------------------------------------------------ median ---------- */

/* A value as a number that sorts like it, and its place: a total order, so the result is the one of a stable sort */
typedef struct entry { uint64_t key; int64_t at; } entry;

static uint64_t key_of (const search *s, ampl_cpu_cell v) {
  uint64_t bits;
  if (s->work == AMPL_WORK_I64) return (uint64_t)v.i ^ UINT64_C(1) << 63;
  v.f += 0.0;                   /* -0 and 0 are equal */
  memcpy(&bits, &v.f, sizeof bits);
  return bits >> 63 ? ~bits : bits | UINT64_C(1) << 63;
}

static bool before (entry a, entry b) { return a.key < b.key || (a.key == b.key && a.at < b.at); }

/* The k-th entry in order, by narrowing down; pivots from a fixed sequence, as no input should be the worst case.  Its
 * place is -1 after an interrupt. */
static entry nth (ampl_ctx *ctx, entry *x, int64_t n, int64_t k) {
  uint64_t random = 0x9e3779b97f4a7c15u;
  int64_t lo = 0, hi = n - 1, turns = 0;
  while (lo < hi) {
    random = random * 6364136223846793005u + 1442695040888963407u;
    entry pivot = x[lo + (int64_t)((random >> 33) % (uint64_t)(hi - lo + 1))];
    int64_t i = lo, j = hi;
    while (i <= j) {
      if (ampl_cpu_stop_at(ctx, turns++, 1)) return (entry){0, -1};
      while (before(x[i], pivot)) i++;
      while (before(pivot, x[j])) j--;
      if (i <= j) {
        entry t = x[i];
        x[i++] = x[j];
        x[j--] = t;
      }
    }
    if (k <= j) hi = j;
    else if (k >= i) lo = i;
    else break;
  }
  return x[k];
}

static void median_job (void *ud, int64_t line, int thread) {
  const search *s = ud;
  entry *x = s->scratch + thread * s->n;
  double buf[BLOCK];
  int64_t first = ampl_cpu_offset(&s->x, line), at = -1;
  for (int64_t pos = 0; pos < s->n && at < 0; pos += BLOCK) {
    int64_t len = at_most(BLOCK, s->n - pos);
    if (ampl_cpu_stop_at(s->ctx, pos, BLOCK)) return;
    const void *v = ampl_cpu_load(&s->along, s->work, first, pos, len, buf);
    for (int64_t i = 0; i < len && at < 0; i++) {
      ampl_cpu_cell c = cell(s, v, i);
      if (s->work != AMPL_WORK_I64 && c.f != c.f) at = pos + i;         /* the first NaN is the median */
      else x[pos + i] = (entry){key_of(s, c), pos + i};
    }
  }
  if (at < 0) at = nth(s->ctx, x, s->n, (s->n - 1) / 2).at;
  if (at < 0) return;
  const void *v = ampl_cpu_load(&s->along, s->work, first, at, 1, buf);
  if (s->at.data) {
    int64_t shown = at + s->base;
    ampl_cpu_store(&s->at, AMPL_WORK_I64, 0, line, 1, &shown);
  }
  ampl_cpu_store(&s->values, s->work, 0, line, 1, v);
}

static ampl_status run_median (ampl_ctx *ctx, const ampl_tensor *x, int64_t dim, ampl_tensor *values, ampl_tensor *at) {
  search s = {.least = false};
  lines_of(ctx, &s, x, dim, values, at);
  if (s.lines == 0) return AMPL_OK;
  int threads = ampl_cpu_threads_for(ctx, 10.0 * (double)x->numel);
  if (threads > s.lines) threads = (int)s.lines;
  size_t bytes = (size_t)threads * (size_t)s.n * sizeof *s.scratch;
  s.scratch = ampl_cpu_scratch_get(ctx, bytes);
  if (!s.scratch) return ampl_error(ctx, AMPL_ENOMEM, "no memory for %zu bytes to sort in", bytes);
  const ampl_status status = ampl_cpu_parallel(ctx, threads, s.lines, median_job, &s);
  ampl_cpu_scratch_put(ctx, s.scratch, bytes);
  return status;
}

static ampl_status median_along (ampl_ctx *ctx, const ampl_args *in, ampl_tensor **out) {
  return run_median(ctx, in->t[0], in->p[0].i, out[0], out[1]);
}
static ampl_status median_all (ampl_ctx *ctx, const ampl_args *in, ampl_tensor **out) {
  return run_median(ctx, in->t[0], AMPL_ABSENT, out[0], NULL);
}

const ampl_kernel ampl_cpu_extreme_kernels[] = {
    {"argmax", AMPL_DTYPE_NONE, argmax},
    {"argmin", AMPL_DTYPE_NONE, argmin},
    {"max_along", AMPL_DTYPE_NONE, max_along},
    {"min_along", AMPL_DTYPE_NONE, min_along},
    {"median_along", AMPL_DTYPE_NONE, median_along},
    {"median_all", AMPL_DTYPE_NONE, median_all},
    {NULL, 0, NULL},
};
