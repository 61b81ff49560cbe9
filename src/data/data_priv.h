/* Inside the data room: a dataset and the sources that fill it.
 *
 * A dataset is an index of 16 bytes a sample plus, for image folders, the file names.
 * The bytes of a sample are always fetched by pread into a worker's buffer: mapped
 * pages would count as resident memory of the process, page cache does not. */
#ifndef STI_DATA_DATA_PRIV_H
#define STI_DATA_DATA_PRIV_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/fail.h"
#include "base/memory.h"
#include "data/data.h"
#include "media/image.h"
#include "media/resize.h"

/* ---- findings ---- */

/* Kinds of findings; ten of each are told in full by stint_data_check. */
typedef enum sti_finding {
    STI_FIND_NO_SPLIT,
    STI_FIND_EMPTY_CLASS,
    STI_FIND_CLASSES_DIFFER,
    STI_FIND_DUPLICATE,
    STI_FIND_UNREADABLE,
    STI_FIND_NOT_IMAGE,
    STI_FIND_TRUNCATED,
    STI_FIND_BROKEN, /* damaged, or a kind that cannot be decoded */
    STI_FIND_WRONG_SIZE,
    STI_FIND_DAMAGED_INDEX, /* the tar, IDX or CIFAR file as such */
    STI_FIND_LIST,          /* a row of a list of files and labels */
    STI_FIND_SKIPPED,       /* notes from here on */
    STI_FIND_FOLDER,        /* within a class */
    STI_FIND_EXTENSION,
    STI_FIND_CHANNELS,
    STI_FIND_ORIENTATION,
    STI_FIND_SPLIT, /* which folder is which split, and what lacks in one */
    STI_FIND_SIZES,
    STI_FIND_COUNT
} sti_finding;

/* Where findings go: to a check, or, where there is none (`found` NULL), notes to the
 * log, and a problem is an error. Of each kind ten are told in full, then the number of
 * the others (sti_data_tell_rest). */
typedef struct sti_data_sink {
    stint_data_found_fn *found;
    void *user;
    bool quiet; /* notes are not logged */
    int64_t counts[STI_FIND_COUNT];
} sti_data_sink;

/* How many findings of a kind are told in full. */
#define STI_FINDINGS_TOLD 10

/* STINT_OK when work goes on (a note, or a check took it),
 * else STINT_E_INPUT recorded. */
stint_status sti_data_find(sti_data_sink *sink, sti_finding kind, const char *format,
                           ...) STI_PRINTF(3, 4);
/* How many more of each kind there were than were told; where: "" or " in PATH". */
void sti_data_tell_rest(const sti_data_sink *sink, const char *where);

/* ---- datasets ---- */

/* `where` is a byte offset with the number of the file in its top 16 bits; for image
 * folders the offset of the file name in `names`. */
typedef struct sti_data_sample {
    int64_t where;
    uint32_t bytes; /* as stored */
    int32_t label;
} sti_data_sample;

#define STI_DATA_FILES     8
#define STI_DATA_FILE(w)   ((int)((w) >> 48))
#define STI_DATA_OFFSET(w) ((w) & ((INT64_C(1) << 48) - 1))

/* One image file; larger ones are refused. */
#define STI_DATA_MAX_FILE (INT64_C(1) << 28)

typedef enum sti_data_layout {
    STI_LAYOUT_ENCODED, /* image files (media/image.h) */
    STI_LAYOUT_ROWS,    /* [h, w] grey bytes */
    STI_LAYOUT_PLANES   /* [3, h, w] bytes */
} sti_data_layout;

typedef struct sti_data_source sti_data_source;

struct stint_data {
    stint_data_info info;
    const sti_data_source *source;
    stint_data_split split;
    const char *split_name; /* "train", "test", "val": what the source found it as */
    double share;           /* of the test split where names decide; 0: none */
    int64_t size;           /* as asked for: 0 unless images are resized */
    stint_data_fit fit;
    bool cuts;          /* parts will be cut out of pictures */
    bool nested;        /* folders within a class belong to it */
    bool partial;       /* classes of `like` may lack images */
    int64_t usual_size; /* for messages; 0: none */
    sti_arena *arena;
    sti_data_sample *samples; /* [info.count] */
    char *names;              /* image files: their names, NUL-separated */
    size_t names_bytes;
    bool whole_names; /* names are paths below fds[0]; else <class>/ stands before */
    sti_data_layout layout;
    int64_t stored_height, stored_width; /* rows and planes */
    bool transposed;                     /* rows: what is stored are columns */
    int64_t record_bytes, record_skip;   /* CIFAR: of one, before its pixels */
    int file_count;
    int fds[STI_DATA_FILES];           /* image folder: [0] is the split's folder */
    const char *files[STI_DATA_FILES]; /* absolute, for messages */
    int64_t max_file_bytes;            /* of one sample, as stored */
    int64_t max_pixels, max_width, max_height; /* of one image before resizing */
    /* The most of any image whose header was read: of its pixels what is written where
     * grey or colour is wanted, and what the library takes to decode it. */
    size_t max_buffer_bytes[2], max_library_bytes;
    uint8_t
        *kept; /* [info.count, height, width, channels], or NULL: see sti_data_keep */
};

