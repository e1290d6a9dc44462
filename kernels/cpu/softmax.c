/* softmax.c: softmax and log_softmax along a dimension, and their gradients.
 *
 * Lines along which memory runs are taken whole, if they fit the cache, else in two passes.  Other lines go through the
 * dimension in tiles of neighbours: one pass for the largest values and the sums, one for the results. */
#include "isa/softmax.h"
#include "reduce.h"

#include <math.h>

enum { WHOLE = 16384, BLOCK = AMPL_FOLD_BLOCK, TILE = AMPL_FOLD_COLS / 2, ROWS = AMPL_FOLD_ROWS };

typedef struct job {
  ampl_ctx       *ctx;
  int             is_log;
  ampl_cpu_work   work;
  bool            tiled;
  int64_t         n, lines, m, tiles;
  ampl_cpu_stream x[3], along[3];       /* forward: x, y; backward: dy, y, dx */
  int64_t         group;                /* lines that a job takes */
  char           *scratch;              /* room for whole lines, `space` bytes a thread; NULL: lines are too long */
  size_t          space;
} job;

static const ampl_cpu_softmax *loops (void) { return AMPL_CPU_BEST(ampl_cpu_softmax); }
static int64_t at_most (int64_t a, int64_t b) { return a < b ? a : b; }

/* ------------------------------------------------------------------------------------------------ f64 ------------- */

/* Where the sums of m lines stand, in f64 */
typedef struct sums { double a[TILE], b[TILE]; } sums;

static void f64_forward(const job *s, double *y, const double *x, int64_t n, const double *a, const double *b,
                        int step) {
  for (int64_t i = 0; i < n; i++, a += step, b += step) y[i] = s->is_log ? x[i] - *a - *b : exp(x[i] - *a) * *b;
}

static void f64_back(const job *s, double *dx, const double *dy, const double *y, int64_t n, const double *dot,
                     int step) {
  for (int64_t i = 0; i < n; i++, dot += step) dx[i] = s->is_log ? dy[i] - exp(y[i]) * *dot : y[i] * (dy[i] - *dot);
}

static double f64_dot (const job *s, const double *dy, const double *y, int64_t step, int64_t n) {
  double sum = 0;
  for (int64_t i = 0; i < n; i++) sum += s->is_log ? dy[i * step] : dy[i * step] * y[i * step];
  return sum;
}

/* ------------------------------------------------------------------------------------------------ forward --------- */

/* a and b of the formula, of a line whose part is known.  Infinity less itself is no number, and so is the sum that it
 * takes part in, though not the logarithm for which the part was made. */
static void constants (const job *s, const ampl_cpu_part *part, double *a, double *b) {
  *a = part->a.f;
  *b = *a == INFINITY ? NAN : s->is_log ? log(part->b.f) : 1 / part->b.f;
}

/* Lines at one distance from each other */
static void whole_lines (const job *s, int64_t line, int64_t lines, char *buf) {
  int last = s->x[0].nd - 1;
  int64_t from = ampl_cpu_offset(&s->x[0], line), to = ampl_cpu_offset(&s->x[1], line), ldx, ldy;
  int64_t xstep = s->x[0].stride[last], ystep = s->x[1].stride[last];
  const float *x = ampl_cpu_load_rows(&s->along[0], s->work, from, xstep, 0, lines, s->n, buf, &ldx);
  float *y = ampl_cpu_target_rows(&s->along[1], s->work, to, ystep, 0, s->n, buf, &ldy);
  void (*row)(float *, const float *, int64_t) = loops()->row[s->is_log];
  for (int64_t i = 0; i < lines; i++) row(y + i * ldy, x + i * ldx, s->n);
  ampl_cpu_store_rows(&s->along[1], s->work, to, ystep, 0, lines, s->n, y);
}

