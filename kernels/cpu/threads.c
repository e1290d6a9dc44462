/* threads.c: the threads that kernels share.
 *
 * The calling thread works, too, and never waits for a helper that has not begun: it takes every job that is left,
 * then waits for those helpers alone that hold one.  So on a busy machine, where helpers do not get to run, a kernel
 * is as fast as on one thread; a team that meets at barriers (OpenMP's) would be many times slower.  Between calls
 * helpers look for work for some microseconds, then sleep.
 *
 * The helpers serve one call at a time: a call from another thread, or from inside a job, runs on its caller alone.
 * After fork the child starts with helpers of its own. */
#include "cpu.h"
#include "ctx.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>

enum { SPINS = 400 };           /* about 20 us of looking before a thread sleeps */

static pthread_mutex_t in_use = PTHREAD_MUTEX_INITIALIZER;      /* held by the thread whose call is served */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;        /* of everything below */
static pthread_cond_t  work = PTHREAD_COND_INITIALIZER, idle = PTHREAD_COND_INITIALIZER;
static int             helpers;                                 /* threads that exist */
static int             places, taken;                           /* helpers that may join the call; that have joined */
static bool            open;                                    /* whether joining is still possible */
static atomic_int      busy;                                    /* helpers at work; changed under lock */
static atomic_uint     calls;                                   /* changed under lock at every call */
static struct { ampl_ctx *ctx; ampl_cpu_job_fn fn; void *ud; int64_t jobs; } call;
static _Atomic int64_t next;                                    /* the next job */

static void pause_briefly (void) {
#if defined __x86_64__
  __builtin_ia32_pause();
#endif
}

/* That a job was left out, or left, is kept apart from the wish, which may be taken back meanwhile. */
bool ampl_cpu_stop (ampl_ctx *ctx) {
  if (!ctx || !ampl_should_stop(ctx)) return false;
  atomic_store_explicit(&ctx->stopped, true, memory_order_relaxed);
  return true;
}

static ampl_status outcome (ampl_ctx *ctx) {
  const bool stopped = ctx && atomic_load_explicit(&ctx->stopped, memory_order_relaxed);
  return stopped ? ampl_error(ctx, AMPL_EINTR, "interrupted") : AMPL_OK;
}

ampl_status ampl_cpu_poll (ampl_ctx *ctx) {
  ampl_cpu_stop(ctx);
  return outcome(ctx);
}

static void run_jobs (ampl_ctx *ctx, ampl_cpu_job_fn fn, void *ud, int64_t jobs, int thread) {
  int64_t job;
  while ((job = atomic_fetch_add_explicit(&next, 1, memory_order_relaxed)) < jobs && !ampl_cpu_stop(ctx))
    fn(ud, job, thread);
}

static void *help (void *unused) {
  unsigned seen = 0;
  (void)unused;
  for (;;) {
    for (int i = 0; i < SPINS && atomic_load_explicit(&calls, memory_order_relaxed) == seen; i++) pause_briefly();
    pthread_mutex_lock(&lock);
    while (atomic_load(&calls) == seen) pthread_cond_wait(&work, &lock);
    seen = atomic_load(&calls);
    if (!open || taken == places) {
      pthread_mutex_unlock(&lock);
      continue;
    }
    const int thread = ++taken;
    atomic_fetch_add(&busy, 1);
    pthread_mutex_unlock(&lock);
    run_jobs(call.ctx, call.fn, call.ud, call.jobs, thread);
    pthread_mutex_lock(&lock);
    if (atomic_fetch_sub(&busy, 1) == 1) pthread_cond_signal(&idle);
    pthread_mutex_unlock(&lock);
  }
  return NULL;
}

static void after_fork (void) {
  static const pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
  static const pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
  in_use = lock = mutex;
  work = idle = cond;
  helpers = 0;
  open = false;
  atomic_store(&busy, 0);
}

static void watch_forks (void) { pthread_atfork(NULL, NULL, after_fork); }

/* Called under lock.  Helpers take no signals: these are the host's.  Without new threads there are fewer helpers. */
static void start_helpers (int n) {
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  sigset_t all, before;
  pthread_attr_t attr;
  if (helpers >= n || pthread_attr_init(&attr) != 0) return;
  pthread_once(&once, watch_forks);
  pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
  sigfillset(&all);
  pthread_sigmask(SIG_BLOCK, &all, &before);
  for (pthread_t id; helpers < n && pthread_create(&id, &attr, help, NULL) == 0; helpers++) continue;
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  pthread_attr_destroy(&attr);
}

ampl_status ampl_cpu_parallel (ampl_ctx *ctx, int threads, int64_t jobs, ampl_cpu_job_fn fn, void *ud) {
  if (threads > jobs) threads = (int)jobs;
  if (threads <= 1 || pthread_mutex_trylock(&in_use) != 0) {
    for (int64_t job = 0; job < jobs && !ampl_cpu_stop(ctx); job++) fn(ud, job, 0);
    return outcome(ctx);
  }
  pthread_mutex_lock(&lock);
  start_helpers(threads - 1);
  call.ctx = ctx, call.fn = fn, call.ud = ud, call.jobs = jobs;
  atomic_store(&next, 0);
  places = threads - 1, taken = 0, open = true;
  atomic_fetch_add(&calls, 1);
  pthread_cond_broadcast(&work);
  pthread_mutex_unlock(&lock);
  run_jobs(ctx, fn, ud, jobs, 0);
  for (int i = 0; i < SPINS && atomic_load_explicit(&busy, memory_order_relaxed) > 0; i++) pause_briefly();
  pthread_mutex_lock(&lock);
  open = false;
  while (atomic_load(&busy) > 0) pthread_cond_wait(&idle, &lock);
  pthread_mutex_unlock(&lock);
  pthread_mutex_unlock(&in_use);
  return outcome(ctx);
}
