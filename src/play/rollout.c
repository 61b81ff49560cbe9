#include "play/rollout.h"

#include <math.h>
#include <string.h>

#include "base/clock.h"
#include "base/fail.h"
#include "base/memory.h"
#include "base/rng.h"
#include "kernel/maths/maths.h"

/* ---- life ---- */

int64_t sti_rollout_slots(int64_t horizon, int64_t round, int stack)
{
    return horizon + round + stack + 1;
}

enum { SLOT_FIELDS = 7 }; /* arrays of 4 bytes a slot and environment */

size_t sti_rollout_bytes(int64_t envs, int64_t slots, size_t frame_bytes)
{
    return (size_t)(envs * slots) * (frame_bytes + SLOT_FIELDS * sizeof(float)) +
           (size_t)envs * (sizeof(float) + 3 + sizeof(double)) +
           (size_t)slots * sizeof(int32_t);
}

static stint_status reserve(sti_rollout *r)
{
    const int64_t all = r->envs * r->slots;
    r->frames = sti_alloc_array(all, r->frame_bytes, "play.frames");
    r->age = sti_alloc_array(all, sizeof *r->age, "play.age");
    r->action = sti_alloc_array(all, sizeof *r->action, "play.action");
    r->mu = sti_alloc_array(all, sizeof *r->mu, "play.mu");
    r->value = sti_alloc_array(all, sizeof *r->value, "play.value");
    r->reward = sti_alloc_array(all, sizeof *r->reward, "play.reward");
    r->discount = sti_alloc_array(all, sizeof *r->discount, "play.discount");
    r->weight = sti_alloc_array(all, sizeof *r->weight, "play.weight");
    r->version = sti_alloc_array(r->slots, sizeof *r->version, "play.version");
    r->gain = sti_alloc_array(r->envs, sizeof *r->gain, "play.gain");
    r->ended = sti_alloc_array(r->envs, 1, "play.ended");
    r->cut = sti_alloc_array(r->envs, 1, "play.cut");
    r->begins = sti_alloc_array(r->envs, 1, "play.begins");
    r->sum = sti_alloc_array(r->envs, sizeof *r->sum, "play.sum");
    return r->frames && r->age && r->action && r->mu && r->value && r->reward &&
                   r->discount && r->weight && r->version && r->gain && r->ended &&
                   r->cut && r->begins && r->sum
               ? STINT_OK
               : STINT_E_MEMORY;
}

static int64_t at(const sti_rollout *r, int64_t time)
{
    return time % r->slots * r->envs;
}

static void take_frames(sti_rollout *r, int64_t time)
{
    uint8_t *to = r->frames + (size_t)at(r, time) * r->frame_bytes;
    for (int64_t i = 0; i < r->envs; i++)
        memcpy(to + (size_t)i * r->frame_bytes, stint_env_frame(r->desc.env, i, 0),
               r->frame_bytes);
}

stint_status sti_rollout_init(sti_rollout *r, const sti_rollout_desc *desc)
{
    const stint_env_facts *facts = stint_env_describe(desc->env);
    *r = (sti_rollout){.desc = *desc,
                       .envs = facts->envs,
                       .slots = desc->slots,
                       .stack = desc->stack,
                       .actions = facts->actions,
                       .frame_bytes = (size_t)(facts->height * facts->width)};
    const stint_status st = reserve(r);
    if (st == STINT_OK)
        take_frames(r, 0);
    return st;
}

void sti_rollout_fini(sti_rollout *r)
{
    sti_free(r->frames);
    sti_free(r->age);
    sti_free(r->action);
    sti_free(r->mu);
    sti_free(r->value);
    sti_free(r->reward);
    sti_free(r->discount);
    sti_free(r->weight);
    sti_free(r->version);
    sti_free(r->gain);
    sti_free(r->ended);
    sti_free(r->cut);
    sti_free(r->begins);
    sti_free(r->sum);
    *r = (sti_rollout){.envs = 0};
}

