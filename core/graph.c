/* graph.c: nodes of the autograd graph: making, freeing, hooks, views and in-place writes.  The walk is in backward.c.
 * */
#include "graph.h"
#include "op_table.h"

#include <string.h>

/* ------------------------------------------------------------------------------------------------ nodes ----------- */

/* Node numbers, for edges and order: a node is made after everything it depends on. */
static ampl_node *node_new(ampl_ctx *ctx, int nx, int ny, int np, int nints) {
  const size_t bytes = sizeof(ampl_node) +
                       (size_t)nx * (sizeof(ampl_edge) + sizeof(ampl_note) + sizeof(ampl_tensor *)) +
                       (size_t)ny * (sizeof(ampl_note) + sizeof(ampl_tensor *)) + (size_t)np * sizeof(ampl_value) +
                       (size_t)nints * sizeof(int64_t) + (size_t)(nx + ny) * sizeof(uint32_t);
  char *block = ampl_obj_get(ctx, bytes);
  if (!block) {
    ampl_error(ctx, AMPL_ENOMEM, "out of memory");
    return NULL;
  }
  ampl_node *n = (ampl_node *)block;
  *n = (ampl_node){.refs = 1,
                   .nx = (uint16_t)nx,
                   .ny = (uint8_t)ny,
                   .np = (uint16_t)np,
                   .nints = (uint16_t)nints,
                   .ctx = ctx,
                   .bytes = bytes,
                   .seq = ++ctx->seq,
                   .index_base = ctx->index_base};
  block += sizeof *n;
  n->edge = (ampl_edge *)block, block += (size_t)nx * sizeof *n->edge;
  n->xm = (ampl_note *)block, block += (size_t)nx * sizeof *n->xm;
  n->ym = (ampl_note *)block, block += (size_t)ny * sizeof *n->ym;
  n->p = (ampl_value *)block, block += (size_t)np * sizeof *n->p;
  block += (size_t)nints * sizeof(int64_t);
  n->x = (ampl_tensor **)block, block += (size_t)nx * sizeof *n->x;
  n->y = (ampl_tensor **)block, block += (size_t)ny * sizeof *n->y;
  n->version = (uint32_t *)block;
  memset(n->edge, 0, (size_t)nx * sizeof *n->edge);
  memset(n->x, 0, (size_t)nx * sizeof *n->x);
  memset(n->y, 0, (size_t)ny * sizeof *n->y);
  ctx->nodes++;
  ampl_ctx_retain(ctx);
  return n;
}

/* Whether there was something. */
static bool drop_tensors(ampl_tensor **x, int n) {
  bool any = false;
  for (int i = 0; i < n; i++) {
    any |= x[i] != NULL;
    ampl_tensor_release(x[i]);
    x[i] = NULL;
  }
  return any;
}

static bool drop_saved(ampl_node *n) {
  const bool any = drop_tensors(n->x, n->nx);
  return drop_tensors(n->y, n->ny) || any;
}

void ampl_node_drop_saved(ampl_node *n) {
  if (drop_saved(n)) n->flags |= AMPL_NODE_FREED;
  if (n->foreign.drop) n->foreign.drop(n->foreign.ud);
  else if (n->foreign.release) {
    n->foreign.release(n->foreign.ud);
    n->foreign.release = NULL;
    n->flags |= AMPL_NODE_FREED;
  }
}

static void hook_free(ampl_ctx *ctx, ampl_hook *h) {
  if (h->release) h->release(h->ud);
  ampl_obj_put(ctx, h, sizeof *h);
}

static void node_free(ampl_node *n) {
  ampl_ctx *ctx = n->ctx;
  for (int i = 0; i < n->nx; i++) {
    ampl_node_release(n->edge[i].node);
    ampl_tensor_release(n->edge[i].leaf);
  }
  drop_saved(n);
  if (n->foreign.release) n->foreign.release(n->foreign.ud);
  for (ampl_hook *h = n->hooks, *next; h; h = next) next = h->next, hook_free(ctx, h);
  for (int k = 0; n->retains && k < n->ny; k++)
    if (n->retains[k]) n->retains[k]->flags &= (uint8_t)~AMPL_T_RETAINS_GRAD;
  if (n->retains) ampl_obj_put(ctx, n->retains, n->ny * sizeof *n->retains);
  if (n->where) ampl_obj_put(ctx, n->where, AMPL_WHERE_BYTES);
  ampl_obj_put(ctx, n, n->bytes);
  ctx->nodes--;
  ampl_ctx_release(ctx);
}

