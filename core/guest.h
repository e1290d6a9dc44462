/* guest.h: guests, for those that call them back. */
#ifndef AMPL_GUEST_H
#define AMPL_GUEST_H

#include "ctx.h"

/* Asks every guest to free what it can. */
void ampl_guests_collect(ampl_ctx *ctx);
/* false: no guest hears it. */
bool ampl_guests_warn(ampl_ctx *ctx, const char *code, const char *message);

#endif
