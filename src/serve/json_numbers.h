/* Long lists of numbers taken out of a JSON text before it is parsed: as JSON values
 * they would take thirty times their place, as floats they take their own. */
#ifndef STI_SERVE_JSON_NUMBERS_H
#define STI_SERVE_JSON_NUMBERS_H

#include <stddef.h>
#include <stdint.h>

#include "stint/status.h"

enum { STI_JSON_LISTS = 8 }; /* in one text, at most */

typedef struct sti_json_numbers {
    float *value; /* of all lists [count]; sti_alloc'ed */
    int64_t count, capacity;
    int64_t first[STI_JSON_LISTS + 1]; /* where each list begins, and the end */
    int lists;
} sti_json_numbers;

/* In text [*bytes], NUL-terminated: each value of a member "data" that is a list, or a
 * list of lists, of numbers alone becomes the number of its list, so that what is left
 * is JSON, and shorter. At most `most` numbers in all. STINT_E_INPUT: more numbers or
 * lists, deeper than 16 levels, or a number that is none. The caller frees value, also
 * after a failure. */
stint_status sti_json_take_numbers(char *text, size_t *bytes, int64_t most,
                                   sti_json_numbers *numbers);

#endif
