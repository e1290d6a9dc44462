/*
** sweep.h: what the tests of kernels/cpu share: random cases, elements of any dtype, comparison with
** references in double, and one run for each instruction set.
*/
#ifndef AMPL_SPEC_SWEEP_H
#define AMPL_SPEC_SWEEP_H

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cpu.h"

/* Not every test uses all of them */
#define TOOL static __attribute__((unused, noinline))

/* ---------------------------------------------------------------- counting */

typedef struct counts { int passed, failed, skipped; } counts;
static counts count __attribute__((unused));
static bool case_failed __attribute__((unused));

/* Says what is wrong with the present case, for the first few */
__attribute__((unused, noinline, format(printf, 1, 2))) static void fault (const char *fmt, ...) {
  va_list args;
  if (!case_failed && count.failed < 10) {
    va_start(args, fmt);
    printf("%s: ", ampl_cpu_isa_name(ampl_cpu_isa_used()));
    vprintf(fmt, args);
    printf("\n");
    va_end(args);
  }
  case_failed = true;
}

TOOL void end_case (void) {
  if (case_failed) count.failed++; else count.passed++;
  case_failed = false;
}

/* ---------------------------------------------------------------- random */

static uint64_t random_state = 1;
TOOL uint32_t draw (void) {
  random_state = random_state * 6364136223846793005u + 1442695040888963407u;
  return (uint32_t)(random_state >> 33);
}
TOOL long below (long n) { return draw() % n; }
TOOL bool one_in (long n) { return below(n) == 0; }
#define PICK(list) (list)[below((long)(sizeof(list) / sizeof *(list)))]

/* ---------------------------------------------------------------- elements */

TOOL size_t size_of (int dtype) {
  static const size_t bytes[] = {4, 2, 2, 8, 8, 4, 1, 1};
  return bytes[dtype];
}

TOOL double element (int dtype, const void *p, long i) {
  uint16_t h;
  switch (dtype) {
    case AMPL_F32: return ((const float *)p)[i];
    case AMPL_F64: return ((const double *)p)[i];
    case AMPL_I64: return (double)((const int64_t *)p)[i];
    case AMPL_I32: return ((const int32_t *)p)[i];
    case AMPL_U8: return ((const uint8_t *)p)[i];
    default: h = ((const uint16_t *)p)[i];
  }
  if (dtype == AMPL_BF16) {
    uint32_t u = (uint32_t)h << 16;
    float f;
    memcpy(&f, &u, 4);
    return f;
  }
  int e = h >> 10 & 31, m = h & 1023;
  double f = e == 31 ? (m ? NAN : INFINITY) : e ? ldexp(1024 + m, e - 25) : ldexp(m, -24);
  return h & 0x8000 ? -f : f;
}

/* Any representable value near x will do */
TOOL void put (int dtype, void *p, long i, double x) {
  switch (dtype) {
    case AMPL_F32: ((float *)p)[i] = (float)x; return;
    case AMPL_F64: ((double *)p)[i] = x; return;
    case AMPL_I64: ((int64_t *)p)[i] = (int64_t)(x * 1000); return;
    case AMPL_I32: ((int32_t *)p)[i] = (int32_t)(x * 1000); return;
    case AMPL_U8: ((uint8_t *)p)[i] = (uint8_t)(int)(x * 100); return;
    default: break;
  }
  uint16_t *h = (uint16_t *)p + i;
  if (dtype == AMPL_BF16) {
    float f = (float)x;
    uint32_t u;
    memcpy(&u, &f, 4);
    *h = (uint16_t)(u >> 16);
    return;
  }
  int e;
  double f = frexp(fabs(x), &e);
  *h = (uint16_t)(f == 0 || e < -12 ? 0 : ((e + 14) << 10) + (int)((f - 0.5) * 2048));
  if (x < 0) *h |= 0x8000;
}

/* n random elements between -1 and 1; room for none is room for one.  Exactly as large as needed, so
   that a sanitizer sees every step beyond the end. */
TOOL void *make (int dtype, long n) {
  void *p = malloc(size_of(dtype) * (size_t)(n > 0 ? n : 1));
  for (long i = 0; i < n; i++) put(dtype, p, i, (below(2001) - 1000) / 1000.0);
  return p;
}

TOOL void *copy_of (const void *p, size_t bytes) { return memcpy(malloc(bytes ? bytes : 1), p, bytes); }

/* ---------------------------------------------------------------- running */

/* Runs `sweep` once for each instruction set, each in a process of its own, as the choice is made once
   in a process; with AMPL_CPU set, only for that one.  Prints the closing line, returns the exit
   status. */
TOOL int run_sweeps (void (*sweep)(void)) {
  const char *only = getenv("AMPL_CPU");
  counts total = {0, 0, 0};
  for (int isa = AMPL_CPU_C; isa <= AMPL_CPU_AVX512; isa++) {
    const char *name = ampl_cpu_isa_name((ampl_cpu_isa)isa);
    int ends[2], status = 0;
    if (only && strcmp(only, name) != 0) continue;
    if (pipe(ends) != 0) return 1;
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
      setenv("AMPL_CPU", name, 1);
      if (ampl_cpu_isa_used() == (ampl_cpu_isa)isa) sweep(); else count.skipped = 1;
      fflush(stdout);
      if (write(ends[1], &count, sizeof count) != (ssize_t)sizeof count) _exit(1);
      exit(0);
    }
    counts one = {0, 1, 0};
    close(ends[1]);
    bool told = read(ends[0], &one, sizeof one) == (ssize_t)sizeof one;
    close(ends[0]);
    waitpid(child, &status, 0);
    if (!told || status != 0) printf("%s: the run died\n", name), one.failed++;
    total.passed += one.passed, total.failed += one.failed, total.skipped += one.skipped;
  }
  printf("%d passed, %d failed, %d skipped\n", total.passed, total.failed, total.skipped);
  return total.failed > 0;
}

#endif
