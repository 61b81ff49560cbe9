#include "base/stop.h"

#include <assert.h>
#include <stdatomic.h>

#include "stint/stop.h"

static atomic_int stop_status;
static atomic_int save_wanted;
static atomic_int holds;

static_assert(ATOMIC_INT_LOCK_FREE == 2, "atomics are safe in signal handlers");

void stint_stop(stint_status status)
{
    if (status == STINT_OK)
        atomic_store(&save_wanted, 1);
    else
        atomic_store(&stop_status, (int)status);
}

stint_status sti_stop_asked(void)
{
    return (stint_status)atomic_load(&stop_status);
}

bool sti_stop_take_save(void)
{
    return atomic_exchange(&save_wanted, 0) != 0;
}

void sti_stop_clear(void)
{
    if (atomic_load(&holds) > 0)
        return;
    atomic_store(&stop_status, 0);
    atomic_store(&save_wanted, 0);
}

void sti_stop_hold(void)
{
    atomic_fetch_add(&holds, 1);
}

void sti_stop_let_go(void)
{
    if (atomic_fetch_sub(&holds, 1) == 1)
        sti_stop_clear();
}
