/* Loop strings for matrix products: what this host keeps for a shape (stint tune), for
 * one thread and for as many as it offers. STINT_LOOPS gives all products one string,
 * or with "off" none. A string decides time and scratch, never bits. */
#include <stdlib.h>
#include <string.h>

#include "base/fail.h"
#include "kernel/loop/loop_tune.h"
#include "op/op.h"
#include "pass/pass_priv.h"

_Static_assert((int)STI_MATMUL_LOOPS == (int)STI_LOOP_GEMM_TEXT,
               "texts of loops differ in room");

/* The same text for every product, which must fit its shape. */
static stint_status force_text(const char *text, const sti_gemm_shape *shape,
                               const int *threads, sti_matmul_attr *attr)
{
    for (int i = 0; i < 2; i++) {
        sti_loop_gemm gemm;
        const int places = sti_loop_grid_threads(text);
        const stint_status status = sti_loop_gemm_bind(
            text, shape, threads[i] > places ? threads[i] : places, &gemm);
        if (status != STINT_OK)
            return sti_fail_context(status, "STINT_LOOPS");
        strcpy(attr->loops[i], text);
    }
    return STINT_OK;
}

static stint_status fill_node(stint_graph *graph, sti_node *node, const char *forced,
                              const int *threads, int *filled)
{
    sti_matmul_attr attr = *(const sti_matmul_attr *)node->attr;
    stint_status status = STINT_OK;
    sti_gemm_shape shape;
    memset(attr.loops, 0, sizeof attr.loops);
    if (!sti_op_matmul_shape(graph, node, &shape) || (forced && !strcmp(forced, "off")))
        return STINT_OK;
    if (forced)
        status = force_text(forced, &shape, threads, &attr);
    else
        for (int i = 0; i < 2; i++) {
            char text[STI_LOOP_GEMM_TEXT];
            if (sti_loop_store_find(&shape, threads[i], text))
                strcpy(attr.loops[i], text);
        }
    if (status != STINT_OK || (!attr.loops[0][0] && !attr.loops[1][0]))
        return status;
    ++*filled;
    return sti_graph_set_attr(graph, node, &attr);
}

stint_status sti_pass_loops(stint_graph *graph, sti_pass_note *note)
{
    const char *forced = getenv("STINT_LOOPS");
    int threads[2] = {1, 1}, products = 0, filled = 0;
    stint_status status = sti_threads_choose(0, &threads[1], NULL);
    for (int32_t n = 0; n < sti_graph_node_count(graph) && status == STINT_OK; n++) {
        sti_node *node = sti_graph_node(graph, n);
        if (node->id < 0 || node->op != &sti_op_matmul)
            continue;
        products++;
        status =
            fill_node(graph, node, forced && *forced ? forced : NULL, threads, &filled);
    }
    sti_pass_note_set(note, "%d of %d products have a loop string", filled, products);
    return status;
}
