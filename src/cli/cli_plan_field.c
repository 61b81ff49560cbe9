/* Words about how a field's losses get their derivatives. */
#include <math.h>

#include "cli/cli_plan.h"

void sti_cli_plan_derivatives_json(const stint_plan_result *plan, sti_json *j)
{
    if (!plan->of_field)
        return;
    sti_json_begin_array(j, "derivatives");
    for (int i = 0; i < plan->derivative_count; i++) {
        const stint_plan_derivatives *d = &plan->derivatives[i];
        sti_json_begin_object(j, NULL);
        sti_json_text(j, "set", d->set);
        sti_json_text(j, "by", d->jets ? "jets" : "reverse");
        sti_json_bool(j, "laplacian", d->laplacian);
        sti_json_begin_object(j, "multiply_adds");
        sti_json_float(j, "reverse", d->reverse_multiply_adds);
        sti_json_float(j, "jets", d->jets_multiply_adds);
        sti_json_end_object(j);
        sti_json_end_object(j);
    }
    sti_json_end_array(j);
}

static void add_count(double count, sti_text *out)
{
    if (isinf(count))
        sti_text_add(out, "too many to count");
    else
        sti_text_printf(out, "%.3g", count);
}

void sti_cli_plan_derivatives_words(const stint_plan_result *plan, sti_text *out)
{
    for (int i = 0; i < plan->derivative_count; i++) {
        const stint_plan_derivatives *d = &plan->derivatives[i];
        sti_text_printf(out, "Derivatives of field.%s by %s%s: ", d->set,
                        d->jets ? "jets" : "reverse",
                        d->laplacian ? ", Laplacians whole" : "");
        if (isnan(d->jets_multiply_adds)) {
            sti_text_add(out, "as field.by says; auto would count both ways\n");
            continue;
        }
        sti_text_add(out, "multiply-adds a point and step by jets ");
        add_count(d->jets_multiply_adds, out);
        sti_text_add(out, ", by reverse ");
        add_count(d->reverse_multiply_adds, out);
        sti_text_add(out, "\n");
    }
}
