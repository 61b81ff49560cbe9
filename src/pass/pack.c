/* Saved activations held packed (COMET, arXiv 2111.09562).
 *
 * A tensor qualifies when all that the backward half does with it is to make weight
 * gradients (its error then stays in that one gradient), or when it is the input of one
 * batch-norm. The second kind is packed normalised, and where no residual is added the
 * ReLU's result, which the next weight gradient reads, is made from the same block.
 *
 * pack stands after the last forward reader, unpack before the first backward one, and
 * every backward reader reads what was unpacked: the raw tensor then dies with the
 * forward half by its lifetime alone. */
#include <stdio.h>
#include <string.h>

#include "base/fail.h"
#include "base/units.h"
#include "op/op.h"
#include "op/op_norm_slots.h"
#include "pass/pack_priv.h"

/* ---- the order ---- */

/* Appended nodes stand at odd keys: after node n at 2 n + 1, before it at 2 n - 1. */
static stint_status set_order_key(packer *p, int32_t first, int32_t key)
{
    int32_t count = sti_graph_node_count(p->graph);
    if (count > p->key_capacity) {
        int32_t capacity = 2 * count + 64;
        int32_t *fresh =
            sti_realloc(p->key, (size_t)capacity * sizeof *fresh, "pass.pack");
        if (!fresh)
            return STINT_E_MEMORY;
        p->key = fresh;
        p->key_capacity = capacity;
    }
    for (int32_t n = first; n < count; n++)
        p->key[n] = key;
    return STINT_OK;
}

/* By ascending key, appended nodes of one key as they were appended. */
static stint_status reorder(packer *p)
{
    int32_t count = sti_graph_node_count(p->graph), keys = 2 * p->nodes + 2, at = 0;
    int32_t *begin = sti_alloc_array(keys + 1, sizeof *begin, "pass.pack");
    int32_t *order = sti_alloc_array(count, sizeof *order, "pass.pack");
    stint_status status = begin && order ? STINT_OK : STINT_E_MEMORY;
    for (int32_t n = 0; n < count && !status; n++)
        begin[p->key[n]]++;
    for (int32_t k = 0; k < keys && !status; k++) {
        int32_t here = begin[k];
        begin[k] = at;
        at += here;
    }
    for (int32_t n = 0; n < count && !status; n++)
        order[begin[p->key[n]]++] = n;
    if (!status)
        status = sti_graph_reorder(p->graph, order);
    sti_free(begin);
    sti_free(order);
    return status;
}

/* ---- rewriting ---- */

/* The compressed block of one choice. */
typedef struct block {
    int row;
    bool check;
    stint_value value, also;
    const sti_node *norm, *grad; /* batch-norm and its gradient, for the form NORM */
    const sti_node *pack;        /* appended */
    sti_node *unpack;
    stint_value x, y; /* unpacked: value, also (or what a sum takes as its residual) */
} block;

/* All of them, in the order of the choices. */
typedef struct block_list {
    block *block;
    int count;
} block_list;

static void add_metric(packer *p, const block *b, const char *what, stint_value value,
                       stint_value target)
{
    char name[64];
    snprintf(name, sizeof name, "pack.%d.%s", b->row, what);
    sti_graph_output(p->graph, &(sti_output){.kind = STI_OUTPUT_METRIC,
                                             .value = value,
                                             .target = target,
                                             .name = name});
}

static stint_status append_pack(packer *p, block *b, const sti_pack_choice *choice)
{
    stint_graph *g = p->graph;
    const sti_value_row *row = row_of(p, b->value);
    const bool norm = choice->form != STI_PACK_VALUE;
    const sti_pack_attr attr = {choice->capacity, b->row, norm,
                                choice->form == STI_PACK_SUM};
    int32_t first = sti_graph_node_count(g);
    stint_value v = sti_op_add_pack(
        g, &attr, b->value, p->bounds, norm ? b->grad->in[GRAD_MEAN] : STI_NO_INPUT,
        norm ? b->grad->in[GRAD_INVERSE] : STI_NO_INPUT,
        norm ? b->grad->in[GRAD_BITS] : sti_pack_bits_of(p, b->value));
    if (v < 0)
        return sti_graph_status(g);
    sti_node *pack = sti_graph_node(g, first);
    pack->scope = row->producer ? row->producer->scope : "";
    b->pack = pack;
    add_metric(p, b, "stats", pack->out[1], -1);
    return set_order_key(p, first, 2 * p->use[b->value].last_forward + 1);
}

static bool is_sum(const block *b)
{
    return ((const sti_pack_attr *)b->pack->attr)->sum != 0;
}

static int32_t first_of(int32_t a, int32_t b)
{
    return b >= 0 && b < a ? b : a;
}

