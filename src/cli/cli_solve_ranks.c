/* stint solve on several ranks: each keeps its rows, rank 0 writes and tells. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/fail.h"
#include "base/stop.h"
#include "cli/cli_solve.h"
#include "data/market_stream.h"
#include "solve/rank_report.h"
#include "solve/trsv_cost.h"

typedef struct ranked {
    sti_solve_task *t;
    sti_comm *comm;
    int rank, size;
    int64_t done;          /* solves */
    sti_comm_counts apart; /* sent between solves */
    sti_market_stream stream;
    sti_entry_source source;
    sti_rank_system *system;
} ranked;

/* ---- memory ---- */

/* Upper bounds; nothing adapts to less. */
static stint_status make_account(const ranked *r)
{
    sti_solve_task *t = r->t;
    const size_t count = (size_t)(t->n * t->columns);
    sti_account *a = &t->account;
    *a = (sti_account){0};
    sti_account_add(a, "sides", "b and x", 2 * count * (sizeof(double) + 4));
    sti_rank_system_account(r->system, a);
    sti_account_add(a, "network", "between ranks",
                    sti_comm_block_bytes(r->comm) + sti_comm_shared_bytes(r->comm) +
                        sti_comm_start_peak_bytes(r->comm));
    sti_account_add(a, "reading", "entries that pass by", sti_market_stream_bytes());
    sti_account_add(a, "costs", "of this host, where they are measured",
                    sti_trsv_costs_bytes());
    if (t->args->report)
        sti_account_add(
            a, "report", "the page",
            sti_rank_report_bytes(t->n, sti_rank_system_info_of(r->system)->entries,
                                  r->size));
    sti_solve_add_process(a, t->desc.threads);
    t->least_bytes = a->total_bytes;
    return sti_account_check(a, t->args->memory_bytes, NULL);
}

/* ---- steps ---- */

/* Ranks of a host share its CPUs, unless -j says what each has. */
static int threads_of(const ranked *r)
{
    const int all = r->t->desc.threads;
    int here = 0;
    for (int k = 0; k < r->size; k++)
        here += strcmp(sti_comm_host(r->comm, k), sti_comm_host(r->comm, r->rank)) == 0;
    if (r->t->args->threads > 0)
        return all;
    return all > here ? all / here : 1;
}

static stint_status read_head(ranked *r)
{
    sti_solve_task *t = r->t;
    stint_status st = sti_solve_describe(t);
    if (st != STINT_OK)
        return st;
    t->desc.threads = threads_of(r);
    if (t->args->device == 1)
        return sti_fail(STINT_E_UNSUPPORTED,
                        "--device cuda is of one process; ranks solve on their CPUs");
    t->desc.a = NULL;
    const sti_market_desc d = {.path = t->call->operands[0],
                               .sum = t->args->duplicates == 1,
                               .threads = t->desc.threads};
    st = sti_market_stream_open(&d, &r->stream, &r->source);
    t->n = r->source.rows;
    t->ranks = r->size;
    if (st == STINT_OK)
        st = sti_solve_read_sides(t);
    if (st != STINT_OK)
        return st;
    t->desc.columns = t->columns;
    t->desc.stops = true;
    return r->rank == 0 ? sti_solve_watch(t) : STINT_OK;
}

static stint_status analyse(ranked *r)
{
    sti_solve_task *t = r->t;
    stint_status st;
    STI_TRY(
        sti_rank_system_create(&(sti_rank_system_desc){.comm = r->comm,
                                                       .source = &r->source,
                                                       .d = t->desc,
                                                       .share = !t->args->net_sockets},
                               &r->system));
    STI_TRY(sti_comm_agree(r->comm, make_account(r)));
    STI_TRY(sti_rank_system_prepare(r->system));
    const sti_rank_system_info *info = sti_rank_system_info_of(r->system);
    t->info = info->system;
    t->choice = info->system;
    t->nonzeros = info->entries;
    t->planned_messages = info->messages;
    t->planned_bytes = info->bytes;
    t->matrix_bytes = info->matrix_bytes;
    if (t->ones)
        st = sti_rank_system_ones(r->system, t->b);
out:
    return st;
}

