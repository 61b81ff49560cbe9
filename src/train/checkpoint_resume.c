/* Going on from a checkpoint: the newest that is whole, and of this very run. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/fail.h"
#include "base/file.h"
#include "base/numerics.h"
#include "base/units.h"
#include "data/data_section.h"
#include "store/model_file.h"
#include "train/checkpoint_priv.h"
#include "train/schedule_section.h"
#include "train/scheme.h"
#include "train/shrink_section.h"
#include "train/train_section.h"

static stint_status broken(const sti_tensor_file *f, const char *what)
{
    return sti_fail(STINT_E_INPUT, "%s: %s", sti_tensor_file_path(f), what);
}

static stint_status read_norm(const sti_saver *s, const sti_tensor_file *f)
{
    double mean[3], deviation[3];
    int channels = (int)s->job->inputs.network.channels;
    if (!s->job->inputs.train_data)
        return STINT_OK; /* neither tokens nor points are normalised */
    if (!sti_meta_numbers(sti_tensor_file_text(f, STI_META_MEAN), channels, mean) ||
        !sti_meta_numbers(sti_tensor_file_text(f, STI_META_DEVIATION), channels,
                          deviation))
        return broken(f, "its normalisation cannot be read");
    for (int i = 0; i < channels; i++) {
        s->norm->mean[i] = (float)mean[i];
        s->norm->deviation[i] = (float)deviation[i];
    }
    return sti_norm_fault(s->norm, channels)
               ? broken(f, "its normalisation gives no finite numbers")
               : STINT_OK;
}

/* Let the host hold packed what the checkpoint's run did. */
static stint_status adopt_packs(const sti_saver *s, const sti_tensor_file *f)
{
    const sti_tensor_row *row = sti_tensor_file_find(f, STI_TENSOR_ERROR);
    float *state = NULL;
    stint_status st = STINT_OK;
    if (!s->adopt)
        return STINT_OK;
    if (!row)
        return s->adopt(s->adopt_user, NULL, 0);
    if (row->type != STI_TENSOR_F32 || row->rank != 2 || row->dim[0] > INT16_MAX ||
        row->dim[1] != STI_ERROR_STATE)
        return broken(f, "its bounds of packed tensors cannot be read");
    state = sti_alloc(row->bytes, "error state");
    st = state ? sti_tensor_file_read(f, row, state) : STINT_E_MEMORY;
    if (st == STINT_OK)
        st = s->adopt(s->adopt_user, state, (int)row->dim[0]);
    sti_free(state);
    return st;
}

static stint_status read_residuals(void *user, int64_t first, int64_t count, float *out)
{
    const sti_tensor_file *f = user;
    return sti_tensor_file_read_f32(f, sti_tensor_file_find(f, STI_TENSOR_RESIDUALS),
                                    first, count, out);
}

sti_exchange_source sti_saver_exchange_source(const sti_saver *s)
{
    const sti_tensor_row *row =
        s->resumed ? sti_tensor_file_find(s->resumed, STI_TENSOR_RESIDUALS) : NULL;
    return (sti_exchange_source){
        .count = row ? row->dim[0] : 0, .read = read_residuals, .user = s->resumed};
}

/* Residuals belong to ranks: those of another number of them are shared out anew; one
 * process has none. Said aloud, for the run is then another than with as many. */
static void tell_residuals(const sti_saver *s, const sti_tensor_file *f)
{
    const sti_tensor_row *row = sti_tensor_file_find(f, STI_TENSOR_RESIDUALS);
    const sti_exchange *exchange = s->engine->exchange;
    if ((row ? row->dim[0] : 0) != (exchange ? sti_exchange_state_count(exchange) : 0))
        sti_log(STINT_LOG_WARNING,
                "%s: made by another number of processes; what its compressed sums "
                "still owe is %s",
                sti_tensor_file_path(f), exchange ? "shared out anew" : "left out");
}

/* Straight into the engine's blocks; a later failure is followed by another file, or by
 * fresh weights. What sums owe is read when all ranks are there to take it. */
