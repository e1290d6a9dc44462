/*
** cpu.c: instruction set, settings, cache sizes, scratch memory, number of threads.
*/
#define _GNU_SOURCE             /* the cores a process may run on */
#include "cpu.h"
#include "ctx.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Every value below is worked out on first use.  Two threads that do so at once find the same, so a
   relaxed store is enough. */
enum { UNKNOWN = -1 };
#define SETTING(name) static int name = UNKNOWN
#define GET(name) __atomic_load_n(&(name), __ATOMIC_RELAXED)
#define SET(name, value) __atomic_store_n(&(name), (value), __ATOMIC_RELAXED)

/* ---------------------------------------------------------------- instruction set */

static ampl_cpu_isa detect (void) {
#if defined __x86_64__
  __builtin_cpu_init();
#define HAS(feature) (__builtin_cpu_supports(feature) != 0)
  bool avx2 = HAS("avx2") && HAS("fma") && HAS("f16c");
  bool avx512 = HAS("avx512f") && HAS("avx512bw") && HAS("avx512vl") && HAS("avx512dq");
#undef HAS
  return avx2 && avx512 ? AMPL_CPU_AVX512 : avx2 ? AMPL_CPU_AVX2 : AMPL_CPU_C;
#else
  return AMPL_CPU_C;
#endif
}

const char *ampl_cpu_isa_name (ampl_cpu_isa isa) {
  static const char *const names[] = {"c", "avx2", "avx512"};
  return names[isa];
}

bool ampl_cpu_isa_known (const char *name) {
  for (int i = AMPL_CPU_C; i <= AMPL_CPU_AVX512; i++)
    if (strcmp(name, ampl_cpu_isa_name((ampl_cpu_isa)i)) == 0) return true;
  return false;
}

ampl_cpu_isa ampl_cpu_isa_used (void) {
  SETTING(used);
  int isa = GET(used);
  if (isa != UNKNOWN) return (ampl_cpu_isa)isa;
  isa = (int)detect();
  const char *wish = getenv("AMPL_CPU");
  for (int i = AMPL_CPU_C; wish && i < isa; i++)
    if (strcmp(wish, ampl_cpu_isa_name((ampl_cpu_isa)i)) == 0) isa = i;
  SET(used, isa);
  return (ampl_cpu_isa)isa;
}

/* ---------------------------------------------------------------- settings */

static bool has_bf16_dot (void) {
#if defined __x86_64__
  return ampl_cpu_isa_used() == AMPL_CPU_AVX512 && __builtin_cpu_supports("avx512bf16") != 0;
#else
  return false;
#endif
}

/* vdpbf16ps runs at twice the rate of f32 multiply-add on AMD (Zen 4, 5), at half of it on Intel */
static bool fast_bf16_dot (void) {
#if defined __x86_64__
  return has_bf16_dot() && __builtin_cpu_is("amd");
#else
  return false;
#endif
}

SETTING(bf16_dot);

bool ampl_cpu_bf16_dot (void) {
  if (GET(bf16_dot) == UNKNOWN) SET(bf16_dot, fast_bf16_dot());
  return GET(bf16_dot) != 0;
}

bool ampl_cpu_set_bf16_dot (bool on) {
  SET(bf16_dot, on && has_bf16_dot());
  return on && has_bf16_dot();
}

static int winograd = 1;
bool ampl_cpu_winograd (void) { return GET(winograd) != 0; }
void ampl_cpu_set_winograd (bool on) { SET(winograd, on); }

/* ---------------------------------------------------------------- the machine */

long ampl_cpu_cache (int level) {
  SETTING(level1);
  SETTING(level2);
  int *size = level == 1 ? &level1 : &level2;
  if (GET(*size) == UNKNOWN) {
    long n = -1;
#if defined _SC_LEVEL1_DCACHE_SIZE
    n = sysconf(level == 1 ? _SC_LEVEL1_DCACHE_SIZE : _SC_LEVEL2_CACHE_SIZE);
#endif
    long otherwise = level == 1 ? 32 << 10 : 512 << 10, most = 64 << 20;
    SET(*size, (int)(n <= 0 ? otherwise : n > most ? most : n));
  }
  return GET(*size);
}

/* The whole cores' worth of time that the cgroup grants, or INT32_MAX */
static int cgroup_cores (void) {
  long long quota = 0, period = 0;
  FILE *f = fopen("/sys/fs/cgroup/cpu.max", "r");
  if (!f) return INT32_MAX;
  int n = fscanf(f, "%lld %lld", &quota, &period);
  fclose(f);
  if (n != 2 || quota <= 0 || period <= 0) return INT32_MAX; /* "max": no quota */
  return quota < period ? 1 : (int)(quota / period);
}

/* What OMP_NUM_THREADS says, as other programs for many cores go by it, else the cores this process may run on.  It is
   not ours: a list ("4,2": of nested teams) counts by its first number, and what is no number is passed over. */
static int usable_cores (void) {
  const char *asked = getenv("OMP_NUM_THREADS");
  const long n = asked ? strtol(asked, NULL, 10) : 0;
  cpu_set_t set;
  if (n > 0) return n < AMPL_CPU_THREADS_MAX ? (int)n : AMPL_CPU_THREADS_MAX;
  return sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : (int)sysconf(_SC_NPROCESSORS_ONLN);
}

int ampl_cpu_count (void) {
  SETTING(count);
  if (GET(count) == UNKNOWN) {
    int cores = cgroup_cores(), threads = usable_cores();
    SET(count, cores < threads ? cores : threads);
  }
  return GET(count);
}

/* ---------------------------------------------------------------- running */

void *ampl_cpu_scratch_get (ampl_ctx *ctx, size_t bytes) {
  void *p = NULL;
  if (!ctx) return bytes > SIZE_MAX - 64 ? NULL : aligned_alloc(64, (bytes + 64) / 64 * 64);
  return ampl_mem_get(ctx, ampl_device_at(0), bytes, AMPL_KIND_SCRATCH, &p) == AMPL_OK ? p : NULL;
}

void ampl_cpu_scratch_put (ampl_ctx *ctx, void *p, size_t bytes) {
  if (ctx) ampl_mem_put(ctx, ampl_device_at(0), p, bytes, AMPL_KIND_SCRATCH);
  else free(p);
}
