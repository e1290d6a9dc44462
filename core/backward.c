/* backward.c: the walk down the graph: ampl_backward, ampl_gradients.
 *
 * Nodes reachable from the outputs are collected into a table and taken in falling order of their numbers: a node's
 * gradients are complete when its turn comes, since whatever uses its outputs has a higher number. */
#include "graph.h"
#include "scaler.h"

#include <stdlib.h>
#include <string.h>

typedef struct task {
  ampl_node    *node;           /* or NULL: */
  ampl_tensor  *leaf;
  ampl_tensor **grad;           /* [ny], one for a leaf: what has arrived so far */
  bool          needed;         /* on a way to what is asked for */
  int           pending;        /* leaf: edges that may still bring something */
} task;

typedef struct walk {
  ampl_ctx    *ctx;
  unsigned     flags;
  task        *task;
  int          n, cap;
  int         *slot, nslot;     /* open addressing: pointer -> place in task */
  ampl_node  **stack;
  int          depth, stack_cap;
  int          ncapture;        /* ampl_gradients: its inputs ... */
  ampl_tensor *const *capture;
  ampl_tensor **captured;       /* ... and what arrived there */
} walk;

/* ------------------------------------------------------------------------------------------------ table ----------- */

static ampl_status no_memory(walk *w) { return ampl_error(w->ctx, AMPL_ENOMEM, "out of memory"); }

static unsigned hash(const void *p) { return (unsigned)(((uintptr_t)p >> 4) * 0x9E3779B97F4A7C15ull >> 32); }

static const void *key_of(const task *t) { return t->node ? (const void *)t->node : (const void *)t->leaf; }

static task *find(const walk *w, const void *key) {
  if (!w->nslot) return NULL;
  for (unsigned h = hash(key);; h++) {
    const int s = w->slot[h & (unsigned)(w->nslot - 1)];
    if (!s) return NULL;
    if (key_of(&w->task[s - 1]) == key) return &w->task[s - 1];
  }
}

static void place(walk *w, int i) {
  unsigned h = hash(key_of(&w->task[i]));
  while (w->slot[h & (unsigned)(w->nslot - 1)]) h++;
  w->slot[h & (unsigned)(w->nslot - 1)] = i + 1;
}

static ampl_status index_tasks(walk *w) {
  int size = 64;
  while (size < 4 * w->cap) size *= 2;
  int *slot = ampl_heap_resize(w->ctx, NULL, (size_t)size * sizeof *slot);
  if (!slot) return no_memory(w);
  memset(slot, 0, (size_t)size * sizeof *slot);
  free(w->slot);
  w->slot = slot;
  w->nslot = size;
  for (int i = 0; i < w->n; i++) place(w, i);
  return AMPL_OK;
}

static ampl_status add_task(walk *w, ampl_node *node, ampl_tensor *leaf) {
  const int ny = node ? node->ny : 1;
  if (w->n == w->cap) {
    const int cap = w->cap ? 2 * w->cap : 64;
    task *more = ampl_heap_resize(w->ctx, w->task, (size_t)cap * sizeof *more);
    if (!more) return no_memory(w);
    w->task = more;
    w->cap = cap;
    AMPL_TRY(index_tasks(w));
  }
  ampl_tensor **grad = ampl_obj_get(w->ctx, (size_t)ny * sizeof *grad);
  if (!grad) return no_memory(w);
  memset(grad, 0, (size_t)ny * sizeof *grad);
  if (node) __atomic_add_fetch(&node->refs, 1, __ATOMIC_RELAXED);
  else ampl_tensor_retain(leaf);
  w->task[w->n] = (task){.node = node, .leaf = leaf, .grad = grad};
  place(w, w->n++);
  return AMPL_OK;
}

static ampl_status push(walk *w, ampl_node *n) {
  if (find(w, n)) return AMPL_OK;
  AMPL_TRY(add_task(w, n, NULL));
  if (w->depth == w->stack_cap) {
    const int cap = w->stack_cap ? 2 * w->stack_cap : 64;
    ampl_node **more = ampl_heap_resize(w->ctx, w->stack, (size_t)cap * sizeof(ampl_node *));
    if (!more) return no_memory(w);
    w->stack = more;
    w->stack_cap = cap;
  }
  w->stack[w->depth++] = n;
  return AMPL_OK;
}

