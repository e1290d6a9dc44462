/* convert_test.c: f16 and bf16: every pattern there and back; rounding to nearest even, once, from f32, f64 and i64;
 * the numbers of amp-reference section 5.  On each instruction set. */
#include "ampl_backend.h"
#include "stream.h"
#include "sweep.h"

static ampl_ctx *ctx;
static const char *const names[] = {"f32", "f16", "bf16"};

static uint16_t narrow (int dtype, ampl_cpu_work w, const void *v) {
  uint16_t h[16];
  uint64_t many[16];
  for (int i = 0; i < 16; i++) memcpy((char *)many + (size_t)i * ampl_cpu_work_size(w), v, ampl_cpu_work_size(w));
  ampl_cpu_narrow(w, many, dtype, h, 1, 16);
  for (int i = 1; i < 16; i++)
    if (h[i] != h[0]) fault("lanes 0 and %d of a %s vector differ: %04x %04x", i, names[dtype], h[0], h[i]);
  return h[0];
}

/* v rounded to 16 bits: to a multiple of the spacing at v, which f64 does exactly. */
static double rounded (int dtype, double v) {
  const int bits = dtype == AMPL_F16 ? 10 : 7, least = dtype == AMPL_F16 ? -24 : -133;
  const double largest = dtype == AMPL_F16 ? 65504 : 0x1.fep127, next = dtype == AMPL_F16 ? 65536 : 0x1p128;
  int e;
  if (!isfinite(v) || v == 0) return v;
  frexp(v, &e);
  const int unit = e - 1 - bits < least ? least : e - 1 - bits;
  const double r = ldexp(nearbyint(ldexp(v, -unit)), unit);
  return fabs(r) > largest ? copysign(fabs(r) >= next ? INFINITY : largest, v) : r;
}

static void check_value (int dtype, ampl_cpu_work w, const void *v, double exact) {
  const uint16_t h = narrow(dtype, w, v);
  const double got = element(dtype, &h, 0), want = rounded(dtype, exact);
  if (isnan(want) ? !isnan(got) : got != want || !signbit(got) != !signbit(want))
    fault("%.17g to %s is %.9g (%04x), not %.9g", exact, names[dtype], got, h, want);
}
static void check_f32 (int dtype, float v) { check_value(dtype, AMPL_WORK_F32, &v, v); }
static void check_f64 (int dtype, double v) { check_value(dtype, AMPL_WORK_F64, &v, v); }

/* ------------------------------------------------------------------------------------------------ patterns -------- */

static void check_patterns (int dtype) {
  static uint16_t all[65536], back[65536];
  static float wide[65536];
  for (int i = 0; i < 65536; i++) all[i] = (uint16_t)i;
  ampl_cpu_widen(AMPL_WORK_F32, wide, dtype, all, 1, 65536);
  ampl_cpu_narrow(AMPL_WORK_F32, wide, dtype, back, 1, 65536);
  for (int i = 0; i < 65536; i++) {
    const double want = element(dtype, all, i);
    const bool nan = isnan(want);
    if (nan ? !isnan(wide[i]) : wide[i] != want || !signbit(wide[i]) != !signbit(want))
      fault("%s %04x widens to %g, not %g", names[dtype], i, wide[i], want);
    if (nan ? !isnan(element(dtype, back, i)) : back[i] != i)
      fault("%s %04x comes back as %04x", names[dtype], i, back[i]);
  }
  end_case();
}

/* ------------------------------------------------------------------------------------------------ rounding -------- */

