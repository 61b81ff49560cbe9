#include "net/tree_sum.h"

#include <assert.h>
#include <string.h>

#include "base/memory.h"
#include "kernel/elementwise.h"

/* A segment: small enough that several are in flight, large enough to be worth a
 * message. */
#define SEGMENT_MOST  (INT64_C(1) << 16) /* floats */
#define SEGMENT_LEAST (INT64_C(1) << 10)

/* Heights at which the adder alternates; above, the left one adds. */
#define MOST_HEIGHTS 10

enum {
    AHEAD = 4, /* segments received before they are needed */
    LEAD = STI_TREE_SUM_LEAD,
    SENDS = STI_TREE_SUM_SENDS
};

typedef enum join_kind { JOIN_HERE, JOIN_SEND, JOIN_RECEIVE } join_kind;

/* One join of the tree, as this rank has to do with it. */
typedef struct join {
    join_kind kind;
    int peer;
    int into, from; /* places in blocks; sends: from, receives: into */
} join;

/* Segments of one class do the same joins. */
typedef struct join_class {
    int first, count; /* in joins */
    int root, place;  /* where the sum ends, and in which of its blocks */
} join_class;

typedef struct cursor {
    int64_t segment; /* from the last to 0; -1: none is left */
    int join;
} cursor;

struct sti_tree_sum {
    sti_comm *comm;
    int64_t count, segment, segments; /* floats; floats; number */
    int class_count, block_count;
    join_class *classes;
    join *joins;
    float *stage;            /* [AHEAD, segment] */
    sti_comm_request *downs; /* [segments] */
    sti_comm_request ups[AHEAD], sends[SENDS];
    int64_t posted, taken, sent;
    bool leads;           /* what a rank sends first in a segment is its own block */
    int64_t led;          /* such sends of segments from here on are out */
    int64_t handed;       /* segments from here on came down and were handed on */
    cursor ahead;         /* the next receive to post */
    float *const *blocks; /* of the run */
};

sti_shard_range sti_tree_sum_shards(int64_t shards, int size, int rank)
{
    return sti_shard_part((sti_shard_range){0, shards}, size, rank);
}

/* ---- the joins ---- */

static void join_nothing(void *user, int into, int from)
{
    (void)user;
    (void)into;
    (void)from;
}

/* A block that a rank brings, and where its sum is in the course of the joins. */
typedef struct leaf {
    int64_t first, size;
    int rank, place;
    int height; /* joins of different ranks below it */
} leaf;

typedef struct joining {
    leaf *leaves;
    int rank;             /* whose joins are wanted */
    unsigned pattern;     /* of the class: bit h chooses who adds at height h */
    join *joins;          /* NULL: only counted */
    sti_tree_join *pairs; /* of all ranks; NULL: not wanted */
    int count, heights, pair_count;
} joining;

static void add_join(joining *j, join_kind kind, int peer, int into, int from)
{
    if (j->joins)
        j->joins[j->count] =
            (join){.kind = kind, .peer = peer, .into = into, .from = from};
    j->count++;
}

static void note_join(void *user, int into, int from)
{
    joining *j = user;
    leaf *l = &j->leaves[into], *r = &j->leaves[from];
    if (l->rank == r->rank) {
        if (l->rank == j->rank)
            add_join(j, JOIN_HERE, l->rank, l->place, r->place);
        l->height = l->height > r->height ? l->height : r->height;
        return;
    }
    int height = l->height > r->height ? l->height : r->height;
    const leaf to = (j->pattern >> height) & 1 ? *r : *l;
    const leaf by = (j->pattern >> height) & 1 ? *l : *r;
    if (j->pairs)
        j->pairs[j->pair_count++] = (sti_tree_join){by.rank, to.rank};
    if (to.rank == j->rank)
        add_join(j, JOIN_RECEIVE, by.rank, to.place, -1);
    if (by.rank == j->rank)
        add_join(j, JOIN_SEND, to.rank, -1, by.place);
    l->rank = to.rank;
    l->place = to.place;
    l->height = height + 1;
    j->heights = l->height > j->heights ? l->height : j->heights;
}

