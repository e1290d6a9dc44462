/* archive.c: files of tensors for Lua.  What the environment refuses returns nil, message, code. */
#include "lampl.h"

#include "archive.h"

#include <stdio.h>
#include <string.h>

/* What a reader returned is in a box until all of it is Lua's: an error in between (no memory for a table) loses
 * nothing. */
#define READER "ampl.reader"

static void release_archive(void *p) { ampl_archive_release(p); }
static void release_csv(void *p) { ampl_csv_release(p); }

/* What a message calls the value at `i`. */
static const char *kind_of(lua_State *L, int i) { return lampl_test_handle(L, i) ? "tensor" : luaL_typename(L, i); }

/* s as messages show it; pushed. */
static const char *push_escaped(lua_State *L, const char *s, size_t n) {
  luaL_Buffer b;
  const size_t room = 4 * n + 1;
  char *p = luaL_buffinitsize(L, &b, room);
  luaL_pushresultsize(&b, ampl_escape(p, room, s, n));
  return lua_tostring(L, -1);
}

/* escape(s) -> s with all its characters visible */
static int escape(lua_State *L) {
  size_t n;
  const char *s = lampl_check_string(L, 1, "escape", "the text");
  lua_tolstring(L, 1, &n);
  push_escaped(L, s, n);
  return 1;
}

/* A path: a string without zero bytes, which would cut it short. */
static const char *check_path(lua_State *L, const char *op) {
  size_t n;
  const char *path = lua_type(L, 1) == LUA_TSTRING ? lua_tolstring(L, 1, &n) : NULL;
  if (!path)
    lampl_error(L, AMPL_EARG, op, "path must be a string, not a %s", kind_of(L, 1));
  else if (strlen(path) != n)
    lampl_error(L, AMPL_EVALUE, op, "path holds a zero byte");
  return path;
}

/* Of what a reader or writer returned: 0, or the number of results (nil, message,
 * code) where a file or the machine is to blame.  Raises what is wrong with an argument, and an interruption. */
static int refused(lua_State *L, lampl_state *S, const char *op, ampl_status s) {
  char message[1024];
  switch (s) {
  case AMPL_OK: return 0;
  case AMPL_EIO:
  case AMPL_EFORMAT:
  case AMPL_EUNSUPPORTED:
  case AMPL_ENOMEM: return lampl_fail(L, S, s);
  case AMPL_EINTR: lampl_check(L, S, s); return 0;
  default:
    snprintf(message, sizeof message, "%s", ampl_error_message(S->ctx));
    return lampl_error(L, s, op, "%s", message);
  }
}

/* Moves the reference in *x to a new handle on Lua's stack. */
static void push_moved(lua_State *L, lampl_state *S, ampl_tensor **x) {
  lampl_push_handle(L, S)->x = *x;
  *x = NULL;
}

/* ------------------------------------------------------------------------------------------------ safetensors ----- */

/* To be called in long loops that make Lua values: raises EINTR after an interruption. */
static void poll(lua_State *L, lampl_state *S, int64_t i) {
  if (i % 1024 == 0 && ampl_interrupted(S->ctx)) lampl_check(L, S, ampl_fail(S->ctx, AMPL_EINTR, "interrupted"));
}

/* safetensors_load(path) -> {name = tensor}, {key = value} */
static int safetensors_load(lua_State *L) {
  lampl_state *S = lampl_entered(L);
  const char *path = check_path(L, "safetensors.load");
  ampl_archive *a;
  lua_settop(L, 1);
  lampl_box *b = lampl_push_box(L, S, READER, release_archive);
  const ampl_status s = LAMPL_CALL(S, ampl_safetensors_load(S->ctx, path, &a));
  const int n = refused(L, S, "safetensors.load", s);
  if (n) return n;
  b->p = a;
  lua_createtable(L, 0, (int)a->n);
  for (int64_t i = 0; i < a->n; i++) {
    poll(L, S, i);
    push_moved(L, S, &a->tensors[i]);
    lua_setfield(L, -2, a->names[i]);
  }
  lua_createtable(L, 0, (int)a->nmeta);
  for (int64_t i = 0; i < a->nmeta; i++) {
    poll(L, S, i);
    lua_pushstring(L, a->values[i]);
    lua_setfield(L, -2, a->keys[i]);
  }
  lampl_box_release(b);
  return 2;
}

/* The entries of a table as arrays of names and of values, which stay alive whatever the collector's finalizers do
 * meanwhile: strings by a table of their own, tensors by a reference. */
typedef struct entries {
  ampl_tensor **tensors; /* kept of them: that many references */
  const char **names, **values;
  int n, kept;
} entries;

static int entries_gc(lua_State *L) {
  entries *e = luaL_testudata(L, 1, "ampl.entries");
  while (e && e->kept > 0) ampl_tensor_release(e->tensors[--e->kept]);
  return 0;
}

