/* lua_states_test.c: Lua states on a context that the host has too: whose modes, counting and callbacks a call has, and
 * what is left when state and context end in either order. */
#include "ampl_lua.h"

#include <lauxlib.h>
#include <lualib.h>
#include <stdio.h>
#include <string.h>

static int passed, failed;
static ampl_ctx *ctx;

#define CHECK(c)                                                                                                       \
  do {                                                                                                                 \
    if (c) passed++;                                                                                                   \
    else failed++, printf("%s:%d: %s (%s)\n", __FILE__, __LINE__, #c, ampl_error_message(ctx));                        \
  } while (0)

static lua_State *open_state(void) {
  lua_State *L = luaL_newstate();
  luaL_openlibs(L);
  ampl_lua_set_ctx(L, ctx);
  luaL_requiref(L, "ampl", luaopen_ampl, 1);
  lua_pop(L, 1);
  return L;
}

static bool run(lua_State *L, const char *code) {
  const bool ok = luaL_dostring(L, code) == LUA_OK;
  if (!ok) printf("%s\n", luaL_tolstring(L, -1, NULL));
  lua_settop(L, 0);
  return ok;
}

/* The tensor that the global `name` holds, with a reference. */
static ampl_tensor *taken(lua_State *L, const char *name) {
  lua_getglobal(L, name);
  ampl_tensor *x = ampl_lua_to(L, -1);
  ampl_tensor_retain(x);
  lua_pop(L, 1);
  return x;
}

static ampl_status refuse(ampl_tensor *x) {
  ampl_tensor *y = NULL;
  const ampl_value v[] = {{.t = x}, {.i = 9}, {.i = 0}};
  const ampl_status s = ampl_run(ctx, "select", v, 3, &y, 1);
  ampl_tensor_release(y);
  return s;
}

/* After anything that Lua did, also after its errors, the host counts from 0 and has its own modes. */
static void host_is_itself(void) {
  const int64_t shape[] = {2, 3};
  ampl_tensor *x;
  CHECK(ampl_grad_enabled(ctx));
  CHECK(!ampl_autocast_enabled(ctx, NULL));
  CHECK(ampl_zeros(ctx, AMPL_F32, 2, shape, &x) == AMPL_OK);
  CHECK(refuse(x) == AMPL_EINDEX && strstr(ampl_error_message(ctx), "0 to 1"));
  CHECK(strcmp(ampl_error_op(ctx), "select") == 0);
  ampl_tensor_release(x);
}

static void errors_leave_nothing(void) {
  static const char *const wrong[] = {
      "ampl.zeros(2)[7] = 1", "ampl.zeros(2, 3):sum(5)", "ampl.cat{ampl.ones(1), nil, ampl.ones(2)}", "ampl.zeros(-1)",
      "ampl.tensor{{1}, {1, 2}}", "ampl.tensor{1, print}", "ampl.ones(1):backward()", "ampl.grad(1, 2)",
      "ampl.softmax(ampl.ones(2), {dmi = 1})", "ampl.amp.autocast({dtype = 'f16'}, error)", "ampl.no_grad(error)",
      "local w = ampl.ones(1, {requires_grad = true}) w:register_hook(error); (w * 2):sum():backward()",
      "local w = ampl.ones(1, {requires_grad = true}) w:register_hook(function() ampl.ones(2)[5] = 1 end); "
      "(w * 2):sum():backward()",
      "coroutine.wrap(function() local _ <close> = ampl.no_grad() error('x') end)()",
      "keep = ampl.no_grad()", "coroutine.wrap(function() keep2 = ampl.amp.autocast{dtype = 'bf16'} end)()"};
  lua_State *L = open_state();
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
    if (luaL_dostring(L, wrong[i]) == LUA_OK) passed++;
    lua_settop(L, 0);
    host_is_itself();
  }
  lua_close(L);
  host_is_itself();
}