/* ---- acting ---- */

/* The stack of one environment: its frames, oldest first, and where they are. */
static void fill_acting(void *user, int64_t batch, void *const *input)
{
    const sti_rollout *r = user;
    const int64_t rows = r->desc.rows, time = r->counts.time;
    uint8_t *frames = input[0];
    int32_t *index = input[1];
    for (int64_t j = 0; j < rows; j++) {
        const int64_t i = batch * rows + j;
        const int32_t age = r->age[at(r, time) + i];
        for (int k = 0; k < r->stack; k++) {
            const int back = r->stack - 1 - k;
            const int64_t place = j * r->stack + k;
            index[place] = back <= age ? (int32_t)place : -1;
            if (back <= age)
                memcpy(frames + (size_t)place * r->frame_bytes,
                       r->frames + (size_t)(at(r, time - back) + i) * r->frame_bytes,
                       r->frame_bytes);
        }
    }
}

int32_t sti_rollout_draw(const float *logs, int actions, float chance)
{
    float sum = 0;
    for (int32_t k = 0; k < actions - 1; k++) {
        sum += sti_exp_f32(logs[k]);
        if (chance < sum)
            return k;
    }
    return actions - 1;
}

static void read_acting(void *user, int64_t batch, const void *const *output)
{
    sti_rollout *r = user;
    const float *logs = output[0], *value = output[1];
    for (int64_t j = 0; j < r->desc.rows; j++) {
        const int64_t i = batch * r->desc.rows + j, place = at(r, r->counts.time) + i;
        uint32_t chance[4];
        sti_random4(r->desc.seed, STI_STREAM_ACT, (uint64_t)i, (uint64_t)r->counts.time,
                    chance);
        const int32_t action =
            sti_rollout_draw(logs + j * r->actions, r->actions, sti_uniform(chance[0]));
        r->action[place] = action;
        r->mu[place] = logs[j * r->actions + action];
        r->value[place] = value[j];
    }
}

static float sign(float x)
{
    return x > 0 ? 1.0f : x < 0 ? -1.0f : 0.0f;
}

static void end_episode(sti_rollout *r, int64_t i)
{
    r->counts.recent[r->counts.episodes % STI_RETURNS_MOST] = r->sum[i];
    r->counts.episodes++;
    r->sum[i] = 0;
}

/* What step t of environment i brought, and what is known of t + 1 by it. A step that
 * begins an episode teaches nothing; one that was cut off counts what lies behind it.
 */
static void settle(sti_rollout *r, int64_t i)
{
    const int64_t now = at(r, r->counts.time) + i, next = at(r, r->counts.time + 1) + i;
    const bool begins = r->begins[i], over = r->ended[i] || r->cut[i];
    r->reward[now] = r->desc.clip_reward ? sign(r->gain[i]) : r->gain[i];
    r->weight[now] = begins ? 0.0f : 1.0f;
    r->discount[now] = begins || r->ended[i] ? 0.0f : (float)r->desc.gamma;
    r->age[next] = begins                       ? 0
                   : r->age[now] + 1 < r->stack ? r->age[now] + 1
                                                : r->stack - 1;
    r->sum[i] += (double)r->gain[i];
    if (over)
        end_episode(r, i);
    r->begins[i] = over;
}

static stint_status step(sti_rollout *r, int64_t version)
{
    const stint_env_step_result result = {
        .reward = r->gain, .ended = r->ended, .truncated = r->cut};
    const int64_t place = at(r, r->counts.time);
    int64_t frames, drawn;
    const int64_t start = sti_clock_ns();
    r->version[r->counts.time % r->slots] = (int32_t)version;
    stint_use_run(r->desc.use, r->envs / r->desc.rows, fill_acting, read_acting, r);
    const int64_t acted = sti_clock_ns();
    const stint_status st = stint_env_step(r->desc.env, r->action + place, &result);
    if (st != STINT_OK)
        return st;
    r->act_ns += acted - start;
    r->step_ns += sti_clock_ns() - acted;
    for (int64_t i = 0; i < r->envs; i++)
        settle(r, i);
    take_frames(r, r->counts.time + 1);
    r->counts.time++;
    stint_env_frames(r->desc.env, &frames, &drawn);
    r->counts.frames = r->frames_before + frames;
    return STINT_OK;
}

