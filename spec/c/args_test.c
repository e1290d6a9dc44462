/* args_test.c: calls from C whose arguments are absent, out of range or of no use: each is its default's or an error
 * that names it. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "ampl.h"

static int passed, failed;
static ampl_ctx *ctx;
static ampl_tensor *x, *number;         /* x: f32 {2, 3}, the numbers 0 to 5 */

static void check(bool good, const char *what, int line) {
  if (good) {
    passed++;
    return;
  }
  failed++;
  printf("args_test.c:%d: %s (last error: %s)\n", line, what, ampl_error_message(ctx));
}
#define CHECK(good) check((good), #good, __LINE__)
#define V(...) ((const ampl_value[]){__VA_ARGS__}), (int)(sizeof((ampl_value[]){__VA_ARGS__}) / sizeof(ampl_value))
#define X {.t = x}
#define ABSENT {.i = AMPL_ABSENT}

/* `op` on the arguments gives what it gives on `other`. */
static void same(int line, const char *op, const ampl_value *v, int n, const ampl_value *w, int m) {
  ampl_tensor *a[3] = {NULL}, *b[3] = {NULL};
  float p[64], q[64];
  bool good = ampl_run(ctx, op, v, n, a, 3) == AMPL_OK && ampl_run(ctx, op, w, m, b, 3) == AMPL_OK;
  good = good && ampl_numel(a[0]) == ampl_numel(b[0]) && ampl_ndim(a[0]) == ampl_ndim(b[0]);
  const size_t bytes = good ? (size_t)ampl_numel(a[0]) * ampl_dtype_size(ampl_tensor_dtype(a[0])) : 0;
  good = good && ampl_to_bytes(a[0], p, bytes) == AMPL_OK && ampl_to_bytes(b[0], q, bytes) == AMPL_OK;
  check(good && memcmp(p, q, bytes) == 0, op, line);
  for (int k = 0; k < 3; k++) ampl_tensor_release(a[k]), ampl_tensor_release(b[k]);
}
#define SAME(op, v, w) same(__LINE__, op, v, w)

/* `op` refuses its arguments with `code` and a message that holds `text`. */
static void refused(int line, const char *op, ampl_status code, const char *text, const ampl_value *v, int n) {
  ampl_tensor *y[3] = {x, x, x};
  const ampl_status s = ampl_run(ctx, op, v, n, y, 3);
  check(s == code && strstr(ampl_error_message(ctx), text) && !y[0] && !y[1] && !y[2], op, line);
  for (int k = 0; s == AMPL_OK && k < 3; k++) ampl_tensor_release(y[k]);
}
#define REFUSED(op, code, text, ...) refused(__LINE__, op, code, text, __VA_ARGS__)

static void absent_is_the_default(void) {
  SAME("softmax", V(X, ABSENT), V(X));
  SAME("softmax", V(X, ABSENT, ABSENT), V(X));
  SAME("sort", V(X, ABSENT, ABSENT, ABSENT), V(X));
  SAME("flatten", V(X, ABSENT, ABSENT), V(X));
  SAME("topk", V(X, {.i = 2}, ABSENT, ABSENT, ABSENT), V(X, {.i = 2}));
  SAME("tril", V(X, ABSENT), V(X));
  SAME("normalize", V(X, {.f = 2}, ABSENT), V(X));
  SAME("sum", V(X, {.l = {NULL, 0}}, ABSENT, ABSENT), V(X));
  SAME("prod", V(X, ABSENT, ABSENT, ABSENT), V(X));
  SAME("slice", V(X, ABSENT, ABSENT, ABSENT, ABSENT), V(X));
  SAME("mse_loss", V(X, X, ABSENT), V(X, X));
  SAME("dropout", V(X, {.f = 0}, ABSENT), V(X, {.f = 0}));
  SAME("pad", V(X, {.l = {(int64_t[]){1, 1}, 2}}, ABSENT), V(X, {.l = {(int64_t[]){1, 1}, 2}}));
}

static void required_is_missing(void) {
  REFUSED("select", AMPL_EARG, "dim is missing", V(X, ABSENT, {.i = 0}));
  REFUSED("select", AMPL_EARG, "index is missing", V(X, {.i = 0}, ABSENT));
  REFUSED("narrow", AMPL_EARG, "length is missing", V(X, {.i = 0}, {.i = 0}, ABSENT));
  REFUSED("topk", AMPL_EARG, "k is missing", V(X, ABSENT));
  REFUSED("unsqueeze", AMPL_EARG, "dim is missing", V(X, ABSENT));
  REFUSED("cumsum", AMPL_EARG, "dim is missing", V(X, ABSENT));
  REFUSED("cumsum", AMPL_EARG, "dim is missing", V(X));
  REFUSED("relu", AMPL_EARG, "x is missing", V({.t = NULL}));
  REFUSED("add", AMPL_EARG, "y is missing", V(X, {.t = NULL}));
  REFUSED("cat", AMPL_EARG, "entry 1 of tensors is missing", V({.ts = {(ampl_tensor *[]){x, NULL}, 2}}));
  REFUSED("stack", AMPL_EARG, "entry 0 of tensors is missing", V({.ts = {(ampl_tensor *[]){NULL, x}, 2}}));
}

