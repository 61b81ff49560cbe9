/* Shares that a run settled stand in its recipe.ini, so that a repeat has them, and a
 * run that goes on from before the choice makes the same one: times that were measured
 * come to other shares each time. */
#include <string.h>

#include "base/fail.h"
#include "base/file.h"
#include "train/click.h"
#include "train/click_priv.h"
#include "train/run.h"
#include "train/shrink_recipe.h"

stint_status sti_click_take_over(sti_run *run)
{
    const char *own = sti_shrink_section_of(run->recipe)->scheme;
    char *path = sti_path_join(run->arena, run->out, "recipe.ini");
    stint_recipe *then = NULL;
    if (!path)
        return STINT_E_MEMORY;
    if (!sti_run_is_first(run) || !run->desc->resume || !sti_path_is_file(path))
        return STINT_OK;
    stint_status st = stint_recipe_load(path, &then);
    if (st != STINT_OK)
        return st;
    const char *scheme = sti_shrink_section_of(then)->scheme;
    if (scheme && sti_scheme_is_settled(scheme, own) &&
        !(run->settled_scheme = sti_arena_strdup(run->arena, scheme)))
        st = STINT_E_MEMORY;
    stint_recipe_destroy(then);
    return st;
}

bool sti_click_settled(const sti_run *run, double *share)
{
    sti_shrink_scheme scheme;
    if (!run->settled_scheme ||
        sti_scheme_parse(run->settled_scheme, &scheme) != STINT_OK)
        return false;
    for (int w = 0; w < scheme.count; w++)
        if (run->projection->scheme.word[w].automatic) {
            const sti_scheme_word *word = &scheme.word[w];
            const sti_projection *p = run->projection;
            for (int i = 0, layer = 0; i < p->count; i++)
                if (sti_click_word(p, &p->target[i], STI_SCHEME_KERNEL))
                    share[layer] = word->share[word->shares > 1 ? layer : 0], layer++;
            return true;
        }
    return false;
}

stint_status sti_click_settle(sti_run *run, const double *share, int layers)
{
    sti_text text = {0};
    sti_scheme_settle(sti_shrink_section_of(run->recipe)->scheme, share, layers, &text);
    run->settled_scheme =
        text.failed || !text.data ? NULL : sti_arena_strdup(run->arena, text.data);
    sti_text_fini(&text);
    if (!run->settled_scheme)
        return STINT_E_MEMORY;
    sti_log(STINT_LOG_INFO, "shares of layers: %s", run->settled_scheme);
    return sti_run_write_recipe(run);
}
