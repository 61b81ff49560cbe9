#include "trust/statistics.h"

#include <math.h>
#include <stdlib.h>

#include "base/memory.h"
#include "base/rng.h"

#define QUANTILE 0x1.f5c0331eeff84p+0 /* 1.959963984540054, the normal's at 97.5 % */

enum { DRAWS = 1000 };

stint_share sti_share(int64_t count, int64_t n)
{
    stint_share s = {.count = count, .n = n, .rate = NAN, .low = NAN, .high = NAN};
    if (n < 1)
        return s;
    const double z2 = QUANTILE * QUANTILE, total = (double)n;
    const double p = (double)count / total;
    const double centre = (p + z2 / (2 * total)) / (1 + z2 / total);
    const double half = QUANTILE / (1 + z2 / total) *
                        sqrt(p * (1 - p) / total + z2 / (4 * total * total));
    s.rate = p;
    s.low = count == 0 ? 0 : centre - half;
    s.high = count == n ? 1 : centre + half;
    return s;
}

/* Terms C(n, i) / 2^n from i = k downwards. The first is built as mantissa and
 * exponent, since 2^-n may be far below the smallest double. */
double sti_mcnemar_exact(int64_t b, int64_t c)
{
    const int64_t n = b + c, k = b < c ? b : c;
    double mantissa = 1, sum = 0;
    int64_t exponent = -n;
    if (b == c)
        return 1;
    for (int64_t i = 0; i < k; i++) {
        int more;
        mantissa = frexp(mantissa * (double)(n - i) / (double)(i + 1), &more);
        exponent += more;
    }
    double term = exponent < -1100 ? 0 : ldexp(mantissa, (int)exponent);
    for (int64_t i = k; i >= 0 && term > 0; i--) {
        sum += term;
        term *= (double)i / (double)(n - i + 1);
    }
    return 2 * sum < 1 ? 2 * sum : 1;
}

static int compare(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

void sti_bootstrap_mean(int64_t n, const float *value, uint64_t seed, double *low,
                        double *high)
{
    double mean[DRAWS];
    *low = *high = NAN;
    if (n < 1 || n > UINT32_MAX)
        return;
    for (int64_t d = 0; d < DRAWS; d++) {
        double sum = 0;
        for (int64_t i = 0; i < n; i += 4) {
            uint32_t word[4];
            sti_random4(seed, STI_STREAM_BOOTSTRAP, (uint64_t)d, (uint64_t)i / 4, word);
            for (int64_t j = i; j < n && j < i + 4; j++)
                sum += (double)value[sti_below(word[j - i], (uint32_t)n)];
        }
        mean[d] = sum / (double)n;
    }
    qsort(mean, DRAWS, sizeof *mean, compare);
    *low = mean[24];
    *high = mean[974];
}

typedef struct placed {
    double value;
    int64_t index;
} placed;

static int compare_placed(const void *a, const void *b)
{
    return compare(&((const placed *)a)->value, &((const placed *)b)->value);
}

stint_status sti_midranks(int64_t n, const double *value, double *rank_out)
{
    placed *all = sti_alloc_array(n, sizeof *all, "ranks");
    if (!all)
        return STINT_E_MEMORY;
    for (int64_t i = 0; i < n; i++)
        all[i] = (placed){value[i], i};
    qsort(all, (size_t)n, sizeof *all, compare_placed);
    for (int64_t first = 0, end; first < n; first = end) {
        for (end = first + 1; end < n && all[end].value == all[first].value;)
            end++;
        for (int64_t k = first; k < end; k++)
            rank_out[all[k].index] = (double)(first + end + 1) / 2;
    }
    sti_free(all);
    return STINT_OK;
}

double sti_auroc(int64_t n, const double *rank, const uint8_t *marked)
{
    double sum = 0, count = 0;
    for (int64_t i = 0; i < n; i++)
        if (marked[i]) {
            sum += rank[i];
            count++;
        }
    if (count == 0 || count == (double)n)
        return (double)NAN;
    return (sum - count * (count + 1) / 2) / (count * ((double)n - count));
}

double sti_spearman(int64_t n, const double *a, const double *b)
{
    const double mean = (double)(n + 1) / 2;
    double ab = 0, aa = 0, bb = 0;
    for (int64_t i = 0; i < n; i++) {
        ab += (a[i] - mean) * (b[i] - mean);
        aa += (a[i] - mean) * (a[i] - mean);
        bb += (b[i] - mean) * (b[i] - mean);
    }
    return aa > 0 && bb > 0 ? ab / (sqrt(aa) * sqrt(bb)) : (double)NAN;
}
