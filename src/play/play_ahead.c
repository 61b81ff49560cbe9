/* A thread that plays the next round while the caller makes an update. It lasts as long
 * as the training, and so do the workers of its loops. */
#include <pthread.h>
#include <stdio.h>

#include "base/fail.h"
#include "base/memory.h"
#include "play/play.h"

struct sti_ahead {
    sti_play *play;
    pthread_t thread;
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    bool begun, quit;
    stint_status status;
    char failure[1024];
};

/* With the mutex held; let go of while a round is played. */
static void play_round(sti_ahead *a)
{
    pthread_mutex_unlock(&a->mutex);
    const stint_status st = sti_play_round(a->play);
    pthread_mutex_lock(&a->mutex);
    a->status = st;
    if (st != STINT_OK)
        snprintf(a->failure, sizeof a->failure, "%s", stint_last_error());
    a->begun = false;
    pthread_cond_broadcast(&a->changed);
}

static void *work(void *arg)
{
    sti_ahead *a = arg;
    pthread_mutex_lock(&a->mutex);
    while (!a->quit) {
        if (a->begun)
            play_round(a);
        else
            pthread_cond_wait(&a->changed, &a->mutex);
    }
    pthread_mutex_unlock(&a->mutex);
    return NULL;
}

stint_status sti_ahead_create(sti_play *play, sti_ahead **ahead_out)
{
    sti_ahead *a = sti_alloc(sizeof *a, "play.ahead");
    if (!a)
        return STINT_E_MEMORY;
    a->play = play;
    pthread_mutex_init(&a->mutex, NULL);
    pthread_cond_init(&a->changed, NULL);
    if (pthread_create(&a->thread, NULL, work, a) != 0) {
        sti_free(a);
        return sti_fail(STINT_E_MEMORY,
                        "a thread to play on while updates are made cannot be had; set "
                        "agent.overlap = false");
    }
    *ahead_out = a;
    return STINT_OK;
}

void sti_ahead_destroy(sti_ahead *a)
{
    if (!a)
        return;
    pthread_mutex_lock(&a->mutex);
    a->quit = true;
    pthread_cond_broadcast(&a->changed);
    pthread_mutex_unlock(&a->mutex);
    pthread_join(a->thread, NULL);
    pthread_mutex_destroy(&a->mutex);
    pthread_cond_destroy(&a->changed);
    sti_free(a);
}

void sti_ahead_begin(sti_ahead *a)
{
    pthread_mutex_lock(&a->mutex);
    a->begun = true;
    pthread_cond_broadcast(&a->changed);
    pthread_mutex_unlock(&a->mutex);
}

stint_status sti_ahead_end(sti_ahead *a)
{
    pthread_mutex_lock(&a->mutex);
    while (a->begun)
        pthread_cond_wait(&a->changed, &a->mutex);
    const stint_status st = a->status;
    pthread_mutex_unlock(&a->mutex);
    return st == STINT_OK ? st : sti_fail(st, "%s", a->failure);
}
