#include "seal/map_xor.h"

#include <string.h>

#include "base/memory.h"
#include "base/rng.h"

/* Terms of a sum; one of more is a term of its own. Sums looked at for a term. */
enum { TERMS = 64, LOOKED_AT = 24 };

/* Sums of so few terms are searched a second time. */
enum { FEW_TERMS = 12 };

typedef struct sum {
    uint64_t signature;
    uint32_t *term; /* [terms], ascending nodes */
    int32_t terms;
} sum;

struct sti_map_sums {
    const sti_netlist *netlist;
    const sti_map_node *nodes;
    sum *sum;         /* [nodes] */
    uint32_t *pool;   /* terms of all */
    int64_t *first;   /* [nodes + 2]: sums with a term, ascending, in user */
    uint32_t *user;   /* [terms in all] */
    uint32_t *bucket; /* [buckets]: nodes by signature; 0: none */
    int64_t buckets;  /* 2^x */
};

/* Terms of a or of b, but not of both; returns how many, -1: more than TERMS. */
static int merge(const uint32_t *a, int na, const uint32_t *b, int nb, uint32_t *out)
{
    int i = 0, j = 0, n = 0;
    while (i < na || j < nb) {
        if (i < na && j < nb && a[i] == b[j]) {
            i++;
            j++;
        } else if (n == TERMS) {
            return -1;
        } else {
            out[n++] = j == nb || (i < na && a[i] < b[j]) ? a[i++] : b[j++];
        }
    }
    return n;
}

/* ---- the table of sums ---- */

static void fill_sum(sti_map_sums *s, uint32_t node, uint32_t *term)
{
    const sti_gate *gate = &s->netlist->gate[node];
    sum *own = &s->sum[node];
    uint32_t word[4];
    own->term = term;
    own->terms = -1;
    if (gate->kind == STI_GATE_XOR) {
        const sum *a = &s->sum[gate->a >> 1], *b = &s->sum[gate->b >> 1];
        own->terms = merge(a->term, a->terms, b->term, b->terms, term);
        own->signature = a->signature ^ b->signature;
    }
    if (own->terms <= 0) {
        sti_random4(UINT64_C(0x5ea1), STI_STREAM_COVER, node, 0, word);
        own->terms = 1;
        own->term[0] = node;
        own->signature = (uint64_t)word[0] << 32 | word[1];
    }
}

static void list_users(sti_map_sums *s)
{
    const int64_t nodes = s->netlist->nodes;
    for (int64_t i = 1; i < nodes; i++)
        for (int t = 0; t < s->sum[i].terms; t++)
            s->first[s->sum[i].term[t] + 2]++;
    for (int64_t i = 2; i <= nodes + 1; i++)
        s->first[i] += s->first[i - 1];
    for (int64_t i = 1; i < nodes; i++)
        for (int t = 0; t < s->sum[i].terms; t++)
            s->user[s->first[s->sum[i].term[t] + 1]++] = (uint32_t)i;
}

static void put_bucket(sti_map_sums *s, uint32_t node)
{
    uint64_t at = s->sum[node].signature & (uint64_t)(s->buckets - 1);
    while (s->bucket[at])
        at = (at + 1) & (uint64_t)(s->buckets - 1);
    s->bucket[at] = node;
}

stint_status sti_map_sums_create(const sti_netlist *netlist, const sti_map_node *nodes,
                                 sti_map_sums **out)
{
    const int64_t count = netlist->nodes;
    int64_t used = 0;
    sti_map_sums *s = sti_alloc(sizeof *s, "seal.sums");
    if (!s)
        return STINT_E_MEMORY;
    *s = (sti_map_sums){.netlist = netlist, .nodes = nodes, .buckets = 16};
    while (s->buckets < 2 * count)
        s->buckets *= 2;
    s->sum = sti_alloc_array(count, sizeof *s->sum, "seal.sums");
    s->pool = sti_alloc_array((count + 1) * TERMS, sizeof *s->pool, "seal.sums");
    s->first = sti_alloc_array(count + 2, sizeof *s->first, "seal.sums");
    s->bucket = sti_alloc_array(s->buckets, sizeof *s->bucket, "seal.sums");
    for (int64_t i = 1; s->sum && s->pool && i < count; i++) {
        fill_sum(s, (uint32_t)i, s->pool + used);
        used += s->sum[i].terms;
    }
    s->user = sti_alloc_array(used, sizeof *s->user, "seal.sums");
    if (!s->sum || !s->pool || !s->first || !s->bucket || !s->user) {
        sti_map_sums_destroy(s);
        return STINT_E_MEMORY;
    }
    list_users(s);
    for (int64_t i = 1; i < count; i++)
        put_bucket(s, (uint32_t)i);
    *out = s;
    return STINT_OK;
}

void sti_map_sums_destroy(sti_map_sums *sums)
{
    if (!sums)
        return;
    sti_free(sums->sum);
    sti_free(sums->pool);
    sti_free(sums->first);
    sti_free(sums->user);
    sti_free(sums->bucket);
    sti_free(sums);
}

/* ---- search ---- */

/* What is left of a sum after some leaves, and these. */
typedef struct rest {
    uint64_t signature;
    uint32_t term[TERMS];
    int terms;
} rest;

typedef struct search {
    const sti_map_sums *s;
    uint32_t node;
    uint32_t leaf[STI_CELL_INPUTS];
    int leaves;
    bool products_last;
    sti_cut *cut;
} search;

