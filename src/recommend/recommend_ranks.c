/* A training of clicks by several ranks: what they agree on, and the folders of their
 * parts. Rank 0 alone has the run's folder; each has its rows in
 * embeddings/part-RANK-of-RANKS, which may be of another host. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/fail.h"
#include "base/file.h"
#include "embed/row_journal.h"
#include "recommend/recipe_clicks.h"
#include "recommend/recommend.h"

int sti_recommend_ranks(const sti_recommend *r)
{
    return stint_net_ranks(r->desc->net);
}

stint_status sti_recommend_agree(sti_recommend *r, stint_status mine)
{
    return sti_run_agree(&r->folder, mine);
}

void sti_recommend_part(const sti_recommend *r, char folder_out[1200])
{
    const int ranks = sti_recommend_ranks(r);
    if (ranks == 1)
        snprintf(folder_out, 1200, "%.1000s", r->table);
    else
        snprintf(folder_out, 1200, "%.1000s/part-%d-of-%d", r->table,
                 stint_net_rank(r->desc->net), ranks);
}

/* Text is counted by one rank before the others look: those of its host find what it
 * left. */
stint_status sti_recommend_find_ranks(sti_recommend *r)
{
    stint_status st = r->first ? sti_recipe_ranks(r->recipe, r->ranks) : STINT_OK;
    st = sti_recommend_agree(r, st);
    if (st == STINT_OK && !r->first)
        st = sti_recipe_ranks(r->recipe, r->ranks);
    return sti_recommend_agree(r, st);
}

stint_status sti_recommend_compare(sti_recommend *r, const sti_learner *l)
{
    char data[128];
    snprintf(data, sizeof data, "clicks of SHA-256 %.16s", l->clicks.sha256);
    return sti_run_compare_data(&r->folder, data, l->steps);
}

stint_status sti_recommend_share_start(sti_recommend *r)
{
    int64_t place[2] = {r->generation, r->saved_step};
    sti_comm *comm = r->folder.comm;
    stint_status st = STINT_OK;
    if (!comm)
        return STINT_OK;
    sti_comm_set_context(comm, "the start from a checkpoint", 0);
    STI_TRY(sti_comm_broadcast(comm, 0, place, sizeof place));
    STI_TRY(sti_comm_broadcast(comm, 0, r->trail, sizeof r->trail));
    STI_TRY(stint_session_share(r->learner.session));
    r->generation = place[0];
    r->saved_step = place[1];
out:
    return st;
}

/* Counts of all ranks, but for the time that this one waited. */
stint_status sti_recommend_sum_counts(sti_recommend *r)
{
    sti_comm *comm = r->folder.comm;
    const int ranks = sti_recommend_ranks(r);
    sti_row_counts *c = &r->training;
    int64_t mine[] = {c->rows_touched,        c->rows_missed,
                      c->rows_given,          c->rows_given_dirty,
                      c->pages_read,          c->pages_written,
                      c->journal_bytes,       r->planned_missed,
                      r->learner.rows.cached, r->learner.rows.layout.pages};
    enum { COUNTS = sizeof mine / sizeof *mine };
    int64_t *all = NULL, sum[COUNTS] = {0};
    stint_status st = STINT_OK;
    if (comm) {
        all = sti_alloc_array(ranks, sizeof mine, "ranks");
        st = sti_recommend_agree(r, all ? STINT_OK : STINT_E_MEMORY);
        if (st == STINT_OK)
            st = sti_comm_gather_all(comm, mine, sizeof mine, all);
    }
    for (int i = 0; i < ranks * COUNTS && st == STINT_OK; i++)
        sum[i % COUNTS] += all ? all[i] : mine[i];
    sti_free(all);
    if (st != STINT_OK)
        return st;
    const double waited = c->waited_s;
    *c = (sti_row_counts){.rows_touched = sum[0],
                          .rows_missed = sum[1],
                          .rows_given = sum[2],
                          .rows_given_dirty = sum[3],
                          .pages_read = sum[4],
                          .pages_written = sum[5],
                          .journal_bytes = sum[6],
                          .waited_s = waited};
    r->planned_missed = sum[7];
    r->cached_all = sum[8];
    r->pages_all = sum[9];
    return STINT_OK;
}

/* ---- what an earlier run left ---- */

static stint_status remove_file(const char *folder, const char *name)
{
    char path[1300];
    snprintf(path, sizeof path, "%.1200s/%s", folder, name);
    return unlink(path) == 0 || errno == ENOENT
               ? STINT_OK
               : sti_fail_errno("%s: cannot be removed", path);
}

static stint_status remove_table(const char *folder)
{
    stint_status st = sti_row_journal_remove_all(folder);
    if (st == STINT_OK)
        st = remove_file(folder, "rows.bin");
    return st == STINT_OK ? remove_file(folder, "lock") : st;
}

/* Parts of a run by other ranks, or the table of one that had none; the files of this
 * run are begun anew when they are opened. */
stint_status sti_recommend_remove_parts(sti_recommend *r)
{
    char **names = NULL, path[1200];
    int64_t count = 0;
    stint_status st = STINT_OK;
    if (!sti_path_is_dir(r->table))
        return STINT_OK;
    if (sti_recommend_ranks(r) > 1)
        st = remove_table(r->table);
    if (st == STINT_OK)
        st = sti_dir_list(r->folder.arena, r->table, &names, &count);
    for (int64_t i = 0; i < count && st == STINT_OK; i++) {
        int part, parts;
        char rest;
        if (sscanf(names[i], "part-%d-of-%d%c", &part, &parts, &rest) != 2)
            continue;
        snprintf(path, sizeof path, "%.1000s/%s", r->table, names[i]);
        st = remove_table(path);
        if (st == STINT_OK && rmdir(path) != 0)
            st = sti_fail_errno("%s: cannot be removed", path);
    }
    return st;
}
