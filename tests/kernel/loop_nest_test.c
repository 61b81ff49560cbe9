/* Loop strings against an interpreter of their own: 10,000 random strings, ranges that
 * do and do not divide, 1 to 7 threads, groups of capitals and grids. The interpreter
 * reads the text again for every thread and knows nothing of levels or ranges kept. */
#include <ctype.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "gemm_model.h"
#include "kernel/loop/loop.h"

enum { LOOPS = 4, CALLS_MAX = 1 << 14, THREADS_MAX = 7 };

typedef struct call {
    int64_t at[LOOPS];
} call;

typedef struct trace {
    int64_t count;
    call calls[CALLS_MAX];
} trace;

/* ---- the interpreter ---- */

typedef struct toy {
    const char *text;
    const sti_loop_spec *spec;
    int loops, threads, thread;
    trace *out;
} toy;

/* One item of the text: letter, grid, where the next begins. */
typedef struct item {
    char letter;
    char axis;
    int ways;
    const char *next;
} item;

static item item_at(const char *p)
{
    item it = {.letter = *p, .next = p + 1};
    if (*it.next == '{') {
        it.axis = it.next[1];
        it.ways = atoi(it.next + 3);
        it.next = strchr(it.next, '}') + 1;
    }
    if (*it.next == '|')
        it.next++;
    return it;
}

static int count_before(const char *text, const char *end, char letter)
{
    int n = 0;
    for (const char *p = text; p < end; p = item_at(p).next)
        n += tolower(item_at(p).letter) == tolower(letter);
    return n;
}

static int64_t step_of(const toy *t, const char *p)
{
    const item it = item_at(p);
    const sti_loop_spec *s = &t->spec[tolower(it.letter) - 'a'];
    const int r = count_before(t->text, p, it.letter);
    const int all = count_before(t->text, t->text + strlen(t->text), it.letter);
    return r == all - 1 ? s->step : s->block[r];
}

static int grid_ways(const toy *t, char axis)
{
    for (const char *p = t->text; *p; p = item_at(p).next)
        if (item_at(p).axis == axis)
            return item_at(p).ways;
    return 1;
}

static int grid_place(const toy *t, char axis)
{
    const int rows = grid_ways(t, 'R'), cols = grid_ways(t, 'C');
    if (axis == 'R')
        return t->thread % (rows * cols) / cols;
    return axis == 'C' ? t->thread % cols : t->thread / (rows * cols);
}

/* Range of the item's loop where the outer occurrences stand. */
static void open_range(const toy *t, const char *p, const int64_t (*stack)[2],
                       int64_t *from, int64_t *to)
{
    const int x = tolower(item_at(p).letter) - 'a';
    *from = t->spec[x].start;
    *to = t->spec[x].end;
    int depth = 0;
    for (const char *q = t->text; q < p; q = item_at(q).next, depth++)
        if (tolower(item_at(q).letter) - 'a' == x) {
            *from = stack[depth][0];
            *to = stack[depth][1];
        }
}

static void toy_level(const toy *t, const char *p, int depth, int64_t (*stack)[2]);

static void toy_down(const toy *t, const char *p, int depth, int64_t (*stack)[2],
                     int64_t i, int64_t end)
{
    const int64_t step = step_of(t, p);
    stack[depth][0] = i;
    stack[depth][1] = i + step < end ? i + step : end;
    toy_level(t, item_at(p).next, depth + 1, stack);
}

/* The group: count every combination, blocks clipped or not, and keep our share. */
static void toy_group(const toy *t, const char *p, int depth, int64_t (*stack)[2])
{
    int64_t count[24], from[24], total = 1;
    const char *q = p;
    int n = 0;
    for (; *q && isupper((unsigned char)item_at(q).letter); q = item_at(q).next, n++) {
        int64_t to;
        const char *same = NULL;
        for (const char *r = p; r < q; r = item_at(r).next)
            if (item_at(r).letter == item_at(q).letter)
                same = r;
        open_range(t, q, (const int64_t(*)[2])stack, &from[n], &to);
        const int64_t length = same ? step_of(t, same) : to - from[n];
        count[n] = (length + step_of(t, q) - 1) / step_of(t, q);
        total *= count[n];
    }
    for (int64_t o = 0; o < total; o++) {
        if (o < total * t->thread / t->threads ||
            o >= total * (t->thread + 1) / t->threads)
            continue;
        int64_t left = o, below = total;
        bool there = true;
        int d = depth;
        for (const char *r = p; r < q && there; r = item_at(r).next, d++) {
            int64_t low, to;
            below /= count[d - depth];
            open_range(t, r, (const int64_t(*)[2])stack, &low, &to);
            const int64_t i = low + left / below * step_of(t, r);
            left %= below;
            there = i < to;
            stack[d][0] = i;
            stack[d][1] = i + step_of(t, r) < to ? i + step_of(t, r) : to;
        }
        if (there)
            toy_level(t, q, d, stack);
    }
}

