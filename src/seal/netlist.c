/* The hashed graph. The table is open addressing over node numbers, at most half full.
 */
#include "seal/netlist.h"

#include <inttypes.h>

#include "base/fail.h"
#include "base/memory.h"

static uint64_t hash_of(sti_gate_kind kind, sti_literal a, sti_literal b)
{
    uint64_t h = ((uint64_t)a << 32 | b) * 0x9E3779B97F4A7C15u + (uint64_t)kind;
    h ^= h >> 29;
    h *= 0xBF58476D1CE4E5B9u;
    return h ^ h >> 32;
}

static bool grow_nodes(sti_netlist *n)
{
    const int64_t most = n->max_nodes ? n->max_nodes : STI_NETLIST_MAX_NODES;
    if (n->nodes >= most) {
        n->status = sti_fail(STINT_E_UNSUPPORTED,
                             "the circuit has more than %" PRId64
                             " gates; shorter loops or narrower integers make it "
                             "smaller",
                             most);
        return false;
    }
    const int64_t capacity = n->capacity ? 2 * n->capacity : 1024;
    sti_gate *gate =
        sti_realloc(n->gate, (size_t)capacity * sizeof *gate, "seal.netlist");
    if (!gate) {
        n->status = STINT_E_MEMORY;
        return false;
    }
    n->gate = gate;
    n->capacity = capacity;
    return true;
}

static void put(uint32_t *bucket, int64_t buckets, const sti_gate *gate, uint32_t node)
{
    uint64_t at = hash_of(gate->kind, gate->a, gate->b) & (uint64_t)(buckets - 1);
    while (bucket[at])
        at = (at + 1) & (uint64_t)(buckets - 1);
    bucket[at] = node;
}

static bool grow_buckets(sti_netlist *n)
{
    const int64_t buckets = 2 * n->buckets;
    uint32_t *bucket = sti_alloc_array(buckets, sizeof *bucket, "seal.netlist");
    if (!bucket) {
        n->status = STINT_E_MEMORY;
        return false;
    }
    for (int64_t i = 0; i < n->nodes; i++)
        if (sti_gate_is_logic(&n->gate[i]))
            put(bucket, buckets, &n->gate[i], (uint32_t)i);
    sti_free(n->bucket);
    n->bucket = bucket;
    n->buckets = buckets;
    return true;
}

/* The node's literal, or false where there is no room. */
static sti_literal add_node(sti_netlist *n, sti_gate gate)
{
    if (n->status != STINT_OK)
        return STI_FALSE;
    if (n->nodes == n->capacity && !grow_nodes(n))
        return STI_FALSE;
    if (2 * n->nodes >= n->buckets && !grow_buckets(n))
        return STI_FALSE;
    n->gate[n->nodes] = gate;
    return (sti_literal)(2 * n->nodes++);
}

stint_status sti_netlist_init(sti_netlist *netlist)
{
    *netlist = (sti_netlist){.buckets = 1024};
    netlist->bucket =
        sti_alloc_array(netlist->buckets, sizeof(uint32_t), "seal.netlist");
    if (!netlist->bucket)
        return STINT_E_MEMORY;
    add_node(netlist, (sti_gate){.kind = STI_GATE_CONSTANT});
    return netlist->status;
}

void sti_netlist_fini(sti_netlist *netlist)
{
    sti_free(netlist->gate);
    sti_free(netlist->bucket);
    *netlist = (sti_netlist){0};
}

sti_literal sti_netlist_input(sti_netlist *netlist)
{
    return add_node(netlist, (sti_gate){.kind = STI_GATE_INPUT});
}

/* The gate of that kind and those inputs, made where there is none yet. */
static sti_literal find_or_add(sti_netlist *n, sti_gate_kind kind, sti_literal a,
                               sti_literal b)
{
    const sti_gate gate = {
        .a = a < b ? a : b, .b = a < b ? b : a, .line = n->line, .kind = kind};
    if (n->status != STINT_OK)
        return STI_FALSE;
    uint64_t at = hash_of(kind, gate.a, gate.b) & (uint64_t)(n->buckets - 1);
    for (; n->bucket[at]; at = (at + 1) & (uint64_t)(n->buckets - 1)) {
        const sti_gate *other = &n->gate[n->bucket[at]];
        if (other->kind == kind && other->a == gate.a && other->b == gate.b)
            return 2 * n->bucket[at];
    }
    const sti_literal made = add_node(n, gate);
    if (n->status == STINT_OK)
        put(n->bucket, n->buckets, &gate, made >> 1);
    return made;
}

