/* scaler.c: the gradient scaler: when to unscale, step, back off and grow, and why a step was skipped.
 *
 * The arithmetic is done by two ops on the device (core/ops/amp.c); here is the order of calls.  What is remembered of
 * a gradient stands in flags on tensors (scaler.h), and ends with the iteration. */
#include "scaler.h"
#include "trace.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { TRACKER, HYSTERESIS, FLOORED, COUNTERS };        /* places in `counters` */
enum { HEAD = 3 };                                      /* operands of amp_unscale before the gradients */

static ampl_status check_params(const ampl_scaler *s, const char *function, const ampl_params *p) {
  if (!s) return ampl_error_null(NULL, function, "s");
  if (!p) return ampl_error_null(s->ctx, function, "p");
  return ampl_check_list(s->ctx, function, p->n, p->v, false);
}

/* ------------------------------------------------------------------------------------------------ options --------- */

/* `v` as the device keeps it.  NaN compares false, so it fails, too. */
static bool scale_fits(const ampl_scaler_options *o, double v) { return v >= o->min_scale && v <= o->max_scale; }

static ampl_status check_scale(ampl_ctx *ctx, const ampl_scaler_options *o, const char *what, double v) {
  if (scale_fits(o, v)) return AMPL_OK;
  return ampl_error(ctx, AMPL_EVALUE, "%s %g is not between min_scale %g and max_scale %g", what, v, o->min_scale,
                    o->max_scale);
}

static ampl_status check_options(ampl_ctx *ctx, const ampl_scaler_options *o) {
  if (!(o->min_scale >= 0x1p-126 && o->min_scale <= 0x1p127))
    return ampl_error(ctx, AMPL_EVALUE, "min_scale %g is not between 2^-126 and 2^127; below, 1 / scale is no f32",
                      o->min_scale);
  if (!(o->max_scale >= o->min_scale && o->max_scale <= 0x1p127))
    return ampl_error(ctx, AMPL_EVALUE, "max_scale %g is not between min_scale %g and 2^127", o->max_scale,
                      o->min_scale);
  if (!(o->growth_factor > 1 && isfinite(o->growth_factor)))
    return ampl_error(ctx, AMPL_EVALUE, "growth_factor %g must be above 1", o->growth_factor);
  if (!(o->backoff_factor > 0 && o->backoff_factor < 1))
    return ampl_error(ctx, AMPL_EVALUE, "backoff_factor %g must be above 0 and below 1", o->backoff_factor);
  if (o->growth_interval < 1 || o->growth_interval > INT32_MAX)
    return ampl_error(ctx, AMPL_EVALUE, "growth_interval %lld must be a count from 1 on",
                      (long long)o->growth_interval);
  if (o->hysteresis < 1 || o->hysteresis > INT32_MAX)
    return ampl_error(ctx, AMPL_EVALUE, "hysteresis %lld must be a count from 1 on", (long long)o->hysteresis);
  if (o->max_consecutive_skips < 0)
    return ampl_error(ctx, AMPL_EVALUE, "max_consecutive_skips %lld must not be negative",
                      (long long)o->max_consecutive_skips);
  if (o->on_floor < 0 || o->on_floor >= AMPL_ON_FLOOR_COUNT)
    return ampl_error(ctx, AMPL_EARG, "on_floor %d is none of warn, raise, keep", o->on_floor);
  return AMPL_OK;
}

ampl_status ampl_scaler_new(ampl_ctx *ctx, const ampl_scaler_options *options, ampl_scaler **out) {
  AMPL_NEED(NULL, ctx);
  AMPL_NEED(ctx, out);
  static const ampl_scaler_options defaults = AMPL_SCALER_OPTIONS_INIT;
  ampl_scaler_options o = defaults;
  *out = NULL;
  AMPL_NAMED(ctx, "GradScaler");
  if (options) memcpy(&o, options, options->struct_size < sizeof o ? options->struct_size : sizeof o);
  if (o.enabled) AMPL_TRY(check_options(ctx, &o));
  if (o.enabled) AMPL_TRY(check_scale(ctx, &o, "init_scale", o.init_scale));
  ampl_scaler *s = ampl_obj_get(ctx, sizeof *s);
  if (!s) return ampl_error(ctx, AMPL_ENOMEM, "out of memory");
  *s = (ampl_scaler){.refs = 1, .ctx = ctx, .o = o, .last_taken = true, .skip_parameter = -1,
                     .start = {o.init_scale, 0, o.hysteresis}};
  ampl_ctx_retain(ctx);
  *out = s;
  return AMPL_OK;
}

