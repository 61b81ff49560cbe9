/* The codec of stint/codec.h for callers that have a team of threads already: desc's
 * own number of threads is not looked at. */
#ifndef STI_CODEC_CODEC_H
#define STI_CODEC_CODEC_H

#include "base/team.h"
#include "stint/codec.h"

/* For a team of `threads`; both packing and unpacking. Depends on rank, dim and threads
 * alone. */
stint_status sti_codec_workspace_bytes(const stint_codec_desc *desc, int threads,
                                       size_t *bytes_out);

stint_status sti_codec_pack(const sti_team *team, const stint_codec_desc *desc,
                            const float *x, const uint8_t *mask, void *out,
                            size_t capacity_bytes, void *workspace,
                            size_t workspace_bytes, stint_codec_result *result_out);

stint_status sti_codec_unpack(const sti_team *team, const stint_codec_desc *desc,
                              const void *packed, size_t bytes, const uint8_t *mask,
                              float *x_out, void *workspace, size_t workspace_bytes);

#endif
