#include "train/plan_refusal.h"

#include <inttypes.h>

#include "base/fail.h"
#include "base/text.h"
#include "base/units.h"
#include "train/memory_account.h"
#include "train/what_fits.h"

/* The parts of a plan as the account that they came from. */
static sti_account account_of(const stint_plan_result *plan)
{
    sti_account account = {.count = 0};
    for (int i = 0; i < plan->part_count; i++)
        sti_account_add(&account, plan->parts[i].name, plan->parts[i].detail,
                        plan->parts[i].bytes);
    return account;
}

/* What the least peak is made of; nothing where it is the largest part. */
static void say_what_dominates(const stint_plan_result *plan,
                               const sti_account *account, sti_text *out)
{
    const size_t reference = sti_account_bytes(account, STI_PART_REFERENCE);
    const size_t data = sti_account_bytes(account, STI_PART_DATA);
    const size_t process = sti_account_bytes(account, STI_PART_PROCESS);
    const sti_account_part *largest = sti_account_largest(account);
    if (plan->stage_too_large > 0)
        sti_text_printf(out,
                        "of a later stage, with micro-batches of %" PRId64 " images; ",
                        plan->stage_too_large);
    if (reference > 0)
        sti_text_printf(out, "two models are held, the reference takes %s of it; ",
                        sti_bytes_text(reference));
    if (data + process > plan->budget_bytes)
        sti_text_printf(out,
                        "the program (%s) and its data pipeline (%s) alone exceed the "
                        "budget",
                        sti_bytes_text(process), sti_bytes_text(data));
    else if (plan->peak_at_bytes > largest->bytes)
        sti_text_printf(out, "largest: %s, whose operands and results take %s",
                        plan->peak_at, sti_bytes_text(plan->peak_at_bytes));
    else
        sti_text_printf(out, "largest part: %s, %s", largest->name,
                        sti_bytes_text(largest->bytes));
}

static void say_what_fits(const stint_plan_result *plan, sti_text *out)
{
    if (plan->images_that_fit > 0)
        sti_text_printf(out, "--set grow.images=%" PRId64 " or ",
                        plan->images_that_fit);
    if (plan->batch_that_fits > 0)
        sti_text_printf(out, "--batch %" PRId64 " or ", plan->batch_that_fits);
    if (plan->shards_that_fit > 0)
        sti_text_printf(out, "--shards %" PRId64 " or ", plan->shards_that_fit);
}

stint_status sti_plan_refuse(const stint_plan_result *plan)
{
    const sti_account account = account_of(plan);
    sti_text dominates = {0}, fits = {0};
    say_what_dominates(plan, &account, &dominates);
    say_what_fits(plan, &fits);
    const sti_account_advice advice = {.dominates = dominates.data,
                                       .fits = fits.data,
                                       .least_bytes = plan->smallest_bytes};
    const stint_status st = sti_account_check(&account, plan->budget_bytes, &advice);
    sti_text_fini(&dominates);
    sti_text_fini(&fits);
    return st;
}

/* "--batch 64 or --memory 200M", or why there is neither. */
static void say_fit(const sti_fit *fit, size_t smallest_bytes, sti_text *out)
{
    if (fit->batch > 0)
        sti_text_printf(out, "--batch %" PRId64, fit->batch);
    if (fit->memory_bytes > 0)
        sti_text_printf(out, "%s--memory %zuM", fit->batch > 0 ? " or " : "",
                        fit->memory_bytes >> 20);
    if (fit->batch == 0 && fit->memory_bytes == 0)
        sti_text_printf(out,
                        "neither a smaller batch nor any --memory (the least that this "
                        "recipe runs in is %s)",
                        sti_bytes_text(smallest_bytes));
}

stint_status sti_plan_check_machine(const stint_plan_result *plan)
{
    const stint_plan_machine *machine = &plan->machine;
    const sti_fit fit = {machine->batch_that_fits, machine->memory_that_fits};
    sti_text fits = {0};
    if (machine->holds)
        return STINT_OK;
    say_fit(&fit, plan->smallest_bytes, &fits);
    const stint_status st = sti_fail(
        STINT_E_BUDGET,
        "memory: the planned peak of %s is more than the %s that this process can have "
        "(%s); what fits: %s",
        sti_bytes_text(plan->peak_bytes), sti_bytes_text(machine->bytes),
        machine->source, fits.data ? fits.data : "");
    sti_text_fini(&fits);
    return st;
}

stint_status sti_plan_explain_memory(const sti_setup *setup, sti_step_plan *plan,
                                     size_t budget_bytes, const char *why)
{
    sti_fit fit;
    sti_text fits = {0};
    if (sti_find_fit(setup, plan, budget_bytes, &fit) == STINT_OK)
        say_fit(&fit, plan->result.smallest_bytes, &fits);
    const stint_status st =
        sti_fail(STINT_E_MEMORY, "%s; the plan takes %s; what takes less: %s", why,
                 sti_bytes_text(plan->result.peak_bytes),
                 fits.data ? fits.data : "a smaller --batch or a --memory budget");
    sti_text_fini(&fits);
    return st;
}
