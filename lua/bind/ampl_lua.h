/* ampl_lua.h: ampl for a C host that has a Lua state of its own.
 *
 *   luaL_requiref(L, "ampl", luaopen_ampl, 0);  lua_pop(L, 1);
 *
 * Context and state may be closed in either order; several states may share a context, each with modes and callbacks
 * of its own.  A hook or Function of a state that was closed is an error (ESTATE) in backward.
 *
 * Link with ampl::lua (its Lua parts are inside). */
#ifndef AMPL_LUA_H
#define AMPL_LUA_H

#include "ampl.h"

#include <lua.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Opens the module `ampl`; its C part alone is `ampl.core`. */
AMPL_API int luaopen_ampl(lua_State *L);
AMPL_API int luaopen_ampl_core(lua_State *L);

/* The context that the state uses, lent; NULL before luaopen_ampl. */
AMPL_API ampl_ctx *ampl_lua_ctx(lua_State *L);
/* The modes (no_grad, autocast ...) of coroutine L, for C functions that shall compute as the script around them does:
 * ampl_modes_use(ctx, ampl_lua_modes(L)).  Otherwise they have the context's own.  NULL before luaopen_ampl. */
AMPL_API ampl_modes *ampl_lua_modes(lua_State *L);
/* Makes luaopen_ampl, when it is called, use `ctx` and take a reference of it, instead of making one.  false: too
 * late. */
AMPL_API bool      ampl_lua_set_ctx(lua_State *L, ampl_ctx *ctx);

/* Pushes x, with a reference of its own; nil for NULL.  Raises when Lua is out of memory. */
AMPL_API void         ampl_lua_push(lua_State *L, ampl_tensor *x);
/* The tensor at `index`, lent as long as the value lives; NULL when there is none or it was freed. */
AMPL_API ampl_tensor *ampl_lua_to(lua_State *L, int index);

/* Raises an error object {code, message, op, where, traceback}, as ampl's own functions do.  Does not return. */
AMPL_API int ampl_lua_error(lua_State *L, ampl_status code, const char *op, const char *message);

/* How an interruption (ampl_interrupt) ends: false, as at first, when the host calls ampl_interrupt_clear; true when it
 * has been raised once as an error, which a script may then catch. */
AMPL_API void ampl_lua_interrupt_once(lua_State *L, bool once);

/* Whether `name` is a Lua module inside ampl ("ampl.nn.Linear"). */
AMPL_API bool ampl_lua_has_module(const char *name);

#ifdef __cplusplus
}
#endif
#endif