/* Blocks of all ranks from the left; the number of them. leaves NULL: counted. */
static int list_leaves(int64_t shards, int size, leaf *leaves)
{
    int count = 0;
    for (int r = 0; r < size; r++) {
        sti_shard_range own = sti_tree_sum_shards(shards, size, r);
        sti_shard_stack stack = {.depth = 0};
        for (int64_t s = own.first; s < own.first + own.count; s++)
            sti_shard_push(&stack, s, 1, 0, join_nothing, NULL);
        for (int i = 0; i < stack.depth; i++, count++)
            if (leaves)
                leaves[count] = (leaf){.first = stack.first[i],
                                       .size = stack.size[i],
                                       .rank = r,
                                       .place = i};
    }
    return count;
}

/* The tree above the leaves; the leaf where the sum ends. */
static const leaf *walk(joining *j, int64_t shards, int size)
{
    sti_shard_stack stack = {.depth = 0};
    int count = list_leaves(shards, size, j->leaves);
    for (int i = 0; i < count; i++)
        sti_shard_push(&stack, j->leaves[i].first, j->leaves[i].size, i, note_join, j);
    return &j->leaves[sti_shard_finish(&stack, note_join, j)];
}

/* The joins of all classes, one after another: counted, or written. */
static void list_classes(sti_tree_sum *sum, int64_t shards, joining *j)
{
    j->count = 0;
    for (int c = 0; c < sum->class_count; c++) {
        int first = j->count;
        j->pattern = (unsigned)c;
        const leaf *end = walk(j, shards, sti_comm_size(sum->comm));
        sum->classes[c] = (join_class){.first = first,
                                       .count = j->count - first,
                                       .root = end->rank,
                                       .place = end->place};
    }
}

static int classes_of(int heights)
{
    return 1 << (heights < MOST_HEIGHTS ? heights : MOST_HEIGHTS);
}

static stint_status list_joins(sti_tree_sum *sum, int64_t shards)
{
    int size = sti_comm_size(sum->comm);
    joining j = {.rank = sti_comm_rank(sum->comm)};
    j.leaves =
        sti_alloc_array(list_leaves(shards, size, NULL), sizeof *j.leaves, "net.sum");
    if (!j.leaves)
        return STINT_E_MEMORY;
    walk(&j, shards, size);
    sum->class_count = classes_of(j.heights);
    sum->classes = sti_alloc_array(sum->class_count, sizeof *sum->classes, "net.sum");
    if (sum->classes) {
        list_classes(sum, shards, &j);
        j.joins = sum->joins = sti_alloc_array(j.count, sizeof *j.joins, "net.sum");
    }
    if (sum->joins)
        list_classes(sum, shards, &j);
    sti_free(j.leaves);
    return sum->joins ? STINT_OK : STINT_E_MEMORY;
}

/* A balanced tree over ranks of one shard each. */
int sti_tree_sum_classes(int size)
{
    int heights = 0;
    while (heights < 30 && 1 << heights < size)
        heights++;
    return classes_of(heights);
}

stint_status sti_tree_sum_list(int size, int class, sti_tree_join *joins, int *root_out)
{
    joining j = {.rank = -1, .pattern = (unsigned)class, .pairs = joins};
    j.leaves = sti_alloc_array(size, sizeof *j.leaves, "net.sum");
    if (!j.leaves)
        return STINT_E_MEMORY;
    *root_out = walk(&j, size, size)->rank;
    sti_free(j.leaves);
    return STINT_OK;
}

/* ---- life ---- */

/* So that every class has a few segments, where the block is large enough. */
int64_t sti_tree_sum_segment(int size, int64_t count)
{
    int64_t ranks = 1;
    while (ranks < size)
        ranks *= 2;
    int64_t segment = (count + ranks - 1) / ranks;
    segment = segment < SEGMENT_MOST ? segment : SEGMENT_MOST;
    segment = segment > SEGMENT_LEAST ? segment : SEGMENT_LEAST;
    return (segment + 15) & ~INT64_C(15);
}

