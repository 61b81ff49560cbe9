/* One parser and one printer for units. Memory: 150M = 150MiB (powers of 1024), MB and
 * GB are decimal, plain numbers are bytes. Times: 25ms, 1.5s, 2min, 1h. Parsers reject
 * trailing text, negatives, NaN and overflow with STINT_E_USAGE and a sentence that
 * shows a good value. The locale plays no part. */
#ifndef STI_BASE_UNITS_H
#define STI_BASE_UNITS_H

#include <stddef.h>
#include <stdint.h>

#include "stint/status.h"

stint_status sti_parse_bytes(const char *text, size_t *bytes_out);
stint_status sti_parse_time(const char *text, double *seconds_out);
/* A time, or a share of another, as 0.5x; the one that it is not is 0. Not negative. */
stint_status sti_parse_latency(const char *text, double *seconds_out,
                               double *share_out);
/* Rates of links, decimal: 100Mbit, 1Gbit (both also with /s), 12.5MB/s. */
stint_status sti_parse_rate(const char *text, double *bits_per_s_out);
stint_status sti_parse_int(const char *text, int64_t *value_out);
stint_status sti_parse_float(const char *text, double *value_out); /* finite only */
/* true/false yes/no on/off 1/0 */
stint_status sti_parse_bool(const char *text, int *value_out);

/* Printers return a pointer to one of 8 rotating thread-local buffers. */
const char *sti_bytes_text(size_t bytes);     /* "153.2 MiB" */
const char *sti_enough_text(size_t bytes);    /* "154M": rounded up, for --memory */
const char *sti_time_text(double seconds);    /* "1 h 02 min", "3.4 s", "25 ms" */
const char *sti_rate_text(double bits_per_s); /* "94.2 Mbit/s" */
const char *sti_count_text(int64_t count);    /* "272,474" */
const char *sti_s(int64_t count); /* "1 layer%s", "2 layer%s": "" for 1, else "s" */

/* Shortest text that reads back as the same float or double, "." as the point. */
const char *sti_float_text(double value);

#endif
