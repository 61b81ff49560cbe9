/* Accuracy on the test images, class by class. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "train/report_priv.h"

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

stint_status sti_report_add_classes(const sti_report_run *run, sti_page_file *page)
{
    sti_text *out = &page->text;
    if (!run->class_count || !run->class_correct)
        return STINT_OK;
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
    return STINT_OK;
}