static ampl_status collect(walk *w) {
  while (w->depth > 0) {
    ampl_node *n = w->stack[--w->depth];
    for (int i = 0; i < n->nx; i++) {
      ampl_tensor *leaf = n->edge[i].leaf;
      if (n->edge[i].node) AMPL_TRY(push(w, n->edge[i].node));
      if (leaf && !find(w, leaf)) AMPL_TRY(add_task(w, NULL, leaf));
    }
  }
  return AMPL_OK;
}

static int by_number(const void *a, const void *b) {
  const task *x = a, *y = b;
  const uint64_t m = x->node ? x->node->seq : 0, n = y->node ? y->node->seq : 0;
  return m < n ? 1 : m > n ? -1 : 0;
}

/* Which place in `capture` asks for output k of node, or for this leaf; -1: none. */
static int captured_at(const walk *w, const ampl_node *node, int k, const ampl_tensor *leaf) {
  for (int i = 0; i < w->ncapture; i++) {
    const ampl_tensor *x = w->capture[i];
    if (leaf ? x == leaf : (x->node == node && x->out_index == k)) return i;
  }
  return -1;
}

/* From the leaves up: what lies on a way to something wanted. */
static ampl_status mark_needed(walk *w) {
  if (w->n) qsort(w->task, (size_t)w->n, sizeof *w->task, by_number);
  AMPL_TRY(index_tasks(w));
  for (int i = w->n - 1; i >= 0; i--) {
    task *t = &w->task[i];
    if (t->leaf) {
      t->needed = !w->capture || captured_at(w, NULL, 0, t->leaf) >= 0;
      continue;
    }
    for (int e = 0; e < t->node->nx; e++) {
      const ampl_edge *edge = &t->node->edge[e];
      if (!edge->node && !edge->leaf) continue;
      const task *to = find(w, edge->node ? (void *)edge->node : (void *)edge->leaf);
      if (to->needed || (edge->node && captured_at(w, edge->node, edge->out, NULL) >= 0)) t->needed = true;
    }
  }
  for (int i = 0; i < w->n; i++)
    for (int e = 0; w->task[i].node && w->task[i].needed && e < w->task[i].node->nx; e++)
      if (w->task[i].node->edge[e].leaf) find(w, w->task[i].node->edge[e].leaf)->pending++;
  return AMPL_OK;
}

static void end_walk(walk *w) {
  for (int i = 0; i < w->n; i++) {
    task *t = &w->task[i];
    const int ny = t->node ? t->node->ny : 1;
    for (int k = 0; k < ny; k++) ampl_tensor_release(t->grad[k]);
    ampl_obj_put(w->ctx, t->grad, (size_t)ny * sizeof *t->grad);
    if (t->node) ampl_node_release(t->node);
    else ampl_tensor_release(t->leaf);
  }
  free(w->task);
  free(w->slot);
  free(w->stack);
}

/* ------------------------------------------------------------------------------------------------ gradients ------- */

static ampl_status binary(ampl_ctx *ctx, ampl_tensor *a, ampl_tensor *b, ampl_tensor **out) {
  ampl_tensor *t[2] = {a, b};
  return ampl_call(ctx, &(ampl_args){OP(add), t, 2, NULL}, out);
}

/* Whether no two elements of x share a place (expand makes such tensors). */
static bool dense(const ampl_tensor *x) { return x->flags & (AMPL_T_CONTIGUOUS | AMPL_T_CHANNELS_LAST); }

/* Whether nobody else sees x: then it may be written. */
static bool sole(const ampl_tensor *x) {
  return x->refs == 1 && x->storage->refs == 1 && !x->node && !x->view && dense(x);
}

