/* guest.c: guests: whose call is running, and with it modes, index base and callbacks. */
#include "guest.h"

/* What the call of `g` (NULL: the host's) needs; the caller has kept what the one before it had. */
static void switch_to(ampl_ctx *c, ampl_guest *g) {
  c->guest = g;
  c->modes = !g ? c->host_modes : g->modes ? g->modes : &c->own_modes;
  c->index_base = g ? g->index_base : c->host_base;
}

ampl_guest *ampl_guest_enter(ampl_ctx *c, ampl_guest *g) {
  ampl_guest *before = c->guest;
  if (before) before->op = c->op;
  else {
    c->host_modes = c->modes;
    c->host_base = c->index_base;
    c->host_op = c->op;
  }
  switch_to(c, g);
  c->op = "";
  return before;
}

bool ampl_guest_leave(ampl_ctx *c, ampl_guest *before) {
  switch_to(c, before);
  c->op = before ? before->op : c->host_op;
  return c->live > c->soft;
}

void ampl_guest_join(ampl_ctx *c, ampl_guest *g) {
  g->next = c->guests;
  c->guests = g;
}

void ampl_guest_part(ampl_ctx *c, ampl_guest *g) {
  for (ampl_guest **p = &c->guests; *p; p = &(*p)->next)
    if (*p == g) {
      *p = g->next;
      return;
    }
}

void ampl_guests_collect(ampl_ctx *c) {
  for (ampl_guest *g = c->guests; g; g = g->next)
    if (g->collect) g->collect(g->ud);
}

/* The one whose call is running; the host's calls are heard by its own callback, else by who came last. */
bool ampl_guests_warn(ampl_ctx *c, const char *code, const char *message) {
  ampl_guest *g = c->guest ? c->guest : c->warn ? NULL : c->guests;
  if (!g || !g->warn) return false;
  g->warn(g->ud, code, message);
  return true;
}
