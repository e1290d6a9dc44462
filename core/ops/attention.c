/* attention.c: scaled dot product attention:  y = dropout(softmax(scale * q k' + mask)) v.
 *
 * The internal op `attention` works on q (b, h, l, e), k (b, hk, s, e), v (b, hk, s, f), where h is a multiple of hk:
 * heads of q share those of k and v in groups.  Besides y it gives the logarithm of each row's sum (infinity for a row
 * that may look nowhere, whose result is 0) and where dropout's draw starts: what attention_backward needs to compute
 * the weights again, block by block.  So no kernel keeps an l x s matrix.
 *
 * Both are also composed of other ops (in f32 for 16-bit operands, as kernels sum): where there is no kernel, and, of
 * attention_backward, where its own gradient is asked for. */
#include "attention.h"
#include "op.h"
#include "reduce.h"

#include <math.h>
#include <string.h>

/* ------------------------------------------------------------------------------------------------ shapes ---------- */

/* (b, h, l, e) lies in memory as x does: (b, l, h, e) where heads are parts of rows, so that they can be joined again
 * without a copy. */
static ampl_status meta_like_heads(ampl_ctx *ctx, ampl_meta *m, const ampl_tensor *x, int64_t width) {
  const int64_t h = x->shape[1], l = x->shape[2];
  AMPL_TRY(ampl_meta_shape(ctx, m, 4, (const int64_t[]){x->shape[0], h, l, width}));
  if (x->strides[1] >= x->strides[2] || h == 1) return AMPL_OK;
  m->layout = AMPL_LAYOUT_STRIDED;
  m->strides[0] = l * h * width, m->strides[1] = width, m->strides[2] = h * width, m->strides[3] = 1;
  return AMPL_OK;
}

static ampl_status infer_attention(ampl_ctx *ctx, const ampl_args *in, ampl_meta *out) {
  const ampl_tensor *q = in->t[0];
  AMPL_TRY(meta_like_heads(ctx, &out[0], q, in->t[2]->shape[3]));
  out[1].dtype = q->dtype == AMPL_F64 ? AMPL_F64 : AMPL_F32;
  AMPL_TRY(ampl_meta_shape(ctx, &out[1], 3, q->shape));
  out[2].dtype = AMPL_I64;
  return ampl_meta_shape(ctx, &out[2], 1, (const int64_t[]){2});
}

/* Operands: dy, q, k, v, y, sums, draw, mask */
static ampl_status infer_backward(ampl_ctx *ctx, const ampl_args *in, ampl_meta *out) {
  const ampl_tensor *q = in->t[1], *k = in->t[2];
  for (int i = 0; i < 3; i++) AMPL_TRY(meta_like_heads(ctx, &out[i], in->t[1 + i], in->t[1 + i]->shape[3]));
  if (!in->p[AMPL_ATTENTION_MASK_GRAD].i) return ampl_meta_shape(ctx, &out[3], 1, (const int64_t[]){0});
  return ampl_meta_shape(ctx, &out[3], 4, (const int64_t[]){q->shape[0], q->shape[1], q->shape[2], k->shape[2]});
}

/* ------------------------------------------------------------------------------------------------ by other ops ---- */

static ampl_tensor *swap_last(ampl_eval *e, ampl_tensor *x) { return EV(e, transpose, T(x), P(V_I(-2), V_I(-1))); }

/* k or v with a head for each of q's. */
static ampl_tensor *spread_heads(ampl_eval *e, ampl_tensor *x, int64_t heads) {
  const int64_t *s = x->shape, groups = s[1] ? heads / s[1] : 1;
  if (groups == 1) return x;
  const int64_t apart[5] = {s[0], s[1], groups, s[2], s[3]}, joined[4] = {s[0], heads, s[2], s[3]};
  x = EV(e, expand, T(EV(e, unsqueeze, T(x), P(V_I(2)))), P(V_L(5, apart)));
  return EV(e, reshape, T(x), P(V_L(4, joined)));
}

/* The sum over the heads that shared one: what spread_heads did, turned around. */
static ampl_tensor *gather_heads(ampl_eval *e, ampl_tensor *x, int64_t heads) {
  if (!x || x->shape[1] == heads || heads == 0) return x;
  const int64_t *s = x->shape, apart[5] = {s[0], heads, s[1] / heads, s[2], s[3]}, dim = 2;
  return EV(e, sum, T(EV(e, reshape, T(x), P(V_L(5, apart)))), P(V_L(1, &dim)));
}