/* Halfway between every two neighbours, and a little to both sides, from f32 and f64. */
static void check_halfway (int dtype) {
  const uint16_t top = dtype == AMPL_F16 ? 0x7c00 : 0x7f80;
  for (uint16_t h = 0; h < top; h++) {
    const uint16_t up = (uint16_t)(h + 1);
    const double beyond = dtype == AMPL_F16 ? 65536 : 0x1p128;
    const double a = element(dtype, &h, 0), b = up == top ? beyond : element(dtype, &up, 0);
    const double middle = a + (b - a) / 2;
    for (int sign = -1; sign <= 1; sign += 2) {
      const double m = sign * middle;
      check_f32(dtype, (float)m);
      check_f32(dtype, nextafterf((float)m, 0));
      check_f32(dtype, nextafterf((float)m, sign * INFINITY));
      check_f64(dtype, m);
      check_f64(dtype, nextafter(m, 0));
      check_f64(dtype, nextafter(m, sign * INFINITY));
      check_f64(dtype, m * (1 + 0x1p-30));
      check_f64(dtype, m * (1 - 0x1p-30));
    }
  }
  end_case();
}

static void check_random (int dtype) {
  for (int i = 0; i < 300000; i++) {
    const uint32_t bits = draw() ^ draw() << 16;
    float f;
    memcpy(&f, &bits, sizeof f);
    check_f32(dtype, f);
    check_f64(dtype, ldexp((double)draw() + draw() * 0x1p-31, (int)below(300) - 180));
  }
  end_case();
}

/* i64: v is above, on, or below a halfway point by less than f32 can hold. */
static void check_integers (int dtype) {
  for (int i = 0; i < 100000; i++) {
    const int shift = 10 + (int)below(50);
    int64_t v = ((int64_t)(1024 + below(1024)) << (shift - 10)) + ((int64_t)below(3) - 1);
    if (one_in(2)) v += (int64_t)1 << (shift > 8 ? shift - 8 : 0);
    if (one_in(2)) v = -v;
    /* as a double, with the low bits folded into one that keeps the side of halfway */
    const int64_t size = v < 0 ? -v : v, low = size & 0xfff;
    const double exact = size >> 53 ? (double)((size & ~(int64_t)0xfff) | (low ? 0x400 : 0)) : (double)size;
    check_value(dtype, AMPL_WORK_I64, &v, v < 0 ? -exact : exact);
  }
  end_case();
}

/* ------------------------------------------------------------------------------------------------ amp-reference 5 - */

static void expect (int dtype, double v, uint16_t bits) {
  const float f = (float)v;
  const uint16_t from64 = narrow(dtype, AMPL_WORK_F64, &v), from32 = narrow(dtype, AMPL_WORK_F32, &f);
  if (from64 != bits) fault("%.17g (f64) to %s is %04x, not %04x", v, names[dtype], from64, bits);
  if ((double)f == v && from32 != bits) fault("%.17g (f32) to %s is %04x, not %04x", v, names[dtype], from32, bits);
}

static void check_reference (void) {
  expect(AMPL_F16, 65504, 0x7bff), expect(AMPL_F16, 0x1p-14, 0x0400), expect(AMPL_F16, 0x1p-24, 0x0001);
  expect(AMPL_F16, 65520, 0x7c00), expect(AMPL_F16, 65519.996, 0x7bff), expect(AMPL_F16, 65519.999999, 0x7bff);
  expect(AMPL_F16, 0x1p-25, 0x0000), expect(AMPL_F16, 0x1.000002p-25, 0x0001), expect(AMPL_F16, 2049, 0x6800);
  expect(AMPL_F16, 2051, 0x6802), expect(AMPL_F16, 1 + 0x1p-11, 0x3c00), expect(AMPL_F16, -65520, 0xfc00);
  expect(AMPL_BF16, 0x1.fep127, 0x7f7f), expect(AMPL_BF16, 0x1p-126, 0x0080), expect(AMPL_BF16, 0x1p-133, 0x0001);
  expect(AMPL_BF16, 0x1.ffp127, 0x7f80), expect(AMPL_BF16, 0x1.fffffep127, 0x7f80), expect(AMPL_BF16, 0x1p-134, 0x0000);
  expect(AMPL_BF16, 0x1.01p-134, 0x0001), expect(AMPL_BF16, 1.00390625, 0x3f80), expect(AMPL_BF16, 1.01171875, 0x3f82);
  expect(AMPL_BF16, 1.001, 0x3f80), expect(AMPL_BF16, 257, 0x4380), expect(AMPL_BF16, 1e300, 0x7f80);
  end_case();
  /* D09: a NaN whose payload lies in the bits that are dropped stays a NaN */
  for (uint32_t sign = 0; sign < 2; sign++)
    for (uint32_t payload = 1; payload < 1u << 23; payload = payload * 3 + 1) {
      const uint32_t bits = sign << 31 | 0x7f800000u | payload;
      float f;
      memcpy(&f, &bits, sizeof f);
      for (int dtype = AMPL_F16; dtype <= AMPL_BF16; dtype++) {
        const uint16_t h = narrow(dtype, AMPL_WORK_F32, &f);
        if (!isnan(element(dtype, &h, 0))) fault("NaN %08x to %s is %04x", bits, names[dtype], h);
      }
    }
  end_case();
}

