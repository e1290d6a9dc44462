/* batch_norm.c: normalisation by channels: batch_norm, group_norm and what instance_norm adds to it.
 *
 * All are three steps: moments of every channel (of every sample), reduce.c; constants made of them, in f64, here; one
 * pass over x, affine.c.  Backward the same, with the sums of dy and of dy * (x - mean) in place of the moments. */
#include "affine.h"
#include "op.h"
#include "reduce.h"

#include <math.h>
#include <string.h>

/* What one call needs for each channel or for each sample and channel: arrays of doubles, from one block */
typedef struct space {
  double *block;
  size_t  bytes;
  int64_t each;
} space;

static ampl_status space_get (ampl_ctx *ctx, space *s, int arrays, int64_t each) {
  s->each = each;
  s->bytes = (size_t)arrays * (size_t)(each ? each : 1) * sizeof(double);
  s->block = ampl_cpu_scratch_get(ctx, s->bytes);
  return s->block ? AMPL_OK : ampl_error(ctx, AMPL_ENOMEM, "no memory for %zu bytes of statistics", s->bytes);
}
static double *array (const space *s, int i) { return s->block + i * s->each; }
static void space_put (ampl_ctx *ctx, space *s) { ampl_cpu_scratch_put(ctx, s->block, s->bytes); }

static ampl_cpu_work work_of (const ampl_tensor *x) { return ampl_cpu_work_of(x->dtype); }
static int64_t channels_of (const ampl_tensor *x) { return x->ndim > 1 ? x->shape[1] : 0; }

/* The n values of a vector as doubles; `otherwise` where there is none */
static void read_vector (const ampl_tensor *t, int64_t n, double otherwise, double *v) {
  if (t) ampl_cpu_widen(AMPL_WORK_F64, v, t->dtype, t->data, t->ndim ? t->strides[0] : 1, n);
  else
    for (int64_t i = 0; i < n; i++) v[i] = otherwise;
}
static void write_vector (ampl_tensor *t, int64_t n, const double *v) {
  ampl_cpu_narrow(AMPL_WORK_F64, v, t->dtype, t->data, t->ndim ? t->strides[0] : 1, n);
}

static void zero (ampl_tensor *x) {
  if (x->numel) memset(x->data, 0, (size_t)x->numel * ampl_dtype_size((ampl_dtype)x->dtype));
}

/* ------------------------------------------------------------------------------------------------ statistics ------ */

typedef struct two { double *a, *b; } two;

static void keep_both (void *ud, const ampl_cpu_part *parts, int64_t first, int64_t m, int64_t n, void *values) {
  const two *to = ud;
  (void)n, (void)values;
  for (int64_t j = 0; j < m; j++) to->a[first + j] = parts[j].a.f, to->b[first + j] = parts[j].b.f;
}

/* Bits of all dimensions but the channels, and but samples and channels */
static uint32_t all_but_channels (const ampl_tensor *x) { return ((1u << x->ndim) - 1) & ~2u; }
static uint32_t spatial (const ampl_tensor *x) { return ((1u << x->ndim) - 1) & ~3u; }

/* Means and sums of squared distances */
static ampl_status moments (ampl_ctx *ctx, const ampl_tensor *x, uint32_t dims, double *mean, double *squares) {
  two to = {mean, squares};
  const ampl_cpu_reduction r = {.fold = AMPL_FOLD_MOMENTS, .work = work_of(x), .x = x, .dims = dims,
                                .finish = keep_both, .ud = &to};
  return ampl_cpu_reduce(ctx, &r);
}

/* Sums of dy and of dy * (x - center) */
static ampl_status gradient_sums (ampl_ctx *ctx, const ampl_tensor *dy, const ampl_tensor *x, uint32_t dims,
                                  const double *center, double *sum, double *dot) {
  two to = {sum, dot};
  const ampl_cpu_reduction r = {.fold = AMPL_FOLD_DOT, .work = work_of(x), .x = dy, .z = x, .center = center,
                                .dims = dims, .finish = keep_both, .ud = &to};
  return ampl_cpu_reduce(ctx, &r);
}

/* A running statistic takes `weight` of a new value.  What is not finite, or is none in its dtype, is left out: one
 * overflow, which loss scaling steps over, must not stay in the model. */
static void update_running (ampl_tensor *t, int64_t n, const double *fresh, double weight, double *old) {
  if (!t) return;
  double most = t->dtype == AMPL_F16 ? 65504 : t->dtype == AMPL_F64 ? INFINITY : 3e38;
  read_vector(t, n, 0, old);
  for (int64_t i = 0; i < n; i++) {
    double v = (1 - weight) * old[i] + weight * fresh[i];
    if (isfinite(fresh[i]) && isfinite(v) && fabs(v) <= most) old[i] = v;
  }
  write_vector(t, n, old);
  t->storage->version++;
}