/* *into += g, which is lent.  `wide`: sums of several parts are kept in f32. */
static ampl_status accumulate(walk *w, ampl_tensor **into, ampl_tensor *g, bool wide) {
  ampl_tensor *sum, *a = *into, *up[2] = {NULL, NULL};
  if (!a) {
    ampl_tensor_retain(g);
    *into = g;
    return AMPL_OK;
  }
  ampl_status s = AMPL_OK;
  if (wide && a->dtype != AMPL_F32 && a->dtype != AMPL_F64) s = ampl_cast_to(w->ctx, a, AMPL_F32, &up[0]), a = up[0];
  if (s == AMPL_OK && wide && g->dtype != AMPL_F32 && g->dtype != AMPL_F64)
    s = ampl_cast_to(w->ctx, g, AMPL_F32, &up[1]), g = up[1];
  if (s == AMPL_OK && !w->ctx->modes->grad && sole(a) && a->dtype == g->dtype && ampl_same_shape(a, g) && !up[0]) {
    ampl_tensor *t[2] = {a, g};
    s = ampl_call_inplace(w->ctx, &(ampl_args){OP(add), t, 2, NULL});
    ampl_tensor_release(up[1]);
    return s;
  }
  if (s == AMPL_OK) s = binary(w->ctx, a, g, &sum);
  ampl_tensor_release(up[0]);
  ampl_tensor_release(up[1]);
  if (s != AMPL_OK) return s;
  ampl_tensor_release(*into);
  *into = sum;
  return AMPL_OK;
}

static ampl_tensor *detached(walk *w, ampl_tensor *g) {
  if (w->flags & AMPL_CREATE_GRAPH) {
    ampl_tensor_retain(g);
    return g;
  }
  return ampl_tensor_alias(g);
}

/* A gradient with a block of memory of its own, laid out as the parameter is, so that it can be added to in place. */
static ampl_status own_grad(walk *w, ampl_tensor *x, ampl_tensor *g, ampl_tensor **out) {
  const bool fits = (g->flags & AMPL_T_CONTIGUOUS) || (g->flags & x->flags & AMPL_T_CHANNELS_LAST);
  if (w->flags & AMPL_CREATE_GRAPH || (fits && g->refs == 1 && g->storage->refs == 1 && g->storage->ptr == g->data)) {
    ampl_tensor_retain(g);
    *out = g;
    return AMPL_OK;
  }
  return ampl_call(w->ctx, &(ampl_args){OP(clone), &g, 1, NULL}, out);
}

/* x.grad += g. */
static ampl_status add_to_grad(walk *w, ampl_tensor *x, ampl_tensor *g) {
  ampl_tensor *sum;
  if (ampl_is_scratched(x)) {           /* of a step that was skipped: to be replaced */
    ampl_tensor_release(x->grad);
    x->grad = NULL;
  }
  x->flags &= (uint8_t)~AMPL_T_SCRATCHED;
  if (!x->grad) {
    AMPL_TRY(own_grad(w, x, g, &x->grad));
    ampl_storage *s = x->grad->storage;
    if (s->kind == AMPL_KIND_TENSOR && s->bytes && !s->release) {
      ampl_mem_recount(w->ctx, s->bytes, AMPL_KIND_TENSOR, AMPL_KIND_GRAD);
      s->kind = AMPL_KIND_GRAD;
    }
    return AMPL_OK;
  }
  x->grad->flags &= (uint8_t)~AMPL_T_UNSCALED;
  if (!(w->flags & AMPL_CREATE_GRAPH) && !x->grad->node && dense(x->grad)) {
    ampl_tensor *t[2] = {x->grad, g};
    return ampl_call_inplace(w->ctx, &(ampl_args){OP(add), t, 2, NULL});
  }
  AMPL_TRY(binary(w->ctx, x->grad, g, &sum));
  ampl_tensor_release(x->grad);
  x->grad = sum;
  return AMPL_OK;
}

static ampl_status finish_leaf(walk *w, task *t) {
  if (!t->grad[0]) return AMPL_OK;
  AMPL_TRY(ampl_hooks_run(w->ctx, &t->leaf->hooks, 0, &t->grad[0]));
  const int at = w->capture ? captured_at(w, NULL, 0, t->leaf) : -1;
  ampl_status s = AMPL_OK;
  if (!w->capture) s = add_to_grad(w, t->leaf, t->grad[0]);
  else if (at >= 0 && !w->captured[at]) {
    w->captured[at] = detached(w, t->grad[0]);
    if (!w->captured[at]) s = no_memory(w);
  }
  ampl_tensor_release(t->grad[0]);
  t->grad[0] = NULL;
  return s;
}

/* ------------------------------------------------------------------------------------------------ one node -------- */

static const char *name_of(const ampl_node *n) { return n->op ? n->op->name : n->foreign.name; }

