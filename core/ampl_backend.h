/* ampl_backend.h: what a backend implements, and what it is given.
 *
 * A backend brings devices (memory, copies, order of execution) and a list of kernels, by op name and dtype.  The CPU's
 * is built into libampl; others are plug-ins: a shared object that exports ampl_backend_init and includes only this
 * header.  Nothing in core/ knows a backend by name, but for the CPU as the default.
 *
 * Readable as C11 and as C++11 (nvcc).
 */
#ifndef AMPL_BACKEND_H
#define AMPL_BACKEND_H

#include "ampl.h"

#ifdef __cplusplus
extern "C" {
#endif

#define AMPL_BACKEND_ABI 1      /* raised whenever a struct of this header changes its meaning */

typedef struct ampl_device  ampl_device;
typedef struct ampl_storage ampl_storage;
typedef struct ampl_node    ampl_node;      /* of the autograd graph: core/graph.h */
typedef struct ampl_hook    ampl_hook;
typedef struct ampl_view    ampl_view;      /* what a view remembers of its base: core/graph.h */

/* ------------------------------------------------------------------------------------------------ data ------------ */

/* A block of memory on one device.  Views share it, and with it the version, which every in-place write raises. */
struct ampl_storage {
  int          refs;            /* touched by __atomic builtins only */
  uint32_t     version;
  uint8_t      kind;            /* ampl_kind: what the bytes are accounted as */
  ampl_ctx    *ctx;
  ampl_device *device;
  void        *ptr;             /* NULL when bytes is 0 */
  size_t       bytes;
  void       (*release)(void *ud);      /* of borrowed memory; NULL: ours */
  void        *ud;
};

enum {                          /* ampl_tensor.flags */
  AMPL_T_CONTIGUOUS    = 1,     /* row-major without gaps */
  AMPL_T_CHANNELS_LAST = 2,     /* rank 4 or 3, NCHW in name, NHWC in memory, without gaps */
  AMPL_T_REQUIRES_GRAD = 4,     /* a leaf that wants a gradient */
  AMPL_T_NUMBER        = 8,     /* stands for a plain number: rank 0, promotes weakly, on the host */
  AMPL_T_RETAINS_GRAD  = 16,
  AMPL_T_INFERENCE     = 32,    /* made under inference_mode: never part of a graph */
  AMPL_T_SCRATCHED     = 64,    /* gradient of a skipped step: the next backward replaces it (see scaler.h) */
  /* a gradient that a scaler has divided by its scale; backward clears it (see scaler.h) */
  AMPL_T_UNSCALED      = 128
};

struct ampl_tensor {
  int           refs;           /* touched by __atomic builtins only */
  uint8_t       dtype, ndim, flags;
  void         *data;           /* first element: storage->ptr + offset */
  ampl_storage *storage;
  int64_t       numel;
  int64_t       shape[AMPL_RANK_MAX];
  int64_t       strides[AMPL_RANK_MAX];     /* in elements; 0 where broadcast; never negative */
  /* autograd; see core/graph.h */
  ampl_node    *node;           /* what made it, NULL for leaves */
  int           out_index;      /* which output of node */
  uint32_t      mark;           /* the version that SCRATCHED or UNSCALED speaks of */
  ampl_tensor  *grad;
  ampl_hook    *hooks;          /* of a leaf */
  ampl_view    *view;
};

/* The operands of one call.  Tensors first to last as in the record, an absent optional one NULL, the elements of a
 * TENSORS list behind all others; parameters in the record's order, dimensions already counted from 0. */
typedef struct ampl_args {
  const ampl_op      *op;
  ampl_tensor *const *t;
  int                 nt;
  const ampl_value   *p;
} ampl_args;

/* What is known of an output before it is made. */
typedef struct ampl_meta {
  int     dtype;
  int     ndim;
  uint8_t layout;               /* AMPL_LAYOUT_* */
  int64_t shape[AMPL_RANK_MAX];
  int64_t strides[AMPL_RANK_MAX];           /* with AMPL_LAYOUT_STRIDED */
  int64_t offset;               /* of a view: elements from its base's first element */
} ampl_meta;

enum {
  AMPL_LAYOUT_ROW_MAJOR,        /* set strides to row-major */
  AMPL_LAYOUT_CHANNELS_LAST,    /* rank 3 or 4: NCL, NCHW in name, channels last in memory */
  AMPL_LAYOUT_STRIDED           /* strides are given */
};

/* ------------------------------------------------------------------------------------------------ kernels --------- */

/* Computes out from in.  out[i] is allocated with the shape, dtype and strides that infer asked for (for an op with
 * AMPL_OP_DYNAMIC it is NULL and the kernel makes it by host->empty).  Operands may have any strides, unless the record
 * says AMPL_OP_DENSE.  An element-wise kernel may be given the same memory as operand and as output.
 * Errors: ampl_error() on the context, and its status returned. */
typedef ampl_status (*ampl_kernel_fn)(ampl_ctx *ctx, const ampl_args *in, ampl_tensor **out);

typedef struct ampl_kernel {
  /* a name, or "*": every op that cannot be composed of others and whose results have a known shape */
  const char    *op;
  int            dtype;         /* what it computes in: the promoted dtype of an element-wise op, else that of the first
                                   operand that is no index or mask (of the output where there is no operand);
                                   AMPL_DTYPE_NONE: any */
  ampl_kernel_fn fn;
} ampl_kernel;

typedef struct ampl_backend {
  uint32_t    abi, struct_size;
  const char *name;             /* "cpu", "cuda": a device is called name or name:index */
  int         low_dtype;        /* autocast's default */
  /* Whether it can work here; a reason of at most n bytes if not. */
  bool (*probe)(char *why, size_t n);
  int  (*device_count)(void);
  ampl_status (*allocate)(int device, size_t bytes, void **out);       /* 64-byte aligned; ENOMEM */
  void        (*deallocate)(int device, void *p, size_t bytes);
  ampl_status (*copy_from_host)(int device, void *dst, const void *src, size_t bytes);
  ampl_status (*copy_to_host)(int device, void *dst, const void *src, size_t bytes);   /* waits */
  ampl_status (*copy)(int device, void *dst, const void *src, size_t bytes);
  ampl_status (*zero)(int device, void *dst, size_t bytes);
  ampl_status (*synchronize)(int device);
  void        (*memory_info)(int device, size_t *free, size_t *total);
  const ampl_kernel *const *kernels;    /* lists, each ending with {NULL}; ends with NULL */
} ampl_backend;

/* ------------------------------------------------------------------------------------------------ host ------------ */

/* Sets the context's error text (printf manner) and returns `s`. */
ampl_status ampl_error(ampl_ctx *ctx, ampl_status s, const char *fmt, ...) AMPL_PRINTF(3, 4);
/* A tensor as `meta` says, uninitialised: for kernels of ops with AMPL_OP_DYNAMIC. */
ampl_status ampl_tensor_new_default(ampl_ctx *ctx, ampl_device *device, const ampl_meta *meta, ampl_tensor **out);

/* What the host offers to a plug-in; the CPU backend calls the functions of the same names directly. */
typedef struct ampl_host {
  uint32_t abi, struct_size;
  ampl_status (*error)(ampl_ctx *ctx, ampl_status s, const char *fmt, ...) AMPL_PRINTF(3, 4);
  ampl_status (*empty)(ampl_ctx *ctx, ampl_device *device, const ampl_meta *meta, ampl_tensor **out);
  void        (*tensor_release)(ampl_tensor *x);
  int         (*threads)(const ampl_ctx *ctx);
} ampl_host;

/* The one symbol of a plug-in, a function of this type named ampl_backend_init. */
typedef const ampl_backend *(*ampl_backend_init_fn)(const ampl_host *host);

#ifdef __cplusplus
}
#endif
#endif