/* ------------------------------------------------------------------------------------------------ batch_norm ------ */

/* Operands x, running_mean, running_var, weight, bias; parameters momentum, eps; outputs y, mean, 1 / deviation */
static ampl_status batch_norm_train (ampl_ctx *ctx, const ampl_args *in, ampl_tensor **out) {
  const ampl_tensor *x = in->t[0];
  int64_t c = channels_of(x), n = c ? x->numel / c : 0;
  space s;
  if (x->numel == 0) {
    zero(out[1]);
    zero(out[2]);
    return AMPL_OK;
  }
  AMPL_TRY(space_get(ctx, &s, 6, c));
  double *mean = array(&s, 0), *var = array(&s, 1), *scale = array(&s, 2), *shift = array(&s, 3), *old = array(&s, 4);
  double *rstd = array(&s, 5);
  ampl_status status = moments(ctx, x, all_but_channels(x), mean, var);
  if (status == AMPL_OK) {
    read_vector(in->t[3], c, 1, scale);
    read_vector(in->t[4], c, 0, shift);
    for (int64_t i = 0; i < c; i++) {
      rstd[i] = 1 / sqrt(var[i] / (double)n + in->p[1].f);
      scale[i] *= rstd[i];
      var[i] /= (double)(n - 1);
    }
    write_vector(out[1], c, mean);
    write_vector(out[2], c, rstd);
    status = ampl_cpu_affine_run(ctx, &(ampl_cpu_affine){.x = x, .y = out[0], .dims = all_but_channels(x),
                                                         .work = work_of(x), .m = mean, .b = scale, .c = shift});
  }
  if (status == AMPL_OK) {      /* at the end: what does not end does not count */
    update_running(in->t[1], c, mean, in->p[0].f, old);
    update_running(in->t[2], c, var, in->p[0].f, old);
  }
  space_put(ctx, &s);
  return status;
}

/* Operands x, running_mean, running_var, weight, bias; parameter eps */
static ampl_status batch_norm_eval (ampl_ctx *ctx, const ampl_args *in, ampl_tensor **out) {
  const ampl_tensor *x = in->t[0];
  int64_t c = channels_of(x);
  space s;
  if (x->numel == 0) return AMPL_OK;
  AMPL_TRY(space_get(ctx, &s, 4, c));
  double *mean = array(&s, 0), *var = array(&s, 1), *scale = array(&s, 2), *shift = array(&s, 3);
  read_vector(in->t[1], c, 0, mean);
  read_vector(in->t[2], c, 1, var);
  read_vector(in->t[3], c, 1, scale);
  read_vector(in->t[4], c, 0, shift);
  for (int64_t i = 0; i < c; i++) scale[i] /= sqrt(var[i] + in->p[0].f);
  const ampl_status status =
      ampl_cpu_affine_run(ctx, &(ampl_cpu_affine){.x = x, .y = out[0], .dims = all_but_channels(x), .work = work_of(x),
                                                  .m = mean, .b = scale, .c = shift});
  space_put(ctx, &s);
  return status;
}

/* Operands dy, x, weight, mean, 1 / deviation; parameters eps, training, whether dx and whether the gradients of weight
 * and bias are wanted; outputs dx, dweight, dbias */
static ampl_status batch_norm_backward (ampl_ctx *ctx, const ampl_args *in, ampl_tensor **out) {
  const ampl_tensor *dy = in->t[0], *x = in->t[1];
  int64_t c = channels_of(x);
  bool training = in->p[1].i, wants_x = in->p[2].i, wants_params = in->p[3].i;
  double n = c ? (double)(x->numel / c) : 0;
  space s;
  if (x->numel == 0) {
    zero(out[1]);
    zero(out[2]);
    return AMPL_OK;
  }
  AMPL_TRY(space_get(ctx, &s, 6, c));
  double *mean = array(&s, 0), *rstd = array(&s, 1), *sum = array(&s, 2), *dot = array(&s, 3), *a = array(&s, 4);
  double *b = array(&s, 5);
  read_vector(in->t[3], c, 0, mean);
  read_vector(in->t[4], c, 1, rstd);
  ampl_status status = AMPL_OK;
  if (training || wants_params) status = gradient_sums(ctx, dy, x, all_but_channels(x), mean, sum, dot);
  if (status == AMPL_OK) {
    read_vector(in->t[2], c, 1, a);
    for (int64_t i = 0; i < c; i++) {
      a[i] *= rstd[i];
      b[i] = training ? -a[i] * rstd[i] * rstd[i] * dot[i] / n : 0;
    }
    if (wants_params) {
      write_vector(out[2], c, sum);
      for (int64_t i = 0; i < c; i++) dot[i] *= rstd[i];
      write_vector(out[1], c, dot);
    }
    for (int64_t i = 0; i < c && training; i++) sum[i] *= -a[i] / n;
    ampl_cpu_affine k = {.x = x, .dy = dy, .y = out[0], .dims = all_but_channels(x), .work = work_of(x),
                         .a = a, .m = mean, .b = b, .c = sum};
    if (!training) k = (ampl_cpu_affine){.x = dy, .y = out[0], .dims = k.dims, .work = k.work, .b = a};
    if (wants_x) status = ampl_cpu_affine_run(ctx, &k);
  }
  space_put(ctx, &s);
  return status;
}