size_t sti_tree_sum_bytes(int size, int64_t count)
{
    int64_t segment = sti_tree_sum_segment(size, count);
    size_t joins = 0;
    for (int classes = 1; classes < 2 * size; classes *= 2)
        joins += (size_t)classes * sizeof(join_class) + 64 * sizeof(join);
    return sizeof(sti_tree_sum) + joins + AHEAD * (size_t)segment * sizeof(float) +
           (size_t)((count + segment - 1) / segment) * sizeof(sti_comm_request);
}

stint_status sti_tree_sum_create(sti_comm *comm, int64_t shards, int64_t count,
                                 sti_tree_sum **sum_out)
{
    sti_tree_sum *sum = sti_alloc(sizeof *sum, "net.sum");
    sti_shard_range own =
        sti_tree_sum_shards(shards, sti_comm_size(comm), sti_comm_rank(comm));
    if (!sum)
        return STINT_E_MEMORY;
    sum->comm = comm;
    sum->count = count;
    sum->segment = sti_tree_sum_segment(sti_comm_size(comm), count);
    sum->segments = (count + sum->segment - 1) / sum->segment;
    sti_shard_stack stack = {.depth = 0};
    for (int64_t s = own.first; s < own.first + own.count; s++)
        sti_shard_push(&stack, s, 1, 0, join_nothing, NULL);
    sum->block_count = stack.depth;
    sum->leads = list_leaves(shards, sti_comm_size(comm), NULL) == sti_comm_size(comm);
    sum->stage =
        sti_alloc_array(AHEAD * sum->segment, sizeof *sum->stage, "net.segments");
    sum->downs = sti_alloc_array(sum->segments, sizeof *sum->downs, "net.segments");
    stint_status st =
        sum->stage && sum->downs ? list_joins(sum, shards) : STINT_E_MEMORY;
    if (st == STINT_OK)
        *sum_out = sum;
    else
        sti_tree_sum_destroy(sum);
    return st;
}

void sti_tree_sum_destroy(sti_tree_sum *sum)
{
    if (!sum)
        return;
    sti_free(sum->classes);
    sti_free(sum->joins);
    sti_free(sum->stage);
    sti_free(sum->downs);
    sti_free(sum);
}

/* ---- one run ---- */

static const join_class *class_of(const sti_tree_sum *sum, int64_t segment)
{
    return &sum->classes[segment % sum->class_count];
}

static int64_t floats_of(const sti_tree_sum *sum, int64_t segment)
{
    int64_t left = sum->count - segment * sum->segment;
    return left < sum->segment ? left : sum->segment;
}

static float *at(const sti_tree_sum *sum, int place, int64_t segment)
{
    return sum->blocks[place] + segment * sum->segment;
}

static stint_status send_segment(sti_tree_sum *sum, int to, uint32_t tag, float *from,
                                 int64_t segment)
{
    sti_comm_request *request = &sum->sends[sum->sent++ % SENDS];
    stint_status st = sti_comm_wait_all(sum->comm, request, 1);
    if (st == STINT_OK)
        sti_comm_send(sum->comm, to, tag, from,
                      (size_t)floats_of(sum, segment) * sizeof *from, request);
    return st;
}

static float *stage_of(const sti_tree_sum *sum, int64_t receive)
{
    return sum->stage + receive % AHEAD * sum->segment;
}

/* Receives of the joins to come, as far as there are buffers. */
static void post_ahead(sti_tree_sum *sum)
{
    cursor *c = &sum->ahead;
    while (c->segment >= 0 && sum->posted - sum->taken < AHEAD) {
        const join_class *of = class_of(sum, c->segment);
        if (c->join == of->count) {
            *c = (cursor){.segment = c->segment - 1};
            continue;
        }
        const join *j = &sum->joins[of->first + c->join++];
        if (j->kind == JOIN_RECEIVE) {
            sti_comm_receive(sum->comm, j->peer, STI_TAG_SUM_UP,
                             stage_of(sum, sum->posted),
                             (size_t)floats_of(sum, c->segment) * sizeof(float),
                             &sum->ups[sum->posted % AHEAD]);
            sum->posted++;
        }
    }
}

