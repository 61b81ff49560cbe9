// Top-k on a CUDA device, after Dr. Top-k (Gaihre et al., SC'21).
//
// One warp makes the delegate of a block (a shuffle for each halving). Packed elements,
// key << 32 | ~index, are all different, so a radix selection over their bits - 8 of
// them a pass, in place, elements counted only if they match the digits found so far -
// gives a cut with exactly k of them at or above it. The first selection is among
// delegates and chooses k blocks; the second among the elements of those blocks that
// pass the filter. Candidates are appended by integer atomics in any order; the sort at
// the end makes the result the same in every run.
#include "kernel/topk/cuda/topk_cuda.h"

#include <cub/device/device_radix_sort.cuh>
#include <cuda_runtime.h>

namespace
{

constexpr int THREADS = 256, WARP = 32, DIGIT_BITS = 8, DIGITS = 1 << DIGIT_BITS;

struct device_view {
    sti_topk_form form;
    sti_topk_map map;
    const unsigned char *x, *addend;
    int64_t n;
};

struct selection {                  // in device memory
    unsigned long long found, mask; // digits so far, and which bits they are
    unsigned long long wanted;      // rank among the elements that match
    unsigned long long count;       // of candidates, and of winners
};

// ---- keys, as in topk_key.h ----

__device__ uint32_t float_key(uint32_t raw, uint32_t top_bit, const sti_topk_map &m)
{
    const uint32_t ones = (top_bit << 1) - 1;
    const uint32_t b = (raw & m.keep) ^ m.flip;
    const uint32_t sign = (b & top_bit) ? ones : 0;
    const uint32_t u = ((b ^ (sign | top_bit)) + (sign & m.zero) - m.low) & ones;
    return (min(u, m.top) + m.shift) & ones;
}

__device__ uint32_t int_key(uint32_t raw, uint32_t top_bit, const sti_topk_map &m)
{
    const uint32_t ones = (top_bit << 1) - 1;
    const uint32_t turn = (raw & top_bit) ? m.keep : 0;
    return (((raw ^ turn) - turn) & ones) ^ m.flip;
}

__device__ bool is_nan(uint32_t bits)
{
    return (bits & 0x7FFFFFFFu) > 0x7F800000u;
}

// As the host adds: a NaN keeps its bits and becomes quiet, where CUDA has one for all.
__device__ uint32_t sum_bits(uint32_t x, uint32_t addend)
{
    constexpr uint32_t quiet = 0x00400000u;
    constexpr uint32_t invalid = 0xFFC00000u; // infinity - infinity
    if (is_nan(x))
        return x | quiet;
    if (is_nan(addend))
        return addend | quiet;
    const uint32_t sum =
        __float_as_uint(__fadd_rn(__uint_as_float(x), __uint_as_float(addend)));
    return is_nan(sum) ? invalid : sum;
}

__device__ uint32_t bits_at(const device_view &v, int64_t i)
{
    switch (v.form) {
    case STI_TOPK_F16:
    case STI_TOPK_BF16:
        return reinterpret_cast<const uint16_t *>(v.x)[i];
    case STI_TOPK_I8:
        return v.x[i];
    case STI_TOPK_SUM:
        return sum_bits(reinterpret_cast<const uint32_t *>(v.x)[i],
                        reinterpret_cast<const uint32_t *>(v.addend)[i]);
    default:
        return reinterpret_cast<const uint32_t *>(v.x)[i];
    }
}

__device__ uint32_t key_at(const device_view &v, int64_t i)
{
    const uint32_t raw = bits_at(v, i);
    switch (v.form) {
    case STI_TOPK_F16:
    case STI_TOPK_BF16:
        return float_key(raw, 0x8000u, v.map);
    case STI_TOPK_I32:
        return int_key(raw, 0x80000000u, v.map);
    case STI_TOPK_I8:
        return int_key(raw, 0x80u, v.map);
    case STI_TOPK_KEYS:
        return raw;
    default:
        return float_key(raw, 0x80000000u, v.map);
    }
}

__device__ unsigned long long pack(uint32_t key, int64_t index)
{
    return static_cast<unsigned long long>(key) << 32 |
           static_cast<uint32_t>(~static_cast<uint32_t>(index));
}

__device__ int64_t packed_index(unsigned long long packed)
{
    return static_cast<uint32_t>(~static_cast<uint32_t>(packed));
}

// ---- delegates ----

__global__ void make_delegates(device_view v, int a, int64_t blocks,
                               unsigned long long *delegates)
{
    const int64_t warp = (blockIdx.x * int64_t{THREADS} + threadIdx.x) / WARP;
    const int64_t step = gridDim.x * int64_t{THREADS} / WARP;
    const int lane = threadIdx.x % WARP;
    for (int64_t s = warp; s < blocks; s += step) {
        const int64_t begin = s << a, end = min((s + 1) << a, v.n);
        uint32_t best = 0;
        for (int64_t i = begin + lane; i < end; i += WARP)
            best = max(best, key_at(v, i));
        for (int offset = WARP / 2; offset > 0; offset /= 2)
            best = max(best, __shfl_down_sync(0xFFFFFFFFu, best, offset));
        if (lane == 0)
            delegates[s] = pack(best, s);
    }
}

// ---- radix selection in place ----

__global__ void begin_selection(selection *state, unsigned long long k)
{
    *state = {0, 0, k, 0};
}

__global__ void count_digits(const unsigned long long *x, int64_t count,
                             const selection *state, int shift, unsigned *counts)
{
    __shared__ unsigned own[DIGITS];
    for (int d = threadIdx.x; d < DIGITS; d += THREADS)
        own[d] = 0;
    __syncthreads();
    const unsigned long long found = state->found, mask = state->mask;
    const int64_t step = gridDim.x * int64_t{THREADS};
    for (int64_t i = blockIdx.x * int64_t{THREADS} + threadIdx.x; i < count; i += step)
        if ((x[i] & mask) == found)
            atomicAdd(&own[x[i] >> shift & (DIGITS - 1)], 1u);
    __syncthreads();
    for (int d = threadIdx.x; d < DIGITS; d += THREADS)
        if (own[d] > 0)
            atomicAdd(&counts[d], own[d]);
}

// The digit where the running count from above reaches the rank; clears the counts.
__global__ void choose_digit(selection *state, int shift, unsigned *counts)
{
    if (threadIdx.x == 0) {
        int digit = DIGITS - 1;
        while (state->wanted > counts[digit])
            state->wanted -= counts[digit--];
        state->found |= static_cast<unsigned long long>(digit) << shift;
        state->mask |= static_cast<unsigned long long>(DIGITS - 1) << shift;
    }
    __syncthreads();
    for (int d = threadIdx.x; d < DIGITS; d += THREADS)
        counts[d] = 0;
}

// ---- candidates and winners ----

// One thread block for a chosen block of elements at a time.
__global__ void filter_blocks(device_view v, int a, int64_t blocks,
                              const unsigned long long *delegates, selection *state,
                              unsigned long long *candidates)
{
    const unsigned long long cut = state->found;
    const uint32_t least = static_cast<uint32_t>(cut >> 32);
    for (int64_t s = blockIdx.x; s < blocks; s += gridDim.x) {
        if (delegates[s] < cut)
            continue;
        const int64_t begin = s << a, end = min((s + 1) << a, v.n);
        for (int64_t i = begin + threadIdx.x; i < end; i += THREADS) {
            const uint32_t key = key_at(v, i);
            if (key >= least)
                candidates[atomicAdd(&state->count, 1ull)] = pack(key, i);
        }
    }
}

__global__ void pack_all(device_view v, unsigned long long *candidates)
{
    const int64_t step = gridDim.x * int64_t{THREADS};
    for (int64_t i = blockIdx.x * int64_t{THREADS} + threadIdx.x; i < v.n; i += step)
        candidates[i] = pack(key_at(v, i), i);
}

__global__ void keep_winners(const unsigned long long *candidates, int64_t count,
                             selection *state, bool by_index,
                             unsigned long long *winners)
{
    const unsigned long long cut = state->found;
    const int64_t step = gridDim.x * int64_t{THREADS};
    for (int64_t i = blockIdx.x * int64_t{THREADS} + threadIdx.x; i < count;
         i += step) {
        const unsigned long long one = candidates[i];
        if (one >= cut) // by index: the low half, ~index, is what is sorted by
            winners[atomicAdd(&state->count, 1ull)] =
                by_index ? one & 0xFFFFFFFFull : one;
    }
}

__global__ void give_winners(device_view v, const unsigned long long *winners,
                             int64_t k, int64_t *index_out, void *value_out)
{
    const int64_t step = gridDim.x * int64_t{THREADS};
    for (int64_t j = blockIdx.x * int64_t{THREADS} + threadIdx.x; j < k; j += step) {
        const int64_t i = packed_index(winners[j]);
        index_out[j] = i;
        if (!value_out)
            continue;
        const uint32_t raw = bits_at(v, i);
        if (v.form == STI_TOPK_I8)
            static_cast<uint8_t *>(value_out)[j] = static_cast<uint8_t>(raw);
        else if (v.form == STI_TOPK_F16 || v.form == STI_TOPK_BF16)
            static_cast<uint16_t *>(value_out)[j] = static_cast<uint16_t>(raw);
        else
            static_cast<uint32_t *>(value_out)[j] = raw;
    }
}

// ---- host ----

struct layout {
    int a; // block exponent; 0: no delegates
    int64_t blocks, candidates;
    size_t sort_bytes, state, counts, delegates, candidate, winners, sorted, sort,
        total;
};

// The paper's rule 4, a = (log2 n - log2 k + 3) / 2, of whole warps.
int choose_exponent(int64_t n, int64_t k)
{
    int a = 0;
    for (int64_t ratio = n / k; ratio > 1; ratio /= 2)
        a++;
    a = (a + 3) / 2;
    a = a < 5 ? 5 : a > 15 ? 15 : a;
    return k < n >> a ? a : 0;
}

size_t place(size_t *at, size_t bytes)
{
    const size_t here = *at;
    *at = (here + bytes + 255) / 256 * 256;
    return here;
}

layout make_layout(int64_t n, int64_t k)
{
    layout l = {};
    size_t at = 0;
    l.a = choose_exponent(n, k);
    l.blocks = l.a ? (n + (int64_t{1} << l.a) - 1) >> l.a : 0;
    l.candidates = l.a ? min(k << l.a, n) : n;
    cub::DeviceRadixSort::SortKeysDescending(
        nullptr, l.sort_bytes, static_cast<const unsigned long long *>(nullptr),
        static_cast<unsigned long long *>(nullptr), k);
    l.state = place(&at, sizeof(selection));
    l.counts = place(&at, DIGITS * sizeof(unsigned));
    l.delegates = place(&at, static_cast<size_t>(l.blocks) * 8);
    l.candidate = place(&at, static_cast<size_t>(l.candidates) * 8);
    l.winners = place(&at, static_cast<size_t>(k) * 8);
    l.sorted = place(&at, static_cast<size_t>(k) * 8);
    l.sort = place(&at, l.sort_bytes);
    l.total = at;
    return l;
}

int grid_for(int64_t items)
{
    const int64_t blocks = (items + THREADS - 1) / THREADS;
    return static_cast<int>(blocks < 4096 ? blocks : 4096);
}

void select_cut(const unsigned long long *x, int64_t count, int64_t k, selection *state,
                unsigned *counts)
{
    begin_selection<<<1, 1>>>(state, static_cast<unsigned long long>(k));
    for (int shift = 64 - DIGIT_BITS; shift >= 0; shift -= DIGIT_BITS) {
        count_digits<<<grid_for(count), THREADS>>>(x, count, state, shift, counts);
        choose_digit<<<1, THREADS>>>(state, shift, counts);
    }
}

} // namespace

