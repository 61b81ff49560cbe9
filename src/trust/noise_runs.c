#include "trust/noise_runs.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/fail.h"
#include "base/file.h"
#include "base/json.h"
#include "base/numerics.h"
#include "base/stop.h"
#include "base/team.h"
#include "base/units.h"
#include "model/network_recipe.h"
#include "train/recipe_inputs.h"
#include "train/recipe_view.h"
#include "trust/noise_origin.h"
#include "trust/state_log.h"

static const struct {
    const char *word, *key;
    sti_stream stream;
} seeds[STI_NOISE_SEEDS] = {{"init", "train.seed_init", STI_STREAM_INIT},
                            {"order", "train.seed_order", STI_STREAM_SHUFFLE},
                            {"augment", "train.seed_augment", STI_STREAM_AUGMENT},
                            {"dropout", "train.seed_dropout", STI_STREAM_DROPOUT}};

/* ---- arms ---- */

static stint_status unknown_word(const char *word)
{
    const char *names[STI_NOISE_SEEDS + 1];
    for (int s = 0; s < STI_NOISE_SEEDS; s++)
        names[s] = seeds[s].word;
    names[STI_NOISE_SEEDS] = "impl";
    const char *near = sti_text_nearest(word, names, STI_NOISE_SEEDS + 1);
    return sti_fail(STINT_E_USAGE,
                    "vary: '%s' is nothing that can vary%s%s; there are init, order, "
                    "augment, dropout and impl",
                    word, near ? "; did you mean " : "", near ? near : "");
}

static stint_status add_word(sti_noise_vary *vary, const char *word)
{
    for (int s = 0; s < STI_NOISE_SEEDS; s++)
        if (strcmp(word, seeds[s].word) == 0) {
            vary->seed[s] = true;
            return STINT_OK;
        }
    if (strcmp(word, "impl") != 0)
        return unknown_word(word);
    vary->impl = true;
    return STINT_OK;
}

/* One arm, named after what varies in the order of the table: "vary-init-impl". */
static stint_status arm_of_words(sti_noise_lab *lab)
{
    sti_noise_vary *vary = &lab->vary[0];
    sti_text name = {0};
    const char **words;
    int64_t count;
    stint_status st = sti_option_split(lab->arena, lab->desc->vary, &words, &count);
    for (int64_t i = 0; st == STINT_OK && i < count; i++)
        st = add_word(vary, words[i]);
    for (int s = 0; s < STI_NOISE_SEEDS; s++)
        if (vary->seed[s])
            sti_text_printf(&name, "-%s", seeds[s].word);
    if (vary->impl)
        sti_text_add(&name, "-impl");
    if (st == STINT_OK && name.data) {
        vary->folder = sti_arena_printf(lab->arena, "vary%s", name.data);
        vary->name = sti_arena_strdup(lab->arena, name.data + 1);
    }
    sti_text_fini(&name);
    lab->arms = 1;
    return st != STINT_OK || (vary->name && vary->folder) ? st : STINT_E_MEMORY;
}

stint_status sti_noise_arms(sti_noise_lab *lab)
{
    static const sti_noise_vary four[STI_NOISE_ARMS] = {
        {"ALGO+IMPL", "algo-impl", {true, true, true, true}, true},
        {"ALGO", "algo", {true, true, true, true}, false},
        {"IMPL", "impl", {false, false, false, false}, true},
        {"CONTROL", "control", {false, false, false, false}, false}};
    if (lab->desc->vary)
        return arm_of_words(lab);
    memcpy(lab->vary, four, sizeof four);
    lab->arms = STI_NOISE_ARMS;
    return STINT_OK;
}

/* "folder-01" of a run counted from 0, in the arena. */
static char *run_name(sti_noise_lab *lab, int arm, int64_t run)
{
    return sti_arena_printf(lab->matrix.arena, "%s-%02" PRId64, lab->vary[arm].folder,
                            run + 1);
}

char *sti_noise_run_path(sti_noise_lab *lab, int arm, int64_t run, const char *file)
{
    return sti_arena_printf(lab->matrix.arena, "%s/%s-%02" PRId64 "/%s",
                            lab->matrix.out, lab->vary[arm].folder, run + 1, file);
}

/* ---- what the folder is of ---- */

enum { PROBES = 32 };

