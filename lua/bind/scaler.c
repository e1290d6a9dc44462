/* scaler.c: the gradient scaler as a userdata.  ampl.amp.GradScaler stands on it: optimisers, lists and closures are
 * there.  Methods that take parameters get a list of them and a list of their names (false: none). */
#include "lampl.h"

#include <stddef.h>
#include <string.h>

#define METATABLE "ampl.scaler"

static ampl_scaler *check_scaler(lua_State *L) {
  const lampl_box *b = luaL_testudata(L, 1, METATABLE);
  if (!b) lampl_wrong(L, 1, "GradScaler", "the receiver", "a scaler (call the method with a colon: s:step(optimizer))");
  if (!b->p) lampl_error(L, AMPL_EFREED, "GradScaler", "the scaler was finalised");
  return b->p;
}

static uint64_t check_key(lua_State *L) { return (uint64_t)lampl_check_integer(L, 2, "GradScaler", "the key"); }

/* Parameters and their names; their places on the stack. */
typedef struct parameters { ampl_params p; int box; } parameters;

/* The parameters at `i`, their names at i + 1 (or none); all stay on the stack. */
static parameters check_params(lua_State *L, int i, const char *op) {
  const lampl_tensors *t = lampl_check_tensors(L, i, op, false);
  parameters o = {{t->v, NULL, t->n}, lua_gettop(L)};
  if (!t->n || !lua_istable(L, i + 1)) return o;
  const char **names = lua_newuserdatauv(L, (size_t)t->n * sizeof *names, 0);
  lua_createtable(L, t->n, 0);          /* keeps the strings */
  for (int k = 0; k < t->n; k++) {
    names[k] = lua_rawgeti(L, i + 1, k + 1) == LUA_TSTRING ? lua_tostring(L, -1) : NULL;
    lua_rawseti(L, -2, k + 1);
  }
  o.p.names = names;
  return o;
}

static void done(lua_State *L, const parameters *p) { lampl_box_release(lua_touserdata(L, p->box)); }

/* ------------------------------------------------------------------------------------------------ options --------- */

typedef struct field {
  const char *name;
  size_t      at;
  bool        whole;            /* an int64_t, else a double */
} field;

static const field option_fields[] = {
#define X(name, whole) {#name, offsetof(ampl_scaler_options, name), whole}
  X(init_scale, false), X(growth_factor, false), X(backoff_factor, false), X(growth_interval, true),
  X(min_scale, false), X(max_scale, false), X(hysteresis, true), X(max_consecutive_skips, true),
#undef X
  {NULL, 0, false}};

/* PyTorch's names first; what PyTorch has not may be missing. */
enum { PYTORCH_FIELDS = 5 };
static const field state_fields[] = {
#define X(lua, name, whole) {lua, offsetof(ampl_scaler_state, name), whole}
  X("scale", scale, false), X("growth_factor", growth_factor, false), X("backoff_factor", backoff_factor, false),
  X("growth_interval", growth_interval, true), X("_growth_tracker", growth_tracker, true),
  X("_hysteresis_left", hysteresis_left, true), X("taken", taken, true), X("skipped", skipped, true),
  X("calibrating", calibrating, true), X("consecutive_skips", consecutive_skips, true),
#undef X
  {NULL, 0, false}};

static void push_field(lua_State *L, const field *f, const void *from) {
  if (f->whole) lua_pushinteger(L, *(const int64_t *)((const char *)from + f->at));
  else lua_pushnumber(L, *(const double *)((const char *)from + f->at));
}

/* The number on top of the stack, which is popped, into its field. */
static void read_field(lua_State *L, const field *f, void *into, const char *op) {
  char text[LAMPL_SHOWN];
  if (f->whole) {
    if (!lampl_to_integer(L, -1, (int64_t *)((char *)into + f->at)))
      lampl_error(L, AMPL_EVALUE, op, "%s must be an integer, not %s", f->name,
                  lampl_shown(L, -1, text, sizeof text));
  } else {
    if (lua_type(L, -1) != LUA_TNUMBER)
      lampl_error(L, AMPL_EVALUE, op, "%s must be a number, not %s", f->name, lampl_shown(L, -1, text, sizeof text));
    *(double *)((char *)into + f->at) = lua_tonumber(L, -1);
  }
  lua_pop(L, 1);
}

static int check_on_floor(lua_State *L, int i) {
  static const char *const names[] = {
#define AMPL_X(NAME, name) #name,
    AMPL_ON_FLOOR_MAP(AMPL_X)
#undef AMPL_X
    NULL};
  if (lua_isnil(L, i)) return 0;
  const char *name = lampl_check_string(L, i, "GradScaler", "on_floor");
  for (int k = 0; names[k]; k++)
    if (strcmp(names[k], name) == 0) return k;
  return lampl_wrong(L, i, "GradScaler", "on_floor", "\"warn\", \"raise\" or \"keep\"");
}

