/* Bisection of a threshold in a list of keys. The including file defines BISECT, its
 * name, and COUNT_AT_LEAST(keys, count, key). */

static uint32_t BISECT(const uint32_t *keys, int64_t count, int64_t rank,
                       int64_t *at_least)
{
    uint32_t lo = UINT32_MAX, hi = 0;
    for (int64_t i = 0; i < count; i++) {
        lo = keys[i] < lo ? keys[i] : lo;
        hi = keys[i] > hi ? keys[i] : hi;
    }
    int64_t here = count; /* at or above lo */
    while (lo < hi && here > rank) {
        const uint32_t middle = lo + (hi - lo) / 2 + 1;
        const int64_t above = COUNT_AT_LEAST(keys, count, middle);
        if (above >= rank) {
            lo = middle;
            here = above;
        } else {
            hi = middle - 1;
        }
    }
    *at_least = here;
    return lo;
}

#undef BISECT
#undef COUNT_AT_LEAST
