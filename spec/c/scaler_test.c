/* scaler_test.c: the gradient scaler through its C interface, with gradients set by hand.  (ctx.h: for allocations that
 * fail on demand.) */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ctx.h"

static int passed, failed;
static ampl_ctx *ctx;

static void check(bool good, const char *what, int line) {
  if (good) {
    passed++;
    return;
  }
  failed++;
  printf("scaler_test.c:%d: %s (last error: %s)\n", line, what, ampl_error_message(ctx));
}
#define CHECK(x) check((x), #x, __LINE__)
#define OK(call) check((call) == AMPL_OK, #call, __LINE__)
#define FAILS(code, call) check((call) == (code), #call " must fail with " #code, __LINE__)

/* A parameter of two elements, whose gradient is {a, b}. */
static ampl_tensor *parameter(ampl_dtype t) {
  ampl_tensor *p;
  OK(ampl_zeros(ctx, t, 1, (int64_t[]){2}, &p));
  OK(ampl_set_requires_grad(p, true));
  return p;
}

static void give_grad(ampl_tensor *p, float a, float b) {
  ampl_tensor *g, *cast;
  const float v[] = {a, b};
  const ampl_value to[] = {{.t = NULL}, {.i = ampl_tensor_dtype(p)}};
  OK(ampl_from_bytes(ctx, AMPL_F32, 1, (int64_t[]){2}, v, sizeof v, &g));
  ampl_value args[2];
  memcpy(args, to, sizeof args);
  args[0].t = g;
  OK(ampl_run(ctx, "to", args, 2, &cast, 1));
  OK(ampl_set_grad(p, cast));
  ampl_tensor_release(g);
  ampl_tensor_release(cast);
}

static float grad_at(const ampl_tensor *p, int i) {
  float v[2] = {NAN, NAN};
  const ampl_tensor *g = ampl_grad_of(p);
  if (g && ampl_tensor_dtype(g) == AMPL_F32) OK(ampl_to_bytes(g, v, sizeof v));
  return v[i];
}

/* Makes the scaler's state on the device. */
static void scale_something(ampl_scaler *s) {
  ampl_tensor *loss, *scaled;
  OK(ampl_full(ctx, AMPL_F32, 0, NULL, 1, &loss));
  OK(ampl_scaler_scale(s, loss, &scaled));
  ampl_tensor_release(loss);
  ampl_tensor_release(scaled);
}

static double scale_of(ampl_scaler *s) {
  double v = NAN;
  OK(ampl_scaler_get_scale(s, &v));
  return v;
}

static int64_t tracker_of(ampl_scaler *s) {
  ampl_scaler_state st;
  OK(ampl_scaler_get_state(s, &st));
  return st.growth_tracker;
}

/* One iteration of one optimiser; whether it was taken. */
static bool iterate(ampl_scaler *s, ampl_tensor *p, float grad) {
  bool allowed = false;
  const uint64_t key = 1;
  const ampl_params params = {&p, NULL, 1};
  give_grad(p, grad, 1);
  OK(ampl_scaler_step_allowed(s, key, &params, &allowed));
  if (allowed) OK(ampl_scaler_stepped(s, key));
  OK(ampl_scaler_update(s));
  return allowed;
}

static ampl_scaler *new_scaler(double init, double growth, double backoff, int64_t interval) {
  ampl_scaler_options o = AMPL_SCALER_OPTIONS_INIT;
  ampl_scaler *s;
  o.init_scale = init;
  o.growth_factor = growth;
  o.backoff_factor = backoff;
  o.growth_interval = interval;
  OK(ampl_scaler_new(ctx, &o, &s));
  scale_something(s);
  return s;
}

/* ------------------------------------------------------------------------------------------------ cases ----------- */

static void trace(void) {
  ampl_scaler *s = new_scaler(4, 2, 0.25, 2);
  ampl_tensor *p = parameter(AMPL_F32);
  CHECK(iterate(s, p, 1) && scale_of(s) == 4 && tracker_of(s) == 1);
  CHECK(iterate(s, p, 1) && scale_of(s) == 8 && tracker_of(s) == 0);
  CHECK(!iterate(s, p, INFINITY) && scale_of(s) == 2 && tracker_of(s) == 0);
  CHECK(!iterate(s, p, NAN) && scale_of(s) == 0.5);
  ampl_tensor_release(p);
  ampl_scaler_release(s);
}

