#include "train/threshold.h"

#include <string.h>

struct sti_threshold_counter {
    uint32_t prefix; /* of the digits above, in place */
    int shift;
    int64_t count[256];
};

void sti_threshold_count(sti_threshold_counter *c, const float *x, int64_t n)
{
    const uint64_t above = ~UINT64_C(0) << (c->shift + 8);
    for (int64_t i = 0; i < n; i++) {
        const uint32_t m = sti_magnitude(x[i]);
        if ((m & above) == c->prefix)
            c->count[m >> c->shift & 255]++;
    }
}

sti_threshold sti_threshold_find(int64_t k, sti_threshold_visit_fn *visit, void *user)
{
    sti_threshold_counter c = {.prefix = 0};
    for (c.shift = 24; c.shift >= 0; c.shift -= 8) {
        uint32_t digit = 0;
        memset(c.count, 0, sizeof c.count);
        visit(user, &c);
        while (k > c.count[digit])
            k -= c.count[digit++];
        c.prefix |= digit << c.shift;
        if (c.shift == 0)
            return (sti_threshold){c.prefix, c.count[digit] - k};
    }
    return (sti_threshold){0};
}
