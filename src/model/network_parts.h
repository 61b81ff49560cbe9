/* What the networks of every kind append to their graphs. Private to network*.c. */
#ifndef STI_MODEL_NETWORK_PARTS_H
#define STI_MODEL_NETWORK_PARTS_H

#include "model/network.h"

/* Names of the metrics of a loss's parts. */
extern const char *const sti_loss_part_names[STI_LOSS_PARTS];

/* Nothing for a value of -1. */
void sti_network_add_output(stint_graph *graph, sti_output_kind kind, stint_value value,
                            const char *name);
/* The input that parts of the loss are multiplied by besides their factors, where they
 * are. */
void sti_network_add_loss_weights(const sti_network_desc *desc, sti_network *net);

/* A transformer with its loss over tokens and labels; with a reference in training,
 * that of all parts. */
stint_status sti_network_append_text(const sti_network_desc *desc, stint_mode mode,
                                     sti_network *net);

#endif
