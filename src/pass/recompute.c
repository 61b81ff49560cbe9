/* Recomputation: activations made again in the backward half instead of being kept.
 *
 * A dropped value is made again by a copy of its node that reads the same operands:
 * leaves and kept values as they are, dropped ones through copies of their own. Every
 * operator is a function of its operands and, where random, of a counter, so the bits
 * are those of the first time; only shift registers, which have moved on, draw no
 * weight a second time. Batch statistics are small and stay: a batch-norm is repeated
 * by its second half only.
 *
 * Copies are put just before the first node that reads them. After Chen et al. 2016,
 * "Training Deep Nets with Sublinear Memory Cost", with any set of kept values. */
#include "base/fail.h"
#include "op/op_bayes.h"
#include "op/op_norm_slots.h"
#include "pass/pass_priv.h"

/* Copies a node of the graph, all in all: values that are made anew for each reader
 * multiply where one is made of others. */
#define MOST_COPIES 4

typedef struct repeater {
    stint_graph *graph;
    const uint8_t *form;  /* [form_values] */
    stint_value *content; /* [values], see sti_pass_contents */
    stint_value *again;   /* [values]: its copy, -1: none yet */
    const sti_node **of;  /* [values]: the reader that a repeated copy belongs to */
    uint8_t *kept;        /* [values]: leaves the graph, or a batch's statistics */
    int32_t values;       /* before the pass */
    int32_t form_values;
    int32_t made;
} repeater;

static sti_form form_of(const repeater *r, stint_value value)
{
    if (value < 0 || value >= r->values)
        return STI_FORM_KEEP;
    stint_value content = r->content[value];
    const sti_node *producer = sti_graph_value(r->graph, value)->producer;
    if (!producer || producer->backward || r->kept[content] ||
        producer->op == &sti_op_lfsr_noise ||
        !sti_graph_value(r->graph, content)->producer)
        return STI_FORM_KEEP;
    return content < r->form_values ? (sti_form)r->form[content] : STI_FORM_KEEP;
}

/* The second half of a batch-norm, from the statistics of the first time. */
static stint_value append_apply(repeater *r, const sti_node *norm)
{
    const stint_value in[6] = {norm->in[X],        norm->in[SCALE], norm->in[SHIFT],
                               norm->in[RESIDUAL], norm->out[MEAN], norm->out[INVERSE]};
    stint_value y =
        sti_graph_add(r->graph, &sti_op_batch_norm_apply, norm->attr, 6, in);
    if (y >= 0) {
        r->again[norm->out[Y]] = y;
        r->again[norm->out[BITS]] = y + 1;
    }
    return y;
}

static bool is_training_norm(const sti_node *node)
{
    return node->op == &sti_op_batch_norm &&
           !((const sti_batch_norm_attr *)node->attr)->eval;
}

/* A copy of the node that makes `value`. Its operands are looked at when the walk
 * comes to it, like those of any other node of the backward half. */
static void append_again(repeater *r, const sti_node *node)
{
    stint_value first;
    sti_graph_set_backward(r->graph, node);
    if (is_training_norm(node)) {
        first = append_apply(r, node);
    } else {
        first = sti_graph_add(r->graph, node->op, node->attr, node->n_in, node->in);
        for (int32_t i = 0; i < node->n_out && first >= 0; i++)
            r->again[node->out[i]] = first + i;
    }
    sti_graph_set_backward(r->graph, NULL);
    if (first >= 0) {
        sti_graph_node(r->graph, sti_graph_node_count(r->graph) - 1)->again = true;
        r->made++;
    }
}

/* What `reader` reads instead of `value`. */
static stint_value read_by(repeater *r, const sti_node *reader, stint_value value)
{
    sti_form form = form_of(r, value);
    if (form == STI_FORM_KEEP)
        return value;
    bool repeat = form == STI_FORM_REPEAT && r->of[value] != reader;
    if (r->again[value] < 0 || repeat) {
        const sti_node *node = sti_graph_value(r->graph, value)->producer;
        append_again(r, node);
        for (int32_t i = 0; i < node->n_out; i++)
            r->of[node->out[i]] = reader;
    }
    return r->again[value];
}

/* Results lie in blocks of their own anyway; statistics are what norms are repeated
 * from. */
static void mark_kept(repeater *r)
{
    for (int32_t i = 0; i < sti_graph_output_count(r->graph); i++)
        r->kept[r->content[sti_graph_outputs(r->graph)[i].value]] = 1;
    for (int32_t n = 0; n < sti_graph_node_count(r->graph); n++) {
        const sti_node *node = sti_graph_node(r->graph, n);
        for (int32_t i = 1; i < node->n_out && is_training_norm(node); i++)
            r->kept[node->out[i]] |= i != BITS;
    }
}

static stint_status repeater_init(repeater *r)
{
    r->values = sti_graph_value_count(r->graph);
    r->content = sti_alloc_array(r->values, sizeof *r->content, "pass.recompute");
    r->again = sti_alloc_array(r->values, sizeof *r->again, "pass.recompute");
    r->of = sti_alloc_array(r->values, sizeof(sti_node *), "pass.recompute");
    r->kept = sti_alloc_array(r->values, sizeof *r->kept, "pass.recompute");
    if (!r->content || !r->again || !r->of || !r->kept)
        return STINT_E_MEMORY;
    for (int32_t v = 0; v < r->values; v++)
        r->again[v] = -1;
    sti_pass_contents(r->graph, r->content);
    mark_kept(r);
    return STINT_OK;
}

static void repeater_fini(repeater *r)
{
    sti_free(r->content);
    sti_free(r->again);
    sti_free(r->of);
    sti_free(r->kept);
}

static stint_status rewrite_reads(repeater *r, sti_node *node)
{
    for (int32_t i = 0; i < node->n_in; i++) {
        stint_value instead = read_by(r, node, node->in[i]);
        if (instead < 0 && node->in[i] >= 0)
            return sti_graph_status(r->graph);
        node->in[i] = instead;
    }
    return STINT_OK;
}

stint_status sti_pass_recompute(stint_graph *graph, const uint8_t *form,
                                int32_t form_values, sti_pass_note *note)
{
    repeater r = {.graph = graph, .form = form, .form_values = form_values};
    int32_t most = MOST_COPIES * sti_graph_node_count(graph) + MOST_COPIES;
    stint_status status = repeater_init(&r);

    sti_pass_clear_inplace(graph);
    for (int32_t n = 0; status == STINT_OK && n < sti_graph_node_count(graph); n++) {
        sti_node *node = sti_graph_node(graph, n); /* there are more on the way */
        if (node->backward)
            status = rewrite_reads(&r, node);
        if (status == STINT_OK && r.made > most)
            status = sti_fail(STINT_E_UNSUPPORTED,
                              "recompute: more than %d nodes to run again; keep more",
                              (int)most);
    }
    if (status)
        goto done;
    status = sti_graph_sort(graph);
    sti_pass_note_set(note, "%d nodes run again", (int)r.made);
done:
    repeater_fini(&r);
    return status;
}
