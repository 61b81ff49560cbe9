/* prune: single weights. */
#include "train/project_priv.h"

static int64_t units(const sti_scheme_word *word, const sti_target *target)
{
    (void)word;
    return target->count;
}

static void cut(const sti_scheme_word *word, const sti_target *target, void *params,
                int64_t unit)
{
    (void)word;
    sti_target_numbers(target, params)[unit] = 0;
}

void sti_project_prune(sti_projection *p, int word, void *params)
{
    static const sti_cutter cutter = {.units = units, .cut = cut};
    sti_project_cut(p, word, &cutter, params);
    for (int i = 0; i < p->count; i++)
        if (p->target[i].takes >> word & 1)
            p->target[i].form.elements = true;
}