static bool has_param(const ampl_scaler_record *r, const ampl_tensor *p) {
  for (int64_t i = 0; i < r->nparams; i++)
    if (r->params[i] == p) return true;
  return false;
}

/* Whether an optimiser of this iteration, other than `but`, has p; with `waiting`, one that has not stepped yet. */
static bool listed(const ampl_scaler *s, const ampl_tensor *p, const ampl_scaler_record *but, bool waiting) {
  for (int i = 0; i < s->nrecords; i++) {
    const ampl_scaler_record *r = &s->records[i];
    if (r != but && !(waiting && r->stage == AMPL_SCALER_STEPPED) && has_param(r, p)) return true;
  }
  return false;
}

/* Whether p's gradient is divided already: for another optimiser of this iteration than `mine`, whatever was done to it
 * since (clipping), or before, and not written since. */
static bool is_unscaled(const ampl_scaler *s, const ampl_tensor *p, const ampl_scaler_record *mine) {
  const ampl_tensor *g = p->grad;
  return g && g->flags & AMPL_T_UNSCALED && (g->mark == g->storage->version || listed(s, p, mine, false));
}

static void drop_record(ampl_ctx *ctx, ampl_scaler_record *r) {
  ampl_tensor_release(r->found);
  ampl_tensor_release(r->first_bad);
  for (int64_t i = 0; i < r->nparams; i++) ampl_tensor_release(r->params[i]);
  if (r->params) ampl_obj_put(ctx, r->params, (size_t)r->nparams * sizeof *r->params);
}

/* Gradients that r's optimiser has used count as fresh again, unless another one waits for them. */
static void forget_unscaled(ampl_scaler *s, const ampl_scaler_record *r) {
  for (int64_t i = 0; i < r->nparams; i++) {
    ampl_tensor *g = r->params[i]->grad;
    if (g && g->flags & AMPL_T_UNSCALED && !listed(s, r->params[i], r, true)) g->flags &= (uint8_t)~AMPL_T_UNSCALED;
  }
}

/* Those of one that has not stepped stay divided, as they are now. */
static void keep_unscaled(const ampl_scaler_record *r) {
  for (int64_t i = 0; i < r->nparams; i++)
    if (r->params[i]->grad) r->params[i]->grad->mark = r->params[i]->grad->storage->version;
}

static void drop_records(ampl_scaler *s) {
  for (int i = 0; i < s->nrecords; i++) {
    if (s->records[i].stage == AMPL_SCALER_STEPPED) forget_unscaled(s, &s->records[i]);
    else keep_unscaled(&s->records[i]);
  }
  for (int i = 0; i < s->nrecords; i++) drop_record(s->ctx, &s->records[i]);
  s->nrecords = 0;
}

void ampl_scaler_retain(ampl_scaler *s) {
  if (s) __atomic_add_fetch(&s->refs, 1, __ATOMIC_RELAXED);
}

void ampl_scaler_release(ampl_scaler *s) {
  if (!s || __atomic_sub_fetch(&s->refs, 1, __ATOMIC_ACQ_REL) > 0) return;
  ampl_ctx *ctx = s->ctx;
  drop_records(s);
  if (s->records) ampl_obj_put(ctx, s->records, (size_t)s->records_cap * sizeof *s->records);
  ampl_tensor_release(s->scale);
  ampl_tensor_release(s->counters);
  ampl_obj_put(ctx, s, sizeof *s);
  ampl_ctx_release(ctx);
}

uint64_t ampl_scaler_key(ampl_scaler *s) { return s ? ++s->keys : 0; }

void ampl_scaler_get_options(const ampl_scaler *s, ampl_scaler_options *out) {
  if (out) *out = s ? s->o : (ampl_scaler_options){0};
}


ampl_status ampl_scaler_set_options(ampl_scaler *s, const ampl_scaler_options *options) {
  AMPL_NEED(NULL, s);
  AMPL_NEED(s->ctx, options);
  ampl_ctx *ctx = s->ctx;
  AMPL_NAMED(ctx, "GradScaler");
  ampl_scaler_options o = s->o;
  double scale;
  memcpy(&o, options, options->struct_size < sizeof o ? options->struct_size : sizeof o);
  o.enabled = s->o.enabled;
  o.init_scale = s->o.init_scale;
  if (o.enabled) {
    AMPL_TRY(check_options(ctx, &o));
    AMPL_TRY(ampl_scaler_get_scale(s, &scale));
    AMPL_TRY(check_scale(ctx, &o, "the scale", scale));
  }
  if (!s->scale) s->start.hysteresis = o.hysteresis;
  s->o = o;
  return AMPL_OK;
}

/* ------------------------------------------------------------------------------------------------ device state ---- */

