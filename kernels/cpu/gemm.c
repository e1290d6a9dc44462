/*
** gemm.c: matrix multiply for f32, f16 and bf16: blocking, packing, threads.
**
** The loops, from outside in:
**   ic  blocks of rows of A that take half of L2, together with
**   jc  blocks of columns (all of them, unless partial sums have to be kept aside), and
**   pc  blocks of k
**   j   one panel of B, kc steps x 2 vectors, two thirds of L1: read in place or packed
**   i   tiles of A, streamed from L2 through the micro-kernel
** A tile of 14 x 32 reads 56 bytes of A in a k step of 14 cycles, a tenth of what L2 delivers.
**
** B is packed a panel at a time, so no packed copy of all of B exists.  A is packed, once per block,
** only to convert it or when its rows would evict each other; the micro-kernel takes A in both
** orientations, so that is a copy of rows, never a transposition.  Of B stored as (n, k) the panels are
** transposed; where that is more work than the product deserves, A is instead, and the tiles of C are
** turned back on their way out.
**
** Every element of C is summed over k in order, in blocks whose size follows from k alone (and the
** machine).  Threads cut m, n and the batch.  So the number of threads does not show in the result.
*/
#include "gemm.h"

#include <string.h>

#include "blocking.h"

AMPL_CPU_EACH_ISA(const ampl_cpu_matrix, ampl_cpu_matrix);

const ampl_cpu_matrix *ampl_cpu_matrix_used (void) { return AMPL_CPU_BEST(ampl_cpu_matrix); }

/* How an operand lies in memory: as rows (its second index side by side), as columns, or neither */
typedef enum order { BY_ROWS, BY_COLUMNS, SCATTERED } order;

static order order_of (int64_t rows, int64_t cols, int64_t row_step, int64_t col_step) {
  if (col_step == 1 || cols == 1) return BY_ROWS;
  return row_step == 1 || rows == 1 ? BY_COLUMNS : SCATTERED;
}

/* What holds for the whole product */
typedef struct plan {
  ampl_cpu_gemm_args g;
  const ampl_cpu_matrix *K;
  order a_order, b_order;
  long a_step, b_step;  /* elements between the rows, or columns, of A and B */
  long a_size, b_size;  /* bytes of an element */
  bool dot;             /* pairs of bf16 through the dot kernels */
  bool turned;          /* A and B were exchanged, C is written transposed */
  bool plain;           /* the micro-kernel can write C itself */
  long pace;            /* elements of k in a kernel step */
  long mr, nr;          /* the largest tile */
  long kc, nk;          /* elements of k in a block, blocks */
  long packed_step;     /* floats between packed rows of A */
  long group;           /* panels of B packed at once, where B is not read in place */
  long rows, cols;      /* of the part of C that is one job */
  long row_jobs, col_jobs, batch0, batch1;
  const float *bias;
  long b_bytes, a_bytes, sums_bytes;  /* the three buffers of a thread */
  char *scratch;
} plan;

/* One step of the loops ic, jc, pc */
typedef struct block {
  long row, rows, col, cols;          /* of C */
  long k, k_len, steps;
  bool first, last;                   /* of the blocks of k */
  tiling tiles;
  bool a_direct, b_direct;            /* read in place (of B: whole vectors only) */
  long group;                         /* panels packed at once */
  const char *a;                      /* element (row, k) of A */
  const char *b;                      /* element (k, col) of B */
  float *b_pack, *a_pack, *sums;
  long sums_step;
} block;

/* ---------------------------------------------------------------- planning */

/* Rows read once per step of k cost too much in place when each lies on its own page, or when they
   collide in L2.  In L1 they may: they are streamed. */
static bool far_apart (long bytes, long rows) {
  return rows > 64 && (bytes >= 4096 || collides(bytes, 2 * rows, 128 << 10));
}

/* X W' with far fewer rows of X than of W: transposing X is less work than transposing W.  Not where
   the rows of W collide in L1, as all of them would be copied then. */
