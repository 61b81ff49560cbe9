/* Clicks by rank against counts of our own, in one part and in many; refusals with
 * file, line and column; ids of a model for other data; damaged files. */
#include "data/clicks.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/file.h"
#include "base/memory.h"
#include "base/number.h"
#include "base/rng.h"
#include "stint/status.h"

enum { SAMPLES = 3000, IDS = 400 };

static char folder[256], text_path[512], ranks_path[512];

static void put(const char *text)
{
    FILE *f = fopen(text_path, "w");
    assert_non_null(f);
    fputs(text, f);
    fclose(f);
}

/* label;n;u;v|v..: ids of u are skewed, those of v come in bags of 0 to 3. */
static int u_of[SAMPLES], v_of[SAMPLES][3], v_count[SAMPLES];

static void make(void)
{
    FILE *f = fopen(text_path, "w");
    assert_non_null(f);
    fputs("n;label;u;v\n", f);
    for (uint64_t i = 0; i < SAMPLES; i++) {
        uint32_t w[4], x[4];
        sti_random4(1, STI_STREAM_TEST, i, 0, w);
        sti_random4(1, STI_STREAM_TEST, i, 1, x);
        const float a = sti_uniform(w[0]);
        u_of[i] = (int)(a * a * IDS);
        v_count[i] = (int)(w[1] % 4);
        fprintf(f, "%d.25;%d;u%d;", (int)(w[2] % 50), (int)(w[3] % 2), u_of[i]);
        for (int k = 0; k < v_count[i]; k++) {
            v_of[i][k] = (int)(x[k] % 20);
            fprintf(f, "%s%d", k ? "|" : "", v_of[i][k]);
        }
        fputs("\n", f);
    }
    fclose(f);
}

typedef struct id_row {
    int field, id, count, rank;
    int64_t first;
} id_row;

static int by_count(const void *a, const void *b)
{
    const id_row *x = a, *y = b;
    return x->count != y->count ? y->count - x->count : x->first < y->first ? -1 : 1;
}

/* Ranks by the words of the header's comment; rows of field f, id i: want[f][i]. */
static int64_t count_ids(int64_t train, int least, int want[2][IDS], int other[2])
{
    static id_row row[2 * IDS + 2];
    int64_t n = 0;
    for (int f = 0; f < 2; f++)
        for (int i = 0; i < IDS; i++)
            row[f * IDS + i] = (id_row){f, i, 0, -1, INT64_MAX};
    for (int64_t s = 0; s < train; s++) {
        for (int k = 0; k <= v_count[s]; k++) {
            id_row *r = k == 0 ? &row[u_of[s]] : &row[IDS + v_of[s][k - 1]];
            r->count++;
            if (r->first == INT64_MAX)
                r->first = 4 * s + k;
        }
    }
    for (int f = 0; f < 2; f++) {
        row[2 * IDS + f] = (id_row){f, -1, 0, -1, INT64_MAX - 2 + f};
        for (int i = 0; i < IDS; i++) {
            id_row *r = &row[f * IDS + i];
            if (r->count > 0 && r->count < least) {
                row[2 * IDS + f].count += r->count;
                if (r->first < row[2 * IDS + f].first)
                    row[2 * IDS + f].first = r->first;
            }
            if (r->count < least)
                r->count = -1;
            want[f][i] = -1;
        }
    }
    qsort(row, 2 * IDS + 2, sizeof *row, by_count);
    for (int k = 0; k < 2 * IDS + 2 && row[k].count >= 0; k++, n++) {
        if (row[k].id < 0)
            other[row[k].field] = k;
        else
            want[row[k].field][row[k].id] = k;
    }
    for (int f = 0; f < 2; f++)
        for (int i = 0; i < IDS; i++)
            want[f][i] = want[f][i] < 0 ? other[f] : want[f][i];
    return n;
}

static sti_clicks_desc csv_desc(void)
{
    return (sti_clicks_desc){.path = text_path,
                             .format = STI_CLICKS_CSV,
                             .dense = "n",
                             .bags = "v",
                             .validation = 0.2};
}

