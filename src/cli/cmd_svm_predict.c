/* stint svm predict: the answers of a LIBSVM model. */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/clock.h"
#include "base/fail.h"
#include "base/file.h"
#include "base/npy.h"
#include "base/number.h"
#include "base/team.h"
#include "cli/cli.h"
#include "svm/svm_predict.h"
#include "svm/svm_probability.h"
#include "svm/svm_score.h"
#include "svm/svm_train.h"

#define CHUNK_BYTES ((size_t)1 << 16)

typedef struct predict_args {
    const char *values;
    int64_t threads;
    int probability;
    size_t memory_bytes;
    sti_cli_common common;
} predict_args;

static const sti_option predict_rows[] = {
    {.name = "values",
     .type = STI_OPTION_PATH,
     .default_text = "",
     .offset = offsetof(predict_args, values),
     .flag = true,
     .unit = "FILE.npy",
     .help = "write decision values here: float64, a row each, a column a pair of "
             "classes, a class, or one"},
    {.name = "probability",
     .letter = 'b',
     .type = STI_OPTION_CHOICE,
     .choices = "0|1",
     .default_text = "0",
     .offset = offsetof(predict_args, probability),
     .flag = true,
     .unit = "0|1",
     .help = "probabilities of all classes behind the label, of a model trained for "
             "them"},
    {.name = "memory",
     .type = STI_OPTION_BYTES,
     .default_text = "auto",
     .offset = offsetof(predict_args, memory_bytes),
     .flag = true,
     .unit = "SIZE",
     .help = "bound on the peak of the whole process; takes fewer threads where that "
             "does, never other answers; auto: none"},
    STI_CLI_THREADS_ROW(predict_args),
    STI_CLI_COMMON_ROWS(predict_args),
};

typedef struct predict_task {
    sti_cli_call *call;
    sti_svm_model model;
    sti_table table;
    double *value, *answer;
    double *probability; /* [rows, classes] with -b 1, or NULL */
    sti_svm_score score;
    sti_account account;
    double seconds;
} predict_task;

static const char *word_of(const char *const *names, double y,
                           char text[STI_NUMBER_BYTES])
{
    return names ? names[(int64_t)y] : sti_number_text(y, text);
}

/* Classes that agree: as words, so that numbers do so however they were written. */
static void count_correct(predict_task *t)
{
    const sti_svm_model *m = &t->model;
    for (int64_t i = 0; i < t->table.x.rows; i++) {
        char a[STI_NUMBER_BYTES], b[STI_NUMBER_BYTES];
        const double label = m->label[(int64_t)t->answer[i]];
        t->score.correct += strcmp(word_of(m->names, label, a),
                                   word_of(t->table.names, t->table.y[i], b)) == 0;
    }
}

/* What find_probabilities takes; 0: nobody asked. */
static size_t probability_bytes(const predict_task *t)
{
    const predict_args *args = t->call->args;
    const int64_t values =
        t->table.x.rows * t->model.classes + sti_svm_probabilities_scratch(&t->model);
    return args->probability == 1 ? (size_t)values * sizeof(double) : 0;
}

/* Probabilities, and the most probable class as the answer. */
static stint_status find_probabilities(predict_task *t)
{
    const sti_svm_model *m = &t->model;
    const int64_t rows = t->table.x.rows, values = sti_svm_values(m);
    double *scratch = sti_alloc_array(sti_svm_probabilities_scratch(m), sizeof *scratch,
                                      "svm.coupling");
    t->probability =
        sti_alloc_array(rows * m->classes, sizeof *t->probability, "svm.probable");
    for (int64_t i = 0; scratch && t->probability && i < rows; i++) {
        double *p = t->probability + i * m->classes;
        if (m->marks) {
            p[0] = sti_svm_density(m, t->value[i]);
            p[1] = 1 - p[0];
        } else {
            t->answer[i] =
                (double)sti_svm_probabilities(m, t->value + i * values, p, scratch);
        }
    }
    const bool done = scratch && t->probability;
    sti_free(scratch);
    return done ? STINT_OK : STINT_E_MEMORY;
}

static bool has_probabilities(const sti_svm_model *m)
{
    return m->prob_a || m->marks;
}