static void release_scaler(void *p) { ampl_scaler_release(p); }

/* scaler(options) */
static int scaler(lua_State *L) {
  lampl_state *S = lampl_entered(L);
  ampl_scaler_options o = AMPL_SCALER_OPTIONS_INIT;
  if (!lua_istable(L, 1)) return lampl_wrong(L, 1, "GradScaler", "the options", "a table");
  for (const field *f = option_fields; f->name; f++) {
    if (lua_getfield(L, 1, f->name) != LUA_TNIL) read_field(L, f, &o, "GradScaler");
    else lua_pop(L, 1);
  }
  lua_getfield(L, 1, "enabled");
  o.enabled = lampl_check_boolean(L, -1, "GradScaler", "enabled", true);
  lua_getfield(L, 1, "on_floor");
  o.on_floor = check_on_floor(L, -1);
  lua_settop(L, 1);
  lampl_box *b = lampl_push_box(L, S, METATABLE, release_scaler);
  ampl_scaler *s = NULL;
  lampl_check(L, S, LAMPL_CALL(S, ampl_scaler_new(S->ctx, &o, &s)));
  b->p = s;
  return 1;
}

static int options(lua_State *L) {
  ampl_scaler_options o;
  ampl_scaler_get_options(check_scaler(L), &o);
  lua_newtable(L);
  for (const field *f = option_fields; f->name; f++) {
    push_field(L, f, &o);
    lua_setfield(L, -2, f->name);
  }
  return 1;
}

/* s:set_option(name, value) */
static int set_option(lua_State *L) {
  lampl_state *S = lampl_entered(L);
  ampl_scaler *s = check_scaler(L);
  const char *name = lampl_check_string(L, 2, "GradScaler", "the option");
  ampl_scaler_options o;
  ampl_scaler_get_options(s, &o);
  lua_settop(L, 3);
  for (const field *f = option_fields; f->name; f++)
    if (strcmp(f->name, name) == 0) {
      read_field(L, f, &o, "GradScaler");
      break;
    }
  lampl_check(L, S, LAMPL_CALL(S, ampl_scaler_set_options(s, &o)));
  return 0;
}

/* ------------------------------------------------------------------------------------------------ an iteration ---- */

static int key(lua_State *L) {
  lua_pushinteger(L, (lua_Integer)ampl_scaler_key(check_scaler(L)));
  return 1;
}

static int scale(lua_State *L) {
  lampl_state *S = lampl_entered(L);
  ampl_scaler *s = check_scaler(L);
  ampl_tensor *x = lampl_check_tensor(L, 2), *y;
  lampl_handle *h = lampl_push_handle(L, S);
  const ampl_status status = LAMPL_CALL(S, ampl_scaler_scale(s, x, &y));
  if (status == AMPL_OK) h->x = y;
  lampl_check(L, S, status);
  return 1;
}

static int unscale(lua_State *L) {
  lampl_state *S = lampl_entered(L);
  ampl_scaler *s = check_scaler(L);
  const uint64_t k = check_key(L);
  const parameters p = check_params(L, 3, "unscale_");
  lampl_check(L, S, LAMPL_CALL(S, ampl_scaler_unscale(s, k, &p.p)));
  done(L, &p);
  return 0;
}

/* s:allowed(key, params, names) -> boolean */
static int allowed(lua_State *L) {
  lampl_state *S = lampl_entered(L);
  ampl_scaler *s = check_scaler(L);
  const uint64_t k = check_key(L);
  const parameters p = check_params(L, 3, "step");
  bool yes;
  lampl_check(L, S, LAMPL_CALL(S, ampl_scaler_step_allowed(s, k, &p.p, &yes)));
  done(L, &p);
  lua_pushboolean(L, yes);
  return 1;
}

static int stepped(lua_State *L) {
  lampl_state *S = lampl_entered(L);
  ampl_scaler *s = check_scaler(L);
  const uint64_t k = check_key(L);
  lampl_check(L, S, LAMPL_CALL(S, ampl_scaler_stepped(s, k)));
  return 0;
}

/* s:found(key) -> the first bad parameter's place, from 1, or nil */
static int found(lua_State *L) {
  lampl_state *S = lampl_entered(L);
  ampl_scaler *s = check_scaler(L);
  const uint64_t k = check_key(L);
  int64_t place;
  lampl_check(L, S, LAMPL_CALL(S, ampl_scaler_found(s, k, &place)));
  if (place < 0) lua_pushnil(L);
  else lua_pushinteger(L, place + 1);
  return 1;
}

