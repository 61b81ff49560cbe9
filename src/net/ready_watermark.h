/* A vector that other threads still fill, from its end to its beginning, while an
 * exchange sends what is final already. A backward pass gives gradients in about that
 * order: the last layer's first, so that one mark, which only falls, says what is
 * ready. NULL in its place: all is there. */
#ifndef STI_NET_READY_WATERMARK_H
#define STI_NET_READY_WATERMARK_H

#include "net/comm.h"

typedef struct sti_ready_watermark {
    /* Values at this place and behind it are final. Falls to 0. Looks only; who makes
     * it fall calls sti_comm_wake afterwards. */
    int64_t (*final_from)(void *user);
    /* The exchange is about to use [from, end): the last thing to do to them. */
    void (*take)(void *user, int64_t from, int64_t end);
    void *user;
    int64_t taken; /* the exchange's: at first the length of the vector */
} sti_ready_watermark;

/* Is all from `at` on final? From -1: never. */
bool sti_ready_watermark_has(const sti_ready_watermark *watermark, int64_t at);
/* Takes all from `at` on, which is final. */
void sti_ready_watermark_take(sti_ready_watermark *watermark, int64_t at);
/* Waits for it, then takes it. A failure is the communicator's: who cannot go on calls
 * sti_comm_give_up. */
stint_status sti_ready_watermark_need(sti_ready_watermark *watermark, sti_comm *comm,
                                      int64_t at);
/* Until all from `at` on is final, or a request is done. */
stint_status sti_ready_watermark_wait(sti_ready_watermark *watermark, sti_comm *comm,
                                      int64_t at, const sti_comm_request *requests,
                                      int count);

#endif
