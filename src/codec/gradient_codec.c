/* Quantised gradients: scales of buckets, layout, pieces of work. */
#include "codec/gradient_codec.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/fail.h"
#include "codec/gradient_codec_priv.h"
#include "kernel/lane/dispatch.h"

enum {
    PIECE_VALUES = 65536,   /* of one piece of work; any number gives the same bits */
    HUGE_BITS = 0x71800000, /* 2^100 */
    CORRELATED_RANK = 0xffffu, /* in the counter, for all ranks */
    CLIP_STEPS = 20
};

/* Ranges below are one value; the inverse of any other is finite. */
#define RANGE_MIN 0x1p-100f

stint_status sti_gradient_check(const sti_gradient_form *form)
{
    if (form->bits < 1 || form->bits > STI_GRADIENT_BITS_MAX)
        return sti_fail(STINT_E_USAGE, "gradient bits: %d; 1 to 8 are possible",
                        form->bits);
    if (form->method != STI_GRADIENT_MAXMIN && form->bits < 2)
        return sti_fail(STINT_E_USAGE, "gradient bits: QSGD needs 2, one is the sign; "
                                       "take max-min for 1");
    if (form->bucket < STI_GRADIENT_BUCKET_MIN ||
        form->bucket > STI_GRADIENT_BUCKET_MAX || form->bucket % 8)
        return sti_fail(STINT_E_USAGE,
                        "gradient bucket: %" PRId64 "; a multiple of 8 from 8 to 65536",
                        form->bucket);
    if (form->clip && form->method != STI_GRADIENT_MAXMIN)
        return sti_fail(STINT_E_USAGE, "gradient clip: is of max-min only");
    return STINT_OK;
}

static int64_t bucket_count(const sti_gradient_form *form, int64_t n)
{
    return (n + form->bucket - 1) / form->bucket;
}

static size_t header_bytes(const sti_gradient_form *form)
{
    return form->method == STI_GRADIENT_MAXMIN ? 8 : 4;
}

size_t sti_gradient_bytes(const sti_gradient_form *form, int64_t n)
{
    const int64_t payload = (n * form->bits + 7) / 8;
    return (size_t)bucket_count(form, n) * header_bytes(form) +
           (size_t)((payload + 7) / 8 * 8);
}

typedef struct job {
    const sti_gradient_kernels *kernels;
    const sti_gradient_form *form;
    const sti_gradient_key *key;
    int64_t n, piece; /* values; values a piece, whole buckets */
    const float *x;
    float *owed; /* NULL: nothing is */
    const uint8_t *in;
    uint8_t *out;
    sti_gradient_into into;
    float *y;
    int64_t bad; /* first value that cannot be encoded, or n */
} job;

static job job_of(const sti_gradient_form *form, int64_t n)
{
    const int64_t buckets = PIECE_VALUES / form->bucket;
    return (job){.kernels = STI_KERNELS_NOW(sti_gradient_kernels),
                 .form = form,
                 .n = n,
                 .piece = (buckets > 0 ? buckets : 1) * form->bucket,
                 .bad = n};
}

/* The first and one past the last bucket of a piece of work. */
static int64_t piece_buckets(const job *j, int64_t piece, int64_t *first_out)
{
    const int64_t each = j->piece / j->form->bucket;
    const int64_t all = bucket_count(j->form, j->n), last = (piece + 1) * each;
    *first_out = piece * each;
    return last < all ? last : all;
}

static int64_t bucket_values(const job *j, int64_t bucket)
{
    const int64_t left = j->n - bucket * j->form->bucket;
    return left < j->form->bucket ? left : j->form->bucket;
}

/* Where the codes of a bucket begin: it has a multiple of 8 values. */
static int64_t codes_at(const job *j, int64_t bucket)
{
    return bucket_count(j->form, j->n) * (int64_t)header_bytes(j->form) +
           bucket * j->form->bucket / 8 * j->form->bits;
}

static float of_order(int32_t order)
{
    const int32_t bits = order ^ (int32_t)((uint32_t)(order >> 31) >> 1);
    float x;
    memcpy(&x, &bits, sizeof x);
    return x + 0.0f; /* no negative zero, no denormal */
}

static void set_scale(sti_gradient_grid *g, float lo, float hi)
{
    const float range = hi - lo;
    g->lo = lo;
    g->u = range < RANGE_MIN ? 0.0f : range / (float)g->top;
    g->inverse = range < RANGE_MIN ? 0.0f : (float)g->top / range;
}

/* ---- the clip search ---- */

typedef struct clip {
    const job *j;
    sti_gradient_grid *grid;
    const float *x;
    int64_t n;
    float lo, hi, middle;
    int step[2]; /* sides lo and hi: pulled to the middle by 2^(-step / 4) */
    float error;
} clip;

