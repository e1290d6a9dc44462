/* vmath_test.c: the elementary functions of kernels/cpu/isa/vmath.h, through the loops that are made of them, against
 * libm in f64 over every exponent of f32, on each instruction set; and the ends of runs of any length. */
#include "isa/pointwise.h"
#include "sweep.h"

enum { PER_EXPONENT = 512, RUN = 64 };

static const ampl_value one[AMPL_POINTWISE_PARAMS] = {{.f = 1}}, none[AMPL_POINTWISE_PARAMS];

static float from_bits (uint32_t bits) {
  float f;
  memcpy(&f, &bits, sizeof f);
  return f;
}

/* The distance in units of the last place of `want`; what is not finite or negative zero must be met exactly. */
static double distance (float got, double want) {
  const double enough = 1e9;
  if (isnan(want) || isnan(got)) return isnan(want) && isnan(got) ? 0 : enough;
  if (fabs(want) > 0x1.fffffep127)      /* near the edge the largest number may stand for infinity */
    return got == (want > 0 ? INFINITY : -INFINITY) ? 0 : fabs(want) < 0x1.00001p128 ? 1 : enough;
  if (isinf(got)) return enough;
  if (want == 0) return got == 0 && !signbit(got) == !signbit(want) ? 0 : got == 0 ? enough : fabs(got) / 0x1p-149;
  int e;
  frexp(want, &e);
  return fabs(got - want) / ldexp(1, e < -125 ? -149 : e - 24);
}

/* ------------------------------------------------------------------------------------------------ of one ---------- */

static double rsqrt_ref (double x) { return 1 / sqrt(x); }
static double sigmoid_ref (double x) { return x < 0 ? exp(x) / (1 + exp(x)) : 1 / (1 + exp(-x)); }
static double silu_ref (double x) { return x * sigmoid_ref(x); }
static double logsigmoid_ref (double x) { return fmin(x, 0) - log1p(exp(-fabs(x))) + (x - x); }
static double gelu_ref (double x) { return 0.5 * x * (1 + erf(x * sqrt(0.5))); }

/* erf on the way back: Newton's method in f64, on erfc where erf is near 1 */
static double erfinv_ref (double x) {
  const double a = fabs(x);
  if (!(a < 1)) return a == 1 ? copysign(INFINITY, x) : NAN;
  if (a == 0) return x;
  double y = a < 0.5 ? a : sqrt(-log1p(-a * a)) * 0.9;
  for (int i = 0; i < 60; i++) {
    const double off = a < 0.5 ? erf(y) - a : (1 - a) - erfc(y);
    y -= off / (2 / sqrt(acos(-1)) * exp(-y * y));
  }
  return copysign(y, x);
}

typedef struct function { const char *name; int op; double (*f)(double); double most; } function;

/* `most`: the largest error allowed, in units of the last place */
static const function functions[] = {
  {"exp", AMPL_PW_exp, exp, 1}, {"expm1", AMPL_PW_expm1, expm1, 1.5}, {"log", AMPL_PW_log, log, 1},
  {"log1p", AMPL_PW_log1p, log1p, 1}, {"log2", AMPL_PW_log2, log2, 1.2}, {"log10", AMPL_PW_log10, log10, 1.6},
  {"sqrt", AMPL_PW_sqrt, sqrt, 0.5}, {"rsqrt", AMPL_PW_rsqrt, rsqrt_ref, 1.5}, {"sin", AMPL_PW_sin, sin, 1.8},
  {"cos", AMPL_PW_cos, cos, 2}, {"tan", AMPL_PW_tan, tan, 3}, {"asin", AMPL_PW_asin, asin, 1.7},
  {"acos", AMPL_PW_acos, acos, 1.2}, {"atan", AMPL_PW_atan, atan, 1.8}, {"sinh", AMPL_PW_sinh, sinh, 1.6},
  {"cosh", AMPL_PW_cosh, cosh, 1.5}, {"tanh", AMPL_PW_tanh, tanh, 2.3}, {"erf", AMPL_PW_erf, erf, 2},
  {"erfinv", AMPL_PW_erfinv, erfinv_ref, 4}, {"sigmoid", AMPL_PW_sigmoid, sigmoid_ref, 2},
};

/* These are compositions: exact to a part of the largest number that takes part */
static const function compositions[] = {
  {"silu", AMPL_PW_silu, silu_ref, 3e-7}, {"logsigmoid", AMPL_PW_logsigmoid, logsigmoid_ref, 3e-7},
  {"gelu", AMPL_PW_gelu, gelu_ref, 3e-7},
};

