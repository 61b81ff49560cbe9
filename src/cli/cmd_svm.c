/* stint svm train, stint svm plan: least-squares support vector machines. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/fail.h"
#include "base/file.h"
#include "base/number.h"
#include "base/progress.h"
#include "base/team.h"
#include "base/units.h"
#include "cli/cli.h"
#include "svm/svm_names.h"
#include "svm/svm_rows.h"
#include "svm/svm_train.h"
#include "svm/svm_weights.h"

typedef struct svm_args {
    const char *type, *kernel, *gamma, *weights, *rank;
    int64_t degree, iterations, threads;
    double coef0, c, tolerance;
    int classes, store;
    size_t memory_bytes;
    sti_cli_common common;
} svm_args;

#define SVM_ROW(field, kind, standard, words)                                        \
    .type = (kind), .default_text = (standard), .offset = offsetof(svm_args, field), \
    .flag = true, .help = (words)

static const sti_option svm_rows[] = {
    {.name = "type",
     .letter = 's',
     .unit = "TYPE",
     SVM_ROW(type, STI_OPTION_TEXT, "ls_svc",
             "ls_svc tells classes apart, ls_svr fits numbers")},
    {.name = "kernel",
     .letter = 't',
     .unit = "KERNEL",
     SVM_ROW(
         kernel, STI_OPTION_TEXT, "rbf",
         "linear, polynomial, rbf, sigmoid or precomputed, or their numbers 0 to 4; "
         "laplacian, chi_squared")},
    {.name = "degree",
     .letter = 'd',
     .min = 0,
     .max = 1000,
     .unit = "N",
     SVM_ROW(degree, STI_OPTION_INT, "3", "of the polynomial")},
    {.name = "gamma",
     .letter = 'g',
     .unit = "X",
     SVM_ROW(
         gamma, STI_OPTION_TEXT, "auto",
         "factor of u.v or of what u and v are apart; auto: 1 / features, scale: 1 / "
         "(features * variance of all values)")},
    {.name = "coef0",
     .letter = 'r',
     STI_OPTION_NO_BOUND,
     .unit = "X",
     SVM_ROW(coef0, STI_OPTION_FLOAT, "0", "addend of polynomial and sigmoid")},
    {.name = "cost",
     .letter = 'c',
     .min = 1e-300,
     .max = 1e300,
     .unit = "C",
     SVM_ROW(c, STI_OPTION_FLOAT, "1", "what an error costs")},
    {.name = "weights",
     .letter = 'w',
     .unit = "FILE|LABEL=X,...",
     SVM_ROW(weights, STI_OPTION_TEXT, "",
             "factors of C: a file of one a line for every row, or some for classes")},
    {.name = "tolerance",
     .letter = 'e',
     .min = 1e-15,
     .max = 0.5,
     .unit = "X",
     SVM_ROW(tolerance, STI_OPTION_FLOAT, "1e-5",
             "the residual at which a machine is solved, relative to its right-hand "
             "side")},
    {.name = "classes",
     .letter = 'a',
     .choices = "oao|oaa",
     .unit = "HOW",
     SVM_ROW(classes, STI_OPTION_CHOICE, "oao",
             "several classes: every pair, or each against the rest")},
    {.name = "iterations",
     .letter = 'i',
     .min = 0,
     .max = 1e9,
     .unit = "N",
     SVM_ROW(iterations, STI_OPTION_INT, "0",
             "at most so many; 0: ten for every row, and 1000")},
    {.name = "rank",
     .unit = "N|auto",
     SVM_ROW(
         rank, STI_OPTION_TEXT, "auto",
         "of the preconditioner; 0: none, auto: more the more rows and the larger C")},
    {.name = "store",
     .letter = 'l',
     .choices = "auto|explicit|implicit",
     .unit = "HOW",
     SVM_ROW(store, STI_OPTION_CHOICE, "auto",
             "keep what fits of the kernel matrix, all of it, or nothing")},
    {.name = "memory",
     .unit = "SIZE",
     SVM_ROW(memory_bytes, STI_OPTION_BYTES, "auto",
             "bound on the peak of the whole process; changes time, never the model; "
             "auto: half of what this process can have")},
    STI_CLI_THREADS_ROW(svm_args),
    STI_CLI_COMMON_ROWS(svm_args),
};

static const sti_cli_absent svm_absent[] = {
    {.word = "-n",
     .status = STINT_E_UNSUPPORTED,
     .sentence = "nu belongs to types of LIBSVM that are not there yet; ls_svc and "
                 "ls_svr have -c"},
    {.word = "-p",
     .status = STINT_E_UNSUPPORTED,
     .sentence = "the width of a tube belongs to LIBSVM's epsilon_svr, which is not "
                 "there yet; ls_svr has -c"},
    {.word = "-b",
     .status = STINT_E_UNSUPPORTED,
     .sentence = "probabilities are not there yet; `stint svm predict --values` writes "
                 "decision values"},
    {.word = "-v",
     .with_number = true,
     .status = STINT_E_UNSUPPORTED,
     .sentence = "cross-validation is not there yet (-v alone says more); train on "
                 "some of the rows and predict the others"},
    {.word = "-m",
     .status = STINT_E_USAGE,
     .sentence = "there is no cache apart; --memory 200M bounds the whole process"},
    {.word = "-w",
     .with_number = true,
     .status = STINT_E_USAGE,
     .sentence = "write the factors as one word, -w 1=2,-1=5"},
    {.word = "--precision",
     .status = STINT_E_UNSUPPORTED,
     .sentence = "tiles in float are not there yet; all is double"},
    {.word = "--report",
     .status = STINT_E_UNSUPPORTED,
     .sentence = "the report page is not there yet; --json has its numbers"},
#define SVM_ABSENT_NET(flag)                                                    \
    {                                                                           \
        .word = (flag), .status = STINT_E_UNSUPPORTED,                          \
        .sentence =                                                             \
            "several processes are not there yet for support vector machines; " \
            "-j shares the work among threads"                                  \
    }
    SVM_ABSENT_NET("--net-root"),
    SVM_ABSENT_NET("--net-ranks"),
    SVM_ABSENT_NET("--net-rank"),
    {.word = NULL},
};

/* A training asked for on the command line. */
typedef struct svm_task {
    sti_cli_call *call;
    const svm_args *args;
    sti_table table;
    sti_svm_train_desc desc;
    sti_svm_plan plan;
    double *weight; /* [classes] */
    double *point_weight;
    sti_progress bar;
    double read_s;
} svm_task;

