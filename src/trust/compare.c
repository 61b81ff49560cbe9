/* Two models over the same inputs, and models that tell what chance alone does. */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/fail.h"
#include "base/memory.h"
#include "data/data.h"
#include "trust/compare_imported.h"
#include "trust/compare_priv.h"
#include "trust/groups.h"
#include "trust/saliency.h"
#include "trust/same_task.h"

typedef struct comparison {
    const stint_compare_desc *desc;
    stint_model_file *reference;
    stint_data *data;
    int64_t count;
    int32_t classes;
    float *logits[2];
    int32_t *label;
    sti_groups groups;
    int32_t **floor;
} comparison;

/* What seeds alone change is nothing between a model and itself. */
static stint_status check_floor(const stint_model_file *model, const char *path,
                                const stint_model_file *other, const char *role)
{
    if (model->weights_sha256 && other->weights_sha256 &&
        strcmp(model->weights_sha256, other->weights_sha256) == 0)
        return sti_fail(STINT_E_INPUT,
                        "--floor: %s has the weights of the %s model, so that it tells "
                        "nothing about chance; give one of another seed",
                        path, role);
    return STINT_OK;
}

/* Before anything is evaluated, which may take long. */
static stint_status check_models(const stint_compare_desc *d,
                                 const stint_model_file *reference)
{
    stint_model_file *changed = NULL;
    stint_status st = stint_model_open(d->changed, &changed);
    if (st == STINT_OK)
        st = sti_check_same_task(reference, "the reference", changed, d->changed);
    for (int64_t f = 0; f < d->floors && st == STINT_OK; f++) {
        stint_model_file *model = NULL;
        st = stint_model_open(d->floor[f], &model);
        if (st == STINT_OK)
            st = sti_check_same_task(reference, "the reference", model, d->floor[f]);
        if (st == STINT_OK)
            st = check_floor(model, d->floor[f], reference, "reference");
        if (st == STINT_OK)
            st = check_floor(model, d->floor[f], changed, "new");
        stint_model_close(model);
    }
    stint_model_close(changed);
    return st;
}

static stint_status find_logits(const stint_compare_desc *d,
                                const stint_model_file *reference, const char *path,
                                stint_data_split split, float *logits)
{
    stint_data_desc data = d->data;
    stint_model_file *model = NULL;
    stint_status st = stint_model_open(path, &model);
    data.split = split;
    if (st == STINT_OK)
        st = sti_check_same_task(reference, "the reference", model, path);
    if (st == STINT_OK)
        st = sti_eval_logits(model, &data, d->threads, d->batch, d->progress, d->user,
                             logits);
    stint_model_close(model);
    return st;
}

static stint_status find_answers(const char *path, const float *logits, int64_t count,
                                 int32_t classes, int32_t *answer_out)
{
    int64_t bad;
    return sti_fidelity_answers(logits, count, classes, answer_out, &bad)
               ? STINT_OK
               : sti_fail(STINT_E_INPUT,
                          "%s gives a score that is not finite for input %" PRId64,
                          path, bad);
}

static void find_margins(const float *logits, int64_t count, int32_t classes,
                         const int32_t *answer, float *margin_out)
{
    for (int64_t i = 0; i < count; i++) {
        const float *z = logits + i * classes;
        float next = -INFINITY;
        for (int32_t c = 0; c < classes; c++)
            if (c != answer[i] && z[c] > next)
                next = z[c];
        margin_out[i] = z[answer[i]] - next;
    }
}

stint_status sti_compare_answers(const stint_compare_desc *desc,
                                 const stint_model_file *reference, const char *path,
                                 stint_data_split split, int64_t count,
                                 int32_t *answer_out, float *margin_out)
{
    const int32_t classes = (int32_t)reference->network.model.classes;
    float *logits = sti_alloc_array(count, (size_t)classes * sizeof *logits, "scores");
    stint_status st =
        logits ? find_logits(desc, reference, path, split, logits) : STINT_E_MEMORY;
    if (st == STINT_OK)
        st = find_answers(path, logits, count, classes, answer_out);
    if (st == STINT_OK && margin_out)
        find_margins(logits, count, classes, answer_out, margin_out);
    sti_free(logits);
    return st;
}

/* Room for what is found, once the data are open. */
static stint_status make_room(comparison *k)
{
    const stint_status st = sti_data_tell_absent(k->data);
    if (st != STINT_OK)
        return st;
    k->count = stint_data_describe(k->data)->count;
    k->classes = stint_data_describe(k->data)->classes;
    k->label = sti_alloc_array(k->count, sizeof *k->label, "labels");
    for (int64_t i = 0; i < k->count && k->label; i++)
        k->label[i] = sti_data_label(k->data, i);
    for (int m = 0; m < 2; m++)
        k->logits[m] =
            sti_alloc_array(k->count, (size_t)k->classes * sizeof(float), "scores");
    return k->label && k->logits[0] && k->logits[1] ? STINT_OK : STINT_E_MEMORY;
}