static void out_of_range(void) {
  REFUSED("sum", AMPL_EARG, "keepdim is 2", V(X, {.l = {NULL, 0}}, {.i = 2}));
  REFUSED("sum", AMPL_EARG, "keepdim is -1", V(X, {.l = {NULL, 0}}, {.i = -1}));
  REFUSED("mse_loss", AMPL_EARG, "reduction is 3", V(X, X, {.i = 3}));
  REFUSED("mse_loss", AMPL_EARG, "none|mean|sum", V(X, X, {.i = -1}));
  REFUSED("sum", AMPL_EDTYPE, "dtype is 8", V(X, {.l = {NULL, 0}}, {.i = 0}, {.i = AMPL_DTYPE_COUNT}));
  REFUSED("sum", AMPL_EDTYPE, "dtype is -2", V(X, {.l = {NULL, 0}}, {.i = 0}, {.i = -2}));
  REFUSED("zeros", AMPL_EDTYPE, "dtype", V({.l = {(int64_t[]){2}, 1}}, {.i = INT64_MAX}));
  REFUSED("zeros", AMPL_EARG, "size is no list", V({.l = {NULL, 2}}));
  REFUSED("zeros", AMPL_EARG, "size is no list", V({.l = {(int64_t[]){2}, -1}}));
  REFUSED("zeros", AMPL_EARG, "size has 4294967297 entries", V({.l = {(int64_t[]){2}, ((int64_t)1 << 32) + 1}}));
  REFUSED("sum", AMPL_EARG, "dim is no list", V(X, {.l = {NULL, 1}}));
  REFUSED("sum", AMPL_EARG, "dim is no list", V(X, {.l = {(int64_t[]){0}, -7}}));
  REFUSED("sum", AMPL_EINDEX, "dim", V(X, {.l = {(int64_t[]){INT64_MAX}, 1}}));
  REFUSED("softmax", AMPL_EINDEX, "dim", V(X, {.i = INT64_MAX}));
  REFUSED("softmax", AMPL_EINDEX, "dim", V(X, {.i = INT64_MIN + 1}));
  REFUSED("cat", AMPL_EARG, "tensors is no list", V({.ts = {NULL, 2}}));
  REFUSED("cat", AMPL_EARG, "tensors is no list", V({.ts = {(ampl_tensor *[]){x}, -1}}));
  REFUSED("cat", AMPL_EARG, "tensors is no list", V({.ts = {(ampl_tensor *[]){x}, (int64_t)1 << 32}}));
  REFUSED("relu", AMPL_EARG, "at most 1", V(X, X));
  REFUSED("view", AMPL_EARG, "x must be a tensor, not a plain number", V({.t = number}, {.l = {NULL, 0}}));
  REFUSED("cat", AMPL_EARG, "tensors must be tensors", V({.ts = {(ampl_tensor *[]){number}, 1}}));
  CHECK(ampl_run(ctx, "relu", NULL, -1, NULL, 0) == AMPL_EARG);
  CHECK(ampl_run(ctx, NULL, NULL, 0, NULL, 0) == AMPL_EARG);
}

/* Where NAN is not absent it is a number: a border of NaNs. */
static void nan_is_a_number(void) {
  ampl_tensor *y = NULL;
  float v[4] = {0};
  const int64_t row[] = {0, 1}, two[] = {1, 3};
  ampl_tensor *a = NULL;
  CHECK(ampl_zeros(ctx, AMPL_F32, 2, two, &a) == AMPL_OK);
  CHECK(ampl_run(ctx, "pad", V({.t = a}, {.l = {row, 2}}, {.i = 0}, {.f = NAN}), &y, 1) == AMPL_OK);
  CHECK(ampl_to_bytes(y, v, sizeof v) == AMPL_OK && v[2] == 0 && isnan(v[3]));
  ampl_tensor_release(y);
  ampl_tensor_release(a);
}

/* What exists for other ops alone cannot be called, whatever it is given. */
static void hidden_ops(void) {
  int hidden = 0, hosts = 0;
  for (int i = 0; i < ampl_op_number(); i++) {
    const ampl_op *op = ampl_op_at(i);
    const unsigned flags = ampl_op_flags(op);
    const ampl_value none[16] = {{.i = 0}};
    ampl_tensor *y = NULL;
    if (!(flags & AMPL_OP_INTERNAL) || flags & AMPL_OP_HOST) {
      hosts += (flags & AMPL_OP_HOST) != 0;
      check(ampl_op_find(ampl_op_name(op)) == op, ampl_op_name(op), __LINE__);
      continue;
    }
    hidden++;
    check(!ampl_op_find(ampl_op_name(op)), ampl_op_name(op), __LINE__);
    check(ampl_run(ctx, ampl_op_name(op), none, 1, &y, 1) == AMPL_EARG, ampl_op_name(op), __LINE__);
    check(ampl_run_op(ctx, op, none, 1, &y, 1) == AMPL_EARG, ampl_op_name(op), __LINE__);
    check(ampl_run_op_inplace(ctx, op, none, 1) == AMPL_EARG, ampl_op_name(op), __LINE__);
  }
  CHECK(hidden > 50 && hosts >= 12);
  CHECK(ampl_run_op_inplace(ctx, ampl_op_find("zeros"), NULL, 0) == AMPL_EARG);
  CHECK(strstr(ampl_error_message(ctx), "in-place"));
}

int main(void) {
  if (ampl_ctx_new(NULL, &ctx) != AMPL_OK) return 1;
  const float v[] = {0, 1, 2, 3, 4, 5};
  CHECK(ampl_from_bytes(ctx, AMPL_F32, 2, (int64_t[]){2, 3}, v, sizeof v, &x) == AMPL_OK);
  CHECK(ampl_number(ctx, 1.5, &number) == AMPL_OK);
  absent_is_the_default();
  required_is_missing();
  out_of_range();
  nan_is_a_number();
  hidden_ops();
  ampl_tensor_release(x);
  ampl_tensor_release(number);
  ampl_memory_info m;
  ampl_memory(ctx, &m);
  CHECK(m.tensors == 0);
  ampl_ctx_release(ctx);
  printf("%d passed, %d failed\n", passed, failed);
  return failed > 0;
}
