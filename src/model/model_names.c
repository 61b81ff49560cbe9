#include "model/model_names.h"

#include "stint/model.h"

static void add_names(const stint_model_info *info, sti_text *out)
{
    for (const char *between = ""; info->name; info++, between = ", ")
        sti_text_printf(out, "%s%s", between, info->name);
}

void sti_model_add_names(sti_text *out)
{
    add_names(stint_model_list(), out);
    sti_text_add(out, "; of text: ");
    add_names(stint_text_model_list(), out);
}
