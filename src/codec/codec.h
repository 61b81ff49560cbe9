/* The codec of stint/codec.h for callers that have a team of threads already: desc's
 * own number of threads is not looked at. */
#ifndef STI_CODEC_CODEC_H
#define STI_CODEC_CODEC_H

#include "base/team.h"
#include "kernel/lane/bf16.h"
#include "stint/codec.h"

/* For a team of `threads`; both packing and unpacking. Depends on rank, dim and threads
 * alone. */
stint_status sti_codec_workspace_bytes(const stint_codec_desc *desc, int threads,
                                       size_t *bytes_out);
/* The same for unpacking into a sink without x, which takes more. */
stint_status sti_codec_parts_workspace_bytes(const stint_codec_desc *desc, int threads,
                                             size_t *bytes_out);

/* An array that lies at x, or at x16 in bfloat16 (packed as the same values in float32
 * are), or, both NULL, is made a piece at a time while it is packed: make writes values
 * [begin, begin + n) of it. begin is a multiple of 16, and so is n but at the array's
 * end. Threads call it at once, for some values more than once. */
typedef struct sti_codec_source {
    const float *x;
    const sti_bf16 *x16;
    /* NULL, or one bit a value that says which of two kinds it is of: values are coded
     * beside others of their kind. Unpacking wants the same bits. */
    const uint8_t *kind;
    void (*make)(const void *arg, int64_t begin, int64_t n, float *x_out);
    const void *arg;
    /* NULL, or where make reads most: for value i at from + i. It is fetched into the
     * caches while the values before it are at work. */
    const float *from;
} sti_codec_source;

/* Where values go: to x; or, x NULL, they exist in the workspace, a part at a time, for
 * take and x16 alone. take, which may be NULL, is told of values [begin, begin + n), as
 * make is, once they lie at `at`, and may change them there. After that they are
 * rounded to x16, unless that is NULL: by half a unit of bfloat16 at most, on top of
 * the bound. */
typedef struct sti_codec_sink {
    float *x;
    sti_bf16 *x16;
    const uint8_t *kind;
    void (*take)(const void *arg, int64_t begin, int64_t n, float *at);
    const void *arg;
    /* NULL, or where take writes besides `at`: for value i at also + i. It is fetched
     * while the values are decoded. */
    float *also;
} sti_codec_sink;

stint_status sti_codec_pack(const sti_team *team, const stint_codec_desc *desc,
                            const sti_codec_source *source, const uint8_t *mask,
                            void *out, size_t capacity_bytes, void *workspace,
                            size_t workspace_bytes, stint_codec_result *result_out);

stint_status sti_codec_unpack(const sti_team *team, const stint_codec_desc *desc,
                              const void *packed, size_t bytes, const uint8_t *mask,
                              const sti_codec_sink *sink, void *workspace,
                              size_t workspace_bytes);

#endif
