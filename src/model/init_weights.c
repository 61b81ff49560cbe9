/* Initial weights. Four numbers a Philox block, so any thread may make any part. */
#include <math.h>
#include <string.h>

#include "base/rng.h"
#include "kernel/maths/smooth.h"
#include "model/network.h"

#define BLOCK 4096 /* elements a piece */

typedef struct filler {
    float *out;
    int64_t count;
    uint64_t seed, index; /* of the parameter */
    bool normal;
    double scale; /* deviation, or bound of the uniform */
} filler;

/* Box and Muller's pair from two words. */
static void normal_pair(uint32_t a, uint32_t b, double *out)
{
    double radius = sqrt(-2 * sti_smooth_log(((double)a + 1) * 0x1p-32));
    double turn = (double)b * 0x1p-32;
    out[0] = radius * sti_smooth_cos_turn(turn);
    out[1] = radius * sti_smooth_sin_turn(turn);
}

static void fill_four(const filler *f, int64_t first)
{
    uint32_t word[4];
    double value[4];
    sti_random4(f->seed, STI_STREAM_INIT, f->index, (uint64_t)first / 4, word);
    if (f->normal) {
        normal_pair(word[0], word[1], value);
        normal_pair(word[2], word[3], value + 2);
    } else {
        for (int i = 0; i < 4; i++)
            value[i] = ((double)word[i] + 0.5) * 0x1p-31 - 1;
    }
    for (int i = 0; i < 4 && first + i < f->count; i++)
        f->out[first + i] = (float)(f->scale * value[i]);
}

static void fill_piece(void *arg, int64_t piece, int worker)
{
    const filler *f = arg;
    (void)worker;
    int64_t end = (piece + 1) * BLOCK < f->count ? (piece + 1) * BLOCK : f->count;
    for (int64_t i = piece * BLOCK; i < end; i += 4)
        fill_four(f, i);
}

/* Fans of a weight [..., in, out] unless its builder says otherwise. */
static void fans_of(const sti_value_row *row, double *in, double *out)
{
    const stint_shape *shape = &row->shape;
    int64_t last = shape->rank ? shape->dim[shape->rank - 1] : 1;
    int64_t rest = last ? stint_shape_count(shape) / last : 1;
    *in = (double)(row->param.fan_in ? row->param.fan_in : rest);
    *out = (double)(row->param.fan_out ? row->param.fan_out : last);
}

/* False: a constant, left in scale. */
static bool choose_scale(const sti_value_row *row, filler *f)
{
    double in, out;
    fans_of(row, &in, &out);
    f->normal =
        row->param.init == STINT_INIT_HE_NORMAL || row->param.init == STINT_INIT_NORMAL;
    switch (row->param.init) {
    case STINT_INIT_HE_NORMAL:
        f->scale = sqrt(2 / in);
        return true;
    case STINT_INIT_HE_UNIFORM:
        f->scale = sqrt(6 / in);
        return true;
    case STINT_INIT_GLOROT_UNIFORM:
        f->scale = sqrt(6 / (in + out));
        return true;
    case STINT_INIT_FAN_IN_UNIFORM:
        f->scale = 1 / sqrt(in);
        return true;
    case STINT_INIT_NORMAL:
    case STINT_INIT_UNIFORM:
        f->scale = (double)row->param.scale;
        return true;
    case STINT_INIT_CONSTANT:
        f->scale = (double)row->param.scale;
        return false;
    case STINT_INIT_ONE:
        f->scale = 1;
        return false;
    case STINT_INIT_ZERO:
    default:
        f->scale = 0;
        return false;
    }
}

typedef struct flip_job {
    char *params;
    int64_t at, count; /* element to flip; drawn elements so far */
} flip_job;

static stint_status flip_param(void *user, const sti_value_row *row,
                               const sti_allocation *allocation)
{
    flip_job *job = user;
    filler f;
    const bool drawn = !row->in_bytes && choose_scale(row, &f);
    int64_t count = drawn ? stint_shape_count(&row->shape) : 0;
    if (job->params && job->at >= job->count && job->at < job->count + count)
        job->params[allocation->offset +
                    (size_t)(job->at - job->count) * sizeof(float)] ^=
            1; /* little-endian, as the model files */
    job->count += count;
    return STINT_OK;
}

stint_status sti_network_flip_ulp(const sti_network *network, uint64_t seed,
                                  void *params)
{
    flip_job job = {.params = NULL};
    uint32_t word[4];
    stint_status st = sti_network_each(network, STI_ROLE_PARAM, flip_param, &job);
    if (st != STINT_OK || job.count == 0)
        return st;
    sti_random4(seed, STI_STREAM_NOISE, 0, 1, word);
    job = (flip_job){
        .params = params,
        .at = (int64_t)((((uint64_t)word[0] << 32) | word[1]) % (uint64_t)job.count)};
    return sti_network_each(network, STI_ROLE_PARAM, flip_param, &job);
}

typedef struct init_job {
    const sti_team *team;
    char *block;
    uint64_t seed, index;
} init_job;

static void fill_constant(float *out, int64_t count, float value)
{
    for (int64_t i = 0; i < count; i++)
        out[i] = value;
}

static stint_status init_param(void *user, const sti_value_row *row,
                               const sti_allocation *allocation)
{
    init_job *job = user;
    filler f = {.out = (float *)(void *)(job->block + allocation->offset),
                .count = stint_shape_count(&row->shape),
                .seed = job->seed,
                .index = job->index++};
    if (row->in_bytes) /* comes from a model */
        return STINT_OK;
    if (choose_scale(row, &f))
        sti_team_run(job->team, (f.count + BLOCK - 1) / BLOCK, fill_piece, &f);
    else
        fill_constant(f.out, f.count, (float)f.scale);
    return STINT_OK;
}

static stint_status init_state(void *user, const sti_value_row *row,
                               const sti_allocation *allocation)
{
    init_job *job = user;
    fill_constant((float *)(void *)(job->block + allocation->offset),
                  stint_shape_count(&row->shape), row->initial);
    return STINT_OK;
}

stint_status sti_network_init_weights(const sti_network *network, const sti_team *team,
                                      uint64_t seed, void *params, void *states)
{
    init_job job = {.team = team, .block = params, .seed = seed};
    stint_status st = sti_network_each(network, STI_ROLE_PARAM, init_param, &job);
    job.block = states;
    return st != STINT_OK ? st
                          : sti_network_each(network, STI_ROLE_STATE, init_state, &job);
}
