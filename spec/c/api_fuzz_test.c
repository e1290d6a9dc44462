/* api_fuzz_test.c: every function of ampl.h, in any order, with what a careless host may give it: NULL, absent and
 * wrong kinds, numbers out of range, tensors of another context, lists without entries; all released in any order.
 * Wild pointers are not given: no library can know them.  A call must end with a status, leave its results NULL when it
 * failed and say why, and the context must compute as before.
 *
 *     api_fuzz_test [rounds [seed [v]]]     `v` names every call before it is made; then the last line is the culprit
 */
#include "ctx.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static int passed, failed;
static bool verbose;
static char last_call[256];

/* ------------------------------------------------------------------------------------------------ random ---------- */

static uint64_t state;
static uint32_t draw(void) {
  state = state * 6364136223846793005u + 1442695040888963407u;
  return (uint32_t)(state >> 33);
}
static int below(int n) { return (int)(draw() % (unsigned)n); }
static bool one_in(int n) { return below(n) == 0; }
#define PICK(list) (list)[below((int)(sizeof(list) / sizeof *(list)))]

static int64_t any_int(void) {
  static const int64_t odd[] = {-1, -2, -3, -9, 7, 8, 9, 16, 63, 64, 65, 255, 1000, INT32_MAX, INT32_MIN, 1ll << 31,
                                1ll << 53, 1ll << 62, INT64_MAX, INT64_MIN, INT64_MIN + 1, -100};
  return one_in(4) ? PICK(odd) : below(4);
}

static double any_float(void) {
  static const double odd[] = {0, -0.0, 1, -1, 0.5, 2, 1e-30, 1e30, 1e300, -1e300, 1e-320, INFINITY, -INFINITY, NAN,
                               9007199254740993.0, 0x1p63, -0x1p63};
  return one_in(2) ? PICK(odd) : below(2000) / 500.0 - 2;
}

static int any_enum(int count) { return one_in(6) ? (int)any_int() : below(count); }

/* ------------------------------------------------------------------------------------------------ objects --------- */

enum { TENSORS = 40, SCALERS = 3, MODES = 3, HOOKS = 8 };

static ampl_ctx *ctx, *other;
static ampl_tensor *pool[TENSORS], *foreign;
static ampl_scaler *scalers[SCALERS];
static uint64_t keys[SCALERS];
static ampl_modes *modes[MODES];
static struct { ampl_tensor *x; uint64_t id; } hooks[HOOKS];
static int depth;                       /* of calls inside callbacks */
static bool written;                    /* an op in place had a graph in this round: see end_round */

static void keep(ampl_tensor *x) {      /* takes the reference */
  if (!x) return;
  ampl_tensor **slot = &pool[below(TENSORS)];
  ampl_tensor_release(*slot);
  *slot = x;
}

static ampl_tensor *any_tensor(void) {
  if (one_in(25)) return NULL;
  if (one_in(60)) return foreign;
  return pool[below(TENSORS)];
}

static ampl_ctx *any_ctx(void) { return one_in(30) ? NULL : ctx; }

/* ------------------------------------------------------------------------------------------------ checking -------- */

static void complain(const char *what) {
  if (failed++ < 20) printf("FAILED: %s: %s (%s)\n", last_call, what, ampl_error_message(ctx)), fflush(stdout);
}

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static double started;
__attribute__((format(printf, 1, 2))) static void calling(const char *fmt, ...) {
  va_list args;
  va_start(args, fmt);
  vsnprintf(last_call, sizeof last_call, fmt, args);
  va_end(args);
  if (verbose) printf("%s\n", last_call), fflush(stdout);
  started = now();
}

