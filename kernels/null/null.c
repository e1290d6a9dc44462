/* null.c: the backend that computes nothing, as a plug-in.  Its tensors have shapes and dtypes but no memory, so that
 * the casts and the memory of a run that is too large for this machine can be looked at.  What is read from it is
 * zero. */
#include "ampl_backend.h"

#include <string.h>

static int device_count(void) { return 1; }

/* Never read or written: only told from "none". */
static ampl_status allocate(int device, size_t bytes, void **out) {
  static char place[64];
  (void)device, (void)bytes;
  *out = place;
  return AMPL_OK;
}

static void deallocate(int device, void *p, size_t bytes) { (void)device, (void)p, (void)bytes; }

static ampl_status copy(int device, void *dst, const void *src, size_t bytes) {
  (void)device, (void)dst, (void)src, (void)bytes;
  return AMPL_OK;
}

static ampl_status copy_to_host(int device, void *dst, const void *src, size_t bytes) {
  (void)device, (void)src;
  memset(dst, 0, bytes);
  return AMPL_OK;
}

static ampl_status zero(int device, void *dst, size_t bytes) {
  (void)device, (void)dst, (void)bytes;
  return AMPL_OK;
}

static ampl_status synchronize(int device) {
  (void)device;
  return AMPL_OK;
}

static void memory_info(int device, size_t *available, size_t *total) {
  (void)device;
  *available = *total = SIZE_MAX;
}

static ampl_status nothing(ampl_ctx *ctx, const ampl_args *in, ampl_tensor **out) {
  (void)ctx, (void)in, (void)out;
  return AMPL_OK;
}

static const ampl_kernel every[] = {{"*", AMPL_DTYPE_NONE, nothing}, {NULL, 0, NULL}};
static const ampl_kernel *const kernels[] = {every, NULL};

static const ampl_backend backend = {.abi = AMPL_BACKEND_ABI,
                                     .struct_size = sizeof backend,
                                     .name = "null",
                                     .low_dtype = AMPL_BF16,
                                     .device_count = device_count,
                                     .allocate = allocate,
                                     .deallocate = deallocate,
                                     .copy_from_host = copy,
                                     .copy_to_host = copy_to_host,
                                     .copy = copy,
                                     .zero = zero,
                                     .synchronize = synchronize,
                                     .memory_info = memory_info,
                                     .kernels = kernels};

AMPL_API const ampl_backend *ampl_backend_init(const ampl_host *host) {
  return host->abi == AMPL_BACKEND_ABI ? &backend : NULL;
}
