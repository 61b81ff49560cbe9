/* stint eval of an imported network: labelled pictures by its scores. */
#include <stdio.h>

#include "base/clock.h"
#include "base/fail.h"
#include "base/shown.h"
#include "cli/cli_eval.h"
#include "cli/eval_imported.h"
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
    return sti_cli_answer(call, &text);
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
    int threads;
    stint_status st = sti_threads_choose((int)args->threads, &threads, NULL);
    if (st == STINT_OK)
        st = sti_classifier_find(m, &ports);
    if (st == STINT_OK)
        st = sti_classifier_open_data(&ports, m, &desc, data);
    sti_imported_keep(m);
    if (st == STINT_OK)
        st = sti_imported_plan(m, threads);
    if (st == STINT_OK)
        st = sti_imported_begin(m);
    if (st != STINT_OK)
        return st;
    sti_cli_catch_signals();
    st = sti_classifier_eval(&ports, m, *data, sti_cli_eval_progress, &view, result);
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
