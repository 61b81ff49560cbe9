/* agent.keep = best: which weights the model gets.
 *
 * Weights are put aside, and judged by the mean return of STI_RETURNS_MOST episodes
 * that ended since, after as many as there are environments: those had begun before,
 * under other weights. Then the weights of that time are put aside, and so on; at the
 * end of the run those put aside last are judged without that wait. Policies change
 * while an episode lasts, so this judges a stretch of training by its beginning; one
 * within which the policy collapsed has a low mean and is not taken. */
#include <string.h>

#include "base/memory.h"
#include "play/play.h"

static void put_aside(sti_play *p)
{
    sti_play_best *b = &p->best;
    stint_session_weights(p->session, b->candidate);
    b->place.begun_update = p->updates;
    b->place.begun_episodes = p->rollout.counts.episodes;
}

stint_status sti_best_begin(sti_play *p)
{
    sti_play_best *b = &p->best;
    b->place.update = -1;
    if (p->agent.keep != STI_KEEP_BEST)
        return STINT_OK;
    b->candidate = sti_alloc(p->weights_bytes, "play.best");
    b->chosen = sti_alloc(p->weights_bytes, "play.best");
    if (!b->candidate || !b->chosen)
        return STINT_E_MEMORY;
    memset(b->chosen, 0, p->weights_bytes); /* a checkpoint holds it, chosen or not */
    put_aside(p);
    return STINT_OK;
}

void sti_best_fini(sti_play *p)
{
    sti_free(p->best.candidate);
    sti_free(p->best.chosen);
}

bool sti_best_look(sti_play *p, bool at_end)
{
    sti_play_best *b = &p->best;
    const int64_t since = p->rollout.counts.episodes - b->place.begun_episodes;
    if (!b->candidate || since < STI_RETURNS_MOST + (at_end ? 0 : p->env.envs))
        return false;
    const double mean = sti_rollout_returns(&p->rollout).mean;
    const bool better = b->place.update < 0 || mean >= b->place.mean;
    if (better) {
        void *const last = b->chosen;
        b->chosen = b->candidate;
        b->candidate = last;
        b->place.update = b->place.begun_update;
        b->place.mean = mean;
    }
    put_aside(p);
    return better;
}

void sti_best_take(sti_play *p)
{
    if (p->best.place.update >= 0)
        stint_session_set_weights(p->session, p->best.chosen);
}
