/* Hostile texts of networks, as model files hold them: what is read must lower, with
 * zeros for its tensors, or be refused; and so must what is made of it for other
 * batches and classes. */
#include <stdlib.h>
#include <string.h>

#include "exchange/exchange_text.h"
#include "exchange/known.h"
#include "exchange/lower.h"
#include "exchange/rebatch.h"

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

static void lower(const sti_exchange_graph *g, bool trained, bool images)
{
    stint_graph *graph = NULL;
    sti_lowered lowered = {0};
    sti_lower_images given = {.first = true};
    const sti_lower_options options = {
        .name = "fuzz", .trained = trained, .images = images ? &given : NULL};
    if (stint_graph_create(STINT_EVAL, &graph) != STINT_OK)
        return;
    if (images) {
        const int64_t *d = g->input[0].dim;
        const stint_shape shape = STINT_SHAPE(d[0], d[2], d[3], d[1]);
        given.value = stint_input(graph, "images", &shape);
    }
    if (!images || given.value >= 0)
        (void)sti_lower(g, &options, graph, &lowered);
    sti_lowered_fini(&lowered);
    stint_graph_destroy(graph);
}

static void rebatch(sti_exchange_graph *g)
{
    sti_rebatch *r = NULL;
    if (g->inputs != 1 || g->input[0].rank != 4 ||
        sti_rebatch_create(g, "fuzz", &r) != STINT_OK)
        return;
    for (int more = 0; more < 4; more++) {
        sti_exchange_graph *made = NULL;
        const int64_t classes = sti_rebatch_classes(r) + more % 2;
        const stint_status st =
            more < 2 ? sti_rebatch_whole(r, classes, &made)
                     : sti_rebatch_build(r, g->input[0].dim[0] + 2, classes, &made);
        if (st == STINT_OK)
            lower(made, true, more >= 2);
        sti_exchange_graph_destroy(made);
    }
    sti_rebatch_destroy(r);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    sti_exchange_graph *g = NULL;
    char *text = malloc(size + 1);
    if (!text)
        return 0;
    if (size)
        memcpy(text, data, size);
    text[size] = '\0';
    if (sti_network_text_read(text, "fuzz", &g) == STINT_OK && give_numbers(g)) {
        lower(g, false, false);
        rebatch(g);
    }
    sti_exchange_graph_destroy(g);
    free(text);
    return 0;
}
