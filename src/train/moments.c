#include "train/moments.h"

/* Bytes of the gradients of the parameters before this one. */
static size_t bytes_before(const sti_network *network, stint_value param)
{
    size_t bytes = 0;
    for (int32_t i = 0; i < sti_graph_output_count(network->graph); i++) {
        const sti_output *output = &sti_graph_outputs(network->graph)[i];
        if (output->kind == STI_OUTPUT_GRADIENT && output->target < param)
            bytes += network->plan->allocation[output->value].bytes;
    }
    return bytes;
}

size_t sti_moment_bytes(const sti_network *network)
{
    return bytes_before(network, sti_graph_value_count(network->graph));
}

size_t sti_moment_offset(const sti_network *network, stint_value param)
{
    return bytes_before(network, param);
}
