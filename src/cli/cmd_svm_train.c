/* stint svm train: support vector machines by least squares and as svm-train has them.
 */
#include <inttypes.h>
#include <math.h>

#include "base/clock.h"
#include "base/fail.h"
#include "base/file.h"
#include "base/team.h"
#include "base/units.h"
#include "cli/cli_svm.h"
#include "svm/svm_names.h"
#include "svm/svm_platt.h"
#include "svm/svm_report.h"

static const sti_option train_rows[] = {
#include "cli/cli_svm_rows.h"
};

/* What a training came to. */
typedef struct outcome {
    sti_svm_model model;
    sti_svm_fit_result result;
    double solve_s, write_s;
    char sha256[65];
    /* over the machines */
    int64_t iterations;
    double residual, objective;
} outcome;

static void sum_up(const sti_svm_task *t, outcome *o)
{
    const sti_svm_train_result *ls = &o->result.least_squares;
    o->iterations = ls->iterations;
    o->residual = ls->residual;
    o->objective = ls->objective;
    for (int64_t i = 0; o->result.machine && i < t->plan.machines; i++) {
        const sti_smo_machine *m = &o->result.machine[i];
        o->iterations = m->iterations > o->iterations ? m->iterations : o->iterations;
        o->residual = fmax(o->residual, m->gap);
        o->objective += m->objective;
    }
}

/* The numbers of the tiles; those of the linear kernel are never made. */
static const char *precision_of(const sti_svm_task *t)
{
    const bool tiles = t->desc.function.kind != STI_GRAM_LINEAR;
    return t->desc.single && tiles ? "float" : "double";
}

static void add_json(const sti_svm_task *t, const outcome *o, sti_text *out)
{
    const sti_svm_model *m = &o->model;
    sti_json j;
    sti_cli_json_begin(&j, out);
    sti_json_text(&j, "type", t->type);
    sti_json_text(&j, "kernel", sti_svm_kernel_names[m->function.kind]);
    sti_json_float(&j, "gamma", m->function.gamma);
    if (t->fit.ls)
        sti_json_text(&j, "precision", precision_of(t));
    if (t->fit.ls)
        sti_json_text(&j, "device", t->desc.device ? "cuda" : "cpu");
    sti_json_int(&j, "classes", m->classes);
    sti_json_int(&j, "points", t->plan.points);
    sti_json_int(&j, "features", t->plan.features);
    sti_json_int(&j, "nonzeros", t->plan.nonzeros);
    sti_json_int(&j, "iterations", o->iterations);
    sti_json_float(&j, "residual", o->residual);
    sti_json_float(&j, "objective", o->objective);
    sti_json_int(&j, "support_vectors", m->x.rows);
    sti_json_float(&j, "stored_share", sti_svm_stored_share(&t->plan));
    sti_json_float(&j, "seconds", t->read_s + o->solve_s + o->write_s);
    sti_json_float(&j, "read_s", t->read_s);
    sti_json_float(&j, "kernel_s",
                   t->fit.ls ? o->result.least_squares.kernel_seconds : (double)NAN);
    sti_json_float(&j, "solve_s", o->solve_s);
    sti_json_float(&j, "write_s", o->write_s);
    sti_json_int(&j, "planned_peak_bytes", (int64_t)t->plan.account.total_bytes);
    sti_json_known(&j, "peak_rss_bytes", (int64_t)sti_process_peak_bytes());
    sti_json_text(&j, "model_sha256", o->sha256);
    sti_json_end_object(&j);
}

/* The lines that svm-train prints, which scripts read. */
static void add_lines(const sti_svm_task *t, const outcome *o, sti_text *out)
{
    static const char *const more[STI_SVM_TYPES] = {"nu", "C", "", "nu", "epsilon"};
    for (int64_t i = 0; i < t->plan.machines; i++) {
        const sti_smo_machine *m = &o->result.machine[i];
        sti_text_printf(out, "*\noptimization finished, #iter = %" PRId64 "\n",
                        m->iterations);
        if (!isnan(m->more))
            sti_text_printf(out, "%s = %f\n", more[o->model.type], m->more);
        sti_text_printf(out,
                        "obj = %f, rho = %f\nnSV = %" PRId64 ", nBSV = %" PRId64 "\n",
                        m->objective, m->rho, m->support_vectors, m->bounded);
    }
    if (sti_svm_classifies(&o->model))
        sti_text_printf(out, "Total nSV = %" PRId64 "\n", o->model.x.rows);
}

static stint_status answer(sti_svm_task *t, const outcome *o, const char *path)
{
    sti_text text = {0};
    if (t->call->common->json)
        add_json(t, o, &text);
    else if (t->fit.ls)
        sti_text_printf(&text,
                        "%s: %s support vectors, %" PRId64
                        " iterations at most, residual %.2e, %s\n",
                        path, sti_count_text(o->model.x.rows), o->iterations,
                        o->residual, sti_time_text(o->solve_s));
    else if (t->call->common->quiet)
        return STINT_OK; /* as svm-train -q */
    else
        add_lines(t, o, &text);
    return sti_cli_answer(t->call, &text);
}

