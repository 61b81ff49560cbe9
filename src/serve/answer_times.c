#include "serve/answer_times.h"

#include "base/memory.h"

bool sti_answer_times_add(sti_answer_times *c, double due_s, double latency_s)
{
    if (c->count == c->room) {
        const int64_t room = c->room ? 2 * c->room : 4096;
        sti_answer_time *more =
            sti_realloc(c->query, (size_t)room * sizeof *more, "latencies");
        if (!more)
            return false;
        c->query = more;
        c->room = room;
    }
    c->query[c->count++] = (sti_answer_time){due_s, latency_s};
    return true;
}

void sti_answer_times_fini(sti_answer_times *times)
{
    sti_free(times->query);
    *times = (sti_answer_times){.count = 0};
}