static bool better_turned (const plan *p) {
  const ampl_cpu_gemm_args *g = &p->g;
  if (p->a_order != BY_ROWS || p->b_order != BY_COLUMNS || g->m <= p->K->mr4) return false;
  if (g->b_dtype == AMPL_F32 && collides(4 * g->b_col, p->K->mr, 4096)) return false;
  return 2 * (double)g->k * (g->n - g->m) > 3.0 * g->m * g->n;
}

#define EXCHANGE(type, x, y)                                                                       \
  do {                                                                                             \
    type t_ = (x);                                                                                 \
    (x) = (y), (y) = t_;                                                                           \
  } while (0)

static void turn (ampl_cpu_gemm_args *g) {
  EXCHANGE(const void *, g->a, g->b);
  EXCHANGE(int, g->a_dtype, g->b_dtype);
  EXCHANGE(int64_t, g->m, g->n);
  /* A' has B's columns for rows */
  EXCHANGE(int64_t, g->a_row, g->b_col);
  EXCHANGE(int64_t, g->a_col, g->b_row);
  for (int i = 0; i < 2; i++) EXCHANGE(int64_t, g->a_batch[i], g->b_batch[i]);
}

static void plan_operands (plan *p) {
  ampl_cpu_gemm_args *g = &p->g;
  p->a_order = order_of(g->m, g->k, g->a_row, g->a_col);
  p->b_order = order_of(g->k, g->n, g->b_row, g->b_col);
  if ((p->turned = better_turned(p))) {
    turn(g);
    p->a_order = order_of(g->m, g->k, g->a_row, g->a_col);
    p->b_order = order_of(g->k, g->n, g->b_row, g->b_col);
  }
  p->a_step = p->a_order == BY_COLUMNS ? g->a_col : g->a_row;
  p->b_step = p->b_order == BY_COLUMNS ? g->b_col : g->b_row;
  p->a_size = element_size(g->a_dtype);
  p->b_size = element_size(g->b_dtype);
  p->dot = g->a_dtype == AMPL_BF16 && g->b_dtype == AMPL_BF16 && p->a_order != SCATTERED &&
           p->b_order != SCATTERED && p->K->has_dot && ampl_cpu_bf16_dot();
  p->pace = p->dot ? 2 : 1;
}

/* Tile size and blocks of k: they depend on nothing that threads change.  A panel of B takes two
   thirds of L1, the blocks are of equal size. */
static void plan_blocks (plan *p) {
  const ampl_cpu_gemm_args *g = &p->g;
  const bool low = g->m <= p->K->mr4;
  p->mr = low ? p->K->mr4 : p->K->mr;
  p->nr = (low ? 4 : 2) * p->K->vw;
  const long steps = ceil_div(g->k, p->pace), fit = ampl_cpu_cache(1) * 2 / 3 / (4 * p->nr);
  p->nk = most(1, ceil_div(steps, fit));
  p->kc = most(1, ceil_div(steps, p->nk)) * p->pace;
  p->packed_step = (ceil_div(p->kc / p->pace, 16) | 1) * 16; /* an odd number of cache lines */
  p->plain = g->c_dtype == AMPL_F32 && !p->turned && g->act <= AMPL_CPU_RELU && !g->copy;
  p->group = p->b_order == BY_ROWS && far_apart(p->b_step * p->b_size, p->kc) ? 4 : 1;
}

/* Threads take whole products first, then columns (each packs its own part of B), then rows. */
static void plan_jobs (plan *p) {
  const ampl_cpu_gemm_args *g = &p->g;
  p->batch0 = most(1, g->batch[0]), p->batch1 = most(1, g->batch[1]);
  const long products = p->batch0 * p->batch1, nr = 2 * p->K->vw;
  long threads = 2.0 * g->m * g->n * g->k * products < AMPL_CPU_SERIAL_FLOP ? 1 : most(1, g->threads);
  long tm = 1, tn = 1;
  if (threads > 1 && products < 4 * threads) {
    while (tn * 2 <= threads && g->n >= 2 * nr * tn * 2) tn *= 2;
    tm = least(threads / tn, ceil_div(g->m, p->K->mr));
    if (tn == 1 || threads % tn) tn = least(threads / tm, ceil_div(g->n, nr));
  }
  p->g.threads = (int)threads;
  p->rows = ceil_div(g->m, tm);
  p->cols = tn == 1 ? g->n : round_up(ceil_div(g->n, tn), nr);
  p->row_jobs = ceil_div(g->m, p->rows);
  p->col_jobs = ceil_div(g->n, p->cols);
}