static void never_infinite(void) {
  ampl_scaler *s = new_scaler(1e38, 16, 0.5, 1);
  ampl_tensor *p = parameter(AMPL_F32);
  for (int i = 0; i < 5; i++) CHECK(iterate(s, p, 1e-30f) && isfinite(scale_of(s)));
  ampl_scaler_release(s);
  s = new_scaler(1, 2, 0.5, 1);
  for (int i = 0; i < 140; i++) iterate(s, p, 1);
  CHECK(scale_of(s) == 0x1p127);
  for (int i = 0; i < 300; i++) iterate(s, p, NAN);
  CHECK(scale_of(s) == 0x1p-126);
  give_grad(p, 0x1p-100f, 0);
  CHECK(iterate(s, p, 0x1p-100f) && grad_at(p, 0) == 0x1p26f);
  ampl_tensor_release(p);
  ampl_scaler_release(s);
}

static void unscaling(void) {
  static const ampl_dtype dtypes[] = {AMPL_F32, AMPL_BF16, AMPL_F16};
  ampl_scaler *s = new_scaler(0x1p16, 2, 0.5, 100);
  for (int i = 0; i < 3; i++) {
    ampl_tensor *p = parameter(dtypes[i]);
    const ampl_params params = {&p, NULL, 1};
    const uint64_t key = ampl_scaler_key(s);
    int64_t bad;
    float small = 0;
    give_grad(p, 0x1p-8f, 2);
    OK(ampl_scaler_unscale(s, key, &params));
    OK(ampl_scaler_found(s, key, &bad));
    CHECK(bad == -1);
    const ampl_tensor *g = ampl_grad_of(p);
    CHECK(ampl_tensor_dtype(g) == (dtypes[i] == AMPL_BF16 ? AMPL_BF16 : AMPL_F32));
    if (dtypes[i] != AMPL_BF16) small = grad_at(p, 0);
    CHECK(dtypes[i] == AMPL_BF16 || small == 0x1p-24f);         /* a f16 could not hold its neighbours */
    ampl_tensor_release(p);
  }
  OK(ampl_scaler_update(s));
  ampl_scaler_release(s);
}

static void order(void) {
  ampl_scaler *s;
  ampl_tensor *p = parameter(AMPL_F32);
  const ampl_params params = {&p, NULL, 1};
  bool allowed;
  OK(ampl_scaler_new(ctx, NULL, &s));
  FAILS(AMPL_ESTATE, ampl_scaler_unscale(s, 1, &params));       /* nothing was scaled */
  FAILS(AMPL_ESTATE, ampl_scaler_step_allowed(s, 1, &params, &allowed));
  FAILS(AMPL_ESTATE, ampl_scaler_update(s));
  CHECK(scale_of(s) == 65536);
  scale_something(s);
  give_grad(p, 65536, 65536);
  OK(ampl_scaler_unscale(s, 1, &params));
  FAILS(AMPL_ESTATE, ampl_scaler_unscale(s, 1, &params));
  CHECK(strstr(ampl_error_message(ctx), "unscale_") != NULL);
  CHECK(grad_at(p, 0) == 1);
  OK(ampl_scaler_step_allowed(s, 1, &params, &allowed));
  CHECK(allowed && grad_at(p, 0) == 1);
  OK(ampl_scaler_stepped(s, 1));
  FAILS(AMPL_ESTATE, ampl_scaler_stepped(s, 1));
  FAILS(AMPL_ESTATE, ampl_scaler_step_allowed(s, 1, &params, &allowed));
  FAILS(AMPL_ESTATE, ampl_scaler_unscale(s, 1, &params));
  OK(ampl_scaler_update(s));
  FAILS(AMPL_ESTATE, ampl_scaler_update(s));
  ampl_tensor_release(p);
  ampl_scaler_release(s);
}

