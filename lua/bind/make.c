/* make.c: tensors from Lua values, and back: tensor, from_bytes, totable, tobytes, item, to. */
#include "lampl.h"

#include <stdlib.h>
#include <string.h>

/* What a nested table holds: its shape, and what kinds of values. */
typedef struct nest {
  int      ndim;
  int64_t  shape[AMPL_RANK_MAX], n;
  bool     floats, integers, booleans;
} nest;

/* The options {dtype, device, requires_grad} at stack index t (0: none); others raise. */
typedef struct make_options { int dtype; const char *device; bool requires_grad; } make_options;

static make_options read_options(lua_State *L, int t, const char *op) {
  make_options o = {AMPL_DTYPE_NONE, NULL, false};
  if (lua_isnoneornil(L, t)) return o;
  if (!lua_istable(L, t)) lampl_error(L, AMPL_EARG, op, "the options must be a table, not a %s", luaL_typename(L, t));
  for (lua_pushnil(L); lua_next(L, t); lua_pop(L, 1)) {
    const char *name = lua_type(L, -2) == LUA_TSTRING ? lua_tostring(L, -2) : "?";
    if (strcmp(name, "dtype") == 0) o.dtype = lampl_check_dtype(L, -1, op);
    else if (strcmp(name, "device") == 0) {
      o.device = lua_tostring(L, -1);
      if (!o.device) lampl_error(L, AMPL_EARG, op, "device must be a name, not a %s", luaL_typename(L, -1));
    } else if (strcmp(name, "requires_grad") == 0) o.requires_grad = lua_toboolean(L, -1);
    else lampl_error(L, AMPL_EARG, op, "unknown option \"%s\"; known are dtype, device, requires_grad", name);
  }
  return o;
}

/* ------------------------------------------------------------------------------------------------ from Lua -------- */

/* Tables may hold one another many times over, so a small one can stand for more than memory takes. */
static void check_room(lua_State *L, int64_t n, bool overflow) {
  ampl_memory_info memory;
  ampl_memory(lampl_state_of(L)->ctx, &memory);
  if (overflow || (uint64_t)n > memory.limit / 8)
    lampl_error(L, AMPL_ENOMEM, "tensor", "the table holds more values than the memory limit of %.1f MB has room for",
                (double)memory.limit / 1e6);
}

static void measure(lua_State *L, nest *m) {
  bool overflow = false;
  int pushed = 0;
  m->ndim = 0;
  m->n = 1;
  lua_pushvalue(L, 1);
  while (lua_istable(L, -1)) {
    if (m->ndim == AMPL_RANK_MAX) lampl_error(L, AMPL_ESHAPE, "tensor", "more than %d dimensions", AMPL_RANK_MAX);
    m->shape[m->ndim] = (int64_t)lua_rawlen(L, -1);
    overflow |= __builtin_mul_overflow(m->n, m->shape[m->ndim++], &m->n);
    luaL_checkstack(L, 4, NULL);
    lua_rawgeti(L, -1, 1);
    pushed++;
  }
  lua_pop(L, pushed + 1);
  check_room(L, m->n, overflow);
}

/* Fills f (doubles) and i (integers) from the table on top of the stack; counts kinds. */
static int64_t fill(lua_State *L, nest *m, int d, double *f, int64_t *i, int64_t at) {
  const int64_t n = m->shape[d];
  if (!lua_istable(L, -1) || (int64_t)lua_rawlen(L, -1) != n)
    lampl_error(L, AMPL_ESHAPE, "tensor",
                "the table is ragged: at depth %d an entry has %d elements, the first one %lld", d + 1,
                lua_istable(L, -1) ? (int)lua_rawlen(L, -1) : 0, (long long)n);
  for (int64_t k = 1; k <= n; k++) {
    const int type = lua_rawgeti(L, -1, k);
    if (d + 1 < m->ndim) at = fill(L, m, d + 1, f, i, at);
    else if (type == LUA_TNUMBER) {
      if (lua_isinteger(L, -1)) i[at] = lua_tointeger(L, -1), f[at] = (double)i[at], m->integers = true;
      else f[at] = lua_tonumber(L, -1), i[at] = 0, m->floats = true;
      at++;
    } else if (type == LUA_TBOOLEAN) {
      i[at] = lua_toboolean(L, -1);
      f[at] = (double)i[at];
      at++;
      m->booleans = true;
    } else
      lampl_error(L, AMPL_EARG, "tensor", "element %lld is a %s, not a number", (long long)at + 1,
                  lua_typename(L, type));
    lua_pop(L, 1);
  }
  return at;
}

