/* ops.c: every op as a function and a method, from its record.
 *
 * Arguments are positional in the record's order, or named in a trailing table of options.  Nothing here raises while a
 * temporary is held: a mistake is noted in the parser, and raised after everything is given back. */
#include "lampl.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ARGS_MAX 16
#define LIST_MAX 64             /* numbers in lists of one call that need no heap */

typedef struct op_entry {
  const ampl_op  *op;
  const ampl_arg *args;
  const char     *name;
  unsigned        flags;
  int             narg, nout;
  bool            inplace, creator;
  char            inplace_name[48];
} op_entry;

/* A call being read. */
typedef struct parser {
  lua_State      *L;
  lampl_state    *S;
  const op_entry *e;
  ampl_value      v[ARGS_MAX];
  bool            given[ARGS_MAX];
  int             ntemp;
  ampl_tensor    *temp[ARGS_MAX];       /* plain numbers as operands; references to what stands in the options */
  ampl_tensor   **list;                 /* nlist references, on the heap */
  int64_t         nlist;
  bool            optional;             /* the values are read from the table of options */
  int             nints;
  int64_t         ints[LIST_MAX];
  bool            requires_grad;
  ampl_status     status;
  char            message[512];
} parser;

static bool fail(parser *p, ampl_status s, const char *fmt, ...) AMPL_PRINTF(3, 4);
static bool fail(parser *p, ampl_status s, const char *fmt, ...) {
  va_list args;
  va_start(args, fmt);
  vsnprintf(p->message, sizeof p->message, fmt, args);
  va_end(args);
  p->status = s;
  return false;
}

/* ------------------------------------------------------------------------------------------------ values ---------- */

int64_t lampl_list_length(lua_State *L, int i, int64_t *last) {
  const int64_t n = (int64_t)lua_rawlen(L, i);
  *last = n;
  for (lua_pushnil(L); lua_next(L, i); lua_pop(L, 1))
    if (lua_isinteger(L, -2) && lua_tointeger(L, -2) > *last) *last = lua_tointeger(L, -2);
  return n;
}

bool lampl_to_integer(lua_State *L, int i, int64_t *out) {
  int ok;
  if (lua_type(L, i) != LUA_TNUMBER) return false;
  *out = lua_tointegerx(L, i, &ok);
  return ok;
}

static bool wrong(parser *p, const ampl_arg *a, const char *what, int i) {
  char text[LAMPL_SHOWN];
  return fail(p, AMPL_EARG, "%s must be %s, not %s", a->name, what, lampl_shown(p->L, i, text, sizeof text));
}

/* Counts from 1 here, from 0 there; negative numbers count from the end in both. */
static bool from_one(parser *p, const ampl_arg *a, const char *what, int64_t v, int64_t *out) {
  if (v == 0) return fail(p, AMPL_EINDEX, "%s is 0; %s count from 1, or from the end with -1", a->name, what);
  *out = v > 0 ? v - 1 : v == INT64_MIN ? v + 1 : v;    /* the least integer stands for "absent" */
  return true;
}

static bool read_integer(parser *p, const ampl_arg *a, int i, int64_t *out) {
  int64_t v;
  if (!lampl_to_integer(p->L, i, &v)) return wrong(p, a, "an integer", i);
  if (a->kind == AMPL_ARG_DIM || a->kind == AMPL_ARG_DIM_NEW || a->kind == AMPL_ARG_DIMS)
    return from_one(p, a, "dimensions", v, out);
  if (a->kind == AMPL_ARG_INDEX) return from_one(p, a, "positions", v, out);
  if (a->flags & AMPL_COUNT1) return from_one(p, a, "classes and rows", v, out);
  if (a->flags & AMPL_STOP) {           /* the last one taken here, the first one not taken there */
    if (v == 0) return from_one(p, a, "positions", v, out);
    *out = v == -1 ? AMPL_ABSENT : v < 0 ? v + 1 : v;
    return true;
  }
  if (v == AMPL_ABSENT && a->kind == AMPL_ARG_INT)
    return fail(p, AMPL_EVALUE, "%s is %lld, which is out of range", a->name, (long long)v);
  *out = v;
  return true;
}

