/* Seal: a plain program runs on data that the machine running it never sees.
 *
 * A circuit is a program as gates on bits: read from another tool's file, or compiled
 * from C. Whoever owns the data makes a pair of keys, encrypts the inputs with the
 * secret one and hands on the circuit, the evaluation key and the encrypted inputs;
 * with these three, and without the secret key, anybody can run the circuit and give
 * back encrypted outputs, which the owner decrypts. The scheme is CGGI (Chillotti,
 * Gama, Georgieva and Izabachene, "TFHE: fast fully homomorphic encryption over the
 * torus", 2020).
 *
 * All calls work on files; docs/seal.md describes the subcommands `stint seal`, which
 * are the same calls. */
#ifndef STINT_SEAL_H
#define STINT_SEAL_H

#include <stddef.h>
#include <stdint.h>

#include "stint/status.h"

#ifdef __cplusplus
extern "C" {
#endif

/** A value that goes in or comes out. */
typedef struct stint_seal_port {
    /* Name in the source, "return", or "in0", "out0" where a file has none. */
    char name[64];
    /* Bits of an element, 1 to 64, and whether they are two's complement. */
    int bits, is_signed;
    /* Elements, and whether values are given as a list (an array may have one). */
    int64_t count;
    int is_array;
} stint_seal_port;

/** Kinds of cells: functions that one bootstrap computes. */
#define STINT_SEAL_CELLS 11

/** What a circuit is. */
typedef struct stint_seal_facts {
    /* [inputs], [outputs]; freed by stint_seal_facts_fini. */
    stint_seal_port *input, *output;
    int64_t inputs, outputs;
    /* Two-input gates before they were mapped to cells; cells, each one bootstrap. */
    int64_t gates, bootstraps;
    /* Longest path in cells, and most cells that are as far from the inputs. */
    int64_t depth, widest;
    /* Cells by kind. */
    int64_t cells[STINT_SEAL_CELLS];
} stint_seal_facts;

/** Name of a kind of cell, for 0 <= kind < STINT_SEAL_CELLS: "and", "majority"; NULL
 * for other numbers. A constant. */
STINT_API const char *stint_seal_cell_name(int kind);

/** Free what facts point to. A value that is all zero is fine. */
STINT_API void stint_seal_facts_fini(stint_seal_facts *facts);

/** Where a circuit comes from, and where it goes. */
typedef struct stint_seal_make_desc {
    /* The file to read, and the circuit file to write. */
    const char *in, *out;
    /* BLIF: clock cycles that a design with latches runs; 0: it has none. */
    int64_t cycles;
    /* Rounds of improvement after the first mapping to cells; 0: 4, negative: none. */
    int effort;
} stint_seal_make_desc;

/** Read a circuit in Bristol Fashion (.txt) or BLIF (.blif), map it to cells and write
 * it as a circuit file.
 *
 * STINT_E_INPUT: file and line of what is wrong; STINT_E_USAGE: another extension;
 * STINT_E_UNSUPPORTED: too large; STINT_E_IO; STINT_E_MEMORY. */
STINT_API stint_status stint_seal_import(const stint_seal_make_desc *desc,
                                         stint_seal_facts *facts_out);

/** A function of C that becomes a circuit. */
typedef struct stint_seal_compile_desc {
    /* The C file, and the circuit file to write. */
    const char *in, *out;
    /* Name of the function. */
    const char *entry;
    /* Parameters that are no secret, "n=5 key=1,2"; NULL: all are inputs. */
    const char *public_words;
    /* As in stint_seal_make_desc. */
    int effort;
} stint_seal_compile_desc;

/** Compile a function of C, map it to cells and write it as a circuit file.
 *
 * Parameters by value and const arrays are inputs, other arrays outputs, the result is
 * the output "return". docs/seal.md has the subset of C. STINT_E_INPUT: file, line,
 * what is wrong and what to write instead; STINT_E_UNSUPPORTED: too large; STINT_E_IO;
 * STINT_E_MEMORY. */
STINT_API stint_status stint_seal_compile(const stint_seal_compile_desc *desc,
                                          stint_seal_facts *facts_out);

/** Write a circuit file as Bristol Fashion or BLIF, by the extension of `out`.
 *
 * Every bit of an array becomes a wire of one long value. STINT_E_USAGE: another
 * extension; STINT_E_INPUT: no circuit file; STINT_E_IO; STINT_E_MEMORY. */
STINT_API stint_status stint_seal_export(const char *circuit, const char *out);

/** Describe a circuit file. STINT_E_INPUT; STINT_E_IO; STINT_E_MEMORY. */
STINT_API stint_status stint_seal_describe(const char *circuit,
                                           stint_seal_facts *facts_out);

/** Values for the inputs of a circuit; either may be NULL. */
typedef struct stint_seal_values {
    /* A file of JSON, {"a": 5, "key": [1, 2]}. */
    const char *path;
    /* More of them, "a=5 key=1,2": words with blanks between. */
    const char *words;
} stint_seal_values;

/** Run a circuit on values that are not encrypted.
 *
 * *json_out: {"return": 7, "out": [1, 2]}; freed by stint_seal_text_free.
 * STINT_E_INPUT: values missing, out of range or of no input, or no circuit file;
 * STINT_E_USAGE; STINT_E_IO; STINT_E_MEMORY. */
STINT_API stint_status stint_seal_simulate(const char *circuit,
                                           const stint_seal_values *values,
                                           char **json_out);

/** Overwrite and free a text that a call of this header gave. NULL is fine. */
STINT_API void stint_seal_text_free(char *text);

#ifdef __cplusplus
}
#endif

#endif
