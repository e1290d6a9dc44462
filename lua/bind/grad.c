/* grad.c: backward, gradients, modes, hooks, functions written in Lua. */
#include "lampl.h"

#include <stdlib.h>
#include <string.h>

static const char refs_key = 0;         /* what hooks and functions refer to: number -> value */

static bool flag(lua_State *L, int t, const char *name) {
  if (!lua_istable(L, t)) return false;
  lua_getfield(L, t, name);
  const bool on = lua_toboolean(L, -1);
  lua_pop(L, 1);
  return on;
}

/* Options are strings of `known`; others raise. */
static unsigned read_flags(lua_State *L, int t, const char *op, bool grad) {
  if (lua_isnoneornil(L, t)) return 0;
  if (!lua_istable(L, t)) lampl_error(L, AMPL_EARG, op, "the options must be a table, not a %s", luaL_typename(L, t));
  for (lua_pushnil(L); lua_next(L, t); lua_pop(L, 1)) {
    const char *k = lua_type(L, -2) == LUA_TSTRING ? lua_tostring(L, -2) : "?";
    const bool both = strcmp(k, "retain_graph") == 0 || strcmp(k, "create_graph") == 0;
    if (!both && !(grad && (strcmp(k, "allow_unused") == 0 || strcmp(k, "grad_outputs") == 0)) &&
        !(!grad && strcmp(k, "gradient") == 0))
      lampl_error(L, AMPL_EARG, op, "unknown option \"%s\"; known are retain_graph, create_graph%s", k,
                  grad ? ", allow_unused, grad_outputs" : ", gradient");
  }
  unsigned flags = 0;
  if (flag(L, t, "retain_graph")) flags |= AMPL_RETAIN_GRAPH;
  if (flag(L, t, "create_graph")) flags |= AMPL_CREATE_GRAPH;
  if (flag(L, t, "allow_unused")) flags |= AMPL_ALLOW_UNUSED;
  return flags;
}

/* x:backward([grad], {retain_graph, create_graph}) */
static int backward(lua_State *L) {
  lampl_state *S = lampl_state_of(L);
  ampl_tensor *x = lampl_check_tensor(L, 1), *g = NULL;
  int options = 2;
  lua_settop(L, 3);
  if (lampl_test_handle(L, 2)) g = lampl_check_tensor(L, 2), options = 3;
  else if (lua_isnil(L, 2)) options = 3;
  const unsigned flags = read_flags(L, options, "backward", false);
  if (!g && lua_istable(L, options)) {
    lua_getfield(L, options, "gradient");
    if (!lua_isnil(L, -1)) g = lampl_check_tensor(L, -1);
  }
  lampl_enter(L, S);
  lampl_check(L, S, ampl_backward(x, g, flags));
  lampl_leave(S);
  return 0;
}

/* grad(outputs, inputs, {grad_outputs, create_graph, retain_graph, allow_unused}): one value per input. */
static int grad(lua_State *L) {
  lampl_state *S = lampl_state_of(L);
  int nout, nin, ng = 0;
  lua_settop(L, 3);
  const unsigned flags = read_flags(L, 3, "grad", true);
  ampl_tensor **outs = lampl_check_tensors(L, 1, "grad", &nout), **ins = lampl_check_tensors(L, 2, "grad", &nin),
              **gs = NULL;
  if (lua_istable(L, 3) && lua_getfield(L, 3, "grad_outputs") != LUA_TNIL) {
    const int list = lua_gettop(L);
    if (lampl_test_handle(L, list)) gs = lampl_check_tensors(L, list, "grad", &ng);
    else {
      ng = nout;
      gs = lua_newuserdatauv(L, (size_t)(nout ? nout : 1) * sizeof *gs, 0);
      for (int i = 0; i < nout; i++) {
        lua_rawgeti(L, list, i + 1);
        gs[i] = lua_isnil(L, -1) ? NULL : lampl_check_tensor(L, -1);
        lua_pop(L, 1);
      }
    }
    if (ng != nout) return lampl_error(L, AMPL_EARG, "grad", "%d grad_outputs for %d outputs", ng, nout);
  }
  luaL_checkstack(L, nin + 4, "too many inputs");
  ampl_tensor **out = lua_newuserdatauv(L, (size_t)(nin ? nin : 1) * sizeof *out, 0);
  lampl_enter(L, S);
  const int first = lua_gettop(L) + 1;
  for (int i = 0; i < nin; i++) lampl_push_handle(L, S);
  lampl_check(L, S, ampl_gradients(S->ctx, nout, outs, gs, nin, ins, flags, out));
  lampl_leave(S);
  for (int i = 0; i < nin; i++) {
    if (out[i]) ((lampl_handle *)lua_touserdata(L, first + i))->x = out[i];
    else lua_pushnil(L), lua_replace(L, first + i);
  }
  return nin;
}

