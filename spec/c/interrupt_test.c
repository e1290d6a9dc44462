/* interrupt_test.c: every op that has a kernel, interrupted on its way: it ends with AMPL_EINTR, its outputs are NULL,
 * what it writes in place is wholly old or wholly new, neither memory nor random numbers are lost, and the same call
 * gives the right result after.
 *
 *     interrupt_test                             the test: interrupted at each look, then at chance by another thread
 *     interrupt_test THREADS [DTYPE] [OP ...]    measures, on operands of some 100 MB: for each op the time of a call,
 *                                                the longest from an interrupt to its end, and how much of that the
 *                                                calling thread ran (on a busy machine it waits, too), in ms */
#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "ctx.h"
#include "op_table.h"

/* ---------------------------------------------------------------- cases */

/* A call: the arguments in the record's order, separated by spaces.  Sizes are numbers, or multiples and fractions of
 * n ("2n/64"); n is `small` in the test and `big` where it is measured.
 *     f:n,64   floats between 0 and 1     d: F: the same, always f64, f32     i9:n  integers below 9, i64
 *     b:n      bool      #n  a plain number   f'  turned: the last two dimensions lie the other way round in memory
 *     a+b      the entries of a list      [1;n]  numbers      f  the dtype of floats      _  absent */
typedef struct spec { const char *op; int64_t small, big; const char *args; } spec;

static const spec cases[] = {
#include "interrupt_cases.h"
};

enum { TENSORS = 16, LOOKS = 24, TRIES = 6 };

typedef struct call {
  const ampl_op *op;
  ampl_tensor   *t[TENSORS];
  int            nt;
  ampl_value     p[AMPL_ARGS_MAX];
  int64_t        lists[AMPL_ARGS_MAX][8];
} call;

static ampl_ctx *ctx;
static ampl_dtype floats = AMPL_F32;
static int passed, failed;

static void check(bool good, const char *op, const char *what) {
  if (good) passed++;
  else if (failed++ < 40) printf("%s: %s (last error: %s)\n", op, what, ampl_error_message(ctx));
}

/* ---------------------------------------------------------------- operands */

static double number(const char **s, int64_t n) {
  char *end;
  double v = strtod(*s, &end);
  if (*s == end) v = 1;
  if (*end == 'n') v *= (double)n, end++;
  if (*end == '/') v = floor(v / strtod(end + 1, &end));
  *s = end;
  return v;
}

static uint64_t draws = 1;
static uint32_t draw(void) { return (uint32_t)((draws = draws * 6364136223846793005u + 1442695040888963407u) >> 33); }

/* Values of `kind`, below `most` where they are integers. */
static ampl_status values(char kind, ampl_dtype t, int64_t most, int nd, const int64_t *shape, ampl_tensor **out) {
  int64_t count = 1;
  for (int d = 0; d < nd; d++) count *= shape[d];
  const bool whole = kind == 'i' || kind == 'b';
  const size_t bytes = (size_t)count * (kind == 'b' ? 1 : whole ? 8 : kind == 'd' ? 8 : 4);
  void *v = malloc(bytes + 1);
  ampl_tensor *x = NULL;
  if (!v) return AMPL_ENOMEM;
  for (int64_t i = 0; i < count; i++) {
    const uint32_t r = draw();
    if (kind == 'b') ((uint8_t *)v)[i] = r >> 7 & 1;
    else if (whole) ((int64_t *)v)[i] = (int64_t)(r % (uint64_t)most);
    else if (kind == 'd') ((double *)v)[i] = 0.05 + 0.9 * (double)(r & 0xffffff) * 0x1p-24;
    else ((float *)v)[i] = 0.05f + 0.9f * (float)(r & 0xffffff) * 0x1p-24f;
  }
  const ampl_dtype made = kind == 'b' ? AMPL_BOOL : whole ? AMPL_I64 : kind == 'd' ? AMPL_F64 : AMPL_F32;
  ampl_status s = ampl_from_bytes(ctx, made, nd, shape, v, bytes, &x);
  free(v);
  if (s == AMPL_OK && made != t) s = ampl_cast_to(ctx, x, t, out), ampl_tensor_release(x);
  else *out = x;
  return s;
}

