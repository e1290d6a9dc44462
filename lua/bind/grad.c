/* grad.c: backward, gradients, modes, hooks, functions written in Lua. */
#include "state.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char refs_key = 0;         /* what hooks and functions refer to: number -> value */

/* Whether option `name` of the table at t is set. */
static bool flag(lua_State *L, int t, const char *op, const char *name) {
  lua_getfield(L, t, name);
  const bool on = lampl_check_boolean(L, -1, op, name, false);
  lua_pop(L, 1);
  return on;
}

/* The option table at t as flags; `known`: the names there are, NULL at the end. */
static unsigned read_flags(lua_State *L, int t, const char *op, const char *const *known, const char *names) {
  if (lua_isnoneornil(L, t)) return 0;
  if (!lua_istable(L, t)) lampl_wrong(L, t, op, "the options", "a table");
  for (lua_pushnil(L); lua_next(L, t); lua_pop(L, 1)) {
    const char *k = lua_type(L, -2) == LUA_TSTRING ? lua_tostring(L, -2) : "?";
    int i = 0;
    while (known[i] && strcmp(known[i], k) != 0) i++;
    if (!known[i]) lampl_error(L, AMPL_EARG, op, "unknown option \"%.60s\"; known are %s", k, names);
  }
  return (flag(L, t, op, "retain_graph") ? AMPL_RETAIN_GRAPH : 0) |
         (flag(L, t, op, "create_graph") ? AMPL_CREATE_GRAPH : 0) |
         (flag(L, t, op, "allow_unused") ? AMPL_ALLOW_UNUSED : 0);
}

/* x:backward([grad], {retain_graph, create_graph}) */
static int backward(lua_State *L) {
  static const char *const known[] = {"retain_graph", "create_graph", "gradient", NULL};
  lampl_state *S = lampl_entered(L);
  ampl_tensor *g = NULL;
  lampl_check_tensor(L, 1);
  lua_settop(L, 3);
  const int options = lampl_test_handle(L, 2) || lua_isnil(L, 2) ? 3 : 2;
  const unsigned flags = read_flags(L, options, "backward", known, "retain_graph, create_graph, gradient");
  if (options == 3 && !lua_isnil(L, 2)) lua_pushvalue(L, 2);
  else if (lua_istable(L, options)) lua_getfield(L, options, "gradient");
  else lua_pushnil(L);
  const lampl_handle *h = lampl_test_handle(L, -1);     /* stays on the stack */
  if (!h && !lua_isnil(L, -1)) return lampl_wrong(L, -1, "backward", "gradient", "a tensor");
  if (h && !(g = h->x)) return lampl_error(L, AMPL_EFREED, "backward", "gradient was freed");
  ampl_tensor *x = lampl_check_tensor(L, 1);
  lampl_check(L, S, LAMPL_CALL(S, ampl_backward(x, g, flags)));
  return 0;
}

static void box_done(lua_State *L, int i) { lampl_box_release(lua_touserdata(L, i)); }

/* grad(outputs, inputs, {grad_outputs, create_graph, retain_graph, allow_unused}): one value per input. */
static int grad(lua_State *L) {
  static const char *const known[] = {"retain_graph", "create_graph", "allow_unused", "grad_outputs", NULL};
  lampl_state *S = lampl_entered(L);
  lampl_tensors *gs = NULL;
  lua_settop(L, 3);
  const unsigned flags =
      read_flags(L, 3, "grad", known, "retain_graph, create_graph, allow_unused, grad_outputs");
  lampl_tensors *outs = lampl_check_tensors(L, 1, "grad", false), *ins = lampl_check_tensors(L, 2, "grad", false);
  if (lua_istable(L, 3) && lua_getfield(L, 3, "grad_outputs") != LUA_TNIL) {
    gs = lampl_check_tensors(L, lua_gettop(L), "grad", true);
    if (gs->n > outs->n)
      return lampl_error(L, AMPL_EARG, "grad", "%d grad_outputs for %d outputs", gs->n, outs->n);
  }
  const int boxes = lua_gettop(L), n = ins->n;
  if (!lua_checkstack(L, n + LUA_MINSTACK))
    return lampl_error(L, AMPL_EARG, "grad", "too many inputs: %d", n);
  ampl_tensor **work = lua_newuserdatauv(L, (size_t)(n + outs->n + 1) * sizeof *work, 0), **g = work + n;
  const int first = lua_gettop(L) + 1;
  for (int i = 0; i < n; i++) lampl_push_handle(L, S);
  for (int i = 0; gs && i < outs->n; i++) g[i] = i < gs->n ? gs->v[i] : NULL;
  lampl_check(L, S, LAMPL_CALL(S, ampl_gradients(S->ctx, outs->n, outs->v, gs ? g : NULL, n, ins->v, flags, work)));
  for (int i = 0; i < n; i++) {
    if (work[i]) ((lampl_handle *)lua_touserdata(L, first + i))->x = work[i];
    else lua_pushnil(L), lua_replace(L, first + i);
  }
  box_done(L, 4);
  box_done(L, 5);
  if (gs) box_done(L, boxes);
  return n;
}

