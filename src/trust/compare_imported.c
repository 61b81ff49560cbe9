#include "trust/compare_imported.h"

#include <string.h>

#include "base/fail.h"
#include "exchange/classify.h"
#include "infer/eval_run.h"

bool sti_compare_is_imported(const stint_compare_desc *d)
{
    return sti_imported_is(d->reference) || sti_imported_is(d->changed);
}

stint_status sti_compare_imported_check(const stint_compare_desc *d)
{
    return d->floors == 0 && d->saliency == 0
               ? STINT_OK
               : sti_fail(STINT_E_UNSUPPORTED,
                          "%s: is not there with imported networks; leave it out",
                          d->floors > 0 ? "--floor" : "--saliency");
}

stint_status sti_compare_imported_data(const stint_compare_desc *d,
                                       stint_data **data_out)
{
    const char *path = sti_imported_is(d->reference) ? d->reference : d->changed;
    sti_classifier_ports ports;
    sti_imported *m = NULL;
    stint_status st = sti_imported_open(path, &m);
    if (st == STINT_OK)
        st = sti_classifier_find(m, &ports);
    if (st == STINT_OK)
        st = sti_classifier_open_data(&ports, m, &d->data, data_out);
    sti_imported_close(m);
    return st;
}

typedef struct score_table {
    float *scores;
    int32_t classes;
} score_table;

static void keep_scores(void *user, int64_t sample, const float *scores)
{
    const score_table *t = user;
    memcpy(t->scores + sample * t->classes, scores,
           (size_t)t->classes * sizeof *scores);
}

static stint_status score_imported(const stint_compare_desc *d, const char *path,
                                   stint_data *data, float *scores_out)
{
    sti_classifier_ports ports;
    sti_imported *m = NULL;
    stint_data *own = NULL; /* opened to see that pictures and classes are its own */
    score_table table = {.scores = scores_out};
    int threads;
    stint_status st;
    STI_TRY(sti_threads_choose(d->threads, &threads, NULL));
    STI_TRY(sti_imported_open(path, &m));
    STI_TRY(sti_classifier_find(m, &ports));
    STI_TRY(sti_classifier_open_data(&ports, m, &d->data, &own));
    if (stint_data_describe(own)->classes != stint_data_describe(data)->classes ||
        stint_data_describe(own)->count != stint_data_describe(data)->count) {
        st = sti_fail(STINT_E_INPUT, "%s: has scores for other classes", path);
        goto out;
    }
    table.classes = ports.classes;
    sti_imported_keep(m, true);
    STI_TRY(sti_imported_plan(m, threads));
    STI_TRY(sti_imported_begin(m));
    STI_TRY(
        sti_classifier_run(&ports, m, own, d->progress, d->user, keep_scores, &table));
out:
    stint_data_close(own);
    sti_imported_close(m);
    return st;
}

static stint_status score_ours(const stint_compare_desc *d, const char *path,
                               stint_data *data, float *scores_out)
{
    stint_model_file *model = NULL;
    stint_status st = stint_model_open(path, &model);
    if (st == STINT_OK &&
        model->network.model.classes != stint_data_describe(data)->classes)
        st = sti_fail(STINT_E_INPUT, "%s: tells %d classes apart, the other model %d",
                      path, (int)model->network.model.classes,
                      (int)stint_data_describe(data)->classes);
    if (st == STINT_OK)
        st = sti_eval_logits(model, &d->data, d->threads, d->batch, d->progress,
                             d->user, scores_out);
    stint_model_close(model);
    return st;
}

stint_status sti_compare_imported_scores(const stint_compare_desc *d, const char *path,
                                         stint_data *data, float *scores_out)
{
    return (sti_imported_is(path) ? score_imported : score_ours)(d, path, data,
                                                                 scores_out);
}
