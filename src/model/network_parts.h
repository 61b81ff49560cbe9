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

/* To *objective: desc->gradient_penalty times the mean over the images (or sequences)
 * of |d own loss / d image|^2, of a text by the embeddings of its tokens; loss is the
 * mean of those against the labels, since a reference changes with the image, too, and
 * is not to be held still (Drucker and LeCun 1992). Of the mean of n losses the
 * gradient is 1 / n of an own one. */
stint_status sti_network_add_penalty(const sti_network_desc *desc,
                                     const sti_network *net, stint_value loss,
                                     stint_value *objective);

#endif
