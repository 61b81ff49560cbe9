/* SHA-256 (nettle's) and CRC-32C. */
#include <assert.h>
#include <nettle/sha2.h>

#include "base/file.h"

static_assert(sizeof(struct sha256_ctx) <= sizeof(sti_sha256),
              "sti_sha256 holds nettle's state");

static struct sha256_ctx *state_of(sti_sha256 *state)
{
    return (struct sha256_ctx *)(void *)state->opaque;
}

void sti_sha256_init(sti_sha256 *state)
{
    sha256_init(state_of(state));
}

void sti_sha256_add(sti_sha256 *state, const void *bytes, size_t n_bytes)
{
    if (n_bytes > 0)
        sha256_update(state_of(state), n_bytes, bytes);
}

void sti_sha256_hex(sti_sha256 *state, char hex_out[65])
{
    static const char digits[] = "0123456789abcdef";
    uint8_t digest[SHA256_DIGEST_SIZE];
    sha256_digest(state_of(state), sizeof digest, digest);
    for (size_t i = 0; i < sizeof digest; i++) {
        hex_out[2 * i] = digits[digest[i] >> 4];
        hex_out[2 * i + 1] = digits[digest[i] & 15];
    }
    hex_out[2 * sizeof digest] = '\0';
}

uint32_t sti_crc32c(uint32_t crc, const void *bytes, size_t n_bytes)
{
    /* Remainders of four bits for the reflected polynomial 0x82f63b78. Half a byte at a
     * time is fast enough for the small records that carry this sum. */
    static const uint32_t table[16] = {0x00000000, 0x105ec76f, 0x20bd8ede, 0x30e349b1,
                                       0x417b1dbc, 0x5125dad3, 0x61c69362, 0x7198540d,
                                       0x82f63b78, 0x92a8fc17, 0xa24bb5a6, 0xb21572c9,
                                       0xc38d26c4, 0xd3d3e1ab, 0xe330a81a, 0xf36e6f75};
    const uint8_t *at = bytes;
    crc = ~crc;
    for (size_t i = 0; i < n_bytes; i++) {
        crc ^= at[i];
        crc = crc >> 4 ^ table[crc & 15];
        crc = crc >> 4 ^ table[crc & 15];
    }
    return ~crc;
}
