/* The report's section on activations: what the memory budget made of them. */
#include <math.h>
#include <string.h>

#include "base/units.h"
#include "train/report_priv.h"

static const char *const forms[] = {"kept", "small form", "recomputed", "packed"};
enum { FORMS = sizeof forms / sizeof forms[0] };

static void add_row(const char *name, const char *form, double bytes, double held,
                    sti_text *out)
{
    sti_text_add(out, "<tr><td>");
    sti_text_add_html(out, name);
    sti_text_add(out, "</td><td>");
    sti_text_add_html(out, form);
    sti_text_printf(out, "</td><td class=\"n\">%s</td><td class=\"n\">%s</td></tr>\n",
                    sti_bytes_text((size_t)fmax(bytes, 0)),
                    sti_bytes_text((size_t)fmax(held, 0)));
}

static void add_sums(const sti_report_run *run, sti_text *out)
{
    for (int f = 0; f < FORMS; f++) {
        double bytes = 0, held = 0;
        int64_t count = 0;
        for (int i = 0; i < run->tensors; i++)
            if (strcmp(run->tensor[i].form, forms[f]) == 0) {
                bytes += run->tensor[i].bytes;
                held += run->tensor[i].held;
                count++;
            }
        sti_text name = {0};
        sti_text_printf(&name, "%s tensor%s", sti_count_text(count), sti_s(count));
        if (count > 0)
            add_row(name.data ? name.data : "", forms[f], bytes, held, out);
        out->failed |= name.failed;
        sti_text_fini(&name);
    }
}

static const char *const head =
    "<table class=\"memory\"><tr><th>tensor</th><th>form</th><th class=\"n\">size</th>"
    "<th class=\"n\">held</th></tr>\n";

void sti_report_forms_add(const sti_report_run *run, sti_text *out)
{
    if (run->tensors == 0)
        return;
    sti_text_add(out, "<section><h2>Activations</h2>\n<p class=\"note\">What goes from "
                      "the forward to the backward half of a step, for one shard");
    if (isfinite(run->slowdown) && run->slowdown > 1)
        sti_text_printf(out,
                        "; to fit the budget a step was expected to take %.2f times as "
                        "long",
                        run->slowdown);
    if (run->slowdown_measured > 1)
        sti_text_printf(
            out,
            "; what it runs only to save memory made one measured step %.2f "
            "times as long",
            run->slowdown_measured);
    sti_text_add(out, ".</p>\n<div class=\"card\">");
    sti_text_add(out, head);
    add_sums(run, out);
    sti_text_add(out, "</table>\n<details><summary>Every tensor</summary>");
    sti_text_add(out, head);
    for (int i = 0; i < run->tensors; i++)
        add_row(run->tensor[i].name, run->tensor[i].form, run->tensor[i].bytes,
                run->tensor[i].held, out);
    sti_text_add(out, "</table></details></div></section>\n");
}