/* EVALUE for the first value that integer dtype t cannot hold. */
static void check_range(lua_State *L, const nest *m, const double *f, const int64_t *i, int t) {
  const double least = t == AMPL_U8 ? 0 : t == AMPL_I32 ? -0x1p31 : -0x1p63;
  const double most = t == AMPL_U8 ? 255 : t == AMPL_I32 ? 0x1p31 - 1 : 0x1p63;
  if (t != AMPL_U8 && t != AMPL_I32 && t != AMPL_I64) return;
  for (int64_t k = 0; k < m->n; k++) {
    const bool fits = m->floats ? f[k] >= least && f[k] <= most : t == AMPL_I64 || (i[k] >= least && i[k] <= most);
    if (!fits)
      lampl_error(L, AMPL_EVALUE, "tensor", "element %lld is %.14g, which %s does not hold", (long long)k + 1, f[k],
                  ampl_dtype_name((ampl_dtype)t));
  }
}

/* A list with options in it is two things: f(list, options). */
static void check_plain_list(lua_State *L) {
  for (lua_pushnil(L); lua_next(L, 1); lua_pop(L, 1))
    if (lua_type(L, -2) == LUA_TSTRING)
      lampl_error(L, AMPL_EARG, "tensor", "a table holds a list and options: give two, tensor({...}, {%s = ...})",
                  lua_tostring(L, -2));
}

/* The values as the widest dtype that holds them, then cast once. */
static ampl_status build(lampl_state *S, const nest *m, const double *f, const int64_t *i, const make_options *o,
                         ampl_tensor **out) {
  ampl_tensor *wide, *moved;
  const bool whole = !m->floats && (m->integers || m->booleans);
  const int natural = m->floats || !whole ? AMPL_F32 : m->integers ? AMPL_I64 : AMPL_BOOL;
  const int dtype = o->dtype != AMPL_DTYPE_NONE ? o->dtype : natural;
  ampl_status s = ampl_from_bytes(S->ctx, whole ? AMPL_I64 : AMPL_F64, m->ndim, m->shape,
                                  whole ? (const void *)i : (const void *)f, (size_t)m->n * 8, &wide);
  if (s != AMPL_OK) return s;
  const ampl_value v[] = {{.t = wide}, {.i = dtype}};
  if (dtype == (whole ? AMPL_I64 : AMPL_F64)) *out = wide;
  else {
    s = ampl_run_op(S->ctx, S->to, v, 2, out, 1);
    ampl_tensor_release(wide);
  }
  if (s == AMPL_OK && o->device) {
    s = ampl_to_device(*out, o->device, &moved);
    ampl_tensor_release(*out);
    *out = s == AMPL_OK ? moved : NULL;
  }
  if (s == AMPL_OK && o->requires_grad) s = ampl_set_requires_grad(*out, true);
  return s;
}

static int tensor(lua_State *L) {
  lampl_state *S = lampl_state_of(L);
  nest m = {.n = 1};
  lua_settop(L, 2);
  const make_options o = read_options(L, 2, "tensor");
  if (lampl_test_handle(L, 1))
    return lampl_error(L, AMPL_EARG, "tensor", "this is a tensor already; use x:clone() or x:to(dtype)");
  const int type = lua_type(L, 1);
  if (type != LUA_TTABLE && type != LUA_TNUMBER && type != LUA_TBOOLEAN)
    return lampl_error(L, AMPL_EARG, "tensor", "a table of numbers or a number is needed, not a %s",
                       luaL_typename(L, 1));
  if (type == LUA_TTABLE) check_plain_list(L);
  if (type == LUA_TTABLE) measure(L, &m);
  lampl_enter(L, S);
  lampl_handle *h = lampl_push_handle(L, S);
  double *f = lua_newuserdatauv(L, (size_t)(m.n ? m.n : 1) * sizeof *f, 0);
  int64_t *i = lua_newuserdatauv(L, (size_t)(m.n ? m.n : 1) * sizeof *i, 0);
  if (type == LUA_TTABLE) {
    lua_pushvalue(L, 1);
    fill(L, &m, 0, f, i, 0);
    lua_pop(L, 1);
  } else {
    m.integers = lua_isinteger(L, 1);
    m.booleans = type == LUA_TBOOLEAN;
    m.floats = !m.integers && !m.booleans;
    *i = m.booleans ? lua_toboolean(L, 1) : m.integers ? lua_tointeger(L, 1) : 0;
    *f = m.floats ? lua_tonumber(L, 1) : (double)*i;
  }
  check_range(L, &m, f, i, o.dtype);
  lampl_check(L, S, build(S, &m, f, i, &o, &h->x));
  lampl_leave(S);
  lua_pop(L, 2);
  return 1;
}