static void long_line (const job *s, int64_t from, int64_t to) {
  double buf[BLOCK], a, b;
  ampl_cpu_part sum = {{0}, {0}}, one;
  for (int64_t pos = 0; pos < s->n; pos += BLOCK) {
    int64_t len = at_most(BLOCK, s->n - pos);
    if (ampl_cpu_stop_at(s->ctx, pos, BLOCK)) return;
    const void *x = ampl_cpu_load(&s->along[0], s->work, from, pos, len, buf);
    ampl_cpu_fold_row(AMPL_FOLD_LOG_SUM_EXP, s->work, 0, x, len, &one);
    ampl_cpu_fold_merge(AMPL_FOLD_LOG_SUM_EXP, s->work, &sum, pos, &one, len, 1);
  }
  constants(s, &sum, &a, &b);
  for (int64_t pos = 0; pos < s->n; pos += BLOCK) {
    int64_t len = at_most(BLOCK, s->n - pos);
    if (ampl_cpu_stop_at(s->ctx, pos, BLOCK)) return;
    const void *x = ampl_cpu_load(&s->along[0], s->work, from, pos, len, buf);
    void *y = ampl_cpu_target(&s->along[1], s->work, to, pos, len, buf);
    if (s->work == AMPL_WORK_F32) loops()->part[s->is_log](y, x, len, (float)a, (float)b);
    else f64_forward(s, y, x, len, &a, &b, 0);
    ampl_cpu_store(&s->along[1], s->work, to, pos, len, y);
  }
}

static void line_job (void *ud, int64_t job_number, int thread) {
  const job *s = ud;
  int64_t line = job_number * s->group, end = at_most(line + s->group, s->lines);
  for (int64_t lines; line < end; line += lines) {
    lines = s->scratch ? at_most(end - line, s->m - line % s->m) : 1;
    if (s->scratch) whole_lines(s, line, lines, s->scratch + (size_t)thread * s->space);
    else long_line(s, ampl_cpu_offset(&s->x[0], line), ampl_cpu_offset(&s->x[1], line));
  }
}

/* The tile that a job is: lines `line` to line + m - 1 */
static int64_t tile_of (const job *s, int64_t job, int64_t *line) {
  int64_t column = job % s->tiles * TILE;
  *line = job / s->tiles * s->m + column;
  return at_most(TILE, s->m - column);
}

static void tile_job (void *ud, int64_t tile, int thread) {
  const job *s = ud;
  double buf[ROWS * TILE];
  ampl_cpu_part parts[TILE], some[TILE];
  sums c;
  float a[TILE], b[TILE];
  (void)thread;
  int64_t line, ld, m = tile_of(s, tile, &line), from = s->along[0].stride[0], to = s->along[1].stride[0];
  for (int64_t k = 0; k < s->n; k += ROWS) {
    if (ampl_cpu_stop_at(s->ctx, k * m, ROWS * m)) return;
    int64_t rows = at_most(ROWS, s->n - k);
    const void *x = ampl_cpu_load_rows(&s->x[0], s->work, k * from, from, line, rows, m, buf, &ld);
    ampl_cpu_fold_cols(AMPL_FOLD_LOG_SUM_EXP, s->work, 0, x, ld, rows, m, k ? some : parts);
    if (k) ampl_cpu_fold_merge(AMPL_FOLD_LOG_SUM_EXP, s->work, parts, k, some, rows, m);
  }
  for (int64_t j = 0; j < m; j++) {
    constants(s, &parts[j], &c.a[j], &c.b[j]);
    a[j] = (float)c.a[j], b[j] = (float)c.b[j];
  }
  for (int64_t k = 0; k < s->n; k += ROWS) {
    if (ampl_cpu_stop_at(s->ctx, k * m, ROWS * m)) return;
    int64_t rows = at_most(ROWS, s->n - k), ldy;
    const void *x = ampl_cpu_load_rows(&s->x[0], s->work, k * from, from, line, rows, m, buf, &ld);
    void *y = ampl_cpu_target_rows(&s->x[1], s->work, k * to, to, line, m, buf, &ldy);
    if (s->work == AMPL_WORK_F32) loops()->cols[s->is_log](y, ldy, x, ld, rows, m, a, b);
    else
      for (int64_t r = 0; r < rows; r++)
        f64_forward(s, (double *)y + r * ldy, (const double *)x + r * ld, m, c.a, c.b, 1);
    ampl_cpu_store_rows(&s->x[1], s->work, k * to, to, line, rows, m, y);
  }
}