static void toy_emit(const toy *t, const int64_t (*stack)[2])
{
    call c = {{0}};
    int depth = 0;
    for (const char *p = t->text; *p; p = item_at(p).next, depth++)
        c.at[tolower(item_at(p).letter) - 'a'] = stack[depth][0];
    assert_true(t->out->count < CALLS_MAX);
    t->out->calls[t->out->count++] = c;
}

static void toy_level(const toy *t, const char *p, int depth, int64_t (*stack)[2])
{
    int64_t from, to;
    if (!*p) {
        toy_emit(t, (const int64_t(*)[2])stack);
        return;
    }
    const item it = item_at(p);
    if (isupper((unsigned char)it.letter) && !it.axis) {
        toy_group(t, p, depth, stack);
        return;
    }
    open_range(t, p, (const int64_t(*)[2])stack, &from, &to);
    const int64_t step = step_of(t, p), tasks = (to - from + step - 1) / step;
    int64_t i = 0, end = tasks;
    if (it.axis) {
        const int64_t chunk = (tasks + it.ways - 1) / it.ways;
        i = grid_place(t, it.axis) * chunk;
        end = i + chunk < tasks ? i + chunk : tasks;
    }
    for (; i < end; i++)
        toy_down(t, p, depth, stack, from + i * step, to);
}

static void toy_run(const toy *t)
{
    int64_t stack[32][2];
    bool any = false;
    t->out->count = 0;
    for (const char *p = t->text; *p; p++)
        any = any || isupper((unsigned char)*p);
    const int places = grid_ways(t, 'R') * grid_ways(t, 'C') * grid_ways(t, 'L');
    if (t->thread > 0 && (!any || (strchr(t->text, '{') && t->thread >= places)))
        return;
    toy_level(t, t->text, 0, stack);
}

/* ---- random strings ---- */

typedef struct nest {
    char text[128];
    sti_loop_spec spec[LOOPS];
    int loops, threads;
} nest;

static void random_spec(model_rng *rng, sti_loop_spec *s, int blocks, bool reduces)
{
    *s = (sti_loop_spec){.blocks = blocks, .reduces = reduces};
    s->start = model_between(rng, -2, 3);
    s->end = s->start + model_between(rng, 0, 13);
    s->step = model_between(rng, 1, 3);
    int64_t size = s->step;
    for (int r = blocks - 1; r >= 0; r--)
        s->block[r] = size *= model_between(rng, 1, 3);
}

/* Letters in random order, 1 to 3 of each loop; loop 0 reduces. */
static int random_letters(model_rng *rng, nest *n, char *letters)
{
    int length = 0;
    for (int x = 0; x < n->loops; x++) {
        const int times = (int)model_between(rng, 1, n->loops > 3 ? 2 : 3);
        random_spec(rng, &n->spec[x], times - 1, x == 0);
        for (int i = 0; i < times; i++)
            letters[length++] = (char)('a' + x);
    }
    for (int i = length - 1; i > 0; i--) {
        const int j = (int)model_between(rng, 0, i);
        const char swap = letters[i];
        letters[i] = letters[j];
        letters[j] = swap;
    }
    return length;
}

static void random_nest(model_rng *rng, nest *n)
{
    char letters[32], *out = n->text;
    n->loops = (int)model_between(rng, 1, LOOPS);
    n->threads = (int)model_between(rng, 1, THREADS_MAX);
    const int length = random_letters(rng, n, letters);
    const int mode = (int)model_between(rng, 0, 2); /* serial, group, grids */
    const int group = (int)model_between(rng, 0, length - 1);
    const int group_end = group + (int)model_between(rng, 0, 3);
    int places = n->threads, axis = 0;
    for (int i = 0; i < length; i++) {
        const bool may = letters[i] != 'a';
        bool in = mode == 1 && i >= group && i <= group_end && may;
        if (mode == 1 && i > group && i <= group_end &&
            !isupper((unsigned char)out[-1]))
            in = false; /* one group only */
        *out++ = (char)(in ? toupper(letters[i]) : letters[i]);
        if (mode == 2 && may && axis < 3 && model_between(rng, 0, 1)) {
            const int ways = (int)model_between(rng, 1, places);
            out[-1] = (char)toupper(letters[i]);
            out += sprintf(out, "{%c:%d}", "RCL"[axis++], ways);
            places /= ways;
        }
    }
    *out = '\0';
}

