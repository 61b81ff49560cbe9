/* The different words of a text and how often each occurs, laid out in slots. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/fail.h"
#include "base/memory.h"
#include "data/learn.h"
#include "data/tokenizer.h"

#define LOOK_BYTES ((size_t)1 << 20)
#define MAX_SLOTS  (STI_SLOT_FIRST - 4096) /* so that tokens stay below the flag */

typedef struct counted_word {
    int64_t at, times; /* where in the text it is first */
    int32_t length;
    uint32_t hash;
} counted_word;

typedef struct counter {
    const char *text;
    counted_word *word;
    int64_t count, capacity;
    int32_t *index; /* open addressing; 0: free, else one more than a word */
    int64_t slots;
    int64_t bytes; /* of all different words */
} counter;

static uint32_t hash_of(const char *bytes, size_t n_bytes)
{
    uint64_t h = UINT64_C(0xcbf29ce484222325);
    for (size_t i = 0; i < n_bytes; i++)
        h = (h ^ (uint8_t)bytes[i]) * UINT64_C(0x100000001b3);
    return (uint32_t)(h >> 32 ^ h);
}

/* The words are put in again: their hashes are kept, so nothing is read. */
static stint_status grow_index(counter *c)
{
    c->slots = c->slots ? 2 * c->slots : 4096;
    sti_free(c->index);
    c->index = sti_alloc_array(c->slots, sizeof *c->index, "words");
    if (!c->index)
        return STINT_E_MEMORY;
    for (int64_t i = 0; i < c->count; i++) {
        int64_t slot = c->word[i].hash & (c->slots - 1);
        while (c->index[slot] != 0)
            slot = (slot + 1) & (c->slots - 1);
        c->index[slot] = (int32_t)i + 1;
    }
    return STINT_OK;
}

static stint_status add_word(counter *c, size_t at, size_t n_bytes, int64_t slot,
                             uint32_t hash)
{
    c->bytes += (int64_t)n_bytes;
    if (c->bytes > MAX_SLOTS)
        return sti_fail(STINT_E_UNSUPPORTED,
                        "the different words of the text are longer than %d MiB "
                        "together, beyond what byte pairs are learned from here; learn "
                        "from a part of it, and give what comes of it as "
                        "data.tokenizer_path",
                        STI_SLOT_FIRST >> 20);
    stint_status st =
        sti_learn_room((void **)&c->word, c->count + 1, &c->capacity, sizeof *c->word);
    if (st != STINT_OK)
        return st;
    c->word[c->count++] = (counted_word){
        .at = (int64_t)at, .times = 1, .length = (int32_t)n_bytes, .hash = hash};
    c->index[slot] = (int32_t)c->count;
    return STINT_OK;
}

static stint_status count_word(counter *c, size_t at, size_t n_bytes)
{
    if (3 * c->count >= 2 * c->slots) {
        const stint_status st = grow_index(c);
        if (st != STINT_OK)
            return st;
    }
    const uint32_t hash = hash_of(c->text + at, n_bytes);
    int64_t slot = hash & (c->slots - 1);
    for (; c->index[slot] != 0; slot = (slot + 1) & (c->slots - 1)) {
        counted_word *w = &c->word[c->index[slot] - 1];
        if (w->hash == hash && (size_t)w->length == n_bytes &&
            memcmp(c->text + w->at, c->text + at, n_bytes) == 0) {
            w->times++;
            return STINT_OK;
        }
    }
    return add_word(c, at, n_bytes, slot, hash);
}

static size_t counter_bytes(const counter *c)
{
    return (size_t)c->count * sizeof *c->word + (size_t)c->slots * sizeof *c->index;
}

