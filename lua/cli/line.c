/* line.c: reading lines: libedit at a terminal, plain reading elsewhere; history; completion. */
#define _GNU_SOURCE
#include "line.h"

#include <errno.h>
#include <fcntl.h>
#include <histedit.h>
#include <locale.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/select.h>
#include <sys/stat.h>
#include <unistd.h>
#include <wchar.h>

#include <lauxlib.h>

#include "cli.h"

#define HISTORY_MAX 1000                /* lines kept; the file is cut when it has twice as many */

static lua_State *lua;
static EditLine  *editor;               /* NULL: plain reading */
static History   *history_list;
static char       history_path[4096];   /* "": none */
static const char *current_prompt = "";
static volatile sig_atomic_t resized, continued;

/* ------------------------------------------------------------------------------------------------ history --------- */

/* mkdir -p of the folder that `path` stands in, private to the user. */
static void make_folders(char *path) {
  for (char *slash = strchr(path + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
    *slash = 0;
    mkdir(path, 0700);
    *slash = '/';
  }
}

/* $XDG_STATE_HOME/ampl/history, by default in ~/.local/state. */
static void find_history(void) {
  const char *state = getenv("XDG_STATE_HOME"), *home = getenv("HOME");
  int n = -1;
  if (state && state[0] == '/')
    n = snprintf(history_path, sizeof history_path, "%s/ampl/history", state);
  else if (home && home[0] == '/')
    n = snprintf(history_path, sizeof history_path, "%s/.local/state/ampl/history", home);
  if (n < 0 || (size_t)n >= sizeof history_path) history_path[0] = 0;
}

static void enter(const char *line) {
  HistEvent event;
  history(history_list, &event, H_ENTER, line);
}

/* Writes the newest lines to a new file that takes the old one's place. */
static void cut_history(void) {
  char path[sizeof history_path + 8];
  snprintf(path, sizeof path, "%s.new", history_path);
  int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
  FILE *f = fd < 0 ? NULL : fdopen(fd, "w");
  if (!f) return;
  HistEvent event;
  for (int ok = history(history_list, &event, H_LAST); ok >= 0; ok = history(history_list, &event, H_PREV))
    fprintf(f, "%s\n", event.str);
  if (fclose(f) == 0)
    rename(path, history_path);
  else
    unlink(path);
}

static void load_history(void) {
  HistEvent event;
  history(history_list, &event, H_SETSIZE, HISTORY_MAX);
  history(history_list, &event, H_SETUNIQUE, 1);
  FILE *f = history_path[0] ? fopen(history_path, "r") : NULL;
  if (!f) return;
  char *line = NULL;
  size_t cap = 0;
  ssize_t n;
  int lines = 0;
  for (; (n = getline(&line, &cap, f)) > 0; lines++) {
    if (line[n - 1] == '\n') line[n - 1] = 0;
    if (line[0]) enter(line);
  }
  free(line);
  fclose(f);
  if (lines > 2 * HISTORY_MAX) cut_history();
}

/* Each line is appended at once: nothing is lost when the program is killed, or when two run. */
void line_remember(const char *line) {
  if (!editor || !line[0] || line[0] == ' ' || strchr(line, '\n')) return;
  enter(line);
  if (!history_path[0]) return;
  make_folders(history_path);
  int fd = open(history_path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
  FILE *f = fd < 0 ? NULL : fdopen(fd, "w");
  if (!f) return;
  fprintf(f, "%s\n", line);
  fclose(f);
}

/* ------------------------------------------------------------------------------------------------ keys ------------ */

static void on_resize(int sig) {
  (void)sig;
  resized = 1;
}

static void on_continue(int sig) {
  (void)sig;
  continued = 1;
}

static void on(int sig, void (*handler)(int)) {
  struct sigaction a = {.sa_handler = handler};
  sigemptyset(&a.sa_mask);
  sigaction(sig, &a, NULL);
}

/* One byte.  1; 0 at the end; -1 for an error or an interruption.  Ctrl-C counts from before the wait: it is blocked
 * but for the wait itself. */
static int read_byte(EditLine *el, char *c) {
  sigset_t blocked, before;
  sigemptyset(&blocked);
  sigaddset(&blocked, SIGINT);
  sigprocmask(SIG_BLOCK, &blocked, &before);
  int n = -1;
  while (n < 0 && !cli_interrupted()) {
    fd_set set;
    FD_ZERO(&set);
    FD_SET(STDIN_FILENO, &set);
    if (pselect(STDIN_FILENO + 1, &set, NULL, NULL, NULL, &before) > 0) {
      n = (int)read(STDIN_FILENO, c, 1);
      if (n < 0 && errno != EINTR && errno != EAGAIN) break;
    } else if (errno != EINTR) {
      break;
    }
    if (resized) el_resize(el);
    if (continued) {                    /* stopped by Ctrl-Z and back: the shell has changed the terminal's mode */
      el_set(el, EL_PREP_TERM, 1);
      el_set(el, EL_REFRESH);
    }
    resized = continued = 0;
  }
  sigprocmask(SIG_SETMASK, &before, NULL);
  return n;
}

/* One character in the user's encoding; a byte that belongs to none stands for itself. */
static int read_char(EditLine *el, wchar_t *out) {
  mbstate_t state;
  memset(&state, 0, sizeof state);
  for (;;) {
    char c;
    int n = read_byte(el, &c);
    if (n <= 0) return n;
    size_t used = mbrtowc(out, &c, 1, &state);
    if (used == (size_t)-2) continue;
    if (used == (size_t)-1) *out = L'?';
    return 1;
  }
}

static char *prompt(EditLine *el) {
  (void)el;
  return (char *)current_prompt;
}

/* ------------------------------------------------------------------------------------------------ completion ------ */

/* The list at the top of the stack, in columns below the line. */
static void show_candidates(lua_State *L) {
  int n = (int)luaL_len(L, -1), widest = 0, width = 80;
  struct winsize size;
  if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) width = size.ws_col;
  for (int i = 1; i <= n; i++) {
    lua_rawgeti(L, -1, i);
    size_t len;
    lua_tolstring(L, -1, &len);
    if ((int)len > widest) widest = (int)len;
    lua_pop(L, 1);
  }
  int columns = width / (widest + 2) > 0 ? width / (widest + 2) : 1, rows = (n + columns - 1) / columns;
  putchar('\n');
  for (int row = 0; row < rows; row++) {
    for (int i = row; i < n; i += rows) {
      lua_rawgeti(L, -1, i + 1);
      printf("%-*s", i + rows < n ? widest + 2 : 0, lua_tostring(L, -1));
      lua_pop(L, 1);
    }
    putchar('\n');
  }
  fflush(stdout);
}

/* (text) -> what ampl.cli.complete gives for it */
static int candidates(lua_State *L) {
  cli_require(L, "ampl.cli.complete");
  lua_insert(L, 1);
  lua_call(L, 1, 2);
  return 2;
}

/* ampl.cli.complete(text before the cursor) gives what to insert and the candidates. */
static unsigned char complete(EditLine *el, int key) {
  (void)key;
  const LineInfo *info = el_line(el);
  size_t n = (size_t)(info->cursor - info->buffer);
  if (n == 0 || strspn(info->buffer, " \t") >= n)       /* indentation */
    return el_insertstr(el, "  ") < 0 ? CC_ERROR : CC_REFRESH;
  lua_State *L = lua;
  int top = lua_gettop(L);
  unsigned char result = CC_ERROR;
  lua_pushcfunction(L, candidates);
  lua_pushlstring(L, info->buffer, n);
  if (cli_call(L, 1, 2) == LUA_OK && lua_istable(L, -1)) {
    const char *more = lua_tostring(L, -2);
    if (more && more[0]) {
      result = el_insertstr(el, more) < 0 ? CC_ERROR : CC_REFRESH;
    } else if (lua_rawlen(L, -1) > 1) {
      show_candidates(L);
      result = CC_REDISPLAY;
    }
  }
  lua_settop(L, top);
  return result;
}

/* ------------------------------------------------------------------------------------------------ reading --------- */

bool line_interactive(void) { return isatty(STDIN_FILENO); }

void line_begin(lua_State *L, bool rc) {
  lua = L;
  const char *term = getenv("TERM");
  if (!isatty(STDIN_FILENO) || !isatty(STDOUT_FILENO) || !term || !term[0] || strcmp(term, "dumb") == 0) return;
  setlocale(LC_CTYPE, "");              /* for the editor's characters; numbers stay as they are */
  editor = el_init("ampl", stdin, stdout, stderr);
  history_list = history_init();
  if (!editor || !history_list) {
    line_end();
    return;
  }
  find_history();
  load_history();
  el_set(editor, EL_PROMPT, prompt);
  el_set(editor, EL_EDITOR, "emacs");
  el_set(editor, EL_SIGNAL, 0);
  el_set(editor, EL_GETCFN, read_char);
  el_set(editor, EL_HIST, history, history_list);
  el_set(editor, EL_ADDFN, "ampl-complete", "Complete a Lua name", complete);
  el_set(editor, EL_BIND, "^I", "ampl-complete", NULL);
  el_set(editor, EL_BIND, "^R", "em-inc-search-prev", NULL);
  if (rc) el_source(editor, NULL);
  on(SIGWINCH, on_resize);
  on(SIGCONT, on_continue);
}

void line_end(void) {
  if (editor) el_end(editor);
  if (history_list) history_end(history_list);
  editor = NULL;
  history_list = NULL;
}

static line_result read_edited(lua_State *L) {
  int n = 0;
  const char *line = el_gets(editor, &n);
  if (cli_interrupted()) {
    fputs("^C\n", stdout);
    return LINE_INTERRUPTED;
  }
  if (!line || n <= 0) {
    putchar('\n');
    return LINE_END;
  }
  lua_pushlstring(L, line, (size_t)n - (line[n - 1] == '\n'));
  return LINE_OK;
}

static line_result read_plain(lua_State *L) {
  char *line = NULL;
  size_t cap = 0;
  fputs(current_prompt, stdout);
  fflush(stdout);
  ssize_t n = getline(&line, &cap, stdin);
  if (n > 0) lua_pushlstring(L, line, (size_t)n - (line[n - 1] == '\n'));
  free(line);
  if (n > 0) return LINE_OK;
  putchar('\n');
  if (!cli_interrupted()) return LINE_END;
  clearerr(stdin);
  return LINE_INTERRUPTED;
}

line_result line_read(lua_State *L, const char *text) {
  current_prompt = text;
  return editor ? read_edited(L) : read_plain(L);
}
