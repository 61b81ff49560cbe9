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
 * augmentation. */
#ifndef STINT_DATA_H
#define STINT_DATA_H

#include <stdbool.h>
#include <stdint.h>

#include "stint/status.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum stint_data_split {
    STINT_DATA_TRAIN,
    STINT_DATA_TEST,
    STINT_DATA_ALL /* both, of a text; images have no such split */
} stint_data_split;

/** What a split holds. Pointers live as long as the dataset. */
typedef struct stint_data_info {
    int64_t count;                   /* samples */
    int64_t height, width, channels; /* of every decoded image; channels 1 or 3 */
    int32_t classes;
    const char *const *class_names; /* [classes] */
    const char *format;             /* "folder", "tar", "idx", "cifar" or "csv" */
    const char *path;               /* absolute */
    const char *from; /* where this split came from, absolute: its folder, archive or
                         list; path itself where that holds both */
} stint_data_info;

/** How a picture of another size becomes an image of size x size. */
typedef enum stint_data_fit {
    STINT_FIT_AUTO,   /* squash; of a model's data: as it was trained with */
    STINT_FIT_SQUASH, /* both sides to size, whatever that does to the proportions */
    STINT_FIT_CROP,   /* the shorter side to size, and the middle of the longer one */
    STINT_FIT_PAD     /* the longer side to size, and grey beside the shorter one */
} stint_data_fit;

/** How to open a split; zero means "choose for me". */
typedef struct stint_data_desc {
    const char *path;
    stint_data_split split;
    const char *format;          /* NULL or "auto": by what is in path */
    int64_t size;                /* resize every image to size x size; 0: all must be
                                    as large as the first */
    int channels;                /* 1 grey or 3 colour; 0: as the first image */
    const stint_data_info *like; /* the split must have these classes, and (where above
                                    are 0) this size and channels. NULL: a test split
                                    is held against the train split of the same path */
    double hold_out; /* of each class, leave out this share, spread evenly; 0: none */
    bool held_out;   /* or take nothing but that share */
    stint_data_fit fit;
    bool cuts; /* training batches will cut out parts at random (scale_crop): reserve
                  what that takes */
    double validation;  /* where a folder has classes but no splits: the share of the
                           images that is the test split, chosen by their names; 0: 0.1,
                           below 0: none */
    int64_t usual_size; /* for messages: the size that the model is usually given; 0:
                           none is usual */
} stint_data_desc;

typedef struct stint_data stint_data;

/** Find and index the samples of one split; no pixels are read except the headers that
 * give the size. STINT_E_INPUT: nothing there, no such split, a class without images,
 * test classes unlike the training ones, a damaged index; STINT_E_IO; STINT_E_MEMORY.
 *  The dataset is read-only after opening: any number of threads may use it. */
STINT_API stint_status stint_data_open(const stint_data_desc *desc,
                                       stint_data **data_out);
STINT_API void stint_data_close(stint_data *data); /* NULL is fine */
STINT_API const stint_data_info *stint_data_describe(const stint_data *data);
/** Is there a test (train) split at path? False also when there is nothing at all. */
STINT_API bool stint_data_has_split(const char *path, const char *format,
                                    stint_data_split split);

/** A finding of stint_data_check. */
typedef enum stint_data_level { STINT_DATA_NOTE, STINT_DATA_PROBLEM } stint_data_level;
typedef void stint_data_found_fn(void *user, stint_data_level level, const char *text);
/** done of total images read; may be NULL. Called on the calling thread only. */
typedef void stint_data_progress_fn(void *user, int64_t done, int64_t total);

typedef struct stint_data_check_desc {
    const char *path;
    const char *format; /* as in stint_data_desc, also the next two */
    int64_t size;
    int channels;
    int threads;                      /* 0: 1 */
    stint_data_found_fn *found;       /* one call a finding, on the calling thread */
    stint_data_progress_fn *progress; /* may be NULL */
    void *user;
} stint_data_check_desc;

typedef struct stint_data_check_result {
    int64_t train_count, test_count; /* images seen, good or bad */
    int32_t classes;
    int64_t height, width, channels; /* 0 when no image could be read */
    int64_t problems, notes; /* all, also those counted but not told one by one */
} stint_data_check_result;

/** Read everything once and tell every problem: the first ten of a kind in full, then
 * their number. STINT_OK: no problem (there may be notes); STINT_E_INPUT: some.
 * result_out is always filled. */
STINT_API stint_status stint_data_check(const stint_data_check_desc *desc,
                                        stint_data_check_result *result_out);

/** Letters and digits rendered from installed fonts: zero means "choose for me". */
typedef struct stint_data_glyphs_desc {
    const char *folder;  /* gets train.tar and test.tar */
    const char *fonts;   /* font folders, colon-separated; NULL: the system's */
    int64_t train_count; /* 0: 20160; rounded up to a multiple of 36 */
    int64_t test_count;  /* 0: 3600 */
    int64_t size;        /* pixels a side, 0: 32 */
    int min_faces;       /* 0: 100 */
    uint64_t seed;
    int threads;                      /* 0: 1 */
    stint_data_progress_fn *progress; /* may be NULL */
    void *user;
} stint_data_glyphs_desc;

typedef struct stint_data_glyphs_result {
    int64_t train_count, test_count;
    int train_faces, test_faces, train_families, test_families;
    int rejected_faces; /* symbols, other scripts, bar codes, no outlines */
} stint_data_glyphs_result;

/** Render an OCR set of 36 classes (0-9, A-Z) in grey PNGs; one font family in five is
 * kept for the test split. The same fonts and seed give the same bytes for any thread
 * count. STINT_E_INPUT: fewer than min_faces usable faces (the text says how many there
 * are and what to install); STINT_E_UNSUPPORTED: built without FreeType. */
STINT_API stint_status stint_data_glyphs(const stint_data_glyphs_desc *desc,
                                         stint_data_glyphs_result *result_out);

typedef struct stint_data_get_desc {
    const char *name;   /* "cifar10", "mnist" or "fashion-mnist" */
    const char *folder; /* gets the files; made if missing */
    const char *mirror; /* base URL to use instead of the publisher's; NULL */
    stint_data_progress_fn *progress; /* bytes; may be NULL */
    void *user;
} stint_data_get_desc;

/** Download a public set by HTTPS, check every file's SHA-256, and unpack archives.
 * Files that are there with the right checksum are kept as they are; a wrong checksum
 * keeps nothing. STINT_E_USAGE: unknown name; STINT_E_PEER: network, or not the
 * published bytes; STINT_E_UNSUPPORTED: libcurl is not installed. */
STINT_API stint_status stint_data_get(const stint_data_get_desc *desc);
/** Names that stint_data_get knows, NULL-ended. */
STINT_API const char *const *stint_data_get_names(void);

#ifdef __cplusplus
}
#endif

#endif