static stint_status open_data(comparison *k)
{
    const stint_status st = sti_model_open_data(k->reference, &k->desc->data, &k->data);
    return st == STINT_OK ? make_room(k) : st;
}

static stint_status run_floors(comparison *k)
{
    const stint_compare_desc *d = k->desc;
    stint_status st = STINT_OK;
    k->floor = sti_alloc_array(d->floors, sizeof *k->floor, "noise floor");
    if (!k->floor)
        return STINT_E_MEMORY;
    for (int64_t f = 0; f < d->floors && st == STINT_OK; f++) {
        k->floor[f] = sti_alloc_array(k->count, sizeof(int32_t), "noise floor");
        st = k->floor[f]
                 ? sti_compare_answers(d, k->reference, d->floor[f], d->data.split,
                                       k->count, k->floor[f], NULL)
                 : STINT_E_MEMORY;
    }
    return st;
}

/* ---- saliency ---- */

typedef struct attention {
    int32_t *sample;
    float *map[2];
    double *scratch, *rank, *ssim;
} attention;

static stint_status attention_init(attention *a, int64_t n, int64_t pixels)
{
    a->sample = sti_alloc_array(n, sizeof *a->sample, "saliency");
    a->map[0] = sti_alloc_array(n, (size_t)pixels * sizeof(float), "saliency");
    a->map[1] = sti_alloc_array(n, (size_t)pixels * sizeof(float), "saliency");
    a->scratch = sti_alloc_array(pixels, 6 * sizeof(double), "saliency");
    a->rank = sti_alloc_array(n, sizeof(double), "saliency");
    a->ssim = sti_alloc_array(n, sizeof(double), "saliency");
    return a->sample && a->map[0] && a->map[1] && a->scratch && a->rank && a->ssim
               ? STINT_OK
               : STINT_E_MEMORY;
}

static void attention_fini(attention *a)
{
    sti_free(a->sample);
    sti_free(a->map[0]);
    sti_free(a->map[1]);
    sti_free(a->scratch);
    sti_free(a->rank);
    sti_free(a->ssim);
}

/* Both models are asked about the reference's answer. */
static stint_status find_maps(const comparison *k, const attention *a, int64_t n,
                              const int32_t *answer)
{
    stint_model_file *model = NULL;
    stint_status st =
        sti_saliency_maps(k->reference, k->data, a->sample, n, answer, a->map[0]);
    if (st == STINT_OK)
        st = stint_model_open(k->desc->changed, &model);
    if (st == STINT_OK)
        st = sti_saliency_maps(model, k->data, a->sample, n, answer, a->map[1]);
    stint_model_close(model);
    return st;
}

static stint_status compare_saliency(const comparison *k, stint_fidelity *out)
{
    const sti_network_desc *net = &k->reference->network;
    const int64_t pixels = net->height * net->width;
    const int64_t n = k->desc->saliency < k->count ? k->desc->saliency : k->count;
    attention a = {NULL};
    stint_status st = attention_init(&a, n, pixels);
    for (int64_t i = 0; i < n && st == STINT_OK; i++)
        a.sample[i] = (int32_t)(i * k->count / n);
    if (st == STINT_OK)
        st = find_maps(k, &a, n, out->reference_answer);
    for (int64_t i = 0; i < n && st == STINT_OK; i++) {
        const float *r = a.map[0] + i * pixels, *c = a.map[1] + i * pixels;
        a.rank[i] = sti_rank_correlation(r, c, pixels, a.scratch);
        a.ssim[i] = sti_ssim(r, c, net->height, net->width);
    }
    if (st == STINT_OK) {
        out->saliency_rank = sti_agreement(a.rank, n);
        out->saliency_ssim = sti_agreement(a.ssim, n);
    }
    attention_fini(&a);
    return st;
}

/* Answers to images that are prepared in another way are put side by side as well as
 * any; only an accuracy far from that of the training's own test tells. */
static void check_preparation(const comparison *k, const stint_fidelity *f)
{
    const double then = k->reference->test_accuracy;
    if (k->desc->data.split == STINT_DATA_TEST &&
        fabs(f->reference_accuracy - then) > 0.1) /* false for NaN: it is not known */
        sti_log(STINT_LOG_WARNING,
                "%s: accuracy %.1f %% here, but %.1f %% on the test images it was "
                "trained with; are these other images, or prepared in another way?",
                k->desc->reference, 100 * f->reference_accuracy, 100 * then);
}