/* A chain of a hundred thousand nodes must not recurse: while one node is being freed, others that die are queued. */
void ampl_node_release(ampl_node *n) {
  if (!n || __atomic_sub_fetch(&n->refs, 1, __ATOMIC_ACQ_REL) > 0) return;
  ampl_ctx *ctx = n->ctx;
  n->next_dead = ctx->dead;
  ctx->dead = n;
  if (ctx->releasing) return;
  ctx->releasing = true;
  ampl_ctx_retain(ctx);                 /* the last node may hold the last reference to the context */
  while ((n = ctx->dead)) {
    ctx->dead = n->next_dead;
    node_free(n);
  }
  ctx->releasing = false;
  ampl_ctx_release(ctx);
}

static ampl_node *node_retain(ampl_node *n) {
  if (n) __atomic_add_fetch(&n->refs, 1, __ATOMIC_RELAXED);
  return n;
}

void ampl_graph_forget(ampl_ctx *ctx, ampl_tensor *x) {
  if (x->node) {
    if (x->flags & AMPL_T_RETAINS_GRAD) x->node->retains[x->out_index] = NULL;
    ampl_node_release(x->node);
  }
  ampl_tensor_release(x->grad);
  for (ampl_hook *h = x->hooks, *next; h; h = next) next = h->next, hook_free(ctx, h);
  if (x->view) {
    ampl_tensor_release(x->view->base);
    ampl_obj_put(ctx, x->view, sizeof *x->view);
  }
}

/* ------------------------------------------------------------------------------------------------ recording ------- */

static void note_shape(ampl_note *m, const ampl_tensor *x) {
  m->dtype = (int8_t)x->dtype;
  m->ndim = (int8_t)x->ndim;
  memcpy(m->shape, x->shape, (size_t)x->ndim * sizeof *x->shape);
}

static ampl_status connect(ampl_ctx *ctx, ampl_edge *edge, ampl_tensor *x) {
  if (x->view) AMPL_TRY(ampl_graph_settle(ctx, x));
  if (x->node) {
    edge->node = node_retain(x->node);
    edge->out = x->out_index;
  } else if (x->flags & AMPL_T_REQUIRES_GRAD) {
    ampl_tensor_retain(x);
    edge->leaf = x;
  }
  return AMPL_OK;
}

/* Lists of parameters are the caller's: copied behind the node's values. */
static void save_params(ampl_node *n, const ampl_op_info *info, const ampl_value *p) {
  int64_t *ints = (int64_t *)(n->p + n->np);
  for (int i = 0; i < n->np; i++) {
    const int kind = n->op->args[info->param_arg[i]].kind;
    n->p[i] = p[i];
    if (kind != AMPL_ARG_DIMS && kind != AMPL_ARG_SIZES && kind != AMPL_ARG_PADDING) continue;
    if (p[i].l.n <= 0) continue;
    memcpy(ints, p[i].l.v, (size_t)p[i].l.n * sizeof *ints);
    n->p[i].l.v = ints;
    ints += p[i].l.n;
  }
}

static int count_ints(const ampl_op *op, const ampl_op_info *info, const ampl_value *p) {
  int64_t n = 0;
  for (int i = 0; i < info->nparam; i++) {
    const int kind = op->args[info->param_arg[i]].kind;
    if ((kind == AMPL_ARG_DIMS || kind == AMPL_ARG_SIZES || kind == AMPL_ARG_PADDING) && p[i].l.n > 0) n += p[i].l.n;
  }
  return (int)n;
}

/* Whether operand i is kept: asked for by the record, and, for mul and its kind, only if another operand's gradient
 * needs it. */