/* A status is one there is, and a failure says why. */
static ampl_status ended(ampl_status s) {
  if ((unsigned)s >= AMPL_STATUS_COUNT) complain("no status");
  if (s != AMPL_OK && !*ampl_error_message(ctx) && !*ampl_error_message(other) && !*ampl_error_message(NULL))
    complain("an error without a text");
  if (now() - started > 5) complain("it took more than 5 s");
  if (depth == 1 && *ctx->op) complain("an op's name is left with the context");
  passed++;
  return s;
}

/* The same for n results, which are kept. */
static void ended_with(ampl_status s, ampl_tensor **out, int n) {
  ended(s);
  for (int k = 0; k < n; k++) {
    if (s != AMPL_OK && out[k]) complain("a result although it failed");
    if (s == AMPL_OK && out[k] && (ampl_ndim(out[k]) > AMPL_RANK_MAX || ampl_numel(out[k]) < 0)) complain("no tensor");
    keep(s == AMPL_OK ? out[k] : NULL);
  }
}

/* The context computes as it should. */
static void check_usable(void) {
  float v[3] = {1, 2, 3};
  ampl_tensor *x = NULL, *y = NULL;
  ampl_interrupt_clear(ctx);
  const uint64_t off = ampl_enter_autocast(ctx, &(ampl_autocast_options){.dtype = AMPL_DTYPE_NONE});
  ampl_status s = ampl_from_bytes(ctx, AMPL_F32, 1, (int64_t[]){3}, v, sizeof v, &x);
  if (s == AMPL_OK) s = ampl_run(ctx, "add", (ampl_value[]){{.t = x}, {.t = x}}, 2, &y, 1);
  if (s == AMPL_OK) s = ampl_to_bytes(y, v, sizeof v);
  if (s != AMPL_OK || v[0] != 2 || v[2] != 6) complain("the context is of no use after");
  ampl_tensor_release(x);
  ampl_tensor_release(y);
  ampl_leave(ctx, NULL, off);
}

/* ------------------------------------------------------------------------------------------------ arguments ------- */

static const char *const strings[] = {NULL, "", "cpu", "cpu:0", "null", "cuda", "nope", "mean", "%s%n", "ij,jk->ik",
                                      "a very long name that is no name of anything, "
                                      "a very long name that is no name of anything"};

typedef struct lists {                  /* what values point to */
  int64_t      ints[80];
  ampl_tensor *tensors[24];
  int          ni, nt;
} lists;

static ampl_ints any_ints(lists *l) {
  ampl_ints r = {NULL, one_in(12) ? any_int() : below(5)};
  if (one_in(30)) return r;
  if (l->ni > 40) l->ni = 0;
  r.v = l->ints + l->ni;
  for (int i = 0; i < 9; i++) l->ints[l->ni++] = any_int();
  if (r.n > 9) r.n = one_in(2) ? 9 : r.n > AMPL_INTS_MAX ? r.n : 9;     /* over the maximum the length alone refuses */
  return r;
}

static ampl_list any_list(lists *l) {
  ampl_list r = {NULL, one_in(12) ? any_int() : below(5)};
  if (one_in(30)) return r;
  if (l->nt > 12) l->nt = 0;
  r.v = l->tensors + l->nt;
  for (int i = 0; i < 6; i++) l->tensors[l->nt++] = any_tensor();
  if (r.n > 6) r.n = 6;
  return r;
}

static ampl_value any_value(const ampl_arg *a, lists *l) {
  switch (a->kind) {
  case AMPL_ARG_TENSOR:
  case AMPL_ARG_TENSOR_OPT: return (ampl_value){.t = any_tensor()};
  case AMPL_ARG_TENSORS: return (ampl_value){.ts = any_list(l)};
  case AMPL_ARG_DIMS:
  case AMPL_ARG_SIZES:
  case AMPL_ARG_PADDING: return (ampl_value){.l = any_ints(l)};
  case AMPL_ARG_FLOAT: return (ampl_value){.f = any_float()};
  case AMPL_ARG_STRING:
  case AMPL_ARG_DEVICE: return (ampl_value){.s = PICK(strings)};
  case AMPL_ARG_DTYPE: return (ampl_value){.i = any_enum(AMPL_DTYPE_COUNT)};
  default: return (ampl_value){.i = any_int()};
  }
}