static ampl_status check_saved(walk *w, const ampl_node *n) {
  for (int i = 0; i < n->nx + n->ny; i++) {
    const ampl_tensor *x = i < n->nx ? n->x[i] : n->y[i - n->nx];
    if (!x || x->flags & AMPL_T_NUMBER || x->storage->version == n->version[i]) continue;
    return ampl_error(w->ctx, AMPL_EGRAD,
                      "%s %d of %s, needed for its gradient, was written in place since (version %u, now %u); "
                      "write a copy (x:clone()) or use the form without _",
                      i < n->nx ? "operand" : "result", (i < n->nx ? i : i - n->nx) + 1, name_of(n), n->version[i],
                      x->storage->version);
  }
  return AMPL_OK;
}

static ampl_status capture_outputs(walk *w, task *t) {
  for (int k = 0; w->capture && k < t->node->ny; k++) {
    const int at = captured_at(w, t->node, k, NULL);
    if (at < 0 || !t->grad[k] || w->captured[at]) continue;
    if (!(w->captured[at] = detached(w, t->grad[k]))) return no_memory(w);
  }
  return AMPL_OK;
}

static ampl_status retain_outputs(walk *w, task *t) {
  for (int k = 0; t->node->retains && !w->capture && k < t->node->ny; k++)
    if (t->node->retains[k] && t->grad[k]) AMPL_TRY(add_to_grad(w, t->node->retains[k], t->grad[k]));
  return AMPL_OK;
}

/* Saved outputs as the formula may differentiate them: with their node, for this call only. */
static ampl_status lend_outputs(walk *w, ampl_node *n, ampl_tensor **y) {
  for (int k = 0; k < n->ny; k++) {
    y[k] = NULL;
    if (!n->y[k]) continue;
    if (!(y[k] = ampl_tensor_alias(n->y[k]))) return no_memory(w);
    if (!(w->flags & AMPL_CREATE_GRAPH) || !ampl_is_float(y[k])) continue;
    __atomic_add_fetch(&n->refs, 1, __ATOMIC_RELAXED);
    y[k]->node = n;
    y[k]->out_index = k;
  }
  return AMPL_OK;
}

/* Whether operand i is the cast of a weight, whose gradients are summed in f32. */
static bool is_wide(const ampl_node *n, int i) { return n->edge[i].node && n->edge[i].node->flags & AMPL_NODE_WIDE; }

static void expand_notes(const ampl_note *note, int n, ampl_meta *m) {
  for (int i = 0; i < n; i++) {
    m[i].dtype = note[i].dtype;
    m[i].ndim = note[i].ndim;
    m[i].layout = AMPL_LAYOUT_ROW_MAJOR;
    m[i].offset = 0;
    memcpy(m[i].shape, note[i].shape, sizeof m[i].shape);
  }
}

static ampl_status run_foreign(walk *w, task *t, const bool *need, ampl_tensor **dx) {
  const ampl_node *n = t->node;
  const char *op = w->ctx->op;
  const ampl_status s = n->foreign.backward(n->foreign.ud, w->ctx, n->ny, t->grad, n->nx, dx, need);
  w->ctx->op = op;
  return s;
}

/* dx[i]: references to what the formula gives.  wide: room for a flag of each operand. */
static ampl_status run_formula(walk *w, task *t, const bool *need, bool *wide, ampl_tensor **dx) {
  ampl_node *n = t->node;
  ampl_tensor *few[8], **y = few;
  if (n->foreign.backward) return run_foreign(w, t, need, dx);
  if (n->ny > 8) return ampl_error(w->ctx, AMPL_EUNSUPPORTED, "%s has too many outputs", n->op->name);
  ampl_meta few_metas[12], *metas = few_metas;
  if (n->nx + n->ny > 12 && !(metas = ampl_heap_resize(w->ctx, NULL, (size_t)(n->nx + n->ny) * sizeof *metas)))
    return no_memory(w);
  expand_notes(n->xm, n->nx, metas);
  expand_notes(n->ym, n->ny, metas + n->nx);
  for (int i = 0; i < n->nx; i++) wide[i] = is_wide(n, i);
  ampl_grad g = {.wide = wide,
                 .op = n->op,
                 .nx = n->nx,
                 .ny = n->ny,
                 .dy = t->grad,
                 .x = n->x,
                 .y = y,
                 .xm = metas,
                 .ym = metas + n->nx,
                 .p = n->p,
                 .need = need,
                 .dx = dx};
  memset(few, 0, sizeof few);
  ampl_status s = lend_outputs(w, n, y);
  ampl_eval_begin(&g.e, w->ctx);
  if (s == AMPL_OK) s = n->op->backward(&g);
  if (s == AMPL_OK) s = g.e.status;
  for (int i = 0; i < n->nx; i++) {
    if (s != AMPL_OK || !need[i]) dx[i] = NULL;
    if (dx[i]) ampl_tensor_retain(dx[i]);
  }
  ampl_eval_end(&g.e);
  for (int k = 0; k < n->ny; k++) ampl_tensor_release(y[k]);
  if (metas != few_metas) free(metas);
  return s;
}