static int retain_grad(lua_State *L) {
  lampl_state *S = lampl_entered(L);
  ampl_tensor *x = lampl_check_tensor(L, 1);
  lampl_check(L, S, LAMPL_CALL(S, ampl_retain_grad(x)));
  lua_settop(L, 1);
  return 1;
}

/* ------------------------------------------------------------------------------------------------ modes ----------- */

/* An entered mode: to be closed once, by the coroutine that entered it or at collection.  Its record is the user value:
 * it lives as long. */
typedef struct mode { lampl_thread *thread; uint64_t id; } mode;

/* Pushes a mode that is not entered yet: what follows needs no memory of Lua's. */
static mode *push_mode(lua_State *L, lampl_state *S) {
  mode *m = lua_newuserdatauv(L, sizeof *m, 1);
  *m = (mode){S->thread, 0};
  lampl_push_thread(L);
  lua_setiuservalue(L, -2, 1);
  luaL_setmetatable(L, "ampl.Mode");
  return m;
}

static int entered(lua_State *L, lampl_state *S, mode *m, uint64_t id) {
  if (!(m->id = id)) lampl_check(L, S, ampl_error_code(S->ctx));
  return 1;
}

/* Leaves the entry; whether it was still there. */
static bool leave(mode *m) {
  const uint64_t id = m->id;
  m->id = 0;
  return id && m->thread->guest.modes && ampl_leave(m->thread->S->ctx, m->thread->guest.modes, id);
}

static int mode_close(lua_State *L) {
  mode *m = luaL_testudata(L, 1, "ampl.Mode");
  if (!m) return lampl_wrong(L, 1, "close", "the receiver", "a mode (call the method with a colon: m:close())");
  leave(m);
  return 0;
}

static int mode_gc(lua_State *L) {
  mode *m = luaL_testudata(L, 1, "ampl.Mode");
  if (m && leave(m))
    lampl_warn(L, "mode",
               "a region (no_grad, autocast ...) was never closed: use `local _ <close> = ...`, or give it a function");
  return 0;
}

/* name(on): a mode that is a boolean, entered by `enter`. */
static int enter_switch(lua_State *L, const char *name, uint64_t (*enter)(ampl_ctx *ctx, bool on)) {
  lampl_state *S = lampl_entered(L);
  const bool on = lampl_check_boolean(L, 1, name, "the mode", -1);
  mode *m = push_mode(L, S);
  lampl_begin(S);
  const uint64_t id = enter(S->ctx, on);
  lampl_end(S, AMPL_OK);
  return entered(L, S, m, id);
}

static int enter_grad(lua_State *L) { return enter_switch(L, "enter_grad", ampl_enter_grad); }
static int enter_inference(lua_State *L) { return enter_switch(L, "inference_mode", ampl_enter_inference); }

static int is_grad_enabled(lua_State *L) {
  lampl_state *S = lampl_entered(L);
  lampl_begin(S);
  lua_pushboolean(L, ampl_grad_enabled(S->ctx));
  lampl_end(S, AMPL_OK);
  return 1;
}

static int is_inference(lua_State *L) {
  lampl_state *S = lampl_entered(L);
  lampl_begin(S);
  lua_pushboolean(L, ampl_inference_enabled(S->ctx));
  lampl_end(S, AMPL_OK);
  return 1;
}

/* The list of names in field `name` of the options, on the stack, ended by NULL; NULL when absent.  A table of their
 * own keeps the strings. */
