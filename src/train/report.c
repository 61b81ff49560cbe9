/* report.html, section by section. The page is one file without scripts or outside
 * parts; everything that comes from data is escaped. */
#include "train/report.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>
#include <time.h>

#include "base/fail.h"
#include "base/file.h"
#include "base/units.h"
#include "stint/status.h"
#include "train/report_priv.h"

enum { FLUSH_BYTES = 1 << 16 };

typedef struct page {
    sti_writer *writer;
    sti_text text;
} page;

static stint_status flush_page(void *user, sti_text *out)
{
    page *p = user;
    if (out->failed)
        return sti_fail(STINT_E_MEMORY, "out of memory for the report");
    if (out->length < FLUSH_BYTES)
        return STINT_OK;
    stint_status status = sti_writer_add(p->writer, out->data, out->length);
    out->length = 0;
    return status;
}

/* ---- head ---- */

static bool finished(const sti_report_run *run)
{
    return run->status && strcmp(run->status, "ok") == 0;
}

static void add_name(const sti_report_run *run, sti_text *out)
{
    sti_text_add_html(out, run->network ? run->network : "a run");
    if (run->data && *sti_path_name(run->data)) {
        sti_text_add(out, " on ");
        sti_text_add_html(out, sti_path_name(run->data));
    }
}

static void add_head(const sti_report_run *run, sti_text *out)
{
    sti_text_add(out,
                 "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">"
                 "<meta name=\"viewport\" content=\"width=device-width,"
                 "initial-scale=1\">\n<title>");
    add_name(run, out);
    sti_text_add(out, "</title>\n<style>\n");
    for (int i = 0; sti_report_style[i]; i++)
        sti_text_add(out, sti_report_style[i]);
    sti_text_add(out, "</style></head>\n<body><main>\n<header><h1>");
    add_name(run, out);
    sti_text_add(out, "</h1>\n<p class=\"lead\">");
    if (finished(run)) {
        sti_text_add(out, "<span class=\"state ok\">finished</span>");
    } else {
        sti_text_add(out, "<span class=\"state not\">");
        sti_text_add_html(out, run->status ? run->status : "not finished");
        sti_text_add(out, "</span>");
    }
    if (run->time > 0) {
        char date[64];
        time_t when = (time_t)run->time;
        struct tm parts;
        if (gmtime_r(&when, &parts) &&
            strftime(date, sizeof date, "%Y-%m-%d %H:%M UTC", &parts))
            sti_text_printf(out, "%s, ", date);
    }
    sti_text_printf(out, "%s of %s step%s, seed %" PRId64,
                    sti_count_text(run->steps_done), sti_count_text(run->steps),
                    sti_s(run->steps), run->seed);
    if (run->resumes > 0)
        sti_text_printf(out, ", resumed %" PRId64 " time%s", run->resumes,
                        sti_s(run->resumes));
    sti_text_add(out, "</p></header>\n");
}

/* ---- headline figures ---- */

static void add_figure(const char *value, const char *meaning, sti_text *out)
{
    sti_text_add(out, "<div class=\"card\"><b>");
    sti_text_add_html(out, value);
    sti_text_add(out, "</b><span>");
    sti_text_add_html(out, meaning);
    sti_text_add(out, "</span></div>\n");
}

