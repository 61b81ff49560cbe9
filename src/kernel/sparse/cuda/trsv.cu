// Triangular solves on a CUDA device; see trsv_cuda.h.
#include "kernel/sparse/cuda/trsv_cuda.h"

#include <cfloat>
#include <cstdlib>
#include <cstring>
#include <new>
#include <vector>

#include <cuda/atomic>

namespace
{

constexpr int THREADS = 128;

template <typename REAL> struct bits_of;
template <> struct bits_of<double> {
    using type = unsigned long long;
    static constexpr type absent = 0x7ff0dead0000beefULL;
};
template <> struct bits_of<float> {
    using type = unsigned;
    static constexpr type absent = 0x7f80beefU;
};

struct triangle {
    int n;
    const int *start, *column, *place;
    const void *value, *diagonal; // diagonal NULL: ones
};

// The compiler flushes floats; a double it would keep. A number that nothing was done
// with stays as it is, as on the host.
__device__ double flush(double x)
{
    return fabs(x) < DBL_MIN ? copysign(0.0, x) : x;
}

__device__ float multiply_add(float a, float x, float sum)
{
    return __fmaf_rn(a, x, sum);
}

__device__ double multiply_add(double a, double x, double sum)
{
    return flush(__fma_rn(flush(a), flush(x), flush(sum)));
}

__device__ float divide(float a, float b)
{
    return __fdiv_rn(a, b);
}

__device__ double divide(double a, double b)
{
    return flush(__ddiv_rn(flush(a), b));
}

__device__ double from_bits(unsigned long long bits)
{
    return __longlong_as_double(static_cast<long long>(bits));
}

__device__ float from_bits(unsigned bits)
{
    return __uint_as_float(bits);
}

__device__ unsigned long long to_bits(double x)
{
    return static_cast<unsigned long long>(__double_as_longlong(x));
}

__device__ unsigned to_bits(float x)
{
    return __float_as_uint(x);
}

template <typename REAL>
__global__ void forget(int n, typename bits_of<REAL>::type *own)
{
    const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
    if (i < n)
        own[i] = bits_of<REAL>::absent;
}

// No lane of a warp stands still for another: each looks again and again, and the store
// of one that is done comes before the next look of the others.
template <typename REAL>
__global__ void solve_rows(triangle t, const REAL *b, typename bits_of<REAL>::type *own,
                           REAL *x, unsigned *ticket)
{
    using bits = typename bits_of<REAL>::type;
    __shared__ unsigned block;
    if (threadIdx.x == 0)
        block = atomicAdd(ticket, 1);
    __syncthreads();
    const int i = static_cast<int>(block * blockDim.x + threadIdx.x);
    if (i >= t.n)
        return;
    const REAL *value = static_cast<const REAL *>(t.value);
    const REAL *diagonal = static_cast<const REAL *>(t.diagonal);
    const int stop = t.start[i + 1];
    int e = t.start[i];
    REAL sum = b[t.place[i]];
    for (bool done = false; !done;) {
        while (e < stop) {
            const cuda::atomic_ref<bits, cuda::thread_scope_device> other(
                own[t.column[e]]);
            const bits got = other.load(cuda::memory_order_relaxed);
            if (got == bits_of<REAL>::absent)
                break;
            sum = multiply_add(value[e], from_bits(got), sum);
            e++;
        }
        if (e == stop) {
            if (diagonal)
                sum = divide(sum, diagonal[i]);
            cuda::atomic_ref<bits, cuda::thread_scope_device> mine(own[i]);
            mine.store(to_bits(sum), cuda::memory_order_relaxed);
            x[t.place[i]] = sum;
            done = true;
        }
    }
}

// Device memory that is given back with its owner.
struct device_block {
    void *at = nullptr;
    device_block() = default;
    ~device_block()
    {
        cudaFree(at);
    }
    device_block(const device_block &) = delete;
    device_block &operator=(const device_block &) = delete;
    bool take(size_t bytes)
    {
        return cudaMalloc(&at, bytes > 0 ? bytes : 1) == cudaSuccess;
    }
    template <typename T> bool put(const std::vector<T> &from)
    {
        const size_t bytes = from.size() * sizeof(T);
        return take(bytes) && cudaMemcpy(at, from.data(), bytes,
                                         cudaMemcpyHostToDevice) == cudaSuccess;
    }
};

const char *last_error()
{
    const cudaError_t error = cudaGetLastError();
    return error == cudaSuccess ? "not enough device memory"
                                : cudaGetErrorString(error);
}

// Entry k of row i in the order of substitution.
int64_t entry_at(const sti_sparse_natural *t, int64_t i, int64_t k)
{
    return t->upper ? t->start[i + 1] - 1 - k : t->start[i] + k;
}

// Rows by level, those of a level as substitution comes to them.
std::vector<int> level_order(const sti_sparse_natural *t)
{
    const size_t n = static_cast<size_t>(t->n);
    std::vector<int> level(n), at(n + 1), order(n);
    for (int64_t p = 0; p < t->n; p++) {
        const int64_t i = t->upper ? t->n - 1 - p : p;
        int above = -1;
        for (int64_t k = 0; k < t->count[i]; k++) {
            const int other = level[static_cast<size_t>(t->column[entry_at(t, i, k)])];
            above = other > above ? other : above;
        }
        level[static_cast<size_t>(i)] = above + 1;
        at[static_cast<size_t>(above) + 2]++;
    }
    for (size_t l = 0; l < n; l++)
        at[l + 1] += at[l];
    for (int64_t p = 0; p < t->n; p++) {
        const int i = static_cast<int>(t->upper ? t->n - 1 - p : p);
        order[static_cast<size_t>(
            at[static_cast<size_t>(level[static_cast<size_t>(i)])]++)] = i;
    }
    return order;
}

} // namespace

