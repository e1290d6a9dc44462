/* state.c: what belongs to a Lua state: its coroutines, the calls that run, callbacks, what must go with it. */
#include "state.h"

#include <stdlib.h>
#include <string.h>

static const char state_key = 0, threads_key = 0, current_key = 0;

lampl_state *lampl_state_of(lua_State *L) {
  lua_rawgetp(L, LUA_REGISTRYINDEX, &state_key);
  lampl_state *S = lua_touserdata(L, -1);
  lua_pop(L, 1);
  return S;
}

lampl_state *lampl_entered(lua_State *L) {
  lampl_state *S = lampl_state_of(L);
  lampl_enter(L, S);
  return S;
}

/* ------------------------------------------------------------------------------------------------ coroutines ------ */

static void thread_close(lampl_thread *t) {
  if (!t->guest.modes) return;
  lampl_orphan_scopes(t);
  ampl_modes_free(t->S->ctx, t->guest.modes);
  t->guest.modes = NULL;
  if (t->prev) t->prev->next = t->next;
  else t->S->threads = t->next;
  if (t->next) t->next->prev = t->prev;
}

static int thread_gc(lua_State *L) {
  lampl_thread *t = luaL_testudata(L, 1, "ampl.Thread");
  if (t && t != t->S->thread) thread_close(t);
  return 0;
}

static void collect(void *ud);
static void warn(void *ud, const char *code, const char *message);
static void where(void *ud, char *text, size_t n);

/* A new record for coroutine L, pushed. */
static lampl_thread *new_thread(lua_State *L, lampl_state *S) {
  lampl_thread *t = lua_newuserdatauv(L, sizeof *t, 0);
  *t = (lampl_thread){.S = S, .guest = {.index_base = 1, .warn = warn, .where = where, .ud = S}};
  if (ampl_modes_new(S->ctx, &t->guest.modes) != AMPL_OK) lampl_raise(L, S, AMPL_ENOMEM);
  t->next = S->threads;
  if (t->next) t->next->prev = t;
  S->threads = t;
  luaL_setmetatable(L, "ampl.Thread");
  return t;
}

/* The record of coroutine L, made at its first call; weak keys, so it goes with the coroutine. */
static lampl_thread *thread_of(lua_State *L, lampl_state *S) {
  luaL_checkstack(L, 8, "ampl");
  lua_rawgetp(L, LUA_REGISTRYINDEX, &threads_key);
  lua_pushthread(L);
  lua_rawget(L, -2);
  lampl_thread *t = lua_touserdata(L, -1);
  if (!t || !t->guest.modes) {          /* none yet, or one that was finalised together with the coroutine */
    lua_pop(L, 1);
    t = new_thread(L, S);
    lua_pushthread(L);
    lua_pushvalue(L, -2);
    lua_rawset(L, -4);
  }
  lua_pop(L, 2);
  return t;
}

void lampl_push_thread(lua_State *L) {
  lua_rawgetp(L, LUA_REGISTRYINDEX, &threads_key);
  lua_pushthread(L);
  lua_rawget(L, -2);
  lua_remove(L, -2);
}

/* The registry holds L while it is S->L: nothing else is ever found at its address.  The key is there already. */
static void hold_current(lua_State *L) {
  lua_pushthread(L);
  lua_rawsetp(L, LUA_REGISTRYINDEX, &current_key);
}

void lampl_switch(lua_State *L, lampl_state *S) {
  if (!S->ctx) lampl_error(L, AMPL_ESTATE, "", "ampl is closed: its Lua state is ending");
  lampl_thread *t = thread_of(L, S);
  hold_current(L);
  S->thread = t;
  S->L = L;
}

void lampl_collect(lua_State *L, lampl_state *S) {
  S->pressed = false;
  if (!ampl_memory_pressed(S->ctx)) return;
  lua_gc(L, LUA_GCCOLLECT);
  lampl_enter(L, S);                    /* finalisers may have run on another coroutine */
  ampl_memory_collected(S->ctx);
}

