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
  if (!lua_istable(L, t)) lampl_wrong(L, t, op, "the options", "a table");
  for (lua_pushnil(L); lua_next(L, t); lua_pop(L, 1)) {
    const char *name = lua_type(L, -2) == LUA_TSTRING ? lua_tostring(L, -2) : "?";
    if (strcmp(name, "dtype") == 0) o.dtype = lampl_check_dtype(L, -1, op);
    else if (strcmp(name, "device") == 0) o.device = lampl_check_string(L, -1, op, name);
    else if (strcmp(name, "requires_grad") == 0) o.requires_grad = lampl_check_boolean(L, -1, op, name, -1);
    else lampl_error(L, AMPL_EARG, op, "unknown option \"%.60s\"; known are dtype, device, requires_grad", name);
  }
  if (o.device) lua_getfield(L, t, "device");   /* stays on the stack: the table may lose it */
  return o;
}

/* ------------------------------------------------------------------------------------------------ buffers --------- */

enum { BREATH = 1 << 12 };      /* elements between two looks at the interruption */

static void check_interrupt(lua_State *L, lampl_state *S, const char *op) {
  if (!ampl_interrupted(S->ctx)) return;
  if (S->interrupt_once) ampl_interrupt_clear(S->ctx);
  lampl_error(L, AMPL_EINTR, op, "interrupted");
}

/* n values of 8 bytes, in a box that is pushed. */
static void *push_buffer(lua_State *L, lampl_state *S, const char *op, int64_t n) {
  ampl_memory_info m;
  ampl_memory(S->ctx, &m);
  lampl_box *b = lampl_push_box(L, S, "ampl.Buffer", free);
  if ((uint64_t)n <= m.limit / 8) b->p = malloc((size_t)(n ? n : 1) * 8);
  if (!b->p) lampl_error(L, AMPL_ENOMEM, op, "out of memory: %lld elements", (long long)n);
  return b->p;
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
    lua_rawgeti(L, -1, 1);
    pushed++;
  }
  lua_pop(L, pushed + 1);
  check_room(L, m->n, overflow);
}

/* What is filled: doubles f, integers i. */
typedef struct filling { lampl_state *S; nest *m; double *f; int64_t *i; } filling;

static int64_t fill_one(lua_State *L, filling *t, int64_t at, int type) {
  char text[LAMPL_SHOWN];
  if (type == LUA_TNUMBER) {
    if (lua_isinteger(L, -1)) t->i[at] = lua_tointeger(L, -1), t->f[at] = (double)t->i[at], t->m->integers = true;
    else t->f[at] = lua_tonumber(L, -1), t->i[at] = 0, t->m->floats = true;
  } else if (type == LUA_TBOOLEAN) {
    t->i[at] = lua_toboolean(L, -1);
    t->f[at] = (double)t->i[at];
    t->m->booleans = true;
  } else
    lampl_error(L, AMPL_EARG, "tensor", "element %lld is %s, not a number%s", (long long)at + 1,
                lampl_shown(L, -1, text, sizeof text),
                lampl_test_handle(L, -1) ? "; ampl.stack and ampl.cat join tensors" : "");
  if (at % BREATH == 0) check_interrupt(L, t->S, "tensor");
  return at + 1;
}

