/* The report's section on activations: what the memory budget made of them. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/units.h"
#include "page/table.h"
#include "train/report_priv.h"

static const char *const forms[] = {"kept", "small form", "recomputed", "packed"};
enum { FORMS = sizeof forms / sizeof forms[0] };

static const sti_table_column columns[] = {{.name = "tensor"},
                                           {.name = "form"},
                                           {.name = "size", .number = true},
                                           {.name = "held", .number = true}};
enum { COLUMNS = sizeof columns / sizeof columns[0] };

static void add_row(const char *name, const char *form, double bytes, double held,
                    sti_text *out)
{
    sti_table_row(out);
    sti_table_words(out, name, NULL);
    sti_table_words(out, form, NULL);
    sti_table_bytes(out, bytes);
    sti_table_bytes(out, held);
    sti_table_row_end(out);
}

static void add_sum(const sti_report_run *run, const char *form, sti_text *out)
{
    double bytes = 0, held = 0;
    int64_t count = 0;
    char name[64];
    for (int i = 0; i < run->tensors; i++)
        if (strcmp(run->tensor[i].form, form) == 0) {
            bytes += run->tensor[i].bytes;
            held += run->tensor[i].held;
            count++;
        }
    (void)snprintf(name, sizeof name, "%s tensor%s", sti_count_text(count),
                   sti_s(count));
    if (count > 0)
        add_row(name, form, bytes, held, out);
}

static void add_note(const sti_report_run *run, sti_text *out)
{
    char expected[96] = "", measured[128] = "";
    if (isfinite(run->slowdown) && run->slowdown > 1)
        (void)snprintf(expected, sizeof expected,
                       "; to fit the budget a step was expected to take %.2f times as "
                       "long",
                       run->slowdown);
    if (run->slowdown_measured > 1)
        (void)snprintf(measured, sizeof measured,
                       "; what it runs only to save memory made one measured step %.2f "
                       "times as long",
                       run->slowdown_measured);
    sti_page_note(out,
                  "What goes from the forward to the backward half of a step, for one "
                  "shard%s%s.",
                  expected, measured);
}

stint_status sti_report_add_forms(const sti_report_run *run, sti_page_file *page)
{
    sti_text *out = &page->text;
    if (run->tensors == 0)
        return STINT_OK;
    sti_page_section(out, "Activations");
    add_note(run, out);
    sti_page_card_begin(out);
    sti_table_begin(out, columns, COLUMNS);
    for (int f = 0; f < FORMS; f++)
        add_sum(run, forms[f], out);
    sti_table_end(out);
    sti_table_fold_begin(out, "Every tensor", columns, COLUMNS);
    for (int i = 0; i < run->tensors; i++)
        add_row(run->tensor[i].name, run->tensor[i].form, run->tensor[i].bytes,
                run->tensor[i].held, out);
    sti_table_fold_end(out);
    sti_page_card_end(out);
    sti_page_section_end(out);
    return STINT_OK;
}
