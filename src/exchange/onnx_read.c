/* Messages of ONNX files, ModelProto downwards (numbers of fields: onnx.proto). */
#include "exchange/onnx_read.h"

#include <inttypes.h>
#include <string.h>

#include "base/fail.h"
#include "base/file.h"
#include "base/shown.h"
#include "exchange/onnx_priv.h"

/* Graphs within graphs (branches of If), and the size of a file. */
enum { MAX_DEPTH = 16 };
#define MAX_BYTES ((size_t)1 << 40)

static stint_status read_graph(sti_onnx_reader *r, const sti_proto_field *field,
                               sti_exchange_graph *g);

/* ---- attributes ---- */

/* Numbers of a repeated field, which come packed or one by one; counted first. */
typedef struct numbers {
    uint32_t number;
    bool floats;
    int64_t count;
    int64_t *i;
    float *f;
} numbers;

static void add_number(numbers *n, uint64_t value)
{
    const uint32_t low = (uint32_t)value;
    if (n->i)
        n->i[n->count] = (int64_t)value;
    if (n->f)
        memcpy(&n->f[n->count], &low, sizeof low);
    n->count++;
}

static bool collect(sti_proto m, numbers *n)
{
    sti_proto_field f;
    n->count = 0;
    while (sti_proto_next(&m, &f)) {
        if (f.number != n->number)
            continue;
        if (f.kind != STI_PROTO_BYTES) {
            add_number(n, f.value);
            continue;
        }
        sti_proto list = sti_proto_inside(&f);
        uint64_t value = 0;
        uint32_t word = 0;
        while (list.at < list.end) {
            if (!(n->floats ? sti_proto_word32(&list, &word)
                            : sti_proto_varint(&list, &value)))
                return false;
            add_number(n, n->floats ? word : value);
        }
    }
    return !m.broken;
}

static stint_status read_list(sti_onnx_reader *r, sti_proto m, bool floats,
                              sti_exchange_attr *a)
{
    numbers n = {.number = floats ? 7 : 8, .floats = floats};
    if (!collect(m, &n))
        return sti_onnx_damaged(r, "an attribute");
    const size_t bytes = (size_t)n.count * sizeof(int64_t) + 1;
    if (floats)
        a->floats = n.f = sti_arena_alloc(r->arena, bytes);
    else
        a->ints = n.i = sti_arena_alloc(r->arena, bytes);
    if (!n.f && !n.i)
        return STINT_E_MEMORY;
    collect(m, &n);
    a->count = n.count;
    a->kind = floats ? STI_EXCHANGE_FLOATS : STI_EXCHANGE_INTS;
    return STINT_OK;
}

static stint_status read_branch(sti_onnx_reader *r, const sti_proto_field *f,
                                const sti_exchange_graph *g, sti_exchange_attr *a)
{
    stint_status st = sti_exchange_graph_inside(g, &a->graph);
    a->kind = STI_EXCHANGE_GRAPH;
    return st == STINT_OK ? read_graph(r, f, a->graph) : st;
}

/* Several texts become one, commas between them. */
static stint_status read_words(sti_onnx_reader *r, const sti_proto_field *f,
                               sti_exchange_attr *a)
{
    const char *word = NULL;
    const stint_status st = sti_onnx_text(r, f, &word);
    if (st != STINT_OK)
        return st;
    const bool more = a->kind == STI_EXCHANGE_TEXT && a->text;
    if (more && strlen(a->text) + strlen(word) >= STI_ONNX_TEXT_MOST)
        return sti_onnx_damaged(r, "a list of texts that is too long");
    a->text = more ? sti_arena_printf(r->arena, "%s,%s", a->text, word) : word;
    a->kind = STI_EXCHANGE_TEXT;
    return a->text ? STINT_OK : STINT_E_MEMORY;
}

