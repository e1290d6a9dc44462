/* scan.c: running sums, products and recurrences along one dimension.
 *
 * Floats are computed in f64, whatever their dtype.  Where the dimension is the one along which memory runs, lines are
 * taken one by one; else a tile of neighbouring lines goes through it together. */
#include "op.h"
#include "stream.h"

enum { BLOCK = 512, TILE = 64 };

typedef enum kind { SUM, PROD, PROD_BEFORE, RECURRENCE } kind;

typedef struct scan {
  ampl_ctx *ctx;
  kind    kind;
  bool    reverse;
  ampl_cpu_work work;           /* F64 or I64 */
  int64_t n;                    /* along the dimension */
  int64_t lines, m, tiles;      /* lines = (lines / m) * m neighbours */
  ampl_cpu_stream x[3], along[3];       /* operand, second operand or nothing, result: other dimensions, this one */
  int     operands;
} scan;

/* The state of one line */
typedef struct f64_state { double acc, b; } f64_state;

/* Running sums of a block, four parts of it side by side, as each addition waits for the one before */
static double sums (const double *x, double *y, int64_t n, double acc) {
  int64_t q = n / 4, i = 0;
  double a = 0, b = 0, c = 0, d = 0;
  for (; i < q; i++) {
    y[i] = a += x[i];
    y[q + i] = b += x[q + i];
    y[2 * q + i] = c += x[2 * q + i];
    y[3 * q + i] = d += x[3 * q + i];
  }
  const double before[4] = {acc, acc + a, acc + a + b, acc + a + b + c};
  for (int k = 0; k < 4; k++)
    for (i = k * q; i < (k + 1) * q; i++) y[i] += before[k];
  acc = before[3] + d;
  for (i = 4 * q; i < n; i++) y[i] = acc += x[i];
  return acc;
}

static double f64_step (const scan *s, f64_state *st, double x, double b) {
  double before = st->acc;
  switch (s->kind) {
    case SUM: return st->acc += x;
    case PROD: return st->acc *= x;
    case PROD_BEFORE: st->acc *= x; return before;
    default: break;
  }
  double factor = s->reverse ? st->b : b;       /* in reverse the factor belongs to the element that came before */
  st->b = b;
  return st->acc = factor == 0 ? x : x + factor * before;
}

static int64_t i64_step (const scan *s, int64_t *acc, int64_t x) {
  *acc = (int64_t)(s->kind == SUM ? (uint64_t)*acc + (uint64_t)x : (uint64_t)*acc * (uint64_t)x);
  return *acc;
}

/* `len` values of a line, or one value of each of `len` lines (`step`: the next state) */
static void run (const scan *s, void *state, int step, const void *x, const void *b, void *y, int64_t len) {
  int64_t from = s->reverse && !step ? len - 1 : 0, by = s->reverse && !step ? -1 : 1;
  if (s->work == AMPL_WORK_I64) {
    int64_t *st = state;
    for (int64_t k = 0, i = from; k < len; k++, i += by, st += step)
      ((int64_t *)y)[i] = i64_step(s, st, ((const int64_t *)x)[i]);
    return;
  }
  f64_state *st = state;
  if (s->kind == SUM && !s->reverse && !step) {
    st->acc = sums(x, y, len, st->acc);
    return;
  }
  for (int64_t k = 0, i = from; k < len; k++, i += by, st += step)
    ((double *)y)[i] = f64_step(s, st, ((const double *)x)[i], b ? ((const double *)b)[i] : 0);
}

static void start (const scan *s, void *state, int64_t m) {
  bool one = s->kind == PROD || s->kind == PROD_BEFORE;
  if (s->work == AMPL_WORK_I64)
    for (int64_t j = 0; j < m; j++) ((int64_t *)state)[j] = one;
  else
    for (int64_t j = 0; j < m; j++) ((f64_state *)state)[j] = (f64_state){one, 0};
}

