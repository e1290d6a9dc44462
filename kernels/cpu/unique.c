/* unique.c: the different values of a tensor, or its different slices. */
#include "move.h"
#include "op.h"
#include "sort.h"

#include <string.h>

/* n things in order, which of them begin a new value, and how many values there are. */
typedef struct found {
  int64_t  n, values, *order;
  uint8_t *first;
} found;

/* Equal keys are equal values, but a NaN equals nothing. */
static bool same_key(uint64_t a, uint64_t b, bool is_float) { return a == b && !(is_float && a == UINT64_MAX); }

/* Positions, counts and their places in the outputs. */
static ampl_status tell(ampl_ctx *ctx, const ampl_args *in, const found *f, int ndim, const int64_t *shape,
                        ampl_tensor **out) {
  const ampl_tensor *x = in->t[0];
  int64_t base = ampl_index_base(ctx), *inverse = NULL, *counts = NULL, value = -1;
  if (in->p[1].i) {
    AMPL_TRY(ampl_cpu_new(ctx, x, AMPL_I64, ndim, shape, &out[1]));
    inverse = out[1]->data;
  }
  if (in->p[2].i) {
    AMPL_TRY(ampl_cpu_new(ctx, x, AMPL_I64, 1, &f->values, &out[2]));
    counts = out[2]->data;
    AMPL_TRY(ampl_cpu_zero(ctx, counts, (size_t)f->values * sizeof *counts));
  }
  for (int64_t i = 0; i < f->n && !ampl_cpu_stop_at(ctx, i, 1); i++) {
    value += f->first[i];
    if (inverse) inverse[f->order[i]] = value + base;
    if (counts) counts[value]++;
  }
  return ampl_cpu_poll(ctx);
}

/* ------------------------------------------------------------------------------------------------ elements -------- */

static ampl_status unique_elements(ampl_ctx *ctx, const ampl_args *in, ampl_tensor **out, char *scratch,
                                   uint64_t *key) {
  const ampl_tensor *x = in->t[0];
  int64_t n = x->numel, size = (int64_t)ampl_dtype_size((ampl_dtype)x->dtype);
  bool is_float = ampl_is_float(x);
  size_t room = ampl_cpu_sort_room(n);
  found f = {.n = n, .order = (int64_t *)(scratch + room), .first = (uint8_t *)(scratch + room + n * 16)};
  char *flat = scratch + room + n * 8;          /* elements of at most 8 bytes */
  int64_t dense[AMPL_RANK_MAX], step = 1;
  for (int d = x->ndim - 1; d >= 0; d--) dense[d] = step, step *= x->shape[d];
  AMPL_TRY(ampl_cpu_move(ctx, (size_t)size, x->ndim, x->shape, flat, dense, x->data, x->strides));
  if (!ampl_cpu_sort(ctx, x->dtype, flat, 1, n, false, f.order, scratch)) return ampl_cpu_poll(ctx);
  ampl_cpu_sort_keys(x->dtype, flat, 1, n, key);
  for (int64_t i = 0; i < n; i++) {
    if (ampl_cpu_stop_at(ctx, i, 1)) return ampl_cpu_poll(ctx);
    f.first[i] = i == 0 || !same_key(key[f.order[i]], key[f.order[i - 1]], is_float);
    f.values += f.first[i];
  }
  AMPL_TRY(ampl_cpu_new(ctx, x, x->dtype, 1, &f.values, &out[0]));
  char *y = out[0]->data;
  for (int64_t i = 0; i < n && !ampl_cpu_stop_at(ctx, i, 1); i++) {
    if (!f.first[i]) continue;
    memcpy(y, flat + f.order[i] * size, (size_t)size);
    y += size;
  }
  return tell(ctx, in, &f, x->ndim, x->shape, out);
}

static ampl_status elements(ampl_ctx *ctx, const ampl_args *in, ampl_tensor **out) {
  const ampl_tensor *x = in->t[0];
  int64_t n = x->numel;
  size_t work = ampl_cpu_sort_room(n) + (size_t)n * 17, keys = (size_t)n * 8 + 8;
  char *scratch = ampl_cpu_scratch_get(ctx, work);
  uint64_t *key = ampl_cpu_scratch_get(ctx, keys);
  ampl_status status = scratch && key ? unique_elements(ctx, in, out, scratch, key)
                                      : ampl_error(ctx, AMPL_ENOMEM, "no memory for %zu bytes of keys", work + keys);
  if (key) ampl_cpu_scratch_put(ctx, key, keys);
  if (scratch) ampl_cpu_scratch_put(ctx, scratch, work);
  return status;
}

/* ------------------------------------------------------------------------------------------------ slices ---------- */

static int compare_rows(const uint64_t *a, const uint64_t *b, int64_t m) {
  for (int64_t j = 0; j < m; j++)
    if (a[j] != b[j]) return a[j] < b[j] ? -1 : 1;
  return 0;
}

