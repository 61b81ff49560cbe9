/* What a training of clicks will take: memory part by part, rows that will be missing,
 * and the time of a step over the size of the cache. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/fail.h"
#include "base/file.h"
#include "recommend/disk_rate.h"
#include "recommend/recipe_clicks.h"
#include "recommend/recommend.h"
#include "train/run_section.h"
#include "train/train_section.h"

enum { WARM = 1, STEPS_MOST = 30 };

/* A folder that is there, on the disk that the rows will lie on. */
static void find_folder(const stint_recipe *recipe, char out[1024])
{
    const char *own = sti_embedding_section_of(recipe)->path;
    sti_arena *arena = sti_arena_create("plan");
    const char *path = own && *own ? own : arena ? sti_recipe_out(recipe, arena) : NULL;
    snprintf(out, 1024, "%s", path ? path : ".");
    for (char *slash; !sti_path_is_dir(out) && (slash = strrchr(out, '/'));)
        *slash = '\0';
    if (!*out)
        snprintf(out, 1024, "/");
    sti_arena_destroy(arena);
}

static stint_status measure_disk(const stint_recipe *recipe, stint_embed_plan *plan)
{
    char folder[1024];
    sti_disk_probe probe;
    const sti_async_way way = (sti_async_way)sti_embedding_section_of(recipe)->io;
    find_folder(recipe, folder);
    stint_status st = sti_disk_probe_open(folder, &probe);
    if (st != STINT_OK)
        return st;
    st = sti_disk_probe_reads(&probe, way == STI_ASYNC_MMAP ? STI_ASYNC_AUTO : way,
                              STI_ASYNC_DEPTH, 0.3, &plan->reads_per_s);
    sti_disk_probe_close(&probe);
    return st;
}

/* The dense part's own time: steps of zeros for rows. */
static void zero_fill(void *user, int64_t shard, void *const *input)
{
    const sti_learner *l = user;
    const int64_t n = l->batch / l->shards;
    int i = 0;
    (void)shard;
    if (l->clicks.dense > 0)
        memset(input[i++], 0, 4 * (size_t)(n * l->clicks.dense));
    if (l->clicks.fields > 0)
        memset(input[i++], 0, 4 * (size_t)(n * l->clicks.fields * l->model.width));
    memset(input[i], 0, 4 * (size_t)n);
}

static stint_status measure_dense(sti_learner *l, stint_embed_plan *plan)
{
    const char *names[3];
    stint_graph *g = NULL;
    stint_session *session = NULL;
    stint_session_result r;
    stint_value logits = -1, loss = -1;
    stint_status st = stint_graph_create(STINT_TRAIN, &g);
    if (st == STINT_OK)
        st = sti_learner_graph(&l->model, &l->clicks, l->batch / l->shards, g, &logits,
                               &loss);
    if (st != STINT_OK) {
        stint_graph_destroy(g);
        return st;
    }
    const stint_session_desc desc = {.graph = g,
                                     .loss = loss,
                                     .inputs = names,
                                     .input_count =
                                         sti_learner_inputs(&l->clicks, true, names),
                                     .fill = zero_fill,
                                     .user = l,
                                     .recipe = l->recipe};
    st = stint_session_open(&desc, &session);
    int64_t start = sti_clock_ns();
    int steps = 0;
    for (; st == STINT_OK && steps < STEPS_MOST; steps++) {
        if (steps == WARM)
            start = sti_clock_ns();
        st = stint_session_step(session, &r);
        if (steps > WARM && sti_seconds_since(start) > 0.5)
            break;
    }
    plan->dense_step_s = sti_seconds_since(start) / (double)(steps > WARM ? steps : 1);
    stint_session_close(session);
    return st;
}

/* Steps of an epoch, or of the run where that is shorter. */
static int64_t epoch_steps(const sti_learner *l)
{
    const int64_t epoch = (l->clicks.train + l->batch - 1) / l->batch;
    return l->steps < epoch ? l->steps : epoch;
}

/* A missing row is a page to be read, one that gives way changed another to be read and
 * one to be written. */
