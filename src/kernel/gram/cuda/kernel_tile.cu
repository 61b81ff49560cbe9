// Kernel tiles on a CUDA device.
//
// For one band of rows after another: its tiles are made, 64 x 64 of one a block of
// threads, into memory for a band; then used against all vectors; then forgotten. Every
// sum has the order that gram.h and its loops on the CPU give it: u.v is one chain of
// fused multiply-adds in ascending order of the column, a row of a tile meets a vector
// in eight lanes, a column in one chain. exp and tanh are the CPU's own text.
#include "kernel/gram/cuda/kernel_tile_cuda.h"

#include <cfloat>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <new>

#include <cuda_runtime.h>

// The functions of these headers are for the device here; nvcc has no other way to say
// so than the word before each of them. What they include was included above.
#define inline __device__ inline
#include "kernel/maths/maths.h"
#include "kernel/maths/maths_f64.h"
#undef inline

namespace
{

constexpr int TILE = STI_GRAM_TILE; // from row to row of a tile
constexpr int PART = 64, DEPTH = 16, EDGE = 16, EACH = PART / EDGE;
constexpr int THREADS = 256, LANES = 8, ROWS = THREADS / LANES;

using band = sti_kernel_tile_band;

// What kernels know of the problem; pointers are device memory.
struct view {
    sti_gram_function function;
    const double *rows, *term;   // [rows, columns], [rows]
    const band *bands;           // of the rows selected
    double *x, *y;               // [vectors, n]
    double *part;                // [bands, vectors, TILE] of the band at work
    void *tiles;                 // [bands, TILE, TILE] likewise
    int64_t n, columns, vectors; // n: rows selected
};

// ---- numbers ----

__device__ double fused(double a, double b, double c)
{
    return fma(a, b, c);
}

__device__ float fused(float a, float b, float c)
{
    return fmaf(a, b, c);
}

__device__ double exp_of(double x)
{
    return sti_exp_f64(x);
}

__device__ float exp_of(float x)
{
    return sti_exp_f32(x);
}

__device__ double tanh_of(double x)
{
    return sti_tanh_f64(x);
}

__device__ float tanh_of(float x)
{
    return sti_tanh_f32(x);
}

// Zero of its sign for a denormal: floats are flushed by the compiler, doubles never.
__device__ double flush(double x)
{
    return fabs(x) < DBL_MIN ? copysign(0.0, x) : x;
}

// ---- tiles ----

template <typename T>
__device__ T finish(const sti_gram_function &f, double u_term, double v_term, T value)
{
    const T gamma = static_cast<T>(f.gamma), coef0 = static_cast<T>(f.coef0);
    if (f.kind == STI_GRAM_RBF) {
        const T apart =
            fused(static_cast<T>(-2), value, static_cast<T>(u_term + v_term));
        return exp_of(-gamma * (apart > 0 ? apart : 0));
    }
    if (f.kind == STI_GRAM_SIGMOID)
        return tanh_of(fused(gamma, value, coef0));
    if (f.kind != STI_GRAM_POLYNOMIAL)
        return value;
    T result = 1, square = fused(gamma, value, coef0);
    for (int64_t exponent = f.degree; exponent > 0; exponent /= 2) {
        if (exponent % 2 == 1)
            result *= square;
        square *= square;
    }
    return result;
}

// PART rows of a band, from `from` on, columns [k, k + depth), into side[column][row].
// Rows that are not there count as zeros, which nobody reads.
template <typename T>
__device__ void load_side(const view &v, band rows, int64_t from, int64_t k, int depth,
                          T side[DEPTH][PART + 1])
{
    for (int e = threadIdx.x; e < PART * DEPTH; e += THREADS) {
        const int r = e / DEPTH, c = e % DEPTH;
        const bool there = from + r < rows.count && c < depth;
        side[c][r] =
            there ? static_cast<T>(v.rows[(rows.begin + from + r) * v.columns + k + c])
                  : static_cast<T>(0);
    }
}

// Block (x, y, z): part (x, y) of tile (row, z).
template <typename T> __global__ void make_tiles(view v, int64_t row)
{
    __shared__ T left[DEPTH][PART + 1], right[DEPTH][PART + 1];
    const band u = v.bands[row], w = v.bands[blockIdx.z];
    const int64_t from = blockIdx.y * PART, across = blockIdx.x * PART;
    const int i0 = threadIdx.x / EDGE, j0 = threadIdx.x % EDGE;
    T sum[EACH][EACH] = {};
    for (int64_t k = 0; k < v.columns; k += DEPTH) {
        const int depth =
            static_cast<int>(v.columns - k < DEPTH ? v.columns - k : DEPTH);
        load_side(v, u, from, k, depth, left);
        load_side(v, w, across, k, depth, right);
        __syncthreads();
        for (int c = 0; c < depth; c++)
            for (int i = 0; i < EACH; i++)
                for (int j = 0; j < EACH; j++)
                    sum[i][j] = fused(left[c][i0 + i * EDGE], right[c][j0 + j * EDGE],
                                      sum[i][j]);
        __syncthreads();
    }
    T *tile = static_cast<T *>(v.tiles) + blockIdx.z * int64_t(TILE) * TILE;
    for (int i = 0; i < EACH; i++)
        for (int j = 0; j < EACH; j++) {
            const int64_t r = from + i0 + i * EDGE, c = across + j0 + j * EDGE;
            if (r < u.count && c < w.count)
                tile[r * TILE + c] = finish(v.function, v.term[u.begin + r],
                                            v.term[w.begin + c], sum[i][j]);
        }
}

// ---- their products ----

// Block (x, y, z): ROWS rows from x * ROWS of tile (row, y) times vector z, eight lanes
// a row.
template <typename T> __global__ void multiply_rows(view v, int64_t row)
{
    const band u = v.bands[row], w = v.bands[blockIdx.y];
    const int64_t r = blockIdx.x * ROWS + threadIdx.x / LANES;
    const int lane = threadIdx.x % LANES;
    const int64_t even = w.count / LANES * LANES;
    const T *at = static_cast<const T *>(v.tiles) + blockIdx.y * int64_t(TILE) * TILE +
                  (r < u.count ? r : 0) * TILE;
    const double *x = v.x + blockIdx.z * v.n + w.at;
    double sum = 0;
    for (int64_t j = lane; j < even; j += LANES)
        sum = flush(fma(static_cast<double>(at[j]), x[j], sum));
    for (int apart = LANES / 2; apart > 0; apart /= 2)
        sum = flush(sum + __shfl_down_sync(~0U, sum, apart, LANES));
    if (lane > 0 || r >= u.count)
        return;
    for (int64_t j = even; j < w.count; j++)
        sum = flush(fma(static_cast<double>(at[j]), x[j], sum));
    v.part[(blockIdx.y * v.vectors + blockIdx.z) * TILE + r] = sum;
}

// Thread c of block (., y, z): column c of tile (row, y), below the diagonal, times the
// band's part of vector z, added to the result there.
template <typename T> __global__ void multiply_columns(view v, int64_t row)
{
    const band u = v.bands[row], w = v.bands[blockIdx.y];
    const int64_t c = threadIdx.x;
    if (c >= w.count)
        return;
    const T *at =
        static_cast<const T *>(v.tiles) + blockIdx.y * int64_t(TILE) * TILE + c;
    const double *x = v.x + blockIdx.z * v.n + u.at;
    double *y = v.y + blockIdx.z * v.n + w.at + c, sum = *y;
    for (int64_t r = 0; r < u.count; r++)
        sum = flush(fma(x[r], static_cast<double>(at[r * TILE]), sum));
    *y = sum;
}

// Thread r of block (., y): row r of the band, vector y: what its tiles gave, from left
// to right.
__global__ void join(view v, int64_t row)
{
    const band u = v.bands[row];
    const int64_t r = threadIdx.x;
    if (r >= u.count)
        return;
    double *y = v.y + blockIdx.y * v.n + u.at + r, sum = *y;
    for (int64_t j = 0; j <= row; j++)
        sum = flush(sum + v.part[(j * v.vectors + blockIdx.y) * TILE + r]);
    *y = sum;
}

// Denormals of what comes in count as zeros.
__global__ void flush_all(double *values, int64_t count)
{
    const int64_t i = int64_t(blockIdx.x) * THREADS + threadIdx.x;
    if (i < count)
        values[i] = flush(values[i]);
}

// ---- one band ----

template <typename T> void run_band(const view &v, int64_t row, unsigned vectors)
{
    const unsigned tiles = static_cast<unsigned>(row) + 1, parts = TILE / PART;
    make_tiles<T><<<dim3(parts, parts, tiles), THREADS>>>(v, row);
    multiply_rows<T><<<dim3(TILE / ROWS, tiles, vectors), THREADS>>>(v, row);
    if (row > 0)
        multiply_columns<T><<<dim3(1, tiles - 1, vectors), TILE>>>(v, row);
    join<<<dim3(1, vectors), TILE>>>(v, row);
}

const char *words_of(cudaError_t error)
{
    return error == cudaSuccess ? nullptr : cudaGetErrorString(error);
}

} // namespace