static stint_status predict(predict_task *t)
{
    const sti_svm_model *m = &t->model;
    const int64_t rows = t->table.x.rows, values = sti_svm_values(m);
    int threads;
    const predict_args *args = t->call->args;
    stint_status st = sti_threads_choose((int)args->threads, &threads, NULL);
    const size_t more = probability_bytes(t), budget = args->memory_bytes;
    if (st == STINT_OK)
        st = sti_svm_predict_plan(m, &t->table, threads,
                                  budget > more ? budget - more : budget > 0,
                                  &t->account, &threads);
    if (st != STINT_OK)
        return st;
    if (more > 0)
        sti_account_add(&t->account, "probabilities", "of every class and row", more);
    t->value = sti_alloc_array(rows * values, sizeof(double), "svm.decisions");
    t->answer = sti_alloc_array(rows, sizeof(double), "svm.answers");
    st = t->value && t->answer ? STINT_OK : STINT_E_MEMORY;
    if (st == STINT_OK)
        st = sti_svm_predict(m, &t->table, threads, t->value, t->answer);
    if (st == STINT_OK && args->probability == 1 && (m->marks || sti_svm_classifies(m)))
        st = find_probabilities(t);
    t->score.total = rows;
    if (st != STINT_OK || !t->table.y)
        return st;
    if (sti_svm_classifies(m))
        count_correct(t);
    else if (!t->table.names)
        t->score = sti_svm_score_of(rows, t->answer, t->table.y);
    return st;
}

/* The line that says of which class which probability is. */
static void add_classes(const sti_svm_model *m, sti_text *out)
{
    char number[STI_NUMBER_BYTES];
    if (m->marks) {
        sti_text_add(out, "label normal outlier\n");
        return;
    }
    sti_text_add(out, "labels");
    for (int64_t c = 0; c < m->classes; c++)
        sti_text_printf(out, " %s", word_of(m->names, m->label[c], number));
    sti_text_add(out, "\n");
}

static void add_answer(const predict_task *t, int64_t row, sti_text *text)
{
    const sti_svm_model *m = &t->model;
    char number[STI_NUMBER_BYTES];
    const bool class = sti_svm_classifies(m);
    const double y = class ? m->label[(int64_t)t->answer[row]] : t->answer[row];
    sti_text_add(text, word_of(class ? m->names : NULL, y, number));
    for (int64_t c = 0; t->probability && c < m->classes; c++)
        sti_text_printf(text, " %g", t->probability[row * m->classes + c]);
    sti_text_add(text, "\n");
}

static stint_status add_answers(const predict_task *t, sti_writer *writer)
{
    sti_text text = {0};
    stint_status st = STINT_OK;
    if (t->probability)
        add_classes(&t->model, &text);
    for (int64_t i = 0; i < t->table.x.rows && st == STINT_OK; i++) {
        add_answer(t, i, &text);
        if (text.length < CHUNK_BYTES && i + 1 < t->table.x.rows)
            continue;
        st = text.failed ? STINT_E_MEMORY
                         : sti_writer_add(writer, text.data, text.length);
        text.length = 0;
    }
    sti_text_fini(&text);
    return st;
}

static stint_status write_answers(const predict_task *t, const char *path)
{
    const predict_args *args = t->call->args;
    sti_writer *writer;
    stint_status st = sti_writer_open(path, &writer);
    if (st != STINT_OK)
        return st;
    st = add_answers(t, writer);
    if (st != STINT_OK) {
        sti_writer_abort(writer);
        return st;
    }
    st = sti_writer_commit(writer);
    const int64_t dim[] = {t->table.x.rows, sti_svm_values(&t->model)};
    if (st == STINT_OK && args->values)
        st = sti_npy_write(args->values, "<f8", 2, dim, t->value,
                           (size_t)(dim[0] * dim[1]) * sizeof(double));
    return st;
}

/* What svm-predict says of probabilities before it begins. */
static void add_about_probabilities(const predict_task *t, sti_text *out)
{
    const predict_args *args = t->call->args;
    const sti_svm_model *m = &t->model;
    if (args->probability == 0 && has_probabilities(m))
        sti_text_add(out, "Model supports probability estimates, but disabled in "
                          "prediction.\n");
    else if (args->probability == 1 && m->prob_a && !m->prob_b)
        sti_text_printf(out,
                        "Prob. model for test data: target value = predicted value + z,"
                        "\nz: Laplace distribution e^(-|z|/sigma)/(2sigma),sigma=%g\n",
                        m->prob_a[0]);
}

static void add_json(const predict_task *t, bool classes, bool numbers, sti_text *out)
{
    const sti_svm_score *s = &t->score;
    const double share = (double)s->correct / (double)s->total;
    sti_json j;
    sti_cli_json_begin(&j, out);
    sti_json_float(&j, "accuracy", classes ? share : (double)NAN);
    sti_json_int(&j, "correct", s->correct);
    sti_json_int(&j, "total", s->total);
    sti_json_float(&j, "mse", numbers ? s->mse : (double)NAN);
    sti_json_float(&j, "scc", numbers ? s->scc : (double)NAN);
    sti_json_float(&j, "seconds", t->seconds);
    sti_json_int(&j, "planned_peak_bytes", (int64_t)t->account.total_bytes);
    sti_json_known(&j, "peak_rss_bytes", (int64_t)sti_process_peak_bytes());
    sti_json_end_object(&j);
}

