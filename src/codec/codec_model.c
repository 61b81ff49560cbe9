/* From counts to distributions, their form in the head of a block, and the tables that
 * coding uses. Everything here is integers or one fixed order of double operations. */
#include <math.h>
#include <string.h>

#include "codec/codec_priv.h"

enum {
    TOKENS = STI_CODEC_TOKENS,
    BUCKETS = STI_CODEC_BUCKETS,
    ESCAPE = STI_CODEC_ESCAPE,
    SCALE = STI_CODEC_SCALE
};

/* What a probability costs in the head, and a gap before the last one. */
static const double table_bits = 6.0, gap_bits = 1.5;

/* ---- the shape's part ---- */

sti_codec_layout sti_codec_layout_of(int rank, const int64_t *dim)
{
    sti_codec_layout l = {.count = 1, .channels = 1, .left = 16, .up = 32};
    for (int i = 0; i < rank; i++) /* one axis of 0: the others may be anything */
        l.count = dim[i] == 0 ? 0 : l.count;
    for (int i = 0; i < rank && l.count > 0; i++)
        l.count *= dim[i];
    l.chunk =
        INT64_C(1) << (l.count >> 19 ? STI_CODEC_CHUNK_LOG2 : STI_CODEC_SMALL_LOG2);
    l.chunks = (l.count + l.chunk - 1) / l.chunk;
    const int64_t c = dim[rank - 1];
    if (rank == 1 || l.count == 0 || l.count / c < 16 || c > l.chunk / 4)
        return l;
    l.channels = c;
    l.left = (15 + c) / c * c;
    l.up = rank > 2 ? dim[rank - 2] * c : 0;
    if (l.up <= l.left || l.up > l.chunk / 2)
        l.up = 2 * l.left;
    return l;
}

/* Quarters of octaves from 0: 0..7 are themselves, then (4 + c % 4) << (c / 4 - 1). */
static int32_t usual_of(uint8_t code)
{
    return code < 8 ? code : (4 + (code & 3)) << (code / 4 - 1);
}

uint8_t sti_codec_usual_code(int64_t activity)
{
    int octave = 0;
    if (activity < 8)
        return (uint8_t)activity;
    while (activity >> octave >= 8)
        octave++;
    const int64_t code = 4 * (octave + 1) + (activity >> octave & 3);
    return (uint8_t)(code > 80 ? 80 : code);
}

void sti_codec_usual_expand(const uint8_t *code, int64_t channels, int32_t *usual_out)
{
    for (int64_t i = 0; i < channels; i++)
        usual_out[i] = usual_of(code[i] > 80 ? 80 : code[i]);
    for (int64_t i = 0; i < STI_CODEC_LANES; i++)
        usual_out[channels + i] = usual_out[i];
}

/* ---- fitting ---- */

/* n log2 n, to a few parts in 100,000 of a bit a value. */
static double weight(double n)
{
    const float f = (float)n;
    uint32_t bits;
    if (n <= 1)
        return 0;
    memcpy(&bits, &f, sizeof bits);
    const float whole = (float)(int32_t)(bits >> 23) - 127.0f;
    bits = (bits & 0x7fffffu) | 0x3f800000u;
    float t;
    memcpy(&t, &bits, sizeof t);
    t -= 1.0f;
    const float bend = 0.44174f + t * (-0.26603f + t * (0.146314f - t * 0.044005f));
    return n * (double)(whole + t + t * (1.0f - t) * bend);
}

/* Up to the last that occurred. */
static int used_tokens(const uint32_t *counts)
{
    enum { STRIDE = 16 };
    int used = TOKENS;
    for (uint32_t any = 0; used > 0; used -= STRIDE) {
        for (int i = 1; i <= STRIDE; i++)
            any |= counts[used - i];
        if (any)
            break;
    }
    while (used > 0 && counts[used - 1] == 0)
        used--;
    return used;
}

