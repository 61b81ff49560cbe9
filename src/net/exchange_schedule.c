#include "net/exchange_schedule.h"

#include "base/fail.h"

typedef struct list {
    sti_move *moves; /* or NULL */
    int64_t count;
} list;

static void add(list *l, sti_move move)
{
    move.count = move.count ? move.count : 1;
    if (l->moves)
        l->moves[l->count] = move;
    l->count++;
}

int64_t sti_schedule_part(int64_t fusion, int64_t left)
{
    if (fusion <= 0)
        return left;
    const int64_t least =
        fusion < STI_SCHEDULE_LEAST_PART ? fusion : STI_SCHEDULE_LEAST_PART;
    int64_t want = left / 3 < fusion ? left / 3 : fusion;
    want = want > least ? want : least;
    return left - want < least ? left : want;
}

stint_status sti_schedule_check(sti_scheme scheme, int size, int group)
{
    if (scheme == STI_SCHEME_TWO_LEVEL && (group < 1 || size % group))
        return sti_fail(STINT_E_USAGE,
                        "two-level exchange: %d ranks in groups of %d; every host must "
                        "have the same number of neighbouring ranks",
                        size, group);
    return STINT_OK;
}

/* Members first, first + stride, ...; member `me` owns slice base + me. */
typedef struct circle {
    int count, me, first, stride;
    int32_t base, round;
} circle;

static int32_t member(const circle *c, int i)
{
    return c->first + i % c->count * c->stride;
}

static void scatter(list *l, const circle *c)
{
    const int n = c->count;
    for (int k = 1; k < n; k++) /* everyone begins with another owner */
        add(l, (sti_move){.kind = STI_MOVE_SEND,
                          .round = c->round,
                          .peer = member(c, c->me + k),
                          .slice = c->base + (c->me + k) % n,
                          .part = n - 1 - k,
                          .parts = n - 1});
    for (int i = 0; i < n; i++)
        if (i != c->me)
            add(l, (sti_move){.kind = STI_MOVE_ADD,
                              .round = c->round,
                              .peer = member(c, i),
                              .slice = c->base + c->me});
    add(l, (sti_move){
               .kind = STI_MOVE_KEEP, .round = c->round + 1, .slice = c->base + c->me});
    for (int k = 1; k < n; k++)
        add(l, (sti_move){.kind = STI_MOVE_FORWARD,
                          .round = c->round + 1,
                          .peer = member(c, c->me + k),
                          .slice = c->base + c->me});
    for (int k = 1; k < n; k++)
        add(l, (sti_move){.kind = STI_MOVE_SET,
                          .round = c->round + 1,
                          .peer = member(c, c->me + n - k),
                          .slice = c->base + (c->me + n - k) % n});
}

static void ring(list *l, const circle *c)
{
    const int n = c->count;
    const int32_t next = member(c, c->me + 1), before = member(c, c->me + n - 1);
    for (int hop = 0; hop < n - 1; hop++) {
        add(l, (sti_move){.kind = STI_MOVE_SEND,
                          .round = hop,
                          .peer = next,
                          .slice = (c->me + n - hop) % n,
                          .part = hop,
                          .parts = n});
        add(l, (sti_move){.kind = STI_MOVE_ADD,
                          .round = hop,
                          .peer = before,
                          .slice = (c->me + 2 * n - hop - 1) % n});
    }
    add(l, (sti_move){.kind = STI_MOVE_KEEP,
                      .round = n - 1,
                      .slice = (c->me + 1) % n,
                      .part = n - 1,
                      .parts = n});
    for (int hop = 0; hop < n - 1; hop++) {
        add(l, (sti_move){.kind = STI_MOVE_FORWARD,
                          .round = n - 1 + hop,
                          .peer = next,
                          .slice = (c->me + 1 + n - hop) % n});
        add(l, (sti_move){.kind = STI_MOVE_SET,
                          .round = n - 1 + hop,
                          .peer = before,
                          .slice = (c->me + n - hop) % n});
    }
}

/* Slices i hosts .. (i + 1) hosts - 1 are the part of rank i of every host. */
static void two_levels(list *l, int size, int group, int rank)
{
    const int hosts = size / group, host = rank / group, me = rank % group;
    const int32_t mine = me * hosts, home = host * group;
    for (int k = 1; k < group; k++)
        add(l, (sti_move){.kind = STI_MOVE_SEND_RAW,
                          .peer = home + (me + k) % group,
                          .slice = (me + k) % group * hosts,
                          .count = hosts});
    for (int i = 0; i < group; i++)
        if (i != me)
            add(l, (sti_move){.kind = STI_MOVE_ADD_RAW,
                              .peer = home + i,
                              .slice = mine,
                              .count = hosts});
    scatter(l, &(circle){.count = hosts,
                         .me = host,
                         .first = me,
                         .stride = group,
                         .base = mine,
                         .round = 1});
    for (int k = 1; k < group; k++)
        add(l, (sti_move){.kind = STI_MOVE_FORWARD,
                          .round = 3,
                          .peer = home + (me + k) % group,
                          .slice = mine,
                          .count = hosts});
    for (int k = 1; k < group; k++)
        add(l, (sti_move){.kind = STI_MOVE_SET,
                          .round = 3,
                          .peer = home + (me + group - k) % group,
                          .slice = (me + group - k) % group * hosts,
                          .count = hosts});
}

int64_t sti_schedule_make(sti_scheme scheme, int size, int group, int rank,
                          sti_move *moves)
{
    list l = {.moves = moves};
    const circle all = {.count = size, .me = rank, .stride = 1};
    if (scheme == STI_SCHEME_TWO_LEVEL)
        two_levels(&l, size, group, rank);
    else if (scheme == STI_SCHEME_RING)
        ring(&l, &all);
    else
        scatter(&l, &all);
    return l.count;
}

/* Every slice goes once to its owner and once from there to all, or round a ring as
 * often; with two levels among ranks of the same local rank, after floats within the
 * hosts, and is then handed to the neighbours. */
sti_schedule_share sti_schedule_sent(sti_scheme scheme, int size, int group)
{
    const double g = scheme == STI_SCHEME_TWO_LEVEL ? group : 1, hosts = size / g;
    return (sti_schedule_share){.raw = (g - 1) / g,
                                .coded = 2 * (hosts - 1) / size + (g - 1) / g};
}

const char *sti_scheme_name(sti_scheme scheme)
{
    static const char *const names[] = {"scatter", "ring", "two-level"};
    return names[scheme];
}
