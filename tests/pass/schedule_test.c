/* The order of nodes on random small graphs, against all orders that there are: what
 * the schedule says of its peak is what a plain count finds, looking ahead is never
 * worse and sometimes better, and the bound is below the best order. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>

#include "base/memory.h"
#include "base/rng.h"
#include "pass/pass.h"

enum { NODES = 9, INPUTS = 2, VALUES = NODES + INPUTS, GRAPHS = 200, ALIGN = 64 };

static stint_status infer_blend(const stint_graph *g, const sti_node *n,
                                stint_shape *out)
{
    (void)g;
    out[0] = STINT_SHAPE(*(const int64_t *)n->attr);
    return STINT_OK;
}

static const sti_op blend = {
    .name = "blend", .n_out = 1, .attr_bytes = sizeof(int64_t), .infer = infer_blend};

static uint32_t draw(uint64_t seed, uint64_t *at, uint32_t below)
{
    uint32_t w[4];
    sti_random4(seed, STI_STREAM_TEST, (*at)++, 0, w);
    return w[0] % below;
}

/* Values are inputs, then one a node; what nobody reads leaves the graph. */
static stint_graph *random_graph(uint64_t seed)
{
    stint_graph *g = NULL;
    uint64_t at = 0;
    bool read[VALUES] = {false};
    assert_int_equal(stint_graph_create(STINT_TRAIN, &g), STINT_OK);
    for (int i = 0; i < INPUTS; i++) {
        const stint_shape shape = STINT_SHAPE(16 * (1 + draw(seed, &at, 8)));
        assert_int_equal(stint_input(g, i ? "b" : "a", &shape), i);
    }
    for (int n = 0; n < NODES; n++) {
        const int64_t length = 16 * (1 + draw(seed, &at, 12));
        const int count = 1 + (int)draw(seed, &at, 3);
        stint_value in[3];
        for (int i = 0; i < count; i++) {
            const uint32_t any = draw(seed, &at, (uint32_t)(INPUTS + n));
            in[i] = n < INPUTS && i == 0 ? n : (stint_value)any; /* all inputs */
            read[in[i]] = true;
        }
        assert_int_equal(sti_graph_add(g, &blend, &length, count, in), INPUTS + n);
    }
    for (int v = INPUTS; v < VALUES; v++) {
        char name[8];
        snprintf(name, sizeof name, "out%d", v);
        if (!read[v])
            sti_graph_output(g, &(sti_output){.kind = STI_OUTPUT_FETCH,
                                              .value = v,
                                              .target = -1,
                                              .name = name});
    }
    return g;
}

/* ---- a plain count ---- */

typedef struct plain {
    int in[NODES][3], count[NODES];
    size_t bytes[VALUES]; /* 0: it leaves the graph, and lies elsewhere */
    int order[NODES];
    size_t best;
} plain;

static plain plain_of(const stint_graph *g)
{
    plain p = {.best = SIZE_MAX};
    for (int v = 0; v < VALUES; v++)
        p.bytes[v] = (stint_shape_bytes(&sti_graph_value(g, v)->shape) + ALIGN - 1) /
                     ALIGN * ALIGN;
    for (int i = 0; i < sti_graph_output_count(g); i++)
        p.bytes[sti_graph_outputs(g)[i].value] = 0;
    for (int n = 0; n < NODES; n++) {
        const sti_node *node = sti_graph_node(g, n);
        const int at = node->out[0] - INPUTS; /* nodes by what they make */
        p.order[n] = at;
        p.count[at] = node->n_in;
        for (int i = 0; i < node->n_in; i++)
            p.in[at][i] = node->in[i];
    }
    return p;
}

static bool reads(const plain *p, int node, int value)
{
    for (int i = 0; i < p->count[node]; i++)
        if (p->in[node][i] == value)
            return true;
    return false;
}

