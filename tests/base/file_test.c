#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

static char folder[64];

/* "<folder>/name" in one of four buffers. */
static const char *in_folder(const char *name)
{
    static char paths[4][512];
    static int turn;
    char *path = paths[turn++ % 4];
    snprintf(path, sizeof paths[0], "%s/%s", folder, name);
    return path;
}

static int make_folder(void **state)
{
    (void)state;
    strcpy(folder, "/tmp/stint_file_test_XXXXXX");
    return mkdtemp(folder) ? 0 : -1;
}

static int remove_folder(void **state)
{
    (void)state;
    char command[128];
    snprintf(command, sizeof command, "rm -rf '%s'", folder);
    return system(command);
}

static void check_content(const char *path, const char *wanted)
{
    void *data = NULL;
    size_t bytes = 0;
    assert_int_equal(sti_file_read(path, 1 << 20, &data, &bytes), STINT_OK);
    assert_int_equal(bytes, strlen(wanted));
    assert_string_equal((char *)data, wanted);
    sti_free(data);
}

static void test_read(void **state)
{
    (void)state;
    void *data = NULL;
    size_t bytes = 5;
    const char *path = in_folder("read");
    assert_int_equal(sti_file_read(path, 100, &data, &bytes), STINT_E_IO);
    assert_non_null(strstr(stint_last_error(), path));
    assert_int_equal(sti_file_read(folder, 100, &data, &bytes), STINT_E_IO);
    assert_non_null(strstr(stint_last_error(), "folder"));
    assert_int_equal(sti_file_write(path, "", 0), STINT_OK);
    check_content(path, "");
    assert_int_equal(sti_file_write(path, "12345", 5), STINT_OK);
    check_content(path, "12345");
    assert_int_equal(sti_file_read(path, 4, &data, &bytes), STINT_E_INPUT);
    assert_int_equal(sti_file_read(path, 5, &data, &bytes), STINT_OK);
    sti_free(data);
    /* A file whose size the system does not know in advance. */
    assert_int_equal(sti_file_read("/proc/self/status", 1 << 20, &data, &bytes),
                     STINT_OK);
    assert_non_null(strstr(data, "VmHWM"));
    sti_free(data);
    data = NULL;
    assert_int_equal(sti_file_read("/dev/zero", 100000, &data, &bytes), STINT_E_INPUT);
    assert_null(data);
}

static void test_read_without_memory(void **state)
{
    (void)state;
    void *data = NULL;
    size_t bytes, before = sti_alloc_now_bytes();
    for (int nth = 1;; nth++) {
        sti_alloc_fail_nth(nth);
        stint_status st = sti_file_read("/proc/self/status", 1 << 20, &data, &bytes);
        sti_alloc_fail_nth(0);
        if (st == STINT_OK)
            break;
        assert_int_equal(st, STINT_E_MEMORY);
        assert_null(data);
        assert_true(nth < 20);
    }
    sti_free(data);
    assert_int_equal(sti_alloc_now_bytes(), before);
}

static void test_read_at(void **state)
{
    (void)state;
    char buffer[8] = "";
    const char *path = in_folder("at");
    assert_int_equal(sti_file_write(path, "0123456789", 10), STINT_OK);
    int fd = open(path, O_RDONLY);
    assert_int_equal(sti_read_at(fd, path, 3, buffer, 4), STINT_OK);
    assert_string_equal(buffer, "3456");
    assert_int_equal(sti_read_at(fd, path, 10, buffer, 0), STINT_OK);
    assert_int_equal(sti_read_at(fd, path, 8, buffer, 4), STINT_E_IO);
    assert_non_null(strstr(stint_last_error(), path));
    assert_non_null(strstr(stint_last_error(), "cut off"));
    close(fd);
    assert_int_equal(sti_read_at(-1, path, 0, buffer, 4), STINT_E_IO);
}