static ampl_status put(ampl_tensor *x, const void *src, size_t bytes) {
  const ampl_device *d = ampl_device_of(x);
  x->storage->version++;
  return d->backend->copy_from_host(d->index, x->data, src, bytes);
}

static ampl_status put_on(ampl_ctx *ctx, ampl_device *d, ampl_dtype t, int64_t n, const void *src, ampl_tensor **out) {
  ampl_meta m = {.dtype = t, .ndim = n > 1, .shape = {n}};
  AMPL_TRY(ampl_tensor_new(ctx, d, &m, AMPL_KIND_TENSOR, out));
  return put(*out, src, (size_t)n * ampl_dtype_size(t));
}

static ampl_status make_state(ampl_scaler *s, ampl_device *d) {
  const float scale = (float)s->start.scale;
  const int32_t counters[COUNTERS] = {(int32_t)s->start.tracker, (int32_t)s->start.hysteresis, 0};
  ampl_tensor *c = NULL, *x = NULL;
  ampl_status st = put_on(s->ctx, d, AMPL_I32, COUNTERS, counters, &c);
  if (st == AMPL_OK) st = put_on(s->ctx, d, AMPL_F32, 1, &scale, &x);
  if (st == AMPL_OK) {
    s->counters = c;
    s->scale = x;
    return AMPL_OK;
  }
  ampl_tensor_release(c);
  ampl_tensor_release(x);
  return st;
}

static ampl_status get_counters(const ampl_scaler *s, int32_t *out) {
  if (s->counters) return ampl_to_bytes(s->counters, out, COUNTERS * sizeof *out);
  out[TRACKER] = (int32_t)s->start.tracker;
  out[HYSTERESIS] = (int32_t)s->start.hysteresis;
  out[FLOORED] = 0;
  return AMPL_OK;
}

static ampl_status set_state(ampl_scaler *s, double scale, int64_t tracker, int64_t hysteresis) {
  const float f = (float)scale;
  const int32_t counters[COUNTERS] = {(int32_t)tracker, (int32_t)hysteresis, 0};
  if (s->scale) {
    AMPL_TRY(put(s->scale, &f, sizeof f));
    return put(s->counters, counters, sizeof counters);
  }
  s->start.scale = scale;
  s->start.tracker = tracker;
  s->start.hysteresis = hysteresis;
  return AMPL_OK;
}

static ampl_status read_scale(const ampl_scaler *s, double *out) {
  if (s->scale) return ampl_item(s->scale, out);
  *out = s->start.scale;
  return AMPL_OK;
}

ampl_status ampl_scaler_get_scale(ampl_scaler *s, double *out) {
  AMPL_NEED(NULL, s);
  AMPL_NEED(s->ctx, out);
  AMPL_NAMED(s->ctx, "get_scale");
  *out = 1;
  if (s->o.enabled) AMPL_TRY(read_scale(s, out));
  return AMPL_OK;
}

/* ------------------------------------------------------------------------------------------------ scale ----------- */

ampl_status ampl_scaler_scale(ampl_scaler *s, ampl_tensor *x, ampl_tensor **out) {
  AMPL_NEED(NULL, s);
  AMPL_NEED(s->ctx, out);
  *out = NULL;
  AMPL_TRY(ampl_check_list(s->ctx, __func__, 1, &x, false));
  ampl_ctx *ctx = s->ctx;
  AMPL_NAMED(ctx, "scale");
  *out = NULL;
  if (!s->o.enabled) {
    ampl_tensor_retain(x);
    *out = x;
    return AMPL_OK;
  }
  if (!ampl_is_float(x))
    return ampl_error(ctx, AMPL_EDTYPE, "a loss is a float, this is %s", ampl_tensor_text(ctx, x));
  if (!s->scale) AMPL_TRY(make_state(s, ampl_device_of(x)));
  ampl_eval e;
  ampl_eval_begin(&e, ctx);
  /* 65536 is no f16: a 16-bit loss goes up first, in every rank */
  if (x->dtype == AMPL_F16 || x->dtype == AMPL_BF16) x = EV(&e, to, T(x), P(V_I(AMPL_F32)));
  ampl_eval_return(&e, EV(&e, mul, T(x, s->scale)), out);
  AMPL_TRY(ampl_eval_end(&e));
  if (ctx->anomaly) ctx->anomaly->scaled = true;        /* what overflows in this iteration will be skipped */
  return AMPL_OK;
}

/* ------------------------------------------------------------------------------------------------ records --------- */

static ampl_scaler_record *record_of(ampl_scaler *s, uint64_t key) {
  for (int i = 0; i < s->nrecords; i++)
    if (s->records[i].key == key) return &s->records[i];
  return NULL;
}

