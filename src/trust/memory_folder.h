/* The folder of a memorisation study:
 *
 *   memory.txt       what every run in it depends on, a line each
 *   runs/00017.bits  what run 17 was trained on and got right (of a text: its losses)
 *
 * and the results (stint_memory_run). Files are written atomically, so a run is there
 * whole or not at all. */
#ifndef STI_TRUST_MEMORY_FOLDER_H
#define STI_TRUST_MEMORY_FOLDER_H

#include "base/recipe.h"
#include "base/text.h"
#include "trust/memory_estimate.h"

/* What runs depend on beside their number. */
typedef struct sti_memory_identity {
    const stint_recipe *recipe;
    double fraction;
    int64_t train, test, members;
    bool losses; /* runs hold losses in the place of right answers */
    char train_sha256[65], test_sha256[65]; /* of the images; "" without */
} sti_memory_identity;

typedef struct sti_memory_folder {
    const char *path, *runs; /* absolute; in the arena */
    sti_arena *arena;        /* the caller's */
    int lock_fd;
    int64_t train, test;
    bool losses;
    char key[65]; /* SHA-256 of memory.txt */
} sti_memory_folder;

/* Make the folder or go on with one of the same identity, and lock it. STINT_E_USAGE:
 * it holds something else, is of another identity (what differs is named), or another
 * process is at work there. */
stint_status sti_memory_folder_open(sti_arena *arena, const char *path,
                                    const sti_memory_identity *identity,
                                    sti_memory_folder *folder_out);
void sti_memory_folder_close(sti_memory_folder *folder); /* keeps the files */

/* A run's answers: one byte an image, 0 or 1; of a text, what each passage was worth.
 */
typedef struct sti_memory_answers {
    uint8_t *member, *train_right, *test_right; /* [train], [train], [test] */
    float *loss; /* [train], nats a token, in the place of both right; NULL: images */
} sti_memory_answers;

/* Room for the answers on so many images, or the losses of so many passages.
 * STINT_E_MEMORY: fini is to be called still. */
stint_status sti_memory_answers_init(sti_memory_answers *answers, int64_t train,
                                     int64_t test, bool losses);
void sti_memory_answers_fini(sti_memory_answers *answers); /* a zeroed one is fine */

bool sti_memory_folder_has(const sti_memory_folder *folder, int64_t run);
stint_status sti_memory_folder_write(const sti_memory_folder *folder, int64_t run,
                                     const sti_memory_answers *answers);
/* STINT_E_INPUT: not a run of this folder, or damaged. */
stint_status sti_memory_folder_read(const sti_memory_folder *folder, int64_t run,
                                    const sti_memory_answers *answers_out);
/* The file's bytes; `name` begins messages. */
stint_status sti_memory_run_parse(const void *bytes, size_t n_bytes, const char *name,
                                  const sti_memory_folder *folder, int64_t run,
                                  const sti_memory_answers *answers_out);

/* The SHA-256 that memory.txt names for "train" or "test" images. STINT_E_INPUT: no
 * such folder. */
stint_status sti_memory_folder_sha256(const char *path, const char *split,
                                      char sha256_out[65]);

#endif