static int compare(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* All begin a solve together, so that none is ahead by one that others are at. What it
 * takes to meet is no part of the solve. */
static stint_status meet(ranked *r)
{
    const sti_comm_counts before = sti_comm_count(r->comm);
    const stint_status st = sti_comm_barrier(r->comm);
    const sti_comm_counts now = sti_comm_count(r->comm);
    r->apart.messages_sent += now.messages_sent - before.messages_sent;
    r->apart.bytes_sent += now.bytes_sent - before.bytes_sent;
    return st;
}

/* A rank that is asked to stop takes the others with it. */
static stint_status run_solves(ranked *r)
{
    sti_solve_task *t = r->t;
    const int64_t solves = t->args->solves;
    int64_t done = 0;
    while (done < solves && t->solved == STINT_OK) {
        const stint_status stop = sti_stop_asked();
        if (stop != STINT_OK) {
            const stint_status st =
                sti_fail(stop, "stopped after %" PRId64 " solves", done);
            return sti_comm_give_up(r->comm, st);
        }
        const stint_status met = meet(r);
        if (met != STINT_OK)
            return met;
        const int64_t start = sti_clock_ns();
        t->solved = sti_rank_system_solve(r->system, t->columns, sti_solve_side(t),
                                          sti_solve_answer(t), &t->iterations);
        t->seconds[done++] = sti_seconds_since(start);
    }
    r->done = done;
    return t->solved == STINT_E_FAILED ? STINT_OK : t->solved;
}

enum { AT_ONCE = 16 }; /* numbers that a maximum takes */

/* The slowest rank says what a solve takes; the median of all solves. */
static stint_status find_slowest(ranked *r)
{
    double *seconds = r->t->seconds;
    int64_t *ns = sti_alloc_array(r->done, sizeof *ns, "solve.times");
    stint_status st = sti_comm_agree(r->comm, ns ? STINT_OK : STINT_E_MEMORY);
    for (int64_t k = 0; st == STINT_OK && k < r->done; k++)
        ns[k] = (int64_t)(seconds[k] * 1e9);
    for (int64_t k = 0; st == STINT_OK && k < r->done; k += AT_ONCE)
        st = sti_comm_max(r->comm, ns + k,
                          (int)(r->done - k < AT_ONCE ? r->done - k : AT_ONCE));
    for (int64_t k = 0; st == STINT_OK && k < r->done; k++)
        seconds[k] = (double)ns[k] * 1e-9;
    if (st == STINT_OK)
        qsort(seconds, (size_t)r->done, sizeof *seconds, compare);
    r->t->solve_s = r->done > 0 ? seconds[r->done / 2] : 0;
    sti_free(ns);
    return st;
}

/* What all ranks sent in a solve. */
static stint_status count_messages(ranked *r, sti_comm_counts before)
{
    const sti_comm_counts now = sti_comm_count(r->comm);
    const int64_t own[2] = {now.messages_sent - before.messages_sent -
                                r->apart.messages_sent,
                            now.bytes_sent - before.bytes_sent - r->apart.bytes_sent};
    int64_t sum[2] = {0};
    int64_t *all = sti_alloc_array(r->size, sizeof own, "solve.counts");
    stint_status st = sti_comm_agree(r->comm, all ? STINT_OK : STINT_E_MEMORY);
    if (st == STINT_OK)
        st = sti_comm_gather_all(r->comm, own, sizeof own, all);
    for (int k = 0; st == STINT_OK && k < 2 * r->size; k++)
        sum[k % 2] += all[k];
    r->t->messages = sum[0] / r->t->args->solves;
    r->t->bytes_sent = sum[1] / r->t->args->solves;
    sti_free(all);
    return st;
}

static stint_status solve(ranked *r)
{
    sti_solve_task *t = r->t;
    stint_status st;
    STI_TRY(sti_comm_agree(r->comm, sti_solve_alloc(t)));
    const sti_comm_counts before = sti_comm_count(r->comm);
    if (r->rank == 0)
        sti_solve_begin_bar(t);
    st = run_solves(r);
    if (r->rank == 0)
        sti_progress_clear(&t->bar);
    if (st != STINT_OK)
        goto out;
    STI_TRY(count_messages(r, before));
    STI_TRY(find_slowest(r));
    STI_TRY(sti_rank_system_gather(r->system, t->columns, sti_solve_answer(t)));
    if (t->desc.single)
        for (int64_t k = 0; k < t->n * t->columns; k++) {
            t->x[k] = (double)t->x32[k];
            t->b[k] = (double)t->b32[k];
        }
    STI_TRY(sti_rank_system_judge(r->system, t->columns, t->b, t->x, &t->residual));
    sti_solve_find_error(t);
out:
    return st;
}

static stint_status write_report(const ranked *r)
{
    const sti_solve_task *t = r->t;
    const sti_operator op = sti_system_operator(&t->desc, &t->choice);
    if (!t->args->report)
        return STINT_OK;
    return sti_rank_report_write(&(sti_rank_report){.name = t->call->operands[0],
                                                    .comm = r->comm,
                                                    .source = &r->source,
                                                    .system = r->system,
                                                    .upper = op.part == STI_PART_UPPER,
                                                    .threads = t->desc.threads,
                                                    .residual = &t->residual,
                                                    .history = &t->history,
                                                    .iterations = t->iterations,
                                                    .solve_s = t->solve_s},
                                 t->args->report);
}

static stint_status write_and_tell(ranked *r)
{
    sti_solve_task *t = r->t;
    stint_status st = STINT_OK;
    char why[512] = "";
    (void)snprintf(why, sizeof why, "%s", stint_last_error());
    if (r->rank == 0 && t->solved == STINT_OK)
        st = sti_solve_write(t);
    STI_TRY(sti_comm_agree(r->comm, st));
    STI_TRY(write_report(r));
    if (r->rank == 0)
        STI_TRY(sti_solve_tell(t));
    st = t->solved != STINT_OK ? sti_fail(t->solved, "%s", why) : STINT_OK;
out:
    return st;
}

stint_status sti_solve_on_ranks(sti_solve_task *t, sti_comm *comm)
{
    ranked r = {
        .t = t, .comm = comm, .rank = sti_comm_rank(comm), .size = sti_comm_size(comm)};
    stint_status st;
    STI_TRY(sti_comm_agree(comm, read_head(&r)));
    STI_TRY(analyse(&r));
    if (t->args->plan) {
        st = r.rank == 0 ? sti_solve_tell_plan(t, STINT_OK) : STINT_OK;
    } else {
        STI_TRY(solve(&r));
        st = write_and_tell(&r);
    }
    st = sti_comm_agree(comm, st);
out:
    sti_rank_system_destroy(r.system);
    return st;
}
