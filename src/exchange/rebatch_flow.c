/* Names by which values are found, and what a rule reads and changes of a walk. */
#include <stdlib.h>
#include <string.h>

#include "base/fail.h"
#include "base/shown.h"
#include "exchange/rebatch_priv.h"

static int by_name(const void *a, const void *b)
{
    const sti_batch_value *x = a, *y = b;
    return strcmp(x->name, y->name);
}

const sti_batch_value *sti_batch_find(const sti_rebatch *r, const char *name)
{
    const sti_batch_value key = {.name = name};
    return r->values && name[0]
               ? bsearch(&key, r->value, (size_t)r->values, sizeof key, by_name)
               : NULL;
}

void sti_batch_sort(sti_rebatch *r)
{
    qsort(r->value, (size_t)r->values, sizeof *r->value, by_name);
}

const sti_batch_value *sti_batch_operand(const sti_batch_flow *f, int i)
{
    return i < f->node->n_in ? sti_batch_find(f->r, f->node->in[i]) : NULL;
}

int sti_batch_axis(const sti_batch_flow *f, int i)
{
    const sti_batch_value *v = sti_batch_operand(f, i);
    return v ? f->axis[v - f->r->value] : -1;
}

void sti_batch_set(sti_batch_flow *f, int i, int axis)
{
    const sti_batch_value *v =
        i < f->node->n_out ? sti_batch_find(f->r, f->node->out[i]) : NULL;
    if (!v)
        return;
    f->axis[v - f->r->value] = (int8_t)axis;
    f->outer[v - f->r->value] = f->own_outer;
}

void sti_batch_set_all(sti_batch_flow *f, int axis)
{
    for (int i = 0; i < f->node->n_out; i++)
        sti_batch_set(f, i, axis);
}

const int64_t *sti_batch_list(const sti_batch_flow *f, int i, const char *attr,
                              int64_t *count)
{
    const sti_batch_value *v = sti_batch_operand(f, i);
    const sti_exchange_attr *a = sti_exchange_attr_find(f->node, attr);
    const sti_exchange_tensor *t =
        v && v->tensor >= 0 ? &f->r->g->tensor[v->tensor] : NULL;
    *count = -1;
    if (t && t->words && t->rank <= 1) {
        *count = t->count;
        return t->words;
    }
    if (!v && a && a->kind == STI_EXCHANGE_INTS) {
        *count = a->count;
        return a->ints;
    }
    return NULL;
}

stint_status sti_batch_refuse(const sti_batch_flow *f, const char *why)
{
    return sti_fail(STINT_E_UNSUPPORTED, "%s: cannot be trained: node '%.100s' (%s) %s",
                    sti_shown(f->r->name), sti_shown(sti_exchange_node_name(f->node)),
                    sti_shown(f->node->op), why);
}

int64_t sti_batch_length(const sti_batch_flow *f, int64_t length)
{
    return length / f->r->batch * f->batch;
}

/* Room for a name that is made here: "RESULT/WHAT". */
static const char *fresh_name(const sti_batch_flow *f, const char *what, int i)
{
    return sti_arena_printf(f->out->arena, "%s/%s.%d", f->node->out[0], what, i);
}

stint_status sti_batch_put_list(sti_batch_flow *f, int i, const int64_t *list,
                                int64_t count)
{
    int64_t *words =
        sti_arena_alloc(f->out->arena, ((size_t)count + 1) * sizeof *words);
    sti_exchange_tensor *t = words ? sti_exchange_add_tensor(f->out) : NULL;
    const char *name = fresh_name(f, "list", i);
    if (!t || !name)
        return STINT_E_MEMORY;
    memcpy(words, list, (size_t)count * sizeof *words);
    *t = (sti_exchange_tensor){.name = name,
                               .type = STI_EXCHANGE_I64,
                               .rank = 1,
                               .dim = {count},
                               .count = count,
                               .words = words};
    f->copy.in[i] = name;
    return STINT_OK;
}

stint_status sti_batch_put_each(sti_batch_flow *f, int i, int axis)
{
    const sti_batch_value *v = sti_batch_operand(f, i);
    const sti_exchange_node own = f->copy;
    const char **names = sti_arena_alloc(f->out->arena, 3 * sizeof *names);
    int64_t dim[STI_EXCHANGE_RANK];
    if (!names)
        return STINT_E_MEMORY;
    memcpy(dim, v->dim, sizeof dim);
    dim[axis] = f->batch;
    names[0] = own.in[i];
    names[2] = fresh_name(f, "each", i);
    f->copy.in = names;
    stint_status st = sti_batch_put_list(f, 1, dim, v->rank);
    sti_exchange_node *expand = st == STINT_OK ? sti_exchange_add_node(f->out) : NULL;
    f->copy = own;
    if (!expand || !names[2])
        return STINT_E_MEMORY;
    *expand = (sti_exchange_node){.op = "Expand",
                                  .name = names[2],
                                  .domain = "",
                                  .n_in = 2,
                                  .n_out = 1,
                                  .in = names,
                                  .out = names + 2};
    own.in[i] = names[2];
    return STINT_OK;
}
