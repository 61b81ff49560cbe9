/* A table through caches of all kinds against an array; taken back to checkpoints, at
 * every point where a write could have been the last; damaged, of another kind, in use.
 */
#include "embed/row_store.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/file.h"
#include "base/memory.h"
#include "base/rng.h"
#include "stint/status.h"

enum { ROWS = 500, WIDTH = 30, STATE = 2, BATCHES = 60, IDS = 40 };

static char folder[256];

static void draw(int64_t batch, uint32_t *rank)
{
    for (uint32_t i = 0; i < IDS; i++) {
        uint32_t w[4];
        sti_random4(11, STI_STREAM_TEST, (uint64_t)batch, i, w);
        const float u = sti_uniform(w[0]);
        rank[i] = (uint32_t)(u * u * ROWS);
    }
}

static stint_status load(void *user, int64_t batch, int ring, uint32_t *rank,
                         uint32_t *vector, int64_t *ids_out)
{
    (void)user;
    (void)ring;
    draw(batch, rank);
    for (uint32_t i = 0; i < IDS; i++)
        vector[i] = i;
    *ids_out = IDS;
    return STINT_OK;
}

static stint_status look(void *user, int64_t batch, uint32_t *rank_out,
                         int64_t *count_out)
{
    uint32_t scratch[IDS];
    (void)user;
    draw(batch, rank_out);
    *count_out = sti_row_batch_unique(rank_out, IDS, scratch);
    return STINT_OK;
}

static sti_row_store_desc desc_of(void)
{
    sti_row_store_desc d = {.folder = folder,
                            .identity = "a test",
                            .cached = ROWS,
                            .hot = 0.2,
                            .policy = STI_CACHE_LRU,
                            .lookahead = 8,
                            .depth = 1,
                            .io = STI_ASYNC_THREADS,
                            .most = IDS};
    assert_int_equal(sti_row_layout_of(ROWS, WIDTH, STATE, 5, 0.1f, &d.layout),
                     STINT_OK);
    return d;
}

/* What a batch does to a row, here and in the array. */
static void change(float *row, int64_t batch, uint32_t times)
{
    for (int i = 0; i < WIDTH + STATE; i++)
        row[i] = row[i] * 0.5f + (float)batch + (float)times * (float)i;
}

typedef struct table {
    float row[ROWS][(WIDTH + STATE + 3) / 4 * 4];
} table;

static void begin_table(table *t)
{
    const sti_row_store_desc d = desc_of();
    for (uint32_t r = 0; r < ROWS; r++)
        sti_row_make(&d.layout, r, t->row[r]);
}

static void run_table(table *t, int64_t first, int64_t batches)
{
    for (int64_t b = first; b < batches; b++) {
        uint32_t rank[IDS], times[ROWS] = {0};
        draw(b, rank);
        for (int i = 0; i < IDS; i++)
            times[rank[i]]++;
        for (int r = 0; r < ROWS; r++)
            if (times[r])
                change(t->row[r], b, times[r]);
    }
}

static void run_store(sti_row_store *s, int64_t first, int64_t batches)
{
    const sti_row_course course = {.first = first,
                                   .batches = batches,
                                   .load = load,
                                   .look = look,
                                   .trained = true};
    assert_int_equal(sti_row_store_begin(s, &course), STINT_OK);
    for (int64_t b = first; b < batches; b++) {
        const sti_row_batch *batch;
        float *const *row;
        assert_int_equal(sti_row_store_step(s, b, &batch, &row), STINT_OK);
        for (int64_t u = 0; u < batch->count; u++)
            change(row[u], b, batch->start[u + 1] - batch->start[u]);
        assert_int_equal(sti_row_store_done(s, b), STINT_OK);
    }
}

static stint_status compare(void *user, int64_t first, int64_t count,
                            const void *records, int64_t record_bytes)
{
    const table *t = user;
    for (int64_t i = 0; i < count; i++)
        if (memcmp((const char *)records + i * record_bytes, t->row[first + i],
                   4 * (WIDTH + STATE)) != 0)
            fail_msg("row %d differs", (int)(first + i));
    return STINT_OK;
}

static sti_row_store *open_store(const sti_row_store_desc *d)
{
    sti_row_store *s = NULL;
    if (sti_row_store_open(d, &s) != STINT_OK)
        fail_msg("%s", stint_last_error());
    return s;
}

