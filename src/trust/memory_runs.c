/* stint_memory_run: many networks, each trained on a random part of the images.
 *
 * As many runs stand side by side as threads and memory allow (memory_plan.c,
 * memory_work.c). Images are decoded once if that fits. */
#include <math.h>
#include <stdio.h>

#include "base/clock.h"
#include "base/cpu.h"
#include "base/fail.h"
#include "base/file.h"
#include "base/stop.h"
#include "model/network_recipe.h"
#include "train/recipe_view.h"
#include "trust/memory_page.h"
#include "trust/memory_priv.h"

/* ---- images ---- */

static stint_status prepare_split(const memory_lab *l, stint_data *data,
                                  sti_data_norm *norm, char sha256_out[65])
{
    const sti_team team = {.threads = l->jobs};
    sti_data_decoders *decoders;
    stint_status st = sti_data_decoders_create(data, team.threads, &decoders);
    if (st != STINT_OK)
        return st;
    if (l->keep)
        st = sti_data_keep(data, &team, decoders);
    if (st == STINT_OK && norm)
        st = sti_data_measure(data, &team, decoders, NULL, NULL, norm);
    if (st == STINT_OK)
        st = sti_data_sha256(data, decoders, sha256_out);
    sti_data_decoders_destroy(decoders);
    return st;
}

static void identify_text(memory_lab *l)
{
    const sti_corpus *text = l->job.inputs.text;
    sti_sha256 sha;
    sti_sha256_init(&sha);
    sti_sha256_add(&sha, text->text_sha256, 64);
    sti_sha256_add(&sha, stint_tokenizer_describe(text->tokenizer)->hash, 64);
    sti_sha256_hex(&sha, l->identity.train_sha256);
}

static stint_status prepare_samples(memory_lab *l)
{
    sti_memory_identity *id = &l->identity;
    *id = (sti_memory_identity){.recipe = l->recipe,
                                .fraction = l->desc->fraction,
                                .train = l->job.inputs.train_count,
                                .test = l->job.inputs.test_count,
                                .members = l->members,
                                .losses = l->job.inputs.text != NULL};
    if (id->losses) {
        identify_text(l);
        return STINT_OK;
    }
    stint_status st =
        prepare_split(l, l->job.inputs.train_data, &l->norm, id->train_sha256);
    return st == STINT_OK && l->job.inputs.test_data
               ? prepare_split(l, l->job.inputs.test_data, NULL, id->test_sha256)
               : st;
}

/* ---- results ---- */

static stint_status read_columns(const memory_lab *l, sti_memory_bits *b)
{
    sti_memory_answers a = {0};
    stint_status st = sti_memory_answers_init(&a, b->train, b->test, false);
    for (int64_t r = 0; r < b->runs && st == STINT_OK; r++) {
        st = sti_memory_folder_read(&l->folder, r, &a);
        for (int64_t i = 0; i < b->train && st == STINT_OK; i++) {
            if (a.member[i])
                sti_memory_set(b->member, b->words, i, r);
            if (a.train_right[i])
                sti_memory_set(b->train_right, b->words, i, r);
        }
        for (int64_t j = 0; j < b->test && st == STINT_OK; j++)
            if (a.test_right[j])
                sti_memory_set(b->test_right, b->words, j, r);
    }
    sti_memory_answers_fini(&a);
    return st;
}

static void read_labels(const memory_lab *l, sti_memory_bits *b)
{
    b->classes = (int32_t)l->job.inputs.network.model.classes;
    for (int64_t i = 0; i < b->train; i++)
        b->train_label[i] = sti_data_label(l->job.inputs.train_data, i);
    for (int64_t j = 0; j < b->test; j++)
        b->test_label[j] = sti_data_label(l->job.inputs.test_data, j);
}

static int64_t count_bits(const uint64_t *a, const uint64_t *b, int64_t words)
{
    int64_t count = 0;
    for (int64_t w = 0; w < words; w++)
        count += __builtin_popcountll(a[w] & (b ? ~b[w] : UINT64_MAX));
    return count;
}

/* Means over the runs. */
static void find_accuracies(const sti_memory_bits *b, stint_memory *m)
{
    const int64_t left_out =
        b->runs * b->train - count_bits(b->member, NULL, b->words * b->train);
    m->train_accuracy =
        (double)count_bits(b->train_right, b->member, b->words * b->train) /
        (double)left_out;
    m->test_accuracy =
        b->test > 0 ? (double)count_bits(b->test_right, NULL, b->words * b->test) /
                          (double)(b->runs * b->test)
                    : (double)NAN;
}

static stint_status estimate(const memory_lab *l, stint_memory *m)
{
    const sti_team team = {.threads = l->threads};
    sti_memory_bits bits;
    stint_status st = sti_memory_bits_init(
        &bits, l->desc->runs, l->job.inputs.train_count, l->job.inputs.test_count);
    if (st != STINT_OK)
        return st;
    st = read_columns(l, &bits);
    if (st == STINT_OK) {
        read_labels(l, &bits);
        st = sti_memory_estimate(&bits, l->desc, l->seed, &team, m);
    }
    if (st == STINT_OK) {
        find_accuracies(&bits, m);
        m->members = l->members;
        m->fraction = l->desc->fraction;
        st = sti_memory_write(l->folder.path, &bits, m, l->job.inputs.train_data,
                              l->job.inputs.test_data);
    }
    sti_memory_bits_fini(&bits);
    return st;
}

