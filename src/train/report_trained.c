/* The report's section on a training of a part: what is trained, what each gains of the
 * data, and what is kept for it. */
#include <math.h>

#include "base/units.h"
#include "page/table.h"
#include "train/report_priv.h"

static const sti_table_column columns[3] = {
    {.name = "trained"},
    {.name = "gain", .number = true, .key = true, .colour = STI_PAGE_FIRST},
    {.name = "kept", .number = true, .key = true, .colour = STI_PAGE_SECOND}};

typedef struct largest {
    double gain, bytes;
} largest;

static largest find_largest(const sti_report_run *run)
{
    largest l = {0, 0};
    for (int i = 0; i < run->trained_count; i++) {
        if (run->trained[i].gain > l.gain)
            l.gain = run->trained[i].gain;
        if (run->trained[i].bytes > l.bytes)
            l.bytes = run->trained[i].bytes;
    }
    return l;
}

static const char *share_words(double share)
{
    return share == 0.125  ? "1/8 of its channels"
           : share == 0.25 ? "1/4 of its channels"
           : share == 0.5  ? "1/2 of its channels"
                           : NULL;
}

static void add_row(const sti_report_trained *t, const largest *l, sti_text *out)
{
    const double gain = l->gain > 0 ? t->gain / l->gain : STI_REPORT_NONE;
    sti_table_row(out);
    sti_table_words(out, t->name, share_words(t->share));
    if (isfinite(t->gain))
        sti_table_number(out, "%.3g", t->gain);
    else
        sti_table_number(out, "%s", "");
    sti_table_bytes(out, t->bytes);
    sti_table_bars(out, gain, l->bytes > 0 ? t->bytes / l->bytes : 0, 1);
    sti_table_row_end(out);
}

stint_status sti_report_add_trained(const sti_report_run *run, sti_page_file *page)
{
    sti_text *out = &page->text;
    const largest l = find_largest(run);
    if (run->trained_count == 0)
        return STINT_OK;
    sti_page_section(out, "What is trained");
    sti_page_note(
        out,
        "%s tensor%s of the network; all else is as in the model that "
        "training began with. A gain is the mean square of the gradient, "
        "summed over what is trained, or by how much less the loss of a short "
        "training ended, where gains were measured%s; kept are gradient and "
        "optimiser state.",
        sti_count_text(run->trained_count), sti_s(run->trained_count),
        l.gain > 0 ? "" : " (here none are known)");
    sti_page_card_begin(out);
    sti_table_begin_barred(out, columns);
    for (int i = 0; i < run->trained_count; i++)
        add_row(&run->trained[i], &l, out);
    sti_table_end(out);
    sti_page_card_end(out);
    sti_page_section_end(out);
    return STINT_OK;
}
