/* stint data get: public data sets over HTTPS, checked by SHA-256.
 *
 * libcurl is loaded when a download begins: linked, it and the thirty libraries behind
 * it would cost every other run memory and start-up time. Of an archive only the
 * members named in the table are unpacked, each through an atomic writer, so no path in
 * it can lead anywhere else. */
#include "data/data_get.h"

#include <archive.h>
#include <archive_entry.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#if defined(STINT_HAVE_CURL)
#include <curl/curl.h>
#endif

#include "base/fail.h"
#include "base/file.h"
#include "base/library.h"
#include "base/memory.h"
#include "base/text.h"

#define BLOCK_BYTES 65536

/* ---- what there is ---- */

static const sti_get_member cifar10_members[] = {
    {"cifar-10-batches-bin/batches.meta.txt", -1},
    {"cifar-10-batches-bin/data_batch_1.bin", 30730000},
    {"cifar-10-batches-bin/data_batch_2.bin", 30730000},
    {"cifar-10-batches-bin/data_batch_3.bin", 30730000},
    {"cifar-10-batches-bin/data_batch_4.bin", 30730000},
    {"cifar-10-batches-bin/data_batch_5.bin", 30730000},
    {"cifar-10-batches-bin/test_batch.bin", 30730000},
    {NULL, 0}};

static const sti_get_file cifar10_files[] = {
    {"cifar-10-binary.tar.gz", 170052171,
     "c4a38c50a1bc5f3a1c5537f2155ab9d68f9f25eb1ed8d9ddda3db29a59bca1dd",
     cifar10_members},
    {NULL, 0, NULL, NULL}};

static const sti_get_file mnist_files[] = {
    {"train-images-idx3-ubyte.gz", 9912422,
     "440fcabf73cc546fa21475e81ea370265605f56be210a4024d2ca8f203523609", NULL},
    {"train-labels-idx1-ubyte.gz", 28881,
     "3552534a0a558bbed6aed32b30c495cca23d567ec52cac8be1a0730e8010255c", NULL},
    {"t10k-images-idx3-ubyte.gz", 1648877,
     "8d422c7b0a1c1c79245a5bcf07fe86e33eeafee792b84584aec276f5a2dbc4e6", NULL},
    {"t10k-labels-idx1-ubyte.gz", 4542,
     "f7ae60f92e00ec6debd23a6088c31dbd2371eca3ffa0defaefb259924204aec6", NULL},
    {NULL, 0, NULL, NULL}};

static const sti_get_file fashion_files[] = {
    {"train-images-idx3-ubyte.gz", 26421880,
     "3aede38d61863908ad78613f6a32ed271626dd12800ba2636569512369268a84", NULL},
    {"train-labels-idx1-ubyte.gz", 29515,
     "a04f17134ac03560a47e3764e11b92fc97de4d1bfaf8ba1a3aa29af54cc90845", NULL},
    {"t10k-images-idx3-ubyte.gz", 4422102,
     "346e55b948d973a97e58d2351dde16a484bd415d4595297633bb08f03db6a073", NULL},
    {"t10k-labels-idx1-ubyte.gz", 5148,
     "67da17c76eaffca5446c3361aaab5c3cd6d1c2608764d35dfb1850b086bf8dd5", NULL},
    {NULL, 0, NULL, NULL}};

static const sti_get_set sets[] = {
    {"cifar10", {"https://www.cs.toronto.edu/~kriz/", NULL}, cifar10_files},
    {"mnist",
     {"https://storage.googleapis.com/cvdf-datasets/mnist/",
      "https://ossci-datasets.s3.amazonaws.com/mnist/", NULL},
     mnist_files},
    {"fashion-mnist",
     {"https://github.com/zalandoresearch/fashion-mnist/raw/master/data/fashion/",
      NULL},
     fashion_files},
};
#define SETS ((int)(sizeof sets / sizeof *sets))

static const char *const set_names[] = {"cifar10", "mnist", "fashion-mnist", NULL};

const char *const *stint_data_get_names(void)
{
    return set_names;
}

/* ---- one download ---- */

/* A file on its way in; the URL gives bytes to take_bytes. */
typedef struct download {
    const sti_get_file *file;
    const stint_data_get_desc *desc;
    sti_writer *writer;
    sti_sha256 sha;
    int64_t bytes, before, total; /* before: of earlier files */
    stint_status status;
} download;

