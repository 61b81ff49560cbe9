// The peers of top-k that are C++: std::nth_element and std::partial_sort on pairs, and
// the heap of faiss where its headers are found. Built by topk_peers.sh, called from
// topk_peers.py; each gives values and indices of the k largest, and copies its input if
// it destroys it.
#include <algorithm>
#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

#if __has_include(<faiss/utils/Heap.h>)
#include <faiss/utils/Heap.h>
#define WITH_FAISS 1
#endif

using pair = std::pair<float, int32_t>;

static std::vector<pair> pairs_of(const float *x, int64_t n)
{
    std::vector<pair> p(static_cast<size_t>(n));
    for (int64_t i = 0; i < n; i++)
        p[static_cast<size_t>(i)] = {x[i], static_cast<int32_t>(i)};
    return p;
}

static void give(const std::vector<pair> &p, int64_t k, float *values, int64_t *index)
{
    for (int64_t i = 0; i < k; i++) {
        values[i] = p[static_cast<size_t>(i)].first;
        index[i] = p[static_cast<size_t>(i)].second;
    }
}

static bool before(const pair &a, const pair &b)
{
    return a.first > b.first;
}

extern "C" {

void peer_nth_element(const float *x, int64_t n, int64_t k, float *values, int64_t *index)
{
    std::vector<pair> p = pairs_of(x, n);
    std::nth_element(p.begin(), p.begin() + (k - 1), p.end(), before);
    give(p, k, values, index);
}

void peer_partial_sort(const float *x, int64_t n, int64_t k, float *values, int64_t *index)
{
    std::vector<pair> p = pairs_of(x, n);
    std::partial_sort(p.begin(), p.begin() + k, p.end(), before);
    give(p, k, values, index);
}

int peer_has_faiss()
{
#ifdef WITH_FAISS
    return 1;
#else
    return 0;
#endif
}

void peer_faiss_heap(const float *x, int64_t n, int64_t k, float *values, int64_t *index)
{
#ifdef WITH_FAISS
    using C = faiss::CMin<float, int64_t>;
    faiss::heap_heapify<C>(static_cast<size_t>(k), values, index);
    for (int64_t i = 0; i < n; i++)
        if (C::cmp(values[0], x[i]))
            faiss::heap_replace_top<C>(static_cast<size_t>(k), values, index, x[i], i);
#else
    (void)x, (void)n, (void)k, (void)values, (void)index;
#endif
}
}