static int retain_grad(lua_State *L) {
  lampl_state *S = lampl_state_of(L);
  lampl_check(L, S, ampl_retain_grad(lampl_check_tensor(L, 1)));
  lua_settop(L, 1);
  return 1;
}

/* ------------------------------------------------------------------------------------------------ modes ----------- */

/* An entered mode: to be closed once, by the coroutine that entered it or at collection. */
typedef struct mode { ampl_ctx *ctx; ampl_modes *modes; uint64_t id; } mode;

static int push_mode(lua_State *L, lampl_state *S, uint64_t id) {
  mode *m = lua_newuserdatauv(L, sizeof *m, 1);
  *m = (mode){S->ctx, S->thread->modes, id};
  ampl_ctx_retain(S->ctx);
  luaL_setmetatable(L, "ampl.Mode");
  lua_pushthread(L);                    /* whose modes they are: they live as long */
  lua_setiuservalue(L, -2, 1);
  return 1;
}

/* Leaves the entry; whether it was still there.  NULL modes are the context's own, those of the main coroutine. */
static bool leave(mode *m) {
  if (!m->id) return false;
  ampl_modes *use = ampl_modes_use(m->ctx, m->modes);
  const bool was = ampl_leave(m->ctx, NULL, m->id);
  ampl_modes_use(m->ctx, use);
  m->id = 0;
  return was;
}

static int mode_close(lua_State *L) {
  leave(luaL_checkudata(L, 1, "ampl.Mode"));
  return 0;
}

static int mode_gc(lua_State *L) {
  mode *m = luaL_checkudata(L, 1, "ampl.Mode");
  if (leave(m))
    lua_warning(L, "ampl: a region (no_grad, autocast ...) was never closed: use `local _ <close> = ...`", 0);
  ampl_ctx_release(m->ctx);
  return 0;
}

static int enter_grad(lua_State *L) {
  lampl_state *S = lampl_switch(L);
  const uint64_t id = ampl_enter_grad(S->ctx, lua_toboolean(L, 1));
  return id ? push_mode(L, S, id) : lampl_raise(L, AMPL_ENOMEM);
}

static int enter_inference(lua_State *L) {
  lampl_state *S = lampl_switch(L);
  const uint64_t id = ampl_enter_inference(S->ctx, lua_toboolean(L, 1));
  return id ? push_mode(L, S, id) : lampl_raise(L, AMPL_ENOMEM);
}

static int is_grad_enabled(lua_State *L) {
  lampl_state *S = lampl_switch(L);
  lua_pushboolean(L, ampl_grad_enabled(S->ctx));
  return 1;
}

static int is_inference(lua_State *L) {
  lampl_state *S = lampl_switch(L);
  lua_pushboolean(L, ampl_inference_enabled(S->ctx));
  return 1;
}

/* The list of names in field `name` of the options, on the stack, ended by NULL; NULL when absent. */
static const char *const *names_in(lua_State *L, int t, const char *name) {
  if (lua_getfield(L, t, name) == LUA_TNIL) return NULL;
  if (!lua_istable(L, -1)) lampl_error(L, AMPL_EARG, "autocast", "%s must be a list of op names", name);
  const int list = lua_gettop(L), n = (int)lua_rawlen(L, list);
  const char **names = lua_newuserdatauv(L, ((size_t)n + 1) * sizeof *names, 0);
  for (int i = 0; i < n; i++) {
    lua_rawgeti(L, list, i + 1);
    names[i] = lua_type(L, -1) == LUA_TSTRING ? lua_tostring(L, -1) : NULL;
    if (!names[i]) lampl_error(L, AMPL_EARG, "autocast", "entry %d of %s is no op name", i + 1, name);
    lua_pop(L, 1);                      /* the list keeps it */
  }
  names[n] = NULL;
  return names;
}

