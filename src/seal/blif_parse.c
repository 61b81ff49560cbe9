#include <inttypes.h>
#include <string.h>

#include "base/fail.h"
#include "seal/blif_priv.h"

static stint_status wrong(const sti_blif *b, const char *what)
{
    return sti_fail(STINT_E_INPUT, "%s:%" PRId64 ": %s", b->path, b->words.line, what);
}

/* Room for one more of an array; false: no memory. */
static bool grow(void **array, int64_t count, int64_t *capacity, size_t each_bytes)
{
    if (count < *capacity)
        return true;
    const int64_t more = *capacity ? 2 * *capacity : 256;
    void *grown = sti_realloc(*array, (size_t)more * each_bytes, "seal.blif");
    if (!grown)
        return false;
    *array = grown;
    *capacity = more;
    return true;
}

#define GROW(array, count, capacity) \
    grow((void **)&(array), (count), &(capacity), sizeof *(array))

/* ---- signals by name ---- */

static uint64_t hash_of(const char *name, size_t length)
{
    uint64_t h = UINT64_C(0xcbf29ce484222325);
    for (size_t i = 0; i < length; i++)
        h = (h ^ (uint8_t)name[i]) * UINT64_C(0x100000001b3);
    return h ^ h >> 32;
}

static int64_t *bucket_of(const sti_blif *b, const char *name, size_t length)
{
    uint64_t at = hash_of(name, length) & (uint64_t)(b->buckets - 1);
    for (; b->bucket[at]; at = (at + 1) & (uint64_t)(b->buckets - 1)) {
        const sti_blif_signal *s = &b->signal[b->bucket[at] - 1];
        if (s->length == length && memcmp(s->name, name, length) == 0)
            break;
    }
    return &b->bucket[at];
}

static bool grow_buckets(sti_blif *b)
{
    if (2 * b->signals < b->buckets)
        return true;
    const int64_t buckets = b->buckets ? 2 * b->buckets : 1024;
    int64_t *bucket = sti_alloc_array(buckets, sizeof *bucket, "seal.blif");
    if (!bucket)
        return false;
    sti_free(b->bucket);
    b->bucket = bucket;
    b->buckets = buckets;
    for (int64_t i = 0; i < b->signals; i++)
        *bucket_of(b, b->signal[i].name, b->signal[i].length) = i + 1;
    return true;
}

static stint_status find_signal(sti_blif *b, const sti_word *word, int64_t *out)
{
    if (!grow_buckets(b) || !GROW(b->signal, b->signals, b->signal_capacity))
        return STINT_E_MEMORY;
    int64_t *bucket = bucket_of(b, word->text, word->length);
    if (*bucket == 0) {
        b->signal[b->signals] = (sti_blif_signal){
            .name = word->text, .length = word->length, .line = b->words.line};
        *bucket = ++b->signals;
    }
    *out = *bucket - 1;
    return STINT_OK;
}

static stint_status drive(sti_blif *b, int64_t signal, sti_blif_driver driver,
                          int64_t index)
{
    sti_blif_signal *s = &b->signal[signal];
    const sti_word name = {s->name, s->length};
    if (s->driver != STI_BLIF_NOTHING)
        return sti_fail(STINT_E_INPUT, "%s:%" PRId64 ": '%.*s' is driven twice",
                        b->path, b->words.line, sti_word_shown(&name), name.text);
    s->driver = driver;
    s->index = index;
    return STINT_OK;
}

/* ---- statements ---- */

static stint_status read_inputs(sti_blif *b)
{
    sti_word word;
    stint_status st = STINT_OK;
    while (sti_words_next(&b->words, &word)) {
        if (!GROW(b->input, b->inputs, b->input_capacity))
            return STINT_E_MEMORY;
        STI_TRY(find_signal(b, &word, &b->input[b->inputs]));
        STI_TRY(drive(b, b->input[b->inputs], STI_BLIF_INPUT, b->inputs));
        b->inputs++;
    }
out:
    return st;
}