/* One class has answers of +1 and -1, which are judged as classes are. */
static stint_status answer(predict_task *t)
{
    const bool one_class = t->model.type == STI_SVM_ONE_CLASS && !t->table.names;
    const bool classes = t->table.y && (sti_svm_classifies(&t->model) || one_class);
    const bool numbers = t->table.y && !classes && !t->table.names;
    const sti_svm_score *s = &t->score;
    sti_text text = {0};
    if (t->call->common->json) {
        add_json(t, classes, numbers, &text);
        return sti_cli_answer(t->call, &text);
    }
    if (t->call->common->quiet)
        return STINT_OK; /* as svm-predict -q */
    add_about_probabilities(t, &text);
    if (classes)
        sti_text_printf(
            &text, "Accuracy = %g%% (%" PRId64 "/%" PRId64 ") (classification)\n",
            100 * ((double)s->correct / (double)s->total), s->correct, s->total);
    else if (numbers)
        sti_text_printf(&text,
                        "Mean squared error = %g (regression)\n"
                        "Squared correlation coefficient = %g (regression)\n",
                        s->mse, s->scc);
    else
        sti_text_printf(&text, "%" PRId64 " rows predicted\n", s->total);
    return sti_cli_answer(t->call, &text);
}

static stint_status read_files(predict_task *t)
{
    const predict_args *args = t->call->args;
    sti_table_desc desc = {.path = t->call->operands[0], .split = STINT_DATA_TEST};
    const size_t taken = sti_account_process_bytes(
        &(sti_account_process){.libraries = sti_svm_libraries});
    const size_t budget = args->memory_bytes;
    const size_t room = budget > taken ? budget - taken : budget > 0 ? 1 : 0;
    int threads;
    stint_status st = sti_threads_choose((int)args->threads, &threads, NULL);
    desc.threads = threads;
    if (st == STINT_OK)
        st = sti_svm_model_read_within(t->call->operands[1], room, threads, &t->model);
    if (st != STINT_OK)
        return st;
    const size_t model = sti_svm_model_bytes(&t->model);
    if (budget > 0) {
        desc.limit_bytes = room > model ? room - model : 1;
        desc.beside_bytes = taken + model;
    }
    return sti_table_read(&desc, &t->table);
}

static stint_status predict_run(sti_cli_call *call)
{
    predict_task t = {.call = call};
    const predict_args *args = call->args;
    char **path = call->operands;
    stint_status st = STINT_OK;
    for (int i = 0; i < 2; i++) {
        STI_TRY(sti_cli_check_out(path[i], path[2]));
        STI_TRY(sti_cli_check_out(path[i], args->values));
    }
    if (args->values && sti_path_is_same(path[2], args->values))
        return sti_fail(STINT_E_USAGE, "OUTPUT and --values are both %s", path[2]);
    const int64_t start = sti_clock_ns();
    STI_TRY(read_files(&t));
    if (args->probability == 1 && !has_probabilities(&t.model))
        STI_TRY(sti_fail(STINT_E_INPUT, "%s: has no probabilities; train it with -b 1",
                         path[1]));
    STI_TRY(sti_svm_predict_check(&t.model, &t.table, path[0]));
    st = predict(&t);
    if (st == STINT_E_INPUT)
        st = sti_fail_context(st, "%s", path[0]);
    STI_TRY(st);
    t.seconds = sti_seconds_since(start);
    STI_TRY(write_answers(&t, path[2]));
    st = answer(&t);
out:
    sti_free(t.value);
    sti_free(t.answer);
    sti_free(t.probability);
    sti_svm_model_fini(&t.model);
    sti_table_fini(&t.table);
    return st;
}

const sti_cli_command sti_cmd_svm_predict = {
    .name = "svm predict",
    .summary = "answers of a support vector machine, LIBSVM's too",
    .operands = "TEST MODEL OUTPUT",
    .example = "stint svm predict test.libsvm glyphs.model answers.txt",
    .about = "Reads models of svm-train and of `stint svm train`, and PLSSVM's; OUTPUT "
             "gets a label or number a line. The rows are read as for training; of "
             "images, the test split.",
    .min_operands = 3,
    .max_operands = 3,
    STI_CLI_ARGS(predict_rows, predict_args),
    .run = predict_run,
};