static int from_bytes(lua_State *L) {
  lampl_state *S = lampl_state_of(L);
  size_t bytes;
  int64_t shape[AMPL_RANK_MAX];
  lua_settop(L, 3);
  if (lua_type(L, 1) != LUA_TSTRING)
    return lampl_error(L, AMPL_EARG, "from_bytes", "a string is needed, not a %s", luaL_typename(L, 1));
  const char *data = lua_tolstring(L, 1, &bytes);
  if (!lua_istable(L, 2))
    return lampl_error(L, AMPL_EARG, "from_bytes", "the shape must be a list, not a %s", luaL_typename(L, 2));
  const make_options o = read_options(L, 3, "from_bytes");
  const int ndim = (int)lua_rawlen(L, 2);
  if (ndim > AMPL_RANK_MAX)
    return lampl_error(L, AMPL_ESHAPE, "from_bytes", "%d dimensions; a tensor has at most %d", ndim, AMPL_RANK_MAX);
  for (int d = 0; d < ndim; d++) {
    lua_rawgeti(L, 2, d + 1);
    if (!lampl_to_integer(L, -1, &shape[d]))
      return lampl_error(L, AMPL_EARG, "from_bytes", "size %d of the shape is no integer", d + 1);
    lua_pop(L, 1);
  }
  lampl_enter(L, S);
  lampl_handle *h = lampl_push_handle(L, S);
  ampl_tensor *x;
  ampl_status s = ampl_from_bytes(S->ctx, o.dtype == AMPL_DTYPE_NONE ? AMPL_F32 : (ampl_dtype)o.dtype, ndim, shape,
                                  data, bytes, &h->x);
  if (s == AMPL_OK && o.device && (s = ampl_to_device(h->x, o.device, &x)) == AMPL_OK) lampl_handle_free(h), h->x = x;
  if (s == AMPL_OK && o.requires_grad) s = ampl_set_requires_grad(h->x, true);
  lampl_check(L, S, s);
  lampl_leave(S);
  return 1;
}

/* ------------------------------------------------------------------------------------------------ to Lua ---------- */

/* Row-major values of x as doubles or integers, on the stack as a userdata. */
static ampl_status read_values(lua_State *L, lampl_state *S, ampl_tensor *x, void *to_buffer, bool *floats) {
  ampl_tensor *wide;
  (void)L;
  *floats = ampl_dtype_is_float(ampl_tensor_dtype(x));
  const ampl_dtype want = *floats ? AMPL_F64 : AMPL_I64;
  if (ampl_tensor_dtype(x) == want) return ampl_to_bytes(x, to_buffer, (size_t)ampl_numel(x) * 8);
  ampl_tensor *plain;
  ampl_status s = ampl_detach(x, &plain);
  if (s != AMPL_OK) return s;
  const ampl_value v[] = {{.t = plain}, {.i = want}};
  s = ampl_run_op(S->ctx, S->to, v, 2, &wide, 1);
  ampl_tensor_release(plain);
  if (s == AMPL_OK) s = ampl_to_bytes(wide, to_buffer, (size_t)ampl_numel(x) * 8);
  if (s == AMPL_OK) ampl_tensor_release(wide);
  return s;
}

static void push_value(lua_State *L, const ampl_tensor *x, const void *buffer, int64_t at, bool floats) {
  if (floats) lua_pushnumber(L, ((const double *)buffer)[at]);
  else if (ampl_tensor_dtype(x) == AMPL_BOOL) lua_pushboolean(L, ((const int64_t *)buffer)[at] != 0);
  else lua_pushinteger(L, ((const int64_t *)buffer)[at]);
}

static int64_t push_nested(lua_State *L, const ampl_tensor *x, const void *buffer, int d, int64_t at, bool floats) {
  const int64_t n = ampl_shape(x)[d];
  luaL_checkstack(L, 3, NULL);
  lua_createtable(L, (int)(n < (1 << 26) ? n : 0), 0);
  for (int64_t k = 1; k <= n; k++) {
    if (d + 1 < ampl_ndim(x)) at = push_nested(L, x, buffer, d + 1, at, floats);
    else push_value(L, x, buffer, at++, floats);
    lua_rawseti(L, -2, k);
  }
  return at;
}

static int totable(lua_State *L) {
  lampl_state *S = lampl_state_of(L);
  ampl_tensor *x = lampl_check_tensor(L, 1);
  bool floats;
  lampl_enter(L, S);
  void *buffer = lua_newuserdatauv(L, (size_t)(ampl_numel(x) ? ampl_numel(x) : 1) * 8, 0);
  lampl_check(L, S, read_values(L, S, x, buffer, &floats));
  lampl_leave(S);
  if (ampl_ndim(x) == 0) push_value(L, x, buffer, 0, floats);
  else push_nested(L, x, buffer, 0, 0, floats);
  return 1;
}

