/* mod.c: the module: state, embedded Lua sources, entry points. */
#include "ampl_lua.h"
#include "lampl.h"

#include <stdio.h>
#include <string.h>

extern const struct { const char *name, *text; size_t size; } ampl_embedded[];

static const char state_key = 0, threads_key = 0, module_key = 0, searcher_key = 0;

lampl_state *lampl_state_of(lua_State *L) {
  lua_rawgetp(L, LUA_REGISTRYINDEX, &state_key);
  lampl_state *S = lua_touserdata(L, -1);
  lua_pop(L, 1);
  return S;
}

ampl_ctx *lampl_ctx(lua_State *L) { return lampl_state_of(L)->ctx; }

/* ------------------------------------------------------------------------------------------------ coroutines ------ */

static int thread_gc(lua_State *L) {
  lampl_thread *t = lua_touserdata(L, 1);
  if (t->modes) ampl_modes_free(t->ctx, t->modes);
  t->modes = NULL;
  return 0;
}

/* The record of coroutine L, made at its first op; weak keys, so it goes with the coroutine. */
static lampl_thread *thread_of(lua_State *L, lampl_state *S) {
  lua_rawgetp(L, LUA_REGISTRYINDEX, &threads_key);
  const bool main = lua_pushthread(L);
  lua_rawget(L, -2);
  lampl_thread *t = lua_touserdata(L, -1);
  if (!t) {
    lua_pop(L, 1);
    t = lua_newuserdatauv(L, sizeof *t, 0);
    *t = (lampl_thread){.ctx = S->ctx};
    luaL_setmetatable(L, "ampl.Thread");
    if (!main && ampl_modes_new(S->ctx, &t->modes) != AMPL_OK) lampl_raise(L, AMPL_ENOMEM);
    lua_pushthread(L);
    lua_pushvalue(L, -2);
    lua_rawset(L, -4);
  }
  lua_pop(L, 2);
  return t;
}

static void collect(void *ud) {
  lampl_state *S = ud;
  if (S->L) lua_gc(S->L, LUA_GCCOLLECT);
}

void lampl_enter(lua_State *L, lampl_state *S) {
  if (S->L != L) {
    S->thread = thread_of(L, S);
    S->L = L;
    ampl_modes_use(S->ctx, S->thread->modes);
  }
  if (ampl_memory_pressed(S->ctx)) {
    lua_gc(L, LUA_GCCOLLECT);
    ampl_memory_collected(S->ctx);
  }
  ampl_set_index_base(S->ctx, 1);
}

void lampl_leave(lampl_state *S) { ampl_set_index_base(S->ctx, 0); }

lampl_state *lampl_switch(lua_State *L) {
  lampl_state *S = lampl_state_of(L);
  lampl_enter(L, S);
  lampl_leave(S);
  return S;
}

/* ------------------------------------------------------------------------------------------------ warnings -------- */

/* Through ampl.on_warning's function where there is one, else through Lua's warn. */
static void warn(void *ud, const char *code, const char *message) {
  lampl_state *S = ud;
  lua_State *L = S->L;
  if (!L) return;
  lua_getfield(L, LUA_REGISTRYINDEX, "ampl.on_warning");
  if (lua_isfunction(L, -1)) {
    lua_createtable(L, 0, 2);
    lua_pushstring(L, code);
    lua_setfield(L, -2, "code");
    lua_pushstring(L, message);
    lua_setfield(L, -2, "message");
    if (lua_pcall(L, 1, 0, 0) != LUA_OK) lua_pop(L, 1);
    return;
  }
  lua_pop(L, 1);
  lua_warning(L, "ampl: ", 1);
  lua_warning(L, message, 0);
}

/* ------------------------------------------------------------------------------------------------ state ----------- */

static int state_gc(lua_State *L) {
  lampl_state *S = lua_touserdata(L, 1);
  if (!S->ctx) return 0;
  ampl_on_collect(S->ctx, NULL, NULL);
  ampl_on_warning(S->ctx, NULL, NULL);
  ampl_modes_use(S->ctx, NULL);
  ampl_ctx_release(S->ctx);             /* tensors that are still to be collected keep it alive */
  S->ctx = NULL;
  return 0;
}

static void metatable(lua_State *L, const char *name, lua_CFunction gc) {
  luaL_newmetatable(L, name);
  lua_pushcfunction(L, gc);
  lua_setfield(L, -2, "__gc");
  lua_pop(L, 1);
}

static void open_state(lua_State *L) {
  metatable(L, "ampl.State", state_gc);
  metatable(L, "ampl.Thread", thread_gc);
  lampl_state *S = lua_newuserdatauv(L, sizeof *S, 0);
  *S = (lampl_state){.to = ampl_op_find("to"), .select = ampl_op_find("select")};
  luaL_setmetatable(L, "ampl.State");
  lua_getfield(L, LUA_REGISTRYINDEX, LAMPL_GIVEN_CTX);
  ampl_ctx *given = lua_touserdata(L, -1);
  lua_pop(L, 1);
  if (given) ampl_ctx_retain(S->ctx = given);
  else if (ampl_ctx_new(NULL, &S->ctx) != AMPL_OK) luaL_error(L, "%s", ampl_error_message(NULL));
  lua_rawsetp(L, LUA_REGISTRYINDEX, &state_key);
  lua_newtable(L);
  lua_createtable(L, 0, 1);
  lua_pushliteral(L, "k");
  lua_setfield(L, -2, "__mode");
  lua_setmetatable(L, -2);
  lua_rawsetp(L, LUA_REGISTRYINDEX, &threads_key);
  ampl_on_collect(S->ctx, collect, S);
  ampl_on_warning(S->ctx, warn, S);
}