static bool missing_entry(parser *p, const ampl_arg *a, int64_t k) {
  return fail(p, AMPL_EARG, "entry %lld of %s is missing: the list has a hole there", (long long)k + 1, a->name);
}

static bool read_list(parser *p, const ampl_arg *a, int i, ampl_ints *out) {
  static const char *const what = "an integer or a list of integers";
  int64_t *to = &p->ints[p->nints];
  out->v = to;
  if (lua_type(p->L, i) == LUA_TNUMBER) {
    out->n = 1;
    if (p->nints == LIST_MAX) return fail(p, AMPL_EARG, "%s: more than %d numbers in lists", a->name, LIST_MAX);
    p->nints++;
    return read_integer(p, a, i, to);
  }
  if (!lua_istable(p->L, i)) return wrong(p, a, what, i);
  int64_t last;
  out->n = lampl_list_length(p->L, i, &last);
  if (last > out->n) return missing_entry(p, a, out->n);
  if (p->nints + out->n > LIST_MAX)
    return fail(p, AMPL_EARG, "%s has %lld entries; at most %d are taken", a->name, (long long)out->n, LIST_MAX);
  p->nints += (int)out->n;
  for (int64_t k = 0; k < out->n; k++) {
    const bool there = lua_rawgeti(p->L, i, k + 1) != LUA_TNIL;
    const bool ok = there ? read_integer(p, a, -1, &to[k]) : missing_entry(p, a, k);
    lua_pop(p->L, 1);
    if (!ok) return false;
  }
  return true;
}

static bool read_tensor(parser *p, const ampl_arg *a, int i, ampl_tensor **out) {
  lua_State *L = p->L;
  const lampl_handle *h = lampl_test_handle(L, i);
  ampl_status s;
  if (h) {
    *out = h->x;
    if (!h->x) return fail(p, AMPL_EFREED, "%s was freed", a->name);
    if (p->optional) ampl_tensor_retain(p->temp[p->ntemp++] = h->x);
    return true;
  }
  if (lua_type(L, i) == LUA_TTABLE && !(a->flags & AMPL_NO_NUMBER))
    return wrong(p, a, "a tensor or a number (ampl.tensor makes one of a table)", i);
  if (a->flags & AMPL_NO_NUMBER || (lua_type(L, i) != LUA_TNUMBER && lua_type(L, i) != LUA_TBOOLEAN))
    return wrong(p, a, a->flags & AMPL_NO_NUMBER ? "a tensor" : "a tensor or a number", i);
  if (lua_isboolean(L, i)) s = ampl_boolean(p->S->ctx, lua_toboolean(L, i), out);
  else if (lua_isinteger(L, i)) s = ampl_integer(p->S->ctx, lua_tointeger(L, i), out);
  else s = ampl_number(p->S->ctx, lua_tonumber(L, i), out);
  if (s != AMPL_OK) return fail(p, s, "out of memory");
  p->temp[p->ntemp++] = *out;
  return true;
}

static bool read_entry(parser *p, const ampl_arg *a, int i, int64_t k) {
  lua_State *L = p->L;
  lua_rawgeti(L, i, k + 1);
  const lampl_handle *h = lampl_test_handle(L, -1);
  const bool absent = lua_isnil(L, -1) || (lua_isboolean(L, -1) && !lua_toboolean(L, -1));
  char text[LAMPL_SHOWN];
  const char *shown = h || absent ? "" : lampl_shown(L, -1, text, sizeof text);
  lua_pop(L, 1);
  if (!h && absent && !(a->flags & AMPL_HOLES)) return missing_entry(p, a, k);
  if (!h && !absent)
    return fail(p, AMPL_EARG, "entry %lld of %s is no tensor but %s", (long long)k + 1, a->name, shown);
  if (h && !h->x) return fail(p, AMPL_EFREED, "entry %lld of %s was freed", (long long)k + 1, a->name);
  if (h) ampl_tensor_retain(h->x);
  p->list[p->nlist++] = h ? h->x : NULL;
  return true;
}

