/* A JSON text writer over sti_text: keys in the order given, floats in the shortest
 * form that reads back, NaN and infinities as null. Reading is done with jansson. */
#ifndef STI_BASE_JSON_H
#define STI_BASE_JSON_H

#include <stdbool.h>
#include <stdint.h>

#include "base/text.h"

typedef struct sti_json {
    sti_text *out;
    int depth;
    bool comma;  /* a comma is due before the next element */
    bool pretty; /* two-space indentation */
} sti_json;

/* key is NULL inside arrays and at the top. */
void sti_json_begin_object(sti_json *j, const char *key);
void sti_json_end_object(sti_json *j);
void sti_json_begin_array(sti_json *j, const char *key);
void sti_json_end_array(sti_json *j);
void sti_json_int(sti_json *j, const char *key, int64_t value);
void sti_json_uint(sti_json *j, const char *key, uint64_t value);
/* A count of which 0 means that it is not known: null then. */
void sti_json_known(sti_json *j, const char *key, int64_t value);
void sti_json_float(sti_json *j, const char *key, double value);
void sti_json_bool(sti_json *j, const char *key, bool value);
void sti_json_text(sti_json *j, const char *key, const char *value); /* NULL: null */

#endif