static stint_status read_tensors(const sti_saver *s, const sti_tensor_file *f)
{
    char sha[65];
    const char *want = sti_tensor_file_text(f, STI_META_CHECKPOINT);
    stint_status st = STINT_OK;
    tell_residuals(s, f);
    for (int64_t i = 0; i < s->list.count && st == STINT_OK; i++)
        if (!(i < s->weights && s->frozen[i]) &&
            !sti_saver_is_exchanged(&s->list.rows[i]))
            st = sti_tensor_list_read(&s->list, i, f);
    if (st == STINT_OK)
        st = sti_saver_checkpoint_sha256(s, f, sti_meta_find_in_file, f, sha);
    if (st != STINT_OK)
        return st;
    if (!want || strcmp(want, sha) != 0)
        return broken(f, "it is damaged: its bytes are not those that were written");
    if (s->control)
        sti_error_control_load(s->control, s->state,
                               sti_error_control_count(s->control));
    return STINT_OK;
}

static stint_status check_model(const sti_tensor_file *f, const char *meta,
                                const stint_model_file *now, const char *key)
{
    const char *then = sti_tensor_file_text(f, meta);
    const char *sha = now ? now->weights_sha256 : NULL;
    if (strcmp(then ? then : "", sha ? sha : "") == 0)
        return STINT_OK;
    return sti_fail(STINT_E_USAGE,
                    "%s: its run had %s weights of SHA-256 %.16s, the model now given "
                    "has %.16s; give that run's model, or train into another --out",
                    sti_tensor_file_path(f), key, then ? then : "none",
                    sha ? sha : "none");
}

static stint_status check_models(const sti_saver *s, const sti_tensor_file *f)
{
    stint_status st =
        check_model(f, STI_META_START, s->job->inputs.start, "train.start with");
    return st != STINT_OK ? st
                          : check_model(f, STI_META_REFERENCE, s->job->inputs.reference,
                                        "loss.reference with");
}

/* Parameters that are not trained have been read from the start. */
static stint_status check_frozen(const sti_saver *s, const sti_tensor_file *f)
{
    const char *then = sti_tensor_file_text(f, STI_META_FROZEN);
    char now[65] = "";
    if (s->any_frozen)
        sti_saver_frozen_sha256(s, now);
    if (strcmp(then ? then : "", now) == 0)
        return STINT_OK;
    return sti_fail(STINT_E_USAGE,
                    "%s: its run left parameters of SHA-256 %.16s as they were, this "
                    "one has %.16s; give that run's model, update.what and "
                    "update.gains, or train into another --out",
                    sti_tensor_file_path(f), then ? then : "none", *now ? now : "none");
}

/* What makes it a checkpoint of another run: an error, not a reason to look further. */
static stint_status check_run(const sti_saver *s, const sti_tensor_file *f)
{
    const char *numerics = sti_tensor_file_text(f, STI_META_NUMERICS);
    const char *learned = sti_tensor_file_text(f, s->learned_key);
    const char *count = sti_tensor_file_text(f, STI_META_COUNT);
    const char *sha = sti_tensor_file_text(f, STI_META_TEXT_SHA);
    const char *points = sti_tensor_file_text(f, STI_META_FIELD_SHA);
    int64_t train_count = -1;
    if (!numerics || strcmp(numerics, STI_NUMERICS_VERSION) != 0)
        return sti_fail(
            STINT_E_INPUT,
            "%s: made by a Stint of other numerics (%s, this one has %s); go "
            "on with that one, or start anew with --force",
            sti_tensor_file_path(f), numerics ? numerics : "none",
            STI_NUMERICS_VERSION);
    if (!learned || strcmp(learned, s->learned) != 0 || !count ||
        sti_parse_int(count, &train_count) != STINT_OK ||
        train_count != s->job->inputs.train_count ||
        (s->job->inputs.text &&
         (!sha || strcmp(sha, s->job->inputs.text->text_sha256) != 0)) ||
        (s->job->inputs.field &&
         (!points || strcmp(points, s->job->inputs.field->sha256) != 0)))
        return sti_fail(STINT_E_INPUT,
                        "%s: was trained on other data: %s differ from %s; give that "
                        "run's data, or another --out",
                        sti_tensor_file_path(f),
                        s->job->inputs.text    ? "text or tokeniser"
                        : s->job->inputs.field ? "points or values"
                                               : "classes or number of images",
                        sti_data_section_of(s->job->inputs.recipe)->path);
    return STINT_OK;
}

