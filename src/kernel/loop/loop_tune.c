/* Ranking by the model, and timing. */
#include "kernel/loop/loop_tune.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/memory.h"
#include "base/rng.h"

typedef struct ranking {
    const sti_machine *machine;
    const sti_gemm_shape *shape;
    int threads;
    sti_loop_choice *choices;
    int count, room;
    sti_loop_trace trace;
    stint_status status;
} ranking;

static void count_text(void *user, const char *text)
{
    (void)text;
    ++*(int *)user;
}

static void rank_text(void *user, const char *text)
{
    ranking *r = user;
    sti_loop_gemm g;
    if (r->status != STINT_OK || r->count == r->room)
        return;
    sti_loop_choice *choice = &r->choices[r->count++];
    strcpy(choice->text, text);
    r->status = sti_loop_gemm_bind(text, r->shape, r->threads, &g);
    if (r->status == STINT_OK)
        r->status =
            sti_loop_gemm_predict(r->machine, &g, &r->trace, &choice->predicted_s);
}

static int by_seconds(double a, double b)
{
    return a < b ? -1 : a > b;
}

static int by_prediction(const void *a, const void *b)
{
    const sti_loop_choice *x = a, *y = b;
    const int order = by_seconds(x->predicted_s, y->predicted_s);
    return order ? order : strcmp(x->text, y->text);
}

static int by_measurement(const void *a, const void *b)
{
    const sti_loop_choice *x = a, *y = b;
    if ((x->measured_s > 0) != (y->measured_s > 0))
        return x->measured_s > 0 ? -1 : 1;
    const int order = by_seconds(x->measured_s, y->measured_s);
    return order ? order : by_prediction(a, b);
}

stint_status sti_loop_gemm_rank(const sti_machine *machine, const sti_gemm_shape *shape,
                                int threads, sti_loop_choice **choices_out,
                                int *count_out)
{
    ranking r = {.machine = machine, .shape = shape, .threads = threads};
    sti_loop_gemm_candidates(shape, threads, count_text, &r.room);
    r.choices = sti_alloc_array(r.room, sizeof *r.choices, "loop.choices");
    if (!r.choices)
        return STINT_E_MEMORY;
    sti_loop_gemm_candidates(shape, threads, rank_text, &r);
    sti_loop_trace_fini(&r.trace);
    if (r.status != STINT_OK) {
        sti_free(r.choices);
        return r.status;
    }
    qsort(r.choices, (size_t)r.count, sizeof *r.choices, by_prediction);
    *choices_out = r.choices;
    *count_out = r.count;
    return STINT_OK;
}

/* ---- timing ---- */

typedef struct timing {
    const sti_team *team;
    const sti_gemm_shape *shape;
    float *a, *b, *c;
    void *scratch;
} timing;

static float *some_floats(int64_t count)
{
    float *x = sti_alloc_array(count, sizeof *x, "loop.operand");
    uint32_t word[4];
    for (int64_t i = 0; x && i < count; i += 4) {
        sti_random4(1, STI_STREAM_TEST, 0, (uint64_t)i, word);
        for (int k = 0; k < 4 && i + k < count; k++)
            x[i + k] = sti_uniform(word[k]) - 0.5F;
    }
    return x;
}

static size_t most_scratch(const timing *t, const sti_loop_choice *choices, int count)
{
    size_t most = sti_gemm_scratch_bytes(t->shape, t->team->threads);
    for (int i = 0; i < count; i++) {
        sti_loop_gemm g;
        if (sti_loop_gemm_bind(choices[i].text, t->shape, t->team->threads, &g))
            continue;
        const size_t bytes = sti_loop_gemm_scratch_bytes(&g, t->team->threads);
        most = bytes > most ? bytes : most;
    }
    return most;
}

static stint_status timing_begin(timing *t, const sti_loop_choice *choices, int count)
{
    const sti_gemm_shape *s = t->shape;
    t->a = some_floats(s->trans_a ? s->k * s->lda : s->m * s->lda);
    t->b = some_floats(s->trans_b ? s->n * s->ldb : s->k * s->ldb);
    t->c = sti_alloc_array(s->m, (size_t)s->ldc * sizeof *t->c, "loop.operand");
    t->scratch = sti_alloc(most_scratch(t, choices, count), "loop.scratch");
    return t->a && t->b && t->c && t->scratch ? STINT_OK : STINT_E_MEMORY;
}

