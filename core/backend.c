/* backend.c: the registry of devices: the CPU, and plug-ins found at run time.
 *
 * A plug-in is a file ampl-NAME.so in one of: the folders of AMPL_BACKEND_PATH, the folder of libampl, lib/ampl beside
 * it. Never the current directory; never unloaded.  Each candidate is listed with the reason why it was refused.
 *
 * The registry asks for no memory of its own, so that a first context that found none spoils nothing for a second. */
#define _GNU_SOURCE
#include "ctx.h"
#include "op_table.h"

#include <dirent.h>
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

extern const ampl_backend ampl_cpu_backend;

#define AMPL_CANDIDATES_MAX 16

typedef struct ampl_candidate {         /* a backend that was looked at */
  char name[1024];
  char why[256];                        /* "": it was taken */
} ampl_candidate;

static ampl_device devices[AMPL_DEVICES_MAX];
static int ndevices;
static ampl_candidate candidates[AMPL_CANDIDATES_MAX];
static ampl_kernel_fn slots_of[AMPL_CANDIDATES_MAX][AMPL_OPID_COUNT][AMPL_DTYPE_COUNT];
static int ncandidates;
static pthread_once_t once = PTHREAD_ONCE_INIT;

ampl_device *ampl_device_at(int id) { return &devices[id]; }

/* A dtype of NONE fills the whole row. */
static void fill_slots(ampl_kernel_fn *row, const ampl_kernel *k) {
  for (int t = 0; t < AMPL_DTYPE_COUNT; t++)
    if (k->dtype == AMPL_DTYPE_NONE || k->dtype == t) row[t] = k->fn;
}

/* Resolves kernel names to slots. */
static void resolve(const ampl_backend *b, ampl_kernel_fn (*slots)[AMPL_DTYPE_COUNT]) {
  for (int l = 0; b->kernels && b->kernels[l]; l++)
    for (const ampl_kernel *k = b->kernels[l]; k->op; k++) {
      const ampl_op *op = ampl_op_named(k->op);
      if (op) fill_slots(slots[op->id], k);
      for (int i = 0; strcmp(k->op, "*") == 0 && i < AMPL_OPID_COUNT; i++)
        if (!ampl_op_table[i]->compose && !(ampl_op_table[i]->flags & AMPL_OP_DYNAMIC)) fill_slots(slots[i], k);
    }
}

static bool refuse(ampl_candidate *c, const char *why) {
  snprintf(c->why, sizeof c->why, "%s", why);
  return false;
}

static bool add_backend(const ampl_backend *b, ampl_candidate *c) {
  char why[sizeof c->why] = "it says that it cannot work here";
  if (!b) return refuse(c, "it gave no backend");
  if (b->abi != AMPL_BACKEND_ABI || b->struct_size != sizeof *b)
    return refuse(c, "it was built for another version of ampl");
  if (b->probe && !b->probe(why, sizeof why)) return refuse(c, why);
  const int n = b->device_count();
  if (n < 1) return refuse(c, "it found no device");
  resolve(b, slots_of[c - candidates]);
  for (int i = 0; i < n && ndevices < AMPL_DEVICES_MAX; i++) {
    ampl_device *d = &devices[ndevices];
    *d = (ampl_device){.backend = b, .index = i, .id = ndevices++, .kernels = slots_of[c - candidates]};
    snprintf(d->name, sizeof d->name, i ? "%s:%d" : "%s", b->name, i);
  }
  return true;
}

static const ampl_host host = {AMPL_BACKEND_ABI,        sizeof host,         ampl_error,
                               ampl_tensor_new_default, ampl_tensor_release, ampl_threads};

static ampl_candidate *new_candidate(void) {
  return ncandidates < AMPL_CANDIDATES_MAX ? &candidates[ncandidates++] : NULL;
}

static void try_plugin(const char *folder, const char *file) {
  ampl_candidate *c = new_candidate();
  if (!c) return;
  if ((size_t)snprintf(c->name, sizeof c->name, "%s/%s", folder, file) >= sizeof c->name) {
    refuse(c, "its path is too long");
    return;
  }
  void *lib = dlopen(c->name, RTLD_NOW | RTLD_LOCAL);
  if (!lib) {
    const char *why = dlerror();
    refuse(c, why ? why : "it could not be opened");
    return;
  }
  ampl_backend_init_fn init;
  *(void **)&init = dlsym(lib, "ampl_backend_init");
  if (init) add_backend(init(&host), c);
  else refuse(c, "it has no ampl_backend_init");
}

static int compare_names(const void *a, const void *b) { return strcmp(*(char *const *)a, *(char *const *)b); }

