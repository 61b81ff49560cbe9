/* Binary decisions under counted probabilities, by rANS: what codec/weights.c is made
 * of. One traversal serves both directions: a call is given the value when writing and
 * returns it, and returns it from the bytes when reading. */
#ifndef STI_CODEC_WEIGHTS_CODER_H
#define STI_CODEC_WEIGHTS_CODER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* How often a decision has been which. */
typedef struct sti_decision {
    uint16_t zeros, ones;
} sti_decision;

typedef struct sti_weights_coder {
    bool writing;
    /* Writing: slots of the running block, as start << 16 | (width - 1) of 2^16; its
     * words; what is finished. */
    uint32_t *slot, *word; /* [STI_WEIGHTS_BLOCK] */
    uint8_t *bytes;
    size_t n_bytes, capacity_bytes;
    bool no_memory;
    double bits; /* of information so far */
    /* Reading: after damage every decision is 0. */
    const uint8_t *next, *end;
    uint64_t state;
    bool damaged;
    int in_block; /* decisions of the running block */
} sti_weights_coder;

enum { STI_WEIGHTS_BLOCK = 1 << 18 };

/* False: out of memory, recorded. */
bool sti_weights_coder_begin_writing(sti_weights_coder *coder);
void sti_weights_coder_begin_reading(sti_weights_coder *coder, const uint8_t *bytes,
                                     size_t n_bytes);
void sti_weights_coder_fini(sti_weights_coder *coder); /* a zeroed one is fine */
/* Writing: end the running block. */
void sti_weights_coder_flush(sti_weights_coder *coder);
/* Reading: have all bytes been used, and is the state where writing began? */
bool sti_weights_coder_at_end(const sti_weights_coder *coder);

/* One decision. */
bool sti_weights_decide(sti_weights_coder *coder, sti_decision *context, bool value);
/* A number of `bits` bits, decision by decision from the highest on; context [2^bits],
 * of which [0] is unused. */
uint32_t sti_weights_tree(sti_weights_coder *coder, sti_decision *context, int bits,
                          uint32_t value);
/* `bits` bits, 1 to 16, all values alike. */
uint32_t sti_weights_even(sti_weights_coder *coder, int bits, uint32_t value);

/* Keep the shape of what was counted, but let it weigh no more than a few decisions:
 * for what is alike in the next tensor and not the same. */
void sti_weights_age(sti_decision *context, int count);

#endif
