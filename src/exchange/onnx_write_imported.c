/* An imported network as the ONNX file that it came from, in essence: nodes are kept as
 * they were, constants are those that were folded, tensors go back to their own order
 * of axes. */
#include <inttypes.h>
#include <string.h>

#include "base/fail.h"
#include "base/shown.h"
#include "exchange/classify.h"
#include "exchange/known.h"
#include "exchange/onnx_pieces.h"

typedef struct imported_writer {
    sti_onnx_writer w;
    const sti_imported *m;
    const sti_exchange_graph *g;
    const char *normalised; /* what stands for the input; NULL: itself */
} imported_writer;

/* ---- tensors ---- */

/* Whole numbers in as many bytes as their type has, little-endian. */
static void pack_words(const sti_exchange_tensor *t, size_t each, uint8_t *to)
{
    for (int64_t i = 0; i < t->count; i++)
        for (size_t k = 0; k < each; k++)
            *to++ = (uint8_t)((uint64_t)t->words[i] >> 8 * k);
}

static void pack_doubles(const sti_exchange_tensor *t, double *to)
{
    for (int64_t i = 0; i < t->count; i++)
        to[i] = (double)t->floats[i];
}

static stint_status write_tensor(imported_writer *q, const sti_exchange_tensor *t)
{
    const sti_exchange_tensor *plain = sti_known_plain(q->w.arena, t);
    const size_t each = sti_exchange_type_bytes(t->type),
                 n_bytes = (size_t)t->count * each;
    void *room = sti_arena_alloc(q->w.arena, n_bytes + 1);
    if (!plain || !room)
        return STINT_E_MEMORY;
    if (t->words)
        pack_words(plain, each, room);
    else if (t->type == STI_EXCHANGE_F64)
        pack_doubles(plain, room);
    else if (n_bytes)
        memcpy(room, plain->floats, n_bytes);
    sti_onnx_add_tensor(&q->w, t->name, t->type, t->rank, t->dim, room, n_bytes);
    return STINT_OK;
}

/* ---- nodes ---- */

static void write_attr(sti_text *node, const sti_exchange_attr *a)
{
    static const int types[] = {2, 1, 3, 7, 6};
    sti_text m = {0};
    sti_proto_add_text(&m, 1, a->name);
    if (a->kind == STI_EXCHANGE_INT)
        sti_proto_add_int(&m, 3, a->i);
    else if (a->kind == STI_EXCHANGE_FLOAT)
        sti_proto_add_float(&m, 2, a->f);
    else if (a->kind == STI_EXCHANGE_TEXT)
        sti_proto_add_text(&m, 4, a->text);
    for (int64_t i = 0; a->kind == STI_EXCHANGE_INTS && i < a->count; i++)
        sti_proto_add_int(&m, 8, a->ints[i]);
    for (int64_t i = 0; a->kind == STI_EXCHANGE_FLOATS && i < a->count; i++)
        sti_proto_add_float(&m, 7, a->floats[i]);
    sti_proto_add_int(&m, 20, types[a->kind]);
    sti_proto_add_message(node, 5, &m);
}

static void write_node(imported_writer *q, const sti_exchange_node *n)
{
    sti_text m = {0};
    for (int i = 0; i < n->n_in; i++)
        sti_proto_add_text(&m, 1,
                           q->normalised && strcmp(n->in[i], q->g->input[0].name) == 0
                               ? q->normalised
                               : n->in[i]);
    for (int i = 0; i < n->n_out; i++)
        sti_proto_add_text(&m, 2, n->out[i]);
    sti_proto_add_text(&m, 3, n->name);
    sti_proto_add_text(&m, 4, n->op);
    for (int i = 0; i < n->n_attr; i++)
        write_attr(&m, &n->attr[i]);
    sti_proto_add_message(&q->w.body, STI_ONNX_NODE, &m);
}

/* ---- names ---- */

static bool begins(const char *name, const char *prefix)
{
    return strncmp(name, prefix, strlen(prefix)) == 0;
}

/* Does a name of the network, of a value or node, begin so? */
static bool is_taken(const sti_exchange_graph *g, const char *prefix)
{
    bool taken = false;
    for (int64_t i = 0; i < g->inputs; i++)
        taken = taken || begins(g->input[i].name, prefix);
    for (int64_t i = 0; i < g->tensors; i++)
        taken = taken || begins(g->tensor[i].name, prefix);
    for (int64_t i = 0; i < g->nodes; i++) {
        taken = taken || begins(g->node[i].name, prefix);
        for (int k = 0; k < g->node[i].n_out; k++)
            taken = taken || begins(g->node[i].out[k], prefix);
    }
    return taken;
}

