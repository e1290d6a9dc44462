/* archive.c: files of tensors for Lua.  What the environment refuses returns nil, message, code. */
#include "lampl.h"

#include "archive.h"

#include <string.h>

/* Owns what a reader returned until all of it is Lua's: an error in between (no memory for a table) loses nothing. */
typedef struct box {
  void *p;
  void (*release)(void *p);
} box;

static int box_gc(lua_State *L) {
  box *b = lua_touserdata(L, 1);
  if (b->p) b->release(b->p);
  b->p = NULL;
  return 0;
}

static box *push_box(lua_State *L, void (*release)(void *p)) {
  box *b = lua_newuserdatauv(L, sizeof *b, 0);
  *b = (box){NULL, release};
  if (luaL_newmetatable(L, "ampl.box")) {
    lua_pushcfunction(L, box_gc);
    lua_setfield(L, -2, "__gc");
  }
  lua_setmetatable(L, -2);
  return b;
}

static void release_archive(void *p) { ampl_archive_release(p); }
static void release_csv(void *p) { ampl_csv_release(p); }

/* A path: a string without zero bytes, which would cut it short. */
static const char *check_path(lua_State *L, const char *op) {
  size_t n;
  const char *path = lua_type(L, 1) == LUA_TSTRING ? lua_tolstring(L, 1, &n) : NULL;
  if (!path)
    lampl_error(L, AMPL_EARG, op, "path must be a string, not a %s", luaL_typename(L, 1));
  else if (strlen(path) != n)
    lampl_error(L, AMPL_EVALUE, op, "path holds a zero byte");
  return path;
}

/* Moves the reference in *x to a new handle on Lua's stack. */
static void push_moved(lua_State *L, lampl_state *S, ampl_tensor **x) {
  lampl_push_handle(L, S)->x = *x;
  *x = NULL;
}

/* ------------------------------------------------------------------------------------------------ safetensors ----- */

/* safetensors_load(path) -> {name = tensor}, {key = value} */
static int safetensors_load(lua_State *L) {
  lampl_state *S = lampl_state_of(L);
  const char *path = check_path(L, "safetensors.load");
  ampl_archive *a;
  lua_settop(L, 1);
  box *b = push_box(L, release_archive);
  lampl_enter(L, S);
  const ampl_status s = ampl_safetensors_load(S->ctx, path, &a);
  lampl_leave(S);
  if (s != AMPL_OK) return lampl_fail(L, s);
  b->p = a;
  lua_createtable(L, 0, (int)a->n);
  for (int64_t i = 0; i < a->n; i++) {
    push_moved(L, S, &a->tensors[i]);
    lua_setfield(L, -2, a->names[i]);
  }
  lua_createtable(L, 0, (int)a->nmeta);
  for (int64_t i = 0; i < a->nmeta; i++) {
    lua_pushstring(L, a->values[i]);
    lua_setfield(L, -2, a->keys[i]);
  }
  return 2;
}

/* The key of a table's entry at -2: a string without zero bytes. */
static const char *check_name(lua_State *L, const char *what) {
  size_t n;
  const char *name = lua_type(L, -2) == LUA_TSTRING ? lua_tolstring(L, -2, &n) : NULL;
  if (!name)
    lampl_error(L, AMPL_EARG, "safetensors.save", "the names of %s must be strings, not a %s", what,
                luaL_typename(L, -2));
  else if (strlen(name) != n)
    lampl_error(L, AMPL_EVALUE, "safetensors.save", "the name \"%.100s\" holds a zero byte", name);
  return name;
}

static int count(lua_State *L, int i) {
  int n = 0;
  if (!lua_istable(L, i)) return 0;
  for (lua_pushnil(L); lua_next(L, i); lua_pop(L, 1)) n++;
  return n;
}

/* The entries of the table at `i` as arrays of names and of values (tensors or strings), in a userdata that is pushed.
 */
