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

typedef struct lampl_scope  lampl_scope;
typedef struct lampl_state  lampl_state;
typedef struct lampl_thread lampl_thread;

/* A Lua userdata: one tensor, one reference.  Every handle stands in the ring of a scope: of a user's, or of the
 * state's `root` (it lives until it is collected) or `late`. */
typedef struct lampl_handle {
  const char          *mark;            /* &lampl_mark_of_handles: no other library's userdata has it */
  ampl_tensor         *x;               /* NULL: freed */
  struct lampl_handle *prev, *next;
  lampl_scope         *scope;           /* NULL: finalised */
  union {
    uint64_t     born;                  /* the calls there had been when it was made */
    ampl_tensor *late;                  /* in the ring `late`: released when no call runs that may read it */
  } u;
} lampl_handle;

struct lampl_scope {
  lampl_handle  head;                   /* of the ring: head.next is the newest */
  lampl_scope  *outer;
  lampl_thread *thread;                 /* whose stack of scopes it stands on; NULL: closed, or the state's own */
  lampl_scope  *prev, *next;            /* of the state's open scopes */
};

/* What belongs to one coroutine: its modes and its innermost scope. */
struct lampl_thread {
  ampl_guest    guest;                  /* as which it calls; guest.modes NULL: the record is finalised */
  lampl_state  *S;
  lampl_scope  *scope;
  lampl_thread *prev, *next;            /* of the state's records */
};

/* A Lua value for what the core made for it: released at its finaliser or with the state. */
typedef struct lampl_box {
  void             *p;                  /* NULL: released */
  void            (*release)(void *p);
  struct lampl_box *prev, *next;
} lampl_box;

/* Whether a state is open, for what may outlive it. */
typedef struct lampl_life { int refs; lampl_state *S; } lampl_life;

/* What belongs to one Lua state, in its registry. */
struct lampl_state {
  ampl_ctx     *ctx;                    /* NULL: closed */
  lua_State    *L, *main;               /* the coroutine that called last, which the registry holds; the first one */
  lampl_thread *thread;                 /* of L */
  ampl_guest   *before;                 /* whose call the running one is in */
  uint64_t      calls, running, outer;  /* numbers of calls: the last, the innermost that runs, the one around it */
  bool          pressed;                /* the next entry collects */
  bool          failed;                 /* a callback raised: its error object waits in the registry */
  bool          interrupt_once; /* an interruption is over when it has been raised, as the program `ampl` wants it */
  lampl_scope   root, late, *scopes;
  lampl_thread *threads;
  lampl_box    *boxes;
  ampl_guest    guest;                  /* as which it has joined the context */
  lampl_life   *life;
  const ampl_op *to, *select;             /* ops that the binding calls itself */
};

lampl_state *lampl_state_of(lua_State *L);

/* The slow parts of lampl_enter: another coroutine than last time; a collection is due. */
void lampl_switch(lua_State *L, lampl_state *S);
void lampl_collect(lua_State *L, lampl_state *S);

/* To be called first by every function that calls the core: S->thread is L's. */
static inline void lampl_enter(lua_State *L, lampl_state *S) {
  S->running = S->outer;                /* where reading arguments ended by an error of memory */
  if (S->L != L) lampl_switch(L, S);
  if (S->pressed) lampl_collect(L, S);
}
/* The state of L, entered. */
lampl_state *lampl_entered(lua_State *L);

/* lampl_mark: from now on what is there is not released, as in a call of the core; it ends with that call, or by
 * lampl_end_parsing.
 *
 * One call of the core: LAMPL_CALL(S, ampl_backward(x, NULL, 0)), its status.  Around it, and only there, the context
 * has the coroutine's modes and counts from 1; no Lua error can come out of it.  While it runs, what was there before
 * it is not released, whatever finalisers and callbacks do. */
#define LAMPL_CALL(S, call) (lampl_begin(S), lampl_end(S, call))
/* The same for what has no status: lampl_begin(S), calls, lampl_end(S, AMPL_OK). */
static inline void lampl_mark(lampl_state *S) { S->running = ++S->calls; }
static inline void lampl_end_parsing(lampl_state *S) { S->running = S->outer; }
static inline void lampl_begin(lampl_state *S) {
  S->running = ++S->calls;
  S->before = ampl_guest_enter(S->ctx, &S->thread->guest);
}
void lampl_release_late(lampl_state *S);
static inline ampl_status lampl_end(lampl_state *S, ampl_status s) {
  S->pressed = ampl_guest_leave(S->ctx, S->before);
  S->running = S->outer;
  if (!S->running && S->late.head.next != &S->late.head) lampl_release_late(S);
  return s;
}

