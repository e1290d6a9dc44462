/* repl.c: the interactive prompt: read, run, print. */
#include "cli.h"

#include <stdio.h>
#include <string.h>

#include "line.h"

/* ------------------------------------------------------------------------------------------------ reading --------- */

static int prompt_text(lua_State *L) {
  luaL_tolstring(L, 1, NULL);
  return 1;
}

/* Pushes the prompt: the global _PROMPT or _PROMPT2 if there is one.  Nothing that globals do ends the loop. */
static const char *push_prompt(lua_State *L, bool first) {
  lua_pushcfunction(L, prompt_text);
  lua_pushglobaltable(L);
  lua_pushstring(L, first ? "_PROMPT" : "_PROMPT2");
  const bool own = lua_rawget(L, -2) != LUA_TNIL;
  lua_remove(L, -2);
  if (own && cli_call(L, 1, 1) == LUA_OK && lua_isstring(L, -1)) return lua_tostring(L, -1);
  if (own) cli_complain(L);
  else lua_pop(L, 2);
  return lua_pushstring(L, first ? "> " : ">> ");
}

static line_result read_line(lua_State *L, bool first) {
  line_result r = line_read(L, push_prompt(L, first));
  if (r == LINE_OK) {
    lua_remove(L, -2);
    line_remember(lua_tostring(L, -1));
  } else {
    lua_pop(L, 1);
  }
  return r;
}

/* Whether an error text says that more is to come. */
static bool is_incomplete(lua_State *L, int status) {
  size_t n;
  const char *text = lua_tolstring(L, -1, &n);
  return status == LUA_ERRSYNTAX && n >= 5 && strcmp(text + n - 5, "<eof>") == 0;
}

/* The text at 1 as an expression: "return TEXT", less a leading `=` and a trailing `;`. */
static int load_expression(lua_State *L) {
  const char *text = lua_tostring(L, 1);
  text += strspn(text, " \t\r\n");
  if (text[0] == '=') text++;
  size_t n = strlen(text);
  while (n > 0 && strchr("; \t\r\n", text[n - 1])) n--;
  const char *chunk = lua_pushfstring(L, "return %s", text);
  int status = luaL_loadbufferx(L, chunk, strlen("return ") + n, "=stdin", "t");
  lua_remove(L, -2);
  return status;
}

/* Compiles the text at 1, without running it: the function or the error text is pushed.  *more: the text is only the
 * beginning of something. */
static int compile(lua_State *L, bool *more) {
  size_t n;
  const char *text = lua_tolstring(L, 1, &n);
  int status = load_expression(L);
  *more = is_incomplete(L, status);
  if (status == LUA_OK) return status;
  lua_pop(L, 1);
  status = luaL_loadbufferx(L, text, n, "=stdin", "t");
  *more = status != LUA_OK && (*more || is_incomplete(L, status));
  return status;
}

/* What one entry is. */
typedef struct entry {
  bool quiet;                   /* ends with `;` */
  bool local;                   /* begins with `local` */
} entry;

static entry look_at(const char *text) {
  text += strspn(text, " \t\r\n");
  size_t n = strlen(text);
  while (n > 0 && strchr(" \t\r\n", text[n - 1])) n--;
  return (entry){.quiet = n > 0 && text[n - 1] == ';', .local = strncmp(text, "local ", 6) == 0};
}

/* Reads until what was read is a whole chunk or wrong.  LINE_OK leaves the function or the error text, at 1. */
static line_result read_chunk(lua_State *L, int *status, entry *e) {
  line_result r = read_line(L, true);           /* the text so far is at 1 */
  while (r == LINE_OK) {
    bool more;
    *status = compile(L, &more);
    if (!more) break;
    r = read_line(L, false);
    if (r == LINE_END) r = LINE_OK, more = false;       /* this is all there is, and the text at 2 says what is wrong */
    if (r != LINE_OK || !more) break;
    lua_pushliteral(L, "\n");
    lua_replace(L, 2);
    lua_concat(L, 3);
  }
  if (r != LINE_OK) return r;
  *e = look_at(lua_tostring(L, 1));
  lua_remove(L, 1);
  return r;
}

/* ------------------------------------------------------------------------------------------------ printing -------- */

/* ampl.cli.show(quiet, ...): prints the values and keeps the last one in the global `_`. */
static int show_all(lua_State *L) {
  const int n = lua_gettop(L);
  cli_require(L, "ampl.cli.show");
  lua_insert(L, 1);
  lua_call(L, n, 0);
  return 0;
}

static void show(lua_State *L, int n, bool quiet) {
  if (!lua_checkstack(L, n + 8)) {
    lua_settop(L, 0);
    lua_pushliteral(L, "too many results to print");
    cli_complain(L);
    return;
  }
  lua_pushcfunction(L, show_all);
  lua_insert(L, -(n + 1));
  lua_pushboolean(L, quiet);
  lua_insert(L, -(n + 1));
  if (cli_call(L, n + 1, 0) != LUA_OK) cli_complain(L);
}

static int help(lua_State *L) {
  luaL_checkany(L, 1);
  cli_require(L, "ampl");
  lua_getfield(L, -1, "help");
  lua_pushvalue(L, 1);
  lua_call(L, 1, 1);
  printf("%s\n", luaL_tolstring(L, -1, NULL));
  return 0;
}

/* ------------------------------------------------------------------------------------------------ the loop -------- */

void cli_repl(lua_State *L, bool rc) {
  bool told = false;
  lua_register(L, "help", help);
  cli_interrupt_keep();
  line_begin(L, rc);
  for (;;) {
    int status = LUA_OK;
    entry e = {0};
    lua_settop(L, 0);
    cli_interrupt_reset();
    line_result r = read_chunk(L, &status, &e);
    if (r == LINE_END) break;
    if (r == LINE_INTERRUPTED) continue;
    if (status == LUA_OK) status = cli_call(L, 0, LUA_MULTRET);
    if (status != LUA_OK) {
      if (cli_interrupted()) putchar('\n');     /* the terminal has written ^C */
      cli_complain(L);
      continue;
    }
    if (lua_gettop(L) > 0) show(L, lua_gettop(L), e.quiet);
    if (e.local && !told && line_interactive()) {
      puts("(a local is gone after its line; leave out `local` to keep the value)");
      told = true;
    }
  }
  fflush(stdout);
  line_end();
}