static bool keeps(const ampl_op *op, const ampl_op_info *info, const ampl_args *in, int i) {
  if (i >= info->ntensor) return op->save & AMPL_SAVE_ALL;
  if (!(op->save & (AMPL_SAVE_X(i) | AMPL_SAVE_ALL))) return false;
  if (!(op->flags & AMPL_OP_CROSS)) return true;
  for (int k = 0; k < in->nt; k++)
    if (k != i && ampl_wants_grad(in->t[k])) return true;
  return false;
}

static ampl_status fill_node(ampl_ctx *ctx, ampl_node *n, const ampl_args *in, ampl_tensor **out) {
  const ampl_op_info *info = ampl_op_info_of(in->op);
  n->op = in->op;
  save_params(n, info, in->p);
  for (int i = 0; i < n->nx; i++) {
    ampl_tensor *x = in->t[i];
    if (!x) {
      n->xm[i] = (ampl_note){.dtype = AMPL_DTYPE_NONE};
      continue;
    }
    note_shape(&n->xm[i], x);
    if (ampl_is_float(x)) AMPL_TRY(connect(ctx, &n->edge[i], x));
    if (!keeps(in->op, info, in, i)) continue;
    ampl_tensor_retain(x);
    n->x[i] = x;
    n->version[i] = x->storage->version;
  }
  for (int k = 0; k < n->ny; k++) {
    note_shape(&n->ym[k], out[k]);
    if (!(in->op->save & AMPL_SAVE_Y(k))) continue;
    if (!(n->y[k] = ampl_tensor_alias(out[k]))) return ampl_error(ctx, AMPL_ENOMEM, "out of memory");
    n->version[n->nx + k] = out[k]->storage->version;
  }
  return AMPL_OK;
}

static void own_output(ampl_node *n, ampl_tensor *y, int k) {
  y->node = node_retain(n);
  y->out_index = k;
}

ampl_status ampl_graph_record(ampl_ctx *ctx, const ampl_args *in, int nout, ampl_tensor **out, unsigned flags) {
  const ampl_op_info *info = ampl_op_info_of(in->op);
  if (in->nt > UINT16_MAX)
    return ampl_error(ctx, AMPL_EUNSUPPORTED, "%d operands; at most %d can be differentiated", in->nt, UINT16_MAX);
  for (int k = 0; k < nout; k++)        /* an operand handed on as the result gets a header of its own */
    for (int i = 0; i < in->nt; i++)
      if (out[k] == in->t[i]) {
        ampl_tensor *alias = ampl_tensor_alias(out[k]);
        if (!alias) return ampl_error(ctx, AMPL_ENOMEM, "out of memory");
        ampl_tensor_release(out[k]);
        out[k] = alias;
      }
  ampl_node *n = node_new(ctx, in->nt, nout, info->nparam, count_ints(in->op, info, in->p));
  if (!n) return ctx->code;
  n->flags = (uint8_t)flags;
  const ampl_status s = fill_node(ctx, n, in, out);
  for (int k = 0; s == AMPL_OK && k < nout; k++)
    if (ampl_is_float(out[k])) own_output(n, out[k], k);
  if (s == AMPL_OK && ctx->anomaly) ampl_anomaly_note(ctx, n);
  ampl_node_release(n);                 /* the outputs hold it */
  return s;
}

/* Outputs become results of a node: each of one only, and of one of its places. */
static ampl_status check_fresh(ampl_ctx *ctx, int ny, ampl_tensor *const *y) {
  for (int k = 0; k < ny; k++) {
    if (y[k]->node) return ampl_error(ctx, AMPL_EGRAD, "output %d has a graph already; give x:detach()", k + 1);
    for (int i = 0; i < k; i++)
      if (y[i] == y[k]) return ampl_error(ctx, AMPL_EGRAD, "output %d is output %d again", k + 1, i + 1);
  }
  return AMPL_OK;
}

