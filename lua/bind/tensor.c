/* tensor.c: tensor handles: fields, methods that are no ops, metamethods. */
#include "lampl.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char methods_key = 0, metatable_key = 0;

/* ------------------------------------------------------------------------------------------------ handles --------- */

/* The registry is asked by address: a name would be hashed and compared for every operand. */
void lampl_set_handle_metatable(lua_State *L) {
  lua_rawgetp(L, LUA_REGISTRYINDEX, &metatable_key);
  lua_setmetatable(L, -2);
}

void lampl_hide_metatable(lua_State *L) {
  lua_getfield(L, -1, "__name");
  lua_setfield(L, -2, "__metatable");
}

const char lampl_mark_of_handles = 0;

ampl_tensor *lampl_check_tensor(lua_State *L, int i) {
  const lampl_handle *h = lampl_test_handle(L, i);
  char text[LAMPL_SHOWN];
  if (!h && i == 1)
    lampl_error(L, AMPL_EARG, "", "a tensor is needed first, not %s; a method is called with a colon: x:name()",
                lampl_shown(L, i, text, sizeof text));
  if (!h)
    lampl_error(L, AMPL_EARG, "", "argument %d must be a tensor, not %s", i, lampl_shown(L, i, text, sizeof text));
  if (!h->x) lampl_error(L, AMPL_EFREED, "", "argument %d was freed", i);
  return h->x;
}

void lampl_push_tensor(lua_State *L, ampl_tensor *x) {
  if (x) lampl_push_handle(L, lampl_entered(L))->x = x;
  else lua_pushnil(L);
}

void lampl_push_lent(lua_State *L, ampl_tensor *x) {
  if (!x) {
    lua_pushnil(L);
    return;
  }
  lampl_handle *h = lampl_push_handle(L, lampl_entered(L));
  ampl_tensor_retain(x);
  h->x = x;
}

/* ------------------------------------------------------------------------------------------------ lists ----------- */

static void release_tensors(void *p) {
  lampl_tensors *t = p;
  for (int i = 0; i < t->n; i++) ampl_tensor_release(t->v[i]);
  free(t);
}

static int check_length(lua_State *L, int i, const char *op, bool holes) {
  int64_t last;
  const int64_t n = lampl_list_length(L, i, &last);
  if (last > n && !holes)
    lampl_error(L, AMPL_EARG, op, "entry %lld of the list is missing: it has a hole there", (long long)n + 1);
  if (last > LAMPL_LIST_MAX) lampl_error(L, AMPL_EARG, op, "a list has more than %d entries", LAMPL_LIST_MAX);
  return (int)last;
}

lampl_tensors *lampl_check_tensors(lua_State *L, int i, const char *op, bool holes) {
  const lampl_handle *one = lampl_test_handle(L, i);
  char text[LAMPL_SHOWN];
  if (!one && !lua_istable(L, i))
    lampl_error(L, AMPL_EARG, op, "a tensor or a list of tensors is needed, not %s",
                lampl_shown(L, i, text, sizeof text));
  const int n = one ? 1 : check_length(L, i, op, holes);
  lampl_box *box = lampl_push_box(L, lampl_state_of(L), "ampl.Tensors", release_tensors);
  lampl_tensors *t = box->p = malloc(sizeof *t + (size_t)n * sizeof *t->v);
  if (!t) lampl_error(L, AMPL_ENOMEM, op, "out of memory");
  t->n = 0;
  for (int k = 0; k < n; k++) {
    const lampl_handle *h = one;
    int type = LUA_TUSERDATA;
    if (!one) type = lua_rawgeti(L, i, k + 1), h = lampl_test_handle(L, -1), lua_pop(L, 1);
    if (!h && (type != LUA_TNIL || !holes))
      lampl_error(L, AMPL_EARG, op, "entry %d of the list is %s", k + 1, type == LUA_TNIL ? "missing" : "no tensor");
    if (h && !h->x) lampl_error(L, AMPL_EFREED, op, "entry %d of the list was freed", k + 1);
    if (h) ampl_tensor_retain(h->x);
    t->v[t->n++] = h ? h->x : NULL;
  }
  return t;
}