/* The record's own values more often than not, so that calls get past the checks. */
static ampl_value likely_value(const ampl_arg *a, lists *l) {
  const bool tensor = a->kind == AMPL_ARG_TENSOR || a->kind == AMPL_ARG_TENSOR_OPT || a->kind == AMPL_ARG_TENSORS;
  if (tensor || a->flags & AMPL_REQUIRED || one_in(3)) return any_value(a, l);
  return a->def;
}

/* ------------------------------------------------------------------------------------------------ actions --------- */

static void run_op(void) {
  const ampl_op *op = ampl_op_at(one_in(200) ? (int)any_int() : below(ampl_op_number()));
  const ampl_arg *args = ampl_op_args(op);
  ampl_value v[20];
  lists l = {.ni = 0};
  ampl_tensor *out[10];
  int narg = 0;
  while (args && narg < 18 && args[narg].name) v[narg] = likely_value(&args[narg], &l), narg++;
  v[narg] = v[narg + 1] = (ampl_value){.i = 0};
  const int nargs = one_in(30) ? below(narg + 3) - 1 : narg, nout = one_in(20) ? below(10) : ampl_op_nout(op);
  const int form = below(3);
  for (int k = 0; k < 10; k++) out[k] = NULL;
  if (one_in(40)) ampl_interrupt(ctx);
  calling("%s %s, %d arguments, %d results", form == 0 ? "ampl_run" : form == 1 ? "ampl_run_op" : "in place",
          ampl_op_name(op), nargs, nout);
  ampl_tensor **room = one_in(60) ? NULL : out;
  const ampl_value *given = one_in(60) ? NULL : v;
  if (form == 0) ended_with(ampl_run(any_ctx(), ampl_op_name(op), given, nargs, room, nout), out, nout);
  else if (form == 1) ended_with(ampl_run_op(any_ctx(), op, given, nargs, room, nout), out, nout);
  else if (ended(ampl_run_op_inplace(any_ctx(), op, given, nargs)) == AMPL_OK && ampl_requires_grad(v[0].t))
    written = true;
  ampl_interrupt_clear(ctx);
}

static void release_nothing(void *ud) { ++*(int *)ud; }

static void make(void) {
  static char memory[1 << 12];
  static int released;
  ampl_tensor *x = NULL;
  int64_t shape[8];
  for (int i = 0; i < 8; i++) shape[i] = one_in(15) ? any_int() : below(5);
  const ampl_dtype t = (ampl_dtype)any_enum(AMPL_DTYPE_COUNT);
  const int ndim = one_in(10) ? (int)any_int() : below(5), before = released;
  size_t need = ampl_dtype_size(t), bytes;
  for (int d = 0; d < ndim && d < 8; d++) need *= (size_t)shape[d];
  bytes = one_in(5) || need > sizeof memory ? (size_t)below(64) : need;
  const int64_t *s = one_in(20) ? NULL : shape;
  if (ndim > 8) s = NULL;
  ampl_tensor **out = one_in(50) ? NULL : &x;
  void *data = one_in(20) ? NULL : memory;
  calling("make %d dimensions", ndim);
  switch (below(9)) {
  case 0: ended_with(ampl_empty(any_ctx(), t, ndim, s, out), &x, 1); break;
  case 1: ended_with(ampl_zeros(any_ctx(), t, ndim, s, out), &x, 1); break;
  case 2: ended_with(ampl_full(any_ctx(), t, ndim, s, any_float(), out), &x, 1); break;
  case 3: ended_with(ampl_randn(any_ctx(), t, ndim, s, out), &x, 1); break;
  case 4: ended_with(ampl_from_bytes(any_ctx(), t, ndim, s, data, bytes, out), &x, 1); break;
  case 5:
    if (need > sizeof memory && data) break;
    ended(ampl_from_memory(any_ctx(), t, ndim, s, data, release_nothing, &released, out));
    if (!x && released != before + 1) complain("a failure did not give the memory back");
    keep(x);
    break;
  case 6: ended_with(ampl_number(any_ctx(), any_float(), out), &x, 1); break;
  case 7: ended_with(ampl_integer(any_ctx(), any_int(), out), &x, 1); break;
  default: ended_with(ampl_boolean(any_ctx(), one_in(2), out), &x, 1);
  }
}

