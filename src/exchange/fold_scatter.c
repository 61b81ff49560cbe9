/* Folding of operators that write elements to places by index: masks of windows are
 * made so. */
#include <string.h>

#include "exchange/fold_rules.h"

static double combined(const char *how, double old, double given)
{
    if (strcmp(how, "add") == 0)
        return old + given;
    if (strcmp(how, "mul") == 0)
        return old * given;
    if (strcmp(how, "max") == 0)
        return given > old ? given : old;
    if (strcmp(how, "min") == 0)
        return given < old ? given : old;
    return given;
}

/* Element `from` of x to place `at` of y; whole numbers that are set keep all bits. */
static void write_element(const char *how, const sti_exchange_tensor *x, int64_t from,
                          sti_exchange_tensor *y, int64_t at)
{
    if (y->floats)
        sti_known_floats(y)[at] =
            (float)combined(how, (double)y->floats[at], sti_known_number(x, from));
    else if (strcmp(how, "none") == 0)
        sti_known_words(y)[at] = sti_known_word(x, from);
    else
        sti_known_words(y)[at] = sti_known_whole(
            combined(how, (double)y->words[at], sti_known_number(x, from)));
}

static stint_status begin(sti_fold *f, const char **how)
{
    static const char *const words[] = {"none", "add", "mul", "max", "min"};
    const sti_exchange_tensor *x = f->in[0];
    *how = sti_exchange_attr_text(f->node, "reduction", "none");
    bool known = false;
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        known = known || strcmp(words[i], *how) == 0;
    if (!known || !f->in[1]->words || !x->words != !f->in[2]->words)
        return sti_fold_refuse(f, "wants whole numbers as indices, updates of the "
                                  "tensor's type and a reduction that there is");
    sti_exchange_tensor *y = sti_known_make(f->arena, x->type, x->rank, x->dim);
    if (!y)
        return STINT_E_UNSUPPORTED;
    for (int64_t i = 0; i < x->count; i++)
        if (y->floats)
            sti_known_floats(y)[i] = x->floats[i];
        else
            sti_known_words(y)[i] = x->words[i];
    y->trained = x->trained && y->floats;
    f->out[0] = y;
    return STINT_OK;
}

/* Do updates have the shape [rank] of what the indices name? */
static bool updates_fit(const sti_fold *f, int rank, const int64_t *dim)
{
    const sti_exchange_tensor *updates = f->in[2];
    bool fits = updates->rank == rank;
    for (int i = 0; fits && i < rank; i++)
        fits = updates->dim[i] == dim[i];
    return fits;
}

stint_status sti_fold_scatter_elements(sti_fold *f)
{
    const sti_exchange_tensor *x = f->in[0], *index = f->in[1];
    const int axis = sti_known_axis(sti_exchange_attr_int(f->node, "axis", 0), x->rank);
    const char *how;
    bool fits = axis >= 0 && index->rank == x->rank;
    for (int i = 0; fits && i < x->rank; i++)
        fits = i == axis || index->dim[i] <= x->dim[i];
    if (!fits)
        return sti_fold_refuse(f, "indices that do not go with the tensor");
    if (!updates_fit(f, index->rank, index->dim))
        return sti_fold_refuse(f, "updates of another shape than the indices");
    const stint_status st = begin(f, &how);
    for (int64_t k = 0; st == STINT_OK && k < index->count; k++) {
        int64_t rest = k, run = 1, at = 0, along = index->words[k];
        along += along < 0 ? x->dim[axis] : 0;
        if (along < 0 || along >= x->dim[axis])
            return sti_fold_refuse(f, "an index beyond the axis");
        for (int i = x->rank - 1; i >= 0; i--) {
            at += (i == axis ? along : rest % index->dim[i]) * run;
            rest /= index->dim[i];
            run *= x->dim[i];
        }
        write_element(how, f->in[2], k, f->out[0], at);
    }
    return st;
}

stint_status sti_fold_scatter_nd(sti_fold *f)
{
    const sti_exchange_tensor *x = f->in[0], *index = f->in[1];
    const int64_t depth = index->rank > 0 ? index->dim[index->rank - 1] : 0;
    int64_t inner = 1, wanted[2 * STI_EXCHANGE_RANK];
    const char *how;
    if (depth < 1 || depth > x->rank)
        return sti_fold_refuse(f, "indices of more axes than the tensor has");
    for (int i = 0; i < index->rank - 1; i++)
        wanted[i] = index->dim[i];
    for (int i = (int)depth; i < x->rank; i++) {
        wanted[index->rank - 1 + i - depth] = x->dim[i];
        inner *= x->dim[i];
    }
    if (!updates_fit(f, index->rank - 1 + x->rank - (int)depth, wanted))
        return sti_fold_refuse(f, "updates whose shape is not that of the indices but "
                                  "for their last axis, and of a row behind");
    const stint_status st = begin(f, &how);
    for (int64_t r = 0; st == STINT_OK && r < index->count / depth; r++) {
        int64_t at = 0;
        for (int i = 0; i < depth; i++) {
            int64_t along = index->words[r * depth + i];
            along += along < 0 ? x->dim[i] : 0;
            if (along < 0 || along >= x->dim[i])
                return sti_fold_refuse(f, "an index beyond the axis");
            at = at * x->dim[i] + along;
        }
        for (int64_t k = 0; k < inner; k++)
            write_element(how, f->in[2], r * inner + k, f->out[0], at * inner + k);
    }
    return st;
}
