/* trace.c: anomaly mode: where the forward call stood that a bad gradient comes from. */
#include "trace.h"
#include "graph.h"

#include <stdio.h>
#include <string.h>

void ampl_anomaly_note(ampl_ctx *ctx, ampl_node *n) {
  const ampl_guest *g = ctx->guest && ctx->guest->where ? ctx->guest : NULL;
  if ((!g && !ctx->anomaly->where) || n->where || !(n->where = ampl_obj_get(ctx, AMPL_WHERE_BYTES))) return;
  n->where[0] = 0;
  if (g) g->where(g->ud, n->where, AMPL_WHERE_BYTES);
  else ctx->anomaly->where(ctx->anomaly->ud, n->where, AMPL_WHERE_BYTES);
}

/* The first bad element of x: its place, row-major, or -1. */
static ampl_status first_bad(ampl_ctx *ctx, const ampl_anomaly *a, ampl_tensor *x, int64_t *at, double *value) {
  ampl_tensor *wide = NULL;
  *at = -1;
  AMPL_TRY(ampl_call(ctx, &(ampl_args){OP(to), &x, 1, &V_I(AMPL_F64)}, &wide));
  void *copy = NULL;
  const size_t bytes = (size_t)wide->numel * sizeof(double);
  ampl_status s = ampl_mem_get(ctx, ampl_device_at(0), bytes, AMPL_KIND_SCRATCH, &copy);
  if (s == AMPL_OK) s = ampl_to_bytes(wide, copy, bytes);
  const double *v = copy;
  for (int64_t i = 0; s == AMPL_OK && i < wide->numel && *at < 0; i++)
    if ((a->nan && v[i] != v[i]) || (a->inf && (v[i] - v[i] != 0) && v[i] == v[i])) *at = i, *value = v[i];
  ampl_mem_put(ctx, ampl_device_at(0), copy, bytes, AMPL_KIND_SCRATCH);
  ampl_tensor_release(wide);
  return s;
}

static const char *place_text(ampl_ctx *ctx, const ampl_tensor *x, int64_t at) {
  int64_t index[AMPL_RANK_MAX];
  for (int d = x->ndim - 1; d >= 0; d--) index[d] = at % x->shape[d] + ctx->index_base, at /= x->shape[d];
  return ampl_shape_text(ctx, x->ndim, index);
}

ampl_status ampl_anomaly_check(ampl_ctx *ctx, const ampl_node *n, int nx, ampl_tensor *const *dx) {
  const ampl_anomaly *a = ctx->anomaly;
  const char *name = n->op ? n->op->name : n->foreign.name;
  for (int i = 0; i < nx; i++) {
    int64_t at;
    double v = 0;
    if (!dx[i] || !ampl_is_float(dx[i]) || dx[i]->numel == 0) continue;
    const int64_t base = ctx->index_base;
    AMPL_TRY(first_bad(ctx, a, dx[i], &at, &v));
    if (at < 0) continue;
    ctx->index_base = n->index_base;
    const char *place = place_text(ctx, dx[i], at);
    ctx->index_base = base;
    if (a->scaled) {                    /* a scaler will skip this step: say so and go on */
      ampl_warning(ctx, "overflow",
                   "the gradient of %s for operand %d is %g at %s; forward call: %s; the scaler will skip this step",
                   name, i + 1, v, place, n->where ? n->where : "unknown");
      return AMPL_OK;
    }
    return ampl_error(ctx, AMPL_EGRAD, "the gradient of %s for operand %d is %g at %s; forward call: %s", name, i + 1,
                      v, place, n->where ? n->where : "unknown");
  }
  return AMPL_OK;
}

ampl_status ampl_set_anomaly(ampl_ctx *ctx, bool on, bool nan, bool inf, bool scaled, ampl_where_fn where, void *ud) {
  AMPL_NEED(NULL, ctx);
  if (on && !ctx->anomaly && !(ctx->anomaly = ampl_obj_get(ctx, sizeof *ctx->anomaly)))
    return ampl_error(ctx, AMPL_ENOMEM, "out of memory");
  if (on) *ctx->anomaly = (ampl_anomaly){nan, inf, scaled, where, ud};
  else if (ctx->anomaly) {
    ampl_obj_put(ctx, ctx->anomaly, sizeof *ctx->anomaly);
    ctx->anomaly = NULL;
  }
  return AMPL_OK;
}

bool ampl_anomaly_enabled(const ampl_ctx *ctx) { return ctx && ctx->anomaly; }