/* Rows of a block of A: half of L2 */
static long block_rows (const plan *p, long rows) {
  const long fit = most(1, ampl_cpu_cache(2) / 2 / (4 * p->kc / p->pace) / p->mr) * p->mr;
  return ceil_div(rows, ceil_div(rows, fit));
}

/* Columns of a block: partial sums that wait for the next block of k take a quarter of L2 */
static long block_cols (const plan *p, long mc) {
  if (p->plain || p->nk == 1) return p->cols;
  return least(round_up(p->cols, p->nr), most(p->nr, ampl_cpu_cache(2) / 4 / (4 * mc) / p->nr * p->nr));
}

static long sums_width (const plan *p, long nc) { return p->nk == 1 ? p->nr : round_up(nc, p->nr); }

static void plan_scratch (plan *p) {
  const long mc = block_rows(p, p->rows);
  p->b_bytes = round_up(4 * p->group * p->nr * (p->kc / p->pace), 64);
  p->a_bytes = 4 * (mc + p->mr) * p->packed_step;
  p->sums_bytes = p->plain ? 0
                           : round_up(4 * (p->nk == 1 ? AMPL_CPU_ROWS_MAX : mc) *
                                          sums_width(p, block_cols(p, mc)), 64);
}

/* ---------------------------------------------------------------- packing */

/* Fetches part i of n of so many rows of `bytes` into L2 */
static inline void prefetch_rows (const char *p, long step, long rows, long bytes, long i, long n) {
  for (long r = rows * i / n, end = rows * (i + 1) / n; r < end; r++)
    for (long x = 0; x < bytes; x += 64) __builtin_prefetch(p + r * step + x, 0, 2);
}

/* Columns [j, j+w) of the block as one panel at dst */
static void pack_panel (const plan *p, const block *b, float *dst, long j, long w) {
  const ampl_cpu_matrix *K = p->K;
  const int dtype = p->g.b_dtype;
  const char *src = b->b + j * p->g.b_col * p->b_size;
  if (p->b_order == SCATTERED) {
    K->gather[dtype](dst, p->nr, src, p->g.b_row, p->g.b_col, b->k_len, w, p->nr);
  } else if (p->b_order == BY_ROWS) {
    if (p->dot) K->pair((uint32_t *)dst, p->nr, (const void *)src, p->b_step, b->k_len, w, p->nr);
    else K->copy[dtype](dst, p->nr, src, p->b_step, b->k_len, w, p->nr);
  } else {
    if (p->dot) K->pair_transpose((uint32_t *)dst, p->nr, (const void *)src, p->b_step, w, b->k_len, p->nr);
    else K->transpose[dtype](dst, p->nr, src, p->b_step, w, b->k_len, p->nr);
  }
}

/* Rows that are far apart are visited once for several panels: a few rows at a time, so that their
   pages stay in the TLB */
static void pack_group (const plan *p, const block *b, long j) {
  const long panel = p->nr * b->steps, few = 16;
  for (long k = 0; k < b->k_len; k += few) {
    block part = *b;
    part.b += k * p->g.b_row * p->b_size;
    part.k_len = least(few, b->k_len - k);
    for (long q = 0; q < b->group && j + q * p->nr < b->cols; q++) {
      float *dst = b->b_pack + q * panel + k / p->pace * p->nr;
      pack_panel(p, &part, dst, j + q * p->nr, least(p->nr, b->cols - j - q * p->nr));
    }
  }
}