/* ------------------------------------------------------------------------------------------------ backward -------- */

static void back_line_job (void *ud, int64_t line, int thread) {
  const job *s = ud;
  double buf[2][BLOCK], dot = 0;
  int64_t at[3];
  (void)thread;
  for (int k = 0; k < 3; k++) at[k] = ampl_cpu_offset(&s->x[k], line);
  for (int pass = 0; pass < 2; pass++)
    for (int64_t pos = 0; pos < s->n; pos += BLOCK) {
      int64_t len = at_most(BLOCK, s->n - pos);
    if (ampl_cpu_stop_at(s->ctx, pos, BLOCK)) return;
      const void *dy = ampl_cpu_load(&s->along[0], s->work, at[0], pos, len, buf[0]);
      const void *y = ampl_cpu_load(&s->along[1], s->work, at[1], pos, len, buf[1]);
      if (pass == 0) {
        dot += s->work == AMPL_WORK_F32 ? loops()->dot[s->is_log](dy, y, len) : f64_dot(s, dy, y, 1, len);
        continue;
      }
      void *dx = ampl_cpu_target(&s->along[2], s->work, at[2], pos, len, buf[0]);
      if (s->work == AMPL_WORK_F32) loops()->back[s->is_log](dx, dy, y, len, (float)dot);
      else f64_back(s, dx, dy, y, len, &dot, 0);
      ampl_cpu_store(&s->along[2], s->work, at[2], pos, len, dx);
    }
}

static void tile_dots (const job *s, int64_t line, int64_t m, double (*buf)[ROWS * TILE], double *dot) {
  float some[TILE];
  for (int64_t k = 0; k < s->n; k += ROWS) {
    if (ampl_cpu_stop_at(s->ctx, k * m, ROWS * m)) return;
    int64_t rows = at_most(ROWS, s->n - k), ld[2];
    const void *row[2];
    for (int i = 0; i < 2; i++)
      row[i] = ampl_cpu_load_rows(&s->x[i], s->work, k * s->along[i].stride[0], s->along[i].stride[0], line, rows, m,
                                  buf[i], &ld[i]);
    if (s->work == AMPL_WORK_F32) {
      loops()->dot_cols[s->is_log](row[0], ld[0], row[1], ld[1], rows, m, some);
      for (int64_t j = 0; j < m; j++) dot[j] = (k ? dot[j] : 0) + some[j];
    } else {
      for (int64_t j = 0; j < m; j++) {
        double d = 0;
        for (int64_t r = 0; r < rows; r++) {
          const double *dy = (const double *)row[0] + r * ld[0] + j, *y = (const double *)row[1] + r * ld[1] + j;
          d += f64_dot(s, dy, y, 0, 1);
        }
        dot[j] = (k ? dot[j] : 0) + d;
      }
    }
  }
}

static void back_tile_job (void *ud, int64_t tile, int thread) {
  const job *s = ud;
  double buf[2][ROWS * TILE], dot[TILE];
  float small[TILE];
  (void)thread;
  int64_t line, m = tile_of(s, tile, &line);
  tile_dots(s, line, m, buf, dot);
  for (int64_t j = 0; j < m; j++) small[j] = (float)dot[j];
  const int64_t step[3] = {s->along[0].stride[0], s->along[1].stride[0], s->along[2].stride[0]};
  for (int64_t k = 0; k < s->n; k += ROWS) {
    if (ampl_cpu_stop_at(s->ctx, k * m, ROWS * m)) return;
    int64_t rows = at_most(ROWS, s->n - k), ld[3];
    const void *dy = ampl_cpu_load_rows(&s->x[0], s->work, k * step[0], step[0], line, rows, m, buf[0], &ld[0]);
    const void *y = ampl_cpu_load_rows(&s->x[1], s->work, k * step[1], step[1], line, rows, m, buf[1], &ld[1]);
    void *dx = ampl_cpu_target_rows(&s->x[2], s->work, k * step[2], step[2], line, m, buf[0], &ld[2]);
    if (s->work == AMPL_WORK_F32) loops()->back_cols[s->is_log](dx, ld[2], dy, ld[0], y, ld[1], rows, m, small);
    else
      for (int64_t r = 0; r < rows; r++)
        f64_back(s, (double *)dx + r * ld[2], (const double *)dy + r * ld[0], (const double *)y + r * ld[1], m, dot, 1);
    ampl_cpu_store_rows(&s->x[2], s->work, k * step[2], step[2], line, rows, m, dx);
  }
}