static stint_status count_words(counter *c, size_t n_bytes, sti_text_watch *watch)
{
    stint_status st = STINT_OK;
    size_t look_at = 0;
    for (size_t at = 0, end; at < n_bytes && st == STINT_OK; at = end) {
        if (at >= look_at) {
            st = sti_text_watch_look(watch, counter_bytes(c), "bytes cut into words",
                                     (int64_t)at, (int64_t)n_bytes);
            look_at = at + LOOK_BYTES;
        }
        end = sti_word_end(c->text, n_bytes, at);
        if (st == STINT_OK)
            st = count_word(c, at, end - at);
    }
    return st;
}

/* ---- slots ---- */

static void lay(sti_learn_words *words, const counter *c, const counted_word *w,
                const int32_t byte_token[256])
{
    int32_t *slot = words->slot + words->count;
    for (int32_t i = 0; i < w->length; i++)
        slot[i] = byte_token[(uint8_t)c->text[w->at + i]];
    slot[0] |= STI_SLOT_FIRST;
    words->count += w->length;
}

static stint_status end_group(sti_learn_words *words, int64_t times)
{
    const stint_status st =
        sti_learn_room((void **)&words->group, words->group_count + 1,
                       &words->group_capacity, sizeof *words->group);
    if (st == STINT_OK)
        words->group[words->group_count++] =
            (struct sti_learn_group){.end = words->count, .times = times};
    return st;
}

static int compare_times(const void *a, const void *b)
{
    const counted_word *x = a, *y = b;
    if (x->times != y->times)
        return x->times < y->times ? -1 : 1;
    return x->at < y->at ? -1 : x->at > y->at;
}

/* Words that occur once come first; the others, which are far fewer, are sorted. */
static stint_status lay_all(sti_learn_words *words, counter *c,
                            const int32_t byte_token[256])
{
    int64_t others = 0;
    for (int64_t i = 0; i < c->count; i++) {
        if (c->word[i].times == 1)
            lay(words, c, &c->word[i], byte_token);
        else
            c->word[others++] = c->word[i];
    }
    stint_status st = end_group(words, 1);
    if (others > 0)
        qsort(c->word, (size_t)others, sizeof *c->word, compare_times);
    for (int64_t i = 0; i < others && st == STINT_OK; i++) {
        lay(words, c, &c->word[i], byte_token);
        if (i + 1 == others || c->word[i + 1].times != c->word[i].times)
            st = end_group(words, c->word[i].times);
    }
    return st;
}

stint_status sti_learn_words_init(const char *text, size_t n_bytes,
                                  const int32_t byte_token[256], sti_text_watch *watch,
                                  sti_learn_words *words)
{
    counter c = {.text = text};
    *words = (sti_learn_words){0};
    stint_status st = count_words(&c, n_bytes, watch);
    sti_free(c.index);
    c.index = NULL;
    c.slots = 0;
    if (st == STINT_OK)
        st = sti_text_watch_look(
            watch, counter_bytes(&c) + (size_t)c.bytes * sizeof *words->slot,
            "bytes cut into words", (int64_t)n_bytes, (int64_t)n_bytes);
    if (st == STINT_OK) {
        words->slot = sti_alloc_array(c.bytes, sizeof *words->slot, "byte pairs");
        st = words->slot ? lay_all(words, &c, byte_token) : STINT_E_MEMORY;
    }
    sti_free(c.word);
    if (st != STINT_OK)
        sti_learn_words_fini(words);
    return st;
}

void sti_learn_words_fini(sti_learn_words *words)
{
    sti_free(words->slot);
    sti_free(words->group);
    *words = (sti_learn_words){0};
}

int64_t sti_learn_words_times(sti_learn_words *words, int64_t at)
{
    int64_t low = words->at_group, high = words->group_count - 1;
    if (at >= words->group[low].end)
        low++;
    else if (low == 0 || at >= words->group[low - 1].end)
        high = low;
    else {
        high = low - 1;
        low = 0;
    }
    while (low < high) {
        const int64_t mid = low + (high - low) / 2;
        if (words->group[mid].end <= at)
            low = mid + 1;
        else
            high = mid;
    }
    words->at_group = low;
    return words->group[low].times;
}