static ampl_status keep_params(ampl_scaler *s, ampl_scaler_record *r, const ampl_params *p) {
  if (!p->n) return AMPL_OK;
  if (!(r->params = ampl_obj_get(s->ctx, (size_t)p->n * sizeof *r->params)))
    return ampl_error(s->ctx, AMPL_ENOMEM, "out of memory");
  r->nparams = p->n;
  for (int64_t i = 0; i < p->n; i++) ampl_tensor_retain(r->params[i] = p->v[i]);
  return AMPL_OK;
}

static ampl_status add_record(ampl_scaler *s, uint64_t key, const ampl_params *p, ampl_scaler_record **out) {
  const float zero = 0;
  const int32_t none = INT32_MAX;
  if (s->nrecords == s->records_cap) {
    const int cap = s->records_cap ? 2 * s->records_cap : 4;
    ampl_scaler_record *more = ampl_obj_get(s->ctx, (size_t)cap * sizeof *more);
    if (!more) return ampl_error(s->ctx, AMPL_ENOMEM, "out of memory");
    if (s->records) {
      memcpy(more, s->records, (size_t)s->nrecords * sizeof *more);
      ampl_obj_put(s->ctx, s->records, (size_t)s->records_cap * sizeof *more);
    }
    s->records = more;
    s->records_cap = cap;
  }
  ampl_scaler_record r = {.key = key, .stage = AMPL_SCALER_UNSCALED, .bad = -1};
  ampl_device *d = ampl_device_of(s->scale);
  ampl_status st = put_on(s->ctx, d, AMPL_F32, 1, &zero, &r.found);
  if (st == AMPL_OK) st = put_on(s->ctx, d, AMPL_I32, 1, &none, &r.first_bad);
  if (st == AMPL_OK) st = keep_params(s, &r, p);
  if (st != AMPL_OK) {
    drop_record(s->ctx, &r);
    return st;
  }
  s->records[s->nrecords] = r;
  *out = &s->records[s->nrecords++];
  return AMPL_OK;
}

static void forget_record(ampl_scaler *s, ampl_scaler_record *r) {
  forget_unscaled(s, r);
  drop_record(s->ctx, r);
  *r = s->records[--s->nrecords];
}

/* Reads the flag of r, once: here the host waits for the device. */
static ampl_status know(ampl_scaler *s, ampl_scaler_record *r) {
  double found, place;
  if (r->known) return AMPL_OK;
  AMPL_TRY(ampl_item(r->found, &found));
  if (found != 0) {
    AMPL_TRY(ampl_item(r->first_bad, &place));
    r->bad = (int64_t)place;
    s->bad_now = true;
  }
  r->known = true;
  return AMPL_OK;
}

/* ------------------------------------------------------------------------------------------------ unscale --------- */

/* Whether p was scratched by a skip of this very iteration, by another optimiser: this one may use its gradient. */
static bool scratched_now(const ampl_scaler *s, const ampl_tensor *p) {
  for (int i = 0; i < s->nrecords; i++)
    if (s->records[i].skipped && has_param(&s->records[i], p)) return true;
  return false;
}

static void drop_grad(ampl_tensor *p) {
  ampl_tensor_release(p->grad);
  p->grad = NULL;
  p->flags &= (uint8_t)~AMPL_T_SCRATCHED;
}

/* Multiplying by 1 / scale would push the smaller values of a f16 out of its range: they are taken to f32 first. */
static ampl_status widen_grad(ampl_ctx *ctx, ampl_tensor *p) {
  ampl_tensor *wide;
  const bool grad = ctx->modes->grad;
  ctx->modes->grad = false;
  const ampl_status st = ampl_cast_to(ctx, p->grad, AMPL_F32, &wide);
  ctx->modes->grad = grad;
  AMPL_TRY(st);
  ampl_tensor_release(p->grad);
  p->grad = wide;
  return AMPL_OK;
}

static ampl_status ready_grads(ampl_scaler *s, const ampl_params *p) {
  for (int64_t i = 0; i < p->n; i++) {
    ampl_tensor *x = p->v[i];
    if (ampl_is_scratched(x) && !scratched_now(s, x)) drop_grad(x);
    if (x->grad && x->grad->dtype == AMPL_F16) AMPL_TRY(widen_grad(s->ctx, x));
  }
  return AMPL_OK;
}

/* t[HEAD + i]: the gradients that are `done` (unscaled already) or not; how many there are.  With `mark` a gradient
 * that two parameters share comes up once. */