static const char *const *names_in(lua_State *L, int t, const char *name) {
  int64_t last;
  char what[32];
  snprintf(what, sizeof what, "an entry of %s", name);
  if (lua_getfield(L, t, name) == LUA_TNIL) return NULL;
  if (!lua_istable(L, -1)) lampl_wrong(L, -1, "autocast", name, "a list of op names");
  const int list = lua_gettop(L);
  const int64_t n = lampl_list_length(L, list, &last);
  if (last > n) lampl_error(L, AMPL_EARG, "autocast", "entry %lld of %s is missing", (long long)n + 1, name);
  const char **names = lua_newuserdatauv(L, ((size_t)n + 1) * sizeof *names, 0);
  lua_createtable(L, (int)n, 0);
  for (int64_t i = 0; i < n; i++) {
    lua_rawgeti(L, list, i + 1);
    names[i] = lampl_check_string(L, -1, "autocast", what);
    lua_rawseti(L, -2, i + 1);
  }
  names[n] = NULL;
  return names;
}

/* autocast_enter{device, dtype, enabled, cache_enabled, f32, low}: a region. */
static int autocast_enter(lua_State *L) {
  lampl_state *S = lampl_entered(L);
  ampl_autocast_options o = {.dtype = AMPL_DTYPE_NONE, .enabled = true, .cache = -1};
  lua_settop(L, 1);
  if (!lua_isnil(L, 1) && !lua_istable(L, 1)) return lampl_wrong(L, 1, "autocast", "the options", "a table");
  if (lua_istable(L, 1)) {
    if (lua_getfield(L, 1, "device") != LUA_TNIL) o.device = lampl_check_string(L, -1, "autocast", "device");
    if (lua_getfield(L, 1, "dtype") != LUA_TNIL) o.dtype = (int)lampl_check_dtype(L, -1, "autocast");
    lua_getfield(L, 1, "enabled");
    o.enabled = lampl_check_boolean(L, -1, "autocast", "enabled", true);
    if (lua_getfield(L, 1, "cache_enabled") != LUA_TNIL)
      o.cache = lampl_check_boolean(L, -1, "autocast", "cache_enabled", -1);
    o.f32 = names_in(L, 1, "f32");
    o.low = names_in(L, 1, "low");
  }
  mode *m = push_mode(L, S);
  lampl_begin(S);
  const uint64_t id = ampl_enter_autocast(S->ctx, &o);
  lampl_end(S, AMPL_OK);
  return entered(L, S, m, id);
}

static int autocast_state(lua_State *L) {
  lampl_state *S = lampl_entered(L);
  const char *device = lua_isnoneornil(L, 1) ? NULL : lampl_check_string(L, 1, "autocast", "device");
  lampl_begin(S);
  const bool on = ampl_autocast_enabled(S->ctx, device);
  const int low = ampl_autocast_low_dtype(S->ctx, device);
  lampl_end(S, AMPL_OK);
  if (low == AMPL_DTYPE_NONE) return lampl_raise(L, S, AMPL_EDEVICE);
  lua_pushboolean(L, on);
  lua_pushstring(L, ampl_dtype_name((ampl_dtype)low));
  return 2;
}

static int autocast_clear(lua_State *L) {
  lampl_state *S = lampl_entered(L);
  lampl_begin(S);
  ampl_autocast_clear_cache(S->ctx);
  lampl_end(S, AMPL_OK);
  return 0;
}

static int autocast_stats(lua_State *L) {
  lampl_state *S = lampl_entered(L);
  ampl_cast_stats s;
  lampl_begin(S);
  ampl_autocast_cache_stats(S->ctx, &s);
  lampl_end(S, AMPL_OK);
  lua_createtable(L, 0, 4);
  lua_pushinteger(L, s.hits), lua_setfield(L, -2, "hits");
  lua_pushinteger(L, s.casts), lua_setfield(L, -2, "casts");
  lua_pushinteger(L, s.entries), lua_setfield(L, -2, "entries");
  lua_pushinteger(L, s.bytes), lua_setfield(L, -2, "bytes");
  return 1;
}

/* ------------------------------------------------------------------------------------------------ callbacks ------- */

/* A Lua value that the core holds, maybe for longer than the state lives. */
typedef struct held { lampl_life *life; int ref; } held;

