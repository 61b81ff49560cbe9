#include "net/tree_sum.h"

#include <assert.h>
#include <string.h>

#include "base/memory.h"
#include "kernel/elementwise/elementwise.h"
#include "net/rounds.h"

/* Floats of a part: so few that several are on their way, so many that slices are worth
 * a message. Slices and what lands are at multiples of GRAIN. */
#define PART_MAX    (INT64_C(1) << 17)
#define SLICE_LEAST (INT64_C(1) << 10)
#define GRAIN       16

/* Slices of a block: of an own one, or of one that landed, from slice `base` on. */
typedef struct slice_loc {
    int block; /* -1: it landed */
    int base;
    int64_t at; /* floats, in the landing of a part */
} slice_loc;

/* A subtree of which slices are here, or come here, or that others have. */
typedef struct node {
    int64_t first, size; /* shards */
    int owner;           /* rank, or group */
    int loc;             /* where it is, or comes to */
    int now;             /* in the course of joins: the location of its sum so far */
} node;

typedef struct join {
    int into, from; /* among slice_locs */
} join;

/* What the rounds do: messages of one block each, and joins. */
typedef struct move {
    int peer, loc, slice, count;
    int first_join, joins;
    bool last; /* of the joins: the sum goes to block 0 */
} move;

struct sti_tree_sum {
    sti_comm *comm;
    int64_t count, shards;
    int group, hosts; /* ranks that join first; of them */
    int column, mine; /* slices that this rank joins for its group, and for all */
    int block_count, move_count, join_count, slice_loc_count;
    int64_t landing_floats; /* of a part */
    int64_t *from;          /* [parts]: where they begin */
    int64_t slice_max_floats;
    slice_loc *slice_locs;
    join *joins;
    move *moves;
    sti_rounds rounds;
    float *landing; /* [window, landing_floats] */
    /* What follows belongs to the run under way. */
    const sti_team *team;
    float *const *blocks;
};

sti_shard_range sti_tree_sum_shards(int64_t shards, int size, int rank)
{
    return sti_shard_part((sti_shard_range){0, shards}, size, rank);
}

/* ---- what all ranks do ---- */

static int64_t round_up(int64_t floats)
{
    return (floats + GRAIN - 1) / GRAIN * GRAIN;
}

int64_t sti_tree_sum_max_part_floats(int size)
{
    const int64_t slices = size * SLICE_LEAST;
    return slices > PART_MAX ? slices : PART_MAX;
}

int64_t sti_tree_sum_part(int64_t max_floats, int64_t left)
{
    const int64_t floats = round_up(sti_schedule_part(max_floats, left));
    return floats < left ? floats : left;
}

sti_scheme sti_tree_sum_scheme(int size, int group)
{
    return group > 1 && group < size ? STI_SCHEME_TWO_LEVEL : STI_SCHEME_SCATTER;
}

static void join_nothing(void *user, int into, int from)
{
    (void)user;
    (void)into;
    (void)from;
}

static void push_rank(sti_shard_stack *stack, int64_t shards, int size, int rank)
{
    const sti_shard_range local = sti_tree_sum_shards(shards, size, rank);
    for (int64_t s = local.first; s < local.first + local.count; s++)
        sti_shard_push(stack, s, 1, 0, join_nothing, NULL);
}

int sti_tree_sum_blocks(int64_t shards, int size, int first_rank, int ranks)
{
    sti_shard_stack stack = {.depth = 0};
    for (int r = first_rank; r < first_rank + ranks; r++)
        push_rank(&stack, shards, size, r);
    return stack.depth;
}

/* The largest number of neighbouring ranks into which all rows of ranks of one host can
 * be cut. */
static int group_of(const sti_comm *comm)
{
    const int size = sti_comm_size(comm);
    int group = 0, row = 0;
    for (int r = 0; r < size; r++) {
        row++;
        if (r + 1 < size &&
            strcmp(sti_comm_host(comm, r), sti_comm_host(comm, r + 1)) == 0)
            continue;
        while (row > 0) { /* their greatest common divisor */
            const int rest = group % row;
            group = row;
            row = rest;
        }
    }
    return group;
}

/* ---- the plan: counted where there are no lists yet, else written ---- */

static int add_slice_loc(sti_tree_sum *sum, int block, int base, int slices)
{
    if (sum->slice_locs)
        sum->slice_locs[sum->slice_loc_count] =
            (slice_loc){.block = block, .base = base, .at = sum->landing_floats};
    if (block < 0)
        sum->landing_floats += slices * sum->slice_max_floats;
    return sum->slice_loc_count++;
}

