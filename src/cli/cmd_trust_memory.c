/* stint trust memory: which images does a network only get right because it saw them?
 */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#include "base/progress.h"
#include "base/units.h"
#include "cli/cli.h"
#include "cli/cli_memory_text.h"
#include "model/network_recipe.h"

enum { TOLD = 10 };

typedef struct memory_args {
    int64_t runs, jobs, nearest;
    double fraction, memorised;
    bool every_class;
    sti_cli_common common;
} memory_args;

#define MEMORY_ROW(field, kind, standard, words) \
    .type = (kind), .default_text = (standard),  \
    .offset = offsetof(memory_args, field), .flag = true, .help = (words)

static const sti_option memory_rows[] = {
    {.name = "runs",
     .min = 4,
     .max = 1 << 20,
     .unit = "N",
     MEMORY_ROW(runs, STI_OPTION_INT, "512",
                "networks to train; the standard error falls with its root. A larger "
                "number goes on with the runs that are there")},
    {.name = "fraction",
     .min = 0,
     .max = 1,
     .unit = "SHARE",
     MEMORY_ROW(fraction, STI_OPTION_FLOAT, "0.7",
                "of the training images, drawn anew for each network")},
    {.name = "jobs",
     .min = 0,
     .max = 1024,
     .unit = "N",
     MEMORY_ROW(jobs, STI_OPTION_INT, "0",
                "networks side by side; 0: as many as threads and memory allow")},
    {.name = "memorised",
     .min = 0,
     .max = 1,
     .unit = "SHARE",
     MEMORY_ROW(memorised, STI_OPTION_FLOAT, "0.25",
                "an image counts as memorised from here on")},
    {.name = "every-class",
     MEMORY_ROW(every_class, STI_OPTION_BOOL, "false",
                "look at the influence between images of different classes too")},
    {.name = "nearest",
     .min = 1,
     .max = 1024,
     .unit = "N",
     MEMORY_ROW(nearest, STI_OPTION_INT, "8",
                "training images of the largest influence kept for each test image")},
    STI_CLI_COMMON_ROWS(memory_args),
};

typedef struct memory_view {
    sti_progress bar;
    bool begun, quiet;
} memory_view;

static void on_progress(void *user, const stint_train_progress *p)
{
    memory_view *view = user;
    char note[80] = "";
    if (!view->begun) {
        sti_progress_begin(&view->bar, "runs", "runs", p->steps, view->quiet);
        view->bar.from = p->step; /* runs of an earlier call among them */
        view->begun = true;
    }
    snprintf(note, sizeof note, "%s", sti_bytes_text(p->rss_bytes));
    sti_progress_update(&view->bar, p->step, note);
}

/* ---- what is said ---- */

static void add_memorised(const stint_memory *m, sti_text *out)
{
    sti_text_printf(out,
                    "%-28s %" PRId64 " of %" PRId64 " training images, from %.2f on\n",
                    "memorised", m->memorised, m->train, m->memorised_from);
    if (m->memorised > 0)
        sti_text_printf(out, "%-28s %.1f %% of these\n", "expected by chance",
                        100 * m->memorised_chance);
    sti_text_printf(out, "%-28s %.3f at most\n", "standard error", m->error_bound);
    if (m->undefined > 0)
        sti_text_printf(out,
                        "%-28s %" PRId64
                        " images have fewer than two runs with or without them\n",
                        "NaN", m->undefined);
}

static void add_influence(const stint_memory *m, sti_text *out)
{
    if (m->test == 0)
        return;
    sti_text_printf(out, "%-28s %" PRId64 " of %s, %" PRId64 " NaN\n",
                    "pairs looked at", m->pairs,
                    m->every_class ? "all classes" : "one class", m->undefined_pairs);
    if (isfinite(m->influence_from))
        sti_text_printf(
            out, "%-28s %" PRId64 " pairs from %.3f on, %.1f %% expected by chance\n",
            "influence of memorised ones", m->influences, m->influence_from,
            100 * m->influence_chance);
    else
        sti_text_printf(out, "%-28s none that chance does not explain\n",
                        "influence of memorised ones");
}

static void add_words(const stint_memory *m, sti_text *out)
{
    sti_text_printf(out,
                    "%-28s %" PRId64 ", each on %" PRId64 " of %" PRId64 " images\n",
                    "runs", m->runs, m->members, m->train);
    sti_text_printf(out, "%-28s %.2f %%\n", "accuracy, images left out",
                    100 * m->train_accuracy);
    if (m->test > 0)
        sti_text_printf(out, "%-28s %.2f %%\n", "accuracy, test images",
                        100 * m->test_accuracy);
    add_memorised(m, out);
    add_influence(m, out);
    sti_text_printf(out, "\n%12s %9s  image\n", "memorisation", "error");
    for (int64_t k = 0; k < m->train && k < TOLD; k++) {
        const int64_t i = m->order[k];
        sti_text_printf(out, "%12.3f %9.3f  %" PRId64 "\n", m->memorisation[i],
                        m->error[i], i);
    }
    sti_text_printf(out, "\n%" PRId64 " run%s in this call, %s, peak memory %s\n",
                    m->runs_done, sti_s(m->runs_done), sti_time_text(m->seconds),
                    sti_cli_peak_text(m->peak_rss_bytes));
    sti_text_printf(out, "list %s/memorised.tsv\npage %s/memory.html\n", m->out,
                    m->out);
}

