/* Numbers in the text of data files: exact and under no locale.
 *
 * The double nearest to what is written, as strtod gives in the C locale, but of a
 * piece of text that need not end with a NUL, and many times as fast for the numbers
 * that files hold (up to 15 digits). Thread-safe. */
#ifndef STI_BASE_NUMBER_H
#define STI_BASE_NUMBER_H

#include <stdbool.h>
#include <stdint.h>

/* A decimal number, "-1", "+.5" or "2e-3", at `at`, before `end`. False where there is
 * none, where it is longer than 1000 characters, or where it is too large for a
 * double; *after_out is the place behind it. Neither infinities nor NaN are numbers
 * here, nor is hexadecimal. */
bool sti_number_read(const char *at, const char *end, const char **after_out,
                     double *value_out);

/* A whole number of decimal digits alone, without a sign, that all of the text between
 * the two is. False for anything else, for no digit and above `most`; *value_out is
 * left as it was. */
bool sti_digits_read(const char *at, const char *end, int64_t most, int64_t *value_out);

enum { STI_NUMBER_BYTES = 32 };

/* A finite double as text that reads back as the same, of 15 digits where they do,
 * else of 16 or 17; returns text_out. */
const char *sti_number_text(double value, char text_out[STI_NUMBER_BYTES]);

#endif
