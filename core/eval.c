/* eval.c: expressions over ops, for backward formulas and composites; see op.h. */
#include "ctx.h"
#include "op_table.h"

#include <stdlib.h>
#include <string.h>

void ampl_eval_begin(ampl_eval *e, ampl_ctx *ctx) {
  e->ctx = ctx;
  e->status = AMPL_OK;
  e->n = 0;
  e->cap = (int)(sizeof e->first / sizeof *e->first);
  e->made = e->first;
}

ampl_status ampl_eval_end(ampl_eval *e) {
  for (int i = 0; i < e->n; i++) ampl_tensor_release(e->made[i]);
  if (e->made != e->first) free(e->made);
  return e->status;
}

ampl_tensor *ampl_eval_own(ampl_eval *e, ampl_tensor *x) {
  if (!x) return NULL;
  if (e->n == e->cap) {
    ampl_tensor **more = ampl_heap_resize(e->ctx, NULL, 2 * (size_t)e->cap * sizeof *more);
    if (!more) {
      ampl_tensor_release(x);
      e->status = ampl_error(e->ctx, AMPL_ENOMEM, "out of memory");
      return NULL;
    }
    memcpy(more, e->made, (size_t)e->n * sizeof *more);
    if (e->made != e->first) free(e->made);
    e->made = more;
    e->cap *= 2;
  }
  return e->made[e->n++] = x;
}

void ampl_eval_outs(ampl_eval *e, const ampl_op *op, ampl_tensor *const *t, int nt, const ampl_value *p, int np,
                    ampl_tensor **out) {
  const ampl_op_info *info = ampl_op_info_of(op);
  ampl_tensor *few[2 * AMPL_TENSORS_MAX];
  ampl_value all[AMPL_ARGS_MAX];
  for (int k = 0; k < info->nout; k++) out[k] = NULL;
  if (e->status != AMPL_OK) return;
  for (int i = 0; i < info->nparam; i++) all[i] = i < np ? p[i] : op->args[info->param_arg[i]].def;
  if (nt < info->ntensor) {             /* trailing optional operands left out */
    for (int i = 0; i < info->ntensor; i++) few[i] = i < nt ? t[i] : NULL;
    t = few;
    nt = info->ntensor;
  }
  const ampl_args in = {op, t, nt, all};
  e->status = ampl_call(e->ctx, &in, out);
  for (int k = 0; k < info->nout; k++) out[k] = ampl_eval_own(e, out[k]);
}

ampl_tensor *ampl_eval_op(ampl_eval *e, const ampl_op *op, ampl_tensor *const *t, int nt, const ampl_value *p, int np) {
  ampl_tensor *out[AMPL_OUT_MAX] = {NULL};
  ampl_eval_outs(e, op, t, nt, p, np, out);
  return e->status == AMPL_OK ? out[0] : NULL;
}

ampl_status ampl_eval_return(ampl_eval *e, ampl_tensor *x, ampl_tensor **out) {
  if (e->status != AMPL_OK || !x) return e->status;
  ampl_tensor_retain(x);
  *out = x;
  return AMPL_OK;
}

ampl_tensor *ampl_eval_num(ampl_eval *e, double v) {
  if (e->status != AMPL_OK) return NULL;
  ampl_tensor *x = ampl_number_new(e->ctx, AMPL_F64, v, 0);
  if (!x) e->status = ampl_error(e->ctx, AMPL_ENOMEM, "out of memory");
  return ampl_eval_own(e, x);
}

ampl_tensor *ampl_eval_sum_to(ampl_eval *e, ampl_tensor *x, int ndim, const int64_t *shape) {
  int64_t dims[AMPL_RANK_MAX];
  int n = 0;
  if (!x || e->status != AMPL_OK) return NULL;
  const int lead = x->ndim - ndim;
  for (int d = 0; d < x->ndim; d++)
    if (d < lead || (shape[d - lead] == 1 && x->shape[d] != 1)) dims[n++] = d;
  if (n == 0) return x;
  ampl_tensor *y = EV(e, sum, T(x), P(V_L(n, dims), V_I(true)));
  if (lead == 0) return y;
  return EV(e, reshape, T(y), P(V_L(ndim, shape)));
}

void ampl_grad_set(ampl_grad *g, int i, ampl_tensor *v) {
  if (!g->need[i] || !v) return;
  g->dx[i] = ampl_eval_sum_to(&g->e, v, g->xm[i].ndim, g->xm[i].shape);
}
