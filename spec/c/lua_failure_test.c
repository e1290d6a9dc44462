/* lua_failure_test.c: training steps of a CNN, a transformer and an LSTM (spec/support/training_steps.lua) in which the
 * nth allocation of the core fails, the nth of Lua, or an interruption comes at the nth place that looks for one, for
 * every n: the step ends with an error that says so, or as if nothing had been; then nothing is left behind, modes and
 * counting are as before, and the same step gives the same loss.
 *
 *     lua_failure_test [STRIDE]        1: every n, which takes minutes; without: some of them */
#include "ampl_lua.h"
#include "ctx.h"

#include <lauxlib.h>
#include <lualib.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int passed, failed;
static lua_State *L;
static ampl_ctx *ctx;

/* ------------------------------------------------------------------------------------------------ Lua's memory ---- */

static struct { long count, fail_at; bool forever; } lua_memory;

static void *lua_alloc(void *ud, void *p, size_t before, size_t after) {
  (void)ud;
  if (after == 0) {
    free(p);
    return NULL;
  }
  if (lua_memory.fail_at && (!p || after > before)) {   /* what shrinks cannot fail */
    const long n = ++lua_memory.count;
    if (n == lua_memory.fail_at || (lua_memory.forever && n > lua_memory.fail_at)) return NULL;
  }
  return realloc(p, after);
}

/* ------------------------------------------------------------------------------------------------ failures -------- */

typedef struct failure {
  const char *name, *code;              /* of the error object */
  void (*arm)(long n);
  bool (*disarm)(long n);               /* whether it has struck */
} failure;

static void core_once(long n) { ampl_mem_fail_at(ctx, n, false); }
static void core_forever(long n) { ampl_mem_fail_at(ctx, n, true); }
static bool core_disarm(long n) {
  const long left = ctx->fail_at;
  (void)n;
  ampl_mem_fail_at(ctx, 0, false);
  return left <= 1;
}

static void lua_arm(long n, bool forever) {
  lua_memory.count = 0;
  lua_memory.forever = forever;
  lua_memory.fail_at = n;
}
static void lua_once(long n) { lua_arm(n, false); }             /* then Lua collects all it can, and tries again */
static void lua_forever(long n) { lua_arm(n, true); }
static bool lua_disarm(long n) {
  lua_memory.fail_at = 0;
  return lua_memory.count >= n;
}

static void interrupt_arm(long n) { ampl_interrupt_at(ctx, n); }
static bool interrupt_disarm(long n) {
  const long left = atomic_load(&ctx->looks);
  (void)n;
  ampl_interrupt_clear(ctx);
  return left <= 0;
}

static const failure failures[] = {
    {"the core's allocation", "ENOMEM", core_once, core_disarm},
    {"the core's allocation and all after", "ENOMEM", core_forever, core_disarm},
    {"Lua's allocation", "ENOMEM", lua_once, lua_disarm},
    {"Lua's allocation and all after", "ENOMEM", lua_forever, lua_disarm},
    {"interruption", "EINTR", interrupt_arm, interrupt_disarm}};

/* ------------------------------------------------------------------------------------------------ one step -------- */

/* Runs step `name`; its status, and its loss or what its error says. */
static int run(const char *name, double *loss, char *text, size_t size) {
  lua_getglobal(L, "steps");
  lua_getfield(L, -1, name);
  const int status = lua_pcall(L, 0, 1, 0);
  *loss = status == LUA_OK ? lua_tonumber(L, -1) : -1;
  text[0] = 0;
  if (status != LUA_OK && lua_istable(L, -1)) {
    lua_getfield(L, -1, "code");
    snprintf(text, size, "%s", lua_tostring(L, -1) ? lua_tostring(L, -1) : "?");
    lua_pop(L, 1);
  } else if (status != LUA_OK) {
    snprintf(text, size, "%s", lua_tostring(L, -1) ? lua_tostring(L, -1) : luaL_typename(L, -1));
  }
  lua_settop(L, 0);
  return status;
}

static void complain(const char *step, const failure *f, long n, const char *what, const char *more) {
  if (failed++ < 30) printf("%s, %s %ld: %s %s\n", step, f->name, n, what, more);
}

static bool same_memory(const ampl_memory_info *a, ampl_memory_info *now) {
  lua_gc(L, LUA_GCCOLLECT);
  lua_gc(L, LUA_GCCOLLECT);
  ampl_memory(ctx, now);
  return a->live == now->live && a->tensors == now->tensors && a->storages == now->storages && a->nodes == now->nodes;
}