static stint_status append_unpack(packer *p, block *b)
{
    stint_graph *g = p->graph;
    int32_t at = p->use[b->value].first_backward, first = sti_graph_node_count(g);
    stint_value scale = STI_NO_INPUT, shift = STI_NO_INPUT, residual = STI_NO_INPUT;
    if (b->also >= 0)
        at = first_of(at, p->use[b->also].first_backward);
    if (b->grad) {
        scale = b->norm->in[SCALE];
        shift = b->norm->in[SHIFT];
    }
    if (is_sum(b))
        residual = b->norm->in[RESIDUAL];
    sti_graph_set_backward(g, sti_graph_node(g, at));
    b->x = sti_op_add_unpack(g, b->pack, scale, shift, residual);
    b->y = b->x < 0 ? -1 : b->x + 1;
    sti_graph_set_backward(g, NULL);
    if (b->x < 0)
        return sti_graph_status(g);
    b->unpack = sti_graph_node(g, first);
    return set_order_key(p, first, 2 * at - 1);
}

/* What was unpacked, under the shape that the reader wants. */
static stint_status reshaped(packer *p, stint_value unpacked, const sti_node *reader,
                             stint_value wanted, stint_value *out)
{
    stint_graph *g = p->graph;
    const stint_shape have = stint_value_shape(g, unpacked);
    const stint_shape want = stint_value_shape(g, wanted);
    *out = unpacked;
    if (sti_shape_equal(&have, &want))
        return STINT_OK;
    int32_t first = sti_graph_node_count(g);
    sti_graph_set_backward(g, reader);
    *out = stint_reshape(g, unpacked, &want);
    sti_graph_set_backward(g, NULL);
    return *out < 0 ? sti_graph_status(g) : set_order_key(p, first, 2 * reader->id - 1);
}

/* The same gradient from the raw tensor, and the mean square of the difference. */
static stint_status append_check(packer *p, const block *b, const sti_node *reader,
                                 const stint_value *raw, int out, stint_value target)
{
    stint_graph *g = p->graph;
    int32_t first = sti_graph_node_count(g);
    stint_shape shape = stint_value_shape(g, reader->out[out]);
    sti_graph_set_backward(g, reader);
    stint_value exact = sti_graph_add(g, reader->op, reader->attr, reader->n_in, raw);
    stint_value difference =
        exact < 0 ? -1 : stint_sub(g, reader->out[out], exact + out);
    stint_value error =
        stint_mean(g, stint_square(g, difference), (1u << shape.rank) - 1u, false);
    sti_graph_set_backward(g, NULL);
    if (error < 0)
        return sti_graph_status(g);
    add_metric(p, b, "error", error, target);
    return set_order_key(p, first, 2 * reader->id + 1);
}

static stint_status append_gain(packer *p, const block *b, const sti_node *reader,
                                int operand, int out, stint_value factor)
{
    stint_graph *g = p->graph;
    const sti_output *gradient = sti_pack_gradient_of(p, reader->out[out]);
    int32_t first = sti_graph_node_count(g);
    if (!gradient)
        return STINT_OK; /* the parameter is not trained */
    stint_value target = gradient->target;
    sti_graph_set_backward(g, reader);
    stint_value gain = sti_op_add_error_gain(g, reader, operand, b->pack, factor);
    sti_graph_set_backward(g, NULL);
    if (gain < 0)
        return sti_graph_status(g);
    add_metric(p, b, "gain", gain, target);
    return set_order_key(p, first, 2 * reader->id + 1);
}

/* The block that a residual is made again from, or NULL; *made_out: what unpacking
 * makes of it. */
static const block *block_behind(const packer *p, const block_list *blocks,
                                 stint_value residual, stint_value *made_out)
{
    const stint_value content = content_of(p, residual);
    for (int i = 0; i < blocks->count; i++) {
        const block *b = &blocks->block[i];
        *made_out = b->norm ? b->y : b->x;
        if (b->norm ? b->norm->out[Y] == content &&
                          is_sum(b) == sti_pack_has_residual(b->norm)
                    : b->value == content)
            return b;
    }
    return NULL;
}

/* Errors in a sum: that of its block, and those of the blocks its residual comes from.
 */
static stint_status append_gains(packer *p, const block_list *blocks, const block *b,
                                 const sti_node *reader, int operand, int out,
                                 bool of_norm)
{
    stint_status st = STINT_OK;
    while (b && st == STINT_OK) {
        stint_value made;
        st = append_gain(p, b, reader, operand, out,
                         of_norm ? b->norm->in[SCALE] : STI_NO_INPUT);
        b = of_norm && is_sum(b) ? block_behind(p, blocks, b->norm->in[RESIDUAL], &made)
                                 : NULL;
        of_norm = b && b->norm;
    }
    return st;
}

/* One read of what was packed becomes a read of what was unpacked. */
static stint_status redirect(packer *p, const block_list *blocks, const block *b,
                             sti_node *reader, int32_t k, stint_value unpacked)
{
    reader_kind kind = sti_pack_kind_of(p, reader, k);
    const bool of_norm = unpacked == b->y;
    const int out = kind == READER_NORM ? SCALE : 0;
    stint_value raw[8], instead, wanted = reader->in[k];
    stint_status st = reshaped(p, unpacked, reader, wanted, &instead);
    if (st != STINT_OK)
        return st;
    memcpy(raw, reader->in, (size_t)reader->n_in * sizeof *raw);
    reader->in[k] = instead;
    if (kind == READER_OTHER)
        return STINT_OK;
    st = append_gains(p, blocks, b, reader, k, out, of_norm);
    const sti_output *gradient = sti_pack_gradient_of(p, reader->out[out]);
    if (st == STINT_OK && b->check && gradient)
        st = append_check(p, b, reader, raw, out, gradient->target);
    return st;
}