/* A parameter of two optimisers is divided once; each optimiser sees the overflow; keys do not come back. */
static void sharing(void) {
  ampl_scaler *s = new_scaler(8, 2, 0.5, 100);
  ampl_tensor *p = parameter(AMPL_F32), *q = parameter(AMPL_F32), *both[] = {q, p};
  const ampl_params one = {&p, NULL, 1}, two = {both, (const char *const[]){"q", "p"}, 2};
  const uint64_t a = ampl_scaler_key(s), b = ampl_scaler_key(s);
  bool allowed;
  CHECK(a != b);
  give_grad(p, 8, 16);
  give_grad(q, 8, 16);
  OK(ampl_scaler_step_allowed(s, a, &one, &allowed));
  OK(ampl_scaler_stepped(s, a));
  OK(ampl_scaler_step_allowed(s, b, &two, &allowed));
  OK(ampl_scaler_stepped(s, b));
  CHECK(allowed && grad_at(p, 0) == 1 && grad_at(q, 1) == 2);
  OK(ampl_scaler_update(s));
  give_grad(p, 8, INFINITY);
  give_grad(q, 8, 16);
  OK(ampl_scaler_step_allowed(s, a, &one, &allowed));
  CHECK(!allowed);
  OK(ampl_scaler_step_allowed(s, b, &two, &allowed));
  CHECK(!allowed && grad_at(p, 0) == 1);
  ampl_scaler_stats st;
  ampl_scaler_get_stats(s, &st);
  CHECK(st.taken == 2 && st.skipped == 2 && st.consecutive_skips == 1 && !st.last_taken);
  CHECK(st.skip_parameter == 1 && st.skip_name && !strcmp(st.skip_name, "p"));
  CHECK(st.skip_scale == 8 && st.skip_step == 4);
  OK(ampl_scaler_update(s));
  CHECK(scale_of(s) == 4);
  CHECK(ampl_grad_of(p) && isinf(grad_at(p, 1)));               /* still there to be looked at ... */
  give_grad(q, 4, 4);
  OK(ampl_scaler_step_allowed(s, b, &two, &allowed));
  CHECK(allowed && !ampl_grad_of(p) && grad_at(q, 0) == 1);     /* ... but used up */
  OK(ampl_scaler_stepped(s, b));
  OK(ampl_scaler_update(s));
  ampl_tensor_release(p);
  ampl_tensor_release(q);
  ampl_scaler_release(s);
}

/* Without any gradient a step is allowed and the iteration counts as clean. */
static void no_gradients(void) {
  ampl_scaler *s = new_scaler(8, 2, 0.5, 2);
  ampl_tensor *p = parameter(AMPL_F32);
  const ampl_params params = {&p, NULL, 1};
  bool allowed;
  for (int i = 0; i < 2; i++) {
    OK(ampl_scaler_step_allowed(s, 1, &params, &allowed));
    CHECK(allowed);
    OK(ampl_scaler_stepped(s, 1));
    OK(ampl_scaler_update(s));
  }
  CHECK(scale_of(s) == 16);
  ampl_tensor_release(p);
  ampl_scaler_release(s);
}

static int warnings;
static void count_warning(void *ud, const char *code, const char *message) {
  (void)ud, (void)message;
  warnings += !strcmp(code, "scale_floor");
}

