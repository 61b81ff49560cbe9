// stint_topk beside the routines that C and C++ programs have: x86-simd-sort (where its
// headers are given), std::nth_element, std::partial_sort, the heap of faiss,
// taken in turn in one process. Every call gives values and 64-bit indices of the
// k largest, and copies its input if it destroys it, into memory that is there already;
// "values only" peers give no indices. Short arrays are 16 different ones in turn, so
// that no branch predictor learns them. Wall-clock time, least of the runs, which must
// agree with stint's values. Built and started by topk_peers.sh.
//   topk_peers [TYPE [LOG2N,... [ORDER,... [THREADS [RUNS [K,...]]]]]]
// TYPE: f32 f16 bf16 i32 i8; ORDER: as in topk_bench, or a file of raw elements.
// Threads are stint's: no peer has any. CSV: type,order,n,k,threads,who,us,ratio (who /
// stint).
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <functional>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "stint/topk.h"

#if __has_include(<faiss/utils/Heap.h>)
#include <faiss/utils/Heap.h>
#define WITH_FAISS 1
#endif
#if __has_include("x86simdsort-static-incl.h")
#include "x86simdsort-static-incl.h"
#define WITH_XSS 1
#endif

namespace
{

// ---- elements ----

struct half {
    uint16_t bits;
};
struct brain {
    uint16_t bits;
};

float value(float x)
{
    return x;
}
int32_t value(int32_t x)
{
    return x;
}
int value(int8_t x)
{
    return x;
}
_Float16 value(half x)
{
    _Float16 f;
    memcpy(&f, &x, sizeof f);
    return f;
}
float value(brain x)
{
    const uint32_t wide = static_cast<uint32_t>(x.bits) << 16;
    float f;
    memcpy(&f, &wide, sizeof f);
    return f;
}

void assign(float u, float *x)
{
    *x = u;
}
void assign(float u, int32_t *x)
{
    *x = static_cast<int32_t>(u * 1e8F);
}
void assign(float u, int8_t *x)
{
    *x = static_cast<int8_t>(u * 127);
}
void assign(float u, half *x)
{
    const _Float16 f = static_cast<_Float16>(u);
    memcpy(x, &f, sizeof f);
}
void assign(float u, brain *x)
{
    uint32_t wide;
    memcpy(&wide, &u, sizeof wide);
    x->bits = static_cast<uint16_t>(wide >> 16);
}

stint_topk_type type_of(float)
{
    return STINT_TOPK_F32;
}
stint_topk_type type_of(int32_t)
{
    return STINT_TOPK_I32;
}
stint_topk_type type_of(int8_t)
{
    return STINT_TOPK_I8;
}
stint_topk_type type_of(half)
{
    return STINT_TOPK_F16;
}
stint_topk_type type_of(brain)
{
    return STINT_TOPK_BF16;
}

// ---- inputs ----

float uniform_at(int64_t i)
{
    uint64_t h = (static_cast<uint64_t>(i) + 1) * UINT64_C(0x9E3779B97F4A7C15);
    h = (h ^ h >> 30) * UINT64_C(0xBF58476D1CE4E5B9);
    h = (h ^ h >> 27) * UINT64_C(0x94D049BB133111EB);
    return static_cast<float>(h >> 40) * 0x1p-24F;
}

float order_at(const std::string &order, int64_t i, int64_t n, int64_t k, int64_t seed)
{
    const float u = uniform_at(i + seed);
    const float wave =
        uniform_at(i + seed + 3 * n) + uniform_at(i + seed + 5 * n) + u - 1.5F;
    if (order == "normal")
        return wave;
    if (order == "ascending")
        return static_cast<float>(i) / static_cast<float>(n);
    if (order == "descending")
        return static_cast<float>(n - i) / static_cast<float>(n);
    if (order == "equal")
        return 0.5F;
    if (order == "two")
        return u < 0.5F ? 0.0F : 1.0F;
    if (order == "cluster")
        return i >= n / 3 && i < n / 3 + k ? 1 + u : u;
    if (order == "scattered")
        return i % (n / k) == n / k / 2 ? 1 + u : u;
    if (order == "peak")
        return 1e8F + 10 * wave;
    if (order == "runs")
        return i / 4096 % 64 == 5 ? 1 + u : u;
    return u;
}

template <class T> struct problem {
    std::vector<std::vector<T>> inputs;
    int64_t n, k;
    // outputs, and the memory of those that need some
    std::vector<T> values, copy;
    std::vector<int64_t> index;
    std::vector<uint32_t> places;
    std::vector<size_t> wide_places;
    std::vector<std::pair<T, int32_t>> pairs;
    std::vector<unsigned char> workspace;
    stint_topk_desc desc;
};

template <class T> using way = std::function<void(problem<T> &, const T *)>;

template <class T> void make_inputs(problem<T> &p, const std::string &order)
{
    const int64_t some = std::clamp<int64_t>((1 << 17) / p.n, 1, 16);
    p.inputs.clear();
    for (int64_t j = 0; j < some; j++) {
        std::vector<T> x(static_cast<size_t>(p.n));
        for (int64_t i = 0; i < p.n; i++)
            assign(order_at(order, i, p.n, p.k, 7 * p.n * j),
                   &x[static_cast<size_t>(i)]);
        p.inputs.push_back(std::move(x));
    }
}

// ---- ways ----

template <class T> void by_stint(problem<T> &p, const T *x)
{
    if (stint_topk(&p.desc, x, nullptr, p.index.data(), p.values.data(),
                   p.workspace.data(), p.workspace.size()) != STINT_OK) {
        fprintf(stderr, "%s\n", stint_last_error());
        exit(1);
    }
}

template <class T>
bool before(const std::pair<T, int32_t> &a, const std::pair<T, int32_t> &b)
{
    return value(a.first) > value(b.first);
}

template <class T> void by_pairs(problem<T> &p, const T *x, bool sorted)
{
    for (int64_t i = 0; i < p.n; i++)
        p.pairs[static_cast<size_t>(i)] = {x[i], static_cast<int32_t>(i)};
    if (sorted)
        std::partial_sort(p.pairs.begin(), p.pairs.begin() + p.k, p.pairs.end(),
                          before<T>);
    else
        std::nth_element(p.pairs.begin(), p.pairs.begin() + (p.k - 1), p.pairs.end(),
                         before<T>);
    for (size_t i = 0; i < static_cast<size_t>(p.k); i++) {
        p.values[i] = p.pairs[i].first;
        p.index[i] = p.pairs[i].second;
    }
}

#ifdef WITH_FAISS
void by_heap(problem<float> &p, const float *x)
{
    using C = faiss::CMin<float, int64_t>;
    const size_t k = static_cast<size_t>(p.k);
    faiss::heap_heapify<C>(k, p.values.data(), p.index.data());
    for (int64_t i = 0; i < p.n; i++)
        if (C::cmp(p.values[0], x[i]))
            faiss::heap_replace_top<C>(k, p.values.data(), p.index.data(), x[i], i);
}
#endif

#ifdef WITH_XSS
template <class T> void by_xss_pairs(problem<T> &p, const T *x)
{
    const size_t n = static_cast<size_t>(p.n), k = static_cast<size_t>(p.k);
    std::copy(x, x + n, p.copy.begin());
    std::iota(p.places.begin(), p.places.end(), 0U);
    x86simdsortStatic::keyvalue_select(p.copy.data(), p.places.data(), k - 1, n, false,
                                       true);
    std::copy(p.copy.begin(), p.copy.begin() + p.k, p.values.begin());
    std::copy(p.places.begin(), p.places.begin() + p.k, p.index.begin());
}

template <class T> void by_xss_places(problem<T> &p, const T *x)
{
    const size_t n = static_cast<size_t>(p.n), k = static_cast<size_t>(p.k);
    std::iota(p.wide_places.begin(), p.wide_places.end(), 0);
    x86simdsortStatic::argselect(const_cast<T *>(x), p.wide_places.data(), n - k, n);
    for (size_t i = 0; i < k; i++) {
        p.index[i] = static_cast<int64_t>(p.wide_places[n - k + i]);
        p.values[i] = x[p.index[i]];
    }
}

template <class T, class E> void by_xss_values(problem<T> &p, const T *x)
{
    const size_t n = static_cast<size_t>(p.n), k = static_cast<size_t>(p.k);
    memcpy(static_cast<void *>(p.copy.data()), x, n * sizeof(T));
    x86simdsortStatic::qselect(reinterpret_cast<E *>(p.copy.data()), k - 1, n, false,
                               true);
    std::copy(p.copy.begin(), p.copy.begin() + p.k, p.values.begin());
}
#endif

using named = std::pair<const char *, bool>; // gives indices?

void add_wide(std::vector<std::pair<named, way<float>>> &ways, const problem<float> &p)
{
#ifdef WITH_XSS
    ways.push_back({{"xss keyvalue", true}, by_xss_pairs<float>});
    ways.push_back({{"xss argselect", true}, by_xss_places<float>});
    ways.push_back({{"xss qselect (values only)", false}, by_xss_values<float, float>});
#endif
#ifdef WITH_FAISS
    if (p.k <= p.n / 16)
        ways.push_back({{"faiss heap", true}, by_heap});
#endif
    (void)ways, (void)p;
}

void add_wide(std::vector<std::pair<named, way<int32_t>>> &ways,
              const problem<int32_t> &)
{
#ifdef WITH_XSS
    ways.push_back({{"xss keyvalue", true}, by_xss_pairs<int32_t>});
    ways.push_back({{"xss argselect", true}, by_xss_places<int32_t>});
    ways.push_back(
        {{"xss qselect (values only)", false}, by_xss_values<int32_t, int32_t>});
#endif
    (void)ways;
}

void add_wide(std::vector<std::pair<named, way<half>>> &ways, const problem<half> &)
{
#if defined(WITH_XSS) && defined(__AVX512FP16__)
    ways.push_back(
        {{"xss qselect (values only)", false}, by_xss_values<half, _Float16>});
#endif
    (void)ways;
}

template <class T>
void add_wide(std::vector<std::pair<named, way<T>>> &, const problem<T> &)
{
}

template <class T> std::vector<std::pair<named, way<T>>> ways_of(const problem<T> &p)
{
    std::vector<std::pair<named, way<T>>> ways = {{{"stint", true}, by_stint<T>}};
    ways.push_back({{"nth_element", true},
                    [](problem<T> &q, const T *x) { by_pairs(q, x, false); }});
    if (p.k <= p.n / 16)
        ways.push_back({{"partial_sort", true},
                        [](problem<T> &q, const T *x) { by_pairs(q, x, true); }});
    add_wide(ways, p);
    return ways;
}

// ---- timing ----

double now_s()
{
    return std::chrono::duration<double>(
               std::chrono::steady_clock::now().time_since_epoch())
        .count();
}

template <class T> std::vector<T> sorted_values(const problem<T> &p)
{
    std::vector<T> v = p.values;
    std::sort(v.begin(), v.end(),
              [](const T &a, const T &b) { return value(a) > value(b); });
    return v;
}

template <class T> double time_calls(problem<T> &p, const way<T> &f, int64_t calls)
{
    const double start = now_s();
    for (int64_t c = 0; c < calls; c++)
        f(p, p.inputs[static_cast<size_t>(c) % p.inputs.size()].data());
    return (now_s() - start) / static_cast<double>(calls);
}

template <class T>
void measure(problem<T> &p, const std::string &type, const std::string &order, int runs)
{
    const auto ways = ways_of(p);
    std::vector<double> best(ways.size(), 1e9);
    std::vector<int64_t> calls(ways.size(), 1);
    std::vector<T> want;
    for (int run = -1; run < runs; run++)
        for (size_t w = 0; w < ways.size(); w++) {
            if (run > 0 && best[w] > 10 * best[0])
                continue; // seen enough
            if (run < 0)  // the first call ever is no guide
                time_calls(p, ways[w].second, 2);
            const double s = time_calls(p, ways[w].second, calls[w]);
            if (run >= 0) {
                best[w] = std::min(best[w], s);
                continue;
            }
            time_calls(p, ways[w].second, 1);
            calls[w] =
                std::clamp<int64_t>(static_cast<int64_t>(100e-6 / s) + 1, 1, 4096);
            const std::vector<T> got = sorted_values(p);
            if (w == 0)
                want = got;
            if (memcmp(static_cast<const void *>(got.data()), want.data(),
                       got.size() * sizeof(T)) != 0)
                fprintf(stderr, "%s disagrees at n %ld, k %ld\n", ways[w].first.first,
                        static_cast<long>(p.n), static_cast<long>(p.k));
        }
    for (size_t w = 0; w < ways.size(); w++)
        printf("%s,%s,%ld,%ld,%d,%s,%.3f,%.3f\n", type.c_str(), order.c_str(),
               static_cast<long>(p.n), static_cast<long>(p.k), p.desc.threads,
               ways[w].first.first, best[w] * 1e6, best[w] / best[0]);
    fflush(stdout);
}

template <class T> void make_room(problem<T> &p)
{
    const size_t n = static_cast<size_t>(p.n);
    p.values.assign(static_cast<size_t>(p.k), T());
    p.index.assign(static_cast<size_t>(p.k), 0);
    p.copy.resize(n);
    p.places.resize(n);
    p.wide_places.resize(n);
    p.pairs.resize(n);
    size_t bytes = 0;
    if (stint_topk_workspace_bytes(&p.desc, &bytes) != STINT_OK)
        exit(1);
    p.workspace.assign(bytes, 0);
}

std::vector<std::string> split(const std::string &text)
{
    std::vector<std::string> parts;
    size_t at = 0;
    for (size_t comma; (comma = text.find(',', at)) != std::string::npos;
         at = comma + 1)
        parts.push_back(text.substr(at, comma - at));
    parts.push_back(text.substr(at));
    return parts;
}

template <class T> bool read_file(problem<T> &p, const std::string &path)
{
    std::ifstream file(path, std::ios::binary | std::ios::ate);
    if (!file)
        return false;
    p.n = static_cast<int64_t>(file.tellg()) / static_cast<int64_t>(sizeof(T));
    p.inputs.assign(1, std::vector<T>(static_cast<size_t>(p.n)));
    file.seekg(0);
    file.read(reinterpret_cast<char *>(p.inputs[0].data()),
              static_cast<std::streamsize>(static_cast<size_t>(p.n) * sizeof(T)));
    return true;
}

// Those asked for, or k = 1, 4, 16, ... n / 4 (1, 8, 64, ... for long arrays).
std::vector<int64_t> choose_ks(int64_t n, const char *ks)
{
    std::vector<int64_t> list;
    for (int64_t k = 1; !ks && k <= n / 4; k *= n > 1 << 22 ? 8 : 4)
        list.push_back(k);
    if (ks)
        for (const std::string &k : split(ks))
            list.push_back(std::min<int64_t>(std::stoll(k), n / 4));
    return list;
}

template <class T>
void grid(const std::string &type, const char *sizes, const char *orders, int threads,
          int runs, const char *ks)
{
    stint_topk_costs costs;
    stint_topk_costs_host(&costs);
    problem<T> p;
    for (const std::string &order : split(orders)) {
        const bool file = read_file(p, order);
        for (const std::string &size : split(file ? "0" : sizes)) {
            if (!file)
                p.n = INT64_C(1) << std::stoi(size);
            for (const int64_t k : choose_ks(p.n, ks)) {
                p.k = k;
                if (!file)
                    make_inputs(p, order);
                p.desc = stint_topk_desc();
                p.desc.type = type_of(T());
                p.desc.n = p.n;
                p.desc.k = p.k;
                p.desc.threads = threads;
                p.desc.costs = &costs;
                make_room(p);
                measure(p, type, order, runs);
            }
        }
    }
}

} // namespace

int main(int argc, char **argv)
{
    const std::string type = argc > 1 ? argv[1] : "f32";
    const char *sizes = argc > 2 ? argv[2] : "8,12,16,20,24";
    const char *orders = argc > 3 ? argv[3] : "uniform";
    const int threads = argc > 4 ? atoi(argv[4]) : 1,
              runs = argc > 5 ? atoi(argv[5]) : 7;
    const char *ks = argc > 6 ? argv[6] : nullptr;
    printf("type,order,n,k,threads,who,us,ratio\n");
    if (type == "f32")
        grid<float>(type, sizes, orders, threads, runs, ks);
    else if (type == "i32")
        grid<int32_t>(type, sizes, orders, threads, runs, ks);
    else if (type == "f16")
        grid<half>(type, sizes, orders, threads, runs, ks);
    else if (type == "bf16")
        grid<brain>(type, sizes, orders, threads, runs, ks);
    else if (type == "i8")
        grid<int8_t>(type, sizes, orders, threads, runs, ks);
    else
        return 2;
    return 0;
}