static stint_status train(sti_svm_task *t, outcome *o)
{
    const int64_t start = sti_clock_ns();
    sti_libc_random random;
    stint_status st;
    sti_libc_random_begin(&random, 1);
    sti_svm_show_progress(t);
    st = t->args->probability == 1
             ? sti_svm_fit_probable(&t->fit, &t->table, &t->plan, t->desc.threads,
                                    &random, &o->model, &o->result)
             : sti_svm_fit_train(&t->fit, &t->table, &t->plan, &o->model, &o->result);
    sti_progress_clear(&t->bar);
    o->solve_s = sti_seconds_since(start);
    return st;
}

static stint_status write_report(const sti_svm_task *t, const outcome *o)
{
    const sti_svm_report report = {
        .data = t->call->operands[0],
        .type = t->type,
        .table = &t->table,
        .model = &o->model,
        .plan = &t->plan,
        .history = t->fit.ls ? o->result.least_squares.history : NULL,
        .iterations = o->iterations,
        .residual = o->residual,
        .c = t->desc.c,
        .seconds = o->solve_s,
        .threads = t->desc.threads};
    return t->args->report ? sti_svm_report_write(t->args->report, &report) : STINT_OK;
}

static stint_status train_and_write(sti_svm_task *t, const char *path)
{
    outcome o = {0};
    stint_status st;
    STI_TRY(train(t, &o));
    if (!sti_svm_tells(t))
        goto out; /* rank 0 tells what all of them have */
    const int64_t start = sti_clock_ns();
    STI_TRY(sti_svm_model_write(&o.model, t->desc.threads, path, o.sha256));
    o.write_s = sti_seconds_since(start);
    sum_up(t, &o);
    STI_TRY(write_report(t, &o));
    st = answer(t, &o, path);
out:
    sti_free(o.result.machine);
    sti_svm_model_fini(&o.model);
    return st;
}

/* Is the file none of those that are read? */
static stint_status check_out(const sti_svm_task *t, const char *path)
{
    const char *weights = sti_svm_weights_file(t->args);
    const stint_status st = sti_cli_check_out(t->call->operands[0], path);
    return st == STINT_OK && weights ? sti_cli_check_out(weights, path) : st;
}

/* Can the page be written beside the data and the model? */
static stint_status check_report(const sti_svm_task *t, const char *model)
{
    const char *report = t->args->report;
    if (!report)
        return STINT_OK;
    if (sti_path_is_same(report, model))
        return sti_fail(STINT_E_USAGE, "MODEL and --report are both %s", model);
    const stint_status st = check_out(t, report);
    return st == STINT_OK ? sti_path_check_file(report) : st;
}

/* Read and plan on every rank; one that cannot stops all of them. */
static stint_status prepare(sti_svm_task *t)
{
    stint_status st = sti_svm_read(t);
    if (st == STINT_OK)
        st = sti_svm_make_plan(t);
    return sti_svm_agree(t, st);
}

static stint_status run_task(sti_svm_task *t, stint_net *net)
{
    sti_cli_call *call = t->call;
    const char *data = call->operands[0];
    stint_status st;
    t->comm = sti_net_comm(net);
    /* As svm-train: the data's name without its folder, and .model. */
    const char *path =
        call->operand_count > 1
            ? call->operands[1]
            : sti_arena_printf(call->arena, "%s.model", sti_path_name(data));
    STI_TRY(path ? STINT_OK : STINT_E_MEMORY);
    if (t->folds == 0) {
        STI_TRY(check_out(t, path));
        STI_TRY(sti_path_check_file(path));
        STI_TRY(check_report(t, path));
    }
    if (t->fit.ls && sti_svm_tells(t))
        sti_cli_say(call, "least-squares machine (%s), not svm-train's objective",
                    t->type);
    sti_cli_catch_signals();
    STI_TRY(prepare(t));
    st = t->folds > 0 ? sti_svm_validate(t) : train_and_write(t, path);
out:
    sti_svm_finish(t);
    return st;
}

static stint_status train_run(sti_cli_call *call)
{
    sti_svm_task t = {.call = call, .args = call->args};
    stint_net *net = NULL;
    stint_status st = sti_svm_choose(&t);
    if (st == STINT_OK)
        st = sti_svm_join(&t, &net);
    return st == STINT_OK ? sti_cli_leave(call, net, run_task(&t, net)) : st;
}

const sti_cli_command sti_cmd_svm_train = {
    .name = "svm train",
    .summary = "train a support vector machine",
    .operands = "DATA [MODEL]",
    .example = "stint svm train -t rbf -c 10 glyphs.libsvm glyphs.model\n"
               "stint svm train -s c_svc -v 5 --memory 200M letters.arff\n"
               "mpirun -n 2 stint svm train glyphs.libsvm",
    .about = "DATA is LIBSVM text, ARFF (.arff) or a folder of images. MODEL is in "
             "LIBSVM's format (with -a oaa in PLSSVM's); its standard name is DATA's "
             "and .model. The same bits for any --memory, -m and -j. The flags are "
             "those of svm-train; ls_svc and ls_svr are solved by conjugate gradients.",
    .min_operands = 1,
    .max_operands = 2,
    STI_CLI_ARGS(train_rows, sti_svm_args),
    .run = train_run,
};