static ampl_status tensor(const char **s, int64_t n, ampl_tensor **out) {
  const char kind = *(*s)++;
  int64_t most = 2, shape[AMPL_RANK_MAX];
  int nd = 0;
  bool turned = false;
  if (kind == '#') return ampl_integer(ctx, (int64_t)number(s, n), out);
  if (kind == 'i') most = (int64_t)number(s, n);
  if (**s == '\'') turned = true, (*s)++;
  while (**s == ':' || **s == ',') {
    (*s)++;
    if (strchr("0123456789n", **s) && **s) shape[nd++] = (int64_t)number(s, n);
  }
  const ampl_dtype t = kind == 'f' ? floats : kind == 'F' ? AMPL_F32 : kind == 'd' ? AMPL_F64
                       : kind == 'I' ? AMPL_I32 : kind == 'b' ? AMPL_BOOL : AMPL_I64;
  if (turned) {
    const int64_t last = shape[nd - 1];
    shape[nd - 1] = shape[nd - 2];
    shape[nd - 2] = last;
  }
  ampl_tensor *x;
  ampl_status status = values(kind == 'I' ? 'i' : kind, t, kind == 'I' ? 2 : most, nd, shape, &x);
  if (status != AMPL_OK || !turned) {
    *out = x;
    return status;
  }
  const ampl_value p[2] = {{.i = nd - 2}, {.i = nd - 1}};
  status = ampl_call(ctx, &(ampl_args){OP(transpose), &x, 1, p}, out);
  ampl_tensor_release(x);
  return status;
}

static void parameter(call *c, const char **s, int64_t n, const ampl_arg *a, int k) {
  if (a->kind == AMPL_ARG_FLOAT) c->p[k].f = number(s, n);
  else if (a->kind == AMPL_ARG_DTYPE) c->p[k].i = floats, (*s)++;
  else if (**s == '[') {
    int64_t length = 0;
    while (*++*s != ']')
      if (**s != ';') c->lists[k][length++] = (int64_t)number(s, n), (*s)--;
    c->p[k].l = (ampl_ints){c->lists[k], length};
    (*s)++;
  } else c->p[k].i = (int64_t)number(s, n);
}

static void release(call *c) {
  for (int i = 0; i < c->nt; i++) ampl_tensor_release(c->t[i]);
  c->nt = 0;
}

static ampl_status build(call *c, const ampl_op *op, const char *s, int64_t n) {
  const ampl_op_info *info = ampl_op_info_of(op);
  int tensors = 0, params = 0;
  *c = (call){.op = op, .nt = info->ntensor};
  draws = 1;
  for (const ampl_arg *a = op->args; a->name; a++) {
    const bool given = *s && *s != '_', list = a->kind == AMPL_ARG_TENSORS;
    if (list || a->kind == AMPL_ARG_TENSOR || a->kind == AMPL_ARG_TENSOR_OPT) {
      if (!list && given) AMPL_TRY(tensor(&s, n, &c->t[tensors]));
      if (!list) tensors++;
      while (list && *s && *s != ' ') {
        AMPL_TRY(tensor(&s, n, &c->t[c->nt]));
        c->nt++;
        if (*s == '+') s++;
      }
    } else {
      c->p[params] = a->def;
      if (given) parameter(c, &s, n, a, params);
      params++;
    }
    if (*s == '_') s++;
    if (*s == ' ') s++;
  }
  return AMPL_OK;
}

/* ---------------------------------------------------------------- results */

/* Of the bytes of a tensor's storage. */
static uint64_t digest(const ampl_tensor *x) {
  uint64_t h = 1469598103934665603u, word;
  const char *p = x ? x->storage->ptr : NULL;
  const size_t bytes = x ? x->storage->bytes : 0;
  size_t i = 0;
  for (; i + 8 <= bytes; i += 8) {
    memcpy(&word, p + i, 8);
    h = (h ^ word) * 1099511628211u;
    h ^= h >> 29;
  }
  for (; i < bytes; i++) h = (h ^ (uint8_t)p[i]) * 1099511628211u;
  return h;
}

