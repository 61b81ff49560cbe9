#include "serve/traffic.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/fail.h"
#include "base/file.h"
#include "base/memory.h"
#include "base/number.h"
#include "base/rng.h"
#include "base/shown.h"

#define RATE_MOST 1e7

void sti_traffic_fini(sti_traffic *traffic)
{
    sti_free(traffic->time_s);
    sti_free(traffic->batch);
    *traffic = (sti_traffic){.count = 0};
}

/* The number that all of the text is. */
static bool read_number(const char *text, size_t length, double *value_out)
{
    const char *after;
    return sti_number_read(text, text + length, &after, value_out) &&
           after == text + length;
}

/* ---- arrivals ---- */

static stint_status grow(sti_traffic *t)
{
    if (t->count & (t->count - 1) || (t->count && t->count < 64))
        return STINT_OK;
    const int64_t room = t->count ? 2 * t->count : 64;
    double *time = sti_realloc(t->time_s, (size_t)room * sizeof *time, "trace");
    if (time)
        t->time_s = time;
    int *batch = sti_realloc(t->batch, (size_t)room * sizeof *batch, "trace");
    if (batch)
        t->batch = batch;
    return time && batch ? STINT_OK : STINT_E_MEMORY;
}

/* "seconds" or "seconds,images"; batch 0: not said. */
static stint_status parse_line(const char *line, size_t length, const char *path,
                               int64_t number, sti_traffic *t)
{
    double at = 0, images = 0;
    const char *end = line + length, *comma = memchr(line, ',', length);
    const char *first_end = comma ? comma : end;
    if (!read_number(line, (size_t)(first_end - line), &at) || !(at >= 0) || at > 1e9 ||
        (t->count && at < t->time_s[t->count - 1]))
        return sti_fail(STINT_E_INPUT,
                        "%s:%lld: rising times in seconds were wanted, from 0 on", path,
                        (long long)number);
    if (comma && (!read_number(comma + 1, (size_t)(end - comma - 1), &images) ||
                  images < 1 || images > STI_SERVE_BATCH || images > floor(images)))
        return sti_fail(STINT_E_INPUT, "%s:%lld: 1 to 256 images were wanted", path,
                        (long long)number);
    const stint_status st = grow(t);
    if (st != STINT_OK)
        return st;
    t->time_s[t->count] = at;
    t->batch[t->count++] = (int)images;
    return STINT_OK;
}

stint_status sti_traffic_parse(const char *text, const char *path, sti_traffic *traffic)
{
    stint_status st = STINT_OK;
    int64_t number = 0;
    for (const char *line = text; *line && st == STINT_OK;) {
        const char *end = line + strcspn(line, "\r\n");
        number++;
        const bool heading = number == 1 && isalpha((unsigned char)*line);
        if (end > line && !heading)
            st = parse_line(line, (size_t)(end - line), path, number, traffic);
        line = end + (*end == '\r' && end[1] == '\n') + (*end != '\0');
    }
    if (st == STINT_OK && traffic->count == 0)
        st = sti_fail(STINT_E_INPUT,
                      "%s: no query; lines of seconds,images were wanted", path);
    return st;
}

static stint_status read_trace(const char *path, sti_traffic *traffic)
{
    void *text = NULL;
    size_t bytes = 0;
    stint_status st = sti_file_read(path, (size_t)1 << 30, &text, &bytes);
    if (st == STINT_OK && strlen(text) != bytes)
        st = sti_fail(STINT_E_INPUT, "%s: no text", path);
    if (st == STINT_OK)
        st = sti_traffic_parse(text, path, traffic);
    sti_free(text);
    return st;
}

stint_status sti_traffic_arrivals(const char *text, sti_traffic *traffic)
{
    if (strncmp(text, "trace:", 6) == 0)
        return read_trace(text + 6, traffic);
    const char *rate = text + 8;
    if (strncmp(text, "poisson:", 8) != 0 ||
        !read_number(rate, strlen(rate), &traffic->rate_per_s) ||
        !(traffic->rate_per_s > 0) || traffic->rate_per_s > RATE_MOST)
        return sti_fail(STINT_E_USAGE,
                        "arrivals: %s; poisson:RATE in queries a second, or "
                        "trace:FILE.csv, was wanted",
                        sti_shown(text));
    return STINT_OK;
}

/* ---- batches ---- */