/* Is the value there at place k: made by then, and read at k or later? */
static bool is_alive(const plain *p, int value, int k)
{
    if (value >= INPUTS && p->order[k] == value - INPUTS)
        return true;
    for (int i = 0; i < k && value >= INPUTS; i++)
        if (p->order[i] == value - INPUTS)
            break;
        else if (i == k - 1)
            return false;
    if (value >= INPUTS && k == 0)
        return false;
    for (int i = k; i < NODES; i++)
        if (reads(p, p->order[i], value))
            return true;
    return false;
}

static size_t count_peak(const plain *p)
{
    size_t peak = 0;
    for (int k = 0; k < NODES; k++) {
        size_t live = 0;
        for (int v = 0; v < VALUES; v++)
            live += is_alive(p, v, k) ? p->bytes[v] : 0;
        peak = live > peak ? live : peak;
    }
    return peak;
}

static void try_orders(plain *p, int placed, unsigned done)
{
    if (placed == NODES) {
        const size_t peak = count_peak(p);
        p->best = peak < p->best ? peak : p->best;
        return;
    }
    for (int n = 0; n < NODES; n++) {
        bool ready = !(done >> n & 1u);
        for (int i = 0; i < p->count[n] && ready; i++)
            ready = p->in[n][i] < INPUTS || (done >> (p->in[n][i] - INPUTS) & 1u);
        if (!ready)
            continue;
        p->order[placed] = n;
        try_orders(p, placed + 1, done | 1u << n);
    }
}

/* ---- */

/* What the schedule says that it comes to. */
static size_t schedule(uint64_t seed, int look_ahead, double *ratio)
{
    stint_graph *g = random_graph(seed);
    sti_pass_note note;
    size_t before = 0, after = 0;
    *ratio = 0;
    sti_graph_set_look_ahead(g, look_ahead);
    assert_int_equal(sti_pass_schedule(g, &note), STINT_OK);
    assert_int_equal(stint_graph_check(g), STINT_OK);
    assert_true(sscanf(note.text, "peak %zu -> %zu bytes, %lf", &before, &after,
                       ratio) == (look_ahead > 0 ? 3 : 2));
    const plain p = plain_of(g);
    assert_int_equal(count_peak(&p), after);
    assert_true(after <= before);
    stint_graph_destroy(g);
    return after;
}

static void orders_are_as_good_as_said(void **state)
{
    int better = 0, best = 0, tight = 0;
    (void)state;
    for (uint64_t seed = 1; seed <= GRAPHS; seed++) {
        double none, ratio;
        const size_t near = schedule(seed, 0, &none);
        const size_t ahead = schedule(seed, 3, &ratio);
        stint_graph *g = random_graph(seed);
        plain p = plain_of(g);
        stint_graph_destroy(g);
        try_orders(&p, 0, 0);
        const double bound = (double)ahead / ratio;
        assert_true(ahead <= near);
        assert_true(p.best <= ahead);
        assert_true(bound <= (double)p.best * 1.001);
        better += ahead < near;
        best += ahead == p.best;
        tight += bound >= (double)p.best * 0.999;
    }
    print_message("of %d graphs: %d with less memory than without looking ahead, %d "
                  "as no order is better, %d whose bound is reached\n",
                  GRAPHS, better, best, tight);
    assert_true(better > 0 && best > GRAPHS / 2 && tight > GRAPHS / 4);
}

/* Blocks that a schedule takes. */
static int64_t blocks_of(int look_ahead, sti_pass_note *note)
{
    stint_graph *g = random_graph(1);
    sti_graph_set_look_ahead(g, look_ahead);
    const int64_t before = sti_alloc_count();
    assert_int_equal(sti_pass_schedule(g, note), STINT_OK);
    const int64_t blocks = sti_alloc_count() - before;
    stint_graph_destroy(g);
    return blocks;
}

/* The bound is found for those who are told of it. */
static void no_bound_that_nobody_reads(void **state)
{
    sti_pass_note note;
    (void)state;
    assert_int_equal(blocks_of(3, NULL), blocks_of(0, NULL));
    assert_true(blocks_of(3, &note) > blocks_of(3, NULL));
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(orders_are_as_good_as_said),
                                       cmocka_unit_test(no_bound_that_nobody_reads)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
