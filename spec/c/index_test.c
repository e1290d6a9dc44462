/* index_test.c: what counts from 0 in C: positions that go in, come out and are complained of; ends of slices; memory
 * that index ops leave behind, also when an allocation fails. */
#include "ctx.h"

#include <stdio.h>
#include <string.h>

static int passed, failed;
static ampl_ctx *ctx;

#define CHECK(c)                                                                                                       \
  do {                                                                                                                 \
    if (c) passed++;                                                                                                   \
    else failed++, printf("%s:%d: %s (%s)\n", __FILE__, __LINE__, #c, ampl_error_message(ctx));                        \
  } while (0)

static ampl_tensor *integers(int ndim, const int64_t *shape, const int64_t *v) {
  ampl_tensor *x = NULL;
  size_t n = 1;
  for (int d = 0; d < ndim; d++) n *= (size_t)shape[d];
  CHECK(ampl_from_bytes(ctx, AMPL_I64, ndim, shape, v, n * sizeof *v, &x) == AMPL_OK);
  return x;
}

/* 0 1 2 ... in that shape, as f32. */
static ampl_tensor *count_up(int ndim, const int64_t *shape) {
  float v[64];
  ampl_tensor *x = NULL;
  size_t n = 1;
  for (int d = 0; d < ndim; d++) n *= (size_t)shape[d];
  for (size_t i = 0; i < n; i++) v[i] = (float)i;
  CHECK(ampl_from_bytes(ctx, AMPL_F32, ndim, shape, v, n * sizeof *v, &x) == AMPL_OK);
  return x;
}

/* Whether y, which is given back, holds these values. */
static bool holds(ampl_tensor *y, size_t n, const double *want) {
  float f[64];
  int64_t i[64];
  bool is_float = y && ampl_tensor_dtype(y) == AMPL_F32, same = y && (size_t)ampl_numel(y) == n;
  if (same && is_float) same = ampl_to_bytes(y, f, n * sizeof *f) == AMPL_OK;
  else if (same) same = ampl_to_bytes(y, i, n * sizeof *i) == AMPL_OK;
  for (size_t k = 0; same && k < n; k++) same = (is_float ? (double)f[k] : (double)i[k]) == want[k];
  ampl_tensor_release(y);
  return same;
}
#define HOLDS(y, ...) holds(y, sizeof((const double[]){__VA_ARGS__}) / sizeof(double), (const double[]){__VA_ARGS__})

static ampl_tensor *run(const char *op, const ampl_value *args, int n) {
  ampl_tensor *y = NULL;
  ampl_run(ctx, op, args, n, &y, 1);
  return y;
}
#define RUN(op, ...)                                                                                                   \
  run(op, (const ampl_value[]){__VA_ARGS__}, (int)(sizeof((const ampl_value[]){__VA_ARGS__}) / sizeof(ampl_value)))

static void positions(void) {
  ampl_tensor *x = count_up(2, (int64_t[]){3, 4}), *at = integers(1, (int64_t[]){3}, (int64_t[]){0, 2, -1});
  ampl_tensor *out[2];
  CHECK(HOLDS(RUN("index_select", {.t = x}, {.i = 1}, {.t = at}), 0, 2, 3, 4, 6, 7, 8, 10, 11));
  CHECK(HOLDS(RUN("select", {.t = x}, {.i = 0}, {.i = 1}), 4, 5, 6, 7));
  CHECK(HOLDS(RUN("narrow", {.t = x}, {.i = -1}, {.i = 1}, {.i = 2}), 1, 2, 5, 6, 9, 10));
  CHECK(HOLDS(RUN("slice", {.t = x}, {.i = 1}, {.i = 1}, {.i = 3}), 1, 2, 5, 6, 9, 10));
  CHECK(HOLDS(RUN("slice", {.t = x}, {.i = 1}, {.i = AMPL_ABSENT}, {.i = -1}, {.i = 2}), 0, 2, 4, 6, 8, 10));
  CHECK(HOLDS(RUN("embedding", {.t = at}, {.t = x}), 0, 1, 2, 3, 8, 9, 10, 11, 8, 9, 10, 11));
  CHECK(HOLDS(RUN("argmax", {.t = x}), 11));
  CHECK(ampl_run(ctx, "topk", (ampl_value[]){{.t = x}, {.i = 2}}, 2, out, 2) == AMPL_OK);
  CHECK(HOLDS(out[1], 3, 2, 3, 2, 3, 2));
  ampl_tensor_release(out[0]);
  CHECK(HOLDS(RUN("nonzero", {.t = at}), 1, 2));
  ampl_tensor *classes = integers(1, (int64_t[]){3}, (int64_t[]){0, 2, 2});
  CHECK(HOLDS(RUN("one_hot", {.t = classes}), 1, 0, 0, 0, 0, 1, 0, 0, 1));
  CHECK(HOLDS(RUN("bincount", {.t = classes}), 1, 0, 2));
  ampl_tensor_release(classes);
  ampl_tensor_release(at);
  ampl_tensor_release(x);
}

static void complaints(void) {
  ampl_tensor *x = count_up(2, (int64_t[]){3, 4}), *at = integers(1, (int64_t[]){4}, (int64_t[]){0, 3, 5, -9});
  CHECK(RUN("index_select", {.t = x}, {.i = 0}, {.t = at}) == NULL && ampl_error_code(ctx) == AMPL_EINDEX);
  CHECK(strstr(ampl_error_message(ctx), "position 3 at {1}; they count from 0 to 2") != NULL);
  CHECK(RUN("select", {.t = x}, {.i = 0}, {.i = 3}) == NULL && ampl_error_code(ctx) == AMPL_EINDEX);
  CHECK(RUN("gather", {.t = x}, {.i = 0}, {.t = at}) == NULL && ampl_error_code(ctx) == AMPL_ESHAPE);
  CHECK(RUN("unflatten", {.t = x}, {.i = 1}, {.l = {(int64_t[]){3, -1}, 2}}) == NULL);
  ampl_tensor_release(at);
  ampl_tensor_release(x);
}

/* Every allocation of a few calls fails once. */
static void no_memory(void) {
  ampl_tensor *x = count_up(2, (int64_t[]){3, 4}), *at = integers(1, (int64_t[]){2}, (int64_t[]){2, 2});
  ampl_tensor *mask = RUN("gt", {.t = x}, {.t = x}), *list[1] = {at};
  static const char *const names[] = {"unique", "sort", "nonzero", "diag"};
  ampl_memory_info before, after;
  for (size_t k = 0; k < 7; k++) {
    bool done = false;
    for (int nth = 1; nth < 40 && !done; nth++) {
      ampl_tensor *out[3] = {NULL};
      ampl_memory(ctx, &before);
      ampl_mem_fail_at(ctx, nth, true);
      ampl_status s;
      if (k == 0) s = ampl_run(ctx, "index_put", (ampl_value[]){{.t = x}, {.ts = {list, 1}}, {.t = x}}, 3, out, 1);
      else if (k == 1) s = ampl_run(ctx, "embedding", (ampl_value[]){{.t = at}, {.t = x}}, 2, out, 1);
      else if (k == 2) s = ampl_run(ctx, "masked_select", (ampl_value[]){{.t = x}, {.t = mask}}, 2, out, 1);
      else s = ampl_run(ctx, names[k - 3], (ampl_value[]){{.t = x}}, 1, out, k < 5 ? 2 : 1);
      ampl_mem_fail_at(ctx, 0, false);
      done = s != AMPL_ENOMEM;
      for (int i = 0; i < 3; i++) ampl_tensor_release(out[i]);
      ampl_memory(ctx, &after);
      CHECK(after.tensors == before.tensors && after.live == before.live);
    }
    CHECK(done);
  }
  ampl_tensor_release(mask);
  ampl_tensor_release(at);
  ampl_tensor_release(x);
}

int main(void) {
  if (ampl_ctx_new(NULL, &ctx) != AMPL_OK) return 1;
  positions();
  complaints();
  no_memory();
  ampl_ctx_release(ctx);
  printf("%d passed, %d failed, 0 skipped\n", passed, failed);
  return failed != 0;
}