static void add_memory_figure(const sti_report_run *run, sti_text *out)
{
    sti_text meaning = {0};
    double peak = isfinite(run->peak_rss) ? run->peak_rss : run->planned_peak;
    if (!isfinite(peak))
        return;
    if (!isfinite(run->peak_rss))
        sti_text_add(&meaning, "planned peak memory");
    else if (isfinite(run->planned_peak))
        sti_text_printf(&meaning, "peak memory; planned %s",
                        sti_bytes_text((size_t)run->planned_peak));
    else
        sti_text_add(&meaning, "peak memory");
    add_figure(sti_bytes_text((size_t)peak), meaning.data ? meaning.data : "", out);
    sti_text_fini(&meaning);
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

static void add_figures(const sti_report_run *run, sti_text *out)
{
    sti_text value = {0};
    sti_text_add(out, "<div class=\"figures\">\n");
    if (isfinite(run->test_accuracy)) {
        sti_text_printf(&value, "%.2f %%", 100 * run->test_accuracy);
        add_figure(value.data ? value.data : "", "test accuracy", out);
        value.length = 0;
    }
    double loss = isfinite(run->test_loss) ? run->test_loss : run->train_loss;
    if (isfinite(loss)) {
        sti_text_printf(&value, "%.4f", loss);
        add_figure(value.data ? value.data : "",
                   !isfinite(run->test_loss) ? "training loss"
                   : run->context            ? "test loss, nats a token"
                                             : "test loss",
                   out);
        value.length = 0;
    }
    if (isfinite(run->rate)) {
        const double rate = run->rate * rate_scale(run);
        sti_text_printf(&value, "%s", sti_count_text((int64_t)llround(rate)));
        add_figure(value.data ? value.data : "", rate_words(run), out);
        value.length = 0;
    }
    add_memory_figure(run, out);
    if (isfinite(run->seconds))
        add_figure(sti_time_text(run->seconds), "in all", out);
    if (run->parameters > 0)
        add_figure(sti_count_text(run->parameters), "parameters", out);
    sti_text_add(out, "</div>\n");
    sti_text_fini(&value);
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
    sti_report_line lines[3] = {
        {&run->step, loss ? STI_STEP_LOSS : STI_STEP_ACCURACY, each, scale, "faint",
         "training, by step", false},
        {&run->epoch, loss ? STI_EPOCH_TRAIN_LOSS : STI_EPOCH_TRAIN_ACCURACY, 1, scale,
         "train", "training, by epoch", true},
        {&run->epoch, loss ? STI_EPOCH_TEST_LOSS : STI_EPOCH_TEST_ACCURACY, 1, scale,
         "test", "test", true}};
    int first = each > 0 && run->step.count > 1 ? 0 : 1;
    sti_report_chart_add(&(sti_report_chart){.title = loss ? "Loss" : "Accuracy",
                                             .x_label = "epoch",
                                             .unit = loss ? "" : " %",
                                             .line = lines + first,
                                             .lines = 3 - first,
                                             .from_zero = loss,
                                             .y_max = loss ? STI_REPORT_NONE : 100},
                         out);
}

static void add_charts(const sti_report_run *run, sti_text *out)
{
    double each = epoch_of_step(run);
    sti_report_line rate = {&run->epoch, STI_EPOCH_RATE,  1,   rate_scale(run),
                            "plain",     rate_words(run), true};
    sti_report_line lr = {&run->step, STI_STEP_LR,     each, 1,
                          "plain",    "learning rate", false};
    sti_text_add(out, "<section><h2>How it learnt</h2>\n<div class=\"charts\">\n");
    add_pair_chart(run, true, out);
    add_pair_chart(run, false, out);
    sti_report_chart_add(
        &(sti_report_chart){.title = run->context ? "Throughput, tokens a second"
                                                  : "Throughput, images a second",
                            .x_label = "epoch",
                            .unit = "",
                            .line = &rate,
                            .lines = 1,
                            .from_zero = true,
                            .y_max = STI_REPORT_NONE},
        out);
    if (each > 0)
        sti_report_chart_add(&(sti_report_chart){.title = "Learning rate",
                                                 .x_label = "epoch",
                                                 .unit = "",
                                                 .line = &lr,
                                                 .lines = 1,
                                                 .from_zero = true,
                                                 .y_max = STI_REPORT_NONE},
                             out);
    sti_text_add(out, "</div></section>\n");
}

/* ---- memory ---- */

static void add_bytes_cell(double bytes, sti_text *out)
{
    sti_text_printf(out, "<td class=\"n\">%s</td>",
                    isfinite(bytes) ? sti_bytes_text((size_t)bytes) : "");
}

static void add_bars_cell(double planned, double measured, double whole, sti_text *out)
{
    sti_text_add(out, "<td class=\"bars\">");
    if (isfinite(planned))
        sti_text_printf(out, "<i class=\"bar\" style=\"width:%.2f%%\"></i>",
                        100 * planned / whole);
    if (isfinite(measured))
        sti_text_printf(out, "<i class=\"bar test\" style=\"width:%.2f%%\"></i>",
                        100 * measured / whole);
    sti_text_add(out, "</td></tr>\n");
}

static void add_memory(const sti_report_run *run, sti_text *out)
{
    double whole = fmax(isfinite(run->planned_peak) ? run->planned_peak : 0,
                        isfinite(run->peak_rss) ? run->peak_rss : 0);
    if (run->parts == 0 || whole <= 0)
        return;
    sti_text_add(out,
                 "<section><h2>Memory, planned and measured</h2>\n<p "
                 "class=\"note\">Resident memory of the whole process at its peak");
    if (run->budget > 0)
        sti_text_printf(out, "; the budget was %s",
                        sti_bytes_text((size_t)run->budget));
    sti_text_add(out, ".</p>\n<div class=\"card\"><table class=\"memory\"><tr><th>part"
                      "</th><th class=\"n\"><i class=\"key train\"></i>planned</th>"
                      "<th class=\"n\"><i class=\"key test\"></i>measured</th>"
                      "<th class=\"bars\"></th></tr>\n");
    for (int i = 0; i < run->parts; i++) {
        const sti_report_part *part = &run->part[i];
        sti_text_add(out, "<tr><td>");
        sti_text_add_html(out, part->name);
        if (part->detail && *part->detail) {
            sti_text_add(out, "<small>");
            sti_text_add_html(out, part->detail);
            sti_text_add(out, "</small>");
        }
        sti_text_add(out, "</td>");
        add_bytes_cell(part->planned, out);
        add_bytes_cell(part->measured, out);
        add_bars_cell(part->planned, part->measured, whole, out);
    }
    sti_text_add(out, "<tr class=\"sum\"><td>peak</td>");
    add_bytes_cell(run->planned_peak, out);
    add_bytes_cell(run->peak_rss, out);
    add_bars_cell(run->planned_peak, run->peak_rss, whole, out);
    sti_text_add(out, "</table></div></section>\n");
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
    double share = accuracy_of(run, c);
    sti_text_add(out, "<div class=\"class\" title=\"");
    sti_text_printf(out, "%" PRId64 " of %" PRId64 " right\"><span>",
                    run->class_correct[c], run->class_count[c]);
    sti_text_add_html(out, sti_report_class(run, c));
    sti_text_printf(
        out,
        "</span><span class=\"track\"><i class=\"bar\" "
        "style=\"width:%.1f%%\"></i></span><span>%.1f&nbsp;%%</span></div>\n",
        100 * share, 100 * share);
}

static void add_classes(const sti_report_run *run, sti_text *out)
{
    if (!run->class_count || !run->class_correct)
        return;
    bool all = run->classes <= CLASSES_MAX;
    double limit = all ? 1 : worst_limit(run);
    sti_text_add(out, "<section><h2>Accuracy by class</h2>\n");
    if (!all)
        sti_text_printf(out, "<p class=\"note\">The weakest of %d classes.</p>\n",
                        run->classes);
    /* Names get the room that the longest needs, within reason. */
    size_t longest = 2;
    for (int32_t c = 0; c < run->classes; c++) {
        size_t length = strlen(sti_report_class(run, c));
        longest = length > longest ? length : longest;
    }
    sti_text_printf(out, "<div class=\"card classes\" style=\"--name:%zuch\">\n",
                    longest < 16 ? longest : 16);
    for (int32_t c = 0; c < run->classes; c++)
        if (all || accuracy_of(run, c) <= limit)
            add_class(run, c, out);
    sti_text_add(out, "</div></section>\n");
}

/* ---- recipe and machine ---- */

static void add_fact(const char *name, const char *value, sti_text *out)
{
    if (!value || !*value)
        return;
    sti_text_printf(out, "<dt>%s</dt><dd>", name);
    sti_text_add_html(out, value);
    sti_text_add(out, "</dd>\n");
}

static void add_machine(const sti_report_run *run, sti_text *out)
{
    sti_text line = {0};
    sti_text_add(out, "<div class=\"card\"><dl>\n");
    add_fact("CPU", run->cpu, out);
    add_fact("instructions", run->isa, out);
    sti_text_printf(
        &line, "%" PRId64 "%s%s%s", run->threads, run->threads_why ? " (" : "",
        run->threads_why ? run->threads_why : "", run->threads_why ? ")" : "");
    add_fact("threads", line.data, out);
    line.length = 0;
    sti_text_printf(&line, "%" PRId64 " in %" PRId64 " shard%s, %" PRId64 " at a time",
                    run->batch, run->shards, sti_s(run->shards), run->lanes);
    add_fact("batch", line.data, out);
    if (run->net_why)
        add_fact("gradients between processes", run->net_why, out);
    line.length = 0;
    sti_text_printf(&line, "%s training, %s test, ", sti_count_text(run->train_count),
                    sti_count_text(run->test_count));
    if (run->context)
        sti_text_printf(&line, "%" PRId64 " tokens each", run->context);
    else
        sti_text_printf(&line, "%" PRId64 " x %" PRId64 " x %" PRId64, run->width,
                        run->height, run->channels);
    add_fact(run->context ? "sequences" : "images", line.data, out);
    add_fact("data", run->data, out);
    add_fact("weights SHA-256", run->sha256, out);
    add_fact("stint", run->version, out);
    sti_text_add(out, "</dl></div>\n");
    sti_text_fini(&line);
}

static void add_tail(const sti_report_run *run, sti_text *out)
{
    sti_text_add(out, "<section><h2>Recipe and machine</h2>\n<div class=\"pair\">\n");
    if (run->recipe) {
        sti_text_add(out, "<div class=\"card\"><pre>");
        sti_text_add_html(out, run->recipe);
        sti_text_add(out, "</pre></div>\n");
    }
    add_machine(run, out);
    sti_text_add(out, "</div></section>\n<footer>Made by stint ");
    sti_text_add_html(out, stint_version());
    sti_text_add(out, ". The same recipe, data and seed give the same weights on any "
                      "number of threads.</footer>\n</main></body></html>\n");
}

static stint_status write_page(const sti_report_run *run, page *p)
{
    sti_text *out = &p->text;
    add_head(run, out);
    add_figures(run, out);
    add_charts(run, out);
    add_memory(run, out);
    sti_report_forms_add(run, out);
    sti_report_bounds_add(run, out);
    add_classes(run, out);
    stint_status status = flush_page(p, out);
    if (status == STINT_OK)
        status = sti_report_sheet_add(run, out, flush_page, p);
    if (status != STINT_OK)
        return status;
    add_tail(run, out);
    if (out->failed)
        return sti_fail(STINT_E_MEMORY, "out of memory for the report");
    return sti_writer_add(p->writer, out->data, out->length);
}

stint_status sti_report_write(const char *folder)
{
    sti_report_run run;
    page p = {0};
    stint_status status = sti_report_read(folder, &run);
    const char *path = NULL;
    if (status == STINT_OK) {
        path = sti_path_join(run.arena, folder, "report.html");
        status = path ? sti_writer_open(path, &p.writer) : STINT_E_MEMORY;
    }
    if (status == STINT_OK) {
        status = write_page(&run, &p);
        if (status == STINT_OK)
            status = sti_writer_commit(p.writer);
        else
            sti_writer_abort(p.writer);
    }
    sti_text_fini(&p.text);
    sti_report_run_fini(&run);
    return status;
}