/* The panel of columns [j, j+w), packed if it has to be */
static void take_panel (const plan *p, const block *b, long j, long w, ampl_cpu_tile *t) {
  if (b->b_direct && w % p->K->vw == 0) {
    t->b = b->b + j * p->b_size;
    t->b_step = p->b_step * p->b_size;
    return;
  }
  const long member = j / p->nr % b->group;
  if (b->group == 1) pack_panel(p, b, b->b_pack, j, w);
  else if (member == 0) pack_group(p, b, j);
  t->b = (const char *)(b->b_pack + member * p->nr * b->steps);
  t->b_step = 4 * p->nr;
}

/* Packs a tile of A: h rows from row r of the block on */
static void pack_a (const plan *p, const block *b, const char *src, float *dst, long h) {
  const ampl_cpu_matrix *K = p->K;
  const int dtype = p->g.a_dtype;
  const long step = p->packed_step;
  if (p->a_order == SCATTERED) {
    K->gather[dtype](dst, step, src, p->g.a_row, p->g.a_col, h, b->k_len, b->k_len);
  } else if (p->a_order == BY_COLUMNS) {
    if (p->dot) K->pair((uint32_t *)dst, h, (const void *)src, p->a_step, b->k_len, h, h);
    else K->copy[dtype](dst, h, src, p->a_step, b->k_len, h, h);
  } else if (p->dot) {
    for (long i = 0; i < h; i++) { /* already pairs; the last one may lack its second half */
      dst[i * step + b->steps - 1] = 0;
      memcpy(dst + i * step, src + i * p->a_step * 2, 2 * (size_t)b->k_len);
    }
  } else {
    K->copy[dtype](dst, step, src, p->a_step, h, b->k_len, b->k_len);
  }
}

/* Tile number i of A, of h rows from row r of the block on; packed when the first panel comes by */
static void take_a (const plan *p, const block *b, long i, long r, long h, bool first_panel, ampl_cpu_tile *t) {
  const char *src = b->a + r * p->g.a_row * p->a_size;
  const bool columns = p->a_order == BY_COLUMNS;
  if (b->a_direct) {
    t->a = src;
    t->a_step = p->a_step * p->a_size;
    return;
  }
  float *dst = b->a_pack + r * (columns ? b->steps : p->packed_step);
  t->a = (const char *)dst;
  t->a_step = 4 * (columns ? h : p->packed_step);
  if (!first_panel) return;
  pack_a(p, b, src, dst, h);
  if (i + 1 < b->tiles.n && p->a_order == BY_ROWS) /* the next one comes while this one is used */
    prefetch_rows(src + h * p->a_step * p->a_size, p->a_step * p->a_size, h, b->k_len * p->a_size, 0, 1);
}

/* ---------------------------------------------------------------- one block */

/* Sends a finished tile, h rows from r and w columns from j of the block, to C and to the copy */
static void send (const plan *p, const block *b, const float *tile, long r, long h, long j, long w) {
  const ampl_cpu_gemm_args *g = &p->g;
  const bool turned = p->turned;
  const long y = turned ? b->col + j : b->row + r, x = turned ? b->row + r : b->col + j;
  ampl_cpu_out o = {
    .tile = tile, .ldt = b->sums_step, .transposed = turned,
    .rows = (int)(turned ? w : h), .cols = (int)(turned ? h : w),
    .c = (char *)g->c + (y * g->c_row + x) * element_size(g->c_dtype),
    .dtype = g->c_dtype, .ldc = g->c_row, .acc = g->acc, .act = g->act,
    .bias = p->bias ? p->bias + x : NULL,
    .copy_dtype = g->copy_dtype, .ldcopy = g->copy_row, .copy_first = g->copy_first,
  };
  if (g->copy) o.copy = (char *)g->copy + (y * g->copy_row + x) * element_size(g->copy_dtype);
  p->K->out(&o);
}