static void timing_end(timing *t)
{
    sti_free(t->a);
    sti_free(t->b);
    sti_free(t->c);
    sti_free(t->scratch);
}

/* One run; g NULL: the way without a string. */
static double time_once(const timing *t, const sti_loop_gemm *g)
{
    const int64_t start = sti_clock_ns();
    if (g)
        sti_loop_gemm_f32(t->team, g, t->a, t->b, NULL, t->c, t->scratch);
    else
        sti_gemm_f32(t->team, t->shape, t->a, t->b, NULL, t->c, t->scratch);
    const double seconds = sti_seconds_since(start);
    return seconds > 0 ? seconds : 1e-9;
}

/* Times of every round: the way without a string, then the choices. */
static stint_status time_round(const timing *t, const sti_loop_choice *choices,
                               int count, double *seconds)
{
    seconds[0] = time_once(t, NULL);
    for (int i = 0; i < count; i++) {
        sti_loop_gemm g;
        const stint_status status =
            sti_loop_gemm_bind(choices[i].text, t->shape, t->team->threads, &g);
        if (status != STINT_OK)
            return status;
        seconds[i + 1] = time_once(t, &g);
    }
    return STINT_OK;
}

static int by_value(const void *a, const void *b)
{
    return by_seconds(*(const double *)a, *(const double *)b);
}

/* The middle one of x, which is sorted. */
static double middle(double *x, int count)
{
    qsort(x, (size_t)count, sizeof *x, by_value);
    return x[count / 2];
}

enum { ROUNDS_MIN = 5, ROUNDS_MAX = 63 };

/* A machine's clock changes while it is measured, for all alike: each time is taken as
 * a share of its round's middle, and a choice's time is its middle share of the fastest
 * round. `spare` holds rounds + columns numbers. */
static void settle(const double *seconds, int rounds, int columns, double *spare,
                   double *out)
{
    double *of_round = spare, *x = spare + rounds, fastest = 0;
    for (int r = 0; r < rounds; r++) {
        memcpy(x, seconds + (size_t)r * (size_t)columns, (size_t)columns * sizeof *x);
        of_round[r] = middle(x, columns);
        fastest = r == 0 || of_round[r] < fastest ? of_round[r] : fastest;
    }
    for (int i = 0; i < columns; i++) {
        double share[ROUNDS_MAX];
        for (int r = 0; r < rounds; r++)
            share[r] = seconds[(size_t)r * (size_t)columns + (size_t)i] / of_round[r];
        out[i] = middle(share, rounds) * fastest;
    }
}

/* Rounds, of which the first tells how many there is time for. */
static stint_status time_rounds(const timing *t, const sti_loop_choice *choices,
                                int count, double seconds, double *times, int *rounds)
{
    const int columns = count + 1;
    stint_status status = time_round(t, choices, count, times); /* to touch it all */
    int64_t start = sti_clock_ns();
    *rounds = ROUNDS_MIN;
    for (int r = 0; r < *rounds && status == STINT_OK; r++) {
        status = time_round(t, choices, count, times + (size_t)r * (size_t)columns);
        if (r > 0)
            continue;
        const double wanted = seconds * columns / sti_seconds_since(start);
        if (wanted > ROUNDS_MIN)
            *rounds = wanted < ROUNDS_MAX ? (int)wanted : ROUNDS_MAX;
    }
    return status;
}

stint_status sti_loop_gemm_measure(const sti_team *team, const sti_gemm_shape *shape,
                                   sti_loop_choice *choices, int count, double seconds,
                                   double *default_s_out)
{
    timing t = {.team = team, .shape = shape};
    const int columns = count + 1;
    int rounds = 0;
    double *times = sti_alloc_array((int64_t)ROUNDS_MAX * columns + ROUNDS_MAX +
                                        2 * (int64_t)columns,
                                    sizeof *times, "loop.times");
    stint_status status = times ? timing_begin(&t, choices, count) : STINT_E_MEMORY;
    if (status == STINT_OK)
        status = time_rounds(&t, choices, count, seconds, times, &rounds);
    if (status == STINT_OK) {
        double *spare = times + (size_t)ROUNDS_MAX * (size_t)columns;
        double *out = spare + ROUNDS_MAX + columns;
        settle(times, rounds, columns, spare, out);
        *default_s_out = out[0];
        for (int i = 0; i < count; i++)
            choices[i].measured_s = out[i + 1];
        qsort(choices, (size_t)count, sizeof *choices, by_measurement);
    }
    timing_end(&t);
    sti_free(times);
    return status;
}
