/* main.c: the program `ampl`: options, the table `arg`, scripts, exit codes.  Used as the program `lua` is. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <lualib.h>

#include "ampl_lua.h"
#include "cli.h"

enum { EXIT_OK = 0, EXIT_FAILED = 1, EXIT_USAGE = 2, EXIT_INTERRUPTED = 130 };

/* In the registry: require, whatever has become of the globals. */
#define REQUIRE "ampl.cli.require"

static const char *const help =
  "usage: ampl [options] [script [args]]\n"
  "       ampl COMMAND [args]\n"
  "Runs a Lua script with the deep-learning engine ampl at hand, as the global `ampl`.\n"
  "Without a script: the interactive prompt at a terminal, else the standard input as a script.\n"
  "\n"
  "  -e STAT      execute the string STAT\n"
  "  -l MOD       require the module MOD into the global MOD; -l g=MOD into the global g\n"
  "  -i           the interactive prompt after the script\n"
  "  -v           show the version\n"
  "  -E           ignore the environment (AMPL_INIT, LUA_PATH, LUA_CPATH, ~/.editrc)\n"
  "  -W           turn warnings on\n"
  "  -            the standard input as the script\n"
  "  --           end of the options\n"
  "  --devices    what ampl can compute on, and why not on more\n"
  "  --version    the version\n"
  "  --help       this text\n"
  "\n"
  "  ampl doctor                      what ampl finds on this machine, and whether it computes rightly here\n"
  "  ampl inspect FILE.safetensors    what is in a file of weights\n";

/* ------------------------------------------------------------------------------------------------ calls ----------- */

void cli_require(lua_State *L, const char *module) {
  lua_getfield(L, LUA_REGISTRYINDEX, REQUIRE);
  lua_pushstring(L, module);
  lua_call(L, 1, 1);
}

/* (error) -> its text */
static int error_text(lua_State *L) {
  if (lua_isstring(L, 1) || luaL_getmetafield(L, 1, "__tostring") != LUA_TNIL) luaL_tolstring(L, 1, NULL);
  else lua_pushfstring(L, "(error object is a %s value)", luaL_typename(L, 1));
  return 1;
}

/* (error, text) -> the name that is near, the colon that is missing, or nil */
static int hint(lua_State *L) {
  cli_require(L, "ampl.cli.hint");
  lua_insert(L, 1);
  lua_call(L, 2, 1);
  return 1;
}

/* (error) -> its text, a hint, where it came from.  All that may fail itself is protected: an error in here would be
 * handled by this again. */
static int message_handler(lua_State *L) {
  lua_settop(L, 1);
  lua_pushcfunction(L, error_text);
  lua_pushvalue(L, 1);
  if (lua_pcall(L, 1, 1, 0) != LUA_OK || !lua_isstring(L, 2)) {
    lua_settop(L, 1);
    lua_pushfstring(L, "(error object is a %s value whose __tostring fails)", luaL_typename(L, 1));
  }
  lua_pushcfunction(L, hint);
  lua_pushvalue(L, 1);
  lua_pushvalue(L, 2);
  const bool more = lua_pcall(L, 2, 1, 0) == LUA_OK && lua_isstring(L, 3);
  const char *text = more ? lua_pushfstring(L, "%s (%s)", lua_tostring(L, 2), lua_tostring(L, 3)) : lua_tostring(L, 2);
  lua_pushliteral(L, "traceback");
  if (lua_type(L, 1) == LUA_TTABLE && lua_rawget(L, 1) == LUA_TSTRING)
    lua_pushfstring(L, "%s\n%s", text, lua_tostring(L, -1));    /* of where it was raised first */
  else luaL_traceback(L, L, text, 1);
  return 1;
}

int cli_call(lua_State *L, int nargs, int nresults) {
  int base = lua_gettop(L) - nargs;
  lua_pushcfunction(L, message_handler);
  lua_insert(L, base);
  int status = lua_pcall(L, nargs, nresults, base);
  lua_remove(L, base);
  return status;
}

void cli_complain(lua_State *L) {
  fflush(stdout);
  const char *text = lua_tostring(L, -1);
  fprintf(stderr, "ampl: %s\n", text ? text : "(error without a text)");
  lua_pop(L, 1);
}

/* Runs what luaL_load... has left below the `nargs` arguments: a chunk if `status` is LUA_OK, else the text why not. */
static bool run(lua_State *L, int status, int nargs) {
  if (status == LUA_OK) status = cli_call(L, nargs, 0);
  if (status != LUA_OK) cli_complain(L);
  return status == LUA_OK;
}