/* As many images of the same classes may be others. */
static stint_status check_images(const sti_saver *s, const sti_tensor_file *f)
{
    const char *then = sti_tensor_file_text(f, STI_META_IMAGES);
    const char *now = s->job->images_hash;
    if (!s->job->inputs.train_data || (then && strcmp(then, now) == 0))
        return STINT_OK;
    if (then)
        return sti_fail(STINT_E_INPUT,
                        "%s: was trained on other images: as many and of the same "
                        "classes as %s has now, but pixels or labels have changed "
                        "since (hash then %.16s, now %.16s); restore them, or train "
                        "into another --out",
                        sti_tensor_file_path(f),
                        sti_data_section_of(s->job->inputs.recipe)->path, then, now);
    sti_log(STINT_LOG_INFO,
            "%s: an older version of Stint wrote it, without a hash of the images; "
            "whether they are still the same is not known",
            sti_tensor_file_path(f));
    return STINT_OK;
}

/* Residuals in an order that is not ours any more. */
static stint_status check_residuals(const sti_saver *s, const sti_tensor_file *f)
{
    const sti_tensor_row *row = sti_tensor_file_find(f, STI_TENSOR_RESIDUALS);
    if (!sti_tensor_file_find(f, STI_TENSOR_OLD_RESIDUALS) &&
        (!row || (row->rank == 1 && row->type == STI_TENSOR_F32 &&
                  (!s->engine->exchange ||
                   sti_exchange_can_load(s->engine->exchange, row->dim[0])))))
        return STINT_OK;
    return sti_fail(
        STINT_E_USAGE,
        "%s: an older version of Stint wrote what its compressed sums still "
        "owe; go on with that one, or train into another --out",
        sti_tensor_file_path(f));
}

/* Stages are parts of the epochs, so that the end of a growing run cannot be moved. */
static stint_status check_stages(const sti_saver *s, const sti_tensor_file *f,
                                 const sti_train_values *was)
{
    const sti_train_values *now = sti_train_section_of(s->job->inputs.recipe);
    if (now->epochs == was->epochs && now->steps == was->steps)
        return STINT_OK;
    return sti_fail(STINT_E_USAGE,
                    "%s: cannot be resumed with another end: train.epochs (now %" PRId64
                    ", was %" PRId64 "), train.steps (now %" PRId64 ", was %" PRId64
                    "), of which the stages of [grow] are parts; restore them, or "
                    "train into another --out",
                    sti_tensor_file_path(f), now->epochs, was->epochs, now->steps,
                    was->steps);
}

/* Where the rate does not look at the end of a run, the end may be moved: forth, or
 * back to a step that is still to come. A warm-up that the end cut short, and an epoch
 * that it closed early for train.select to judge, are of that end alone. */
static stint_status check_end(const sti_saver *s, const sti_tensor_file *f,
                              const stint_recipe *then, int64_t step)
{
    const sti_job *job = s->job;
    const sti_train_values *was = sti_train_section_of(then);
    const int64_t now = job->steps, an_epoch = sti_course_epoch_ticks(&job->course);
    const int64_t old = was->steps > 0 ? was->steps : was->epochs * an_epoch;
    const double warmup =
        sti_schedule_section_of(then)->warmup * (double)an_epoch; /* steps */
    const char *file = sti_tensor_file_path(f);
    if (step > now)
        return sti_fail(STINT_E_USAGE,
                        "%s: its run is at step %" PRId64
                        " already, but this one is to end after step %" PRId64
                        "; resume it with --epochs %" PRId64
                        " or more, or train into another --out",
                        file, step, now, (step + an_epoch - 1) / an_epoch);
    if (job->course.grows)
        return check_stages(s, f, was);
    if (now == old)
        return STINT_OK;
    if (warmup > (double)(now < old ? now : old))
        return sti_fail(STINT_E_USAGE,
                        "%s: cannot be resumed with another end (now step %" PRId64
                        ", was %" PRId64 "): schedule.warmup is longer than one of the "
                        "two runs, so that their rates differ from the start; restore "
                        "the end, or train into another --out",
                        file, now, old);
    if (step == old && old % an_epoch != 0 && was->select != STI_SELECT_LAST)
        return sti_fail(STINT_E_USAGE,
                        "%s: cannot be resumed with another end (now step %" PRId64
                        ", was %" PRId64
                        "): train.select has judged the weights there, "
                        "within an epoch; restore the end, or train into another --out",
                        file, now, old);
    return STINT_OK;
}

/* A recipe.ini in which a run wrote the shares that it chose for kernel(auto) is the
 * recipe that it began with. */