static void limits(void) {
  ampl_scaler_options o = AMPL_SCALER_OPTIONS_INIT;
  ampl_scaler *s;
  ampl_tensor *p = parameter(AMPL_F32);
  const ampl_params params = {&p, NULL, 1};
  bool allowed;
  o.init_scale = 4;
  o.min_scale = 1;
  ampl_on_warning(ctx, count_warning, NULL);
  OK(ampl_scaler_new(ctx, &o, &s));
  scale_something(s);
  for (int i = 0; i < 5; i++) iterate(s, p, NAN);
  CHECK(scale_of(s) == 1 && warnings == 1);
  ampl_scaler_release(s);
  o.on_floor = AMPL_ON_FLOOR_RAISE;
  o.max_consecutive_skips = 5;
  OK(ampl_scaler_new(ctx, &o, &s));
  scale_something(s);
  for (int i = 0; i < 2; i++) iterate(s, p, NAN);
  give_grad(p, NAN, 0);
  OK(ampl_scaler_step_allowed(s, 1, &params, &allowed));
  FAILS(AMPL_EVALUE, ampl_scaler_update(s));
  CHECK(strstr(ampl_error_message(ctx), "parameter 0") != NULL);
  o = (ampl_scaler_options)AMPL_SCALER_OPTIONS_INIT;
  o.max_consecutive_skips = 3;
  ampl_scaler_release(s);
  OK(ampl_scaler_new(ctx, &o, &s));
  scale_something(s);
  for (int i = 0; i < 2; i++) iterate(s, p, NAN);
  give_grad(p, NAN, 0);
  OK(ampl_scaler_step_allowed(s, 1, &params, &allowed));
  FAILS(AMPL_ESTATE, ampl_scaler_update(s));
  CHECK(iterate(s, p, 1));
  o.min_scale = 0;
  ampl_scaler *none;
  FAILS(AMPL_EVALUE, ampl_scaler_new(ctx, &o, &none));
  CHECK(none == NULL);
  FAILS(AMPL_EVALUE, ampl_scaler_set_scale(s, INFINITY));
  FAILS(AMPL_EVALUE, ampl_scaler_set_scale(s, 0));
  OK(ampl_scaler_set_scale(s, 32));
  CHECK(scale_of(s) == 32 && tracker_of(s) == 0);
  ampl_on_warning(ctx, NULL, NULL);
  ampl_tensor_release(p);
  ampl_scaler_release(s);
}

/* Evaluations within one step: the second backs off and is clean. */
static void evaluations(void) {
  ampl_scaler *s = new_scaler(8, 2, 0.5, 100);
  ampl_tensor *p = parameter(AMPL_F32);
  const ampl_params params = {&p, NULL, 1};
  int64_t bad;
  bool allowed;
  give_grad(p, INFINITY, 8);
  OK(ampl_scaler_unscale(s, 1, &params));
  OK(ampl_scaler_found(s, 1, &bad));
  CHECK(bad == 0);
  OK(ampl_scaler_again(s, 1, &params, true));
  CHECK(scale_of(s) == 4);
  give_grad(p, 4, 8);
  OK(ampl_scaler_step_allowed(s, 1, &params, &allowed));
  CHECK(allowed && grad_at(p, 0) == 1);
  OK(ampl_scaler_stepped(s, 1));
  OK(ampl_scaler_update(s));
  ampl_scaler_stats st;
  ampl_scaler_get_stats(s, &st);
  CHECK(scale_of(s) == 4 && st.taken == 1 && st.skipped == 0 && st.consecutive_skips == 0);
  ampl_tensor_release(p);
  ampl_scaler_release(s);
}

static void disabled(void) {
  ampl_scaler_options o = AMPL_SCALER_OPTIONS_INIT;
  ampl_scaler *s;
  ampl_tensor *p = parameter(AMPL_F32), *x, *y;
  const ampl_params params = {&p, NULL, 1};
  bool allowed = false;
  o.enabled = false;
  o.growth_factor = 0.5;
  OK(ampl_scaler_new(ctx, &o, &s));
  OK(ampl_full(ctx, AMPL_F32, 0, NULL, 3, &x));
  OK(ampl_scaler_scale(s, x, &y));
  CHECK(x == y && scale_of(s) == 1);
  give_grad(p, INFINITY, 2);
  OK(ampl_scaler_unscale(s, 1, &params));
  OK(ampl_scaler_unscale(s, 1, &params));
  OK(ampl_scaler_step_allowed(s, 1, &params, &allowed));
  CHECK(allowed && grad_at(p, 1) == 2);
  OK(ampl_scaler_update(s));
  ampl_tensor_release(x);
  ampl_tensor_release(y);
  ampl_tensor_release(p);
  ampl_scaler_release(s);
}

