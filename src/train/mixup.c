#include "train/mixup.h"

#include <math.h>
#include <stdbool.h>

#include "base/rng.h"
#include "kernel/maths/smooth.h"

/* ---- a share ---- */

enum { TRIES = 255 }; /* of which less than one in 10^30 images needs all */

static void words_of(const sti_mixup *m, int32_t sample, int number, uint32_t out[4])
{
    sti_random4(m->seed, STI_STREAM_MIX, m->epoch,
                (uint64_t)(uint32_t)sample << 8 | (uint64_t)number, out);
}

/* In (0, 1). */
static double open_uniform(uint32_t word)
{
    return ((double)word + 0.5) * 0x1p-32;
}

static double bounded(double x)
{
    return x < -700 ? -700 : x > 700 ? 700 : x;
}

/* Jöhnk (1964), in logarithms, for a <= 1. */
static bool draw_small(double a, double u, double v, double *out)
{
    const double x = bounded(sti_smooth_log(u) / a), y = bounded(sti_smooth_log(v) / a);
    *out = 1 / (1 + sti_smooth_exp(bounded(y - x)));
    return sti_smooth_exp(x) + sti_smooth_exp(y) <= 1;
}

/* Cheng (1978), algorithm BB, for equal parameters above 1. */
static bool draw_large(double a, double u, double v, double *out)
{
    const double log4 = 1.3862943611198906;
    const double s = sti_smooth_log(u / (1 - u)) / sqrt(a);
    const double w = a * sti_smooth_exp(bounded(s));
    const double r = (a + sqrt(a)) * s - log4;
    *out = w / (a + w);
    return r + 2 * a * sti_smooth_log(2 * a / (a + w)) >= sti_smooth_log(u * u * v);
}

double sti_mixup_beta(const sti_mixup *m, double a, int32_t sample)
{
    double share = 0.5;
    uint32_t words[4];
    for (int i = 1; i <= TRIES; i++) {
        words_of(m, sample, i, words);
        const double u = open_uniform(words[0]), v = open_uniform(words[1]);
        if (a <= 1 ? draw_small(a, u, v, &share) : draw_large(a, u, v, &share))
            return share;
    }
    return 0.5;
}

/* ---- an image ---- */

/* What of its pair an image takes. */
typedef struct mixing {
    float share;                      /* of itself in every pixel outside of the box */
    int64_t top, bottom, left, right; /* of the box that is the other's */
    float own;                        /* what its label counts */
} mixing;

static void draw_box(const sti_mixup_batch *b, double share, const uint32_t words[4],
                     mixing *out)
{
    const double side = sqrt(1 - share);
    const int64_t h = (int64_t)(side * (double)b->height);
    const int64_t w = (int64_t)(side * (double)b->width);
    const int64_t row = sti_below(words[1], (uint32_t)b->height);
    const int64_t column = sti_below(words[2], (uint32_t)b->width);
    out->top = row - h / 2 < 0 ? 0 : row - h / 2;
    out->left = column - w / 2 < 0 ? 0 : column - w / 2;
    out->bottom = row + h - h / 2 > b->height ? b->height : row + h - h / 2;
    out->right = column + w - w / 2 > b->width ? b->width : column + w - w / 2;
    const double area = (double)((out->bottom - out->top) * (out->right - out->left));
    out->own = (float)(1 - area / (double)(b->height * b->width));
}

static mixing draw_mixing(const sti_mixup *m, const sti_mixup_batch *b, int32_t sample)
{
    mixing out = {.share = 1, .own = 1};
    uint32_t words[4];
    words_of(m, sample, 0, words);
    const bool box = m->cutmix > 0 && (m->mixup == 0 || words[0] >> 31);
    const double share = sti_mixup_beta(m, box ? m->cutmix : m->mixup, sample);
    if (box)
        draw_box(b, share, words, &out);
    else
        out.share = out.own = (float)share;
    return out;
}

static float mixed(const mixing *m, bool in_box, float x, float other)
{
    return in_box ? other : m->share * x + (1 - m->share) * other;
}

static bool in_box(const mixing *m, int64_t row, int64_t column)
{
    return row >= m->top && row < m->bottom && column >= m->left && column < m->right;
}

/* Both images of a pair at once, as each is made of the other as it was. */
static void mix_pair(const sti_mixup_batch *b, const mixing *m, const mixing *n,
                     float *x, float *y)
{
    for (int64_t row = 0; row < b->height; row++)
        for (int64_t column = 0; column < b->width; column++) {
            const bool in_x = in_box(m, row, column), in_y = in_box(n, row, column);
            for (int64_t c = 0; c < b->channels; c++, x++, y++) {
                const float was = *x;
                *x = mixed(m, in_x, was, *y);
                *y = mixed(n, in_y, *y, was);
            }
        }
}

/* ---- a micro-batch ---- */

typedef struct mix_job {
    const sti_mixup *mixup;
    const sti_mixup_batch *batch;
} mix_job;

static void set_labels(const sti_mixup_batch *b, int64_t i, int64_t other, float own)
{
    b->others[i] = b->labels[other];
    b->share[i] = own;
    b->rest[i] = 1 - own;
}

static void mix_piece(void *user, int64_t i, int worker)
{
    const mix_job *job = user;
    const sti_mixup_batch *b = job->batch;
    const int64_t k = b->count - 1 - i;
    const int64_t pixels = b->height * b->width * b->channels;
    (void)worker;
    if (!b->samples || k == i || b->samples[i] < 0 || b->samples[k] < 0) {
        set_labels(b, i, i, 1);
        set_labels(b, k, k, 1);
        return;
    }
    const mixing m = draw_mixing(job->mixup, b, b->samples[i]);
    const mixing n = draw_mixing(job->mixup, b, b->samples[k]);
    mix_pair(b, &m, &n, b->x + i * pixels, b->x + k * pixels);
    set_labels(b, i, k, m.own);
    set_labels(b, k, i, n.own);
}

void sti_mixup_apply(const sti_team *team, const sti_mixup *mixup,
                     const sti_mixup_batch *batch)
{
    mix_job job = {mixup, batch};
    sti_team_run(team, (batch->count + 1) / 2, mix_piece, &job);
}