static void add_move(sti_tree_sum *sum, sti_round_kind kind, int round, move m)
{
    if (sum->moves) {
        sum->moves[sum->move_count] = m;
        sum->rounds.moves[sum->move_count] =
            (sti_round_move){.round = round, .kind = kind};
    }
    sum->move_count++;
}

/* Nodes that are about to be joined. */
typedef struct joining {
    sti_tree_sum *sum;
    node *nodes;
} joining;

/* Into a block of this rank where there is one: x + y and y + x have the same bits. */
static void note_join(void *user, int into, int from)
{
    const joining *j = user;
    sti_tree_sum *sum = j->sum;
    node *l = &j->nodes[into];
    const int left = l->now, right = j->nodes[from].now;
    const bool swap = right < sum->block_count && left >= sum->block_count;
    l->now = swap ? right : left;
    if (sum->joins)
        sum->joins[sum->join_count] =
            (join){.into = l->now, .from = swap ? left : right};
    sum->join_count++;
}

static node node_of(const sti_shard_stack *stack, int i, int owner, int where)
{
    return (node){.first = stack->first[i],
                  .size = stack->size[i],
                  .owner = owner,
                  .loc = where,
                  .now = where};
}

/* Blocks of all ranks from the left. Own ones are the first locations; those of this
 * rank's group land, a column of slices of each. */
static int list_blocks(sti_tree_sum *sum, node *blocks)
{
    const int size = sti_comm_size(sum->comm), rank = sti_comm_rank(sum->comm);
    int count = 0;
    for (int i = 0; i < sum->block_count; i++)
        add_slice_loc(sum, i, 0, 0);
    for (int r = 0; r < size; r++) {
        sti_shard_stack stack = {.depth = 0};
        push_rank(&stack, sum->shards, size, r);
        const bool lands = r != rank && r / sum->group == rank / sum->group;
        for (int i = 0; i < stack.depth; i++)
            blocks[count++] =
                node_of(&stack, i, r,
                        lands ? add_slice_loc(sum, -1, sum->column, sum->hosts) : i);
    }
    return count;
}

/* What groups leave of them, of which the own slice lands here. */
static int join_groups(sti_tree_sum *sum, node *blocks, int count, node *left)
{
    const int local = sti_comm_rank(sum->comm) / sum->group;
    joining j = {.sum = sum, .nodes = blocks};
    int kept = 0;
    for (int i = 0; i < count;) {
        const int group = blocks[i].owner / sum->group;
        sti_shard_stack stack = {.depth = 0};
        for (; i < count && blocks[i].owner / sum->group == group; i++)
            sti_shard_push(&stack, blocks[i].first, blocks[i].size, i,
                           group == local ? note_join : join_nothing, &j);
        for (int k = 0; k < stack.depth; k++)
            left[kept++] =
                node_of(&stack, k, group,
                        group == local ? blocks[stack.slot[k]].now
                                       : add_slice_loc(sum, -1, sum->mine, 1));
    }
    return kept;
}

/* The rest of the tree; the location of the sum. */
static int join_all(sti_tree_sum *sum, node *left, int count)
{
    joining j = {.sum = sum, .nodes = left};
    sti_shard_stack stack = {.depth = 0};
    for (int i = 0; i < count; i++)
        sti_shard_push(&stack, left[i].first, left[i].size, i, note_join, &j);
    return left[sti_shard_finish(&stack, note_join, &j)].now;
}

/* A message for each block of the owner. */
static void add_messages(sti_tree_sum *sum, sti_round_kind kind, const sti_move *m,
                         const node *nodes, int count, int owner)
{
    for (int i = 0; i < count; i++)
        if (nodes[i].owner == owner)
            add_move(sum, kind, m->round,
                     (move){.peer = m->peer,
                            .loc = nodes[i].loc,
                            .slice = m->slice,
                            .count = m->count});
}

typedef struct lists {
    node *blocks, *left;
    sti_move *schedule;
    int64_t schedule_count;
} lists;

/* What the rounds of a group leave is joined before the others get it. */
static void add_inner_joins(sti_tree_sum *sum, int round, int joins)
{
    add_move(sum, STI_ROUND_WORK, round,
             (move){.slice = sum->column, .count = sum->hosts, .joins = joins});
}

