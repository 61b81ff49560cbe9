#include "model/network_parts.h"

const char *const sti_loss_part_names[STI_LOSS_PARTS] = {"loss.hard", "loss.pairing",
                                                         "loss.soft"};

void sti_network_add_output(stint_graph *graph, sti_output_kind kind, stint_value value,
                            const char *name)
{
    if (value >= 0)
        sti_graph_output(
            graph,
            &(sti_output){.kind = kind, .value = value, .target = -1, .name = name});
}

void sti_network_add_loss_weights(const sti_network_desc *desc, sti_network *net)
{
    const stint_shape shape = STINT_SHAPE(STI_LOSS_PARTS);
    if (desc->loss.weighted)
        net->weights = stint_input(net->graph, "loss_weights", &shape);
}

void sti_network_keep(sti_network *network, bool keep)
{
    sti_graph_keep_constants(network->graph, keep);
}
