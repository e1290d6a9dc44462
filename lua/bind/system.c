/* system.c: memory, random stream, threads, devices, settings of the CPU. */
#include "lampl.h"

#include <string.h>
#include <time.h>

/* memory() -> {live, peak, cached, limit, tensors, storages, nodes, kinds = {...}} */
static int memory(lua_State *L) {
  static const char *const kinds[] = {
#define AMPL_X(NAME, name) #name,
      AMPL_KIND_MAP(AMPL_X)
#undef AMPL_X
  };
  ampl_memory_info m;
  ampl_memory(lampl_entered(L)->ctx, &m);
  const struct {
    const char *name;
    size_t n;
  } row[] = {{"live", m.live},       {"peak", m.peak},         {"cached", m.cached}, {"limit", m.limit},
             {"tensors", m.tensors}, {"storages", m.storages}, {"nodes", m.nodes}};
  lua_createtable(L, 0, 8);
  for (size_t i = 0; i < sizeof row / sizeof *row; i++)
    lua_pushinteger(L, (lua_Integer)row[i].n), lua_setfield(L, -2, row[i].name);
  lua_createtable(L, 0, AMPL_KIND_COUNT);
  for (int k = 0; k < AMPL_KIND_COUNT; k++)
    lua_pushinteger(L, (lua_Integer)m.by_kind[k]), lua_setfield(L, -2, kinds[k]);
  lua_setfield(L, -2, "kinds");
  return 1;
}

static int reset_peak_memory(lua_State *L) { return ampl_memory_reset_peak(lampl_entered(L)->ctx), 0; }
static int trim_memory(lua_State *L) { return ampl_memory_trim(lampl_entered(L)->ctx), 0; }

/* memory_limit([bytes]) -> the limit that holds */
static int memory_limit(lua_State *L) {
  ampl_memory_info m;
  int64_t n;
  char text[LAMPL_SHOWN];
  if (!lua_isnoneornil(L, 1)) {
    if (!lampl_to_integer(L, 1, &n) || n < 1)
      return lampl_error(L, AMPL_EVALUE, "memory_limit", "the limit is a positive number of bytes, not %s",
                         lampl_shown(L, 1, text, sizeof text));
    ampl_memory_set_limit(lampl_entered(L)->ctx, (size_t)n);
  }
  ampl_memory(lampl_entered(L)->ctx, &m);
  lua_pushinteger(L, (lua_Integer)m.limit);
  return 1;
}

static int manual_seed(lua_State *L) {
  const int64_t n = lampl_check_integer(L, 1, "manual_seed", "the seed");
  ampl_manual_seed(lampl_entered(L)->ctx, (uint64_t)n);
  return 0;
}

static int get_rng_state(lua_State *L) {
  uint64_t seed, offset;
  ampl_random_state(lampl_entered(L)->ctx, &seed, &offset);
  lua_createtable(L, 0, 2);
  lua_pushinteger(L, (lua_Integer)seed), lua_setfield(L, -2, "seed");
  lua_pushinteger(L, (lua_Integer)offset), lua_setfield(L, -2, "offset");
  return 1;
}

static int set_rng_state(lua_State *L) {
  int64_t seed = 0, offset = 0;
  bool ok = lua_istable(L, 1);
  if (ok) {
    lua_getfield(L, 1, "seed");
    lua_getfield(L, 1, "offset");
    ok = lampl_to_integer(L, -2, &seed) && lampl_to_integer(L, -1, &offset);
  }
  if (!ok) return lampl_error(L, AMPL_EARG, "set_rng_state", "a table {seed =, offset =} from get_rng_state is needed");
  ampl_set_random_state(lampl_entered(L)->ctx, (uint64_t)seed, (uint64_t)offset);
  return 0;
}

static int set_num_threads(lua_State *L) {
  int64_t n;
  char text[LAMPL_SHOWN];
  if (!lampl_to_integer(L, 1, &n) || n < 1 || n > 4096)
    return lampl_error(L, AMPL_EVALUE, "set_num_threads", "a number of threads from 1 to 4096 is needed, not %s",
                       lampl_shown(L, 1, text, sizeof text));
  ampl_set_threads(lampl_entered(L)->ctx, (int)n);
  return 0;
}

