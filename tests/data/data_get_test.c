/* Downloads, from a mirror on this disk: checked, atomic, unpacked without escapes. */
#include "data/data_fixture.h"

#include "data/data_get.h"

static char sums[2][65];

static void hash(const void *bytes, size_t n, char out[65])
{
    sti_sha256 sha;
    sti_sha256_init(&sha);
    sti_sha256_add(&sha, bytes, n);
    sti_sha256_hex(&sha, out);
}

static const char *mirror(void)
{
    static char url[PATH_BYTES + 32];
    (void)snprintf(url, sizeof url, "file://%s/mirror", fixture_root);
    return url;
}

static void take(void *user, int64_t done, int64_t total)
{
    int64_t *last = user;
    assert_true(done >= *last && done <= total);
    *last = done;
}

static void plain_files_arrive(void **state)
{
    (void)state;
    hash("hello\n", 6, sums[0]);
    hash("labels", 6, sums[1]);
    const sti_get_file files[] = {{"one.gz", 6, sums[0], NULL},
                                  {"two.gz", 6, sums[1], NULL},
                                  {NULL, 0, NULL, NULL}};
    const sti_get_set set = {"made", {NULL}, files};
    int64_t done = 0;
    stint_data_get_desc desc = {.name = "made",
                                .folder = fixture_path("deep/er/made"),
                                .mirror = mirror(),
                                .progress = take,
                                .user = &done};
    fixture_write(fixture_path("mirror/one.gz"), "hello\n", 6);
    assert_int_equal(sti_data_get_set(&set, &desc),
                     STINT_E_PEER); /* two is not there */
    assert_non_null(strstr(stint_last_error(), "two.gz"));
    assert_true(sti_path_is_file(fixture_path("deep/er/made/one.gz")));
    fixture_write(fixture_path("mirror/two.gz"), "lapels", 6);
    done = 0;
    assert_int_equal(sti_data_get_set(&set, &desc), STINT_E_PEER);
    assert_non_null(strstr(stint_last_error(), "not the published file"));
    fixture_write(fixture_path("mirror/two.gz"), "labels and much more", 20);
    done = 0;
    assert_int_equal(sti_data_get_set(&set, &desc), STINT_E_PEER);
    assert_non_null(strstr(stint_last_error(), "more than the 6 bytes"));
    assert_false(sti_path_is_file(fixture_path("deep/er/made/two.gz")));
    fixture_write(fixture_path("mirror/two.gz"), "labels", 6);
    done = 0;
    assert_int_equal(sti_data_get_set(&set, &desc), STINT_OK);
    assert_int_equal(done, 12);
    /* Nothing but the two files: no temporary is left. */
    sti_arena *arena = sti_arena_create("test");
    char **names = NULL;
    int64_t count = 0;
    assert_int_equal(sti_dir_list(arena, desc.folder, &names, &count), STINT_OK);
    assert_int_equal(count, 2);
    sti_arena_destroy(arena);
    /* Again, with no mirror at all: what is there is kept. */
    desc.mirror = "file:///nowhere";
    done = 0;
    assert_int_equal(sti_data_get_set(&set, &desc), STINT_OK);
    fixture_write(fixture_path("deep/er/made/two.gz"), "my own", 6);
    done = 0;
    assert_int_equal(sti_data_get_set(&set, &desc), STINT_E_INPUT);
    assert_non_null(strstr(stint_last_error(), "other contents"));
}