/* ---- comparing ---- */

static void record(void *arg, const int64_t *at, const int64_t *to,
                   sti_loop_where where)
{
    trace *t = (trace *)arg + where.thread;
    call c = {{0}};
    for (int x = 0; x < LOOPS; x++)
        c.at[x] = at[x];
    (void)to;
    assert_true(t->count < CALLS_MAX);
    t->calls[t->count++] = c;
}

static int by_index(const void *a, const void *b)
{
    return memcmp(a, b, sizeof(call));
}

static void expect_same(const nest *n, int thread, const trace *want, const trace *got)
{
    if (want->count == got->count &&
        memcmp(want->calls, got->calls, (size_t)want->count * sizeof(call)) == 0)
        return;
    fail_msg("'%s', thread %d of %d: %d calls, wanted %d, or another order", n->text,
             thread, n->threads, (int)got->count, (int)want->count);
}

/* All calls together are the product of the ranges, each once. */
static void expect_product(const nest *n, trace *all)
{
    call *want = malloc(sizeof *want * CALLS_MAX);
    int64_t count = 1, done = 0;
    assert_non_null(want);
    for (int x = 0; x < n->loops; x++)
        count *=
            (n->spec[x].end - n->spec[x].start + n->spec[x].step - 1) / n->spec[x].step;
    assert_true(count < CALLS_MAX);
    memset(want, 0, sizeof *want * CALLS_MAX);
    for (int64_t i = 0; i < count; i++) {
        int64_t left = i;
        for (int x = 0; x < n->loops; x++) {
            const sti_loop_spec *s = &n->spec[x];
            const int64_t steps = (s->end - s->start + s->step - 1) / s->step;
            want[i].at[x] = s->start + left % steps * s->step;
            left /= steps;
        }
    }
    for (int t = 1; t < n->threads; t++) {
        memcpy(all[0].calls + all[0].count + done, all[t].calls,
               sizeof(call) * (size_t)all[t].count);
        done += all[t].count;
    }
    if (all[0].count + done != count)
        fail_msg("'%s', %d threads: %d calls, wanted %d", n->text, n->threads,
                 (int)(all[0].count + done), (int)count);
    qsort(want, (size_t)count, sizeof *want, by_index);
    qsort(all[0].calls, (size_t)count, sizeof *want, by_index);
    assert_memory_equal(want, all[0].calls, (size_t)count * sizeof *want);
    free(want);
}

static void check_nest(const nest *n, trace *want, trace *got, bool on_team)
{
    sti_loop loop;
    if (sti_loop_bind(n->text, n->spec, n->loops, n->threads, &loop) != STINT_OK)
        fail_msg("%s", stint_last_error());
    for (int t = 0; t < n->threads; t++)
        got[t].count = 0;
    if (on_team)
        sti_loop_run(&loop, &(sti_team){n->threads}, record, NULL, NULL, got);
    else
        for (int t = 0; t < n->threads; t++) {
            trace *own = got + t;
            sti_loop_walk(&loop, t, record, own - t);
        }
    for (int t = 0; t < n->threads; t++) {
        toy_run(&(toy){n->text, n->spec, n->loops, n->threads, t, want});
        expect_same(n, t, want, &got[t]);
    }
    expect_product(n, got);
}

static void random_strings_equal_the_interpreter(void **state)
{
    model_rng rng = {2026};
    trace *traces = calloc(THREADS_MAX + 1, sizeof *traces);
    (void)state;
    assert_non_null(traces);
    for (int i = 0; i < 10000; i++) {
        nest n;
        random_nest(&rng, &n);
        check_nest(&n, traces, traces + 1, i % 50 == 0);
    }
    free(traces);
}

/* ---- barriers, hooks, curves ---- */

typedef struct board {
    int64_t count[16][16]; /* [phase][cell] */
    int begun, ended;      /* of thread 0 */
    bool early;
} board;

