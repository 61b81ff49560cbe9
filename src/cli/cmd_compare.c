/* stint compare: does a changed model still give the same answers? */
#include <inttypes.h>
#include <math.h>

#include "base/fail.h"
#include "base/file.h"
#include "base/progress.h"
#include "base/shown.h"
#include "base/units.h"
#include "cli/cli_compare_text.h"
#include "cli/cli_trust.h"
#include "exchange/imported.h"
#include "store/model_file.h"
#include "trust/compare_page.h"
#include "trust/compare_text_page.h"

typedef struct compare_args {
    const char *data, *floor, *groups, *page, *memory;
    int split, format;
    int64_t size, batch, saliency, threads;
    sti_cli_common common;
} compare_args;

enum { IMAGES = 64 }; /* at a time */

#define FORMATS "auto|folder|tar|idx|cifar|csv"
static const char *const format_names[] = {"auto", "folder", "tar",
                                           "idx",  "cifar",  "csv"};

#define COMPARE_ROW(field, kind, standard, words) \
    .type = (kind), .default_text = (standard),   \
    .offset = offsetof(compare_args, field), .flag = true, .help = (words)

static const sti_option compare_rows[] = {
    {.name = "data",
     .unit = "PATH",
     COMPARE_ROW(data, STI_OPTION_PATH, "",
                 "labelled images, or text, as for training")},
    {.name = "split",
     .choices = "train|test|all",
     .unit = "NAME",
     COMPARE_ROW(split, STI_OPTION_CHOICE, "test", "which part; all: of text")},
    {.name = "format",
     .choices = FORMATS,
     .unit = "KIND",
     COMPARE_ROW(format, STI_OPTION_CHOICE, "auto", "how the images are stored")},
    {.name = "size",
     .min = 0,
     .max = 4096,
     .unit = "PIXELS",
     COMPARE_ROW(size, STI_OPTION_INT, "0", "as data.size of a recipe")},
    {.name = "floor",
     .unit = "MODEL[,MODEL...]",
     COMPARE_ROW(floor, STI_OPTION_LIST, "",
                 "models retrained as the reference was, with other seeds: what chance "
                 "alone changes")},
    {.name = "groups",
     .unit = "FILE",
     COMPARE_ROW(
         groups, STI_OPTION_PATH, "",
         "a name a line, one for each image in the order of the data; results are "
         "told by group too")},
    {.name = "saliency",
     .min = 0,
     .max = 1000000,
     .unit = "N",
     COMPARE_ROW(saliency, STI_OPTION_INT, "0",
                 "also tell, for N of the images, whether both models look at the same "
                 "pixels")},
    {.name = "page",
     .unit = "FILE.html",
     COMPARE_ROW(page, STI_OPTION_PATH, "",
                 "write a page with the images, or contexts, whose answer changed")},
    {.name = "memory",
     .unit = "FOLDER",
     COMPARE_ROW(memory, STI_OPTION_PATH, "",
                 "of a finished `stint trust memory` over the same images: do changed "
                 "answers fall on what was memorised?")},
    {.name = "batch",
     .min = 0,
     .max = 1 << 20,
     .unit = "N",
     COMPARE_ROW(batch, STI_OPTION_INT, "0",
                 "images, or tokens, at a time; 0: 64 and 2048; changes memory and "
                 "speed only")},
    STI_CLI_THREADS_ROW(compare_args),
    STI_CLI_COMMON_ROWS(compare_args),
};

typedef struct compare_view {
    sti_progress bar;
    bool quiet, text;
} compare_view;

static void on_progress(void *user, const stint_train_progress *p)
{
    compare_view *view = user;
    /* Another model has begun, or with the same one training images after test ones. */
    if (view->bar.total != p->to_evaluate || p->evaluated < view->bar.done)
        sti_progress_begin(&view->bar, "compare", view->text ? "windows" : "images",
                           p->to_evaluate, view->quiet);
    sti_progress_update(&view->bar, p->evaluated, "");
}

