/* Runs a fuzzer's entry without libFuzzer: every file of a corpus folder, and fixed
 * mutations of each, the same on every machine. For `quick` tests and for compilers
 * other than clang.
 *
 *   tar_fuzz_replay CORPUS [MUTATIONS A FILE]   (2000 unless given) */
#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define MAX_FILES 512
#define MAX_BYTES (1 << 20)
#define GROWTH    4096

static uint64_t state;

/* splitmix64 */
static uint64_t next_random(void)
{
    uint64_t z = state += UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return z ^ z >> 31;
}

static size_t below(size_t n)
{
    return n ? (size_t)(next_random() % n) : 0;
}

/* Values at the edges of integer types, big- or little-endian. */
static void put_edge(uint8_t *data, size_t size)
{
    static const uint64_t edges[] = {0,
                                     1,
                                     0x7f,
                                     0x80,
                                     0xff,
                                     0x7fff,
                                     0xffff,
                                     0x7fffffff,
                                     0x80000000,
                                     0xffffffff,
                                     UINT64_C(0x7fffffffffffffff),
                                     UINT64_C(0x8000000000000000),
                                     UINT64_MAX};
    uint64_t value = edges[below(sizeof edges / sizeof *edges)];
    size_t bytes = (size_t)1 << below(4), at = below(size);
    int big = (int)below(2);
    for (size_t i = 0; i < bytes && at + i < size; i++)
        data[at + i] = (uint8_t)(value >> 8 * (big ? bytes - 1 - i : i));
}

/* One change to data[size]; there is room to grow. Headers are at the front of most
 * formats, so half of all changes fall into the first bytes. */
static size_t mutate(uint8_t *data, size_t size)
{
    static const char text[] = "0123456789-+.eE{}[]\":,=;#/\\ \n\t%nul";
    size_t reach = below(2) && size > 256 ? 256 : size;
    size_t at = below(reach), n = 1 + below(16);
    if (size == 0)
        return 0;
    switch (below(8)) {
    case 0:
        data[at] ^= (uint8_t)(1u << below(8));
        return size;
    case 1:
        data[at] = (uint8_t)next_random();
        return size;
    case 2:
        put_edge(data, reach);
        return size;
    case 3: /* cut */
        return below(4) ? size - below(size < 64 ? size : 64) : below(size);
    case 4: /* copy a piece over another place */
        if (at + n <= size)
            memmove(data + at, data + below(size - n + 1), n);
        return size;
    case 5: /* insert */
        memmove(data + at + n, data + at, size - at);
        for (size_t i = 0; i < n; i++)
            data[at + i] = (uint8_t)next_random();
        return size + n;
    case 6: /* remove */
        if (at + n > size)
            return size;
        memmove(data + at, data + at + n, size - at - n);
        return size - n;
    default:
        data[at] = (uint8_t)text[below(sizeof text - 1)];
        return size;
    }
}

static int compare(const void *a, const void *b)
{
    const char *const *x = a, *const *y = b;
    return strcmp(*x, *y);
}

static int list(const char *folder, char **names)
{
    int count = 0;
    struct dirent *entry;
    DIR *dir = opendir(folder);
    if (!dir)
        return -1;
    while ((entry = readdir(dir)) && count < MAX_FILES)
        if (entry->d_name[0] != '.')
            names[count++] = strdup(entry->d_name);
    closedir(dir);
    qsort(names, (size_t)count, sizeof *names, compare);
    return count;
}

/* Runs one file and its mutations from a buffer of exactly the size, so that sanitizers
 * see every byte too far. */
static void run_copy(const uint8_t *data, size_t size)
{
    uint8_t *copy = malloc(size ? size : 1);
    if (!copy)
        exit(1);
    memcpy(copy, data, size);
    (void)LLVMFuzzerTestOneInput(copy, size);
    free(copy);
}

static long replay(const char *path, long mutations, uint8_t *file, uint8_t *work)
{
    FILE *f = fopen(path, "rb");
    if (!f)
        return -1;
    size_t size = fread(file, 1, MAX_BYTES, f);
    (void)fclose(f);
    run_copy(file, size);
    for (long i = 0; i < mutations; i++) {
        size_t n = size, changes = 1 + below(4);
        memcpy(work, file, size);
        while (changes--)
            n = mutate(work, n);
        run_copy(work, n);
    }
    return mutations + 1;
}

int main(int argc, char **argv)
{
    static uint8_t file[MAX_BYTES], work[MAX_BYTES + GROWTH];
    char *names[MAX_FILES], path[4096];
    long mutations = argc > 2 ? strtol(argv[2], NULL, 10) : 2000, runs = 0;
    int count = argc > 1 ? list(argv[1], names) : -1;
    if (count <= 0) {
        (void)fprintf(
            stderr, "usage: %s CORPUS_FOLDER [MUTATIONS]; the folder must hold files\n",
            argv[0]);
        return 2;
    }
    for (int i = 0; i < count; i++) {
        state = (uint64_t)i;
        (void)snprintf(path, sizeof path, "%s/%s", argv[1], names[i]);
        long done = replay(path, mutations, file, work);
        free(names[i]);
        if (done < 0) {
            (void)fprintf(stderr, "cannot read %s\n", path);
            return 1;
        }
        runs += done;
    }
    (void)printf("%d files, %ld inputs\n", count, runs);
    return 0;
}
