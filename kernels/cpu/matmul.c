/* matmul.c: matmul and linear as calls of ampl_cpu_gemm: operands are taken with the strides they have. */
#include "gemm.h"
#include "op.h"

#include <string.h>

/* Batch dimensions of the result, with the strides of both operands; merged where all three allow it. */
typedef struct batches {
  int     n;
  int64_t size[AMPL_RANK_MAX], a[AMPL_RANK_MAX], b[AMPL_RANK_MAX], c[AMPL_RANK_MAX];
} batches;

/* The stride of operand x for dimension d of the result's nd batch dimensions; 0 where it broadcasts. */
static int64_t batch_stride(const ampl_tensor *x, int nd, int d) {
  const int k = d - nd + (x->ndim - 2);
  return x->ndim < 3 || k < 0 || x->shape[k] == 1 ? 0 : x->strides[k];
}

static void find_batches(batches *t, const ampl_tensor *a, const ampl_tensor *b, const ampl_tensor *y, int nd) {
  t->n = 0;
  for (int d = 0; d < nd; d++) {
    const int64_t size = y->shape[d], sa = batch_stride(a, nd, d), sb = batch_stride(b, nd, d), sc = y->strides[d];
    const int p = t->n - 1;
    if (size == 1) continue;
    if (p >= 0 && t->a[p] == sa * size && t->b[p] == sb * size && t->c[p] == sc * size) {
      t->size[p] *= size, t->a[p] = sa, t->b[p] = sb, t->c[p] = sc;
      continue;
    }
    t->size[t->n] = size, t->a[t->n] = sa, t->b[t->n] = sb, t->c[t->n++] = sc;
  }
}

/* The rows of a batch that shares B are rows of one product, where A and C step evenly from one matrix to the next. */
static void batch_as_rows(batches *t, ampl_cpu_gemm_args *g) {
  const int p = t->n - 1;
  if (p < 0 || t->b[p] != 0 || t->a[p] != g->m * g->a_row || t->c[p] != g->m * g->c_row) return;
  g->m *= t->size[p];
  t->n--;
}

/* Products for every batch: the last two dimensions inside the call, others around it. */
static ampl_status run_batches(const batches *t, ampl_cpu_gemm_args *g, size_t size, size_t c_size) {
  int64_t around = 1;
  const int outer = t->n > 2 ? t->n - 2 : 0;
  const char *a = g->a, *b = g->b;
  char *c = g->c;
  for (int d = outer; d < t->n; d++) {
    const int k = d - outer + (t->n - outer == 1);
    g->batch[k] = t->size[d], g->a_batch[k] = t->a[d], g->b_batch[k] = t->b[d], g->c_batch[k] = t->c[d];
  }
  for (int d = 0; d < outer; d++) around *= t->size[d];
  for (int64_t i = 0; i < around; i++) {
    int64_t at[3] = {0, 0, 0}, rest = i;
    for (int d = outer - 1; d >= 0; d--) {
      const int64_t k = rest % t->size[d];
      rest /= t->size[d];
      at[0] += k * t->a[d], at[1] += k * t->b[d], at[2] += k * t->c[d];
    }
    g->a = a + at[0] * (int64_t)size;
    g->b = b + at[1] * (int64_t)size;
    g->c = c + at[2] * (int64_t)c_size;
    AMPL_TRY(ampl_cpu_gemm(g));
  }
  return AMPL_OK;
}

