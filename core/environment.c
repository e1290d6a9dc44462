/* environment.c: the variables that a context reads.  A name that is mistyped must not pass for a setting: what is set
 * and not understood is an error.  Read beside: AMPL_BACKEND_PATH (backend.c), OMP_NUM_THREADS (kernels/cpu/cpu.c). */
#include "environment.h"

#include "cpu.h"
#include "ctx.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ------------------------------------------------------------------------------------------------ sizes ----------- */

static bool is_digit(char c) { return c >= '0' && c <= '9'; }       /* not isdigit: that asks the locale */

static void skip_blanks(const char **s) {
  while (**s == ' ' || **s == '\t') ++*s;
}

/* Digits, a point, digits, at least one of them: whole part and, to a billionth, the rest. */
static bool read_number(const char **s, uint64_t *whole, uint64_t *billionths) {
  const char *start = *s;
  uint64_t place = 100000000;
  int digits = 0;
  *whole = *billionths = 0;
  for (; is_digit(**s); ++*s, digits++)
    if (__builtin_mul_overflow(*whole, 10, whole) || __builtin_add_overflow(*whole, (uint64_t)(**s - '0'), whole))
      return false;
  if (**s == '.') {
    for (++*s; is_digit(**s); ++*s, digits++, place /= 10) *billionths += (uint64_t)(**s - '0') * place;
  }
  return digits > 0 && *s > start;
}

/* The power of two that a unit stands for, -1: it is none. */
static int read_unit(const char **s) {
  static const char letters[] = "kmgt";
  const char low = (char)(**s | 0x20), *found = low ? strchr(letters, low) : NULL;
  const int power = **s && found ? 10 * (int)(found - letters + 1) : 0;
  if (power) ++*s;
  if (power && (**s | 0x20) == 'i') {
    if ((*++*s | 0x20) != 'b') return -1;
  }
  if ((**s | 0x20) == 'b') ++*s;
  return power;
}

bool ampl_bytes_from_text(const char *text, size_t whole, size_t *out) {
  uint64_t n, billionths, bytes;
  skip_blanks(&text);
  if (!read_number(&text, &n, &billionths)) return false;
  skip_blanks(&text);
  if (*text == '%') {
    if (n > 100 || (n == 100 && billionths)) return false;
    bytes = (uint64_t)((double)whole / 100 * ((double)n + (double)billionths * 1e-9));
    text++;
  } else {
    const int power = read_unit(&text);
    if (power < 0 || __builtin_mul_overflow(n, (uint64_t)1 << power, &bytes) || bytes > SIZE_MAX / 2) return false;
    bytes += (uint64_t)((double)billionths * 1e-9 * (double)((uint64_t)1 << power));
  }
  skip_blanks(&text);
  if (*text || bytes < 1 || bytes > SIZE_MAX / 2) return false;
  *out = (size_t)bytes;
  return true;
}

/* What a container may use, where the kernel says so; 0: no limit known. */
static size_t cgroup_limit(void) {
  static const char *const files[] = {"/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"};
  for (int i = 0; i < 2; i++) {
    FILE *f = fopen(files[i], "r");
    unsigned long long n = 0;
    if (!f) continue;
    const int got = fscanf(f, "%llu", &n);
    fclose(f);
    if (got == 1 && n < (1ull << 60)) return (size_t)n;
  }
  return 0;
}

static size_t machine_bytes(void) {
  const size_t machine = (size_t)sysconf(_SC_PHYS_PAGES) * (size_t)sysconf(_SC_PAGESIZE), group = cgroup_limit();
  return group && group < machine ? group : machine;
}

/* ------------------------------------------------------------------------------------------------ variables ------- */

/* The value, NULL where it is not set or empty: `AMPL_CPU= ampl` is how a shell takes a variable back. */
static const char *value_of(const char *name) {
  const char *v = getenv(name);
  return v && *v ? v : NULL;
}

static ampl_status refuse(const char *name, const char *v, const char *wanted) {
  return ampl_error(NULL, AMPL_EVALUE, "the environment variable %s is \"%.100s\": %s", name, v, wanted);
}

static ampl_status read_limit(size_t *out) {
  const size_t machine = machine_bytes();
  const char *v = value_of("AMPL_MEMORY_LIMIT");
  if (!v) *out = machine / 10 * 8;
  else if (!ampl_bytes_from_text(v, machine, out))
    return refuse("AMPL_MEMORY_LIMIT", v,
                  "give a number of bytes from 1 up, with k, m, g or t (powers of 1024) behind it, or a percentage of "
                  "the machine, as in 1000000, 1.5g, 512MiB or 80%");
  return AMPL_OK;
}

ampl_status ampl_environment_read(bool limit, ampl_environment *out) {
  const char *alloc = value_of("AMPL_ALLOC"), *isa = value_of("AMPL_CPU");
  *out = (ampl_environment){.plain = alloc && strcmp(alloc, "plain") == 0};
  if (alloc && !out->plain) return refuse("AMPL_ALLOC", alloc, "give plain, or leave it unset");
  if (isa && !ampl_cpu_isa_known(isa)) return refuse("AMPL_CPU", isa, "give c, avx2 or avx512, or leave it unset");
  return limit ? read_limit(&out->memory_limit) : AMPL_OK;
}