static void look(void) {
  ampl_tensor *x = any_tensor();
  double f;
  int64_t i;
  char bytes[64];
  calling("look at a tensor");
  if (x == NULL && (ampl_ndim(x) || ampl_shape(x) || ampl_strides(x) || ampl_numel(x) || ampl_data(x) ||
                    *ampl_tensor_device(x) || ampl_is_contiguous(x) || ampl_requires_grad(x) || ampl_is_leaf(x) ||
                    ampl_grad_of(x) || ampl_tensor_version(x) || (int)ampl_tensor_dtype(x) != AMPL_DTYPE_NONE))
    complain("an answer about nothing");
  ampl_requires_grad(x);
  ended(ampl_item(x, one_in(20) ? NULL : &f));
  ended(ampl_item_any(x, one_in(20) ? NULL : &f, one_in(20) ? NULL : &i));
  const size_t need = (size_t)ampl_numel(x) * ampl_dtype_size(ampl_tensor_dtype(x));
  ended(ampl_to_bytes(x, one_in(20) ? NULL : bytes, need <= sizeof bytes ? need : (size_t)below(8)));
  ampl_tensor_retain(x);
  ampl_tensor_release(x);
}

static void look_at_names(void) {
  const char *name = PICK(strings), *why;
  const ampl_dtype t = (ampl_dtype)any_enum(AMPL_DTYPE_COUNT);
  const ampl_op *op = ampl_op_at((int)any_int());
  calling("look at names");
  ampl_dtype_name(t), ampl_dtype_size(t), ampl_dtype_is_float(t), ampl_dtype_from_name(name);
  ampl_dtype_promote(t, (ampl_dtype)any_enum(AMPL_DTYPE_COUNT));
  ampl_status_name((ampl_status)any_int());
  ampl_op_find(name), ampl_op_name(op), ampl_op_doc(op), ampl_op_args(op), ampl_op_nout(op), ampl_op_flags(op);
  ampl_op_has_backward(op), ampl_op_category(op, one_in(2) ? NULL : &why);
  ampl_device_name((int)any_int());
  ampl_backend_candidate((int)any_int(), one_in(2) ? NULL : &name, one_in(2) ? NULL : &why);
  ampl_cpu_isa_text(), ampl_cpu_use_bf16_dot(-1), ampl_cpu_use_winograd(-1);
  passed++;
}

static void memory(void) {
  ampl_memory_info m;
  ampl_ctx *c = any_ctx();
  calling("memory");
  ampl_memory(c, one_in(20) ? NULL : &m);
  ampl_memory_reset_peak(c), ampl_memory_pressed(c), ampl_memory_collected(c);
  if (one_in(20)) ampl_memory_trim(c);
  ampl_memory_set_limit(c, (size_t)below(1 << 16));
  ampl_memory_set_limit(ctx, 32u << 20);
  passed++;
}

static void collect_some(void *ud) {
  (void)ud;
  keep(NULL);
  ampl_tensor **slot = &pool[below(TENSORS)];
  ampl_tensor_release(*slot);
  *slot = NULL;
}
static void warned(void *ud, const char *code, const char *message) {
  (void)ud;
  if (!code || !*code || !message || !*message) complain("a warning without a text");
}