/* Brings dx to operand i's shape and dtype: activations in bf16 have bf16 gradients, f32 leaves f32 ones. */
static ampl_status conform(walk *w, const ampl_node *n, int i, ampl_tensor **dx) {
  const ampl_note *m = &n->xm[i];
  if ((*dx)->ndim != m->ndim || memcmp((*dx)->shape, m->shape, (size_t)m->ndim * sizeof *m->shape) != 0)
    return ampl_error(w->ctx, AMPL_ESHAPE, "the backward of %s gave a gradient of %s for operand %d of shape %s",
                      name_of(n), ampl_tensor_text(w->ctx, *dx), i + 1, ampl_shape_text(w->ctx, m->ndim, m->shape));
  if ((*dx)->dtype == m->dtype || (is_wide(n, i) && (*dx)->dtype == AMPL_F32)) return AMPL_OK;
  ampl_tensor *cast;
  AMPL_TRY(ampl_cast_to(w->ctx, *dx, (ampl_dtype)m->dtype, &cast));
  ampl_tensor_release(*dx);
  *dx = cast;
  return AMPL_OK;
}

static ampl_status deliver(walk *w, const ampl_node *n, int i, ampl_tensor *dx) {
  const ampl_edge *edge = &n->edge[i];
  task *to = find(w, edge->node ? (void *)edge->node : (void *)edge->leaf);
  if (edge->node) return to->needed || captured_at(w, edge->node, edge->out, NULL) >= 0
                             ? accumulate(w, &to->grad[edge->out], dx, edge->node->flags & AMPL_NODE_WIDE)
                             : AMPL_OK;
  return to->needed ? accumulate(w, &to->grad[0], dx, false) : AMPL_OK;
}

static ampl_status settle_leaves(walk *w, const ampl_node *n) {
  for (int i = 0; i < n->nx; i++) {
    if (!n->edge[i].leaf) continue;
    task *to = find(w, n->edge[i].leaf);
    if (--to->pending == 0) AMPL_TRY(finish_leaf(w, to));
  }
  return AMPL_OK;
}

static bool wanted(const walk *w, const ampl_node *n, int i) {
  const ampl_edge *edge = &n->edge[i];
  if (!edge->node && !edge->leaf) return false;
  const task *to = find(w, edge->node ? (void *)edge->node : (void *)edge->leaf);
  return to->needed || (edge->node && captured_at(w, edge->node, edge->out, NULL) >= 0);
}

enum { FEW = 16 };                      /* operands of a node that need no heap */