static float pulled(const clip *c, int side)
{
    static const float factor[4] = {1.0f, 0x1.ae89fap-1f, 0x1.6a09e6p-1f,
                                    0x1.306fep-1f};
    float f = factor[c->step[side] % 4];
    for (int halvings = c->step[side] / 4; halvings > 0; halvings--)
        f *= 0.5f;
    return c->middle + f * ((side ? c->hi : c->lo) - c->middle);
}

static float error_now(clip *c)
{
    const bool unbiased = c->j->form->rounding != STI_GRADIENT_NEAREST;
    set_scale(c->grid, pulled(c, 0), pulled(c, 1));
    return c->j->kernels->error(c->grid, unbiased, c->n, c->x);
}

/* Moves the sides by steps of (lo, hi) while the error falls. */
static void descend(clip *c, int lo, int hi)
{
    for (;;) {
        const int a = c->step[0] + lo, b = c->step[1] + hi;
        if (a < 0 || b < 0 || a > CLIP_STEPS || b > CLIP_STEPS)
            return;
        c->step[0] = a;
        c->step[1] = b;
        const float error = error_now(c);
        if (!(error < c->error)) {
            c->step[0] -= lo;
            c->step[1] -= hi;
            return;
        }
        c->error = error;
    }
}

/* Errors of unbiased rounding cancel over ranks; those of a clipped range do not where
 * the ranks' gradients are alike. Among many encoders of one sum the search would find
 * the least error of each and a larger one of their mean. */
static bool clip_pays(const job *j)
{
    const bool unbiased = j->form->rounding != STI_GRADIENT_NEAREST;
    return j->form->clip && !(unbiased && j->key->parts >= STI_GRADIENT_CLIP_PARTS);
}

/* Both sides together, then each alone, inwards and (where together went too far)
 * outwards, around the mean: an outlier on one side does not cost the other. */
static void clip_search(const job *j, sti_gradient_grid *grid, float hi, int64_t n,
                        const float *x)
{
    double sum, squares;
    clip c = {.j = j, .grid = grid, .x = x, .n = n, .lo = grid->lo, .hi = hi};
    if (grid->u == 0.0f)
        return;
    j->kernels->moments(n, x, &sum, &squares);
    c.middle = (float)(sum / (double)n);
    c.error = error_now(&c);
    descend(&c, 1, 1);
    descend(&c, 0, 1);
    descend(&c, 1, 0);
    descend(&c, 0, -1);
    descend(&c, -1, 0);
    (void)error_now(&c);
}

/* ---- scales ---- */

static sti_gradient_grid grid_of(const sti_gradient_form *form)
{
    const bool sign = form->method != STI_GRADIENT_MAXMIN;
    const int levels = sign ? (1 << (form->bits - 1)) - 1 : (1 << form->bits) - 1;
    return (sti_gradient_grid){
        .bits = form->bits, .top = levels, .zero = sign ? levels : 0, .sign = sign};
}

static void scale_qsgd(const job *j, sti_gradient_grid *g, float lo, float hi,
                       int64_t n, const float *x)
{
    float norm = -lo > hi ? -lo : hi;
    double sum, squares;
    if (j->form->method == STI_GRADIENT_QSGD_L2) {
        j->kernels->moments(n, x, &sum, &squares);
        norm = (float)sqrt(squares);
    }
    set_scale(g, 0.0f, norm);
    g->lo = 0.0f;
}

/* False: *bad_out is the first value of the bucket that cannot be encoded. */
static bool bucket_grid(const job *j, int64_t n, const float *x,
                        sti_gradient_grid *grid_out, int64_t *bad_out)
{
    int32_t least, most;
    j->kernels->range(n, x, &least, &most);
    if (most >= HUGE_BITS || least < -HUGE_BITS) {
        for (*bad_out = 0; fabsf(x[*bad_out]) < 0x1p100f;)
            ++*bad_out;
        return false;
    }
    const float lo = of_order(least), hi = of_order(most);
    *grid_out = grid_of(j->form);
    if (grid_out->sign) {
        scale_qsgd(j, grid_out, lo, hi, n, x);
        return true;
    }
    set_scale(grid_out, lo, hi);
    if (clip_pays(j))
        clip_search(j, grid_out, hi, n, x);
    return true;
}

static void put_header(const job *j, int64_t bucket, const sti_gradient_grid *g)
{
    uint8_t *at = j->out + bucket * (int64_t)header_bytes(j->form);
    memcpy(at, &g->u, 4);
    if (!g->sign)
        memcpy(at + 4, &g->lo, 4);
}

/* False: not a header that encode writes. */
static bool get_header(const job *j, int64_t bucket, sti_gradient_grid *g)
{
    const uint8_t *at = j->in + bucket * (int64_t)header_bytes(j->form);
    memcpy(&g->u, at, 4);
    if (!g->sign)
        memcpy(&g->lo, at + 4, 4);
    return g->u >= 0.0f && g->u < 0x1p110f && fabsf(g->lo) <= 0x1p100f;
}