static entries *push_entries(lua_State *L, int n) {
  entries *e = lua_newuserdatauv(L, sizeof *e + 3 * (size_t)n * sizeof(void *), 1);
  void **room = (void **)(e + 1);
  *e = (entries){(ampl_tensor **)room, (const char **)(room + n), (const char **)(room + 2 * n), 0, 0};
  luaL_setmetatable(L, "ampl.entries");
  lua_createtable(L, 2 * n, 0);
  lua_setiuservalue(L, -2, 1);
  return e;
}

/* The string at -1, which the entries at `anchor` keep, without zero bytes; pops it. */
static const char *keep_string(lua_State *L, int anchor, const char *what, const char *name) {
  size_t n;
  const char *kind = kind_of(L, -1), *of = name ? push_escaped(L, name, strlen(name)) : "", *quote = name ? "\"" : "";
  if (name) lua_insert(L, -2);
  if (lua_type(L, -1) != LUA_TSTRING)
    lampl_error(L, AMPL_EARG, "safetensors.save", "%s%s%s must be %s, not a %s", what, of, quote,
                name ? "a string" : "strings", kind);
  const char *s = lua_tolstring(L, -1, &n);
  if (strlen(s) != n)
    lampl_error(L, AMPL_EVALUE, "safetensors.save", "%s%s%s: \"%s\" holds a zero byte", what, of, quote,
                push_escaped(L, s, n));
  lua_getiuservalue(L, anchor, 1);
  lua_insert(L, -2);
  lua_rawseti(L, -2, (lua_Integer)lua_rawlen(L, -2) + 1);
  lua_pop(L, 1);
  return s;
}

static void keep_tensor(lua_State *L, entries *e, const char *name) {
  const lampl_handle *h = lampl_test_handle(L, -1);
  const char *kind = kind_of(L, -1);
  if (!h || !h->x) push_escaped(L, name, strlen(name));
  if (!h) lampl_error(L, AMPL_EARG, "safetensors.save", "\"%s\" is no tensor but a %s", lua_tostring(L, -1), kind);
  if (!h->x) lampl_error(L, AMPL_EFREED, "safetensors.save", "\"%s\" was freed", lua_tostring(L, -1));
  ampl_tensor_retain(h->x);
  e->tensors[e->kept++] = h->x;
}

static int count(lua_State *L, int i) {
  int n = 0;
  if (!lua_istable(L, i)) return 0;
  for (lua_pushnil(L); lua_next(L, i); lua_pop(L, 1)) n++;
  return n;
}

/* The entries of the table at `i`, tensors or strings; pushed. */
static entries *take_entries(lua_State *L, int i, bool tensors) {
  const int n = count(L, i);
  entries *e = push_entries(L, n);
  const int anchor = lua_gettop(L);
  if (n == 0) return e;
  for (lua_pushnil(L); e->n < n && lua_next(L, i); lua_settop(L, anchor + 1)) {
    lua_pushvalue(L, -2);
    const char *name = keep_string(L, anchor, tensors ? "the names of tensors" : "the names of metadata", NULL);
    if (tensors)
      keep_tensor(L, e, name);
    else
      e->values[e->n] = keep_string(L, anchor, "metadata: the value of \"", name);
    e->names[e->n++] = name;
  }
  lua_settop(L, anchor);
  return e;
}

/* safetensors_save(path, tensors [, metadata]) -> true */
static int safetensors_save(lua_State *L) {
  lampl_state *S = lampl_entered(L);
  const char *path = check_path(L, "safetensors.save");
  lua_settop(L, 3);
  if (!lua_istable(L, 2))
    lampl_error(L, AMPL_EARG, "safetensors.save", "tensors must be a table {name = tensor}, not a %s", kind_of(L, 2));
  if (!lampl_is_plain(L, 2))
    lampl_error(L, AMPL_EARG, "safetensors.save",
                "tensors must be a plain table {name = tensor}, not an object; of a module, give module:state_dict()");
  if (!lua_isnil(L, 3) && !lua_istable(L, 3))
    lampl_error(L, AMPL_EARG, "safetensors.save", "metadata must be a table of strings, not a %s", kind_of(L, 3));
  entries *t = take_entries(L, 2, true), *meta = take_entries(L, 3, false);
  lampl_begin(S);
  const ampl_status s = lampl_end(
      S, ampl_safetensors_save(S->ctx, path, t->n, t->names, t->tensors, meta->n, meta->names, meta->values));
  while (t->kept > 0) ampl_tensor_release(t->tensors[--t->kept]);
  const int n = refused(L, S, "safetensors.save", s);
  if (n) return n;
  lua_pushboolean(L, 1);
  return 1;
}

/* ------------------------------------------------------------------------------------------------ data sets ------- */

