/* The networks by name, from the lines of model_list.h. */
#include <inttypes.h>
#include <string.h>

#include "base/fail.h"
#include "base/text.h"
#include "model/model_priv.h"

static const stint_model_info network_infos[] = {
#define STI_MODEL(name, builder, variant, side, help) {name, help},
#include "model/model_list.h"
#undef STI_MODEL
    {NULL, NULL},
};

static const struct {
    sti_model_fn *build;
    int variant;
    int64_t usual_size;
} network_builders[] = {
#define STI_MODEL(name, builder, variant, side, help) \
    {sti_model_##builder, variant, side},
#include "model/model_list.h"
#undef STI_MODEL
};

enum { NETWORK_COUNT = sizeof network_builders / sizeof network_builders[0] };

const stint_model_info *stint_model_list(void)
{
    return network_infos;
}

static stint_status unknown_network(const char *name)
{
    const char *names[NETWORK_COUNT];
    for (int i = 0; i < NETWORK_COUNT; i++)
        names[i] = network_infos[i].name;
    const char *near = sti_text_nearest(name, names, NETWORK_COUNT);
    if (near)
        return sti_fail(STINT_E_INPUT, "model '%s' is unknown; did you mean '%s'?",
                        name, near);
    return sti_fail(STINT_E_INPUT,
                    "model '%s' is unknown; `stint help models` lists them", name);
}

static int find_network(const char *name)
{
    for (int i = 0; i < NETWORK_COUNT; i++)
        if (strcmp(network_infos[i].name, name) == 0)
            return i;
    return -1;
}

int64_t stint_model_usual_size(const char *name)
{
    const int row = find_network(name);
    return row < 0 ? 0 : network_builders[row].usual_size;
}

stint_value stint_model_build(stint_graph *graph, const char *name,
                              const stint_model_desc *desc, stint_value images)
{
    if (images < 0)
        return -1;
    int row = find_network(name);
    if (row < 0)
        return sti_graph_fail(graph, unknown_network(name));
    stint_shape shape = stint_value_shape(graph, images);
    if (shape.rank != 4 || shape.dtype != STINT_F32)
        return sti_graph_fail(
            graph, sti_fail(STINT_E_INPUT, "%s: wants images [n, h, w, c] f32, got %s",
                            name, sti_shape_text(&shape)));
    if (desc->classes < 2 || desc->width < 0 || desc->depth < 0 || desc->dropout >= 1)
        return sti_graph_fail(
            graph,
            sti_fail(STINT_E_INPUT,
                     "%s: wants 2 classes or more, width and depth of 0 or more and "
                     "dropout below 1; got %" PRId64 " classes, width %" PRId64
                     ", depth %" PRId64 ", dropout %g",
                     name, desc->classes, desc->width, desc->depth,
                     (double)desc->dropout));
    if (desc->input_bits < 0 || desc->input_bits > 8)
        return sti_graph_fail(graph, sti_fail(STINT_E_INPUT,
                                              "%s: input_bits %d, wanted 0 to 8", name,
                                              desc->input_bits));

    stint_model_desc resolved = *desc;
    int64_t side = shape.dim[1] < shape.dim[2] ? shape.dim[1] : shape.dim[2];
    if (resolved.stem == STINT_STEM_AUTO)
        resolved.stem = side < 96 ? STINT_STEM_SMALL : STINT_STEM_LARGE;
    return network_builders[row].build(graph, network_builders[row].variant, &resolved,
                                       images);
}
