/* stint eval of several networks: drawn by --samples, or listed by --ensemble. */
#include <inttypes.h>
#include <math.h>

#include "base/clock.h"
#include "base/fail.h"
#include "base/file.h"
#include "base/units.h"
#include "cli/cli_eval.h"
#include "trust/uncertainty.h"

/* ---- what is said ---- */

static void add_strangers(const stint_uncertainty *u, sti_text *out)
{
    if (u->ood_count > 0)
        sti_text_printf(
            out,
            "%s stranger%s: entropy %.3f nats, %.3f of it from the weights; "
            "in %.1f %% of pairs higher than an image's (AUROC)\n",
            sti_count_text(u->ood_count), sti_s(u->ood_count), u->ood_entropy,
            u->ood_mutual_information, 100 * u->ood_auroc);
}

static void add_weights(const stint_uncertainty *u, sti_text *out)
{
    if (!isnan(u->kl))
        sti_text_printf(
            out,
            "weights: deviations 5 %% below %.4g, half %.4g, 95 %% %.4g; KL "
            "from the prior %.6g nats\n",
            u->sigma[0], u->sigma[1], u->sigma[2], u->kl);
}

static void add_words(const sti_eval_args *args, const stint_model_facts *facts,
                      const stint_uncertainty *u, sti_text *out)
{
    sti_cli_eval_words(args, facts, &u->eval, out);
    sti_text_printf(out,
                    "%" PRId64 " network%s: entropy %.3f nats, %.3f of it from the "
                    "weights; calibration error %.4f\n",
                    u->networks, sti_s(u->networks), u->entropy, u->mutual_information,
                    u->ece);
    add_strangers(u, out);
    add_weights(u, out);
}

static void add_sigma(sti_json *j, const stint_uncertainty *u)
{
    if (isnan(u->sigma[0])) {
        sti_json_float(j, "sigma", (double)NAN);
        return;
    }
    sti_json_begin_array(j, "sigma");
    for (int i = 0; i < 3; i++)
        sti_json_float(j, NULL, u->sigma[i]);
    sti_json_end_array(j);
}

static void add_json(const sti_eval_args *args, const stint_model_facts *facts,
                     const stint_uncertainty *u, sti_text *out)
{
    sti_json j;
    sti_cli_json_begin(&j, out);
    sti_json_int(&j, "networks", u->networks);
    sti_json_int(&j, "samples", args->samples);
    sti_json_int(&j, "seed", args->seed);
    sti_cli_eval_json(args, facts, &u->eval, &j);
    sti_json_float(&j, "ece", u->ece);
    sti_json_float(&j, "entropy", u->entropy);
    sti_json_float(&j, "mutual_information", u->mutual_information);
    sti_json_int(&j, "ood_count", u->ood_count);
    sti_json_float(&j, "ood_entropy", u->ood_entropy);
    sti_json_float(&j, "ood_mutual_information", u->ood_mutual_information);
    sti_json_float(&j, "ood_auroc", u->ood_auroc);
    sti_json_float(&j, "kl", u->kl);
    add_sigma(&j, u);
    sti_json_end_object(&j);
}

/* ---- running it ---- */

/* Model files of a list of models or folders. */
static stint_status find_models(sti_cli_call *call, stint_uncertainty_desc *desc)
{
    const sti_eval_args *args = call->args;
    const char **path;
    int64_t count = 0;
    if (!args->ensemble)
        return STINT_OK;
    stint_status st = sti_option_split(call->arena, args->ensemble, &path, &count);
    for (int64_t i = 0; i < count && st == STINT_OK; i++) {
        path[i] = sti_cli_model_path(call, path[i]);
        st = path[i] ? STINT_OK : STINT_E_MEMORY;
    }
    desc->ensemble = path;
    desc->ensemble_count = count;
    return st;
}

/* Can the page be written, and over none of what is read? Before hours of work. */
static stint_status check_page(const stint_uncertainty_desc *d, const char *page)
{
    stint_status st;
    if (!page)
        return STINT_OK;
    STI_TRY(sti_cli_check_out(d->model, page));
    STI_TRY(sti_cli_check_out(d->data.path, page));
    if (d->strangers)
        STI_TRY(sti_cli_check_out(d->strangers, page));
    for (int64_t i = 0; i < d->ensemble_count; i++)
        STI_TRY(sti_cli_check_out(d->ensemble[i], page));
    st = sti_path_check_file(page);
out:
    return st;
}

stint_status sti_cli_eval_several(sti_cli_call *call, const char *path,
                                  const stint_model_facts *facts,
                                  const stint_data_desc *data)
{
    const sti_eval_args *args = call->args;
    sti_eval_view view = {
        .unit = "images", .start_ns = sti_clock_ns(), .quiet = call->common->quiet};
    stint_uncertainty_desc desc = {.model = path,
                                   .samples = args->samples,
                                   .seed = (uint64_t)args->seed,
                                   .data = *data,
                                   .strangers = args->ood,
                                   .threads = (int)args->threads,
                                   .batch = args->batch,
                                   .progress = sti_cli_eval_progress,
                                   .user = &view};
    stint_uncertainty u = {0};
    stint_status st;
    STI_TRY(find_models(call, &desc));
    STI_TRY(check_page(&desc, args->page));
    sti_cli_catch_signals();
    st = stint_uncertain(&desc, &u);
    if (view.begun)
        sti_progress_clear(&view.bar);
    if (st == STINT_OK && args->page)
        st = sti_uncertainty_page(&desc, &u, args->page);
    if (st == STINT_OK) {
        sti_text text = {0};
        if (call->common->json)
            add_json(args, facts, &u, &text);
        else
            add_words(args, facts, &u, &text);
        st = sti_cli_answer(call, &text);
    }
out:
    stint_uncertainty_fini(&u);
    return st;
}