/* Labels of a split and the pixels of a few of its images. */
static stint_status add_split(const stint_data *data, sti_sha256 *state)
{
    const stint_data_info *info = stint_data_describe(data);
    const size_t bytes = (size_t)(info->height * info->width * info->channels);
    sti_data_decoders *decoders = NULL;
    uint8_t *pixels = sti_alloc(bytes, "probe");
    stint_status st =
        pixels ? sti_data_decoders_create(data, 1, &decoders) : STINT_E_MEMORY;
    for (int64_t i = 0; i < info->count && st == STINT_OK; i++) {
        const int32_t label = sti_data_label(data, i);
        sti_sha256_add(state, &label, sizeof label);
    }
    for (int64_t p = 0; p < PROBES && st == STINT_OK; p++) {
        st = sti_data_decode(data, info->count * p / PROBES, decoders, 0, pixels);
        sti_sha256_add(state, pixels, bytes);
    }
    sti_data_decoders_destroy(decoders);
    sti_free(pixels);
    return st;
}

static stint_status fingerprint(sti_noise_lab *lab, char hex[65])
{
    const stint_data_desc desc = sti_recipe_data_desc(lab->recipe, STI_PART_TRAIN);
    stint_data *train = NULL;
    sti_sha256 state;
    sti_sha256_init(&state);
    if (lab->text.text) {
        sti_sha256_add(&state, lab->text.text->text_sha256, 64);
        sti_sha256_add(&state,
                       stint_tokenizer_describe(lab->text.text->tokenizer)->hash, 64);
        sti_sha256_hex(&state, hex);
        return STINT_OK;
    }
    stint_status st = stint_data_open(&desc, &train);
    if (st == STINT_OK)
        st = add_split(train, &state);
    if (st == STINT_OK)
        st = add_split(lab->test, &state);
    stint_data_close(train);
    sti_sha256_hex(&state, hex);
    return st;
}

static stint_status write_manifest(sti_noise_lab *lab, const char *path,
                                   const char *recipe, const char *sha)
{
    sti_text text = {0};
    sti_json j = {.out = &text, .pretty = true};
    sti_json_begin_object(&j, NULL);
    sti_json_text(&j, "numerics", STI_NUMERICS_VERSION);
    sti_json_text(&j, "impl", lab->desc->ulp ? "ulp" : "order");
    sti_json_text(&j, "data", sha);
    sti_json_text(&j, "recipe", recipe);
    sti_json_end_object(&j);
    sti_text_add(&text, "\n");
    stint_status st =
        text.failed ? STINT_E_MEMORY : sti_file_write(path, text.data, text.length);
    sti_text_fini(&text);
    return st;
}

static stint_status other_recipe(const sti_noise_lab *lab, const stint_recipe *then)
{
    const sti_recipe_view a = sti_recipe_view_of(lab->recipe),
                          b = sti_recipe_view_of(then);
    sti_text list = {0};
    sti_recipe_differences(lab->recipe, "now", then, "was", &list);
    /* Which do not count as a difference where a run may go on for longer. */
    if (!list.length && a.train->steps != b.train->steps)
        sti_text_printf(&list, "train.steps (now %" PRId64 ", was %" PRId64 ")",
                        a.train->steps, b.train->steps);
    if (!list.length && a.train->epochs != b.train->epochs)
        sti_text_printf(&list, "train.epochs (now %" PRId64 ", was %" PRId64 ")",
                        a.train->epochs, b.train->epochs);
    stint_status st = sti_fail(
        STINT_E_INPUT,
        "%s: the runs there are of another recipe%s%s; restore it, or choose "
        "another folder by --out",
        lab->matrix.out, list.length ? ": " : "", list.length ? list.data : "");
    sti_text_fini(&list);
    return st;
}

/* As text of today, so that keys which came later have their defaults. */
static stint_status check_recipe(const sti_noise_lab *lab, const char *path,
                                 const char *then_text, const char *now_text)
{
    stint_recipe *then = NULL;
    sti_text text = {0};
    stint_status st = sti_recipe_parse_stored(then_text, path, &then);
    if (st == STINT_OK)
        st = sti_recipe_write(then, true, &text);
    if (st == STINT_OK && strcmp(text.data, now_text) != 0)
        st = other_recipe(lab, then);
    sti_text_fini(&text);
    stint_recipe_destroy(then);
    return st;
}

#define MANIFEST_BYTES ((size_t)1 << 20)

static stint_status check_manifest(sti_noise_lab *lab, const char *path,
                                   const char *recipe, const char *sha)
{
    const char *now_impl = lab->desc->ulp ? "ulp" : "order", *out = lab->matrix.out;
    sti_arena *arena = lab->matrix.arena;
    sti_noise_origin then;
    void *text = NULL;
    size_t bytes;
    stint_status st = sti_file_read(path, MANIFEST_BYTES, &text, &bytes);
    if (st == STINT_OK)
        st = sti_noise_origin_parse(text, bytes, path, arena, &then);
    sti_free(text);
    if (st != STINT_OK)
        return st;
    if (strcmp(then.numerics, STI_NUMERICS_VERSION) != 0)
        return sti_fail(STINT_E_INPUT,
                        "%s: the runs there are by a Stint of other numerics (%s, this "
                        "one has %s) and cannot be held against new ones; choose "
                        "another folder by --out",
                        out, then.numerics, STI_NUMERICS_VERSION);
    if (strcmp(then.data, sha) != 0)
        return sti_fail(STINT_E_INPUT,
                        "%s: the runs there are of other data than %s; choose another "
                        "folder by --out",
                        out, sti_data_section_of(lab->recipe)->path);
    if (strcmp(then.impl, now_impl) != 0)
        return sti_fail(STINT_E_INPUT,
                        "%s: the runs there have implementation noise '%s'; go on with "
                        "--impl %s, or choose another folder by --out",
                        out, then.impl, then.impl);
    return check_recipe(lab, path, then.recipe, recipe);
}

