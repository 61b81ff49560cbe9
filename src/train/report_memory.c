/* The memory of a run by its parts, planned and measured. */
#include <math.h>

#include "base/units.h"
#include "page/table.h"
#include "train/report_priv.h"

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

stint_status sti_report_add_memory(const sti_report_run *run, sti_page_file *page)
{
    sti_text *out = &page->text;
    double whole = fmax(isfinite(run->planned_peak) ? run->planned_peak : 0,
                        isfinite(run->peak_rss) ? run->peak_rss : 0);
    if (run->parts == 0 || whole <= 0)
        return STINT_OK;
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
    return STINT_OK;
}