/* The entries are retained: callbacks may change the table. */
static bool read_tensors(parser *p, const ampl_arg *a, int i, ampl_list *out) {
  if (!lua_istable(p->L, i)) return wrong(p, a, "a list of tensors", i);
  int64_t last, n = lampl_list_length(p->L, i, &last);
  if (a->flags & AMPL_HOLES) n = last;
  else if (last > n) return missing_entry(p, a, n);
  if (n > LAMPL_LIST_MAX) return fail(p, AMPL_EARG, "%s has more than %d entries", a->name, LAMPL_LIST_MAX);
  if (!(p->list = malloc((size_t)(n ? n : 1) * sizeof *p->list))) return fail(p, AMPL_ENOMEM, "out of memory");
  *out = (ampl_list){p->list, n};
  for (int64_t k = 0; k < n; k++)
    if (!read_entry(p, a, i, k)) return false;
  return true;
}

static bool read_enum(parser *p, const ampl_arg *a, int i, int64_t *out) {
  size_t n;
  const char *s = lua_type(p->L, i) == LUA_TSTRING ? lua_tolstring(p->L, i, &n) : NULL;
  *out = 0;
  for (const char *c = a->choices; s && *c; (*out)++) {
    const size_t len = strcspn(c, "|");
    if (len == n && memcmp(c, s, n) == 0) return true;
    c += len + (c[len] == '|');
  }
  char text[LAMPL_SHOWN];
  return fail(p, AMPL_EVALUE, "%s must be one of %s, not %s", a->name, a->choices,
              lampl_shown(p->L, i, text, sizeof text));
}

static bool read_padding(parser *p, const ampl_arg *a, int i, ampl_ints *out) {
  const char *s = lua_type(p->L, i) == LUA_TSTRING ? lua_tostring(p->L, i) : NULL;
  if (!s) return read_list(p, a, i, out);
  *out = (ampl_ints){NULL, strcmp(s, "same") == 0 ? -1 : 0};
  return strcmp(s, "same") == 0 || strcmp(s, "valid") == 0 ||
         wrong(p, a, "an integer, a list, \"valid\" or \"same\"", i);
}

/* A number, or the name that the record has for the default. */
static bool read_float(parser *p, const ampl_arg *a, int i, double *out) {
  *out = lua_tonumber(p->L, i);
  if (lua_type(p->L, i) == LUA_TNUMBER) return true;
  if (!a->choices) return wrong(p, a, "a number", i);
  *out = a->def.f;
  return (lua_type(p->L, i) == LUA_TSTRING && strcmp(lua_tostring(p->L, i), a->choices) == 0) ||
         fail(p, AMPL_EARG, "%s must be a number or \"%s\"", a->name, a->choices);
}

static bool read_dtype(parser *p, const ampl_arg *a, int i, int64_t *out) {
  char text[256];
  if (lua_type(p->L, i) != LUA_TSTRING) return wrong(p, a, "the name of a dtype", i);
  *out = ampl_dtype_from_name(lua_tostring(p->L, i));
  if (*out != AMPL_DTYPE_NONE) return true;
  lampl_no_dtype(p->L, i, text, sizeof text);
  return fail(p, AMPL_EDTYPE, "%s", text);
}

/* Argument k of the record from the stack at i (not nil). */
static bool read_value(parser *p, int k, int i) {
  const ampl_arg *a = &p->e->args[k];
  ampl_value *v = &p->v[k];
  lua_State *L = p->L;
  if (p->given[k]) return fail(p, AMPL_EARG, "%s is given twice", a->name);
  p->given[k] = true;
  switch (a->kind) {
  case AMPL_ARG_TENSOR:
  case AMPL_ARG_TENSOR_OPT: return read_tensor(p, a, i, &v->t);
  case AMPL_ARG_TENSORS: return read_tensors(p, a, i, &v->ts);
  case AMPL_ARG_DIM:
  case AMPL_ARG_DIM_NEW:
  case AMPL_ARG_INDEX:
  case AMPL_ARG_INT: return read_integer(p, a, i, &v->i);
  case AMPL_ARG_DIMS:
  case AMPL_ARG_SIZES: return read_list(p, a, i, &v->l);
  case AMPL_ARG_PADDING: return read_padding(p, a, i, &v->l);
  case AMPL_ARG_FLOAT: return read_float(p, a, i, &v->f);
  case AMPL_ARG_BOOL:
    v->i = lua_toboolean(L, i);
    return lua_isboolean(L, i) || wrong(p, a, "true or false", i);
  case AMPL_ARG_ENUM: return read_enum(p, a, i, &v->i);
  case AMPL_ARG_DTYPE: return read_dtype(p, a, i, &v->i);
  case AMPL_ARG_STRING:
  case AMPL_ARG_DEVICE:
    v->s = lua_type(L, i) == LUA_TSTRING ? lua_tostring(L, i) : NULL;
    return v->s || wrong(p, a, a->kind == AMPL_ARG_DEVICE ? "the name of a device" : "a string", i);
  }
  return false;
}

