/* stint eval of an imported network: labelled pictures by its scores. */
#include <stdio.h>

#include "base/clock.h"
#include "base/fail.h"
#include "base/shown.h"
#include "cli/cli_eval.h"
#include "cli/cli_imported.h"
#include "cli/eval_imported.h"
#include "data/data.h"
#include "exchange/classify.h"

static stint_status check_flags(const sti_eval_args *args, const char *path)
{
    const char *flag = args->samples > 0 ? "--samples"
                       : args->ensemble  ? "--ensemble"
                       : args->ood       ? "--ood"
                       : args->page      ? "--page"
                       : args->adapter   ? "--adapter"
                       : args->batch > 0 ? "--batch"
                                         : NULL;
    if (flag)
        return sti_fail(
            STINT_E_USAGE,
            "%s: is not of imported networks, as %s is one (how many images "
            "it takes at once was said by `stint import onnx --shape`)",
            flag, sti_shown(path));
    if (args->split == STINT_DATA_ALL)
        return sti_fail(STINT_E_USAGE, "split all: is of text; images have train and "
                                       "test");
    return args->data
               ? STINT_OK
               : sti_fail(STINT_E_USAGE, "no data given; say where it is: --data PATH");
}

static stint_status answer(sti_cli_call *call, const sti_imported *m,
                           const stint_data *data, const stint_eval_result *result)
{
    const sti_eval_args *args = call->args;
    const stint_data_info *info = stint_data_describe(data);
    stint_model_facts facts = {.network = "imported",
                               .classes = info->classes,
                               .class_names = info->class_names};
    sti_text text = {0};
    sti_json j;
    snprintf(facts.weights_sha256, sizeof facts.weights_sha256, "%s",
             m->weights_sha256);
    if (call->common->json) {
        sti_cli_json_begin(&j, &text);
        sti_cli_eval_json(args, &facts, result, &j);
        sti_json_end_object(&j);
    } else {
        sti_cli_eval_words(args, &facts, result, &text);
    }
    sti_cli_eval_say_peak(call, result);
    return sti_cli_answer(call, &text);
}

/* What libraries of pictures take while they decode. */
#define PICTURES_BYTES ((size_t)1 << 20)

/* Plan a run, and the process that decodes picture after picture for it. */
static stint_status plan_within(const sti_eval_args *args, sti_imported *m,
                                const stint_data *data, bool keep, sti_account *account)
{
    int64_t threads = args->threads;
    *account = (sti_account){.count = 0};
    sti_imported_keep(m, keep);
    const stint_status st = sti_cli_imported_account(m, &threads, 1, account);
    if (st != STINT_OK)
        return st;
    const size_t classes = (size_t)stint_data_describe(data)->classes;
    sti_account_add(account, "pictures", "decoders and pixels",
                    PICTURES_BYTES + sti_data_memory_bytes(data, 1, 1) -
                        sti_data_memory_bytes(data, 0, 0));
    sti_account_add(account, "answers", "tables of classes",
                    classes * (classes * sizeof(int32_t) + 3 * sizeof(int64_t)));
    return STINT_OK;
}

/* Constants are kept where the budget has room for them. */
static stint_status plan_run(const sti_eval_args *args, sti_imported *m,
                             const stint_data *data, sti_account *account)
{
    const size_t budget = args->memory_bytes;
    stint_status st = plan_within(args, m, data, true, account);
    if (st == STINT_OK && budget > 0 && account->total_bytes > budget)
        st = plan_within(args, m, data, false, account);
    return st == STINT_OK ? sti_account_check(account, budget, NULL) : st;
}

static stint_status run(sti_cli_call *call, sti_imported *m, stint_data **data,
                        stint_eval_result *result)
{
    static const char *const formats[] = {"auto",  "folder", "tar", "idx",
                                          "cifar", "text",   "csv"};
    const sti_eval_args *args = call->args;
    const stint_data_desc desc = {.path = args->data,
                                  .split = (stint_data_split)args->split,
                                  .format = formats[args->format]};
    sti_eval_view view = {
        .unit = "images", .start_ns = sti_clock_ns(), .quiet = call->common->quiet};
    sti_classifier_ports ports;
    sti_account account;
    stint_status st = sti_classifier_find(m, &ports);
    if (st == STINT_OK)
        st = sti_classifier_open_data(&ports, m, &desc, data);
    if (st == STINT_OK)
        st = plan_run(args, m, *data, &account);
    if (st == STINT_OK)
        st = sti_imported_begin(m);
    if (st != STINT_OK)
        return st;
    sti_cli_catch_signals();
    st = sti_classifier_eval(&ports, m, *data, sti_cli_eval_progress, &view, result);
    result->planned_peak_bytes = account.total_bytes;
    if (view.begun)
        sti_progress_clear(&view.bar);
    return st;
}

stint_status sti_cli_imported_eval(sti_cli_call *call, const char *path)
{
    sti_imported *m = NULL;
    stint_data *data = NULL;
    stint_eval_result result = {0};
    stint_status st = check_flags(call->args, path);
    if (st == STINT_OK)
        st = sti_imported_open(path, &m);
    if (st == STINT_OK)
        st = run(call, m, &data, &result);
    if (st == STINT_OK)
        st = answer(call, m, data, &result);
    stint_eval_fini(&result);
    stint_data_close(data);
    sti_imported_close(m);
    return st;
}