/* Chunks of all sizes around the buffer's come out in order. */
static void test_writer(void **state)
{
    (void)state;
    static char chunk[200000];
    static const size_t sizes[] = {1, 65535, 2, 65536, 65537, 0, 200000, 7};
    const char *path = in_folder("chunks");
    sti_writer *w = NULL;
    size_t total = 0;
    assert_int_equal(sti_writer_open(path, &w), STINT_OK);
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        memset(chunk, 'a' + (int)i, sizeof chunk);
        assert_int_equal(sti_writer_add(w, chunk, sizes[i]), STINT_OK);
        total += sizes[i];
    }
    assert_false(sti_path_is_file(path));
    assert_int_equal(sti_writer_commit(w), STINT_OK);
    char *data = NULL;
    size_t bytes = 0, at = 0;
    assert_int_equal(sti_file_read(path, 1 << 20, (void **)&data, &bytes), STINT_OK);
    assert_int_equal(bytes, total);
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        for (size_t k = 0; k < sizes[i]; k++)
            if (data[at++] != (char)('a' + (int)i))
                fail_msg("wrong byte at %zu", at - 1);
    sti_free(data);
    assert_false(sti_path_is_file(in_folder("chunks.part")));
}

static void test_abort_keeps_old(void **state)
{
    (void)state;
    const char *path = in_folder("old");
    sti_writer *w = NULL;
    assert_int_equal(sti_file_write(path, "old", 3), STINT_OK);
    assert_int_equal(chmod(path, 0640), 0);
    assert_int_equal(sti_writer_open(path, &w), STINT_OK);
    assert_int_equal(sti_writer_add(w, "new", 3), STINT_OK);
    sti_writer_abort(w);
    sti_writer_abort(NULL);
    check_content(path, "old");
    assert_false(sti_path_is_file(in_folder("old.part")));
    assert_int_equal(sti_file_write(path, "newer", 5), STINT_OK);
    check_content(path, "newer");
    struct stat info;
    stat(path, &info);
    assert_int_equal(info.st_mode & 0777, 0640);
}

static void test_writer_conflicts(void **state)
{
    (void)state;
    const char *path = in_folder("shared"), *link = in_folder("link");
    sti_writer *first = NULL, *second = NULL;
    assert_int_equal(sti_writer_open(path, &first), STINT_OK);
    assert_int_equal(sti_writer_open(path, &second), STINT_E_IO);
    assert_non_null(strstr(stint_last_error(), "another process"));
    assert_int_equal(sti_writer_add(first, "1", 1), STINT_OK);
    assert_int_equal(sti_writer_commit(first), STINT_OK);
    check_content(path, "1");
    assert_int_equal(symlink(path, link), 0);
    assert_int_equal(sti_file_write(link, "2", 1), STINT_OK);
    check_content(path, "2");
    struct stat info;
    lstat(link, &info);
    assert_true(S_ISLNK(info.st_mode));
    assert_int_equal(sti_writer_open(folder, &second), STINT_E_IO);
    assert_int_equal(sti_writer_open("", &second), STINT_E_IO);
    assert_int_equal(sti_writer_open(in_folder("no/such"), &second), STINT_E_IO);
    assert_non_null(strstr(stint_last_error(), "no/such"));
}

static void test_full_disk(void **state)
{
    (void)state;
    static const char chunk[100000];
    if (access("/dev/full", W_OK) != 0)
        skip();
    assert_int_equal(sti_file_write("/dev/full", "words", 5), STINT_E_IO);
    assert_non_null(strstr(stint_last_error(), "disk is full"));
    sti_writer *w = NULL;
    assert_int_equal(sti_writer_open("/dev/full", &w), STINT_OK);
    assert_int_equal(sti_writer_add(w, chunk, sizeof chunk), STINT_E_IO);
    assert_int_equal(sti_writer_add(w, chunk, 1), STINT_E_IO);
    assert_int_equal(sti_writer_commit(w), STINT_E_IO);
    assert_int_equal(access("/dev/full", W_OK), 0); /* written to, not replaced */
    assert_int_equal(sti_file_write("/dev/null", "words", 5), STINT_OK);
}

static void test_writer_without_memory(void **state)
{
    (void)state;
    sti_alloc_fail_nth(1);
    assert_int_equal(sti_file_write(in_folder("none"), "x", 1), STINT_E_MEMORY);
    assert_false(sti_path_is_file(in_folder("none")));
    assert_false(sti_path_is_file(in_folder("none.part")));
}