/* Bits that a group's values take under their own distribution, and its table. */
static double group_bits(const uint32_t *a, const uint32_t *b, double scale)
{
    double sum = 0, parts = 0;
    int tokens = 0;
    int used = used_tokens(a);
    if (b && used_tokens(b) > used)
        used = used_tokens(b);
    for (int t = 0; t < used; t++) {
        const double n = (double)a[t] + (b ? (double)b[t] : 0.0);
        sum += n;
        parts += weight(n);
        tokens += n > 0;
    }
    return (weight(sum) - parts) * scale + tokens * table_bits + used * gap_bits;
}

static int bits_below(int token)
{
    return token < STI_CODEC_PLAIN ? 0
           : token == ESCAPE       ? STI_CODEC_ESCAPE_BITS
                                   : 4 + (token - STI_CODEC_PLAIN) / 8;
}

double sti_codec_model_cost(const uint32_t *counts)
{
    double bits = 0;
    for (int b = 0; b < BUCKETS; b++, counts += TOKENS) {
        bits += group_bits(counts, NULL, 1.0);
        for (int t = STI_CODEC_PLAIN, used = used_tokens(counts); t < used; t++)
            bits += (double)counts[t] * bits_below(t);
    }
    return bits;
}

/* Buckets joined so far; neighbours only, since the activity orders them. */
typedef struct grouping {
    int groups;
    int last[BUCKETS]; /* bucket */
    uint32_t *counts[BUCKETS];
    uint32_t room[BUCKETS][TOKENS];
    double bits[BUCKETS], joined[BUCKETS]; /* alone; together with the next */
    double scale;
} grouping;

static void weigh_group(grouping *g, int i)
{
    g->bits[i] = group_bits(g->counts[i], NULL, g->scale);
    if (i + 1 < g->groups)
        g->joined[i] = group_bits(g->counts[i], g->counts[i + 1], g->scale);
}

static void join_groups(grouping *g, int i)
{
    for (int t = 0; t < TOKENS; t++)
        g->counts[i][t] += g->counts[i + 1][t];
    g->last[i] = g->last[i + 1];
    g->groups--;
    for (int j = i + 1; j < g->groups; j++) {
        g->counts[j] = g->counts[j + 1];
        g->last[j] = g->last[j + 1];
        g->bits[j] = g->bits[j + 1];
        g->joined[j] = g->joined[j + 1];
    }
    weigh_group(g, i);
    if (i > 0)
        weigh_group(g, i - 1);
}

/* One group a bucket that has values, then the cheapest union while it pays. */
static void make_groups(grouping *g, const uint32_t *counts)
{
    g->groups = 0;
    for (int b = 0; b < BUCKETS; b++) {
        uint64_t sum = 0;
        for (int t = 0; t < TOKENS; t++)
            sum += counts[b * TOKENS + t];
        if (sum > 0 || b == 0) {
            g->counts[g->groups] = g->room[b];
            memcpy(g->room[b], counts + b * TOKENS, sizeof g->room[b]);
            g->groups++;
        }
        g->last[g->groups - 1] = b;
    }
    for (int i = 0; i < g->groups; i++)
        weigh_group(g, i);
    while (g->groups > 1) {
        int best = 0;
        double least = INFINITY;
        for (int i = 0; i + 1 < g->groups; i++) {
            const double more = g->joined[i] - g->bits[i] - g->bits[i + 1];
            if (more < least) {
                least = more;
                best = i;
            }
        }
        if (least > 0 && g->groups <= STI_CODEC_CONTEXTS)
            break;
        join_groups(g, best);
    }
}

/* Frequencies that sum to SCALE, at least 1 for what occurred and for ESCAPE. When only
 * a sample was counted, what occurred next door may occur here. */