stint_status sti_rollout_run(sti_rollout *r, int64_t steps, int64_t version)
{
    stint_status st = STINT_OK;
    for (int64_t k = 0; k < steps && st == STINT_OK; k++)
        st = step(r, version);
    return st;
}

/* ---- learning ---- */

static void fill_frames(const sti_rollout *r, const sti_rollout_cut *cut, uint8_t *to)
{
    const size_t row = (size_t)cut->n * r->frame_bytes;
    const int64_t first = cut->end - cut->steps - (r->stack - 1);
    for (int64_t t = first; t <= cut->end; t++, to += row)
        if (t >= 0)
            memcpy(to, r->frames + (size_t)(at(r, t) + cut->first) * r->frame_bytes,
                   row);
}

static void fill_index(const sti_rollout *r, const sti_rollout_cut *cut, int32_t *index)
{
    for (int64_t t = 0; t <= cut->steps; t++)
        for (int64_t j = 0; j < cut->n; j++) {
            const int64_t time = cut->end - cut->steps + t;
            const int32_t age = r->age[at(r, time) + cut->first + j];
            for (int k = 0; k < r->stack; k++)
                *index++ =
                    r->stack - 1 - k <= age ? (int32_t)((t + k) * cut->n + j) : -1;
        }
}

static void fill_words(const sti_rollout *r, const sti_rollout_cut *cut,
                       const void *from, void *to)
{
    const size_t row = (size_t)cut->n * sizeof(float);
    for (int64_t t = 0; t < cut->steps; t++)
        memcpy((char *)to + (size_t)t * row,
               (const char *)from +
                   (size_t)(at(r, cut->end - cut->steps + t) + cut->first) *
                       sizeof(float),
               row);
}

void sti_rollout_fill(const sti_rollout *r, const sti_rollout_cut *cut,
                      void *const *input)
{
    const void *const words[STI_LEARN_INPUTS] = {[STI_LEARN_ACTION] = r->action,
                                                 [STI_LEARN_REWARD] = r->reward,
                                                 [STI_LEARN_DISCOUNT] = r->discount,
                                                 [STI_LEARN_WEIGHT] = r->weight,
                                                 [STI_LEARN_MU] = r->mu,
                                                 [STI_LEARN_VALUE] = r->value};
    fill_frames(r, cut, input[STI_LEARN_FRAMES]);
    fill_index(r, cut, input[STI_LEARN_INDEX]);
    for (int i = STI_LEARN_ACTION; i < cut->inputs; i++)
        fill_words(r, cut, words[i], input[i]);
}

/* ---- returns ---- */

sti_returns sti_returns_of(const double *returns, int64_t count)
{
    sti_returns r = {
        .mean = (double)NAN, .low = (double)NAN, .high = (double)NAN, .count = count};
    double sum = 0, squares = 0;
    if (count == 0)
        return r;
    for (int64_t i = 0; i < count; i++)
        sum += returns[i];
    r.mean = sum / (double)count;
    for (int64_t i = 0; i < count; i++)
        squares += (returns[i] - r.mean) * (returns[i] - r.mean);
    if (count > 1) {
        const double half = 1.96 * sqrt(squares / (double)(count - 1) / (double)count);
        r.low = r.mean - half;
        r.high = r.mean + half;
    }
    return r;
}

sti_returns sti_rollout_returns(const sti_rollout *r)
{
    const int64_t n = r->counts.episodes;
    return sti_returns_of(r->counts.recent,
                          n < STI_RETURNS_MOST ? n : STI_RETURNS_MOST);
}