static ampl_tensor *only_where(ampl_eval *e, ampl_tensor *condition, ampl_tensor *x, double otherwise) {
  return EV(e, where, T(condition, x, ampl_eval_num(e, otherwise)));
}

/* true where position i may look at position j: j <= i; (l, s), on the scores' device */
static ampl_tensor *triangle(ampl_eval *e, ampl_tensor *scores) {
  ampl_tensor *one = EV(e, select, T(EV(e, select, T(scores), P(V_I(0), V_I(0)))), P(V_I(0), V_I(0)));
  return EV(e, tril, T(EV(e, ones_like, T(one), P(V_I(AMPL_BOOL)))));
}

/* scale * q k' + mask, (b, h, l, s); k with q's heads */
static ampl_tensor *scores(ampl_eval *e, ampl_tensor *q, ampl_tensor *k, ampl_tensor *mask, const ampl_value *p) {
  ampl_tensor *s = EV(e, matmul, T(q, swap_last(e, k)));
  s = EV(e, mul, T(s, ampl_eval_num(e, p[AMPL_ATTENTION_SCALE].f)));
  if (!s || s->numel == 0) return s;
  if (p[AMPL_ATTENTION_CAUSAL].i) s = only_where(e, triangle(e, s), s, -INFINITY);
  if (!s || !mask) return s;
  return mask->dtype == AMPL_BOOL ? only_where(e, mask, s, -INFINITY)
                                  : EV(e, add, T(s, ampl_eval_to(e, mask, s->dtype)));
}

/* softmax of the scores; *alive: rows that may look somewhere (the weights of others are 0), NULL for no scores */
static ampl_tensor *weights(ampl_eval *e, ampl_tensor *s, ampl_tensor **alive) {
  const int64_t last = 3;
  *alive = NULL;
  if (!s || s->numel == 0) return s;
  *alive = EV(e, ne, T(EV(e, amax, T(s), P(V_L(1, &last), V_I(true))), ampl_eval_num(e, -INFINITY)));
  return only_where(e, *alive, EV(e, softmax, T(only_where(e, *alive, s, 0)), P(V_I(3), V_I(s->dtype))), 0);
}

/* The weights after dropout, drawn now (*draw NULL) or again. */
static ampl_tensor *dropped(ampl_eval *e, ampl_tensor *w, ampl_tensor **draw, const ampl_value *p) {
  const double probability = p[AMPL_ATTENTION_DROPOUT].f;
  if (!w || probability == 0 || w->numel == 0) return w;
  const int64_t shape[4] = {w->shape[0], w->shape[1], w->shape[2], ampl_attention_pitch(w->shape[3])};
  ampl_tensor *column = EV(e, ones_like, T(EV(e, narrow, T(w), P(V_I(3), V_I(0), V_I(1)))));
  ampl_tensor *ones = EV(e, expand, T(column), P(V_L(4, shape))), *made[2] = {NULL};
  if (*draw) made[0] = EV(e, dropout_backward, T(ones, *draw), P(V_F(probability)));
  else ampl_eval_outs(e, OP(dropout_draw), T(ones), &(ampl_value){.f = probability}, 1, made);
  if (!*draw) *draw = made[1];
  return EV(e, mul, T(w, EV(e, narrow, T(made[0]), P(V_I(3), V_I(0), V_I(w->shape[3])))));
}

static ampl_status compose_attention(ampl_eval *e, const ampl_args *in, ampl_tensor **out) {
  ampl_tensor *q = in->t[0], *draw = NULL, *alive;
  const int64_t heads = q->shape[1], last = 3, two = 2;
  ampl_tensor *s =
      scores(e, ampl_eval_wide(e, q), spread_heads(e, ampl_eval_wide(e, in->t[1]), heads), in->t[3], in->p);
  ampl_tensor *w = dropped(e, weights(e, s, &alive), &draw, in->p);
  ampl_tensor *y = ampl_eval_to(e, EV(e, matmul, T(w, spread_heads(e, ampl_eval_wide(e, in->t[2]), heads))), q->dtype);
  ampl_tensor *sums = EV(e, logsumexp, T(s), P(V_L(1, &last), V_I(true)));
  if (alive) sums = only_where(e, alive, sums, INFINITY);
  sums = EV(e, squeeze, T(sums), P(V_L(1, &last)));
  if (!draw) draw = EV(e, zeros, NULL, 0, P(V_L(1, &two), V_I(AMPL_I64)));
  AMPL_TRY(ampl_eval_return(e, y, &out[0]));
  AMPL_TRY(ampl_eval_return(e, sums, &out[1]));
  return ampl_eval_return(e, draw, &out[2]);
}

