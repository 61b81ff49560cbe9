/* What every rule of folding rests on. */
#include "exchange/fold_rules.h"

#include "base/fail.h"
#include "base/shown.h"

sti_walk sti_walk_of(const sti_exchange_tensor *t, int rank, const int64_t *dim)
{
    sti_walk w = {.rank = rank};
    int64_t run = 1;
    for (int i = rank - 1; i >= 0; i--) {
        const int k = i - (rank - t->rank);
        const int64_t own = k < 0 ? 1 : t->dim[k];
        w.dim[i] = dim[i];
        w.stride[i] = own == 1 ? 0 : run;
        run *= own;
    }
    return w;
}

int64_t sti_walk_next(sti_walk *w)
{
    const int64_t here = w->position;
    for (int k = w->rank - 1; k >= 0; k--) {
        w->position += w->stride[k];
        if (++w->at[k] < w->dim[k])
            break;
        w->position -= w->at[k] * w->stride[k];
        w->at[k] = 0;
    }
    return here;
}

stint_status sti_fold_refuse(const sti_fold *f, const char *why)
{
    return sti_fail(STINT_E_INPUT, "node '%.80s' (%s): %s",
                    sti_shown(sti_exchange_node_name(f->node)), sti_shown(f->node->op),
                    why);
}