static stint_status read_outputs(sti_blif *b)
{
    sti_word word;
    while (sti_words_next(&b->words, &word)) {
        if (!GROW(b->output, b->outputs, b->output_capacity))
            return STINT_E_MEMORY;
        stint_status st = find_signal(b, &word, &b->output[b->outputs]);
        if (st != STINT_OK)
            return st;
        b->outputs++;
    }
    return STINT_OK;
}

/* .latch input output [type control] [initial value] */
static stint_status read_latch(sti_blif *b)
{
    sti_word in, out, word[3];
    int words = 0;
    int64_t clock;
    stint_status st;
    if (!sti_words_next(&b->words, &in) || !sti_words_next(&b->words, &out))
        return wrong(b, ".latch wants an input and an output");
    while (words < 3 && sti_words_next(&b->words, &word[words]))
        words++;
    if (!GROW(b->latch, b->latches, b->latch_capacity))
        return STINT_E_MEMORY;
    sti_blif_latch *latch = &b->latch[b->latches];
    *latch = (sti_blif_latch){0};
    STI_TRY(find_signal(b, &in, &latch->in));
    STI_TRY(find_signal(b, &out, &latch->out));
    STI_TRY(drive(b, latch->out, STI_BLIF_LATCH, b->latches));
    b->latches++;
    if (words >= 2 && !sti_word_is(&word[1], "NIL")) {
        STI_TRY(find_signal(b, &word[1], &clock));
        b->signal[clock].is_clock = true;
    }
    /* 2 (any) and 3 (unknown) begin as 0, as other programs have them. */
    latch->initial = words % 2 == 1 && sti_word_is(&word[words - 1], "1");
out:
    return st;
}

static stint_status check_row(const sti_blif *b, const sti_blif_table *t,
                              const sti_word *row, const sti_word *answer)
{
    if ((int64_t)row->length != t->inputs)
        return wrong(b, "a row of .names has another length than there are inputs");
    for (size_t i = 0; i < row->length; i++)
        if (row->text[i] != '0' && row->text[i] != '1' && row->text[i] != '-')
            return wrong(b, "a row of .names is made of 0, 1 and -");
    if (!sti_word_is(answer, "0") && !sti_word_is(answer, "1"))
        return wrong(b, "the output of a row of .names is 0 or 1");
    if (t->rows > 0 && t->answer != sti_word_is(answer, "1"))
        return wrong(b, "the rows of one .names have one and the same output");
    return STINT_OK;
}

static stint_status read_row(sti_blif *b, sti_blif_table *t)
{
    sti_word row = {"", 0}, answer, more;
    if (t->inputs > 0)
        sti_words_next(&b->words, &row);
    if (!sti_words_next(&b->words, &answer) || sti_words_next(&b->words, &more))
        return wrong(b, "a row of .names is its inputs and its output");
    stint_status st = check_row(b, t, &row, &answer);
    if (st != STINT_OK)
        return st;
    if (!GROW(b->row, b->rows, b->row_capacity))
        return STINT_E_MEMORY;
    t->answer = sti_word_is(&answer, "1");
    t->rows++;
    b->row[b->rows++] = row.text;
    return STINT_OK;
}

/* .names inputs output, and the rows below. */
static stint_status read_table(sti_blif *b)
{
    sti_word word;
    stint_status st = STINT_OK;
    if (!GROW(b->table, b->tables, b->table_capacity))
        return STINT_E_MEMORY;
    sti_blif_table t = {.first = b->lists, .row = b->rows, .line = b->words.line};
    while (sti_words_next(&b->words, &word)) {
        if (!GROW(b->list, b->lists, b->list_capacity))
            return STINT_E_MEMORY;
        STI_TRY(find_signal(b, &word, &b->list[b->lists]));
        b->lists++;
    }
    if (b->lists == t.first)
        return wrong(b, ".names wants an output");
    t.out = b->list[--b->lists];
    t.inputs = b->lists - t.first;
    STI_TRY(drive(b, t.out, STI_BLIF_TABLE, b->tables));
    while (sti_words_line(&b->words) && *b->words.at != '.')
        STI_TRY(read_row(b, &t));
    b->table[b->tables++] = t;
out:
    return st;
}

