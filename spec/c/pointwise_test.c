/* pointwise_test.c: the CPU's element-wise kernels against single elements in f64, over random shapes, strides, dtypes,
 * broadcasts, overlaps and numbers of threads, on each instruction set. */
#include "isa/pointwise.h"
#include "op.h"
#include "sweep.h"

static ampl_ctx *ctx;

static const struct { const char *name; int op, nin; bool ints, test; } ops[] = {
  {"add", AMPL_PW_add, 2, true, false}, {"mul", AMPL_PW_mul, 2, true, false}, {"sub", AMPL_PW_sub, 2, true, false},
  {"neg", AMPL_PW_neg, 1, true, false}, {"abs", AMPL_PW_abs, 1, true, false}, {"tanh", AMPL_PW_tanh, 1, false, false},
  {"maximum", AMPL_PW_maximum, 2, true, false}, {"gt", AMPL_PW_gt, 2, true, true}, {"le", AMPL_PW_le, 2, true, true},
  {"where", AMPL_PW_where, 3, true, false}, {"clamp", AMPL_PW_clamp, 3, true, false},
  {"lerp", AMPL_PW_lerp, 3, false, false}, {"gelu_backward", AMPL_PW_gelu_backward, 2, false, false},
};

/* ------------------------------------------------------------------------------------------------ tensors --------- */

typedef struct operand { ampl_tensor x; ampl_storage storage; void *memory; double number; } operand;

/* Dimensions in any order in memory, with gaps; broadcast where `spread` allows */
static void lay_out (ampl_tensor *x, int dtype, int nd, const int64_t *shape, bool spread, int64_t *span) {
  int order[AMPL_RANK_MAX];
  const bool plain = one_in(2);
  int64_t step = 1, dense = 1;
  *x = (ampl_tensor){.dtype = (uint8_t)dtype, .ndim = (uint8_t)nd, .numel = 1};
  *span = 1;
  for (int d = 0; d < nd; d++) order[d] = nd - 1 - d;
  for (int d = 0; d < nd && !plain; d++) {
    const int k = (int)below(nd), t = order[d];
    order[d] = order[k], order[k] = t;
  }
  for (int i = 0; i < nd; i++) {
    const int d = order[i];
    x->shape[d] = spread && one_in(4) ? 1 : shape[d];
    x->numel *= x->shape[d];
    x->strides[d] = spread && one_in(8) ? 0 : step;
    if (x->strides[d]) step *= x->shape[d] + (plain || !one_in(4) ? 0 : below(3));
    if (x->shape[d] > 0) *span += (x->shape[d] - 1) * x->strides[d];
  }
  bool contiguous = true;
  for (int d = nd - 1; d >= 0; dense *= x->shape[d--]) contiguous &= x->shape[d] == 1 || x->strides[d] == dense;
  if (contiguous) x->flags |= AMPL_T_CONTIGUOUS;
}

static void make_operand (operand *o, int dtype, int nd, const int64_t *shape) {
  int64_t span;
  if (one_in(6)) {
    o->number = (double)(below(9) - 4) / (ampl_dtype_is_float((ampl_dtype)dtype) ? 4 : 1);
    o->x = (ampl_tensor){.dtype = AMPL_F64, .numel = 1, .flags = AMPL_T_NUMBER | AMPL_T_CONTIGUOUS, .data = &o->number};
    o->memory = NULL;
    if (!ampl_dtype_is_float((ampl_dtype)dtype)) {
      const int64_t whole = (int64_t)o->number;
      memcpy(&o->number, &whole, sizeof whole);
      o->x.dtype = AMPL_I64;
    }
  } else {
    lay_out(&o->x, dtype, nd, shape, true, &span);
    o->memory = o->x.data = make(dtype, span);
  }
  o->x.storage = &o->storage;
}

/* Element i, row-major over `shape`, of x, which broadcasts to it */
static double at (const ampl_tensor *x, int nd, const int64_t *shape, int64_t i) {
  int64_t offset = 0;
  for (int d = nd - 1; d >= 0; i /= shape[d--]) {
    const int own = d - (nd - x->ndim);
    if (own >= 0 && x->shape[own] != 1) offset += i % shape[d] * x->strides[own];
  }
  return element(x->dtype == AMPL_BOOL ? AMPL_U8 : x->dtype, x->data, offset);
}

/* ------------------------------------------------------------------------------------------------ one case -------- */

static double slack_of (int dtype, double want) {
  const double part = dtype == AMPL_F64 ? 1e-12 : dtype == AMPL_F16 ? 0x1p-10 : dtype == AMPL_BF16 ? 0x1p-7 : 1e-6;
  return part * (fabs(want) + (dtype == AMPL_F16 ? 1e-3 : 0.5));
}

static double wanted (int k, const operand *o, int dtype, int nd, const int64_t *shape, int64_t i) {
  static const ampl_value p[AMPL_POINTWISE_PARAMS];
  double v[3] = {0}, y;
  const double *in[3] = {&v[0], &v[1], &v[2]};
  for (int j = 0; j < ops[k].nin; j++) v[j] = at(&o[j].x, nd, shape, i);
  for (int j = 0; j < ops[k].nin && ops[k].test && dtype != AMPL_F64; j++)      /* numbers as values of the dtype */
    if (o[j].x.flags & AMPL_T_NUMBER && ampl_dtype_is_float((ampl_dtype)dtype)) v[j] = (float)v[j];
  const ampl_value alpha[AMPL_POINTWISE_PARAMS] = {{.f = 1}};
  const bool takes = ops[k].op == AMPL_PW_add || ops[k].op == AMPL_PW_sub;
  ampl_pointwise_in_f64[ops[k].op](&y, in, (const int64_t[]){1, 1, 1}, 1, takes ? alpha : p);
  return y;
}

