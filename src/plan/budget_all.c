/* Everything held packed, where that is the cheaper way not to keep it. A network's
 * first convolution sees few channels: it makes its large result in less time than a
 * block of it takes to code, and to the last bit. A residual sum is an addition away
 * from the block of what it adds, which is unpacked in any case. */
#include <string.h>

#include "op/op_bf16.h"
#include "plan/budget.h"
#include "plan/plan_priv.h"

/* Sums that are made of each other, at most. All of them are there at once, and what
 * comes through a sum's own ReLU is taken as if it came whole: for two in a row the
 * error predicted was found an eighth too large. */
#define MOST_SUMS 1

typedef struct chooser {
    const stint_graph *graph;
    const sti_budget *budget;
    size_t height;            /* without sums */
    sti_pack_candidate *list; /* [count] */
    int count;
    uint8_t *saved; /* [values] */
    uint8_t *sums;  /* [values]: how many are made of each other for this one */
    uint8_t *form;  /* [values], the result */
} chooser;

static const sti_node *maker(const chooser *c, stint_value value)
{
    return sti_graph_value(c->graph, value)->producer;
}

static bool reads_leaves_only(const chooser *c, const sti_node *node)
{
    for (int32_t i = 0; i < node->n_in; i++)
        if (node->in[i] >= 0 && maker(c, node->in[i]))
            return false;
    return true;
}

/* To make the candidate again, and what its block would stand for beside it. */
static double again_seconds(const chooser *c, const sti_pack_candidate *p)
{
    double seconds = sti_budget_node_seconds(c->graph, maker(c, p->value));
    if (p->also >= 0)
        seconds += sti_budget_node_seconds(c->graph, maker(c, p->also));
    return seconds;
}

static void choose_form(chooser *c, const sti_pack_candidate *p)
{
    if (!c->saved[p->value]) /* images are there anyway */
        return;
    const bool again = reads_leaves_only(c, maker(c, p->value)) &&
                       again_seconds(c, p) < p->pack_s + p->unpack_s;
    c->form[p->value] = again ? STI_FORM_RECOMPUTE : STI_FORM_PACK;
    if (p->also >= 0 && again)
        c->form[p->also] = STI_FORM_RECOMPUTE;
}

/* Will the residual be there without being kept for it? */
static bool is_made(const chooser *c, stint_value residual)
{
    const sti_node *node = maker(c, residual);
    if (c->form[residual] != STI_FORM_KEEP)
        return true;
    /* The block of a batch-norm without a residual of its own gives it. */
    for (int i = 0; i < c->count && node; i++)
        if (sti_op_is_batch_norm(node->op) && c->list[i].value == node->in[0])
            return c->list[i].sum < 0 && c->form[node->in[0]] == STI_FORM_PACK;
    return false;
}

static bool can_be_sum(const chooser *c, const sti_pack_candidate *p)
{
    return p->sum >= 0 && c->form[p->value] == STI_FORM_PACK &&
           is_made(c, p->residual) && c->sums[p->residual] < MOST_SUMS;
}

/* Make the sum, unless the run gets higher by what is there at once for it. */
static stint_status try_sum(chooser *c, const sti_pack_candidate *p)
{
    const uint8_t was = c->form[p->sum];
    size_t height = 0;
    c->form[p->value] = STI_FORM_PACK_SUM;
    c->form[p->sum] = STI_FORM_RECOMPUTE;
    stint_status status = sti_budget_height(c->graph, c->budget, c->form, &height);
    if (status == STINT_OK && height <= c->height) {
        c->sums[p->sum] = (uint8_t)(c->sums[p->residual] + 1);
        return STINT_OK;
    }
    c->form[p->value] = STI_FORM_PACK;
    c->form[p->sum] = was;
    return status;
}

/* In the order of the network: a sum's residual may be a sum. */
static stint_status choose_sums(chooser *c)
{
    stint_status status = sti_budget_height(c->graph, c->budget, c->form, &c->height);
    for (int32_t n = 0; n < sti_graph_node_count(c->graph); n++) {
        const sti_node *node = sti_graph_node(c->graph, n);
        for (int i = 0; i < c->count && sti_op_is_batch_norm(node->op); i++)
            if (c->list[i].value == node->in[0] && can_be_sum(c, &c->list[i]) &&
                status == STINT_OK)
                status = try_sum(c, &c->list[i]);
    }
    return status;
}

stint_status sti_budget_pack_all(const stint_graph *graph, const sti_budget *budget,
                                 uint8_t *form_out)
{
    const int64_t values = sti_graph_value_count(graph);
    chooser c = {
        .graph = graph,
        .budget = budget,
        .list = sti_alloc_array(values, sizeof(sti_pack_candidate), "budget.packs"),
        .saved = sti_alloc((size_t)values, "budget.packs"),
        .sums = sti_alloc((size_t)values, "budget.packs"),
        .form = form_out};
    stint_status status = c.list && c.saved && c.sums
                              ? sti_pack_candidates(graph, c.list, &c.count)
                              : STINT_E_MEMORY;
    if (status == STINT_OK)
        status = sti_budget_saved(graph, c.saved);
    memset(form_out, STI_FORM_KEEP, (size_t)values);
    for (int i = 0; i < c.count && status == STINT_OK; i++)
        choose_form(&c, &c.list[i]);
    if (status == STINT_OK)
        status = choose_sums(&c);
    sti_free(c.list);
    sti_free(c.saved);
    sti_free(c.sums);
    return status;
}
