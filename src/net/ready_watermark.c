#include "net/ready_watermark.h"

bool sti_ready_watermark_has(const sti_ready_watermark *watermark, int64_t at)
{
    return watermark ? watermark->final_from(watermark->user) <= at : at >= 0;
}

void sti_ready_watermark_take(sti_ready_watermark *watermark, int64_t at)
{
    if (!watermark || at >= watermark->taken)
        return;
    watermark->take(watermark->user, at, watermark->taken);
    watermark->taken = at;
}

typedef struct wanted {
    const sti_ready_watermark *watermark;
    int64_t at;
} wanted;

static bool has_wanted(void *user)
{
    const wanted *w = user;
    return sti_ready_watermark_has(w->watermark, w->at);
}

stint_status sti_ready_watermark_wait(sti_ready_watermark *watermark, sti_comm *comm,
                                      int64_t at, const sti_comm_request *requests,
                                      int count)
{
    wanted w = {.watermark = watermark, .at = at};
    return sti_comm_wait_news(comm, requests, count, has_wanted, &w);
}

stint_status sti_ready_watermark_need(sti_ready_watermark *watermark, sti_comm *comm,
                                      int64_t at)
{
    const stint_status st =
        watermark ? sti_ready_watermark_wait(watermark, comm, at, NULL, 0) : STINT_OK;
    if (st == STINT_OK)
        sti_ready_watermark_take(watermark, at);
    return st;
}