/* ------------------------------------------------------------------------------------------------ dtypes ---------- */

/* The dtype that PyTorch, numpy or C call `name`, or NULL. */
static const char *dtype_meant(const char *name) {
  static const char *const known[][2] = {
      {"float32", "f32"},  {"float", "f32"},     {"single", "f32"}, {"float16", "f16"}, {"half", "f16"},
      {"bfloat16", "bf16"}, {"float64", "f64"},  {"double", "f64"}, {"int64", "i64"},   {"long", "i64"},
      {"int", "i64"},      {"integer", "i64"},   {"number", "f32"}, {"int32", "i32"},   {"uint8", "u8"},
      {"byte", "u8"},      {"boolean", "bool"}};
  if (strncmp(name, "torch.", 6) == 0) name += 6;
  for (size_t i = 0; i < sizeof known / sizeof *known; i++)
    if (strcmp(known[i][0], name) == 0) return known[i][1];
  return ampl_dtype_from_name(name) == AMPL_DTYPE_NONE ? NULL : name;
}

size_t lampl_no_dtype(lua_State *L, int i, char *text, size_t n) {
  char shown[LAMPL_SHOWN];
  const char *meant = lua_type(L, i) == LUA_TSTRING ? dtype_meant(lua_tostring(L, i)) : NULL;
  lampl_shown(L, i, shown, sizeof shown);
  if (meant) return (size_t)snprintf(text, n, "there is no dtype %s; did you mean \"%s\"?", shown, meant);
  return (size_t)snprintf(text, n, "there is no dtype %s; there is f32 f16 bf16 f64 i64 i32 u8 bool", shown);
}

ampl_dtype lampl_check_dtype(lua_State *L, int i, const char *op) {
  const int t = lua_type(L, i) == LUA_TSTRING ? ampl_dtype_from_name(lua_tostring(L, i)) : AMPL_DTYPE_NONE;
  char text[256];
  if (t == AMPL_DTYPE_NONE) {
    lampl_no_dtype(L, i, text, sizeof text);
    lampl_error(L, AMPL_EDTYPE, op, "%s", text);
  }
  return (ampl_dtype)t;
}

/* ------------------------------------------------------------------------------------------------ fields ---------- */

enum { SHAPE, DTYPE_, DEVICE_, GRAD, REQUIRES_GRAD, NDIM, IS_LEAF, VERSION };
static const char *const fields[] = {"shape", "dtype",   "device",   "grad", "requires_grad",
                                     "ndim",  "is_leaf", "_version", NULL};

static int push_field(lua_State *L, ampl_tensor *x, int field) {
  switch (field) {
  case SHAPE: lampl_push_sizes(L, ampl_ndim(x), ampl_shape(x)); break;
  case DTYPE_: lua_pushstring(L, ampl_dtype_name(ampl_tensor_dtype(x))); break;
  case DEVICE_: lua_pushstring(L, ampl_tensor_device(x)); break;
  case GRAD: lampl_push_lent(L, ampl_grad_of(x)); break;
  case REQUIRES_GRAD: lua_pushboolean(L, ampl_requires_grad(x)); break;
  case NDIM: lua_pushinteger(L, ampl_ndim(x)); break;
  case IS_LEAF: lua_pushboolean(L, ampl_is_leaf(x)); break;
  case VERSION: lua_pushinteger(L, ampl_tensor_version(x)); break;
  default: lua_pushnil(L);
  }
  return 1;
}

/* x[key] and x[key] = v beyond plain numbers are written in Lua: ampl.index. */
static int call_index(lua_State *L, const char *name) {
  const int n = lua_gettop(L);
  lampl_require(L, "ampl.index");
  lua_getfield(L, -1, name);
  lua_insert(L, 1);
  lua_settop(L, n + 1);
  lua_call(L, n, LUA_MULTRET);
  return lua_gettop(L);
}