/* What of the context's state is not as between two calls; NULL: nothing. */
static const char *left_changed(void) {
  const ampl_modes *m = ctx->modes;
  if (m != &ctx->own_modes) return "whose modes are used";
  if (m->top || m->regions || m->autocast) return "regions";
  if (!m->grad || m->inference) return "grad or inference mode";
  if (ctx->index_base) return "the index base";
  if (*ctx->op || ctx->composed) return "the op that runs";
  return ctx->whole || ctx->collecting || ctx->releasing ? "a flag of what runs" : NULL;
}

/* The error is ours, with its code; or Lua's own, which is a plain text, made before it was needed. */
static bool error_is(const failure *f, int status, const char *text) {
  return strcmp(text, f->code) == 0 || (f->disarm == lua_disarm && status == LUA_ERRMEM) ||
         (f->disarm == lua_disarm && strstr(text, "not enough memory"));
}

/* false: the step has no nth. */
static bool try_one(const char *step, const failure *f, long n, double wanted, const ampl_memory_info *before) {
  char text[256], more[256];
  double loss;
  ampl_memory_info now;
  const int bad = failed;
  lua_getglobal(L, "steps");            /* interned before memory ends */
  lua_settop(L, 0);
  f->arm(n);
  const int status = run(step, &loss, text, sizeof text);
  if (!f->disarm(n)) return false;
  if (status == LUA_OK && loss != wanted) complain(step, f, n, "another loss", "");
  if (status != LUA_OK && !error_is(f, status, text)) complain(step, f, n, "another error:", text);
  if (left_changed()) complain(step, f, n, "left changed:", left_changed());
  if (!same_memory(before, &now)) {
    snprintf(more, sizeof more, "%zu bytes, %zu tensors, %zu nodes; before %zu, %zu, %zu", now.live, now.tensors,
             now.nodes, before->live, before->tensors, before->nodes);
    complain(step, f, n, "memory is left:", more);
  }
  if (run(step, &loss, text, sizeof text) != LUA_OK || loss != wanted)
    complain(step, f, n, "the same step after it fails, or has another loss:", text);
  if (!same_memory(before, &now)) complain(step, f, n, "memory is left by the step after it", "");
  if (failed == bad) passed++;
  return true;
}

static void try_step(const char *step, long stride) {
  char text[256];
  double first, second;
  ampl_memory_info before;
  if (run(step, &first, text, sizeof text) != LUA_OK || run(step, &second, text, sizeof text) != LUA_OK ||
      first != second) {
    printf("%s: does not run twice alike: %s\n", step, text);
    failed++;
    return;
  }
  same_memory(&(ampl_memory_info){0}, &before);
  for (size_t i = 0; i < sizeof failures / sizeof *failures; i++) {
    long n = 1, tried = 0;
    for (; failed < 100 && try_one(step, &failures[i], n, first, &before); n += stride) tried++;
    printf("%s, %s: %ld of about %ld\n", step, failures[i].name, tried, n);
    fflush(stdout);
  }
}

int main(int argc, char **argv) {
#ifdef __SANITIZE_ADDRESS__
  const long usual = 499;
#else
  const long usual = 61;
#endif
  const long stride = argc > 1 ? atol(argv[1]) : usual;
  L = lua_newstate(lua_alloc, NULL);
  if (!L) return 1;
  luaL_openlibs(L);
  luaL_requiref(L, "ampl", luaopen_ampl, 0);
  lua_settop(L, 0);
  if (luaL_dofile(L, AMPL_SPEC "/support/training_steps.lua") != LUA_OK) {
    printf("%s\n0 passed, 1 failed, 0 skipped\n", luaL_tolstring(L, -1, NULL));
    return 1;
  }
  lua_setglobal(L, "steps");
  ctx = ampl_lua_ctx(L);
  ampl_set_threads(ctx, 1);             /* the order of events is the same each time */
  try_step("cnn", stride < 1 ? 1 : stride);
  try_step("transformer", stride < 1 ? 1 : stride);
  try_step("lstm", stride < 1 ? 1 : stride);
  ampl_ctx_retain(ctx);
  lua_close(L);
  ampl_memory_info end;
  ampl_memory(ctx, &end);
  if (end.live || end.tensors || end.nodes) failed++, printf("memory is left when the state is closed\n");
  ampl_ctx_release(ctx);
  printf("%d passed, %d failed, 0 skipped\n", passed, failed);
  return failed > 0;
}
