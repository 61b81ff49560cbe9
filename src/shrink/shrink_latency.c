/* The latency of a compressed model, in turns with the model that it came of. */
#include <math.h>
#include <string.h>
#include <unistd.h>

#include "base/fail.h"
#include "base/file.h"
#include "infer/latency.h"
#include "infer/model_use.h"
#include "shrink/shrinker.h"

enum { BASE = 0, CHANGED = 1 };

typedef struct timed {
    sti_network network[2];
    sti_infer *infer[2];
    sti_latency latency[2];
} timed;

static stint_status use(timed *t, int i, const sti_shrinker *s,
                        const stint_model_file *model)
{
    const int64_t batch = s->desc->batch > 0 ? s->desc->batch : 1;
    return sti_model_use(model, batch, s->threads, 1, &t->network[i], &t->infer[i]);
}

/* Time of the operators whose scope is the layer's: "conv1" of "conv1.weight". */
static double sum_of_layer(const sti_latency *l, const char *weight)
{
    const char *dot = strrchr(weight, '.');
    const size_t length = dot ? (size_t)(dot - weight) : strlen(weight);
    double sum = 0;
    for (int i = 0; i < l->layer_count; i++)
        if (strncmp(l->layers[i].name, weight, length) == 0 &&
            l->layers[i].name[length] == '\0')
            sum += l->layers[i].ms;
    return sum;
}

static void free_timed(timed *t)
{
    for (int i = 0; i < 2; i++) {
        sti_latency_fini(&t->latency[i]);
        sti_infer_destroy(t->infer[i]);
        sti_network_fini(&t->network[i]);
    }
}

/* As many rounds as take half a second: what else a machine does comes in bursts of a
 * tenth of one, and the median then leaves them out. */
static stint_status measure(timed *t, double *ratio)
{
    enum { FIRST = 5, LEAST = 25, MOST = 2000 };
    const double wanted_ms = 500;
    stint_status st = sti_latency_measure(t->infer, 2, FIRST, t->latency, ratio);
    const double rounds =
        st == STINT_OK ? wanted_ms / (t->latency[BASE].ms + t->latency[CHANGED].ms) : 0;
    for (int i = 0; i < 2; i++)
        sti_latency_fini(&t->latency[i]);
    return st == STINT_OK ? sti_latency_measure(t->infer, 2,
                                                rounds < LEAST  ? LEAST
                                                : rounds > MOST ? MOST
                                                                : (int)rounds,
                                                t->latency, ratio)
                          : st;
}

stint_status sti_shrink_measure(const sti_shrinker *s, stint_model_file *changed,
                                double *ms, double *base_ms, stint_shrink_layer *layers,
                                int layer_count)
{
    timed t = {.infer = {NULL, NULL}};
    double ratio;
    stint_status st;
    STI_TRY(use(&t, BASE, s, s->model));
    STI_TRY(use(&t, CHANGED, s, changed));
    STI_TRY(measure(&t, &ratio));
    *ms = t.latency[CHANGED].ms;
    /* Both of a round are slow together, so the ratio of a round is what is sure. */
    *base_ms = *ms / ratio;
    for (int i = 0; i < layer_count; i++) {
        layers[i].ms = sum_of_layer(&t.latency[CHANGED], layers[i].name);
        layers[i].base_ms = sum_of_layer(&t.latency[BASE], layers[i].name);
    }
out:
    free_timed(&t);
    return st;
}

/* ---- measured once ---- */

stint_status sti_shrink_time_sample(sti_shrinker *s, stint_model_file *model,
                                    sti_sample *sample)
{
    const sti_shrink_time *known =
        sti_shrink_find_time(s, false, sample->share, sample->facts.seed);
    sti_shrink_time time = {.share = sample->share, .seed = sample->facts.seed};
    stint_status st = STINT_OK;
    if (!known) {
        st = sti_shrink_measure(s, model, &time.ms, &time.base_ms, NULL, 0);
        if (st == STINT_OK)
            sti_shrink_keep_time(s, &time);
    }
    sample->facts.latency_ms = known ? known->ms : time.ms;
    sample->ms = known ? known->base_ms : time.base_ms;
    return st;
}

static stint_status measure_guess(sti_shrinker *s, sti_shrink_time *time)
{
    char path[1024];
    stint_model_file *model = NULL;
    int64_t bytes;
    stint_status st = sti_file_temporary("guess", path, sizeof path);
    if (st != STINT_OK)
        return st;
    st = sti_guess_bytes(&s->guess, time->share, path, &bytes, NULL);
    if (st == STINT_OK)
        st = stint_model_open(path, &model);
    if (st == STINT_OK)
        st = sti_shrink_measure(s, model, &time->ms, &time->base_ms, NULL, 0);
    stint_model_close(model);
    unlink(path);
    return st;
}

stint_status sti_shrink_time_guess(sti_shrinker *s, double share, double *ms,
                                   double *base_ms)
{
    const sti_shrink_time *known = sti_shrink_find_time(s, true, share, 0);
    sti_shrink_time time = {.guessed = true, .share = share};
    stint_status st = STINT_OK;
    if (!known) {
        st = measure_guess(s, &time);
        if (st == STINT_OK)
            sti_shrink_keep_time(s, &time);
    }
    *ms = known ? known->ms : time.ms;
    *base_ms = known ? known->base_ms : time.base_ms;
    return st;
}
