/* The table of rules of folding. */
#include <string.h>

#include "exchange/fold_rules.h"

sti_fold_fn *sti_fold_find(const char *op)
{
    static const struct {
        const char *op;
        sti_fold_fn *fold;
    } rows[] = {
#define STI_FOLD(op, name) {#op, sti_fold_##name},
#include "exchange/fold_list.h"
#undef STI_FOLD
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (strcmp(rows[i].op, op) == 0)
            return rows[i].fold;
    return NULL;
}