static ampl_status run_node(walk *w, task *t) {
  ampl_node *n = t->node;
  bool any = false, few_flags[2 * FEW], *need = few_flags;
  ampl_tensor *few[FEW] = {NULL}, **dx = few;
  for (int k = 0; k < n->ny; k++) AMPL_TRY(ampl_hooks_run(w->ctx, &n->hooks, k, &t->grad[k]));
  for (int k = 0; k < n->ny; k++) any |= t->grad[k] != NULL;
  AMPL_TRY(capture_outputs(w, t));
  AMPL_TRY(retain_outputs(w, t));
  if (!t->needed) return AMPL_OK;
  if (!any) return settle_leaves(w, n);
  if (n->flags & AMPL_NODE_FREED)
    return ampl_error(w->ctx, AMPL_EGRAD,
                      "backward through %s a second time: what it needs was freed by the first; give the first one "
                      "{retain_graph = true}",
                      name_of(n));
  AMPL_TRY(check_saved(w, n));
  if (n->nx > FEW) {
    const size_t bytes = n->nx * (sizeof *dx + 2 * sizeof *need);
    if (!(dx = ampl_heap_resize(w->ctx, NULL, bytes))) return no_memory(w);
    memset(dx, 0, bytes);
    need = (bool *)(dx + n->nx);
  }
  for (int i = 0; i < n->nx; i++) need[i] = wanted(w, n, i);
  const int64_t base = w->ctx->index_base;
  w->ctx->index_base = n->index_base;
  ampl_status s = run_formula(w, t, need, need + n->nx, dx);
  w->ctx->index_base = base;
  for (int i = 0; i < n->nx && s == AMPL_OK; i++)
    if (dx[i] && need[i]) s = conform(w, n, i, &dx[i]);
  if (s == AMPL_OK && w->ctx->anomaly) s = ampl_anomaly_check(w->ctx, n, n->nx, dx);
  for (int k = 0; k < n->ny; k++) ampl_tensor_release(t->grad[k]), t->grad[k] = NULL;
  for (int i = 0; i < n->nx && s == AMPL_OK; i++)
    if (dx[i] && need[i]) {
      ampl_tensor *d = dx[i];
      dx[i] = NULL;
      s = deliver(w, n, i, d);
      ampl_tensor_release(d);
    }
  for (int i = 0; i < n->nx; i++) ampl_tensor_release(dx[i]);
  if (dx != few) free(dx);
  if (s == AMPL_OK) s = settle_leaves(w, n);
  if (s == AMPL_OK && !(w->flags & (AMPL_RETAIN_GRAPH | AMPL_CREATE_GRAPH))) ampl_node_drop_saved(n);
  return s;
}

/* ------------------------------------------------------------------------------------------------ walks ----------- */

/* The gradient that a root starts with: what is given, or 1 for a single element. */
static ampl_status seed(walk *w, ampl_tensor *x, ampl_tensor *given) {
  ampl_tensor *g = given, *made = NULL;
  if (!ampl_wants_grad(x))
    return ampl_error(w->ctx, AMPL_EGRAD,
                      "%s does not require a gradient: nothing it was computed from has requires_grad set, or it was "
                      "made under no_grad",
                      ampl_tensor_text(w->ctx, x));
  if (g && !ampl_same_shape(g, x))
    return ampl_error(w->ctx, AMPL_ESHAPE, "a gradient of %s for an output of %s", ampl_tensor_text(w->ctx, g),
                      ampl_tensor_text(w->ctx, x));
  if (!g) {
    if (x->numel != 1)
      return ampl_error(w->ctx, AMPL_EGRAD,
                        "%s has more than one element: give the gradient of each, or reduce it first with sum or mean",
                        ampl_tensor_text(w->ctx, x));
    AMPL_TRY(ampl_call(w->ctx, &(ampl_args){OP(ones_like), &x, 1, NULL}, &made));
    g = made;
  }
  task *t = find(w, x->node ? (void *)x->node : (void *)x);
  ampl_status s = AMPL_OK;
  if (g->dtype != x->dtype) {
    ampl_tensor *cast = NULL;
    s = ampl_cast_to(w->ctx, g, (ampl_dtype)x->dtype, &cast);
    ampl_tensor_release(made);
    g = made = cast;
  }
  if (s == AMPL_OK) s = accumulate(w, &t->grad[x->node ? x->out_index : 0], g, false);
  ampl_tensor_release(made);
  return s;
}

static ampl_status go(walk *w, int nout, ampl_tensor *const *outputs, ampl_tensor *const *grads) {
  for (int i = 0; i < nout; i++) {
    ampl_tensor *x = outputs[i];
    if (x->view) AMPL_TRY(ampl_graph_settle(w->ctx, x));
    if (x->node) AMPL_TRY(push(w, x->node));
    else if (!find(w, x)) AMPL_TRY(add_task(w, NULL, x));
  }
  AMPL_TRY(collect(w));
  AMPL_TRY(mark_needed(w));
  for (int i = 0; i < nout; i++) AMPL_TRY(seed(w, outputs[i], grads ? grads[i] : NULL));
  for (int i = 0; i < w->n; i++) {
    if (ampl_should_stop(w->ctx)) return ampl_error(w->ctx, AMPL_EINTR, "interrupted");
    if (w->task[i].node) AMPL_TRY(run_node(w, &w->task[i]));
    else AMPL_TRY(finish_leaf(w, &w->task[i]));
  }
  return AMPL_OK;
}

