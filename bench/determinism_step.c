/* Compiled twice: as it is in determinism_bench, and with FREE_ORDER, against kernels
 * whose order of sums is free, in the module that determinism_bench loads. */
#include "determinism_step.h"

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#include "base/clock.h"
#include "base/memory.h"
#include "base/rng.h"
#include "kernel/elementwise/elementwise.h"
#include "train/optimizer_section.h"
#include "train/step_engine.h"

typedef struct bench {
    sti_network network;
    sti_step_engine *engine;
    stint_recipe *recipe;
    int64_t shards, images, step;
    float *pixels; /* of one shard */
    double squares;
    /* FREE_ORDER */
    atomic_int next;
    pthread_mutex_t join;
    float *sum; /* slot of the lane that was done first */
} bench;

static int64_t pixel_count(const bench *b)
{
    stint_shape shape = stint_value_shape(b->network.graph, b->network.input);
    return stint_shape_count(&shape);
}

static void fill_shard(void *user, int64_t shard, float *images, int32_t *labels)
{
    const bench *b = user;
    memcpy(images, b->pixels, (size_t)pixel_count(b) * sizeof *images);
    for (int64_t i = 0; i < b->images; i++)
        labels[i] = (int32_t)((shard + i) % 10);
}

static stint_status make(bench *b, int threads, int64_t batch)
{
    const sti_network_desc net = {.name = "resnet20",
                                  .model = {.classes = 10, .dropout = -1},
                                  .height = 32,
                                  .width = 32,
                                  .channels = 3};
    const int lanes = threads < b->shards ? threads : (int)b->shards;
    uint32_t word[4];
    b->images = batch / b->shards;
    stint_status st = stint_recipe_create(&b->recipe);
    if (st == STINT_OK)
        st = sti_network_build(&net, STINT_TRAIN, b->images, &b->network);
    if (st == STINT_OK)
        st = sti_network_plan(&b->network, sti_lane_threads(threads, lanes));
    if (st != STINT_OK)
        return st;
    b->pixels = sti_alloc_array(pixel_count(b), sizeof *b->pixels, "images");
    for (int64_t i = 0; b->pixels && i < pixel_count(b); i++) {
        sti_random4(1, STI_STREAM_TEST, 1, (uint64_t)i, word);
        b->pixels[i] = 4 * sti_uniform(word[0]) - 2;
    }
    const sti_step_engine_desc desc = {.train = &b->network,
                                       .threads = threads,
                                       .lanes = lanes,
                                       .shards = b->shards,
                                       .moments = 1,
                                       .fill = fill_shard,
                                       .fill_user = b};
    st = b->pixels ? sti_step_engine_create(&desc, &b->engine) : STINT_E_MEMORY;
    return st == STINT_OK
               ? sti_network_init_weights(&b->network, &b->engine->team, 1,
                                          b->engine->params, b->engine->states)
               : st;
}

static void destroy(void *user)
{
    bench *b = user;
    sti_step_engine_destroy(b->engine);
    sti_free(b->pixels);
    sti_network_fini(&b->network);
    stint_recipe_destroy(b->recipe);
    pthread_mutex_destroy(&b->join);
    sti_free(b);
}

static void *create(int threads, int64_t batch, int64_t shards, const char **why)
{
    bench *b = sti_alloc(sizeof *b, "bench");
    if (!b)
        return NULL;
    pthread_mutex_init(&b->join, NULL);
    b->shards = shards;
    if (make(b, threads, batch) == STINT_OK)
        return b;
    *why = stint_last_error();
    destroy(b);
    return NULL;
}

#ifdef FREE_ORDER

static float *slot_of(const bench *b, const sti_lane *lane, int i)
{
    return (float *)(void *)(b->engine->results +
                             (size_t)(lane->first_slot + i) * b->engine->sizes.results);
}

static void add(const bench *b, float *into, const float *from)
{
    sti_add_f32(&b->engine->lane_team,
                (int64_t)(b->engine->sizes.results / sizeof(float)), from, into);
}

/* Whoever is free takes the next shard; the sum is in the order of being done. */
static void run_lane(void *user, int64_t piece, int worker)
{
    bench *b = user;
    sti_lane *lane = &b->engine->lanes[piece];
    float *own = NULL;
    int s;
    (void)worker;
    while ((s = atomic_fetch_add(&b->next, 1)) < b->shards) {
        float *slot = slot_of(b, lane, own ? 1 : 0);
        fill_shard(b, s, sti_exec_address(lane->train, b->network.input),
                   sti_exec_address(lane->train, b->network.labels));
        sti_exec_set_region(lane->train, STI_REGION_RESULT, slot);
        sti_exec_run(lane->train, &b->engine->lane_team, &(sti_step){.seed = 1, .step = b->step, .shard = s});
        if (own)
            add(b, own, slot);
        else
            own = slot;
    }
    pthread_mutex_lock(&b->join);
    if (own && b->sum)
        add(b, b->sum, own);
    else if (own)
        b->sum = own;
    pthread_mutex_unlock(&b->join);
}

static stint_status run_shards(bench *b, sti_step_result *result)
{
    atomic_store(&b->next, 0);
    b->sum = NULL;
    sti_team_run(&b->engine->team, b->engine->desc.lanes, run_lane, b);
    result->block = (char *)b->sum;
    return STINT_OK;
}

#else

static stint_status run_shards(bench *b, sti_step_result *result)
{
    return sti_step_engine_run(b->engine, &(sti_step_batch){.seed = 1, .step = b->step},
                               result);
}

#endif

/* With a learning rate of 0: the weights stay, so that both do the same work. */
static double step(void *user)
{
    bench *b = user;
    sti_step_result result;
    const int64_t start = sti_clock_ns();
    if (run_shards(b, &result) != STINT_OK)
        return -1;
    b->squares = sti_step_engine_gradient_squares(b->engine, result.block);
    sti_step_engine_update(b->engine, sti_optimizer_section_of(b->recipe), 0, 1,
                           b->step++, result.block);
    return sti_seconds_since(start);
}

static double squares(void *user)
{
    const bench *b = user;
    return b->squares;
}

const determinism_api *determinism_api_get(void);

__attribute__((visibility("default"))) const determinism_api *determinism_api_get(void)
{
    static const determinism_api api = {create, step, squares, destroy};
    return &api;
}