/* ------------------------------------------------------------------------------------------------ the op ---------- */

static double value_of (ampl_dtype from, double v, ampl_dtype to) {
  ampl_tensor *x, *y;
  double got = NAN;
  if (ampl_full(ctx, from, 1, (int64_t[]){40}, v, &x) != AMPL_OK) return got;
  const ampl_value args[] = {{.t = x}, {.i = to}};
  if (ampl_run(ctx, "to", args, 2, &y, 1) == AMPL_OK) {
    got = element(to == AMPL_BOOL ? AMPL_U8 : (int)to, y->data, 39);
    ampl_tensor_release(y);
  }
  ampl_tensor_release(x);
  return got;
}

static void check_op (void) {
  static const struct { ampl_dtype from; double v; ampl_dtype to; double want; } cases[] = {
    {AMPL_F64, 65519.999999, AMPL_F16, 65504}, {AMPL_I64, 65519, AMPL_F16, 65504},
    {AMPL_I64, 65520, AMPL_F16, INFINITY}, {AMPL_I64, 257, AMPL_BF16, 256},
    {AMPL_I32, 16777217, AMPL_F32, 16777216}, {AMPL_F32, -1.75, AMPL_I64, -1},
    {AMPL_F32, 2.75, AMPL_I32, 2}, {AMPL_F16, -3.5, AMPL_I64, -3}, {AMPL_F64, 0.25, AMPL_BOOL, 1},
    {AMPL_F32, NAN, AMPL_BOOL, 1}, {AMPL_F32, -0.0, AMPL_BOOL, 0}, {AMPL_F32, -1, AMPL_U8, 255},
    {AMPL_BOOL, 1, AMPL_BF16, 1}, {AMPL_F64, 1e300, AMPL_F32, INFINITY}, {AMPL_F32, NAN, AMPL_F16, NAN},
    {AMPL_I64, 300, AMPL_U8, 44},
  };
  for (unsigned k = 0; k < sizeof cases / sizeof *cases; k++) {
    const double got = value_of(cases[k].from, cases[k].v, cases[k].to);
    if (isnan(cases[k].want) ? !isnan(got) : got != cases[k].want)
      fault("%s %g to %s is %g, not %g", ampl_dtype_name(cases[k].from), cases[k].v, ampl_dtype_name(cases[k].to), got,
            cases[k].want);
    end_case();
  }
}

static void sweep (void) {
  if (ampl_ctx_new(NULL, &ctx) != AMPL_OK) exit(1);
  for (int dtype = AMPL_F16; dtype <= AMPL_BF16; dtype++) {
    check_patterns(dtype);
    check_halfway(dtype);
    check_random(dtype);
    check_integers(dtype);
  }
  check_reference();
  check_op();
  ampl_ctx_release(ctx);
}

int main (void) { return run_sweeps(sweep); }