/* ------------------------------------------------------------------------------------------------ calls ----------- */

/* Names that PyTorch, or Lua's manners, have beside the record's. */
static const struct {
  const char *alias, *name;
} aliases[] = {{"attn_mask", "mask"}, {"mask", "attn_mask"}, {"end", "stop"}, {"shape", "size"}, {"size", "shape"}};

static int arg_named(const op_entry *e, const char *name) {
  for (int k = 0; k < e->narg; k++)
    if (strcmp(e->args[k].name, name) == 0) return k;
  return -1;
}

static int find_arg(const op_entry *e, const char *name) {
  int k = arg_named(e, name);
  for (size_t i = 0; k < 0 && i < sizeof aliases / sizeof *aliases; i++)
    if (strcmp(aliases[i].alias, name) == 0) k = arg_named(e, aliases[i].name);
  return k;
}

static bool unknown_option(parser *p, const char *name) {
  char known[300];
  size_t n = 0;
  known[0] = 0;
  for (int k = 0; k < p->e->narg; k++)
    n = lampl_append(known, sizeof known, n, k ? ", %s" : "%s", p->e->args[k].name);
  return fail(p, AMPL_EARG, "unknown option \"%.40s\"; known are: %s%s", name, known,
              p->e->creator ? ", requires_grad" : "");
}

/* One option, its value on top of the stack. */
static bool read_option(parser *p, const char *name) {
  lua_State *L = p->L;
  const int k = find_arg(p->e, name);
  if (k < 0 && p->e->creator && strcmp(name, "requires_grad") == 0) {
    p->requires_grad = lua_toboolean(L, -1);
    return lua_isboolean(L, -1) || fail(p, AMPL_EARG, "requires_grad must be true or false");
  }
  if (k < 0) return unknown_option(p, name);
  if (p->e->args[k].kind == AMPL_ARG_TENSORS) return fail(p, AMPL_EARG, "%s is positional", name);
  return read_value(p, k, lua_gettop(L));
}

static bool read_options(parser *p, int t) {
  lua_State *L = p->L;
  p->optional = true;
  for (lua_pushnil(L); lua_next(L, t); lua_pop(L, 1))
    if (!read_option(p, lua_tostring(L, -2))) {         /* a string: the caller looked */
      lua_pop(L, 2);
      return false;
    }
  for (int k = 0; k < p->e->narg; k++) {                /* a string that is used must not be the table's alone */
    const int kind = p->e->args[k].kind;
    if (!p->given[k] || !p->v[k].s || (kind != AMPL_ARG_STRING && kind != AMPL_ARG_DEVICE)) continue;
    p->v[k].s = lua_pushstring(L, p->v[k].s);
  }
  return true;
}

enum { PLAIN_NONE, PLAIN_EMPTY, PLAIN_LIST, PLAIN_OPTIONS, PLAIN_BOTH };

