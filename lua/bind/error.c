/* error.c: error objects: {code, message, op, where, traceback}, with __tostring and __concat. */
#include "lampl.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static const char meta_key = 0, kept_key = 0;

void lampl_where(lua_State *L, char *text, size_t n) {
  lua_Debug ar;
  text[0] = 0;
  for (int level = 0; lua_getstack(L, level, &ar); level++) {
    lua_getinfo(L, "Sl", &ar);
    const bool ours = strncmp(ar.short_src, LAMPL_OWN_SOURCE, strlen(LAMPL_OWN_SOURCE)) == 0;
    if (ar.currentline <= 0 || ours) continue;          /* a C function, or our own Lua */
    snprintf(text, n, "%s:%d", ar.short_src, ar.currentline);
    return;
  }
}

/* Raises the object made of what is given; `message` is copied first. */
static int raise(lua_State *L, const char *code, const char *op, const char *message) {
  char where[256];
  lampl_where(L, where, sizeof where);
  lua_createtable(L, 0, 5);
  lua_pushstring(L, code);
  lua_setfield(L, -2, "code");
  lua_pushstring(L, message);
  lua_setfield(L, -2, "message");
  lua_pushstring(L, op);
  lua_setfield(L, -2, "op");
  lua_pushstring(L, where);
  lua_setfield(L, -2, "where");
  luaL_traceback(L, L, NULL, 1);
  lua_setfield(L, -2, "traceback");
  lua_rawgetp(L, LUA_REGISTRYINDEX, &meta_key);
  lua_setmetatable(L, -2);
  return lua_error(L);
}

int lampl_raise(lua_State *L, lampl_state *S, ampl_status s) {
  return raise(L, ampl_status_name(s), ampl_error_op(S->ctx), ampl_error_message(S->ctx));
}

ampl_status lampl_keep_error(lua_State *L, lampl_state *S) {
  S->failed = true;
  lua_rawsetp(L, LUA_REGISTRYINDEX, &kept_key);
  return ampl_fail(S->ctx, AMPL_ESTATE, "a Lua function raised an error");
}

void lampl_check(lua_State *L, lampl_state *S, ampl_status s) {
  if (s == AMPL_OK) return;
  if (s == AMPL_EINTR && S->interrupt_once) ampl_interrupt_clear(S->ctx);
  if (S->failed) {
    S->failed = false;
    lua_rawgetp(L, LUA_REGISTRYINDEX, &kept_key);
    lua_pushboolean(L, 0);              /* the key stays, so that keeping an error needs no memory */
    lua_rawsetp(L, LUA_REGISTRYINDEX, &kept_key);
    lua_error(L);
  }
  lampl_raise(L, S, s);
}

int lampl_fail(lua_State *L, lampl_state *S, ampl_status s) {
  luaL_pushfail(L);
  lua_pushstring(L, ampl_error_message(S->ctx));
  lua_pushstring(L, ampl_status_name(s));
  return 3;
}

int lampl_error(lua_State *L, ampl_status s, const char *op, const char *fmt, ...) {
  char text[1024];
  va_list args;
  va_start(args, fmt);
  vsnprintf(text, sizeof text, fmt, args);
  va_end(args);
  return raise(L, ampl_status_name(s), op, *op ? lua_pushfstring(L, "%s: %s", op, text) : text);
}

/* ------------------------------------------------------------------------------------------------ arguments ------- */

size_t lampl_append(char *text, size_t n, size_t at, const char *fmt, ...) {
  va_list args;
  va_start(args, fmt);
  const int more = vsnprintf(text + at, n - at, fmt, args);
  va_end(args);
  if (more < 0) return at;
  return (size_t)more < n - at ? at + (size_t)more : n - 1;
}