typedef struct result { uint64_t out[AMPL_OUT_MAX], in[TENSORS], offset; } result;

static void note_operands(const call *c, result *r) {
  for (int i = 0; i < c->nt; i++) r->in[i] = digest(c->t[i]);
  r->offset = ctx->offset;
}

static bool same_operands(const call *c, const result *a, const result *b) {
  return memcmp(a->in, b->in, (size_t)c->nt * sizeof *a->in) == 0;
}

/* How a call is made: plainly, or into its first operand. */
typedef ampl_status (*way)(const call *c, ampl_tensor **out);

static ampl_status plainly(const call *c, ampl_tensor **out) {
  return ampl_call(ctx, &(ampl_args){c->op, c->t, c->nt, c->p}, out);
}

static ampl_status in_place(const call *c, ampl_tensor **out) {
  (void)out;
  return ampl_call_inplace(ctx, &(ampl_args){c->op, c->t, c->nt, c->p});
}

/* Operands that `how` writes are copies. */
static ampl_status fresh(const call *c, way how, call *copy) {
  const bool writes = c->op->flags & AMPL_OP_MUTATES;
  *copy = *c;
  memcpy(copy->lists, c->lists, sizeof copy->lists);
  for (int i = 0; i < AMPL_ARGS_MAX; i++)
    if (c->p[i].l.v == c->lists[i]) copy->p[i].l.v = copy->lists[i];
  for (int i = 0; i < c->nt; i++) {
    copy->t[i] = NULL;
    if (c->t[i] && (writes || (how == in_place && i == 0)))
      AMPL_TRY(ampl_call(ctx, &(ampl_args){OP(clone), &c->t[i], 1, NULL}, &copy->t[i]));
    else if ((copy->t[i] = c->t[i])) ampl_tensor_retain(c->t[i]);
  }
  return AMPL_OK;
}

static void drop(ampl_tensor **out) {
  for (int k = 0; k < AMPL_OUT_MAX; k++) {
    ampl_tensor_release(out[k]);
    out[k] = NULL;
  }
}

static void take(const call *c, ampl_tensor **out, result *r) {
  for (int k = 0; k < AMPL_OUT_MAX; k++) r->out[k] = digest(out[k]);
  note_operands(c, r);
  drop(out);
}

/* ---------------------------------------------------------------- interrupting */

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static double wanted, fired;            /* when to interrupt, 0: not; when it was done, 0: not yet */
static clockid_t caller;                /* the time that the calling thread has run */
static double run_then;                 /* of it, when it was interrupted */