/* ------------------------------------------------------------------------------------------------ group_norm ------ */

typedef struct groups {
  int64_t n, c, count, each, spatial;   /* samples, channels, groups, channels in a group, places of a channel */
  double  eps;
} groups;

static groups groups_of (const ampl_tensor *x, int64_t count, double eps) {
  groups g = {x->shape[0], x->shape[1], count, x->shape[1] / count, 1, eps};
  for (int d = 2; d < x->ndim; d++) g.spatial *= x->shape[d];
  return g;
}

/* Moments of channels become, for every channel, the mean and 1 / deviation of its group */
static void merge_groups (ampl_ctx *ctx, const groups *g, double *mean, double *squares) {
  for (int64_t i = 0; i < g->n * g->count && !ampl_cpu_stop_at(ctx, i * g->each, g->each); i++) {
    double *m = mean + i * g->each, *q = squares + i * g->each;
    ampl_cpu_part all = {{.f = m[0]}, {.f = q[0]}};
    for (int64_t k = 1; k < g->each; k++) {
      ampl_cpu_part one = {{.f = m[k]}, {.f = q[k]}};
      ampl_cpu_fold_merge(AMPL_FOLD_MOMENTS, AMPL_WORK_F64, &all, k * g->spatial, &one, g->spatial, 1);
    }
    double rstd = 1 / sqrt(all.b.f / (double)(g->each * g->spatial) + g->eps);
    for (int64_t k = 0; k < g->each; k++) m[k] = all.a.f, q[k] = rstd;
  }
}

/* Operands x, weight, bias; parameters num_groups, eps */
static ampl_status group_norm (ampl_ctx *ctx, const ampl_args *in, ampl_tensor **out) {
  const ampl_tensor *x = in->t[0];
  space s;
  if (x->numel == 0) return AMPL_OK;
  groups g = groups_of(x, in->p[0].i, in->p[1].f);
  AMPL_TRY(space_get(ctx, &s, 3, g.n * g.c));
  double *mean = array(&s, 0), *scale = array(&s, 1), *shift = array(&s, 2);
  ampl_status status = moments(ctx, x, spatial(x), mean, scale);
  if (status == AMPL_OK) {
    merge_groups(ctx, &g, mean, scale);
    status = ampl_cpu_poll(ctx);
  }
  if (status == AMPL_OK) {
    read_vector(in->t[1], g.c, 1, shift);
    for (int64_t i = 0; i < g.n * g.c; i++) scale[i] *= shift[i % g.c];
    read_vector(in->t[2], g.c, 0, shift);
    for (int64_t i = g.c; i < g.n * g.c; i++) shift[i] = shift[i % g.c];
    status = ampl_cpu_affine_run(ctx, &(ampl_cpu_affine){.x = x, .y = out[0], .dims = spatial(x), .work = work_of(x),
                                                         .m = mean, .b = scale, .c = shift});
  }
  space_put(ctx, &s);
  return status;
}

/* For every channel, from the sums over it: the constants b and c of its group, in place of sum and dot */
static void group_constants (const groups *g, const double *weight, const double *rstd, double *sum, double *dot) {
  for (int64_t i = 0; i < g->n * g->count; i++) {
    double a = 0, b = 0, r = rstd[i * g->each], n = (double)(g->each * g->spatial);
    const double *w = weight + i % g->count * g->each;
    for (int64_t k = 0; k < g->each; k++) a += w[k] * sum[i * g->each + k], b += w[k] * dot[i * g->each + k];
    for (int64_t k = 0; k < g->each; k++) {
      sum[i * g->each + k] = -a * r / n;
      dot[i * g->each + k] = -b * r * r * r / n;
    }
  }
}

