/* Which folder, archive or list is which split, whatever people call it. */
#include <stdio.h>
#include <string.h>

#include "base/file.h"
#include "base/text.h"
#include "data/data_priv.h"

/* The second split, in the order of preference. */
static const char *const test_names[] = {"test", "val", "valid", "validation", NULL};

/* (Without memory of its own, which could run out between being asked whether a split
 * is there and where.) */
static bool is_there(const char *path, const char *name, const char *ending)
{
    char full[4096];
    const int n = snprintf(full, sizeof full, "%s/%s%s", path, name, ending);
    return n < (int)sizeof full &&
           (*ending ? sti_path_is_file(full) : sti_path_is_dir(full));
}

/* The first of test_names[] that is there, from number `from` on. */
static const char *first_there(const char *path, const char *ending, int from)
{
    for (int i = from; test_names[i]; i++)
        if (is_there(path, test_names[i], ending))
            return test_names[i];
    return NULL;
}

const char *sti_data_find_split(const char *path, stint_data_split split,
                                const char *ending)
{
    if (split != STINT_DATA_TRAIN)
        return first_there(path, ending, 0);
    return is_there(path, "train", ending) ? "train" : NULL;
}

stint_status sti_data_tell_split(const stint_data *data, const char *ending,
                                 sti_data_sink *sink)
{
    const char *path = data->info.path, *name = data->split_name;
    const char *slash = *ending ? "" : "/";
    if (data->split == STINT_DATA_TRAIN)
        return STINT_OK;
    if (strcmp(name, "test") != 0)
        return sti_data_find(sink, STI_FIND_SPLIT,
                             "%s: there is no test%s%s; %s%s%s is the test split", path,
                             ending, slash, name, ending, slash);
    const char *other = first_there(path, ending, 1);
    if (!other)
        return STINT_OK;
    return sti_data_find(sink, STI_FIND_SPLIT,
                         "%s: test%s%s and %s%s%s are there; test%s%s is the test "
                         "split, %s%s%s is not read",
                         path, ending, slash, other, ending, slash, ending, slash,
                         other, ending, slash);
}

/* ---- lists ---- */

bool sti_data_is_list(const char *path, const char *name)
{
    char full[4096];
    const int n = snprintf(full, sizeof full, "%s/%s", path, name);
    return n < (int)sizeof full && sti_path_is_file(full);
}

bool sti_data_has_list(const char *path)
{
    return sti_data_is_list(path, "train.csv") || sti_data_is_list(path, "labels.csv");
}

/* ---- by names ---- */

/* FNV-1a (Fowler, Noll, Vo), and a last mix (Stafford's 13th) so that the high bits
 * depend on every letter. */
static uint64_t hash_name(const char *name)
{
    uint64_t h = UINT64_C(0xcbf29ce484222325);
    for (const char *c = name; *c; c++)
        h = (h ^ (uint8_t)*c) * UINT64_C(0x100000001b3);
    h = (h ^ h >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    h = (h ^ h >> 27) * UINT64_C(0x94d049bb133111eb);
    return h ^ h >> 31;
}

bool sti_data_name_in_split(const stint_data *data, const char *name)
{
    const bool test = (double)(hash_name(name) >> 11) * 0x1p-53 < data->share;
    return test == (data->split == STINT_DATA_TEST);
}

/* ---- packed data ---- */

/* How each kind of archive is unpacked into a folder, and, where it is a compressed
 * tar, how that becomes a plain one, which is read in place. */
static const struct {
    const char *ending, *extract, *into, *plain;
} unpackers[] = {
    {".tar.gz", "tar -xzf", "-C", "gunzip -k"},
    {".tgz", "tar -xzf", "-C", "gunzip -k"},
    {".tar.xz", "tar -xJf", "-C", "xz -dk"},
    {".tar.bz2", "tar -xjf", "-C", "bunzip2 -k"},
    {".tar.zst", "tar --zstd -xf", "-C", "zstd -dk"},
    {".zip", "unzip -q", "-d", NULL},
    {".tar", "tar -xf", "-C", NULL},
};
enum { UNPACKERS = sizeof unpackers / sizeof unpackers[0] };

/* The row of the ending of a name, -1: none; *stem_out: letters before it. */
static int find_unpacker(const char *name, size_t *stem_out)
{
    const size_t length = strlen(name);
    for (int i = 0; i < UNPACKERS; i++) {
        const size_t ending = strlen(unpackers[i].ending);
        if (length <= ending ||
            strcmp(name + length - ending, unpackers[i].ending) != 0)
            continue;
        *stem_out = length - ending;
        return i;
    }
    return -1;
}

/* For a shell: as it is, or in quotes. */
static void add_quoted(sti_text *out, const char *path, size_t length)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                "0123456789_./-+:@%,";
    if (strspn(path, plain) >= length) {
        sti_text_add_bytes(out, path, length);
        return;
    }
    sti_text_add(out, "'");
    for (size_t i = 0; i < length; i++)
        if (path[i] == '\'')
            sti_text_add(out, "'\\''");
        else
            sti_text_add_bytes(out, path + i, 1);
    sti_text_add(out, "'");
}

