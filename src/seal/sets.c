#include "seal/sets.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/fail.h"
#include "base/secure_random.h"

/* Noise as the curve for 132 bits has it for these dimensions; 2^-30 is its least, four
 * units of 2^-32. */
static const sti_seal_set sets[] = {
    {"p128", 770, 3, 512, 2, 9, 5, 3, 0x1.67c5p-17, 0x1.000fp-30, 132.5},
    {"p64", 770, 5, 256, 2, 9, 5, 3, 0x1.67c5p-17, 0x1.0082p-29, 132.5},
};
enum { SETS = sizeof sets / sizeof sets[0] };

const sti_seal_set *sti_seal_set_at(int i)
{
    return i >= 0 && i < SETS ? &sets[i] : NULL;
}

stint_status sti_seal_set_find(const char *name, const sti_seal_set **out)
{
    for (int i = 0; i < SETS; i++)
        if (strcmp(sets[i].name, name) == 0) {
            *out = &sets[i];
            return STINT_OK;
        }
    return sti_fail(STINT_E_USAGE,
                    "no parameter set is called '%.40s'; there are p128 (the default) "
                    "and p64, see stint seal sets",
                    name);
}

sti_seal_noise sti_seal_noise_of(const sti_seal_set *set)
{
    const double n = set->n, k = set->k, size = set->size, long_n = k * size;
    const double base = ldexp(1, set->bits), ks_base = ldexp(1, set->ks_bits);
    const double product = set->levels * size * (k + 1) * set->poly_sd * set->poly_sd *
                           (base * base + 2) / 12;
    const double digits =
        (long_n / 2 + 1) * ldexp(1, -2 * set->levels * set->bits) / 24;
    const double ks_noise =
        set->ks_levels * long_n * set->sd * set->sd * (ks_base * ks_base + 2) / 12;
    const double ks_digits = long_n * ldexp(1, -2 * set->ks_levels * set->ks_bits) / 24;
    const double step = 1 / (2 * size);
    return (sti_seal_noise){.out = n * (product + digits) + ks_noise + ks_digits,
                            .rounding = n * step * step / 24 + step * step / 12};
}

/* log2 erfc(x), where erfc itself may be too small for a double. */
static double log2_erfc(double x)
{
    if (x < 20)
        return log2(erfc(x));
    return (-x * x - log(x * sqrt(3.14159265358979323846))) / log(2);
}

double sti_seal_fail_log2(const sti_seal_set *set, sti_cell_kind kind)
{
    const sti_seal_noise noise = sti_seal_noise_of(set);
    const double margin = sti_cell_margin(kind) / 16.0;
    const double variance = sti_cell_weight_squares(kind) * noise.out + noise.rounding;
    return log2_erfc(margin / sqrt(2 * variance));
}

double sti_seal_set_fail_log2(const sti_seal_set *set)
{
    double most = -(double)INFINITY;
    for (int kind = 0; kind < STI_CELL_KINDS; kind++)
        most = fmax(most, sti_seal_fail_log2(set, (sti_cell_kind)kind));
    return most;
}

int64_t sti_seal_ciphertext_words(const sti_seal_set *set)
{
    return set->n + 1;
}

/* Two seeds and the bodies; masks are made of the seeds. */
int64_t sti_seal_eval_file_bytes(const sti_seal_set *set)
{
    const int64_t rows = (int64_t)set->levels * (set->k + 1);
    return 2 * STI_SEED_BYTES + 4 * ((int64_t)set->n * rows * set->size +
                                     (int64_t)set->k * set->size * set->ks_levels);
}