/* Shares, not cumulated, to cumulated ones that end at 1. */
static void cumulate(sti_traffic *t)
{
    double sum = 0, so_far = 0;
    for (int b = 0; b < t->batch_most; b++)
        sum += t->share[b];
    for (int b = 0; b < t->batch_most; b++)
        t->share[b] = (so_far += t->share[b]) / sum;
    t->share[t->batch_most - 1] = 1;
}

/* Shares of a rounded logarithmic normal distribution: the part between b - 1/2 and
 * b + 1/2, what is outside at the ends. */
static void lognormal(double mu, double sigma, sti_traffic *t)
{
    double before = 0;
    for (int b = 1; b <= t->batch_most; b++) {
        const double z = (log(b + 0.5) - mu) / (sigma * sqrt(2));
        const double up_to = b == t->batch_most ? 1 : 0.5 * erfc(-z);
        t->share[b - 1] = up_to - before;
        before = up_to;
    }
}

static bool parse_dist(const char *text, sti_traffic *t)
{
    double sum = 0;
    for (;;) {
        char *end;
        const long b = strtol(text, &end, 10);
        const size_t length = *end == '=' ? strcspn(end + 1, ",") : 0;
        double share = 0;
        if (b < 1 || b > t->batch_most || length == 0 ||
            !read_number(end + 1, length, &share) || !(share >= 0) || share > 1e9)
            return false;
        sum += t->share[b - 1] = share;
        text = end + 1 + length;
        if (!*text)
            return sum > 0;
        text++;
    }
}

static bool parse_batches(const char *text, sti_traffic *t)
{
    double a = 0, b = 0;
    const char *comma = strchr(text, ',');
    if (strncmp(text, "dist:", 5) == 0)
        return parse_dist(text + 5, t);
    if (strncmp(text, "lognormal:", 10) == 0 && comma) {
        if (!read_number(text + 10, (size_t)(comma - text - 10), &a) ||
            !read_number(comma + 1, strlen(comma + 1), &b) || !(fabs(a) < 100) ||
            !(b > 0) || b > 100)
            return false;
        lognormal(a, b, t);
        return true;
    }
    if (!read_number(text, strlen(text), &a) || a < 1 || a > t->batch_most ||
        a > floor(a))
        return false;
    t->share[(int)a - 1] = 1;
    return true;
}

stint_status sti_traffic_batches(const char *text, int most, sti_traffic *traffic)
{
    traffic->batch_most = most;
    memset(traffic->share, 0, sizeof traffic->share);
    if (!parse_batches(text, traffic))
        return sti_fail(STINT_E_USAGE,
                        "batch: %s; a number from 1 to %d, lognormal:MU,SIGMA or "
                        "dist:1=0.4,2=0.6 was wanted",
                        sti_shown(text), most);
    cumulate(traffic);
    return STINT_OK;
}

void sti_traffic_shares(const sti_traffic *traffic, int batch_most, double *share_out)
{
    memset(share_out, 0, (size_t)batch_most * sizeof *share_out);
    bool said = false;
    for (int64_t i = 0; i < traffic->count; i++)
        if (traffic->batch[i] > 0 && traffic->batch[i] <= batch_most) {
            share_out[traffic->batch[i] - 1] += 1.0 / (double)traffic->count;
            said = true;
        }
    for (int b = 0; !said && b < traffic->batch_most && b < batch_most; b++)
        share_out[b] = traffic->share[b] - (b ? traffic->share[b - 1] : 0);
}

/* ---- queries ---- */

/* (0, 1] with 53 bits. */
static double uniform53(const uint32_t word[2])
{
    const uint64_t bits = ((uint64_t)word[0] << 32 | word[1]) >> 11;
    return (double)(bits + 1) * 0x1p-53;
}

bool sti_traffic_next(const sti_traffic *traffic, int64_t i, double before_s,
                      double *at_s_out, int *batch_out)
{
    uint32_t word[4];
    int batch = 0;
    sti_random4(traffic->seed, STI_STREAM_SERVE, (uint64_t)i, 0, word);
    if (traffic->count) {
        if (i >= traffic->count)
            return false;
        *at_s_out = traffic->time_s[i];
        batch = traffic->batch[i];
    } else {
        *at_s_out = before_s - log(uniform53(word)) / traffic->rate_per_s;
    }
    if (batch == 0) {
        const double u = uniform53(word + 2);
        for (batch = 1; batch < traffic->batch_most && u > traffic->share[batch - 1];)
            batch++;
    }
    *batch_out = batch;
    return true;
}