static int select_row(lua_State *L, lampl_state *S, const lampl_handle *h, int64_t i) {
  if (!h->x) return lampl_error(L, AMPL_EFREED, "index", "the tensor was freed");
  if (ampl_ndim(h->x) == 0) return lampl_error(L, AMPL_EINDEX, "index", "a scalar has no positions");
  if (i == 0)
    return lampl_error(L, AMPL_EINDEX, "index", "position 0; positions count from 1, or from the end with -1");
  if (i == ampl_shape(h->x)[0] + 1)
    return lampl_error(L, AMPL_EINDEX, "index",
                       "position %lld of %lld; `for i, row in pairs(x)` visits the rows, #x is their number (ipairs "
                       "runs past the end)",
                       (long long)i, (long long)i - 1);
  lampl_enter(L, S);
  lampl_handle *row = lampl_push_handle(L, S);
  const ampl_value v[] = {{.t = h->x}, {.i = 0}, {.i = i > 0 ? i - 1 : i}};
  lampl_check(L, S, LAMPL_CALL(S, ampl_run_op(S->ctx, S->select, v, 3, &row->x, 1)));
  return 1;
}

/* Upvalues: state, methods, field numbers. */
static int index_key(lua_State *L) {
  lampl_state *S = lua_touserdata(L, lua_upvalueindex(1));
  int64_t i;
  if (lua_type(L, 2) == LUA_TSTRING) {
    lua_pushvalue(L, 2);
    if (lua_rawget(L, lua_upvalueindex(2)) != LUA_TNIL) return 1;
    lua_pushvalue(L, 2);
    if (lua_rawget(L, lua_upvalueindex(3)) == LUA_TNIL) return 1;
    const lampl_handle *h = lampl_test_handle(L, 1);
    if (!h) return 0;
    if (!h->x) return lampl_error(L, AMPL_EFREED, lua_tostring(L, 2), "the tensor was freed");
    return push_field(L, h->x, (int)lua_tointeger(L, -1));
  }
  lampl_check_tensor(L, 1);
  if (lampl_to_integer(L, 2, &i)) return select_row(L, S, lua_touserdata(L, 1), i);
  return call_index(L, "index");
}

static int new_index(lua_State *L) {
  lampl_state *S = lua_touserdata(L, lua_upvalueindex(1));
  ampl_tensor *x = lampl_check_tensor(L, 1);
  if (lua_type(L, 2) != LUA_TSTRING) return call_index(L, "newindex"), 0;
  const char *name = lua_tostring(L, 2);
  lampl_enter(L, S);
  if (strcmp(name, "requires_grad") == 0) {
    const bool on = lampl_check_boolean(L, 3, "", name, -1);
    lampl_check(L, S, LAMPL_CALL(S, ampl_set_requires_grad(x, on)));
    return 0;
  }
  if (strcmp(name, "grad") == 0) {
    char text[LAMPL_SHOWN];
    const lampl_handle *g = lampl_test_handle(L, 3);
    if (!g && !lua_isnil(L, 3))
      return lampl_error(L, AMPL_EARG, "grad", "must be a tensor or nil, not %s", lampl_shown(L, 3, text, sizeof text));
    if (g && !g->x) return lampl_error(L, AMPL_EFREED, "grad", "the gradient was freed");
    lampl_check(L, S, LAMPL_CALL(S, ampl_set_grad(x, g ? g->x : NULL)));
    return 0;
  }
  return lampl_error(L, AMPL_EARG, "", "a tensor has no field \"%.60s\" to write; there are grad and requires_grad",
                     name);
}

/* ------------------------------------------------------------------------------------------------ metamethods ----- */

bool lampl_finalising(lua_State *L) {
  lua_Debug ar;
  return lua_getstack(L, 0, &ar) && lua_getinfo(L, "n", &ar) && strcmp(ar.namewhat, "metamethod") == 0 &&
         ar.name && strcmp(ar.name, "__gc") == 0;
}