struct sti_trsv_cuda {
    int n = 0;
    bool single = false, unit = false;
    device_block start, column, place, value, diagonal, b, x, own, ticket;
};

namespace
{

// The copy in the order of levels, values negated.
template <typename REAL>
bool copy_rows(const sti_sparse_natural *t, sti_trsv_cuda *plan)
{
    const std::vector<int> order = level_order(t);
    const REAL *from = static_cast<const REAL *>(t->value);
    std::vector<int> position(order.size()), start(1, 0), column;
    std::vector<REAL> value, diagonal;
    size_t entries = 0;
    for (int64_t i = 0; i < t->n; i++)
        entries += static_cast<size_t>(t->count[i]);
    column.reserve(entries);
    value.reserve(entries);
    start.reserve(order.size() + 1);
    if (!t->unit)
        diagonal.reserve(order.size());
    for (size_t p = 0; p < order.size(); p++)
        position[static_cast<size_t>(order[p])] = static_cast<int>(p);
    for (const int i : order) {
        for (int64_t k = 0; k < t->count[i]; k++) {
            const int64_t e = entry_at(t, i, k);
            column.push_back(position[static_cast<size_t>(t->column[e])]);
            value.push_back(-from[e]);
        }
        start.push_back(static_cast<int>(column.size()));
        if (!t->unit)
            diagonal.push_back(from[entry_at(t, i, t->count[i])]);
    }
    return plan->start.put(start) && plan->column.put(column) &&
           plan->place.put(order) && plan->value.put(value) &&
           plan->diagonal.put(diagonal);
}

template <typename REAL> void launch(sti_trsv_cuda *plan)
{
    using bits = typename bits_of<REAL>::type;
    const unsigned blocks = static_cast<unsigned>((plan->n + THREADS - 1) / THREADS);
    const triangle t = {plan->n,
                        static_cast<const int *>(plan->start.at),
                        static_cast<const int *>(plan->column.at),
                        static_cast<const int *>(plan->place.at),
                        plan->value.at,
                        plan->unit ? nullptr : plan->diagonal.at};
    bits *own = static_cast<bits *>(plan->own.at);
    unsigned *ticket = static_cast<unsigned *>(plan->ticket.at);
    cudaMemsetAsync(ticket, 0, sizeof *ticket);
    forget<REAL><<<blocks, THREADS>>>(plan->n, own);
    solve_rows<REAL><<<blocks, THREADS>>>(t, static_cast<const REAL *>(plan->b.at), own,
                                          static_cast<REAL *>(plan->x.at), ticket);
}

} // namespace