static void run (int op, const float *a, const float *b, float *y, int64_t n) {
  const float *in[] = {a, b};
  AMPL_CPU_BEST(ampl_pointwise_table)->f[op](y, in, (const int64_t[]){1, 1}, n, op == AMPL_PW_add ? one : none);
}

/* Zero, the ends and random places of one binade */
static void fill (float *x, uint32_t sign, uint32_t exponent) {
  for (int i = 0; i < PER_EXPONENT; i++) {
    const uint32_t m = i == 0 ? 0 : i == 1 ? 1 : i == 2 ? 0x7fffff : i == 3 ? 0x400000 : draw() & 0x7fffff;
    x[i] = from_bits(sign << 31 | exponent << 23 | m);
  }
}

static void check_function (const function *f, bool whole) {
  float x[PER_EXPONENT], y[PER_EXPONENT];
  for (uint32_t sign = 0; sign < 2; sign++)
    for (uint32_t e = 0; e < 256; e++) {
      fill(x, sign, e);
      run(f->op, x, NULL, y, PER_EXPONENT);
      for (int i = 0; i < PER_EXPONENT; i++) {
        const double want = f->f(x[i]);
        double d = distance(y[i], want);
        if (whole && isfinite(want)) d = fabs(y[i] - want) / fmax(1, fabs(x[i]));
        if (whole && isinf(x[i])) continue;
        if (!(d <= f->most)) fault("%s(%a) is %a, not %a: off by %.2f", f->name, x[i], y[i], want, d);
      }
    }
  end_case();
}

/* ------------------------------------------------------------------------------------------------ of two ---------- */

static const float corners[] = {
  0.0f, -0.0f, 1, -1, 2, -2, 0.5f, -0.5f, 3, -3, 1.5f, -1.5f, INFINITY, -INFINITY, NAN, 1e-40f, -1e-40f, 1e38f, -1e38f,
  0x1p24f, 0x1.000002p23f, -0x1.000002p23f, 0x1.fffffep127f};
enum { CORNERS = sizeof corners / sizeof *corners };

static float any_float (void) { return from_bits(draw() ^ draw() << 16); }

static void check_two (const char *name, int op, double (*f)(double, double), double most) {
  float a[RUN], b[RUN], y[RUN];
  for (int k = 0; k < 4000; k++) {
    for (int i = 0; i < RUN; i++) {
      const int corner = k * RUN + i;
      a[i] = any_float(), b[i] = any_float();
      if (corner < CORNERS * CORNERS) {
        a[i] = corners[corner / CORNERS], b[i] = corners[corner % CORNERS];
      } else if (!one_in(4)) {
        a[i] = (one_in(4) ? -1.0f : 1.0f) * ldexpf(1 + (float)below(1 << 20) / (1 << 20), (int)below(40) - 20);
        b[i] = ((float)below(1 << 24) - (1 << 23)) / (1 << 18);
        if (one_in(3)) b[i] = truncf(b[i]);
      }
    }
    run(op, a, b, y, RUN);
    for (int i = 0; i < RUN; i++) {
      const double want = f(a[i], b[i]), d = distance(y[i], want);
      if (!(d <= most)) fault("%s(%a, %a) is %a, not %a: off by %.2f", name, a[i], b[i], y[i], want, d);
    }
  }
  end_case();
}

/* ------------------------------------------------------------------------------------------------ ends ------------ */

/* Runs of every length, beside guards: nothing else is written, and the last elements are as good as the first. */
static void check_ends (void) {
  for (int n = 0; n < RUN; n++) {
    float *x = make(AMPL_F32, n), *two = make(AMPL_F32, n), y[RUN + 1];
    for (int i = 0; i <= RUN; i++) y[i] = 77;
    run(AMPL_PW_add, x, two, y, n);
    for (int i = 0; i <= RUN; i++)
      if (y[i] != (i < n ? x[i] + two[i] : 77)) fault("add: element %d of %d is %g", i, n, y[i]);
    run(AMPL_PW_neg, x, NULL, x, n);
    run(AMPL_PW_add, x, y, y, n);
    for (int i = 0; i < n; i++)
      if (fabsf(y[i] - two[i]) > 1e-6f) fault("add in place: element %d of %d is %g", i, n, y[i]);
    free(x), free(two);
    end_case();
  }
}

static void sweep (void) {
  for (unsigned k = 0; k < sizeof functions / sizeof *functions; k++) check_function(&functions[k], false);
  for (unsigned k = 0; k < sizeof compositions / sizeof *compositions; k++) check_function(&compositions[k], true);
  check_two("pow", AMPL_PW_pow, pow, 0.52);
  check_two("atan2", AMPL_PW_atan2, atan2, 2);
  check_ends();
}

int main (void) { return run_sweeps(sweep); }