static size_t take_bytes(char *bytes, size_t each, size_t count, void *user)
{
    download *d = user;
    size_t n = each * count;
    d->bytes += (int64_t)n;
    if (d->bytes > d->file->bytes) {
        d->status =
            sti_fail(STINT_E_PEER, "%s: more than the %" PRId64 " bytes published",
                     d->file->name, d->file->bytes);
        return 0;
    }
    sti_sha256_add(&d->sha, bytes, n);
    if ((d->status = sti_writer_add(d->writer, bytes, n)) != STINT_OK)
        return 0;
    if (d->desc->progress)
        d->desc->progress(d->desc->user, d->before + d->bytes, d->total);
    return n;
}

#if defined(STINT_HAVE_CURL)

/* The few calls that we make. */
typedef struct curl_calls {
    CURL *(*init)(void);
    CURLcode (*set)(CURL *, CURLoption, ...);
    CURLcode (*perform)(CURL *);
    void (*cleanup)(CURL *);
    const char *(*text)(CURLcode);
} curl_calls;

static stint_status load_curl(curl_calls *c)
{
    const sti_library_call calls[] = {{"curl_easy_init", &c->init},
                                      {"curl_easy_setopt", &c->set},
                                      {"curl_easy_perform", &c->perform},
                                      {"curl_easy_cleanup", &c->cleanup},
                                      {"curl_easy_strerror", &c->text}};
    return sti_library_load(
        "libcurl.so.4",
        "libcurl is needed to download and is not installed (on Debian: apt "
        "install libcurl4); or fetch the files by other means and put them "
        "into the folder",
        calls, sizeof calls / sizeof *calls);
}

static stint_status fetch(const char *url, bool mirror, download *d)
{
    curl_calls c = {0};
    char words[CURL_ERROR_SIZE] = "";
    stint_status st = load_curl(&c);
    CURL *handle = st == STINT_OK ? c.init() : NULL;
    if (st != STINT_OK)
        return st;
    if (!handle)
        return sti_fail(STINT_E_MEMORY, "no memory to download %s", url);
    (void)c.set(handle, CURLOPT_URL, url);
    /* A mirror is the user's choice; publishers must not send us
     * elsewhere unencrypted. */
    (void)c.set(handle, CURLOPT_PROTOCOLS_STR, mirror ? "https,http,file" : "https");
    (void)c.set(handle, CURLOPT_REDIR_PROTOCOLS_STR, mirror ? "https,http" : "https");
    (void)c.set(handle, CURLOPT_FOLLOWLOCATION, 1L);
    (void)c.set(handle, CURLOPT_MAXREDIRS, 5L);
    (void)c.set(handle, CURLOPT_FAILONERROR, 1L);
    (void)c.set(handle, CURLOPT_NOSIGNAL, 1L);
    (void)c.set(handle, CURLOPT_CONNECTTIMEOUT, 30L);
    (void)c.set(handle, CURLOPT_LOW_SPEED_LIMIT, 1L);
    (void)c.set(handle, CURLOPT_LOW_SPEED_TIME, 60L);
    (void)c.set(handle, CURLOPT_USERAGENT, "stint");
    (void)c.set(handle, CURLOPT_ERRORBUFFER, words);
    (void)c.set(handle, CURLOPT_WRITEFUNCTION, take_bytes);
    (void)c.set(handle, CURLOPT_WRITEDATA, d);
    CURLcode code = c.perform(handle);
    c.cleanup(handle);
    if (d->status != STINT_OK)
        return d->status; /* ours, recorded */
    if (code != CURLE_OK)
        return sti_fail(
            STINT_E_PEER,
            "cannot download %s: %s; try again, or name a mirror with --mirror", url,
            words[0] ? words : c.text(code));
    return STINT_OK;
}

#else

static stint_status fetch(const char *url, bool mirror, download *d)
{
    (void)mirror;
    (void)d;
    (void)take_bytes;
    return sti_fail(
        STINT_E_UNSUPPORTED,
        "cannot download %s: this stint was built without libcurl's headers", url);
}

#endif

static stint_status check_download(download *d)
{
    char hex[65];
    sti_sha256_hex(&d->sha, hex);
    if (d->bytes == d->file->bytes && strcmp(hex, d->file->sha256) == 0)
        return STINT_OK;
    return sti_fail(STINT_E_PEER,
                    "%s is not the published file (%" PRId64
                    " bytes with SHA-256 %s, wanted "
                    "%" PRId64 " with %s); nothing was kept",
                    d->file->name, d->bytes, hex, d->file->bytes, d->file->sha256);
}