static bool in_use(const search *q, uint32_t node)
{
    return node < q->node && (q->s->nodes[node].users > 0 ||
                              q->s->netlist->gate[node].kind == STI_GATE_INPUT);
}

static bool is_leaf(const search *q, uint32_t node)
{
    for (int i = 0; i < q->leaves; i++)
        if (q->leaf[i] == node)
            return true;
    return false;
}

static int place_of(const sti_cut *cut, uint32_t node)
{
    int at = 0;
    while (cut->leaf[at] != node)
        at++;
    return at;
}

/* The cut of all leaves, of which the sum is taken, and of a product unless NULL. */
static void put_cut(const search *q, const sti_gate *product)
{
    sti_cut *cut = q->cut;
    uint32_t all[STI_CELL_INPUTS];
    int n = q->leaves;
    memcpy(all, q->leaf, sizeof all);
    if (product) {
        all[n++] = product->a >> 1;
        all[n++] = product->b >> 1;
    }
    *cut = (sti_cut){.size = (uint8_t)n};
    for (int i = 0; i < n; i++) { /* insertion: at most four */
        int at = i;
        for (; at > 0 && cut->leaf[at - 1] > all[i]; at--)
            cut->leaf[at] = cut->leaf[at - 1];
        cut->leaf[at] = all[i];
    }
    for (unsigned r = 0; r < 16; r++) {
        unsigned value = 0;
        for (int i = 0; i < q->leaves; i++)
            value ^= r >> place_of(cut, q->leaf[i]);
        if (product)
            value ^= (r >> place_of(cut, product->a >> 1) ^ (product->a & 1)) &
                     (r >> place_of(cut, product->b >> 1) ^ (product->b & 1));
        cut->table = (uint16_t)(cut->table | (value & 1) << r);
    }
}

/* The rest is a sum that is there. */
static bool end_by_node(search *q, const rest *r)
{
    const sti_map_sums *s = q->s;
    uint64_t at = r->signature & (uint64_t)(s->buckets - 1);
    for (; s->bucket[at]; at = (at + 1) & (uint64_t)(s->buckets - 1)) {
        const uint32_t node = s->bucket[at];
        const sum *other = &s->sum[node];
        if (other->signature != r->signature || !in_use(q, node) || is_leaf(q, node) ||
            other->terms != r->terms ||
            memcmp(other->term, r->term, (size_t)r->terms * sizeof *r->term) != 0)
            continue;
        q->leaf[q->leaves++] = node;
        put_cut(q, NULL);
        return true;
    }
    return false;
}

/* A product that the cell could compute. */
static bool is_product(const search *q, uint32_t node)
{
    const sti_gate *gate = &q->s->netlist->gate[node];
    return gate->kind == STI_GATE_AND && in_use(q, gate->a >> 1) &&
           in_use(q, gate->b >> 1);
}

/* The rest is a product whose factors are there. */
static bool end_by_product(search *q, const rest *r)
{
    const sti_gate *gate = &q->s->netlist->gate[r->term[0]];
    if (r->terms != 1 || q->leaves > 2 || !is_product(q, r->term[0]) ||
        is_leaf(q, gate->a >> 1) || is_leaf(q, gate->b >> 1))
        return false;
    put_cut(q, gate);
    return true;
}

/* The term that is in the fewest sums, one of which must be a leaf; others than
 * products first if these are left to the end. */
static uint32_t rarest(const search *q, const rest *r)
{
    const int64_t *first = q->s->first;
    uint32_t best = r->term[0];
    bool best_last = q->products_last && is_product(q, best);
    for (int t = 1; t < r->terms; t++) {
        const uint32_t term = r->term[t];
        const bool last = q->products_last && is_product(q, term);
        const bool fewer =
            first[term + 1] - first[term] < first[best + 1] - first[best];
        if (last != best_last ? best_last : fewer) {
            best = term;
            best_last = last;
        }
    }
    return best;
}

static bool go_on(search *q, const rest *r)
{
    const sti_map_sums *s = q->s;
    if (r->terms == 0)
        return false;
    if (q->leaves > 0 && (end_by_node(q, r) || end_by_product(q, r)))
        return true;
    if (q->leaves == STI_CELL_INPUTS - 1)
        return false;
    const uint32_t term = rarest(q, r);
    int looked = 0;
    for (int64_t i = s->first[term]; i < s->first[term + 1] && looked < LOOKED_AT;
         i++) {
        const uint32_t node = s->user[i];
        rest left;
        if (!in_use(q, node) || is_leaf(q, node))
            continue;
        looked++;
        left.terms =
            merge(r->term, r->terms, s->sum[node].term, s->sum[node].terms, left.term);
        if (left.terms < 0)
            continue;
        left.signature = r->signature ^ s->sum[node].signature;
        q->leaf[q->leaves++] = node;
        if (go_on(q, &left))
            return true;
        q->leaves--;
    }
    return false;
}

bool sti_map_sums_find(const sti_map_sums *sums, uint32_t node, sti_cut *cut_out)
{
    const sum *own = &sums->sum[node];
    search q = {.s = sums, .node = node, .cut = cut_out};
    rest all = {.signature = own->signature, .terms = own->terms};
    if (own->terms < 2)
        return false;
    memcpy(all.term, own->term, (size_t)own->terms * sizeof *own->term);
    if (go_on(&q, &all))
        return true;
    if (own->terms > FEW_TERMS)
        return false;
    q.leaves = 0;
    q.products_last = true;
    return go_on(&q, &all);
}
