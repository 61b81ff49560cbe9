/* Texts that are drawn together are those that each is alone, whatever joins, leaves
 * and is set back beside it. Alone: one sequence in a decoder of its own, by a plain
 * loop. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/fail.h"
#include "base/memory.h"
#include "infer/text_batch.h"

enum { TEXTS = 14, MOST = 300 };

/* ---- a model: weights that follow from their names ---- */

static bool never(void *user, const char *name)
{
    (void)user, (void)name;
    return false;
}

static stint_status read_runs(void *user, const char *name, int64_t runs, int64_t each,
                              int64_t first, int64_t count, float *out)
{
    uint32_t hash = 7;
    const float *scale = user;
    (void)runs;
    for (const char *p = name; *p; p++)
        hash = hash * 31 + (uint8_t)*p;
    for (int64_t i = 0; out && i < count * each; i++) {
        const uint32_t word = (hash + (uint32_t)(first * each + i)) * 2654435761u;
        out[i] = *scale * ((float)((word ^ word >> 15) & 0xffff) / 32768.0f - 1.0f) +
                 (strstr(name, ".scale") ? 1.0f : 0.0f);
    }
    return STINT_OK;
}

static float weights_scale = 0.6f;
static const sti_weight_source source = {
    .user = &weights_scale, .by_columns = never, .read = read_runs};

static const sti_decoder_desc models[] = {
    {.name = "gpt",
     .model = {.vocabulary = 67, .depth = 2, .width = 24, .heads = 2},
     .context = 150,
     .threads = 3},
    {.name = "llama",
     .model = {.vocabulary = 80, .depth = 1, .width = 32, .heads = 4, .kv_heads = 2},
     .context = 70,
     .threads = 2},
};

/* ---- texts ---- */

typedef struct one_text {
    sti_text_desc desc;
    int32_t prompt[160];
    int32_t want[MOST], got[MOST];
    int64_t count;  /* drawn */
    int64_t leaves; /* after so many; 0: when it is drawn */
    int number;     /* -1: not in the batch */
    int joins;      /* before this step */
} one_text;

static uint32_t word_of(uint32_t *state)
{
    *state = *state * 1664525u + 1013904223u;
    return *state >> 8;
}

static void make_texts(const sti_decoder_desc *m, one_text *text)
{
    uint32_t state = 3;
    for (int i = 0; i < TEXTS; i++) {
        one_text *t = &text[i];
        *t = (one_text){.number = -1, .joins = (int)(word_of(&state) % 60)};
        t->desc = (sti_text_desc){.tokens = t->prompt,
                                  .count = i == 0   ? m->context
                                           : i == 1 ? 1
                                                    : 1 + word_of(&state) % m->context,
                                  .draws = 1 + word_of(&state) % 200,
                                  .sampler = {.temperature = i % 4 ? 0.5 * (i % 4) : 0,
                                              .top_k = i % 3 ? 0 : 5 + i,
                                              .top_p = i % 5 == 2 ? 0.8 : 1,
                                              .seed = (uint64_t)i * 1000},
                                  .user = t};
        for (int64_t k = 0; k < t->desc.count; k++)
            t->prompt[k] = (int32_t)(word_of(&state) % (uint32_t)m->model.vocabulary);
        t->leaves = i % 6 == 4 ? t->desc.draws / 2 : 0;
    }
}

/* A text of its own: what docs of stint_generator_next say. */
static void draw_alone(const sti_decoder_desc *m, one_text *t)
{
    int32_t window[160];
    int64_t length = t->desc.count, read = 0;
    sti_decoder *d = NULL;
    sti_sampler sampler;
    sti_decoder_desc desc = *m;
    desc.capacity = m->context;
    assert_int_equal(sti_decoder_create(&desc, &source, &d), STINT_OK);
    assert_int_equal(sti_sampler_init(&t->desc.sampler, m->model.vocabulary, &sampler),
                     STINT_OK);
    memcpy(window, t->prompt, (size_t)length * sizeof *window);
    for (int64_t i = 0; i < t->desc.draws; i++) {
        const float *logits;
        sti_decoder_run(d, window + read, length - read, read, &logits);
        read = length;
        assert_int_equal(sti_sampler_draw(&sampler, logits, i, &t->want[i]), STINT_OK);
        if (length == m->context) {
            const int64_t keep = m->context / 2;
            memmove(window, window + length - keep, (size_t)keep * sizeof *window);
            length = keep;
            read = 0;
        }
        window[length++] = t->want[i];
    }
    sti_sampler_fini(&sampler);
    sti_decoder_destroy(d);
}

