/* scope.c: rings of handles.  Handles made inside a scope are dropped with it, whatever the collector does. */
#include "lampl.h"

static void link_to(lampl_scope *s, lampl_handle *h) {
  h->scope = s;
  h->prev = &s->head;
  h->next = s->head.next;
  s->head.next->prev = h;
  s->head.next = h;
}

static void unlink(lampl_handle *h) {
  h->prev->next = h->next;
  h->next->prev = h->prev;
  h->scope = NULL;
}

void lampl_scope_move(lampl_handle *h, lampl_scope *to) {
  if (h->scope) unlink(h);
  if (to) link_to(to, h);
}

lampl_handle *lampl_push_handle(lua_State *L, lampl_state *S) {
  lampl_handle *h = lua_newuserdatauv(L, sizeof *h, 0);
  h->mark = &lampl_mark_of_handles;
  h->x = NULL;
  h->u.born = S->calls;
  lampl_set_handle_metatable(L);
  link_to(S->thread->scope ? S->thread->scope : &S->root, h);
  return h;
}

/* ------------------------------------------------------------------------------------------------ release --------- */

void lampl_handle_free(lampl_state *S, lampl_handle *h) {
  ampl_tensor *x = h->x;
  h->x = NULL;
  if (!h->scope) return;                /* finalised: it stands in no ring again */
  if (h->scope == &S->late) return;     /* freed already; u.late waits for the call's end */
  if (x && h->u.born < S->running) {    /* it was there before the call that runs: this may read it */
    h->u.late = x;
    lampl_scope_move(h, &S->late);
    return;
  }
  if (h->scope != &S->root) lampl_scope_move(h, &S->root);
  ampl_tensor_release(x);
}

void lampl_release_late(lampl_state *S) {
  while (S->late.head.next != &S->late.head) {
    lampl_handle *h = S->late.head.next;
    ampl_tensor *x = h->u.late;
    lampl_scope_move(h, &S->root);
    ampl_tensor_release(x);
  }
}

static void drop_ring(lampl_state *S, lampl_scope *s) {
  while (s->head.next != &s->head) {
    lampl_handle *h = s->head.next;
    ampl_tensor *x = s == &S->late ? h->u.late : h->x;
    h->x = NULL;
    unlink(h);
    ampl_tensor_release(x);
  }
}

/* ------------------------------------------------------------------------------------------------ scopes ---------- */

static lampl_scope *check_scope(lua_State *L) {
  lampl_scope *s = luaL_testudata(L, 1, "ampl.Scope");
  if (!s) lampl_wrong(L, 1, "scope", "the receiver", "a scope (call the method with a colon: s:close())");
  return s;
}

/* Takes an open scope off its coroutine's stack, wherever it stands there. */
static void take_off(lampl_scope *s) {
  for (lampl_scope **p = &s->thread->scope; *p; p = &(*p)->outer)
    if (*p == s) {
      *p = s->outer;
      break;
    }
  if (s->prev) s->prev->next = s->next;
  else s->thread->S->scopes = s->next;
  if (s->next) s->next->prev = s->prev;
  s->thread = NULL;
}

void lampl_close_scopes(lampl_state *S) {
  while (S->scopes) {
    drop_ring(S, S->scopes);
    take_off(S->scopes);
  }
  drop_ring(S, &S->late);
  drop_ring(S, &S->root);
}

void lampl_orphan_scopes(lampl_thread *t) {
  while (t->scope) {
    lampl_scope *s = t->scope;
    take_off(s);
    while (s->head.next != &s->head) lampl_scope_move(s->head.next, &t->S->root);
  }
}

static int scope_open(lua_State *L) {
  lampl_state *S = lampl_entered(L);
  lampl_scope *s = lua_newuserdatauv(L, sizeof *s, 0);
  *s = (lampl_scope){.outer = S->thread->scope, .thread = S->thread, .next = S->scopes};
  s->head.next = s->head.prev = &s->head;
  luaL_setmetatable(L, "ampl.Scope");
  if (s->next) s->next->prev = s;
  S->scopes = S->thread->scope = s;
  return 1;
}

/* Drops what the scope holds. */
static int scope_close(lua_State *L) {
  lampl_scope *s = check_scope(L);
  if (!s->thread) return 0;
  lampl_state *S = s->thread->S;
  take_off(s);
  while (s->head.next != &s->head) lampl_handle_free(S, s->head.next);
  return 0;
}

/* A scope that was never closed leaves its handles to the collector. */
static int scope_gc(lua_State *L) {
  lampl_scope *s = luaL_testudata(L, 1, "ampl.Scope");
  lampl_state *S = lampl_state_of(L);
  if (!s || !S->ctx) return 0;
  const bool open = s->thread != NULL;
  if (open) take_off(s);
  while (s->head.next != &s->head) lampl_scope_move(s->head.next, &S->root);
  if (open)
    lampl_warn(L, "scope", "a scope was never closed: use `local _ <close> = ampl.scope()`, or ampl.scope(fn)");
  return 0;
}

/* Moves what stands at i, tensors and plain tables of them, to the scope outside of s. */
static void export(lua_State *L, lampl_scope *s, lampl_scope *to, int i, int depth) {
  lampl_handle *h = lampl_test_handle(L, i);
  if (h) {
    if (h->scope == s) lampl_scope_move(h, to);
    return;
  }
  if (!lua_istable(L, i) || depth > 100) return;
  luaL_checkstack(L, 4, "tables are nested too deep");
  for (lua_pushnil(L); lua_next(L, i); lua_pop(L, 1)) export(L, s, to, lua_gettop(L), depth + 1);
}

/* scope:export(...): its arguments, which outlive the scope. */
static int scope_export(lua_State *L) {
  lampl_scope *s = check_scope(L);
  const int n = lua_gettop(L);
  for (int i = 2; i <= n && s->thread; i++) export(L, s, s->outer ? s->outer : &s->thread->S->root, i, 0);
  return n - 1;
}

/* x:keep(): x, which no scope drops. */
static int keep(lua_State *L) {
  lampl_check_tensor(L, 1);
  lampl_scope_move(lua_touserdata(L, 1), &lampl_state_of(L)->root);
  lua_settop(L, 1);
  return 1;
}

void lampl_open_scope(lua_State *L) {
  static const luaL_Reg meta[] = {{"__close", scope_close}, {"__gc", scope_gc}, {NULL, NULL}};
  static const luaL_Reg methods[] = {
      {"close", scope_close}, {"export", scope_export}, {"__close", scope_close}, {"__gc", scope_close}, {NULL, NULL}};
  luaL_newmetatable(L, "ampl.Scope");
  luaL_setfuncs(L, meta, 0);
  luaL_newlib(L, methods);
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