/* ------------------------------------------------------------------------------------------------ options --------- */

typedef struct options {
  int  script;                          /* place in argv; argc when there is none */
  bool stat, lib, interactive, version, bare;
} options;

static int usage(const char *format, const char *what) {
  fprintf(stderr, "ampl: ");
  fprintf(stderr, format, what);
  fprintf(stderr,
          "\nusage: ampl [-e STAT] [-l MOD] [-i] [-v] [-E] [-W] [--devices] [--version] [--help] [script [args]]\n");
  return EXIT_USAGE;
}

/* Options that take a string: "-eSTAT" or "-e" "STAT".  Steps *i past it. */
static const char *option_value(char **argv, int *i) {
  return argv[*i][2] ? argv[*i] + 2 : argv[++*i];
}

/* Looks at all options before anything is done.  Exit code, or -1 to go on. */
static int read_options(int argc, char **argv, options *o) {
  int i = 1;
  for (; i < argc && argv[i][0] == '-' && argv[i][1]; i++) {
    const char *a = argv[i];
    if (strcmp(a, "--") == 0) {
      i++;
      break;
    }
    if (strcmp(a, "--help") == 0) {
      fputs(help, stdout);
      return EXIT_OK;
    }
    if (strcmp(a, "--version") == 0) {
      printf("ampl %s\n", ampl_version());
      return EXIT_OK;
    }
    if (strcmp(a, "--devices") == 0) {
      o->stat = true;
      continue;
    }
    if (a[1] == '-') return usage("unknown option '%s'", a);
    if (strchr("ivEW", a[1]) && a[2]) return usage("unknown option '%s'", a);
    switch (a[1]) {
      case 'i': o->interactive = o->version = true; break;
      case 'v': o->version = true; break;
      case 'E': o->bare = true; break;
      case 'W': break;
      case 'e':
      case 'l':
        if (!option_value(argv, &i)) return usage("'%s' needs an argument", a);
        if (a[1] == 'e') o->stat = true;
        break;
      default: return usage("unknown option '%s'", a);
    }
  }
  o->script = i < argc ? i : argc;
  return -1;
}

/* require(module); global = what it gives. */
static bool load_library(lua_State *L, const char *spec) {
  const char *equals = strchr(spec, '='), *module = equals ? equals + 1 : spec;
  lua_getfield(L, LUA_REGISTRYINDEX, REQUIRE);
  lua_pushstring(L, module);
  if (cli_call(L, 1, 1) != LUA_OK) {
    cli_complain(L);
    return false;
  }
  lua_pushlstring(L, spec, equals ? (size_t)(equals - spec) : strlen(spec));
  lua_insert(L, -2);
  lua_pushglobaltable(L);
  lua_insert(L, -3);
  lua_settable(L, -3);
  lua_pop(L, 1);
  return true;
}

static bool run_string(lua_State *L, const char *text, const char *name) {
  return run(L, luaL_loadbufferx(L, text, strlen(text), name, "t"), 0);
}

/* What there is to compute on, and what was refused, and why. */
static void list_devices(void) {
  const char *name, *why;
  for (int i = 0; (name = ampl_device_name(i)); i++) printf("%s\n", name);
  for (int i = 0; ampl_backend_candidate(i, &name, &why); i++)
    if (why[0]) printf("refused: %s: %s\n", name, why);
}

/* -e, -l, -W and --devices, in their order. */
static bool run_options(lua_State *L, char **argv, int last) {
  for (int i = 1; i < last; i++) {
    const char *a = argv[i], *value;
    switch (a[1]) {
      case 'e':
        value = option_value(argv, &i);
        if (!run_string(L, value, "=(command line)")) return false;
        break;
      case 'l':
        value = option_value(argv, &i);
        if (!load_library(L, value)) return false;
        break;
      case 'W': lua_warning(L, "@on", 0); break;
      case '-':
        if (strcmp(a, "--devices") == 0) list_devices();
        break;
      default: break;
    }
  }
  return true;
}

/* ------------------------------------------------------------------------------------------------ scripts --------- */

/* The global `arg`: the script at 0, what follows from 1, what stands before below 0. */
static void make_arg(lua_State *L, int argc, char **argv, int script) {
  if (script == argc) script = 0;
  lua_createtable(L, argc - script, script + 1);
  for (int i = 0; i < argc; i++) {
    lua_pushstring(L, argv[i]);
    lua_rawseti(L, -2, i - script);
  }
  lua_setglobal(L, "arg");
}

