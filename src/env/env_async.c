/* Environments stepped one by one by threads that last: send hands actions out, recv
 * takes the first that are ready. Which are first depends on time; what they bring does
 * not. */
#include <inttypes.h>
#include <pthread.h>
#include <string.h>

#include "base/fail.h"
#include "base/memory.h"
#include "base/team.h"
#include "env/env_kind.h"

typedef struct queue {
    int32_t *item; /* [envs], a ring: no environment is in it twice */
    int64_t first, count;
} queue;

struct sti_env_async {
    stint_env *env;
    pthread_mutex_t mutex;
    pthread_cond_t more, ready; /* work to do; work done */
    queue to_do, done;
    int64_t under_way; /* sent and not yet received */
    int32_t *action;   /* [envs] */
    sti_env_outcome *outcome;
    bool *busy;
    bool quit;
    int threads;
    pthread_t *thread;
};

typedef struct sti_env_async async;

/* ---- queues ---- */

static void put(const async *a, queue *q, int32_t item)
{
    q->item[(q->first + q->count++) % a->env->facts.envs] = item;
}

static int32_t take(const async *a, queue *q)
{
    const int32_t item = q->item[q->first];
    q->first = (q->first + 1) % a->env->facts.envs;
    q->count--;
    return item;
}

/* ---- workers ---- */

typedef struct start {
    async *a;
    int worker;
} start;

/* With the mutex held; let go of during the step. */
static void step_next(async *a, int worker)
{
    const int32_t i = take(a, &a->to_do);
    sti_env_outcome out = {0};
    pthread_mutex_unlock(&a->mutex);
    const unsigned saved = sti_float_mode_enter();
    sti_env_step_one(a->env, i, a->action[i], worker, &out);
    sti_float_mode_leave(saved);
    pthread_mutex_lock(&a->mutex);
    a->outcome[i] = out;
    put(a, &a->done, i);
    pthread_cond_signal(&a->ready);
}

static void *work(void *arg)
{
    const start s = *(const start *)arg;
    async *a = s.a;
    sti_free(arg);
    pthread_mutex_lock(&a->mutex);
    while (!a->quit) {
        if (a->to_do.count > 0)
            step_next(a, s.worker);
        else
            pthread_cond_wait(&a->more, &a->mutex);
    }
    pthread_mutex_unlock(&a->mutex);
    return NULL;
}

static stint_status start_worker(async *a)
{
    start *s = sti_alloc(sizeof *s, "env.worker");
    if (!s)
        return STINT_E_MEMORY;
    *s = (start){a, a->threads};
    if (pthread_create(&a->thread[a->threads], NULL, work, s) != 0) {
        sti_free(s);
        return sti_fail(STINT_E_MEMORY, "a thread for environments cannot be had; "
                                        "stint_env_step needs none");
    }
    a->threads++;
    return STINT_OK;
}

/* ---- life ---- */

void sti_env_async_destroy(async *a)
{
    if (!a)
        return;
    pthread_mutex_lock(&a->mutex);
    a->quit = true;
    pthread_cond_broadcast(&a->more);
    pthread_mutex_unlock(&a->mutex);
    for (int i = 0; i < a->threads; i++)
        pthread_join(a->thread[i], NULL);
    pthread_mutex_destroy(&a->mutex);
    pthread_cond_destroy(&a->more);
    pthread_cond_destroy(&a->ready);
    sti_free(a->to_do.item);
    sti_free(a->done.item);
    sti_free(a->action);
    sti_free(a->outcome);
    sti_free(a->busy);
    sti_free(a->thread);
    sti_free(a);
}

static stint_status create(stint_env *env, async **async_out)
{
    const int64_t envs = env->facts.envs;
    async *a = sti_alloc(sizeof *a, "env.async");
    stint_status st = a ? STINT_OK : STINT_E_MEMORY;
    if (!a)
        return st;
    a->env = env;
    pthread_mutex_init(&a->mutex, NULL);
    pthread_cond_init(&a->more, NULL);
    pthread_cond_init(&a->ready, NULL);
    a->to_do.item = sti_alloc_array(envs, sizeof(int32_t), "env.to_do");
    a->done.item = sti_alloc_array(envs, sizeof(int32_t), "env.done");
    a->action = sti_alloc_array(envs, sizeof *a->action, "env.actions");
    a->outcome = sti_alloc_array(envs, sizeof *a->outcome, "env.outcomes");
    a->busy = sti_alloc_array(envs, sizeof *a->busy, "env.busy");
    a->thread = sti_alloc_array(env->team.threads, sizeof *a->thread, "env.threads");
    if (!a->to_do.item || !a->done.item || !a->action || !a->outcome || !a->busy ||
        !a->thread)
        st = STINT_E_MEMORY;
    for (int i = 0; i < env->team.threads && st == STINT_OK; i++)
        st = start_worker(a);
    if (st != STINT_OK) {
        sti_env_async_destroy(a);
        return st;
    }
    *async_out = a;
    return STINT_OK;
}