static void all_caches_keep_one_table(void **state)
{
    static const sti_async_way ways[] = {STI_ASYNC_THREADS, STI_ASYNC_AUTO,
                                         STI_ASYNC_MMAP};
    table *want = malloc(sizeof *want);
    (void)state;
    begin_table(want);
    run_table(want, 0, BATCHES);
    for (int k = 0; k < 12; k++) {
        sti_row_store_desc d = desc_of();
        d.policy = (sti_cache_policy)(k % 4);
        d.io = ways[k % 3];
        d.depth = 1 + k % 3;
        d.cached = k == 0 ? ROWS : 250 + 10 * k;
        sti_row_store *s = open_store(&d);
        assert_int_equal(sti_row_store_rewind(s, 0, 1), STINT_OK);
        run_store(s, 0, BATCHES);
        assert_int_equal(sti_row_store_flush(s), STINT_OK);
        assert_int_equal(sti_row_store_each(s, compare, want), STINT_OK);
        const sti_row_counts counts = sti_row_store_counts(s);
        assert_true(k == 0 ? counts.rows_missed == 0 : counts.rows_missed > 100);
        sti_row_store_close(s);
    }
    free(want);
}

/* Cut a file to `bytes`, or flip a byte of it. */
static void harm(const char *name, int64_t bytes, int64_t flip)
{
    char path[512];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    const int fd = open(path, O_RDWR);
    char byte;
    assert_true(fd >= 0);
    if (bytes >= 0)
        assert_int_equal(ftruncate(fd, (off_t)bytes), 0);
    if (flip >= 0) {
        assert_int_equal(pread(fd, &byte, 1, (off_t)flip), 1);
        byte = (char)(byte ^ 16);
        assert_int_equal(pwrite(fd, &byte, 1, (off_t)flip), 1);
    }
    close(fd);
}

/* Three checkpoints, then changes that no checkpoint has. */
static void make_checkpoints(sti_row_store_desc *d)
{
    *d = desc_of();
    d->cached = 240;
    sti_row_store *s = open_store(d);
    assert_int_equal(sti_row_store_rewind(s, 0, 2), STINT_OK);
    for (int64_t g = 1; g <= 3; g++) {
        run_store(s, 10 * (g - 1), 10 * g);
        assert_int_equal(sti_row_store_flush(s), STINT_OK);
        assert_int_equal(sti_row_store_commit(s, g, 2), STINT_OK);
    }
    run_store(s, 30, 45);
    sti_row_store_close(s); /* as a process that ends: nothing is flushed */
    d->resume = true;
}

static void goes_back_to_checkpoints(void **state)
{
    table *want = malloc(sizeof *want);
    sti_row_store_desc d;
    (void)state;
    for (int64_t g = 3; g >= 2; g--) {
        make_checkpoints(&d);
        begin_table(want);
        run_table(want, 0, 10 * g);
        sti_row_store *s = open_store(&d);
        assert_int_equal(sti_row_store_rewind(s, g, 2), STINT_OK);
        assert_int_equal(sti_row_store_each(s, compare, want), STINT_OK);
        run_table(want, 10 * g, BATCHES);
        run_store(s, 10 * g, BATCHES);
        assert_int_equal(sti_row_store_flush(s), STINT_OK);
        assert_int_equal(sti_row_store_each(s, compare, want), STINT_OK);
        sti_row_store_close(s);
    }
    free(want);
}

/* Pages that were half written when the power went, and a journal whose end is torn,
 * are both taken back: each overwritten page is whole in the journal before. */
static void half_written_pages_are_taken_back(void **state)
{
    table *want = malloc(sizeof *want);
    sti_row_store_desc d;
    (void)state;
    begin_table(want);
    run_table(want, 0, 30);
    for (int64_t page = 1; page <= 12; page += 3) {
        make_checkpoints(&d);
        sti_row_store *s = open_store(&d);
        assert_int_equal(sti_row_store_rewind(s, 3, 2), STINT_OK);
        run_store(s, 30, 45); /* many pages are in the journal now */
        assert_int_equal(sti_row_store_flush(s), STINT_OK);
        sti_row_store_close(s);
        harm("rows.bin", -1, page * 4096 + 100);
        char path[512];
        snprintf(path, sizeof path, "%s/journal-3", folder);
        FILE *f = fopen(path, "ab"); /* a record that did not get whole */
        assert_non_null(f);
        fwrite("torn", 1, 4, f);
        fclose(f);
        s = open_store(&d);
        assert_int_equal(sti_row_store_rewind(s, 3, 2), STINT_OK);
        assert_int_equal(sti_row_store_each(s, compare, want), STINT_OK);
        sti_row_store_close(s);
    }
    free(want);
}

