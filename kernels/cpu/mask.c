/* mask.c: the elements a mask picks, in row-major order. */
#include "move.h"
#include "op.h"
#include "stream.h"

#include <string.h>

enum { BLOCK = 256 };                   /* elements looked at at a time */

/* n elements of a stream from pos on, all in one run of its last dimension: in place, or copied to buf. */
static const void *some(const ampl_cpu_stream *s, int64_t pos, int64_t n, size_t size, void *buf) {
  const char *from = s->data + ampl_cpu_offset(s, pos) * (int64_t)size;
  int64_t step = s->stride[s->nd - 1];
  if (step == 1) return from;
  ampl_cpu_line(size, buf, 1, from, step, n);
  return buf;
}

/* How far from pos on a run goes, at most BLOCK. */
static int64_t run_from(const ampl_cpu_stream *s, int64_t pos) {
  int64_t length = s->shape[s->nd - 1], left = length - pos % length;
  return left < BLOCK ? left : BLOCK;
}

static int64_t count_true(ampl_ctx *ctx, const ampl_cpu_stream *mask) {
  uint8_t buf[BLOCK];
  int64_t found = 0;
  for (int64_t i = 0, n; i < mask->n; i += n) {
    n = run_from(mask, i);
    if (ampl_cpu_stop_at(ctx, i, n)) return 0;
    const uint8_t *m = some(mask, i, n, 1, buf);
    for (int64_t k = 0; k < n; k++) found += m[k] != 0;
  }
  return found;
}

/* The places of the true ones among n; how many. */
static int64_t places(const uint8_t *m, int64_t n, uint16_t *place) {
  int64_t found = 0;
  for (int64_t k = 0; k < n; k++) {     /* no branch: masks are hard to foretell */
    place[found] = (uint16_t)k;
    found += m[k] != 0;
  }
  return found;
}

#define BY_SIZE(T)                                                                                                     \
  static void gather_##T(T *y, const T *x, const uint16_t *place, int64_t n) {                                         \
    for (int64_t k = 0; k < n; k++) y[k] = x[place[k]];                                                                \
  }                                                                                                                    \
  static void scatter_##T(T *y, const T *x, int64_t step, const uint16_t *place, int64_t n) {                          \
    for (int64_t k = 0; k < n; k++) y[place[k]] = x[k * step];                                                         \
  }