static ampl_status matmul(ampl_ctx *ctx, const ampl_args *in, ampl_tensor **out) {
  const ampl_tensor *a = in->t[0], *b = in->t[1], *y = out[0];
  ampl_cpu_gemm_args g = {.ctx = ctx,
                          .threads = ampl_threads(ctx),
                          .a = a->data,
                          .b = b->data,
                          .c = y->data,
                          .a_dtype = a->dtype,
                          .b_dtype = b->dtype,
                          .c_dtype = y->dtype};
  const int na = a->ndim, nb = b->ndim;
  batches t;
  if (y->numel == 0) return AMPL_OK;
  g.k = a->shape[na - 1];
  g.m = na > 1 ? a->shape[na - 2] : 1;
  g.n = nb > 1 ? b->shape[nb - 1] : 1;
  g.a_col = a->strides[na - 1];
  g.a_row = na > 1 ? a->strides[na - 2] : 0;
  g.b_row = nb > 1 ? b->strides[nb - 2] : b->strides[0];
  g.b_col = nb > 1 ? b->strides[nb - 1] : 1;
  g.c_row = g.n;
  find_batches(&t, a, b, y, y->ndim - (na > 1) - (nb > 1));
  batch_as_rows(&t, &g);
  return run_batches(&t, &g, ampl_dtype_size((ampl_dtype)a->dtype), ampl_dtype_size((ampl_dtype)y->dtype));
}

/* x (rows, k): leading dimensions are a batch of row blocks that shares W. */
static ampl_status linear(ampl_ctx *ctx, const ampl_args *in, ampl_tensor **out) {
  const ampl_tensor *x = in->t[0], *w = in->t[1], *bias = in->t[2], *y = out[0];
  const int nx = x->ndim;
  ampl_cpu_gemm_args g = {.ctx = ctx,
                          .threads = ampl_threads(ctx),
                          .a = x->data,
                          .b = w->data,
                          .c = y->data,
                          .a_dtype = x->dtype,
                          .b_dtype = w->dtype,
                          .c_dtype = y->dtype};
  batches t = {0};
  if (y->numel == 0) return AMPL_OK;
  g.k = x->shape[nx - 1];
  g.a_col = x->strides[nx - 1];
  g.n = w->ndim == 2 ? w->shape[0] : 1;
  g.b_row = w->strides[w->ndim - 1];
  g.b_col = w->ndim == 2 ? w->strides[0] : 1;
  g.c_row = g.n;
  if (bias && bias->ndim <= 1 && bias->numel == g.n && (g.n == 1 || bias->strides[0] == 1))
    g.bias = bias->data, g.bias_dtype = bias->dtype;
  g.m = nx > 1 ? x->shape[nx - 2] : 1;
  g.a_row = nx > 1 ? x->strides[nx - 2] : 0;
  int64_t c = g.m * g.n;
  for (int d = nx - 3; d >= 0; d--) {   /* innermost last */
    for (int k = t.n; k > 0; k--)
      t.size[k] = t.size[k - 1], t.a[k] = t.a[k - 1], t.b[k] = t.b[k - 1], t.c[k] = t.c[k - 1];
    t.size[0] = x->shape[d], t.a[0] = x->strides[d], t.b[0] = 0, t.c[0] = c;
    t.n++;
    c *= x->shape[d];
  }
  while (t.n > 0) {                     /* merge from the inside as far as x steps evenly */
    const int before = t.n;
    batch_as_rows(&t, &g);
    if (t.n == before) break;
  }
  AMPL_TRY(run_batches(&t, &g, ampl_dtype_size((ampl_dtype)x->dtype), ampl_dtype_size((ampl_dtype)y->dtype)));
  if (!bias || g.bias) return AMPL_OK;
  return ampl_call_inplace(ctx, &(ampl_args){OP(add), (ampl_tensor *[]){out[0], (ampl_tensor *)bias}, 2, NULL});
}

#define ALL(name, fn)                                                                                                  \
  {name, AMPL_F32, fn}, {name, AMPL_F16, fn}, {name, AMPL_BF16, fn}, {name, AMPL_F64, fn}, {name, AMPL_I64, fn},       \
      {name, AMPL_I32, fn}, {                                                                                          \
    name, AMPL_U8, fn                                                                                                  \
  }
const ampl_kernel ampl_cpu_matmul_kernels[] = {
    ALL("matmul", matmul), ALL("product", matmul), ALL("linear", linear), {NULL, 0, NULL}};