static bool is_split(const char *name, size_t length)
{
    if (length == 5 && strncmp(name, "train", 5) == 0)
        return true;
    for (int i = 0; test_names[i]; i++)
        if (strlen(test_names[i]) == length &&
            strncmp(name, test_names[i], length) == 0)
            return true;
    return false;
}

/* The failure that says how to unpack the archive `path`. */
static stint_status say_packed(const char *path, int kind, size_t stem)
{
    const char *name = sti_path_name(path);
    const size_t name_stem = stem - (size_t)(name - path);
    sti_text command = {0};
    if (unpackers[kind].plain && is_split(name, name_stem)) {
        sti_text_printf(&command, "%s ", unpackers[kind].plain);
        add_quoted(&command, path, strlen(path));
    } else {
        sti_text_add(&command, "mkdir -p ");
        add_quoted(&command, path, stem);
        sti_text_printf(&command, " && %s ", unpackers[kind].extract);
        add_quoted(&command, path, strlen(path));
        sti_text_printf(&command, " %s ", unpackers[kind].into);
        add_quoted(&command, path, stem);
    }
    stint_status st =
        command.failed
            ? STINT_E_MEMORY
            : sti_fail(STINT_E_INPUT,
                       "%s is packed, and images are read in place; unpack it with "
                       "`%s` and give --data the folder that holds train/ and test/, "
                       "or one folder a class",
                       path, command.data);
    sti_text_fini(&command);
    return st;
}

/* In a folder: the archive of the split itself, else the first of any name. */
static stint_status look_for_packed(const char *path, stint_data_split split,
                                    sti_arena *arena)
{
    char **names = NULL, *best = NULL;
    int64_t count = 0;
    size_t stem = 0;
    if (sti_dir_list(arena, path, &names, &count) != STINT_OK)
        return STINT_OK; /* who opens it will tell */
    for (int64_t i = 0; i < count; i++) {
        if (find_unpacker(names[i], &stem) < 0 || strcmp(names[i] + stem, ".tar") == 0)
            continue;
        const bool train = stem == 5 && strncmp(names[i], "train", 5) == 0;
        const bool own =
            is_split(names[i], stem) && train == (split == STINT_DATA_TRAIN);
        if (!best || own)
            best = names[i];
    }
    if (!best)
        return STINT_OK;
    char *full = sti_path_join(arena, path, best);
    const int kind = full ? find_unpacker(full, &stem) : -1;
    return kind >= 0 ? say_packed(full, kind, stem) : STINT_E_MEMORY;
}

stint_status sti_data_packed(const char *path, stint_data_split split)
{
    size_t stem = 0;
    const int kind = find_unpacker(path, &stem);
    if (sti_path_is_file(path)) {
        const char *name = sti_path_name(path);
        const bool plain = kind >= 0 && strcmp(unpackers[kind].ending, ".tar") == 0;
        return kind < 0 || (plain && is_split(name, stem - (size_t)(name - path)))
                   ? STINT_OK
                   : say_packed(path, kind, stem);
    }
    sti_arena *arena = sti_arena_create("data.paths");
    stint_status st = arena ? look_for_packed(path, split, arena) : STINT_E_MEMORY;
    sti_arena_destroy(arena);
    return st;
}