static stint_status add_point(const sti_learner *l, int64_t cached, stint_embed_plan *p)
{
    const int64_t steps = epoch_steps(l);
    stint_embed_point *at = &p->point[p->point_count];
    sti_row_store_desc d = l->rows;
    d.cached = cached;
    const stint_status st = sti_learner_plan_misses(l, &d, 0, steps, &at->rows_missed);
    if (st == STINT_E_BUDGET)
        return STINT_OK; /* fewer rows than batches under way have: no such point */
    if (st != STINT_OK)
        return st;
    at->cache_rows = cached;
    at->cache_bytes = (int64_t)sti_row_store_bytes(&d);
    at->pages_read = 2 * at->rows_missed;
    const double pages = 3 * (double)at->rows_missed / (double)(steps > 0 ? steps : 1);
    const double disk = p->reads_per_s > 0 ? pages / p->reads_per_s : 0;
    at->step_s = disk > p->dense_step_s ? disk : p->dense_step_s;
    p->point_count++;
    return STINT_OK;
}

static stint_status draw_curve(const sti_learner *l, stint_embed_plan *p)
{
    static const double share[] = {0.005, 0.015, 0.05, 0.1, 0.2, 0.5, 1};
    stint_status st = STINT_OK;
    for (size_t i = 0; i < sizeof share / sizeof *share && st == STINT_OK; i++)
        st = add_point(l, (int64_t)ceil(share[i] * (double)l->clicks.rows), p);
    return st;
}

/* The least that the run can be given: what is beside the rows, and rows for the
 * batches under way. */
static stint_status find_smallest(sti_learner *l, stint_embed_plan *p)
{
    sti_row_store_desc d = l->rows;
    if (l->clicks.fields == 0)
        return STINT_OK;
    const stint_status st = sti_learner_least_rows(l, 0, epoch_steps(l), &d.cached);
    const size_t rows = sti_learner_rows_budget(l, d.cached);
    p->memory.smallest_bytes =
        l->dense_bytes + rows + rows / 128 + 2 * STI_LEARNER_VARIES;
    return st;
}

static void fill_plan(sti_learner *l, stint_embed_plan *p)
{
    const sti_row_layout *rows = &l->rows.layout;
    p->memory = l->plan;
    l->plan = (stint_plan_result){0};
    p->rows = l->clicks.rows;
    p->row_bytes = rows->record_bytes;
    p->table_bytes = rows->pages * (int64_t)rows->page_bytes;
    p->cache_rows = l->rows.cached < p->rows ? l->rows.cached : p->rows;
    p->cache_bytes = l->clicks.fields ? (int64_t)sti_row_store_bytes(&l->rows) : 0;
    p->steps = l->steps;
    p->batch = l->batch;
    p->samples = l->clicks.samples;
    p->train_samples = l->clicks.train;
}

static stint_status fill_times(sti_learner *l, stint_embed_plan *p)
{
    const int64_t steps = l->steps > 0 ? l->steps : 1;
    stint_status st;
    STI_TRY(measure_dense(l, p));
    if (l->clicks.fields > 0)
        STI_TRY(measure_disk(l->recipe, p));
    STI_TRY(sti_learner_plan_misses(l, &l->rows, 0, l->steps, &p->rows_missed));
    STI_TRY(draw_curve(l, p));
    const double disk =
        p->reads_per_s > 0 ? 3 * (double)p->rows_missed / (double)steps / p->reads_per_s
                           : 0;
    p->step_s = disk > p->dense_step_s ? disk : p->dense_step_s;
out:
    return st;
}

stint_status stint_embed_plan_of(const stint_recipe *recipe, stint_embed_plan *plan_out)
{
    stint_embed_plan plan = {.rows = 0};
    sti_learner l = {.clicks = {.fd = -1}};
    char ranks[1024];
    stint_status st = stint_recipe_check(recipe);
    STI_TRY(st);
    STI_TRY(sti_recipe_ranks(recipe, ranks));
    STI_TRY(sti_learner_open(
        &(sti_learner_desc){
            .recipe = recipe, .ranks = ranks, .folder = "", .plan_only = true},
        &l));
    fill_plan(&l, &plan);
    STI_TRY(find_smallest(&l, &plan));
    if (plan.memory.budget_bytes > 0 &&
        plan.memory.budget_bytes < plan.memory.smallest_bytes)
        plan.memory.fits = false;
    if (plan.memory.fits)
        STI_TRY(fill_times(&l, &plan));
    *plan_out = plan;
    plan.memory = (stint_plan_result){0};
out:
    stint_plan_fini(&plan.memory);
    sti_learner_close(&l);
    return st;
}
