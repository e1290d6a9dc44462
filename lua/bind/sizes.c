/* sizes.c: shapes, sizes and strides: plain lists of integers whose metatable only shows and compares them. */
#include "lampl.h"

static const char metatable_key = 0;

void lampl_push_sizes(lua_State *L, int n, const int64_t *v) {
  lua_createtable(L, n, 0);
  for (int d = 0; d < n; d++) lua_pushinteger(L, v[d]), lua_rawseti(L, -2, d + 1);
  lua_rawgetp(L, LUA_REGISTRYINDEX, &metatable_key);
  lua_setmetatable(L, -2);
}

bool lampl_is_plain(lua_State *L, int i) {
  if (!lua_getmetatable(L, i)) return true;
  lua_pushliteral(L, "__plain");
  lua_rawget(L, -2);
  const bool plain = lua_toboolean(L, -1);
  lua_pop(L, 2);
  return plain;
}

/* {2, 3} */
static int to_string(lua_State *L) {
  luaL_Buffer b;
  if (!lua_istable(L, 1)) {             /* called by hand */
    lua_pushliteral(L, "ampl.Size");
    return 1;
  }
  const lua_Integer n = (lua_Integer)lua_rawlen(L, 1);
  luaL_buffinit(L, &b);
  luaL_addchar(&b, '{');
  for (lua_Integer i = 1; i <= n; i++) {
    if (i > 1) luaL_addstring(&b, ", ");
    lua_rawgeti(L, 1, i);
    luaL_tolstring(L, -1, NULL);
    lua_remove(L, -2);
    luaL_addvalue(&b);
  }
  luaL_addchar(&b, '}');
  luaL_pushresult(&b);
  return 1;
}

/* Lists are equal when their entries are. */
static int eq(lua_State *L) {
  lua_Integer n = lua_istable(L, 1) && lua_istable(L, 2) ? (lua_Integer)lua_rawlen(L, 1) : -1;
  bool same = n >= 0 && n == (lua_Integer)lua_rawlen(L, 2);
  for (; same && n > 0; n--) {
    lua_rawgeti(L, 1, n);
    lua_rawgeti(L, 2, n);
    same = lua_rawequal(L, -1, -2);
    lua_pop(L, 2);
  }
  lua_pushboolean(L, same);
  return 1;
}

void lampl_open_sizes(lua_State *L) {
  static const luaL_Reg meta[] = {{"__tostring", to_string}, {"__concat", lampl_concat}, {"__eq", eq}, {NULL, NULL}};
  luaL_newlib(L, meta);
  lua_pushliteral(L, "ampl.Size");
  lua_setfield(L, -2, "__name");
  lua_pushboolean(L, true);             /* data, no object: taken wherever a list is */
  lua_setfield(L, -2, "__plain");
  lua_rawsetp(L, LUA_REGISTRYINDEX, &metatable_key);
}