ampl_status ampl_record_function(ampl_ctx *ctx, const ampl_function *f, int nx, ampl_tensor *const *x, int ny,
                                 ampl_tensor **y) {
  ampl_status s = AMPL_OK;
  AMPL_NEED(NULL, ctx);
  AMPL_NEED(ctx, f);
  AMPL_NEED(ctx, f->backward);
  AMPL_TRY(ampl_check_list(ctx, "operands", nx, x, true));
  AMPL_TRY(ampl_check_list(ctx, "outputs", ny, y, false));
  if (nx > 255 || ny > 255)
    return ampl_error(ctx, AMPL_EUNSUPPORTED, "at most 255 operands and outputs can be differentiated");
  AMPL_TRY(check_fresh(ctx, ny, y));
  for (int i = 0; i < nx; i++)
    if (x[i] && x[i]->view) AMPL_TRY(ampl_graph_settle(ctx, x[i]));
  ampl_node *n = node_new(ctx, nx, ny, 0, 0);
  if (!n) return ctx->code;
  for (int i = 0; i < nx && s == AMPL_OK; i++) {
    if (!x[i]) {
      n->xm[i] = (ampl_note){.dtype = AMPL_DTYPE_NONE};
      continue;
    }
    note_shape(&n->xm[i], x[i]);
    if (ampl_is_float(x[i])) s = connect(ctx, &n->edge[i], x[i]);
  }
  for (int k = 0; k < ny && s == AMPL_OK; k++) {
    note_shape(&n->ym[k], y[k]);
    if (ampl_is_float(y[k])) own_output(n, y[k], k);
  }
  if (s == AMPL_OK) n->foreign = *f;
  if (s == AMPL_OK && ctx->anomaly) ampl_anomaly_note(ctx, n);
  ampl_node_release(n);
  return s;
}

/* ------------------------------------------------------------------------------------------------ views ----------- */

ampl_status ampl_graph_view(ampl_ctx *ctx, ampl_tensor *y, ampl_tensor *x) {
  ampl_tensor *base = x->view ? x->view->base : x;
  if (!ampl_is_float(x)) return AMPL_OK;
  if (!(y->view = ampl_obj_get(ctx, sizeof *y->view))) return ampl_error(ctx, AMPL_ENOMEM, "out of memory");
  ampl_tensor_retain(base);
  *y->view = (ampl_view){base, base->node};
  return AMPL_OK;
}

/* The geometry of x within its base, as the parameters of as_strided and view_put. */
static void geometry(const ampl_tensor *x, const ampl_tensor *base, ampl_value p[4]) {
  p[0] = V_L(x->ndim, x->shape);
  p[1] = V_L(x->ndim, x->strides);
  p[2] = V_I(((const char *)x->data - (const char *)base->data) / (int64_t)ampl_dtype_size((ampl_dtype)x->dtype));
  p[3] = V_L(base->ndim, base->strides);
}

static void forget_node(ampl_tensor *x) {
  if (!x->node) return;
  if (x->flags & AMPL_T_RETAINS_GRAD) x->node->retains[x->out_index] = NULL, x->flags &= (uint8_t)~AMPL_T_RETAINS_GRAD;
  ampl_node_release(x->node);
  x->node = NULL;
}

static ampl_status view_again(ampl_ctx *ctx, ampl_tensor *x) {
  ampl_tensor *base = x->view->base;
  ampl_value p[4];
  geometry(x, base, p);
  forget_node(x);
  x->view->seen = base->node;
  if (!ampl_wants_grad(base)) return AMPL_OK;
  return ampl_graph_record(ctx, &(ampl_args){OP(as_strided), &base, 1, p}, 1, &x, 0);
}

ampl_status ampl_graph_settle(ampl_ctx *ctx, ampl_tensor *x) {
  return x->view->base->node == x->view->seen ? AMPL_OK : view_again(ctx, x);
}

ampl_status ampl_graph_rebase(ampl_ctx *ctx, ampl_tensor *self, ampl_tensor *value) {
  if (!self->view || self->view->base->storage != self->storage) {
    forget_node(self);
    self->node = node_retain(value->node);
    self->out_index = value->out_index;
    return AMPL_OK;
  }
  ampl_tensor *base = self->view->base, *before, *t[2];
  ampl_value p[4];
  geometry(self, base, p);
  if (!(before = ampl_tensor_alias(base))) return ampl_error(ctx, AMPL_ENOMEM, "out of memory");
  before->node = base->node;            /* base as it was: its node moves over */
  before->out_index = base->out_index;
  base->flags &= (uint8_t)~AMPL_T_RETAINS_GRAD;
  base->node = NULL;
  t[0] = before;
  t[1] = value;
  const ampl_status s = ampl_graph_record(ctx, &(ampl_args){OP(view_put), t, 2, p}, 1, &base, 0);
  ampl_tensor_release(before);
  return s == AMPL_OK ? view_again(ctx, self) : s;
}