/* ---- what is said ---- */

static void add_share(sti_text *out, const char *name, const stint_share *s)
{
    sti_text_printf(out, "%-28s %7.3f %%   %6" PRId64 " inputs, 95 %%: %.3f to %.3f\n",
                    name, 100 * s->rate, s->count, 100 * s->low, 100 * s->high);
}

static void add_parts(sti_text *out, const char *name, const stint_fidelity_part *parts,
                      int64_t count)
{
    sti_text_printf(out, "\n%-20s %7s %8s %8s %9s\n", name, "inputs", "recall",
                    "change", "other");
    for (int64_t i = 0; i < count; i++) {
        const stint_fidelity_part *p = &parts[i];
        if (p->count > 0)
            sti_text_printf(out, "%-20s %7" PRId64 " %6.1f %% %+8.2f %7.2f %%\n",
                            sti_shown(p->name), p->count, 100 * p->reference_tpr,
                            100 * (p->changed_tpr - p->reference_tpr),
                            100 * p->mismatch.rate);
    }
}

static void add_floor(sti_text *out, const stint_fidelity *f)
{
    if (f->floors == 0) {
        sti_text_add(out, "\nNo noise floor: --floor MODEL tells how much of this two "
                          "seeds differ by anyway.\n");
        return;
    }
    sti_text_printf(
        out,
        "\nBy chance alone (%" PRId64 " model%s): %.3f %% other answers, %.3f "
        "%% lost.\nBeyond chance: %+.3f points, 95 %%: %+.3f to %+.3f\n",
        f->floors, sti_s(f->floors), 100 * f->floor_mismatch, 100 * f->floor_nfr,
        100 * f->excess, 100 * f->excess_low, 100 * f->excess_high);
}

static void add_agreement(sti_text *out, const char *name, const stint_agreement *a)
{
    if (a->count > 0)
        sti_text_printf(out,
                        "%-28s %.3f, 10 %% of images below %.3f, half %.3f, 90 %% "
                        "%.3f\n",
                        name, a->mean, a->low, a->median, a->high);
}

static void add_words(const stint_fidelity *f, sti_text *out)
{
    sti_text_printf(out, "%-28s %7.3f %%\n%-28s %7.3f %%\n", "accuracy, reference",
                    100 * f->reference_accuracy, "accuracy, new",
                    100 * f->changed_accuracy);
    add_share(out, "other answers", &f->mismatch);
    add_share(out, "right before, wrong now", &f->nfr);
    add_share(out, "wrong before, right now", &f->pfr);
    sti_text_printf(out, "%-28s %.3g\n", "McNemar, exact", f->mcnemar_p);
    sti_text_printf(out, "%-28s %.3g nats, 99.9th percentile %.3g\n",
                    "distance of probabilities", f->kl_mean, f->kl_999);
    sti_text_printf(out, "%-28s %.3g\n", "largest change of a score", f->logit_max);
    sti_text_printf(out, "%-28s %.2f %%\n", "same five best classes",
                    100 * f->top5_same);
    sti_text_printf(out, "%-28s %.4f, new %.4f\n", "calibration error",
                    f->reference_ece, f->changed_ece);
    add_agreement(out, "saliency, rank correlation", &f->saliency_rank);
    add_agreement(out, "saliency, SSIM", &f->saliency_ssim);
    add_parts(out, "class", f->class_part, f->classes);
    sti_text_printf(out,
                    "worst change of recall %+.2f points; other answers spread by "
                    "%.2f points over classes\n",
                    100 * f->worst_recall_change, 100 * f->mismatch_spread);
    if (f->groups > 0) {
        add_parts(out, "group", f->group_part, f->groups);
        sti_text_printf(out,
                        "largest distance of a group's rates from those of all: "
                        "%.2f points\n",
                        100 * f->odds_gap);
    }
    add_floor(out, f);
}