static void walk(sti_tree_sum *sum, const lists *l)
{
    const int rank = sti_comm_rank(sum->comm), group = rank / sum->group;
    sum->slice_loc_count = sum->join_count = sum->move_count = 0;
    sum->landing_floats = 0;
    const int blocks = list_blocks(sum, l->blocks);
    const int left = join_groups(sum, l->blocks, blocks, l->left);
    const int inner = sum->join_count;
    const int end = join_all(sum, l->left, left);
    for (int64_t i = 0; i < l->schedule_count; i++) {
        const sti_move *m = &l->schedule[i];
        const bool raw = m->kind == STI_MOVE_SEND_RAW || m->kind == STI_MOVE_ADD_RAW;
        if (i > 0 && !raw && l->schedule[i - 1].kind == STI_MOVE_ADD_RAW)
            add_inner_joins(sum, m->round, inner);
        switch (m->kind) {
        case STI_MOVE_SEND_RAW:
            add_messages(sum, STI_ROUND_SEND, m, l->blocks, blocks, rank);
            break;
        case STI_MOVE_ADD_RAW:
            add_messages(sum, STI_ROUND_EXPECT, m, l->blocks, blocks, m->peer);
            break;
        case STI_MOVE_SEND:
            add_messages(sum, STI_ROUND_SEND, m, l->left, left, group);
            break;
        case STI_MOVE_ADD:
            add_messages(sum, STI_ROUND_EXPECT, m, l->left, left, m->peer / sum->group);
            break;
        case STI_MOVE_KEEP:
            add_move(sum, STI_ROUND_WORK, m->round,
                     (move){.loc = end,
                            .slice = m->slice,
                            .count = 1,
                            .first_join = inner,
                            .joins = sum->join_count - inner,
                            .last = true});
            break;
        case STI_MOVE_FORWARD:
        case STI_MOVE_SET: /* sums are in block 0 */
            add_move(sum, m->kind == STI_MOVE_SET ? STI_ROUND_EXPECT : STI_ROUND_SEND,
                     m->round,
                     (move){.peer = m->peer, .slice = m->slice, .count = m->count});
            break;
        }
    }
}

/* ---- life ---- */

/* Where parts begin; NULL: their number. */
static int cut_parts(int64_t count, int64_t max_floats, int64_t *from)
{
    int parts = 0;
    while (count > 0) {
        count -= sti_tree_sum_part(max_floats, count);
        if (from)
            from[parts] = count;
        parts++;
    }
    return parts;
}

static void set_up(sti_tree_sum *sum, sti_comm *comm, int64_t shards, int64_t count)
{
    const int size = sti_comm_size(comm), rank = sti_comm_rank(comm);
    const int64_t max_floats = sti_tree_sum_max_part_floats(size);
    const int group = group_of(comm);
    sum->comm = comm;
    sum->count = count;
    sum->shards = shards;
    sum->group = sti_tree_sum_scheme(size, group) == STI_SCHEME_TWO_LEVEL ? group : 1;
    sum->hosts = size / sum->group;
    sum->column = sum->group > 1 ? rank % sum->group * sum->hosts : 0;
    sum->mine = sum->group > 1 ? sum->column + rank / sum->group : rank;
    sum->block_count = sti_tree_sum_blocks(shards, size, rank, 1);
    sum->slice_max_floats =
        round_up(((max_floats < count ? max_floats : count) + size - 1) / size);
    sum->rounds.part_count = cut_parts(count, max_floats, NULL);
    sum->rounds.window = STI_TREE_SUM_WINDOW < sum->rounds.part_count
                             ? STI_TREE_SUM_WINDOW
                             : sum->rounds.part_count;
}

/* Everything but lists and landing: what they take is known then. */
static stint_status count_all(sti_tree_sum *sum, lists *l)
{
    const int size = sti_comm_size(sum->comm), rank = sti_comm_rank(sum->comm);
    const sti_scheme scheme = sti_tree_sum_scheme(size, sum->group);
    int64_t blocks = 0;
    for (int r = 0; r < size; r++)
        blocks += sti_tree_sum_blocks(sum->shards, size, r, 1);
    l->schedule_count = sti_schedule_make(scheme, size, sum->group, rank, NULL);
    l->blocks = sti_alloc_array(blocks, sizeof *l->blocks, "net.sum");
    l->left = sti_alloc_array(blocks, sizeof *l->left, "net.sum");
    l->schedule = sti_alloc_array(l->schedule_count, sizeof *l->schedule, "net.sum");
    if (!l->blocks || !l->left || !l->schedule)
        return STINT_E_MEMORY;
    sti_schedule_make(scheme, size, sum->group, rank, l->schedule);
    walk(sum, l);
    sum->rounds.move_count = sum->move_count;
    return STINT_OK;
}

