/* How a run learnt: loss, accuracy, throughput and learning rate over its epochs. */
#include <math.h>

#include "page/chart.h"
#include "train/report_priv.h"

/* Epochs to a unit of the steps' x; 0 when the log does not tell. */
static double epoch_of_step(const sti_report_run *run)
{
    if (run->step_in_epochs)
        return 1;
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

static bool grows(const sti_report_run *run)
{
    for (int i = 1; i < run->step.count; i++)
        if (run->step.point[i].value[STI_STEP_BATCH] >
            run->step.point[i - 1].value[STI_STEP_BATCH])
            return true;
    return false;
}

/* Batches, and the noise scale where they grow by it. */
static void add_batch_chart(const sti_report_run *run, sti_text *out)
{
    const double each = epoch_of_step(run);
    const sti_chart_line lines[] = {
        {&run->step, STI_STEP_BATCH, each, 1, STI_PAGE_FIRST, "batch", STI_CHART_CURVE},
        {&run->step, STI_STEP_NOISE_SCALE, each, 1, STI_PAGE_FAINT,
         "noise scale of the gradient", STI_CHART_CURVE}};
    bool noise = false;
    for (int i = 0; i < run->step.count; i++)
        noise |= isfinite(run->step.point[i].value[STI_STEP_NOISE_SCALE]);
    sti_chart_add(out, &(sti_chart){.title = "Batch, images",
                                    .x_label = "epoch",
                                    .unit = "",
                                    .line = lines,
                                    .lines = noise ? 2 : 1,
                                    .from_zero = true,
                                    .y_max = STI_REPORT_NONE});
}

stint_status sti_report_add_curves(const sti_report_run *run, sti_page_file *page)
{
    sti_text *out = &page->text;
    double each = epoch_of_step(run);
    sti_chart_line rate = {&run->epoch,
                           STI_EPOCH_RATE,
                           1,
                           sti_report_rate_scale(run),
                           STI_PAGE_PLAIN,
                           sti_report_rate_words(run),
                           STI_CHART_DOTTED_CURVE};
    sti_chart_line lr = {&run->step,     STI_STEP_LR,     each,           1,
                         STI_PAGE_PLAIN, "learning rate", STI_CHART_CURVE};
    sti_page_section(out, "How it learnt");
    sti_page_columns_begin(out);
    add_pair_chart(run, true, out);
    add_pair_chart(run, false, out);
    add_plain_chart(&rate,
                    run->context       ? "Throughput, tokens a second"
                    : run->coordinates ? "Throughput, points a second"
                                       : "Throughput, images a second",
                    out);
    if (each > 0)
        add_plain_chart(&lr, "Learning rate", out);
    if (each > 0 && grows(run))
        add_batch_chart(run, out);
    sti_page_columns_end(out);
    sti_page_section_end(out);
    return STINT_OK;
}