static ampl_status back_attention(ampl_grad *g) {
  ampl_value p[AMPL_ATTENTION_PARAMS + 1];
  ampl_tensor *d[4];
  memcpy(p, g->p, AMPL_ATTENTION_PARAMS * sizeof *p);
  p[AMPL_ATTENTION_MASK_GRAD] = V_I(g->need[3]);
  ampl_eval_outs(&g->e, OP(attention_backward),
                 T(g->dy[0], g->x[0], g->x[1], g->x[2], g->y[0], g->y[1], g->y[2], g->x[3]), p,
                 AMPL_ATTENTION_PARAMS + 1, d);
  if (g->e.status != AMPL_OK) return g->e.status;
  for (int i = 0; i < 4; i++)
    if (g->need[i]) ampl_grad_set(g, i, d[i]);
  return g->e.status;
}

#define PARAMS FLOAT("dropout_p", 0), BOOL("is_causal", false), FLOAT("scale", 1)
AMPL_OP(attention, .doc = "Attention over heads; also the logarithms of the sums, and dropout's draw.",
        .args = {TENSOR_ONLY("q"), TENSOR_ONLY("k"), TENSOR_ONLY("v"), TENSOR_OPT_AS_IS("mask"), PARAMS}, .nout = 3,
        .flags = AMPL_OP_INTERNAL | AMPL_OP_RANDOM,
        .save = AMPL_SAVE_X(0) | AMPL_SAVE_X(1) | AMPL_SAVE_X(2) | AMPL_SAVE_X(3) | AMPL_SAVE_Y(0) | AMPL_SAVE_Y(1) |
                AMPL_SAVE_Y(2),
        .infer = infer_attention, .backward = back_attention, .compose = compose_attention);

/* With w the weights and w' what dropout left of them:  dv = w'' dy,  dw = dropout(dy v'),
 * ds = w * (dw - sum(dw * w)),  dq = scale ds k,  dk = scale ds' q,  dmask = ds. */
static ampl_status compose_backward(ampl_eval *e, const ampl_args *in, ampl_tensor **out) {
  ampl_tensor *dy = ampl_eval_wide(e, in->t[0]), *q = ampl_eval_wide(e, in->t[1]), *k = ampl_eval_wide(e, in->t[2]),
              *v = ampl_eval_wide(e, in->t[3]), *draw = in->t[6];
  ampl_tensor *alive;
  if (!q || !k || !v || !dy) return e->status;
  const int64_t heads = q->shape[1], last = 3, none = 0;
  const int dtype = in->t[1]->dtype;
  ampl_tensor *kh = spread_heads(e, k, heads), *vh = spread_heads(e, v, heads);
  ampl_tensor *w = weights(e, scores(e, q, kh, in->t[7], in->p), &alive);
  ampl_tensor *dv = EV(e, matmul, T(swap_last(e, dropped(e, w, &draw, in->p)), dy));
  ampl_tensor *dw = dropped(e, EV(e, matmul, T(dy, swap_last(e, vh))), &draw, in->p);
  ampl_tensor *ds =
      EV(e, mul, T(w, EV(e, sub, T(dw, EV(e, sum, T(EV(e, mul, T(dw, w))), P(V_L(1, &last), V_I(true)))))));
  ampl_tensor *scaled = EV(e, mul, T(ds, ampl_eval_num(e, in->p[AMPL_ATTENTION_SCALE].f)));
  ampl_tensor *dq = EV(e, matmul, T(scaled, kh)), *dk = EV(e, matmul, T(swap_last(e, scaled), q));
  AMPL_TRY(ampl_eval_return(e, ampl_eval_to(e, dq, dtype), &out[0]));
  AMPL_TRY(ampl_eval_return(e, ampl_eval_to(e, gather_heads(e, dk, k->shape[1]), dtype), &out[1]));
  AMPL_TRY(ampl_eval_return(e, ampl_eval_to(e, gather_heads(e, dv, v->shape[1]), dtype), &out[2]));
  if (!in->p[AMPL_ATTENTION_MASK_GRAD].i) ds = EV(e, zeros, NULL, 0, P(V_L(1, &none)));
  return ampl_eval_return(e, ds, &out[3]);
}

