/* pool.c: pooling passes in f32 for one instruction set; in f64 with the portable one. */
#include "isa/pool.h"
#include "isa/simd.h"

#define REAL    float
#define NAME(x) f32_##x
#include "isa/pool_body.h"

const ampl_cpu_pool ISA(ampl_cpu_pool) = {f32_max, f32_scatter, f32_gather, f32_mean, f32_mean_scatter};

#if defined ISA_C
#define REAL    double
#define NAME(x) f64_##x
#include "isa/pool_body.h"

const ampl_cpu_pool ampl_cpu_pool_f64 = {f64_max, f64_scatter, f64_gather, f64_mean, f64_mean_scatter};
#endif