/* What kind of table stands at i. */
static int table_kind(lua_State *L, int i) {
  bool list = false, options = false;
  if (!lua_istable(L, i)) return PLAIN_NONE;
  if (!lampl_is_plain(L, i)) return PLAIN_NONE;
  list = lua_rawlen(L, i) > 0;
  for (lua_pushnil(L); lua_next(L, i); lua_pop(L, 1)) {
    if (lua_type(L, -2) == LUA_TSTRING) options = true;
    else list = true;
    if (list && options) {
      lua_pop(L, 2);
      return PLAIN_BOTH;
    }
    if (list && !options && lua_rawlen(L, i) > 8) { /* a long list: look behind its array part only when it is short */
      lua_pop(L, 2);
      return PLAIN_LIST;
    }
  }
  return list ? PLAIN_LIST : options ? PLAIN_OPTIONS : PLAIN_EMPTY;
}

static bool takes_list(const ampl_arg *a) {
  return a->kind == AMPL_ARG_TENSORS || a->kind == AMPL_ARG_DIMS || a->kind == AMPL_ARG_SIZES ||
         a->kind == AMPL_ARG_PADDING;
}

/* The next operand from argument k on: tensors may stand side by side, with what the record has between them given as
 * options: gather(x, index, {dim = 1}). */
static int operand_from(const op_entry *e, int k) {
  for (int i = k; i < e->narg && e->args[i].kind != AMPL_ARG_TENSORS; i++)
    if (e->args[i].kind == AMPL_ARG_TENSOR || e->args[i].kind == AMPL_ARG_TENSOR_OPT) return i;
  return k;
}

/* Which argument the value at position i (from 0, of n) would be; loose integers of a vararg count as one. */
static bool read_arguments(parser *p, int n) {
  lua_State *L = p->L;
  const op_entry *e = p->e;
  int options = 0, k = 0, last = LUA_TNONE;
  while (n > 0 && (last = lua_type(L, n)) == LUA_TNIL) n--;     /* "not given", also behind the last one there is */
  if (n > 0 && last == LUA_TTABLE) {
    const int kind = table_kind(L, n);
    if (kind == PLAIN_BOTH)
      return fail(p, AMPL_EARG, "a table holds a list and options: give two, %s({...}, {option = value})", e->name);
    const bool may_be_list = n <= e->narg && takes_list(&e->args[n - 1]);
    if (kind == PLAIN_OPTIONS || (kind == PLAIN_EMPTY && !may_be_list)) options = n--;
  }
  for (int i = 1; i <= n; i++, k++) {
    if (k >= e->narg) return fail(p, AMPL_EARG, "%d arguments given, at most %d taken", n, e->narg);
    if (lampl_test_handle(L, i)) k = operand_from(e, k);
    const ampl_arg *a = &e->args[k];
    if (lua_isnil(L, i)) continue;
    if (a->flags & AMPL_VARARG && lua_type(L, i) == LUA_TNUMBER) {
      p->v[k].l = (ampl_ints){&p->ints[p->nints], 0};
      p->given[k] = true;
      for (; i <= n && lua_type(L, i) == LUA_TNUMBER; i++, p->v[k].l.n++) {
        if (p->nints == LIST_MAX) return fail(p, AMPL_EARG, "%s: more than %d numbers", a->name, LIST_MAX);
        if (!read_integer(p, a, i, &p->ints[p->nints++])) return false;
      }
      i--;
      continue;
    }
    if (!read_value(p, k, i)) return false;
  }
  return !options || read_options(p, options);
}

static bool fill_defaults(parser *p) {
  const op_entry *e = p->e;
  for (int k = 0; k < e->narg; k++) {
    if (p->given[k]) continue;
    const ampl_arg *a = &e->args[k];
    if (a->flags & AMPL_REQUIRED) {
      if (a->kind == AMPL_ARG_SIZES && a->flags & AMPL_VARARG) {        /* zeros(), x:view(): a scalar */
        p->v[k].l = (ampl_ints){p->ints, 0};
        continue;
      }
      return fail(p, AMPL_EARG, "%s is missing", a->name);
    }
    p->v[k] = a->def;
  }
  return true;
}

static void drop_temporaries(parser *p) {
  for (int i = 0; i < p->ntemp; i++) ampl_tensor_release(p->temp[i]);
  for (int64_t i = 0; i < p->nlist; i++) ampl_tensor_release(p->list[i]);
  if (p->list) free(p->list);
}

