/* Image classification data: what is in a folder, whether it is sound, and two ways to
 * come by some (rendered letters, public downloads).
 *
 * PATH may hold
 *   folder  train/<class>/NAME.{jpg,jpeg,png,webp,bmp} and test/<class>/..., or
 *           <class>/NAME without splits: names then decide (stint_data_desc.validation)
 *   tar     the first inside train.tar and test.tar, read in place
 *   idx     train-images-idx3-ubyte[.gz], train-labels-idx1-ubyte[.gz], t10k-..., also
 *           in raw/ and as emnist-<set>-train-images-idx3-ubyte
 *   cifar   data_batch_1.bin ... test_batch.bin, or CIFAR-100's train.bin and test.bin;
 *           also inside cifar-10-batches-bin/ and cifar-100-binary/
 *   csv     train.csv and test.csv, or labels.csv: lines of "file,label"
 * Folders, archives and lists of the test split may also be named val, valid or
 * validation; test comes first.
 *
 * The samples of a split have one order everywhere: by class, then by name (IDX and
 * CIFAR: by position). The index of a sample in it is its id for shuffling and
 * augmentation.
 *
 *   stint_data *data = NULL;
 *   const stint_data_desc desc = {.path = "photos", .size = 64};
 *   if (stint_data_open(&desc, &data) == STINT_OK) {
 *       const stint_data_info *info = stint_data_describe(data);
 *       printf("%lld images of %d classes\n", (long long)info->count, info->classes);
 *   }
 *   stint_data_close(data);
 *
 * Training opens its data by itself (stint/train.h); these calls are for looking.
 * Calls may be made at once on different datasets.
 * Relative paths are relative to the working directory. Errors name the file, and what
 * was wanted of it. */
#ifndef STINT_DATA_H
#define STINT_DATA_H

#include <stdbool.h>
#include <stdint.h>

#include "stint/status.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- opening ---- */

/** Which part of the data. A training learns from the first and is judged by the
 * second, which it never learns from. */
typedef enum stint_data_split {
    STINT_DATA_TRAIN,
    STINT_DATA_TEST,
    /* Both parts of a text; images have no such split. */
    STINT_DATA_ALL
} stint_data_split;

/** What a split holds. Pointers live as long as the dataset. */
typedef struct stint_data_info {
    /* Samples. */
    int64_t count;
    /* Size of every decoded image in pixels; channels 1 (grey) or 3 (colour). */
    int64_t height, width, channels;
    /* Classes, and their names [classes]. */
    int32_t classes;
    const char *const *class_names;
    /* "folder", "tar", "idx", "cifar" or "csv". */
    const char *format;
    /* Absolute path of the data. */
    const char *path;
    /* Where this split came from, absolute: its folder, archive or list; path itself
     * where that holds both. */
    const char *from;
} stint_data_info;

/** How a picture of another size becomes an image of size x size. */
typedef enum stint_data_fit {
    STINT_FIT_AUTO,   /* squash; of a model's data: as it was trained with */
    STINT_FIT_SQUASH, /* both sides to size, whatever that does to the proportions */
    STINT_FIT_CROP,   /* the shorter side to size, and the middle of the longer one */
    STINT_FIT_PAD     /* the longer side to size, and grey beside the shorter one */
} stint_data_fit;

/** How to open a split. Zero means "choose for me"; path is required. Nothing that it
 * points to is needed after opening. */
typedef struct stint_data_desc {
    const char *path;
    stint_data_split split;
    /* One of the words above. NULL or "auto": by what is in path. */
    const char *format;
    /* Resize every image to size x size pixels, at most 4096. 0: all must be as large
     * as the first.
     */
    int64_t size;
    /* 1 grey, 3 colour. 0: as the first image. */
    int channels;
    /* The split must have these classes and, where they are above 0, this size and
     * these channels. NULL: a test split is held against the training split of the
     * path. */
    const stint_data_info *like;
    /* With like: some of these classes may have no images here. */
    bool partial;
    /* Leave out this share of each class, evenly spread, at least 0 and below 1. */
    double hold_out;
    /* With hold_out: take nothing but that share. */
    bool held_out;
    stint_data_fit fit;
    /* Training batches will cut out parts at random (scale_crop): reserve what that
     * takes. */
    bool cuts;
    /* Where a folder has classes but no splits: the share of the images, chosen by
     * their names, that is the test split. 0: 0.1; below 0: none. */
    double validation;
    /* For messages: the size in pixels that the model is usually given. 0: none is
     * usual. */
    int64_t usual_size;
    /* Folders within a class, at any depth, belong to it: what is in them is an image
     * of the class, named "sub/1.jpg". False: they are skipped, with a note. */
    bool nested;
    /* Notes (what was skipped, which folder is which split) are not logged: for a split
     * that was opened before. Else ten of a kind are, then the number of the others. */
    bool quiet;
} stint_data_desc;

/** An opened split; opaque. It holds an index of the samples, not their pixels.
 * Read-only once it is open: any number of threads may use it at once. */
typedef struct stint_data stint_data;

/** Find and index the samples of one split; the caller closes it.
 *
 * Of the pixels nothing is read but the heads of files that give a size. STINT_E_USAGE:
 * a value of desc out of range; STINT_E_INPUT: nothing there, no such split, a class
 * without images, test classes unlike the training ones, a damaged index; STINT_E_IO;
 * STINT_E_MEMORY. */
STINT_API stint_status stint_data_open(const stint_data_desc *desc,
                                       stint_data **data_out);

/** Close a dataset; its description and all names in it go, too. NULL is fine. No other
 * thread may be using it. */