static void normalise(const grouping *g, int i, bool sampled, uint16_t *frequency)
{
    uint64_t sum = 0, n[TOKENS];
    int64_t left = SCALE;
    int largest = 0;
    for (int t = 0; t < TOKENS; t++) {
        n[t] = (uint64_t)g->counts[i][t] * 16;
        if (sampled && n[t] == 0 &&
            ((i > 0 && g->counts[i - 1][t]) ||
             (i + 1 < g->groups && g->counts[i + 1][t])))
            n[t] = 1;
        if (t == ESCAPE && n[t] == 0)
            n[t] = 1;
        sum += n[t];
    }
    for (int t = 0; t < TOKENS; t++) {
        uint64_t f = n[t] ? (n[t] * SCALE + sum / 2) / sum : 0;
        if (n[t] > 0 && f == 0)
            f = 1;
        frequency[t] = (uint16_t)f;
        left -= (int64_t)f;
        if (frequency[t] > frequency[largest])
            largest = t;
    }
    /* What rounding took is the largest's, or everyone's who can spare it. */
    if (left >= 0 || frequency[largest] > 1 - left + SCALE / 16) {
        frequency[largest] = (uint16_t)(frequency[largest] + left);
        return;
    }
    for (int t = 0; left < 0; t = (t + 1) % TOKENS)
        if (frequency[t] > 1) {
            frequency[t]--;
            left++;
        }
}

void sti_codec_model_fit(const uint32_t *counts, int64_t sampled, int64_t count,
                         void *scratch, sti_codec_model *model)
{
    grouping *g = scratch;
    g->scale = sampled > 0 ? (double)count / (double)sampled : 1.0;
    make_groups(g, counts);
    model->contexts = g->groups;
    for (int i = 0, b = 0; i < g->groups; i++) {
        normalise(g, i, sampled < count, model->frequency[i]);
        for (; b <= g->last[i]; b++)
            model->map[b] = (uint8_t)i;
    }
}

size_t sti_codec_fit_scratch_bytes(void)
{
    return sizeof(grouping);
}

/* ---- tables ---- */

/* x / f = (x * reciprocal >> 32) >> shift for x < 2^31, after Alverson (1991). */
static uint64_t coder_entry(uint32_t f, uint32_t start)
{
    uint32_t shift = 0, bias = start, reciprocal;
    if (f == 0)
        return (uint64_t)UINT32_MAX << 32;
    if (f == 1) {
        reciprocal = UINT32_MAX; /* gives x - 1, which the bias makes good */
        bias = start + SCALE - 1;
    } else {
        while (f > 1u << shift)
            shift++;
        reciprocal = (uint32_t)(((UINT64_C(1) << (shift + 31)) + f - 1) / f);
        shift--;
    }
    return (uint64_t)((SCALE - f) | bias << 12 | shift << 25) << 32 | reciprocal;
}

void sti_codec_coder_build(const sti_codec_model *model, uint64_t *entry)
{
    for (int c = 0; c < model->contexts; c++) {
        uint32_t start = 0;
        for (int t = 0; t < TOKENS; t++) {
            const uint32_t f = model->frequency[c][t];
            entry[c * TOKENS + t] = coder_entry(f, start);
            start += f;
        }
    }
}

void sti_codec_table_build(const sti_codec_model *model, int context, uint32_t *table)
{
    for (uint32_t t = 0; t < TOKENS; t++) {
        const uint32_t f = model->frequency[context][t];
        const uint32_t entry = t | (f - 1) << 20;
        for (uint32_t i = 0; i < f; i++)
            *table++ = entry | i << 8;
    }
}

/* ---- as bytes ---- */

/* Bits, least significant first. */
typedef struct bits_out {
    uint8_t *at;
    uint64_t held;
    int count;
} bits_out;

static void put_bits(bits_out *b, uint32_t value, int count)
{
    b->held |= (uint64_t)value << b->count;
    for (b->count += count; b->count >= 8; b->count -= 8, b->held >>= 8)
        *b->at++ = (uint8_t)b->held;
}

typedef struct bits_in {
    const uint8_t *at, *end;
    uint64_t held;
    int count;
    bool past;
} bits_in;

static uint32_t get_bits(bits_in *b, int count)
{
    while (b->count < count) {
        if (b->at == b->end)
            b->past = true;
        else
            b->held |= (uint64_t)*b->at++ << b->count;
        b->count += 8;
    }
    const uint32_t value = (uint32_t)(b->held & ((UINT64_C(1) << count) - 1));
    b->held >>= count;
    b->count -= count;
    return value;
}

/* Golomb-Rice codes whose parameter follows what was coded; after 12 ones the value
 * comes as 13 bits. */
