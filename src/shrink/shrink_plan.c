/* What a search would try and what it would cost; nothing is trained. */
#include <stdio.h>

#include "base/fail.h"
#include "shrink/shrinker.h"
#include "train/batch_auto.h"
#include "train/job.h"
#include "train/recipe_view.h"
#include "train/shrink_recipe.h"

static const double plan_shares[] = {0,    0.1,  0.2,  0.3,  0.4,   0.5,  0.6,
                                     0.7,  0.75, 0.8,  0.85, 0.9,   0.92, 0.94,
                                     0.95, 0.96, 0.97, 0.98, 0.985, 0.99, 0.995};

static stint_status guess(sti_shrinker *s, double share, stint_shrink_guess *g)
{
    g->sparsity = share;
    stint_status st = sti_guess_bytes(&s->guess, share, NULL, &g->bytes, &g->nonzeros);
    if (st == STINT_OK)
        st = sti_shrink_time_guess(s, share, &g->latency_ms, &g->base_ms);
    return st;
}

static stint_status guess_all(sti_shrinker *s, stint_shrink_plan_result *r)
{
    const bool automatic = sti_scheme_is_automatic(&s->scheme);
    const int count = automatic ? (int)(sizeof plan_shares / sizeof plan_shares[0]) : 1;
    stint_status st = STINT_OK;
    for (int i = 0; i < count && st == STINT_OK; i++)
        st = guess(s, plan_shares[i], &r->guesses[r->guess_count++]);
    r->samples = automatic ? s->most : 1;
    return st;
}

static stint_status count_steps(const sti_shrinker *s, int64_t *steps)
{
    const sti_train_values *train = sti_train_section_of(s->recipe);
    int64_t images, epoch;
    stint_status st = sti_job_count_images(s->recipe, &images);
    if (st != STINT_OK)
        return st;
    if (sti_shrink_chooses(s->recipe) && train->validation <= 0)
        images -= images / 10; /* what a sample holds out */
    epoch = train->batch > 0 && images >= train->batch ? images / train->batch : 1;
    *steps = sti_shrink_steps(s->recipe, epoch,
                              train->steps > 0 ? train->steps : train->epochs * epoch);
    return STINT_OK;
}

/* Few steps of new weights, which are thrown away. */
static stint_status time_sample(const sti_shrinker *s, int64_t steps, double *seconds)
{
    const int64_t batch = sti_train_section_of(s->recipe)->batch;
    double images_per_s = 0;
    const stint_status st =
        steps > 0 && batch > 0 ? sti_batch_probe(s->recipe, &images_per_s) : STINT_OK;
    *seconds = images_per_s > 0 ? (double)(steps * batch) / images_per_s : 0;
    return st;
}

stint_status stint_shrink_plan(const stint_recipe *recipe,
                               const stint_shrink_desc *desc,
                               stint_shrink_plan_result *result)
{
    sti_shrinker *s = sti_alloc(sizeof *s, "shrink");
    *result = (stint_shrink_plan_result){.guess_count = 0};
    if (!s)
        return STINT_E_MEMORY;
    stint_status st;
    STI_TRY(sti_shrink_open(recipe, desc, s));
    snprintf(result->scheme, sizeof result->scheme, "%s", s->scheme_text);
    snprintf(result->method, sizeof result->method, "%s",
             sti_shrink_method_name(s->recipe));
    result->base_bytes = s->model->parameters * (int64_t)sizeof(float);
    STI_TRY(guess_all(s, result));
    STI_TRY(count_steps(s, &result->sample_steps));
    STI_TRY(time_sample(s, result->sample_steps, &result->sample_s));
out:
    sti_shrink_close(s);
    sti_free(s);
    return st;
}
