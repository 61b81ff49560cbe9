#include "shrink/judge.h"

#include <math.h>

#include "base/fail.h"
#include "infer/eval_run.h"
#include "infer/evaluate.h"
#include "train/recipe_inputs.h"
#include "train/recipe_view.h"
#include "train/run_section.h"

enum { MOST_AT_ONCE = 32 }; /* images of a thread */

/* ---- the images ---- */

static stint_status read_labels(const stint_model_file *model, sti_judge_set *set)
{
    stint_data *data = NULL;
    stint_status st = sti_model_open_data(model, &set->desc, &data);
    if (st != STINT_OK)
        return st;
    set->count = stint_data_describe(data)->count;
    set->label = sti_alloc_array(set->count, sizeof *set->label, "labels");
    set->answer = sti_alloc_array(set->count, sizeof *set->answer, "answers");
    for (int64_t i = 0; i < set->count && set->label; i++)
        set->label[i] = sti_data_label(data, i);
    stint_data_close(data);
    return set->label && set->answer ? STINT_OK : STINT_E_MEMORY;
}

/* The class that a model gives to each image. */
static stint_status answer_all(const sti_judge *judge, const sti_judge_set *set,
                               stint_model_file *model, int32_t *answer)
{
    size_t bytes;
    if (set->count == 0)
        return STINT_OK;
    if (!sti_mul_bytes(set->count, (size_t)judge->classes * sizeof(float), &bytes))
        return sti_fail(STINT_E_MEMORY, "too many images to judge by");
    float *logits = sti_alloc(bytes, "scores");
    stint_status st = logits ? sti_eval_logits(model, &set->desc, judge->threads,
                                               judge->batch, NULL, NULL, logits)
                             : STINT_E_MEMORY;
    for (int64_t i = 0; i < set->count && st == STINT_OK; i++)
        answer[i] =
            sti_largest_logit(logits + i * judge->classes, (int32_t)judge->classes);
    sti_free(logits);
    return st;
}

/* ---- counts ---- */

typedef struct counts {
    int64_t all, right, changed, lost, won; /* lost: right before, wrong now */
} counts;

/* Counts over all images (part -1), or of every second one from `part` on. */
static counts count(const sti_judge_set *set, const int32_t *answer, int part)
{
    counts c = {0};
    for (int64_t i = part > 0; i < set->count; i += part < 0 ? 1 : 2) {
        const bool before = set->answer[i] == set->label[i];
        const bool now = answer[i] == set->label[i];
        c.all++;
        c.right += now;
        c.changed += answer[i] != set->answer[i];
        c.lost += before && !now;
        c.won += !before && now;
    }
    return c;
}

static double share(int64_t part, int64_t all)
{
    return all > 0 ? (double)part / (double)all : (double)NAN;
}

static counts judged(const sti_judge *j, const int32_t *answer)
{
    return count(&j->judging, answer, j->halves ? 0 : -1);
}

static counts reported(const sti_judge *j, const int32_t *judging,
                       const int32_t *reporting)
{
    return j->halves ? count(&j->judging, judging, 1)
                     : count(&j->reporting, reporting, -1);
}

/* ---- life ---- */

static bool has_test(const stint_recipe *recipe, stint_data_desc *desc)
{
    *desc = sti_recipe_data_desc(recipe, STI_PART_TEST);
    return stint_data_has_split(desc->path, desc->format, STINT_DATA_TEST);
}

/* Which split judges, and which reports. */
static stint_status choose_sets(const stint_model_file *model,
                                const stint_recipe *recipe, sti_judge *j)
{
    const double validation = sti_train_section_of(model->recipe)->validation;
    stint_data_desc test;
    const bool tested = has_test(recipe, &test);
    stint_status st = STINT_OK;
    if (validation > 0) {
        j->by = "validation";
        j->judging.desc = sti_recipe_data_desc(recipe, STI_PART_VALIDATION);
        j->judging.desc.hold_out = validation;
        j->reporting.desc = test;
        st = read_labels(model, &j->judging);
        return st == STINT_OK && tested ? read_labels(model, &j->reporting) : st;
    }
    j->by = "half of the test images";
    j->halves = true;
    j->judging.desc = test;
    if (!tested)
        return sti_fail(STINT_E_INPUT,
                        "%s: no images to judge by: the model was trained on all "
                        "training images, and there are no test images; give data with "
                        "test images, or a model that was trained with "
                        "train.validation",
                        test.path);
    return read_labels(model, &j->judging);
}

/* Within a budget all threads together take no more than a shard of a training has,
 * whose step needs more memory than answers to as many. */
static int64_t batch_within(const stint_recipe *recipe, int threads)
{
    const sti_train_values *train = sti_train_section_of(recipe);
    if (sti_run_section_of(recipe)->memory_bytes == 0 || train->batch == 0)
        return 0;
    const int64_t shard = train->batch / train->shards / train->accumulate;
    const int64_t images = shard / threads;
    return images < 1 ? 1 : images < MOST_AT_ONCE ? images : MOST_AT_ONCE;
}

stint_status sti_judge_open(stint_model_file *model, const stint_recipe *recipe,
                            int threads, sti_judge *j)
{
    *j = (sti_judge){.classes = model->network.model.classes,
                     .threads = threads,
                     .batch = batch_within(recipe, threads)};
    stint_status st;
    STI_TRY(choose_sets(model, recipe, j));
    if (j->judging.count < 2)
        STI_TRY(sti_fail(STINT_E_INPUT,
                         "shrink: fewer than two images to judge by; give more"));
    STI_TRY(answer_all(j, &j->judging, model, j->judging.answer));
    STI_TRY(answer_all(j, &j->reporting, model, j->reporting.answer));
    const counts a = judged(j, j->judging.answer);
    const counts b = reported(j, j->judging.answer, j->reporting.answer);
    j->judged = a.all;
    j->base_accuracy = share(a.right, a.all);
    j->base_test_accuracy = share(b.right, b.all);
out:
    return st;
}

stint_status sti_judge_ask(const sti_judge *j, stint_model_file *model,
                           sti_verdict *verdict)
{
    int32_t *judging = sti_alloc_array(j->judging.count, sizeof *judging, "answers");
    int32_t *reporting =
        sti_alloc_array(j->reporting.count, sizeof *reporting, "answers");
    stint_status st = judging && reporting ? STINT_OK : STINT_E_MEMORY;
    if (st == STINT_OK)
        st = answer_all(j, &j->judging, model, judging);
    if (st == STINT_OK)
        st = answer_all(j, &j->reporting, model, reporting);
    if (st == STINT_OK) {
        const counts a = judged(j, judging), b = reported(j, judging, reporting);
        *verdict =
            (sti_verdict){.accuracy = share(a.right, a.all),
                          .mismatch = share(a.changed, a.all),
                          .deviation = sqrt((double)(a.lost + a.won)) / (double)a.all,
                          .test_accuracy = share(b.right, b.all)};
    }
    sti_free(judging);
    sti_free(reporting);
    return st;
}

stint_status sti_judge_answers(const sti_judge *j, stint_model_file *model,
                               int32_t *answer)
{
    return answer_all(j, &j->judging, model, answer);
}

void sti_judge_fini(sti_judge *j)
{
    sti_free(j->judging.label);
    sti_free(j->judging.answer);
    sti_free(j->reporting.label);
    sti_free(j->reporting.answer);
    *j = (sti_judge){.judged = 0};
}