static void open_ranks(const sti_clicks_desc *d, sti_clicks *c)
{
    sti_clicks_counted counted;
    unlink(ranks_path);
    if (sti_clicks_rank(d, ranks_path, &counted) != STINT_OK)
        fail_msg("%s", stint_last_error());
    assert_false(counted.found);
    assert_int_equal(sti_clicks_open(ranks_path, c), STINT_OK);
    assert_int_equal(sti_clicks_rank(d, ranks_path, &counted), STINT_OK);
    assert_true(counted.found);
}

static void compare(const sti_clicks *c, int least)
{
    static int want[2][IDS];
    int other[2] = {0, 0};
    assert_int_equal(c->train, SAMPLES - SAMPLES / 5);
    assert_int_equal(c->rows, count_ids(c->train, least, want, other));
    for (int64_t i = 0; i < SAMPLES; i++) {
        uint32_t sample[16];
        assert_true(c->sample_bytes <= sizeof sample);
        assert_int_equal(sti_clicks_read(c, i, 1, sample), STINT_OK);
        const uint32_t *rank = sti_clicks_ranks(c, sample);
        assert_true(fmodf(sti_clicks_numbers(c, sample)[0], 1) == 0.25f);
        assert_int_equal(rank[0], want[0][u_of[i]]);
        for (int k = 0; k < 3; k++)
            assert_int_equal(rank[1 + k], k < v_count[i] ? (uint32_t)want[1][v_of[i][k]]
                                                         : STI_CLICKS_NO_ROW);
    }
}

static void ranks_are_those_of_counts(void **state)
{
    char sha[65] = "";
    (void)state;
    make();
    for (int least = 1; least <= 9; least += 4)
        for (int parts = 0; parts < 2; parts++) {
            sti_clicks c;
            sti_clicks_desc d = csv_desc();
            d.min_count = least;
            d.memory_bytes = parts ? 100000 : 0; /* some ten parts and blocks */
            open_ranks(&d, &c);
            compare(&c, least);
            if (parts)
                assert_string_equal(sha, c.sha256);
            memcpy(sha, c.sha256, sizeof sha);
            sti_clicks_close(&c);
        }
}

/* The model's ids for other samples; what it never saw is `other`. */
static void other_data_has_the_models_ranks(void **state)
{
    static int want[2][IDS];
    int other[2];
    sti_clicks model, c;
    char kept[520];
    uint32_t sample[16];
    (void)state;
    make();
    sti_clicks_desc d = csv_desc();
    open_ranks(&d, &model);
    count_ids(model.train, 1, want, other);
    snprintf(kept, sizeof kept, "%s.ids", ranks_path);
    assert_int_equal(sti_clicks_write_ids(&model, kept), STINT_OK);
    sti_clicks_close(&model);
    assert_int_equal(sti_clicks_open(kept, &model), STINT_OK);
    assert_int_equal(model.samples, 0);
    put("n;u;v\n1;u3;2|5\n2;never;\n");
    d.like = &model;
    d.unlabelled = true;
    d.validation = 0;
    open_ranks(&d, &c);
    assert_int_equal(c.samples, 2);
    assert_int_equal(c.rows, model.rows);
    assert_int_equal(sti_clicks_read(&c, 0, 1, sample), STINT_OK);
    assert_int_equal(sti_clicks_ranks(&c, sample)[0], want[0][3]);
    assert_int_equal(sti_clicks_ranks(&c, sample)[1], want[1][2]);
    assert_int_equal(sti_clicks_ranks(&c, sample)[2], want[1][5]);
    assert_int_equal(sti_clicks_read(&c, 1, 1, sample), STINT_OK);
    assert_int_equal(sti_clicks_ranks(&c, sample)[0], other[0]);
    assert_int_equal(sti_clicks_ranks(&c, sample)[1], STI_CLICKS_NO_ROW);
    sti_clicks_close(&c);
    put("n;x;v\n1;u3;2|5\n");
    unlink(ranks_path);
    sti_clicks_counted counted;
    d.bags = NULL;
    assert_int_equal(sti_clicks_rank(&d, ranks_path, &counted), STINT_E_INPUT);
    assert_non_null(strstr(stint_last_error(), "'x'"));
    sti_clicks_close(&model);
}