static stint_status read_value(sti_onnx_reader *r, const sti_proto_field *f,
                               const sti_exchange_graph *g, sti_exchange_attr *a)
{
    sti_exchange_tensor *t;
    const uint32_t low = (uint32_t)f->value;
    switch (f->number) {
    case 1:
        return sti_onnx_text(r, f, &a->name);
    case 2:
        a->kind = STI_EXCHANGE_FLOAT;
        memcpy(&a->f, &low, sizeof a->f);
        return STINT_OK;
    case 3:
        a->kind = STI_EXCHANGE_INT;
        a->i = (int64_t)f->value;
        return STINT_OK;
    case 4:
        a->kind = STI_EXCHANGE_TEXT;
        return sti_onnx_text(r, f, &a->text);
    case 5:
        a->kind = STI_EXCHANGE_TENSOR;
        a->tensor = t = sti_arena_alloc(r->arena, sizeof *t);
        if (!t)
            return STINT_E_MEMORY;
        return f->kind == STI_PROTO_BYTES ? sti_onnx_tensor(r, f, t)
                                          : sti_onnx_damaged(r, "an attribute");
    case 6:
        return f->kind == STI_PROTO_BYTES ? read_branch(r, f, g, a)
                                          : sti_onnx_damaged(r, "an attribute");
    case 9:
        return read_words(r, f, a);
    default:
        return STINT_OK;
    }
}

/* The field that holds the value follows from what is there; `type` (20) settles
 * lists, which may be empty. */
static stint_status read_attribute(sti_onnx_reader *r, const sti_proto_field *field,
                                   const sti_exchange_graph *g, sti_exchange_attr *a)
{
    sti_proto m = sti_proto_inside(field);
    const sti_proto whole = m;
    sti_proto_field f;
    uint64_t type = 0;
    bool ints = false, floats = false;
    stint_status st = STINT_OK;
    *a = (sti_exchange_attr){.name = "", .kind = STI_EXCHANGE_INT};
    while (st == STINT_OK && sti_proto_next(&m, &f)) {
        ints = ints || f.number == 8;
        floats = floats || f.number == 7;
        if (f.number == 20)
            type = f.value;
        st = read_value(r, &f, g, a);
    }
    if (st != STINT_OK)
        return st;
    if (m.broken)
        return sti_onnx_damaged(r, "an attribute");
    if (type == 6 || floats || type == 7 || ints)
        return read_list(r, whole, type == 6 || floats, a);
    return STINT_OK;
}

/* ---- nodes ---- */

static int64_t count_field(sti_proto m, uint32_t number)
{
    sti_proto_field f;
    int64_t count = 0;
    while (sti_proto_next(&m, &f))
        count += f.number == number;
    return count;
}

static stint_status node_room(sti_onnx_reader *r, sti_proto m, sti_exchange_node *n)
{
    const int64_t in = count_field(m, 1), out = count_field(m, 2),
                  attr = count_field(m, 5);
    if (in > 65535 || out > 65535 || attr > STI_ONNX_ATTRS_MOST)
        return sti_onnx_damaged(r, "a node of too many operands");
    n->in = sti_arena_alloc(r->arena, (size_t)in * sizeof *n->in + 1);
    n->out = sti_arena_alloc(r->arena, (size_t)out * sizeof *n->out + 1);
    n->attr = sti_arena_alloc(r->arena, (size_t)attr * sizeof *n->attr + 1);
    n->op = n->name = n->domain = "";
    return n->in && n->out && n->attr ? STINT_OK : STINT_E_MEMORY;
}

static stint_status read_node(sti_onnx_reader *r, const sti_proto_field *field,
                              sti_exchange_graph *g)
{
    sti_proto m = sti_proto_inside(field);
    sti_exchange_node n = {0};
    sti_proto_field f;
    stint_status st = node_room(r, m, &n);
    while (st == STINT_OK && sti_proto_next(&m, &f)) {
        if (f.number == 1)
            st = sti_onnx_text(r, &f, &n.in[n.n_in++]);
        else if (f.number == 2)
            st = sti_onnx_text(r, &f, &n.out[n.n_out++]);
        else if (f.number == 3)
            st = sti_onnx_text(r, &f, &n.name);
        else if (f.number == 4)
            st = sti_onnx_text(r, &f, &n.op);
        else if (f.number == 5)
            st = f.kind == STI_PROTO_BYTES
                     ? read_attribute(r, &f, g, &n.attr[n.n_attr++])
                     : sti_onnx_damaged(r, "a node");
        else if (f.number == 7)
            st = sti_onnx_text(r, &f, &n.domain);
    }
    if (st == STINT_OK && m.broken)
        st = sti_onnx_damaged(r, "a node");
    if (st != STINT_OK)
        return st;
    sti_exchange_node *row = sti_exchange_add_node(g);
    if (!row)
        return STINT_E_MEMORY;
    *row = n;
    return STINT_OK;
}

/* ---- inputs and outputs ---- */

