#include "kernel/attention/rotary.h"

#include <math.h>
#include <string.h>

#include "kernel/elementwise/elementwise.h"
#include "kernel/maths/smooth.h"

#define TWO_PI 0x1.921fb54442d18p+2

enum { PIECE_ROWS = 16 };

typedef struct rotary_job {
    const sti_rotary *args;
    const float *x, *cosine, *sine;
    float *y;
} rotary_job;

/* base^(-2 i / size) from log2, split in a whole power of two and a series for the
 * rest: |z| <= 0.35, so the first term left out is below 1e-16. */
static double frequency(double base, int64_t i, int64_t size)
{
    const double ln2 = 0x1.62e42fefa39efp-1;
    const double exponent = -2.0 * (double)i / (double)size * sti_smooth_log(base);
    const int64_t whole = (int64_t)(exponent / ln2 - 0.5);
    const double z = exponent - (double)whole * ln2;
    double sum = 1.0, power = 1.0;
    for (int k = 14; k >= 1; k--)
        sum = 1.0 + sum * z / k;
    for (int64_t k = whole; k < 0; k++)
        power *= 0.5;
    return sum * power;
}

/* The i at which a wave turns `turns` times within the positions of training. */
static double turning_index(const sti_rotary *a, double turns)
{
    return (double)a->size *
           sti_smooth_log((double)a->stretch.original / (turns * TWO_PI)) /
           (2 * sti_smooth_log(a->base));
}

/* 0: the wave stays as it is, 1: it is stretched by the factor. */
static double stretched_share(const sti_rotary *a, int64_t i, double f)
{
    const sti_rotary_stretch *s = &a->stretch;
    if (s->kind == STI_ROTARY_LINEAR)
        return 1;
    double share;
    if (s->kind == STI_ROTARY_LLAMA3) {
        const double waves = (double)s->original * f / TWO_PI;
        share = ((double)s->high - waves) / ((double)s->high - (double)s->low);
    } else {
        double begin = floor(turning_index(a, (double)s->high));
        double end = ceil(turning_index(a, (double)s->low));
        begin = begin > 0 ? begin : 0;
        end = end < (double)(a->size - 1) ? end : (double)(a->size - 1);
        share = ((double)i - begin) / (end > begin ? end - begin : 0.001);
    }
    return share < 0 ? 0 : share > 1 ? 1 : share;
}

static double angle_of(const sti_rotary *a, int64_t i)
{
    const double f = frequency(a->base, i, a->size);
    if (a->stretch.kind == STI_ROTARY_PLAIN)
        return f;
    const double share = stretched_share(a, i, f);
    return f * (1 - share) + f / (double)a->stretch.factor * share;
}

static void find_angles(const sti_team *team, const sti_rotary *a, float *cosine,
                        float *sine)
{
    const int64_t half = a->size / 2, count = a->length * half;
    for (int64_t i = 0; i < half; i++) {
        const double f = angle_of(a, i);
        for (int64_t t = 0; t < a->length; t++) {
            const double angle = (double)(a->position + t) * f;
            const double turns = (double)(int64_t)(angle / TWO_PI + 0.5);
            sine[t * half + i] = (float)(angle - turns * TWO_PI);
        }
    }
    sti_unary_f32(team, STI_UNARY_COS, count, 0.0f, sine, cosine);
    sti_unary_f32(team, STI_UNARY_SIN, count, 0.0f, sine, sine);
    const float gain = a->stretch.attention;
    for (int64_t i = 0; a->stretch.kind == STI_ROTARY_YARN && i < count; i++) {
        cosine[i] *= gain;
        sine[i] *= gain;
    }
}

static void rotate(const float *x, const float *cosine, const float *sine, float sign,
                   int64_t half, float *y)
{
    for (int64_t i = 0; i < half; i++) {
        const float a = x[i], b = x[i + half], s = sign * sine[i];
        y[i] = a * cosine[i] - b * s;
        y[i + half] = b * cosine[i] + a * s;
    }
}

static void rotary_piece(void *arg, int64_t piece, int worker)
{
    const rotary_job *job = arg;
    const sti_rotary *a = job->args;
    const int64_t half = a->size / 2, turned = a->heads * a->size;
    (void)worker;
    for (int64_t r = piece * PIECE_ROWS;
         r < a->batch * a->length && r < (piece + 1) * PIECE_ROWS; r++) {
        const int64_t t = r % a->length;
        const float *x = job->x + r * a->width;
        float *y = job->y + r * a->width;
        for (int64_t h = 0; h < a->heads; h++)
            rotate(x + h * a->size, job->cosine + t * half, job->sine + t * half,
                   a->inverse ? -1.0f : 1.0f, half, y + h * a->size);
        if (x != y)
            memcpy(y + turned, x + turned, (size_t)(a->width - turned) * sizeof *y);
    }
}

size_t sti_rotary_scratch_bytes(const sti_rotary *a)
{
    return (size_t)(a->length * a->size) * sizeof(float);
}

void sti_rotary_f32(const sti_team *team, const sti_rotary *a, const float *x, float *y,
                    void *scratch)
{
    float *cosine = scratch, *sine = cosine + a->length * (a->size / 2);
    rotary_job job = {.args = a, .x = x, .cosine = cosine, .sine = sine, .y = y};
    find_angles(team, a, cosine, sine);
    sti_team_run(team, (a->batch * a->length + PIECE_ROWS - 1) / PIECE_ROWS,
                 rotary_piece, &job);
}