/* Losses of 16 bits are scaled in f32. */
static void losses(void) {
  static const ampl_dtype dtypes[] = {AMPL_F16, AMPL_BF16, AMPL_F32, AMPL_F64};
  ampl_scaler *s = new_scaler(65536, 2, 0.5, 100);
  for (int i = 0; i < 4; i++)
    for (int rank = 0; rank < 2; rank++) {
      ampl_tensor *x, *y;
      double v = 0;
      OK(ampl_full(ctx, dtypes[i], rank, (int64_t[]){1}, 1.5, &x));
      OK(ampl_scaler_scale(s, x, &y));
      OK(ampl_item(y, &v));
      CHECK(v == 98304 && ampl_ndim(y) == rank);
      CHECK(ampl_tensor_dtype(y) == (dtypes[i] == AMPL_F64 ? AMPL_F64 : AMPL_F32));
      ampl_tensor_release(x);
      ampl_tensor_release(y);
    }
  ampl_tensor *x, *y;
  OK(ampl_full(ctx, AMPL_I64, 0, NULL, 1, &x));
  FAILS(AMPL_EDTYPE, ampl_scaler_scale(s, x, &y));
  ampl_tensor_release(x);
  ampl_scaler_release(s);
}

static void state(void) {
  ampl_scaler *s = new_scaler(3, 4, 0.5, 2);
  ampl_scaler_state a, b;
  OK(ampl_scaler_get_state(s, &a));
  CHECK(a.scale == 3 && a.growth_factor == 4 && a.backoff_factor == 0.5);
  CHECK(a.growth_interval == 2 && a.growth_tracker == 0);
  b = a;
  b.scale = 32;
  b.growth_tracker = 1;
  b.skipped = 7;
  OK(ampl_scaler_set_state(s, &b));
  OK(ampl_scaler_get_state(s, &a));
  CHECK(!memcmp(&a, &b, sizeof a));
  b.scale = 0;
  FAILS(AMPL_EVALUE, ampl_scaler_set_state(s, &b));
  CHECK(scale_of(s) == 32);
  ampl_scaler_release(s);
}

/* An iteration in which the nth allocation fails, n = 1, 2 ...: an error, nothing lost, usable after. */
static void no_memory(void) {
  ampl_tensor *p = parameter(AMPL_F16), *loss, *scaled;
  const ampl_params params = {&p, NULL, 1};
  int errors = 0;
  bool done = false, allowed;
  OK(ampl_full(ctx, AMPL_F16, 0, NULL, 1, &loss));
  for (long n = 1; !done && n < 1000; n++) {
    ampl_scaler *s = NULL;
    give_grad(p, n % 2 ? 1 : INFINITY, 1);
    ampl_mem_fail_at(ctx, n, false);
    ampl_status st = ampl_scaler_new(ctx, NULL, &s);
    if (st == AMPL_OK) st = ampl_scaler_scale(s, loss, &scaled);
    if (st == AMPL_OK) ampl_tensor_release(scaled);
    if (st == AMPL_OK) st = ampl_scaler_step_allowed(s, 1, &params, &allowed);
    if (st == AMPL_OK && allowed) st = ampl_scaler_stepped(s, 1);
    if (st == AMPL_OK) st = ampl_scaler_update(s);
    done = st == AMPL_OK;
    ampl_mem_fail_at(ctx, 0, false);
    CHECK(st == AMPL_OK || st == AMPL_ENOMEM);
    errors += st == AMPL_ENOMEM;
    ampl_scaler_release(s);
  }
  CHECK(done && errors > 5);
  ampl_tensor_release(loss);
  ampl_tensor_release(p);
}

int main(void) {
  setvbuf(stdout, NULL, _IOLBF, 0);
  if (ampl_ctx_new(NULL, &ctx) != AMPL_OK) return 1;
  ampl_memory_info before, after;
  ampl_memory(ctx, &before);
  trace();
  never_infinite();
  unscaling();
  order();
  sharing();
  no_gradients();
  limits();
  evaluations();
  disabled();
  losses();
  state();
  no_memory();
  ampl_memory(ctx, &after);
  CHECK(after.tensors == before.tensors && after.live == before.live);
  ampl_ctx_release(ctx);
  printf("scaler: %d passed, %d failed\n", passed, failed);
  return failed != 0;
}
