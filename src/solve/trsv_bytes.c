/* Bytes of plans, before and after they are made. */
#include "solve/trsv_priv.h"

static size_t entries_bytes(const sti_trsv_desc *d)
{
    return (size_t)d->a->start[d->a->rows] * (sizeof(int32_t) + sti_trsv_real_bytes(d));
}

size_t sti_trsv_least_bytes(const sti_trsv_desc *d)
{
    const size_t n = (size_t)d->a->rows, real = sti_trsv_real_bytes(d);
    const size_t single = d->single ? ((size_t)d->a->start[n] + n) * real : 0;
    const size_t pack = d->columns > 1 ? n * (size_t)sti_trsv_block(d) * real : 0;
    return sizeof(sti_trsv) + n * sizeof(int32_t) + single + pack;
}

/* Transposed copy, copy in order, orders and steps, and what finds them. */
size_t sti_trsv_most_bytes(const sti_trsv_desc *d)
{
    const size_t n = (size_t)d->a->rows, real = sti_trsv_real_bytes(d);
    const size_t own = n * real * (size_t)(d->columns > 1 ? sti_trsv_block(d) : 1);
    const size_t turned = d->transpose ? (n + 2) * 8 + (size_t)d->a->start[n] * 12 : 0;
    return sti_trsv_least_bytes(d) + turned + entries_bytes(d) + own +
           n * (2 * 4 + 4 + real) + n * 64;
}

size_t sti_trsv_plan_bytes(const sti_trsv *plan)
{
    const size_t n = (size_t)plan->natural.n, real = sti_trsv_real_bytes(&plan->d);
    size_t bytes = sti_trsv_least_bytes(&plan->d);
    if (plan->turned.start)
        bytes += (n + 2) * 8 + (size_t)plan->turned.start[n] * 12;
    if (plan->steps)
        bytes += (size_t)plan->start[n] * (4 + real) + n * (8 + real) +
                 (size_t)plan->step_room * sizeof *plan->steps +
                 (size_t)plan->wait_room * sizeof *plan->waits +
                 (size_t)plan->order.tasks * (sizeof *plan->progress + 8);
    if (plan->panels)
        bytes += (size_t)plan->panel_values * real + n * real +
                 (size_t)plan->panel_count * sizeof *plan->panels +
                 (size_t)plan->panel_row_count * 4;
    if (plan->own)
        bytes +=
            n * real * (size_t)(plan->d.columns > 1 ? sti_trsv_block(&plan->d) : 1);
    return bytes;
}