/* All backward reads of one packed content. */
static stint_status redirect_all(packer *p, const block_list *blocks, const block *b,
                                 stint_value content, stint_value unpacked)
{
    stint_status st = STINT_OK;
    for (int32_t n = 0; n < p->nodes && st == STINT_OK; n++) {
        sti_node *node = sti_graph_node(p->graph, n);
        if (!node->backward || (node->op->flags & STI_OP_VIEW))
            continue;
        for (int32_t k = 0; k < node->n_in && st == STINT_OK; k++)
            if (content_of(p, node->in[k]) == content)
                st = redirect(p, blocks, b, node, k, unpacked);
    }
    return st;
}

static bool is_possible(const packer *p, const sti_pack_choice *choice)
{
    if (choice->value < 0 || choice->value >= p->values)
        return false;
    if (choice->form == STI_PACK_VALUE)
        return sti_pack_only_weights(p, choice->value);
    return sti_pack_is_norm_input(p, choice->value) &&
           (choice->form == STI_PACK_NORM ||
            sti_pack_sum_of(p, sti_pack_norm_of(p, p->use[choice->value].norm_grad)) >=
                0);
}

/* The nodes of one choice; *b knows them afterwards. */
static stint_status append_block(packer *p, const sti_pack_choice *choice, block *b)
{
    if (!is_possible(p, choice))
        return sti_fail(STINT_E_BUG, "pack: value %d (%s) is no candidate",
                        (int)choice->value, stint_value_name(p->graph, choice->value));
    b->value = choice->value;
    b->also = -1;
    if (choice->form != STI_PACK_VALUE) {
        b->grad = p->use[choice->value].norm_grad;
        b->norm = sti_pack_norm_of(p, b->grad);
        b->also = choice->form == STI_PACK_SUM ? sti_pack_sum_of(p, b->norm)
                                               : sti_pack_also_of(p, b->norm);
    }
    stint_status st = append_pack(p, b, choice);
    return st == STINT_OK ? append_unpack(p, b) : st;
}

/* Residuals that are made again are read as such. */
static void link_residuals(packer *p, const block_list *blocks)
{
    enum { UNPACK_RESIDUAL = 6 };
    for (int i = 0; i < blocks->count; i++) {
        const block *b = &blocks->block[i];
        stint_value made;
        if (is_sum(b) && block_behind(p, blocks, b->norm->in[RESIDUAL], &made))
            b->unpack->in[UNPACK_RESIDUAL] = made;
    }
}

static stint_status pack_choices(packer *p, const sti_pack_choice *choices,
                                 block_list *blocks, bool check)
{
    stint_status st = STINT_OK;
    for (int i = 0; i < blocks->count && st == STINT_OK; i++) {
        blocks->block[i] = (block){.row = i, .check = check};
        st = append_block(p, &choices[i], &blocks->block[i]);
    }
    if (st == STINT_OK)
        link_residuals(p, blocks);
    for (int i = 0; i < blocks->count && st == STINT_OK; i++) {
        const block *b = &blocks->block[i];
        st = redirect_all(p, blocks, b, b->value, b->x);
        if (st == STINT_OK && b->also >= 0)
            st = redirect_all(p, blocks, b, b->also, b->y);
    }
    return st;
}

stint_status sti_pass_pack(stint_graph *graph, const sti_pack_choice *choices,
                           int count, bool check, sti_pass_note *note)
{
    packer p = {.graph = graph};
    if (count == 0)
        return STINT_OK;
    block_list blocks = {sti_alloc_array(count, sizeof(block), "pass.pack"), count};
    stint_status status = blocks.block ? STINT_OK : STINT_E_MEMORY;
    sti_pass_clear_inplace(graph);
    const stint_shape table = STINT_SHAPE(count, STI_BOUND_FIELDS);
    if (!status) {
        p.bounds = stint_input(graph, "bounds", &table);
        status = p.bounds < 0 ? sti_graph_status(graph) : sti_packer_init(&p);
    }
    if (!status)
        status = set_order_key(&p, 0, 0);
    for (int32_t n = 0; n < p.nodes && !status; n++)
        p.key[n] = 2 * n;
    if (!status)
        status = pack_choices(&p, choices, &blocks, check);
    if (!status)
        status = reorder(&p);
    if (!status)
        status = sti_graph_sort(graph); /* residuals before their sums */
    if (!status)
        status = sti_graph_status(graph);
    sti_pass_note_set(note, "%d tensor%s held packed", count, sti_s(count));
    sti_packer_fini(&p);
    sti_free(blocks.block);
    return status;
}
