/* Circuits from C.
 *
 * A subset of C17 that a circuit can hold: integers of up to 64 bits, arrays, structs,
 * functions without recursion, loops whose conditions follow from constants or that
 * stand below `#pragma stint bound N`, if, switch, break, continue and early return
 * under conditions that are secret, secret indices. Any program that is accepted gives
 * what `gcc -fwrapv` makes of it wherever that is defined; what is not accepted is
 * refused with file, line and what to write in its place. docs/seal.md lists both.
 *
 * The program is run once with gates in the place of bits: a value that is known folds,
 * a condition that is known takes one branch, and of two branches under a secret
 * condition both are run and their results merged. */
#ifndef STI_SEAL_CC_H
#define STI_SEAL_CC_H

#include "seal/formats.h"

typedef struct sti_cc_options {
    const char *entry; /* name of the function that becomes the circuit */
    const char
        *public_words; /* "n=5 key=1,2": parameters that are known; may be NULL */
    int64_t max_steps; /* statements and expressions; 0: 100 million */
    int64_t max_gates; /* 0: 2^24 */
} sti_cc_options;

stint_status sti_cc_compile(const char *path, const char *text, size_t n_bytes,
                            const sti_cc_options *options, sti_imported *out);

#endif
