#define _GNU_SOURCE /* flock, O_CLOEXEC, O_DIRECTORY */
#include "trust/memory_folder.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "base/fail.h"
#include "base/file.h"
#include "base/numerics.h"
#include "base/recipe.h"

#define MAGIC        "STINTMB1"
#define MAGIC_LOSSES "STINTML1"
#define MANIFEST_MAX ((size_t)1 << 20)

/* In front of a run's bits; integers little-endian. */
typedef struct run_head {
    char magic[8];
    int64_t run, train, test;
    char key[64];
} run_head;

/* ---- what the runs depend on ---- */

static stint_status write_manifest(const sti_memory_identity *id, sti_text *out)
{
    sti_text_printf(out,
                    "stint memory 1\nnumerics %s\nfraction %.17g\nimages %" PRId64
                    " of %" PRId64 ", %" PRId64 " test\ntrain %s\ntest %s\n\n",
                    STI_NUMERICS_VERSION, id->fraction, id->members, id->train,
                    id->test, id->train_sha256, id->test_sha256);
    return sti_recipe_write(id->recipe, true, out);
}

static size_t line_length(const char *at)
{
    return strcspn(at, "\n");
}

/* The first line that is not the same, of both. */
static stint_status refuse(const char *path, const char *here, const char *there)
{
    while (*here && *there) {
        const size_t a = line_length(here), b = line_length(there);
        if (a != b || memcmp(here, there, a) != 0)
            break;
        here += a + (here[a] == '\n');
        there += b + (there[b] == '\n');
    }
    return sti_fail(
        STINT_E_USAGE,
        "%s: its runs are of another kind: '%.*s' there, '%.*s' now; choose "
        "another folder by --out",
        path, (int)line_length(there), there, (int)line_length(here), here);
}

static stint_status check_manifest(const sti_memory_folder *f, const char *file,
                                   const sti_text *now)
{
    void *then = NULL;
    size_t n_bytes;
    stint_status st = sti_file_read(file, MANIFEST_MAX, &then, &n_bytes);
    if (st == STINT_OK &&
        (n_bytes != now->length || memcmp(then, now->data, n_bytes) != 0))
        st = refuse(f->path, now->data, then);
    sti_free(then);
    return st;
}

/* A folder that is not ours is left alone. */
static stint_status begin_manifest(const sti_memory_folder *f, const char *file,
                                   const sti_text *now)
{
    char **names;
    int64_t count;
    stint_status st = sti_dir_list(f->arena, f->path, &names, &count);
    if (st == STINT_OK && count > 0)
        return sti_fail(STINT_E_USAGE,
                        "%s: holds files and no memory.txt, so it is not the folder of "
                        "such a study; choose another by --out",
                        f->path);
    return st == STINT_OK ? sti_file_write(file, now->data, now->length) : st;
}

