/* Numbers as GGUF files hold them: plain, or in blocks of 32 or 256 that share scales.
 *
 *   Q8_0   32: d (f16), 32 x i8                      x = d q
 *   Q4_0   32: d (f16), 16 bytes of two              x = d (q - 8)
 *   Q4_K  256: d, m (f16), 12 bytes of 6-bit scales and mins of eight groups, 128 bytes
 *                                                    x = d s q - m t
 *   Q6_K  256: 128 bytes of low, 64 of high bits, 16 scales (i8), d (f16)
 *                                                    x = d s (q - 32)
 *
 * Products are rounded one after the other in float32, so that values have the bits
 * that the package `gguf` gives. */
#ifndef STI_STORE_GGUF_BLOCK_H
#define STI_STORE_GGUF_BLOCK_H

#include <stddef.h>
#include <stdint.h>

typedef struct sti_gguf_type {
    const char *name;
    uint32_t number;    /* in the file */
    int64_t block;      /* numbers of a block */
    size_t block_bytes; /* bytes of it */
    /* A block into out [block]. */
    void (*read)(const uint8_t *from, float *out);
    /* x [block] as a block; NULL: not written. */
    void (*write)(const float *x, uint8_t *to);
} sti_gguf_type;

/* NULL: a type that is not known here. */
const sti_gguf_type *sti_gguf_type_find(uint32_t number);
const sti_gguf_type *sti_gguf_type_named(const char *name);
/* "F32, F16, ...": all that are read; a constant. */
#define STI_GGUF_TYPES "F32, F16, BF16, Q8_0, Q4_0, Q4_K and Q6_K"

#endif
