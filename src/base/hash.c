/* SHA-256 (nettle's) and CRC-32C. */
#include <assert.h>
#include <nettle/sha2.h>
#include <string.h>

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

static void put_number(uint8_t *out, uint64_t x, int bytes)
{
    for (int i = 0; i < bytes; i++)
        out[i] = (uint8_t)(x >> 8 * i);
}

static uint64_t get_number(const uint8_t *in, int bytes)
{
    uint64_t x = 0;
    for (int i = 0; i < bytes; i++)
        x |= (uint64_t)in[i] << 8 * i;
    return x;
}

/* The words between blocks, how many bytes were hashed, and those of the open block. */
void sti_sha256_get(const sti_sha256 *state, uint8_t bytes_out[STI_SHA256_STATE_BYTES])
{
    sti_sha256 copy = *state;
    const struct sha256_ctx *s = state_of(&copy);
    uint8_t *at = bytes_out;
    for (int i = 0; i < 8; i++, at += 4)
        put_number(at, s->state[i], 4);
    put_number(at, s->count * SHA256_BLOCK_SIZE + s->index, 8);
    memset(at + 8, 0, SHA256_BLOCK_SIZE);
    memcpy(at + 8, s->block, s->index);
}

void sti_sha256_set(sti_sha256 *state, const uint8_t bytes[STI_SHA256_STATE_BYTES])
{
    struct sha256_ctx *s = state_of(state);
    const uint8_t *at = bytes;
    sti_sha256_init(state);
    for (int i = 0; i < 8; i++, at += 4)
        s->state[i] = (uint32_t)get_number(at, 4);
    const uint64_t count = get_number(at, 8);
    s->count = count / SHA256_BLOCK_SIZE;
    s->index = (unsigned)(count % SHA256_BLOCK_SIZE);
    memcpy(s->block, at + 8, SHA256_BLOCK_SIZE);
}

static uint32_t crc_by_table(uint32_t crc, const uint8_t *at, size_t n_bytes)
{
    /* Remainders of four bits for the reflected polynomial 0x82f63b78. Half a byte at a
     * time is fast enough for the small records that carry this sum. */
    static const uint32_t table[16] = {0x00000000, 0x105ec76f, 0x20bd8ede, 0x30e349b1,
                                       0x417b1dbc, 0x5125dad3, 0x61c69362, 0x7198540d,
                                       0x82f63b78, 0x92a8fc17, 0xa24bb5a6, 0xb21572c9,
                                       0xc38d26c4, 0xd3d3e1ab, 0xe330a81a, 0xf36e6f75};
    for (size_t i = 0; i < n_bytes; i++) {
        crc ^= at[i];
        crc = crc >> 4 ^ table[crc & 15];
        crc = crc >> 4 ^ table[crc & 15];
    }
    return crc;
}

#if defined(__x86_64__)
/* The processor's own instruction for this very polynomial, for pages of files. */
__attribute__((target("sse4.2"))) static uint32_t
crc_by_machine(uint32_t crc, const uint8_t *at, size_t n_bytes)
{
    uint64_t wide = crc;
    for (; n_bytes >= 8; n_bytes -= 8, at += 8) {
        uint64_t word;
        memcpy(&word, at, sizeof word);
        wide = __builtin_ia32_crc32di(wide, word);
    }
    return crc_by_table((uint32_t)wide, at, n_bytes);
}
#endif

uint32_t sti_crc32c(uint32_t crc, const void *bytes, size_t n_bytes)
{
#if defined(__x86_64__)
    if (n_bytes >= 64 && __builtin_cpu_supports("sse4.2"))
        return ~crc_by_machine(~crc, bytes, n_bytes);
#endif
    return ~crc_by_table(~crc, bytes, n_bytes);
}