/* A callback: between the two, Lua code runs inside a call of the core, or outside of any; L is what it runs on. */
typedef struct lampl_pause {
  lua_State    *L;
  lampl_thread *thread;
  ampl_guest   *before, *guest;
  uint64_t      running, outer;
} lampl_pause;
lua_State *lampl_pause_call(lampl_state *S, lampl_pause *p);
void       lampl_resume_call(lampl_state *S, const lampl_pause *p);

/* Warns as the core does: through ampl.on_warning's function, else Lua's warn. */
void lampl_warn(lua_State *L, const char *code, const char *message);

/* Pushes the record of the coroutine that calls. */
void lampl_push_thread(lua_State *L);

/* Pushes a box without contents yet, of the metatable `name`. */
lampl_box *lampl_push_box(lua_State *L, lampl_state *S, const char *name, void (*release)(void *p));
void       lampl_box_release(lampl_box *b);
/* Makes the metatable `name` for boxes, with `methods` (or NULL) as the __index. */
void       lampl_box_metatable(lua_State *L, const char *name, const luaL_Reg *methods);

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
/* The handle at `i`, or NULL when there is no tensor there.  Every operand is asked: a look-up of its metatable would
 * cost more than the rest of reading it. */
extern const char lampl_mark_of_handles;
static inline lampl_handle *lampl_test_handle(lua_State *L, int i) {
  lampl_handle *h = lua_touserdata(L, i);
  return h && lua_rawlen(L, i) == sizeof *h && h->mark == &lampl_mark_of_handles ? h : NULL;
}
/* The tensor at `i`; raises EARG or EFREED, naming the argument. */
ampl_tensor  *lampl_check_tensor(lua_State *L, int i);
/* Gives the handle's tensor back: at once, or, where a running call may read it, after that. */
void          lampl_handle_free(lampl_state *S, lampl_handle *h);
/* Moves the handle to another ring. */
void          lampl_scope_move(lampl_handle *h, lampl_scope *to);
/* Whether the C function that runs was called by the collector. */
bool          lampl_finalising(lua_State *L);
/* The coroutine is gone: its open scopes leave their handles to the collector. */
void          lampl_orphan_scopes(lampl_thread *t);
/* Empties all rings: the state is closed. */
void          lampl_close_scopes(lampl_state *S);

/* Raises the context's error when s is not OK. */
void lampl_check(lua_State *L, lampl_state *S, ampl_status s);
/* Raises the context's error. */
int  lampl_raise(lua_State *L, lampl_state *S, ampl_status s);
/* nil, message, code of the context's error: for what the environment refuses. */
int  lampl_fail(lua_State *L, lampl_state *S, ampl_status s);
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
#define LAMPL_LIST_MAX (1 << 24)        /* entries of a list of tensors */
/* What a message says where no dtype stands at i: the names there are, or the one that is meant. */
size_t lampl_no_dtype(lua_State *L, int i, char *text, size_t n);
/* The tensors of a list, retained: the table may change while they are used. */
typedef struct lampl_tensors { int n; ampl_tensor *v[]; } lampl_tensors;
/* The list of tensors at `i` (or one tensor); a box that holds it is pushed.  `holes`: entries may be absent. */
lampl_tensors *lampl_check_tensors(lua_State *L, int i, const char *op, bool holes);

/* Writes on at text[at], in n bytes with the closing zero; what does not fit is cut off.  Where the text ends now. */
size_t      lampl_append(char *text, size_t n, size_t at, const char *fmt, ...) AMPL_PRINTF(4, 5);
/* What a message says of the value at i: "a tensor", "\"relu\"", "a table" ... */
const char *lampl_shown(lua_State *L, int i, char *text, size_t n);
/* A __concat of the texts of both operands. */
int lampl_concat(lua_State *L);
#define LAMPL_SHOWN 96
/* Raises EARG: `what` must be `wanted`, not what stands at i. */
int         lampl_wrong(lua_State *L, int i, const char *op, const char *what, const char *wanted);
/* The string at i; raises EARG. */
const char *lampl_check_string(lua_State *L, int i, const char *op, const char *what);
/* true or false at i, nil and nothing for `otherwise`; raises EARG. */
bool        lampl_check_boolean(lua_State *L, int i, const char *op, const char *what, int otherwise);
/* The integer at i; raises EARG. */
int64_t     lampl_check_integer(lua_State *L, int i, const char *op, const char *what);

/* Pushes the module `name` of ampl's own, whatever has become of the globals. */
void        lampl_require(lua_State *L, const char *name);

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