struct sti_data_source {
    const char *name;
    const char *wants; /* what must be there, for messages */
    bool pairs;        /* its test split goes with its own training split only */
    bool (*present)(const char *path, stint_data_split split, bool nested);
    /* Fills samples, classes, files and layout. */
    stint_status (*open)(stint_data *data, const stint_data_info *like,
                         sti_data_sink *sink);
    /* The first n_bytes <= samples[index].bytes of a sample as stored. */
    stint_status (*read)(const stint_data *data, int64_t index, void *buffer,
                         size_t n_bytes);
    void (*prefetch)(const stint_data *data, int64_t index);
    void (*name_of)(const stint_data *data, int64_t index, char *text_out,
                    size_t bytes);
    bool finds_by_name; /* `where` of a sample is its name, which the dataset keeps */
};

extern const sti_data_source sti_data_folder, sti_data_tar, sti_data_idx,
    sti_data_cifar, sti_data_list, sti_data_classes;

/* ---- which split (data_split.c) ---- */

/* Under which name a split is in path: "train"; "test", or where that is not there
 * "val", "valid" or "validation". ending: "" for folders, else of a file (".tar").
 * NULL: not there. */
const char *sti_data_find_split(const char *path, stint_data_split split,
                                const char *ending);
/* Tells by a note when the test split has another name, or a second one is there. */
stint_status sti_data_tell_split(const stint_data *data, const char *ending,
                                 sti_data_sink *sink);
/* Is this list of files and labels in path; any for training? */
bool sti_data_is_list(const char *path, const char *name);
bool sti_data_has_list(const char *path);
/* Where a split is chosen by names: does the image of this name, relative to the folder
 * of the data, belong to it? The same for every machine, order and other file. */
bool sti_data_name_in_split(const stint_data *data, const char *name);
/* ---- files in folders (data_folder.c), for the sources that read them ---- */

stint_status sti_data_read_file(const stint_data *data, int64_t index, void *buffer,
                                size_t n_bytes);
void sti_data_prefetch_file(const stint_data *data, int64_t index);

/* Opening with findings sent to a sink. */
stint_status sti_data_open_checked(const stint_data_desc *desc, sti_data_sink *sink,
                                   stint_data **data_out);
const char *sti_data_split_name(stint_data_split split); /* "train", "test" */
/* Parts of a source row that tars, IDX and CIFAR share: samples are spans of files. */
stint_status sti_data_read_span(const stint_data *data, int64_t index, void *buffer,
                                size_t n_bytes);
void sti_data_prefetch_span(const stint_data *data, int64_t index);
/* Opens path read-only and appends it to data->files. STINT_E_IO. */
stint_status sti_data_add_file(stint_data *data, const char *path);

/* ---- building an index ---- */

typedef struct sti_index_entry {
    const char *name; /* NULL: ordered by `where` */
    int64_t where;
    uint32_t bytes;
    int32_t label;
} sti_index_entry;

/* Classes and samples in the order found; finishing sorts them. */
typedef struct sti_index {
    sti_arena *arena; /* names; dies with the index */
    sti_index_entry *entries;
    int64_t count, capacity;
    const char **classes;
    int64_t *class_counts;
    int32_t class_count, class_capacity, last_class;
    int32_t *slots; /* [slot_count]: class + 1 by the hash of its name, 0: free */
    int32_t slot_count;
    bool ordered;        /* classes stay in the order added (numbers, not names) */
    bool by_names;       /* names decided which images are in this split */
    bool passed_folders; /* there were some within classes */
    sti_data_sink *sink;
} sti_index;

stint_status sti_index_init(sti_index *index, sti_data_sink *sink);
/* Number of a class, added when new. The name is copied. */
stint_status sti_index_class(sti_index *index, const char *name, int32_t *class_out);
stint_status sti_index_add(sti_index *index, int32_t class_index, const char *name,
                           int64_t where, int64_t bytes);
/* Checks classes (none empty; those of `like` and no others, or with data->partial some
 * of them), sorts, and gives the dataset its samples and class names. `what` begins
 * messages. */
stint_status sti_index_finish(sti_index *index, stint_data *data,
                              const stint_data_info *like, const char *what);
void sti_index_fini(sti_index *index);
/* Is this a name of an image file that we read? By extension,
 * in any case of letters. */
bool sti_data_image_name(const char *name);

/* ---- decoders ---- */

/* Why a worker's last sti_data_decode failed. */
sti_finding sti_data_decode_fault(const sti_data_decoders *decoders, int worker);
/* What the last decoded file of a worker held; false for raw formats. */
bool sti_data_decode_seen(const sti_data_decoders *decoders, int worker,
                          sti_image_info *seen);

#endif
