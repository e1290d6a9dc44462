/* embed.c: a C host that trains a small network with libampl alone, in mixed precision: y = sin(x).
 *
 *   cc examples/embed.c $(pkg-config --cflags --libs ampl) -lm -o embed && ./embed
 */
#include <ampl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { POINTS = 128, HIDDEN = 32, STEPS = 300, PARAMETERS = 4 };

/* Every failure ends here: the context knows what went wrong. */
static void check(ampl_ctx *ctx, ampl_status s) {
  if (s == AMPL_OK) return;
  fprintf(stderr, "%s: %s\n", ampl_status_name(s), ampl_error_message(ctx));
  exit(1);
}

/* The result of an op, which the caller releases. */
static ampl_tensor *run(ampl_ctx *ctx, const char *op, const ampl_value *args, int n) {
  ampl_tensor *out;
  check(ctx, ampl_run(ctx, op, args, n, &out, 1));
  return out;
}
#define RUN(op, ...) \
  run(ctx, op, (ampl_value[]){__VA_ARGS__}, (int)(sizeof((ampl_value[]){__VA_ARGS__}) / sizeof(ampl_value)))

/* A parameter of the shape (rows, columns), or (rows) where columns is 0, uniform in -bound .. bound. */
static ampl_tensor *parameter(ampl_ctx *ctx, int rows, int columns, float bound) {
  ampl_tensor *p;
  check(ctx, ampl_empty(ctx, AMPL_F32, columns ? 2 : 1, (int64_t[]){rows, columns}, &p));
  float *data = ampl_data(p);
  for (int64_t i = 0; i < ampl_numel(p); i++) data[i] = bound * (2.f * (float)rand() / (float)RAND_MAX - 1.f);
  check(ctx, ampl_set_requires_grad(p, true));
  return p;
}

/* (points, 1) -> (points, 1), by one hidden layer. */
static ampl_tensor *forward(ampl_ctx *ctx, ampl_tensor *const *p, ampl_tensor *x) {
  ampl_tensor *a = RUN("linear", {.t = x}, {.t = p[0]}, {.t = p[1]});
  ampl_tensor *h = RUN("tanh", {.t = a});
  ampl_tensor *y = RUN("linear", {.t = h}, {.t = p[2]}, {.t = p[3]});
  ampl_tensor_release(a);
  ampl_tensor_release(h);
  return y;
}

int main(void) {
  ampl_ctx *ctx;
  if (ampl_ctx_new(NULL, &ctx) != AMPL_OK) return 1;

  float points[POINTS], values[POINTS];
  for (int i = 0; i < POINTS; i++) points[i] = -3.f + 6.f * (float)i / (POINTS - 1), values[i] = sinf(points[i]);
  ampl_tensor *x, *target;
  check(ctx, ampl_from_bytes(ctx, AMPL_F32, 2, (int64_t[]){POINTS, 1}, points, sizeof points, &x));
  check(ctx, ampl_from_bytes(ctx, AMPL_F32, 2, (int64_t[]){POINTS, 1}, values, sizeof values, &target));

  /* Parameters, their gradients, Adam's two moments, and its count of steps, as adam_step wants them: list by list. */
  ampl_tensor *t[5 * PARAMETERS] = {parameter(ctx, HIDDEN, 1, 1.f), parameter(ctx, HIDDEN, 0, 1.f),
                                    parameter(ctx, 1, HIDDEN, 0.2f), parameter(ctx, 1, 0, 0.2f)};
  for (int i = 0; i < PARAMETERS; i++) {
    for (int k = 2; k < 4; k++)
      check(ctx, ampl_zeros(ctx, AMPL_F32, ampl_ndim(t[i]), ampl_shape(t[i]), &t[k * PARAMETERS + i]));
    check(ctx, ampl_zeros(ctx, AMPL_F32, 0, NULL, &t[4 * PARAMETERS + i]));
  }

  for (int step = 1; step <= STEPS; step++) {
    check(ctx, ampl_autocast_enter(ctx, true, AMPL_BF16, true));
    ampl_tensor *y = forward(ctx, t, x);
    ampl_tensor *loss = RUN("mse_loss", {.t = y}, {.t = target});
    ampl_autocast_leave(ctx);
    check(ctx, ampl_backward(loss, NULL, 0));

    for (int i = 0; i < PARAMETERS; i++) t[PARAMETERS + i] = ampl_grad_of(t[i]);        /* lent */
    ampl_value adam[] = {{.t = NULL}, {.t = NULL}, {.ts = {t, 5 * PARAMETERS}}, {.i = PARAMETERS}, {.f = 0.01}};
    check(ctx, ampl_run(ctx, "adam_step", adam, 5, NULL, 0));
    for (int i = 0; i < PARAMETERS; i++) check(ctx, ampl_set_grad(t[i], NULL));

    double value;
    check(ctx, ampl_item(loss, &value));
    if (step % 50 == 0) printf("step %d  loss %.6f\n", step, value);
    ampl_tensor_release(loss);
    ampl_tensor_release(y);
  }

  for (int k = 0; k < 5; k++)
    for (int i = 0; k != 1 && i < PARAMETERS; i++) ampl_tensor_release(t[k * PARAMETERS + i]);
  ampl_tensor_release(x);
  ampl_tensor_release(target);
  ampl_ctx_release(ctx);
  return 0;
}
