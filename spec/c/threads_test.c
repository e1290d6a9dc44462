/* threads_test.c: every job runs once, thread numbers are in one place at a time, nested calls, calls from several
 * threads at once, and after fork. */
#include "cpu.h"
#include "sweep.h"

#include <pthread.h>
#include <stdatomic.h>
#include <sys/wait.h>

enum { JOBS = 500, THREADS = 8 };

typedef struct {
  atomic_int ran[JOBS], inside[THREADS];
  atomic_int wrong;
  int        nested;
} record;

static void one (void *ud, int64_t job, int thread) {
  (void)thread;
  atomic_fetch_add((atomic_int *)ud + job, 1);
}

static void job_fn (void *ud, int64_t job, int thread) {
  record *r = ud;
  if (thread < 0 || thread >= THREADS || atomic_fetch_add(&r->inside[thread], 1) != 0) atomic_fetch_add(&r->wrong, 1);
  atomic_fetch_add(&r->ran[job], 1);
  if (r->nested && job % 50 == 0) {
    atomic_int inner[20] = {0};
    if (ampl_cpu_parallel(NULL, 4, 20, one, inner) != AMPL_OK) atomic_fetch_add(&r->wrong, 1);
    for (int i = 0; i < 20; i++)
      if (inner[i] != 1) atomic_fetch_add(&r->wrong, 1);
  }
  if (thread >= 0 && thread < THREADS) atomic_fetch_sub(&r->inside[thread], 1);
}

/* The number of faults in a call. */
static int call (int threads, int64_t jobs, int nested) {
  record r = {.nested = nested};
  int faults = ampl_cpu_parallel(NULL, threads, jobs, job_fn, &r) != AMPL_OK;
  faults += atomic_load(&r.wrong);
  for (int64_t i = 0; i < JOBS; i++) faults += atomic_load(&r.ran[i]) != (i < jobs);
  return faults;
}

static void check_calls (void) {
  for (int nested = 0; nested < 2; nested++)
    for (int threads = 1; threads <= THREADS; threads++)
      for (int64_t jobs = 0; jobs <= JOBS; jobs += jobs < 10 ? 1 : 49) {
        const int faults = call(threads, jobs, nested);
        if (faults) fault("%d threads, %d jobs: %d faults", threads, (int)jobs, faults);
        end_case();
      }
}

static void *caller (void *ud) {
  for (int i = 0; i < 300; i++) *(int *)ud += call(1 + i % THREADS, 1 + i, i % 7 == 0);
  return NULL;
}

static void check_callers (void) {
  pthread_t id[6];
  int faults[6] = {0};
  for (int i = 0; i < 6; i++) pthread_create(&id[i], NULL, caller, &faults[i]);
  for (int i = 0; i < 6; i++) {
    pthread_join(id[i], NULL);
    if (faults[i]) fault("caller %d met %d faults", i, faults[i]);
    end_case();
  }
}

__attribute__((unused)) static void check_fork (void) {
  const pid_t child = fork();
  if (child == 0) {
    alarm(20);
    _exit(call(4, JOBS, 1) ? 1 : 0);
  }
  int status = -1;
  waitpid(child, &status, 0);
  if (!WIFEXITED(status) || WEXITSTATUS(status)) fault("the child of a fork ended with %d", status);
  if (call(4, JOBS, 0)) fault("%s", "the parent of a fork lost jobs");
  end_case();
}

static void sweep (void) {
  check_calls();
  check_callers();
#ifndef __SANITIZE_THREAD__     /* which allows no new threads after a fork */
  check_fork();
#endif
}

int main (void) { return run_sweeps(sweep); }
