/* Joining lists of winners: of parts, of processes, of hosts. */
#include "stint/topk.h"

#include <inttypes.h>
#include <string.h>

#include "base/fail.h"
#include "kernel/topk/topk_wide.h"

static size_t value_bytes(stint_topk_type type)
{
    const stint_topk_desc desc = {.type = type};
    return sti_topk_is_wide(type) ? sti_topk_wide_element_bytes(type)
                                  : sti_topk_element_bytes(sti_topk_form_of(&desc));
}

size_t stint_topk_list_bytes(stint_topk_type type, int64_t k)
{
    return (size_t)k * (value_bytes(type) + 8);
}

/* Keys of the values of lists of any type. */
typedef struct list_keys {
    bool wide;
    sti_topk_wide_map wide_map;
    sti_topk_view view; /* of no values */
    size_t bytes;
} list_keys;

static list_keys keys_of(const stint_topk_desc *desc)
{
    list_keys keys = {.wide = sti_topk_is_wide(desc->type),
                      .bytes = value_bytes(desc->type)};
    if (keys.wide) {
        keys.wide_map = sti_topk_wide_map_make(desc);
    } else {
        stint_topk_desc plain = *desc;
        plain.has_addend = false; /* a list holds sums already */
        keys.view.form = sti_topk_form_of(&plain);
        keys.view.map = sti_topk_map_make(&plain, keys.view.form);
    }
    return keys;
}

static uint64_t list_key(const list_keys *keys, const stint_topk_list *list, int64_t i)
{
    if (keys->wide)
        return sti_topk_wide_key(sti_topk_wide_bits_at(list->values, i, keys->bytes),
                                 &keys->wide_map);
    sti_topk_view view = keys->view;
    view.x = list->values;
    return sti_topk_key_at(&view, i);
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
    if (desc->type < 0 || desc->type >= STINT_TOPK_TYPES)
        return sti_fail(
            STINT_E_USAGE,
            "top-k merge: type %d, but stint_topk_type in stint/topk.h goes "
            "from 0 to %d",
            (int)desc->type, STINT_TOPK_TYPES - 1);
    if (desc->k < 0)
        return sti_fail(STINT_E_USAGE,
                        "top-k merge: k %" PRId64 ", but it may not be negative",
                        desc->k);
    const list_keys keys = keys_of(desc);
    unsigned char *values = values_out;
    int64_t i = 0, j = 0, at = 0;
    for (; at < desc->k && (i < a->count || j < b->count); at++) {
        bool from_a = j >= b->count;
        if (i < a->count && j < b->count) {
            const uint64_t ka = list_key(&keys, a, i), kb = list_key(&keys, b, j);
            from_a = ka > kb || (ka == kb && a->index[i] < b->index[j]);
        }
        const stint_topk_list *list = from_a ? a : b;
        const int64_t from = from_a ? i++ : j++;
        memcpy(values + (size_t)at * keys.bytes,
               (const unsigned char *)list->values + (size_t)from * keys.bytes,
               keys.bytes);
        index_out[at] = list->index[from];
    }
    *count_out = at;
    return STINT_OK;
}