static stint_status read_dim(sti_onnx_reader *r, const sti_proto_field *field,
                             sti_exchange_port *port)
{
    sti_proto m = sti_proto_inside(field);
    sti_proto_field f;
    stint_status st = STINT_OK;
    if (port->rank == STI_EXCHANGE_RANK)
        return sti_fail(STINT_E_UNSUPPORTED, "%s: '%.80s' has more than %d axes",
                        sti_shown(r->name), sti_shown(port->name), STI_EXCHANGE_RANK);
    const int at = port->rank++;
    while (st == STINT_OK && sti_proto_next(&m, &f)) {
        if (f.number == 1 && f.kind == STI_PROTO_VARINT)
            port->dim[at] = (int64_t)f.value > 0 ? (int64_t)f.value : 0;
        else if (f.number == 2)
            st = sti_onnx_text(r, &f, &port->symbol[at]);
    }
    return st != STINT_OK ? st : m.broken ? sti_onnx_damaged(r, "a shape") : STINT_OK;
}

/* TypeProto.Tensor: elem_type, shape. */
static stint_status read_tensor_type(sti_onnx_reader *r, const sti_proto_field *field,
                                     sti_exchange_port *port)
{
    sti_proto m = sti_proto_inside(field);
    sti_proto_field f, d;
    stint_status st = STINT_OK;
    while (st == STINT_OK && sti_proto_next(&m, &f)) {
        if (f.number == 1 && f.kind == STI_PROTO_VARINT)
            port->type = (int)(f.value & 0xffff);
        if (f.number != 2 || f.kind != STI_PROTO_BYTES)
            continue;
        sti_proto shape = sti_proto_inside(&f);
        port->rank = 0;
        while (st == STINT_OK && sti_proto_next(&shape, &d))
            if (d.number == 1 && d.kind == STI_PROTO_BYTES)
                st = read_dim(r, &d, port);
        m.broken = m.broken || shape.broken;
    }
    return st != STINT_OK ? st : m.broken ? sti_onnx_damaged(r, "a type") : STINT_OK;
}

static stint_status read_port(sti_onnx_reader *r, const sti_proto_field *field,
                              sti_exchange_port *port)
{
    sti_proto m = sti_proto_inside(field);
    sti_proto_field f, kind;
    stint_status st = STINT_OK;
    *port = (sti_exchange_port){.name = "", .rank = -1};
    while (st == STINT_OK && sti_proto_next(&m, &f)) {
        if (f.number == 1)
            st = sti_onnx_text(r, &f, &port->name);
        if (f.number != 2 || f.kind != STI_PROTO_BYTES)
            continue;
        sti_proto type = sti_proto_inside(&f);
        while (st == STINT_OK && sti_proto_next(&type, &kind))
            if (kind.number == 1 && kind.kind == STI_PROTO_BYTES)
                st = read_tensor_type(r, &kind, port);
        m.broken = m.broken || type.broken;
    }
    return st != STINT_OK ? st : m.broken ? sti_onnx_damaged(r, "an input") : STINT_OK;
}

/* ---- graph and model ---- */

static stint_status read_part(sti_onnx_reader *r, const sti_proto_field *f,
                              sti_exchange_graph *g)
{
    sti_exchange_tensor t;
    sti_exchange_port port, *row;
    stint_status st;
    switch (f->number) {
    case 1:
        return read_node(r, f, g);
    case 5: {
        if ((st = sti_onnx_tensor(r, f, &t)) != STINT_OK)
            return st;
        sti_exchange_tensor *to = sti_exchange_add_tensor(g);
        if (!to)
            return STINT_E_MEMORY;
        t.trained = t.floats != NULL;
        *to = t;
        return STINT_OK;
    }
    case 11:
    case 12:
        if ((st = read_port(r, f, &port)) != STINT_OK)
            return st;
        row = f->number == 11 ? sti_exchange_add_input(g) : sti_exchange_add_output(g);
        if (!row)
            return STINT_E_MEMORY;
        *row = port;
        return STINT_OK;
    case 15:
        return sti_fail(STINT_E_UNSUPPORTED, "%s: sparse tensors are not read here",
                        sti_shown(r->name));
    default:
        return STINT_OK;
    }
}

