/* random.c: Philox on vectors, and the normal distribution by operations that round alike on every instruction set. */
#include "isa/random.h"
#include "isa/vmath.h"
#include "philox.h"

/* The four words of counters n, n + 1 ... n + VW - 1, which do not cross a multiple of 16. */
INLINE void philox (uint64_t seed, uint64_t n, uint32_t lane, I c[4]) {
  uint32_t k0 = (uint32_t)seed, k1 = (uint32_t)(seed >> 32);
  const I m0 = iset((int32_t)AMPL_PHILOX_M0), m1 = iset((int32_t)AMPL_PHILOX_M1);
  c[0] = iadd(iset((int32_t)(uint32_t)n), iiota());
  c[1] = iset((int32_t)(uint32_t)(n >> 32));
  c[2] = iset((int32_t)lane);
  c[3] = izero();
  UNROLL for (int i = 0; i < AMPL_PHILOX_ROUNDS; i++) {
    I ah, bh, al = imulwide(m0, c[0], &ah), bl = imulwide(m1, c[2], &bh);
    c[0] = ixor(ixor(bh, c[1]), iset((int32_t)k0));
    c[1] = bl;
    c[2] = ixor(ixor(ah, c[3]), iset((int32_t)k1));
    c[3] = al;
    k0 += AMPL_PHILOX_W0, k1 += AMPL_PHILOX_W1;
  }
}

/* Runs `body` for every vector of counters: words w of elements at, at + 16, at + 32, at + 48 of out */
#define EACH(body)                                                                                                     \
  for (int64_t g = 0; g < groups; g++)                                                                                 \
    for (int part = 0; part < 16; part += VW) {                                                                        \
      I w[4];                                                                                                          \
      const int64_t at = g * AMPL_PHILOX_GROUP + part;                                                                 \
      philox(seed, (first / AMPL_PHILOX_GROUP + (uint64_t)g) * 16 + (uint64_t)part, lane, w);                          \
      body                                                                                                             \
    }

static void bits (uint32_t *out, int64_t groups, uint64_t seed, uint64_t first, uint32_t lane) {
  EACH(UNROLL for (int k = 0; k < 4; k++) ist((int32_t *)out + at + 16 * k, w[k]);)
}

static void uniform (float *out, int64_t groups, uint64_t seed, uint64_t first) {
  const uint32_t lane = 0;
  EACH(UNROLL for (int k = 0; k < 4; k++) vst(out + at + 16 * k, vmul(i_to_v(ishr(w[k], 8)), vset(0x1p-24f)));)
}

static void keep (float *out, int64_t groups, uint64_t seed, uint64_t first, uint32_t limit, float value) {
  const uint32_t lane = 0;
  const I below = iset((int32_t)limit);
  EACH(UNROLL for (int k = 0; k < 4; k++)
         vst(out + at + 16 * k, vselect(igt(below, ishr(w[k], 8)), vzero(), vset(value)));)
}

/* ------------------------------------------------------------------------------------------------ normal ---------- */

#define FIX2(t, a, b) vfma_exact(t, vset(b), vset(a))
#define FIX3(t, a, ...) vfma_exact(t, FIX2(t, __VA_ARGS__), vset(a))
#define FIX4(t, a, ...) vfma_exact(t, FIX3(t, __VA_ARGS__), vset(a))
#define FIX5(t, a, ...) vfma_exact(t, FIX4(t, __VA_ARGS__), vset(a))
#define FIX6(t, a, ...) vfma_exact(t, FIX5(t, __VA_ARGS__), vset(a))
#define FIX7(t, a, ...) vfma_exact(t, FIX6(t, __VA_ARGS__), vset(a))
#define FIX8(t, a, ...) vfma_exact(t, FIX7(t, __VA_ARGS__), vset(a))
#define FIX9(t, a, ...) vfma_exact(t, FIX8(t, __VA_ARGS__), vset(a))

/* sqrt(-2 ln u) for u = (the word's upper 31 bits, or 1) / 2^31 */
INLINE V radius (I word) {
  V e, u = vmul(i_to_v(ior(ishr(word, 1), iset(1))), vset(0x1p-31f));
  V f = vsub(log_reduce(u, &e), vset(1)), ff = vmul(f, f);
  V q = FIX9(f, 0x1.555546p-2f, -0x1.0000c8p-2f, 0x1.99a6bp-3f, -0x1.550a82p-3f, 0x1.22c9acp-3f, -0x1.035784p-3f,
             0x1.f7cc42p-4f, -0x1.a7368ep-4f, 0x1.5925dap-5f);
  V rest = vfma_exact(vmul(ff, f), q, vmul(vset(-0.5f), ff));
  V ln = vfma_exact(e, vset(LN2_HI), vadd(f, vfma_exact(e, vset(LN2_LO), rest)));
  return vsqrt(vmul(vset(-2), ln));
}

/* The two normal numbers of two words: the second is an angle, two bits of quarter turns and 30 below, centred. */
INLINE void normal_pair (I a, I b, V *x, V *y) {
  V r = radius(a), angle = vmul(i_to_v(ishl(b, 2)), vset(0x1.921fb6p-32f)), t = vmul(angle, angle);
  I turns = ishr(b, 30);
  V s = FIX4(t, -0x1.555556p-3f, 0x1.111176p-7f, -0x1.a05bbcp-13f, 0x1.7cd93ap-19f);
  V c = FIX3(t, 0x1.55554ap-5f, -0x1.6c0c28p-10f, 0x1.99e80cp-16f);
  s = vfma_exact(vmul(angle, t), s, angle);
  c = vadd(vset(1), vfma_exact(vmul(t, t), c, vmul(vset(-0.5f), t)));
  M odd = ieq(iand(turns, iset(1)), iset(1));
  V cosine = vselect(odd, s, c), sine = vselect(odd, c, s);
  I back = iand(iadd(turns, iset(1)), iset(2));         /* the cosine is negative after one and two turns */
  *x = vmul(r, vxor(cosine, i_as_v(ishl(back, 30))));
  *y = vmul(r, vxor(sine, i_as_v(ishl(iand(turns, iset(2)), 30))));
}

static void normal (float *out, int64_t groups, uint64_t seed, uint64_t first) {
  const uint32_t lane = 0;
  EACH({
    V z[4];
    normal_pair(w[0], w[1], &z[0], &z[1]);
    normal_pair(w[2], w[3], &z[2], &z[3]);
    UNROLL for (int k = 0; k < 4; k++) vst(out + at + 16 * k, z[k]);
  })
}

const ampl_cpu_random ISA(ampl_cpu_random) = {bits, uniform, normal, keep};