static void line_job (void *ud, int64_t line, int thread) {
  const scan *s = ud;
  double x[BLOCK], b[BLOCK], y[BLOCK];
  f64_state state;
  (void)thread;
  int64_t at[3];
  for (int k = 0; k < 3; k++) at[k] = s->x[k].data ? ampl_cpu_offset(&s->x[k], line) : 0;
  start(s, &state, 1);
  for (int64_t done = 0; done < s->n; done += BLOCK) {
    if (ampl_cpu_stop_at(s->ctx, done, BLOCK)) return;
    int64_t len = s->n - done < BLOCK ? s->n - done : BLOCK, pos = s->reverse ? s->n - done - len : done;
    const void *px = ampl_cpu_load(&s->along[0], s->work, at[0], pos, len, x);
    const void *pb = s->operands == 2 ? ampl_cpu_load(&s->along[1], s->work, at[1], pos, len, b) : NULL;
    void *py = ampl_cpu_target(&s->along[2], s->work, at[2], pos, len, y);
    run(s, &state, 0, px, pb, py, len);
    ampl_cpu_store(&s->along[2], s->work, at[2], pos, len, py);
  }
}

static void tile_job (void *ud, int64_t job, int thread) {
  const scan *s = ud;
  double x[TILE], b[TILE], y[TILE];
  f64_state state[TILE];
  (void)thread;
  int64_t column = job % s->tiles * TILE, line = job / s->tiles * s->m + column;
  int64_t m = s->m - column < TILE ? s->m - column : TILE;
  start(s, state, m);
  for (int64_t k = 0; k < s->n; k++) {
    if (ampl_cpu_stop_at(s->ctx, k * m, m)) return;
    int64_t pos = s->reverse ? s->n - 1 - k : k, at[3];
    for (int i = 0; i < 3; i++) at[i] = s->x[i].data ? pos * s->along[i].stride[0] : 0;
    const void *px = ampl_cpu_load(&s->x[0], s->work, at[0], line, m, x);
    const void *pb = s->operands == 2 ? ampl_cpu_load(&s->x[1], s->work, at[1], line, m, b) : NULL;
    void *py = ampl_cpu_target(&s->x[2], s->work, at[2], line, m, y);
    run(s, state, 1, px, pb, py, m);
    ampl_cpu_store(&s->x[2], s->work, at[2], line, m, py);
  }
}

static ampl_status run_scan (ampl_ctx *ctx, const ampl_args *in, ampl_tensor *y, kind kind, bool reverse) {
  const ampl_tensor *x = in->t[0], *const t[3] = {x, in->nt == 2 ? in->t[1] : NULL, y};
  scan s = {.ctx = ctx, .kind = kind, .reverse = reverse, .operands = in->nt};
  bool tiled = ampl_cpu_lines(3, t, in->p[0].i, s.x, s.along);
  if (x->numel == 0) return AMPL_OK;
  s.work = ampl_dtype_is_float((ampl_dtype)y->dtype) ? AMPL_WORK_F64 : AMPL_WORK_I64;
  s.n = s.along[0].n;
  s.lines = s.x[0].n;
  s.m = s.x[0].shape[s.x[0].nd - 1];
  s.tiles = (s.m + TILE - 1) / TILE;
  int threads = ampl_cpu_threads_for(ctx, 3.0 * (double)x->numel);
  return ampl_cpu_parallel(ctx, threads, tiled ? s.lines / s.m * s.tiles : s.lines, tiled ? tile_job : line_job, &s);
}

static ampl_status cumsum (ampl_ctx *ctx, const ampl_args *in, ampl_tensor **out) {
  return run_scan(ctx, in, out[0], SUM, false);
}
static ampl_status cumsum_reverse (ampl_ctx *ctx, const ampl_args *in, ampl_tensor **out) {
  return run_scan(ctx, in, out[0], SUM, true);
}
static ampl_status cumprod (ampl_ctx *ctx, const ampl_args *in, ampl_tensor **out) {
  return run_scan(ctx, in, out[0], PROD, false);
}
static ampl_status cumprod_exclusive (ampl_ctx *ctx, const ampl_args *in, ampl_tensor **out) {
  return run_scan(ctx, in, out[0], PROD_BEFORE, in->p[1].i);
}
static ampl_status recurrence (ampl_ctx *ctx, const ampl_args *in, ampl_tensor **out) {
  return run_scan(ctx, in, out[0], RECURRENCE, in->p[1].i);
}

const ampl_kernel ampl_cpu_scan_kernels[] = {
    {"cumsum", AMPL_DTYPE_NONE, cumsum},
    {"cumsum_reverse", AMPL_DTYPE_NONE, cumsum_reverse},
    {"cumprod", AMPL_DTYPE_NONE, cumprod},
    {"cumprod_exclusive", AMPL_DTYPE_NONE, cumprod_exclusive},
    {"recurrence", AMPL_DTYPE_NONE, recurrence},
    {NULL, 0, NULL},
};