struct sti_kernel_tile_cuda {
    view v;
    band *bands;                              // v.bands
    int64_t places, most_bands, most_vectors; // room
    int64_t band_count;                       // selected
};

namespace
{

// Device memory for `count` values of `bytes` each; fails once for all.
void take(cudaError_t &error, int64_t count, size_t bytes, void **out)
{
    *out = nullptr;
    if (error == cudaSuccess)
        error = cudaMalloc(out, static_cast<size_t>(count > 0 ? count : 1) * bytes);
}

void take_doubles(cudaError_t &error, int64_t count, double **out)
{
    void *at;
    take(error, count, sizeof(double), &at);
    *out = static_cast<double *>(at);
}

// The rows and their terms.
cudaError_t bring(const sti_gram_rows *from, view &v)
{
    cudaError_t error = cudaSuccess;
    double *rows, *term;
    take_doubles(error, from->rows * v.columns, &rows);
    v.rows = rows;
    take_doubles(error, from->rows, &term);
    v.term = term;
    if (error == cudaSuccess)
        error = cudaMemcpy(rows, from->dense,
                           sizeof(double) * size_t(from->rows * v.columns),
                           cudaMemcpyHostToDevice);
    if (error == cudaSuccess)
        error = cudaMemcpy(term, from->term, sizeof(double) * size_t(from->rows),
                           cudaMemcpyHostToDevice);
    return error;
}

int devices()
{
    int count = 0;
    return cudaGetDeviceCount(&count) == cudaSuccess ? count : 0;
}

void destroy(sti_kernel_tile_cuda *t)
{
    if (!t)
        return;
    cudaFree(const_cast<double *>(t->v.rows));
    cudaFree(const_cast<double *>(t->v.term));
    cudaFree(t->bands);
    cudaFree(t->v.x);
    cudaFree(t->v.y);
    cudaFree(t->v.part);
    cudaFree(t->v.tiles);
    delete t;
}

const char *create(const sti_kernel_tile_cuda_desc *d, sti_kernel_tile_cuda **tiles_out)
{
    sti_kernel_tile_cuda *t = new (std::nothrow) sti_kernel_tile_cuda();
    if (!t)
        return "not enough memory";
    view &v = t->v;
    void *bands;
    v.function = d->function;
    v.columns = d->rows->columns;
    t->places = d->places;
    t->most_bands = d->bands;
    t->most_vectors = v.vectors = d->vectors;
    cudaError_t error = bring(d->rows, v);
    take(error, d->bands, sizeof(band), &bands);
    v.bands = t->bands = static_cast<band *>(bands);
    take_doubles(error, d->vectors * d->places, &v.x);
    take_doubles(error, d->vectors * d->places, &v.y);
    take_doubles(error, d->bands * d->vectors * TILE, &v.part);
    take(error, d->bands * TILE * TILE, sizeof(double), &v.tiles);
    if (error != cudaSuccess) {
        cudaGetLastError(); // or the next call would take it for its own
        destroy(t);
        return cudaGetErrorString(error);
    }
    *tiles_out = t;
    return nullptr;
}

const char *select(sti_kernel_tile_cuda *t, int64_t count,
                   const sti_kernel_tile_band *bands)
{
    const int64_t n = count > 0 ? bands[count - 1].at + bands[count - 1].count : 0;
    if (count > t->most_bands || n > t->places)
        return "more rows or bands than were asked for";
    t->v.n = n;
    t->band_count = count;
    return words_of(cudaMemcpy(t->bands, bands,
                               sizeof *bands * static_cast<size_t>(count),
                               cudaMemcpyHostToDevice));
}

const char *product(sti_kernel_tile_cuda *t, bool single, int64_t first, int64_t end,
                    int64_t count, const double *const *x, double *const *y_out)
{
    const view &v = t->v;
    const size_t bytes = sizeof(double) * static_cast<size_t>(v.n);
    const int64_t values = count * v.n;
    if (count > t->most_vectors || end > t->band_count)
        return "more vectors or bands than were asked for";
    if (values == 0)
        return nullptr;
    cudaError_t error = cudaSuccess;
    for (int64_t c = 0; c < count && error == cudaSuccess; c++)
        error = cudaMemcpy(v.x + c * v.n, x[c], bytes, cudaMemcpyHostToDevice);
    if (error == cudaSuccess)
        error = cudaMemset(v.y, 0, bytes * static_cast<size_t>(count));
    if (error != cudaSuccess)
        return words_of(error);
    flush_all<<<static_cast<unsigned>((values + THREADS - 1) / THREADS), THREADS>>>(
        v.x, values);
    for (int64_t row = first; row < end; row++)
        if (single)
            run_band<float>(v, row, static_cast<unsigned>(count));
        else
            run_band<double>(v, row, static_cast<unsigned>(count));
    error = cudaGetLastError();
    for (int64_t c = 0; c < count && error == cudaSuccess; c++)
        error = cudaMemcpy(y_out[c], v.y + c * v.n, bytes, cudaMemcpyDeviceToHost);
    return words_of(error);
}

// A product of one row in both precisions: contexts, kernels and copies take what they
// take of the host's memory at their first use.
const char *begin()
{
    const double one = 1, zero = 0;
    const double *x[1] = {&one};
    double result, *y[1] = {&result};
    sti_gram_rows rows = {};
    rows.rows = rows.columns = 1;
    rows.dense = &zero;
    rows.term = &zero;
    sti_kernel_tile_cuda_desc desc = {};
    desc.function.kind = STI_GRAM_RBF;
    desc.rows = &rows;
    desc.places = desc.bands = desc.vectors = 1;
    const sti_kernel_tile_band all = {0, 1, 0};
    sti_kernel_tile_cuda *t = nullptr;
    const char *error = create(&desc, &t);
    if (!error)
        error = select(t, 1, &all);
    for (int single = 0; single < 2 && !error; single++)
        error = product(t, single, 0, 1, 1, x, y);
    destroy(t);
    return error;
}

} // namespace

extern "C" __attribute__((visibility("default")))
const sti_kernel_tile_plugin stint_kernel_tiles = {
    STI_KERNEL_TILE_PLUGIN, devices, begin, create, destroy, select, product};