/* Upvalue: the state.  Called by hand during a call, by a callback, it may only do what x:free() does; what the
 * collector finalises is nobody's operand. */
static int gc(lua_State *L) {
  lampl_state *S = lua_touserdata(L, lua_upvalueindex(1));
  lampl_handle *h = lampl_test_handle(L, 1);
  if (!h || !h->scope) return 0;
  if (S->running && !lampl_finalising(L)) {
    lampl_handle_free(S, h);
    return 0;
  }
  ampl_tensor *x = h->scope == &S->late ? h->u.late : h->x;
  h->x = NULL;
  lampl_scope_move(h, NULL);
  ampl_tensor_release(x);
  return 0;
}

/* pairs(x): its rows. */
static int next_row(lua_State *L) {
  const ampl_tensor *x = lampl_check_tensor(L, 1);
  int64_t i;
  if (!lampl_to_integer(L, 2, &i) || i < 0) return lampl_wrong(L, 2, "pairs", "the position", "an integer from 0 on");
  if (i >= ampl_shape(x)[0]) return 0;
  lua_pushinteger(L, i + 1);
  lua_pushinteger(L, i + 1);
  lua_gettable(L, 1);
  return 2;
}

static int rows(lua_State *L) {
  const ampl_tensor *x = lampl_check_tensor(L, 1);
  if (ampl_ndim(x) == 0) return lampl_error(L, AMPL_ESHAPE, "pairs", "a scalar has no rows");
  lua_pushcfunction(L, next_row);
  lua_pushvalue(L, 1);
  lua_pushinteger(L, 0);
  return 3;
}

static int len(lua_State *L) {
  const ampl_tensor *x = lampl_check_tensor(L, 1);
  if (ampl_ndim(x) == 0) return lampl_error(L, AMPL_ESHAPE, "#", "a scalar has no length");
  lua_pushinteger(L, ampl_shape(x)[0]);
  return 1;
}

static int eq(lua_State *L) {
  const lampl_handle *a = lampl_test_handle(L, 1), *b = lampl_test_handle(L, 2);
  lua_pushboolean(L, a && b && a->x && a->x == b->x);
  return 1;
}

static int to_string(lua_State *L) {
  const lampl_handle *h = lampl_test_handle(L, 1);
  if (!h || !h->x) {
    lua_pushliteral(L, "tensor (freed)");
    return 1;
  }
  lampl_require(L, "ampl.print");
  lua_pushvalue(L, 1);
  lua_call(L, 1, 1);
  return 1;
}

/* ------------------------------------------------------------------------------------------------ methods --------- */

static int size(lua_State *L) {
  const ampl_tensor *x = lampl_check_tensor(L, 1);
  int64_t d;
  if (lua_isnoneornil(L, 2)) {
    lampl_push_sizes(L, ampl_ndim(x), ampl_shape(x));
    return 1;
  }
  if (!lampl_to_integer(L, 2, &d)) return lampl_wrong(L, 2, "size", "the dimension", "an integer");
  const int64_t k = d < 0 ? d + ampl_ndim(x) : d - 1;
  if (d == 0 || k < 0 || k >= ampl_ndim(x))
    return lampl_error(L, AMPL_EINDEX, "size", "dimension %lld is out of range for %d dimensions, which count from 1",
                       (long long)d, ampl_ndim(x));
  lua_pushinteger(L, ampl_shape(x)[k]);
  return 1;
}

static int stride(lua_State *L) {
  const ampl_tensor *x = lampl_check_tensor(L, 1);
  lampl_push_sizes(L, ampl_ndim(x), ampl_strides(x));
  return 1;
}

static int dim(lua_State *L) { return lua_pushinteger(L, ampl_ndim(lampl_check_tensor(L, 1))), 1; }
static int numel(lua_State *L) { return lua_pushinteger(L, ampl_numel(lampl_check_tensor(L, 1))), 1; }
static int is_contiguous(lua_State *L) { return lua_pushboolean(L, ampl_is_contiguous(lampl_check_tensor(L, 1))), 1; }
static int data_ptr(lua_State *L) {
  return lua_pushinteger(L, (lua_Integer)(intptr_t)ampl_data(lampl_check_tensor(L, 1))), 1;
}

