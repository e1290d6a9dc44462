/* embed_lua.c: a C host with a Lua state of its own: its scripts train, its C code lends memory and reads the results.
 *
 * cc host.c $(pkg-config --cflags --libs ampl-lua)
 * CMake: find_package(ampl REQUIRED)  target_link_libraries(host ampl::lua lua5.4) */
#include <ampl_lua.h>
#include <lauxlib.h>
#include <lualib.h>
#include <stdio.h>

static const char *const script =
  "local ampl = require 'ampl'\n"
  "local x, y = ...\n"
  "local model = ampl.nn.Linear(1, 1)\n"
  "local opt = ampl.optim.SGD(model, {lr = 0.1})\n"
  "for step = 1, 200 do\n"
  "  local _ <close> = ampl.scope()\n"
  "  opt:zero_grad()\n"
  "  ampl.nn.functional.mse_loss(model(x), y):backward()\n"
  "  opt:step()\n"
  "end\n"
  "return ampl.cat({model.weight:flatten(), model.bias}, 1):detach()\n";

static void released(void *ud) { puts(ud); }

int main(void) {
  static float points[] = {-1, -0.5f, 0, 0.5f, 1}, values[] = {-1, 0, 1, 2, 3};         /* y = 2 x + 1 */
  lua_State *L = luaL_newstate();
  luaL_openlibs(L);
  luaL_requiref(L, "ampl", luaopen_ampl, 0);
  lua_pop(L, 1);

  ampl_ctx *ctx = ampl_lua_ctx(L);
  ampl_tensor *x, *y;
  if (ampl_from_memory(ctx, AMPL_F32, 2, (int64_t[]){5, 1}, points, released, "points are ours again", &x) != AMPL_OK ||
      ampl_from_memory(ctx, AMPL_F32, 2, (int64_t[]){5, 1}, values, released, "values are ours again", &y) != AMPL_OK)
    return 1;
  int status = luaL_loadstring(L, script);
  ampl_lua_push(L, x);
  ampl_lua_push(L, y);
  ampl_tensor_release(x);
  ampl_tensor_release(y);
  if (status != LUA_OK || lua_pcall(L, 2, 1, 0) != LUA_OK) {
    fprintf(stderr, "%s\n", luaL_tolstring(L, -1, NULL));
    return 1;
  }
  float line[2];
  if (ampl_to_bytes(ampl_lua_to(L, -1), line, sizeof line) != AMPL_OK) return 1;
  printf("y = %.3f x + %.3f\n", line[0], line[1]);
  lua_close(L);
  return 0;
}