/* ---- encoding ---- */

static sti_gradient_dither dither_of(const job *j, int64_t bucket)
{
    const sti_gradient_key *key = j->key;
    const bool shared = j->form->rounding == STI_GRADIENT_CORRELATED;
    const uint64_t runs =
        ((uint64_t)j->form->bucket + STI_GRADIENT_RUN - 1) / STI_GRADIENT_RUN;
    const uint64_t rank = shared ? CORRELATED_RANK : key->rank;
    return (sti_gradient_dither){
        .seed = key->seed,
        .a = (uint64_t)key->layer << 40 | key->step,
        .b = rank << 48 | (uint64_t)key->phase << 32 | (uint64_t)bucket * runs * 16,
        .shift = shared && key->parts
                     ? (uint32_t)(((uint64_t)key->part << 16) / key->parts)
                     : 0};
}

static void encode_bucket(job *j, int64_t bucket)
{
    const int64_t n = bucket_values(j, bucket);
    const float *x = j->x + bucket * j->form->bucket;
    float *owed = j->owed ? j->owed + bucket * j->form->bucket : NULL;
    sti_gradient_grid grid;
    int64_t bad;
    if (owed) {
        j->kernels->add(n, x, owed);
        x = owed;
    }
    if (!bucket_grid(j, n, x, &grid, &bad)) {
        const int64_t at = bucket * j->form->bucket + bad;
        int64_t seen = __atomic_load_n(&j->bad, __ATOMIC_RELAXED);
        while (at < seen &&
               !__atomic_compare_exchange_n(&j->bad, &seen, at, true, __ATOMIC_RELAXED,
                                            __ATOMIC_RELAXED))
            ;
        return;
    }
    put_header(j, bucket, &grid);
    const sti_gradient_dither dither = dither_of(j, bucket);
    j->kernels->encode(&grid,
                       j->form->rounding == STI_GRADIENT_NEAREST ? NULL : &dither, n, x,
                       j->out + codes_at(j, bucket));
    if (owed)
        j->kernels->decode(&grid, n, j->out + codes_at(j, bucket), STI_GRADIENT_TAKE,
                           owed);
}

static void encode_piece(void *arg, int64_t piece, int worker)
{
    job *j = arg;
    int64_t bucket;
    const int64_t end = piece_buckets(j, piece, &bucket);
    (void)worker;
    for (; bucket < end; bucket++)
        encode_bucket(j, bucket);
}

/* The stream ends on 8 bytes. */
static void clear_padding(const sti_gradient_form *form, int64_t n, uint8_t *out)
{
    const size_t used = (size_t)bucket_count(form, n) * header_bytes(form) +
                        (size_t)((n * form->bits + 7) / 8);
    const size_t all = sti_gradient_bytes(form, n);
    if (all > used)
        memset(out + used, 0, all - used);
}

int64_t sti_gradient_encode(const sti_team *team, const sti_gradient_form *form,
                            const sti_gradient_key *key, int64_t n, const float *x,
                            void *out)
{
    return sti_gradient_encode_owed(team, form, key, n, x, NULL, out);
}

int64_t sti_gradient_encode_owed(const sti_team *team, const sti_gradient_form *form,
                                 const sti_gradient_key *key, int64_t n, const float *x,
                                 float *owed, void *out)
{
    job j = job_of(form, n);
    j.key = key;
    j.x = x;
    j.owed = owed;
    j.out = out;
    sti_team_run(team, (n + j.piece - 1) / j.piece, encode_piece, &j);
    clear_padding(form, n, out);
    return j.bad < n ? j.bad : -1;
}

/* ---- decoding ---- */

static void decode_piece(void *arg, int64_t piece, int worker)
{
    const job *j = arg;
    int64_t bucket;
    const int64_t end = piece_buckets(j, piece, &bucket);
    sti_gradient_grid grid = grid_of(j->form);
    (void)worker;
    for (; bucket < end; bucket++) {
        (void)get_header(j, bucket, &grid);
        j->kernels->decode(&grid, bucket_values(j, bucket), j->in + codes_at(j, bucket),
                           j->into, j->y + bucket * j->form->bucket);
    }
}

bool sti_gradient_decode(const sti_team *team, const sti_gradient_form *form, int64_t n,
                         const void *in, sti_gradient_into into, float *y)
{
    job j = job_of(form, n);
    sti_gradient_grid grid = grid_of(form);
    j.in = in;
    j.into = into;
    j.y = y;
    for (int64_t i = 0; i < bucket_count(form, n); i++)
        if (!get_header(&j, i, &grid))
            return false;
    sti_team_run(team, (n + j.piece - 1) / j.piece, decode_piece, &j);
    return true;
}
