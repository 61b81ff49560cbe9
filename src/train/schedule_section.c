/* [schedule] of a recipe: the course of the learning rate. */
#include "train/schedule_section.h"

#include <string.h>

#include "base/units.h"

#define AT(field) .offset = offsetof(sti_schedule_values, field)

static const sti_option rows[] = {
    {.name = "name",
     .type = STI_OPTION_CHOICE,
     STI_OPTION_NO_BOUND,
     .default_text = "constant",
     .choices = "constant|step|cosine|one-cycle",
     AT(name),
     .unit = "NAME",
     .help = "course of the learning rate after the warm-up: constant, times gamma at "
             "each milestone, half a cosine down, or a straight line down (one-cycle)"},
    {.name = "warmup",
     .type = STI_OPTION_FLOAT,
     STI_OPTION_RANGE(0, 1000000),
     .default_text = "0",
     AT(warmup),
     .unit = "EPOCHS",
     .help = "epochs of straight rise at the start; 0: none, with one-cycle 0.3 of the "
             "run"},
    {.name = "milestones",
     .type = STI_OPTION_LIST,
     STI_OPTION_NO_BOUND,
     .default_text = "",
     AT(milestones),
     .unit = "EPOCHS",
     .help = "of step: epochs after which the rate falls, ascending"},
    {.name = "gamma",
     .type = STI_OPTION_FLOAT,
     STI_OPTION_RANGE(0, 1),
     .default_text = "0.1",
     AT(gamma),
     .unit = "FACTOR",
     .help = "of step: what the rate is multiplied by at a milestone"},
    {.name = "start_factor",
     .type = STI_OPTION_FLOAT,
     STI_OPTION_RANGE(0, 1),
     .default_text = "0.04",
     AT(start_factor),
     .unit = "FACTOR",
     .help = "of lr, where the warm-up begins"},
    {.name = "final_factor",
     .type = STI_OPTION_FLOAT,
     STI_OPTION_RANGE(0, 1),
     .default_text = "0",
     AT(final_factor),
     .unit = "FACTOR",
     .help = "of lr, where cosine and one-cycle end"},
    {.name = "period",
     .type = STI_OPTION_FLOAT,
     STI_OPTION_RANGE(0, 1000000),
     .default_text = "0",
     AT(period),
     .unit = "EPOCHS",
     .help = "of cosine: epochs of the first half cosine, after which the rate jumps "
             "back to lr and falls again (warm restarts); 0: one over the whole run"},
    {.name = "period_factor",
     .type = STI_OPTION_FLOAT,
     STI_OPTION_RANGE(1, 64),
     .default_text = "1",
     AT(period_factor),
     .unit = "FACTOR",
     .help = "of warm restarts: what a period is longer than the one before"},
};

int sti_recipe_milestones(const char *text, double *epochs_out, int max)
{
    int count = 0;
    double last = 0;
    while (text && *text) {
        char word[64];
        size_t length = strcspn(text, ",");
        size_t skip = strspn(text, " \t");
        if (skip >= length || length - skip >= sizeof word || count >= max)
            return -1;
        memcpy(word, text + skip, length - skip);
        word[length - skip] = '\0';
        word[strcspn(word, " \t")] = '\0';
        double epoch;
        if (sti_parse_float(word, &epoch) != STINT_OK || epoch <= last)
            return -1;
        epochs_out[count++] = last = epoch;
        text += length;
        if (*text == ',')
            text++;
    }
    return count;
}

static void check(const stint_recipe *recipe, sti_complaints *list)
{
    const sti_schedule_values *schedule = sti_schedule_section_of(recipe);
    double epochs[STI_MILESTONES_MAX];
    int count = sti_recipe_milestones(schedule->milestones, epochs, STI_MILESTONES_MAX);
    if (count < 0)
        sti_complain(list,
                     "schedule.milestones: '%s' is no ascending list of at most %d "
                     "epochs such as 60,120",
                     schedule->milestones, STI_MILESTONES_MAX);
    if (schedule->name == STI_SCHEDULE_STEP && count == 0)
        sti_complain(list,
                     "schedule.milestones: the step schedule needs the epochs after "
                     "which the rate falls, for example 60,120");
    if (schedule->name != STI_SCHEDULE_STEP && count > 0)
        sti_complain(list, "schedule.milestones: belong to name = step; remove them or "
                           "choose that schedule");
    if (schedule->period > 0 && schedule->name != STI_SCHEDULE_COSINE)
        sti_complain(list,
                     "schedule.period: warm restarts are of name = cosine; set it "
                     "to 0 or choose that schedule");
    if (schedule->period == 0 && schedule->period_factor != 1)
        sti_complain(list,
                     "schedule.period_factor: there are no periods; give the first "
                     "one by schedule.period");
}

const sti_recipe_section sti_schedule_section = {
    STI_RECIPE_SECTION("schedule", rows, sti_schedule_values),
    .check = check,
};

const sti_schedule_values *sti_schedule_section_of(const stint_recipe *recipe)
{
    return sti_recipe_values(recipe, &sti_schedule_section);
}
