/* The codec's loops in plain C. */
#include "base/file.h"
#include "codec/codec_priv.h"

static uint32_t checksum(const void *bytes, size_t n_bytes)
{
    return sti_crc32c(0, bytes, n_bytes);
}

#define CODEC_KERNELS sti_codec_kernels_ref
#include "codec/codec_body.h"