static stint_status take_and_add(sti_tree_sum *sum, const sti_team *team, int into,
                                 int64_t segment)
{
    post_ahead(sum);
    stint_status st = sti_comm_wait_all(sum->comm, &sum->ups[sum->taken % AHEAD], 1);
    if (st != STINT_OK)
        return st;
    sti_add_f32(team, floats_of(sum, segment), stage_of(sum, sum->taken),
                at(sum, into, segment));
    sum->taken++;
    post_ahead(sum);
    return STINT_OK;
}

static stint_status do_join(sti_tree_sum *sum, const sti_team *team, const join *j,
                            int64_t segment)
{
    if (j->kind == JOIN_SEND)
        return send_segment(sum, j->peer, STI_TAG_SUM_UP, at(sum, j->from, segment),
                            segment);
    if (j->kind == JOIN_RECEIVE)
        return take_and_add(sum, team, j->into, segment);
    sti_add_f32(team, floats_of(sum, segment), at(sum, j->from, segment),
                at(sum, j->into, segment));
    return STINT_OK;
}

/* Rank counted from the root of a segment; its parent has the lowest set bit cleared.
 */
static int seen_from_root(const sti_tree_sum *sum, int64_t segment)
{
    int size = sti_comm_size(sum->comm), root = class_of(sum, segment)->root;
    return (sti_comm_rank(sum->comm) + size - root) % size;
}

static int lowest_bit(int size, int place)
{
    int bit = 1;
    while (bit < size && !(place & bit))
        bit *= 2;
    return bit;
}

/* A segment that this rank sent up has been added by others before it comes down, so
 * nothing is overwritten that is still to be read, or not yet written. */
static void post_downs(sti_tree_sum *sum)
{
    int size = sti_comm_size(sum->comm);
    for (int64_t s = sum->segments - 1; s >= 0; s--) {
        int place = seen_from_root(sum, s);
        int parent = place & ~lowest_bit(size, place);
        if (place != 0)
            sti_comm_expect(sum->comm, (parent + class_of(sum, s)->root) % size,
                            STI_TAG_SUM_DOWN + (uint32_t)s, at(sum, 0, s),
                            (size_t)floats_of(sum, s) * sizeof(float), &sum->downs[s]);
    }
}

static bool begins_with_send(const sti_tree_sum *sum, int64_t segment)
{
    const join_class *c = class_of(sum, segment);
    return c->count > 0 && sum->joins[c->first].kind == JOIN_SEND;
}

/* Own blocks on their way before their turn: ranks that wait for each other segment by
 * segment would leave one direction of the link idle. With one block a rank, whatever
 * two ranks send each other is of one height of the tree, so the order stays that of
 * the segments. */
static stint_status send_ahead(sti_tree_sum *sum, sti_gate *gate, int64_t segment)
{
    stint_status st = STINT_OK;
    for (; st == STINT_OK && sum->leads && sum->led > 0 && sum->led > segment - LEAD &&
           sti_gate_has(gate, (sum->led - 1) * sum->segment);
         sum->led--) {
        const int64_t s = sum->led - 1;
        const join *j = &sum->joins[class_of(sum, s)->first];
        sti_gate_take(gate, s * sum->segment);
        if (begins_with_send(sum, s))
            st = send_segment(sum, j->peer, STI_TAG_SUM_UP, at(sum, j->from, s), s);
    }
    return st;
}

static stint_status go_up(sti_tree_sum *sum, const sti_team *team, int64_t segment)
{
    const join_class *c = class_of(sum, segment);
    stint_status st = STINT_OK;
    for (int i = sum->led <= segment && begins_with_send(sum, segment);
         i < c->count && st == STINT_OK; i++)
        st = do_join(sum, team, &sum->joins[c->first + i], segment);
    if (st == STINT_OK && c->root == sti_comm_rank(sum->comm) && c->place != 0)
        memcpy(at(sum, 0, segment), at(sum, c->place, segment),
               (size_t)floats_of(sum, segment) * sizeof(float));
    return st;
}