typedef struct refusal {
    sti_clicks_format format;
    const char *label, *dense, *text, *words;
} refusal;

static void bad_text_is_named(void **state)
{
    static const refusal refusals[] = {
        {STI_CLICKS_CSV, NULL, NULL, "label,a\n1,x\n1,x,y\n",
         "3 fields; 2 were wanted"},
        {STI_CLICKS_CSV, NULL, NULL, "label,a\n1,x\n2,x\n", ":3: label: '2'; a label"},
        {STI_CLICKS_CSV, NULL, "a", "label,a,b\n1,7x,3\n", ":2: a: '7x'; a finite"},
        {STI_CLICKS_CSV, NULL, "a", "label,a,b\n1,nan,3\n", ":2: a: 'nan'"},
        {STI_CLICKS_CSV, NULL, "a", "label,a,b\n1,1e39,3\n", "within float32"},
        {STI_CLICKS_CSV, NULL, "z", "label,a\n1,7\n",
         "no column 'z'; there are label, a"},
        {STI_CLICKS_CSV, "r>=4", NULL, "label,a\n1,7\n", "no column 'r'"},
        {STI_CLICKS_CSV, "a>=x", NULL, "label,a\n1,7\n", "a comparison"},
        {STI_CLICKS_CSV, NULL, NULL, "label,a\n", "holds no sample"},
        {STI_CLICKS_CSV, NULL, NULL, "", "is empty"},
        {STI_CLICKS_CRITEO, NULL, NULL, "1\t2\t3\n", "3 fields; 40 were wanted"},
        {STI_CLICKS_LIBSVM, NULL, NULL, "1 3:1 2:1\n", "ascend"},
        {STI_CLICKS_LIBSVM, NULL, NULL, "1 3:0.5\n", "data.dense"},
        {STI_CLICKS_LIBSVM, NULL, "1-x", "1 3:1\n", "data.dense: '1-x'"},
        {STI_CLICKS_LIBSVM, NULL, NULL, "3 3:1\n", "a label of 0 or 1"},
        {STI_CLICKS_LIBFFM, NULL, NULL, "1 3:1\n", "field:index:value"},
        {STI_CLICKS_LIBFFM, NULL, NULL, "1 99999:1:1\n", "below 4096"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof refusals / sizeof *refusals; i++) {
        const refusal *r = &refusals[i];
        const sti_clicks_desc d = {.path = text_path,
                                   .format = r->format,
                                   .label = r->label,
                                   .dense = r->dense};
        sti_clicks_counted counted;
        put(r->text);
        unlink(ranks_path);
        const stint_status st = sti_clicks_rank(&d, ranks_path, &counted);
        if (st != STINT_E_INPUT && st != STINT_E_USAGE)
            fail_msg("'%s' gave %d", r->text, (int)st);
        if (!strstr(stint_last_error(), r->words))
            fail_msg("'%s': %s", r->text, stint_last_error());
        assert_int_not_equal(access(ranks_path, F_OK), 0);
    }
}

static void formats_are_read(void **state)
{
    uint32_t sample[64];
    sti_clicks c;
    sti_clicks_desc d = {
        .path = text_path, .format = STI_CLICKS_LIBSVM, .dense = "1-2"};
    (void)state;
    put("+1 1:0.5 4:1 9:1\n-1 2:3 4:1 # a comment\n");
    open_ranks(&d, &c);
    assert_int_equal(c.fields, 1);
    assert_int_equal(c.rows, 3); /* 4, 9, other */
    assert_int_equal(sti_clicks_read(&c, 1, 1, sample), STINT_OK);
    assert_true(sti_clicks_numbers(&c, sample)[0] == 0 &&
                sti_clicks_numbers(&c, sample)[1] == 3);
    assert_int_equal(sti_clicks_ranks(&c, sample)[0], 0);
    sti_clicks_close(&c);
    d = (sti_clicks_desc){.path = text_path, .format = STI_CLICKS_LIBFFM, .dense = "0"};
    put("1 0:0:2.5 3:7:1 5:7:1\n0 3:8:1 3:7:1\n");
    open_ranks(&d, &c);
    assert_int_equal(c.fields, 2);
    assert_string_equal(c.field[0].name, "3");
    assert_int_equal(c.field[0].slots, 2);
    assert_int_equal(c.rows, 5); /* 3:7, 5:7, 3:8, two others */
    sti_clicks_close(&c);
    d = (sti_clicks_desc){.path = text_path, .format = STI_CLICKS_CSV, .label = "r>=4"};
    put("a:token,r:float\n\"x,\"\"y\",3.5\nz,4\n");
    open_ranks(&d, &c);
    assert_int_equal(sti_clicks_read(&c, 0, 1, sample), STINT_OK);
    assert_int_equal(sample[0], 0);
    assert_int_equal(sti_clicks_read(&c, 1, 1, sample), STINT_OK);
    assert_int_not_equal(sample[0], 0);
    sti_clicks_close(&c);
}

static void damaged_ranks_are_refused(void **state)
{
    sti_clicks c;
    const sti_clicks_desc d = csv_desc();
    (void)state;
    make();
    open_ranks(&d, &c);
    const int64_t end = c.ids_at + (int64_t)c.ids_bytes;
    sti_clicks_close(&c);
    for (int64_t cut = 0; cut < end; cut += 1 + end / 17) {
        char command[1200];
        snprintf(command, sizeof command, "head -c %d '%s' >'%s.cut'", (int)cut,
                 ranks_path, ranks_path);
        assert_int_equal(system(command), 0);
        snprintf(command, sizeof command, "%s.cut", ranks_path);
        assert_int_equal(sti_clicks_open(command, &c), STINT_E_INPUT);
    }
}

static stint_status add_length(void *user, int64_t rank, int field, const char *id,
                               size_t length)
{
    size_t *sum = user;
    (void)rank;
    (void)field;
    (void)id;
    *sum += length;
    return STINT_OK;
}

/* All that a file of ranks holds, as bytes; NULL: refused. */
static char *read_all(const char *path, size_t *bytes_out)
{
    sti_clicks c;
    if (sti_clicks_open(path, &c) != STINT_OK)
        return NULL;
    const size_t samples = (size_t)c.samples * c.sample_bytes;
    char *all = malloc(samples + 4 * (size_t)c.rows + c.ids_bytes + 1);
    size_t ids = 0;
    stint_status st = sti_clicks_read(&c, 0, c.samples, all);
    if (st == STINT_OK)
        st = sti_clicks_counts(&c, 0, c.rows, (uint32_t *)(void *)(all + samples));
    if (st == STINT_OK)
        st = sti_clicks_each_id(&c, add_length, &ids);
    *bytes_out = samples + 4 * (size_t)c.rows;
    sti_clicks_close(&c);
    if (st == STINT_OK)
        return all;
    assert_int_equal(st, STINT_E_INPUT);
    free(all);
    return NULL;
}

static void write_file(const char *path, const char *bytes, size_t n)
{
    FILE *f = fopen(path, "wb");
    assert_non_null(f);
    assert_int_equal(fwrite(bytes, 1, n, f), n);
    fclose(f);
}

/* Every byte counts: samples, counts, ids and their sums. */
static void every_changed_byte_is_found(void **state)
{
    const sti_clicks_desc d = csv_desc();
    char path[1100], *text;
    void *file;
    size_t n, bytes = 0;
    (void)state;
    make();
    sti_clicks c;
    open_ranks(&d, &c);
    sti_clicks_close(&c);
    assert_int_equal(sti_file_read(ranks_path, 1 << 24, &file, &n), STINT_OK);
    text = file;
    snprintf(path, sizeof path, "%s.changed", ranks_path);
    for (size_t i = 16; i < n; i += i < 400 ? 1 : n / 150 + 1) {
        text[i] ^= 0x40;
        write_file(path, text, n);
        char *all = read_all(path, &bytes);
        if (all)
            fail_msg("byte %zu of %zu may change unseen", i, n);
        text[i] ^= 0x40;
    }
    sti_free(file);
    unlink(path);
}

/* The same without sums, as the version before wrote it. */
static void files_without_sums_are_read(void **state)
{
    const sti_clicks_desc d = csv_desc();
    enum { BLOCK = 16384, HEAD = 192 };
    char path[1100], *from, *to;
    void *file;
    size_t n, at, head, length, now = 0, before = 0;
    sti_clicks c;
    (void)state;
    make();
    open_ranks(&d, &c);
    at = (size_t)c.samples_at;
    sti_clicks_close(&c);
    assert_int_equal(sti_file_read(ranks_path, 1 << 24, &file, &n), STINT_OK);
    from = file;
    to = malloc(n);
    memcpy(to, from, length = head = at);
    for (; at < n; at += BLOCK + 4) {
        const size_t piece = n - at < BLOCK + 4 ? n - at - 4 : BLOCK;
        memcpy(to + length, from + at, piece);
        length += piece;
    }
    assert_true(n - length > 8); /* several blocks */
    to[13] = '1';
    memset(to + HEAD - 4, 0, 4);
    const uint32_t crc = sti_crc32c(0, to, head);
    memcpy(to + HEAD - 4, &crc, 4);
    snprintf(path, sizeof path, "%s.old", ranks_path);
    write_file(path, to, length);
    assert_true(sti_clicks_is_old(path) && sti_clicks_is_ranks(path));
    assert_false(sti_clicks_is_old(ranks_path));
    char *want = read_all(ranks_path, &now), *have = read_all(path, &before);
    assert_non_null(want);
    assert_non_null(have);
    assert_int_equal(now, before);
    assert_memory_equal(want, have, now);
    free(want);
    free(have);
    free(to);
    sti_free(file);
    unlink(path);
}

static void every_allocation_may_fail(void **state)
{
    const sti_clicks_desc d = csv_desc();
    (void)state;
    put("n;label;u;v\n1;1;a;b|c\n2;0;d;\n");
    for (int64_t n = 1;; n++) {
        sti_clicks_counted counted;
        unlink(ranks_path);
        sti_alloc_fail_nth(n);
        const stint_status st = sti_clicks_rank(&d, ranks_path, &counted);
        sti_alloc_fail_nth(0);
        if (st == STINT_OK)
            break;
        assert_int_equal(st, STINT_E_MEMORY);
        assert_int_not_equal(access(ranks_path, F_OK), 0);
        assert_true(n < 200);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ranks_are_those_of_counts),
        cmocka_unit_test(other_data_has_the_models_ranks),
        cmocka_unit_test(bad_text_is_named),
        cmocka_unit_test(formats_are_read),
        cmocka_unit_test(damaged_ranks_are_refused),
        cmocka_unit_test(every_changed_byte_is_found),
        cmocka_unit_test(files_without_sums_are_read),
        cmocka_unit_test(every_allocation_may_fail),
    };
    char command[300];
    snprintf(folder, sizeof folder, "/tmp/stint-clicks-XXXXXX");
    if (!mkdtemp(folder))
        return 1;
    snprintf(text_path, sizeof text_path, "%s/clicks.txt", folder);
    snprintf(ranks_path, sizeof ranks_path, "%s/clicks.ranks", folder);
    const int failed = cmocka_run_group_tests(tests, NULL, NULL);
    snprintf(command, sizeof command, "rm -rf '%s'", folder);
    return system(command) != 0 ? 1 : failed;
}