/* ------------------------------------------------------------------------------------------------ callbacks ------- */

lua_State *lampl_pause_call(lampl_state *S, lampl_pause *p) {
  *p = (lampl_pause){S->L, S->thread, S->before, NULL, S->running, S->outer};
  S->outer = S->running;
  p->guest = ampl_guest_enter(S->ctx, NULL);
  return S->running ? S->L : S->main;   /* the coroutine that called last may be asleep */
}

void lampl_resume_call(lampl_state *S, const lampl_pause *p) {
  if (!S->ctx) return;
  ampl_guest_leave(S->ctx, p->guest);
  S->before = p->before;
  S->running = p->running;
  S->outer = p->outer;
  if (!S->running || S->L == p->L) return;
  hold_current(p->L);                   /* it is on the C stack: its record lives */
  S->L = p->L;
  S->thread = p->thread;
}

static void collect(void *ud) {
  lampl_state *S = ud;
  lampl_pause p;
  if (!lua_checkstack(S->main, LUA_MINSTACK) || !lua_checkstack(S->L ? S->L : S->main, LUA_MINSTACK)) return;
  lua_gc(lampl_pause_call(S, &p), LUA_GCCOLLECT);
  lampl_resume_call(S, &p);
}

static void where(void *ud, char *text, size_t n) {
  lampl_state *S = ud;
  lampl_where(S->L, text, n);           /* a guest is asked during its calls only */
}

typedef struct warning { const char *code, *message; } warning;

static int push_warning(lua_State *L) {
  const warning *w = lua_touserdata(L, 1);
  if (lua_getfield(L, LUA_REGISTRYINDEX, "ampl.on_warning") != LUA_TFUNCTION) {
    lua_warning(L, "ampl: ", 1);
    lua_warning(L, w->message, 0);
    return 0;
  }
  lua_createtable(L, 0, 2);
  lua_pushstring(L, w->code);
  lua_setfield(L, -2, "code");
  lua_pushstring(L, w->message);
  lua_setfield(L, -2, "message");
  lua_call(L, 1, 0);
  return 0;
}

void lampl_warn(lua_State *L, const char *code, const char *message) {
  warning w = {code, message};
  if (!lua_checkstack(L, LUA_MINSTACK)) return;
  lua_pushcfunction(L, push_warning);
  lua_pushlightuserdata(L, &w);
  if (lua_pcall(L, 1, 0, 0) != LUA_OK) lua_pop(L, 1);
}

static void warn(void *ud, const char *code, const char *message) {
  lampl_state *S = ud;
  lampl_pause p;
  lua_State *L = lampl_pause_call(S, &p);
  lampl_warn(L, code, message);
  lampl_resume_call(S, &p);
}

/* ------------------------------------------------------------------------------------------------ boxes ----------- */

lampl_box *lampl_push_box(lua_State *L, lampl_state *S, const char *name, void (*release)(void *p)) {
  lampl_box *b = lua_newuserdatauv(L, sizeof *b, 0);
  *b = (lampl_box){.release = release, .next = S->boxes};
  if (b->next) b->next->prev = b;
  S->boxes = b;
  luaL_setmetatable(L, name);
  return b;
}

void lampl_box_release(lampl_box *b) {
  void *p = b->p;
  b->p = NULL;
  if (p) b->release(p);
}

/* Upvalue: the state. */
static int box_gc(lua_State *L) {
  lampl_state *S = lua_touserdata(L, lua_upvalueindex(1));
  lampl_box *b = lua_touserdata(L, 1);
  lua_pushvalue(L, lua_upvalueindex(2));
  if (!b || !lua_getmetatable(L, 1) || !lua_rawequal(L, -1, -2) || !b->release) return 0;
  if (S->running && !lampl_finalising(L)) return 0;     /* by hand, maybe by a callback of a call that uses it */
  lampl_box_release(b);
  b->release = NULL;
  if (b->prev) b->prev->next = b->next;
  else S->boxes = b->next;
  if (b->next) b->next->prev = b->prev;
  return 0;
}