/* `ampl report DIR`: a word that names one of ampl's own commands, which are the modules ampl.command.WORD. */
static bool is_command(lua_State *L, const char *word) {
  bool found = ampl_lua_has_module(lua_pushfstring(L, "ampl.command.%s", word));
  lua_pop(L, 1);
  return found;
}

/* Requires the command's module, which returns a function. */
static int load_command(lua_State *L, const char *word) {
  lua_getfield(L, LUA_REGISTRYINDEX, REQUIRE);
  lua_pushfstring(L, "ampl.command.%s", word);
  return cli_call(L, 1, 1);
}

static bool run_script(lua_State *L, int argc, char **argv, const options *o) {
  const char *name = argv[o->script];
  bool literal = strcmp(argv[o->script - 1], "--") == 0;
  int status;
  if (!literal && is_command(L, name))
    status = load_command(L, name);
  else
    status = luaL_loadfile(L, !literal && strcmp(name, "-") == 0 ? NULL : name);
  int nargs = argc - o->script - 1;
  if (status == LUA_OK) {
    luaL_checkstack(L, nargs + 3, "too many arguments to the script");
    for (int i = 1; i <= nargs; i++) lua_pushstring(L, argv[o->script + i]);
  }
  return run(L, status, nargs);
}

static bool run_init(lua_State *L) {
  const char *init = getenv("AMPL_INIT");
  if (!init) return true;
  if (init[0] == '@') return run(L, luaL_loadfile(L, init + 1), 0);
  return run_string(L, init, "=AMPL_INIT");
}

/* ------------------------------------------------------------------------------------------------ main ------------ */

typedef struct job {
  int      argc;
  char   **argv;
  options *options;
  bool     ok;
} job;

static void open_libraries(lua_State *L, bool bare) {
  if (bare) {                           /* package reads this instead of LUA_PATH and LUA_CPATH */
    lua_pushboolean(L, 1);
    lua_setfield(L, LUA_REGISTRYINDEX, "LUA_NOENV");
  }
  lua_gc(L, LUA_GCSTOP);
  luaL_openlibs(L);
  luaL_requiref(L, "ampl", luaopen_ampl, 1);
  lua_getglobal(L, "require");
  lua_setfield(L, LUA_REGISTRYINDEX, REQUIRE);
  lua_settop(L, 0);
  lua_gc(L, LUA_GCRESTART);
  /* The generational collector does not see that a small handle holds a large tensor. */
  lua_gc(L, LUA_GCINC, 130, 400, 0);     /* a handle is small, what it holds is not: collect sooner than Lua would */
}

static int protected_main(lua_State *L) {
  job *j = lua_touserdata(L, 1);
  options *o = j->options;
  luaL_checkversion(L);
  open_libraries(L, o->bare);
  make_arg(L, j->argc, j->argv, o->script);
  cli_interrupt_begin(L);
  if (!o->bare && !run_init(L)) return 0;
  if (!run_options(L, j->argv, o->script)) return 0;
  bool script = o->script < j->argc, terminal = isatty(STDIN_FILENO);
  if (script && !run_script(L, j->argc, j->argv, o)) return 0;
  if (o->interactive || (!script && !o->stat && !o->version && terminal)) {
    if (!o->version) printf("ampl %s, %s\n", ampl_version(), LUA_RELEASE);
    cli_repl(L, !o->bare);
  } else if (!script && !o->stat && !o->version) {
    if (!run(L, luaL_loadfile(L, NULL), 0)) return 0;
  }
  j->ok = true;
  return 0;
}

int main(int argc, char **argv) {
  options o = {0};
  int code = read_options(argc, argv, &o);
  if (code >= 0) return code;
  if (o.version) printf("ampl %s, %s\n", ampl_version(), LUA_RELEASE);
  lua_State *L = luaL_newstate();
  if (!L) {
    fprintf(stderr, "ampl: not enough memory for Lua\n");
    return EXIT_FAILED;
  }
  job j = {argc, argv, &o, false};
  lua_pushcfunction(L, protected_main);
  lua_pushlightuserdata(L, &j);
  if (lua_pcall(L, 1, 0, 0) != LUA_OK) cli_complain(L);
  bool interrupted = cli_interrupted();
  cli_interrupt_end();
  lua_close(L);
  if ((fflush(stdout) != 0 || ferror(stdout)) && j.ok) {
    fprintf(stderr, "ampl: the standard output could not be written\n");
    j.ok = false;
  }
  return j.ok ? EXIT_OK : interrupted ? EXIT_INTERRUPTED : EXIT_FAILED;
}
