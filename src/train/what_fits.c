#include "train/what_fits.h"

#include "base/control_group.h"
#include "base/memory.h"
#include "train/run_section.h"

/* A set-up to try numbers with, and the rewrites that are kept. */
typedef struct trial {
    sti_setup setup; /* owned */
    const sti_step_plan *plan;
    size_t budget_bytes;
} trial;

/* Does the step fit with other numbers and the same rewrites? No, where it cannot be
 * planned. */
static bool fits_with(trial *t, int64_t batch, int64_t shards)
{
    size_t peak = 0;
    sti_setup_cut(&t->setup, batch, shards);
    return sti_setup_build(&t->setup) == STINT_OK &&
           sti_step_peak_with(&t->setup, t->plan->form, t->plan->form_values, &peak) ==
               STINT_OK &&
           peak > 0 && peak <= t->budget_bytes;
}

/* The largest batch below the wanted one, by halving: memory grows with it. */
static int64_t find_batch(trial *t, int64_t batch, int64_t shards)
{
    const int64_t parts = shards * t->setup.accumulate;
    int64_t low = 0, high = batch / parts; /* images a micro-batch; low fits */
    while (low + 1 < high) {
        int64_t mid = low + (high - low) / 2;
        if (fits_with(t, mid * parts, shards))
            low = mid;
        else
            high = mid;
    }
    return low * parts;
}

/* The fewest shards above the wanted number that divide the batch and fit. */
static int64_t find_shards(trial *t, int64_t batch, int64_t shards)
{
    const int64_t images = batch / t->setup.accumulate;
    while ((shards = sti_shards_at_least(images, shards + 1)) > 0)
        if (fits_with(t, batch, shards))
            return shards;
    return 0;
}

static stint_status find_least(trial *t, stint_plan_result *result)
{
    if (result->smallest_bytes > 0)
        return STINT_OK;
    const stint_status st = sti_setup_build(&t->setup);
    return st == STINT_OK ? sti_step_lowest_peak(&t->setup, &result->smallest_bytes)
                          : st;
}

stint_status sti_find_what_fits(const sti_setup *setup, sti_step_plan *plan)
{
    const int64_t batch = setup->batch, shards = setup->shards;
    stint_plan_result *result = &plan->result;
    trial t = {.setup = sti_setup_like(setup),
               .plan = plan,
               .budget_bytes = sti_run_section_of(setup->inputs->recipe)->memory_bytes};
    const stint_status st = find_least(&t, result);
    if (result->fits) {
        result->batch_that_fits = batch;
        result->shards_that_fit = shards;
    } else if (st == STINT_OK) {
        result->batch_that_fits = find_batch(&t, batch, shards);
        result->shards_that_fit = find_shards(&t, batch, shards);
    }
    sti_setup_fini(&t.setup);
    sti_memory_trim();
    return st;
}

stint_status sti_find_fit(const sti_setup *setup, sti_step_plan *plan,
                          size_t budget_bytes, sti_fit *out)
{
    const size_t whole = budget_bytes >> 20 << 20;
    trial t = {
        .setup = sti_setup_like(setup), .plan = plan, .budget_bytes = budget_bytes};
    const stint_status st = find_least(&t, &plan->result);
    *out = (sti_fit){0};
    if (st == STINT_OK) {
        out->batch = find_batch(&t, setup->batch, setup->shards);
        out->memory_bytes = plan->result.smallest_bytes <= whole ? whole : 0;
    }
    sti_setup_fini(&t.setup);
    sti_memory_trim();
    return st;
}

stint_status sti_find_what_machine_holds(const sti_setup *setup, sti_step_plan *plan)
{
    stint_plan_machine *machine = &plan->result.machine;
    sti_memory_limit limit;
    sti_fit fit;
    sti_memory_limit_read("", &limit);
    *machine = (stint_plan_machine){.bytes = limit.bytes, .source = limit.source};
    machine->holds = limit.bytes == 0 || plan->result.peak_bytes <= limit.bytes;
    if (machine->holds)
        return STINT_OK;
    const stint_status st = sti_find_fit(setup, plan, limit.bytes, &fit);
    machine->batch_that_fits = fit.batch;
    machine->memory_that_fits = fit.memory_bytes;
    return st;
}
