/* group.h: many sources added to fewer destinations, in a fixed order whatever the number of threads: sources are
 * sorted by destination, each destination is one thread's, and sums are made in doubles (integers: in int64) and
 * rounded once. */
#ifndef AMPL_CPU_GROUP_H
#define AMPL_CPU_GROUP_H

#include "stream.h"

/* The sources of destination r: order[start[r]] to order[start[r + 1] - 1], rising. */
typedef struct ampl_cpu_groups {
  int64_t n, ndest, *start, *order;
  size_t  bytes;
} ampl_cpu_groups;

/* Source k of n goes to destination dest[k] of ndest. */
ampl_status ampl_cpu_groups_get(ampl_ctx *ctx, const int64_t *dest, int64_t n, int64_t ndest, ampl_cpu_groups *out);
void        ampl_cpu_groups_put(ampl_ctx *ctx, ampl_cpu_groups *g);

typedef struct ampl_cpu_adding {
  int             dtype;
  char           *dst;
  const char     *src;
  ampl_cpu_stream dest, source;         /* where destination r and source k begin: offsets by number */
  ampl_cpu_stream part[2];              /* what belongs to each: the same index space in dst and in src */
  double          alpha;                /* dst + alpha * sum */
  bool            fresh;                /* dst holds nothing yet: 0 + alpha * sum, and 0 where there is no source */
  bool            mean;                 /* the sum is divided by the number of sources */
  int64_t         skip;                 /* a destination that gets 0, or -1 */
} ampl_cpu_adding;

/* A stream of n numbers, `stride` apart. */
ampl_cpu_stream ampl_cpu_stream_1d(int64_t n, int64_t stride);

AMPL_CPU_CHECKED ampl_status ampl_cpu_add_groups(ampl_ctx *ctx, const ampl_cpu_adding *a, const ampl_cpu_groups *g);

#endif