/* Sorts row numbers by merging ever longer runs; equal rows keep their order. */
static ampl_status sort_rows(ampl_ctx *ctx, const uint64_t *key, int64_t n, int64_t m, int64_t *order, int64_t *room) {
  int64_t *a = order, *b = room;
  for (int64_t i = 0; i < n; i++) a[i] = i;
  for (int64_t run = 1; run < n; run *= 2) {
    for (int64_t from = 0; from < n; from += 2 * run) {
      int64_t middle = from + run < n ? from + run : n, end = from + 2 * run < n ? from + 2 * run : n;
      for (int64_t i = from, j = middle, k = from; k < end; k++) {
        if (ampl_cpu_stop_at(ctx, k * m, m)) return ampl_cpu_poll(ctx);
        bool left = i < middle && (j >= end || compare_rows(key + a[i] * m, key + a[j] * m, m) <= 0);
        b[k] = left ? a[i++] : a[j++];
      }
    }
    int64_t *t = a;
    a = b, b = t;
  }
  if (a != order) memcpy(order, a, (size_t)n * sizeof *order);
  return AMPL_OK;
}

static bool same_row(const uint64_t *a, const uint64_t *b, int64_t m, bool is_float) {
  for (int64_t j = 0; j < m; j++)
    if (!same_key(a[j], b[j], is_float)) return false;
  return true;
}

static ampl_status unique_slices(ampl_ctx *ctx, const ampl_args *in, ampl_tensor **out, uint64_t *key, int64_t m) {
  const ampl_tensor *x = in->t[0];
  int64_t d = in->p[3].i, n = x->shape[d], shape[AMPL_RANK_MAX], dense[AMPL_RANK_MAX];
  int64_t *order = (int64_t *)(key + n * m), *kept = order + n, count = 0;
  found f = {.n = n, .order = order, .first = (uint8_t *)(kept + n)};
  ampl_cpu_stream s;
  int nd = 0;
  for (int k = 0; k < x->ndim; k++)
    if (k != d) shape[nd] = x->shape[k], dense[nd++] = x->strides[k];
  ampl_cpu_streams_from(1, (const int64_t *const[]){dense}, nd, shape, false, &s);
  for (int64_t r = 0; r < n; r++)
    for (int64_t j = 0, run = s.shape[s.nd - 1]; j < m; j += run) {
      if (ampl_cpu_stop_at(ctx, r * m + j, run)) return ampl_cpu_poll(ctx);
      ampl_cpu_sort_keys(x->dtype, ampl_cpu_at(x, r * x->strides[d] + ampl_cpu_offset(&s, j)), s.stride[s.nd - 1], run,
                         key + r * m + j);
    }
  AMPL_TRY(sort_rows(ctx, key, n, m, order, kept));
  for (int64_t i = 0; i < n; i++) {
    if (ampl_cpu_stop_at(ctx, i * m, m)) return ampl_cpu_poll(ctx);
    f.first[i] = i == 0 || !same_row(key + order[i] * m, key + order[i - 1] * m, m, ampl_is_float(x));
    f.values += f.first[i];
    if (f.first[i]) kept[count++] = order[i];
  }
  memcpy(shape, x->shape, sizeof shape);
  shape[d] = f.values;
  AMPL_TRY(ampl_cpu_new(ctx, x, x->dtype, x->ndim, shape, &out[0]));
  ampl_cpu_axis axis[AMPL_RANK_MAX];
  for (int k = 0; k < x->ndim; k++) axis[k] = (ampl_cpu_axis){shape[k], x->strides[k], k == d ? kept : NULL};
  AMPL_TRY(
      ampl_cpu_pick(ctx, ampl_dtype_size((ampl_dtype)x->dtype), x->ndim, axis, out[0]->data, x->data, NULL));
  return tell(ctx, in, &f, 1, &n, out);
}

static ampl_status unique(ampl_ctx *ctx, const ampl_args *in, ampl_tensor **out) {
  const ampl_tensor *x = in->t[0];
  int64_t d = in->p[3].i;
  if (d == AMPL_ABSENT || x->ndim == 0) return elements(ctx, in, out);
  int64_t n = x->shape[d], m = 1;
  for (int k = 0; k < x->ndim; k++) m *= k == d ? 1 : x->shape[k];
  size_t bytes = (size_t)(n * m + 2 * n) * 8 + (size_t)n + 8;
  uint64_t *key = ampl_cpu_scratch_get(ctx, bytes);
  if (!key) return ampl_error(ctx, AMPL_ENOMEM, "no memory for %zu bytes of keys", bytes);
  ampl_status status = unique_slices(ctx, in, out, key, m);
  ampl_cpu_scratch_put(ctx, key, bytes);
  return status;
}

const ampl_kernel ampl_cpu_unique_kernels[] = {{"unique", AMPL_DTYPE_NONE, unique}, {NULL, 0, NULL}};
