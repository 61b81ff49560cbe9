/* One row by the method of its plan. */
#include "kernel/topk/topk_priv.h"

static void by_pack(const sti_topk_job *job)
{
    sti_topk_scratch *scratch = job->scratch;
    int64_t none = 0;
    const int64_t n = job->view->n;
    sti_topk_run all = {.at = scratch->pool};
    all.count = job->ops->collect(job->view, 0, n, 0, UINT32_MAX, scratch->pool, &none);
    const uint64_t cut = sti_topk_cut(&scratch->cutter, &all, 1, job->plan->k);
    sti_topk_emit_runs(job, &all, 1, cut);
}

void sti_topk_row(const sti_topk_job *job)
{
    switch (job->plan->method) {
    case STINT_TOPK_PACK:
        by_pack(job);
        return;
    case STINT_TOPK_DELEGATE:
    case STINT_TOPK_DELEGATE2:
        sti_topk_by_delegates(job);
        return;
    case STINT_TOPK_NARROW:
        sti_topk_by_narrowing(job);
        return;
    case STINT_TOPK_THRESHOLD:
        sti_topk_by_threshold(job);
        return;
    case STINT_TOPK_AUTO:
    case STINT_TOPK_RADIX:
    case STINT_TOPK_METHODS:
        sti_topk_by_radix(job);
        return;
    }
}