static void settings(void) {
  uint64_t a, b;
  ampl_ctx *c = any_ctx();
  calling("settings");
  ampl_on_collect(c, one_in(3) ? NULL : collect_some, NULL);
  ampl_on_warning(c, one_in(3) ? NULL : warned, NULL);
  ampl_set_threads(c, one_in(3) ? (int)any_int() : 2), ampl_threads(c);
  ampl_set_index_base(c, any_int());
  ampl_set_index_base(ctx, one_in(2));
  ampl_manual_seed(c, draw());
  ampl_random_state(c, one_in(20) ? NULL : &a, one_in(20) ? NULL : &b);
  ampl_set_random_state(c, (uint64_t)any_int(), (uint64_t)any_int());
  ampl_interrupted(c), ampl_interrupt(NULL), ampl_interrupt_clear(NULL);
  ampl_error_message(c), ampl_error_code(c), ampl_error_op(c);
  ended(ampl_synchronize(c));
  ampl_fail(c, (ampl_status)any_enum(AMPL_STATUS_COUNT), one_in(5) ? NULL : "a host's own error: %s%n");
  ampl_set_threads(ctx, 2);
}

static void where(void *ud, char *text, size_t n) { (void)ud, snprintf(text, n, "here"); }

static void modes_and_regions(void) {
  static uint64_t ids[16];
  static const char *const good[] = {"softmax", "exp", NULL}, *const bad[] = {"nope", NULL};
  ampl_ctx *c = any_ctx();
  ampl_modes **m = &modes[below(MODES)];
  ampl_cast_stats stats;
  uint64_t *id = &ids[below(16)];
  calling("modes");
  switch (below(14)) {
  case 0: *id = ampl_enter_grad(c, one_in(2)); break;
  case 1: *id = ampl_enter_inference(c, one_in(2)); break;
  case 2:
  case 3: {
    const ampl_autocast_options o = {one_in(3) ? PICK(strings) : NULL, any_enum(AMPL_DTYPE_COUNT), !one_in(4),
                                     below(4) - 1, one_in(3) ? good : one_in(5) ? bad : NULL, one_in(3) ? good : NULL};
    *id = ampl_enter_autocast(c, one_in(20) ? NULL : &o);
    break;
  }
  case 4: ampl_leave(c, one_in(2) ? NULL : *m, *id), *id = 0; break;
  case 5: ampl_leave(c, NULL, draw()); break;
  case 6: ended(ampl_autocast_enter(c, one_in(2), any_enum(AMPL_DTYPE_COUNT), one_in(2))); break;
  case 7:
  case 8: ampl_autocast_leave(c); break;
  case 9: ampl_set_grad_enabled(c, !one_in(3)), ampl_grad_enabled(c), ampl_inference_enabled(c); break;
  case 10:
    ampl_autocast_enabled(c, PICK(strings)), ampl_autocast_low_dtype(c, PICK(strings));
    ampl_autocast_cache_stats(c, one_in(10) ? NULL : &stats), ampl_autocast_clear_cache(c);
    break;
  case 11:
    ampl_modes_free(c, c ? *m : NULL);
    if (c) *m = NULL;
    if (c && ampl_modes_new(c, one_in(20) ? NULL : m) != AMPL_OK) *m = NULL;
    break;
  case 12: ampl_modes_use(c, one_in(2) ? NULL : *m); break;
  default:
    ended(ampl_set_anomaly(c, one_in(3), one_in(2), one_in(2), one_in(2), one_in(2) ? NULL : where, NULL));
    ampl_anomaly_enabled(c);
  }
  for (int i = 0; i < 16 && one_in(8); i++) ampl_leave(ctx, NULL, ids[i]);
  passed++;
}

static void act(void);

