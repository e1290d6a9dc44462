/* flip.c: dimensions turned around or moved on. */
#include "move.h"

static ampl_status flip(ampl_ctx *ctx, const ampl_args *in, ampl_tensor **out) {
  const ampl_tensor *x = in->t[0];
  ampl_ints dims = in->p[0].l;
  ampl_cpu_axis axis[AMPL_RANK_MAX];
  int64_t first = 0;
  if (x->numel == 0) return AMPL_OK;
  for (int d = 0; d < x->ndim; d++) axis[d] = (ampl_cpu_axis){x->shape[d], x->strides[d], NULL};
  for (int k = 0; k < dims.n && x->ndim > 0; k++) {
    ampl_cpu_axis *a = &axis[dims.v[k]];
    first += (a->n - 1) * a->stride;
    a->stride = -a->stride;
  }
  return ampl_cpu_pick(ctx, ampl_dtype_size((ampl_dtype)x->dtype), x->ndim, axis, out[0]->data, ampl_cpu_at(x, first),
                       NULL);
}

/* map[i] = where position i of a dimension of size n comes from. */
static void roll_map(int64_t n, int64_t shift, int64_t *map) {
  int64_t from = (n - shift % n) % n;
  for (int64_t i = 0; i < n; i++, from = from + 1 == n ? 0 : from + 1) map[i] = from;
}

static ampl_status roll(ampl_ctx *ctx, const ampl_args *in, ampl_tensor **out) {
  const ampl_tensor *x = in->t[0];      /* row-major */
  ampl_ints shifts = in->p[0].l, dims = in->p[1].l;
  bool flat = dims.n == 0 || x->ndim == 0;
  int nd = flat ? 1 : x->ndim;
  ampl_cpu_axis axis[AMPL_RANK_MAX];
  size_t bytes = 0;
  if (x->numel == 0) return AMPL_OK;
  for (int d = 0; d < nd; d++)
    axis[d] = flat ? (ampl_cpu_axis){x->numel, 1, NULL} : (ampl_cpu_axis){x->shape[d], x->strides[d], NULL};
  int64_t shift[AMPL_RANK_MAX] = {0};           /* of a dimension named several times, the sum */
  for (int k = 0; k < shifts.n; k++) {
    const int d = flat ? 0 : (int)dims.v[k];
    shift[d] = (shift[d] + shifts.v[k] % axis[d].n) % axis[d].n;
  }
  for (int d = 0; d < nd; d++)
    if (shift[d]) bytes += (size_t)axis[d].n * sizeof(int64_t);
  int64_t *maps = ampl_cpu_scratch_get(ctx, bytes), *map = maps;
  if (!maps) return ampl_error(ctx, AMPL_ENOMEM, "no memory for %zu bytes of positions", bytes);
  for (int d = 0; d < nd; d++) {
    if (!shift[d]) continue;
    roll_map(axis[d].n, shift[d], map);
    axis[d].map = map;
    map += axis[d].n;
  }
  const ampl_status s =
      ampl_cpu_pick(ctx, ampl_dtype_size((ampl_dtype)x->dtype), nd, axis, out[0]->data, x->data, NULL);
  ampl_cpu_scratch_put(ctx, maps, bytes);
  return s;
}

const ampl_kernel ampl_cpu_flip_kernels[] = {
    {"flip", AMPL_DTYPE_NONE, flip}, {"roll", AMPL_DTYPE_NONE, roll}, {NULL, 0, NULL}};