static void json_estimates(const stint_memory *m, sti_json *j)
{
    sti_json_begin_array(j, "most_memorised");
    for (int64_t k = 0; k < m->train && k < 10 * TOLD; k++) {
        const int64_t i = m->order[k];
        sti_json_begin_object(j, NULL);
        sti_json_int(j, "index", i);
        sti_json_float(j, "memorisation", m->memorisation[i]);
        sti_json_float(j, "error", m->error[i]);
        sti_json_end_object(j);
    }
    sti_json_end_array(j);
    sti_json_begin_array(j, "influence_histogram");
    for (int i = 0; i < STINT_MEMORY_BINS; i++)
        sti_json_int(j, NULL, m->histogram[i]);
    sti_json_end_array(j);
}

static void add_json(const stint_memory *m, sti_text *out)
{
    sti_json j;
    sti_cli_json_begin(&j, out);
    sti_json_int(&j, "runs", m->runs);
    sti_json_int(&j, "train", m->train);
    sti_json_int(&j, "test", m->test);
    sti_json_int(&j, "members", m->members);
    sti_json_float(&j, "fraction", m->fraction);
    sti_json_float(&j, "left_out_accuracy", m->train_accuracy);
    sti_json_float(&j, "test_accuracy", m->test_accuracy);
    sti_json_float(&j, "error_bound", m->error_bound);
    sti_json_float(&j, "memorised_from", m->memorised_from);
    sti_json_int(&j, "memorised", m->memorised);
    sti_json_float(&j, "memorised_by_chance", m->memorised_chance);
    sti_json_int(&j, "undefined", m->undefined);
    sti_json_int(&j, "pairs", m->pairs);
    sti_json_int(&j, "undefined_pairs", m->undefined_pairs);
    sti_json_float(&j, "influence_from", m->influence_from);
    sti_json_int(&j, "influences", m->influences);
    sti_json_float(&j, "influences_by_chance", m->influence_chance);
    sti_json_int(&j, "runs_done", m->runs_done);
    sti_json_int(&j, "jobs", m->jobs);
    sti_json_bool(&j, "decoded_once", m->kept_in_memory);
    sti_json_float(&j, "seconds", m->seconds);
    sti_json_int(&j, "planned_peak_bytes", (int64_t)m->planned_peak_bytes);
    sti_json_known(&j, "peak_rss_bytes", (int64_t)m->peak_rss_bytes);
    sti_json_text(&j, "out", m->out);
    json_estimates(m, &j);
    sti_json_end_object(&j);
}

static stint_status answer(sti_cli_call *call, const stint_memory *m)
{
    sti_text text = {0};
    if (call->common->json)
        add_json(m, &text);
    else
        add_words(m, &text);
    return sti_cli_answer(call, &text);
}

static stint_status study_images(sti_cli_call *call, const stint_memory_desc *desc,
                                 memory_view *view)
{
    stint_memory m;
    stint_status st = stint_memory_run(call->recipe, desc, &m);
    if (view->begun)
        sti_progress_clear(&view->bar);
    if (st == STINT_OK)
        st = answer(call, &m);
    stint_memory_fini(&m);
    return st;
}

static stint_status study_text(sti_cli_call *call, const stint_memory_desc *desc,
                               memory_view *view)
{
    stint_memory_text m;
    stint_status st = stint_memory_text_run(call->recipe, desc, &m);
    if (view->begun)
        sti_progress_clear(&view->bar);
    if (st == STINT_OK)
        st = sti_cli_memory_text_answer(call, &m);
    stint_memory_text_fini(&m);
    return st;
}

static stint_status memory_run(sti_cli_call *call)
{
    const memory_args *args = call->args;
    memory_view view = {.quiet = call->common->quiet};
    const stint_memory_desc desc = {.runs = args->runs,
                                    .fraction = args->fraction,
                                    .jobs = args->jobs,
                                    .memorised = args->memorised,
                                    .every_class = args->every_class,
                                    .nearest = args->nearest,
                                    .progress = on_progress,
                                    .user = &view};
    sti_cli_catch_signals();
    return (sti_recipe_is_text(call->recipe) ? study_text : study_images)(call, &desc,
                                                                          &view);
}

const sti_cli_command sti_cmd_trust_memory = {
    .name = "trust memory",
    .summary = "tell which images, or passages, a network memorises",
    .operands = "RECIPE",
    .example = "stint trust memory small.ini --data out/glyphs --runs 512",
    .about = "Trains many networks, each on a random part of the images. An image that "
             "networks get right only if they have seen it is memorised; a test image "
             "that they get right only if one training image was seen is influenced by "
             "it. Of a text: passages whose loss falls by having been seen. Runs are "
             "plain: a recipe that starts from a model, has a reference, "
             "prunes or holds images out is refused. They are kept in the out folder: "
             "a stopped study goes on where it was. Leaves lists, arrays and a page "
             "with the images there.",
    .min_operands = 1,
    .max_operands = 1,
    .recipe = true,
    STI_CLI_ARGS(memory_rows, memory_args),
    .run = memory_run,
};