static stint_status lock(sti_memory_folder *f)
{
    if (access(f->path, W_OK | X_OK) != 0)
        return sti_fail_errno("%s: cannot be written", f->path);
    f->lock_fd = open(f->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (f->lock_fd < 0)
        return sti_fail_errno("%s: cannot be opened", f->path);
    if (flock(f->lock_fd, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK)
        return sti_fail(STINT_E_USAGE,
                        "%s: another process is at work there; wait for it, or choose "
                        "another folder by --out",
                        f->path);
    return STINT_OK;
}

static stint_status settle_manifest(sti_memory_folder *f, const sti_memory_identity *id)
{
    sti_text now = {0};
    sti_sha256 sha;
    const char *file = sti_path_join(f->arena, f->path, "memory.txt");
    stint_status st = file ? write_manifest(id, &now) : STINT_E_MEMORY;
    if (st == STINT_OK && now.failed)
        st = STINT_E_MEMORY;
    if (st == STINT_OK)
        st = sti_path_is_file(file) ? check_manifest(f, file, &now)
                                    : begin_manifest(f, file, &now);
    if (st == STINT_OK) {
        sti_sha256_init(&sha);
        sti_sha256_add(&sha, now.data, now.length);
        sti_sha256_hex(&sha, f->key);
    }
    sti_text_fini(&now);
    return st;
}

stint_status sti_memory_folder_open(sti_arena *arena, const char *path,
                                    const sti_memory_identity *id, sti_memory_folder *f)
{
    *f = (sti_memory_folder){.arena = arena,
                             .path = sti_path_absolute(arena, path),
                             .lock_fd = -1,
                             .train = id->train,
                             .test = id->test,
                             .losses = id->losses};
    f->runs = f->path ? sti_path_join(arena, f->path, "runs") : NULL;
    if (!f->runs)
        return STINT_E_MEMORY;
    stint_status st = sti_dir_create(f->path);
    if (st == STINT_OK)
        st = lock(f);
    if (st == STINT_OK)
        st = settle_manifest(f, id);
    if (st == STINT_OK)
        st = sti_dir_create(f->runs);
    if (st != STINT_OK)
        sti_memory_folder_close(f);
    return st;
}

void sti_memory_folder_close(sti_memory_folder *f)
{
    if (f->lock_fd >= 0)
        close(f->lock_fd);
    f->lock_fd = -1;
}

stint_status sti_memory_folder_sha256(const char *path, const char *split,
                                      char sha256_out[65])
{
    char name[1100], begin[16];
    void *text = NULL;
    size_t n_bytes;
    snprintf(name, sizeof name, "%s/memory.txt", path);
    snprintf(begin, sizeof begin, "\n%s ", split);
    if (!sti_path_is_file(name))
        return sti_fail(STINT_E_INPUT,
                        "%s: no memory.txt, so this is not a folder of `stint trust "
                        "memory`",
                        path);
    stint_status st = sti_file_read(name, MANIFEST_MAX, &text, &n_bytes);
    if (st != STINT_OK)
        return st;
    const char *at = strstr(text, begin);
    if (at && line_length(at + strlen(begin)) == 64)
        snprintf(sha256_out, 65, "%.64s", at + strlen(begin));
    else
        st = sti_fail(STINT_E_INPUT, "%s: names no %s images", name, split);
    sti_free(text);
    return st;
}

/* ---- runs ---- */

stint_status sti_memory_answers_init(sti_memory_answers *a, int64_t train, int64_t test,
                                     bool losses)
{
    a->member = sti_alloc((size_t)train, "answers");
    if (losses) {
        a->loss = sti_alloc_array(train, sizeof *a->loss, "losses");
        return a->member && a->loss ? STINT_OK : STINT_E_MEMORY;
    }
    a->train_right = sti_alloc((size_t)train, "answers");
    a->test_right = sti_alloc((size_t)test, "answers");
    return a->member && a->train_right && a->test_right ? STINT_OK : STINT_E_MEMORY;
}

void sti_memory_answers_fini(sti_memory_answers *a)
{
    sti_free(a->member);
    sti_free(a->train_right);
    sti_free(a->test_right);
    sti_free(a->loss);
}

static size_t bits_bytes(int64_t count)
{
    return (size_t)(count + 7) / 8;
}

static void pack_bits(const uint8_t *from, int64_t count, uint8_t *to)
{
    memset(to, 0, bits_bytes(count));
    for (int64_t i = 0; i < count; i++)
        to[i / 8] |= (uint8_t)((from[i] != 0) << (i % 8));
}

static void unpack_bits(const uint8_t *from, int64_t count, uint8_t *to)
{
    for (int64_t i = 0; i < count; i++)
        to[i] = from[i / 8] >> (i % 8) & 1;
}

static size_t run_bytes(const sti_memory_folder *f)
{
    const size_t rest = f->losses ? (size_t)f->train * sizeof(float)
                                  : bits_bytes(f->train) + bits_bytes(f->test);
    return sizeof(run_head) + bits_bytes(f->train) + rest + sizeof(uint32_t);
}

/* Workers call it at once, so not in the arena. */
static void run_path(const sti_memory_folder *f, int64_t run, char *out, size_t bytes)
{
    snprintf(out, bytes, "%s/%05" PRId64 ".bits", f->runs, run);
}

bool sti_memory_folder_has(const sti_memory_folder *f, int64_t run)
{
    char path[4200];
    run_path(f, run, path, sizeof path);
    return sti_path_is_file(path);
}

stint_status sti_memory_folder_write(const sti_memory_folder *f, int64_t run,
                                     const sti_memory_answers *a)
{
    const size_t n_bytes = run_bytes(f);
    char path[4200];
    run_head head = {.run = run, .train = f->train, .test = f->test};
    uint8_t *file = sti_alloc(n_bytes, "answers"), *at = file;
    if (!file)
        return STINT_E_MEMORY;
    memcpy(head.magic, f->losses ? MAGIC_LOSSES : MAGIC, sizeof head.magic);
    memcpy(head.key, f->key, sizeof head.key);
    memcpy(at, &head, sizeof head);
    at += sizeof head;
    pack_bits(a->member, f->train, at);
    at += bits_bytes(f->train);
    if (f->losses) {
        memcpy(at, a->loss, (size_t)f->train * sizeof *a->loss);
        at += (size_t)f->train * sizeof *a->loss;
    } else {
        pack_bits(a->train_right, f->train, at);
        at += bits_bytes(f->train);
        pack_bits(a->test_right, f->test, at);
        at += bits_bytes(f->test);
    }
    const uint32_t crc = sti_crc32c(0, file, (size_t)(at - file));
    memcpy(at, &crc, sizeof crc);
    run_path(f, run, path, sizeof path);
    stint_status st = sti_file_write(path, file, n_bytes);
    sti_free(file);
    return st;
}

stint_status sti_memory_run_parse(const void *bytes, size_t n_bytes, const char *name,
                                  const sti_memory_folder *f, int64_t run,
                                  const sti_memory_answers *a)
{
    const uint8_t *at = bytes;
    run_head head;
    uint32_t crc;
    if (n_bytes != run_bytes(f))
        return sti_fail(STINT_E_INPUT, "%s: has %zu bytes, a run here has %zu", name,
                        n_bytes, run_bytes(f));
    memcpy(&head, at, sizeof head);
    memcpy(&crc, at + n_bytes - sizeof crc, sizeof crc);
    if (memcmp(head.magic, f->losses ? MAGIC_LOSSES : MAGIC, sizeof head.magic) != 0 ||
        crc != sti_crc32c(0, at, n_bytes - sizeof crc))
        return sti_fail(STINT_E_INPUT, "%s: damaged", name);
    if (head.run != run || head.train != f->train || head.test != f->test ||
        memcmp(head.key, f->key, sizeof head.key) != 0)
        return sti_fail(STINT_E_INPUT, "%s: is no run %" PRId64 " of this folder", name,
                        run);
    at += sizeof head;
    unpack_bits(at, f->train, a->member);
    at += bits_bytes(f->train);
    if (f->losses) {
        memcpy(a->loss, at, (size_t)f->train * sizeof *a->loss);
        return STINT_OK;
    }
    unpack_bits(at, f->train, a->train_right);
    at += bits_bytes(f->train);
    unpack_bits(at, f->test, a->test_right);
    return STINT_OK;
}

stint_status sti_memory_folder_read(const sti_memory_folder *f, int64_t run,
                                    const sti_memory_answers *a)
{
    char path[4200];
    void *bytes = NULL;
    size_t n_bytes;
    run_path(f, run, path, sizeof path);
    stint_status st = sti_file_read(path, run_bytes(f) + 1, &bytes, &n_bytes);
    if (st == STINT_OK)
        st = sti_memory_run_parse(bytes, n_bytes, path, f, run, a);
    sti_free(bytes);
    return st;
}
