/*
** depthwise.c: convolutions in which every channel has a filter of its own.  Such a layer does little
** arithmetic on each byte, so the loops read the image where it lies, in the order of memory, and convert
** on the way.
*/
#include "isa/typed.h"

#include "isa/tile.h"

/* ---------------------------------------------------------------- forward, and the gradient of the input */

/* m <= 4 pixels from pixel `at` on, channels [j, j+n): the pixels share the loads of the filter */
INLINE void pixels (const ampl_cpu_depthwise_row *r, const int in, const int out, long at, long m, long j, long n,
                    const bool full) {
  const V bias = !r->bias ? vzero() : full ? vld(r->bias + j) : vldn(r->bias + j, n);
  V sum[4] = {bias, bias, bias, bias};
  for (long t = 0; t < r->taps; t++) {
    const V f = full ? vld(r->filter[t] + j) : vldn(r->filter[t] + j, n);
    UNROLL for (int u = 0; u < 4; u++) {
      const long from = (at + (u < m ? u : 0)) * r->step + j;
      sum[u] = vfma(f, full ? vload(in, r->tap[t], from) : vloadn(in, r->tap[t], from, n), sum[u]);
    }
  }
  UNROLL for (int u = 0; u < 4; u++) {
    const V v = r->relu ? vmax(vzero(), sum[u]) : sum[u];
    if (u >= m) break;
    if (full) vstore(out, r->dst, (at + u) * r->dst_step + j, v);
    else vstoren(out, r->dst, (at + u) * r->dst_step + j, v, n);
  }
}

INLINE void row (const ampl_cpu_depthwise_row *r, const int in, const int out) {
  for (long at = 0; at < r->pixels; at += 4) {
    const long m = r->pixels - at < 4 ? r->pixels - at : 4;
    long j = 0;
    for (; j + VW <= r->c; j += VW) pixels(r, in, out, at, m, j, VW, true);
    if (j < r->c) pixels(r, in, out, at, m, j, r->c - j, false);
  }
}

/* The dtypes of input and output are the same, or one of them is f32 */
static void depthwise_row (const ampl_cpu_depthwise_row *r) {
#define ROW(in, out)                                                                               \
  if (r->dtype == (in) && r->dst_dtype == (out)) {                                                  \
    row(r, in, out);                                                                               \
    return;                                                                                        \
  }
  ROW(AMPL_F32, AMPL_F32)
  ROW(AMPL_BF16, AMPL_BF16)
  ROW(AMPL_F16, AMPL_F16)
  ROW(AMPL_BF16, AMPL_F32)
  ROW(AMPL_F16, AMPL_F32)
  ROW(AMPL_F32, AMPL_BF16)
  ROW(AMPL_F32, AMPL_F16)
#undef ROW
}

/* ---------------------------------------------------------------- the gradient of the filter */

/* dw[0..c) += sum over pixels of x * dy, four vectors of channels at a time */
INLINE void grad (const int xt, const int yt, float *dw, const void *x, long x_step, const void *dy, long y_step,
                  long n, long c) {
  long j = 0;
  for (; j + 4 * VW <= c; j += 4 * VW) {
    V s[4];
    UNROLL for (int v = 0; v < 4; v++) s[v] = vld(dw + j + v * VW);
    for (long i = 0; i < n; i++)
      UNROLL for (int v = 0; v < 4; v++) {
        const long at = j + v * VW;
        s[v] = vfma(vload(xt, x, i * x_step + at), vload(yt, dy, i * y_step + at), s[v]);
      }
    UNROLL for (int v = 0; v < 4; v++) vst(dw + j + v * VW, s[v]);
  }
  for (; j < c; j += VW) {
    V s = vldn(dw + j, c - j);
    for (long i = 0; i < n; i++)
      s = vfma(vloadn(xt, x, i * x_step + j, c - j), vloadn(yt, dy, i * y_step + j, c - j), s);
    vstn(dw + j, s, c - j);
  }
}

static void depthwise_grad (float *dw, const void *x, int x_dtype, long x_step, const void *dy, int dy_dtype,
                            long dy_step, long n, long c) {
#define GRAD(xt, yt)                                                                               \
  if (x_dtype == (xt) && dy_dtype == (yt)) {                                                        \
    grad(xt, yt, dw, x, x_step, dy, dy_step, n, c);                                                \
    return;                                                                                        \
  }
  GRAD(AMPL_F32, AMPL_F32)
  GRAD(AMPL_BF16, AMPL_BF16)
  GRAD(AMPL_F16, AMPL_F16)
  GRAD(AMPL_F32, AMPL_BF16)
  GRAD(AMPL_F32, AMPL_F16)
  GRAD(AMPL_BF16, AMPL_F32)
  GRAD(AMPL_F16, AMPL_F32)
#undef GRAD
}

extern const ampl_cpu_depthwise ISA(ampl_cpu_depthwise);
const ampl_cpu_depthwise ISA(ampl_cpu_depthwise) = {.row = depthwise_row, .grad = depthwise_grad};
