/* [noise] of a recipe: differences that a study of noise asks for. */
#include "train/noise_section.h"

#include <inttypes.h>

#include "base/units.h"
#include "train/train_section.h"

#define AT(field) .offset = offsetof(sti_noise_values, field)

static const sti_option rows[] = {
    {.name = "order",
     .type = STI_OPTION_INT,
     STI_OPTION_RANGE(0, STI_OPTION_COUNT_MAX),
     .default_text = "0",
     AT(order),
     .unit = "SEED",
     .help = "for studies: the shards of each step are summed in an order shuffled by "
             "this seed; 0: in their own"},
    {.name = "ulp",
     .type = STI_OPTION_INT,
     STI_OPTION_RANGE(0, STI_OPTION_COUNT_MAX),
     .default_text = "0",
     AT(ulp),
     .unit = "SEED",
     .help = "for studies: the last bit of one initial weight, chosen by this seed, is "
             "flipped; 0: none"},
};

static void check(const stint_recipe *recipe, sti_complaints *list)
{
    const int64_t shards = sti_train_section_of(recipe)->shards;
    if (sti_noise_section_of(recipe)->order > 0 && shards < 3)
        sti_complain(list,
                     "noise.order: %" PRId64
                     " shard%s can be summed in one order only; use "
                     "--shards 3 or more, or noise.ulp",
                     shards, sti_s(shards));
}

const sti_recipe_section sti_noise_section = {
    STI_RECIPE_SECTION("noise", rows, sti_noise_values),
    .check = check,
};

const sti_noise_values *sti_noise_section_of(const stint_recipe *recipe)
{
    return sti_recipe_values(recipe, &sti_noise_section);
}
