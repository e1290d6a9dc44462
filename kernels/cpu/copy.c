/* copy.c: copies and casts between tensors of any strides; filling; the tensors that are made of numbers alone. */
#include "move.h"
#include "op.h"
#include "stream.h"

#include <string.h>

enum { BLOCK = 512, CHUNK = 32 * BLOCK };

/* ------------------------------------------------------------------------------------------------ casts ----------- */

typedef struct cast_task {
  ampl_cpu_stream s[2];         /* the output, then the source */
  ampl_cpu_work   work;
} cast_task;

static void cast_job(void *ud, int64_t job, int thread) {
  const cast_task *t = ud;
  union { float f[BLOCK]; double d[BLOCK]; int64_t i[BLOCK]; } buf;
  const int64_t end = (job + 1) * CHUNK < t->s[0].n ? (job + 1) * CHUNK : t->s[0].n;
  (void)thread;
  for (int64_t pos = job * CHUNK; pos < end; pos += BLOCK) {
    const int64_t n = end - pos < BLOCK ? end - pos : BLOCK;
    void *there = ampl_cpu_target(&t->s[0], t->work, 0, pos, n, &buf);
    ampl_cpu_store(&t->s[0], t->work, 0, pos, n, ampl_cpu_load(&t->s[1], t->work, 0, pos, n, there));
  }
}

/* y = x, broadcast and cast.  x is read in the type that holds all its values, so that each is rounded once. */
static ampl_status cast(ampl_ctx *ctx, ampl_tensor *y, const ampl_tensor *x) {
  const bool small = x->dtype == AMPL_U8 || x->dtype == AMPL_BOOL;
  cast_task t = {.work = y->dtype == AMPL_F32 || small ? AMPL_WORK_F32 : ampl_cpu_work_of(x->dtype)};
  if (y->numel == 0) return AMPL_OK;
  ampl_cpu_streams(2, (const ampl_tensor *const[]){y, x}, y->ndim, y->shape, true, t.s);
  return ampl_cpu_parallel(ctx, ampl_cpu_threads_for(ctx, 0.5 * (double)y->numel), (y->numel + CHUNK - 1) / CHUNK,
                           cast_job, &t);
}

static bool same_strides(const ampl_tensor *y, const ampl_tensor *x) {
  if (y->flags & x->flags & AMPL_T_CONTIGUOUS) return true;
  for (int d = 0; d < y->ndim; d++)
    if (y->shape[d] != 1 && y->strides[d] != x->strides[d]) return false;
  return true;
}

/* y = x where dtypes agree: elements move as they are */
static ampl_status move(ampl_ctx *ctx, ampl_tensor *y, const ampl_tensor *x) {
  int64_t strides[AMPL_RANK_MAX];
  const size_t size = ampl_dtype_size((ampl_dtype)y->dtype);
  if (y->numel == 0) return AMPL_OK;
  if (y->numel == x->numel && y->flags & x->flags & AMPL_T_CONTIGUOUS && (size_t)y->numel * size <= 64 << 10) {
    memcpy(y->data, x->data, (size_t)y->numel * size);
    return AMPL_OK;
  }
  for (int d = 0, lead = y->ndim - x->ndim; d < y->ndim; d++)
    strides[d] = d < lead || x->shape[d - lead] == 1 ? 0 : x->strides[d - lead];
  return ampl_cpu_move(ctx, size, y->ndim, y->shape, y->data, y->strides, x->data, strides);
}

static ampl_status assign(ampl_ctx *ctx, ampl_tensor *y, const ampl_tensor *x) {
  return x->dtype == y->dtype ? move(ctx, y, x) : cast(ctx, y, x);
}

static ampl_status to(ampl_ctx *ctx, const ampl_args *in, ampl_tensor **out) {
  return assign(ctx, out[0], in->t[0]);
}

/* ------------------------------------------------------------------------------------------------ copy_ ----------- */

/* The source lies in the memory that is written, other than element on element: read it all first. */
static ampl_status copy_overlapping(ampl_ctx *ctx, ampl_tensor *y, const ampl_tensor *x) {
  const size_t bytes = (size_t)x->numel * ampl_dtype_size((ampl_dtype)x->dtype);
  ampl_tensor aside = *x;
  int64_t step = 1;
  aside.data = ampl_cpu_scratch_get(ctx, bytes);
  if (!aside.data) return ampl_error(ctx, AMPL_ENOMEM, "no memory for a copy of %s", ampl_tensor_text(ctx, x));
  for (int d = x->ndim - 1; d >= 0; d--) {
    aside.strides[d] = step;
    step *= x->shape[d];
  }
  aside.flags |= AMPL_T_CONTIGUOUS;
  ampl_status s = move(ctx, &aside, x);
  if (s == AMPL_OK) s = assign(ctx, y, &aside);
  ampl_cpu_scratch_put(ctx, aside.data, bytes);
  return s;
}

static ampl_status copy(ampl_ctx *ctx, const ampl_args *in, ampl_tensor **out) {
  ampl_tensor *y = out[0], *x = in->t[1];
  if (x->storage == y->storage && !(x->flags & AMPL_T_NUMBER) && x->numel > 0 && y->numel > 0) {
    if (x->data == y->data && x->dtype == y->dtype && x->numel == y->numel && same_strides(y, x)) return AMPL_OK;
    return copy_overlapping(ctx, y, x);
  }
  return assign(ctx, y, x);
}

static ampl_status zero(ampl_ctx *ctx, const ampl_args *in, ampl_tensor **out) {
  const int64_t nothing = 0;
  ampl_tensor *y = out[0];
  (void)in;
  if (y->flags & AMPL_T_CONTIGUOUS && y->numel > 0)
    return ampl_cpu_zero(ctx, y->data, (size_t)y->numel * ampl_dtype_size((ampl_dtype)y->dtype));
  const ampl_tensor x = {.dtype = y->dtype, .numel = 1, .data = (void *)(uintptr_t)&nothing};
  return move(ctx, y, &x);
}

const ampl_kernel ampl_cpu_copy_kernels[] = {
  {"to", AMPL_DTYPE_NONE, to},
  {"clone", AMPL_DTYPE_NONE, to},
  {"contiguous", AMPL_DTYPE_NONE, to},
  {"copy", AMPL_DTYPE_NONE, copy},
  {"fill", AMPL_DTYPE_NONE, copy},
  {"zero", AMPL_DTYPE_NONE, zero},
  {NULL, 0, NULL}
};