/* Writes versions of one file until it is killed: each of one repeated letter. */
static void write_for_ever(const char *path)
{
    static char body[300000];
    for (int version = 0;; version++) {
        memset(body, 'A' + version % 26, sizeof body);
        if (sti_file_write(path, body, sizeof body) != STINT_OK)
            _exit(1);
    }
}

static void test_crash(void **state)
{
    (void)state;
    const char *path = in_folder("crash");
    for (int round = 0; round < 20; round++) {
        pid_t child = fork();
        if (child == 0)
            write_for_ever(path);
        assert_true(child > 0);
        struct timespec pause = {.tv_nsec = 3000000L + 1700000L * round};
        nanosleep(&pause, NULL);
        kill(child, SIGKILL);
        int status;
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_true(WIFSIGNALED(status));
        if (!sti_path_is_file(path))
            continue;
        char *data = NULL;
        size_t bytes = 0;
        assert_int_equal(sti_file_read(path, 1 << 20, (void **)&data, &bytes),
                         STINT_OK);
        assert_int_equal(bytes, 300000);
        for (size_t i = 1; i < bytes; i++)
            if (data[i] != data[0])
                fail_msg("two versions mixed at byte %zu", i);
        sti_free(data);
    }
    /* What the killed left behind is in nobody's way. */
    assert_int_equal(sti_file_write(path, "end", 3), STINT_OK);
    check_content(path, "end");
    assert_false(sti_path_is_file(in_folder("crash.part")));
}

static void test_folders(void **state)
{
    (void)state;
    sti_arena *arena = sti_arena_create("test");
    char **names = NULL;
    int64_t count = -1;
    assert_int_equal(sti_dir_create(in_folder("a/b/c")), STINT_OK);
    assert_int_equal(sti_dir_create(in_folder("a/b/c/")), STINT_OK);
    assert_true(sti_path_is_dir(in_folder("a/b/c")));
    assert_int_equal(sti_dir_list(arena, in_folder("a/b/c"), &names, &count), STINT_OK);
    assert_int_equal(count, 0);
    static const char *const files[] = {"z", "B", "a10", "a2", ".hidden", "\xC3\xA4"};
    for (int i = 0; i < 6; i++) {
        char name[64];
        snprintf(name, sizeof name, "a/b/c/%s", files[i]);
        assert_int_equal(sti_file_write(in_folder(name), "", 0), STINT_OK);
    }
    assert_int_equal(sti_dir_list(arena, in_folder("a/b/c"), &names, &count), STINT_OK);
    static const char *const sorted[] = {".hidden", "B", "a10", "a2", "z", "\xC3\xA4"};
    assert_int_equal(count, 6);
    for (int i = 0; i < 6; i++)
        assert_string_equal(names[i], sorted[i]);
    assert_int_equal(sti_dir_list(arena, in_folder("none"), &names, &count),
                     STINT_E_IO);
    assert_int_equal(sti_dir_create(in_folder("a/b/c/z")), STINT_E_IO);
    assert_int_equal(sti_dir_create(in_folder("a/b/c/z/d")), STINT_E_IO);
    assert_non_null(strstr(stint_last_error(), "a/b/c/z"));
    assert_int_equal(sti_dir_create(""), STINT_E_IO);
    sti_alloc_fail_nth(1);
    assert_int_equal(sti_dir_list(arena, in_folder("a/b/c"), &names, &count),
                     STINT_E_MEMORY);
    sti_alloc_fail_nth(0);
    sti_arena_destroy(arena);
}

static void test_paths(void **state)
{
    (void)state;
    sti_arena *arena = sti_arena_create("test");
    assert_string_equal(sti_path_join(arena, "a", "b"), "a/b");
    assert_string_equal(sti_path_join(arena, "a/", "b"), "a/b");
    assert_string_equal(sti_path_join(arena, "a", "/b"), "/b");
    assert_string_equal(sti_path_join(arena, "", "b"), "b");
    assert_string_equal(sti_path_folder(arena, "a/b"), "a");
    assert_string_equal(sti_path_folder(arena, "/b"), "/");
    assert_string_equal(sti_path_folder(arena, "b"), ".");
    assert_string_equal(sti_path_folder(arena, "a//b"), "a");
    assert_string_equal(sti_path_name("a/b.png"), "b.png");
    assert_string_equal(sti_path_name("b"), "b");
    assert_string_equal(sti_path_extension("a.b/c"), "");
    assert_string_equal(sti_path_extension("a/c.tar.gz"), ".gz");
    assert_string_equal(sti_path_extension("a/.hidden"), "");
    assert_string_equal(sti_path_absolute(arena, "/x/y"), "/x/y");
    char here[512];
    assert_non_null(getcwd(here, sizeof here));
    assert_string_equal(sti_path_absolute(arena, "."), here);
    assert_string_equal(sti_path_absolute(arena, "./x"),
                        sti_path_join(arena, here, "x"));
    assert_string_equal(sti_path_absolute(arena, "x/y"),
                        sti_path_join(arena, here, "x/y"));
    sti_arena_destroy(arena);
}

