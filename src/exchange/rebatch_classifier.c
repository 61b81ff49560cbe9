/* The scores of an imported network, and the product that makes them. */
#include <string.h>

#include "base/fail.h"
#include "base/shown.h"
#include "exchange/rebatch_priv.h"

stint_status sti_batch_no_scores(const sti_rebatch *r)
{
    return sti_fail(STINT_E_UNSUPPORTED,
                    "%s: cannot be trained: wanted one input, and a first output "
                    "[batch, classes]",
                    sti_shown(r->name));
}

static const sti_exchange_node *maker_of(const sti_rebatch *r, const char *name,
                                         int64_t *at)
{
    const sti_batch_value *v = sti_batch_find(r, name);
    *at = v ? v->maker : -1;
    return *at < 0 ? NULL : &r->g->node[*at];
}

/* The scores before a softmax, which a loss wants. */
static const char *find_scores(const sti_rebatch *r)
{
    const char *name = r->g->output[0].name;
    int64_t at;
    const sti_exchange_node *n = maker_of(r, name, &at);
    if (n && strcmp(n->op, "Identity") == 0)
        n = maker_of(r, n->in[0], &at);
    return n && strcmp(n->op, "Softmax") == 0 &&
                   sti_exchange_attr_int(n, "axis", -1) != 0
               ? n->in[0]
               : name;
}

static bool add_head(sti_rebatch *r, const char *name, int axis)
{
    const sti_batch_value *v = sti_batch_find(r, name);
    if (!v || v->tensor < 0 || axis >= v->rank || v->dim[axis] != r->classes ||
        !r->g->tensor[v->tensor].trained || r->heads == STI_CLASS_TENSORS)
        return false;
    r->head[r->heads++] = (sti_class_tensor){v->tensor, axis};
    return true;
}

/* A vector of one number a class beside the scores; its last axis, or that before
 * pixels of one. */
static bool add_beside(sti_rebatch *r, const char *name)
{
    const sti_batch_value *v = sti_batch_find(r, name);
    int axis = -1;
    if (!v || v->tensor < 0)
        return false;
    for (int i = 0; i < v->rank; i++) {
        if (v->dim[i] != 1 && (v->dim[i] != r->classes || axis >= 0))
            return false;
        axis = v->dim[i] == r->classes ? i : axis;
    }
    return axis < 0 || add_head(r, name, axis);
}

static bool add_product(sti_rebatch *r, const sti_exchange_node *n)
{
    const sti_batch_value *w = n->n_in > 1 ? sti_batch_find(r, n->in[1]) : NULL;
    const bool conv = strcmp(n->op, "Conv") == 0, gemm = strcmp(n->op, "Gemm") == 0;
    if (!w || w->rank < 2 || (conv && sti_exchange_attr_int(n, "group", 1) != 1))
        return false;
    const int axis = conv   ? 0
                     : gemm ? !sti_exchange_attr_int(n, "transB", 0)
                            : w->rank - 1;
    return add_head(r, n->in[1], axis) &&
           (n->n_in < 3 || !n->in[2][0] || add_beside(r, n->in[2]));
}

bool sti_batch_is_among(const char *op, const char *const *names)
{
    while (*names && strcmp(*names, op) != 0)
        names++;
    return *names != NULL;
}

/* From the scores back to the product that makes them, over what treats every class
 * alike. */
static bool find_head(sti_rebatch *r)
{
    static const char *const alike[] = {
        "Identity", "Flatten",    "Reshape", "Squeeze",           "Relu",
        "Dropout",  "ReduceMean", "Cast",    "GlobalAveragePool", "AveragePool",
        "Clip",     "LogSoftmax", NULL};
    static const char *const pairs[] = {"Add", "Sub", "Mul", "Div", NULL};
    static const char *const products[] = {"Gemm", "Conv", "MatMul", NULL};
    const char *name = r->scores;
    int64_t at;
    const sti_exchange_node *n;
    while ((n = maker_of(r, name, &at)) != NULL) {
        r->behind[at] = true;
        if (sti_batch_is_among(n->op, products))
            return add_product(r, n);
        const sti_batch_value *first = sti_batch_find(r, n->in[0]);
        const int run = sti_batch_is_among(n->op, pairs) && first && first->tensor >= 0;
        if (!sti_batch_is_among(n->op, alike) &&
            !(sti_batch_is_among(n->op, pairs) && add_beside(r, n->in[!run])))
            return false;
        name = n->in[run];
    }
    return false;
}

/* A tensor that another node reads, too, is not the classifier's alone. */
static bool is_read_elsewhere(const sti_rebatch *r)
{
    for (int64_t n = 0; n < r->g->nodes; n++)
        for (int i = 0; i < r->g->node[n].n_in && !r->behind[n]; i++)
            for (int k = 0; k < r->heads; k++)
                if (strcmp(r->g->node[n].in[i], r->g->tensor[r->head[k].tensor].name) ==
                    0)
                    return true;
    return false;
}

stint_status sti_batch_find_classifier(sti_rebatch *r)
{
    const sti_batch_value *v;
    if (r->g->inputs != 1 || r->g->outputs < 1 || r->g->input[0].rank < 1)
        return sti_batch_no_scores(r);
    r->batch = r->g->input[0].dim[0];
    r->scores = find_scores(r);
    v = sti_batch_find(r, r->scores);
    if (!v || v->rank < 2 || v->dim[0] != r->batch || v->dim[1] < 2)
        return sti_batch_no_scores(r);
    for (int i = 2; i < v->rank; i++)
        if (v->dim[i] != 1)
            return sti_batch_no_scores(r);
    r->classes = v->dim[1];
    if (!find_head(r) || is_read_elsewhere(r))
        r->heads = 0;
    return STINT_OK;
}
