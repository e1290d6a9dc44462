/* graph.h: the autograd graph.
 *
 * A node stands for one recorded call.  It refers to the nodes of its operands (never the other way round), so the
 * graph is freed by counting references.  A saved output is an alias without a graph, so a node never holds itself.
 * Two cycles are possible, and documented: x -> grad -> node -> x after create_graph (broken by zero_grad or
 * x.grad = nil), and a hook whose closure holds its tensor (broken by removing the hook).
 *
 * Node numbers rise along every path of a recorded computation, so the backward walk is: collect what is reachable,
 * sort by number, go down.  No recursion. */
#ifndef AMPL_GRAPH_H
#define AMPL_GRAPH_H

#include "ctx.h"

typedef struct ampl_edge {
  ampl_node   *node;            /* where the gradient goes: output `out` of this node ... */
  ampl_tensor *leaf;            /* ... or this leaf; both NULL: nowhere */
  int          out;
} ampl_edge;

struct ampl_hook {
  ampl_hook *next;
  int        out;               /* which output of its node */
  int        running;           /* calls of it under way */
  bool       removed;           /* meanwhile: the last of them frees it */
  uint64_t   id;
  ampl_hook_fn fn;
  void (*release)(void *ud);
  void *ud;
};

struct ampl_view {
  ampl_tensor *base;            /* never a view itself; one reference */
  ampl_node   *seen;            /* base's node when this view's own node was made: identity only */
};

/* What a node remembers of an operand or output; backward gets it as an ampl_meta. */
typedef struct ampl_note {
  int8_t  dtype, ndim;
  int64_t shape[AMPL_RANK_MAX];
} ampl_note;

enum { AMPL_NODE_FREED = 1, AMPL_NODE_WIDE = 2 };       /* WIDE: gradients from several uses are summed in f32 */

struct ampl_node {
  int            refs;
  uint8_t        ny, flags;
  uint16_t       nx, np, nints;
  const ampl_op *op;            /* NULL: foreign */
  ampl_ctx      *ctx;
  uint64_t       seq;
  size_t         bytes;         /* of this block */
  int64_t        index_base;
  ampl_edge     *edge;          /* [nx] */
  ampl_note     *xm, *ym;       /* [nx], [ny] */
  ampl_tensor  **x, **y;        /* [nx], [ny]: saved, NULL where not */
  uint32_t      *version;       /* [nx + ny]: of what is saved */
  ampl_value    *p;             /* [np], lists copied behind */
  ampl_hook     *hooks;
  ampl_tensor  **retains;       /* [ny]: not counted; who wants its output's gradient in .grad; or NULL */
  ampl_function  foreign;
  ampl_node     *next_dead;
  char          *where;         /* AMPL_WHERE_BYTES: where the forward call stood, in anomaly mode */
};

/* Records the call `in` -> out on a new node; out[i]->node is set.  `wide`: see AMPL_NODE_WIDE. */
ampl_status ampl_graph_record(ampl_ctx *ctx, const ampl_args *in, int nout, ampl_tensor **out, unsigned flags);
void        ampl_node_release(ampl_node *node);

/* After an in-place write whose value was computed with a graph: self's graph becomes that of `value`'s node.  With a
 * base, base's graph gets the write, too. */
ampl_status ampl_graph_rebase(ampl_ctx *ctx, ampl_tensor *self, ampl_tensor *value);
/* Remembers that y views x. */
ampl_status ampl_graph_view(ampl_ctx *ctx, ampl_tensor *y, ampl_tensor *x);
/* Brings a view's node up to date when its base was written in place since. */
ampl_status ampl_graph_settle(ampl_ctx *ctx, ampl_tensor *x);

/* Runs the hooks of output k, in the order they came, on *g, which they may replace.  Hooks may remove hooks and add
 * some meanwhile: those that are added wait for the next walk. */
ampl_status ampl_hooks_run(ampl_ctx *ctx, ampl_hook **hooks, int k, ampl_tensor **g);

/* Drops what a dying tensor holds. */
void ampl_graph_forget(ampl_ctx *ctx, ampl_tensor *x);

/* Drops what backward needed.  If there was something, the node can be walked no more. */
void ampl_node_drop_saved(ampl_node *node);

/* Anomaly mode (trace.c): the place of the forward call, kept with the node. */
#define AMPL_WHERE_BYTES 192
void        ampl_anomaly_note(ampl_ctx *ctx, ampl_node *node);
/* Checks the gradients that `node` gave. */
ampl_status ampl_anomaly_check(ampl_ctx *ctx, const ampl_node *node, int n, ampl_tensor *const *dx);

#endif
