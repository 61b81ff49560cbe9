#include "field/field_net.h"

#include <inttypes.h>
#include <string.h>

#include "base/fail.h"
#include "base/memory.h"
#include "base/units.h"

stint_status sti_field_check(const stint_model_file *model, bool flat)
{
    const stint_field_desc *field = &model->network.field;
    if (field->coordinates == 0)
        return sti_fail(STINT_E_INPUT,
                        "%s: the network %s is no field; give a model that was trained "
                        "as siren or field",
                        sti_tensor_file_path(model->file), model->network.name);
    if (flat && field->coordinates != 2)
        return sti_fail(STINT_E_USAGE,
                        "%s: a field of %d coordinate%s; a grid of pixels is of two, "
                        "others are asked by --points FILE.npy",
                        sti_tensor_file_path(model->file), (int)field->coordinates,
                        sti_s(field->coordinates));
    return STINT_OK;
}

stint_status sti_field_check_drawn(const stint_model_file *model, int64_t width,
                                   int64_t height)
{
    enum { SIDE_MOST = 16384 };
    const stint_status st = sti_field_check(model, true);
    if (st != STINT_OK)
        return st;
    if (width < 1 || height < 1 || width > SIDE_MOST || height > SIDE_MOST)
        return sti_fail(STINT_E_USAGE,
                        "a picture of %" PRId64 " x %" PRId64
                        " pixels; wanted 1 to %d each",
                        width, height, SIDE_MOST);
    return STINT_OK;
}

stint_status sti_field_list(const stint_model_file *model, const stint_field_ask *ask,
                            sti_derivative_list *list_out)
{
    const int outputs = (int)model->network.field.outputs;
    const int coordinates = (int)model->network.field.coordinates;
    if (ask->laplacian)
        return sti_derivatives_laplacian(outputs, coordinates, list_out);
    if (ask->list == STINT_FIELD_ALL)
        return sti_derivatives_all(outputs, coordinates, ask->order, ask->most,
                                   list_out);
    return sti_derivatives_distinct(outputs, coordinates, ask->order, list_out);
}

/* ---- one network ---- */

static int64_t nodes_of(const stint_graph *g)
{
    return sti_graph_node_count(g);
}

static stint_status rewrite_reverse(stint_graph *g, sti_field_net *counts)
{
    stint_status st = sti_pass_dead_code(g, NULL);
    counts->dead_code = nodes_of(g);
    if (st == STINT_OK)
        st = sti_pass_common_subexpression(g, NULL);
    counts->common_subexpression = nodes_of(g);
    if (st == STINT_OK)
        st = sti_pass_simplify(g, NULL);
    counts->simplify = nodes_of(g);
    return st;
}

/* The nodes after each rewriting, with every column by itself. */
static stint_status count_nodes(const stint_graph *graph, const sti_column *columns,
                                int64_t count, sti_field_net *n)
{
    stint_graph *copy = NULL;
    stint_status st = sti_graph_copy(graph, &copy);
    if (st != STINT_OK)
        return st;
    sti_pass_fetch_columns(copy, columns, count);
    st = sti_graph_status(copy);
    if (st == STINT_OK)
        st = rewrite_reverse(copy, n);
    stint_graph_destroy(copy);
    return st;
}

static stint_status add_reverse(stint_graph *g, stint_value points, stint_value y,
                                const sti_derivative_list *list, bool counts,
                                sti_field_net *n)
{
    sti_field_net rest;
    stint_status st = sti_pass_derivatives(g, points, y, list, n->columns);
    n->built = nodes_of(g);
    if (st == STINT_OK && counts)
        st = count_nodes(g, n->columns, list->count, n);
    if (st != STINT_OK)
        return st;
    (void)sti_pass_symmetric(list, n->columns);
    sti_pass_fetch_columns(g, n->columns, list->count);
    st = sti_graph_status(g);
    if (st == STINT_OK)
        st = rewrite_reverse(g, &rest);
    n->symmetric = nodes_of(g);
    return st;
}

static stint_status add_jets(stint_graph *g, stint_value points, stint_value y,
                             const sti_derivative_list *list, sti_field_net *n)
{
    stint_status st = sti_pass_jet(g, points, y, list, n->columns);
    n->built = nodes_of(g);
    if (st != STINT_OK)
        return st;
    sti_pass_fetch_columns(g, n->columns, list->count);
    st = sti_graph_status(g);
    if (st == STINT_OK)
        st = sti_pass_dead_code(g, NULL);
    n->dead_code = nodes_of(g);
    if (st == STINT_OK)
        st = sti_pass_common_subexpression(g, NULL);
    n->common_subexpression = nodes_of(g);
    if (st == STINT_OK)
        st = sti_pass_fuse_jets(g, NULL);
    n->simplify = n->symmetric = nodes_of(g);
    return st;
}

static stint_status build(const stint_model_file *model,
                          const sti_derivative_list *list, bool counts,
                          sti_field_net *n)
{
    const sti_network_desc *desc = &model->network;
    stint_graph *g = n->net.graph;
    const stint_shape shape = STINT_SHAPE(n->net.images, desc->field.coordinates);
    stint_status st;
    n->net.input = stint_input(g, "points", &shape);
    const stint_value y = stint_field_build(g, desc->name, &desc->field, n->net.input);
    STI_TRY(stint_graph_check(g));
    STI_TRY(n->jets ? add_jets(g, n->net.input, y, list, n)
                    : add_reverse(g, n->net.input, y, list, counts, n));
    STI_TRY(sti_pass_fuse(g, NULL));
    STI_TRY(sti_pass_chain(g, NULL));
    n->chain = nodes_of(g);
    STI_TRY(sti_pass_standard(g));
    sti_pass_find_columns(g, n->columns, list->count);
    n->multiply_adds = sti_graph_multiply_adds(g);
    STI_TRY(sti_network_plan(&n->net, 1));
out:
    return st;
}

stint_status sti_field_net_build(const stint_model_file *model,
                                 const sti_derivative_list *list, bool jets,
                                 int64_t tile, bool counts, sti_field_net *net_out)
{
    sti_field_net n = {.net = {.images = tile}, .jets = jets};
    n.columns = sti_alloc_array(list->count, sizeof *n.columns, "field.columns");
    stint_status st = n.columns ? STINT_OK : STINT_E_MEMORY;
    if (st == STINT_OK)
        st = stint_graph_create(STINT_EVAL, &n.net.graph);
    if (st == STINT_OK)
        st = build(model, list, counts, &n);
    if (st == STINT_OK)
        *net_out = n;
    else
        sti_field_net_fini(&n);
    return st;
}

void sti_field_net_fini(sti_field_net *net)
{
    sti_network_fini(&net->net);
    sti_free(net->columns);
    *net = (sti_field_net){.columns = NULL};
}

size_t sti_field_net_arena_bytes(const sti_field_net *net)
{
    const size_t *bytes = net->net.plan->region_bytes;
    return bytes[STI_REGION_ARENA] + bytes[STI_REGION_FETCH] + bytes[STI_REGION_RESULT];
}

size_t sti_field_net_weights_bytes(const sti_field_net *net)
{
    return net->net.plan->region_bytes[STI_REGION_PARAM];
}
