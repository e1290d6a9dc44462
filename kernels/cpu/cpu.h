/*
** cpu.h: what all CPU kernels share: the choice of instruction set, two switches, the sizes of the
** machine, scratch memory, and the one way to run on several threads.
**
** Process-wide state is the settings below and nothing else; all functions may be called from any
** thread at any time.
*/
#ifndef AMPL_CPU_H
#define AMPL_CPU_H

#include "ampl.h"

/* ---------------------------------------------------------------- instruction set */

typedef enum ampl_cpu_isa { AMPL_CPU_C, AMPL_CPU_AVX2, AMPL_CPU_AVX512 } ampl_cpu_isa;

/* The best set that this CPU runs, every flag tested; AMPL_CPU=c|avx2|avx512 in the environment can
   lower it (ampl_ctx_new refuses other values).  Decided at the first call. */
ampl_cpu_isa ampl_cpu_isa_used(void);
bool         ampl_cpu_isa_known(const char *name);

/* "c", "avx2" or "avx512". */
const char *ampl_cpu_isa_name(ampl_cpu_isa isa);

/* Declares the three builds of an object that a file in isa/ exports as ISA(name), and picks the one
   to use. */
#define AMPL_CPU_EACH_ISA(type, name) extern type name##_c, name##_avx2, name##_avx512
#if defined __x86_64__
#define AMPL_CPU_BEST(name)                                                                        \
  (ampl_cpu_isa_used() == AMPL_CPU_AVX512 ? &name##_avx512                                         \
   : ampl_cpu_isa_used() == AMPL_CPU_AVX2 ? &name##_avx2                                           \
                                          : &name##_c)
#else
#define AMPL_CPU_BEST(name) (&name##_c)
#endif

/* ---------------------------------------------------------------- settings */

/* Whether products of two bf16 matrices use the CPU's dot instruction, which flushes subnormals to 0.
   At first: on where it runs faster than f32 multiply-add (AMD), off elsewhere.  Setting it has no
   effect on a CPU without the instruction; the setter returns what holds after. */
bool ampl_cpu_bf16_dot(void);
bool ampl_cpu_set_bf16_dot(bool on);

/* Whether 3x3 convolutions may use Winograd's algorithm (on at first). */
bool ampl_cpu_winograd(void);
void ampl_cpu_set_winograd(bool on);

/* ---------------------------------------------------------------- the machine */

/* Bytes of cache per core, level 1 (data) or 2. */
long ampl_cpu_cache(int level);

/* More threads than these are never used. */
#define AMPL_CPU_THREADS_MAX 4096

/* Threads that the machine gives this process: cores, affinity, OMP_NUM_THREADS, the cgroup's quota. */
int ampl_cpu_count(void);

/* ---------------------------------------------------------------- running */

/* A status that may be AMPL_EINTR, so nobody may forget it. */
#define AMPL_CPU_CHECKED __attribute__((warn_unused_result))

/* Scratch memory, aligned to 64 bytes, NULL when there is none left; `ctx` accounts for it and may be
   NULL.  To be taken by the calling thread, before ampl_cpu_parallel, and given back with the same
   size. */
void *ampl_cpu_scratch_get(ampl_ctx *ctx, size_t bytes);
void  ampl_cpu_scratch_put(ampl_ctx *ctx, void *p, size_t bytes);

/* Below this much arithmetic (about 50 us) a kernel stays on the calling thread. */
#define AMPL_CPU_SERIAL_FLOP 8e6

/* Calls fn(ud, job, thread) for every job in [0, jobs), 0 <= thread < threads, each thread number in
   one place at a time.  Which thread takes which job is left to chance, so results must not depend on
   it.  With one thread or one job it is a plain loop.
   Once `ctx` is interrupted, the jobs that have not begun are left out, and the result is AMPL_EINTR:
   what they should have written must not be read.  `ctx` may be NULL: then all jobs run. */
typedef void (*ampl_cpu_job_fn)(void *ud, int64_t job, int thread);
AMPL_CPU_CHECKED ampl_status ampl_cpu_parallel(ampl_ctx *ctx, int threads, int64_t jobs, ampl_cpu_job_fn fn, void *ud);

/* For jobs, and loops on the calling thread, that may take longer than some 20 ms: whether to leave.  In
   a job that is all: ampl_cpu_parallel will return AMPL_EINTR. */
bool ampl_cpu_stop(ampl_ctx *ctx);
/* The same at element `pos` of a loop that goes on by `step`; it looks about every 16K elements. */
static inline bool ampl_cpu_stop_at(ampl_ctx *ctx, int64_t pos, int64_t step) {
  return (pos & ((1 << 14) - 1)) < step && ampl_cpu_stop(ctx);
}
/* On the calling thread: AMPL_EINTR, with its text, once a loop was left; else AMPL_OK. */
AMPL_CPU_CHECKED ampl_status ampl_cpu_poll(ampl_ctx *ctx);

#endif
