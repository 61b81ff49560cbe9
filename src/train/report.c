/* report.html, section by section. The page is one file without scripts or outside
 * parts; everything that comes from data is escaped. */
#include "train/report.h"

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/fail.h"
#include "base/file.h"
#include "base/units.h"
#include "page/chart.h"
#include "page/page.h"
#include "page/table.h"
#include "stint/status.h"
#include "train/report_priv.h"

/* ---- head ---- */

static bool finished(const sti_report_run *run)
{
    return run->status && strcmp(run->status, "ok") == 0;
}

/* "resnet8 on cifar10". */
static void add_name(const sti_report_run *run, sti_text *out)
{
    sti_text_add(out, run->network ? run->network : "a run");
    if (run->data && *sti_path_name(run->data)) {
        sti_text_add(out, " on ");
        sti_text_add(out, sti_path_name(run->data));
    }
}

static void add_state(const sti_report_run *run, sti_text *out)
{
    if (finished(run)) {
        sti_text_add(out, "<span class=\"state ok\">finished</span>");
        return;
    }
    sti_text_add(out, "<span class=\"state not\">");
    sti_text_add_html(out, run->status ? run->status : "not finished");
    sti_text_add(out, "</span>");
}

static void add_date(const sti_report_run *run, sti_text *out)
{
    char date[64];
    struct tm parts;
    const time_t when = (time_t)run->time;
    if (run->time > 0 && gmtime_r(&when, &parts) &&
        strftime(date, sizeof date, "%Y-%m-%d %H:%M UTC", &parts))
        sti_text_printf(out, "%s, ", date);
}

static void add_head(const sti_report_run *run, sti_text *out)
{
    sti_text name = {0}, lead = {0};
    add_name(run, &name);
    sti_page_begin(out, NULL, name.data ? name.data : "");
    add_state(run, &lead);
    add_date(run, &lead);
    sti_text_printf(&lead, "%s of %s step%s, seed %" PRId64,
                    sti_count_text(run->steps_done), sti_count_text(run->steps),
                    sti_s(run->steps), run->seed);
    if (run->resumes > 0)
        sti_text_printf(&lead, ", resumed %" PRId64 " time%s", run->resumes,
                        sti_s(run->resumes));
    sti_page_lead(out, lead.data ? lead.data : "");
    out->failed |= name.failed || lead.failed;
    sti_text_fini(&name);
    sti_text_fini(&lead);
}

/* ---- headline figures ---- */

