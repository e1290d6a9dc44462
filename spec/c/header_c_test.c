/* header_c_test.c: the public headers stand alone as C11, included twice and in any order, and what they promise links.
 */
#pragma GCC diagnostic error "-Wpedantic"
#pragma GCC diagnostic error "-Wstrict-prototypes"
#include "ampl.h"
#include "ampl_backend.h"
#include "archive.h"
#include "ampl.h"

#include <stdio.h>
#include <string.h>

static int passed, failed;

static void check(bool ok, const char *what) {
  if (ok)
    passed++;
  else
    failed++;
  if (!ok) printf("FAILED: %s\n", what);
}

int main(void) {
  char version[32];
  snprintf(version, sizeof version, "%d.%d.%d", AMPL_VERSION_MAJOR, AMPL_VERSION_MINOR, AMPL_VERSION_PATCH);
  check(strcmp(ampl_version(), version) == 0, "the library's version is the header's");
  check(ampl_version_number() == AMPL_VERSION_NUMBER, "so is its number");
#define AMPL_X(name, text) check(strcmp(ampl_status_name(AMPL_##name), #name) == 0, "the name of " #name);
  AMPL_STATUS_MAP(AMPL_X)
#undef AMPL_X
  check(strcmp(ampl_status_name((ampl_status)-1), "?") == 0, "the name of no status");
#define AMPL_X(NAME, name, bytes)                                                                                      \
  check(strcmp(ampl_dtype_name(AMPL_##NAME), #name) == 0, "the name of " #name);                                       \
  check(ampl_dtype_from_name(#name) == AMPL_##NAME, "the dtype called " #name);                                        \
  check(ampl_dtype_size(AMPL_##NAME) == bytes, "the size of " #name);
  AMPL_DTYPE_MAP(AMPL_X)
#undef AMPL_X
  check(ampl_dtype_from_name("float") == AMPL_DTYPE_NONE, "no dtype");

  ampl_ctx_options options = AMPL_CTX_OPTIONS_INIT;
  ampl_ctx *ctx = NULL;
  options.threads = 1;
  check(ampl_ctx_new(&options, &ctx) == AMPL_OK && ctx, "a context");
  ampl_tensor *x = NULL, *y = NULL;
  const int64_t shape[2] = {2, 3};
  check(ampl_full(ctx, AMPL_F32, 2, shape, -1.5, &x) == AMPL_OK, "a tensor");
  check(ampl_run(ctx, "neg", &(ampl_value){.t = x}, 1, &y, 1) == AMPL_OK, "an op");
  float got[6] = {0};
  check(y && ampl_to_bytes(y, got, sizeof got) == AMPL_OK && got[5] == 1.5f, "its result");
  check(y && ampl_to_bytes(y, got, 3) != AMPL_OK && ampl_error_message(ctx)[0], "a buffer of another size is refused");
  ampl_tensor_release(y);
  y = NULL;
  check(ampl_run(ctx, "no_such_op", NULL, 0, &y, 1) == AMPL_EARG && y == NULL, "no such op");
  ampl_interrupt(ctx);
  check(ampl_interrupted(ctx), "an interruption is seen");
  check(ampl_run(ctx, "neg", &(ampl_value){.t = x}, 1, &y, 1) == AMPL_EINTR && y == NULL, "an op ends with it");
  check(ampl_run_op_inplace(ctx, ampl_op_find("neg"), &(ampl_value){.t = x}, 1) == AMPL_EINTR, "so does one in place");
  ampl_interrupt_clear(ctx);
  check(ampl_run(ctx, "neg", &(ampl_value){.t = x}, 1, &y, 1) == AMPL_OK, "until it is cleared");
  ampl_tensor_release(y);
  ampl_ctx_release(ctx); /* the tensors keep it */
  check(ampl_numel(x) == 6, "a tensor outlives the context's release");
  ampl_tensor_release(x);
  ampl_tensor_release(NULL);
  ampl_ctx_release(NULL);
  printf("%d passed, %d failed, 0 skipped\n", passed, failed);
  return failed > 0;
}
