/* environment_test.c: what contexts read of the environment, and what they say when they cannot be made: sizes in
 * words, in every locale; variables that say nothing known are refused by name; a first context without memory spoils
 * nothing for the next; the error of a call without a context is the thread's. */
#define _GNU_SOURCE
#include "ampl.h"
#include "environment.h"

#include <locale.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int passed, failed;

static void check(bool ok, const char *what) {
  if (ok) passed++;
  else failed++;
  if (!ok) printf("FAILED: %s\n", what);
}

/* ------------------------------------------------------------------------------------------------ memory ---------- */

/* The linker leads the library's calls here (--wrap). */
static bool no_memory;
void *__real_calloc(size_t n, size_t size);
void *__real_malloc(size_t size);
void *__wrap_calloc(size_t n, size_t size);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t n, size_t size) { return no_memory ? NULL : __real_calloc(n, size); }
void *__wrap_malloc(size_t size) { return no_memory ? NULL : __real_malloc(size); }

/* To be called first: what is made once in a process is made here, without memory. */
static void check_first_without_memory(void) {
  ampl_ctx *ctx = (ampl_ctx *)1;
  ampl_tensor *x = NULL;
  no_memory = true;
  const ampl_status s = ampl_ctx_new(NULL, &ctx);
  no_memory = false;
  check(s == AMPL_ENOMEM && !ctx, "a context without memory is refused");
  check(strstr(ampl_error_message(NULL), "out of memory"), "and says so");
  check(ampl_error_code(NULL) == AMPL_ENOMEM, "the code is the thread's");
  check(ampl_ctx_new(NULL, &ctx) == AMPL_OK, "a second one is made");
  check(ampl_randn(ctx, AMPL_F32, 1, (int64_t[]){4}, &x) == AMPL_OK, "and computes");
  ampl_tensor_release(x);
  ampl_ctx_release(ctx);
}

/* ------------------------------------------------------------------------------------------------ sizes ----------- */

static void check_sizes(void) {
  enum { K = 1 << 10, M = 1 << 20, G = 1 << 30, WHOLE = 1000000 };
  static const struct { const char *text; size_t bytes; } sizes[] = {
      {"1", 1},           {"1000000", 1000000},  {"1b", 1},           {"1k", K},          {"2K", 2 * K},
      {"3KB", 3 * K},     {"4kib", 4 * K},       {"1.5g", 3ul * G / 2}, {"2 G", 2ul * G},  {"512MiB", 512ul * M},
      {"512 mb", 512ul * M}, {"0.5k", 512},      {".5k", 512},        {"5.k", 5 * K},     {" 7 ", 7},
      {"\t8m\t", 8 * M},  {"1t", 1024ul * G},    {"80%", 800000},     {"12.5 %", 125000}, {"100%", WHOLE},
      {"1.0000000019k", K},
      /* what says nothing: 0 */
      {"", 0},            {" ", 0},              {"0", 0},            {"0.1", 0},         {"0%", 0},
      {"101%", 0},        {"100.1%", 0},         {"-1", 0},           {"+1", 0},          {"1,5g", 0},
      {"1e9", 0},         {"0x10", 0},           {"inf", 0},          {"nan", 0},         {"g", 0},
      {"1x", 0},          {"1gg", 0},            {"1gi", 0},          {"1bb", 0},         {"1 g 2", 0},
      {"1.2.3", 0},       {".", 0},              {"%", 0},            {"80%%", 0},        {"80 percent", 0},
      {"99999999999999999999", 0},               {"18446744073709551615", 0},             {"9999999999t", 0},
      {"1\n", 0},         {"1 giga", 0},         {"1pb", 0},          {"\xd9\xa1", 0}};
  for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
    char what[64];
    size_t got = 0;
    const bool ok = ampl_bytes_from_text(sizes[i].text, WHOLE, &got);
    snprintf(what, sizeof what, "\"%s\" is %zu bytes, not %zu", sizes[i].text, sizes[i].bytes, ok ? got : 0);
    check(ok == (sizes[i].bytes > 0) && (!ok || got == sizes[i].bytes), what);
  }
}