static int load_one(lua_State *L, const char *op,
                    ampl_status (*load)(ampl_ctx *ctx, const char *path, ampl_tensor **out)) {
  lampl_state *S = lampl_entered(L);
  const char *path = check_path(L, op);
  lampl_handle *h = lampl_push_handle(L, S);
  const ampl_status s = LAMPL_CALL(S, load(S->ctx, path, &h->x));
  return s == AMPL_OK ? 1 : refused(L, S, op, s);
}

static ampl_status load_bytes(ampl_ctx *ctx, const char *path, ampl_tensor **out) {
  return ampl_text_load(ctx, path, false, out);
}

static ampl_status load_characters(ampl_ctx *ctx, const char *path, ampl_tensor **out) {
  return ampl_text_load(ctx, path, true, out);
}

/* idx_load(path), npy_load(path), bytes_load(path), characters_load(path) -> tensor */
static int idx_load(lua_State *L) { return load_one(L, "data.idx", ampl_idx_load); }
static int npy_load(lua_State *L) { return load_one(L, "data.npy", ampl_npy_load); }
static int bytes_load(lua_State *L) { return load_one(L, "data.text", load_bytes); }
static int characters_load(lua_State *L) { return load_one(L, "data.text", load_characters); }

/* The one character at `i`, 0 for nil. */
static char check_character(lua_State *L, int i, const char *name) {
  size_t n;
  if (lua_isnoneornil(L, i)) return 0;
  const char *s = lampl_check_string(L, i, "data.csv", name);
  lua_tolstring(L, i, &n);
  if (n != 1 || !*s)
    lampl_error(L, AMPL_EVALUE, "data.csv", "%s = \"%s\"; it must be one character", name, push_escaped(L, s, n));
  return *s;
}

/* The options of csv_load, which are checked by data/csv.lua but for their values. */
static ampl_csv_options check_csv_options(lua_State *L) {
  ampl_csv_options o = AMPL_CSV_OPTIONS_INIT;
  o.separator = check_character(L, 2, "separator");
  if (!lua_isnil(L, 3)) o.header = lua_toboolean(L, 3);
  o.skip = lampl_check_integer(L, 4, "data.csv", "skip");
  o.dtype = lampl_check_dtype(L, 5, "data.csv");
  o.comment = check_character(L, 6, "comment");
  if (lua_type(L, 7) == LUA_TSTRING)
    o.label_name = lua_tostring(L, 7);
  else if (!lua_isnil(L, 7))
    o.label = lampl_check_integer(L, 7, "data.csv", "label");
  if (o.label > 0 && o.label != AMPL_CSV_NO_LABEL) o.label--;
  else if (o.label == 0)
    lampl_error(L, AMPL_EINDEX, "data.csv", "label = 0; columns count from 1, or from -1 backwards");
  o.classes = !lua_isnil(L, 8);
  o.first_class = lua_isnil(L, 8) ? 0 : lampl_check_integer(L, 8, "data.csv", "base");
  return o;
}

/* csv_load(path, separator or nil, header or nil, skip, dtype, comment or nil, label or nil, base or nil) -> tensor,
 * labels or nil, names or nil */
static int csv_load(lua_State *L) {
  lampl_state *S = lampl_entered(L);
  const char *path = check_path(L, "data.csv");
  ampl_csv *c;
  lua_settop(L, 8);
  const ampl_csv_options o = check_csv_options(L);
  lampl_box *b = lampl_push_box(L, S, READER, release_csv);
  const ampl_status s = LAMPL_CALL(S, ampl_csv_load(S->ctx, path, &o, &c));
  const int n = refused(L, S, "data.csv", s);
  if (n) return n;
  b->p = c;
  push_moved(L, S, &c->values);
  if (c->labels)
    push_moved(L, S, &c->labels);
  else
    lua_pushnil(L);
  if (c->names) {
    lua_createtable(L, (int)c->n, 0);
    for (int64_t i = 0; i < c->n; i++) {
      poll(L, S, i);
      lua_pushstring(L, c->names[i]);
      lua_rawseti(L, -2, i + 1);
    }
  } else {
    lua_pushnil(L);
  }
  lampl_box_release(b);
  return 3;
}

void lampl_open_archive(lua_State *L) {
  static const luaL_Reg functions[] = {{"safetensors_load", safetensors_load},
                                       {"safetensors_save", safetensors_save},
                                       {"idx_load", idx_load},
                                       {"npy_load", npy_load},
                                       {"csv_load", csv_load},
                                       {"bytes_load", bytes_load},
                                       {"characters_load", characters_load},
                                       {"escape", escape},
                                       {NULL, NULL}};
  lampl_box_metatable(L, READER, NULL);
  luaL_newmetatable(L, "ampl.entries");
  lua_pushcfunction(L, entries_gc);
  lua_setfield(L, -2, "__gc");
  lampl_hide_metatable(L);
  lua_pop(L, 1);
  luaL_setfuncs(L, functions, 0);
}