static stint_status follow_shares(const stint_recipe *now, stint_recipe *then)
{
    const char *settled = sti_shrink_section_of(now)->scheme;
    const char *open = sti_shrink_section_of(then)->scheme;
    return settled && open && sti_scheme_is_settled(settled, open)
               ? stint_recipe_set(then, "shrink.scheme", settled)
               : STINT_OK;
}

static stint_status check_recipe(const sti_saver *s, const sti_tensor_file *f,
                                 int64_t step)
{
    const char *text = sti_tensor_file_text(f, STI_META_RECIPE);
    stint_recipe *then;
    if (!text)
        return broken(f, "it holds no recipe");
    stint_status st = sti_recipe_parse_stored(text, sti_tensor_file_path(f), &then);
    if (st != STINT_OK)
        return st;
    sti_text list = {0};
    st = follow_shares(s->job->inputs.recipe, then);
    if (st != STINT_OK) {
        stint_recipe_destroy(then);
        return st;
    }
    sti_recipe_differences(s->job->inputs.recipe, "now", then, "was", &list);
    if (list.length)
        st = sti_fail(STINT_E_USAGE,
                      "%s: cannot be resumed with a recipe that would give another "
                      "result: %s; restore these, or train into another --out",
                      sti_tensor_file_path(f), list.data);
    else
        st = check_end(s, f, then, step);
    sti_text_fini(&list);
    stint_recipe_destroy(then);
    return st;
}

/* Sessions of guests have files of their own, which are not broken. */
static stint_status check_kind(const sti_tensor_file *f)
{
    const bool agent = sti_tensor_file_text(f, STI_META_PLAY);
    if (!agent && !sti_tensor_file_text(f, STI_META_CLICKS))
        return STINT_OK;
    return sti_fail(STINT_E_USAGE,
                    "%s: its run was that of %s; give its recipe, or train into "
                    "another --out",
                    sti_tensor_file_path(f), agent ? "an agent" : "a model of clicks");
}

/* *usable false with STINT_OK: broken (logged). */
static stint_status try_file(sti_saver *s, const char *path, sti_position *position,
                             bool *usable)
{
    sti_tensor_file *f = NULL;
    *usable = false;
    stint_status st = sti_tensor_file_open(path, &f);
    if (st == STINT_OK && check_kind(f) != STINT_OK) {
        sti_tensor_file_close(f);
        return STINT_E_USAGE;
    }
    if (st == STINT_OK)
        st = sti_position_read(f, position);
    if (st == STINT_OK) {
        stint_status other = check_run(s, f);
        if (other == STINT_OK)
            other = check_recipe(s, f, position->step);
        if (other == STINT_OK)
            other = check_images(s, f);
        if (other == STINT_OK)
            other = check_models(s, f);
        if (other == STINT_OK)
            other = check_frozen(s, f);
        if (other != STINT_OK) {
            sti_tensor_file_close(f);
            return other;
        }
        st = read_norm(s, f);
    }
    if (st == STINT_OK)
        st = adopt_packs(s, f);
    /* Where results lie, and so how many numbers are owed, the packs decide. */
    if (st == STINT_OK) {
        const stint_status other = check_residuals(s, f);
        if (other != STINT_OK) {
            sti_tensor_file_close(f);
            return other;
        }
        st = read_tensors(s, f);
    }
    *usable = st == STINT_OK;
    if (*usable && s->engine->exchange)
        s->resumed = f;
    else
        sti_tensor_file_close(f);
    if (st == STINT_E_MEMORY || st == STINT_E_BUDGET)
        return st;
    if (!*usable)
        sti_log(STINT_LOG_WARNING, "%s; taking an older checkpoint",
                stint_last_error());
    return STINT_OK;
}

stint_status sti_saver_resume(sti_saver *s, const char *folder, sti_position *position,
                              bool *found)
{
    sti_arena *arena = sti_arena_create("checkpoint names");
    char **names;
    int64_t count = 0;
    *found = false;
    if (!arena)
        return STINT_E_MEMORY;
    stint_status st = sti_checkpoint_list(arena, folder, &names, &count);
    for (int64_t i = count - 1; i >= 0 && st == STINT_OK && !*found; i--) {
        char *path = sti_path_join(arena, folder, names[i]);
        st = path ? try_file(s, path, position, found) : STINT_E_MEMORY;
    }
    sti_arena_destroy(arena);
    return st;
}
