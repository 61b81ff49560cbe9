/* Hostile texts of networks, as model files hold them: what is read must lower, with
 * zeros for its tensors, or be refused. */
#include <stdlib.h>
#include <string.h>

#include "exchange/exchange_text.h"
#include "exchange/known.h"
#include "exchange/lower.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { TENSOR_MOST = 1 << 16 };

/* Numbers for the tensors; false: they are too large to be worth it. */
static bool give_numbers(sti_exchange_graph *g)
{
    for (int64_t i = 0; i < g->tensors; i++) {
        sti_exchange_tensor *t = &g->tensor[i];
        if (t->count > TENSOR_MOST)
            return false;
        void *zeros = sti_arena_alloc(g->arena, (size_t)t->count * sizeof(int64_t) + 1);
        if (!zeros)
            return false;
        if (sti_exchange_is_float(t->type))
            t->floats = zeros;
        else
            t->words = zeros;
    }
    return true;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const sti_lower_options options = {.name = "fuzz"};
    sti_exchange_graph *g = NULL;
    stint_graph *graph = NULL;
    sti_lowered lowered = {0};
    char *text = malloc(size + 1);
    if (!text)
        return 0;
    if (size)
        memcpy(text, data, size);
    text[size] = '\0';
    if (sti_network_text_read(text, "fuzz", &g) == STINT_OK && give_numbers(g) &&
        stint_graph_create(STINT_EVAL, &graph) == STINT_OK)
        (void)sti_lower(g, &options, graph, &lowered);
    sti_lowered_fini(&lowered);
    stint_graph_destroy(graph);
    sti_exchange_graph_destroy(g);
    free(text);
    return 0;
}
