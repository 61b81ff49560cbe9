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
} sti_market_triplets;

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
