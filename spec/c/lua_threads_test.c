/* lua_threads_test.c: many contexts in many threads, each with a Lua state of its own that runs the steps of
 * spec/support/training_steps.lua, with one kernel thread and with the pool that all of them share, while another
 * thread interrupts them at chance: every step that is not interrupted gives the loss that it gives alone.  States are
 * opened and closed all the time: what is made once in a process is first used by several threads at once.  For the
 * thread sanitizer (scripts/test thread), and good without.
 *
 *     lua_threads_test [ROUNDS] */
#include "ampl_lua.h"

#include <lauxlib.h>
#include <lualib.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { THREADS = 5, STEPS = 4, INTERRUPTIONS = 60 };

static const char *const names[STEPS] = {"cnn", "transformer", "lstm", "wide"};

typedef struct worker {
  pthread_t id;
  ampl_ctx *ctx;
  int       kernel_threads, steps, interrupted, faults;
  double    loss[STEPS];
  char      text[256];
} worker;

static atomic_int running;

/* ------------------------------------------------------------------------------------------------ a worker -------- */

static void complain(worker *w, const char *what, const char *more) {
  if (!w->faults++) snprintf(w->text, sizeof w->text, "%s: %s", what, more);
}

static lua_State *open_state(worker *w) {
  lua_State *L = luaL_newstate();
  if (!L) return NULL;
  luaL_openlibs(L);
  ampl_lua_set_ctx(L, w->ctx);
  luaL_requiref(L, "ampl", luaopen_ampl, 0);
  lua_settop(L, 0);
  if (luaL_dofile(L, AMPL_SPEC "/support/training_steps.lua") == LUA_OK) return L;
  complain(w, "the steps do not load", luaL_tolstring(L, -1, NULL));
  lua_close(L);
  return NULL;
}

/* Runs step i, again when it was interrupted; its loss, -1: it failed otherwise. */
static double run(worker *w, lua_State *L, int i) {
  for (;;) {
    lua_settop(L, 1);
    lua_getfield(L, 1, names[i]);
    if (lua_pcall(L, 0, 1, 0) == LUA_OK) return lua_tonumber(L, -1);
    ampl_interrupt_clear(w->ctx);
    const bool ours = lua_istable(L, -1) && lua_getfield(L, -1, "code") == LUA_TSTRING;
    if (!ours || strcmp(lua_tostring(L, -1), "EINTR") != 0) {
      complain(w, names[i], luaL_tolstring(L, -1, NULL));
      return -1;
    }
    w->interrupted++;
  }
}

static void *work(void *ud) {
  worker *w = ud;
  ampl_set_threads(w->ctx, w->kernel_threads);
  for (int opened = 0; opened < 2 && !w->faults; opened++) {
    lua_State *L = NULL;
    for (int tries = 0; !L && tries < 50 && !w->faults; tries++) {
      ampl_interrupt_clear(w->ctx);
      L = open_state(w);
      if (!L && strstr(w->text, "EINTR")) w->faults = 0;       /* it was interrupted while it loaded */
    }
    for (int i = 0; L && i < STEPS; i++) {
      const double loss = run(w, L, i);
      if (w->loss[i] != 0 && loss != w->loss[i] && !w->faults) complain(w, names[i], "another loss");
      w->loss[i] = loss;
      w->steps++;
    }
    if (L) lua_close(L);
  }
  atomic_fetch_sub(&running, 1);
  return NULL;
}

/* ------------------------------------------------------------------------------------------------ rounds ---------- */

static int passed, failed;

static void pause_ms(int ms) { nanosleep(&(struct timespec){0, ms * 1000000l}, NULL); }

/* All at once; with `disturb` they are interrupted meanwhile, so many times that they still come to an end. */
static void together(worker *w, int n, bool disturb) {
  unsigned state = 1;
  atomic_store(&running, n);
  for (int i = 0; i < n; i++) pthread_create(&w[i].id, NULL, work, &w[i]);
  for (int k = 0; disturb && k < INTERRUPTIONS && atomic_load(&running) > 0; k++) {
    state = state * 1664525 + 1013904223;
    ampl_interrupt(w[(state >> 16) % (unsigned)n].ctx);
    pause_ms(15);
  }
  for (int i = 0; i < n; i++) pthread_join(w[i].id, NULL);
}

static void round_of(int kernel_threads, bool disturb) {
  worker w[THREADS] = {0};
  for (int i = 0; i < THREADS; i++) {
    w[i].kernel_threads = kernel_threads;
    if (ampl_ctx_new(NULL, &w[i].ctx) != AMPL_OK) {
      printf("no context: %s\n", ampl_error_message(NULL));
      failed++;
      return;
    }
  }
  together(w, THREADS, disturb);
  int interrupted = 0;
  for (int i = 0; i < THREADS; i++) {
    ampl_memory_info m;
    ampl_memory(w[i].ctx, &m);
    bool same = true;
    for (int k = 0; k < STEPS; k++) same &= w[i].loss[k] == w[0].loss[k] && w[i].loss[k] > 0;
    if (w[i].faults) printf("thread %d: %s\n", i, w[i].text);
    if (!same) printf("thread %d: other losses\n", i);
    if (m.live || m.tensors || m.nodes) printf("thread %d: memory is left\n", i);
    if (w[i].faults || !same || m.live || m.tensors || m.nodes) failed++;
    else passed++;
    interrupted += w[i].interrupted;
    ampl_ctx_release(w[i].ctx);
  }
  printf("%d threads, %d for kernels: %d interruptions\n", THREADS, kernel_threads, interrupted);
}

int main(int argc, char **argv) {
  const int rounds = argc > 1 ? atoi(argv[1]) : 1;
  for (int i = 0; i < rounds; i++) {
    round_of(1, false);
    round_of(4, false);
    round_of(1, true);
    round_of(4, true);
  }
  printf("%d passed, %d failed, 0 skipped\n", passed, failed);
  return failed > 0;
}