static int64_t pick(const ampl_scaler *s, const ampl_scaler_record *r, ampl_tensor **t, const ampl_params *p, bool done,
                    bool mark) {
  int64_t n = 0;
  for (int64_t i = 0; i < p->n; i++) {
    ampl_tensor *g = p->v[i]->grad;
    t[HEAD + i] = g && is_unscaled(s, p->v[i], r) == done ? g : NULL;
    if (!t[HEAD + i]) continue;
    n++;
    if (!mark) continue;
    g->flags |= AMPL_T_UNSCALED;
    g->mark = g->storage->version;
  }
  return n;
}

/* After the write: what was picked is unscaled as it is now, or, if that failed, is not. */
static void settle_marks(ampl_tensor **t, int64_t n, bool good) {
  for (int64_t i = 0; i < n; i++) {
    if (!t[HEAD + i]) continue;
    if (good) t[HEAD + i]->mark = t[HEAD + i]->storage->version;
    else t[HEAD + i]->flags &= (uint8_t)~AMPL_T_UNSCALED;
  }
}

/* Fresh gradients are multiplied, the others looked at: their inf is this optimiser's, too. */
static ampl_status run_unscale(ampl_scaler *s, ampl_scaler_record *r, const ampl_params *p, ampl_tensor **t) {
  ampl_ctx *ctx = s->ctx;
  const ampl_args in = {OP(amp_unscale), t, HEAD + (int)p->n, NULL};
  ampl_tensor *inv;
  t[0] = r->found;
  t[1] = r->first_bad;
  t[2] = NULL;
  if (pick(s, r, t, p, true, false)) AMPL_TRY(ampl_call(ctx, &in, NULL));
  AMPL_TRY(ampl_call(ctx, &(ampl_args){OP(reciprocal), &s->scale, 1, NULL}, &inv));
  t[2] = inv;
  ampl_status st = AMPL_OK;
  if (pick(s, r, t, p, false, true)) {
    st = ampl_call(ctx, &in, NULL);
    settle_marks(t, p->n, st == AMPL_OK);
  }
  ampl_tensor_release(inv);
  return st;
}

static ampl_status unscale(ampl_scaler *s, uint64_t key, const ampl_params *p, ampl_scaler_record **out) {
  ampl_ctx *ctx = s->ctx;
  const size_t bytes = (size_t)(HEAD + p->n) * sizeof(ampl_tensor *);
  if (!s->scale && !s->loaded)
    return ampl_error(ctx, AMPL_ESTATE, "no loss was ever scaled: call backward on scaler:scale(loss), not on the "
                      "loss");
  if (!s->scale) AMPL_TRY(make_state(s, p->n ? ampl_device_of(p->v[0]) : ctx->device));
  if (p->n > INT32_MAX - HEAD) return ampl_error(ctx, AMPL_EARG, "%lld parameters are too many", (long long)p->n);
  AMPL_TRY(ready_grads(s, p));
  AMPL_TRY(add_record(s, key, p, out));
  ampl_tensor **t = ampl_obj_get(ctx, bytes);
  ampl_status st = t ? run_unscale(s, *out, p, t) : ampl_error(ctx, AMPL_ENOMEM, "out of memory");
  if (t) ampl_obj_put(ctx, t, bytes);
  if (st != AMPL_OK) forget_record(s, *out);
  return st;
}

ampl_status ampl_scaler_unscale(ampl_scaler *s, uint64_t key, const ampl_params *p) {
  AMPL_TRY(check_params(s, __func__, p));
  ampl_ctx *ctx = s->ctx;
  AMPL_NAMED(ctx, "unscale_");
  ampl_scaler_record *r = record_of(s, key);
  if (!s->o.enabled) return AMPL_OK;
  if (r && r->stage == AMPL_SCALER_UNSCALED)
    return ampl_error(ctx, AMPL_ESTATE, "unscale_ was called for this optimizer since the last update(); when "
                      "accumulating, unscale at the last backward only; scaler:update() starts over, also without a "
                      "step");
  if (r)
    return ampl_error(ctx, AMPL_ESTATE, "step was called for this optimizer since the last update(); unscale_ comes "
                      "before it");
  AMPL_TRY(unscale(s, key, p, &r));
  return AMPL_OK;
}

/* ------------------------------------------------------------------------------------------------ step ------------ */

static void note_skip(ampl_scaler *s, const ampl_scaler_record *r, const ampl_params *p, double scale) {
  const char *name = p->names && r->bad >= 0 && r->bad < p->n ? p->names[r->bad] : NULL;
  s->skipped++;
  if (!s->taken) s->calibrating++;
  s->last_taken = false;
  s->skip_step = s->taken + s->skipped;
  s->skip_parameter = r->bad;
  s->skip_scale = scale;
  snprintf(s->skip_name, sizeof s->skip_name, "%s", name ? name : "");
}

