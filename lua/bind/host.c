/* host.c: what ampl_lua.h offers to a C host. */
#include "ampl_lua.h"
#include "lampl.h"

ampl_ctx *ampl_lua_ctx(lua_State *L) {
  lampl_state *S = lampl_state_of(L);
  return S ? S->ctx : NULL;
}

bool ampl_lua_set_ctx(lua_State *L, ampl_ctx *ctx) {
  if (lampl_state_of(L)) return false;
  lua_pushlightuserdata(L, ctx);
  lua_setfield(L, LUA_REGISTRYINDEX, LAMPL_GIVEN_CTX);
  return true;
}

ampl_modes *ampl_lua_modes(lua_State *L) {
  lampl_state *S = lampl_state_of(L);
  if (!S) return NULL;
  lampl_enter(L, S);
  return S->thread->guest.modes;
}

void ampl_lua_push(lua_State *L, ampl_tensor *x) { lampl_push_lent(L, x); }

ampl_tensor *ampl_lua_to(lua_State *L, int index) {
  lampl_handle *h = lampl_state_of(L) ? lampl_test_handle(L, index) : NULL;
  return h ? h->x : NULL;
}

int ampl_lua_error(lua_State *L, ampl_status code, const char *op, const char *message) {
  return lampl_error(L, code, op, "%s", message);
}

void ampl_lua_interrupt_once(lua_State *L, bool once) {
  lampl_state *S = lampl_state_of(L);
  if (S) S->interrupt_once = once;
}