/* Holds the value on top of the stack, which is popped. */
static held *hold(lua_State *L, lampl_state *S) {
  lua_rawgetp(L, LUA_REGISTRYINDEX, &refs_key);
  lua_insert(L, -2);
  const int ref = luaL_ref(L, -2);
  held *h = malloc(sizeof *h);
  if (!h) {
    luaL_unref(L, -1, ref);
    lampl_error(L, AMPL_ENOMEM, "", "out of memory");
  }
  lua_pop(L, 1);
  *h = (held){S->life, ref};
  S->life->refs++;
  return h;
}

static void let_go(void *ud) {
  held *h = ud;
  lampl_state *S = h->life->S;
  if (S && lua_checkstack(S->main, LUA_MINSTACK)) {
    lua_rawgetp(S->main, LUA_REGISTRYINDEX, &refs_key);
    luaL_unref(S->main, -1, h->ref);
    lua_pop(S->main, 1);
  }
  lampl_life_release(h->life);
  free(h);
}

static void push_held(lua_State *L, int ref) {
  lua_rawgetp(L, LUA_REGISTRYINDEX, &refs_key);
  lua_rawgeti(L, -1, ref);
  lua_remove(L, -2);
}

static int traceback(lua_State *L) {
  if (lua_type(L, 1) == LUA_TSTRING) luaL_traceback(L, L, lua_tostring(L, 1), 1);
  return 1;
}

/* What a protected call needs of a hook or a backward function: pushed as light userdata, so that an error of memory
 * stays inside. */
typedef struct invocation {
  int                 ref, ny, nx;
  ampl_tensor *const *dy;
  const bool         *need;
  ampl_tensor       **dx, **replacement;
  bool                follow, grad;     /* the walk is not in a call of this state: modes as the walk has them */
  ampl_modes         *modes;
  uint64_t            mode, region;
} invocation;

static void follow_walk(lua_State *L, invocation *v) {
  static const ampl_autocast_options plain = {.dtype = AMPL_DTYPE_NONE};
  if (!v->follow) return;
  lampl_state *S = lampl_entered(L);
  v->modes = S->thread->guest.modes;
  lampl_begin(S);
  v->mode = ampl_enter_grad(S->ctx, v->grad);
  v->region = ampl_enter_autocast(S->ctx, &plain);
  lampl_end(S, AMPL_OK);
}

static int invoke_hook(lua_State *L) {
  invocation *v = lua_touserdata(L, 1);
  char text[LAMPL_SHOWN];
  follow_walk(L, v);
  push_held(L, v->ref);
  lampl_push_lent(L, v->dy[0]);
  lua_call(L, 1, 1);
  if (lua_isnil(L, -1)) return 0;
  const lampl_handle *h = lampl_test_handle(L, -1);
  if (!h)
    return lampl_error(L, AMPL_EGRAD, "backward", "a hook returned %s, not a tensor or nil",
                       lampl_shown(L, -1, text, sizeof text));
  if (!h->x) return lampl_error(L, AMPL_EFREED, "backward", "the tensor that a hook returned was freed");
  ampl_tensor_retain(h->x);
  *v->replacement = h->x;
  return 0;
}

static int invoke_backward(lua_State *L) {
  invocation *v = lua_touserdata(L, 1);
  follow_walk(L, v);
  push_held(L, v->ref);
  lua_createtable(L, v->ny, 1);
  for (int k = 0; k < v->ny; k++) lampl_push_lent(L, v->dy[k]), lua_rawseti(L, -2, k + 1);
  lua_pushinteger(L, v->ny);
  lua_setfield(L, -2, "n");
  lua_createtable(L, v->nx, 0);
  for (int i = 0; i < v->nx; i++) lua_pushboolean(L, v->need[i]), lua_rawseti(L, -2, i + 1);
  lua_call(L, 2, 1);
  if (!lua_istable(L, -1)) return lampl_wrong(L, -1, "Function", "the result of backward", "a table");
  for (int i = 0; i < v->nx; i++) {
    lua_rawgeti(L, -1, i + 1);
    const lampl_handle *h = lampl_test_handle(L, -1);
    if (!h && !lua_isnil(L, -1)) return lampl_wrong(L, -1, "Function", "a gradient", "a tensor");
    if (h && !h->x) return lampl_error(L, AMPL_EFREED, "Function", "gradient %d was freed", i + 1);
    if (h && v->need[i]) ampl_tensor_retain(h->x), v->dx[i] = h->x;
    lua_pop(L, 1);
  }
  return 0;
}