/* The gradients stay to be looked at, and are marked as used up. */
static void mark_scratched(const ampl_params *p) {
  for (int64_t i = 0; i < p->n; i++) {
    ampl_tensor *x = p->v[i];
    if (!x->grad) continue;
    x->flags |= AMPL_T_SCRATCHED;
    x->mark = x->grad->storage->version;
  }
}

static ampl_status skip(ampl_scaler *s, ampl_scaler_record *r, const ampl_params *p) {
  double scale;
  AMPL_TRY(read_scale(s, &scale));
  mark_scratched(p);
  r->skipped = true;
  r->stage = AMPL_SCALER_STEPPED;
  note_skip(s, r, p, scale);
  return AMPL_OK;
}

static ampl_status stepped_already(ampl_ctx *ctx) {
  return ampl_error(ctx, AMPL_ESTATE, "step was called for this optimizer since the last update(); call "
                    "scaler:update() once an iteration");
}

ampl_status ampl_scaler_step_allowed(ampl_scaler *s, uint64_t key, const ampl_params *p, bool *allowed) {
  AMPL_TRY(check_params(s, __func__, p));
  AMPL_NEED(s->ctx, allowed);
  ampl_ctx *ctx = s->ctx;
  AMPL_NAMED(ctx, "step");
  ampl_scaler_record *r = record_of(s, key);
  *allowed = !s->o.enabled;
  if (!s->o.enabled) return AMPL_OK;
  if (r && r->stage == AMPL_SCALER_STEPPED) return stepped_already(ctx);
  if (!r) AMPL_TRY(unscale(s, key, p, &r));
  AMPL_TRY(know(s, r));
  if (r->bad >= 0) AMPL_TRY(skip(s, r, p));
  else *allowed = true;
  return AMPL_OK;
}

ampl_status ampl_scaler_stepped(ampl_scaler *s, uint64_t key) {
  AMPL_NEED(NULL, s);
  ampl_ctx *ctx = s->ctx;
  AMPL_NAMED(ctx, "step");
  ampl_scaler_record *r = record_of(s, key);
  if (s->o.enabled) {
    if (!r || r->stage == AMPL_SCALER_STEPPED)
      return ampl_error(ctx, AMPL_ESTATE, "no step of this optimizer was allowed");
    r->stage = AMPL_SCALER_STEPPED;
  }
  s->taken++;
  s->last_taken = s->taken_now = true;
  return AMPL_OK;
}

ampl_status ampl_scaler_found(ampl_scaler *s, uint64_t key, int64_t *parameter) {
  AMPL_NEED(NULL, s);
  AMPL_NEED(s->ctx, parameter);
  ampl_ctx *ctx = s->ctx;
  AMPL_NAMED(ctx, "step");
  ampl_scaler_record *r = record_of(s, key);
  *parameter = -1;
  if (!s->o.enabled) return AMPL_OK;
  if (!r) return ampl_error(ctx, AMPL_ESTATE, "this optimizer was not unscaled since the last update()");
  AMPL_TRY(know(s, r));
  *parameter = r->bad;
  return AMPL_OK;
}

ampl_status ampl_scaler_skip(ampl_scaler *s, uint64_t key, const ampl_params *p) {
  AMPL_TRY(check_params(s, __func__, p));
  ampl_ctx *ctx = s->ctx;
  AMPL_NAMED(ctx, "step");
  ampl_scaler_record *r = record_of(s, key);
  if (!s->o.enabled) return AMPL_OK;
  if (!r || r->stage == AMPL_SCALER_STEPPED)
    return ampl_error(ctx, AMPL_ESTATE, "this optimizer was not unscaled, or was stepped, since the last update()");
  AMPL_TRY(know(s, r));
  AMPL_TRY(skip(s, r, p));
  return AMPL_OK;
}

/* ------------------------------------------------------------------------------------------------ update ---------- */

/* 'the gradient of "fc.weight" (parameter 3)', in a buffer of the context. */
static const char *culprit(const ampl_scaler *s) {
  char *text = ampl_text(s->ctx);
  const size_t size = sizeof s->ctx->text[0];
  const long long place = (long long)ampl_shown(s->ctx, s->skip_parameter);
  if (s->skip_parameter < 0) ampl_append(text, size, 0, "a gradient");
  else if (s->skip_name[0])
    ampl_append(text, size, 0, "the gradient of \"%.100s\" (parameter %lld)", s->skip_name, place);
  else ampl_append(text, size, 0, "the gradient of parameter %lld", place);
  return text;
}