/* A beginning of names that no name of the network has: another file of Stint has been
 * given such names before. */
static stint_status choose_prefix(imported_writer *q)
{
    int64_t i = 0;
    do
        q->w.prefix = i++ ? sti_arena_printf(q->w.arena, "normalise%" PRId64 ".", i)
                          : "normalise.";
    while (q->w.prefix && is_taken(q->g, q->w.prefix));
    return q->w.prefix ? STINT_OK : STINT_E_MEMORY;
}

/* ---- the graph ---- */

/* Pixels from 0 to 1 in front; an input with channels last is turned and back. */
static stint_status add_normalisation(imported_writer *q)
{
    static const int64_t to_first[4] = {0, 3, 1, 2}, to_last[4] = {0, 2, 3, 1};
    const sti_exchange_port *port = q->g->inputs == 1 ? &q->g->input[0] : NULL;
    const sti_data_norm norm = sti_image_form_norm(&q->m->images);
    stint_shape shape = {.rank = port ? port->rank : 0, .dtype = STINT_F32};
    bool last;
    for (int i = 0; i < shape.rank && i < STINT_MAX_RANK; i++)
        shape.dim[i] = port->dim[i];
    if (!port || port->type != STI_EXCHANGE_F32 ||
        !sti_classifier_takes(&shape, q->m->images.layout, &last))
        return sti_fail(STINT_E_UNSUPPORTED,
                        "%s: its inputs are not one of pictures, which could be "
                        "normalised",
                        sti_shown(q->m->path));
    const char *x = port->name;
    if (last)
        x = sti_onnx_add_transposed(&q->w, x, 4, to_first);
    x = sti_onnx_add_normalised(&q->w, x, &norm, shape.dim[last ? 3 : 1]);
    q->normalised = last ? sti_onnx_add_transposed(&q->w, x, 4, to_last) : x;
    return STINT_OK;
}

static stint_status check_type(const imported_writer *q, const char *name, int type)
{
    if (type != STI_EXCHANGE_F16 && type != STI_EXCHANGE_BF16)
        return STINT_OK;
    return sti_fail(STINT_E_UNSUPPORTED,
                    "%s: '%.80s' is of numbers of 16 bits, which are not written here; "
                    "import the network from a file of float32",
                    sti_shown(q->m->path), sti_shown(name));
}

static stint_status write_graph(imported_writer *q, bool normalise)
{
    stint_status st = STINT_OK;
    for (int64_t i = 0; i < q->g->inputs && st == STINT_OK; i++) {
        const sti_exchange_port *p = &q->g->input[i];
        st = check_type(q, p->name, p->type);
        sti_onnx_add_port(&q->w, STI_ONNX_INPUT, p->name, p->type, p->rank, p->dim);
    }
    for (int64_t i = 0; i < q->g->tensors && st == STINT_OK; i++) {
        st = check_type(q, q->g->tensor[i].name, q->g->tensor[i].type);
        if (st == STINT_OK)
            st = write_tensor(q, &q->g->tensor[i]);
    }
    if (st == STINT_OK && normalise)
        st = choose_prefix(q);
    if (st == STINT_OK && normalise)
        st = add_normalisation(q);
    for (int64_t i = 0; i < q->g->nodes && st == STINT_OK; i++)
        write_node(q, &q->g->node[i]);
    for (int64_t i = 0; i < q->g->outputs && st == STINT_OK; i++) {
        sti_exchange_port p = q->g->output[i];
        st = check_type(q, p.name, p.type);
        if (sti_exchange_is_padded(q->g, p.name))
            p.dim[0] = 0; /* elsewhere there are as many as are chosen */
        sti_onnx_add_port(&q->w, STI_ONNX_OUTPUT, p.name, p.type, p.rank, p.dim);
    }
    return st == STINT_OK && (q->w.no_memory || q->w.body.failed) ? STINT_E_MEMORY : st;
}

stint_status sti_onnx_write_imported(const sti_imported *m, const char *path,
                                     const sti_onnx_write_options *options)
{
    const sti_onnx_write_options as_it_is = {.opset = m->source->opset, .batch = 1};
    imported_writer q = {.w = {.options = &as_it_is}, .m = m, .g = m->source};
    q.w.arena = sti_arena_create("onnx");
    stint_status st = q.w.arena ? write_graph(&q, options->normalise) : STINT_E_MEMORY;
    if (st == STINT_OK)
        st = sti_onnx_write_file(&q.w, "imported", m->source->opset, path);
    sti_text_fini(&q.w.body);
    sti_arena_destroy(q.w.arena);
    return st;
}
