#include "train/plan_refusal.h"

#include <inttypes.h>

#include "base/text.h"
#include "base/units.h"
#include "train/memory_account.h"

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
