/* scope.c: scopes: handles made inside one are dropped with it, whatever the collector does. */
#include "lampl.h"

struct lampl_scope {
  lampl_handle  head;                   /* of a ring: head.next is the newest */
  lampl_scope  *outer;
  lampl_thread *thread;                 /* whose stack of scopes it stands on; NULL: closed */
};

static void link_to(lampl_scope *s, lampl_handle *h) {
  h->scope = s;
  h->prev = &s->head;
  h->next = s->head.next;
  s->head.next->prev = h;
  s->head.next = h;
}

void lampl_scope_unlink(lampl_handle *h) {
  if (!h->scope) return;
  h->prev->next = h->next;
  h->next->prev = h->prev;
  h->scope = NULL;
}

lampl_handle *lampl_push_handle(lua_State *L, lampl_state *S) {
  lampl_handle *h = lua_newuserdatauv(L, sizeof *h, 0);
  h->x = NULL;
  h->scope = NULL;
  lampl_set_handle_metatable(L);
  if (S->thread && S->thread->scope) link_to(S->thread->scope, h);
  return h;
}

/* Takes the scope off its coroutine's stack, wherever it stands there, and drops what it holds. */
static void close_scope(lampl_scope *s) {
  if (!s->thread) return;
  for (lampl_scope **p = &s->thread->scope; *p; p = &(*p)->outer)
    if (*p == s) {
      *p = s->outer;
      break;
    }
  s->thread = NULL;
  while (s->head.next != &s->head) {
    lampl_handle *h = s->head.next;
    lampl_scope_unlink(h);
    lampl_handle_free(h);
  }
}

static int scope_open(lua_State *L) {
  lampl_state *S = lampl_switch(L);
  lampl_scope *s = lua_newuserdatauv(L, sizeof *s, 1);
  s->head.next = s->head.prev = &s->head;
  s->outer = S->thread->scope;
  s->thread = S->thread;
  S->thread->scope = s;
  luaL_setmetatable(L, "ampl.Scope");
  lua_pushthread(L);                    /* the record of the coroutine lives as long as the coroutine */
  lua_setiuservalue(L, -2, 1);
  return 1;
}

static int scope_close(lua_State *L) {
  close_scope(luaL_checkudata(L, 1, "ampl.Scope"));
  return 0;
}

/* At __gc: a scope that was never closed leaves its handles to the collector. */
static int scope_gc(lua_State *L) {
  lampl_scope *s = luaL_checkudata(L, 1, "ampl.Scope");
  if (!s->thread) return 0;
  while (s->head.next != &s->head) lampl_scope_unlink(s->head.next);
  for (lampl_scope **p = &s->thread->scope; *p; p = &(*p)->outer)
    if (*p == s) {
      *p = s->outer;
      break;
    }
  s->thread = NULL;
  return 0;
}

/* Moves what stands at i, tensors and plain tables of them, to the scope outside of s. */
static void export(lua_State *L, lampl_scope *s, int i, int depth) {
  lampl_handle *h = lampl_test_handle(L, i);
  if (h) {
    if (!h->scope) return;
    lampl_scope_unlink(h);
    if (s->outer) link_to(s->outer, h);
    return;
  }
  if (!lua_istable(L, i) || depth > 100) return;
  luaL_checkstack(L, 4, "tables are nested too deep");
  for (lua_pushnil(L); lua_next(L, i); lua_pop(L, 1)) export(L, s, lua_gettop(L), depth + 1);
}

/* scope:export(...): its arguments, which outlive the scope. */
static int scope_export(lua_State *L) {
  lampl_scope *s = luaL_checkudata(L, 1, "ampl.Scope");
  const int n = lua_gettop(L);
  for (int i = 2; i <= n && s->thread; i++) export(L, s, i, 0);
  return n - 1;
}

/* x:keep(): x, which no scope drops. */
static int keep(lua_State *L) {
  lampl_check_tensor(L, 1);
  lampl_scope_unlink(lua_touserdata(L, 1));
  lua_settop(L, 1);
  return 1;
}

void lampl_open_scope(lua_State *L) {
  static const luaL_Reg methods[] = {
      {"close", scope_close}, {"export", scope_export}, {"__close", scope_close}, {"__gc", scope_gc}, {NULL, NULL}};
  luaL_newmetatable(L, "ampl.Scope");
  luaL_setfuncs(L, methods, 0);
  lua_pushvalue(L, -1);
  lua_setfield(L, -2, "__index");
  lampl_hide_metatable(L);
  lua_pop(L, 1);
  lua_pushcfunction(L, scope_open);
  lua_setfield(L, -2, "scope_open");
  lua_getfield(L, -1, "methods");
  lua_pushcfunction(L, keep);
  lua_setfield(L, -2, "keep");
  lua_pop(L, 1);
}
