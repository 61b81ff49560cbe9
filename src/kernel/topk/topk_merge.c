/* Joining lists of winners: of parts, of processes, of hosts. */
#include "stint/topk.h"

#include <inttypes.h>
#include <string.h>

#include "base/fail.h"
#include "kernel/topk/topk_key.h"

size_t stint_topk_list_bytes(stint_topk_type type, int64_t k)
{
    const stint_topk_desc desc = {.type = type};
    return (size_t)k * (sti_topk_element_bytes(sti_topk_form_of(&desc)) + 8);
}

static sti_topk_view list_view(const stint_topk_desc *desc, const stint_topk_list *list)
{
    stint_topk_desc plain = *desc;
    plain.has_addend = false; /* a list holds sums already */
    const sti_topk_form form = sti_topk_form_of(&plain);
    return (sti_topk_view){.form = form,
                           .map = sti_topk_map_make(&plain, form),
                           .x = list->values,
                           .n = list->count};
}

static stint_status check_list(const stint_topk_list *list, char name)
{
    if (list->count < 0 || (list->count > 0 && (!list->values || !list->index)))
        return sti_fail(STINT_E_USAGE,
                        "top-k merge: list %c of %" PRId64
                        " winners%s; a list needs values and indices",
                        name, list->count, list->count < 0 ? "" : " has null pointers");
    return STINT_OK;
}

stint_status stint_topk_merge(const stint_topk_desc *desc, const stint_topk_list *a,
                              const stint_topk_list *b, int64_t *index_out,
                              void *values_out, int64_t *count_out)
{
    stint_status status = check_list(a, 'a');
    if (status == STINT_OK)
        status = check_list(b, 'b');
    if (status != STINT_OK)
        return status;
    if (desc->type < 0 || desc->type > STINT_TOPK_I8)
        return sti_fail(
            STINT_E_USAGE,
            "top-k merge: type %d, but stint_topk_type in stint/topk.h goes "
            "from 0 to %d",
            (int)desc->type, STINT_TOPK_I8);
    if (desc->k < 0)
        return sti_fail(STINT_E_USAGE,
                        "top-k merge: k %" PRId64 ", but it may not be negative",
                        desc->k);
    const sti_topk_view va = list_view(desc, a), vb = list_view(desc, b);
    const size_t bytes = sti_topk_element_bytes(va.form);
    unsigned char *values = values_out;
    int64_t i = 0, j = 0, at = 0;
    for (; at < desc->k && (i < a->count || j < b->count); at++) {
        bool from_a = j >= b->count;
        if (i < a->count && j < b->count) {
            const uint32_t ka = sti_topk_key_at(&va, i), kb = sti_topk_key_at(&vb, j);
            from_a = ka > kb || (ka == kb && a->index[i] < b->index[j]);
        }
        const sti_topk_view *v = from_a ? &va : &vb;
        const int64_t from = from_a ? i : j;
        memcpy(values + (size_t)at * bytes, v->x + (size_t)from * bytes, bytes);
        index_out[at] = from_a ? a->index[i++] : b->index[j++];
    }
    *count_out = at;
    return STINT_OK;
}
