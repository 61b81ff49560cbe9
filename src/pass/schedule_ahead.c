/* A few nodes that free memory together, though none does alone: two that read one
 * value last, or one whose result the next turns into something small. They are run
 * early only where that stays below the height that the run has reached already, so
 * looking ahead never costs memory itself. */
#include "pass/schedule_priv.h"

/* First nodes that are tried; more are ready only where much waits for nothing. */
enum { MOST_FIRST = 64 };

typedef struct search {
    sti_scheduler *s;
    int most, count; /* nodes of the chain at hand */
    int32_t chain[STI_SCHEDULE_CHAIN];
    int best_count;
    int64_t best_level; /* bytes alive behind the best chain, more than now; negative */
    int32_t best[STI_SCHEDULE_CHAIN];
} search;

static bool is_in_chain(const search *a, int32_t n)
{
    for (int i = 0; i < a->count; i++)
        if (a->chain[i] == n)
            return true;
    return false;
}

static void keep_if_better(search *a, int64_t level)
{
    if (level >= a->best_level)
        return;
    a->best_level = level;
    a->best_count = a->count;
    for (int i = 0; i < a->count; i++)
        a->best[i] = a->chain[i];
}

/* All users of a node's results wait for it no longer, or do again. */
static void release(search *a, const sti_node *node, int32_t by)
{
    const sti_scheduler *s = a->s;
    for (int32_t i = 0; i < node->n_out; i++)
        for (int32_t r = s->first_user[node->out[i]]; r >= 0; r = s->next_user[r])
            s->waiting[s->read_node[r]] -= by;
}

static void extend(search *a, int32_t n, int64_t level);

/* What can follow: readers of what the last node read or made. */
static void follow(search *a, stint_value value, int64_t level)
{
    const sti_scheduler *s = a->s;
    for (int32_t r = value < 0 ? -1 : s->first_user[value]; r >= 0;
         r = s->next_user[r]) {
        const int32_t n = s->read_node[r];
        if (!s->done[n] && s->waiting[n] == 0 && !is_in_chain(a, n))
            extend(a, n, level);
    }
}

static void extend(search *a, int32_t n, int64_t level)
{
    sti_scheduler *s = a->s;
    const sti_node *node = sti_graph_node(s->graph, n);
    size_t made, freed;
    const int64_t top = (int64_t)s->live + level + (int64_t)sti_schedule_room(s, node);
    if (top > (int64_t)s->height)
        return;
    sti_schedule_effect(s, node, &made, &freed);
    level += (int64_t)made - (int64_t)freed;
    a->chain[a->count++] = n;
    keep_if_better(a, level);
    if (a->count < a->most) {
        sti_schedule_consume(s, node, 1);
        release(a, node, 1);
        for (int32_t i = 0; i < node->n_out; i++)
            follow(a, node->out[i], level);
        for (int32_t i = 0; i < node->n_in; i++)
            follow(a, node->in[i], level);
        release(a, node, -1);
        sti_schedule_consume(s, node, -1);
    }
    a->count--;
}

int sti_schedule_chain(sti_scheduler *s, int most, int32_t *chain_out)
{
    search a = {.s = s, .most = most};
    for (int32_t i = 0; i < s->ready_count && i < MOST_FIRST; i++)
        extend(&a, s->ready[i], 0);
    for (int i = 0; i < a.best_count; i++)
        chain_out[i] = a.best[i];
    return a.best_count;
}