AMPL_OP(attention_backward, .doc = "The gradients of q, k, v and the mask.",
        .args = {TENSOR_ONLY("dy"),
                 TENSOR_ONLY("q"),
                 TENSOR_ONLY("k"),
                 TENSOR_ONLY("v"),
                 TENSOR_ONLY("y"),
                 {.name = "sums", .kind = AMPL_ARG_TENSOR, .flags = AMPL_REQUIRED | AMPL_AS_IS},
                 {.name = "draw", .kind = AMPL_ARG_TENSOR, .flags = AMPL_REQUIRED | AMPL_AS_IS},
                 TENSOR_OPT_AS_IS("mask"),
                 PARAMS,
                 BOOL("mask_grad", false)},
        .nout = 4, .flags = AMPL_OP_INTERNAL, .infer = infer_backward, .compose = compose_backward);

/* ------------------------------------------------------------------------------------------------ the op ---------- */

/* Operands q, k, v, mask with all the leading dimensions of the result; k and v have heads of their own under
 * enable_gqa. */
typedef struct heads {
  int         ndim;
  ampl_meta   lead;             /* leading dimensions, those of q */
  int64_t     shared;           /* heads of k and v */
  ampl_tensor *q, *k, *v, *mask;
} heads;

static int64_t size_from_end(const ampl_tensor *x, int k) { return x->shape[x->ndim - k]; }

static ampl_status check_operands(ampl_ctx *ctx, const ampl_args *in) {
  const ampl_tensor *q = in->t[0], *k = in->t[1], *v = in->t[2], *mask = in->t[3];
  if (k->dtype != q->dtype || v->dtype != q->dtype)
    return ampl_error(
        ctx, AMPL_EDTYPE,
        "query is %s, key %s, value %s; bring them to one dtype with x:to(dtype), or use an autocast region",
        ampl_tensor_text(ctx, q), ampl_tensor_text(ctx, k), ampl_tensor_text(ctx, v));
  AMPL_TRY(ampl_need_float(ctx, "query", q));
  const int least = in->p[3].i ? 3 : 2;         /* enable_gqa: a dimension of heads, too */
  if (q->ndim < least || k->ndim < least || v->ndim < least)
    return ampl_error(ctx, AMPL_ESHAPE, "query of %s, key of %s, value of %s; all have %d dimensions or more%s",
                      ampl_shape_text(ctx, q->ndim, q->shape), ampl_shape_text(ctx, k->ndim, k->shape),
                      ampl_shape_text(ctx, v->ndim, v->shape), least, least == 3 ? ", with enable_gqa" : "");
  if (size_from_end(q, 1) != size_from_end(k, 1))
    return ampl_error(ctx, AMPL_ESHAPE, "query of %s and key of %s: their last sizes must be equal",
                      ampl_shape_text(ctx, q->ndim, q->shape), ampl_shape_text(ctx, k->ndim, k->shape));
  if (size_from_end(k, 2) != size_from_end(v, 2))
    return ampl_error(ctx, AMPL_ESHAPE, "key of %s and value of %s: their last sizes but one must be equal",
                      ampl_shape_text(ctx, k->ndim, k->shape), ampl_shape_text(ctx, v->ndim, v->shape));
  if (mask && mask->dtype != AMPL_BOOL && !ampl_is_float(mask))
    return ampl_error(ctx, AMPL_EDTYPE,
                      "mask is %s; bool (true: look) or a float that is added to the scores is needed",
                      ampl_dtype_name((ampl_dtype)mask->dtype));
  if (mask && in->p[1].i)
    return ampl_error(ctx, AMPL_EARG, "a mask and is_causal together; make the mask triangular with tril");
  const double p = in->p[0].f;
  if (!(p >= 0 && p <= 1)) return ampl_error(ctx, AMPL_EVALUE, "dropout_p is %g, a probability is between 0 and 1", p);
  return AMPL_OK;
}

/* Finds the common leading dimensions: they broadcast. */
static ampl_status find_lead(ampl_ctx *ctx, heads *h, bool gqa) {
  const int lead = h->ndim - 2;
  const ampl_tensor *q = h->q, *of[2] = {h->k, h->v};
  int64_t shape[AMPL_RANK_MAX];
  AMPL_TRY(ampl_meta_shape(ctx, &h->lead, q->ndim - 2, q->shape));
  for (int i = 0; i < 2; i++) {
    const ampl_tensor *x = of[i];
    memcpy(shape, x->shape, sizeof shape);
    if (gqa) {
      const int64_t mine = size_from_end(x, 3), all = size_from_end(q, 3);
      if (mine == 0 || all % mine != 0)
        return ampl_error(ctx, AMPL_ESHAPE,
                          "query has %lld heads, %s %lld; with enable_gqa those of query are a multiple of them",
                          (long long)all, i ? "value" : "key", (long long)mine);
      shape[x->ndim - 3] = 1;
    }
    AMPL_TRY(ampl_meta_broadcast(ctx, &h->lead, x->ndim - 2, shape));
  }
  const int64_t all = lead > 0 ? h->lead.shape[lead - 1] : 1;
  h->shared = !gqa ? all : size_from_end(h->k, 3) == size_from_end(h->v, 3) ? size_from_end(h->k, 3) : all;
  return AMPL_OK;
}

