/*
** out.c: a finished f32 tile, hot in L1, on its way to memory: bias, activation, conversion, a second
** copy, and turning it back when the product was computed transposed.
*/
#include "isa/typed.h"

#include "isa/tile.h"

/* ---------------------------------------------------------------- activations */

/* exp for -87 <= x <= 0, relative error below 2e-7 */
INLINE V exp_negative (V x) {
  x = vmax(x, vset(-87.0f));
  V n = vround(vmul(x, vset(1.44269504f)));
  V r = vfma(n, vset(2.12194440e-4f), vfma(n, vset(-0.693359375f), x));
  V p = vset(1.9875691500e-4f);
  p = vfma(p, r, vset(1.3981999507e-3f));
  p = vfma(p, r, vset(8.3334519073e-3f));
  p = vfma(p, r, vset(4.1665795894e-2f));
  p = vfma(p, r, vset(1.6666665459e-1f));
  p = vfma(p, r, vset(5.0000001201e-1f));
  return vldexp(vfma(vmul(p, r), r, vadd(r, vset(1))), v_to_i(n));
}

/* x * (1 + erf(x / sqrt 2)) / 2 as max(x, 0) - |x| * q, q the tail (1 - erf(|x| / sqrt 2)) / 2, by
   Abramowitz and Stegun 7.1.26 (absolute error 1.5e-7) */
INLINE V gelu_erf (V x) {
  V a = vmul(vabs(x), vset(0.70710678f)), t = vdiv(vset(1), vfma(a, vset(0.3275911f), vset(1)));
  V p = vset(1.061405429f);
  p = vfma(p, t, vset(-1.453152027f));
  p = vfma(p, t, vset(1.421413741f));
  p = vfma(p, t, vset(-0.284496736f));
  p = vfma(p, t, vset(0.254829592f));
  V q = vmul(vmul(vset(0.5f), vmul(p, t)), exp_negative(vneg(vmul(a, a))));
  return vsub(vmax(vzero(), x), vmul(vabs(x), q));
}

/* x * (1 + tanh u) / 2 = x / (1 + exp(-2u)), u = sqrt(2/pi) * (x + 0.044715 x^3) */
INLINE V gelu_tanh (V x) {
  V u = vmul(vmul(vset(1.5957691f), x), vfma(vmul(vset(0.044715f), x), x, vset(1)));
  V e = exp_negative(vneg(vabs(u))), r = vdiv(x, vadd(vset(1), e));
  return vselect(vlt(u, vzero()), vmul(r, e), r);
}

INLINE V activate (ampl_cpu_act act, V v) {
  if (act == AMPL_CPU_NONE) return v;
  if (act == AMPL_CPU_RELU) return vmax(vzero(), v);
  return act == AMPL_CPU_GELU ? gelu_erf(v) : gelu_tanh(v);
}

/* ---------------------------------------------------------------- rows */

/* n <= VW columns of one row, from column j on */
INLINE void out_part (const ampl_cpu_out *o, const int dtype, V v, V bias, long row, long j, long n) {
  const long at = row * o->ldc + j;
  if (o->acc) v = vadd(v, vloadn(dtype, o->c, at, n));
  v = vadd(v, bias);
  V result = activate(o->act, v);
  vstoren(dtype, o->c, at, result, n);
  if (!o->copy) return;
  const V second = o->copy_first ? v : result;
  const long copy_at = row * o->ldcopy + j;
  if (o->copy_dtype == AMPL_F32) vstoren(AMPL_F32, o->copy, copy_at, second, n);
  else if (o->copy_dtype == AMPL_BF16) vstoren(AMPL_BF16, o->copy, copy_at, second, n);
  else vstoren(AMPL_F16, o->copy, copy_at, second, n);
}

/* VW columns at a time, so that the bias is loaded once */
INLINE void out_rows (const ampl_cpu_out *o, const int dtype) {
  const bool simple = !o->acc && !o->copy && o->act <= AMPL_CPU_RELU;
  for (long j = 0; j < o->cols; j += VW) {
    const long n = o->cols - j;
    const V bias = o->bias ? vldn(o->bias + j, n) : vzero();
    if (simple && n >= VW) {
      const bool relu = o->act == AMPL_CPU_RELU;
      for (long i = 0; i < o->rows; i++) {
        V v = vadd(vld(o->tile + i * o->ldt + j), bias);
        vstore(dtype, o->c, i * o->ldc + j, relu ? vmax(vzero(), v) : v);
      }
    } else {
      for (long i = 0; i < o->rows; i++)
        out_part(o, dtype, vldn(o->tile + i * o->ldt + j, n), bias, i, j, n);
    }
  }
}

INLINE void out_transposed (const ampl_cpu_out *o, const int dtype) {
  for (long r = 0; r < o->rows; r += VW)
    for (long j = 0; j < o->cols; j += VW) {
      const long rows = o->rows - r, n = o->cols - j;
      V v[VW];
      for (int i = 0; i < VW; i++) v[i] = i < n ? vldn(o->tile + (j + i) * o->ldt + r, rows) : vzero();
      vtrans(v);
      const V bias = o->bias ? vldn(o->bias + j, n) : vzero();
      for (int i = 0; i < VW && i < rows; i++) out_part(o, dtype, v[i], bias, r + i, j, n);
    }
}

void ISA(ampl_cpu_out)(const ampl_cpu_out *o);
void ISA(ampl_cpu_out) (const ampl_cpu_out *o) {
#define OUT(dtype) o->transposed ? out_transposed(o, dtype) : out_rows(o, dtype)
  if (o->dtype == AMPL_F32) OUT(AMPL_F32);
  else if (o->dtype == AMPL_BF16) OUT(AMPL_BF16);
  else OUT(AMPL_F16);
#undef OUT
}