static void lists_fini(lists *l)
{
    sti_free(l->blocks);
    sti_free(l->left);
    sti_free(l->schedule);
}

static const sti_rounds_ways ways;

static stint_status list_all(sti_tree_sum *sum, const lists *l)
{
    const int64_t max_floats = sti_tree_sum_max_part_floats(sti_comm_size(sum->comm));
    sum->rounds.comm = sum->comm;
    sum->rounds.ways = &ways;
    sum->from = sti_alloc_array(sum->rounds.part_count, sizeof *sum->from, "net.sum");
    sum->slice_locs =
        sti_alloc_array(sum->slice_loc_count, sizeof *sum->slice_locs, "net.sum");
    sum->joins = sti_alloc_array(sum->join_count, sizeof *sum->joins, "net.sum");
    sum->moves = sti_alloc_array(sum->move_count, sizeof *sum->moves, "net.sum");
    sum->landing = sti_alloc_array(sum->rounds.window * sum->landing_floats,
                                   sizeof *sum->landing, "net.landing");
    if (!sum->from || !sum->slice_locs || !sum->joins || !sum->moves || !sum->landing ||
        sti_rounds_init(&sum->rounds) != STINT_OK)
        return STINT_E_MEMORY;
    cut_parts(sum->count, max_floats, sum->from);
    walk(sum, l);
    return STINT_OK;
}

size_t sti_tree_sum_bytes(sti_comm *comm, int64_t shards, int64_t count)
{
    sti_tree_sum sum = {0};
    lists l = {0};
    set_up(&sum, comm, shards, count);
    const stint_status st = count_all(&sum, &l);
    lists_fini(&l);
    const sti_rounds *r = &sum.rounds;
    return st != STINT_OK
               ? 0
               : sizeof sum + (size_t)r->part_count * sizeof *sum.from +
                     (size_t)sum.slice_loc_count * sizeof *sum.slice_locs +
                     (size_t)sum.join_count * sizeof *sum.joins +
                     (size_t)sum.move_count * sizeof *sum.moves +
                     sti_rounds_bytes(r->window, r->move_count) +
                     (size_t)(r->window * sum.landing_floats) * sizeof *sum.landing;
}

stint_status sti_tree_sum_create(sti_comm *comm, int64_t shards, int64_t count,
                                 sti_tree_sum **sum_out)
{
    lists l = {0};
    sti_tree_sum *sum = sti_alloc(sizeof *sum, "net.sum");
    if (!sum)
        return STINT_E_MEMORY;
    set_up(sum, comm, shards, count);
    stint_status st = count_all(sum, &l);
    if (st == STINT_OK)
        st = list_all(sum, &l);
    lists_fini(&l);
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
    sti_rounds_fini(&sum->rounds);
    sti_free(sum->from);
    sti_free(sum->slice_locs);
    sti_free(sum->joins);
    sti_free(sum->moves);
    sti_free(sum->landing);
    sti_free(sum);
}

/* ---- one run ---- */

static int64_t floats_of(const sti_tree_sum *sum, int part)
{
    return (part > 0 ? sum->from[part - 1] : sum->count) - sum->from[part];
}

/* Where a slice begins in a part of so many floats. */
static int64_t slice_from(int64_t floats, int size, int slice)
{
    const int64_t at = slice * round_up((floats + size - 1) / size);
    return at < floats ? at : floats;
}

static int64_t slice_at(const sti_tree_sum *sum, int part, int slice)
{
    return slice_from(floats_of(sum, part), sti_comm_size(sum->comm), slice);
}

static int64_t slice_floats(const sti_tree_sum *sum, int part, const move *m)
{
    return slice_at(sum, part, m->slice + m->count) - slice_at(sum, part, m->slice);
}

static float *address(const sti_tree_sum *sum, int part, int number, int slice)
{
    const slice_loc *p = &sum->slice_locs[number];
    const int64_t at = slice_at(sum, part, slice);
    if (p->block >= 0)
        return sum->blocks[p->block] + sum->from[part] + at;
    return sum->landing + part % sum->rounds.window * sum->landing_floats + p->at + at -
           slice_at(sum, part, p->base);
}

