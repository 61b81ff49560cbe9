/* Hostile ONNX files: what is read must lower or be refused; what lowers must say
 * itself as text that reads back to the same text. Open dimensions are 2. */
#include <stdlib.h>
#include <string.h>

#include "exchange/exchange_text.h"
#include "exchange/lower.h"
#include "exchange/onnx_read.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void again(const sti_exchange_graph *kept)
{
    sti_text first = {0}, second = {0};
    sti_exchange_graph *g = NULL;
    if (sti_network_text_write(kept, &first) != STINT_OK)
        return; /* an attribute that model files do not hold */
    if (sti_network_text_read(first.data, "fuzz", &g) == STINT_OK) {
        if (sti_network_text_write(g, &second) != STINT_OK ||
            strcmp(first.data, second.data) != 0)
            abort();
    }
    sti_exchange_graph_destroy(g);
    sti_text_fini(&first);
    sti_text_fini(&second);
}

static void lower(const sti_exchange_graph *g)
{
    sti_exchange_shape shape[8];
    sti_lower_options options = {.name = "fuzz", .shape = shape};
    stint_graph *graph = NULL;
    sti_lowered lowered = {0};
    for (int64_t i = 0; i < g->inputs && options.shapes < 8; i++) {
        sti_exchange_shape *s = &shape[options.shapes++];
        *s = (sti_exchange_shape){.name = g->input[i].name,
                                  .rank = g->input[i].rank < 0 ? 2 : g->input[i].rank};
        for (int k = 0; k < s->rank; k++)
            s->dim[k] =
                g->input[i].rank > 0 && g->input[i].dim[k] > 0 ? g->input[i].dim[k] : 2;
    }
    if (stint_graph_create(STINT_EVAL, &graph) == STINT_OK &&
        sti_lower(g, &options, graph, &lowered) == STINT_OK)
        again(lowered.kept);
    sti_lowered_fini(&lowered);
    stint_graph_destroy(graph);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    sti_exchange_graph *g = NULL;
    if (sti_onnx_parse(data, size, "fuzz", NULL, &g) != STINT_OK)
        return 0;
    lower(g);
    sti_exchange_graph_destroy(g);
    return 0;
}
