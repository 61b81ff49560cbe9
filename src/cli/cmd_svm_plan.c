/* stint svm plan: what training a support vector machine takes. */
#include <math.h>

#include "base/fail.h"
#include "base/units.h"
#include "cli/cli_svm.h"
#include "svm/svm_expect.h"

static const sti_option plan_rows[] = {
#include "cli/cli_svm_rows.h"
};

/* NaN: nobody knows. */
static stint_status expect(const sti_svm_task *t, double *seconds_out)
{
    const sti_svm_expect_desc desc = {.fit = &t->fit,
                                      .table = &t->table,
                                      .plan = &t->plan,
                                      .read_s = t->read_s,
                                      .folds = t->folds,
                                      .probable = t->args->probability == 1,
                                      .ranks = (int)t->args->net_ranks};
    return sti_svm_expect(&desc, seconds_out);
}

static void add_plan_lines(const sti_svm_task *t, double seconds, sti_text *out)
{
    const sti_account *a = &t->plan.account;
    for (int i = 0; i < a->count; i++)
        sti_text_printf(out, "%-9s %10s  %s\n", a->parts[i].name,
                        sti_bytes_text(a->parts[i].bytes), a->parts[i].detail);
    sti_text_printf(out,
                    "peak      %10s  with %.0f %% of the kernel matrix kept; "
                    "smallest %s\n",
                    sti_bytes_text(a->total_bytes),
                    100 * sti_svm_stored_share(&t->plan),
                    sti_bytes_text(t->plan.smallest_bytes));
    if (!isnan(seconds))
        sti_text_printf(out, "time      %10s  expected, reading and writing included\n",
                        sti_time_text(seconds));
}

static void add_plan_json(const sti_svm_task *t, bool fits, double seconds,
                          sti_text *out)
{
    const sti_account *a = &t->plan.account;
    sti_json j;
    sti_cli_json_begin(&j, out);
    sti_json_int(&j, "peak_bytes", (int64_t)a->total_bytes);
    sti_json_int(&j, "smallest_bytes", (int64_t)t->plan.smallest_bytes);
    sti_json_bool(&j, "fits", fits);
    sti_json_float(&j, "stored_share", sti_svm_stored_share(&t->plan));
    sti_json_float(&j, "expected_s", seconds);
    sti_cli_parts_json(a, &j);
    sti_json_end_object(&j);
}

static stint_status plan_run(sti_cli_call *call)
{
    sti_svm_task t = {.call = call, .args = call->args};
    sti_text text = {0};
    stint_status st;
    STI_TRY(sti_svm_choose(&t));
    if (t.args->net_ranks > 1)
        STI_TRY(sti_comm_create_planned((int)t.args->net_ranks, 1, &t.comm));
    STI_TRY(sti_svm_read(&t));
    st = sti_svm_make_plan(&t);
    /* A plan that does not fit is told, too, and then refused. */
    if (st != STINT_OK && (st != STINT_E_BUDGET || t.plan.account.count == 0))
        goto out;
    sti_cli_catch_signals();
    const stint_status planned = st;
    double seconds = (double)NAN;
    if (planned == STINT_OK && !t.desc.device) /* whose rates nobody measured */
        STI_TRY(expect(&t, &seconds));
    st = planned;
    if (call->common->json)
        add_plan_json(&t, st == STINT_OK, seconds, &text);
    else
        add_plan_lines(&t, seconds, &text);
    const stint_status told = sti_cli_answer(call, &text);
    st = st == STINT_OK ? told : st;
out:
    sti_svm_finish(&t);
    sti_comm_destroy(t.comm);
    return st;
}

const sti_cli_command sti_cmd_svm_plan = {
    .name = "svm plan",
    .summary = "say what training a support vector machine takes",
    .operands = "DATA",
    .example = "stint svm plan glyphs.libsvm --memory 200M",
    .about = "Reads the data and trains on small samples of it, for the time. The "
             "options are those of `stint svm train`. With --net-ranks N: what rank 0 "
             "of N takes.",
    .min_operands = 1,
    .max_operands = 1,
    STI_CLI_ARGS(plan_rows, sti_svm_args),
    .run = plan_run,
};
