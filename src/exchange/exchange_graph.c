#include "exchange/exchange_graph.h"

#include <inttypes.h>
#include <string.h>

#include "base/fail.h"

static const struct {
    const char *name;
    size_t bytes;
} types[STI_EXCHANGE_TYPES] = {
    [STI_EXCHANGE_F32] = {"f32", 4},   [STI_EXCHANGE_U8] = {"u8", 1},
    [STI_EXCHANGE_I8] = {"i8", 1},     [STI_EXCHANGE_U16] = {"u16", 2},
    [STI_EXCHANGE_I16] = {"i16", 2},   [STI_EXCHANGE_I32] = {"i32", 4},
    [STI_EXCHANGE_I64] = {"i64", 8},   [STI_EXCHANGE_BOOL] = {"bool", 1},
    [STI_EXCHANGE_F16] = {"f16", 2},   [STI_EXCHANGE_F64] = {"f64", 8},
    [STI_EXCHANGE_U32] = {"u32", 4},   [STI_EXCHANGE_U64] = {"u64", 8},
    [STI_EXCHANGE_BF16] = {"bf16", 2},
};

const char *sti_exchange_type_name(int type)
{
    return type > 0 && type < STI_EXCHANGE_TYPES ? types[type].name : NULL;
}

int sti_exchange_type_find(const char *name)
{
    for (int i = 0; i < STI_EXCHANGE_TYPES; i++)
        if (types[i].name && strcmp(types[i].name, name) == 0)
            return i;
    return STI_EXCHANGE_NONE;
}

size_t sti_exchange_type_bytes(int type)
{
    return type > 0 && type < STI_EXCHANGE_TYPES ? types[type].bytes : 0;
}

stint_status sti_exchange_graph_create(sti_exchange_graph **graph_out)
{
    sti_arena *arena = sti_arena_create("network to exchange");
    sti_exchange_graph *g = arena ? sti_arena_alloc(arena, sizeof *g) : NULL;
    if (!g) {
        sti_arena_destroy(arena);
        return STINT_E_MEMORY;
    }
    g->arena = arena;
    *graph_out = g;
    return STINT_OK;
}

stint_status sti_exchange_graph_inside(const sti_exchange_graph *of,
                                       sti_exchange_graph **graph_out)
{
    sti_exchange_graph *g = sti_arena_alloc(of->arena, sizeof *g);
    if (!g)
        return STINT_E_MEMORY;
    g->arena = of->arena;
    g->borrowed = true;
    g->opset = of->opset;
    *graph_out = g;
    return STINT_OK;
}

void sti_exchange_graph_destroy(sti_exchange_graph *graph)
{
    if (graph && !graph->borrowed)
        sti_arena_destroy(graph->arena);
}

/* Room for one more row: twice as much when it is full. The old rows stay in the arena.
 */
static void *grow(sti_arena *arena, void *rows, int64_t count, int64_t *room,
                  size_t each_bytes)
{
    size_t bytes;
    if (count < *room)
        return rows;
    const int64_t more = *room ? 2 * *room : 8;
    if (!sti_mul_bytes(more, each_bytes, &bytes))
        return NULL;
    void *grown = sti_arena_alloc(arena, bytes);
    if (!grown)
        return NULL;
    if (count > 0)
        memcpy(grown, rows, (size_t)count * each_bytes);
    *room = more;
    return grown;
}

#define ADD(function, type, rows, count, room)                                    \
    type *function(sti_exchange_graph *g)                                         \
    {                                                                             \
        type *grown = grow(g->arena, g->rows, g->count, &g->room, sizeof *grown); \
        if (!grown)                                                               \
            return NULL;                                                          \
        g->rows = grown;                                                          \
        return &grown[g->count++];                                                \
    }

ADD(sti_exchange_add_node, sti_exchange_node, node, nodes, node_room)
ADD(sti_exchange_add_input, sti_exchange_port, input, inputs, input_room)
ADD(sti_exchange_add_output, sti_exchange_port, output, outputs, output_room)
ADD(sti_exchange_add_tensor, sti_exchange_tensor, tensor, tensors, tensor_room)

const sti_exchange_attr *sti_exchange_attr_find(const sti_exchange_node *node,
                                                const char *name)
{
    for (int i = 0; i < node->n_attr; i++)
        if (strcmp(node->attr[i].name, name) == 0)
            return &node->attr[i];
    return NULL;
}

int64_t sti_exchange_attr_int(const sti_exchange_node *node, const char *name,
                              int64_t otherwise)
{
    const sti_exchange_attr *a = sti_exchange_attr_find(node, name);
    return a && a->kind == STI_EXCHANGE_INT ? a->i : otherwise;
}

float sti_exchange_attr_float(const sti_exchange_node *node, const char *name,
                              float otherwise)
{
    const sti_exchange_attr *a = sti_exchange_attr_find(node, name);
    return a && a->kind == STI_EXCHANGE_FLOAT ? a->f : otherwise;
}

const char *sti_exchange_attr_text(const sti_exchange_node *node, const char *name,
                                   const char *otherwise)
{
    const sti_exchange_attr *a = sti_exchange_attr_find(node, name);
    return a && a->kind == STI_EXCHANGE_TEXT ? a->text : otherwise;
}

/* Enough for any tensor; sums of as many lengths as a node has operands, and bytes,
 * stay within 64 bits. */
#define MOST_ELEMENTS ((int64_t)1 << 44)

bool sti_exchange_count(int rank, const int64_t *dim, int64_t *count_out)
{
    int64_t product = 1;
    bool empty = false;
    for (int i = 0; i < rank; i++) {
        if (dim[i] < 0)
            return false;
        empty = empty || dim[i] == 0;
        if (dim[i] == 0)
            continue;
        if (dim[i] > MOST_ELEMENTS / product)
            return false;
        product *= dim[i];
    }
    *count_out = empty ? 0 : product;
    return true;
}

void sti_exchange_shape_text(int rank, const int64_t *dim, sti_text *text)
{
    sti_text_add(text, "[");
    for (int i = 0; i < rank; i++)
        sti_text_printf(text, "%s%" PRId64, i ? ", " : "", dim[i]);
    sti_text_add(text, "]");
}

const char *sti_exchange_node_name(const sti_exchange_node *node)
{
    if (node->name && node->name[0])
        return node->name;
    return node->n_out > 0 && node->out[0][0] ? node->out[0] : node->op;
}
