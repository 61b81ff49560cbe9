/* The graph of a recipe's network, for subcommands that look at it or time it. */
#ifndef STI_CLI_CLI_GRAPH_H
#define STI_CLI_CLI_GRAPH_H

#include "graph/graph.h"
#include "train/recipe.h"

typedef struct sti_cli_graph_desc {
    const sti_recipe_values *recipe;
    int64_t batch, height, width, channels, classes;
    stint_mode mode;
    bool backward; /* with loss and gradients */
    bool passes;   /* rewritten by the standard passes, as it is run */
} sti_cli_graph_desc;

typedef struct sti_cli_graph {
    stint_graph *graph;
    stint_value images, labels, logits; /* labels -1 without backward */
} sti_cli_graph;

stint_status sti_cli_graph_build(const sti_cli_graph_desc *desc, sti_cli_graph *out);
void sti_cli_graph_fini(sti_cli_graph *graph);

/* Sizes for a recipe: those of its data where that is there, else the fallbacks given
 * (0: none, which is an error that says so). */
stint_status sti_cli_graph_sizes(const stint_recipe *recipe, int64_t image_size,
                                 int64_t image_channels, int64_t classes,
                                 sti_cli_graph_desc *desc_out);

#endif