extern "C" int sti_topk_cuda_devices(void)
{
    int count = 0;
    return cudaGetDeviceCount(&count) == cudaSuccess ? count : 0;
}

extern "C" size_t sti_topk_cuda_scratch_bytes(const sti_topk_view *view, int64_t k)
{
    return make_layout(view->n, k).total;
}

extern "C" const char *sti_topk_cuda(const sti_topk_view *view, int64_t k, bool sorted,
                                     int64_t *index_out, void *value_out, void *scratch)
{
    const layout l = make_layout(view->n, k);
    char *base = static_cast<char *>(scratch);
    const device_view v = {view->form, view->map, view->x, view->addend, view->n};
    selection *state = reinterpret_cast<selection *>(base + l.state);
    unsigned *counts = reinterpret_cast<unsigned *>(base + l.counts);
    auto *delegates = reinterpret_cast<unsigned long long *>(base + l.delegates);
    auto *candidates = reinterpret_cast<unsigned long long *>(base + l.candidate);
    auto *winners = reinterpret_cast<unsigned long long *>(base + l.winners);
    auto *ordered = reinterpret_cast<unsigned long long *>(base + l.sorted);
    unsigned long long count = static_cast<unsigned long long>(l.candidates);
    cudaMemsetAsync(counts, 0, DIGITS * sizeof(unsigned));
    if (l.a) {
        make_delegates<<<grid_for(l.blocks * WARP), THREADS>>>(v, l.a, l.blocks,
                                                               delegates);
        select_cut(delegates, l.blocks, k, state, counts);
        const int grid = static_cast<int>(l.blocks < 65535 ? l.blocks : 65535);
        filter_blocks<<<grid, THREADS>>>(v, l.a, l.blocks, delegates, state,
                                         candidates);
        cudaMemcpy(&count, &state->count, sizeof count, cudaMemcpyDeviceToHost);
    } else {
        pack_all<<<grid_for(v.n), THREADS>>>(v, candidates);
    }
    select_cut(candidates, static_cast<int64_t>(count), k, state, counts);
    keep_winners<<<grid_for(static_cast<int64_t>(count)), THREADS>>>(
        candidates, static_cast<int64_t>(count), state, !sorted, winners);
    size_t sort_bytes = l.sort_bytes;
    cub::DeviceRadixSort::SortKeysDescending(base + l.sort, sort_bytes, winners,
                                             ordered, k);
    give_winners<<<grid_for(k), THREADS>>>(v, ordered, k, index_out, value_out);
    cudaError_t error = cudaGetLastError();
    if (error == cudaSuccess)
        error = cudaDeviceSynchronize();
    return error == cudaSuccess ? nullptr : cudaGetErrorString(error);
}