stint_status sti_env_async_check(const stint_env *env)
{
    if (!env->async || env->async->under_way == 0)
        return STINT_OK;
    return sti_fail(STINT_E_USAGE,
                    "%" PRId64 " environments were sent actions and not received; "
                    "stint_env_recv them first",
                    env->async->under_way);
}

/* ---- the calls ---- */

static stint_status check_sent(const async *a, int64_t count, const int32_t *envs,
                               const int32_t *actions)
{
    const stint_env_facts *f = &a->env->facts;
    for (int64_t k = 0; k < count; k++) {
        if (envs[k] < 0 || envs[k] >= f->envs)
            return sti_fail(STINT_E_USAGE,
                            "environment %" PRId32 ": 0 to %" PRId64 " are there",
                            envs[k], f->envs - 1);
        if (a->busy[envs[k]])
            return sti_fail(STINT_E_USAGE,
                            "environment %" PRId32 " has an action already and was not "
                            "received since",
                            envs[k]);
        for (int64_t other = 0; other < k; other++)
            if (envs[other] == envs[k])
                return sti_fail(STINT_E_USAGE, "environment %" PRId32 " is named twice",
                                envs[k]);
        const stint_status st = sti_env_check_action(a->env, envs[k], actions[k]);
        if (st != STINT_OK)
            return st;
    }
    return STINT_OK;
}

stint_status stint_env_send(stint_env *env, int64_t count, const int32_t *envs,
                            const int32_t *actions)
{
    stint_status st = env->async ? STINT_OK : create(env, &env->async);
    async *a = env->async;
    if (st == STINT_OK)
        st = check_sent(a, count, envs, actions);
    if (st != STINT_OK)
        return st;
    pthread_mutex_lock(&a->mutex);
    for (int64_t k = 0; k < count; k++) {
        a->busy[envs[k]] = true;
        a->action[envs[k]] = actions[k];
        put(a, &a->to_do, envs[k]);
    }
    a->under_way += count;
    pthread_cond_broadcast(&a->more);
    pthread_mutex_unlock(&a->mutex);
    return STINT_OK;
}

/* Environment i, received as the k-th. */
static void hand_over(async *a, int32_t i, int64_t k, const stint_env_ready *ready)
{
    const stint_env_step_result *r = &ready->result;
    const sti_env_outcome *out = &a->outcome[i];
    if (ready->env)
        ready->env[k] = i;
    if (r->reward)
        r->reward[k] = out->reward;
    if (r->ended)
        r->ended[k] = out->ended;
    if (r->truncated)
        r->truncated[k] = out->truncated;
    if (r->lives)
        r->lives[k] = a->env->slot[i].lives;
    a->busy[i] = false;
    a->under_way--;
}

stint_status stint_env_recv(stint_env *env, int64_t least, int64_t most,
                            const stint_env_ready *ready, int64_t *count_out)
{
    async *a = env->async;
    const int64_t under_way = a ? a->under_way : 0;
    int64_t count = 0;
    if (least < 0 || least > most || least > under_way)
        return sti_fail(STINT_E_USAGE,
                        "%" PRId64 " to %" PRId64 " environments are to be received, "
                        "%" PRId64 " are under way",
                        least, most, under_way);
    if (!a) {
        *count_out = 0;
        return STINT_OK;
    }
    pthread_mutex_lock(&a->mutex);
    while (a->done.count < least)
        pthread_cond_wait(&a->ready, &a->mutex);
    while (count < most && a->done.count > 0)
        hand_over(a, take(a, &a->done), count++, ready);
    pthread_mutex_unlock(&a->mutex);
    *count_out = count;
    return STINT_OK;
}