static void modes_are_apart(void) {
  lua_State *a = open_state(), *b = open_state();
  CHECK(run(a, "mode = ampl.no_grad() assert(not ampl.is_grad_enabled())"));
  CHECK(run(b, "assert(ampl.is_grad_enabled()) region = ampl.amp.autocast{dtype = 'bf16'}"));
  CHECK(run(a, "assert(not ampl.is_grad_enabled()) assert(not ampl.amp.is_autocast_enabled())"));
  CHECK(run(a, "co = coroutine.wrap(function() local _ <close> = ampl.amp.autocast{dtype = 'f16'} "
               "while true do assert(ampl.is_grad_enabled() and ampl.amp.get_autocast_dtype() == 'f16') "
               "coroutine.yield() end end) co()"));
  CHECK(run(b, "co = coroutine.wrap(function() local _ <close> = ampl.inference_mode() "
               "while true do assert(not ampl.is_grad_enabled() and not ampl.amp.is_autocast_enabled()) "
               "coroutine.yield() end end) co()"));
  for (int i = 0; i < 3; i++) {
    CHECK(run(a, "co() assert(not ampl.is_grad_enabled())"));
    CHECK(run(b, "co() assert(ampl.is_grad_enabled() and ampl.amp.get_autocast_dtype() == 'bf16')"));
    host_is_itself();
  }
  CHECK(run(a, "mode:close() assert(ampl.is_grad_enabled())"));
  lua_close(a);
  CHECK(run(b, "co() assert(ampl.ones(2):matmul(ampl.ones(2)).dtype == 'bf16')"));
  lua_close(b);
  host_is_itself();
}

static lua_State *other;

static int call_other(lua_State *L) {
  if (luaL_dostring(other, lua_tostring(L, 1)) != LUA_OK) return luaL_error(L, "%s", luaL_tolstring(other, -1, NULL));
  return 0;
}

/* One state's call within the other's: in its function, in its hook. */
static void calls_nest(void) {
  lua_State *a = open_state(), *b = other = open_state();
  lua_register(a, "other", call_other);
  CHECK(run(b, "n = 0 mode = ampl.no_grad() ampl.on_warning(function() error('not mine') end)"));
  CHECK(run(a, "ampl.amp.autocast({dtype = 'bf16'}, function() "
               "other [[assert(not ampl.amp.is_autocast_enabled() and not ampl.is_grad_enabled())]] "
               "assert(ampl.amp.is_autocast_enabled() and ampl.is_grad_enabled()) end)"));
  CHECK(run(a, "local w = ampl.ones(1, {requires_grad = true}) "
               "w:register_hook(function(g) other [[n = n + 1 pcall(ampl.zeros, -1) ampl.ones(3):sum()]] "
               "assert(not ampl.is_grad_enabled()) assert(not pcall(function() return ampl.ones(2)[3] end)) end); "
               "(w * 2):sum():backward() assert(w.grad:item() == 2)"));
  CHECK(run(b, "assert(n == 1)"));
  lua_close(a);
  lua_close(b);
}

/* Warnings and collections come to the state whose call runs. */
static void callbacks_find_their_state(void) {
  lua_State *a = open_state(), *b = open_state();
  static const char *const listen = "heard = 0 ampl.on_warning(function() heard = heard + 1 end)";
  static const char *const bare = "do local _ = ampl.no_grad() end collectgarbage() collectgarbage()";
  CHECK(run(a, listen) && run(b, listen));
  CHECK(run(a, bare) && run(a, "assert(heard == 1)") && run(b, "assert(heard == 0)"));
  CHECK(run(b, bare) && run(b, "assert(heard == 1)") && run(a, "assert(heard == 1)"));
  /* what a state has let go of is collected when memory is short, also in the host's and the other's calls */
  ampl_memory_set_limit(ctx, 64 << 20);
  for (int i = 0; i < 2; i++) {
    CHECK(run(a, "collectgarbage('stop') for _ = 1, 5 do ampl.zeros(1 << 20) end"));
    if (i) CHECK(run(b, "assert(ampl.zeros(13 << 20))"));
    else {
      ampl_tensor *x = NULL;
      const int64_t n = 13 << 20;
      CHECK(ampl_zeros(ctx, AMPL_F32, 1, &n, &x) == AMPL_OK);
      ampl_tensor_release(x);
    }
    CHECK(run(b, "collectgarbage()"));
  }
  ampl_memory_set_limit(ctx, (size_t)1 << 30);
  lua_close(b);
  CHECK(run(a, bare) && run(a, "assert(heard == 2)"));
  lua_close(a);
}