static stint_status download_from(const char *base, const char *path, bool mirror,
                                  download *d)
{
    sti_text url = {0};
    size_t n = strlen(base);
    sti_text_printf(&url, "%s%s%s", base, n && base[n - 1] == '/' ? "" : "/",
                    d->file->name);
    stint_status st = url.failed ? STINT_E_MEMORY : sti_writer_open(path, &d->writer);
    if (st == STINT_OK) {
        sti_sha256_init(&d->sha);
        d->bytes = 0;
        d->status = STINT_OK;
        st = fetch(url.data, mirror, d);
        if (st == STINT_OK)
            st = check_download(d);
        if (st == STINT_OK)
            st = sti_writer_commit(d->writer);
        else
            sti_writer_abort(d->writer);
    }
    sti_text_fini(&url);
    return st;
}

/* ---- files that are there ---- */

static int64_t file_bytes(const char *path)
{
    struct stat info;
    return stat(path, &info) == 0 && S_ISREG(info.st_mode) ? (int64_t)info.st_size : -1;
}

static stint_status hash_file(const char *path, int64_t bytes, char hex[65])
{
    sti_sha256 sha;
    stint_status st = STINT_OK;
    uint8_t *block = sti_alloc(BLOCK_BYTES, "get.block");
    int fd = -1;
    if (!block)
        return STINT_E_MEMORY;
    st = sti_file_open(path, &fd);
    sti_sha256_init(&sha);
    for (int64_t at = 0; at < bytes && st == STINT_OK; at += BLOCK_BYTES) {
        size_t n = bytes - at < BLOCK_BYTES ? (size_t)(bytes - at) : BLOCK_BYTES;
        if ((st = sti_read_at(fd, path, at, block, n)) == STINT_OK)
            sti_sha256_add(&sha, block, n);
    }
    if (fd >= 0)
        close(fd);
    sti_free(block);
    sti_sha256_hex(&sha, hex);
    return st;
}

/* A file of that name with other contents is somebody's: it is not overwritten. */
static stint_status already_there(const sti_get_file *file, const char *path,
                                  bool *there_out)
{
    char hex[65];
    int64_t bytes = file_bytes(path);
    *there_out = false;
    if (bytes < 0)
        return STINT_OK;
    stint_status st = hash_file(path, bytes, hex);
    if (st != STINT_OK)
        return st;
    *there_out = strcmp(hex, file->sha256) == 0;
    if (*there_out)
        return STINT_OK;
    return sti_fail(
        STINT_E_INPUT,
        "%s exists with other contents; remove it, or choose another folder", path);
}

static bool members_there(sti_arena *arena, const sti_get_file *file,
                          const char *folder)
{
    for (const sti_get_member *m = file->members; m->path; m++) {
        char *path = sti_path_join(arena, folder, m->path);
        int64_t bytes = path ? file_bytes(path) : -1;
        if (bytes < 0 || (m->bytes >= 0 && bytes != m->bytes))
            return false;
    }
    return true;
}

/* ---- unpacking ---- */

static const sti_get_member *find_member(const sti_get_file *file, const char *path)
{
    while (path && path[0] == '.' && path[1] == '/')
        path += 2;
    for (const sti_get_member *m = file->members; m->path; m++)
        if (path && strcmp(m->path, path) == 0)
            return m;
    return NULL;
}

static stint_status copy_member(struct archive *archive, const char *path,
                                uint8_t *block)
{
    sti_writer *writer = NULL;
    stint_status st = sti_writer_open(path, &writer);
    while (st == STINT_OK) {
        la_ssize_t n = archive_read_data(archive, block, BLOCK_BYTES);
        if (n == 0)
            return sti_writer_commit(writer);
        if (n < 0) {
            const char *why = archive_error_string(archive);
            st = sti_fail(STINT_E_INPUT, "%s: %s", path,
                          why ? why : "cannot be unpacked");
        } else {
            st = sti_writer_add(writer, block, (size_t)n);
        }
    }
    sti_writer_abort(writer);
    return st;
}

