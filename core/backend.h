/* backend.h: what the registry of devices tells. */
#ifndef AMPL_BACKEND_REGISTRY_H
#define AMPL_BACKEND_REGISTRY_H

#include "ctx.h"

#define AMPL_CANDIDATES_MAX 16

typedef struct ampl_candidate {
  char name[1024];
  char why[256];                /* "": it was taken */
  int  devices;
} ampl_candidate;

/* Every backend that was looked at; NULL behind the last. */
const ampl_candidate *ampl_candidate_at(int i);
const char           *ampl_device_name(int i);

ampl_status ampl_tensor_new_default(ampl_ctx *ctx, ampl_device *device, const ampl_meta *meta, ampl_tensor **out);

#endif