static stint_status read_statement(sti_blif *b, const sti_word *word, bool *end)
{
    sti_word rest;
    if (sti_word_is(word, ".names"))
        return read_table(b);
    if (sti_word_is(word, ".inputs"))
        return read_inputs(b);
    if (sti_word_is(word, ".outputs"))
        return read_outputs(b);
    if (sti_word_is(word, ".latch"))
        return read_latch(b);
    if (sti_word_is(word, ".end"))
        *end = true;
    else if (!sti_word_is(word, ".model") && !sti_word_is(word, ".clock"))
        return sti_fail(STINT_E_INPUT,
                        "%s:%" PRId64 ": '%.*s' is not known: .model, .inputs, "
                        ".outputs, .names, .latch and .end are; flatten the design "
                        "first (yosys: flatten; abc: strash)",
                        b->path, b->words.line, sti_word_shown(word), word->text);
    while (sti_words_next(&b->words, &rest))
        continue;
    return STINT_OK;
}

stint_status sti_blif_parse(sti_blif *blif)
{
    sti_word word;
    bool end = false;
    blif->words.comment = '#';
    blif->words.joins = true;
    while (!end && sti_words_line(&blif->words)) {
        sti_words_next(&blif->words, &word);
        stint_status st = read_statement(blif, &word, &end);
        if (st != STINT_OK)
            return st;
    }
    if (blif->outputs == 0)
        return sti_fail(STINT_E_INPUT, "%s: has no .outputs", blif->path);
    return STINT_OK;
}

void sti_blif_fini(sti_blif *blif)
{
    sti_free(blif->signal);
    sti_free(blif->bucket);
    sti_free(blif->table);
    sti_free(blif->latch);
    sti_free(blif->list);
    sti_free(blif->row);
    sti_free(blif->input);
    sti_free(blif->output);
    sti_free(blif->order);
    *blif = (sti_blif){0};
}

/* ---- order ---- */

enum { UNSEEN, OPEN, DONE };

static stint_status unsound(const sti_blif *b, const sti_blif_signal *s,
                            const char *what)
{
    const sti_word name = {s->name, s->length};
    return sti_fail(STINT_E_INPUT, "%s:%" PRId64 ": '%.*s' %s", b->path, s->line,
                    sti_word_shown(&name), name.text, what);
}

/* Depth first, by a stack of tables with the next of their inputs. */
typedef struct visit {
    int64_t table, next;
} visit;

static stint_status open_signal(sti_blif *b, int64_t signal, visit *stack,
                                int64_t *depth)
{
    sti_blif_signal *s = &b->signal[signal];
    if (s->driver == STI_BLIF_NOTHING)
        return unsound(b, s, "is used and nothing drives it");
    if (s->driver != STI_BLIF_TABLE || s->visit == DONE)
        return STINT_OK;
    if (s->visit == OPEN)
        return unsound(b, s, "depends on itself without a latch: a loop of gates");
    s->visit = OPEN;
    stack[(*depth)++] = (visit){s->index, 0};
    return STINT_OK;
}

static stint_status visit_all(sti_blif *b, int64_t root, visit *stack)
{
    int64_t depth = 0;
    stint_status st = open_signal(b, root, stack, &depth);
    while (st == STINT_OK && depth > 0) {
        visit *top = &stack[depth - 1];
        const sti_blif_table *t = &b->table[top->table];
        if (top->next < t->inputs) {
            st = open_signal(b, b->list[t->first + top->next++], stack, &depth);
        } else {
            b->signal[t->out].visit = DONE;
            b->order[b->ordered++] = top->table;
            depth--;
        }
    }
    return st;
}

stint_status sti_blif_sort(sti_blif *blif)
{
    visit *stack = sti_alloc_array(blif->tables, sizeof *stack, "seal.blif");
    stint_status st = STINT_OK;
    blif->order = sti_alloc_array(blif->tables, sizeof *blif->order, "seal.blif");
    if (!stack || !blif->order)
        st = STINT_E_MEMORY;
    for (int64_t i = 0; st == STINT_OK && i < blif->outputs; i++)
        st = visit_all(blif, blif->output[i], stack);
    for (int64_t i = 0; st == STINT_OK && i < blif->latches; i++)
        st = visit_all(blif, blif->latch[i].in, stack);
    sti_free(stack);
    return st;
}
