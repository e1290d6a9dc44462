/* random_test.c: the random stream: Philox against published numbers, every instruction set against the plain function
 * and against fixed bits, positions, and the shape of the distributions. */
#include "isa/random.h"
#include "ampl_backend.h"
#include "philox.h"
#include "sweep.h"

enum { GROUPS = 16384, N = GROUPS * AMPL_PHILOX_GROUP };

static const ampl_cpu_random *isa (void) { return AMPL_CPU_BEST(ampl_cpu_random); }

/* From the test vectors of the authors' library */
static void check_published (void) {
  static const uint32_t want[] = {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8};
  uint32_t got[4];
  ampl_philox(0, 0, 0, got);
  for (int i = 0; i < 4; i++)
    if (got[i] != want[i]) fault("word %d of counter 0, key 0 is %08x, not %08x", i, got[i], want[i]);
  end_case();
}

static void check_bits (void) {
  static const uint64_t seeds[] = {0, 1, 0x123456789abcdef0, UINT64_MAX};
  static const uint64_t starts[] = {0, 64, 1u << 20, (uint64_t)1 << 40};
  for (int s = 0; s < 4; s++)
    for (int f = 0; f < 4; f++)
      for (uint32_t lane = 0; lane < 2; lane++) {
        uint32_t out[4 * AMPL_PHILOX_GROUP], want[4];
        isa()->bits(out, 4, seeds[s], starts[f], lane);
        for (uint64_t i = 0; i < 4 * AMPL_PHILOX_GROUP; i++) {
          const uint64_t e = starts[f] + i;
          ampl_philox(seeds[s], e / 64 * 16 + e % 16, lane, want);
          if (out[i] != want[e % 64 / 16]) fault("element %d is %08x, not %08x", (int)i, out[i], want[e % 64 / 16]);
        }
        end_case();
      }
}

/* The same normal numbers everywhere: a hash of their bits (FNV-1a), for good. */
static void check_normal_bits (void) {
  static float z[N];
  uint64_t hash = 0xcbf29ce484222325;
  isa()->normal(z, GROUPS, 42, 0);
  for (int i = 0; i < N; i++) {
    uint32_t bits;
    memcpy(&bits, &z[i], sizeof bits);
    hash = (hash ^ bits) * 0x100000001b3;
  }
  if (hash != 0x31b35854623d3b28) fault("the hash of a million normal numbers is %016llx", (unsigned long long)hash);
  end_case();
  isa()->uniform(z, 1, 7, 128);
  for (int i = 0; i < AMPL_PHILOX_GROUP; i++)
    if (!(z[i] >= 0 && z[i] < 1)) fault("%g is not in [0, 1)", z[i]);
  end_case();
}

/* The share of numbers below x against what it should be, at 5 standard deviations. */
static void check_share (const float *v, double x, double want, const char *what) {
  long below_x = 0;
  for (int i = 0; i < N; i++) below_x += v[i] < x;
  const double share = (double)below_x / N, slack = 5 * sqrt(want * (1 - want) / N);
  if (fabs(share - want) > slack) fault("%s: %.6f lie below %g, expected %.6f", what, share, x, want);
}

static void check_distributions (void) {
  static float v[N];
  isa()->normal(v, GROUPS, 3, 0);
  for (double x = -4; x <= 4; x += 0.25) check_share(v, x, 0.5 * erfc(-x / sqrt(2)), "normal");
  double sum = 0, square = 0, lagged = 0, across = 0;
  for (int i = 0; i < N; i++) sum += v[i], square += (double)v[i] * v[i];
  for (int i = 1; i < N; i++) lagged += (double)v[i] * v[i - 1];
  for (int i = 16; i < N; i++) across += (double)v[i] * v[i - 16];      /* sine against cosine */
  if (fabs(sum / N) > 5 / sqrt(N) || fabs(square / N - 1) > 8 / sqrt(N))
    fault("mean %g, variance %g", sum / N, square / N);
  if (fabs(lagged / N) > 5 / sqrt(N) || fabs(across / N) > 5 / sqrt(N))
    fault("correlated: %g %g", lagged / N, across / N);
  end_case();
  isa()->uniform(v, GROUPS, 3, 0);
  for (double x = 0.05; x < 1; x += 0.05) check_share(v, x, x, "uniform");
  end_case();
  isa()->keep(v, GROUPS, 9, 0, (uint32_t)(0.3 * 0x1p24), 2);
  check_share(v, 1, 0.3, "dropped");
  end_case();
}

/* ------------------------------------------------------------------------------------------------ ops ------------- */

static ampl_tensor *draw_op (ampl_ctx *ctx, const char *name, ampl_dtype t, int64_t n) {
  ampl_tensor *y = NULL;
  const ampl_value args[] = {{.l = {&n, 1}}, {.i = t}};
  if (ampl_run(ctx, name, args, 2, &y, 1) != AMPL_OK) fault("%s", ampl_error_message(ctx));
  return y;
}

/* One seed, one result, whatever the threads; other dtypes round the same numbers. */
static void check_ops (void) {
  static const char *const names[] = {"rand", "randn"};
  const int64_t n = 100003;
  ampl_ctx *ctx;
  if (ampl_ctx_new(NULL, &ctx) != AMPL_OK) exit(1);
  for (int k = 0; k < 2; k++) {
    ampl_tensor *y[2];
    for (int threads = 1; threads <= 2; threads++) {
      ampl_set_threads(ctx, threads);
      ampl_manual_seed(ctx, 11);
      y[threads - 1] = draw_op(ctx, names[k], AMPL_F32, n);
    }
    ampl_manual_seed(ctx, 11);
    ampl_tensor *half = draw_op(ctx, names[k], AMPL_BF16, n);
    if (memcmp(y[0]->data, y[1]->data, (size_t)n * 4) != 0) fault("%s depends on the threads", names[k]);
    for (long i = 0; i < n; i++) {
      const double a = element(AMPL_F32, y[0]->data, i), b = element(AMPL_BF16, half->data, i);
      if (fabs(a - b) > 0x1p-8 * (k ? fabs(a) : 1) || (k == 0 && b >= 1))
        fault("%s %ld: f32 %g, bf16 %g", names[k], i, a, b);
    }
    ampl_tensor_release(y[0]), ampl_tensor_release(y[1]), ampl_tensor_release(half);
    end_case();
  }
  ampl_ctx_release(ctx);
}

static void sweep (void) {
  check_published();
  check_bits();
  check_normal_bits();
  check_distributions();
  check_ops();
}

int main (void) { return run_sweeps(sweep); }