static void check_locales(void) {
  static const char *const names[] = {"de_DE.UTF-8", "fr_FR.UTF-8", "C.UTF-8", ""};
  for (size_t i = 0; i < sizeof names / sizeof *names; i++)
    if (setlocale(LC_ALL, names[i])) check_sizes();
  setlocale(LC_ALL, "C");
}

/* ------------------------------------------------------------------------------------------------ variables ------- */

static void check_variable(const char *name, const char *value, ampl_status wanted, size_t limit) {
  ampl_ctx *ctx = NULL;
  ampl_memory_info m;
  char what[128];
  setenv(name, value, 1);
  const ampl_status s = ampl_ctx_new(NULL, &ctx);
  unsetenv(name);
  snprintf(what, sizeof what, "%s=%s", name, value);
  check(s == wanted && (ctx != NULL) == (wanted == AMPL_OK), what);
  if (ctx && limit) {
    ampl_memory(ctx, &m);
    check(m.limit == limit, what);
  }
  if (wanted != AMPL_OK) check(strstr(ampl_error_message(NULL), name) && strstr(ampl_error_message(NULL), value), what);
  ampl_ctx_release(ctx);
}

static void check_variables(void) {
  ampl_ctx *ctx = NULL;
  ampl_ctx_options o = AMPL_CTX_OPTIONS_INIT;
  check_variable("AMPL_MEMORY_LIMIT", "1.5g", AMPL_OK, (size_t)3 << 29);
  check_variable("AMPL_MEMORY_LIMIT", "", AMPL_OK, 0);
  check_variable("AMPL_MEMORY_LIMIT", "lots", AMPL_EVALUE, 0);
  check_variable("AMPL_MEMORY_LIMIT", "1.5 gallons", AMPL_EVALUE, 0);
  check_variable("AMPL_CPU", "c", AMPL_OK, 0);
  check_variable("AMPL_CPU", "avx512", AMPL_OK, 0);
  check_variable("AMPL_CPU", "", AMPL_OK, 0);
  check_variable("AMPL_CPU", "nonsense", AMPL_EVALUE, 0);
  check_variable("AMPL_CPU", "AVX2", AMPL_EVALUE, 0);
  check_variable("AMPL_ALLOC", "plain", AMPL_OK, 0);
  check_variable("AMPL_ALLOC", "plane", AMPL_EVALUE, 0);
  check_variable("OMP_NUM_THREADS", "99999999999999999999", AMPL_OK, 0);
  check_variable("OMP_NUM_THREADS", "many", AMPL_OK, 0);
  setenv("AMPL_MEMORY_LIMIT", "lots", 1);
  o.memory_limit = 1 << 20;
  check(ampl_ctx_new(&o, &ctx) == AMPL_OK, "with a limit of the host's the variable does not count");
  unsetenv("AMPL_MEMORY_LIMIT");
  ampl_set_threads(ctx, 1 << 30);
  check(ampl_threads(ctx) <= 4096, "no more threads than can be used");
  ampl_ctx_release(ctx);
}

/* ------------------------------------------------------------------------------------------------ threads --------- */

static void *other_thread(void *ud) {
  (void)ud;
  return ampl_error_code(NULL) == AMPL_OK && !*ampl_error_message(NULL) ? NULL : (void *)1;
}

static void check_thread(void) {
  pthread_t id;
  void *result = (void *)1;
  check(ampl_ctx_new(NULL, NULL) == AMPL_EARG, "no place for the context");
  check(strcmp(ampl_error_message(NULL), "ampl_ctx_new: out is NULL") == 0, "and the text says so");
  pthread_create(&id, NULL, other_thread, NULL);
  pthread_join(id, &result);
  check(!result, "another thread has an error of its own");
}

int main(void) {
  check_first_without_memory();
  check_locales();
  check_variables();
  check_thread();
  printf("%d passed, %d failed, 0 skipped\n", passed, failed);
  return failed > 0;
}