/* Reads n arguments.  From here to the end of the call, what they refer to is not released. */
static bool parse(parser *p, lua_State *L, lampl_state *S, const op_entry *e, int n) {
  p->L = L;
  p->S = S;
  p->e = e;
  p->ntemp = p->nints = 0;
  p->list = NULL;
  p->nlist = 0;
  p->requires_grad = p->optional = false;
  p->status = AMPL_OK;
  memset(p->given, 0, sizeof p->given);
  lampl_mark(S);
  return read_arguments(p, n) && fill_defaults(p);
}

static void raise_parse_error(lua_State *L, parser *p, const char *name, bool method) {
  drop_temporaries(p);
  lampl_end_parsing(p->S);
  if (method && !lampl_test_handle(L, 1))
    lampl_error(L, p->status, name, "%s; a method is called with a colon: x:%s(...)", p->message, name);
  lampl_error(L, p->status, name, "%s", p->message);
}

/* Takes the results that were not made (unique's counts, unless asked for) from the top of the stack; how many stay. */
static int drop_absent(lua_State *L, lampl_handle *const *h, int n) {
  int kept = n;
  for (int k = n - 1; k >= 0; k--)
    if (!h[k]->x) lua_remove(L, k - kept), kept--;
  return kept;
}

/* The function of an op; upvalues: state, entry. */
static inline int call(lua_State *L, bool method) {
  lampl_state *S = lua_touserdata(L, lua_upvalueindex(1));
  const op_entry *e = lua_touserdata(L, lua_upvalueindex(2));
  const int n = lua_gettop(L);
  lampl_handle *h[8];
  ampl_tensor *out[8];
  parser p;
  lampl_enter(L, S);
  for (int k = 0; k < e->nout; k++) h[k] = lampl_push_handle(L, S);
  if (!parse(&p, L, S, e, n)) raise_parse_error(L, &p, e->name, method);
  ampl_status s = LAMPL_CALL(S, ampl_run_op(S->ctx, e->op, p.v, e->narg, out, e->nout));
  drop_temporaries(&p);
  for (int k = 0; s == AMPL_OK && k < e->nout; k++) h[k]->x = out[k];
  if (s == AMPL_OK && p.requires_grad) s = ampl_set_requires_grad(out[0], true);
  lampl_check(L, S, s);
  if (p.optional) lua_settop(L, n + e->nout);   /* strings of the options stand above */
  return e->nout > 1 ? drop_absent(L, h, e->nout) : e->nout;
}

static int call_op(lua_State *L) { return call(L, false); }
static int call_method(lua_State *L) { return call(L, true); }

/* The in-place form: returns the handle that it got. */
static int call_inplace(lua_State *L) {
  lampl_state *S = lua_touserdata(L, lua_upvalueindex(1));
  const op_entry *e = lua_touserdata(L, lua_upvalueindex(2));
  parser p;
  char text[LAMPL_SHOWN];
  lampl_enter(L, S);
  if (!lampl_test_handle(L, 1))
    return lampl_error(L, AMPL_EARG, e->inplace_name,
                       "argument 1 must be the tensor that is written, not %s; a method is called with a colon: "
                       "x:%s(...)",
                       lampl_shown(L, 1, text, sizeof text), e->inplace_name);
  if (!parse(&p, L, S, e, lua_gettop(L))) raise_parse_error(L, &p, e->inplace_name, false);
  const ampl_status s = LAMPL_CALL(S, ampl_run_op_inplace(S->ctx, e->op, p.v, e->narg));
  drop_temporaries(&p);
  lampl_check(L, S, s);
  lua_pushvalue(L, 1);
  return 1;
}

/* Operators: Lua gives a unary one its operand twice. */
static int call_unary(lua_State *L) {
  lua_settop(L, 1);
  return call_op(L);
}

/* ------------------------------------------------------------------------------------------------ module ---------- */

static void push_call(lua_State *L, lua_CFunction f, const op_entry *e) {
  lua_pushlightuserdata(L, lampl_state_of(L));
  lua_pushlightuserdata(L, (void *)e);
  lua_pushcclosure(L, f, 2);
}

