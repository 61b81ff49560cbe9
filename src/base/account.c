#include "base/account.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "base/fail.h"
#include "base/memory.h"
#include "base/program.h"
#include "base/units.h"

void sti_account_add(sti_account *account, const char *name, const char *detail,
                     size_t bytes)
{
    assert(account->count < STI_ACCOUNT_PARTS);
    account->parts[account->count++] = (sti_account_part){name, detail, bytes};
    account->total_bytes += bytes;
}

void sti_account_raise(sti_account *account, const char *name, const char *detail,
                       size_t bytes)
{
    if (bytes > account->total_bytes)
        sti_account_add(account, name, detail, bytes - account->total_bytes);
}

size_t sti_account_bytes(const sti_account *account, const char *name)
{
    for (int i = 0; i < account->count; i++)
        if (strcmp(account->parts[i].name, name) == 0)
            return account->parts[i].bytes;
    return 0;
}

const sti_account_part *sti_account_largest(const sti_account *account)
{
    const sti_account_part *largest = account->count > 0 ? &account->parts[0] : NULL;
    for (int i = 1; i < account->count; i++)
        if (account->parts[i].bytes > largest->bytes)
            largest = &account->parts[i];
    return largest;
}

/* ---- the process ---- */

size_t sti_account_process_bytes(const sti_account_process *process)
{
    sti_program_pages program;
    sti_memory_trim();
    sti_program_settle(process->libraries, &program);
    const size_t pages = program.code_bytes + program.data_bytes;
    const size_t known = pages + STI_ACCOUNT_OWN_BYTES;
    const size_t resident = sti_process_now_bytes(), apart = process->apart_bytes;
    const size_t rest = resident > apart ? resident - apart : 0;
    const size_t rounded = STI_ALIGN_UP(rest, STI_ACCOUNT_GRAIN_BYTES);
    if (process->keeps_others && rest > pages)
        return rounded + STI_ACCOUNT_OWN_BYTES;
    /* More only inside of a larger program, where no two runs need to agree. */
    return rest > known ? rounded : known;
}

void sti_account_add_process(sti_account *account, const sti_account_process *process,
                             int threads)
{
    sti_account_add_measured(account, sti_account_process_bytes(process), threads);
}

void sti_account_add_measured(sti_account *account, size_t process_bytes, int threads)
{
    sti_account_add(account, "program", "code and data, libraries, stack, heap",
                    process_bytes);
    sti_account_add(account, "threads", "stacks of those beside the main one",
                    (size_t)(threads - 1) * STI_ACCOUNT_THREAD_BYTES);
    sti_account_add(account, "reserve", "for what differs from run to run",
                    account->total_bytes / STI_ACCOUNT_RESERVE_SHARE);
}

/* ---- the answer ---- */

stint_status sti_account_check(const sti_account *account, size_t budget_bytes,
                               const sti_account_advice *advice)
{
    static const sti_account_advice none = {0};
    const size_t total = account->total_bytes;
    const sti_account_part *largest = sti_account_largest(account);
    char named[160] = "";
    if (budget_bytes == 0 || total <= budget_bytes)
        return STINT_OK;
    advice = advice ? advice : &none;
    if (largest)
        snprintf(named, sizeof named, "largest part: %s, %s", largest->name,
                 sti_bytes_text(largest->bytes));
    const size_t least = advice->least_bytes ? advice->least_bytes : total;
    return sti_fail(STINT_E_BUDGET,
                    "memory: needs %s at least, budget %s, short by %s; %s; what fits: "
                    "%s--memory %s",
                    sti_bytes_text(total), sti_bytes_text(budget_bytes),
                    sti_bytes_text(total - budget_bytes),
                    advice->dominates ? advice->dominates : named,
                    advice->fits ? advice->fits : "", sti_enough_text(least));
}