/* The sum of a segment, which is here, to those who get it from this rank. */
static stint_status go_down(sti_tree_sum *sum, int64_t segment)
{
    int size = sti_comm_size(sum->comm), root = class_of(sum, segment)->root;
    int place = seen_from_root(sum, segment);
    stint_status st = STINT_OK;
    for (int bit = lowest_bit(size, place) / 2; bit > 0 && st == STINT_OK; bit /= 2)
        if (place + bit < size)
            st = send_segment(sum, (place + bit + root) % size,
                              STI_TAG_SUM_DOWN + (uint32_t)segment, at(sum, 0, segment),
                              segment);
    return st;
}

/* Hand on sums of segments from `from` on that have come: all of them, or as far as
 * they are here. Those whose root this rank is went down at once. */
static stint_status hand_on(sti_tree_sum *sum, int64_t from, bool all)
{
    stint_status st = STINT_OK;
    for (; st == STINT_OK && sum->handed > from; sum->handed--) {
        const int64_t s = sum->handed - 1;
        if (seen_from_root(sum, s) == 0)
            continue;
        if (!all && !sti_comm_test(sum->comm, &sum->downs[s]))
            return STINT_OK;
        st = sti_comm_wait_all(sum->comm, &sum->downs[s], 1);
        if (st == STINT_OK)
            st = go_down(sum, s);
    }
    return st;
}

/* Until the segment is final here; what comes down meanwhile is handed on. */
static stint_status await_segment(sti_tree_sum *sum, sti_gate *gate, int64_t segment)
{
    const int64_t first = segment * sum->segment;
    stint_status st = STINT_OK;
    while (st == STINT_OK && !sti_gate_has(gate, first)) {
        const bool more = sum->handed > segment + 1;
        st = sti_gate_wait(gate, sum->comm, first,
                           more ? &sum->downs[sum->handed - 1] : NULL, more);
        if (st == STINT_OK)
            st = hand_on(sum, segment + 1, false);
    }
    if (st == STINT_OK)
        sti_gate_take(gate, first);
    return st;
}

stint_status sti_tree_sum_run(sti_tree_sum *sum, const sti_team *team, sti_gate *gate,
                              float *const *blocks, int block_count)
{
    assert(block_count == sum->block_count);
    (void)block_count;
    stint_status st = STINT_OK;
    sum->blocks = blocks;
    sum->posted = sum->taken = sum->sent = 0;
    sum->handed = sum->led = sum->segments;
    sum->ahead = (cursor){.segment = sum->segments - 1};
    post_downs(sum);
    post_ahead(sum);
    for (int64_t s = sum->segments - 1; s >= 0 && st == STINT_OK; s--) {
        st = await_segment(sum, gate, s);
        if (st == STINT_OK)
            st = send_ahead(sum, gate, s);
        if (st == STINT_OK)
            st = go_up(sum, team, s);
        if (st == STINT_OK && seen_from_root(sum, s) == 0)
            st = go_down(sum, s);
        if (st == STINT_OK)
            st = hand_on(sum, s, false);
    }
    if (st == STINT_OK)
        st = hand_on(sum, 0, true);
    return st == STINT_OK ? sti_comm_wait_all(sum->comm, sum->sends, SENDS) : st;
}

void sti_tree_sum_traffic(const sti_tree_sum *sum, int64_t *messages_out,
                          int64_t *bytes_out)
{
    int size = sti_comm_size(sum->comm);
    *messages_out = *bytes_out = 0;
    for (int64_t s = 0; s < sum->segments; s++) {
        const join_class *c = class_of(sum, s);
        int place = seen_from_root(sum, s), sends = 0;
        for (int i = 0; i < c->count; i++)
            sends += sum->joins[c->first + i].kind == JOIN_SEND;
        for (int bit = lowest_bit(size, place) / 2; bit > 0; bit /= 2)
            sends += place + bit < size;
        *messages_out += sends;
        *bytes_out += sends * floats_of(sum, s) * (int64_t)sizeof(float);
    }
}
