#include "cli/cli_svm.h"

#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/complaints.h"
#include "base/fail.h"
#include "base/file.h"
#include "base/number.h"
#include "base/team.h"
#include "base/units.h"
#include "svm/svm_folds.h"
#include "svm/svm_names.h"
#include "svm/svm_rows.h"
#include "svm/svm_weights.h"

/* ---- what was asked ---- */

/* A type by its word or, of LIBSVM's, its number. */
static stint_status choose_type(sti_svm_task *t)
{
    const char *word = t->args->type ? t->args->type : "";
    t->fit.ls = strcmp(word, "ls_svc") == 0 || strcmp(word, "ls_svr") == 0;
    t->desc.regression = strcmp(word, "ls_svr") == 0;
    t->type = word;
    if (t->fit.ls)
        return STINT_OK;
    for (int i = 0; i < STI_SVM_TYPES; i++)
        if (strcmp(word, sti_svm_type_names[i]) == 0 ||
            (word[0] == '0' + i && !word[1])) {
            t->smo.type = (sti_svm_type)i;
            t->type = sti_svm_type_names[i];
            return STINT_OK;
        }
    return sti_fail(STINT_E_USAGE,
                    "-s '%s'; ls_svc, ls_svr, c_svc, nu_svc, one_class, epsilon_svr, "
                    "nu_svr or 0 to 4 was wanted",
                    word);
}

static stint_status choose_kernel(const char *word, sti_gram_kind *kind_out)
{
    for (int i = 0; i < STI_GRAM_KINDS; i++)
        if (strcmp(word, sti_svm_kernel_names[i]) == 0 ||
            (i <= STI_GRAM_PRECOMPUTED && word[0] == '0' + i && !word[1])) {
            *kind_out = (sti_gram_kind)i;
            return STINT_OK;
        }
    return sti_fail(STINT_E_USAGE,
                    "-t '%s'; linear, polynomial, rbf, sigmoid, precomputed, laplacian "
                    "or chi_squared was wanted",
                    word);
}

/* A number above 0; "auto" (and NULL) is 0. */
static stint_status choose_above(const char *flag, const char *word, double *out)
{
    *out = 0;
    if (!word || strcmp(word, "auto") == 0)
        return STINT_OK;
    const stint_status st = sti_parse_float(word, out);
    if (st != STINT_OK || !(*out > 0))
        return sti_fail(STINT_E_USAGE, "%s %s; a number above 0, or auto, was wanted",
                        flag, word);
    return STINT_OK;
}

static stint_status choose_gamma(const char *word, double *gamma_out)
{
    *gamma_out = 0; /* by the features, once they are known */
    return word && strcmp(word, "scale") == 0 ? STINT_OK
                                              : choose_above("-g", word, gamma_out);
}

static stint_status choose_rank(const char *word, int64_t *rank_out)
{
    *rank_out = -1;
    if (!word || strcmp(word, "auto") == 0)
        return STINT_OK;
    const stint_status st = sti_parse_int(word, rank_out);
    if (st != STINT_OK || *rank_out < 0)
        return sti_fail(STINT_E_USAGE,
                        "--rank %s; a number from 0, or auto, was wanted", word);
    return STINT_OK;
}

/* What the bounds of single numbers are, whatever the type makes of them. */
static void check_numbers(const sti_svm_args *a, sti_complaints *c)
{
    if (a->degree < 0 || a->degree > 1000)
        sti_complain(c, "-d %lld; a degree from 0 to 1000 was wanted",
                     (long long)a->degree);
    if (!(a->c > 0 && a->c <= 1e300))
        sti_complain(c, "-c %g; a C above 0 was wanted", a->c);
    if (!(a->nu > 0 && a->nu <= 1))
        sti_complain(c, "-n %g; a nu above 0, at most 1, was wanted", a->nu);
    if (!(a->epsilon >= 0))
        sti_complain(c, "-p %g; at least 0 was wanted", a->epsilon);
    if (!(a->cache_mb >= 0 && a->cache_mb < 1e12))
        sti_complain(c, "-m %g; MB above 0 were wanted", a->cache_mb);
    if (a->folds == 1)
        sti_complain(c, "-v 1; 2 folds or more were wanted");
}

