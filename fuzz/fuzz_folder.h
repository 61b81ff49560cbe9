/* For fuzzers of what is read by path: a temporary folder, made once and removed at
 * exit. */
#ifndef STI_FUZZ_FUZZ_FOLDER_H
#define STI_FUZZ_FUZZ_FOLDER_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "data/data.h"

static char fuzz_folder[512];
static char fuzz_files[8][640];
static int fuzz_file_count;

static inline void fuzz_remove_files(void)
{
    while (fuzz_file_count > 0)
        (void)remove(fuzz_files[--fuzz_file_count]);
}

static inline void fuzz_remove_folder(void)
{
    fuzz_remove_files();
    (void)rmdir(fuzz_folder);
}

static inline void fuzz_begin(void)
{
    const char *tmp = getenv("TMPDIR");
    if (!fuzz_folder[0]) {
        /* In memory, if possible: an input is a file, and many are flushed. */
        if (!tmp || !*tmp)
            tmp = access("/dev/shm", W_OK | X_OK) == 0 ? "/dev/shm" : "/tmp";
        (void)snprintf(fuzz_folder, sizeof fuzz_folder, "%s/stint-fuzz-XXXXXX", tmp);
        if (!mkdtemp(fuzz_folder) || atexit(fuzz_remove_folder) != 0)
            exit(1);
    }
    fuzz_remove_files();
}

static inline void fuzz_put(const char *name, const uint8_t *data, size_t size)
{
    char *path = fuzz_files[fuzz_file_count++];
    (void)snprintf(path, sizeof fuzz_files[0], "%s/%s", fuzz_folder, name);
    FILE *f = fopen(path, "wb");
    if (!f || fwrite(data, 1, size, f) != size || fclose(f) != 0)
        exit(1);
}

static inline void fuzz_ignore(void *user, stint_data_level level, const char *text)
{
    (void)user;
    (void)level;
    (void)text;
}

/* Open, decode and measure what the folder holds now, as it is and resized;
 * then check. */
static inline void fuzz_read_all(void)
{
    for (int64_t size = 0; size <= 8; size += 8) {
        stint_data_desc desc = {
            .path = fuzz_folder, .size = size, .channels = size ? 1 : 0};
        stint_data *data = NULL;
        sti_data_decoders *decoders = NULL;
        sti_data_norm norm;
        char name[64];
        if (stint_data_open(&desc, &data) != STINT_OK)
            continue;
        const stint_data_info *info = stint_data_describe(data);
        for (int64_t i = 0; i < info->count && i < 8; i++)
            sti_data_sample_name(data, i, name, sizeof name);
        /* Large pictures are sound but slow. */
        if (info->height * info->width <= 1 << 20 &&
            sti_data_memory_bytes(data, 1, 1) < 1 << 26 &&
            sti_data_decoders_create(data, 1, &decoders) == STINT_OK)
            (void)sti_data_measure(data, &sti_team_serial, decoders, NULL, NULL, &norm);
        sti_data_decoders_destroy(decoders);
        stint_data_close(data);
    }
}

#endif
