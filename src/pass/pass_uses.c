/* Who reads what. */
#include <stdarg.h>
#include <stdio.h>

#include "pass/pass_priv.h"

stint_status sti_uses_create(const stint_graph *graph, sti_uses *uses)
{
    int32_t values = sti_graph_value_count(graph);
    uses->count = sti_alloc_array(values, sizeof *uses->count, "pass.uses");
    uses->first = sti_alloc_array(values, sizeof(sti_node *), "pass.uses");
    uses->output = sti_alloc_array(values, sizeof *uses->output, "pass.uses");
    if (!uses->count || !uses->first || !uses->output) {
        sti_uses_destroy(uses);
        return STINT_E_MEMORY;
    }
    for (int32_t n = 0; n < sti_graph_node_count(graph); n++) {
        sti_node *node = sti_graph_node(graph, n);
        for (int32_t i = 0; i < node->n_in; i++) {
            stint_value in = node->in[i];
            if (in < 0)
                continue;
            uses->count[in]++;
            if (!uses->first[in])
                uses->first[in] = node;
        }
    }
    for (int32_t i = 0; i < sti_graph_output_count(graph); i++) {
        stint_value value = sti_graph_outputs(graph)[i].value;
        uses->count[value]++;
        if (uses->output[value] < UINT8_MAX)
            uses->output[value]++;
    }
    return STINT_OK;
}

void sti_uses_destroy(sti_uses *uses)
{
    sti_free(uses->count);
    sti_free(uses->first);
    sti_free(uses->output);
    *uses = (sti_uses){0};
}

void sti_pass_roots(const stint_graph *graph, stint_value *root)
{
    for (int32_t v = 0; v < sti_graph_value_count(graph); v++)
        root[v] = v;
    for (int32_t n = 0; n < sti_graph_node_count(graph); n++) {
        const sti_node *node = sti_graph_node(graph, n);
        int k = (node->op->flags & STI_OP_VIEW) ? 0 : node->inplace;
        if (k >= 0)
            root[node->out[0]] = root[node->in[k]];
    }
}

void sti_pass_contents(const stint_graph *graph, stint_value *content)
{
    for (int32_t v = 0; v < sti_graph_value_count(graph); v++)
        content[v] = v;
    for (int32_t n = 0; n < sti_graph_node_count(graph); n++) {
        const sti_node *node = sti_graph_node(graph, n);
        if (node->op->flags & STI_OP_VIEW)
            content[node->out[0]] = content[node->in[0]];
    }
}

void sti_pass_clear_inplace(stint_graph *graph)
{
    for (int32_t n = 0; n < sti_graph_node_count(graph); n++)
        sti_graph_node(graph, n)->inplace = -1;
}

void sti_pass_note_set(sti_pass_note *note, const char *format, ...)
{
    va_list args;
    if (!note)
        return;
    va_start(args, format);
    vsnprintf(note->text, sizeof note->text, format, args);
    va_end(args);
}

/* Bytes of the values that are marked. */
static size_t marked_bytes(const stint_graph *graph, const uint8_t *mark)
{
    size_t bytes = 0;
    for (int32_t v = 0; v < sti_graph_value_count(graph); v++)
        if (mark[v])
            bytes += stint_shape_bytes(&sti_graph_value(graph, v)->shape);
    return bytes;
}

stint_status sti_pass_saved_bytes(const stint_graph *graph, size_t *bytes_out)
{
    const int32_t values = sti_graph_value_count(graph);
    stint_value *content = sti_alloc_array(values, sizeof *content, "pass.saved");
    uint8_t *saved = sti_alloc_array(values, sizeof *saved, "pass.saved");
    const bool good = content && saved;
    if (good)
        sti_pass_contents(graph, content);
    for (int32_t n = 0; good && n < sti_graph_node_count(graph); n++) {
        const sti_node *node = sti_graph_node(graph, n);
        for (int32_t i = 0; node->backward && i < node->n_in; i++) {
            if (node->in[i] < 0)
                continue;
            const stint_value held = content[node->in[i]];
            const sti_node *maker = sti_graph_value(graph, held)->producer;
            saved[held] = maker && !maker->backward;
        }
    }
    if (good)
        *bytes_out = marked_bytes(graph, saved);
    sti_free(content);
    sti_free(saved);
    return good ? STINT_OK : STINT_E_MEMORY;
}
