/* state.h: the making of a state. */
#ifndef LAMPL_STATE_H
#define LAMPL_STATE_H

#include "lampl.h"

/* Makes the state's record, with the context that the host has given or a new one. */
void lampl_open_state(lua_State *L);
void lampl_life_release(lampl_life *life);

#endif