/* Hooks and Functions of a state that was closed are errors when the walk comes to them. */
static void graphs_outlive_states(void) {
  for (int i = 0; i < 3; i++) {
    lua_State *L = open_state();
    CHECK(run(L, "w = ampl.ones(2, {requires_grad = true}) "
                 "f = ampl.Function{forward = function(ctx, x) ctx:save(x) return x * 2 end, "
                 "backward = function(ctx, g) return g * 2 end} "
                 "y = f(w):sum() z = (w * 2):sum() h = w:register_hook(function(g) return g * 3 end)"));
    CHECK(run(L, "ampl.set_detect_anomaly(true)"));
    ampl_tensor *y = taken(L, "y"), *z = taken(L, "z"), *w = taken(L, "w");
    if (i == 0) CHECK(ampl_backward(y, NULL, 0) == AMPL_OK);    /* from C, in the state's absence */
    if (i == 1) lua_close(L), L = NULL;
    if (i < 2) {
      ampl_tensor *more = NULL;                                 /* anomaly mode asks nobody for the place */
      CHECK(ampl_run(ctx, "mul", (ampl_value[]){{.t = w}, {.t = w}}, 2, &more, 1) == AMPL_OK);
      ampl_tensor_release(more);
    }
    if (i == 2) {
      CHECK(run(L, "w:register_hook(function() error('of a hook') end)"));
      CHECK(ampl_backward(z, NULL, 0) == AMPL_ESTATE && strstr(ampl_error_message(ctx), "of a hook"));
      lua_close(L);
      L = NULL;
    }
    if (!L) {
      CHECK(ampl_backward(y, NULL, 0) == AMPL_ESTATE && strstr(ampl_error_message(ctx), "was closed"));
      CHECK(ampl_backward(z, NULL, 0) == AMPL_ESTATE && strstr(ampl_error_message(ctx), "was closed"));
    }
    ampl_tensor_release(y);
    ampl_tensor_release(z);
    ampl_tensor_release(w);
    if (L) lua_close(L);
    CHECK(ampl_set_anomaly(ctx, false, false, false, false, NULL, NULL) == AMPL_OK);
  }
}

/* Finalisers that compute while the state ends, older and younger than the module: clear errors, nothing left. */
static void finalisers_at_the_end(void) {
  static const char *const busy =
      "local scaler = ampl and ampl.amp.GradScaler() "
      "return setmetatable({}, {__gc = function(t) "
      "pcall(function() x = ampl.ones(1000):add(1) end) pcall(function() s = ampl.scope() ampl.ones(5) end) "
      "pcall(function() m = ampl.no_grad() end) pcall(function() g = ampl.amp.GradScaler() end) "
      "pcall(function() return scaler:get_scale() end) pcall(function() return kept:sum() end) end})";
  for (int i = 0; i < 2; i++) {
    lua_State *L = luaL_newstate();
    luaL_openlibs(L);
    ampl_lua_set_ctx(L, ctx);
    if (i && luaL_dostring(L, busy) == LUA_OK) lua_setglobal(L, "early");
    luaL_requiref(L, "ampl", luaopen_ampl, 1);
    CHECK(run(L, "kept = ampl.ones(3)"));
    if (luaL_dostring(L, busy) == LUA_OK) lua_setglobal(L, "late");
    lua_close(L);
  }
}

static void contexts_end_first(void) {
  ampl_memory_info m;
  lua_State *L = open_state();
  CHECK(run(L, "x = ampl.ones(3) mode = ampl.no_grad() s = ampl.amp.GradScaler()"));
  ampl_ctx_retain(ctx);
  ampl_ctx_release(ctx);
  lua_close(L);
  ampl_memory(ctx, &m);
  CHECK(m.tensors == 0 && m.nodes == 0);
}

int main(void) {
  if (ampl_ctx_new(NULL, &ctx) != AMPL_OK) return 1;
  host_is_itself();
  errors_leave_nothing();
  modes_are_apart();
  calls_nest();
  callbacks_find_their_state();
  graphs_outlive_states();
  finalisers_at_the_end();
  contexts_end_first();
  lua_State *L = open_state();          /* the host lets go of the context while the state lives on */
  ampl_ctx_release(ctx);
  CHECK(run(L, "assert(ampl.ones(2):sum():item() == 2)"));
  printf("lua_states_test: %d passed, %d failed\n", passed, failed);
  lua_close(L);
  return failed != 0;
}
