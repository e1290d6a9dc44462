/* cli.h: what the files of the program `ampl` share. */
#ifndef AMPL_CLI_H
#define AMPL_CLI_H

#include <lauxlib.h>
#include <lua.h>
#include <stdbool.h>

/* ------------------------------------------------------------------------------------------------ main.c ---------- */

/* Calls the function below its `nargs` arguments with a message handler that turns any error into text with a
 * traceback.  LUA_OK leaves `nresults` results, everything else the text. */
int cli_call(lua_State *L, int nargs, int nresults);

/* Pushes the module; raises. */
void cli_require(lua_State *L, const char *module);

/* Prints "ampl: TEXT" on stderr, with the text at the top of the stack, and pops it. */
void cli_complain(lua_State *L);

/* ------------------------------------------------------------------------------------------------ interrupt.c ----- */

/* From now on SIGINT raises an error of code EINTR in whatever runs, coroutines too.  Replaces coroutine.resume and
 * coroutine.wrap by functions that also note which coroutine runs.  A second SIGINT kills the program, unless
 * `cli_interrupt_keep` was called: then it raises again and again, until nothing runs any more. */
void cli_interrupt_begin(lua_State *L);
void cli_interrupt_keep(void);
/* Back to the default action, for lua_close. */
void cli_interrupt_end(void);

/* Whether SIGINT came since the last cli_interrupt_reset, which also takes back what has not been raised yet. */
bool cli_interrupted(void);
void cli_interrupt_reset(void);

/* ------------------------------------------------------------------------------------------------ repl.c ---------- */

/* Reads, runs and prints until the end of the input.  `rc` false: without the user's editing settings (~/.editrc). */
void cli_repl(lua_State *L, bool rc);

#endif
