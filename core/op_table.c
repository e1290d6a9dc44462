/* op_table.c: the table of records, look-up by name, and calls by plain argument lists. */
#include "ctx.h"
#include "op_table.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

const ampl_op *const ampl_op_table[AMPL_OPID_COUNT] = {
#undef OP
#define OP(id) &ampl_op_##id,
#include "ops.def"
#undef OP
#define OP(id) (&ampl_op_##id)
};

static ampl_op_info infos[AMPL_OPID_COUNT];
static const ampl_op *by_name[AMPL_OPID_COUNT];
static pthread_once_t once = PTHREAD_ONCE_INIT;
static atomic_bool built;               /* spares every call the price of pthread_once */

static int compare(const void *a, const void *b) {
  return strcmp((*(const ampl_op *const *)a)->name, (*(const ampl_op *const *)b)->name);
}

static void describe(const ampl_op *op, ampl_op_info *info) {
  info->list = -1;
  info->nout = op->nout == AMPL_OUT_NONE ? 0 : op->nout ? op->nout : 1;
  for (int a = 0; a < AMPL_ARGS_MAX && op->args[a].name; a++) {
    const int kind = op->args[a].kind;
    info->narg++;
    if (kind == AMPL_ARG_TENSORS) info->list = (int8_t)a;
    else if (kind == AMPL_ARG_TENSOR || kind == AMPL_ARG_TENSOR_OPT) {
      info->slot[a] = (int8_t)info->ntensor;
      info->tensor_arg[info->ntensor++] = (uint8_t)a;
    } else {
      info->slot[a] = (int8_t)info->nparam;
      info->param_arg[info->nparam++] = (uint8_t)a;
    }
  }
}

static void build(void) {
  for (int i = 0; i < AMPL_OPID_COUNT; i++) describe(ampl_op_table[i], &infos[i]);
  memcpy(by_name, ampl_op_table, sizeof by_name);
  qsort(by_name, AMPL_OPID_COUNT, sizeof *by_name, compare);
  atomic_store_explicit(&built, true, memory_order_release);
}

const ampl_op_info *ampl_op_info_of(const ampl_op *op) {
  if (!atomic_load_explicit(&built, memory_order_acquire)) pthread_once(&once, build);
  return &infos[op->id];
}

const ampl_op *ampl_op_named(const char *name) {
  pthread_once(&once, build);
  int lo = 0, hi = name ? AMPL_OPID_COUNT : 0;
  while (lo < hi) {
    const int mid = (lo + hi) / 2, c = strcmp(name, by_name[mid]->name);
    if (c == 0) return by_name[mid];
    if (c < 0) hi = mid;
    else lo = mid + 1;
  }
  return NULL;
}

static bool hidden(const ampl_op *op) { return op->flags & AMPL_OP_INTERNAL && !(op->flags & AMPL_OP_HOST); }

const ampl_op *ampl_op_find(const char *name) {
  const ampl_op *op = name ? ampl_op_named(name) : NULL;
  return op && !hidden(op) ? op : NULL;
}

int ampl_op_number(void) { return AMPL_OPID_COUNT; }
const ampl_op *ampl_op_at(int i) { return i >= 0 && i < AMPL_OPID_COUNT ? ampl_op_table[i] : NULL; }
const char *ampl_op_name(const ampl_op *op) { return op ? op->name : ""; }
const char *ampl_op_doc(const ampl_op *op) { return op && op->doc ? op->doc : ""; }
const ampl_arg *ampl_op_args(const ampl_op *op) { return op ? op->args : NULL; }
int ampl_op_nout(const ampl_op *op) { return op ? ampl_op_info_of(op)->nout : 0; }
unsigned ampl_op_flags(const ampl_op *op) { return op ? op->flags : 0; }
bool ampl_op_has_backward(const ampl_op *op) {
  return op && (op->backward || (op->compose && !(op->flags & AMPL_OP_NO_GRAD)));
}

const char *ampl_op_category(const ampl_op *op, const char **why) {
  static const char *const names[][2] = {
#define AMPL_X(name, text) {#name, text},
      AMPL_CAST_MAP(AMPL_X)
#undef AMPL_X
  };
  if (why) *why = op ? names[op->cast][1] : "";
  return !op ? "" : names[op->cast][0];
}

ampl_status ampl_run(ampl_ctx *ctx, const char *name, const ampl_value *args, int nargs, ampl_tensor **out, int nout) {
  AMPL_NEED(NULL, ctx);
  AMPL_NEED(ctx, name);
  if (nout > 0) AMPL_NEED(ctx, out);
  const ampl_op *op = ampl_op_find(name);
  for (int k = 0; k < nout; k++) out[k] = NULL;
  ctx->op = "";
  return op ? ampl_run_op(ctx, op, args, nargs, out, nout)
            : ampl_error(ctx, AMPL_EARG, "there is no op \"%.60s\"", name);
}