static int detach(lua_State *L) {
  lampl_state *S = lampl_entered(L);
  ampl_tensor *x = lampl_check_tensor(L, 1);
  lampl_handle *h = lampl_push_handle(L, S);
  lampl_check(L, S, LAMPL_CALL(S, ampl_detach(x, &h->x)));
  return 1;
}

static int requires_grad_(lua_State *L) {
  lampl_state *S = lampl_entered(L);
  ampl_tensor *x = lampl_check_tensor(L, 1);
  const bool on = lampl_check_boolean(L, 2, "requires_grad_", "requires_grad", true);
  lampl_check(L, S, LAMPL_CALL(S, ampl_set_requires_grad(x, on)));
  lua_settop(L, 1);
  return 1;
}

static int free_(lua_State *L) {
  lampl_handle *h = lampl_test_handle(L, 1);
  if (!h) lampl_check_tensor(L, 1);
  else lampl_handle_free(lampl_state_of(L), h);
  return 0;
}

static int is_tensor(lua_State *L) {
  lua_pushboolean(L, lampl_test_handle(L, 1) != NULL);
  return 1;
}

/* register_method(name, fn): a method written in Lua. */
static int register_method(lua_State *L) {
  lampl_check_string(L, 1, "register_method", "the name");
  if (!lua_isfunction(L, 2)) return lampl_wrong(L, 2, "register_method", "the method", "a function");
  lua_rawgetp(L, LUA_REGISTRYINDEX, &methods_key);
  lua_pushvalue(L, 1);
  lua_pushvalue(L, 2);
  lua_rawset(L, -3);
  return 0;
}

void lampl_open_tensor(lua_State *L) {
  static const luaL_Reg methods[] = {{"size", size},
                                     {"stride", stride},
                                     {"dim", dim},
                                     {"numel", numel},
                                     {"is_contiguous", is_contiguous},
                                     {"data_ptr", data_ptr},
                                     {"detach", detach},
                                     {"requires_grad_", requires_grad_},
                                     {"free", free_},
                                     {NULL, NULL}};
  static const luaL_Reg meta[] = {
      {"__len", len}, {"__eq", eq}, {"__tostring", to_string}, {"__pairs", rows}, {NULL, NULL}};
  lampl_state *S = lampl_state_of(L);
  lampl_box_metatable(L, "ampl.Tensors", NULL);
  luaL_newmetatable(L, "ampl.Tensor");
  lua_pushvalue(L, -1);
  lua_rawsetp(L, LUA_REGISTRYINDEX, &metatable_key);
  luaL_setfuncs(L, meta, 0);
  lua_pushlightuserdata(L, S);
  lua_pushcclosure(L, gc, 1);
  lua_setfield(L, -2, "__gc");
  lampl_hide_metatable(L);
  luaL_newlib(L, methods);
  lua_pushvalue(L, -1);
  lua_rawsetp(L, LUA_REGISTRYINDEX, &methods_key);
  lua_pushvalue(L, -1);
  lua_setfield(L, -4, "methods");
  lua_pushlightuserdata(L, S);
  lua_insert(L, -2);
  lua_newtable(L);
  for (int i = 0; fields[i]; i++) lua_pushinteger(L, i), lua_setfield(L, -2, fields[i]);
  lua_pushcclosure(L, index_key, 3);
  lua_setfield(L, -2, "__index");
  lua_pushlightuserdata(L, S);
  lua_pushcclosure(L, new_index, 1);
  lua_setfield(L, -2, "__newindex");
  lua_pop(L, 1);
  lua_pushcfunction(L, is_tensor);
  lua_setfield(L, -2, "is_tensor");
  lua_pushcfunction(L, register_method);
  lua_setfield(L, -2, "register_method");
}