/* Fills from the table on top of the stack; counts kinds. */
static int64_t fill(lua_State *L, filling *t, int d, int64_t at) {
  const int64_t n = t->m->shape[d];
  if (!lua_istable(L, -1) || (int64_t)lua_rawlen(L, -1) != n)
    lampl_error(L, AMPL_ESHAPE, "tensor",
                "the table is ragged: at depth %d an entry has %lld elements, the first one %lld", d + 1,
                lua_istable(L, -1) ? (long long)lua_rawlen(L, -1) : 0, (long long)n);
  for (int64_t k = 1; k <= n; k++) {
    const int type = lua_rawgeti(L, -1, k);
    at = d + 1 < t->m->ndim ? fill(L, t, d + 1, at) : fill_one(L, t, at, type);
    if (t->m->n == 0 && k % BREATH == 0) check_interrupt(L, t->S, "tensor");
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
  if (s == AMPL_OK && o->requires_grad && (s = ampl_set_requires_grad(*out, true)) != AMPL_OK) {
    ampl_tensor_release(*out);
    *out = NULL;
  }
  return s;
}

static void one_value(lua_State *L, nest *m, double *f, int64_t *i) {
  m->booleans = lua_isboolean(L, 1);
  m->integers = lua_isinteger(L, 1);
  m->floats = !m->integers && !m->booleans;
  *i = m->booleans ? lua_toboolean(L, 1) : m->integers ? lua_tointeger(L, 1) : 0;
  *f = m->floats ? lua_tonumber(L, 1) : (double)*i;
}

static int tensor(lua_State *L) {
  lampl_state *S = lampl_entered(L);
  nest m = {.n = 1};
  lua_settop(L, 2);
  const make_options o = read_options(L, 2, "tensor");
  if (lampl_test_handle(L, 1))
    return lampl_error(L, AMPL_EARG, "tensor", "this is a tensor already; use x:clone() or x:to(dtype)");
  const int type = lua_type(L, 1);
  if (type != LUA_TTABLE && type != LUA_TNUMBER && type != LUA_TBOOLEAN)
    return lampl_wrong(L, 1, "tensor", "the values", "a table of numbers or a number");
  if (type == LUA_TTABLE) check_plain_list(L);
  if (type == LUA_TTABLE) measure(L, &m);
  double *f = push_buffer(L, S, "tensor", m.n);
  int64_t *i = push_buffer(L, S, "tensor", m.n);
  const int buffers = lua_gettop(L);
  if (type == LUA_TTABLE) {
    lua_pushvalue(L, 1);
    fill(L, &(filling){S, &m, f, i}, 0, 0);
  } else one_value(L, &m, f, i);
  check_range(L, &m, f, i, o.dtype);
  lampl_handle *h = lampl_push_handle(L, S);
  lampl_check(L, S, LAMPL_CALL(S, build(S, &m, f, i, &o, &h->x)));
  for (int k = buffers - 1; k <= buffers; k++) lampl_box_release(lua_touserdata(L, k));
  return 1;
}

static int read_shape(lua_State *L, int t, int64_t *shape) {
  int64_t last;
  if (!lua_istable(L, t)) lampl_wrong(L, t, "from_bytes", "the shape", "a list of sizes");
  const int64_t ndim = lampl_list_length(L, t, &last);
  if (last > AMPL_RANK_MAX)
    lampl_error(L, AMPL_ESHAPE, "from_bytes", "%lld dimensions; a tensor has at most %d", (long long)last,
                AMPL_RANK_MAX);
  if (last > ndim) lampl_error(L, AMPL_EARG, "from_bytes", "size %lld of the shape is missing", (long long)ndim + 1);
  for (int d = 0; d < ndim; d++) {
    lua_rawgeti(L, t, d + 1);
    shape[d] = lampl_check_integer(L, -1, "from_bytes", "a size of the shape");
    lua_pop(L, 1);
  }
  return (int)ndim;
}

static ampl_status build_from_bytes(lampl_state *S, const make_options *o, int ndim, const int64_t *shape,
                                    const char *data, size_t bytes, ampl_tensor **out) {
  ampl_tensor *x, *moved;
  ampl_status s = ampl_from_bytes(S->ctx, o->dtype == AMPL_DTYPE_NONE ? AMPL_F32 : (ampl_dtype)o->dtype, ndim, shape,
                                  data, bytes, &x);
  if (s == AMPL_OK && o->device) {
    s = ampl_to_device(x, o->device, &moved);
    ampl_tensor_release(x);
    x = s == AMPL_OK ? moved : NULL;
  }
  if (s == AMPL_OK && o->requires_grad) s = ampl_set_requires_grad(x, true);
  if (s == AMPL_OK) *out = x;
  else ampl_tensor_release(x);
  return s;
}

static int from_bytes(lua_State *L) {
  lampl_state *S = lampl_entered(L);
  size_t bytes;
  int64_t shape[AMPL_RANK_MAX];
  lua_settop(L, 3);
  const char *data = lampl_check_string(L, 1, "from_bytes", "the data");
  lua_tolstring(L, 1, &bytes);
  const int ndim = read_shape(L, 2, shape);
  const make_options o = read_options(L, 3, "from_bytes");
  lampl_handle *h = lampl_push_handle(L, S);
  lampl_check(L, S, LAMPL_CALL(S, build_from_bytes(S, &o, ndim, shape, data, bytes, &h->x)));
  return 1;
}

/* ------------------------------------------------------------------------------------------------ to Lua ---------- */

/* Row-major values of x, as doubles or integers. */
static ampl_status read_values(lampl_state *S, ampl_tensor *x, void *to_buffer) {
  const ampl_dtype want = ampl_dtype_is_float(ampl_tensor_dtype(x)) ? AMPL_F64 : AMPL_I64;
  ampl_tensor *plain, *wide;
  if (ampl_tensor_dtype(x) == want) return ampl_to_bytes(x, to_buffer, (size_t)ampl_numel(x) * 8);
  ampl_status s = ampl_detach(x, &plain);
  if (s != AMPL_OK) return s;
  const ampl_value v[] = {{.t = plain}, {.i = want}};
  s = ampl_run_op(S->ctx, S->to, v, 2, &wide, 1);
  ampl_tensor_release(plain);
  if (s != AMPL_OK) return s;
  s = ampl_to_bytes(wide, to_buffer, (size_t)ampl_numel(wide) * 8);
  ampl_tensor_release(wide);
  return s;
}

/* A tensor's values on their way into tables; what counts of it is copied: x may be freed meanwhile. */
typedef struct reading {
  lampl_state *S;
  const void  *buffer;
  int          ndim;
  int64_t      shape[AMPL_RANK_MAX];
  bool         floats, booleans;
} reading;

static void push_value(lua_State *L, const reading *r, int64_t at) {
  if (r->floats) lua_pushnumber(L, ((const double *)r->buffer)[at]);
  else if (r->booleans) lua_pushboolean(L, ((const int64_t *)r->buffer)[at] != 0);
  else lua_pushinteger(L, ((const int64_t *)r->buffer)[at]);
}

static int64_t push_nested(lua_State *L, const reading *r, int d, int64_t at) {
  const int64_t n = r->shape[d];
  lua_createtable(L, (int)(n < (1 << 26) ? n : 0), 0);
  for (int64_t k = 1; k <= n; k++) {
    if (d + 1 < r->ndim) at = push_nested(L, r, d + 1, at);
    else push_value(L, r, at++);
    lua_rawseti(L, -2, k);
    if (k % BREATH == 0) check_interrupt(L, r->S, "totable");
  }
  return at;
}

/* Whether x has no elements, but rows without number. */
static bool only_rows(const ampl_tensor *x) {
  int64_t rows = 1;
  if (ampl_numel(x)) return false;
  for (int d = 0; ampl_shape(x)[d] && rows <= 1 << 16; d++)
    if (__builtin_mul_overflow(rows, ampl_shape(x)[d], &rows)) return true;
  return rows > 1 << 16;
}

/* x:totable(): a list of rows, each a list ...; {} where there are no elements, but more rows than a table should have.
 */
static int totable(lua_State *L) {
  lampl_state *S = lampl_entered(L);
  const ampl_tensor *x = lampl_check_tensor(L, 1);
  if (only_rows(x)) {
    lua_newtable(L);
    return 1;
  }
  reading r = {.S = S,
               .ndim = ampl_ndim(x),
               .floats = ampl_dtype_is_float(ampl_tensor_dtype(x)),
               .booleans = ampl_tensor_dtype(x) == AMPL_BOOL};
  memcpy(r.shape, ampl_shape(x), (size_t)r.ndim * sizeof *r.shape);
  void *buffer = push_buffer(L, S, "totable", ampl_numel(x));
  const int box = lua_gettop(L);
  ampl_tensor *now = lampl_check_tensor(L, 1);          /* a finaliser may have freed it */
  lampl_check(L, S, LAMPL_CALL(S, read_values(S, now, buffer)));
  r.buffer = buffer;
  if (r.ndim == 0) push_value(L, &r, 0);
  else push_nested(L, &r, 0, 0);
  lampl_box_release(lua_touserdata(L, box));
  return 1;
}

static int item(lua_State *L) {
  lampl_state *S = lampl_entered(L);
  ampl_tensor *x = lampl_check_tensor(L, 1);
  const ampl_dtype t = ampl_tensor_dtype(x);
  double f;
  int64_t i;
  lampl_check(L, S, LAMPL_CALL(S, ampl_item_any(x, &f, &i)));
  if (ampl_dtype_is_float(t)) lua_pushnumber(L, f);
  else if (t == AMPL_BOOL) lua_pushboolean(L, i != 0);
  else lua_pushinteger(L, i);
  return 1;
}

static int tobytes(lua_State *L) {
  lampl_state *S = lampl_entered(L);
  const ampl_tensor *x = lampl_check_tensor(L, 1);
  const size_t bytes = (size_t)ampl_numel(x) * ampl_dtype_size(ampl_tensor_dtype(x));
  luaL_Buffer b;
  char *to = luaL_buffinitsize(L, &b, bytes);
  const lampl_handle *h = lua_touserdata(L, 1);         /* a finaliser may have freed it */
  if (!h->x) return lampl_error(L, AMPL_EFREED, "tobytes", "the tensor was freed");
  lampl_check(L, S, LAMPL_CALL(S, ampl_to_bytes(h->x, to, bytes)));
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

/* A name that is neither a dtype nor the beginning of a device's: it must have been meant for a dtype. */
static void check_device(lua_State *L, int i) {
  char text[256];
  const char *name = lua_tostring(L, i);
  const size_t kind = strcspn(name, ":");
  for (int k = 0; k < ampl_device_count(); k++)
    if (strncmp(ampl_device_name(k), name, kind) == 0) return;
  if (kind == 4 && strncmp(name, "cuda", kind) == 0) return;    /* a device, if not here */
  lampl_no_dtype(L, i, text, sizeof text);
  lampl_error(L, AMPL_EDTYPE, "to", "%s, and no such device", text);
}

static int to_(lua_State *L) {
  lampl_state *S = lampl_entered(L);
  int dtype = AMPL_DTYPE_NONE;
  const char *device = NULL;
  lampl_check_tensor(L, 1);
  lua_settop(L, 3);
  for (int i = 2; i <= 3; i++) {
    if (lua_istable(L, i)) {
      const make_options o = read_options(L, i, "to");
      dtype = o.dtype != AMPL_DTYPE_NONE ? o.dtype : dtype;
      device = o.device ? o.device : device;
    } else if (lua_type(L, i) == LUA_TSTRING) {
      const int t = ampl_dtype_from_name(lua_tostring(L, i));
      if (t != AMPL_DTYPE_NONE) dtype = t;
      else check_device(L, i), device = lua_tostring(L, i);
    } else if (!lua_isnil(L, i)) return lampl_wrong(L, i, "to", "the argument", "a dtype, a device or options");
  }
  lampl_handle *h = lampl_push_handle(L, S);
  ampl_tensor *x = lampl_check_tensor(L, 1);
  lampl_check(L, S, LAMPL_CALL(S, move(S, x, dtype, device, &h->x)));
  return 1;
}

/* x:half() and its kind; the upvalue is the dtype or the device. */
static int to_fixed(lua_State *L) {
  lua_settop(L, 1);
  lua_pushvalue(L, lua_upvalueindex(1));
  return to_(L);
}

void lampl_open_make(lua_State *L) {
  lampl_box_metatable(L, "ampl.Buffer", NULL);
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
