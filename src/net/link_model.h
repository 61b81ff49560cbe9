/* What a link gives: time of a message by its size, as measured.
 *
 * A direction between two ranks is a few segments of sizes, each with t = alpha + beta
 * s (Hockney), because protocols switch; where they do is found, not known. The fit
 * minimises the sum of squared relative errors of the medians over piecewise linear
 * functions, by dynamic programming over the sampled sizes; the number of segments is
 * chosen by BIC, and segments whose lines differ by less than 3 % become one. What
 * varies is kept as quantiles of measured / fitted time. */
#ifndef STI_NET_LINK_MODEL_H
#define STI_NET_LINK_MODEL_H

#include <stdbool.h>
#include <stdint.h>

#include "base/memory.h"
#include "stint/status.h"

enum { STI_LINK_SEGMENTS = 6, STI_LINK_QUANTILES = 10, STI_LINK_SIZES = 64 };

/* Bounds of what a model holds; the reader of files refuses what is outside. Times are
 * seconds, ratios are of measured over fitted time: a stall of a second where a line
 * gives nanoseconds is cut to the largest. */
#define STI_LINK_LEAST_S   1e-12
#define STI_LINK_MAX_S     1e6
#define STI_LINK_MAX       1e8 /* ratio */
#define STI_LINK_MAX_BYTES 1e18

/* In percent: 1, 2.5, 5, 25, 50, 75, 95, 97.5, 99, 99.9. */
extern const double sti_link_percent[STI_LINK_QUANTILES];

typedef struct sti_link_sample {
    double bytes, seconds;
} sti_link_sample;

typedef struct sti_link_segment {
    double from_bytes;      /* the segment before ends here; the first begins at 0 */
    double alpha_s, beta_s; /* seconds; seconds a byte */
    bool bounded;           /* alpha would have been negative, and is 0 */
    double stream_s; /* seconds a byte of a stream of messages: beta_s, or, of a */
                     /* bounded one, the slope that alpha would have left: a */
                     /* link that lends bytes after a pause lends them once */
    double quantile[STI_LINK_QUANTILES]; /* of measured / fitted time */
} sti_link_segment;

typedef struct sti_link_model {
    int from, to; /* ranks */
    int count;
    sti_link_segment segment[STI_LINK_SEGMENTS];
    int64_t samples;
    double spread; /* 95 % quantile / median, the largest over sizes */
    double
        confident; /* half of the 95 % interval of the median, relative; worst size */
} sti_link_model;

void sti_link_sort(double *x, int64_t n);
/* Between two of them, where need be. */
double sti_link_quantile(const double *sorted, int64_t n, double percent);

/* Fit a model to n samples, which are sorted in place. STINT_E_INPUT: fewer than 3
 * sizes, more than STI_LINK_SIZES, a time or a size out of bounds. from and to stay as
 * they are. */
stint_status sti_link_fit(int64_t n, sti_link_sample *samples, sti_link_model *model);

const sti_link_segment *sti_link_segment_of(const sti_link_model *model, double bytes);
/* Seconds of a message: fitted, and times a quantile. */
double sti_link_seconds(const sti_link_model *model, double bytes);
double sti_link_seconds_at(const sti_link_model *model, double bytes, int quantile);

/* ---- files ---- */

/* Links of one set of ranks, and what a rank needs to encode and to decode a value. */
typedef struct sti_links {
    int ranks, count;
    sti_link_model *models;    /* [count] */
    double encode_s, decode_s; /* seconds a value, 4 bits */
    double seconds;            /* that measuring took */
    const char *kind;          /* "tcp" */
} sti_links;

/* Written beside its place and renamed, after the reader has had a look at it:
 * STINT_E_FAILED where it would refuse it, and nothing is written. */
stint_status sti_links_write(const sti_links *links, const char *path);
/* Into the arena. STINT_E_INPUT with path and what is wrong. */
stint_status sti_links_read(const char *path, sti_arena *arena, sti_links *links_out);
/* The same from memory; `name` is for messages. */
stint_status sti_links_parse(const char *text, size_t bytes, const char *name,
                             sti_arena *arena, sti_links *links_out);

#endif
