/* interrupt.c: Ctrl-C becomes a Lua error, in the coroutine that runs. */
#define _GNU_SOURCE
#include "cli.h"

#include <pthread.h>
#include <signal.h>

#include "ampl_lua.h"

/* Lua offers no way to ask which coroutine runs, and a hook counts only for the one it is set on: so resume and wrap
 * write it down here. */
static lua_State *volatile running;
static ampl_ctx *context;
static pthread_t main_thread;
static volatile sig_atomic_t count;     /* signals since the last reset */
static bool keep;

/* Raises the interruption, unless a call of the library has raised it already. */
static void raise_in_hook(lua_State *L, lua_Debug *ar) {
  (void)ar;
  bool again = keep && count > 1;       /* a chunk that caught the first one is not asked again */
  if (!again) lua_sethook(L, NULL, 0, 0);
  if (!again && !ampl_interrupted(context)) return;
  ampl_interrupt_clear(context);
  ampl_lua_error(L, AMPL_EINTR, "", "interrupted");
}

static void set_hook(lua_State *L) {
  lua_sethook(L, raise_in_hook, LUA_MASKCALL | LUA_MASKRET | LUA_MASKLINE | LUA_MASKCOUNT, 1);
}

static void on_signal(int sig) {
  if (!pthread_equal(pthread_self(), main_thread)) {    /* a kernel thread was chosen to take it */
    pthread_kill(main_thread, sig);
    return;
  }
  count++;
  ampl_interrupt(context);
  if (running) set_hook(running);
}

static void install(void (*handler)(int), int flags) {
  struct sigaction a = {.sa_handler = handler, .sa_flags = flags};
  sigemptyset(&a.sa_mask);
  sigaction(SIGINT, &a, NULL);
}

/* Resumes `co` with the `nargs` values at its top; *nresults are then there.  An interruption that `co` did not live
 * to see goes on in L. */
static int resume(lua_State *L, lua_State *co, int nargs, int *nresults) {
  lua_State *before = running;
  running = co;
  int status = lua_resume(co, L, nargs, nresults);
  running = before;
  if (lua_gethook(co) == raise_in_hook) {
    if (status != LUA_OK && status != LUA_YIELD) lua_sethook(co, NULL, 0, 0);
    if (ampl_interrupted(context) || (keep && count > 1)) set_hook(L);
  }
  return status;
}

/* Moves the arguments over, resumes, moves the results (or the error) back.  The number of results, or -1. */
static int transfer(lua_State *L, lua_State *co, int nargs) {
  int n;
  if (!lua_checkstack(co, nargs)) {
    lua_pushliteral(L, "too many arguments to resume");
    return -1;
  }
  lua_xmove(L, co, nargs);
  int status = resume(L, co, nargs, &n);
  if (status != LUA_OK && status != LUA_YIELD) {
    lua_xmove(co, L, 1);
    return -1;
  }
  if (!lua_checkstack(L, n + 1)) {
    lua_pop(co, n);
    lua_pushliteral(L, "too many results to resume");
    return -1;
  }
  lua_xmove(co, L, n);
  return n;
}

static int co_resume(lua_State *L) {
  luaL_checktype(L, 1, LUA_TTHREAD);
  int n = transfer(L, lua_tothread(L, 1), lua_gettop(L) - 1);
  lua_pushboolean(L, n >= 0);
  if (n < 0) n = 1;
  lua_insert(L, -(n + 1));
  return n + 1;
}

static int co_wrapped(lua_State *L) {
  lua_State *co = lua_tothread(L, lua_upvalueindex(1));
  int n = transfer(L, co, lua_gettop(L));
  if (n >= 0) return n;
  int status = lua_status(co);
  if (status != LUA_OK && status != LUA_YIELD) {        /* it died: its variables are closed, which may raise anew */
    lua_pushvalue(L, -1);
    lua_xmove(L, co, 1);
    status = lua_resetthread(co);
    if (lua_gettop(co) > 0) {
      lua_pop(L, 1);
      lua_xmove(co, L, 1);
    }
  }
  if (lua_type(L, -1) == LUA_TSTRING && status != LUA_ERRMEM) {
    luaL_where(L, 1);
    lua_insert(L, -2);
    lua_concat(L, 2);
  }
  return lua_error(L);
}

static int co_wrap(lua_State *L) {
  luaL_checktype(L, 1, LUA_TFUNCTION);
  lua_State *co = lua_newthread(L);
  lua_pushvalue(L, 1);
  lua_xmove(L, co, 1);
  lua_pushcclosure(L, co_wrapped, 1);
  return 1;
}

void cli_interrupt_begin(lua_State *L) {
  running = L;
  main_thread = pthread_self();
  context = ampl_lua_ctx(L);
  ampl_lua_interrupt_once(L, true);
  lua_getglobal(L, "coroutine");
  lua_pushcfunction(L, co_resume);
  lua_setfield(L, -2, "resume");
  lua_pushcfunction(L, co_wrap);
  lua_setfield(L, -2, "wrap");
  lua_pop(L, 1);
  install(on_signal, SA_RESETHAND);     /* no SA_RESTART: reading from a terminal shall end, too */
}

void cli_interrupt_keep(void) {
  keep = true;
  install(on_signal, 0);
}

void cli_interrupt_end(void) {
  install(SIG_DFL, 0);
  running = NULL;
}

bool cli_interrupted(void) { return count > 0; }

void cli_interrupt_reset(void) {
  lua_sethook(running, NULL, 0, 0);
  ampl_interrupt_clear(context);
  count = 0;
}