static const void **entries(lua_State *L, int i, int n, const char *what, bool tensors) {
  const void **list = lua_newuserdatauv(L, (size_t)(2 * n + 1) * sizeof *list, 0);
  int k = 0;
  if (n == 0) return list;
  for (lua_pushnil(L); lua_next(L, i); lua_pop(L, 1), k++) {
    list[k] = check_name(L, what);
    if (tensors) {
      const lampl_handle *h = lampl_test_handle(L, -1);
      if (!h)
        lampl_error(L, AMPL_EARG, "safetensors.save", "\"%s\" is no tensor but a %s", (const char *)list[k],
                    luaL_typename(L, -1));
      else if (!h->x)
        lampl_error(L, AMPL_EFREED, "safetensors.save", "\"%s\" was freed", (const char *)list[k]);
      else
        list[n + k] = h->x;
      continue;
    }
    if (lua_type(L, -1) != LUA_TSTRING)
      lampl_error(L, AMPL_EARG, "safetensors.save", "metadata: the value of \"%s\" must be a string, not a %s",
                  (const char *)list[k], luaL_typename(L, -1));
    size_t bytes;
    list[n + k] = lua_tolstring(L, -1, &bytes);
    if (strlen(list[n + k]) != bytes)
      lampl_error(L, AMPL_EVALUE, "safetensors.save", "metadata: the value of \"%s\" holds a zero byte",
                  (const char *)list[k]);
  }
  return list;
}

/* safetensors_save(path, tensors [, metadata]) -> true */
static int safetensors_save(lua_State *L) {
  lampl_state *S = lampl_state_of(L);
  const char *path = check_path(L, "safetensors.save");
  lua_settop(L, 3);
  if (!lua_istable(L, 2))
    lampl_error(L, AMPL_EARG, "safetensors.save", "tensors must be a table, not a %s", luaL_typename(L, 2));
  if (!lua_isnil(L, 3) && !lua_istable(L, 3))
    lampl_error(L, AMPL_EARG, "safetensors.save", "metadata must be a table, not a %s", luaL_typename(L, 3));
  const int n = count(L, 2), nmeta = count(L, 3);
  const void **tensors = entries(L, 2, n, "tensors", true), **meta = entries(L, 3, nmeta, "metadata", false);
  lampl_enter(L, S);
  const ampl_status s =
      ampl_safetensors_save(S->ctx, path, n, (const char *const *)tensors, (ampl_tensor *const *)(tensors + n), nmeta,
                            (const char *const *)meta, (const char *const *)(meta + nmeta));
  lampl_leave(S);
  if (s == AMPL_EIO) return lampl_fail(L, s);
  lampl_check(L, S, s);
  lua_pushboolean(L, 1);
  return 1;
}

/* ------------------------------------------------------------------------------------------------ data sets ------- */

static int load_one(lua_State *L, const char *op,
                    ampl_status (*load)(ampl_ctx *ctx, const char *path, ampl_tensor **out)) {
  lampl_state *S = lampl_state_of(L);
  const char *path = check_path(L, op);
  lampl_enter(L, S);
  lampl_handle *h = lampl_push_handle(L, S);
  const ampl_status s = load(S->ctx, path, &h->x);
  lampl_leave(S);
  return s == AMPL_OK ? 1 : lampl_fail(L, s);
}

/* idx_load(path), npy_load(path) -> tensor */
static int idx_load(lua_State *L) { return load_one(L, "data.idx", ampl_idx_load); }
static int npy_load(lua_State *L) { return load_one(L, "data.npy", ampl_npy_load); }

/* csv_load(path, separator or nil, header or nil, skip, dtype) -> tensor, names or nil */
static int csv_load(lua_State *L) {
  lampl_state *S = lampl_state_of(L);
  const char *path = check_path(L, "data.csv");
  ampl_csv_options o = AMPL_CSV_OPTIONS_INIT;
  ampl_csv *c;
  lua_settop(L, 5);
  if (!lua_isnil(L, 2)) o.separator = luaL_checkstring(L, 2)[0];
  if (!lua_isnil(L, 3)) o.header = lua_toboolean(L, 3);
  o.skip = luaL_optinteger(L, 4, 0);
  o.dtype = lua_isnil(L, 5) ? AMPL_F32 : lampl_check_dtype(L, 5, "data.csv");
  box *b = push_box(L, release_csv);
  lampl_enter(L, S);
  const ampl_status s = ampl_csv_load(S->ctx, path, &o, &c);
  lampl_leave(S);
  if (s != AMPL_OK) return lampl_fail(L, s);
  b->p = c;
  push_moved(L, S, &c->values);
  if (c->n == 0) return 1;
  lua_createtable(L, (int)c->n, 0);
  for (int64_t i = 0; i < c->n; i++) {
    lua_pushstring(L, c->names[i]);
    lua_rawseti(L, -2, i + 1);
  }
  return 2;
}

void lampl_open_archive(lua_State *L) {
  static const luaL_Reg functions[] = {{"safetensors_load", safetensors_load},
                                       {"safetensors_save", safetensors_save},
                                       {"idx_load", idx_load},
                                       {"npy_load", npy_load},
                                       {"csv_load", csv_load},
                                       {NULL, NULL}};
  luaL_setfuncs(L, functions, 0);
}
