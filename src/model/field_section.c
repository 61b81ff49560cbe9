/* [field] of a recipe: what the points and the numbers of a field are called. */
#include "model/field_section.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "base/fail.h"

#define AT(field) .offset = offsetof(sti_field_values, field)

static const sti_option rows[] = {
    {.name = "coordinates",
     .type = STI_OPTION_LIST,
     STI_OPTION_NO_BOUND,
     .default_text = "x,y",
     AT(coordinates),
     .unit = "NAME,...",
     .help = "of a field: names of its coordinates, 1 to 4 single letters"},
    {.name = "outputs",
     .type = STI_OPTION_LIST,
     STI_OPTION_NO_BOUND,
     .default_text = "",
     AT(outputs),
     .unit = "NAME,...",
     .help = "of a field: names of its outputs; default: u, or r,g,b of a colour "
             "picture"},
    {.name = "domain",
     .type = STI_OPTION_LIST,
     STI_OPTION_NO_BOUND,
     .default_text = "",
     AT(domain),
     .unit = "LOW:HIGH,...",
     .help = "of a field: where its points are drawn, a range for each coordinate; "
             "default: -1:1 each"},
    {.name = "inside",
     .type = STI_OPTION_TEXT,
     STI_OPTION_NO_BOUND,
     .default_text = "",
     AT(term[0]),
     .unit = "EXPRESSION,...",
     .help = "of a field: expressions, comma-separated, that are to be zero inside of "
             "the domain, as u_xx + u_yy - x"},
    {.name = "inside_weight",
     .type = STI_OPTION_FLOAT,
     STI_OPTION_RANGE(0, 1e12),
     .default_text = "1",
     AT(weight[0]),
     .unit = "N",
     .help = "what the mean squares of field.inside count"},
    {.name = "inside_points",
     .type = STI_OPTION_INT,
     STI_OPTION_RANGE(0, 1 << 24),
     .default_text = "0",
     AT(points[0]),
     .unit = "N",
     .help =
         "points of field.inside that are drawn in a step; 0: as many as the batch"},
    {.name = "border",
     .type = STI_OPTION_TEXT,
     STI_OPTION_NO_BOUND,
     .default_text = "",
     AT(term[1]),
     .unit = "EXPRESSION,...",
     .help = "of a field: the same on the faces of the domain; with start but those of "
             "the last coordinate"},
    {.name = "border_weight",
     .type = STI_OPTION_FLOAT,
     STI_OPTION_RANGE(0, 1e12),
     .default_text = "1",
     AT(weight[1]),
     .unit = "N",
     .help = "what the mean squares of field.border count"},
    {.name = "border_points",
     .type = STI_OPTION_INT,
     STI_OPTION_RANGE(0, 1 << 24),
     .default_text = "0",
     AT(points[1]),
     .unit = "N",
     .help =
         "points of field.border that are drawn in a step; 0: as many as the batch"},
    {.name = "start",
     .type = STI_OPTION_TEXT,
     STI_OPTION_NO_BOUND,
     .default_text = "",
     AT(term[2]),
     .unit = "EXPRESSION,...",
     .help = "of a field: the same where the last coordinate, time, begins"},
    {.name = "start_weight",
     .type = STI_OPTION_FLOAT,
     STI_OPTION_RANGE(0, 1e12),
     .default_text = "1",
     AT(weight[2]),
     .unit = "N",
     .help = "what the mean squares of field.start count"},
    {.name = "start_points",
     .type = STI_OPTION_INT,
     STI_OPTION_RANGE(0, 1 << 24),
     .default_text = "0",
     AT(points[2]),
     .unit = "N",
     .help = "points of field.start that are drawn in a step; 0: as many as the batch"},
    {.name = "data",
     .type = STI_OPTION_TEXT,
     STI_OPTION_NO_BOUND,
     .default_text = "",
     AT(term[3]),
     .unit = "EXPRESSION,...",
     .help = "of a field: the same at the points of the data, whose values are the "
             "outputs in capitals, as r_x - R_x; default: r - R for each output"},
    {.name = "data_weight",
     .type = STI_OPTION_FLOAT,
     STI_OPTION_RANGE(0, 1e12),
     .default_text = "1",
     AT(weight[3]),
     .unit = "N",
     .help = "what the mean squares of field.data count"},
    {.name = "exact",
     .type = STI_OPTION_TEXT,
     STI_OPTION_NO_BOUND,
     .default_text = "",
     AT(exact),
     .unit = "EXPRESSION,...",
     .help = "of a field: the solution of each output where it is known, to test with"},
    {.name = "by",
     .type = STI_OPTION_CHOICE,
     STI_OPTION_NO_BOUND,
     .default_text = "reverse",
     .choices = "auto|reverse|jets",
     AT(by),
     .unit = "WAY",
     .help = "of a field: how its expressions get derivatives: reverse over reverse, "
             "Taylor series in one forward pass, or of both the one of fewer "
             "multiply-adds (stint plan says which)"},
};

