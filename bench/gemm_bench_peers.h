/* The libraries that gemm_bench measures itself against, each found at run time
 * (oneDNN, OpenBLAS) or when built (libxsmm, a static library); one that is missing is
 * said to be and skipped. Only for gemm_bench.c. */
#ifndef STI_BENCH_GEMM_PEERS_H
#define STI_BENCH_GEMM_PEERS_H

#include <dlfcn.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <omp.h>

#ifdef BENCH_HAVE_LIBXSMM
#include <libxsmm.h>
#endif

typedef int dnnl_sgemm_fn(char ta, char tb, int64_t m, int64_t n, int64_t k,
                          float alpha, const float *a, int64_t lda, const float *b,
                          int64_t ldb, float beta, float *c, int64_t ldc);
typedef int dnnl_u8s8s32_fn(char ta, char tb, char offset, int64_t m, int64_t n,
                            int64_t k, float alpha, const uint8_t *a, int64_t lda,
                            uint8_t ao, const int8_t *b, int64_t ldb, int8_t bo,
                            float beta, int32_t *c, int64_t ldc, const int32_t *co);
typedef void blas_sgemm_fn(int order, int ta, int tb, int m, int n, int k, float alpha,
                           const float *a, int lda, const float *b, int ldb, float beta,
                           float *c, int ldc);

static struct peers {
    dnnl_sgemm_fn *dnnl_sgemm;
    dnnl_u8s8s32_fn *dnnl_u8s8s32;
    blas_sgemm_fn *blas_sgemm;
    void (*blas_threads)(int);
} peers;

/* dlsym gives void *; functions are reached through the address of the pointer. */
static void find(void *library, const char *name, void *function)
{
    *(void **)function = library ? dlsym(library, name) : NULL;
}

static void *open_library(const char *name)
{
    void *library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
    if (!library)
        printf("# %s: not installed, skipped\n", name);
    return library;
}

static void peers_open(const char *coretype)
{
    int (*isa)(void);
    const char *(*core)(void);
    void *dnnl = open_library("libdnnl.so.2");
    find(dnnl, "dnnl_sgemm", &peers.dnnl_sgemm);
    find(dnnl, "dnnl_gemm_u8s8s32", &peers.dnnl_u8s8s32);
    find(dnnl, "dnnl_get_effective_cpu_isa", &isa);
    if (isa)
        printf("# oneDNN: effective CPU ISA 0x%x\n", (unsigned)isa());
    if (coretype) /* read when the library is loaded */
        setenv("OPENBLAS_CORETYPE", coretype, 1);
    void *blas = open_library("libopenblas.so.0");
    find(blas, "cblas_sgemm", &peers.blas_sgemm);
    find(blas, "openblas_set_num_threads", &peers.blas_threads);
    find(blas, "openblas_get_corename", &core);
    if (core)
        printf("# OpenBLAS: core type %s\n", core());
#ifdef BENCH_HAVE_LIBXSMM
    libxsmm_init();
    printf("# libxsmm: %s, target %s\n", LIBXSMM_VERSION, libxsmm_get_target_arch());
#else
    printf("# libxsmm: not found when built, skipped\n");
#endif
}

static void peers_threads(int threads)
{
    omp_set_num_threads(threads);
    if (peers.blas_threads)
        peers.blas_threads(threads);
}

#ifdef BENCH_HAVE_LIBXSMM
/* Column-major: C' = B' A'. Its just-in-time kernel takes the whole product where one
 * exists, on one thread; NULL elsewhere. */
static libxsmm_smmfunction xsmm_kernel(int64_t m, int64_t n, int64_t k, bool ta,
                                       bool tb)
{
    const libxsmm_blasint lda = (libxsmm_blasint)n, ldb = (libxsmm_blasint)k;
    const float alpha = 1, beta = 0;
    if (ta || tb || m > 256 || n > 256 || k > 1024)
        return NULL;
    return libxsmm_smmdispatch((libxsmm_blasint)n, (libxsmm_blasint)m,
                               (libxsmm_blasint)k, &lda, &ldb, &lda, &alpha, &beta,
                               NULL, NULL);
}
#endif

#endif
