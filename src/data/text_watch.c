/* Memory, progress and a wish to stop, looked at between the steps of long work. */
#include "data/text_watch.h"

#include "base/clock.h"
#include "base/fail.h"
#include "base/memory.h"
#include "base/stop.h"
#include "base/units.h"

#define TELL_EVERY_NS INT64_C(5000000000)

void sti_text_watch_begin(sti_text_watch *watch, const char *title, size_t budget_bytes)
{
    *watch = (sti_text_watch){.title = title,
                              .budget_bytes = budget_bytes,
                              .before_bytes = sti_process_now_bytes(),
                              .last_ns = sti_clock_ns()};
}

stint_status sti_text_watch_look(sti_text_watch *watch, size_t bytes, const char *unit,
                                 int64_t done, int64_t total)
{
    const stint_status stop = sti_stop_asked();
    if (stop != STINT_OK)
        return sti_fail(stop, "stopped while %s", watch->title);
    /* With a share for pages that are begun and for what the allocator keeps. */
    const size_t need = watch->before_bytes + bytes + bytes / 32;
    if (watch->budget_bytes > 0 && need > watch->budget_bytes)
        return sti_fail(STINT_E_BUDGET,
                        "memory: %s needs more than %s, budget %s; do it once with "
                        "`stint plan` and no --memory: the tokens are kept",
                        watch->title, sti_bytes_text(need),
                        sti_bytes_text(watch->budget_bytes));
    const int64_t now = sti_clock_ns();
    if (now - watch->last_ns >= TELL_EVERY_NS) {
        watch->last_ns = now;
        sti_log(STINT_LOG_INFO, "%s: %s of %s %s", watch->title, sti_count_text(done),
                sti_count_text(total), unit);
    }
    return STINT_OK;
}
