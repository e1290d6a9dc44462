/* op_table.h: what is derived from the op records, once. */
#ifndef AMPL_OP_TABLE_H
#define AMPL_OP_TABLE_H

#include "op.h"

typedef struct ampl_op_info {
  uint8_t narg;                         /* arguments in all */
  uint8_t ntensor;                      /* fixed tensor operands */
  uint8_t nparam;
  uint8_t nout;
  int8_t  list;                         /* the argument that is a TENSORS list, or -1 */
  uint8_t tensor_arg[AMPL_TENSORS_MAX]; /* the argument of each tensor operand ... */
  uint8_t param_arg[AMPL_ARGS_MAX];     /* ... and of each parameter */
  int8_t  slot[AMPL_ARGS_MAX];          /* the tensor operand or parameter that argument i is */
} ampl_op_info;

extern const ampl_op *const ampl_op_table[AMPL_OPID_COUNT];
const ampl_op_info *ampl_op_info_of(const ampl_op *op);
/* Of all ops, those that only other ops may call, too; NULL: there is none. */
const ampl_op *ampl_op_named(const char *name);

#endif