static void json_parts(sti_json *j, const char *name, const stint_fidelity_part *parts,
                       int64_t count)
{
    sti_json_begin_array(j, name);
    for (int64_t i = 0; i < count; i++) {
        const stint_fidelity_part *p = &parts[i];
        sti_json_begin_object(j, NULL);
        sti_json_text(j, "name", p->name);
        sti_json_int(j, "count", p->count);
        sti_json_int(j, "reference_right", p->reference_right);
        sti_json_int(j, "new_right", p->changed_right);
        sti_json_float(j, "reference_recall", p->reference_tpr);
        sti_json_float(j, "new_recall", p->changed_tpr);
        sti_json_float(j, "reference_false_positive_rate", p->reference_fpr);
        sti_json_float(j, "new_false_positive_rate", p->changed_fpr);
        sti_cli_share_json(j, "mismatch", &p->mismatch);
        sti_json_end_object(j);
    }
    sti_json_end_array(j);
}

/* ---- the long tail ---- */

static void add_side(sti_text *out, const char *name, const stint_tail_side *s)
{
    sti_text_printf(out,
                    "%-26s %6" PRId64 " %8" PRId64 " %8" PRId64
                    " %6.2f %8.2f %6.3f %8.3f %7.3f\n",
                    name, s->marked, s->changed, s->changed_marked, s->lift,
                    s->partial_lift, s->auroc, s->spearman, s->p);
}

static void add_tail(sti_text *out, const stint_tail *t)
{
    sti_text_printf(out, "\n%-26s %6s %8s %8s %6s %8s %6s %8s %7s\n", "long tail",
                    "marked", "changed", "both", "lift", "partial", "AUROC", "Spearman",
                    "p");
    add_side(out, "memorised training inputs", &t->train);
    add_side(out, "influenced test inputs", &t->test);
    if (t->has_floor) {
        add_side(out, "by chance alone, training", &t->floor_train);
        add_side(out, "by chance alone, test", &t->floor_test);
    }
}

static void json_side(sti_json *j, const char *name, const stint_tail_side *s)
{
    sti_json_begin_object(j, name);
    sti_json_int(j, "count", s->count);
    sti_json_int(j, "marked", s->marked);
    sti_json_int(j, "changed", s->changed);
    sti_json_int(j, "changed_marked", s->changed_marked);
    sti_json_float(j, "lift", s->lift);
    sti_json_float(j, "partial_lift", s->partial_lift);
    sti_json_float(j, "auroc", s->auroc);
    sti_json_float(j, "spearman", s->spearman);
    sti_json_float(j, "p", s->p);
    sti_json_end_object(j);
}

static void json_tail(sti_json *j, const stint_tail *t)
{
    sti_json_begin_object(j, "long_tail");
    sti_json_float(j, "memorised_from", t->memorised_from);
    sti_json_float(j, "influence_from", t->influence_from);
    json_side(j, "train", &t->train);
    json_side(j, "test", &t->test);
    if (t->has_floor) {
        json_side(j, "floor_train", &t->floor_train);
        json_side(j, "floor_test", &t->floor_test);
    }
    sti_json_end_object(j);
}

static void json_agreement(sti_json *j, const char *name, const stint_agreement *a)
{
    sti_json_begin_object(j, name);
    sti_json_int(j, "count", a->count);
    sti_json_float(j, "mean", a->mean);
    sti_json_float(j, "low", a->low);
    sti_json_float(j, "median", a->median);
    sti_json_float(j, "high", a->high);
    sti_json_end_object(j);
}