/* An archive whose members try to leave the folder. */
static void archives_are_unpacked_by_name(void **state)
{
    (void)state;
    struct archive *a = archive_write_new();
    const char *path = fixture_path("mirror/set.tar.gz");
    assert_int_equal(archive_write_add_filter_gzip(a), ARCHIVE_OK);
    assert_int_equal(archive_write_set_format_ustar(a), ARCHIVE_OK);
    assert_int_equal(archive_write_open_filename(a, path), ARCHIVE_OK);
    fixture_tar tar = {a};
    fixture_tar_add(&tar, "../escaped", AE_IFREG, "bad", 3);
    fixture_tar_add(&tar, "/tmp/stint-absolute-escape", AE_IFREG, "bad", 3);
    fixture_tar_add(&tar, "sub", AE_IFLNK, NULL,
                    0); /* a link where a folder should be */
    fixture_tar_add(&tar, "sub/one.bin", AE_IFREG, "onetwo", 6);
    fixture_tar_add(&tar, "sub/other", AE_IFREG, "unasked", 7);
    fixture_tar_close(&tar);
    void *bytes = NULL;
    size_t n = 0;
    assert_int_equal(sti_file_read(path, 1 << 20, &bytes, &n), STINT_OK);
    hash(bytes, n, sums[0]);
    sti_free(bytes);
    const sti_get_member members[] = {{"sub/one.bin", 6}, {NULL, 0}};
    const sti_get_file files[] = {{"set.tar.gz", (int64_t)n, sums[0], members},
                                  {NULL, 0, NULL, NULL}};
    const sti_get_set set = {"packed", {NULL}, files};
    stint_data_get_desc desc = {.folder = fixture_path("unpacked"), .mirror = mirror()};
    assert_int_equal(sti_data_get_set(&set, &desc), STINT_OK);
    assert_true(sti_path_is_file(fixture_path("unpacked/sub/one.bin")));
    assert_false(sti_path_is_file(fixture_path("unpacked/sub/other")));
    assert_false(sti_path_is_file(fixture_path("escaped")));
    assert_false(sti_path_is_file("/tmp/stint-absolute-escape"));
    assert_false(sti_path_is_file(fixture_path("unpacked/set.tar.gz")));
    desc.mirror = "file:///nowhere";
    assert_int_equal(sti_data_get_set(&set, &desc), STINT_OK); /* there already */
    const sti_get_member more[] = {{"sub/one.bin", 6}, {"sub/two.bin", 6}, {NULL, 0}};
    const sti_get_file lacking[] = {{"set.tar.gz", (int64_t)n, sums[0], more},
                                    {NULL, 0, NULL, NULL}};
    const sti_get_set wrong = {"packed", {NULL}, lacking};
    desc.mirror = mirror();
    assert_int_equal(sti_data_get_set(&wrong, &desc), STINT_E_INPUT);
    assert_non_null(strstr(stint_last_error(), "lacks files"));
}

static void allocation_failures_are_clean(void **state)
{
    (void)state;
    hash("hello\n", 6, sums[0]);
    const sti_get_file files[] = {{"h.gz", 6, sums[0], NULL}, {NULL, 0, NULL, NULL}};
    const sti_get_set set = {"made", {NULL}, files};
    stint_data_get_desc desc = {.folder = fixture_path("alloc"), .mirror = mirror()};
    stint_status st = STINT_E_MEMORY;
    size_t before = sti_alloc_now_bytes();
    fixture_write(fixture_path("mirror/h.gz"), "hello\n", 6);
    for (int64_t n = 1; st != STINT_OK; n++) {
        sti_alloc_fail_nth(n);
        st = sti_data_get_set(&set, &desc);
        sti_alloc_fail_nth(0);
        assert_int_equal(sti_alloc_now_bytes(), before);
        assert_true(st == STINT_OK || st == STINT_E_MEMORY);
        assert_true(n < 1000);
    }
    assert_true(sti_path_is_file(fixture_path("alloc/h.gz")));
}

static void names_are_known(void **state)
{
    (void)state;
    assert_string_equal(stint_data_get_names()[0], "cifar10");
    stint_data_get_desc desc = {.name = "cifar100", .folder = fixture_path("x")};
    assert_int_equal(stint_data_get(&desc), STINT_E_USAGE);
    assert_non_null(strstr(stint_last_error(), "did you mean cifar10"));
    desc.name = NULL;
    assert_int_equal(stint_data_get(&desc), STINT_E_USAGE);
    desc.name = "mnist";
    desc.mirror = "file:///nowhere/at/all";
    assert_int_equal(stint_data_get(&desc), STINT_E_PEER);
    assert_non_null(strstr(stint_last_error(), "--mirror"));
    desc.folder = NULL;
    assert_int_equal(stint_data_get(&desc), STINT_E_USAGE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(plain_files_arrive),
        cmocka_unit_test(archives_are_unpacked_by_name),
        cmocka_unit_test(names_are_known),
        cmocka_unit_test(allocation_failures_are_clean),
    };
    return cmocka_run_group_tests_name("data_get", tests, fixture_begin, fixture_end);
}