static stint_status unpack_entries(struct archive *archive, sti_arena *arena,
                                   const sti_get_file *file, const char *folder)
{
    struct archive_entry *entry = NULL;
    uint8_t *block = sti_alloc(BLOCK_BYTES, "get.block");
    stint_status st = block ? STINT_OK : STINT_E_MEMORY;
    int code = ARCHIVE_OK;
    while (st == STINT_OK &&
           (code = archive_read_next_header(archive, &entry)) != ARCHIVE_EOF) {
        if (code == ARCHIVE_FATAL || code == ARCHIVE_FAILED) {
            const char *why = archive_error_string(archive);
            st = sti_fail(STINT_E_INPUT, "%s: %s", file->name, why ? why : "damaged");
            break;
        }
        const sti_get_member *m = find_member(file, archive_entry_pathname(entry));
        if (!m || archive_entry_filetype(entry) != AE_IFREG)
            continue;
        char *path = sti_path_join(arena, folder, m->path);
        char *parent = path ? sti_path_folder(arena, path) : NULL;
        st = parent ? sti_dir_create(parent) : STINT_E_MEMORY;
        if (st == STINT_OK)
            st = copy_member(archive, path, block);
    }
    sti_free(block);
    return st;
}

static stint_status unpack(sti_arena *arena, const sti_get_file *file, const char *path,
                           const char *folder)
{
    struct archive *archive = archive_read_new();
    if (!archive)
        return sti_fail(STINT_E_MEMORY, "no memory to unpack %s", path);
    stint_status st;
    if (archive_read_support_filter_gzip(archive) != ARCHIVE_OK ||
        archive_read_support_format_tar(archive) != ARCHIVE_OK ||
        archive_read_open_filename(archive, path, BLOCK_BYTES) != ARCHIVE_OK) {
        const char *why = archive_error_string(archive);
        st = sti_fail(STINT_E_IO, "cannot unpack %s: %s", path,
                      why ? why : "unreadable");
    } else {
        st = unpack_entries(archive, arena, file, folder);
    }
    archive_read_free(archive);
    if (st == STINT_OK && !members_there(arena, file, folder))
        st = sti_fail(STINT_E_INPUT, "%s lacks files that it should hold", path);
    return st;
}

/* ---- sets ---- */

static stint_status get_file(const sti_get_set *set, const stint_data_get_desc *desc,
                             sti_arena *arena, download *d)
{
    bool there = false;
    char *path = sti_path_join(arena, desc->folder, d->file->name);
    if (!path)
        return STINT_E_MEMORY;
    if (d->file->members && members_there(arena, d->file, desc->folder))
        return STINT_OK;
    stint_status st = already_there(d->file, path, &there);
    if (st != STINT_OK)
        return st;
    if (!there && desc->mirror) {
        st = download_from(desc->mirror, path, true, d);
    } else if (!there) {
        st = STINT_E_PEER;
        for (int i = 0; i < 3 && set->bases[i] && st == STINT_E_PEER; i++)
            st = download_from(set->bases[i], path, false, d);
    }
    if (st == STINT_OK && d->file->members &&
        (st = unpack(arena, d->file, path, desc->folder)) == STINT_OK)
        (void)unlink(path); /* its contents are there now */
    return st;
}

stint_status sti_data_get_set(const sti_get_set *set, const stint_data_get_desc *desc)
{
    download d = {.desc = desc};
    if (!desc->folder || !*desc->folder)
        return sti_fail(STINT_E_USAGE, "name a folder to put %s into", set->name);
    for (d.file = set->files; d.file->name; d.file++)
        d.total += d.file->bytes;
    sti_arena *arena = sti_arena_create("get");
    stint_status st = arena ? sti_dir_create(desc->folder) : STINT_E_MEMORY;
    for (d.file = set->files; d.file->name && st == STINT_OK; d.file++) {
        st = get_file(set, desc, arena, &d);
        d.before += d.file->bytes;
        if (st == STINT_OK && desc->progress)
            desc->progress(desc->user, d.before, d.total);
    }
    sti_arena_destroy(arena);
    return st;
}

stint_status stint_data_get(const stint_data_get_desc *desc)
{
    for (int i = 0; desc->name && i < SETS; i++)
        if (strcmp(desc->name, sets[i].name) == 0)
            return sti_data_get_set(&sets[i], desc);
    const char *near =
        desc->name ? sti_text_nearest(desc->name, set_names, SETS) : NULL;
    return sti_fail(STINT_E_USAGE,
                    "no data set '%s' is known%s%s%s; there are cifar10, mnist "
                    "and fashion-mnist",
                    desc->name ? desc->name : "", near ? " (did you mean " : "",
                    near ? near : "", near ? "?)" : "");
}