BY_SIZE(uint8_t)
BY_SIZE(uint16_t)
BY_SIZE(uint32_t)
BY_SIZE(uint64_t)
#define CALL(size, name, ...)                                                                                          \
  ((size) == 1   ? name##_uint8_t(__VA_ARGS__)                                                                         \
   : (size) == 2 ? name##_uint16_t(__VA_ARGS__)                                                                        \
   : (size) == 4 ? name##_uint32_t(__VA_ARGS__)                                                                        \
                 : name##_uint64_t(__VA_ARGS__))

static ampl_status masked_select(ampl_ctx *ctx, const ampl_args *in, ampl_tensor **out) {
  const ampl_tensor *both[2] = {in->t[1], in->t[0]};
  ampl_cpu_stream s[2];
  ampl_meta m;
  uint8_t mask[BLOCK];
  uint16_t place[BLOCK];
  uint64_t buf[BLOCK];
  size_t size = ampl_dtype_size((ampl_dtype)both[1]->dtype);
  AMPL_TRY(ampl_meta_shape(ctx, &m, both[1]->ndim, both[1]->shape));
  AMPL_TRY(ampl_meta_broadcast(ctx, &m, both[0]->ndim, both[0]->shape));
  ampl_cpu_streams(2, both, m.ndim, m.shape, false, s);
  int64_t total = count_true(ctx, &s[0]);
  AMPL_TRY(ampl_cpu_poll(ctx));
  AMPL_TRY(ampl_cpu_new(ctx, both[1], both[1]->dtype, 1, &total, &out[0]));
  char *y = out[0]->data;
  for (int64_t i = 0, n; i < s[0].n; i += n) {
    n = run_from(&s[0], i);
    if (ampl_cpu_stop_at(ctx, i, n)) return ampl_cpu_poll(ctx);
    int64_t found = places(some(&s[0], i, n, 1, mask), n, place);
    if (found == 0) continue;
    const void *x = some(&s[1], i, n, size, buf);
    CALL(size, gather, (void *)y, x, place, found);
    y += found * (int64_t)size;
  }
  return AMPL_OK;
}

static ampl_status masked_select_backward(ampl_ctx *ctx, const ampl_args *in, ampl_tensor **out) {
  const ampl_tensor *dy = in->t[0], *mask = in->t[1];
  ampl_tensor *dx = out[0];
  ampl_cpu_stream s;
  uint8_t buf[BLOCK];
  uint16_t place[BLOCK];
  int64_t used = 0, size = (int64_t)ampl_dtype_size((ampl_dtype)dx->dtype);
  ampl_cpu_streams(1, &mask, dx->ndim, dx->shape, false, &s);
  AMPL_TRY(ampl_cpu_zero(ctx, dx->data, (size_t)(dx->numel * size)));
  for (int64_t i = 0, n; i < s.n; i += n) {
    n = run_from(&s, i);
    int64_t found = places(some(&s, i, n, 1, buf), n, place);
    if (ampl_cpu_stop_at(ctx, i, n)) return ampl_cpu_poll(ctx);
    if (used + found > dy->numel)
      return ampl_error(ctx, AMPL_ESTATE, "the mask has more true elements than when it was used");
    CALL(size, scatter, (void *)ampl_cpu_at(dx, i), (const void *)ampl_cpu_at(dy, used * dy->strides[0]),
         dy->strides[0], place, found);
    used += found;
  }
  return AMPL_OK;
}

/* Whether each of n elements is not 0. */
static void flags(const ampl_tensor *x, const char *data, int64_t step, int64_t n, uint8_t *flag) {
  union { float f[BLOCK]; double d[BLOCK]; int64_t i[BLOCK]; } v;
  ampl_cpu_work w = ampl_cpu_work_of(x->dtype);
  ampl_cpu_widen(w, &v, x->dtype, data, step, n);
  if (w == AMPL_WORK_F32) for (int64_t i = 0; i < n; i++) flag[i] = v.f[i] != 0;
  else if (w == AMPL_WORK_F64) for (int64_t i = 0; i < n; i++) flag[i] = v.d[i] != 0;
  else for (int64_t i = 0; i < n; i++) flag[i] = v.i[i] != 0;
}

/* The positions of the flagged ones among n of row r of x; rows are x without its last dimension. */
static int64_t *write_positions(const ampl_tensor *x, int64_t r, int64_t first, const uint8_t *flag, int64_t n,
                                int64_t base, int64_t *p) {
  uint16_t place[BLOCK];
  int64_t at[AMPL_RANK_MAX], found = places(flag, n, place);
  for (int d = x->ndim - 2; d >= 0; d--) {
    at[d] = r % x->shape[d] + base;
    r /= x->shape[d];
  }
  for (int64_t k = 0; k < found; k++) {
    for (int d = 0; d < x->ndim - 1; d++) *p++ = at[d];
    *p++ = first + place[k] + base;
  }
  return p;
}

static ampl_status nonzero(ampl_ctx *ctx, const ampl_args *in, ampl_tensor **out) {
  const ampl_tensor *x = in->t[0];
  ampl_cpu_stream s;
  size_t bytes = (size_t)x->numel + 1, size = ampl_dtype_size((ampl_dtype)x->dtype);
  uint8_t *flag = ampl_cpu_scratch_get(ctx, bytes);
  int64_t total = 0, row = x->ndim > 0 ? x->shape[x->ndim - 1] : 1;
  if (!flag) return ampl_error(ctx, AMPL_ENOMEM, "no memory for %zu bytes of flags", bytes);
  ampl_cpu_streams(1, &x, x->ndim, x->shape, false, &s);
  for (int64_t i = 0, n; i < x->numel; i += n) {
    n = run_from(&s, i);
    if (ampl_cpu_stop_at(ctx, i, n)) break;
    flags(x, s.data + ampl_cpu_offset(&s, i) * (int64_t)size, s.stride[s.nd - 1], n, flag + i);
    for (int64_t k = 0; k < n; k++) total += flag[i + k];
  }
  ampl_status status = ampl_cpu_poll(ctx);
  if (status == AMPL_OK) status = ampl_cpu_new(ctx, x, AMPL_I64, 2, (int64_t[]){total, x->ndim}, &out[0]);
  int64_t *p = status == AMPL_OK && x->ndim > 0 ? out[0]->data : NULL;
  for (int64_t i = 0, n; p && i < x->numel; i += n) {
    n = row - i % row < BLOCK ? row - i % row : BLOCK;
    if (ampl_cpu_stop_at(ctx, i, n)) break;
    p = write_positions(x, i / row, i % row, flag + i, n, ampl_index_base(ctx), p);
  }
  ampl_cpu_scratch_put(ctx, flag, bytes);
  return status == AMPL_OK ? ampl_cpu_poll(ctx) : status;
}

const ampl_kernel ampl_cpu_mask_kernels[] = {{"masked_select", AMPL_DTYPE_NONE, masked_select},
                                             {"masked_select_backward", AMPL_DTYPE_NONE, masked_select_backward},
                                             {"nonzero", AMPL_DTYPE_NONE, nonzero},
                                             {NULL, 0, NULL}};