static void add_operator(lua_State *L, const op_entry *entries, int n, const char *event, const char *op,
                         lua_CFunction f) {
  for (int i = 0; i < n; i++)
    if (strcmp(entries[i].name, op) == 0) {
      push_call(L, f, &entries[i]);
      lua_setfield(L, -2, event);
    }
}

static void add_operators(lua_State *L, const op_entry *entries, int n) {
  static const struct {
    const char *event, *op;
  } binary[] = {{"__add", "add"},        {"__sub", "sub"},       {"__mul", "mul"}, {"__div", "div"},
                {"__idiv", "floor_div"}, {"__mod", "remainder"}, {"__pow", "pow"}};
  luaL_getmetatable(L, "ampl.Tensor");
  for (size_t i = 0; i < sizeof binary / sizeof *binary; i++)
    add_operator(L, entries, n, binary[i].event, binary[i].op, call_op);
  add_operator(L, entries, n, "__unm", "neg", call_unary);
  lua_pop(L, 1);
}

/* Stack: module, functional, internal, methods. */
static void add_op(lua_State *L, const op_entry *e) {
  const bool internal = e->flags & AMPL_OP_INTERNAL;
  const int module = -5, functional = -4, hidden = -3, methods = -2;    /* below the function that is added */
  struct { const char *name; lua_CFunction f; } form[2] = {{e->name, call_op}, {e->inplace_name, call_inplace}};
  for (int k = 0; k < (e->inplace ? 2 : 1); k++) {
    push_call(L, form[k].f, e);
    if (internal) lua_pushvalue(L, -1), lua_setfield(L, hidden - 1, form[k].name);
    if (!internal && !(e->flags & (AMPL_OP_F_ONLY | AMPL_OP_METHOD_ONLY)))
      lua_pushvalue(L, -1), lua_setfield(L, module - 1, form[k].name);
    if (!internal && !(e->flags & AMPL_OP_METHOD_ONLY))
      lua_pushvalue(L, -1), lua_setfield(L, functional - 1, form[k].name);
    lua_pop(L, 1);
    if (internal || !e->narg || e->args[0].kind != AMPL_ARG_TENSOR || e->flags & AMPL_OP_F_ONLY) continue;
    push_call(L, k ? call_inplace : call_method, e);
    lua_setfield(L, methods, form[k].name);
  }
}

/* The default of an argument as a script would write it; false: it has none. */
static bool push_default(lua_State *L, const ampl_arg *a) {
  const int64_t i = a->def.i;
  const char *c = a->choices;
  switch (a->kind) {
  case AMPL_ARG_FLOAT:
    if (isnan(a->def.f)) return false;
    lua_pushnumber(L, a->def.f);
    return true;
  case AMPL_ARG_INT:
    if (i == AMPL_ABSENT) return false;
    lua_pushinteger(L, a->flags & AMPL_COUNT1 && i >= 0 ? i + 1 : i);
    return true;
  case AMPL_ARG_DIM:
    if (i == AMPL_ABSENT) return false;
    lua_pushinteger(L, i < 0 ? i : i + 1);
    return true;
  case AMPL_ARG_BOOL: return lua_pushboolean(L, i != 0), true;
  case AMPL_ARG_ENUM:
    if (i == AMPL_ABSENT || !c) return false;
    for (int64_t k = 0; k < i && (c = strchr(c, '|')); k++) c++;
    if (!c) return false;
    lua_pushlstring(L, c, strcspn(c, "|"));
    return true;
  default: return false;
  }
}

