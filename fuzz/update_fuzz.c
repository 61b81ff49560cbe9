/* Hostile lists of tensors: what can be read is within bounds, and printed as a list it
 * is read as the same. */
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "model/network.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static stint_graph *names(void)
{
    static const char *const name[] = {
        "wte.weight",           "h.0.ln_1.scale",     "h.0.attn.c_attn.weight",
        "h.11.mlp.c_fc.weight", "h.11.mlp.c_fc.bias", "conv.weight"};
    stint_graph *g = NULL;
    if (stint_graph_create(STINT_TRAIN, &g) != STINT_OK)
        return NULL;
    for (size_t i = 0; i < sizeof name / sizeof name[0]; i++) {
        const stint_shape matrix = STINT_SHAPE(9, 5), vector = STINT_SHAPE(5);
        const stint_shape filters = STINT_SHAPE(3, 3, 7, 5);
        const bool weight = strstr(name[i], ".weight") != NULL;
        stint_param(g, name[i], i == 5 ? &filters : weight ? &matrix : &vector, NULL);
    }
    return g;
}

static void check(const sti_update_set *set)
{
    for (int i = 0; i < set->count; i++) {
        const sti_update_tensor *t = &set->tensor[i];
        if (t->share != 1 && t->share != 2 && t->share != 4 && t->share != 8)
            abort();
        for (int64_t c = 0; c < t->count; c++)
            if (t->channel[c] < 0 || t->channel[c] >= t->channels)
                abort();
    }
}

static void check_again(const stint_graph *g, const sti_update_set *set)
{
    sti_update_set again = {.count = 0};
    sti_text list = {0};
    sti_update_set_print(set, &list);
    if (!list.failed && sti_update_set_parse("k", list.data, g, &again) != STINT_OK)
        abort();
    if (!list.failed && again.count != set->count)
        abort();
    for (int i = 0; i < again.count; i++)
        if (again.tensor[i].share != set->tensor[i].share)
            abort();
    sti_update_set_fini(&again);
    sti_text_fini(&list);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    sti_update_set set = {.count = 0};
    stint_graph *g = size < 4096 ? names() : NULL;
    char *text = sti_alloc(size + 1, "fuzz");
    if (g && text) {
        memcpy(text, data, size);
        if (sti_update_set_parse("update.tensors", text, g, &set) == STINT_OK) {
            check(&set);
            check_again(g, &set);
        }
    }
    sti_update_set_fini(&set);
    stint_graph_destroy(g);
    sti_free(text);
    return 0;
}