static ampl_status hook(void *ud, ampl_ctx *c, ampl_tensor *dy, ampl_tensor **replacement) {
  (void)ud;
  if (one_in(4)) return ampl_fail(c, AMPL_EVALUE, "the hook would not");
  if (one_in(4)) ampl_run(c, "neg", &(ampl_value){.t = dy}, 1, replacement, 1);
  if (one_in(10)) ampl_tensor_retain(*replacement ? NULL : (*replacement = pool[below(TENSORS)]));
  if (depth < 2) act();
  return AMPL_OK;
}
static void hook_gone(void *ud) { (void)ud; }

static ampl_status function_backward(void *ud, ampl_ctx *c, int ny, ampl_tensor *const *dy, int nx, ampl_tensor **dx,
                                     const bool *need) {
  (void)ud;
  if (one_in(5)) return ampl_fail(c, AMPL_EVALUE, "the function would not");
  for (int i = 0; i < nx; i++)
    if (need[i] && ny && dy[0] && !one_in(4)) ampl_tensor_retain(dx[i] = dy[0]);
  if (depth < 2) act();
  return AMPL_OK;
}

static void graph(void) {
  ampl_tensor *x = any_tensor(), *list[6], *room[6] = {NULL};
  const int n = one_in(20) ? (int)any_int() : below(4), k = below(HOOKS);
  for (int i = 0; i < 6; i++) list[i] = any_tensor();
  calling("graph");
  switch (below(10)) {
  case 0: ended(ampl_set_requires_grad(x, !one_in(4))); break;
  case 1:                               /* gradients of each other are a cycle, and the host's to break */
    if (x && ampl_set_grad(x, x) == AMPL_OK) complain("a tensor is its own gradient");
    ampl_detach(any_tensor(), &room[0]);
    ended(ampl_set_grad(x, room[0]));
    ampl_tensor_release(room[0]);
    break;
  case 2:
  case 3:                               /* so is a gradient with a graph (CREATE_GRAPH) in a leaf of that graph */
    ended(ampl_backward(x, one_in(3) ? any_tensor() : NULL, (unsigned)any_enum(8) & ~(unsigned)AMPL_CREATE_GRAPH));
    break;
  case 4:
    if (n > 6) break;
    ended_with(ampl_gradients(any_ctx(), below(3), one_in(20) ? NULL : list, one_in(2) ? NULL : list + 2, n,
                              one_in(20) ? NULL : list + 1, (unsigned)any_enum(8), one_in(20) ? NULL : room),
               room, n > 0 ? n : 0);
    break;
  case 5: ended_with(ampl_detach(x, one_in(20) ? NULL : room), room, 1); break;
  case 6: ended(ampl_retain_grad(x)); break;
  case 7:
    ampl_remove_hook(hooks[k].x, hooks[k].id);
    ampl_tensor_release(hooks[k].x);
    hooks[k].x = NULL;
    if (ended(ampl_register_hook(x, one_in(20) ? NULL : hook, hook_gone, NULL, one_in(20) ? NULL : &hooks[k].id)) ==
        AMPL_OK)
      ampl_tensor_retain(hooks[k].x = x);
    break;
  case 8: {
    ampl_tensor *y[2] = {NULL, NULL};
    const ampl_function f = {.name = "fuzz", .backward = one_in(20) ? NULL : function_backward, .release = hook_gone};
    ampl_empty(ctx, AMPL_F32, 1, (int64_t[]){3}, &y[0]);
    if (n <= 6)
      ended(ampl_record_function(any_ctx(), one_in(20) ? NULL : &f, n, one_in(20) ? NULL : list, one_in(10) ? 2 : 1,
                                 one_in(20) ? NULL : y));
    keep(y[0]);
    break;
  }
  default: ended_with(ampl_to_device(x, PICK(strings), one_in(20) ? NULL : room), room, 1);
  }
}