/* ------------------------------------------------------------------------------------------------ hooks ----------- */

ampl_status ampl_register_hook(ampl_tensor *x, ampl_hook_fn fn, void (*release)(void *ud), void *ud, uint64_t *id) {
  AMPL_NEED(NULL, x);
  ampl_ctx *ctx = ampl_ctx_of(x);
  AMPL_NEED(ctx, fn);
  AMPL_NEED(ctx, id);
  if (!ampl_wants_grad(x))
    return ampl_error(ctx, AMPL_EGRAD,
                      "a tensor that requires no gradient takes no hook; set x.requires_grad = true first");
  ampl_hook *h = ampl_obj_get(ctx, sizeof *h), **p = x->node ? &x->node->hooks : &x->hooks;
  if (!h) return ampl_error(ctx, AMPL_ENOMEM, "out of memory");
  *h = (ampl_hook){
      .out = x->node ? x->out_index : 0, .id = *id = ++ctx->mode_ids, .fn = fn, .release = release, .ud = ud};
  while (*p) p = &(*p)->next;           /* hooks run in the order they came */
  *p = h;
  return AMPL_OK;
}

void ampl_remove_hook(ampl_tensor *x, uint64_t id) {
  if (!x) return;
  ampl_hook **p = x->node ? &x->node->hooks : &x->hooks;
  for (; *p; p = &(*p)->next) {
    ampl_hook *h = *p;
    if (h->id != id) continue;
    *p = h->next;
    if (h->running) h->removed = true;
    else hook_free(ampl_ctx_of(x), h);
    return;
  }
}

/* The first hook of output k that came after `id`. */
static ampl_hook *hook_after(ampl_hook *h, int k, uint64_t id) {
  while (h && (h->out != k || h->id <= id)) h = h->next;
  return h;
}

static ampl_status check_replacement(ampl_ctx *ctx, const ampl_tensor *g, const ampl_tensor *instead) {
  if (ampl_same_shape(g, instead) && g->dtype == instead->dtype) return AMPL_OK;
  return ampl_error(ctx, AMPL_EGRAD, "a hook returned %s for a gradient of %s: it must keep shape and dtype",
                    ampl_tensor_text(ctx, instead), ampl_tensor_text(ctx, g));
}

static ampl_status hook_run(ampl_ctx *ctx, ampl_hook *h, ampl_tensor **g) {
  ampl_tensor *instead = NULL;
  const char *op = ctx->op;
  h->running++;
  ampl_status s = h->fn(h->ud, ctx, *g, &instead);
  if (--h->running == 0 && h->removed) hook_free(ctx, h);
  ctx->op = op;
  if (s == AMPL_OK && instead) s = check_replacement(ctx, *g, instead);
  if (s == AMPL_OK && instead) {
    ampl_tensor_release(*g);
    *g = instead;
  } else ampl_tensor_release(instead);
  return s;
}

ampl_status ampl_hooks_run(ampl_ctx *ctx, ampl_hook **hooks, int k, ampl_tensor **g) {
  const uint64_t last = ctx->mode_ids;  /* the numbers of hooks rise */
  if (!*hooks || !*g) return AMPL_OK;
  for (ampl_hook *h = hook_after(*hooks, k, 0); h && h->id <= last;) {
    const uint64_t id = h->id;
    AMPL_TRY(hook_run(ctx, h, g));
    h = hook_after(*hooks, k, id);
  }
  return AMPL_OK;
}

ampl_status ampl_retain_grad(ampl_tensor *x) {
  AMPL_NEED(NULL, x);
  ampl_ctx *ctx = ampl_ctx_of(x);
  if (!ampl_wants_grad(x)) return ampl_error(ctx, AMPL_EGRAD, "a tensor that requires no gradient cannot retain one");
  if (!x->node || x->flags & AMPL_T_RETAINS_GRAD) return AMPL_OK;
  ampl_node *n = x->node;
  if (!n->retains) {
    if (!(n->retains = ampl_obj_get(ctx, n->ny * sizeof *n->retains)))
      return ampl_error(ctx, AMPL_ENOMEM, "out of memory");
    memset(n->retains, 0, n->ny * sizeof *n->retains);
  }
  n->retains[x->out_index] = x;
  x->flags |= AMPL_T_RETAINS_GRAD;
  return AMPL_OK;
}