static void add_json(const stint_fidelity *f, bool saliency, const stint_tail *tail,
                     sti_text *out)
{
    sti_json j;
    sti_cli_json_begin(&j, out);
    sti_json_int(&j, "count", f->count);
    sti_json_float(&j, "reference_accuracy", f->reference_accuracy);
    sti_json_float(&j, "new_accuracy", f->changed_accuracy);
    sti_json_float(&j, "mismatch_rate", f->mismatch.rate);
    sti_json_float(&j, "nfr", f->nfr.rate);
    sti_json_float(&j, "pfr", f->pfr.rate);
    sti_json_float(&j, "mcnemar_p", f->mcnemar_p);
    sti_cli_share_json(&j, "mismatch", &f->mismatch);
    sti_cli_share_json(&j, "mismatch_reference_right", &f->mismatch_right);
    sti_cli_share_json(&j, "negative_flips", &f->nfr);
    sti_cli_share_json(&j, "positive_flips", &f->pfr);
    sti_json_float(&j, "kl_mean", f->kl_mean);
    sti_json_float(&j, "kl_999", f->kl_999);
    sti_json_float(&j, "logit_max", f->logit_max);
    sti_json_float(&j, "top5_same", f->top5_same);
    sti_json_float(&j, "reference_calibration_error", f->reference_ece);
    sti_json_float(&j, "new_calibration_error", f->changed_ece);
    sti_json_float(&j, "worst_recall_change", f->worst_recall_change);
    sti_json_float(&j, "mismatch_spread", f->mismatch_spread);
    if (saliency) {
        json_agreement(&j, "saliency_rank_correlation", &f->saliency_rank);
        json_agreement(&j, "saliency_ssim", &f->saliency_ssim);
    }
    json_parts(&j, "per_class", f->class_part, f->classes);
    if (f->groups > 0) {
        json_parts(&j, "per_group", f->group_part, f->groups);
        sti_json_float(&j, "odds_gap", f->odds_gap);
    }
    if (f->floors > 0) {
        sti_json_begin_object(&j, "floor");
        sti_json_int(&j, "models", f->floors);
        sti_json_float(&j, "mismatch_rate", f->floor_mismatch);
        sti_json_float(&j, "nfr", f->floor_nfr);
        sti_json_float(&j, "excess", f->excess);
        sti_json_float(&j, "excess_low", f->excess_low);
        sti_json_float(&j, "excess_high", f->excess_high);
        sti_json_end_object(&j);
    }
    if (tail)
        json_tail(&j, tail);
    sti_json_end_object(&j);
}

/* ---- what is asked ---- */

static stint_status find_floor(sti_cli_call *call, stint_compare_desc *desc)
{
    const compare_args *args = call->args;
    const char **paths;
    stint_status st = sti_option_split(call->arena, args->floor, &paths, &desc->floors);
    for (int64_t i = 0; st == STINT_OK && i < desc->floors; i++)
        if (!(paths[i] = sti_cli_model_path(call, paths[i])))
            st = STINT_E_MEMORY;
    if (st == STINT_OK)
        desc->floor = paths;
    return st;
}

static stint_status answer(sti_cli_call *call, const stint_fidelity *f,
                           const stint_tail *tail)
{
    const compare_args *args = call->args;
    sti_text text = {0};
    if (call->common->json) {
        add_json(f, args->saliency > 0, tail, &text);
    } else {
        add_words(f, &text);
        if (tail)
            add_tail(&text, tail);
    }
    return sti_cli_answer(call, &text);
}

static stint_status compare(sti_cli_call *call, const stint_compare_desc *desc,
                            compare_view *view)
{
    const compare_args *args = call->args;
    stint_fidelity f = {.floors = 0};
    stint_tail tail;
    sti_cli_catch_signals();
    /* First, since it knows at once whether there is such a study. */
    stint_status st =
        args->memory ? stint_tail_find(desc, args->memory, &tail) : STINT_OK;
    if (st == STINT_OK)
        st = stint_compare(desc, &f);
    if (view->bar.total > 0)
        sti_progress_clear(&view->bar);
    if (st == STINT_OK && args->page)
        st = sti_compare_page(desc, &f, args->page);
    if (st == STINT_OK)
        st = answer(call, &f, args->memory ? &tail : NULL);
    stint_fidelity_fini(&f);
    return st;
}