/* ------------------------------------------------------------------------------------------------ setting up ------ */

static ampl_status run (ampl_ctx *ctx, int count, const ampl_tensor *const *t, int64_t dim, int is_log) {
  job s = {.ctx = ctx, .is_log = is_log, .work = AMPL_WORK_F32};
  bool back = count == 3;
  for (int k = 0; k < count; k++)
    if (ampl_cpu_work_of(t[k]->dtype) != AMPL_WORK_F32) s.work = AMPL_WORK_F64;
  s.tiled = ampl_cpu_lines(count, t, dim, s.x, s.along);
  if (t[0]->numel == 0) return AMPL_OK;
  s.n = s.along[0].n;
  s.lines = s.x[0].n;
  s.m = s.x[0].shape[s.x[0].nd - 1];
  s.tiles = (s.m + TILE - 1) / TILE;
  int threads = ampl_cpu_threads_for(ctx, 1.0 * (double)t[0]->numel);
  bool whole = !s.tiled && !back && s.work == AMPL_WORK_F32 && s.n <= WHOLE;
  s.group = whole ? 1 + BLOCK / s.n : 1;
  s.space = (size_t)(s.group * s.n) * sizeof(float);
  size_t bytes = (size_t)threads * s.space;
  if (whole) {
    s.scratch = ampl_cpu_scratch_get(ctx, bytes);
    if (!s.scratch) return ampl_error(ctx, AMPL_ENOMEM, "no memory for %zu bytes of scratch", bytes);
  }
  const ampl_cpu_job_fn fn = s.tiled ? back ? back_tile_job : tile_job : back ? back_line_job : line_job;
  const int64_t jobs = s.tiled ? s.lines / s.m * s.tiles : (s.lines + s.group - 1) / s.group;
  const ampl_status status = ampl_cpu_parallel(ctx, threads, jobs, fn, &s);
  if (s.scratch) ampl_cpu_scratch_put(ctx, s.scratch, bytes);
  return status;
}

static ampl_status softmax (ampl_ctx *ctx, const ampl_args *in, ampl_tensor **out) {
  return run(ctx, 2, (const ampl_tensor *const[]){in->t[0], out[0]}, in->p[0].i, 0);
}
static ampl_status log_softmax (ampl_ctx *ctx, const ampl_args *in, ampl_tensor **out) {
  return run(ctx, 2, (const ampl_tensor *const[]){in->t[0], out[0]}, in->p[0].i, 1);
}
static ampl_status softmax_backward (ampl_ctx *ctx, const ampl_args *in, ampl_tensor **out) {
  return run(ctx, 3, (const ampl_tensor *const[]){in->t[0], in->t[1], out[0]}, in->p[0].i, 0);
}
static ampl_status log_softmax_backward (ampl_ctx *ctx, const ampl_args *in, ampl_tensor **out) {
  return run(ctx, 3, (const ampl_tensor *const[]){in->t[0], in->t[1], out[0]}, in->p[0].i, 1);
}

const ampl_kernel ampl_cpu_softmax_kernels[] = {
    {"softmax", AMPL_DTYPE_NONE, softmax},
    {"log_softmax", AMPL_DTYPE_NONE, log_softmax},
    {"softmax_backward", AMPL_DTYPE_NONE, softmax_backward},
    {"log_softmax_backward", AMPL_DTYPE_NONE, log_softmax_backward},
    {NULL, 0, NULL},
};
