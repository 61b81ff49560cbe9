/* The network of a recipe, for subcommands that look at it or time it. */
#ifndef STI_CLI_CLI_NETWORK_H
#define STI_CLI_CLI_NETWORK_H

#include "base/recipe.h"
#include "model/network.h"

/* Sizes that the command line gives for want of data; 0: none. */
typedef struct sti_cli_sizes {
    int64_t image_size, image_channels, classes;
} sti_cli_sizes;

/* clang-format off */
/* Rows for them, in a struct with a member `sizes`. */
#define STI_CLI_SIZE_ROW(args_type, field, key, most, what, help_text)           \
    .name = (key), .type = STI_OPTION_INT, .default_text = "0", .min = 0,        \
    .max = (most), .offset = offsetof(args_type, sizes.field), .flag = true,     \
    .unit = (what), .help = (help_text)

/* clang-format on */

/* What to build: sizes as given, else those of the recipe's data. STINT_E_USAGE for
 * sizes that would not be used. */
stint_status sti_cli_network_desc(const stint_recipe *recipe,
                                  const sti_cli_sizes *sizes,
                                  sti_network_desc *desc_out);

/* The network as its builder makes it: forward only, no passes. */
stint_status sti_cli_network_forward(const sti_network_desc *desc, int64_t images,
                                     stint_graph **graph_out);

#endif