void lampl_box_metatable(lua_State *L, const char *name, const luaL_Reg *methods) {
  luaL_newmetatable(L, name);
  lua_pushlightuserdata(L, lampl_state_of(L));
  lua_pushvalue(L, -2);
  lua_pushcclosure(L, box_gc, 2);
  lua_setfield(L, -2, "__gc");
  if (methods) {
    lua_newtable(L);
    luaL_setfuncs(L, methods, 0);
    lua_setfield(L, -2, "__index");
  }
  lampl_hide_metatable(L);
  lua_pop(L, 1);
}

/* ------------------------------------------------------------------------------------------------ state ----------- */

/* Of a state's finalisers this one runs last: what others have made since, and nobody will collect, is dropped here. */
static int state_gc(lua_State *L) {
  lampl_state *S = luaL_testudata(L, 1, "ampl.State");
  if (!S || !S->ctx || S->running) return 0;
  ampl_guest_part(S->ctx, &S->guest);
  if (S->life) {
    S->life->S = NULL;
    lampl_life_release(S->life);
  }
  lampl_close_scopes(S);
  while (S->threads) thread_close(S->threads);
  for (lampl_box *b = S->boxes, *next; b; b = next) {
    next = b->next;
    lampl_box_release(b);
    b->release = NULL;
  }
  S->boxes = NULL;
  ampl_ctx_release(S->ctx);             /* tensors that the host holds keep it alive */
  S->ctx = NULL;
  S->L = NULL;
  S->thread = NULL;
  return 0;
}

void lampl_life_release(lampl_life *life) {
  if (--life->refs == 0) free(life);
}

static void state_metatable(lua_State *L, const char *name, lua_CFunction gc) {
  luaL_newmetatable(L, name);
  lua_pushcfunction(L, gc);
  lua_setfield(L, -2, "__gc");
  lampl_hide_metatable(L);
  lua_pop(L, 1);
}

static void empty_ring(lampl_scope *s) { s->head.next = s->head.prev = &s->head; }

void lampl_open_state(lua_State *L) {
  state_metatable(L, "ampl.State", state_gc);
  state_metatable(L, "ampl.Thread", thread_gc);
  lampl_state *S = lua_newuserdatauv(L, sizeof *S, 0);
  *S = (lampl_state){.guest = {.warn = warn, .collect = collect, .ud = S},
                     .to = ampl_op_find("to"),
                     .select = ampl_op_find("select")};
  empty_ring(&S->root);
  empty_ring(&S->late);
  luaL_setmetatable(L, "ampl.State");
  lua_rawgeti(L, LUA_REGISTRYINDEX, LUA_RIDX_MAINTHREAD);
  S->main = lua_tothread(L, -1);
  lua_getfield(L, LUA_REGISTRYINDEX, LAMPL_GIVEN_CTX);
  ampl_ctx *given = lua_touserdata(L, -1);
  lua_pop(L, 2);
  if (given) ampl_ctx_retain(S->ctx = given);
  else if (ampl_ctx_new(NULL, &S->ctx) != AMPL_OK) luaL_error(L, "%s", ampl_error_message(NULL));
  ampl_guest_join(S->ctx, &S->guest);
  if (!(S->life = malloc(sizeof *S->life))) luaL_error(L, "ampl: out of memory");
  *S->life = (lampl_life){1, S};
  lua_rawsetp(L, LUA_REGISTRYINDEX, &state_key);
  lua_newtable(L);
  lua_createtable(L, 0, 1);
  lua_pushliteral(L, "k");
  lua_setfield(L, -2, "__mode");
  lua_setmetatable(L, -2);
  lua_rawsetp(L, LUA_REGISTRYINDEX, &threads_key);
  hold_current(L);
}