namespace
{

// Device memory that is given back at the end of a scope; NULL if there is none.
struct device_block {
    void *at = nullptr;
    explicit device_block(size_t bytes)
    {
        if (cudaMalloc(&at, bytes > 0 ? bytes : 1) != cudaSuccess) {
            cudaGetLastError(); // or the next call would take it for its own
            at = nullptr;
        }
    }
    ~device_block()
    {
        cudaFree(at);
    }
    device_block(const device_block &) = delete;
    device_block &operator=(const device_block &) = delete;
};

size_t element_bytes(sti_topk_form form)
{
    return form == STI_TOPK_I8                             ? 1
           : form == STI_TOPK_F16 || form == STI_TOPK_BF16 ? 2
                                                           : 4;
}

} // namespace

extern "C" const char *sti_topk_cuda_host(const sti_topk_view *view, int64_t k,
                                          bool sorted, int64_t *index_out,
                                          void *value_out)
{
    const size_t bytes = element_bytes(view->form),
                 all = static_cast<size_t>(view->n) * bytes;
    const size_t some = static_cast<size_t>(k);
    device_block x(all), addend(view->addend ? all : 0), index(some * 8);
    device_block values(some * bytes), scratch(sti_topk_cuda_scratch_bytes(view, k));
    if (!x.at || !addend.at || !index.at || !values.at || !scratch.at)
        return "not enough device memory";
    sti_topk_view on_device = *view;
    on_device.x = static_cast<const unsigned char *>(x.at);
    cudaMemcpy(x.at, view->x, all, cudaMemcpyHostToDevice);
    if (view->addend) {
        on_device.addend = static_cast<const unsigned char *>(addend.at);
        cudaMemcpy(addend.at, view->addend, all, cudaMemcpyHostToDevice);
    }
    const char *error = sti_topk_cuda(
        &on_device, k, sorted, static_cast<int64_t *>(index.at), values.at, scratch.at);
    if (error)
        return error;
    cudaMemcpy(index_out, index.at, some * 8, cudaMemcpyDeviceToHost);
    if (value_out)
        cudaMemcpy(value_out, values.at, some * bytes, cudaMemcpyDeviceToHost);
    const cudaError_t status = cudaGetLastError();
    return status == cudaSuccess ? nullptr : cudaGetErrorString(status);
}
