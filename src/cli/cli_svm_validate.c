/* Cross-validation of stint svm train -v. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#include "base/clock.h"
#include "base/fail.h"
#include "base/memory.h"
#include "cli/cli_svm.h"
#include "svm/svm_platt.h"
#include "svm/svm_score.h"

static void on_fold(void *user, int64_t fold, int64_t folds)
{
    sti_svm_task *t = user;
    char note[48];
    (void)snprintf(note, sizeof note, "fold %" PRId64 " of %" PRId64, fold + 1, folds);
    sti_progress_update(&t->bar, fold, note);
}

bool sti_svm_judges_numbers(const sti_svm_task *t)
{
    return !sti_svm_fit_classifies(&t->fit) &&
           (t->fit.ls || t->smo.type != STI_SVM_ONE_CLASS);
}

static stint_status answer(sti_svm_task *t, const sti_svm_score *s, double seconds)
{
    const bool numbers = sti_svm_judges_numbers(t);
    const double share = (double)s->correct / (double)s->total;
    sti_text text = {0};
    sti_json j;
    if (t->call->common->json) {
        sti_cli_json_begin(&j, &text);
        sti_json_text(&j, "type", t->type);
        sti_json_int(&j, "folds", t->folds);
        sti_json_float(&j, "accuracy", numbers ? (double)NAN : share);
        sti_json_int(&j, "correct", s->correct);
        sti_json_int(&j, "total", s->total);
        sti_json_float(&j, "mse", numbers ? s->mse : (double)NAN);
        sti_json_float(&j, "scc", numbers ? s->scc : (double)NAN);
        sti_json_float(&j, "seconds", seconds);
        sti_json_end_object(&j);
    } else if (numbers) {
        sti_text_printf(&text,
                        "Cross Validation Mean squared error = %g\n"
                        "Cross Validation Squared correlation coefficient = %g\n",
                        s->mse, s->scc);
    } else {
        sti_text_printf(&text, "Cross Validation Accuracy = %g%%\n", 100 * share);
    }
    return sti_cli_answer(t->call, &text);
}

/* As svm-train: no more folds than rows. */
stint_status sti_svm_count_folds(const sti_svm_task *t, int64_t *folds_out)
{
    const int64_t rows = t->table.x.rows;
    *folds_out = t->folds;
    if (!t->table.y)
        return sti_fail(STINT_E_INPUT,
                        "%s: the rows have no labels to judge answers by",
                        t->call->operands[0]);
    if (rows < 2)
        return sti_fail(STINT_E_INPUT, "%s: one row cannot be cut into folds",
                        t->call->operands[0]);
    if (*folds_out > rows) {
        *folds_out = rows;
        sti_log(STINT_LOG_WARNING, "more folds than rows: every row is one of %" PRId64,
                rows);
    }
    return STINT_OK;
}

stint_status sti_svm_validate(sti_svm_task *t)
{
    sti_svm_shared *shared = NULL;
    sti_svm_folds_desc desc = {
        .fit = &t->fit,
        .table = &t->table,
        .probable = t->args->probability == 1 ? sti_svm_fit_probable : NULL,
        .threads = t->desc.threads,
        .told = on_fold,
        .user = t,
        .shared = &shared};
    const int64_t start = sti_clock_ns(), rows = t->table.x.rows;
    sti_libc_random random;
    double *answers = NULL;
    stint_status st;
    STI_TRY(sti_svm_count_folds(t, &desc.folds));
    answers = sti_alloc_array(rows, sizeof *answers, "svm.answers");
    STI_TRY(answers ? STINT_OK : STINT_E_MEMORY);
    sti_libc_random_begin(&random, 1);
    sti_progress_begin(&t->bar, "folds", NULL, desc.folds, t->call->common->quiet);
    st = sti_svm_cross_validate(&desc, &random, answers);
    sti_progress_clear(&t->bar);
    STI_TRY(st);
    const sti_svm_score score = sti_svm_score_of(rows, answers, t->table.y);
    if (sti_svm_tells(t))
        st = answer(t, &score, sti_seconds_since(start));
out:
    sti_svm_shared_destroy(shared);
    sti_free(answers);
    return st;
}