/* ---- what was asked ---- */

static stint_status choose_type(const char *word, bool *regression_out)
{
    static const char *const later[] = {"0",           "1",     "2",      "3",
                                        "4",           "c_svc", "nu_svc", "one_class",
                                        "epsilon_svr", "nu_svr"};
    for (size_t i = 0; i < sizeof later / sizeof *later; i++)
        if (strcmp(word, later[i]) == 0)
            return sti_fail(
                STINT_E_UNSUPPORTED,
                "-s %s: LIBSVM's own types are not trained here; ls_svc and "
                "ls_svr are, svm-train does the others, and `stint svm "
                "predict` reads its models",
                word);
    *regression_out = strcmp(word, "ls_svr") == 0;
    if (*regression_out || strcmp(word, "ls_svc") == 0)
        return STINT_OK;
    return sti_fail(STINT_E_USAGE, "-s '%s'; ls_svc or ls_svr was wanted", word);
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

static stint_status choose_gamma(const char *word, double *gamma_out)
{
    stint_status st = STINT_OK;
    *gamma_out = 0; /* by the features, once they are known */
    if (strcmp(word, "auto") == 0 || strcmp(word, "scale") == 0)
        return STINT_OK;
    st = sti_parse_float(word, gamma_out);
    if (st == STINT_OK && !(*gamma_out > 0))
        st = sti_fail(STINT_E_USAGE,
                      "-g %s; a number above 0, auto or scale was wanted", word);
    return st == STINT_OK ? st : sti_fail_context(st, "gamma");
}

/* Gamma by the features where no number was given. */
static void settle_gamma(svm_task *t)
{
    sti_gram_function *f = &t->desc.function;
    const double variance =
        strcmp(t->args->gamma, "scale") == 0 ? sti_svm_variance(&t->table) : 1;
    const double features = (double)(t->table.x.columns - t->table.first);
    if (f->gamma == 0)
        f->gamma = features > 0 && variance > 0 ? 1 / (features * variance) : 1;
}

static stint_status choose_rank(const char *word, int64_t *rank_out)
{
    *rank_out = -1;
    if (strcmp(word, "auto") == 0)
        return STINT_OK;
    const stint_status st = sti_parse_int(word, rank_out);
    if (st == STINT_OK && *rank_out < 0)
        return sti_fail(STINT_E_USAGE,
                        "--rank %s; a number from 0, or auto, was wanted", word);
    return st == STINT_OK ? st : sti_fail_context(st, "rank");
}

static stint_status choose(svm_task *t)
{
    const svm_args *args = t->args;
    stint_status st;
    t->desc = (sti_svm_train_desc){.classes_by = args->classes == 0 ? STI_SVM_PAIRS
                                                                    : STI_SVM_REST,
                                   .c = args->c,
                                   .tolerance = args->tolerance,
                                   .iterations = args->iterations,
                                   .store = (sti_svm_store)args->store,
                                   .budget_bytes = args->memory_bytes};
    sti_gram_function *f = &t->desc.function;
    f->degree = args->degree;
    f->coef0 = args->coef0;
    STI_TRY(choose_type(args->type ? args->type : "", &t->desc.regression));
    STI_TRY(choose_kernel(args->kernel ? args->kernel : "", &f->kind));
    STI_TRY(choose_gamma(args->gamma ? args->gamma : "", &f->gamma));
    STI_TRY(choose_rank(args->rank ? args->rank : "", &t->desc.rank));
    STI_TRY(sti_threads_choose((int)args->threads, &t->desc.threads, NULL));
out:
    return st;
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
static stint_status put_weight(svm_task *t, const double *label, int64_t classes,
                               const char *word)
{
    const char *equals = strrchr(word, '=');
    double factor = 0;
    if (!equals)
        return sti_fail(STINT_E_USAGE, "--weights '%s'; LABEL=FACTOR was wanted", word);
    const stint_status st = sti_parse_float(equals + 1, &factor);
    if (st != STINT_OK || !(factor > 0))
        return sti_fail(STINT_E_USAGE, "--weights '%s'; a factor above 0 was wanted",
                        word);
    for (int64_t c = 0; c < classes; c++)
        if (is_label(&t->table, label[c], word, (size_t)(equals - word))) {
            t->weight[c] = factor;
            return STINT_OK;
        }
    return sti_fail(STINT_E_USAGE, "--weights '%s': no row has this label", word);
}

static stint_status read_point_weights(svm_task *t)
{
    const stint_status st =
        sti_svm_weights_read(t->args->weights, t->table.x.rows, &t->point_weight);
    t->desc.point_weight = t->point_weight;
    return st;
}

static stint_status choose_weights(svm_task *t)
{
    double label[STI_SVM_CLASSES_MOST];
    int64_t classes = 0, count = 0;
    const char **words = NULL;
    if (!t->args->weights || !*t->args->weights)
        return STINT_OK;
    if (!strchr(t->args->weights, '=') || sti_path_is_file(t->args->weights))
        return read_point_weights(t);
    if (t->desc.regression)
        return sti_fail(STINT_E_USAGE, "--weights are for classes, not for ls_svr");
    int32_t *class_of =
        sti_alloc_array(t->table.x.rows, sizeof *class_of, "svm.classes");
    t->weight = sti_alloc_array(STI_SVM_CLASSES_MOST, sizeof *t->weight, "svm.weights");
    stint_status st = class_of && t->weight ? STINT_OK : STINT_E_MEMORY;
    STI_TRY(st);
    STI_TRY(sti_svm_classes_of(&t->table, class_of, label, &classes));
    for (int64_t c = 0; c < classes; c++)
        t->weight[c] = 1;
    STI_TRY(sti_option_split(t->call->arena, t->args->weights, &words, &count));
    for (int64_t i = 0; i < count; i++)
        STI_TRY(put_weight(t, label, classes, words[i]));
    t->desc.weight = t->weight;
out:
    sti_free(class_of);
    return st;
}

/* ---- the table and the plan ---- */

static stint_status read_and_plan(svm_task *t)
{
    sti_table_desc desc = {.path = t->call->operands[0]};
    const size_t budget = t->desc.budget_bytes;
    stint_status st;
    if (budget > 0) {
        const size_t taken = sti_account_process_bytes(
            &(sti_account_process){.libraries = sti_svm_libraries});
        desc.limit_bytes = budget > taken ? budget - taken : 1;
        desc.beside_bytes = taken;
    }
    STI_TRY(sti_table_read(&desc, &t->table));
    t->desc.table = &t->table;
    settle_gamma(t);
    STI_TRY(choose_weights(t));
    st = sti_svm_plan_training(&t->desc, &t->plan);
    if (st == STINT_E_INPUT)
        st = sti_fail_context(st, "%s", desc.path);
out:
    return st;
}

static double stored_share(const sti_svm_plan *plan)
{
    return plan->values > 0 ? (double)plan->kept / (double)plan->values : 1;
}

static void finish(svm_task *t)
{
    sti_free(t->weight);
    sti_free(t->point_weight);
    sti_table_fini(&t->table);
}

/* ---- plan ---- */

static void add_plan_json(const svm_task *t, bool fits, sti_text *out)
{
    const sti_account *a = &t->plan.account;
    sti_json j;
    sti_cli_json_begin(&j, out);
    sti_json_int(&j, "peak_bytes", (int64_t)a->total_bytes);
    sti_json_int(&j, "smallest_bytes", (int64_t)t->plan.smallest_bytes);
    sti_json_bool(&j, "fits", fits);
    sti_json_float(&j, "stored_share", stored_share(&t->plan));
    sti_json_begin_array(&j, "parts");
    for (int i = 0; i < a->count; i++) {
        sti_json_begin_object(&j, NULL);
        sti_json_text(&j, "name", a->parts[i].name);
        sti_json_int(&j, "bytes", (int64_t)a->parts[i].bytes);
        sti_json_end_object(&j);
    }
    sti_json_end_array(&j);
    sti_json_end_object(&j);
}

static stint_status plan_run(sti_cli_call *call)
{
    svm_task t = {.call = call, .args = call->args};
    sti_text text = {0};
    stint_status st;
    STI_TRY(choose(&t));
    st = read_and_plan(&t);
    /* A plan that does not fit is told, too, and then refused. */
    if (st != STINT_OK && (st != STINT_E_BUDGET || t.plan.account.count == 0))
        goto out;
    const sti_account *a = &t.plan.account;
    if (call->common->json) {
        add_plan_json(&t, st == STINT_OK, &text);
    } else {
        for (int i = 0; i < a->count; i++)
            sti_text_printf(&text, "%-9s %10s  %s\n", a->parts[i].name,
                            sti_bytes_text(a->parts[i].bytes), a->parts[i].detail);
        sti_text_printf(&text,
                        "peak      %10s  with %.0f %% of the kernel matrix kept; "
                        "smallest %s\n",
                        sti_bytes_text(a->total_bytes), 100 * stored_share(&t.plan),
                        sti_bytes_text(t.plan.smallest_bytes));
    }
    const stint_status told = sti_cli_answer(call, &text);
    st = st == STINT_OK ? told : st;
out:
    finish(&t);
    return st;
}

const sti_cli_command sti_cmd_svm_plan = {
    .name = "svm plan",
    .summary = "say what training a support vector machine takes",
    .operands = "DATA",
    .example = "stint svm plan glyphs.libsvm --memory 200M",
    .about = "Reads the data, trains nothing. The options are those of `stint svm "
             "train`.",
    .min_operands = 1,
    .max_operands = 1,
    .absent = svm_absent,
    STI_CLI_ARGS(svm_rows, svm_args),
    .run = plan_run,
};

/* ---- train ---- */

static void on_progress(void *user, int64_t machine, int64_t machines,
                        int64_t iteration, double residual)
{
    svm_task *t = user;
    char note[96];
    (void)snprintf(note, sizeof note, "iteration %" PRId64 ", residual %.2e", iteration,
                   residual);
    t->bar.total = machines;
    sti_progress_update(&t->bar, machine, note);
}

static void add_train_json(const svm_task *t, const sti_svm_model *m,
                           const sti_svm_train_result *r, double write_s,
                           const char *sha256, sti_text *out)
{
    sti_json j;
    sti_cli_json_begin(&j, out);
    sti_json_text(&j, "type", t->desc.regression ? "ls_svr" : "ls_svc");
    sti_json_text(&j, "kernel", sti_svm_kernel_names[m->function.kind]);
    sti_json_float(&j, "gamma", m->function.gamma);
    sti_json_int(&j, "classes", m->classes);
    sti_json_int(&j, "points", t->plan.points);
    sti_json_int(&j, "features", t->plan.features);
    sti_json_int(&j, "nonzeros", t->plan.nonzeros);
    sti_json_int(&j, "iterations", r->iterations);
    sti_json_float(&j, "residual", r->residual);
    sti_json_float(&j, "objective", r->objective);
    sti_json_int(&j, "support_vectors", m->x.rows);
    sti_json_float(&j, "stored_share", stored_share(&t->plan));
    sti_json_float(&j, "seconds", t->read_s + r->seconds + write_s);
    sti_json_float(&j, "read_s", t->read_s);
    sti_json_float(&j, "solve_s", r->seconds);
    sti_json_float(&j, "write_s", write_s);
    sti_json_int(&j, "planned_peak_bytes", (int64_t)t->plan.account.total_bytes);
    sti_json_known(&j, "peak_rss_bytes", (int64_t)sti_process_peak_bytes());
    sti_json_text(&j, "model_sha256", sha256);
    sti_json_end_object(&j);
}

static stint_status train_and_write(svm_task *t, const char *path)
{
    sti_svm_model model = {0};
    sti_svm_train_result result;
    char sha256[65];
    sti_text text = {0};
    t->desc.progress = on_progress;
    t->desc.progress_user = t;
    sti_progress_begin(&t->bar, "svm", NULL, t->plan.machines, t->call->common->quiet);
    stint_status st = sti_svm_train(&t->desc, &t->plan, &model, &result);
    sti_progress_clear(&t->bar);
    const int64_t start = sti_clock_ns();
    if (st == STINT_OK)
        st = sti_svm_model_write(&model, path, sha256);
    const double write_s = sti_seconds_since(start);
    if (st == STINT_OK && t->call->common->json) {
        add_train_json(t, &model, &result, write_s, sha256, &text);
        st = sti_cli_answer(t->call, &text);
    } else if (st == STINT_OK) {
        sti_text_printf(&text,
                        "%s: %s support vectors, %" PRId64
                        " iterations at most, residual %.2e, %s\n",
                        path, sti_count_text(model.x.rows), result.iterations,
                        result.residual, sti_time_text(result.seconds));
        st = sti_cli_answer(t->call, &text);
    }
    sti_svm_model_fini(&model);
    return st;
}

static stint_status train_run(sti_cli_call *call)
{
    svm_task t = {.call = call, .args = call->args};
    const char *data = call->operands[0];
    stint_status st;
    STI_TRY(choose(&t));
    /* As svm-train: the data's name without its folder, and .model. */
    const char *path =
        call->operand_count > 1
            ? call->operands[1]
            : sti_arena_printf(call->arena, "%s.model", sti_path_name(data));
    STI_TRY(path ? STINT_OK : STINT_E_MEMORY);
    STI_TRY(sti_cli_check_out(data, path));
    STI_TRY(sti_path_check_file(path));
    sti_cli_say(call, "least-squares machine (%s), not svm-train's objective",
                t.desc.regression ? "ls_svr" : "ls_svc");
    sti_cli_catch_signals();
    const int64_t start = sti_clock_ns();
    STI_TRY(read_and_plan(&t));
    t.read_s = sti_seconds_since(start);
    st = train_and_write(&t, path);
out:
    finish(&t);
    return st;
}

const sti_cli_command sti_cmd_svm_train = {
    .name = "svm train",
    .summary = "train a least-squares support vector machine",
    .operands = "DATA [MODEL]",
    .example = "stint svm train -t rbf -c 10 glyphs.libsvm glyphs.model\n"
               "stint svm train -s ls_svr -e 1e-8 --memory 200M prices.arff",
    .about = "DATA is LIBSVM text, ARFF (.arff) or a folder of images. MODEL is in "
             "LIBSVM's format (with -a oaa in PLSSVM's); its standard name is DATA's "
             "and .model. The same bits for any --memory and -j.",
    .min_operands = 1,
    .max_operands = 2,
    .absent = svm_absent,
    STI_CLI_ARGS(svm_rows, svm_args),
    .run = train_run,
};