/* autocast_enter{device, dtype, enabled, cache_enabled, f32, low}: a region. */
static int autocast_enter(lua_State *L) {
  lampl_state *S = lampl_state_of(L);
  ampl_autocast_options o = {.dtype = AMPL_DTYPE_NONE, .enabled = true, .cache = -1};
  if (!lua_isnoneornil(L, 1)) luaL_checktype(L, 1, LUA_TTABLE);
  lua_settop(L, 1);
  if (lua_istable(L, 1)) {
    if (lua_getfield(L, 1, "device") != LUA_TNIL) o.device = luaL_checkstring(L, -1);
    if (lua_getfield(L, 1, "dtype") != LUA_TNIL) o.dtype = (int)lampl_check_dtype(L, -1, "autocast");
    if (lua_getfield(L, 1, "enabled") != LUA_TNIL) o.enabled = lua_toboolean(L, -1);
    if (lua_getfield(L, 1, "cache_enabled") != LUA_TNIL) o.cache = lua_toboolean(L, -1);
    o.f32 = names_in(L, 1, "f32");
    o.low = names_in(L, 1, "low");
  }
  lampl_enter(L, S);
  const uint64_t id = ampl_enter_autocast(S->ctx, &o);
  if (!id) lampl_check(L, S, ampl_error_code(S->ctx));
  lampl_leave(S);
  return push_mode(L, S, id);
}

static int autocast_state(lua_State *L) {
  lampl_state *S = lampl_state_of(L);
  const char *device = luaL_optstring(L, 1, NULL);
  lampl_enter(L, S);
  lampl_leave(S);
  const bool on = ampl_autocast_enabled(S->ctx, device);
  const int low = ampl_autocast_low_dtype(S->ctx, device);
  if (low == AMPL_DTYPE_NONE) return lampl_raise(L, AMPL_EDEVICE);
  lua_pushboolean(L, on);
  lua_pushstring(L, ampl_dtype_name((ampl_dtype)low));
  return 2;
}

static int autocast_clear(lua_State *L) {
  lampl_state *S = lampl_switch(L);
  ampl_autocast_clear_cache(S->ctx);
  return 0;
}

static int autocast_stats(lua_State *L) {
  lampl_state *S = lampl_state_of(L);
  ampl_cast_stats s;
  lampl_enter(L, S);
  lampl_leave(S);
  ampl_autocast_cache_stats(S->ctx, &s);
  lua_createtable(L, 0, 4);
  lua_pushinteger(L, s.hits), lua_setfield(L, -2, "hits");
  lua_pushinteger(L, s.casts), lua_setfield(L, -2, "casts");
  lua_pushinteger(L, s.entries), lua_setfield(L, -2, "entries");
  lua_pushinteger(L, s.bytes), lua_setfield(L, -2, "bytes");
  return 1;
}

/* ------------------------------------------------------------------------------------------------ callbacks ------- */

/* A Lua value that the core holds. */
typedef struct held { lampl_state *S; lua_State *main; int ref; } held;

static held *hold(lua_State *L, lampl_state *S) {
  held *h = malloc(sizeof *h);
  if (!h) lampl_error(L, AMPL_ENOMEM, "", "out of memory");
  lua_rawgetp(L, LUA_REGISTRYINDEX, &refs_key);
  lua_insert(L, -2);
  h->ref = luaL_ref(L, -2);
  lua_pop(L, 1);
  h->S = S;
  lua_rawgeti(L, LUA_REGISTRYINDEX, LUA_RIDX_MAINTHREAD);
  h->main = lua_tothread(L, -1);
  lua_pop(L, 1);
  return h;
}

static void let_go(void *ud) {
  held *h = ud;
  lua_State *L = h->S->ctx ? h->main : NULL;            /* no state: lua_close is under way */
  if (L) {
    lua_rawgetp(L, LUA_REGISTRYINDEX, &refs_key);
    if (lua_istable(L, -1)) luaL_unref(L, -1, h->ref);
    lua_pop(L, 1);
  }
  free(h);
}