static ampl_status floor_hit(ampl_scaler *s) {
  ampl_ctx *ctx = s->ctx;
  const bool told = s->floor_told;
  s->floor_told = true;
  if (s->o.on_floor == AMPL_ON_FLOOR_RAISE)
    return ampl_error(ctx, AMPL_EVALUE, "the scale is at its floor, min_scale %g, and %s still holds an inf or a NaN",
                      s->o.min_scale, culprit(s));
  if (s->o.on_floor == AMPL_ON_FLOOR_WARN && !told)
    ampl_warning(ctx, "scale_floor", "GradScaler: the scale is at its floor, min_scale %g, and %s still holds an inf "
                 "or a NaN", s->o.min_scale, culprit(s));
  return AMPL_OK;
}

/* The op for the flags t[2 ...]; `bad`: one of them is set.  The floor's policy is left to the caller. */
static ampl_status update_scale(ampl_scaler *s, ampl_tensor **t, int n, bool bad, bool *floored) {
  const ampl_scaler_options *o = &s->o;
  const ampl_value p[] = {V_F(o->growth_factor), V_F(o->backoff_factor), V_I(o->growth_interval), V_I(o->hysteresis),
                          V_F(o->min_scale),     V_F(o->max_scale)};
  int32_t counters[COUNTERS] = {0};
  t[0] = s->scale;
  t[1] = s->counters;
  AMPL_TRY(ampl_call(s->ctx, &(ampl_args){OP(amp_update_scale), t, 2 + n, p}, NULL));
  if (bad) AMPL_TRY(get_counters(s, counters));
  *floored = counters[FLOORED];
  if (!bad) s->floor_told = false;
  return AMPL_OK;
}

/* Counts the iteration and forgets its records. */
static void finish(ampl_scaler *s) {
  s->bad_before = s->bad_now ? s->bad_before + 1 : 0;
  s->bad_now = s->taken_now = false;
  if (s->ctx->anomaly) s->ctx->anomaly->scaled = false;
  drop_records(s);
}

static ampl_status give_up(const ampl_scaler *s, double scale) {
  return ampl_error(s->ctx, AMPL_ESTATE, "%lld iterations in a row had an inf or a NaN in a gradient "
                    "(max_consecutive_skips %lld); the first of the last one was %s, at scale %g; the scale is now %g. "
                    "If a lower scale does not help, the loss itself is not finite: look at it, at the learning rate "
                    "and, with ampl.set_detect_anomaly(true), at the op that makes it so",
                    (long long)s->bad_before, (long long)s->o.max_consecutive_skips, culprit(s), s->skip_scale, scale);
}

ampl_status ampl_scaler_update(ampl_scaler *s) {
  AMPL_NEED(NULL, s);
  ampl_ctx *ctx = s->ctx;
  AMPL_NAMED(ctx, "update");
  bool floored;
  double scale;
  if (!s->o.enabled) return AMPL_OK;
  if (!s->nrecords)
    return ampl_error(ctx, AMPL_ESTATE, "nothing was unscaled or stepped since the last update(); call "
                      "scaler:step(optimizer) first");
  for (int i = 0; i < s->nrecords; i++) AMPL_TRY(know(s, &s->records[i]));
  const size_t bytes = (size_t)(2 + s->nrecords) * sizeof(ampl_tensor *);
  ampl_tensor **t = ampl_obj_get(ctx, bytes);
  if (!t) return ampl_error(ctx, AMPL_ENOMEM, "out of memory");
  for (int i = 0; i < s->nrecords; i++) t[2 + i] = s->records[i].found;
  const bool bad = s->bad_now;
  const ampl_status st = update_scale(s, t, s->nrecords, bad, &floored);
  ampl_obj_put(ctx, t, bytes);
  AMPL_TRY(st);
  finish(s);
  if (floored) AMPL_TRY(floor_hit(s));
  if (bad && s->o.max_consecutive_skips && s->bad_before >= s->o.max_consecutive_skips) {
    AMPL_TRY(read_scale(s, &scale));
    return give_up(s, scale);
  }
  return AMPL_OK;
}

ampl_status ampl_scaler_set_scale(ampl_scaler *s, double scale) {
  AMPL_NEED(NULL, s);
  ampl_ctx *ctx = s->ctx;
  AMPL_NAMED(ctx, "update");
  if (!s->o.enabled) return AMPL_OK;
  AMPL_TRY(check_scale(ctx, &s->o, "new_scale", scale));
  for (int i = 0; i < s->nrecords; i++) AMPL_TRY(know(s, &s->records[i]));
  AMPL_TRY(set_state(s, scale, 0, s->o.hysteresis));
  s->floor_told = false;
  finish(s);
  return AMPL_OK;
}

