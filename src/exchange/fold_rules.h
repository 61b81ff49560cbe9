/* What the files of folding share: their rules, and a walk over a tensor under a shape
 * that it is broadcast to. */
#ifndef STI_EXCHANGE_FOLD_RULES_H
#define STI_EXCHANGE_FOLD_RULES_H

#include "exchange/known.h"

/* Position in a tensor, element after element of the larger shape. */
typedef struct sti_walk {
    int rank;
    int64_t dim[STI_EXCHANGE_RANK], stride[STI_EXCHANGE_RANK], at[STI_EXCHANGE_RANK];
    int64_t position;
} sti_walk;

sti_walk sti_walk_of(const sti_exchange_tensor *t, int rank, const int64_t *dim);
/* The position now; then one element on. */
int64_t sti_walk_next(sti_walk *w);

/* STINT_E_INPUT "node 'N' (Op): why". */
stint_status sti_fold_refuse(const sti_fold *f, const char *why);

#define STI_FOLD(op, name) sti_fold_fn sti_fold_##name;
#include "exchange/fold_list.h"
#undef STI_FOLD

#endif