extern "C" int sti_trsv_cuda_devices(void)
{
    int count = 0;
    if (cudaGetDeviceCount(&count) != cudaSuccess) {
        cudaGetLastError(); // or the next call would take it for its own
        return 0;
    }
    return count;
}

namespace
{

const char *create(const sti_sparse_natural *t, bool single, sti_trsv_cuda *plan)
{
    const size_t bytes = static_cast<size_t>(t->n) * (single ? 4 : 8);
    plan->n = static_cast<int>(t->n);
    plan->single = single;
    plan->unit = t->unit;
    const bool copied = single ? copy_rows<float>(t, plan) : copy_rows<double>(t, plan);
    return copied && plan->b.take(bytes) && plan->x.take(bytes) &&
                   plan->own.take(bytes) && plan->ticket.take(sizeof(unsigned))
               ? nullptr
               : last_error();
}

} // namespace

// No exception leaves for C: the copy in the order of levels is made in host memory.
extern "C" const char *sti_trsv_cuda_create(const sti_sparse_natural *t, bool single,
                                            sti_trsv_cuda **plan_out)
{
    const char *error = "not enough memory";
    sti_trsv_cuda *plan = new (std::nothrow) sti_trsv_cuda;
    if (!plan)
        return error;
    try {
        error = create(t, single, plan);
    } catch (const std::bad_alloc &) {
    }
    if (error)
        delete plan;
    else
        *plan_out = plan;
    return error;
}

extern "C" void sti_trsv_cuda_destroy(sti_trsv_cuda *plan)
{
    delete plan;
}

extern "C" const char *sti_trsv_cuda_solve(sti_trsv_cuda *plan, const void *b, void *x,
                                           double *seconds_out)
{
    const size_t bytes = static_cast<size_t>(plan->n) * (plan->single ? 4 : 8);
    cudaEvent_t begun, ended;
    float ms = 0;
    if (plan->n == 0)
        return nullptr;
    cudaEventCreate(&begun);
    cudaEventCreate(&ended);
    cudaMemcpy(plan->b.at, b, bytes, cudaMemcpyHostToDevice);
    cudaEventRecord(begun);
    if (plan->single)
        launch<float>(plan);
    else
        launch<double>(plan);
    cudaEventRecord(ended);
    cudaMemcpy(x, plan->x.at, bytes, cudaMemcpyDeviceToHost);
    cudaEventElapsedTime(&ms, begun, ended);
    cudaEventDestroy(begun);
    cudaEventDestroy(ended);
    if (seconds_out)
        *seconds_out = static_cast<double>(ms) * 1e-3;
    const cudaError_t error = cudaGetLastError();
    return error == cudaSuccess ? nullptr : cudaGetErrorString(error);
}

namespace
{

// A system of one row in both precisions: contexts and kernels take what they take of
// the host's memory at their first use.
const char *begin()
{
    const int64_t start[2] = {0, 1};
    const int32_t column[1] = {0}, count[1] = {0};
    const double wide = 1;
    const float narrow = 1;
    for (int single = 0; single < 2; single++) {
        sti_sparse_natural t = {};
        double x = 0;
        sti_trsv_cuda *plan = nullptr;
        t.n = 1;
        t.start = start;
        t.column = column;
        t.count = count;
        t.value = single ? static_cast<const void *>(&narrow) : &wide;
        const char *error = sti_trsv_cuda_create(&t, single != 0, &plan);
        if (!error)
            error = sti_trsv_cuda_solve(plan, &x, &x, nullptr);
        sti_trsv_cuda_destroy(plan);
        if (error)
            return error;
    }
    return nullptr;
}

} // namespace

extern "C" __attribute__((visibility("default")))
const sti_trsv_cuda_plugin stint_trsv_device = {
    STI_TRSV_CUDA_PLUGIN, sti_trsv_cuda_devices, begin,
    sti_trsv_cuda_create, sti_trsv_cuda_destroy, sti_trsv_cuda_solve};
