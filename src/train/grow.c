/* Stages of batches that grow; see the header. */
#include "train/grow.h"

#include <inttypes.h>

#include "base/fail.h"
#include "base/memory.h"
#include "base/units.h"
#include "train/grow_section.h"
#include "train/train_section.h"

enum { USUAL_STAGES = 5, OPEN_STAGES = 2 }; /* the latter: before and now */

/* Batches that so many units are cut into, by whole micro-batches. */
static int64_t batches(const sti_course *c, int64_t units, const sti_stage *s)
{
    const int64_t runs = units / s->micro;
    return c->grows ? (runs + s->accumulate - 1) / s->accumulate : runs / s->accumulate;
}

static int64_t batch_units(const sti_stage *s)
{
    return s->accumulate * s->micro;
}

/* ---- making it ---- */

static int64_t epochs_of_stage(const sti_grow_values *grow, int64_t epochs)
{
    return grow->every > 0 ? grow->every : (epochs + USUAL_STAGES - 1) / USUAL_STAGES;
}

/* Stages of `every` epochs, from one to the next the batch or else the rate. first:
 * images of a micro-batch. */
static void list_stages(sti_course *c, const sti_grow_values *grow, int64_t every,
                        int64_t most, int64_t first)
{
    sti_stage stage = c->stage[0];
    for (c->count = 0; stage.epoch < c->epochs; stage.epoch += every) {
        const int64_t left = c->epochs - stage.epoch;
        c->stage[c->count++] = stage;
        stage.step += (left < every ? left : every) * batches(c, c->units, &stage);
        if (batch_units(&stage) * grow->factor * c->unit > most) {
            stage.lr_factor *= grow->lr / (double)grow->factor;
            continue;
        }
        if (stage.micro * grow->factor * first <= grow->images)
            stage.micro *= grow->factor;
        else
            stage.accumulate *= grow->factor;
        stage.lr_factor *= grow->lr;
    }
    c->steps = stage.step;
}

/* As far as is known: when no further stage comes. */
static void set_open_end(sti_course *c)
{
    const sti_stage *s = &c->stage[c->count - 1];
    const int64_t rest = batches(c, c->units - s->image / c->unit, s);
    const int64_t each = batches(c, c->units, s);
    c->steps = s->step;
    if (s->epoch < c->epochs)
        c->steps += rest + (c->epochs - s->epoch - 1) * each;
    if (c->limit > 0 && c->limit < c->steps)
        c->steps = c->limit;
}

void sti_course_go_on(sti_course *c, const sti_stage *stage)
{
    while (c->count > 0 && c->stage[c->count - 1].step >= stage->step)
        c->count--;
    if (c->count == OPEN_STAGES)
        c->stage[0] = c->stage[--c->count];
    c->stage[c->count++] = *stage;
    set_open_end(c);
}

void sti_course_end(sti_course *c, int64_t steps)
{
    const int64_t each = batches(c, c->units, &c->stage[0]);
    c->steps = steps;
    c->epochs = (steps + each - 1) / each;
}

/* steps 0: not at all. */
static stint_status end_early(sti_course *c, int64_t steps)
{
    if (steps == 0)
        return STINT_OK;
    if (steps > c->steps) {
        const int64_t all = c->steps, epochs = c->epochs;
        sti_course_fini(c);
        return sti_fail(STINT_E_USAGE,
                        "train.steps: with growing batches the %" PRId64
                        " epoch%s of the run have %" PRId64 " steps, less than the "
                        "%" PRId64 " asked for; use more train.epochs or fewer steps",
                        epochs, sti_s(epochs), all, steps);
    }
    while (c->stage[c->count - 1].step >= steps)
        c->count--;
    c->steps = steps;
    c->epochs = sti_course_epoch(c, steps);
    return STINT_OK;
}

