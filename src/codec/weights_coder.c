#include "codec/weights_coder.h"

#include <math.h>
#include <string.h>

#include "base/memory.h"

enum {
    SCALE_BITS = 16,
    BLOCK = STI_WEIGHTS_BLOCK,
    COUNT_MOST = 65000, /* then both are halved */
    AGED = 24           /* decisions that a context counts for after ageing */
};

#define SCALE       (UINT32_C(1) << SCALE_BITS)
#define STATE_FIRST (UINT64_C(1) << 31) /* and the least a state may be */

/* ---- bytes ---- */

bool sti_weights_coder_begin_writing(sti_weights_coder *c)
{
    *c = (sti_weights_coder){.writing = true};
    c->slot = sti_alloc_array(BLOCK, sizeof *c->slot, "weights coder");
    c->word = sti_alloc_array(BLOCK, sizeof *c->word, "weights coder");
    if (c->slot && c->word)
        return true;
    sti_weights_coder_fini(c);
    return false;
}

void sti_weights_coder_begin_reading(sti_weights_coder *c, const uint8_t *bytes,
                                     size_t n_bytes)
{
    *c = (sti_weights_coder){.next = bytes, .end = bytes + n_bytes};
}

void sti_weights_coder_fini(sti_weights_coder *c)
{
    sti_free(c->slot);
    sti_free(c->word);
    sti_free(c->bytes);
    *c = (sti_weights_coder){.writing = false};
}

static void add_bytes(sti_weights_coder *c, uint64_t value, int n)
{
    if (c->n_bytes + 8 > c->capacity_bytes) {
        const size_t more = 2 * c->capacity_bytes + 4096;
        uint8_t *grown =
            c->no_memory ? NULL : sti_realloc(c->bytes, more, "compressed weights");
        c->no_memory = !grown;
        if (!grown)
            return;
        c->bytes = grown;
        c->capacity_bytes = more;
    }
    for (int i = 0; i < n; i++)
        c->bytes[c->n_bytes++] = (uint8_t)(value >> 8 * i);
}

/* Slots from the last to the first, as a stack: the reader takes them in their order.
 * The state comes before the words. */
void sti_weights_coder_flush(sti_weights_coder *c)
{
    uint64_t state = STATE_FIRST;
    int words = 0;
    if (c->in_block == 0)
        return;
    for (int i = c->in_block - 1; i >= 0; i--) {
        const uint64_t start = c->slot[i] >> SCALE_BITS;
        const uint64_t width = (c->slot[i] & (SCALE - 1)) + 1;
        if (state >= width << 47) { /* (2^31 / 2^16) 2^32 width */
            c->word[words++] = (uint32_t)state;
            state >>= 32;
        }
        state = (state / width << SCALE_BITS) + state % width + start;
    }
    add_bytes(c, state, 8);
    while (words > 0)
        add_bytes(c, c->word[--words], 4);
    c->in_block = 0;
}

static uint64_t take_bytes(sti_weights_coder *c, int n)
{
    uint64_t value = 0;
    if (c->end - c->next < n) {
        c->damaged = true;
        return STATE_FIRST;
    }
    for (int i = 0; i < n; i++)
        value |= (uint64_t)c->next[i] << 8 * i;
    c->next += n;
    return value;
}

bool sti_weights_coder_at_end(const sti_weights_coder *c)
{
    return !c->damaged && c->next == c->end &&
           (c->in_block == 0 || c->state == STATE_FIRST);
}

/* ---- slots ---- */

static void put_slot(sti_weights_coder *c, uint32_t start, uint32_t width)
{
    c->slot[c->in_block++] = start << SCALE_BITS | (width - 1);
    c->bits -= log2((double)width / SCALE);
    if (c->in_block == BLOCK)
        sti_weights_coder_flush(c);
}

/* Where the state stands within 2^16; a block begins with its state. */
static uint32_t look(sti_weights_coder *c)
{
    if (c->in_block == 0) {
        c->state = take_bytes(c, 8);
        if (c->state < STATE_FIRST || c->state >> 63)
            c->damaged = true;
    }
    return c->damaged ? 0 : (uint32_t)c->state & (SCALE - 1);
}

static void take_slot(sti_weights_coder *c, uint32_t at, uint32_t start, uint32_t width)
{
    if (c->damaged)
        return;
    c->state = width * (c->state >> SCALE_BITS) + at - start;
    if (c->state < STATE_FIRST)
        c->state = c->state << 32 | take_bytes(c, 4);
    if (++c->in_block < BLOCK)
        return;
    c->in_block = 0;
    if (c->state != STATE_FIRST)
        c->damaged = true;
}

/* ---- decisions ---- */

/* Its share of 2^16; (ones + 1/2) / (all + 1) is a one, after Krichevsky and Trofimov.
 */
static uint32_t width_of_zero(const sti_decision *d)
{
    const uint32_t zeros = 2 * (uint32_t)d->zeros + 1, ones = 2 * (uint32_t)d->ones + 1;
    const uint32_t width = (uint32_t)(((uint64_t)zeros << SCALE_BITS) / (zeros + ones));
    return width == 0 ? 1 : width;
}

static void count(sti_decision *d, bool value)
{
    d->zeros = (uint16_t)(d->zeros + !value);
    d->ones = (uint16_t)(d->ones + value);
    if ((uint32_t)d->zeros + d->ones >= COUNT_MOST) {
        d->zeros /= 2;
        d->ones /= 2;
    }
}

bool sti_weights_decide(sti_weights_coder *c, sti_decision *context, bool value)
{
    const uint32_t zero = width_of_zero(context);
    if (c->writing) {
        put_slot(c, value ? zero : 0, value ? SCALE - zero : zero);
    } else {
        const uint32_t at = look(c);
        value = !c->damaged && at >= zero;
        take_slot(c, at, value ? zero : 0, value ? SCALE - zero : zero);
    }
    count(context, value);
    return value;
}

uint32_t sti_weights_tree(sti_weights_coder *c, sti_decision *context, int bits,
                          uint32_t value)
{
    uint32_t node = 1;
    for (int i = bits - 1; i >= 0; i--)
        node = node << 1 | sti_weights_decide(c, &context[node], value >> i & 1);
    return node - (UINT32_C(1) << bits);
}

uint32_t sti_weights_even(sti_weights_coder *c, int bits, uint32_t value)
{
    const int below = SCALE_BITS - bits;
    const uint32_t width = UINT32_C(1) << below;
    if (c->writing) {
        put_slot(c, value << below, width);
        return value;
    }
    const uint32_t at = look(c);
    take_slot(c, at, at & ~(width - 1), width);
    return at >> below;
}

void sti_weights_age(sti_decision *context, int n)
{
    for (int i = 0; i < n; i++) {
        const int all = context[i].zeros + context[i].ones;
        if (all <= AGED)
            continue;
        context[i].zeros = (uint16_t)(context[i].zeros * AGED / all);
        context[i].ones = (uint16_t)(context[i].ones * AGED / all);
    }
}
