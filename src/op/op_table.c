/* The table of operators, from the lines of op_list.h. */
#include <string.h>

#include "op/op_priv.h"

const sti_op *const sti_ops[] = {
#define STI_OP(name) &sti_op_##name,
#include "op/op_list.h"
#undef STI_OP
    NULL,
};

const sti_op *sti_op_find(const char *name)
{
    for (int i = 0; sti_ops[i]; i++)
        if (strcmp(sti_ops[i]->name, name) == 0)
            return sti_ops[i];
    return NULL;
}