static stint_status read_graph(sti_onnx_reader *r, const sti_proto_field *field,
                               sti_exchange_graph *g)
{
    sti_proto m = sti_proto_inside(field);
    sti_proto_field f;
    stint_status st = STINT_OK;
    if (++r->depth > MAX_DEPTH)
        return sti_fail(STINT_E_INPUT, "%s: graphs lie within graphs more than %d deep",
                        sti_shown(r->name), MAX_DEPTH);
    while (st == STINT_OK && sti_proto_next(&m, &f))
        if (f.kind == STI_PROTO_BYTES)
            st = read_part(r, &f, g);
    r->depth--;
    return st != STINT_OK ? st : m.broken ? sti_onnx_damaged(r, "a graph") : STINT_OK;
}

/* OperatorSetIdProto; other domains than ONNX's own are refused by their nodes. */
static stint_status read_opset(sti_onnx_reader *r, const sti_proto_field *field,
                               sti_exchange_graph *g)
{
    sti_proto m = sti_proto_inside(field);
    sti_proto_field f;
    const char *domain = "";
    int64_t version = 0;
    stint_status st = STINT_OK;
    while (st == STINT_OK && sti_proto_next(&m, &f)) {
        if (f.number == 1)
            st = sti_onnx_text(r, &f, &domain);
        else if (f.number == 2 && f.kind == STI_PROTO_VARINT)
            version = (int64_t)f.value;
    }
    if (st == STINT_OK && (!domain[0] || strcmp(domain, "ai.onnx") == 0))
        g->opset = version;
    return st != STINT_OK ? st : m.broken ? sti_onnx_damaged(r, "an opset") : STINT_OK;
}

static stint_status read_model(sti_onnx_reader *r, sti_proto m, sti_exchange_graph *g,
                               bool *found)
{
    sti_proto_field f;
    stint_status st = STINT_OK;
    while (st == STINT_OK && sti_proto_next(&m, &f)) {
        if (f.kind != STI_PROTO_BYTES)
            continue;
        if (f.number == 2)
            st = sti_onnx_text(r, &f, &g->producer);
        else if (f.number == 8)
            st = read_opset(r, &f, g);
        else if (f.number == 25)
            st = sti_fail(STINT_E_UNSUPPORTED,
                          "%s: functions of a model's own are not read here; inline "
                          "them first (onnx.inliner.inline_local_functions)",
                          sti_shown(r->name));
        else if (f.number == 7) {
            st = read_graph(r, &f, g);
            *found = true;
        }
    }
    return st != STINT_OK ? st : m.broken ? sti_onnx_damaged(r, "the model") : STINT_OK;
}

static stint_status check_model(const sti_onnx_reader *r, const sti_exchange_graph *g,
                                bool found)
{
    if (!found || g->outputs == 0)
        return sti_onnx_damaged(r, "the model, which has no graph with outputs");
    if (g->opset < STI_ONNX_OPSET_FIRST || g->opset > STI_ONNX_OPSET_LAST)
        return sti_fail(STINT_E_UNSUPPORTED,
                        "%s: ONNX opset %" PRId64 "; opsets %d to %d are read here "
                        "(convert it by onnx.version_converter, or export it anew)",
                        sti_shown(r->name), g->opset, STI_ONNX_OPSET_FIRST,
                        STI_ONNX_OPSET_LAST);
    return STINT_OK;
}

stint_status sti_onnx_parse(const void *bytes, size_t n_bytes, const char *name,
                            const char *folder, sti_exchange_graph **graph_out)
{
    sti_exchange_graph *g = NULL;
    bool found = false;
    stint_status st = sti_exchange_graph_create(&g);
    if (st != STINT_OK)
        return st;
    g->producer = "";
    sti_onnx_reader r = {.name = name, .folder = folder, .arena = g->arena};
    st = read_model(&r, sti_proto_of(bytes, n_bytes), g, &found);
    if (st == STINT_OK)
        st = check_model(&r, g, found);
    if (st != STINT_OK) {
        sti_exchange_graph_destroy(g);
        return st;
    }
    *graph_out = g;
    return STINT_OK;
}

stint_status sti_onnx_read(const char *path, sti_exchange_graph **graph_out)
{
    void *bytes = NULL;
    size_t n_bytes = 0;
    sti_arena *arena = sti_arena_create("onnx");
    const char *folder = arena ? sti_path_folder(arena, path) : NULL;
    stint_status st =
        folder ? sti_file_read(path, MAX_BYTES, &bytes, &n_bytes) : STINT_E_MEMORY;
    if (st == STINT_OK)
        st = sti_onnx_parse(bytes, n_bytes, path, folder, graph_out);
    sti_free(bytes);
    sti_arena_destroy(arena);
    return st;
}
