#include "solve/rank_report.h"

#include "base/fail.h"
#include "base/memory.h"
#include "solve/rank_facts.h"
#include "solve/report_page.h"

size_t sti_rank_report_bytes(int64_t n, int64_t entries, int ranks)
{
    const size_t rows = (size_t)n, all = (size_t)entries, size = (size_t)ranks;
    return rows * (2 * sizeof(sti_trsv_span) + sizeof(sti_lanes_span) + 80) +
           (all / size + all / 16) * 12 + 2 * sizeof(sti_pattern) + ((size_t)4 << 20);
}

/* ---- the pattern ---- */

typedef struct counting {
    const int32_t *position;
    sti_pattern *picture;
} counting;

static stint_status count_batch(void *user, const sti_entries *batch)
{
    const counting *s = user;
    const int32_t *position = s->position;
    for (int64_t e = 0; e < batch->count; e++) {
        const int32_t i = batch->row[e], j = batch->column[e];
        sti_pattern_count(s->picture, position ? position[i] : i,
                          position ? position[j] : j);
    }
    return STINT_OK;
}

static stint_status count_entries(const void *user, const int32_t *position,
                                  sti_pattern *picture)
{
    const sti_entry_source *source = user;
    counting s = {position, picture};
    return source->pass(source, count_batch, &s);
}

/* ---- tasks ---- */

/* Bars of all ranks on rank 0; `lanes` of each. */
static stint_status watch(const sti_rank_report *r, int lanes,
                          sti_lanes_span **bars_out)
{
    const int64_t tasks = sti_rank_system_tasks(r->system);
    const int size = sti_comm_size(r->comm);
    const bool draws = sti_comm_rank(r->comm) == 0;
    sti_trsv_span *span = NULL;
    sti_lanes_span *bars = NULL;
    stint_status st = STINT_OK;
    if (tasks == 0)
        return st;
    if (draws) {
        span = sti_alloc_array(tasks, sizeof *span, "solve.report");
        bars = sti_alloc_array(tasks, sizeof *bars, "solve.report");
        st = span && bars ? STINT_OK : STINT_E_MEMORY;
    }
    st = sti_comm_agree(r->comm, st);
    if (st == STINT_OK)
        st = sti_rank_system_watch(r->system, span);
    for (int64_t t = 0; draws && st == STINT_OK && t < tasks; t++)
        bars[t] = (sti_lanes_span){(int)(t % size) * lanes + span[t].worker,
                                   span[t].from_s, span[t].to_s, span[t].wait_s};
    sti_free(span);
    if (st == STINT_OK)
        *bars_out = bars;
    else
        sti_free(bars);
    return st;
}

/* ---- the page ---- */

static stint_status draw(const sti_rank_report *r, const int32_t *level, int64_t levels,
                         const sti_lanes_span *bars, int lanes, const char *path)
{
    const sti_rank_system_info *info = sti_rank_system_info_of(r->system);
    return sti_report_page_write(
        &(sti_report_page){.name = r->name,
                           .n = info->n,
                           .entries = info->entries,
                           .info = &info->system,
                           .count = count_entries,
                           .count_user = r->source,
                           .order = sti_rank_system_order(r->system),
                           .level = level,
                           .levels = levels,
                           .span = bars,
                           .spans = sti_rank_system_tasks(r->system),
                           .ranks = sti_comm_size(r->comm),
                           .threads = lanes,
                           .residual = r->residual,
                           .history = r->history,
                           .iterations = r->iterations,
                           .solve_s = r->solve_s},
        path);
}

stint_status sti_rank_report_write(const sti_rank_report *report, const char *path)
{
    const sti_rank_report *r = report;
    sti_rank_facts facts = {0};
    sti_lanes_span *bars = NULL;
    int32_t *level = NULL;
    int64_t levels = 0, lanes = r->threads;
    stint_status st;
    STI_TRY(sti_comm_max(r->comm, &lanes, 1)); /* of a rank, whichever has most */
    STI_TRY(watch(r, (int)lanes, &bars));
    st = sti_rank_look(r->source, false, r->name, &facts);
    STI_TRY(sti_comm_agree(r->comm, st));
    STI_TRY(
        sti_rank_find_levels(r->comm, r->source, &facts, r->upper, &level, &levels));
    if (sti_comm_rank(r->comm) == 0)
        st = draw(r, level, levels, bars, (int)lanes, path);
    st = sti_comm_agree(r->comm, st);
out:
    sti_rank_facts_fini(&facts);
    sti_free(level);
    sti_free(bars);
    return st;
}