ampl_status ampl_scaler_again(ampl_scaler *s, uint64_t key, const ampl_params *p, bool back_off) {
  AMPL_NEED(NULL, s);
  if (p) AMPL_TRY(check_params(s, __func__, p));
  ampl_ctx *ctx = s->ctx;
  AMPL_NAMED(ctx, "step");
  ampl_scaler_record *r = record_of(s, key);
  bool floored = false;
  if (!s->o.enabled || !r) return AMPL_OK;
  if (r->stage == AMPL_SCALER_STEPPED) return stepped_already(ctx);
  if (back_off) {
    ampl_tensor *t[3] = {NULL, NULL, r->found};
    AMPL_TRY(know(s, r));
    AMPL_TRY(update_scale(s, t, 1, r->bad >= 0, &floored));
  }
  forget_record(s, r);
  if (p) mark_scratched(p);
  s->bad_now = false;                   /* of this optimiser's evaluations only the last one counts */
  for (int i = 0; i < s->nrecords; i++) s->bad_now |= s->records[i].known && s->records[i].bad >= 0;
  if (floored) AMPL_TRY(floor_hit(s));
  return AMPL_OK;
}

/* ------------------------------------------------------------------------------------------------ state ----------- */

static int64_t consecutive(const ampl_scaler *s) {
  return s->bad_now ? s->bad_before + 1 : s->taken_now ? 0 : s->bad_before;
}

ampl_status ampl_scaler_get_state(ampl_scaler *s, ampl_scaler_state *out) {
  AMPL_NEED(NULL, s);
  AMPL_NEED(s->ctx, out);
  AMPL_NAMED(s->ctx, "state_dict");
  int32_t counters[COUNTERS];
  *out = (ampl_scaler_state){.growth_factor = s->o.growth_factor, .backoff_factor = s->o.backoff_factor,
                             .growth_interval = s->o.growth_interval, .taken = s->taken, .skipped = s->skipped,
                             .calibrating = s->calibrating, .consecutive_skips = consecutive(s)};
  AMPL_TRY(read_scale(s, &out->scale));
  AMPL_TRY(get_counters(s, counters));
  out->growth_tracker = counters[TRACKER];
  out->hysteresis_left = counters[HYSTERESIS] < s->o.hysteresis ? counters[HYSTERESIS] : s->o.hysteresis;
  return AMPL_OK;
}

ampl_status ampl_scaler_set_state(ampl_scaler *s, const ampl_scaler_state *state) {
  AMPL_NEED(NULL, s);
  AMPL_NEED(s->ctx, state);
  ampl_ctx *ctx = s->ctx;
  AMPL_NAMED(ctx, "load_state_dict");
  ampl_scaler_options o = s->o;
  if (!s->o.enabled) return AMPL_OK;
  o.growth_factor = state->growth_factor;
  o.backoff_factor = state->backoff_factor;
  o.growth_interval = state->growth_interval;
  AMPL_TRY(check_options(ctx, &o));
  AMPL_TRY(check_scale(ctx, &o, "the scale", state->scale));
  if (state->growth_tracker < 0 || state->growth_tracker > INT32_MAX)
    return ampl_error(ctx, AMPL_EVALUE, "growth tracker %lld is not a count", (long long)state->growth_tracker);
  if (state->hysteresis_left < 0 || state->hysteresis_left > INT32_MAX)
    return ampl_error(ctx, AMPL_EVALUE, "hysteresis left %lld is not a count", (long long)state->hysteresis_left);
  if (state->taken < 0 || state->skipped < 0 || state->calibrating < 0 || state->consecutive_skips < 0)
    return ampl_error(ctx, AMPL_EVALUE, "negative counts of steps");
  AMPL_TRY(set_state(s, state->scale, state->growth_tracker, state->hysteresis_left));
  s->o = o;
  s->loaded = true;
  s->floor_told = false;
  s->taken = state->taken;
  s->skipped = state->skipped;
  s->calibrating = state->calibrating;
  s->bad_before = state->consecutive_skips;
  return AMPL_OK;
}

void ampl_scaler_get_stats(const ampl_scaler *s, ampl_scaler_stats *out) {
  if (!out) return;
  *out = (ampl_scaler_stats){0};
  if (!s) return;
  *out = (ampl_scaler_stats){.taken = s->taken, .skipped = s->skipped, .calibrating = s->calibrating,
                             .consecutive_skips = consecutive(s), .last_taken = s->last_taken,
                             .skip_step = s->skip_step, .skip_parameter = s->skip_parameter,
                             .skip_scale = s->skip_scale, .skip_name = s->skip_name[0] ? s->skip_name : NULL};
}