/* x with the leading dimensions, `count` heads and the last two sizes, as (b, heads, rows, columns). */
static ampl_tensor *as_heads(ampl_eval *e, const heads *h, ampl_tensor *x, int64_t count, int64_t rows,
                             int64_t columns) {
  const int lead = h->ndim - 2;
  int64_t full[AMPL_RANK_MAX], four[4] = {1, count, rows, columns};
  memcpy(full, h->lead.shape, sizeof full);
  if (lead > 0) full[lead - 1] = count;
  full[lead] = rows, full[lead + 1] = columns;
  if (!x) return NULL;
  if (x->ndim != h->ndim || memcmp(x->shape, full, (size_t)h->ndim * sizeof *full) != 0)
    x = EV(e, expand, T(x), P(V_L(h->ndim, full)));
  for (int d = 0; d < lead - 1; d++) four[0] *= full[d];
  return h->ndim == 4 ? x : EV(e, reshape, T(x), P(V_L(4, four)));
}

static int most(int a, int b) { return a > b ? a : b; }

/* Keys and values that do not share heads in the same groups get one for each of query's. */
static ampl_tensor *repeat_heads(ampl_eval *e, ampl_tensor *x, int64_t count) {
  if (!x || size_from_end(x, 3) == count) return x;
  ampl_tensor *times = ampl_eval_num(e, (double)(count / size_from_end(x, 3)));
  return EV(e, repeat_interleave, T(x, times), P(V_I(x->ndim - 3)));
}

static ampl_status compose(ampl_eval *e, const ampl_args *in, ampl_tensor **out) {
  ampl_tensor *q = in->t[0], *k = in->t[1], *v = in->t[2], *mask = in->t[3];
  AMPL_TRY(check_operands(e->ctx, in));
  heads h = {.ndim = most(q->ndim, most(k->ndim, v->ndim)), .q = q, .k = k, .v = v};
  AMPL_TRY(find_lead(e->ctx, &h, in->p[3].i));
  const int last = h.ndim - 1;
  const int64_t l = size_from_end(q, 2), width = size_from_end(q, 1), s = size_from_end(k, 2), f = size_from_end(v, 1);
  const int64_t count = h.ndim > 2 ? h.lead.shape[last - 2] : 1;
  const double scale = isnan(in->p[2].f) ? width ? 1 / sqrt((double)width) : 1 : in->p[2].f;
  if (in->p[3].i && h.shared == count) k = repeat_heads(e, k, count), v = repeat_heads(e, v, count);
  q = as_heads(e, &h, q, count, l, width);
  k = as_heads(e, &h, k, h.shared, s, width);
  v = as_heads(e, &h, v, h.shared, s, f);
  if (mask) mask = as_heads(e, &h, mask, count, l, s);
  ampl_tensor *y = EV(e, attention, T(q, k, v, mask), P(in->p[0], in->p[1], V_F(scale)));
  if (y && h.ndim != 4) {
    int64_t shape[AMPL_RANK_MAX];
    memcpy(shape, h.lead.shape, sizeof shape);
    shape[last - 1] = l, shape[last] = f;
    y = EV(e, reshape, T(y), P(V_L(h.ndim, shape)));
  }
  return ampl_eval_return(e, y, out);
}

AMPL_OP(scaled_dot_product_attention,
        .doc = "softmax(query key' * scale + mask) value, over heads (..., heads, length, size); the dimensions before "
               "length broadcast.  A bool mask is true "
               "where to look; a row that "
               "may look nowhere gives 0.  scale: 1 / sqrt(size) where not given.",
        .args = {TENSOR_ONLY("query"), TENSOR_ONLY("key"), TENSOR_ONLY("value"), TENSOR_OPT_AS_IS("mask"),
                 FLOAT("dropout_p", 0, "of the weights"),
                 BOOL("is_causal", false, "position i looks at positions up to i"), FLOAT_OPT("scale"),
                 BOOL("enable_gqa", false, "heads of query share those of key and value in groups")},
        .cast = AMPL_CAST_LOW, .flags = AMPL_OP_RANDOM, .compose = compose);
