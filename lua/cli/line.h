/* line.h: reading lines from the user. */
#ifndef AMPL_CLI_LINE_H
#define AMPL_CLI_LINE_H

#include <lua.h>
#include <stdbool.h>

typedef enum line_result { LINE_OK, LINE_END, LINE_INTERRUPTED } line_result;

/* At a terminal that can move its cursor: a line editor with history and completion.  Else plain reading, no escapes.
 * */
void line_begin(lua_State *L, bool rc);
void line_end(void);
/* Whether lines come from a terminal. */
bool line_interactive(void);
/* LINE_OK leaves the line, without its newline, on the stack. */
line_result line_read(lua_State *L, const char *prompt);
/* Adds a line to the history. */
void line_remember(const char *line);

#endif