/* What a device can make, and what it is for. */
static void check_device(const sti_svm_task *t, sti_complaints *c)
{
    const sti_gram_kind kind = t->desc.function.kind;
    if (t->args->device == 0)
        return;
    if (!t->fit.ls)
        sti_complain(c, "--device cuda is for ls_svc and ls_svr, not for -s %s",
                     t->type);
    else if (kind != STI_GRAM_POLYNOMIAL && kind != STI_GRAM_RBF &&
             kind != STI_GRAM_SIGMOID)
        sti_complain(c,
                     "--device cuda makes tiles of polynomial, rbf and sigmoid, not of "
                     "-t %s",
                     sti_svm_kernel_names[kind]);
    if (t->desc.store == STI_STORE_ALL)
        sti_complain(c, "--device cuda makes tiles anew in every iteration and keeps "
                        "none, against -l explicit");
}

static void check_combinations(const sti_svm_task *t, sti_complaints *c)
{
    const bool oaa = t->desc.classes_by == STI_SVM_REST;
    if (oaa && !t->fit.ls)
        sti_complain(c, "-a oaa is for ls_svc; -s %s tells every pair apart", t->type);
    else if (oaa && t->args->probability == 1)
        sti_complain(c, "-b 1 wants a machine for every pair, not -a oaa");
    if (t->args->report && t->folds > 0)
        sti_complain(c, "--report shows a model, and -v %lld makes none",
                     (long long)t->folds);
    if (t->desc.store != STI_STORE_AUTO && !t->fit.ls)
        sti_complain(c,
                     "-l is for ls_svc and ls_svr; --memory and -m say what -s %s "
                     "keeps of the kernel matrix",
                     t->type);
    if (t->desc.single && !t->fit.ls)
        sti_complain(c,
                     "--precision is for ls_svc and ls_svr; -s %s keeps float, as "
                     "svm-train does",
                     t->type);
    if (t->desc.rank >= 0 && !t->fit.ls)
        sti_complain(c, "--rank is for ls_svc and ls_svr; -s %s has no preconditioner",
                     t->type);
}

static void describe(sti_svm_task *t)
{
    const sti_svm_args *a = t->args;
    const double mib = a->cache_mb * 1048576;
    t->desc.classes_by = a->classes == 0 ? STI_SVM_PAIRS : STI_SVM_REST;
    t->desc.c = t->smo.c = a->c;
    t->desc.iterations = t->smo.iterations = a->iterations;
    t->desc.report = a->report != NULL;
    t->desc.store = (sti_svm_store)a->store;
    t->desc.single = a->precision == 1;
    t->desc.budget_bytes = t->smo.budget_bytes = a->memory_bytes;
    t->desc.cache_bytes = t->smo.cache_bytes = (size_t)mib;
    t->desc.function.degree = a->degree;
    t->desc.function.coef0 = a->coef0;
    t->smo.nu = a->nu;
    t->smo.epsilon = a->epsilon;
    t->smo.shrink = a->shrinking == 1;
}

stint_status sti_svm_choose(sti_svm_task *t)
{
    const sti_svm_args *a = t->args;
    sti_complaints c = {0};
    double tolerance = 0;
    sti_gram_function *f = &t->desc.function;
    t->folds = a->folds;
    sti_complain_status(&c, choose_type(t));
    describe(t);
    sti_complain_status(&c, choose_kernel(a->kernel ? a->kernel : "", &f->kind));
    sti_complain_status(&c, choose_gamma(a->gamma, &f->gamma));
    sti_complain_status(&c, choose_rank(a->rank, &t->desc.rank));
    sti_complain_status(&c, choose_above("-e", a->tolerance, &tolerance));
    sti_complain_status(&c,
                        sti_threads_choose((int)a->threads, &t->desc.threads, NULL));
    check_numbers(a, &c);
    check_combinations(t, &c);
    check_device(t, &c);
    t->desc.tolerance = tolerance > 0 ? tolerance : 1e-5;
    t->smo.tolerance = tolerance > 0 ? tolerance : 1e-3;
    t->smo.threads = t->desc.threads;
    return sti_complaints_end(&c);
}

/* ---- class weights ---- */