stint_status sti_course_create(const stint_recipe *recipe, int64_t count, sti_course *c)
{
    const sti_train_values *train = sti_train_section_of(recipe);
    const sti_grow_values *grow = sti_grow_section_of(recipe);
    const int64_t every = epochs_of_stage(grow, train->epochs);
    *c = (sti_course){.unit = train->batch / train->accumulate,
                      .epochs = train->epochs,
                      .grows = grow->by != STI_GROW_NONE,
                      .open = grow->by == STI_GROW_NOISE,
                      .limit = train->steps,
                      .count = 1};
    c->units = count / c->unit;
    const int64_t stages = c->open    ? OPEN_STAGES
                           : c->grows ? (train->epochs + every - 1) / every
                                      : 1;
    c->stage = sti_alloc_array(stages, sizeof *c->stage, "stages");
    if (!c->stage)
        return STINT_E_MEMORY;
    c->stage[0] =
        (sti_stage){.accumulate = train->accumulate, .micro = 1, .lr_factor = 1};
    if (c->open) {
        set_open_end(c);
        return STINT_OK;
    }
    if (c->grows) {
        list_stages(c, grow, every, sti_grow_most(grow, count),
                    c->unit / train->shards);
        return end_early(c, train->steps);
    }
    const int64_t each = batches(c, c->units, &c->stage[0]);
    sti_course_end(c, train->steps > 0 ? train->steps : train->epochs * each);
    return STINT_OK;
}

void sti_course_fini(sti_course *c)
{
    sti_free(c->stage);
    *c = (sti_course){.count = 0};
}

/* ---- asking it ---- */

static const sti_stage *stage_of(const sti_course *c, int64_t step)
{
    int i = c->count - 1;
    while (i > 0 && step < c->stage[i].step)
        i--;
    return &c->stage[i];
}

sti_course_point sti_course_at(const sti_course *c, int64_t step)
{
    const sti_stage *s = stage_of(c, step);
    const int64_t each = batches(c, c->units, s);
    int64_t epoch = s->epoch, first = s->image / c->unit;
    int64_t left = step > s->step ? step - s->step : 0; /* (older stages are gone) */
    const int64_t rest = batches(c, c->units - first, s);
    if (left >= rest) {
        epoch += 1 + (left - rest) / each;
        left = (left - rest) % each;
        first = 0;
    }
    const int64_t begin = first + left * batch_units(s);
    const int64_t there = (c->units - begin) / s->micro;
    const int64_t taken = s->accumulate < there ? s->accumulate : there;
    const double share = (double)taken / (double)s->accumulate;
    return (sti_course_point){.epoch = epoch,
                              .image = begin * c->unit,
                              .accumulate = taken,
                              .batch = taken * s->micro * c->unit,
                              .micro = s->micro,
                              .whole = batch_units(s) * c->unit,
                              .lr_factor = s->lr_factor * share,
                              .tick = c->grows ? epoch * c->units + begin : step};
}

int64_t sti_course_epoch(const sti_course *c, int64_t step)
{
    const sti_course_point at = sti_course_at(c, step);
    return at.image > 0 ? at.epoch + 1 : at.epoch;
}

double sti_course_epochs(const sti_course *c, int64_t step)
{
    const sti_course_point at = sti_course_at(c, step);
    return (double)at.epoch + (double)at.image / (double)(c->units * c->unit);
}

/* What an epoch of a stage takes of its images. */
static int64_t epoch_images(const sti_course *c, const sti_stage *s)
{
    const int64_t part = c->grows ? s->micro : s->accumulate;
    return c->units / part * part * c->unit;
}

/* Stages of micro-batches that differ begin with epochs, and none of them is dropped.
 */
int64_t sti_course_images(const sti_course *c, int64_t step)
{
    const sti_course_point at = sti_course_at(c, step);
    const sti_stage *last = stage_of(c, step);
    int64_t images = at.image, epoch = 0;
    for (const sti_stage *s = c->stage; s < last; s++) {
        images += (s[1].epoch - epoch) * epoch_images(c, s);
        epoch = s[1].epoch;
    }
    return images + (at.epoch - epoch) * epoch_images(c, last);
}

int64_t sti_course_largest(const sti_course *c)
{
    int64_t largest = 0;
    for (int i = 0; i < c->count; i++)
        largest =
            batch_units(&c->stage[i]) > largest ? batch_units(&c->stage[i]) : largest;
    return largest * c->unit;
}

int64_t sti_course_epoch_ticks(const sti_course *c)
{
    return c->grows ? c->units : batches(c, c->units, &c->stage[0]);
}

int64_t sti_course_ticks(const sti_course *c)
{
    return c->open ? c->epochs * c->units : sti_course_at(c, c->steps).tick;
}

int64_t sti_course_stage_steps(const sti_course *c, int i)
{
    return (i + 1 < c->count ? c->stage[i + 1].step : c->steps) - c->stage[i].step;
}