static void push_held(lua_State *L, const held *h) {
  lua_rawgetp(L, LUA_REGISTRYINDEX, &refs_key);
  lua_rawgeti(L, -1, h->ref);
  lua_remove(L, -2);
}

static int traceback(lua_State *L) {
  if (lua_type(L, 1) == LUA_TSTRING) luaL_traceback(L, L, lua_tostring(L, 1), 1);
  return 1;
}

/* What a protected call needs of a hook or a backward function: pushed as light userdata, so that an error of memory
 * stays inside. */
typedef struct invocation {
  const held         *h;
  int                 ny, nx;
  ampl_tensor *const *dy;
  const bool         *need;
  ampl_tensor       **dx;
  ampl_tensor       **replacement;
} invocation;

static int invoke_hook(lua_State *L) {
  invocation *v = lua_touserdata(L, 1);
  push_held(L, v->h);
  lampl_push_lent(L, v->dy[0]);
  lua_call(L, 1, 1);
  if (lua_isnil(L, -1)) return 0;
  ampl_tensor *x = lampl_check_tensor(L, -1);
  ampl_tensor_retain(x);
  *v->replacement = x;
  return 0;
}

static ampl_status protect(lampl_state *S, lua_CFunction f, invocation *v) {
  lua_State *L = S->L;
  if (!lua_checkstack(L, 8)) return ampl_fail(S->ctx, AMPL_ENOMEM, "out of memory");
  lua_pushcfunction(L, traceback);
  lua_pushcfunction(L, f);
  lua_pushlightuserdata(L, v);
  const int64_t base = ampl_set_index_base(S->ctx, 0);
  const int s = lua_pcall(L, 1, 0, -3);
  ampl_set_index_base(S->ctx, base);
  lampl_enter(L, S);                    /* the callback may have run in other coroutines */
  ampl_set_index_base(S->ctx, base);
  if (s == LUA_OK) {
    lua_pop(L, 1);
    return AMPL_OK;
  }
  lua_remove(L, -2);
  return lampl_keep_error(L, S);
}

static ampl_status run_hook(void *ud, ampl_ctx *ctx, ampl_tensor *dy, ampl_tensor **replacement) {
  held *h = ud;
  (void)ctx;
  invocation v = {.h = h, .dy = &dy, .ny = 1, .replacement = replacement};
  return protect(h->S, invoke_hook, &v);
}

/* x:register_hook(fn) -> an object with :remove() */
static int register_hook(lua_State *L) {
  lampl_state *S = lampl_state_of(L);
  ampl_tensor *x = lampl_check_tensor(L, 1);
  if (!lua_isfunction(L, 2))
    return lampl_error(L, AMPL_EARG, "register_hook", "a function is needed, not a %s", luaL_typename(L, 2));
  lua_settop(L, 2);
  held *h = hold(L, S);
  uint64_t id;
  const ampl_status s = ampl_register_hook(x, run_hook, let_go, h, &id);
  if (s != AMPL_OK) let_go(h);
  lampl_check(L, S, s);
  uint64_t *u = lua_newuserdatauv(L, sizeof *u, 1);
  *u = id;
  lua_pushvalue(L, 1);
  lua_setiuservalue(L, -2, 1);
  luaL_setmetatable(L, "ampl.Hook");
  return 1;
}

static int remove_hook(lua_State *L) {
  uint64_t *u = luaL_checkudata(L, 1, "ampl.Hook");
  lua_getiuservalue(L, 1, 1);
  lampl_handle *h = lampl_test_handle(L, -1);
  if (*u && h && h->x) ampl_remove_hook(h->x, *u);
  *u = 0;
  return 0;
}