/* ---- all ---- */

static const char *out_folder(const memory_lab *l, const stint_recipe *recipe)
{
    const char *out = sti_recipe_out(recipe, l->arena);
    if (!out || (sti_run_section_of(recipe)->out && *sti_run_section_of(recipe)->out))
        return out;
    return sti_arena_printf(l->arena, "%s-memory", out);
}

static stint_status begin(memory_lab *l, const stint_recipe *recipe, bool text)
{
    stint_status st = stint_recipe_check(recipe);
    if (st == STINT_OK && sti_recipe_is_text(recipe) != text)
        st = sti_fail(STINT_E_UNSUPPORTED,
                      text ? "%s does not learn from text; stint_memory_run is for it"
                           : "%s learns from text; stint_memory_text_run is for it",
                      sti_recipe_network(recipe));
    if (st == STINT_OK && (sti_recipe_is_agent(recipe) || sti_recipe_is_clicks(recipe)))
        st =
            sti_fail(STINT_E_UNSUPPORTED,
                     "the recipe is that of %s; what is memorised is measured image by "
                     "image, or passage by passage",
                     sti_recipe_is_agent(recipe) ? "an agent" : "a model of clicks");
    if (st == STINT_OK && sti_recipe_is_field(recipe))
        st = sti_fail(STINT_E_UNSUPPORTED,
                      "%s is a field; what is memorised is measured image by image",
                      sti_recipe_network(recipe));
    if (st == STINT_OK)
        st = sti_isa_check();
    if (st == STINT_OK)
        st = sti_memory_check_desc(recipe, l->desc);
    if (st == STINT_OK)
        st = sti_threads_choose((int)sti_run_section_of(recipe)->threads, &l->threads,
                                NULL);
    if (st == STINT_OK)
        st = sti_recipe_copy(recipe, &l->recipe);
    if (st != STINT_OK)
        return st;
    sti_run_values *run = sti_recipe_edit(l->recipe, &sti_run_section);
    sti_error_values *error = sti_recipe_edit(l->recipe, &sti_error_section);
    run->threads = 1;
    run->lanes = 1;
    error->tau = 0; /* budgets are met without loss */
    l->seed = (uint64_t)sti_train_section_of(recipe)->seed;
    l->arena = sti_arena_create("memorisation");
    const char *out = l->arena ? out_folder(l, recipe) : NULL;
    if (!out)
        return STINT_E_MEMORY;
    st = sti_memory_plan(l, sti_run_section_of(recipe)->memory_bytes);
    if (st == STINT_OK)
        st = prepare_samples(l);
    if (st == STINT_OK)
        st = sti_memory_folder_open(l->arena, out, &l->identity, &l->folder);
    return st;
}

static memory_lab new_lab(const stint_memory_desc *desc)
{
    return (memory_lab){.desc = desc,
                        .failed_run = -1,
                        .folder.lock_fd = -1,
                        .lock = PTHREAD_MUTEX_INITIALIZER};
}

/* All runs, whether of this call or of one before. */
static stint_status make_runs(memory_lab *l, const stint_recipe *recipe, bool text)
{
    stint_status st = begin(l, recipe, text);
    if (st == STINT_OK)
        st = sti_memory_count_done(l);
    if (st == STINT_OK && l->done < l->desc->runs)
        st = sti_memory_train_all(l);
    return st;
}

static void lab_fini(memory_lab *l)
{
    sti_memory_folder_close(&l->folder);
    sti_job_fini(&l->job);
    stint_recipe_destroy(l->recipe);
    sti_arena_destroy(l->arena);
    pthread_mutex_destroy(&l->lock);
    sti_stop_clear();
}

stint_status stint_memory_run(const stint_recipe *recipe, const stint_memory_desc *desc,
                              stint_memory *m)
{
    memory_lab l = new_lab(desc);
    const int64_t start_ns = sti_clock_ns();
    *m = (stint_memory){0};
    stint_status st = make_runs(&l, recipe, false);
    if (st == STINT_OK)
        st = estimate(&l, m);
    if (st == STINT_OK) {
        m->runs_done = l.trained;
        m->jobs = l.jobs;
        m->kept_in_memory = l.keep;
        m->seconds = sti_seconds_since(start_ns);
        m->planned_peak_bytes = l.peak_bytes;
        m->peak_rss_bytes = sti_process_peak_bytes();
        snprintf(m->out, sizeof m->out, "%s", l.folder.path);
    }
    lab_fini(&l);
    return st;
}

stint_status stint_memory_text_run(const stint_recipe *recipe,
                                   const stint_memory_desc *desc, stint_memory_text *m)
{
    memory_lab l = new_lab(desc);
    const int64_t start_ns = sti_clock_ns();
    *m = (stint_memory_text){.arena = sti_arena_create("passages")};
    stint_status st = m->arena ? make_runs(&l, recipe, true) : STINT_E_MEMORY;
    if (st == STINT_OK)
        st = sti_memory_text_estimate(&l, m);
    if (st == STINT_OK) {
        m->runs_done = l.trained;
        m->jobs = l.jobs;
        m->seconds = sti_seconds_since(start_ns);
        m->planned_peak_bytes = l.peak_bytes;
        m->peak_rss_bytes = sti_process_peak_bytes();
        snprintf(m->out, sizeof m->out, "%s", l.folder.path);
    }
    lab_fini(&l);
    if (st != STINT_OK)
        stint_memory_text_fini(m);
    return st;
}