static double has_run(void) {
  struct timespec t;
  clock_gettime(caller, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void *interrupter(void *unused) {
  (void)unused;
  pthread_mutex_lock(&mutex);
  for (;;) {
    while (wanted == 0) pthread_cond_wait(&changed, &mutex);
    const double left = wanted - now();
    if (left > 0) {
      pthread_mutex_unlock(&mutex);
      nanosleep(&(struct timespec){(time_t)left, (long)(1e9 * (left - floor(left)))}, NULL);
      pthread_mutex_lock(&mutex);
    }
    fired = now();
    run_then = has_run();
    ampl_interrupt(ctx);
    wanted = 0;
    pthread_cond_broadcast(&changed);
  }
  return NULL;
}

static void interrupt_in(double seconds) {
  pthread_mutex_lock(&mutex);
  fired = 0;
  wanted = now() + seconds;
  pthread_cond_broadcast(&changed);
  pthread_mutex_unlock(&mutex);
}

static double when_fired(void) {
  pthread_mutex_lock(&mutex);
  while (wanted != 0) pthread_cond_wait(&changed, &mutex);
  const double t = fired;
  pthread_mutex_unlock(&mutex);
  return t;
}

/* ---------------------------------------------------------------- the test */

typedef struct state { size_t live, tensors, storages; } state;
static state present(void) { return (state){ctx->live, ctx->tensors, ctx->storages}; }

/* After a call that was interrupted, perhaps too late: nothing is half done. */
static void judge(const call *c, const char *name, ampl_status s, ampl_tensor **out, const result *before,
                  const result *after) {
  result is;
  const bool given = s == AMPL_OK;
  bool none = true;
  check(given || s == AMPL_EINTR, name, "another error than AMPL_EINTR");
  if (!given) check(strstr(ampl_error_message(ctx), ": interrupted") != NULL, name, "the message");
  for (int k = 0; k < AMPL_OUT_MAX; k++) none &= out[k] == NULL;
  if (!given) check(none, name, "an output after an error");
  take(c, out, &is);
  check(same_operands(c, &is, given ? after : before), name,
        given ? "operands are not as the call leaves them" : "operands are not what they were");
  check(is.offset == (given ? after : before)->offset, name, "the random stream");
  if (given && c->op != OP(empty) && c->op != OP(empty_like))
    check(memcmp(is.out, after->out, sizeof is.out) == 0, name, "another result than without an interrupt");
}

/* One call of a copy, interrupted at look `at`, or after `seconds`; its status. */
static ampl_status once(const call *c, way how, const char *name, long at, double seconds, const result *before,
                        const result *after) {
  call copy;
  ampl_tensor *out[AMPL_OUT_MAX] = {NULL};
  const state outside = present();
  check(fresh(c, how, &copy) == AMPL_OK, name, "a copy");
  ampl_set_random_state(ctx, 7, before->offset);
  const state there = present();
  if (at) ampl_interrupt_at(ctx, at);
  else interrupt_in(seconds);
  const ampl_status s = how(&copy, out);
  if (!at) when_fired();
  ampl_interrupt_clear(ctx);
  if (s != AMPL_OK) {
    const state after_it = present();
    check(memcmp(&after_it, &there, sizeof there) == 0, name, "memory is lost");
  }
  judge(&copy, name, s, out, before, after);
  release(&copy);
  const state at_end = present();
  check(memcmp(&at_end, &outside, sizeof outside) == 0, name, "memory is lost by a copy");
  return s;
}

static int stopped;                     /* calls that ended early, after they had begun */

static void test(const call *c, way how, const char *name) {
  call copy;
  ampl_tensor *out[AMPL_OUT_MAX] = {NULL};
  result before, after;
  ampl_set_random_state(ctx, 7, 0);
  check(fresh(c, how, &copy) == AMPL_OK, name, "a copy");
  note_operands(&copy, &before);
  const double from = now();
  const ampl_status s = how(&copy, out);
  const double takes = now() - from;
  check(s == AMPL_OK, name, "without an interrupt");
  take(&copy, out, &after);
  release(&copy);
  if (s != AMPL_OK) return;
  ampl_status last = AMPL_EINTR;
  for (long at = 1, step = 1; last == AMPL_EINTR; at += step, step += at > LOOKS ? at / 4 : 0) {
    last = once(c, how, name, at, 0, &before, &after);
    stopped += at > 1 && last == AMPL_EINTR;
  }
  ampl_set_threads(ctx, 3);
  for (int i = 0; i < 3; i++) once(c, how, name, 0, takes * (0.1 + 0.4 * i), &before, &after);
  for (long at = 2; at < 40; at *= 3) once(c, how, name, at, 0, &before, &after);
  ampl_set_threads(ctx, 1);
}

/* ---------------------------------------------------------------- measuring */

static double worst;
static char worst_op[128];

static void measure(const call *c, way how, const char *name) {
  call copy;
  ampl_tensor *out[AMPL_OUT_MAX] = {NULL};
  double takes = 0, longest = 0, ran = 0;
  int early = 0;
  for (int i = -1; i < TRIES; i++) {
    if (fresh(c, how, &copy) != AMPL_OK) break;
    const double from = now();
    if (i >= 0) interrupt_in(takes * (0.02 + 0.98 * i / TRIES));
    const ampl_status s = how(&copy, out);
    const double end = now(), run_end = has_run();
    if (i < 0) takes = end - from;
    else {
      const double late = end - when_fired();
      early += s == AMPL_EINTR;
      if (late > longest) longest = late;
      if (run_end - run_then > ran) ran = run_end - run_then;
    }
    ampl_interrupt_clear(ctx);
    drop(out);
    release(&copy);
    if (s != AMPL_OK && s != AMPL_EINTR) {
      printf("%-34s %s\n", name, ampl_error_message(ctx));
      return;
    }
  }
  printf("%-34s %9.1f %8.1f %8.1f  %d%s\n", name, 1e3 * takes, 1e3 * longest, 1e3 * ran, early, ran > 0.1 ? "  !" : "");
  if (ran > worst) {
    worst = ran;
    snprintf(worst_op, sizeof worst_op, "%s", name);
  }
}

/* ---------------------------------------------------------------- all ops */

static bool has_kernel(const ampl_op *op) {
  for (int t = 0; t < AMPL_DTYPE_COUNT; t++)
    if (ampl_device_at(0)->kernels[op->id][t]) return true;
  return false;
}

/* Element-wise ops ask for tensors of one shape. */
static const char *elementwise_args(const ampl_op *op, const char *kind) {
  static char text[256];
  text[0] = 0;
  for (const ampl_arg *a = op->args; a->name; a++) {
    char one[16] = "_";
    if (a->kind == AMPL_ARG_TENSOR) snprintf(one, sizeof one, "%s:n", a->flags & AMPL_AS_IS ? "b" : kind);
    else if (a->flags & AMPL_REQUIRED) snprintf(one, sizeof one, "0.5");
    strcat(strcat(text, one), " ");
  }
  return text;
}

static void run(const ampl_op *op, const char *args, int64_t n, bool measured) {
  call c;
  char name[80];
  if (build(&c, op, args, n) != AMPL_OK) check(false, op->name, "operands");
  else {
    (measured ? measure : test)(&c, plainly, op->name);
    snprintf(name, sizeof name, "%s_", op->name);
    if (op->flags & AMPL_OP_INPLACE) (measured ? measure : test)(&c, in_place, name);
  }
  release(&c);
  ampl_memory_trim(ctx);
}

/* Which kind of operands an element-wise op takes. */
static const char *kind_for(const ampl_op *op) {
  static const char *const kinds[] = {"f", "i9", "b"};
  for (int i = 0; i < 3; i++) {
    call c;
    ampl_tensor *out[AMPL_OUT_MAX] = {NULL};
    const bool good = build(&c, op, elementwise_args(op, kinds[i]), 4) == AMPL_OK && plainly(&c, out) == AMPL_OK;
    drop(out);
    release(&c);
    if (good) return kinds[i];
  }
  return "f";
}

static void run_op(const ampl_op *op, bool measured) {
  bool found = false;
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    if (strcmp(cases[i].op, op->name) != 0) continue;
    found = true;
    run(op, cases[i].args, measured ? cases[i].big : cases[i].small, measured);
  }
  if (found) return;
  if (!(op->flags & AMPL_OP_ELEMENTWISE)) check(false, op->name, "has a kernel, but no case here");
  else run(op, elementwise_args(op, kind_for(op)), measured ? 16 << 20 : 40000, measured);
}

static bool asked_for(const char *name, int argc, char **argv) {
  for (int i = 3; i < argc; i++)
    if (strcmp(argv[i], name) == 0) return true;
  return argc <= 3;
}

int main(int argc, char **argv) {
  const bool measured = argc > 1;
  setvbuf(stdout, NULL, _IOLBF, 0);
  pthread_t id;
  if (ampl_ctx_new(NULL, &ctx) != AMPL_OK || pthread_create(&id, NULL, interrupter, NULL) != 0) return 1;
  pthread_detach(id);
  pthread_getcpuclockid(pthread_self(), &caller);
  if (argc > 2) floats = (ampl_dtype)ampl_dtype_from_name(argv[2]);
  ampl_set_threads(ctx, measured ? atoi(argv[1]) : 1);
  for (int i = 0; i < AMPL_OPID_COUNT; i++)
    if (has_kernel(ampl_op_table[i]) && asked_for(ampl_op_table[i]->name, argc, argv))
      run_op(ampl_op_table[i], measured);
  if (measured) printf("the longest: %.0f ms, %s\n", 1e3 * worst, worst_op);
  else check(stopped > 500, "all", "hardly any call was interrupted on its way");
  printf("%d passed, %d failed\n", passed, failed);
  return failed > 0;
}
