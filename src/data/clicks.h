/* Samples of click and recommendation data: a label of 0 or 1, numbers, and fields of
 * ids of which each stands for a row of a table.
 *
 * Text is read once and leaves a file of ranks: samples of one size, in which an id is
 * its place in the order of falling frequency (ties by first appearance, the training
 * part counted alone). Ids that the training part has less than min_count times, or
 * never, share their field's row `other`. So frequent rows lie together, and no map
 * from ids to rows is needed while a model is trained.
 *
 * Formats: criteo (label, 13 numbers, 26 ids, tabs, gaps allowed; numbers are taken as
 * ln(1 + x), 0 for what is missing or negative), csv with a header, libsvm and libffm
 * (feature numbers are ids; of the columns in `dense` the value is a number). Rooms
 * above use this header; clicks_text.h is private to the reader. */
#ifndef STI_DATA_CLICKS_H
#define STI_DATA_CLICKS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/memory.h"
#include "stint/status.h"

typedef enum sti_clicks_format {
    STI_CLICKS_CRITEO,
    STI_CLICKS_CSV,
    STI_CLICKS_LIBSVM,
    STI_CLICKS_LIBFFM
} sti_clicks_format;

const char *sti_clicks_format_name(sti_clicks_format format);

/* How text is read; texts are borrowed. Zero or NULL: as usual. */
typedef struct sti_clicks_desc {
    const char *path;
    sti_clicks_format format;
    const char *separator; /* of csv: a character, or "tab"; NULL: by the first line */
    const char *label;     /* of csv: a column, or "rating>=4"; NULL: "label" */
    /* Columns by name (csv) or number ("1-13"; of libffm fields), "none", or NULL: of
     * csv columns I1, I2 and so on are numbers and all others ids. */
    const char *dense, *categorical;
    const char *bags;  /* of csv: columns of several ids, apart by | or blanks */
    int64_t min_count; /* 0: 1 */
    int64_t hash;      /* ids are folded to so many a field; 0: they stay */
    double validation; /* share of the samples, the last ones, that is not trained on */
    size_t memory_bytes;           /* for counting; 0: 256 MiB */
    const struct sti_clicks *like; /* fields and ids are taken as they are there, for
                                      samples that a model was not trained on; NULL: ids
                                      are counted */
    bool unlabelled; /* of csv: a missing label column is fine, labels are 0 then */
} sti_clicks_desc;

enum { STI_CLICKS_NAME = 48, STI_CLICKS_COLUMNS = 4096 };
#define STI_CLICKS_NO_ROW UINT32_MAX /* behind the last id of a bag */

typedef struct sti_clicks_field {
    char name[STI_CLICKS_NAME]; /* cut short where it is longer */
    uint32_t slots;             /* ids of a sample at most; 1 but for bags */
    uint32_t first;             /* of them in a sample */
    uint32_t other;             /* rank of the row of rare and unseen ids */
    uint64_t ids;               /* that have a row of their own */
} sti_clicks_field;

/* A file of ranks that is open. */
typedef struct sti_clicks {
    int fd;
    const char *path;
    sti_arena *arena;
    int64_t samples, train; /* of which the first are trained on */
    int64_t rows;           /* of the table, the `other` rows included */
    int dense, fields, slots;
    sti_clicks_field *field; /* [fields] */
    size_t sample_bytes;     /* label f32, dense f32 [dense], ranks u32 [slots] */
    char sha256[65];         /* of the samples and ids: what a model was trained on */
    char key[65];            /* of the text and how it was read */
    int64_t samples_at, ids_at, counts_at; /* offsets in the file, but for its sums */
    size_t ids_bytes;
    _Atomic uint8_t *looked_at; /* a bit a block whose sum was right; NULL: a file of an
                                   older version, which has no sums */
} sti_clicks;

/* Counting done: what `stint data rank` says. */
typedef struct sti_clicks_counted {
    bool found; /* the file was there already */
    char path[1024];
} sti_clicks_counted;

/* Read text into a file of ranks at `out`, or find that it is there already, of this
 * very text and way of reading. out NULL: in the cache folder ($XDG_CACHE_HOME/stint),
 * else in a temporary folder. STINT_E_INPUT with file, line and column;
 * STINT_E_IO; STINT_E_MEMORY. */
stint_status sti_clicks_rank(const sti_clicks_desc *desc, const char *out,
                             sti_clicks_counted *counted_out);

/* Is the file one of ranks? Looks at its first bytes alone. */
bool sti_clicks_is_ranks(const char *path);
/* Likewise: of the version whose samples and ids have no checksums. It is read, too. */
bool sti_clicks_is_old(const char *path);
/* STINT_E_INPUT: it is none, or damaged; STINT_E_IO; STINT_E_MEMORY. */
stint_status sti_clicks_open(const char *path, sti_clicks *clicks_out);
void sti_clicks_close(sti_clicks *clicks); /* also of a zeroed one */

/* Samples [first, first + count) as they lie in the file; every rank is below `rows`.
 * Threads may call it at once. STINT_E_IO, STINT_E_INPUT. */
stint_status sti_clicks_read(const sti_clicks *clicks, int64_t first, int64_t count,
                             void *samples_out);
/* How often the training part has each rank, [rows], `first` on. */
stint_status sti_clicks_counts(const sti_clicks *clicks, int64_t first, int64_t count,
                               uint32_t *counts_out);

/* The same without a sample, at `path`: what other data is read by (desc.like). */
stint_status sti_clicks_write_ids(const sti_clicks *clicks, const char *path);

/* The id of each rank in their order: "field TAB id", or other. */
typedef stint_status sti_clicks_id_fn(void *user, int64_t rank, int field,
                                      const char *id, size_t length);
stint_status sti_clicks_each_id(const sti_clicks *clicks, sti_clicks_id_fn *fn,
                                void *user);

static inline const float *sti_clicks_numbers(const sti_clicks *clicks,
                                              const void *sample)
{
    (void)clicks;
    return (const float *)sample + 1;
}

static inline const uint32_t *sti_clicks_ranks(const sti_clicks *clicks,
                                               const void *sample)
{
    return (const uint32_t *)sample + 1 + clicks->dense;
}

#endif