/* false: the folder cannot be read. */
static bool search(const char *folder) {
  char *names[AMPL_CANDIDATES_MAX];
  int n = 0;
  DIR *dir = opendir(folder);
  struct dirent *e;
  while (dir && n < AMPL_CANDIDATES_MAX && (e = readdir(dir))) {
    const size_t len = strlen(e->d_name);
    if (len > 8 && strncmp(e->d_name, "ampl-", 5) == 0 && strcmp(e->d_name + len - 3, ".so") == 0 &&
        (names[n] = strdup(e->d_name)))
      n++;
  }
  if (dir) closedir(dir);
  else return false;
  qsort(names, (size_t)n, sizeof *names, compare_names);
  for (int i = 0; i < n; i++) {
    try_plugin(folder, names[i]);
    free(names[i]);
  }
  return true;
}

/* One entry of AMPL_BACKEND_PATH; one that leads nowhere is listed, with the reason.  Absolute ones only: what a name
 * means must not depend on where one stands. */
static void search_entry(const char *p, size_t n) {
  char folder[1024];
  const char *why = *p != '/' ? "AMPL_BACKEND_PATH: the folder is not absolute" : NULL;
  if (n >= sizeof folder) why = "AMPL_BACKEND_PATH: the path is too long";
  snprintf(folder, sizeof folder, "%.*s", (int)(n < sizeof folder ? n : sizeof folder - 1), p);
  if (!why && !search(folder)) why = "AMPL_BACKEND_PATH: the folder cannot be read";
  ampl_candidate *c = why ? new_candidate() : NULL;
  if (!c) return;
  memcpy(c->name, folder, sizeof c->name);
  refuse(c, why);
}

static void find_backends(void) {
  char folder[512], path[1024];
  const char *list = getenv("AMPL_BACKEND_PATH");
  Dl_info self;
  ampl_candidate *c = new_candidate();
  snprintf(c->name, sizeof c->name, "cpu (built in)");
  add_backend(&ampl_cpu_backend, c);
  for (const char *p = list ? list : "", *end; *p; p = *end ? end + 1 : end) {
    end = strchr(p, ':');
    if (!end) end = p + strlen(p);
    if (end > p) search_entry(p, (size_t)(end - p));
  }
  if (!dladdr((void *)&ampl_ctx_new, &self) || !self.dli_fname || self.dli_fname[0] != '/') return;
  const size_t length = (size_t)(strrchr(self.dli_fname, '/') - self.dli_fname);
  if (length >= sizeof folder) return;
  memcpy(folder, self.dli_fname, length);
  folder[length] = 0;
  search(folder);
  snprintf(path, sizeof path, "%.500s/ampl", folder);
  search(path);
}

int ampl_device_count(void) {
  pthread_once(&once, find_backends);
  return ndevices;
}

bool ampl_backend_candidate(int i, const char **name, const char **why) {
  pthread_once(&once, find_backends);
  if (i < 0 || i >= ncandidates) return false;
  if (name) *name = candidates[i].name;
  if (why) *why = candidates[i].why;
  return true;
}

ampl_status ampl_synchronize(ampl_ctx *ctx) {
  AMPL_NEED(NULL, ctx);
  AMPL_NAMED(ctx, "synchronize");
  for (int i = 0; i < ampl_device_count(); i++) {
    if (devices[i].backend->synchronize(devices[i].index) != AMPL_OK)
      return ampl_error(ctx, AMPL_ELOST, "device %s is lost", devices[i].name);
  }
  return AMPL_OK;
}

const char *ampl_device_name(int i) { return i >= 0 && i < ampl_device_count() ? devices[i].name : NULL; }

static void known_devices(char *text, size_t size) {
  size_t n = 0;
  for (int i = 0; i < ndevices; i++) n = ampl_append(text, size, n, i ? ", %s" : "%s", devices[i].name);
}

ampl_device *ampl_device_find(ampl_ctx *ctx, const char *name) {
  char known[256] = "";
  pthread_once(&once, find_backends);
  const size_t len = strlen(name);
  for (int i = 0; i < ndevices; i++) {
    const char *d = devices[i].name;
    if (strcmp(d, name) == 0 ||
        (strncmp(d, name, strlen(d)) == 0 && len == strlen(d) + 2 && strcmp(name + strlen(d), ":0") == 0))
      return &devices[i];
  }
  known_devices(known, sizeof known);
  ampl_error(ctx, AMPL_EDEVICE,
             "there is no device \"%.100s\" here; there is: %s (`ampl --devices` says why others were refused)", name,
             known);
  return NULL;
}