STINT_API void stint_data_close(stint_data *data);

/** What the dataset holds. Never NULL; lives as long as the dataset. */
STINT_API const stint_data_info *stint_data_describe(const stint_data *data);

/** Is there such a split at path? Never fails: false
 * also when there is nothing at all. format: as in stint_data_desc. */
STINT_API bool stint_data_has_split(const char *path, const char *format,
                                    stint_data_split split);

/* ---- checking ---- */

/** How bad a finding of a check is: a note needs no action, a problem does. */
typedef enum stint_data_level { STINT_DATA_NOTE, STINT_DATA_PROBLEM } stint_data_level;

/** Receives one finding; the text holds during the call only. Called on the thread that
 * checks. */
typedef void stint_data_found_fn(void *user, stint_data_level level, const char *text);

/** Receives progress: done of total images (or bytes). Called on the thread that called
 * the library. */
typedef void stint_data_progress_fn(void *user, int64_t done, int64_t total);

/** What to check, and whom to tell. */
typedef struct stint_data_check_desc {
    /* Path, format, size and channels are those of stint_data_desc. */
    const char *path;
    const char *format;
    int64_t size;
    int channels;
    /* As there, too: folders within a class belong to it. */
    bool nested;
    /* Threads that decode; 0: one. */
    int threads;
    /* Called once a finding, on the calling thread. Of each kind the first ten come in
     * full, then one with the number of the others. */
    stint_data_found_fn *found;
    /* May be NULL. */
    stint_data_progress_fn *progress;
    /* Passed through to both. */
    void *user;
} stint_data_check_desc;

/** What a check saw. It is a plain value, with nothing to free. */
typedef struct stint_data_check_result {
    /* Images seen in each split, good or bad. */
    int64_t train_count, test_count;
    int32_t classes;
    /* 0 when no image could be read. */
    int64_t height, width, channels;
    /* All findings, those that were counted but not told one by one included. */
    int64_t problems, notes;
} stint_data_check_result;

/** Read everything once and tell every problem: the first ten of a kind in full, then
 * their number.
 *
 * STINT_OK: no problem (there may be notes); STINT_E_INPUT: some. *result_out is filled
 * in either case. */
STINT_API stint_status stint_data_check(const stint_data_check_desc *desc,
                                        stint_data_check_result *result_out);

/* ---- rendering letters ---- */

/** Letters and digits to render from fonts. Zero means "choose for me"; folder is
 * required. */
typedef struct stint_data_glyphs_desc {
    /* Gets train.tar and test.tar; made if missing. */
    const char *folder;
    /* Font folders, separated by colons. NULL: the system's. */
    const char *fonts;
    /* Training images to make, up to 100,000,000; 0: 20160. Rounded up to a multiple of
     * 36, as many of each class. */
    int64_t train_count;
    /* Test images to make, likewise; 0: 3600. */
    int64_t test_count;
    /* Pixels a side, 8 to 256; 0: 32. */
    int64_t size;
    /* Usable faces without which nothing is made; 0: 100. */
    int min_faces;
    /* Key of the random numbers. */
    uint64_t seed;
    /* Threads; 0: one. Never changes a byte. */
    int threads;
    /* Images done; may be NULL. */
    stint_data_progress_fn *progress;
    /* Passed through to progress. */
    void *user;
} stint_data_glyphs_desc;

/** What was rendered. It is a plain value, with nothing to free. */
typedef struct stint_data_glyphs_result {
    /* Images in each split. */
    int64_t train_count, test_count;
    /* Faces and families of fonts in each split; no family is in both. */
    int train_faces, test_faces, train_families, test_families;
    /* Faces left out: symbols, other scripts, bar codes, no outlines. */
    int rejected_faces;
} stint_data_glyphs_result;

/** Render a set of 36 classes (0 to 9, A to Z) in grey PNGs. One font family in five is
 * kept for the test split.
 *
 * The same fonts and seed give the same bytes for any number of threads. STINT_E_INPUT:
 * fewer than min_faces usable faces (the text says how many there are and what to
 * install); STINT_E_UNSUPPORTED: built without FreeType; STINT_E_IO; STINT_E_MEMORY. */
STINT_API stint_status stint_data_glyphs(const stint_data_glyphs_desc *desc,
                                         stint_data_glyphs_result *result_out);

/* ---- downloading ---- */

/** Which public set to download, and where to. */
typedef struct stint_data_get_desc {
    /* "cifar10", "mnist" or "fashion-mnist". */
    const char *name;
    /* Gets the files; made if missing. */
    const char *folder;
    /* Base URL to use in place of the publisher's, for networks that reach no other;
     * NULL: the publisher's, then known copies. */
    const char *mirror;
    /* Bytes; may be NULL. */
    stint_data_progress_fn *progress;
    /* Passed through to progress. */
    void *user;
} stint_data_get_desc;

/** Download a public set by HTTPS, check the SHA-256 of every file, unpack archives.
 *
 * Files that are there with the right checksum stay as they are; of a wrong checksum
 * nothing is kept. STINT_E_USAGE: unknown name, or no folder; STINT_E_PEER: the network
 * failed, or these are not the published bytes; STINT_E_UNSUPPORTED: libcurl is not
 * installed; STINT_E_IO; STINT_E_MEMORY. */
STINT_API stint_status stint_data_get(const stint_data_get_desc *desc);

/** Names that stint_data_get knows, ended by NULL. A constant of the library. */
STINT_API const char *const *stint_data_get_names(void);

#ifdef __cplusplus
}
#endif

#endif
