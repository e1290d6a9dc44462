/* autocast.c: casts the operands of a call by its record's category, and keeps the casts of weights.
 *
 * One table for every device: the category stands in the op records.  The casts of f32 leaves that require a gradient
 * are kept until the outermost region ends, keyed by tensor, version and dtype, and are built with grad mode on, so one
 * made under no_grad loses no gradient later.  Their nodes are WIDE: the gradients of several uses are summed in f32.
 * */
#include "autocast.h"
#include "graph.h"
#include "op_table.h"

#include <string.h>

typedef struct entry {
  struct entry *next;
  ampl_tensor  *source, *cast;          /* one reference each */
  uint32_t      version;
} entry;

typedef struct ampl_cast_cache {
  entry         **slot;                 /* [nslot] chains by source */
  size_t          nslot, n;
} ampl_cast_cache;

/* ------------------------------------------------------------------------------------------------ cache ----------- */

static size_t slot_of(const ampl_cast_cache *c, const ampl_tensor *x) { return ((uintptr_t)x >> 6) % c->nslot; }

void ampl_autocast_cache_clear(ampl_ctx *ctx, ampl_modes *m) {
  ampl_cast_cache *c = m->cache;
  if (!c || !c->n) return;
  for (size_t s = 0; s < c->nslot; s++) {
    for (entry *e = c->slot[s], *next; e; e = next) {
      next = e->next;
      ctx->cast_stats.entries--;
      ctx->cast_stats.bytes -= (int64_t)e->cast->storage->bytes;
      ampl_tensor_release(e->source);
      ampl_tensor_release(e->cast);
      ampl_obj_put(ctx, e, sizeof *e);
    }
    c->slot[s] = NULL;
  }
  c->n = 0;
}

void ampl_autocast_cache_free(ampl_ctx *ctx, ampl_modes *m) {
  ampl_autocast_cache_clear(ctx, m);
  if (m->cache) {
    ampl_obj_put(ctx, m->cache->slot, m->cache->nslot * sizeof(entry *));
    ampl_obj_put(ctx, m->cache, sizeof *m->cache);
  }
  m->cache = NULL;
}

static ampl_cast_cache *cache_of(ampl_ctx *ctx) {
  ampl_modes *m = ctx->modes;
  if (m->cache) return m->cache;
  ampl_cast_cache *c = ampl_obj_get(ctx, sizeof *c);
  if (!c) return NULL;
  *c = (ampl_cast_cache){.nslot = 128};
  if (!(c->slot = ampl_obj_get(ctx, c->nslot * sizeof(entry *)))) {
    ampl_obj_put(ctx, c, sizeof *c);
    return NULL;
  }
  memset(c->slot, 0, c->nslot * sizeof(entry *));
  return m->cache = c;
}

void ampl_autocast_cache_stats(const ampl_ctx *ctx, ampl_cast_stats *out) {
  if (out) *out = ctx ? ctx->cast_stats : (ampl_cast_stats){0};
}

void ampl_autocast_clear_cache(ampl_ctx *ctx) {
  if (ctx) ampl_autocast_cache_clear(ctx, ctx->modes);
}

/* The cast of x with its graph, whatever the modes are: who asks next may want a gradient. */
static ampl_status cast_recorded(ampl_ctx *ctx, ampl_tensor *x, int dtype, ampl_tensor **out) {
  ampl_modes *m = ctx->modes;
  const bool grad = m->grad, inference = m->inference;
  m->grad = true;
  m->inference = false;
  const ampl_status s = ampl_cast_to(ctx, x, (ampl_dtype)dtype, out);
  m->grad = grad;
  m->inference = inference;
  if (s == AMPL_OK && (*out)->node) (*out)->node->flags |= AMPL_NODE_WIDE;
  return s;
}

/* One reference to x in `dtype`; from the cache where x is a weight. */
static ampl_status cast_weight(ampl_ctx *ctx, ampl_tensor *x, int dtype, ampl_tensor **out) {
  ampl_cast_cache *c = cache_of(ctx);
  if (!c) return ampl_error(ctx, AMPL_ENOMEM, "out of memory");
  entry **head = &c->slot[slot_of(c, x)], *stale = NULL;
  for (entry *e = *head; e; e = e->next) {
    if (e->source != x || e->cast->dtype != dtype) continue;
    if (e->version == x->storage->version) {
      ctx->cast_stats.hits++;
      ampl_tensor_retain(*out = e->cast);
      return AMPL_OK;
    }
    stale = e;
  }
  AMPL_TRY(cast_recorded(ctx, x, dtype, out));
  ctx->cast_stats.casts++;
  entry *e = stale ? stale : ampl_obj_get(ctx, sizeof *e);
  if (!e) return AMPL_OK;               /* no memory to keep it: the cast is good all the same */
  if (stale) ampl_tensor_release(e->cast);
  else {
    ampl_tensor_retain(x);
    *e = (entry){.next = *head, .source = x};
    *head = e;
    c->n++;
    ctx->cast_stats.entries++;
    ctx->cast_stats.bytes += (int64_t)(*out)->storage->bytes;
  }
  e->cast = *out;
  e->version = x->storage->version;
  ampl_tensor_retain(*out);
  return AMPL_OK;
}

