/* The latency of a compressed model, in turns with the model that it came of. */
#include <math.h>
#include <string.h>

#include "base/fail.h"
#include "infer/latency.h"
#include "infer/model_use.h"
#include "shrink/shrinker.h"

enum { ROUNDS = 25, BASE = 0, CHANGED = 1 };

typedef struct timed {
    sti_network network[2];
    sti_infer *infer[2];
    sti_latency latency[2];
} timed;

static stint_status use(timed *t, int i, const sti_shrinker *s,
                        const stint_model_file *model)
{
    const int64_t batch = s->desc->batch > 0 ? s->desc->batch : 1;
    return sti_model_use(model, batch, s->judge.threads, 1, &t->network[i],
                         &t->infer[i]);
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

stint_status sti_shrink_measure(const sti_shrinker *s, stint_model_file *changed,
                                double *ms, double *base_ms, stint_shrink_layer *layers,
                                int layer_count)
{
    timed t = {.infer = {NULL, NULL}};
    double ratio;
    stint_status st;
    STI_TRY(use(&t, BASE, s, s->model));
    STI_TRY(use(&t, CHANGED, s, changed));
    STI_TRY(sti_latency_measure(t.infer, 2, ROUNDS, t.latency, &ratio));
    *base_ms = t.latency[BASE].ms;
    *ms = t.latency[CHANGED].ms;
    for (int i = 0; i < layer_count; i++) {
        layers[i].ms = sum_of_layer(&t.latency[CHANGED], layers[i].name);
        layers[i].base_ms = sum_of_layer(&t.latency[BASE], layers[i].name);
    }
out:
    for (int i = 0; i < 2; i++) {
        sti_latency_fini(&t.latency[i]);
        sti_infer_destroy(t.infer[i]);
        sti_network_fini(&t.network[i]);
    }
    return st;
}
