#include "train/shrink_recipe.h"

#include "train/optimizer_section.h"
#include "train/train_section.h"

bool sti_shrink_wanted(const stint_recipe *recipe)
{
    return sti_shrink_section_of(recipe)->scheme != NULL;
}

sti_shrink_method sti_shrink_method_of(const stint_recipe *recipe)
{
    const int method = sti_shrink_section_of(recipe)->method;
    if (method != STI_SHRINK_AUTO)
        return (sti_shrink_method)method;
    return sti_train_section_of(recipe)->start ? STI_SHRINK_LC : STI_SHRINK_CLICK;
}

const char *sti_shrink_method_name(const stint_recipe *recipe)
{
    static const char *const names[] = {[STI_SHRINK_AUTO] = "auto",
                                        [STI_SHRINK_DIRECT] = "direct",
                                        [STI_SHRINK_FINE_TUNE] = "fine-tune",
                                        [STI_SHRINK_REWIND] = "rewind",
                                        [STI_SHRINK_LC] = "lc",
                                        [STI_SHRINK_CLICK] = "click"};
    return names[sti_shrink_method_of(recipe)];
}

static bool is_one_of(const stint_recipe *recipe, sti_shrink_method a,
                      sti_shrink_method b, sti_shrink_method c)
{
    if (!sti_shrink_wanted(recipe))
        return false;
    const sti_shrink_method method = sti_shrink_method_of(recipe);
    return method == a || method == b || method == c;
}

bool sti_shrink_chooses(const stint_recipe *recipe)
{
    return is_one_of(recipe, STI_SHRINK_LC, STI_SHRINK_FINE_TUNE, STI_SHRINK_REWIND);
}

/* Does a scheme leave zeros that can stay zero while the rest is trained? */
static bool leaves_zeros(const char *text)
{
    sti_shrink_scheme scheme;
    bool zeros = false;
    if (sti_scheme_parse(text, &scheme) != STINT_OK ||
        sti_scheme_has(&scheme, STI_SCHEME_LOWRANK))
        return false;
    for (int kind = STI_SCHEME_PRUNE; kind <= STI_SCHEME_PATTERN; kind++)
        zeros = zeros || sti_scheme_has(&scheme, (sti_scheme_kind)kind);
    return zeros;
}

static bool finishes(const stint_recipe *recipe)
{
    const sti_shrink_values *shrink = sti_shrink_section_of(recipe);
    return is_one_of(recipe, STI_SHRINK_LC, STI_SHRINK_LC, STI_SHRINK_LC) &&
           shrink->finish > 0 && leaves_zeros(shrink->scheme);
}

bool sti_shrink_is_masked(const stint_recipe *recipe)
{
    return finishes(recipe) ||
           is_one_of(recipe, STI_SHRINK_CLICK, STI_SHRINK_FINE_TUNE, STI_SHRINK_REWIND);
}

int sti_shrink_shadows(const stint_recipe *recipe)
{
    if (finishes(recipe))
        return 3;
    if (is_one_of(recipe, STI_SHRINK_LC, STI_SHRINK_CLICK, STI_SHRINK_CLICK))
        return 2;
    return sti_shrink_chooses(recipe) ? 1 : 0;
}

sti_lc_plan sti_shrink_lc_plan(const stint_recipe *recipe, int64_t steps_per_epoch)
{
    const sti_optimizer_values *o = sti_optimizer_section_of(recipe);
    sti_shrink_values values = *sti_shrink_section_of(recipe);
    if (!finishes(recipe))
        values.finish = 0;
    return sti_lc_plan_of(&values, steps_per_epoch, o->lr,
                          o->name == STI_OPTIMIZER_SGD ? o->momentum : 0);
}

int64_t sti_shrink_steps(const stint_recipe *recipe, int64_t steps_per_epoch,
                         int64_t steps)
{
    const sti_lc_plan plan = sti_shrink_lc_plan(recipe, steps_per_epoch);
    if (is_one_of(recipe, STI_SHRINK_LC, STI_SHRINK_LC, STI_SHRINK_LC))
        return sti_lc_batches(&plan);
    return is_one_of(recipe, STI_SHRINK_DIRECT, STI_SHRINK_DIRECT, STI_SHRINK_DIRECT)
               ? 0
               : steps;
}

stint_status sti_shrink_create_projection(const stint_recipe *recipe,
                                          const sti_network *network, bool measure,
                                          sti_projection **projection_out)
{
    const sti_shrink_values *shrink = sti_shrink_section_of(recipe);
    sti_shrink_scheme scheme;
    stint_status st = sti_scheme_parse(shrink->scheme, &scheme);
    if (st != STINT_OK)
        return st;
    const sti_projection_desc desc = {.scheme = &scheme,
                                      .keep = shrink->keep,
                                      .fixed_shapes =
                                          shrink->patterns == STI_PATTERNS_FIXED,
                                      .measure = measure};
    return sti_projection_create(&desc, network, projection_out);
}