static void check_case (bool large) {
  static const int dtypes[] = {AMPL_F32, AMPL_F32, AMPL_F64, AMPL_F16, AMPL_BF16, AMPL_I64, AMPL_I32};
  const int k = (int)below(sizeof ops / sizeof *ops), dtype = ops[k].ints ? PICK(dtypes) : dtypes[below(5)];
  const int nd = (int)below(large ? 4 : 5);
  int64_t shape[AMPL_RANK_MAX], span, n = 1;
  for (int d = 0; d < nd; d++) {
    const long most = large ? (nd == 1 ? 60000 : nd == 2 ? 400 : 50) : one_in(3) ? 40 : 6;
    shape[d] = one_in(30) ? 0 : 1 + below(most);
    n *= shape[d];
  }
  operand o[3];
  ampl_tensor y, *in[3] = {&o[0].x, &o[1].x, &o[2].x};
  ampl_storage storage = {0};
  for (int j = 0; j < ops[k].nin; j++) {
    const bool mask = ops[k].op == AMPL_PW_where && j == 0;
    make_operand(&o[j], mask ? AMPL_U8 : dtype, nd, shape);
    if (mask) o[j].x.dtype = o[j].memory ? AMPL_BOOL : o[j].x.dtype;
  }
  bool numbers = true;          /* all plain: nothing says what dtype a comparison has */
  for (int j = 0; j < ops[k].nin; j++) numbers &= (o[j].x.flags & AMPL_T_NUMBER) != 0;
  const int out_dtype = ops[k].test ? AMPL_BOOL : dtype;
  lay_out(&y, out_dtype, nd, shape, false, &span);
  y.data = calloc((size_t)span, size_of(out_dtype));
  y.storage = &storage;
  double *want = malloc((size_t)(n ? n : 1) * sizeof *want);
  for (int64_t i = 0; i < n; i++) want[i] = wanted(k, o, dtype, nd, shape, i);
  const ampl_value p[AMPL_POINTWISE_PARAMS] = {{.f = 1}}, none[AMPL_POINTWISE_PARAMS] = {{.f = 0}};
  const bool takes = ops[k].op == AMPL_PW_add || ops[k].op == AMPL_PW_sub;
  ampl_set_threads(ctx, 1 + (int)below(3));
  const ampl_status s = ampl_cpu_pointwise(ctx, ops[k].op, &y, in, ops[k].nin, takes ? p : none);
  if (s != AMPL_OK) fault("%s: %s", ops[k].name, ampl_error_message(ctx));
  for (int64_t i = 0; i < n && s == AMPL_OK && !numbers; i++) {
    const double got = at(&y, nd, shape, i);
    if (!(fabs(got - want[i]) <= (out_dtype == AMPL_BOOL || dtype >= AMPL_I64 ? 0 : slack_of(dtype, want[i]))))
      fault("%s %s, %d dimensions: element %ld of %ld is %.9g, expected %.9g", ops[k].name,
            ampl_dtype_name((ampl_dtype)dtype), nd, (long)i, (long)n, got, want[i]);
  }
  for (int j = 0; j < ops[k].nin; j++) free(o[j].memory);
  free(y.data), free(want);
  end_case();
}

/* The output is one operand, and another one is the same memory seen otherwise. */
static void check_overlap (void) {
  const int64_t n = 1 + below(150), shape[] = {n, n};
  ampl_storage storage = {0};
  float *memory = make(AMPL_F32, n * n), *before = copy_of(memory, (size_t)(n * n) * sizeof *memory);
  ampl_tensor y = {.dtype = AMPL_F32, .ndim = 2, .numel = n * n, .flags = AMPL_T_CONTIGUOUS, .data = memory};
  y.storage = &storage, y.shape[0] = y.shape[1] = n, y.strides[0] = n, y.strides[1] = 1;
  ampl_tensor turned = y;
  turned.strides[0] = 1, turned.strides[1] = n, turned.flags = 0;
  const ampl_value p[AMPL_POINTWISE_PARAMS] = {{.f = 1}};
  if (ampl_cpu_pointwise(ctx, AMPL_PW_add, &y, (ampl_tensor *[]){&y, &turned}, 2, p) != AMPL_OK) fault("overlap");
  for (int64_t i = 0; i < n * n; i++) {
    const float want = before[i] + before[i % n * n + i / n];
    if (at(&y, 2, shape, i) != want) fault("x + x:t() in place: element %ld of %ld", (long)i, (long)(n * n));
  }
  free(memory), free(before);
  end_case();
}

static void sweep (void) {
  if (ampl_ctx_new(NULL, &ctx) != AMPL_OK) exit(1);
  for (int i = 0; i < 6000; i++) check_case(false);
  for (int i = 0; i < 400; i++) check_case(true);
  for (int i = 0; i < 40; i++) check_overlap();
  ampl_ctx_release(ctx);
}

int main (void) { return run_sweeps(sweep); }
