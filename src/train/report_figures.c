/* The headline figures of a report. */
#include <math.h>
#include <stdarg.h>
#include <stdio.h>

#include "base/units.h"
#include "train/report_priv.h"

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

static const char *loss_words(const sti_report_run *run)
{
    if (!isfinite(run->test_loss))
        return "training loss";
    return run->context ? "test loss, nats a token" : "test loss";
}

stint_status sti_report_add_figures(const sti_report_run *run, sti_page_file *page)
{
    sti_text *out = &page->text;
    const double loss = isfinite(run->test_loss) ? run->test_loss : run->train_loss;
    sti_page_figures_begin(out);
    if (isfinite(run->test_accuracy))
        add_figure(out, "test accuracy", "%.2f %%", 100 * run->test_accuracy);
    if (run->coordinates && isfinite(run->test_loss))
        add_figure(out, "signal to noise of the field", "%.2f dB",
                   10 * log10(4 / run->test_loss));
    if (isfinite(loss))
        add_figure(out, loss_words(run), "%.4f", loss);
    if (isfinite(run->rate))
        add_figure(
            out, sti_report_rate_words(run), "%s",
            sti_count_text((int64_t)llround(run->rate * sti_report_rate_scale(run))));
    add_memory_figure(run, out);
    if (isfinite(run->seconds))
        sti_page_figure(out, sti_time_text(run->seconds), "in all");
    if (run->parameters > 0)
        sti_page_figure(out, sti_count_text(run->parameters), "parameters");
    sti_page_figures_end(out);
    return STINT_OK;
}
