/* CRC-32C by the CPU's instruction, for files that are built with it. */
#ifndef STI_CODEC_CODEC_CHECKSUM_H
#define STI_CODEC_CODEC_CHECKSUM_H

#include <immintrin.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

static inline uint32_t checksum(const void *bytes, size_t n_bytes)
{
    const uint8_t *at = bytes;
    uint64_t crc = UINT32_MAX;
    for (; n_bytes >= 8; n_bytes -= 8, at += 8) {
        uint64_t word;
        memcpy(&word, at, 8);
        crc = _mm_crc32_u64(crc, word);
    }
    uint32_t rest = (uint32_t)crc;
    for (; n_bytes > 0; n_bytes--, at++)
        rest = _mm_crc32_u8(rest, *at);
    return ~rest;
}

#endif