/* s:again(key, [params, back_off]) */
static int again(lua_State *L) {
  lampl_state *S = lampl_entered(L);
  ampl_scaler *s = check_scaler(L);
  const uint64_t k = check_key(L);
  const bool given = lua_istable(L, 3), back_off = lua_toboolean(L, 4);
  parameters p = {{NULL, NULL, 0}, 0};
  if (given) p = check_params(L, 3, "step");
  lampl_check(L, S, LAMPL_CALL(S, ampl_scaler_again(s, k, given ? &p.p : NULL, back_off)));
  if (given) done(L, &p);
  return 0;
}

static int skip(lua_State *L) {
  lampl_state *S = lampl_entered(L);
  ampl_scaler *s = check_scaler(L);
  const uint64_t k = check_key(L);
  const parameters p = check_params(L, 3, "step");
  lampl_check(L, S, LAMPL_CALL(S, ampl_scaler_skip(s, k, &p.p)));
  done(L, &p);
  return 0;
}

/* s:update([new_scale]) */
static int update(lua_State *L) {
  lampl_state *S = lampl_entered(L);
  ampl_scaler *s = check_scaler(L);
  const bool given = !lua_isnoneornil(L, 2);
  if (given && lua_type(L, 2) != LUA_TNUMBER) return lampl_wrong(L, 2, "update", "new_scale", "a number");
  const double v = given ? lua_tonumber(L, 2) : 0;
  lampl_check(L, S, LAMPL_CALL(S, given ? ampl_scaler_set_scale(s, v) : ampl_scaler_update(s)));
  return 0;
}

/* ------------------------------------------------------------------------------------------------ state ----------- */

static int get_scale(lua_State *L) {
  lampl_state *S = lampl_entered(L);
  ampl_scaler *s = check_scaler(L);
  double v;
  lampl_check(L, S, LAMPL_CALL(S, ampl_scaler_get_scale(s, &v)));
  lua_pushnumber(L, v);
  return 1;
}

static int state(lua_State *L) {
  lampl_state *S = lampl_entered(L);
  ampl_scaler *s = check_scaler(L);
  ampl_scaler_state st;
  lampl_check(L, S, LAMPL_CALL(S, ampl_scaler_get_state(s, &st)));
  lua_newtable(L);
  for (const field *f = state_fields; f->name; f++) {
    push_field(L, f, &st);
    lua_setfield(L, -2, f->name);
  }
  return 1;
}

/* s:set_state(table) */
static int set_state(lua_State *L) {
  lampl_state *S = lampl_entered(L);
  ampl_scaler *s = check_scaler(L);
  ampl_scaler_options o;
  ampl_scaler_get_options(s, &o);
  ampl_scaler_state st = {.hysteresis_left = o.hysteresis};
  if (!lua_istable(L, 2)) return lampl_wrong(L, 2, "load_state_dict", "the state", "a table");
  for (int i = 0; state_fields[i].name; i++) {
    const field *f = &state_fields[i];
    if (lua_getfield(L, 2, f->name) != LUA_TNIL) {
      read_field(L, f, &st, "load_state_dict");
      continue;
    }
    lua_pop(L, 1);
    if (i < PYTORCH_FIELDS) return lampl_error(L, AMPL_EVALUE, "load_state_dict", "the state has no %s", f->name);
  }
  lampl_check(L, S, LAMPL_CALL(S, ampl_scaler_set_state(s, &st)));
  return 0;
}

static void set_integer(lua_State *L, const char *name, int64_t v) {
  lua_pushinteger(L, v);
  lua_setfield(L, -2, name);
}

static int stats(lua_State *L) {
  ampl_scaler_stats st;
  ampl_scaler_get_stats(check_scaler(L), &st);
  lua_newtable(L);
  set_integer(L, "taken", st.taken);
  set_integer(L, "skipped", st.skipped);
  set_integer(L, "calibrating", st.calibrating);
  set_integer(L, "consecutive_skips", st.consecutive_skips);
  if (!st.skip_step) return 1;
  lua_newtable(L);
  set_integer(L, "step", st.skip_step);
  set_integer(L, "index", st.skip_parameter + 1);
  if (st.skip_name) lua_pushstring(L, st.skip_name);
  else lua_pushinteger(L, st.skip_parameter + 1);
  lua_setfield(L, -2, "parameter");
  lua_pushnumber(L, st.skip_scale);
  lua_setfield(L, -2, "scale");
  lua_setfield(L, -2, "last_skip");
  return 1;
}

void lampl_open_scaler(lua_State *L) {
  static const luaL_Reg methods[] = {
    {"key", key}, {"scale", scale}, {"unscale", unscale}, {"allowed", allowed}, {"stepped", stepped}, {"found", found},
    {"again", again}, {"skip", skip}, {"update", update}, {"get_scale", get_scale}, {"options", options},
    {"set_option", set_option}, {"state", state}, {"set_state", set_state}, {"stats", stats}, {NULL, NULL}};
  lampl_box_metatable(L, METATABLE, methods);
  lua_pushcfunction(L, scaler);
  lua_setfield(L, -2, "scaler");
}
