/* mod.c: the module: embedded Lua sources, entry points. */
#include "ampl_lua.h"
#include "state.h"

#include <stdio.h>
#include <string.h>

extern const struct { const char *name, *text; size_t size; } ampl_embedded[];

static const char module_key = 0, searcher_key = 0;

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
  lampl_open_state(L);
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