/* With grad mode as create_graph says, and outside any autocast region: formulas run in the dtypes they recorded. */
static ampl_status guarded(walk *w, int nout, ampl_tensor *const *outputs, ampl_tensor *const *grads) {
  ampl_modes *m = w->ctx->modes;
  const ampl_mode grad = {.kind = AMPL_MODE_GRAD, .on = w->flags & AMPL_CREATE_GRAPH, .device = -1};
  const bool cache = !m->autocast || m->autocast->cache;        /* for regions that callbacks enter */
  const ampl_mode plain = {.kind = AMPL_MODE_AUTOCAST, .dtype = AMPL_DTYPE_NONE, .device = -1, .cache = cache};
  const uint64_t g = ampl_mode_enter(w->ctx, &grad), a = m->autocast ? ampl_mode_enter(w->ctx, &plain) : 0;
  if (!g || (m->autocast && !a)) {
    ampl_mode_leave(w->ctx, m, a);
    ampl_mode_leave(w->ctx, m, g);
    return no_memory(w);
  }
  const ampl_status s = go(w, nout, outputs, grads);
  if (a) ampl_mode_leave(w->ctx, m, a);
  ampl_mode_leave(w->ctx, m, g);
  end_walk(w);
  return s;
}

ampl_status ampl_backward(ampl_tensor *x, ampl_tensor *grad, unsigned flags) {
  AMPL_NEED(NULL, x);
  AMPL_TRY(ampl_check_list(ampl_ctx_of(x), "backward", 1, &grad, true));
  walk w = {.ctx = ampl_ctx_of(x), .flags = flags};
  w.ctx->op = "backward";
  const ampl_status s = guarded(&w, 1, &x, &grad);
  w.ctx->op = "";
  return s;
}

ampl_status ampl_gradients(ampl_ctx *ctx, int nout, ampl_tensor *const *outputs, ampl_tensor *const *grad_outputs,
                           int nin, ampl_tensor *const *inputs, unsigned flags, ampl_tensor **out) {
  walk w = {.ctx = ctx, .flags = flags, .ncapture = nin, .capture = inputs, .captured = out};
  ampl_status s = AMPL_OK;
  AMPL_NEED(NULL, ctx);
  if (nin > 0) AMPL_NEED(ctx, out);
  for (int i = 0; i < nin; i++) out[i] = NULL;
  AMPL_TRY(ampl_check_list(ctx, "outputs", nout, outputs, false));
  AMPL_TRY(ampl_check_list(ctx, "inputs", nin, inputs, false));
  if (grad_outputs) AMPL_TRY(ampl_check_list(ctx, "grad_outputs", nout, grad_outputs, true));
  ctx->op = "grad";
  for (int i = 0; i < nin && s == AMPL_OK; i++) {
    if (!ampl_wants_grad(inputs[i])) s = ampl_error(ctx, AMPL_EGRAD, "input %d does not require a gradient", i + 1);
    else if (inputs[i]->view) s = ampl_graph_settle(ctx, inputs[i]);
  }
  if (s == AMPL_OK) s = guarded(&w, nout, outputs, grad_outputs);
  for (int i = 1; i < nin && s == AMPL_OK; i++)         /* an input that is asked for twice */
    for (int k = 0; k < i && !out[i]; k++)
      if (inputs[k] == inputs[i] && out[k]) ampl_tensor_retain(out[k]), out[i] = out[k];
  for (int i = 0; i < nin && s == AMPL_OK && !(flags & AMPL_ALLOW_UNUSED); i++)
    if (!out[i])
      s = ampl_error(ctx, AMPL_EGRAD, "input %d was not used for the outputs; {allow_unused = true} gives nil there",
                     i + 1);
  for (int i = 0; i < nin && s != AMPL_OK; i++) ampl_tensor_release(out[i]), out[i] = NULL;
  ctx->op = "";
  return s;
}