/* ------------------------------------------------------------------------------------------------ regions --------- */

static bool region_covers(const ampl_mode *r, const ampl_device *device) {
  return r && r->on && (r->device < 0 || ampl_device_at(r->device)->backend == device->backend);
}

bool ampl_autocast_on(const ampl_ctx *ctx, const ampl_device *device) {
  return region_covers(ctx->modes->autocast, device);
}

int ampl_autocast_dtype(const ampl_ctx *ctx, const ampl_device *device) {
  const ampl_mode *r = ctx->modes->autocast;
  return r && r->dtype != AMPL_DTYPE_NONE ? r->dtype : device->backend->low_dtype;
}

ampl_status ampl_autocast_check_dtype(ampl_ctx *ctx, int dtype) {
  if (dtype == AMPL_DTYPE_NONE || dtype == AMPL_F16 || dtype == AMPL_BF16) return AMPL_OK;
  return ampl_error(ctx, AMPL_EDTYPE, "the low dtype is f16 or bf16, not %s", ampl_dtype_name((ampl_dtype)dtype));
}

/* Floats but f64: integers have nothing to cast, and who asks for f64 means it. */
static bool eligible(const ampl_tensor *x) { return x && x->dtype < AMPL_F64 && !(x->flags & AMPL_T_NUMBER); }

/* What WIDEST looks at: f64 is not cast down, but the others go up to it. */
static bool measured(const ampl_tensor *x) { return x && ampl_is_float(x) && !(x->flags & AMPL_T_NUMBER); }

static bool as_is(const ampl_op *op, const ampl_op_info *info, int i) {
  return i < info->ntensor && op->args[info->tensor_arg[i]].flags & AMPL_AS_IS;
}

static ampl_status cast_operand(ampl_ctx *ctx, const ampl_mode *r, ampl_tensor **x, int dtype, bool keep,
                                ampl_tensor **made, int *nmade) {
  ampl_tensor *y;
  if ((*x)->dtype == dtype) return AMPL_OK;
  const bool weight =
      keep && r->cache && (*x)->dtype == AMPL_F32 && !(*x)->node && (*x)->flags & AMPL_T_REQUIRES_GRAD && !(*x)->view;
  AMPL_TRY(weight ? cast_weight(ctx, *x, dtype, &y) : ampl_cast_to(ctx, *x, (ampl_dtype)dtype, &y));
  *x = made[(*nmade)++] = y;
  return AMPL_OK;
}

static int category_in(const ampl_mode *r, const ampl_op *op) {
  return r->override && r->override[op->id] ? r->override[op->id] - 1 : op->cast;
}

static ampl_status refuse(ampl_ctx *ctx, const ampl_tensor *x) {
  return ampl_error(
      ctx, AMPL_EDTYPE,
      "refused on %s in an autocast region: the gradient of a probability near 0 or 1 does not fit in 16 bits; "
      "give the logits to %s_with_logits, or call it on f32",
      ampl_dtype_name((ampl_dtype)x->dtype), ctx->op);
}

/* An absent `dtype` parameter becomes f32; false where the record has none. */
static bool ask_for_f32(const ampl_op *op, ampl_value *p) {
  const ampl_op_info *info = ampl_op_info_of(op);
  for (int i = 0; i < info->nparam; i++) {
    if (op->args[info->param_arg[i]].kind != AMPL_ARG_DTYPE) continue;
    if (p[i].i == AMPL_DTYPE_NONE) p[i].i = AMPL_F32;
    return true;
  }
  return false;
}