static bool has_ended(const one_text *t)
{
    return t->count == (t->leaves ? t->leaves : t->desc.draws);
}

static void join_all(sti_text_batch *b, one_text *text, int step)
{
    for (int i = 0; i < TEXTS; i++) {
        one_text *t = &text[i];
        if (t->number >= 0 || t->joins > step || has_ended(t))
            continue;
        const stint_status st = sti_text_batch_join(b, &t->desc, &t->number);
        assert_true(st == STINT_OK || st == STINT_E_BUDGET);
        if (st != STINT_OK)
            t->number = -1;
    }
}

static bool take_drawn(sti_text_batch *b, const sti_text_drawn *drawn, int count)
{
    for (int i = 0; i < count; i++) {
        one_text *t = drawn[i].user;
        assert_int_equal(drawn[i].status, STINT_OK);
        assert_int_equal(drawn[i].text, t->number);
        t->got[t->count++] = drawn[i].token;
        assert_int_equal(drawn[i].last, t->count == t->desc.draws);
        if (has_ended(t) && !drawn[i].last)
            sti_text_batch_leave(b, t->number);
        if (has_ended(t))
            t->number = -1;
    }
    return count > 0;
}

static int64_t draw_together(const sti_decoder_desc *m, int texts, int64_t pages,
                             one_text *text)
{
    sti_text_batch *b = NULL;
    sti_text_drawn drawn[STI_TEXTS_MOST];
    sti_text_batch_state state;
    int idle = 0;
    const sti_text_batch_desc desc = {.decoder = *m, .texts = texts, .pages = pages};
    if (sti_text_batch_create(&desc, &source, &b) != STINT_OK)
        fail_msg("%s", stint_last_error());
    sti_text_batch_rehearse(b, 1, STI_DECODER_ROWS); /* leaves nothing behind */
    for (int step = 0; idle < 100; step++) {
        join_all(b, text, step);
        const int rows = sti_text_batch_rows(b);
        const int64_t before = sti_alloc_count();
        const int count = sti_text_batch_step(b, 1 + step % m->threads, drawn);
        assert_int_equal(sti_alloc_count(), before);
        assert_true(rows <= STI_DECODER_ROWS && (rows > 0 || count == 0));
        idle = take_drawn(b, drawn, count) ? 0 : idle + 1;
    }
    sti_text_batch_describe(b, &state);
    assert_int_equal(state.texts, 0);
    assert_int_equal(state.free_pages, pages);
    sti_text_batch_destroy(b);
    return state.set_back;
}

static void compare(const one_text *text, const char *what)
{
    for (int i = 0; i < TEXTS; i++) {
        const one_text *t = &text[i];
        if (!has_ended(t))
            fail_msg("%s: text %d has %d of %d tokens", what, i, (int)t->count,
                     (int)t->desc.draws);
        for (int64_t k = 0; k < t->count; k++)
            if (t->got[k] != t->want[k])
                fail_msg("%s: text %d, token %d: %d, alone %d", what, i, (int)k,
                         t->got[k], t->want[k]);
    }
}

static void texts_are_those_drawn_alone(void **state)
{
    static one_text text[TEXTS];
    (void)state;
    for (size_t m = 0; m < sizeof models / sizeof models[0]; m++) {
        const int64_t context_pages = (models[m].context + 63) / 64;
        make_texts(&models[m], text);
        for (int i = 0; i < TEXTS; i++)
            draw_alone(&models[m], &text[i]);
        for (int few = 0; few < 3; few++) {
            const int64_t pages = few == 2   ? context_pages
                                  : few == 1 ? context_pages + 2
                                             : 200;
            const int64_t set_back =
                draw_together(&models[m], few == 1 ? 5 : TEXTS, pages, text);
            compare(text, models[m].name);
            assert_true((set_back > 0) == (few > 0));
            for (int i = 0; i < TEXTS; i++)
                text[i].count = 0;
        }
    }
}