enum { LIST_MAX = 1 << 28 };    /* tensors in a list */

static ampl_status check_plain(ampl_ctx *ctx, const ampl_op *op, const ampl_op_info *info, int nargs,
                               const ampl_list *list, bool inplace) {
  if (hidden(op)) return ampl_error(ctx, AMPL_EARG, "is called by other ops only");
  if (inplace && !(op->flags & AMPL_OP_INPLACE)) return ampl_error(ctx, AMPL_EARG, "has no in-place form");
  if (nargs < 0 || nargs > info->narg)
    return ampl_error(ctx, AMPL_EARG, "%d arguments given, at most %d taken", nargs, info->narg);
  if (list->n < 0 || list->n > LIST_MAX || (list->n > 0 && !list->v))
    return ampl_error(ctx, AMPL_EARG, "%s is no list: %lld entries at %p", op->args[info->list].name,
                      (long long)list->n, (const void *)list->v);
  return AMPL_OK;
}

/* Sorts plain arguments into operands and parameters, and calls. */
static ampl_status sort_and_call(ampl_ctx *ctx, const ampl_op *op, const ampl_op_info *info, const ampl_value *args,
                                 int nargs, ampl_list list, ampl_tensor **all, bool inplace) {
  ampl_tensor *few[2 * AMPL_TENSORS_MAX], **t = few;
  ampl_value p[AMPL_ARGS_MAX];
  const int nt = info->ntensor + (int)list.n;
  if (nt > 2 * AMPL_TENSORS_MAX && !(t = ampl_obj_get(ctx, (size_t)nt * sizeof *t)))
    return ampl_error(ctx, AMPL_ENOMEM, "out of memory");
  ampl_status s = AMPL_OK;
  for (int a = 0; a < info->narg && s == AMPL_OK; a++) {
    const ampl_arg *arg = &op->args[a];
    const bool given = a < nargs;
    if (a == info->list) continue;
    if (!given && arg->flags & AMPL_REQUIRED) s = ampl_error(ctx, AMPL_EARG, "%s is missing", arg->name);
    if (arg->kind == AMPL_ARG_TENSOR || arg->kind == AMPL_ARG_TENSOR_OPT) t[info->slot[a]] = given ? args[a].t : NULL;
    else p[info->slot[a]] = given ? args[a] : arg->def;
  }
  for (int64_t i = 0; i < list.n && s == AMPL_OK; i++) t[info->ntensor + i] = list.v[i];
  const ampl_args in = {op, t, nt, p};
  if (s == AMPL_OK) s = inplace ? ampl_call_inplace(ctx, &in) : ampl_call(ctx, &in, all);
  if (t != few) ampl_obj_put(ctx, t, (size_t)nt * sizeof *t);
  return s;
}

static ampl_status run(ampl_ctx *ctx, const ampl_op *op, const ampl_value *args, int nargs, ampl_tensor **all,
                       bool inplace) {
  const ampl_op_info *info = ampl_op_info_of(op);
  const ampl_list list = info->list >= 0 && info->list < nargs ? args[info->list].ts : (ampl_list){NULL, 0};
  const char *outer = ctx->op;
  ctx->op = op->name;
  ampl_status s = check_plain(ctx, op, info, nargs, &list, inplace);
  if (s == AMPL_OK) s = sort_and_call(ctx, op, info, args, nargs, list, all, inplace);
  ctx->op = outer;
  return s;
}

ampl_status ampl_run_op_inplace(ampl_ctx *ctx, const ampl_op *op, const ampl_value *args, int nargs) {
  AMPL_NEED(NULL, ctx);
  AMPL_NEED(ctx, op);
  if (nargs > 0) AMPL_NEED(ctx, args);
  return run(ctx, op, args, nargs, NULL, true);
}

ampl_status ampl_run_op(ampl_ctx *ctx, const ampl_op *op, const ampl_value *args, int nargs, ampl_tensor **out,
                        int nout) {
  ampl_tensor *all[AMPL_OUT_MAX];
  AMPL_NEED(NULL, ctx);
  if (nout > 0) AMPL_NEED(ctx, out);
  for (int k = 0; k < nout; k++) out[k] = NULL;
  AMPL_NEED(ctx, op);
  if (nargs > 0) AMPL_NEED(ctx, args);
  AMPL_TRY(run(ctx, op, args, nargs, all, false));
  const int made = ampl_op_info_of(op)->nout;
  for (int k = 0; k < made; k++) {
    if (k < nout) out[k] = all[k];
    else ampl_tensor_release(all[k]);
  }
  return AMPL_OK;
}