static void one_tile (const plan *p, const block *b, ampl_cpu_tile *t, ampl_cpu_tile_fn kernel, long r, long h,
                      long j) {
  const ampl_cpu_gemm_args *g = &p->g;
  if (p->plain) {
    const long col = b->col + j;
    t->c = (float *)g->c + (b->row + r) * g->c_row + col;
    t->ldc = g->c_row;
    t->acc = g->acc || !b->first;
    t->bias = b->last && p->bias ? p->bias + col : NULL;
    t->relu = b->last && g->act == AMPL_CPU_RELU;
    kernel(t);
    return;
  }
  t->c = p->nk == 1 ? b->sums : b->sums + r * b->sums_step + j;
  t->ldc = b->sums_step;
  t->acc = !b->first;
  kernel(t);
  if (b->last) send(p, b, t->c, r, h, j, t->n);
}

static void run_block (const plan *p, const block *b) {
  const int layout = p->a_order == BY_COLUMNS ? AMPL_CPU_COLS : AMPL_CPU_ROWS;
  for (long j = 0; j < b->cols; j += p->nr) {
    const long w = least(p->nr, b->cols - j);
    if (j > 0 && ampl_cpu_stop(p->g.ctx)) return;
    ampl_cpu_tile t = {.runs = 1, .run_len = b->steps, .n = (int)w};
    take_panel(p, b, j, w, &t);
    const ampl_cpu_tile_fn *kernel = p->K->tile[p->dot][layout][vectors_for(p->K, w)];
    const bool fetch_next = b->group == 1 && p->b_order != SCATTERED && j + 2 * p->nr <= b->cols;
    const bool by_rows = p->b_order == BY_ROWS;
    const char *next = b->b + (j + p->nr) * p->g.b_col * p->b_size;
    FOR_TILES(b->tiles, i, r, h) {
      take_a(p, b, i, r, h, j == 0, &t);
      if (fetch_next)
        prefetch_rows(next, p->b_step * p->b_size, by_rows ? b->k_len : w, (by_rows ? w : b->k_len) * p->b_size,
                      i, b->tiles.n);
      one_tile(p, b, &t, kernel[h], r, h, j);
    }
  }
}

/* In place: of the kernel's type already, and not evicted while a tile is read.  A that is read only
   once need not stay. */
static bool a_in_place (const plan *p, const block *b) {
  if (p->a_order == SCATTERED) return false;
  if (p->dot ? p->a_order == BY_COLUMNS || b->k_len % 2 : p->g.a_dtype != AMPL_F32) return false;
  const long bytes = p->a_step * p->a_size;
  if (b->cols <= p->nr) return true;
  return !(p->a_order == BY_COLUMNS ? far_apart(bytes, b->steps) : collides(bytes, p->mr, 4096));
}

static bool b_in_place (const plan *p, const block *b) {
  if (p->dot || p->g.b_dtype != AMPL_F32 || p->b_order != BY_ROWS) return false;
  return b->tiles.n <= 2 || !far_apart(4 * p->b_step, b->steps);
}

/* Rows [m0, m1) x columns [n0, n1) of one product */
static void run_part (const plan *p, long m0, long m1, long n0, long n1, char *scratch) {
  const ampl_cpu_gemm_args *g = &p->g;
  const long mc = block_rows(p, m1 - m0), nc = block_cols(p, mc);
  for (long row = m0; row < m1; row += mc)
    for (long col = n0; col < n1; col += nc)
      for (long q = 0; q < p->nk; q++) {
        if (q + col + row > m0 + n0 && ampl_cpu_stop(g->ctx)) return;
        block b = {.row = row, .rows = least(mc, m1 - row), .col = col, .cols = least(nc, n1 - col),
                   .k = q * p->kc, .first = q == 0, .last = q == p->nk - 1};
        b.k_len = least(p->kc, g->k - b.k);
        b.steps = ceil_div(b.k_len, p->pace);
        b.tiles = tiling_of(b.rows, p->mr);
        b.a = (const char *)g->a + (row * g->a_row + b.k * g->a_col) * p->a_size;
        b.b = (const char *)g->b + (b.k * g->b_row + col * g->b_col) * p->b_size;
        b.a_direct = a_in_place(p, &b);
        b.b_direct = b_in_place(p, &b);
        b.group = b.b_direct ? 1 : p->group;
        b.b_pack = (float *)scratch;
        b.a_pack = (float *)(scratch + p->b_bytes);
        b.sums = (float *)(scratch + p->b_bytes + p->a_bytes);
        b.sums_step = sums_width(p, nc);
        run_block(p, &b);
      }
}