enum { RICE_MOST = 12, RICE_PLAIN = 13 };

static int rice_bits(uint32_t mean16)
{
    int k = 0;
    while (k < 11 && (16u << k) <= mean16)
        k++;
    return k;
}

static uint32_t rice_follow(uint32_t mean16, uint32_t value)
{
    return mean16 - mean16 / 4 + 4 * value;
}

static void put_rice(bits_out *b, uint32_t *mean16, uint32_t value)
{
    const int k = rice_bits(*mean16);
    const uint32_t ones = value >> k;
    *mean16 = rice_follow(*mean16, value);
    if (ones >= RICE_MOST) {
        put_bits(b, (1u << RICE_MOST) - 1, RICE_MOST);
        put_bits(b, value, RICE_PLAIN);
        return;
    }
    put_bits(b, (1u << ones) - 1, (int)ones + 1);
    put_bits(b, value & ((1u << k) - 1), k);
}

static uint32_t get_rice(bits_in *b, uint32_t *mean16)
{
    const int k = rice_bits(*mean16);
    uint32_t ones = 0, value;
    while (ones < RICE_MOST && get_bits(b, 1))
        ones++;
    value = ones == RICE_MOST ? get_bits(b, RICE_PLAIN) : ones << k | get_bits(b, k);
    *mean16 = rice_follow(*mean16, value);
    return value;
}

/* Half the last two. */
static int32_t guess_frequency(const uint16_t *f, int t)
{
    return t == 0 ? 0 : t == 1 ? f[0] : (f[t - 1] + f[t - 2] + 1) / 2;
}

static int last_token(const uint16_t *f)
{
    int last = ESCAPE - 1;
    while (last > 0 && f[last] == 0)
        last--;
    return last;
}

size_t sti_codec_model_write(const sti_codec_model *model, uint8_t *out)
{
    bits_out b = {.at = out};
    for (int i = 0; i < BUCKETS; i++)
        put_bits(&b, i > 0 && model->map[i] != model->map[i - 1], 1);
    for (int c = 0; c < model->contexts; c++) {
        const uint16_t *f = model->frequency[c];
        const int last = last_token(f);
        uint32_t mean16 = 64 * 16;
        put_bits(&b, (uint32_t)last, 8);
        for (int t = 0; t <= last; t++) {
            const int32_t d = f[t] - guess_frequency(f, t);
            put_rice(&b, &mean16, d < 0 ? (uint32_t)-d * 2 - 1 : (uint32_t)d * 2);
        }
    }
    if (b.count > 0)
        put_bits(&b, 0, 8 - b.count);
    return (size_t)(b.at - out);
}

static bool read_frequencies(bits_in *b, uint16_t *f)
{
    const int last = (int)get_bits(b, 8);
    uint32_t mean16 = 64 * 16;
    int32_t left = SCALE;
    if (last >= ESCAPE)
        return false;
    memset(f, 0, TOKENS * sizeof *f);
    for (int t = 0; t <= last; t++) {
        const uint32_t r = get_rice(b, &mean16);
        const int32_t d = r & 1 ? -(int32_t)((r + 1) / 2) : (int32_t)(r / 2);
        const int32_t value = guess_frequency(f, t) + d;
        if (value < 0 || value >= left)
            return false;
        f[t] = (uint16_t)value;
        left -= value;
    }
    f[ESCAPE] = (uint16_t)left;
    return !b->past;
}

bool sti_codec_model_read(const uint8_t *bytes, size_t n_bytes, sti_codec_model *model)
{
    bits_in b = {.at = bytes, .end = bytes + n_bytes};
    int context = 0;
    for (int i = 0; i < BUCKETS; i++) {
        context += (int)get_bits(&b, 1);
        if (context >= model->contexts || (i == 0 && context > 0))
            return false;
        model->map[i] = (uint8_t)context;
    }
    if (context != model->contexts - 1)
        return false;
    for (int c = 0; c < model->contexts; c++)
        if (!read_frequencies(&b, model->frequency[c]))
            return false;
    return b.at == b.end;
}
