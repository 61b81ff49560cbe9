/* Several networks about the same images: how sure they are, and how right. */
#include "trust/uncertainty.h"

#include <math.h>
#include <string.h>

#include "base/fail.h"
#include "base/memory.h"
#include "data/data.h"
#include "infer/eval_run.h"
#include "trust/calibration.h"
#include "trust/same_task.h"
#include "trust/statistics.h"

typedef struct hearings {
    const stint_uncertainty_desc *desc;
    stint_model_file **model; /* [1 + ensemble_count] */
    int64_t models;
    sti_opinions known, strange; /* of the split's images, of the strangers */
    stint_uncertainty *out;
} hearings;

/* ---- models ---- */

static const char *path_of(const stint_uncertainty_desc *d, int64_t i)
{
    return i == 0 ? d->model : d->ensemble[i - 1];
}

/* A network that is counted twice says nothing new. */
static stint_status check_other(const hearings *h, int64_t i)
{
    const stint_model_file *model = h->model[i];
    stint_status st = sti_check_same_task(h->model[0], path_of(h->desc, 0), model,
                                          path_of(h->desc, i));
    for (int64_t k = 0; k < i && st == STINT_OK; k++)
        if (model->weights_sha256 && h->model[k]->weights_sha256 &&
            strcmp(model->weights_sha256, h->model[k]->weights_sha256) == 0)
            st = sti_fail(STINT_E_INPUT,
                          "--ensemble: %s has the weights of %s, so that it adds "
                          "nothing; name each network once, besides the first",
                          path_of(h->desc, i), path_of(h->desc, k));
    return st;
}

static stint_status open_models(hearings *h)
{
    const int64_t all = 1 + h->desc->ensemble_count;
    stint_status st = STINT_OK;
    h->model = sti_alloc_array(all, sizeof *h->model, "models");
    if (!h->model)
        return STINT_E_MEMORY;
    for (int64_t i = 0; i < all && st == STINT_OK; i++) {
        st = stint_model_open(path_of(h->desc, i), &h->model[i]);
        h->models = i + 1;
        if (st == STINT_OK)
            st = check_other(h, i);
    }
    return st;
}

/* ---- hearing them ---- */

static sti_hearing hearing_of(const hearings *h, int64_t i, const stint_data_desc *data,
                              sti_opinions *opinions)
{
    const stint_uncertainty_desc *d = h->desc;
    const int64_t count = d->samples > 0 ? d->samples : 1;
    return (sti_hearing){.model = h->model[i],
                         .data = data,
                         .sampled = d->samples > 0,
                         .strangers = opinions == &h->strange,
                         .draws = {.first = i * count,
                                   .count = count,
                                   .seed = d->seed,
                                   .opinions = opinions},
                         .threads = d->threads,
                         .batch = d->batch,
                         .progress = d->progress,
                         .user = d->user};
}

/* Their own format is looked for; a split of the same name, where they have it. */
static stint_data_desc strangers_of(const stint_uncertainty_desc *d)
{
    stint_data_desc data = d->data;
    data.path = d->strangers;
    data.format = NULL;
    return data;
}

static stint_status hear(hearings *h)
{
    const stint_uncertainty_desc *d = h->desc;
    const stint_data_desc strangers = strangers_of(d);
    stint_uncertainty *out = h->out;
    sti_posterior posterior;
    stint_status st = STINT_OK;
    for (int64_t i = 0; i < h->models && st == STINT_OK; i++) {
        const bool last = i + 1 == h->models;
        const sti_hearing known = hearing_of(h, i, &d->data, &h->known);
        st =
            sti_eval_hear(&known, last ? &out->eval : NULL, i == 0 ? &posterior : NULL);
        if (st == STINT_OK && d->strangers) {
            const sti_hearing strange = hearing_of(h, i, &strangers, &h->strange);
            st = sti_eval_hear(&strange, NULL, NULL);
        }
    }
    if (st != STINT_OK)
        return st;
    out->kl = posterior.kl;
    memcpy(out->sigma, posterior.sigma, sizeof out->sigma);
    out->networks = h->known.networks;
    out->ood_count = h->strange.count;
    return STINT_OK;
}

/* ---- what they said ---- */