static int item(lua_State *L) {
  lampl_state *S = lampl_state_of(L);
  ampl_tensor *x = lampl_check_tensor(L, 1);
  double f;
  int64_t i;
  lampl_enter(L, S);
  lampl_check(L, S, ampl_item_any(x, &f, &i));
  lampl_leave(S);
  if (ampl_dtype_is_float(ampl_tensor_dtype(x))) lua_pushnumber(L, f);
  else if (ampl_tensor_dtype(x) == AMPL_BOOL) lua_pushboolean(L, i != 0);
  else lua_pushinteger(L, i);
  return 1;
}

static int tobytes(lua_State *L) {
  lampl_state *S = lampl_state_of(L);
  ampl_tensor *x = lampl_check_tensor(L, 1);
  const size_t bytes = (size_t)ampl_numel(x) * ampl_dtype_size(ampl_tensor_dtype(x));
  luaL_Buffer b;
  char *to = luaL_buffinitsize(L, &b, bytes);
  lampl_check(L, S, ampl_to_bytes(x, to, bytes));
  luaL_pushresultsize(&b, bytes);
  return 1;
}

/* ------------------------------------------------------------------------------------------------ to -------------- */

/* x:to(dtype), x:to(device), x:to{dtype =, device =}: x itself where nothing changes. */
static ampl_status move(lampl_state *S, ampl_tensor *x, int dtype, const char *device, ampl_tensor **out) {
  ampl_tensor *cast = NULL;
  if (dtype != AMPL_DTYPE_NONE && (ampl_dtype)dtype != ampl_tensor_dtype(x)) {
    const ampl_value v[] = {{.t = x}, {.i = dtype}};
    const ampl_status s = ampl_run_op(S->ctx, S->to, v, 2, &cast, 1);
    if (s != AMPL_OK) return s;
    x = cast;
  }
  if (!device) {
    if (!cast) ampl_tensor_retain(x);
    *out = x;
    return AMPL_OK;
  }
  const ampl_status s = ampl_to_device(x, device, out);
  ampl_tensor_release(cast);
  return s;
}

static int to_(lua_State *L) {
  lampl_state *S = lampl_state_of(L);
  ampl_tensor *x = lampl_check_tensor(L, 1);
  int dtype = AMPL_DTYPE_NONE;
  const char *device = NULL;
  lua_settop(L, 3);
  for (int i = 2; i <= 3; i++) {
    if (lua_istable(L, i)) {
      const make_options o = read_options(L, i, "to");
      dtype = o.dtype != AMPL_DTYPE_NONE ? o.dtype : dtype;
      device = o.device ? o.device : device;
    } else if (lua_type(L, i) == LUA_TSTRING) {
      const int t = ampl_dtype_from_name(lua_tostring(L, i));
      if (t != AMPL_DTYPE_NONE) dtype = t;
      else device = lua_tostring(L, i);
    } else if (!lua_isnil(L, i))
      return lampl_error(L, AMPL_EARG, "to", "a dtype, a device or options are needed, not a %s", luaL_typename(L, i));
  }
  lampl_enter(L, S);
  lampl_handle *h = lampl_push_handle(L, S);
  lampl_check(L, S, move(S, x, dtype, device, &h->x));
  lampl_leave(S);
  return 1;
}

/* x:half() and its kind; the upvalue is the dtype or the device. */
static int to_fixed(lua_State *L) {
  lua_settop(L, 1);
  lua_pushvalue(L, lua_upvalueindex(1));
  return to_(L);
}

void lampl_open_make(lua_State *L) {
  static const luaL_Reg functions[] = {{"tensor", tensor}, {"from_bytes", from_bytes}, {NULL, NULL}};
  static const luaL_Reg methods[] = {
      {"totable", totable}, {"item", item}, {"tobytes", tobytes}, {"to", to_}, {NULL, NULL}};
  static const char *const fixed[][2] = {{"half", "f16"},   {"float", "f32"}, {"bfloat16", "bf16"},
                                         {"double", "f64"}, {"cpu", "cpu"},   {"cuda", "cuda"}};
  luaL_setfuncs(L, functions, 0);
  lua_getfield(L, -1, "methods");
  luaL_setfuncs(L, methods, 0);
  for (size_t i = 0; i < sizeof fixed / sizeof *fixed; i++) {
    lua_pushstring(L, fixed[i][1]);
    lua_pushcclosure(L, to_fixed, 1);
    lua_setfield(L, -2, fixed[i][0]);
  }
  lua_pop(L, 1);
}
