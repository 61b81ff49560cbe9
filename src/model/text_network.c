/* A network for text, and its loss against a reference model. */
#include "model/network_parts.h"
#include "model/text_model.h"
#include "op/op_linear_distillation.h"
#include "stint/op.h"

/* The reference's last activations on the same tokens. It runs before the network, so
 * that nothing but these lives on when the first activation is saved. Its learned
 * positions are as many as it was trained with, and nothing of it is dropped. */
static sti_text_trunk append_text_reference(const sti_network_desc *r, sti_network *net)
{
    stint_text_model_desc text = r->text;
    text.dropout = 0;
    text.positions = text.positions > r->context ? text.positions : r->context;
    stint_scope_begin(net->graph, STI_REFERENCE_SCOPE);
    sti_graph_set_fixed(net->graph, true);
    const sti_text_trunk trunk =
        sti_text_model_trunk(net->graph, r->name, &text, net->input);
    sti_graph_set_fixed(net->graph, false);
    stint_scope_end(net->graph);
    return trunk;
}

static stint_value append_text_parts(const sti_network_desc *desc, sti_network *net,
                                     const sti_text_trunk *own,
                                     const sti_text_trunk *reference)
{
    stint_graph *g = net->graph;
    const sti_loss_desc *l = &desc->loss;
    const int64_t rows = net->images * desc->context;
    const stint_shape flat = stint_shape_make(STINT_I32, 1, &rows);
    const stint_distillation_desc parts = {.hard = l->factor[STI_LOSS_HARD],
                                           .pairing = l->factor[STI_LOSS_PAIRING],
                                           .soft = l->factor[STI_LOSS_SOFT],
                                           .temperature = l->temperature,
                                           .top = l->top,
                                           .focus = {l->focal_base, l->focal_right}};
    sti_network_add_loss_weights(desc, net);
    const stint_value loss = stint_linear_distillation(
        g, own->x, own->table, stint_reshape(g, net->labels, &flat), reference->x,
        reference->table, net->weights, &parts);
    for (int p = 0; loss >= 0 && p < STI_LOSS_PARTS; p++)
        if (l->factor[p] != 0)
            sti_network_add_output(
                g, STI_OUTPUT_METRIC,
                sti_graph_value(g, loss)->producer->out[STI_DISTILLATION_HARD + p],
                sti_loss_part_names[p]);
    return loss;
}

static stint_value append_taught_text(const sti_network_desc *desc, sti_network *net)
{
    const sti_text_trunk reference = append_text_reference(desc->loss.reference, net);
    const sti_text_trunk own =
        sti_text_model_trunk(net->graph, desc->name, &desc->text, net->input);
    return reference.x < 0 || own.x < 0
               ? -1
               : append_text_parts(desc, net, &own, &reference);
}

/* tokens, labels [sequences, context] i32; what is no token has the label -1. */
stint_status sti_network_append_text(const sti_network_desc *desc, stint_mode mode,
                                     sti_network *net)
{
    stint_graph *g = net->graph;
    const stint_shape shape =
        stint_shape_make(STINT_I32, 2, (int64_t[]){net->images, desc->context});
    net->input = stint_input(g, "tokens", &shape);
    net->labels = stint_input(g, "labels", &shape);
    const stint_value loss = mode == STINT_TRAIN && desc->loss.reference
                                 ? append_taught_text(desc, net)
                                 : stint_text_model_build(g, desc->name, &desc->text,
                                                          net->input, net->labels);
    sti_network_add_output(g, STI_OUTPUT_METRIC, loss, "loss");
    return stint_graph_check(g);
}