static stint_status find_entropies(const sti_opinions *o, float **each_out,
                                   double *entropy_out, double *information_out)
{
    float *each = sti_alloc_array(o->count, sizeof *each, "entropies");
    double entropy = 0, information = 0;
    if (!each)
        return STINT_E_MEMORY;
    for (int64_t i = 0; i < o->count; i++) {
        const double of_image = sti_opinions_entropy(o, i);
        each[i] = (float)of_image;
        entropy += of_image;
        information += sti_opinions_information(o, i);
    }
    *each_out = each;
    *entropy_out = entropy / (double)o->count;
    *information_out = information / (double)o->count;
    return STINT_OK;
}

static stint_status find_answers(const hearings *h)
{
    stint_uncertainty *out = h->out;
    stint_data *data = NULL;
    stint_data_desc quiet = h->desc->data;
    stint_status st;
    quiet.quiet = true;
    out->answer = sti_alloc_array(h->known.count, sizeof *out->answer, "answers");
    out->confidence =
        sti_alloc_array(h->known.count, sizeof *out->confidence, "answers");
    if (!out->answer || !out->confidence)
        return STINT_E_MEMORY;
    if ((st = sti_model_open_data(h->model[0], &quiet, &data)) != STINT_OK)
        return st;
    for (int64_t i = 0; i < h->known.count; i++) {
        const int32_t answer = sti_opinions_answer(&h->known, i);
        const double confidence = sti_opinions_mean(&h->known, i, answer);
        out->answer[i] = answer;
        out->confidence[i] = (float)confidence;
        sti_calibrate(&out->calibration, confidence, answer == sti_data_label(data, i));
    }
    out->ece = sti_calibration_error(&out->calibration, h->known.count);
    stint_data_close(data);
    return STINT_OK;
}

/* Strangers are marked. */
static stint_status find_auroc(const hearings *h)
{
    stint_uncertainty *out = h->out;
    const int64_t known = h->known.count, all = known + h->strange.count;
    double *value = sti_alloc_array(all, sizeof *value, "ranks");
    double *rank = sti_alloc_array(all, sizeof *rank, "ranks");
    uint8_t *marked = sti_alloc_array(all, sizeof *marked, "ranks");
    stint_status st = value && rank && marked ? STINT_OK : STINT_E_MEMORY;
    for (int64_t i = 0; i < all && st == STINT_OK; i++) {
        marked[i] = i >= known;
        value[i] = (double)(i < known ? out->image_entropy[i]
                                      : out->ood_image_entropy[i - known]);
    }
    if (st == STINT_OK)
        st = sti_midranks(all, value, rank);
    if (st == STINT_OK)
        out->ood_auroc = sti_auroc(all, rank, marked);
    sti_free(value);
    sti_free(rank);
    sti_free(marked);
    return st;
}

static stint_status sum_up(const hearings *h)
{
    stint_uncertainty *out = h->out;
    stint_status st;
    STI_TRY(find_answers(h));
    STI_TRY(find_entropies(&h->known, &out->image_entropy, &out->entropy,
                           &out->mutual_information));
    out->ood_auroc = out->ood_entropy = out->ood_mutual_information = (double)NAN;
    if (h->strange.count > 0) {
        STI_TRY(find_entropies(&h->strange, &out->ood_image_entropy, &out->ood_entropy,
                               &out->ood_mutual_information));
        STI_TRY(find_auroc(h));
    }
out:
    return st;
}

stint_status stint_uncertain(const stint_uncertainty_desc *desc,
                             stint_uncertainty *uncertainty_out)
{
    stint_uncertainty out = {0};
    hearings h = {.desc = desc, .out = &out};
    stint_status st;
    if (desc->samples < 1 && desc->ensemble_count < 1)
        return sti_fail(STINT_E_USAGE, "one network alone has no opinions to compare; "
                                       "give --samples or --ensemble");
    STI_TRY(open_models(&h));
    STI_TRY(hear(&h));
    STI_TRY(sum_up(&h));
out:
    for (int64_t i = 0; i < h.models; i++)
        stint_model_close(h.model[i]);
    sti_free(h.model);
    sti_opinions_fini(&h.known);
    sti_opinions_fini(&h.strange);
    if (st == STINT_OK)
        *uncertainty_out = out;
    else
        stint_uncertainty_fini(&out);
    return st;
}

void stint_uncertainty_fini(stint_uncertainty *u)
{
    stint_eval_fini(&u->eval);
    sti_free(u->answer);
    sti_free(u->confidence);
    sti_free(u->image_entropy);
    sti_free(u->ood_image_entropy);
    u->answer = NULL;
    u->confidence = u->image_entropy = u->ood_image_entropy = NULL;
}
