/* stream.h: reading and writing tensors of any strides and dtype as runs of a few working types.
 *
 * A kernel that is bound by memory works on blocks: it loads a block of a stream as floats (f32, f16, bf16), doubles
 * (f64) or 64-bit integers (all integers, bool), which costs nothing where the data lie that way already, computes, and
 * stores.  So its arithmetic is written once for all dtypes and layouts.
 */
#ifndef AMPL_CPU_STREAM_H
#define AMPL_CPU_STREAM_H

#include "ampl_backend.h"
#include "cpu.h"

typedef enum ampl_cpu_work { AMPL_WORK_F32, AMPL_WORK_F64, AMPL_WORK_I64, AMPL_WORK_COUNT } ampl_cpu_work;

/* The type in which values of dtype t are computed. */
ampl_cpu_work ampl_cpu_work_of (int t);
static inline size_t ampl_cpu_work_size (ampl_cpu_work w) { return w == AMPL_WORK_F32 ? 4 : 8; }

/* The elements of (some dimensions of) a tensor, in order of their dimensions, the last one running fastest. */
typedef struct ampl_cpu_stream {
  char   *data;
  int     dtype, nd;                    /* nd >= 1 */
  int64_t n;                            /* elements */
  int64_t shape[AMPL_RANK_MAX], stride[AMPL_RANK_MAX];
} ampl_cpu_stream;

/* Streams over the same index space: all dimensions of `shape`, merged where every tensor allows it, and (`sorted`)
 * brought to the order that suits the strides of t[0].  Tensors are broadcast; t[k] may be NULL, out[k].data is then.
 * */
void ampl_cpu_streams (int count, const ampl_tensor *const *t, int nd, const int64_t *shape, bool sorted,
                       ampl_cpu_stream *out);
/* The same for given strides: stride[k] belongs to out[k], whose data and dtype are set already. */
void ampl_cpu_streams_from (int count, const int64_t *const *stride, int nd, const int64_t *shape, bool sorted,
                            ampl_cpu_stream *out);

/* Elements from first + pos on, `first` an offset in elements from s->data: a pointer to `len` values of type w, which
 * is into the tensor where its data lie so, else `buf`, to which they are copied. */
const void *ampl_cpu_load(const ampl_cpu_stream *s, ampl_cpu_work w, int64_t first, int64_t pos, int64_t len,
                          void *buf);
/* Where to compute the values of such a block: in the tensor itself where possible, else `buf`.  ampl_cpu_store after
 * it does nothing in the first case. */
void *ampl_cpu_target (const ampl_cpu_stream *s, ampl_cpu_work w, int64_t first, int64_t pos, int64_t len, void *buf);
void  ampl_cpu_store (const ampl_cpu_stream *s, ampl_cpu_work w, int64_t first, int64_t pos, int64_t len,
                      const void *values);
/* The offset, in elements, of element pos. */
int64_t ampl_cpu_offset (const ampl_cpu_stream *s, int64_t pos);

/* The lines of tensors of one shape along dimension `dim`: along[k] is a line, x[k] the lines, in an order that suits
 * the strides of t[0].  t[k] may be NULL.  True when neighbouring lines lie side by side in t[0], so that a tile of
 * them is to be taken through the dimension together; x[0]'s last dimension counts such neighbours. */
bool ampl_cpu_lines (int count, const ampl_tensor *const *t, int64_t dim, ampl_cpu_stream *x, ampl_cpu_stream *along);

/* How many of the next `most` elements to take as one block: where the tensor has long runs, those up to the end of the
 * present one, so that they need not be put together. */
int64_t ampl_cpu_run (const ampl_cpu_stream *s, int64_t pos, int64_t most);

/* Whether memory runs along one of the dimensions in `dims` (bit d: dimension d): theirs is the shortest stride. */
bool ampl_cpu_runs_along (const ampl_tensor *x, uint32_t dims);

/* `rows` rows of m values each, the first at element `pos` of s and `first`, the others `step` elements apart: a
 * pointer and the distance of its rows; into the tensor, or `buf`, as ampl_cpu_load does it.  The m values must lie
 * within one position of all dimensions of s but the last. */
const void *ampl_cpu_load_rows (const ampl_cpu_stream *s, ampl_cpu_work w, int64_t first, int64_t step, int64_t pos,
                                int64_t rows, int64_t m, void *buf, int64_t *ld);
/* The same, the rows being elements from, from + 1 ... of the stream `down`, which only says how far they are apart. */
const void *ampl_cpu_load_grid (const ampl_cpu_stream *s, const ampl_cpu_stream *down, ampl_cpu_work w, int64_t pos,
                                int64_t from, int64_t rows, int64_t m, void *buf, int64_t *ld);
void *ampl_cpu_target_rows (const ampl_cpu_stream *s, ampl_cpu_work w, int64_t first, int64_t step, int64_t pos,
                            int64_t m, void *buf, int64_t *ld);
void ampl_cpu_store_rows (const ampl_cpu_stream *s, ampl_cpu_work w, int64_t first, int64_t step, int64_t pos,
                          int64_t rows, int64_t m, const void *values);

/* n values, `step` elements apart, to and from a working type.  Floats to integers are cut off towards 0. */
void ampl_cpu_widen (ampl_cpu_work w, void *dst, int dtype, const void *src, int64_t step, int64_t n);
void ampl_cpu_narrow (ampl_cpu_work w, const void *src, int dtype, void *dst, int64_t step, int64_t n);

/* Threads for `work` operations of about a nanosecond: 1 for what is done in 50 us. */
static inline int ampl_cpu_threads_for (const ampl_ctx *ctx, double work) {
  return work < 5e4 || !ctx ? 1 : ampl_threads(ctx);
}

#endif