/* Splits "a,b" into names; the number of them, or -1 with a sentence recorded. */
static int parse_names(const char *list, int most, size_t longest, const char *key,
                       char (*name)[STI_FIELD_NAME])
{
    int count = 0;
    while (list && *list) {
        list += strspn(list, " ,");
        const size_t length = strcspn(list, " ,");
        if (length == 0)
            break;
        bool good = length <= longest && isalpha((unsigned char)list[0]);
        for (size_t i = 1; i < length; i++)
            good = good && isalnum((unsigned char)list[i]);
        if (!good || count == most) {
            sti_fail(STINT_E_INPUT,
                     "field.%s: '%.*s'; wanted at most %d names of 1 to %d letters",
                     key, (int)(length < 40 ? length : 40), list, most, (int)longest);
            return -1;
        }
        snprintf(name[count++], STI_FIELD_NAME, "%.*s", (int)length, list);
        list += length;
    }
    return count;
}

static stint_status check_twice(const sti_field_names *n)
{
    const char *all[STI_FIELD_COORDINATES + STI_FIELD_OUTPUTS];
    int count = 0;
    for (int i = 0; i < n->coordinates; i++)
        all[count++] = n->coordinate[i];
    for (int i = 0; i < n->outputs; i++)
        all[count++] = n->output[i];
    for (int i = 0; i < count; i++)
        for (int j = i + 1; j < count; j++)
            if (strcmp(all[i], all[j]) == 0)
                return sti_fail(STINT_E_INPUT,
                                "field: '%s' is the name of two things; names of "
                                "coordinates and outputs must differ",
                                all[i]);
    return STINT_OK;
}

stint_status sti_field_names_parse(const char *coordinates, const char *outputs,
                                   sti_field_names *names_out)
{
    sti_field_names n = {0};
    n.coordinates =
        parse_names(coordinates, STI_FIELD_COORDINATES, 1, "coordinates", n.coordinate);
    if (n.coordinates < 0)
        return STINT_E_INPUT;
    n.outputs = parse_names(outputs, STI_FIELD_OUTPUTS, STI_FIELD_NAME - 1, "outputs",
                            n.output);
    if (n.outputs < 0)
        return STINT_E_INPUT;
    if (n.coordinates == 0)
        return sti_fail(STINT_E_INPUT, "field.coordinates: a field has one or more");
    const stint_status st = check_twice(&n);
    if (st == STINT_OK)
        *names_out = n;
    return st;
}

void sti_field_names_print(const sti_field_names *names, sti_text *out)
{
    for (int i = 0; i < names->coordinates; i++)
        sti_text_printf(out, "%s%s", i ? "," : "", names->coordinate[i]);
    for (int i = 0; i < names->outputs; i++)
        sti_text_printf(out, "%s%s", i ? "," : " ", names->output[i]);
}

stint_status sti_field_names_read(const char *text, sti_field_names *names_out)
{
    char coordinates[STI_FIELD_COORDINATES * STI_FIELD_NAME];
    const size_t length = text ? strcspn(text, " ") : 0;
    if (length == 0 || length >= sizeof coordinates || text[length] != ' ')
        return sti_fail(STINT_E_INPUT, "names of coordinates and outputs were wanted");
    snprintf(coordinates, sizeof coordinates, "%.*s", (int)length, text);
    const stint_status st =
        sti_field_names_parse(coordinates, text + length + 1, names_out);
    if (st == STINT_OK && names_out->outputs == 0)
        return sti_fail(STINT_E_INPUT, "names of outputs were wanted");
    return st;
}

void sti_field_names_usual(sti_field_names *names, int outputs)
{
    static const char *const few[3][3] = {{"u"}, {"u", "v"}, {"r", "g", "b"}};
    names->outputs = outputs;
    for (int i = 0; i < outputs; i++)
        if (outputs <= 3)
            snprintf(names->output[i], STI_FIELD_NAME, "%s", few[outputs - 1][i]);
        else
            snprintf(names->output[i], STI_FIELD_NAME, "u%d", i);
}

static void check(const stint_recipe *recipe, sti_complaints *list)
{
    const sti_field_values *field = sti_field_section_of(recipe);
    sti_field_names names;
    sti_complain_status(
        list, sti_field_names_parse(field->coordinates, field->outputs, &names));
}

const sti_recipe_section sti_field_section = {
    STI_RECIPE_SECTION("field", rows, sti_field_values),
    .check = check,
};

const sti_field_values *sti_field_section_of(const stint_recipe *recipe)
{
    return sti_recipe_values(recipe, &sti_field_section);
}
