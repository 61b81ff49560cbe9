/* Inside the data room: a Matrix Market file while it is read. */
#ifndef STI_DATA_MARKET_PRIV_H
#define STI_DATA_MARKET_PRIV_H

#include "base/fail.h"
#include "data/matrix_market.h"

/* What header and size line say. */
typedef struct sti_market_head {
    const char *name; /* of the file */
    sti_market_symmetry symmetry;
    sti_market_field field;
    bool array;
    int64_t rows, columns;
    int64_t entries; /* lines that follow */
    int64_t lines;   /* up to the size line */
    size_t bytes;    /* likewise */
} sti_market_head;

/* Banner, comments and size line at the beginning of a text. text_bytes: of the whole
 * file, from which follows how many entries it can hold. */
stint_status sti_market_read_head(const char *text, size_t n_bytes, size_t text_bytes,
                                  const char *name, sti_market_head *head_out);

/* Entries as they stand in the file, indices from 0. */
typedef struct sti_market_triplets {
    int32_t *row, *column;
    double *value;
    int64_t count;
    int64_t before; /* entries of the file that are not kept here any more */
} sti_market_triplets;

/* Where the text comes from: a file in windows, or memory at once. */
typedef struct sti_market_source {
    const sti_market_desc *desc;
    const char *text; /* NULL: a file */
    int fd;
    char *window;
    size_t total_bytes;
    int64_t lines; /* that have been read */
} sti_market_source;

enum { STI_MARKET_HEAD_BYTES = 1 << 20 };

/* The source's file is opened, and its size known. The caller closes fd. */
stint_status sti_market_open(sti_market_source *source);
stint_status sti_market_get_window(sti_market_source *source, size_t from,
                                   size_t n_bytes, const char **at_out);
/* What to do with the lines of a window, which have been made triplets. */
typedef stint_status sti_market_lines_fn(void *user, const char *at, size_t n_bytes,
                                         int64_t line, int64_t *lines_out);
/* All windows of whole lines, of at most `most` bytes, after the head. */
stint_status sti_market_each_window(sti_market_source *source,
                                    const sti_market_head *head, size_t most,
                                    sti_market_lines_fn *fn, void *user);
/* STINT_E_INPUT: fewer entries came than the head said. */
stint_status sti_market_check_end(const sti_market_source *source,
                                  const sti_market_head *head, int64_t count);

/* STINT_E_INPUT with file and line in front. */
stint_status sti_market_fault(const char *name, int64_t line, const char *format, ...)
    STI_PRINTF(3, 4);
/* A piece of a line for a message, cut short; overwritten by the next. */
const char *sti_market_quote(const char *at, const char *end);

/* Whole lines of the file, shared among threads: entries from `done` on. *done_out and
 * *lines_out count those that were there. */
stint_status sti_market_read_lines(const sti_market_head *head, int threads,
                                   const char *text, const char *end, int64_t done,
                                   int64_t line, sti_market_triplets *to,
                                   int64_t *done_out, int64_t *lines_out);

/* Rows from triplets, what symmetry leaves out added. */
stint_status sti_market_build(const sti_market_head *head, bool sum, int threads,
                              const sti_market_triplets *from, sti_csr *a_out);
/* Rows in ascending order of their columns, equal places added up, or refused unless
 * `sum`. names: the number of each row for messages; NULL: as they are. */
stint_status sti_market_sort_rows(const char *name, bool sum, int threads,
                                  const int32_t *names, sti_csr *a);
/* Entries of the whole matrix at most. */
int64_t sti_market_whole_entries(const sti_market_head *head);

static inline bool sti_market_is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\r';
}

static inline const char *sti_market_skip(const char *at, const char *end)
{
    while (at < end && sti_market_is_blank(*at))
        at++;
    return at;
}

static inline const char *sti_market_word_end(const char *at, const char *end)
{
    while (at < end && !sti_market_is_blank(*at) && *at != '\n')
        at++;
    return at;
}

#endif
