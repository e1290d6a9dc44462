/* norm.c: see norm.h. */
#include "isa/norm.h"
#include "isa/simd.h"

INLINE V ld(const float *p, int64_t n) { return n >= VW ? vld(p) : vldn(p, n); }
INLINE void st(float *p, V v, int64_t n) {
  if (n >= VW) vst(p, v);
  else vstn(p, v, n);
}
/* The factor of place j: 1 where there is no weight */
INLINE V times(V v, const float *weight, int64_t j, int64_t n) { return weight ? vmul(v, ld(weight + j, n)) : v; }

/* ------------------------------------------------------------------------------------------------ affine ---------- */

INLINE V affine(const bool has_dy, V dy, V x, V a, V m, V b, V c) {
  const V v = vfma(vsub(x, m), b, c);
  return has_dy ? vfma(dy, a, v) : v;
}

static void affine_row(float *y, const float *dy, const float *x, int64_t n, float a, float m, float b, float c) {
  const V va = vset(a), vm = vset(m), vb = vset(b), vc = vset(c);
  if (dy)
    for (int64_t i = 0; i < n; i += VW)
      st(y + i, affine(true, ld(dy + i, n - i), ld(x + i, n - i), va, vm, vb, vc), n - i);
  else
    for (int64_t i = 0; i < n; i += VW) st(y + i, affine(false, vb, ld(x + i, n - i), va, vm, vb, vc), n - i);
}

static void affine_cols(float *y, int64_t ldy, const float *dy, int64_t lddy, const float *x, int64_t ldx, int64_t rows,
                        int64_t n, const float *a, const float *m, const float *b, const float *c) {
  for (int64_t r = 0; r < rows; r++, y += ldy, x += ldx) {
    if (dy)
      for (int64_t j = 0; j < n; j += VW) {
        const int64_t k = n - j;
        st(y + j,
           affine(true, ld(dy + r * lddy + j, k), ld(x + j, k), ld(a + j, k), ld(m + j, k), ld(b + j, k), ld(c + j, k)),
           k);
      }
    else
      for (int64_t j = 0; j < n; j += VW) {
        const int64_t k = n - j;
        st(y + j, affine(false, vzero(), ld(x + j, k), vzero(), ld(m + j, k), ld(b + j, k), ld(c + j, k)), k);
      }
  }
}

/* ------------------------------------------------------------------------------------------------ rows ------------ */

static void row(float *y, const float *x, const float *weight, const float *bias, int64_t n, float mean, float scale) {
  const V m = vset(mean), s = vset(scale);
  for (int64_t i = 0; i < n; i += VW) {
    const int64_t k = n - i;
    const V v = times(vmul(vsub(ld(x + i, k), m), s), weight, i, k);
    st(y + i, bias ? vadd(v, ld(bias + i, k)) : v, k);
  }
}

static void row_sums(const float *dy, const float *x, const float *weight, int64_t n, float mean, double *a,
                     double *b) {
  const V m = vset(mean);
  V s0 = vzero(), s1 = s0, d0 = s0, d1 = s0;
  int64_t i = 0;
  for (; i + 2 * VW <= n; i += 2 * VW) {
    const V u = times(vld(dy + i), weight, i, VW), v = times(vld(dy + i + VW), weight, i + VW, VW);
    s0 = vadd(s0, u), s1 = vadd(s1, v);
    d0 = vfma(u, vsub(vld(x + i), m), d0), d1 = vfma(v, vsub(vld(x + i + VW), m), d1);
  }
  for (; i < n; i += VW) {
    const V u = times(ld(dy + i, n - i), weight, i, n - i);
    s0 = vadd(s0, u), d0 = vfma(u, vsub(ld(x + i, n - i), m), d0);
  }
  *a = vsum(vadd(s0, s1));
  *b = vsum(vadd(d0, d1));
}

static void row_back(float *dx, const float *dy, const float *x, const float *weight, int64_t n, float mean,
                     float scale, float b, float c) {
  const V m = vset(mean), s = vset(scale), vb = vset(b), vc = vset(c);
  for (int64_t i = 0; i < n; i += VW) {
    const int64_t k = n - i;
    const V g = times(ld(dy + i, k), weight, i, k);
    st(dx + i, vfma(g, s, vfma(vsub(ld(x + i, k), m), vb, vc)), k);
  }
}

static void row_params(float *dweight, float *dbias, const float *dy, const float *x, int64_t n, float mean,
                       float scale) {
  const V m = vset(mean), s = vset(scale);
  for (int64_t i = 0; i < n; i += VW) {
    const int64_t k = n - i;
    const V g = ld(dy + i, k);
    st(dweight + i, vfma(g, vmul(vsub(ld(x + i, k), m), s), ld(dweight + i, k)), k);
    if (dbias) st(dbias + i, vadd(g, ld(dbias + i, k)), k);
  }
}

const ampl_cpu_norm ISA(ampl_cpu_norm) = {affine_row, affine_cols, row, row_sums, row_back, row_params};