/* In phase p every cell must be counted in phase p - 1, by whichever thread. */
static void board_call(void *arg, const int64_t *at, const int64_t *to,
                       sti_loop_where where)
{
    board *b = arg;
    (void)to, (void)where;
    for (int j = 0; at[0] > 0 && j < 16; j++)
        if (b->count[at[0] - 1][j] != 1)
            b->early = true;
    b->count[at[0]][at[1]]++;
}

static void board_begin(void *arg, sti_loop_where where)
{
    board *b = arg;
    if (where.thread == 0)
        b->begun++;
}

static void board_end(void *arg, sti_loop_where where)
{
    board *b = arg;
    if (where.thread == 0)
        b->ended++;
}

static void barriers_hold_everybody(void **state)
{
    const sti_loop_spec spec[2] = {
        {.end = 16, .step = 1, .block = {4}, .blocks = 1, .reduces = true},
        {.end = 16, .step = 1, .block = {4}, .blocks = 1}};
    static const char *const strings[] = {"aB|", "aB{R:2}|", "aaB|", "aB|b", "aBB|"};
    (void)state;
    for (int threads = 2; threads <= 3; threads++)
        for (size_t i = 0; i < sizeof strings / sizeof strings[0]; i++) {
            sti_loop loop;
            board *b = calloc(1, sizeof *b);
            assert_non_null(b);
            assert_int_equal(sti_loop_bind(strings[i], spec, 2, threads, &loop),
                             STINT_OK);
            sti_loop_run(&loop, &(sti_team){threads}, board_call, board_begin,
                         board_end, b);
            assert_false(b->early);
            assert_int_equal(b->begun, 1);
            assert_int_equal(b->ended, 1);
            for (int p = 0; p < 16; p++)
                for (int c = 0; c < 16; c++)
                    assert_int_equal(b->count[p][c], 1);
            free(b);
        }
}

static void curves_visit_every_cell(void **state)
{
    (void)state;
    for (int64_t w = 1; w <= 20; w++)
        for (int64_t h = 1; h <= 20; h++) {
            uint8_t seen[20][20] = {{0}};
            int64_t px = 0, py = 0, jumps = 0;
            for (int64_t d = 0; d < w * h; d++) {
                int64_t x, y;
                sti_loop_curve(w, h, d, &x, &y);
                assert_in_range(x, 0, w - 1);
                assert_in_range(y, 0, h - 1);
                assert_int_equal(seen[x][y]++, 0);
                const int64_t far = llabs(x - px) + llabs(y - py);
                assert_true(far <= 2 && (d == 0 || far >= 1));
                jumps += far == 2;
                px = x, py = y;
            }
            if (w % 2 == 0 && h % 2 == 0)
                assert_int_equal(jumps, 0);
        }
}

static void curve_strings_cover_in_order(void **state)
{
    trace *got = calloc(THREADS_MAX, sizeof *got);
    (void)state;
    assert_non_null(got);
    for (int threads = 1; threads <= THREADS_MAX; threads++)
        for (int folds = 1; folds <= 4; folds++) {
            nest n = {.loops = 3, .threads = threads};
            sti_loop loop;
            n.spec[0] = (sti_loop_spec){.end = 11, .step = 2, .reduces = true};
            n.spec[1] = (sti_loop_spec){.start = 1, .end = 20, .step = 3};
            n.spec[2] = (sti_loop_spec){.end = 13, .step = 4};
            snprintf(n.text, sizeof n.text, "sfc{F:%d}{L:1}", folds);
            assert_int_equal(sti_loop_bind(n.text, n.spec, 3, threads, &loop),
                             STINT_OK);
            memset(got, 0, THREADS_MAX * sizeof *got);
            sti_loop_run(&loop, &(sti_team){threads}, record, NULL, NULL, got);
            for (int t = 0; t < threads; t++) /* a cell meets k in ascending order */
                for (int64_t i = 0; i < got[t].count; i++)
                    for (int64_t j = i + 1; j < got[t].count; j++)
                        if (memcmp(&got[t].calls[i].at[1], &got[t].calls[j].at[1],
                                   2 * sizeof(int64_t)) == 0)
                            assert_true(got[t].calls[i].at[0] < got[t].calls[j].at[0]);
            expect_product(&n, got);
        }
    free(got);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_strings_equal_the_interpreter),
        cmocka_unit_test(barriers_hold_everybody),
        cmocka_unit_test(curves_visit_every_cell),
        cmocka_unit_test(curve_strings_cover_in_order),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
