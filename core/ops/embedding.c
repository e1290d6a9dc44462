/* embedding: rows of a table by their numbers.  Backward: every row's gradient is the sum over its uses, in order. */
#include "positions.h"

enum { PADDING, BY_FREQ };              /* parameters */

static ampl_status infer(ampl_ctx *ctx, const ampl_args *in, ampl_meta *out) {
  const ampl_tensor *input = in->t[0], *weight = in->t[1];
  int64_t shape[AMPL_RANK_MAX], at;
  AMPL_TRY(want_positions(ctx, "input", input));
  if (weight->ndim != 2)
    return ampl_error(ctx, AMPL_ESHAPE, "weight is %s, not a matrix", ampl_tensor_text(ctx, weight));
  if (input->ndim == AMPL_RANK_MAX)
    return ampl_error(ctx, AMPL_ESHAPE, "input %s has all dimensions that a tensor can have",
                      ampl_tensor_text(ctx, input));
  if (in->p[PADDING].i != AMPL_ABSENT)
    AMPL_TRY(ampl_resolve_index(ctx, "padding_idx", in->p[PADDING].i, weight->shape[0], &at));
  memcpy(shape, input->shape, sizeof shape);
  shape[input->ndim] = weight->shape[1];
  out->dtype = weight->dtype;
  return ampl_meta_shape(ctx, out, input->ndim + 1, shape);
}

static ampl_status back(ampl_grad *g) {
  int64_t rows = g->xm[1].shape[0], padding = g->p[PADDING].i;
  if (padding != AMPL_ABSENT && padding < 0) padding += rows;
  if (g->need[1])
    ampl_grad_set(g, 1, EV(&g->e, embedding_backward, T(g->dy[0], g->x[0]), P(V_I(rows), V_I(padding), g->p[BY_FREQ])));
  return AMPL_OK;
}

AMPL_OP(embedding,
        .doc = "The rows of `weight` at the positions in `input`.  Row padding_idx gets no gradient; with "
               "scale_grad_by_freq a row's gradient is divided by how often it was used.",
        .args = {LABELS("input"), TENSOR_ONLY("weight"), CLASS("padding_idx", AMPL_ABSENT),
                 BOOL("scale_grad_by_freq", false)},
        .save = AMPL_SAVE_X(0), .infer = infer, .backward = back);

static ampl_status backward_infer(ampl_ctx *ctx, const ampl_args *in, ampl_meta *out) {
  const ampl_tensor *dy = in->t[0];
  return ampl_meta_shape(ctx, out, 2, (int64_t[]){in->p[0].i, dy->shape[dy->ndim - 1]});
}

static ampl_status backward_back(ampl_grad *g) {
  ampl_eval *e = &g->e;
  ampl_tensor *v = g->dy[0];
  if (g->p[1].i != AMPL_ABSENT || g->p[2].i) {
    ampl_tensor *factor = EV(e, embedding_factor, T(v, g->x[1]), P(g->p[1], g->p[2]));
    v = EV(e, mul, T(v, factor));
  }
  ampl_grad_set(g, 0, EV(e, embedding, T(g->x[1], v)));
  return AMPL_OK;
}

AMPL_OP(embedding_backward, .doc = "The gradient of embedding's weight of `rows` rows.",
        .args = {TENSOR_ONLY("dy"), LABELS("input"), INT_REQ("rows"), INT_OPT("padding_idx"),
                 BOOL("scale_grad_by_freq", false)},
        .flags = AMPL_OP_INTERNAL, .save = AMPL_SAVE_X(1), .infer = backward_infer, .backward = backward_back);

static ampl_status factor_infer(ampl_ctx *ctx, const ampl_args *in, ampl_meta *out) {
  return ampl_meta_shape(ctx, out, 2, (int64_t[]){in->t[0]->shape[0], 1});
}

AMPL_OP(embedding_factor,
  .doc = "What embedding_backward multiplies each row's sum by: 0 for the padding, 1 over the number of uses, or 1.",
  .args = {TENSOR_ONLY("weight"), LABELS("input"), INT_OPT("padding_idx"), BOOL("scale_grad_by_freq", false)},
  .flags = AMPL_OP_INTERNAL | AMPL_OP_NO_GRAD, .infer = factor_infer);