static bool is_label(const sti_table *table, double label, const char *word,
                     size_t length)
{
    const char *after;
    double value;
    if (table->names) {
        const char *name = table->names[(int64_t)label];
        return strlen(name) == length && memcmp(name, word, length) == 0;
    }
    return sti_number_read(word, word + length, &after, &value) &&
           after == word + length && value == label;
}

/* "LABEL=FACTOR" of the classes. */
static stint_status read_weight(sti_svm_task *t, const double *label, int64_t classes,
                                const char *word, sti_svm_weight *weight)
{
    const char *equals = strrchr(word, '=');
    if (!equals)
        return sti_fail(STINT_E_USAGE, "--weights '%s'; LABEL=FACTOR was wanted", word);
    const stint_status st = sti_parse_float(equals + 1, &weight->factor);
    if (st != STINT_OK || !(weight->factor > 0))
        return sti_fail(STINT_E_USAGE, "--weights '%s'; a factor above 0 was wanted",
                        word);
    for (int64_t c = 0; c < classes; c++)
        if (is_label(&t->table, label[c], word, (size_t)(equals - word))) {
            weight->label = label[c];
            return STINT_OK;
        }
    return sti_fail(STINT_E_USAGE, "--weights '%s': no row has this label", word);
}

static stint_status read_point_weights(sti_svm_task *t)
{
    if (!t->fit.ls && t->smo.type != STI_SVM_C_SVC &&
        t->smo.type != STI_SVM_EPSILON_SVR)
        return sti_fail(STINT_E_USAGE, "--weights: %s has no C for every point",
                        t->type);
    const stint_status st =
        sti_svm_weights_read(t->args->weights, t->table.x.rows, &t->point_weight);
    t->fit.least_squares.point_weight = t->fit.smo.point_weight = t->point_weight;
    return st;
}

const char *sti_svm_weights_file(const sti_svm_args *a)
{
    const bool given = a->weights && *a->weights;
    return given && (!strchr(a->weights, '=') || sti_path_is_file(a->weights))
               ? a->weights
               : NULL;
}

static stint_status choose_weights(sti_svm_task *t)
{
    double label[STI_SVM_CLASSES_MOST];
    int64_t classes = 0, count = 0;
    const char **words = NULL;
    if (!t->args->weights || !*t->args->weights)
        return STINT_OK;
    if (sti_svm_weights_file(t->args))
        return read_point_weights(t);
    if (!sti_svm_fit_classifies(&t->fit))
        return sti_fail(STINT_E_USAGE, "--weights are for classes, not for %s",
                        t->type);
    int32_t *class_of =
        sti_alloc_array(t->table.x.rows, sizeof *class_of, "svm.classes");
    stint_status st = class_of ? STINT_OK : STINT_E_MEMORY;
    STI_TRY(st);
    st = sti_svm_classes_of(&t->table, class_of, label, &classes);
    if (st == STINT_E_INPUT)
        st = sti_fail_context(st, "%s", t->call->operands[0]);
    STI_TRY(st);
    STI_TRY(sti_option_split(t->call->arena, t->args->weights, &words, &count));
    t->weight = sti_alloc_array(count, sizeof *t->weight, "svm.weights");
    STI_TRY(t->weight ? STINT_OK : STINT_E_MEMORY);
    for (int64_t i = 0; i < count; i++)
        STI_TRY(read_weight(t, label, classes, words[i], &t->weight[i]));
    t->fit.weight = t->weight;
    t->fit.weight_count = count;
out:
    sti_free(class_of);
    return st;
}

/* ---- the table and the plan ---- */

/* Gamma by the features where no number was given. */
static void settle_gamma(sti_svm_task *t)
{
    sti_gram_function *f = &t->desc.function;
    const char *word = t->args->gamma;
    const double variance =
        word && strcmp(word, "scale") == 0 ? sti_svm_variance(&t->table) : 1;
    const double features = (double)(t->table.x.columns - t->table.first);
    if (f->gamma == 0)
        f->gamma = features > 0 && variance > 0 ? 1 / (features * variance) : 1;
}