stint_status sti_noise_manifest(sti_noise_lab *lab)
{
    char sha[65];
    sti_text recipe = {0};
    char *path = sti_path_join(lab->matrix.arena, lab->matrix.out, "noise.json");
    stint_status st = path ? fingerprint(lab, sha) : STINT_E_MEMORY;
    if (st == STINT_OK)
        st = sti_recipe_write(lab->recipe, true, &recipe);
    if (st == STINT_OK)
        st = sti_path_is_file(path) ? check_manifest(lab, path, recipe.data, sha)
                                    : write_manifest(lab, path, recipe.data, sha);
    sti_text_fini(&recipe);
    return st;
}

/* ---- the runs ---- */

static bool is_finished(sti_noise_lab *lab, int arm, int64_t run)
{
    sti_arena *arena = sti_arena_create("run");
    char *log_path = sti_noise_run_path(lab, arm, run, "log.jsonl");
    char *answers = sti_noise_run_path(
        lab, arm, run, lab->text.text ? "model.safetensors" : "answers.npy");
    sti_state_log log = {.lines = 0};
    bool finished = arena && log_path && answers && sti_path_is_file(answers) &&
                    sti_path_is_file(log_path) &&
                    sti_state_log_read(log_path, arena, &log) == STINT_OK && log.ended;
    sti_arena_destroy(arena);
    return finished;
}

/* The seeds of run 0 are the recipe's. CONTROL's runs differ in what must not matter.
 */
static sti_command *command_of(sti_noise_lab *lab, int arm, int64_t run, int threads)
{
    const sti_noise_vary *vary = &lab->vary[arm];
    const sti_recipe_view v = sti_recipe_view_of(lab->recipe);
    char *name = run_name(lab, arm, run);
    sti_command *c = name ? sti_matrix_command(&lab->matrix, name, threads) : NULL;
    if (!c)
        return NULL;
    sti_command_add(c, "--resume");
    if (!lab->text.text)
        sti_command_add(c, "--set=run.answers=true");
    sti_command_add(c, "--set=run.hash_every=%" PRId64, lab->hash_every);
    sti_command_add(c, "--set=train.eval_every=0");
    for (int s = 0; s < STI_NOISE_SEEDS; s++)
        if (vary->seed[s])
            sti_command_add(c, "--set=%s=%" PRIu64, seeds[s].key,
                            sti_recipe_seed(lab->recipe, seeds[s].stream) +
                                (uint64_t)run);
    if (vary->impl)
        sti_command_add(c, "--set=noise.%s=%" PRId64, lab->desc->ulp ? "ulp" : "order",
                        run + 1);
    bool any = vary->impl;
    for (int s = 0; s < STI_NOISE_SEEDS; s++)
        any = any || vary->seed[s];
    if (!any && v.run->memory_bytes == 0)
        sti_command_add(c, "--set=run.lanes=%" PRId64,
                        v.train->shards > 1 ? 1 + run % 2 : 1);
    return c->failed ? NULL : c;
}

typedef struct noise_share {
    int jobs, threads;   /* threads: of one run */
    size_t memory_bytes; /* of one run; 0: no limit */
} noise_share;

#define OWN_BYTES ((size_t)16 << 20) /* the measuring at the end */

static stint_status no_room(const sti_noise_lab *lab, size_t own, size_t one, int jobs)
{
    return sti_fail(STINT_E_BUDGET,
                    "memory: %s is too small for %d run%s of %s at once and %s for the "
                    "laboratory itself; give --memory %s%s",
                    sti_bytes_text(sti_run_section_of(lab->recipe)->memory_bytes), jobs,
                    sti_s(jobs), sti_bytes_text(one), sti_bytes_text(own),
                    sti_bytes_text(own + (size_t)jobs * one + ((size_t)1 << 20)),
                    jobs == 1 ? "" : ", or fewer --jobs");
}

/* As many runs at once as there are threads and memory for, each at its best; one that
 * has to save memory when there is no room for its best. */