static void scaling(void) {
  const int k = below(SCALERS);
  ampl_scaler *s = one_in(20) ? NULL : scalers[k];
  ampl_tensor *list[6], *y = NULL;
  const char *names[6] = {"a", NULL, "c", "", "e", "f"};
  for (int i = 0; i < 6; i++)
    while (!(list[i] = any_tensor()) && !one_in(6)) continue;
  const ampl_params params = {one_in(20) ? NULL : list, one_in(2) ? NULL : names, one_in(20) ? any_int() : below(6)};
  const ampl_params *p = one_in(20) || params.n > 6 ? NULL : &params;
  ampl_scaler_options o = AMPL_SCALER_OPTIONS_INIT;
  ampl_scaler_state st = {65536, 2, 0.5, 2000, 0, 1, 0, 0, 0, 0};
  ampl_scaler_stats stats;
  double f;
  int64_t at;
  bool allowed;
  if (one_in(2)) o.init_scale = any_float(), o.growth_interval = any_int(), o.hysteresis = any_int();
  if (one_in(3)) o.on_floor = (int)any_int(), o.struct_size = (size_t)below(200);
  if (one_in(2)) st.scale = any_float(), st.growth_tracker = any_int(), st.taken = any_int();
  calling("scaler");
  switch (below(17)) {
  case 0:
    ampl_scaler_release(scalers[k]);
    scalers[k] = NULL;
    ended(ampl_scaler_new(any_ctx(), one_in(3) ? NULL : &o, one_in(20) ? NULL : &scalers[k]));
    break;
  case 1: keys[k] = ampl_scaler_key(s); break;
  case 2:
  case 3: ended_with(ampl_scaler_scale(s, any_tensor(), one_in(20) ? NULL : &y), &y, 1); break;
  case 4: ended(ampl_scaler_unscale(s, keys[k], p)); break;
  case 5:
  case 6: ended(ampl_scaler_step_allowed(s, keys[k], p, one_in(20) ? NULL : &allowed)); break;
  case 7: ended(ampl_scaler_stepped(s, keys[k])); break;
  case 8: ended(ampl_scaler_update(s)); break;
  case 9: ended(ampl_scaler_set_scale(s, any_float())); break;
  case 10: ended(ampl_scaler_again(s, keys[k], p, one_in(2))); break;
  case 11: ended(ampl_scaler_found(s, keys[k], one_in(20) ? NULL : &at)); break;
  case 12: ended(ampl_scaler_skip(s, keys[k], p)); break;
  case 13: ended(ampl_scaler_get_scale(s, one_in(20) ? NULL : &f)); break;
  case 14:
    ampl_scaler_get_options(s, one_in(20) ? NULL : &o), ampl_scaler_get_stats(s, one_in(20) ? NULL : &stats);
    ampl_scaler_retain(s), ampl_scaler_release(s);
    break;
  case 15: ended(ampl_scaler_set_options(s, one_in(20) ? NULL : &o)); break;
  default:
    ended(ampl_scaler_get_state(s, one_in(20) ? NULL : &st));
    ended(ampl_scaler_set_state(s, one_in(20) ? NULL : &st));
  }
}

static void act(void) {
  depth++;
  switch (below(24)) {
  case 0:
  case 1: make(); break;
  case 2: look(); break;
  case 3: look_at_names(); break;
  case 4: memory(); break;
  case 5: settings(); break;
  case 6: modes_and_regions(); break;
  case 7:
  case 8:
  case 9: graph(); break;
  case 10: scaling(); break;
  default: run_op();
  }
  depth--;
}

/* ------------------------------------------------------------------------------------------------ a round --------- */

