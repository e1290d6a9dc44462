/* backend.c: the CPU as a backend: memory of the host, and the kernels of this folder. */
#include "ampl_backend.h"
#include "cpu.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define HUGE_PAGE ((size_t)2 << 20)

#define KERNELS(file) extern const ampl_kernel ampl_cpu_##file##_kernels[];
#include "kernels.def"
#undef KERNELS

static const ampl_kernel *const kernels[] = {
#define KERNELS(file) ampl_cpu_##file##_kernels,
#include "kernels.def"
#undef KERNELS
    NULL};

static int device_count(void) { return 1; }

/* Fresh 4 KiB pages cost 2 us each: large blocks ask for huge ones. */
static ampl_status allocate(int device, size_t bytes, void **out) {
  (void)device;
  const size_t align = bytes >= HUGE_PAGE ? HUGE_PAGE : 64;
  *out = aligned_alloc(align, (bytes + align - 1) / align * align);
  if (!*out) return AMPL_ENOMEM;
  if (bytes >= HUGE_PAGE) madvise(*out, bytes, MADV_HUGEPAGE);
  return AMPL_OK;
}

static void deallocate(int device, void *p, size_t bytes) {
  (void)device, (void)bytes;
  free(p);
}

static ampl_status copy(int device, void *dst, const void *src, size_t bytes) {
  (void)device;
  memcpy(dst, src, bytes);
  return AMPL_OK;
}

static ampl_status zero(int device, void *dst, size_t bytes) {
  (void)device;
  memset(dst, 0, bytes);
  return AMPL_OK;
}

static ampl_status synchronize(int device) {
  (void)device;
  return AMPL_OK;
}

static void memory_info(int device, size_t *available, size_t *total) {
  (void)device;
  const size_t page = (size_t)sysconf(_SC_PAGESIZE);
  *available = (size_t)sysconf(_SC_AVPHYS_PAGES) * page;
  *total = (size_t)sysconf(_SC_PHYS_PAGES) * page;
}

const ampl_backend ampl_cpu_backend = {
    .abi = AMPL_BACKEND_ABI, .struct_size = sizeof(ampl_backend), .name = "cpu", .low_dtype = AMPL_BF16,
    .device_count = device_count, .allocate = allocate, .deallocate = deallocate,
    .copy_from_host = copy, .copy_to_host = copy, .copy = copy, .zero = zero, .synchronize = synchronize,
    .memory_info = memory_info, .kernels = kernels};

const char *ampl_cpu_isa_text(void) { return ampl_cpu_isa_name(ampl_cpu_isa_used()); }

bool ampl_cpu_use_bf16_dot(int on) { return on < 0 ? ampl_cpu_bf16_dot() : ampl_cpu_set_bf16_dot(on); }

bool ampl_cpu_use_winograd(int on) {
  if (on >= 0) ampl_cpu_set_winograd(on);
  return ampl_cpu_winograd();
}
