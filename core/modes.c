/* modes.c: the stack of modes: grad on or off, inference, autocast regions.  An entry is removed by its own number
 * wherever it stands, so scopes that end out of order (coroutines, errors) do no harm. */
#include "ctx.h"
#include "autocast.h"

#include <string.h>

void ampl_modes_init(ampl_modes *m) { *m = (ampl_modes){.grad = true, .ground = true, .wanted = true}; }

/* What counts is the innermost entry of each kind; with one of them at hand, only `kind` has to be looked for. */
static const ampl_mode *innermost(const ampl_modes *m, int kind) {
  const ampl_mode *e = m->top;
  while (e && (int)e->kind != kind) e = e->outer;
  return e;
}

static void settle(ampl_modes *m, int kind) {
  if (kind == AMPL_MODE_AUTOCAST) {
    m->autocast = (ampl_mode *)innermost(m, kind);
    return;
  }
  const ampl_mode *e = innermost(m, kind);
  if (kind == AMPL_MODE_INFERENCE) m->inference = e && e->on;
  else m->wanted = e ? e->on : m->ground;
  m->grad = m->wanted && !m->inference;
}

static void drop(ampl_ctx *ctx, ampl_modes *m, ampl_mode *e) {
  if (e->kind == AMPL_MODE_AUTOCAST && --m->regions == 0) ampl_autocast_cache_clear(ctx, m);
  if (e->override) ampl_obj_put(ctx, e->override, AMPL_OPID_COUNT);
  ampl_obj_put(ctx, e, sizeof *e);
}

uint64_t ampl_mode_enter(ampl_ctx *ctx, const ampl_mode *mode) {
  ampl_modes *m = ctx->modes;
  ampl_mode *e = ampl_obj_get(ctx, sizeof *e);
  if (!e) {
    ampl_error(ctx, AMPL_ENOMEM, "out of memory");
    return 0;
  }
  *e = *mode;
  e->id = ++ctx->mode_ids;
  e->outer = m->top;
  m->top = e;
  if (e->kind == AMPL_MODE_AUTOCAST) m->regions++;
  settle(m, e->kind);
  return e->id;
}

bool ampl_mode_leave(ampl_ctx *ctx, ampl_modes *m, uint64_t id) {
  for (ampl_mode **p = &m->top; *p; p = &(*p)->outer) {
    ampl_mode *e = *p;
    if (e->id != id) continue;
    const int kind = e->kind;
    *p = e->outer;
    drop(ctx, m, e);
    settle(m, kind);
    return true;
  }
  return false;
}

void ampl_modes_close(ampl_ctx *ctx, ampl_modes *m) {
  while (m->top) ampl_mode_leave(ctx, m, m->top->id);
  ampl_autocast_cache_free(ctx, m);
}

bool ampl_set_grad_enabled(ampl_ctx *ctx, bool on) {
  if (!ctx) return false;
  const bool before = ctx->modes->grad;
  ctx->modes->ground = on;
  settle(ctx->modes, AMPL_MODE_GRAD);
  return before;
}

bool ampl_grad_enabled(const ampl_ctx *ctx) { return ctx && ctx->modes->grad; }

bool ampl_inference_enabled(const ampl_ctx *ctx) { return ctx && ctx->modes->inference; }

uint64_t ampl_enter_grad(ampl_ctx *ctx, bool on) {
  return !ctx ? 0 : ampl_mode_enter(ctx, &(ampl_mode){.kind = AMPL_MODE_GRAD, .on = on, .device = -1});
}

uint64_t ampl_enter_inference(ampl_ctx *ctx, bool on) {
  return !ctx ? 0 : ampl_mode_enter(ctx, &(ampl_mode){.kind = AMPL_MODE_INFERENCE, .on = on, .device = -1});
}

bool ampl_leave(ampl_ctx *ctx, ampl_modes *m, uint64_t id) {
  return ctx && ampl_mode_leave(ctx, m ? m : ctx->modes, id);
}

ampl_status ampl_modes_new(ampl_ctx *ctx, ampl_modes **out) {
  AMPL_NEED(NULL, ctx);
  AMPL_NEED(ctx, out);
  *out = ampl_obj_get(ctx, sizeof **out);
  if (!*out) return ampl_error(ctx, AMPL_ENOMEM, "out of memory");
  ampl_modes_init(*out);
  ampl_ctx_retain(ctx);
  return AMPL_OK;
}

void ampl_modes_free(ampl_ctx *ctx, ampl_modes *m) {
  if (!ctx || !m) return;
  if (ctx->modes == m) ctx->modes = &ctx->own_modes;
  if (ctx->host_modes == m) ctx->host_modes = &ctx->own_modes;
  ampl_modes_close(ctx, m);
  ampl_obj_put(ctx, m, sizeof *m);
  ampl_ctx_release(ctx);
}

ampl_modes *ampl_modes_use(ampl_ctx *ctx, ampl_modes *m) {
  if (!ctx) return NULL;
  ampl_modes *before = ctx->modes == &ctx->own_modes ? NULL : ctx->modes;
  ctx->modes = m ? m : &ctx->own_modes;
  return before;
}

ampl_status ampl_autocast_enter(ampl_ctx *ctx, bool enabled, int dtype, bool cache) {
  AMPL_NEED(NULL, ctx);
  const ampl_autocast_options o = {.dtype = dtype, .enabled = enabled, .cache = cache};
  return ampl_enter_autocast(ctx, &o) ? AMPL_OK : ctx->code;
}

void ampl_autocast_leave(ampl_ctx *ctx) {
  if (ctx && ctx->modes->autocast) ampl_mode_leave(ctx, ctx->modes, ctx->modes->autocast->id);
}