static void do_joins(const sti_tree_sum *sum, int part, const move *m)
{
    const int64_t floats = slice_floats(sum, part, m);
    for (int i = m->first_join; i < m->first_join + m->joins; i++)
        sti_add_f32(sum->team, floats, address(sum, part, sum->joins[i].from, m->slice),
                    address(sum, part, sum->joins[i].into, m->slice));
    if (m->last && m->loc != 0)
        memcpy(address(sum, part, 0, m->slice), address(sum, part, m->loc, m->slice),
               (size_t)floats * sizeof(float));
}

static int64_t part_from(void *user, int part)
{
    return ((const sti_tree_sum *)user)->from[part];
}

/* Slices that this rank sent up have been added by others before their sum comes, so
 * nothing is overwritten that is still to be read. */
static void post_receive(void *user, int part, int number, sti_comm_request *request)
{
    const sti_tree_sum *sum = user;
    const move *m = &sum->moves[number];
    sti_comm_expect(sum->comm, m->peer, STI_TAG_SUM + (uint32_t)part,
                    address(sum, part, m->loc, m->slice),
                    (size_t)slice_floats(sum, part, m) * sizeof(float), request);
}

static stint_status make_move(void *user, int part, int number,
                              sti_comm_request *request)
{
    const sti_tree_sum *sum = user;
    const move *m = &sum->moves[number];
    if (sum->rounds.moves[number].kind == STI_ROUND_WORK)
        do_joins(sum, part, m);
    else
        sti_comm_send(sum->comm, m->peer, STI_TAG_SUM + (uint32_t)part,
                      address(sum, part, m->loc, m->slice),
                      (size_t)slice_floats(sum, part, m) * sizeof(float), request);
    return STINT_OK;
}

static const sti_rounds_ways ways = {
    .from = part_from, .post = post_receive, .make = make_move};

stint_status sti_tree_sum_run(sti_tree_sum *sum, const sti_team *team,
                              sti_ready_watermark *watermark, float *const *blocks,
                              int block_count)
{
    assert(block_count == sum->block_count);
    (void)block_count;
    sum->team = team;
    sum->blocks = blocks;
    return sti_rounds_run(&sum->rounds, watermark, sum);
}

void sti_tree_sum_traffic(const sti_tree_sum *sum, int64_t *messages_out,
                          int64_t *bytes_out)
{
    *messages_out = *bytes_out = 0;
    for (int i = 0; i < sum->move_count; i++)
        for (int p = 0;
             p < sum->rounds.part_count && sum->rounds.moves[i].kind == STI_ROUND_SEND;
             p++) {
            ++*messages_out;
            *bytes_out += slice_floats(sum, p, &sum->moves[i]) * (int64_t)sizeof(float);
        }
}

/* Floats of a part that a rank sends: its blocks to its neighbours, what is left of
 * them to the same local rank of other hosts, then the sums. */
static int64_t part_sent(const sti_tree_sum *sum, int rank, int64_t floats, int blocks,
                         int left)
{
    const int size = sti_comm_size(sum->comm), group = sum->group;
    const int column = rank % group * sum->hosts, mine = column + rank / group;
    const int64_t all = slice_from(floats, size, column + sum->hosts) -
                        slice_from(floats, size, column);
    const int64_t local =
        slice_from(floats, size, mine + 1) - slice_from(floats, size, mine);
    return (group > 1 ? blocks * (floats - all) : 0) + left * (all - local) +
           (sum->hosts - 1) * local + (group - 1) * all;
}

double sti_tree_sum_sent(sti_comm *comm, int64_t shards, int64_t count)
{
    const int size = sti_comm_size(comm);
    const int64_t max_floats = sti_tree_sum_max_part_floats(size);
    sti_tree_sum sum = {0};
    double floats = 0;
    set_up(&sum, comm, shards, count);
    for (int r = 0; r < size; r++) {
        const int blocks = sti_tree_sum_blocks(shards, size, r, 1);
        const int left =
            sti_tree_sum_blocks(shards, size, r / sum.group * sum.group, sum.group);
        for (int64_t rest = count; rest > 0;) {
            const int64_t part = sti_tree_sum_part(max_floats, rest);
            floats += (double)part_sent(&sum, r, part, blocks, left);
            rest -= part;
        }
    }
    return floats * sizeof(float) / size;
}