static void push_record(lua_State *L, const ampl_op *op) {
  const char *why, *category = ampl_op_category(op, &why);
  const ampl_arg *args = ampl_op_args(op);
  const unsigned flags = ampl_op_flags(op);
  lua_createtable(L, 0, 10);
  lua_pushstring(L, ampl_op_name(op));
  lua_setfield(L, -2, "name");
  lua_pushstring(L, ampl_op_doc(op));
  lua_setfield(L, -2, "doc");
  lua_pushstring(L, category);
  lua_setfield(L, -2, "category");
  lua_pushstring(L, why);
  lua_setfield(L, -2, "why");
  lua_pushinteger(L, ampl_op_nout(op));
  lua_setfield(L, -2, "outputs");
#define FLAG(name, test) (lua_pushboolean(L, test), lua_setfield(L, -2, name))
  FLAG("differentiable", ampl_op_has_backward(op) && !(flags & AMPL_OP_NO_GRAD));
  FLAG("inplace", (flags & AMPL_OP_INPLACE) != 0);
  FLAG("elementwise", (flags & AMPL_OP_ELEMENTWISE) != 0);
  FLAG("view", (flags & AMPL_OP_VIEW) != 0);
  FLAG("random", (flags & AMPL_OP_RANDOM) != 0);
  FLAG("creator", (flags & AMPL_OP_CREATOR) != 0);
  FLAG("method_only", (flags & AMPL_OP_METHOD_ONLY) != 0);
  FLAG("functional_only", (flags & AMPL_OP_F_ONLY) != 0);
#undef FLAG
  static const char *const kinds[] = {
#define AMPL_X(name, text) text,
      AMPL_ARG_MAP(AMPL_X)
#undef AMPL_X
  };
  lua_newtable(L);
  for (int k = 0; args[k].name; k++) {
    lua_createtable(L, 0, 6);
    lua_pushstring(L, args[k].name);
    lua_setfield(L, -2, "name");
    lua_pushstring(L, kinds[args[k].kind]);
    lua_setfield(L, -2, "kind");
    lua_pushstring(L, args[k].doc ? args[k].doc : "");
    lua_setfield(L, -2, "doc");
    lua_pushboolean(L, args[k].flags & AMPL_REQUIRED);
    lua_setfield(L, -2, "required");
    if (args[k].choices) lua_pushstring(L, args[k].choices), lua_setfield(L, -2, "choices");
    if (!(args[k].flags & AMPL_REQUIRED) && push_default(L, &args[k])) lua_setfield(L, -2, "default");
    lua_rawseti(L, -2, k + 1);
  }
  lua_setfield(L, -2, "args");
}

/* ops([name]): every record, or one (nil: no such op). */
static int ops(lua_State *L) {
  const char *name = lua_isnoneornil(L, 1) ? NULL : lampl_check_string(L, 1, "ops", "the name");
  if (name) {
    const ampl_op *op = ampl_op_find(name);
    if (!op || ampl_op_flags(op) & AMPL_OP_INTERNAL) return 0;
    push_record(L, op);
    return 1;
  }
  lua_newtable(L);
  for (int i = 0, n = 0; i < ampl_op_number(); i++) {
    if (ampl_op_flags(ampl_op_at(i)) & AMPL_OP_INTERNAL) continue;
    push_record(L, ampl_op_at(i));
    lua_rawseti(L, -2, ++n);
  }
  return 1;
}

void lampl_open_ops(lua_State *L) {
  const int n = ampl_op_number();
  op_entry *entries = lua_newuserdatauv(L, (size_t)n * sizeof *entries, 0); /* as long as the state: in the registry */
  lua_rawsetp(L, LUA_REGISTRYINDEX, (void *)ops);
  lua_newtable(L);
  lua_newtable(L);
  lua_getfield(L, -3, "methods");
  for (int i = 0; i < n; i++) {
    op_entry *e = &entries[i];
    const ampl_op *op = ampl_op_at(i);
    *e = (op_entry){.op = op,
                    .args = ampl_op_args(op),
                    .name = ampl_op_name(op),
                    .flags = ampl_op_flags(op),
                    .nout = ampl_op_nout(op)};
    while (e->narg < ARGS_MAX && e->args[e->narg].name) e->narg++;
    e->inplace = e->flags & AMPL_OP_INPLACE;
    e->creator = e->flags & AMPL_OP_CREATOR;
    snprintf(e->inplace_name, sizeof e->inplace_name, "%.46s_", e->name);
    if (!(e->flags & AMPL_OP_INTERNAL) || e->flags & AMPL_OP_HOST) add_op(L, e);
  }
  lua_pop(L, 1);
  lua_setfield(L, -3, "internal");
  lua_setfield(L, -2, "functional");
  add_operators(L, entries, n);
  lua_pushcfunction(L, ops);
  lua_setfield(L, -2, "ops");
}
