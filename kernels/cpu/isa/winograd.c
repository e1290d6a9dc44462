/*
** winograd.c: the transforms of Winograd's F(4x4, 3x3).
**
** A 4x4 tile of outputs of a 3x3 convolution is  y = A' [(G w G') . (B' x B)] A,  with x a 6x6 tile of
** inputs and `.` elementwise: 36 products instead of 144.  Summed over channels, the 36 become 36 matrix
** products, one for each point of the transformed tile.
** The gradient of the filter is  G' [sum over tiles of (B' x B) . (A dy A')] G.
**
** Vectors run along channels, so all of it is plain vector arithmetic on whole pixels.  The numbers of
** channels are multiples of 16: whole vectors on every ISA.
*/
#include "isa/typed.h"

#include "isa/tile.h"

/* ---------------------------------------------------------------- one line of a transform */

/* The points are 0, P, -P, Q, -Q and infinity.  5/8 and 3/2 keep the entries of the matrices near 1, and
   with them the rounding errors small: a quarter of those of the usual 1 and 2.  All powers below are exact. */
#define P 0.625f
#define Q 1.5f
#define P2 (P * P)
#define Q2 (Q * Q)
#define FP (2 * P2 * (P2 - Q2)) /* the product of the differences between P, or -P, and the other points */
#define FQ (2 * Q2 * (Q2 - P2))

INLINE void times_b (V o[6], const V i[6]) { /* B' i */
  const V t = vmul(vset(P), vfma(vset(-Q2), i[1], i[3])), u = vfma(vset(-Q2), i[2], i[4]);
  const V v = vmul(vset(Q), vfma(vset(-P2), i[1], i[3])), w = vfma(vset(-P2), i[2], i[4]);
  o[0] = vfma(vset(P2 * Q2), i[0], vfma(vset(-P2 - Q2), i[2], i[4]));
  o[1] = vadd(u, t);
  o[2] = vsub(u, t);
  o[3] = vadd(w, v);
  o[4] = vsub(w, v);
  o[5] = vfma(vset(P2 * Q2), i[1], vfma(vset(-P2 - Q2), i[3], i[5]));
}

INLINE void times_a (V o[4], const V i[6]) { /* A' i */
  const V s = vadd(i[1], i[2]), t = vsub(i[1], i[2]), u = vadd(i[3], i[4]), v = vsub(i[3], i[4]);
  o[0] = vadd(vadd(i[0], s), u);
  o[1] = vfma(vset(P), t, vmul(vset(Q), v));
  o[2] = vfma(vset(P2), s, vmul(vset(Q2), u));
  o[3] = vfma(vset(P * P2), t, vfma(vset(Q * Q2), v, i[5]));
}

INLINE void times_a_back (V o[6], const V i[4]) { /* A i */
  const V s = vfma(vset(P2), i[2], i[0]), t = vfma(vset(P * P2), i[3], vmul(vset(P), i[1]));
  const V u = vfma(vset(Q2), i[2], i[0]), v = vfma(vset(Q * Q2), i[3], vmul(vset(Q), i[1]));
  o[0] = i[0];
  o[1] = vadd(s, t);
  o[2] = vsub(s, t);
  o[3] = vadd(u, v);
  o[4] = vsub(u, v);
  o[5] = i[3];
}

INLINE void times_g (V o[6], const V i[3]) { /* G i */
  const V s = vmul(vset(1 / FP), vfma(vset(P2), i[2], i[0])), t = vmul(vset(P / FP), i[1]);
  const V u = vmul(vset(1 / FQ), vfma(vset(Q2), i[2], i[0])), v = vmul(vset(Q / FQ), i[1]);
  o[0] = vmul(vset(1 / (P2 * Q2)), i[0]);
  o[1] = vadd(s, t);
  o[2] = vsub(s, t);
  o[3] = vadd(u, v);
  o[4] = vsub(u, v);
  o[5] = i[2];
}

INLINE void times_g_back (V o[3], const V i[6]) { /* G' i */
  const V s = vmul(vset(1 / FP), vadd(i[1], i[2])), t = vmul(vset(P / FP), vsub(i[1], i[2]));
  const V u = vmul(vset(1 / FQ), vadd(i[3], i[4])), v = vmul(vset(Q / FQ), vsub(i[3], i[4]));
  o[0] = vfma(vset(1 / (P2 * Q2)), i[0], vadd(s, u));
  o[1] = vadd(t, v);
  o[2] = vfma(vset(P2), s, vfma(vset(Q2), u, i[5]));
}

/* ---------------------------------------------------------------- tiles */

/* dst[(6y + x)*ldd + c] = B' src B, where src is a 6x6 window of which [y0, y1) x [x0, x1) lies in the
   image; the rest is zero.  Strides count elements. */
INLINE void input (const int dtype, float *dst, long ldd, const ampl_cpu_window *s) {
  for (long j = 0; j < s->c; j += VW) {
    V t[6][6], in[6], o[6];
    UNROLL for (int x = 0; x < 6; x++) {
      UNROLL for (int y = 0; y < 6; y++) {
        const bool there = y >= s->y0 && y < s->y1 && x >= s->x0 && x < s->x1;
        in[y] = there ? vload(dtype, s->p, y * s->ldy + x * s->ldx + j) : vzero();
      }
      times_b(o, in);
      UNROLL for (int y = 0; y < 6; y++) t[y][x] = o[y];
    }
    UNROLL for (int y = 0; y < 6; y++) {
      times_b(o, t[y]);
      UNROLL for (int x = 0; x < 6; x++) vst(dst + (6 * y + x) * ldd + j, o[x]);
    }
  }
}