/* ------------------------------------------------------------------------------------------------ public ---------- */

static ampl_status may_require_grad(ampl_ctx *ctx, const ampl_tensor *x, bool on) {
  if (x->node && !on) return ampl_error(ctx, AMPL_EGRAD, "only a leaf can stop requiring a gradient; use x:detach()");
  if (x->node) return AMPL_OK;
  if (on && !ampl_is_float(x))
    return ampl_error(ctx, AMPL_EDTYPE, "only floats have gradients, this is %s", ampl_tensor_text(ctx, x));
  if (on && x->flags & AMPL_T_INFERENCE)
    return ampl_error(ctx, AMPL_EGRAD, "made under inference_mode; use x:clone() outside of it");
  return AMPL_OK;
}

ampl_status ampl_set_requires_grad(ampl_tensor *x, bool on) {
  AMPL_NEED(NULL, x);
  ampl_ctx *ctx = ampl_ctx_of(x);
  AMPL_NAMED(ctx, "requires_grad_");
  const ampl_status s = may_require_grad(ctx, x, on);
  if (s == AMPL_OK && !x->node)
    x->flags = (uint8_t)(on ? x->flags | AMPL_T_REQUIRES_GRAD : x->flags & ~AMPL_T_REQUIRES_GRAD);
  return s;
}

ampl_status ampl_detach(ampl_tensor *x, ampl_tensor **out) {
  AMPL_NEED(NULL, x);
  AMPL_NEED(ampl_ctx_of(x), out);
  *out = ampl_tensor_alias(x);
  return *out ? AMPL_OK : ampl_error(ampl_ctx_of(x), AMPL_ENOMEM, "out of memory");
}

uint32_t ampl_tensor_version(const ampl_tensor *x) { return x ? x->storage->version : 0; }

bool ampl_requires_grad(const ampl_tensor *x) {
  if (x && x->view) ampl_graph_settle(ampl_ctx_of(x), (ampl_tensor *)x);
  return ampl_wants_grad(x);
}

bool ampl_is_leaf(const ampl_tensor *x) { return x && !x->node; }
ampl_tensor *ampl_grad_of(const ampl_tensor *x) { return x ? x->grad : NULL; }

static ampl_status check_grad(ampl_ctx *ctx, const ampl_tensor *x, const ampl_tensor *grad) {
  if (grad == x) return ampl_error(ctx, AMPL_EARG, "a tensor cannot be its own gradient; give it x:detach()");
  if (grad && ampl_ctx_of(grad) != ctx) return ampl_error(ctx, AMPL_EARG, AMPL_FOREIGN_TENSOR);
  if (grad && !ampl_same_shape(x, grad))
    return ampl_error(ctx, AMPL_ESHAPE, "a gradient of %s for a tensor of %s", ampl_tensor_text(ctx, grad),
                      ampl_tensor_text(ctx, x));
  const bool wide = grad && grad->dtype == AMPL_F32 && (x->dtype == AMPL_F16 || x->dtype == AMPL_BF16);
  if (grad && grad->dtype != x->dtype && !wide)
    return ampl_error(ctx, AMPL_EDTYPE, "a gradient of %s for a tensor of %s", ampl_tensor_text(ctx, grad),
                      ampl_tensor_text(ctx, x));
  return AMPL_OK;
}

ampl_status ampl_set_grad(ampl_tensor *x, ampl_tensor *grad) {
  AMPL_NEED(NULL, x);
  ampl_ctx *ctx = ampl_ctx_of(x);
  AMPL_NAMED(ctx, "grad");
  AMPL_TRY(check_grad(ctx, x, grad));
  if (grad) ampl_tensor_retain(grad);
  ampl_tensor_release(x->grad);
  x->grad = grad;
  x->flags &= (uint8_t)~AMPL_T_SCRATCHED;
  return AMPL_OK;
}