/* A card whose number is printed by a format. */
static void add_figure(sti_text *out, const char *meaning, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

static void add_figure(sti_text *out, const char *meaning, const char *format, ...)
{
    char value[64];
    va_list args;
    va_start(args, format);
    (void)vsnprintf(value, sizeof value, format, args);
    va_end(args);
    sti_page_figure(out, value, meaning);
}

static void add_memory_figure(const sti_report_run *run, sti_text *out)
{
    char meaning[96] = "planned peak memory";
    const bool measured = isfinite(run->peak_rss);
    const double peak = measured ? run->peak_rss : run->planned_peak;
    if (!isfinite(peak))
        return;
    if (measured && isfinite(run->planned_peak))
        (void)snprintf(meaning, sizeof meaning, "peak memory; planned %s",
                       sti_bytes_text((size_t)run->planned_peak));
    else if (measured)
        (void)snprintf(meaning, sizeof meaning, "peak memory");
    sti_page_figure(out, sti_bytes_text((size_t)peak), meaning);
}

static const char *rate_words(const sti_report_run *run)
{
    return run->context ? "tokens a second" : "images a second";
}

/* The log counts images, or sequences of so many tokens. */
static double rate_scale(const sti_report_run *run)
{
    return run->context ? (double)run->context : 1;
}

static const char *loss_words(const sti_report_run *run)
{
    if (!isfinite(run->test_loss))
        return "training loss";
    return run->context ? "test loss, nats a token" : "test loss";
}

static void add_figures(const sti_report_run *run, sti_text *out)
{
    const double loss = isfinite(run->test_loss) ? run->test_loss : run->train_loss;
    sti_page_figures_begin(out);
    if (isfinite(run->test_accuracy))
        add_figure(out, "test accuracy", "%.2f %%", 100 * run->test_accuracy);
    if (isfinite(loss))
        add_figure(out, loss_words(run), "%.4f", loss);
    if (isfinite(run->rate))
        add_figure(out, rate_words(run), "%s",
                   sti_count_text((int64_t)llround(run->rate * rate_scale(run))));
    add_memory_figure(run, out);
    if (isfinite(run->seconds))
        sti_page_figure(out, sti_time_text(run->seconds), "in all");
    if (run->parameters > 0)
        sti_page_figure(out, sti_count_text(run->parameters), "parameters");
    sti_page_figures_end(out);
}

/* ---- curves ---- */

/* Epochs a step; 0 when the log does not tell. */
static double epoch_of_step(const sti_report_run *run)
{
    if (run->epoch.count > 0 && run->steps_done > 0)
        return run->epoch.point[run->epoch.count - 1].x / (double)run->steps_done;
    if (run->steps > 0 && run->epochs > 0)
        return (double)run->epochs / (double)run->steps;
    return 0;
}

static void add_pair_chart(const sti_report_run *run, bool loss, sti_text *out)
{
    double each = epoch_of_step(run), scale = loss ? 1 : 100;
    sti_chart_line lines[3] = {
        {&run->step, loss ? STI_STEP_LOSS : STI_STEP_ACCURACY, each, scale,
         STI_PAGE_FAINT, "training, by step", STI_CHART_CURVE},
        {&run->epoch, loss ? STI_EPOCH_TRAIN_LOSS : STI_EPOCH_TRAIN_ACCURACY, 1, scale,
         STI_PAGE_FIRST, "training, by epoch", STI_CHART_DOTTED_CURVE},
        {&run->epoch, loss ? STI_EPOCH_TEST_LOSS : STI_EPOCH_TEST_ACCURACY, 1, scale,
         STI_PAGE_SECOND, "test", STI_CHART_DOTTED_CURVE}};
    int first = each > 0 && run->step.count > 1 ? 0 : 1;
    sti_chart_add(out, &(sti_chart){.title = loss ? "Loss" : "Accuracy",
                                    .x_label = "epoch",
                                    .unit = loss ? "" : " %",
                                    .line = lines + first,
                                    .lines = 3 - first,
                                    .from_zero = loss,
                                    .y_max = loss ? STI_REPORT_NONE : 100});
}

static void add_plain_chart(const sti_chart_line *line, const char *title,
                            sti_text *out)
{
    sti_chart_add(out, &(sti_chart){.title = title,
                                    .x_label = "epoch",
                                    .unit = "",
                                    .line = line,
                                    .lines = 1,
                                    .from_zero = true,
                                    .y_max = STI_REPORT_NONE});
}

static void add_charts(const sti_report_run *run, sti_text *out)
{
    double each = epoch_of_step(run);
    sti_chart_line rate = {&run->epoch,           STI_EPOCH_RATE, 1,
                           rate_scale(run),       STI_PAGE_PLAIN, rate_words(run),
                           STI_CHART_DOTTED_CURVE};
    sti_chart_line lr = {&run->step,     STI_STEP_LR,     each,           1,
                         STI_PAGE_PLAIN, "learning rate", STI_CHART_CURVE};
    sti_page_section(out, "How it learnt");
    sti_page_columns_begin(out);
    add_pair_chart(run, true, out);
    add_pair_chart(run, false, out);
    add_plain_chart(&rate,
                    run->context ? "Throughput, tokens a second"
                                 : "Throughput, images a second",
                    out);
    if (each > 0)
        add_plain_chart(&lr, "Learning rate", out);
    sti_page_columns_end(out);
    sti_page_section_end(out);
}

/* ---- memory ---- */

static void add_memory_cells(double planned, double measured, double whole,
                             sti_text *out)
{
    sti_table_bytes(out, planned);
    sti_table_bytes(out, measured);
    sti_table_bars(out, planned, measured, whole);
    sti_table_row_end(out);
}

static void add_memory_table(const sti_report_run *run, double whole, sti_text *out)
{
    static const sti_table_column columns[] = {
        {.name = "part"},
        {.name = "planned", .number = true, .key = true, .colour = STI_PAGE_FIRST},
        {.name = "measured", .number = true, .key = true, .colour = STI_PAGE_SECOND}};
    sti_table_begin_barred(out, columns);
    for (int i = 0; i < run->parts; i++) {
        const sti_report_part *part = &run->part[i];
        sti_table_row(out);
        sti_table_words(out, part->name, part->detail);
        add_memory_cells(part->planned, part->measured, whole, out);
    }
    sti_table_row_sum(out);
    sti_table_words(out, "peak", NULL);
    add_memory_cells(run->planned_peak, run->peak_rss, whole, out);
    sti_table_end(out);
}

static void add_memory(const sti_report_run *run, sti_text *out)
{
    double whole = fmax(isfinite(run->planned_peak) ? run->planned_peak : 0,
                        isfinite(run->peak_rss) ? run->peak_rss : 0);
    if (run->parts == 0 || whole <= 0)
        return;
    sti_page_section(out, "Memory, planned and measured");
    if (run->budget > 0)
        sti_page_note(out,
                      "Resident memory of the whole process at its peak; the budget "
                      "was %s.",
                      sti_bytes_text((size_t)run->budget));
    else
        sti_page_note(out, "Resident memory of the whole process at its peak.");
    sti_page_card_begin(out);
    add_memory_table(run, whole, out);
    sti_page_card_end(out);
    sti_page_section_end(out);
}

/* ---- classes ---- */

enum { CLASSES_MAX = 60 };

static double accuracy_of(const sti_report_run *run, int32_t c)
{
    return run->class_count[c] > 0
               ? (double)run->class_correct[c] / (double)run->class_count[c]
               : 1;
}

/* The accuracy below which there are at most CLASSES_MAX classes: by halving, as a sort
 * of many thousand classes is not worth its memory. */
static double worst_limit(const sti_report_run *run)
{
    double low = 0, high = 1;
    for (int i = 0; i < 40; i++) {
        double middle = (low + high) / 2;
        int32_t below = 0;
        for (int32_t c = 0; c < run->classes; c++)
            below += accuracy_of(run, c) <= middle;
        if (below > CLASSES_MAX)
            high = middle;
        else
            low = middle;
    }
    return low;
}

static void add_class(const sti_report_run *run, int32_t c, sti_text *out)
{
    char tooltip[64];
    (void)snprintf(tooltip, sizeof tooltip, "%" PRId64 " of %" PRId64 " right",
                   run->class_correct[c], run->class_count[c]);
    sti_page_share(out, sti_report_class(run, c), 100 * accuracy_of(run, c), tooltip);
}

static void add_classes(const sti_report_run *run, sti_text *out)
{
    if (!run->class_count || !run->class_correct)
        return;
    bool all = run->classes <= CLASSES_MAX;
    double limit = all ? 1 : worst_limit(run);
    size_t longest = 0;
    for (int32_t c = 0; c < run->classes; c++) {
        size_t length = strlen(sti_report_class(run, c));
        longest = length > longest ? length : longest;
    }
    sti_page_section(out, "Accuracy by class");
    if (!all)
        sti_page_note(out, "The weakest of %d classes.", run->classes);
    sti_page_shares_begin(out, longest);
    for (int32_t c = 0; c < run->classes; c++)
        if (all || accuracy_of(run, c) <= limit)
            add_class(run, c, out);
    sti_page_shares_end(out);
    sti_page_section_end(out);
}

/* ---- recipe and machine ---- */

/* A fact printed by a format. */
static void add_fact(sti_text *out, const char *name, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

static void add_fact(sti_text *out, const char *name, const char *format, ...)
{
    char value[512];
    va_list args;
    va_start(args, format);
    (void)vsnprintf(value, sizeof value, format, args);
    va_end(args);
    sti_page_fact(out, name, value);
}

static void add_machine(const sti_report_run *run, sti_text *out)
{
    const char *why = run->threads_why;
    const char *train = sti_count_text(run->train_count);
    const char *test = sti_count_text(run->test_count);
    sti_page_facts_begin(out);
    sti_page_fact(out, "CPU", run->cpu);
    sti_page_fact(out, "instructions", run->isa);
    add_fact(out, "threads", "%" PRId64 "%s%s%s", run->threads, why ? " (" : "",
             why ? why : "", why ? ")" : "");
    add_fact(out, "batch", "%" PRId64 " in %" PRId64 " shard%s, %" PRId64 " at a time",
             run->batch, run->shards, sti_s(run->shards), run->lanes);
    sti_page_fact(out, "gradients between processes", run->net_why);
    if (run->context)
        add_fact(out, "sequences", "%s training, %s test, %" PRId64 " tokens each",
                 train, test, run->context);
    else
        add_fact(out, "images",
                 "%s training, %s test, %" PRId64 " x %" PRId64 " x %" PRId64, train,
                 test, run->width, run->height, run->channels);
    sti_page_fact(out, "data", run->data);
    sti_page_fact(out, "weights SHA-256", run->sha256);
    sti_page_fact(out, "stint", run->version);
    sti_page_facts_end(out);
}

static void add_tail(const sti_report_run *run, sti_text *out)
{
    char footer[256];
    sti_page_section(out, "Recipe and machine");
    sti_page_columns_begin(out);
    if (run->recipe)
        sti_page_preformatted(out, run->recipe);
    add_machine(run, out);
    sti_page_columns_end(out);
    sti_page_section_end(out);
    (void)snprintf(footer, sizeof footer,
                   "Made by stint %s. The same recipe, data and seed give the same "
                   "weights on any number of threads.",
                   stint_version());
    sti_page_end(out, footer);
}

static stint_status write_page(const sti_report_run *run, sti_page_file *page)
{
    sti_text *out = &page->text;
    add_head(run, out);
    add_figures(run, out);
    add_charts(run, out);
    add_memory(run, out);
    sti_report_forms_add(run, out);
    sti_report_bounds_add(run, out);
    add_classes(run, out);
    stint_status status = sti_page_file_flush(page);
    if (status == STINT_OK)
        status = sti_report_sheet_add(run, page);
    if (status == STINT_OK)
        add_tail(run, out);
    return status;
}

stint_status sti_report_write(const char *folder)
{
    sti_report_run run;
    sti_page_file page;
    stint_status status = sti_report_read(folder, &run);
    if (status == STINT_OK) {
        const char *path = sti_path_join(run.arena, folder, "report.html");
        status = path ? sti_page_file_open(&page, path) : STINT_E_MEMORY;
        if (status == STINT_OK)
            status = sti_page_file_close(&page, write_page(&run, &page));
    }
    sti_report_run_fini(&run);
    return status;
}