/* ---------------------------------------------------------------- jobs */

static void run_job (void *ud, int64_t job, int thread) {
  const plan *p = ud;
  const long parts = p->row_jobs * p->col_jobs, product = job / parts;
  const long x = product / p->batch1, y = product % p->batch1;
  const long m0 = job % parts / p->col_jobs * p->rows, n0 = job % p->col_jobs * p->cols;
  plan one = *p;
  ampl_cpu_gemm_args *g = &one.g;
  g->a = (const char *)g->a + (x * g->a_batch[0] + y * g->a_batch[1]) * p->a_size;
  g->b = (const char *)g->b + (x * g->b_batch[0] + y * g->b_batch[1]) * p->b_size;
  g->c = (char *)g->c + (x * g->c_batch[0] + y * g->c_batch[1]) * element_size(g->c_dtype);
  if (g->copy)
    g->copy = (char *)g->copy + (x * g->copy_batch[0] + y * g->copy_batch[1]) * element_size(g->copy_dtype);
  run_part(&one, m0, least(g->m, m0 + p->rows), n0, least(g->n, n0 + p->cols),
           p->scratch + thread * (p->b_bytes + p->a_bytes + p->sums_bytes));
}

ampl_status ampl_cpu_gemm (const ampl_cpu_gemm_args *g) {
  if (g->m <= 0 || g->n <= 0) return AMPL_OK;
  if (g->c_dtype == AMPL_F64) return ampl_cpu_gemm_f64(g);
  if (!is_small_float(g->c_dtype)) return ampl_cpu_gemm_int(g);
  plan p = {.g = *g, .K = ampl_cpu_matrix_used()};
  plan_operands(&p);
  plan_blocks(&p);
  plan_jobs(&p);
  plan_scratch(&p);
  const bool convert = g->bias && g->bias_dtype != AMPL_F32;
  const long bias_bytes = convert ? round_up(4 * g->n, 64) : 0;
  const size_t bytes = (size_t)(bias_bytes + p.g.threads * (p.b_bytes + p.a_bytes + p.sums_bytes));
  char *scratch = ampl_cpu_scratch_get(g->ctx, bytes);
  if (!scratch) return AMPL_ENOMEM;
  p.scratch = scratch + bias_bytes;
  p.bias = convert ? (const float *)scratch : g->bias;
  if (convert) p.K->copy[g->bias_dtype]((float *)scratch, g->n, g->bias, g->n, 1, g->n, g->n);
  const ampl_status s =
    ampl_cpu_parallel(g->ctx, p.g.threads, p.batch0 * p.batch1 * p.row_jobs * p.col_jobs, run_job, &p);
  ampl_cpu_scratch_put(g->ctx, scratch, bytes);
  return s;
}

void ampl_cpu_panels_product (const ampl_cpu_matrix *K, long m, long n, long k, const float *a, long lda,
                              const float *panels, float *c, long ldc, bool acc) {
  const long nr = 2 * K->vw;
  const tiling tiles = tiling_of(m, K->mr);
  ampl_cpu_tile t = {.a_step = 4 * lda, .runs = 1, .run_len = k, .b_step = 4 * nr, .ldc = ldc, .acc = acc};
  for (long j = 0; j < n; j += nr) {
    t.n = (int)least(nr, n - j);
    t.b = (const char *)(panels + j * k);
    const ampl_cpu_tile_fn *kernel = K->tile[0][AMPL_CPU_ROWS][vectors_for(K, t.n)];
    FOR_TILES(tiles, i, r, h) {
      t.a = (const char *)(a + r * lda);
      t.c = c + r * ldc + j;
      kernel[h](&t);
    }
  }
}