/* Networks of other programs have no recipe, no sizes and no classes' names: what the
 * data say is taken. */
static stint_status compare_imported(comparison *k, stint_fidelity *out)
{
    const stint_compare_desc *d = k->desc;
    stint_status st = sti_compare_imported_check(d);
    if (st == STINT_OK)
        st = sti_compare_imported_data(d, &k->data);
    if (st == STINT_OK)
        st = make_room(k);
    if (st == STINT_OK)
        st = sti_groups_init(&k->groups, d->group, d->group_count, k->count);
    if (st == STINT_OK)
        st = sti_compare_imported_scores(d, d->reference, k->data, k->logits[0]);
    if (st == STINT_OK)
        st = sti_compare_imported_scores(d, d->changed, k->data, k->logits[1]);
    if (st != STINT_OK)
        return st;
    const sti_fidelity_data data = {.count = k->count,
                                    .classes = k->classes,
                                    .reference = k->logits[0],
                                    .changed = k->logits[1],
                                    .label = k->label,
                                    .class_name =
                                        stint_data_describe(k->data)->class_names,
                                    .group = k->groups.of,
                                    .group_name = k->groups.name,
                                    .groups = k->groups.count};
    return sti_fidelity_find(&data, out);
}

static stint_status compare_all(comparison *k, stint_fidelity *out)
{
    const stint_compare_desc *d = k->desc;
    if (sti_compare_is_imported(d))
        return compare_imported(k, out);
    stint_status st = stint_model_open(d->reference, &k->reference);
    if (st == STINT_OK)
        st = open_data(k);
    if (st == STINT_OK)
        st = sti_groups_init(&k->groups, d->group, d->group_count, k->count);
    if (st == STINT_OK)
        st = check_models(d, k->reference);
    if (st == STINT_OK)
        st = find_logits(d, k->reference, d->reference, d->data.split, k->logits[0]);
    if (st == STINT_OK)
        st = find_logits(d, k->reference, d->changed, d->data.split, k->logits[1]);
    if (st == STINT_OK && d->floors > 0)
        st = run_floors(k);
    if (st != STINT_OK)
        return st;
    const sti_fidelity_data data = {.count = k->count,
                                    .classes = k->classes,
                                    .reference = k->logits[0],
                                    .changed = k->logits[1],
                                    .label = k->label,
                                    .class_name = k->reference->class_names,
                                    .group = k->groups.of,
                                    .group_name = k->groups.name,
                                    .groups = k->groups.count};
    st = sti_fidelity_find(&data, out);
    if (st == STINT_OK)
        check_preparation(k, out);
    if (st == STINT_OK && d->floors > 0)
        st =
            sti_fidelity_floor(&data, (const int32_t *const *)k->floor, d->floors, out);
    if (st == STINT_OK && d->saliency > 0)
        st = compare_saliency(k, out);
    return st;
}

static const char *keep(sti_arena *arena, const char *name, stint_status *st)
{
    const char *copy = *st == STINT_OK ? sti_arena_strdup(arena, name) : NULL;
    if (!copy && *st == STINT_OK)
        *st = STINT_E_MEMORY;
    return copy;
}

/* Names outlive the models. */
static stint_status keep_names(stint_fidelity *f)
{
    stint_status st = STINT_OK;
    for (int32_t c = 0; c < f->classes; c++)
        f->class_part[c].name = keep(f->arena, f->class_part[c].name, &st);
    for (int64_t g = 0; g < f->groups; g++)
        f->group_part[g].name = keep(f->arena, f->group_part[g].name, &st);
    return st;
}

static void comparison_fini(comparison *k)
{
    for (int64_t f = 0; k->floor && f < k->desc->floors; f++)
        sti_free(k->floor[f]);
    sti_free(k->floor);
    sti_groups_fini(&k->groups);
    sti_free(k->label);
    sti_free(k->logits[0]);
    sti_free(k->logits[1]);
    stint_data_close(k->data);
    stint_model_close(k->reference);
}

stint_status stint_compare(const stint_compare_desc *desc, stint_fidelity *out)
{
    comparison k = {.desc = desc};
    *out = (stint_fidelity){.arena = sti_arena_create("fidelity")};
    stint_status st = out->arena ? compare_all(&k, out) : STINT_E_MEMORY;
    if (st == STINT_OK)
        st = keep_names(out);
    comparison_fini(&k);
    if (st != STINT_OK)
        stint_fidelity_fini(out);
    return st;
}

void stint_fidelity_fini(stint_fidelity *f)
{
    sti_free(f->class_part);
    sti_free(f->group_part);
    sti_free(f->reference_answer);
    sti_free(f->changed_answer);
    if (f->arena)
        sti_arena_destroy(f->arena);
    *f = (stint_fidelity){0};
}
