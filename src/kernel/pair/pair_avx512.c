/* Steps of sequential minimal optimisation for AVX-512 (flags by file, see
 * src/CMakeLists.txt). */
#if defined(__AVX512F__)
#include "kernel/lane/eight_avx512.h"

#define TABLE sti_pair_kernels_avx512

static inline lanes lanes_floats(const float *from)
{
    return _mm512_cvtps_pd(_mm256_loadu_ps(from));
}

static inline lanes lanes_over(lanes a, lanes b, lanes c, lanes d)
{
    return _mm512_mask_blend_pd(_mm512_cmp_pd_mask(a, b, _CMP_GT_OQ), d, c);
}

static inline lanes lanes_least(lanes a, lanes b)
{
    return _mm512_min_pd(a, b);
}

#include "kernel/pair/pair_body.h"
#else
typedef int pair_avx512_is_for_x86;
#endif