static void test_sha256(void **state)
{
    (void)state;
    static const struct {
        const char *in, *hex;
    } cases[] = {
        {"", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"},
        {"abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"},
        {"abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
         "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1"},
    };
    for (int i = 0; i < 3; i++) {
        char hex[65];
        sti_sha256 hash;
        sti_sha256_init(&hash);
        for (const char *c = cases[i].in; *c; c++)
            sti_sha256_add(&hash, c, 1);
        sti_sha256_add(&hash, NULL, 0);
        sti_sha256_hex(&hash, hex);
        assert_string_equal(hex, cases[i].hex);
    }
}

/* From one process to the next, before and after every byte of blocks. */
static void test_sha256_goes_on_elsewhere(void **state)
{
    (void)state;
    char a[1000];
    uint8_t passed[STI_SHA256_STATE_BYTES];
    char straight[65], hex[65];
    for (size_t i = 0; i < sizeof a; i++)
        a[i] = (char)(i * i);
    for (size_t cut = 0; cut <= 200; cut++) {
        sti_sha256 first, other, whole;
        sti_sha256_init(&whole);
        sti_sha256_add(&whole, a, sizeof a);
        sti_sha256_hex(&whole, straight);
        sti_sha256_init(&first);
        sti_sha256_add(&first, a, cut);
        sti_sha256_get(&first, passed);
        memset(&other, 0x5a, sizeof other);
        sti_sha256_set(&other, passed);
        sti_sha256_add(&other, a + cut, sizeof a - cut);
        sti_sha256_hex(&other, hex);
        assert_string_equal(hex, straight);
    }
    memset(passed, 0xff, sizeof passed); /* of no process that is sound */
    sti_sha256 hostile;
    sti_sha256_set(&hostile, passed);
    sti_sha256_add(&hostile, a, sizeof a);
    sti_sha256_hex(&hostile, hex);
    assert_string_not_equal(hex, straight);
}

static void test_crc32c(void **state)
{
    (void)state;
    unsigned char bytes[32];
    assert_int_equal(sti_crc32c(0, "123456789", 9), 0xe3069283);
    assert_int_equal(sti_crc32c(sti_crc32c(0, "1234", 4), "56789", 5), 0xe3069283);
    assert_int_equal(sti_crc32c(0, "", 0), 0);
    /* RFC 3720, B.4 */
    memset(bytes, 0, sizeof bytes);
    assert_int_equal(sti_crc32c(0, bytes, 32), 0x8a9136aa);
    memset(bytes, 0xff, sizeof bytes);
    assert_int_equal(sti_crc32c(0, bytes, 32), 0x62a8ab43);
    for (int i = 0; i < 32; i++)
        bytes[i] = (unsigned char)i;
    assert_int_equal(sti_crc32c(0, bytes, 32), 0x46dd794e);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_read),
        cmocka_unit_test(test_read_without_memory),
        cmocka_unit_test(test_read_at),
        cmocka_unit_test(test_writer),
        cmocka_unit_test(test_abort_keeps_old),
        cmocka_unit_test(test_writer_conflicts),
        cmocka_unit_test(test_full_disk),
        cmocka_unit_test(test_writer_without_memory),
        cmocka_unit_test(test_crash),
        cmocka_unit_test(test_folders),
        cmocka_unit_test(test_paths),
        cmocka_unit_test(test_sha256),
        cmocka_unit_test(test_sha256_goes_on_elsewhere),
        cmocka_unit_test(test_crc32c),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