/* dst = A src A', src a 4x4 window */
INLINE void grad (const int dtype, float *dst, long ldd, const ampl_cpu_window *s) {
  for (long j = 0; j < s->c; j += VW) {
    V t[6][4], in[4], o[6];
    UNROLL for (int x = 0; x < 4; x++) {
      UNROLL for (int y = 0; y < 4; y++)
        in[y] = y < s->y1 && x < s->x1 ? vload(dtype, s->p, y * s->ldy + x * s->ldx + j) : vzero();
      times_a_back(o, in);
      UNROLL for (int y = 0; y < 6; y++) t[y][x] = o[y];
    }
    UNROLL for (int y = 0; y < 6; y++) {
      times_a_back(o, t[y]);
      UNROLL for (int x = 0; x < 6; x++) vst(dst + (6 * y + x) * ldd + j, o[x]);
    }
  }
}

/* The part of the 4x4 window d that lies in the image = relu(A' src A + bias) */
INLINE void output (const int dtype, const ampl_cpu_window *d, const float *src, long lds, const float *bias,
                    bool relu) {
  for (long j = 0; j < d->c; j += VW) {
    V t[4][6], in[6], o[4];
    UNROLL for (int x = 0; x < 6; x++) {
      UNROLL for (int y = 0; y < 6; y++) in[y] = vld(src + (6 * y + x) * lds + j);
      times_a(o, in);
      UNROLL for (int y = 0; y < 4; y++) t[y][x] = o[y];
    }
    const V b = bias ? vld(bias + j) : vzero();
    UNROLL for (int y = 0; y < 4; y++) {
      times_a(o, t[y]);
      UNROLL for (int x = 0; x < 4; x++) {
        V v = vadd(o[x], b);
        if (relu) v = vmax(vzero(), v);
        if (y < d->y1 && x < d->x1) vstore(dtype, d->p, y * d->ldy + x * d->ldx + j, v);
      }
    }
  }
}

#define EACH_TYPE(dtype, call)                                                                     \
  do {                                                                                             \
    if ((dtype) == AMPL_F32) call(AMPL_F32);                                                       \
    else if ((dtype) == AMPL_BF16) call(AMPL_BF16);                                                \
    else call(AMPL_F16);                                                                           \
  } while (0)

static void wino_input (float *dst, long ldd, const ampl_cpu_window *src) {
#define CALL(t) input(t, dst, ldd, src)
  EACH_TYPE(src->dtype, CALL);
#undef CALL
}

static void wino_grad (float *dst, long ldd, const ampl_cpu_window *src) {
#define CALL(t) grad(t, dst, ldd, src)
  EACH_TYPE(src->dtype, CALL);
#undef CALL
}

static void wino_output (const ampl_cpu_window *dst, const float *src, long lds, const float *bias, bool relu) {
#define CALL(t) output(t, dst, src, lds, bias, relu)
  EACH_TYPE(dst->dtype, CALL);
#undef CALL
}

/* ---------------------------------------------------------------- filters */

/* dst[(6y + x)*ldd + j] = G w G', w[y][x] at src[(3y + x)*lds + j], or turned by 180 degrees */
static void wino_filter (float *dst, long ldd, const float *src, long lds, bool turned, long cols) {
  for (long j = 0; j < cols; j += VW) {
    V t[6][3], in[3], o[6];
    UNROLL for (int x = 0; x < 3; x++) {
      UNROLL for (int y = 0; y < 3; y++) in[y] = vld(src + (turned ? 8 - 3 * y - x : 3 * y + x) * lds + j);
      times_g(o, in);
      UNROLL for (int y = 0; y < 6; y++) t[y][x] = o[y];
    }
    UNROLL for (int y = 0; y < 6; y++) {
      times_g(o, t[y]);
      UNROLL for (int x = 0; x < 6; x++) vst(dst + (6 * y + x) * ldd + j, o[x]);
    }
  }
}

/* dst[(3y + x)*ldd + j] = G' s G, s[y][x] at src[(6y + x)*lds + j] */
static void wino_filter_grad (float *dst, long ldd, const float *src, long lds, long cols) {
  for (long j = 0; j < cols; j += VW) {
    V t[3][6], in[6], o[3];
    UNROLL for (int x = 0; x < 6; x++) {
      UNROLL for (int y = 0; y < 6; y++) in[y] = vld(src + (6 * y + x) * lds + j);
      times_g_back(o, in);
      UNROLL for (int y = 0; y < 3; y++) t[y][x] = o[y];
    }
    UNROLL for (int y = 0; y < 3; y++) {
      times_g_back(o, t[y]);
      UNROLL for (int x = 0; x < 3; x++) vst(dst + (3 * y + x) * ldd + j, o[x]);
    }
  }
}

extern const ampl_cpu_wino ISA(ampl_cpu_wino);
const ampl_cpu_wino ISA(ampl_cpu_wino) = {
  .input = wino_input,
  .grad = wino_grad,
  .output = wino_output,
  .filter = wino_filter,
  .filter_grad = wino_filter_grad,
};