static int invoke_drop(lua_State *L) {
  const invocation *v = lua_touserdata(L, 1);
  push_held(L, v->ref);
  lua_call(L, 0, 0);
  return 0;
}

static int error_text(lua_State *L) {
  luaL_tolstring(L, 1, NULL);
  return 1;
}

/* The error on top of the stack, which is popped, for who is not Lua: as a text. */
static ampl_status tell_error(lua_State *L, ampl_ctx *ctx) {
  lua_pushcfunction(L, error_text);
  lua_insert(L, -2);
  lua_pcall(L, 1, 1, 0);
  const char *text = lua_tostring(L, -1);
  const ampl_status s = ampl_fail(ctx, AMPL_ESTATE, text ? text : "a Lua function raised an error");
  lua_pop(L, 1);
  return s;
}

/* Runs f, protected, on behalf of the core. */
static ampl_status protect(const held *h, ampl_ctx *ctx, lua_CFunction f, invocation *v) {
  lampl_state *S = h->life->S;
  lampl_pause pause;
  if (!S) return ampl_fail(ctx, AMPL_ESTATE, "the Lua state of a hook or Function of this graph was closed");
  v->ref = h->ref;
  v->grad = ampl_grad_enabled(ctx);
  lua_State *L = lampl_pause_call(S, &pause);
  const bool ours = pause.guest && pause.guest == &pause.thread->guest;
  v->follow = !ours;
  int s = LUA_ERRMEM;
  if (lua_checkstack(L, LUA_MINSTACK)) {
    lua_pushcfunction(L, traceback);
    lua_pushcfunction(L, f);
    lua_pushlightuserdata(L, v);
    s = lua_pcall(L, 1, 0, -3);
    lua_remove(L, s == LUA_OK ? -1 : -2);
  } else lua_pushnil(L);
  if (v->mode) ampl_leave(ctx, v->modes, v->mode);
  if (v->region) ampl_leave(ctx, v->modes, v->region);
  lampl_resume_call(S, &pause);
  return s == LUA_OK ? AMPL_OK : ours ? lampl_keep_error(L, S) : tell_error(L, ctx);
}

static ampl_status run_hook(void *ud, ampl_ctx *ctx, ampl_tensor *dy, ampl_tensor **replacement) {
  invocation v = {.dy = &dy, .ny = 1, .replacement = replacement};
  return protect(ud, ctx, invoke_hook, &v);
}

/* x:register_hook(fn) -> an object with :remove() */
static int register_hook(lua_State *L) {
  lampl_state *S = lampl_entered(L);
  lampl_check_tensor(L, 1);
  if (!lua_isfunction(L, 2)) return lampl_wrong(L, 2, "register_hook", "the hook", "a function");
  lua_settop(L, 2);
  uint64_t *u = lua_newuserdatauv(L, sizeof *u, 1);
  *u = 0;
  lua_pushvalue(L, 1);
  lua_setiuservalue(L, -2, 1);
  luaL_setmetatable(L, "ampl.Hook");
  lua_pushvalue(L, 2);
  held *h = hold(L, S);
  const lampl_handle *x = lua_touserdata(L, 1);
  const ampl_status s = x->x ? LAMPL_CALL(S, ampl_register_hook(x->x, run_hook, let_go, h, u))
                             : ampl_fail(S->ctx, AMPL_EFREED, "the tensor was freed");
  if (s != AMPL_OK) let_go(h);
  lampl_check(L, S, s);
  return 1;
}

static int remove_hook(lua_State *L) {
  uint64_t *u = luaL_testudata(L, 1, "ampl.Hook");
  if (!u) return lampl_wrong(L, 1, "remove", "the receiver", "a hook (call the method with a colon: h:remove())");
  lua_getiuservalue(L, 1, 1);
  const lampl_handle *h = lampl_test_handle(L, -1);
  if (*u && h && h->x) ampl_remove_hook(h->x, *u);
  *u = 0;
  return 0;
}

static ampl_status run_function(void *ud, ampl_ctx *ctx, int ny, ampl_tensor *const *dy, int nx, ampl_tensor **dx,
                                const bool *need) {
  invocation v = {.ny = ny, .nx = nx, .dy = dy, .need = need, .dx = dx};
  const ampl_status s = protect(ud, ctx, invoke_backward, &v);
  for (int i = 0; s != AMPL_OK && i < nx; i++) ampl_tensor_release(dx[i]), dx[i] = NULL;
  return s;
}