const char *lampl_shown(lua_State *L, int i, char *text, size_t n) {
  size_t length;
  switch (lua_type(L, i)) {
  case LUA_TNONE:
  case LUA_TNIL: return "nil";
  case LUA_TNUMBER:
    if (lua_isinteger(L, i)) snprintf(text, n, "%lld", (long long)lua_tointeger(L, i));
    else snprintf(text, n, "%.14g", lua_tonumber(L, i));
    return text;
  case LUA_TSTRING:
    lua_tolstring(L, i, &length);
    snprintf(text, n, "\"%.60s\"%s", lua_tostring(L, i), length > 60 ? "..." : "");
    return text;
  case LUA_TBOOLEAN: return lua_toboolean(L, i) ? "true" : "false";
  case LUA_TTHREAD: return "a coroutine";
  case LUA_TUSERDATA:
    if (lampl_test_handle(L, i)) return "a tensor";
    if (luaL_getmetafield(L, i, "__name") == LUA_TSTRING) {
      snprintf(text, n, "a %.60s object", lua_tostring(L, -1));
      lua_pop(L, 1);
      return text;
    }
    return "an object of another library";
  default: snprintf(text, n, "a %s", luaL_typename(L, i)); return text;
  }
}

int lampl_wrong(lua_State *L, int i, const char *op, const char *what, const char *wanted) {
  char text[LAMPL_SHOWN];
  return lampl_error(L, AMPL_EARG, op, "%s must be %s, not %s", what, wanted, lampl_shown(L, i, text, sizeof text));
}

const char *lampl_check_string(lua_State *L, int i, const char *op, const char *what) {
  if (lua_type(L, i) != LUA_TSTRING) lampl_wrong(L, i, op, what, "a string");
  return lua_tostring(L, i);
}

bool lampl_check_boolean(lua_State *L, int i, const char *op, const char *what, int otherwise) {
  if (lua_isnoneornil(L, i) && otherwise >= 0) return otherwise;
  if (!lua_isboolean(L, i)) lampl_wrong(L, i, op, what, "true or false");
  return lua_toboolean(L, i);
}

int64_t lampl_check_integer(lua_State *L, int i, const char *op, const char *what) {
  int64_t n = 0;
  if (!lampl_to_integer(L, i, &n)) lampl_wrong(L, i, op, what, "an integer");
  return n;
}

void lampl_require(lua_State *L, const char *name) {
  luaL_getsubtable(L, LUA_REGISTRYINDEX, LUA_LOADED_TABLE);
  if (lua_getfield(L, -1, name) == LUA_TNIL) {
    lua_pop(L, 1);
    lua_getglobal(L, "require");
    lua_pushstring(L, name);
    lua_call(L, 1, 1);
  }
  lua_remove(L, -2);
}

/* ------------------------------------------------------------------------------------------------ error objects --- */

/* core.raise(code, op, message): for the Lua parts. */
static int raise_from_lua(lua_State *L) {
  const char *code = lampl_check_string(L, 1, "raise", "the code");
  const char *op = lua_isnoneornil(L, 2) ? "" : lampl_check_string(L, 2, "raise", "the op");
  lua_settop(L, 3);
  if (*op) lua_pushfstring(L, "%s: %s", op, luaL_tolstring(L, 3, NULL));
  else luaL_tolstring(L, 3, NULL);
  return raise(L, code, op, lua_tostring(L, -1));
}

static int to_string(lua_State *L) {
  if (!lua_istable(L, 1)) {
    lua_pushliteral(L, "ampl.Error");
    return 1;
  }
  lua_getfield(L, 1, "where");
  lua_getfield(L, 1, "message");
  lua_getfield(L, 1, "code");
  const char *where = lua_tostring(L, -3), *message = lua_tostring(L, -2), *code = lua_tostring(L, -1);
  lua_pushfstring(L, "%s%s%s [%s]", where ? where : "", where && *where ? ": " : "", message ? message : "?",
                  code ? code : "?");
  return 1;
}

int lampl_concat(lua_State *L) {
  luaL_tolstring(L, 1, NULL);
  luaL_tolstring(L, 2, NULL);
  lua_concat(L, 2);
  return 1;
}

void lampl_open_error(lua_State *L) {
  lua_pushboolean(L, 0);
  lua_rawsetp(L, LUA_REGISTRYINDEX, &kept_key);
  lua_createtable(L, 0, 3);
  lua_pushcfunction(L, to_string);
  lua_setfield(L, -2, "__tostring");
  lua_pushcfunction(L, lampl_concat);
  lua_setfield(L, -2, "__concat");
  lua_pushliteral(L, "ampl.Error");
  lua_setfield(L, -2, "__name");
  lua_rawsetp(L, LUA_REGISTRYINDEX, &meta_key);
  lua_pushcfunction(L, raise_from_lua);
  lua_setfield(L, -2, "raise");
}