static int get_num_threads(lua_State *L) { return lua_pushinteger(L, ampl_threads(lampl_entered(L)->ctx)), 1; }

/* devices() -> {"cpu", ...}, {{name = file, why = reason or nil}, ...} */
static int devices(lua_State *L) {
  const char *name, *why;
  lua_newtable(L);
  for (int i = 0; i < ampl_device_count(); i++) lua_pushstring(L, ampl_device_name(i)), lua_rawseti(L, -2, i + 1);
  lua_newtable(L);
  for (int i = 0; ampl_backend_candidate(i, &name, &why); i++) {
    lua_createtable(L, 0, 2);
    lua_pushstring(L, name), lua_setfield(L, -2, "name");
    if (*why) lua_pushstring(L, why), lua_setfield(L, -2, "why");
    lua_rawseti(L, -2, i + 1);
  }
  return 2;
}

static int is_available(lua_State *L) {
  const char *name = lampl_check_string(L, 1, "is_available", "the device");
  bool found = false;
  for (int i = 0; i < ampl_device_count(); i++) found |= strcmp(ampl_device_name(i), name) == 0;
  lua_pushboolean(L, found);
  return 1;
}

static int synchronize(lua_State *L) {
  lampl_state *S = lampl_entered(L);
  lampl_check(L, S, LAMPL_CALL(S, ampl_synchronize(S->ctx)));
  return 0;
}

/* cpu_setting(name [, value]) -> what holds */
static int cpu_setting(lua_State *L) {
  static const char *const names[] = {"isa", "bf16_dot", "winograd"};
  const char *name = lampl_check_string(L, 1, "backends.cpu", "the setting");
  const bool set = !lua_isnoneornil(L, 2), on = lampl_check_boolean(L, 2, "backends.cpu", name, false);
  int which = 0;
  while (which < 3 && strcmp(names[which], name) != 0) which++;
  if (which == 3) return lampl_wrong(L, 1, "backends.cpu", "the setting", "isa, bf16_dot or winograd");
  if (which == 0 && set)
    return lampl_error(L, AMPL_EARG, "backends.cpu", "isa is read only; AMPL_CPU=c|avx2|avx512 lowers it");
  if (which == 0) lua_pushstring(L, ampl_cpu_isa_text());
  else if (which == 1) lua_pushboolean(L, ampl_cpu_use_bf16_dot(set ? on : -1));
  else lua_pushboolean(L, ampl_cpu_use_winograd(set ? on : -1));
  return 1;
}

/* clock() -> seconds of a clock that never goes back: os.clock counts all threads' work, os.time only whole seconds */
static int monotonic_clock(lua_State *L) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  lua_pushnumber(L, (lua_Number)t.tv_sec + 1e-9 * (lua_Number)t.tv_nsec);
  return 1;
}

static int on_warning(lua_State *L) {
  if (!lua_isnoneornil(L, 1) && !lua_isfunction(L, 1))
    return lampl_wrong(L, 1, "on_warning", "the callback", "a function or nil");
  lua_settop(L, 1);
  lua_setfield(L, LUA_REGISTRYINDEX, "ampl.on_warning");
  return 0;
}

void lampl_open_system(lua_State *L) {
  static const luaL_Reg functions[] = {{"memory", memory},
                                       {"reset_peak_memory", reset_peak_memory},
                                       {"memory_limit", memory_limit},
                                       {"trim_memory", trim_memory},
                                       {"manual_seed", manual_seed},
                                       {"get_rng_state", get_rng_state},
                                       {"set_rng_state", set_rng_state},
                                       {"set_num_threads", set_num_threads},
                                       {"get_num_threads", get_num_threads},
                                       {"devices", devices},
                                       {"is_available", is_available},
                                       {"synchronize", synchronize},
                                       {"cpu_setting", cpu_setting},
                                       {"on_warning", on_warning},
                                       {"clock", monotonic_clock},
                                       {NULL, NULL}};
  luaL_setfuncs(L, functions, 0);
}