stint_status sti_svm_read(sti_svm_task *t)
{
    sti_table_desc desc = {.path = t->call->operands[0], .threads = t->desc.threads};
    const size_t budget = t->desc.budget_bytes;
    const int64_t start = sti_clock_ns();
    stint_status st = STINT_OK;
    if (t->args->device == 1)
        st = sti_svm_device_open(&t->desc.device);
    STI_TRY(st);
    if (budget > 0) {
        const size_t taken = sti_account_process_bytes(
            &(sti_account_process){.libraries = sti_svm_libraries});
        desc.limit_bytes = budget > taken ? budget - taken : 1;
        desc.beside_bytes = taken;
    }
    STI_TRY(sti_table_read(&desc, &t->table));
    STI_TRY(sti_svm_check_rows(&t->desc.function, &t->table, desc.path));
    settle_gamma(t);
    t->smo.function = t->desc.function;
    t->fit.least_squares = t->desc;
    t->fit.smo = t->smo;
    sti_svm_fit_set_comm(&t->fit, t->comm);
    st = choose_weights(t);
    t->read_s = sti_seconds_since(start);
out:
    return st;
}

/* A task whose folds are dealt to ranks has no training that several of them share. */
static stint_status plan_fit(sti_svm_task *t)
{
    const bool alone = t->folds > 0 && t->args->probability == 0;
    sti_svm_fit_set_comm(&t->fit, alone ? NULL : t->comm);
    const stint_status st = sti_svm_fit_plan(&t->fit, &t->table, &t->plan);
    sti_svm_fit_set_comm(&t->fit, t->comm);
    return st;
}

stint_status sti_svm_make_plan(sti_svm_task *t)
{
    t->fit.least_squares.process = t->fit.smo.process = sti_svm_process_look();
    t->fit.least_squares.beside_bytes = t->fit.smo.beside_bytes =
        t->start_bytes + sti_svm_folds_bytes(&t->fit, &t->table, t->folds > 0,
                                             t->args->probability == 1);
    t->fit.least_squares.shared_bytes = t->fit.smo.shared_bytes = 0;
    stint_status st = plan_fit(t);
    const size_t smallest = t->plan.smallest_bytes;
    if (st == STINT_OK && (t->folds > 0 || t->args->probability == 1)) {
        t->fit.least_squares.shared_bytes = t->fit.smo.shared_bytes =
            sti_svm_fit_shared_bytes(&t->fit, &t->table, t->plan.taken_bytes);
        st = plan_fit(t);
        t->plan.smallest_bytes = smallest;
    }
    if (st == STINT_E_INPUT)
        st = sti_fail_context(st, "%s", t->call->operands[0]);
    return st;
}

double sti_svm_stored_share(const sti_svm_plan *plan)
{
    return plan->values > 0 ? (double)plan->kept / (double)plan->values : 1;
}

void sti_svm_finish(sti_svm_task *t)
{
    sti_free(t->weight);
    sti_free(t->point_weight);
    sti_table_fini(&t->table);
}

/* ---- ranks ---- */

stint_status sti_svm_join(const sti_svm_task *t, stint_net **net_out)
{
    return stint_net_join(&(stint_net_desc){.root = t->args->net_root,
                                            .rank = (int)t->args->net_rank,
                                            .ranks = (int)t->args->net_ranks,
                                            .purpose = t->call->command->name},
                          net_out);
}

bool sti_svm_tells(const sti_svm_task *t)
{
    return !t->comm || sti_comm_rank(t->comm) == 0;
}

stint_status sti_svm_agree(const sti_svm_task *t, stint_status mine)
{
    return t->comm ? sti_comm_agree(t->comm, mine) : mine;
}

/* ---- progress ---- */

static void on_progress(void *user, int64_t machine, int64_t machines,
                        int64_t iteration, double residual)
{
    sti_svm_task *t = user;
    char note[96];
    (void)snprintf(note, sizeof note, "iteration %lld, %s %.2e", (long long)iteration,
                   t->fit.ls ? "residual" : "gap", residual);
    t->bar.total = machines;
    sti_progress_update(&t->bar, machine, note);
}

void sti_svm_show_progress(sti_svm_task *t)
{
    t->fit.least_squares.progress = t->fit.smo.progress = on_progress;
    t->fit.least_squares.progress_user = t->fit.smo.progress_user = t;
    sti_progress_begin(&t->bar, "svm", NULL, t->plan.machines, t->call->common->quiet);
}