static void begin_round(void) {
  ampl_ctx_options o = AMPL_CTX_OPTIONS_INIT;
  o.threads = 2;
  o.memory_limit = 32u << 20;
  if (ampl_ctx_new(&o, &ctx) != AMPL_OK || ampl_ctx_new(&o, &other) != AMPL_OK) {
    printf("no context: %s\n", ampl_error_message(NULL));
    exit(1);
  }
  ampl_randn(other, AMPL_F32, 1, (int64_t[]){3}, &foreign);
  for (int i = 0; i < TENSORS; i++) {   /* small, of shapes that often fit each other */
    int64_t shape[4];
    const int ndim = below(5);
    for (int d = 0; d < ndim; d++) shape[d] = one_in(8) ? below(3) : one_in(3) ? 2 : 3;
    const ampl_dtype t = one_in(2) ? AMPL_F32 : (ampl_dtype)below(AMPL_DTYPE_COUNT);
    ampl_full(ctx, t, ndim, shape, below(5), &pool[i]);
    if (one_in(4) && pool[i]) ampl_set_requires_grad(pool[i], true);
  }
}

/* Everything is released in any order; what is left alive keeps the context. */
static void end_round(void) {
  ampl_memory_info m;
  bool ctx_gone = false;
  ampl_ctx *watch = ctx;
  ampl_ctx_retain(watch);
  calling("release");
  ampl_modes_use(ctx, NULL);
  for (int left = 400; left-- > 0;) {
    ampl_tensor **x = &pool[below(TENSORS)];
    ampl_scaler **s = &scalers[below(SCALERS)];
    ampl_modes **mode = &modes[below(MODES)];
    const int k = below(HOOKS);
    switch (below(6)) {
    case 0: ampl_scaler_release(*s), *s = NULL; break;
    case 1: ampl_modes_free(watch, *mode), *mode = NULL; break;
    case 2:
      if (one_in(2)) ampl_remove_hook(hooks[k].x, hooks[k].id);
      ampl_tensor_release(hooks[k].x), hooks[k].x = NULL;
      break;
    case 3:
      if (!ctx_gone && one_in(10)) ampl_ctx_release(ctx), ctx_gone = true;
      break;
    default: ampl_tensor_release(*x), *x = NULL;
    }
  }
  for (int i = 0; i < TENSORS; i++) ampl_tensor_release(pool[i]), pool[i] = NULL;
  for (int i = 0; i < SCALERS; i++) ampl_scaler_release(scalers[i]), scalers[i] = NULL;
  for (int i = 0; i < MODES; i++) ampl_modes_free(watch, modes[i]), modes[i] = NULL;
  for (int i = 0; i < HOOKS; i++) ampl_tensor_release(hooks[i].x), hooks[i].x = NULL;
  if (!ctx_gone) ampl_ctx_release(ctx);
  ampl_autocast_clear_cache(watch);     /* of regions that nobody left */
  ampl_memory(watch, &m);
  /* Where y was made of x, and y's node keeps x, and x is then written with what comes of y, x holds the graph that
     holds x.  Such a graph has no backward ("was written in place since"). */
  const bool cycle = written && m.nodes && m.tensors <= m.nodes;
  written = false;
  if (!cycle && (m.tensors || m.storages || m.nodes || m.live)) {
    snprintf(last_call, sizeof last_call, "the end of a round: %zu tensors, %zu storages, %zu nodes, %zu bytes",
             m.tensors, m.storages, m.nodes, m.live);
    complain("is left");
  }
  ampl_ctx_release(watch);
  ampl_tensor_release(foreign);
  ampl_ctx_release(other);
}

int main(int argc, char **argv) {
  const long rounds = argc > 1 ? atol(argv[1]) : 60;
  const uint64_t seed = argc > 2 ? strtoull(argv[2], NULL, 10) : 1;
  verbose = argc > 3;
  for (long round = 0; round < rounds; round++) {
    state = (seed + (uint64_t)round) * 0x9E3779B97F4A7C15ull;
    begin_round();
    const int before = failed;
    for (int i = 0; i < 400; i++) {
      act();
      if (i % 40 == 0) check_usable();
    }
    check_usable();
    end_round();
    if (failed > before) printf("to repeat it: api_fuzz_test 1 %llu v\n", (unsigned long long)(seed + (uint64_t)round));
  }
  printf("%d passed, %d failed, 0 skipped\n", passed, failed);
  return failed > 0;
}
