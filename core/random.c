/* random.c: the position of a context's random stream. */
#include "random.h"

#include "ctx.h"

uint64_t ampl_random_take(ampl_ctx *ctx, int64_t n, uint64_t *seed) {
  const uint64_t first = ctx->offset;
  *seed = ctx->seed;
  ctx->offset += ((uint64_t)n + 63) / 64 * 64;
  return first;
}

void ampl_random_state(const ampl_ctx *ctx, uint64_t *seed, uint64_t *offset) {
  if (seed) *seed = ctx ? ctx->seed : 0;
  if (offset) *offset = ctx ? ctx->offset : 0;
}

void ampl_set_random_state(ampl_ctx *ctx, uint64_t seed, uint64_t offset) {
  if (!ctx) return;
  ctx->seed = seed;
  ctx->offset = (offset + 63) / 64 * 64;
}

void ampl_manual_seed(ampl_ctx *ctx, uint64_t seed) { ampl_set_random_state(ctx, seed, 0); }