static int invoke_backward(lua_State *L) {
  invocation *v = lua_touserdata(L, 1);
  push_held(L, v->h);
  lua_createtable(L, v->ny, 1);
  for (int k = 0; k < v->ny; k++) lampl_push_lent(L, v->dy[k]), lua_rawseti(L, -2, k + 1);
  lua_pushinteger(L, v->ny);
  lua_setfield(L, -2, "n");
  lua_createtable(L, v->nx, 0);
  for (int i = 0; i < v->nx; i++) lua_pushboolean(L, v->need[i]), lua_rawseti(L, -2, i + 1);
  lua_call(L, 2, 1);
  luaL_checktype(L, -1, LUA_TTABLE);
  for (int i = 0; i < v->nx; i++) {
    lua_rawgeti(L, -1, i + 1);
    ampl_tensor *x = lua_isnil(L, -1) ? NULL : lampl_check_tensor(L, -1);
    if (x && v->need[i]) ampl_tensor_retain(x), v->dx[i] = x;
    lua_pop(L, 1);
  }
  return 0;
}

static ampl_status run_function(void *ud, ampl_ctx *ctx, int ny, ampl_tensor *const *dy, int nx, ampl_tensor **dx,
                                const bool *need) {
  held *h = ud;
  (void)ctx;
  invocation v = {.h = h, .ny = ny, .nx = nx, .dy = dy, .need = need, .dx = dx};
  return protect(h->S, invoke_backward, &v);
}

static int invoke_drop(lua_State *L) {
  invocation *v = lua_touserdata(L, 1);
  push_held(L, v->h);
  lua_call(L, 0, 0);
  return 0;
}

/* Without memory for the call, what was saved stays until the node goes. */
static void drop_function(void *ud) {
  held *h = ud;
  invocation v = {.h = h};
  if (h->S->ctx) protect(h->S, invoke_drop, &v);
}

/* record_function(inputs, outputs, fn): outputs become results of a node whose backward is fn(gradients, need), and
 * which lets go of what it saved by fn(). */
static int record_function(lua_State *L) {
  lampl_state *S = lampl_state_of(L);
  int nx, ny;
  luaL_checktype(L, 3, LUA_TFUNCTION);
  lua_settop(L, 3);
  ampl_tensor **x = lampl_check_tensors(L, 1, "Function", &nx), **y = lampl_check_tensors(L, 2, "Function", &ny);
  lua_pushvalue(L, 3);
  held *h = hold(L, S);
  lampl_enter(L, S);
  const ampl_function f = {"Function", run_function, let_go, h, drop_function};
  const ampl_status s = ampl_record_function(S->ctx, &f, nx, x, ny, y);
  if (s != AMPL_OK) let_go(h);
  lampl_check(L, S, s);
  lampl_leave(S);
  return 0;
}

/* ------------------------------------------------------------------------------------------------ anomaly --------- */

static void where(void *ud, char *text, size_t n) {
  lampl_state *S = ud;
  lampl_where(S->L, text, n);
}

/* set_anomaly(on, nan, inf, scaled) */
static int set_anomaly(lua_State *L) {
  lampl_state *S = lampl_state_of(L);
  lampl_check(L, S,
              ampl_set_anomaly(S->ctx, lua_toboolean(L, 1), lua_toboolean(L, 2), lua_toboolean(L, 3),
                               lua_toboolean(L, 4), where, S));
  return 0;
}

static int anomaly_enabled(lua_State *L) { return lua_pushboolean(L, ampl_anomaly_enabled(lampl_ctx(L))), 1; }

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
  static const luaL_Reg mode_methods[] = {
      {"close", mode_close}, {"__close", mode_close}, {"__gc", mode_gc}, {NULL, NULL}};
  lua_newtable(L);
  lua_rawsetp(L, LUA_REGISTRYINDEX, &refs_key);
  luaL_newmetatable(L, "ampl.Mode");
  luaL_setfuncs(L, mode_methods, 0);
  lua_pushvalue(L, -1);
  lua_setfield(L, -2, "__index");
  lampl_hide_metatable(L);
  luaL_newmetatable(L, "ampl.Hook");
  lampl_hide_metatable(L);
  lua_pushvalue(L, -1);
  lua_setfield(L, -2, "__index");
  lua_pushcfunction(L, remove_hook);
  lua_setfield(L, -2, "remove");
  lua_pop(L, 2);
  luaL_setfuncs(L, functions, 0);
  lua_getfield(L, -1, "methods");
  luaL_setfuncs(L, methods, 0);
  lua_pop(L, 1);
}