/* dweight and dbias: sums over the samples */
static void group_params (const groups *g, const double *rstd, const double *sum, const double *dot, double *dw,
                          ampl_tensor **out) {
  double *db = dw + g->c;
  memset(dw, 0, (size_t)g->c * 2 * sizeof *dw);
  for (int64_t i = 0; i < g->n * g->c; i++) {
    dw[i % g->c] += dot[i] * rstd[i];
    db[i % g->c] += sum[i];
  }
  write_vector(out[1], g->c, dw);
  write_vector(out[2], g->c, db);
}

/* Operands dy, x, weight; parameters num_groups, eps, whether dx and whether the gradients of weight and bias are
 * wanted; outputs dx, dweight, dbias */
static ampl_status group_norm_backward (ampl_ctx *ctx, const ampl_args *in, ampl_tensor **out) {
  const ampl_tensor *dy = in->t[0], *x = in->t[1];
  space s, w;
  if (x->numel == 0) {
    zero(out[1]);
    zero(out[2]);
    return AMPL_OK;
  }
  groups g = groups_of(x, in->p[0].i, in->p[1].f);
  AMPL_TRY(space_get(ctx, &s, 5, g.n * g.c));
  ampl_status status = space_get(ctx, &w, 3, g.c);
  double *mean = array(&s, 0), *rstd = array(&s, 1), *sum = array(&s, 2), *dot = array(&s, 3), *a = array(&s, 4);
  if (status == AMPL_OK) {
    status = moments(ctx, x, spatial(x), mean, rstd);
    if (status == AMPL_OK) merge_groups(ctx, &g, mean, rstd);
    if (status == AMPL_OK) status = gradient_sums(ctx, dy, x, spatial(x), mean, sum, dot);
    if (status == AMPL_OK) {
      double *weight = array(&w, 0);
      read_vector(in->t[2], g.c, 1, weight);
      if (in->p[3].i) group_params(&g, rstd, sum, dot, array(&w, 1), out);
      group_constants(&g, weight, rstd, sum, dot);
      for (int64_t i = 0; i < g.n * g.c; i++) a[i] = weight[i % g.c] * rstd[i];
      if (in->p[2].i)
        status = ampl_cpu_affine_run(ctx, &(ampl_cpu_affine){.x = x, .dy = dy, .y = out[0], .dims = spatial(x),
                                                             .work = work_of(x), .a = a, .m = mean, .b = dot,
                                                             .c = sum});
    }
    space_put(ctx, &w);
  }
  space_put(ctx, &s);
  return status;
}

/* ------------------------------------------------------------------------------------------------ instance_norm --- */

/* Operands x, running_mean, running_var; parameter momentum: the running statistics take the mean over the samples of
 * every instance's mean and variance. */
static ampl_status instance_norm_update (ampl_ctx *ctx, const ampl_args *in, ampl_tensor **out) {
  const ampl_tensor *x = in->t[0];
  space s, t;
  (void)out;
  if (x->numel == 0) return AMPL_OK;
  groups g = groups_of(x, x->shape[1], 0);
  AMPL_TRY(space_get(ctx, &s, 2, g.n * g.c));
  ampl_status status = space_get(ctx, &t, 3, g.c);
  double *mean = array(&s, 0), *squares = array(&s, 1);
  if (status == AMPL_OK) {
    status = moments(ctx, x, spatial(x), mean, squares);
    double *m = array(&t, 0), *v = array(&t, 1), *old = array(&t, 2);
    memset(m, 0, (size_t)g.c * 2 * sizeof *m);
    for (int64_t i = 0; i < g.n * g.c && status == AMPL_OK; i++) {
      m[i % g.c] += mean[i] / (double)g.n;
      v[i % g.c] += squares[i] / (double)(g.spatial - 1) / (double)g.n;
    }
    if (status == AMPL_OK) {
      update_running(in->t[1], g.c, m, in->p[0].f, old);
      update_running(in->t[2], g.c, v, in->p[0].f, old);
    }
    space_put(ctx, &t);
  }
  space_put(ctx, &s);
  return status;
}

const ampl_kernel ampl_cpu_batch_norm_kernels[] = {
    {"batch_norm_train", AMPL_DTYPE_NONE, batch_norm_train},
    {"batch_norm_eval", AMPL_DTYPE_NONE, batch_norm_eval},
    {"batch_norm_backward", AMPL_DTYPE_NONE, batch_norm_backward},
    {"group_norm", AMPL_DTYPE_NONE, group_norm},
    {"group_norm_backward", AMPL_DTYPE_NONE, group_norm_backward},
    {"instance_norm_update", AMPL_DTYPE_NONE, instance_norm_update},
    {NULL, 0, NULL},
};
