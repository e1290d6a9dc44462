/* lampl.h: what the files of the Lua binding share.
 *
 * The binding is an ordinary client of ampl.h.  The order of every function is: check arguments, push empty result
 * handles, make one call into the core, then, and only then, raise. */
#ifndef LAMPL_H
#define LAMPL_H

#include "ampl.h"

#include <lauxlib.h>
#include <lua.h>

/* How the names of ampl's own Lua sources begin. */
#define LAMPL_OWN_SOURCE "[ampl]"
/* In the registry: the context that a host has given (ampl_lua_set_ctx). */
#define LAMPL_GIVEN_CTX "ampl.given_ctx"

typedef struct lampl_scope lampl_scope;

/* A Lua userdata: one tensor, one reference. */
typedef struct lampl_handle {
  ampl_tensor         *x;               /* NULL: freed */
  struct lampl_handle *prev, *next;     /* in the list of its scope */
  lampl_scope         *scope;           /* NULL: it lives until it is collected */
} lampl_handle;

/* What belongs to one coroutine: its modes and its innermost scope. */
typedef struct lampl_thread {
  ampl_modes  *modes;                   /* NULL: the context's own */
  ampl_ctx    *ctx;
  lampl_scope *scope;
} lampl_thread;

/* What belongs to one Lua state, in its registry. */
typedef struct lampl_state {
  ampl_ctx     *ctx;
  const ampl_op *to, *select;           /* ops that the binding calls itself */
  lua_State    *L;                      /* whose modes are in use */
  lampl_thread *thread;                 /* of L */
  bool          failed;                 /* a callback raised: its error object waits in the registry */
  bool interrupt_once; /* an interruption is over when it has been raised, as the program `ampl` wants it */
} lampl_state;

lampl_state *lampl_state_of(lua_State *L);
ampl_ctx    *lampl_ctx(lua_State *L);

/* To be called first by every function that runs an op: the coroutine's modes, a collection where one is due, counting
 * from 1.  lampl_leave ends it. */
void lampl_enter(lua_State *L, lampl_state *S);
void lampl_leave(lampl_state *S);
/* For functions that look at modes and run no op: the state, with the coroutine's modes in use. */
lampl_state *lampl_switch(lua_State *L);

/* Pushes a handle without a tensor yet; the current scope keeps it. */
lampl_handle *lampl_push_handle(lua_State *L, lampl_state *S);
/* Scripts see the name of the metatable on top of the stack in its place: its functions trust their arguments. */
void          lampl_hide_metatable(lua_State *L);
/* Makes the userdata on top of the stack a handle. */
void          lampl_set_handle_metatable(lua_State *L);
/* Pushes a list of n integers, which prints as one. */
void          lampl_push_sizes(lua_State *L, int n, const int64_t *v);
/* Whether the table at `i` is data and no object: without a metatable, or with one that only shows it. */
bool          lampl_is_plain(lua_State *L, int i);
/* Pushes x, whose reference it takes; nil for NULL. */
void          lampl_push_tensor(lua_State *L, ampl_tensor *x);
/* Pushes x, with a reference of its own; nil for NULL. */
void          lampl_push_lent(lua_State *L, ampl_tensor *x);
/* The handle at `i`, or NULL when there is no tensor there. */
lampl_handle *lampl_test_handle(lua_State *L, int i);
/* The tensor at `i`; raises EARG or EFREED, naming the argument. */
ampl_tensor  *lampl_check_tensor(lua_State *L, int i);
void          lampl_handle_free(lampl_handle *h);
void          lampl_scope_unlink(lampl_handle *h);

/* Raises the context's error when s is not OK.  Leaves the state first. */
void lampl_check(lua_State *L, lampl_state *S, ampl_status s);
/* Raises the context's error. */
int  lampl_raise(lua_State *L, ampl_status s);
/* nil, message, code of the context's error: for what the environment refuses. */
int  lampl_fail(lua_State *L, ampl_status s);
/* Raises an error of the binding's own. */
int  lampl_error(lua_State *L, ampl_status s, const char *op, const char *fmt, ...) AMPL_PRINTF(4, 5);
/* Keeps the error object on top of the stack (and pops it) to be raised, unchanged, when the core has returned. */
ampl_status lampl_keep_error(lua_State *L, lampl_state *S);
/* "train.lua:12: " of the innermost Lua function, or "". */
void lampl_where(lua_State *L, char *text, size_t n);

/* A dtype's name at `i`; raises EDTYPE listing them. */
ampl_dtype lampl_check_dtype(lua_State *L, int i, const char *op);
/* An integer, or an integral float, at `i`. */
bool       lampl_to_integer(lua_State *L, int i, int64_t *out);
/* The entries of the list at `i` up to the first hole, and the last one's place: larger where there is a hole. */
int64_t    lampl_list_length(lua_State *L, int i, int64_t *last);
/* The list of tensors at `i` (or one tensor) as an array on Lua's stack (a userdata is pushed). */
ampl_tensor **lampl_check_tensors(lua_State *L, int i, const char *op, int *n);

/* The parts of the module: each adds its functions to the table on top of the stack. */
void lampl_open_error(lua_State *L);
void lampl_open_sizes(lua_State *L);
void lampl_open_tensor(lua_State *L);
void lampl_open_make(lua_State *L);
void lampl_open_ops(lua_State *L);
void lampl_open_grad(lua_State *L);
void lampl_open_scope(lua_State *L);
void lampl_open_system(lua_State *L);
void lampl_open_archive(lua_State *L);
void lampl_open_scaler(lua_State *L);

#endif