static stint_status compare_text(sti_cli_call *call, const stint_compare_desc *desc,
                                 compare_view *view)
{
    const compare_args *args = call->args;
    stint_text_fidelity f = {.tokens = 0};
    if (args->memory || args->size > 0 || args->format != 0)
        return sti_fail(STINT_E_USAGE, "--memory, --size and --format are of images; "
                                       "leave them out for text");
    sti_cli_catch_signals();
    stint_status st = stint_compare_text(desc, &f);
    if (view->bar.total > 0)
        sti_progress_clear(&view->bar);
    if (st == STINT_OK && args->page)
        st = sti_compare_text_page(desc, &f, args->page);
    if (st == STINT_OK)
        st = sti_cli_compare_text_answer(call, &f);
    stint_text_fidelity_fini(&f);
    return st;
}

/* Networks of other programs, which have no recipe, are of images. */
static stint_status find_kind(const char *path, bool *text_out)
{
    stint_model_file *model = NULL;
    if (sti_imported_is(path))
        return STINT_OK;
    const stint_status st = stint_model_open(path, &model);
    if (st == STINT_OK)
        *text_out = model->network.context > 0;
    stint_model_close(model);
    return st;
}

/* Can the page be written, and over none of what is read? */
static stint_status check_page(const compare_args *args, const stint_compare_desc *d)
{
    stint_status st;
    if (!args->page)
        return STINT_OK;
    STI_TRY(sti_cli_check_out(d->reference, args->page));
    STI_TRY(sti_cli_check_out(d->changed, args->page));
    STI_TRY(sti_cli_check_out(args->data, args->page));
    if (args->groups)
        STI_TRY(sti_cli_check_out(args->groups, args->page));
    for (int64_t i = 0; i < d->floors; i++)
        STI_TRY(sti_cli_check_out(d->floor[i], args->page));
    st = sti_path_check_file(args->page);
out:
    return st;
}

static stint_status compare_run(sti_cli_call *call)
{
    const compare_args *args = call->args;
    compare_view view = {.quiet = call->common->quiet};
    stint_compare_desc desc = {.reference = sti_cli_model_path(call, call->operands[0]),
                               .changed = sti_cli_model_path(call, call->operands[1]),
                               .data = {.path = args->data,
                                        .split = args->split == 0   ? STINT_DATA_TRAIN
                                                 : args->split == 1 ? STINT_DATA_TEST
                                                                    : STINT_DATA_ALL,
                                        .format = format_names[args->format],
                                        .size = args->size},
                               .saliency = args->saliency,
                               .threads = (int)args->threads,
                               .batch = args->batch,
                               .progress = on_progress,
                               .user = &view};
    void *held = NULL;
    if (!args->data)
        return sti_fail(STINT_E_USAGE,
                        "no images or text given; say where they are: --data PATH");
    stint_status st = desc.reference && desc.changed ? STINT_OK : STINT_E_MEMORY;
    if (st == STINT_OK)
        st = find_floor(call, &desc);
    if (st == STINT_OK)
        st = check_page(args, &desc);
    if (st == STINT_OK && args->groups)
        st = sti_cli_read_groups(call, args->groups, &held, &desc.group,
                                 &desc.group_count);
    if (st == STINT_OK)
        st = find_kind(desc.reference, &view.text);
    if (st == STINT_OK && !view.text && desc.batch == 0)
        desc.batch = IMAGES;
    if (st == STINT_OK)
        st = (view.text ? compare_text : compare)(call, &desc, &view);
    sti_free(held);
    return st;
}

const sti_cli_command sti_cmd_compare = {
    .name = "compare",
    .summary = "count the answers that changed between two models",
    .operands = "REFERENCE NEW",
    .example =
        "stint compare runs/a runs/small --data out/glyphs --floor runs/b,runs/c",
    .about = "Both models answer the same labelled images, or say what follows every "
             "token of a text. Told are the answers that changed, which of them were "
             "right before, by class and group, how far "
             "probabilities moved, and, with models of other seeds, how much of it is "
             "chance. Models are model.safetensors files or folders of runs.",
    .min_operands = 2,
    .max_operands = 2,
    STI_CLI_ARGS(compare_rows, compare_args),
    .run = compare_run,
};