/* Is `inner` an AND that has `outer` as an input, so that inner & outer = inner? Or its
 * negation, so that it is false? */
static int absorbs(const sti_netlist *n, sti_literal inner, sti_literal outer)
{
    const sti_gate *gate = &n->gate[inner >> 1];
    if (gate->kind != STI_GATE_AND || inner & 1)
        return 0;
    if (gate->a == outer || gate->b == outer)
        return 1;
    return gate->a == sti_not(outer) || gate->b == sti_not(outer) ? -1 : 0;
}

sti_literal sti_netlist_and(sti_netlist *netlist, sti_literal a, sti_literal b)
{
    if (a == STI_FALSE || b == STI_FALSE || a == sti_not(b))
        return STI_FALSE;
    if (a == STI_TRUE || a == b)
        return b;
    if (b == STI_TRUE)
        return a;
    if (netlist->status != STINT_OK)
        return STI_FALSE;
    const int in_a = absorbs(netlist, a, b), in_b = absorbs(netlist, b, a);
    if (in_a)
        return in_a > 0 ? a : STI_FALSE;
    if (in_b)
        return in_b > 0 ? b : STI_FALSE;
    return find_or_add(netlist, STI_GATE_AND, a, b);
}

/* An XOR with one of its own inputs is the other input. */
static bool cancels(const sti_netlist *n, sti_literal a, sti_literal b,
                    sti_literal *out)
{
    const sti_gate *gate = &n->gate[a >> 1];
    if (gate->kind != STI_GATE_XOR)
        return false;
    if (gate->a != b && gate->b != b)
        return false;
    *out = gate->a == b ? gate->b : gate->a;
    return true;
}

sti_literal sti_netlist_xor(sti_netlist *netlist, sti_literal a, sti_literal b)
{
    const sti_literal inverted = (a ^ b) & 1;
    sti_literal other;
    a &= ~(sti_literal)1;
    b &= ~(sti_literal)1;
    if (netlist->status != STINT_OK)
        return STI_FALSE;
    if (a == b)
        return inverted;
    if (a == STI_FALSE)
        return b ^ inverted;
    if (b == STI_FALSE)
        return a ^ inverted;
    if (cancels(netlist, a, b, &other) || cancels(netlist, b, a, &other))
        return other ^ inverted;
    return find_or_add(netlist, STI_GATE_XOR, a, b) ^ inverted;
}

sti_literal sti_netlist_or(sti_netlist *netlist, sti_literal a, sti_literal b)
{
    return sti_not(sti_netlist_and(netlist, sti_not(a), sti_not(b)));
}

sti_literal sti_netlist_mux(sti_netlist *netlist, sti_literal choose, sti_literal a,
                            sti_literal b)
{
    if (choose == STI_TRUE || a == b)
        return a;
    if (choose == STI_FALSE)
        return b;
    if (a == STI_FALSE)
        return sti_netlist_and(netlist, sti_not(choose), b);
    if (b == STI_FALSE)
        return sti_netlist_and(netlist, choose, a);
    if (a == STI_TRUE)
        return sti_netlist_or(netlist, choose, b);
    if (b == STI_TRUE)
        return sti_netlist_or(netlist, sti_not(choose), a);
    const sti_literal differ = sti_netlist_xor(netlist, a, b);
    return sti_netlist_xor(netlist, sti_netlist_and(netlist, choose, differ), b);
}

sti_literal sti_netlist_majority(sti_netlist *netlist, sti_literal a, sti_literal b,
                                 sti_literal c)
{
    const sti_literal ac = sti_netlist_xor(netlist, a, c);
    const sti_literal bc = sti_netlist_xor(netlist, b, c);
    return sti_netlist_xor(netlist, sti_netlist_and(netlist, ac, bc), c);
}