/* ------------------------------------------------------------------------------------------------ sources --------- */

static int find_embedded(const char *name) {
  for (int i = 0; ampl_embedded[i].name; i++)
    if (strcmp(ampl_embedded[i].name, name) == 0) return i;
  return -1;
}

/* Loads the i-th under a name that no file of the user's has: ampl.nn.Linear is [ampl]/nn/Linear.lua. */
static int load_embedded(lua_State *L, int i) {
  char chunk[128];
  snprintf(chunk, sizeof chunk, "=" LAMPL_OWN_SOURCE "%s.lua", ampl_embedded[i].name + strlen("ampl"));
  for (char *dot = chunk + strlen("=" LAMPL_OWN_SOURCE); (dot = strchr(dot, '.')) && strcmp(dot, ".lua") != 0;)
    *dot = '/';
  return luaL_loadbufferx(L, ampl_embedded[i].text, ampl_embedded[i].size, chunk, "t");
}

bool ampl_lua_has_module(const char *name) { return find_embedded(name) >= 0; }

/* source(module): the text of an embedded source, with the comments that document it; nil for others. */
static int source(lua_State *L) {
  const int i = find_embedded(luaL_checkstring(L, 1));
  if (i < 0) lua_pushnil(L);
  else lua_pushlstring(L, ampl_embedded[i].text, ampl_embedded[i].size);
  return 1;
}

/* A searcher of package.searchers: ours come out of the library, whatever the path says. */
static int searcher(lua_State *L) {
  const char *name = luaL_checkstring(L, 1);
  const int i = find_embedded(name);
  if (i < 0) {
    lua_pushfstring(L, "no Lua module '%s' in ampl", name);
    return 1;
  }
  if (load_embedded(L, i) != LUA_OK) return lua_error(L);
  lua_pushliteral(L, ":ampl:");
  return 2;
}

static void add_searcher(lua_State *L) {
  if (lua_rawgetp(L, LUA_REGISTRYINDEX, &searcher_key) != LUA_TNIL) {
    lua_pop(L, 1);
    return;
  }
  lua_pop(L, 1);
  lua_pushboolean(L, 1);
  lua_rawsetp(L, LUA_REGISTRYINDEX, &searcher_key);
  lua_getglobal(L, "package");
  if (!lua_istable(L, -1)) {
    lua_pop(L, 1);
    return;
  }
  lua_getfield(L, -1, "searchers");
  const lua_Integer n = luaL_len(L, -1);
  for (lua_Integer i = n; i >= 2; i--) {                /* second: behind package.preload */
    lua_rawgeti(L, -1, i);
    lua_rawseti(L, -2, i + 1);
  }
  lua_pushcfunction(L, searcher);
  lua_rawseti(L, -2, 2);
  lua_pop(L, 2);
}

/* ------------------------------------------------------------------------------------------------ entry ----------- */

int luaopen_ampl_core(lua_State *L) {
  lua_rawgetp(L, LUA_REGISTRYINDEX, &module_key);
  if (lua_istable(L, -1)) return 1;
  lua_pop(L, 1);
  luaL_checkversion(L);
  open_state(L);
  lua_newtable(L);
  lua_pushliteral(L, "ampl " AMPL_VERSION_TEXT);
  lua_setfield(L, -2, "_VERSION");
  lua_pushcfunction(L, source);
  lua_setfield(L, -2, "source");
  lampl_open_error(L);
  lampl_open_sizes(L);
  lampl_open_tensor(L);
  lampl_open_ops(L);
  lampl_open_make(L);
  lampl_open_grad(L);
  lampl_open_scope(L);
  lampl_open_system(L);
  lampl_open_archive(L);
  lampl_open_scaler(L);
  lua_pushvalue(L, -1);
  lua_rawsetp(L, LUA_REGISTRYINDEX, &module_key);
  return 1;
}

/* The whole module: the C part goes to package.loaded, the rest is ampl/init.lua. */
int luaopen_ampl(lua_State *L) {
  luaL_getsubtable(L, LUA_REGISTRYINDEX, LUA_LOADED_TABLE);
  add_searcher(L);                      /* ampl.core alone brings no Lua modules: they may come from a path then */
  if (lua_getfield(L, -1, "ampl.core") == LUA_TNIL) {
    luaopen_ampl_core(L);
    lua_setfield(L, -3, "ampl.core");
  }
  lua_settop(L, 0);
  if (load_embedded(L, find_embedded("ampl")) != LUA_OK) return lua_error(L);
  lua_pushliteral(L, "ampl");
  lua_call(L, 1, 1);
  return 1;
}