static stint_status share_out(sti_noise_lab *lab, int64_t pending, noise_share *share)
{
    const size_t budget = sti_run_section_of(lab->recipe)->memory_bytes;
    const size_t own = sti_process_now_bytes() + OWN_BYTES;
    int threads;
    size_t peak, least;
    stint_status st = sti_threads_choose((int)sti_run_section_of(lab->recipe)->threads,
                                         &threads, NULL);
    if (st != STINT_OK)
        return st;
    const int64_t wanted = lab->desc->jobs > 0 ? lab->desc->jobs : threads;
    share->jobs = (int)(wanted < pending ? wanted : pending);
    share->threads = threads / share->jobs > 0 ? threads / share->jobs : 1;
    share->memory_bytes = 0;
    if (budget == 0)
        return STINT_OK;
    st = sti_matrix_plan(&lab->matrix, share->threads, &peak, &least);
    if (st != STINT_OK)
        return st;
    least += STI_MATRIX_SLACK_BYTES;
    peak += STI_MATRIX_SLACK_BYTES;
    const size_t room = budget > own ? budget - own : 0;
    if (lab->desc->jobs == 0)
        while (share->jobs > 1 && (size_t)share->jobs * peak > room)
            share->jobs--;
    if ((size_t)share->jobs * least > room)
        return no_room(lab, own, least, share->jobs);
    share->memory_bytes = room / (size_t)share->jobs;
    return STINT_OK;
}

typedef struct noise_job {
    sti_child child;
    const char *name;
} noise_job;

typedef struct noise_queue {
    sti_noise_lab *lab;
    noise_share share;
    noise_job *job; /* [share.jobs] */
    int64_t next, total, done;
    stint_status status; /* the first failure */
    char failure[2048];
} noise_queue;

static void note_failure(noise_queue *q, stint_status st)
{
    if (q->status != STINT_OK)
        return;
    q->status = st;
    snprintf(q->failure, sizeof q->failure, "%s", stint_last_error());
}

static void tell(const noise_queue *q, const char *what)
{
    if (q->lab->desc->progress)
        q->lab->desc->progress(q->lab->desc->user, what, q->done, q->total);
}

/* Run after run, so that all arms grow together. */
static stint_status start_next(noise_queue *q, noise_job *job)
{
    sti_noise_lab *lab = q->lab;
    for (; q->next < q->total; q->next++) {
        const int arm = (int)(q->next % lab->arms);
        const int64_t run = q->next / lab->arms;
        if (is_finished(lab, arm, run))
            continue;
        sti_command *c = command_of(lab, arm, run, q->share.threads);
        if (!c)
            return sti_fail(STINT_E_MEMORY, "out of memory for a command line");
        if (q->share.memory_bytes > 0)
            sti_command_add(c, "--memory=%zu", q->share.memory_bytes);
        job->name = run_name(lab, arm, run);
        q->next++;
        tell(q, job->name ? job->name : "");
        return sti_child_start(c, &job->child);
    }
    return STINT_OK;
}

static void end_job(noise_queue *q, noise_job *job, stint_status st)
{
    if (st == STINT_OK) {
        q->done++;
        q->lab->made++;
        tell(q, job->name);
        return;
    }
    sti_fail_context(st, "%s", job->name);
    note_failure(q, st);
}

static int poll_jobs(noise_queue *q)
{
    int running = 0;
    for (int i = 0; i < q->share.jobs; i++) {
        noise_job *job = &q->job[i];
        stint_status st = STINT_OK;
        if (job->child.pid && sti_child_poll(&job->child, &st))
            end_job(q, job, st);
        if (!job->child.pid && q->status == STINT_OK && sti_stop_asked() == STINT_OK) {
            st = start_next(q, job);
            if (st != STINT_OK)
                note_failure(q, st);
        }
        running += job->child.pid != 0;
    }
    return running;
}

stint_status sti_noise_run_all(sti_noise_lab *lab)
{
    noise_queue q = {.lab = lab, .total = lab->arms * lab->desc->runs};
    for (int64_t i = 0; i < q.total; i++)
        lab->kept += is_finished(lab, (int)(i % lab->arms), i / lab->arms);
    q.done = lab->kept;
    if (q.done == q.total)
        return STINT_OK;
    stint_status st = share_out(lab, q.total - q.done, &q.share);
    if (st != STINT_OK)
        return st;
    q.job = sti_alloc_array(q.share.jobs, sizeof *q.job, "runs");
    if (!q.job)
        return STINT_E_MEMORY;
    while (poll_jobs(&q) > 0)
        sti_child_pause();
    sti_free(q.job);
    const stint_status stop = sti_stop_asked();
    if (q.status != STINT_OK && q.status != stop)
        return sti_fail(q.status, "%s", q.failure);
    if (stop != STINT_OK)
        return sti_fail(stop, "stopped; the same command goes on from here");
    return STINT_OK;
}
