/* Values of ports as JSON: {"a": 5, "key": [1, 2]}.
 *
 * A port of one element is a number or a list of one; an array is a list. Numbers are
 * whole, in decimal, from the least to the greatest of the port's type, all 64 bits of
 * an unsigned one included. */
#ifndef STI_SEAL_VALUES_H
#define STI_SEAL_VALUES_H

#include "base/text.h"
#include "seal/circuit.h"

/* What the ports of a direction hold: bit [bits of them], 0 or 1 each. */
typedef struct sti_values {
    const sti_port *port;
    int64_t ports;
    uint8_t *bit;
    uint8_t *given; /* [ports] */
} sti_values;

/* All bits 0, nothing given. fini wipes. */
stint_status sti_values_init(sti_values *values, const sti_port *port, int64_t ports);
void sti_values_fini(sti_values *values);
/* Read JSON; `where` begins messages. STINT_E_INPUT: no such port, given twice, out of
 * range, not of this form. Messages name ports, never a value. */
stint_status sti_values_parse(sti_values *values, const char *where, const char *text,
                              size_t n_bytes);
/* "a=5" or "key=1,2"; `option` begins messages. */
stint_status sti_values_put(sti_values *values, const char *option,
                            const char *assignment);
/* STINT_E_INPUT where a port was not given. */
stint_status sti_values_check(const sti_values *values);
/* {"return": 7, "out": [1, 2]}. */
void sti_values_write(const sti_values *values, sti_text *out);

#endif