ampl_status ampl_autocast_apply(ampl_ctx *ctx, const ampl_op *op, ampl_tensor **t, int nt, ampl_value *p,
                                ampl_tensor **made, int *nmade, const char **why) {
  static const char *const texts[] = {
#define AMPL_X(name, text) text,
      AMPL_CAST_MAP(AMPL_X)
#undef AMPL_X
  };
  const ampl_mode *r = ctx->modes->autocast;
  const ampl_op_info *info = ampl_op_info_of(op);
  const ampl_device *device = NULL;
  const int category = category_in(r, op);
  int to = -1;
  for (int i = 0; i < nt && !device; i++)
    if (t[i] && !(t[i]->flags & AMPL_T_NUMBER)) device = ampl_device_of(t[i]);
  if (category == AMPL_CAST_KEEP || !device || !region_covers(r, device)) return AMPL_OK;
  *why = texts[category];
  if (category == AMPL_CAST_LOW) to = ampl_autocast_dtype(ctx, device);
  if (category == AMPL_CAST_F32) to = AMPL_F32;
  if (category == AMPL_CAST_F32_OUT && eligible(t[0]) && !ask_for_f32(op, p)) to = AMPL_F32;
  for (int i = 0; i < nt; i++) {
    if (as_is(op, info, i)) continue;
    if (category == AMPL_CAST_WIDEST ? !measured(t[i]) : !eligible(t[i])) continue;
    if (category == AMPL_CAST_REFUSE && t[i]->dtype != AMPL_F32) return refuse(ctx, t[i]);
    if (category == AMPL_CAST_WIDEST)
      to = to < 0 ? t[i]->dtype : (int)ampl_dtype_promote((ampl_dtype)to, (ampl_dtype)t[i]->dtype);
  }
  for (int i = 0; i < nt && to >= 0; i++) {
    if (!eligible(t[i]) || as_is(op, info, i)) continue;
    AMPL_TRY(cast_operand(ctx, r, &t[i], to, category == AMPL_CAST_LOW, made, nmade));
  }
  return AMPL_OK;
}

/* ------------------------------------------------------------------------------------------------ public ---------- */

bool ampl_autocast_enabled(ampl_ctx *ctx, const char *name) {
  if (!ctx) return false;
  const ampl_device *device = name ? ampl_device_find(ctx, name) : ctx->device;
  return device && ampl_autocast_on(ctx, device);
}

int ampl_autocast_low_dtype(ampl_ctx *ctx, const char *name) {
  if (!ctx) return AMPL_DTYPE_NONE;
  const ampl_device *device = name ? ampl_device_find(ctx, name) : ctx->device;
  return device ? ampl_autocast_dtype(ctx, device) : AMPL_DTYPE_NONE;
}

static ampl_status override(ampl_ctx *ctx, ampl_mode *mode, const char *const *names, int category) {
  for (; names && *names; names++) {
    const ampl_op *op = ampl_op_find(*names);
    if (!op || op->flags & AMPL_OP_INTERNAL) return ampl_error(ctx, AMPL_EARG, "there is no op \"%s\"", *names);
    mode->override[op->id] = (uint8_t)(category + 1);
  }
  return AMPL_OK;
}

static ampl_status fill_region(ampl_ctx *ctx, const ampl_autocast_options *o, ampl_mode *mode) {
  AMPL_TRY(ampl_autocast_check_dtype(ctx, o->dtype));
  if (o->device) {
    const ampl_device *device = ampl_device_find(ctx, o->device);
    if (!device) return AMPL_EDEVICE;
    mode->device = device->id;
  }
  const ampl_mode *outer = ctx->modes->autocast;
  mode->cache = o->cache < 0 ? !outer || outer->cache : o->cache;
  if (!(o->f32 && *o->f32) && !(o->low && *o->low) && !(outer && outer->override)) return AMPL_OK;
  if (!(mode->override = ampl_obj_get(ctx, AMPL_OPID_COUNT))) return ampl_error(ctx, AMPL_ENOMEM, "out of memory");
  if (outer && outer->override) memcpy(mode->override, outer->override, AMPL_OPID_COUNT);
  else memset(mode->override, 0, AMPL_OPID_COUNT);
  AMPL_TRY(override(ctx, mode, o->f32, AMPL_CAST_F32));
  return override(ctx, mode, o->low, AMPL_CAST_LOW);
}

uint64_t ampl_enter_autocast(ampl_ctx *ctx, const ampl_autocast_options *o) {
  if (!ctx || !o) return ampl_error_null(ctx, __func__, ctx ? "options" : "ctx"), 0;
  ampl_mode mode = {.kind = AMPL_MODE_AUTOCAST, .on = o->enabled, .dtype = o->dtype, .device = -1};
  AMPL_NAMED(ctx, "autocast");
  uint64_t id = 0;
  if (fill_region(ctx, o, &mode) == AMPL_OK) id = ampl_mode_enter(ctx, &mode);
  if (!id && mode.override) ampl_obj_put(ctx, mode.override, AMPL_OPID_COUNT);
  return id;
}