static void what_is_wrong_is_refused(void **state)
{
    sti_text_batch *b = NULL;
    sti_text_batch_sizes sizes;
    int32_t token = 3;
    int number;
    (void)state;
    sti_text_batch_desc desc = {.decoder = models[0], .texts = 65, .pages = 3};
    assert_int_equal(sti_text_batch_measure(&desc, &sizes), STINT_E_USAGE);
    desc.texts = 1;
    desc.pages = 2;
    assert_int_equal(sti_text_batch_measure(&desc, &sizes), STINT_E_USAGE);
    desc.pages = 3;
    assert_int_equal(sti_text_batch_measure(&desc, &sizes), STINT_OK);
    assert_int_equal(sizes.context_pages, 3);
    const size_t before = sti_alloc_now_bytes();
    assert_int_equal(sti_text_batch_create(&desc, &source, &b), STINT_OK);
    assert_true(sti_alloc_now_bytes() - before <= sizes.total_bytes + 1024);
    sti_text_desc text = {
        .tokens = &token, .count = 1, .draws = 2, .sampler = {.top_p = 1}};
    text.count = 0;
    assert_int_equal(sti_text_batch_join(b, &text, &number), STINT_E_INPUT);
    text.count = 151;
    assert_int_equal(sti_text_batch_join(b, &text, &number), STINT_E_INPUT);
    text.count = 1;
    text.draws = 0;
    assert_int_equal(sti_text_batch_join(b, &text, &number), STINT_E_USAGE);
    text.draws = 2;
    text.sampler.top_p = 2;
    assert_int_equal(sti_text_batch_join(b, &text, &number), STINT_E_USAGE);
    text.sampler.top_p = 1;
    token = 67;
    assert_int_equal(sti_text_batch_join(b, &text, &number), STINT_E_INPUT);
    token = 66;
    assert_int_equal(sti_text_batch_join(b, &text, &number), STINT_OK);
    assert_int_equal(sti_text_batch_join(b, &text, &number), STINT_E_BUDGET);
    assert_int_equal(sti_text_batch_left(b, 0), 2);
    assert_int_equal(sti_text_batch_left(b, 1), 0);
    sti_text_batch_destroy(b);
}

/* Logits that are no numbers end that text, and no other. */
static void logits_that_are_no_numbers_end_a_text(void **state)
{
    sti_text_batch *b = NULL;
    sti_text_drawn drawn[STI_TEXTS_MOST];
    const int32_t token = 3;
    int number;
    (void)state;
    weights_scale = 3e37f;
    const sti_text_batch_desc desc = {.decoder = models[0], .texts = 2, .pages = 3};
    assert_int_equal(sti_text_batch_create(&desc, &source, &b), STINT_OK);
    weights_scale = 0.6f;
    const sti_text_desc text = {
        .tokens = &token, .count = 1, .draws = 2, .sampler = {.top_p = 1}};
    assert_int_equal(sti_text_batch_join(b, &text, &number), STINT_OK);
    assert_int_equal(sti_text_batch_step(b, 1, drawn), 1);
    assert_int_equal(drawn[0].status, STINT_E_FAILED);
    assert_true(drawn[0].last);
    assert_int_equal(sti_text_batch_rows(b), 0);
    assert_int_equal(sti_text_batch_step(b, 1, drawn), 0);
    sti_text_batch_destroy(b);
}

static void allocation_failures_are_clean(void **state)
{
    (void)state;
    const size_t before = sti_alloc_now_bytes();
    for (int64_t n = 1;; n++) {
        sti_text_batch *b = NULL;
        const sti_text_batch_desc desc = {.decoder = models[1], .texts = 2, .pages = 3};
        sti_alloc_fail_nth(n);
        const stint_status st = sti_text_batch_create(&desc, &source, &b);
        sti_alloc_fail_nth(0);
        sti_text_batch_destroy(b);
        assert_int_equal(sti_alloc_now_bytes(), before);
        if (st == STINT_OK)
            break;
        assert_int_equal(st, STINT_E_MEMORY);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(texts_are_those_drawn_alone),
        cmocka_unit_test(what_is_wrong_is_refused),
        cmocka_unit_test(logits_that_are_no_numbers_end_a_text),
        cmocka_unit_test(allocation_failures_are_clean),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