/* Without memory for the call, what was saved stays until the node goes. */
static void drop_function(void *ud) {
  const held *h = ud;
  lampl_state *S = h->life->S;
  invocation v = {0};
  if (!S) return;
  const bool failed = S->failed;        /* an error on its way is not lost by this one */
  if (!failed && protect(h, S->ctx, invoke_drop, &v) != AMPL_OK) S->failed = false;
}

/* record_function(inputs, outputs, fn): outputs become results of a node whose backward is fn(gradients, need), and
 * which lets go of what it saved by fn(). */
static int record_function(lua_State *L) {
  lampl_state *S = lampl_entered(L);
  if (!lua_isfunction(L, 3)) return lampl_wrong(L, 3, "Function", "backward", "a function");
  lua_settop(L, 3);
  lampl_tensors *x = lampl_check_tensors(L, 1, "Function", false), *y = lampl_check_tensors(L, 2, "Function", false);
  lua_pushvalue(L, 3);
  held *h = hold(L, S);
  const ampl_function f = {
      .name = "Function", .backward = run_function, .release = let_go, .ud = h, .drop = drop_function};
  const ampl_status s = LAMPL_CALL(S, ampl_record_function(S->ctx, &f, x->n, x->v, y->n, y->v));
  if (s != AMPL_OK) let_go(h);
  box_done(L, 4);
  box_done(L, 5);
  lampl_check(L, S, s);
  return 0;
}

/* ------------------------------------------------------------------------------------------------ anomaly --------- */

/* set_anomaly(on, nan, inf, scaled) */
static int set_anomaly(lua_State *L) {
  static const char *const names[] = {"mode", "check_nan", "check_inf", "scaled"};
  lampl_state *S = lampl_entered(L);
  bool o[4];
  for (int i = 0; i < 4; i++) o[i] = lampl_check_boolean(L, i + 1, "set_detect_anomaly", names[i], false);
  lampl_check(L, S, LAMPL_CALL(S, ampl_set_anomaly(S->ctx, o[0], o[1], o[2], o[3], NULL, NULL)));
  return 0;
}

static int anomaly_enabled(lua_State *L) { return lua_pushboolean(L, ampl_anomaly_enabled(lampl_entered(L)->ctx)), 1; }

void lampl_open_grad(lua_State *L) {
  static const luaL_Reg functions[] = {{"grad", grad},
                                       {"enter_grad", enter_grad},
                                       {"enter_inference", enter_inference},
                                       {"is_grad_enabled", is_grad_enabled},
                                       {"is_inference_mode_enabled", is_inference},
                                       {"autocast_enter", autocast_enter},
                                       {"autocast_state", autocast_state},
                                       {"autocast_clear", autocast_clear},
                                       {"autocast_stats", autocast_stats},
                                       {"record_function", record_function},
                                       {"set_anomaly", set_anomaly},
                                       {"anomaly_enabled", anomaly_enabled},
                                       {NULL, NULL}};
  static const luaL_Reg methods[] = {
      {"backward", backward}, {"retain_grad", retain_grad}, {"register_hook", register_hook}, {NULL, NULL}};
  static const luaL_Reg mode_meta[] = {{"__close", mode_close}, {"__gc", mode_gc}, {NULL, NULL}};
  static const luaL_Reg mode_methods[] = {
      {"close", mode_close}, {"__close", mode_close}, {"__gc", mode_close}, {NULL, NULL}};
  static const luaL_Reg hook_methods[] = {{"remove", remove_hook}, {NULL, NULL}};
  lua_newtable(L);
  lua_rawsetp(L, LUA_REGISTRYINDEX, &refs_key);
  luaL_newmetatable(L, "ampl.Mode");
  luaL_setfuncs(L, mode_meta, 0);
  luaL_newlib(L, mode_methods);
  lua_setfield(L, -2, "__index");
  lampl_hide_metatable(L);
  luaL_newmetatable(L, "ampl.Hook");
  luaL_newlib(L, hook_methods);
  lua_setfield(L, -2, "__index");
  lampl_hide_metatable(L);
  lua_pop(L, 2);
  luaL_setfuncs(L, functions, 0);
  lua_getfield(L, -1, "methods");
  luaL_setfuncs(L, methods, 0);
  lua_pop(L, 1);
}