static void damage_is_told(void **state)
{
    sti_row_store_desc d;
    sti_row_store *s = NULL, *other = NULL;
    table want;
    (void)state;
    make_checkpoints(&d);
    s = open_store(&d);
    assert_int_equal(sti_row_store_open(&d, &other), STINT_E_USAGE); /* two on one */
    assert_int_equal(sti_row_store_rewind(s, 3, 2), STINT_OK);
    assert_int_equal(sti_row_store_rewind(s, 9, 2),
                     STINT_E_INPUT); /* older than that */
    sti_row_store_close(s);
    sti_row_store_desc wide = d;
    assert_int_equal(sti_row_layout_of(ROWS, WIDTH + 1, STATE, 5, 0.1f, &wide.layout),
                     STINT_OK);
    assert_int_equal(sti_row_store_open(&wide, &other), STINT_E_INPUT);
    assert_non_null(strstr(stint_last_error(), "width 30"));
    sti_row_store_desc seed = d;
    seed.layout.seed = 6;
    assert_int_equal(sti_row_store_open(&seed, &other), STINT_E_INPUT);
    assert_non_null(strstr(stint_last_error(), "seed 5"));
    sti_row_store_desc named = d;
    named.identity = "another test";
    assert_int_equal(sti_row_store_open(&named, &other), STINT_E_INPUT);
    assert_non_null(strstr(stint_last_error(), "a test"));
    harm("rows.bin", -1, 5 * 4096 + 17);
    s = open_store(&d);
    memset(&want, 0, sizeof want);
    assert_int_equal(sti_row_store_rewind(s, 3, 2), STINT_OK);
    const sti_row_course course = {
        .first = 0, .batches = BATCHES, .load = load, .look = look, .trained = true};
    stint_status st = sti_row_store_begin(s, &course);
    for (int64_t b = 0; b < BATCHES && st == STINT_OK; b++) {
        const sti_row_batch *batch;
        float *const *row;
        st = sti_row_store_step(s, b, &batch, &row);
        st = st == STINT_OK ? sti_row_store_done(s, b) : st;
    }
    assert_int_equal(st, STINT_E_INPUT);
    assert_non_null(strstr(stint_last_error(), "page 5"));
    sti_row_store_close(s);
    harm("rows.bin", 4096 * 3, -1);
    assert_int_equal(sti_row_store_open(&d, &other), STINT_E_INPUT);
    assert_non_null(strstr(stint_last_error(), "cut short"));
}

static void every_allocation_may_fail(void **state)
{
    const sti_row_store_desc d = desc_of();
    (void)state;
    for (int64_t n = 1;; n++) {
        sti_row_store *s = NULL;
        sti_alloc_fail_nth(n);
        const stint_status st = sti_row_store_open(&d, &s);
        sti_alloc_fail_nth(0);
        sti_row_store_close(s);
        if (st == STINT_OK)
            break;
        assert_int_equal(st, STINT_E_MEMORY);
        assert_true(n < 200);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_caches_keep_one_table),
        cmocka_unit_test(goes_back_to_checkpoints),
        cmocka_unit_test(half_written_pages_are_taken_back),
        cmocka_unit_test(damage_is_told),
        cmocka_unit_test(every_allocation_may_fail),
    };
    const char *tmp = getenv("TMPDIR");
    char command[300];
    snprintf(folder, sizeof folder, "%s/stint-rows-XXXXXX", tmp ? tmp : "/var/tmp");
    if (!mkdtemp(folder))
        return 1;
    const int failed = cmocka_run_group_tests(tests, NULL, NULL);
    snprintf(command, sizeof command, "rm -rf '%s'", folder);
    return system(command) != 0 ? 1 : failed;
}
