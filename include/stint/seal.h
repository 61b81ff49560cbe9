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
 * The owner of the data:
 *
 *   stint_seal_compile(&(stint_seal_compile_desc){.in = "richer.c", .entry = "richer",
 *                                                 .out = "richer.seal"}, &facts);
 *   stint_seal_keygen(NULL, "keys", 0);
 *   stint_seal_encrypt("richer.seal", "keys/secret.key",
 *                      &(stint_seal_values){.words = "mine=5 yours=7"}, "in.ct");
 *
 * Whoever runs it:
 *
 *   stint_seal_run(&(stint_seal_run_desc){.circuit = "richer.seal",
 *                                         .eval_key = "eval.key", .in = "in.ct",
 *                                         .out = "out.ct"}, &result);
 *
 * And the owner again:
 *
 *   stint_seal_decrypt("richer.seal", "keys/secret.key", "out.ct", &json);
 *
 * All calls work on files, block, and may be made by several threads at once on
 * different outputs. A description is only read, and nothing of it is kept.
 * docs/seal.md describes the subcommands `stint seal`, which are the same calls, the C
 * that is compiled, and what is promised. */
#ifndef STINT_SEAL_H
#define STINT_SEAL_H

#include <stddef.h>
#include <stdint.h>

#include "stint/net.h"
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
    /* How many values go in and come out. */
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
    /* Rounds of improvement after the first mapping to cells; 0: 16, negative: none. */
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
    /* A page that shows width by level and bootstraps by source line; NULL: none. */
    const char *report;
} stint_seal_compile_desc;

/** Compile a function of C, map it to cells and write it as a circuit file.
 *
 * Parameters by value and const arrays are inputs, other arrays outputs, the result is
 * the output "return". docs/seal.md has the subset of C. STINT_E_INPUT: file, line,
 * what is wrong and what to write instead; STINT_E_UNSUPPORTED: too large; STINT_E_IO;
 * STINT_E_MEMORY. */
STINT_API stint_status stint_seal_compile(const stint_seal_compile_desc *desc,
                                          stint_seal_facts *facts_out);

/** A trained network that becomes a C program. */
typedef struct stint_seal_network_desc {
    /* The model: a file, or the folder of a run. */
    const char *model;
    /* The C file to write; NULL: none. */
    const char *out;
    /* An image, and the file of JSON that gets its inputs; both NULL: none. */
    const char *image, *values;
} stint_seal_network_desc;

/** What such a program is. */
typedef struct stint_seal_network_facts {
    /* Layers with weights; inputs, of so many bits each; classes. */
    int64_t layers, inputs, classes;
    /* As model.input_bits says. */
    int input_bits;
    /* Weights of all layers, and those that are not 0. */
    int64_t weights, nonzero;
} stint_seal_network_facts;

/** Write an mlp of ternary weights and signs as a C program, for gcc and for
 * stint_seal_compile(): a function "classify" of the array "input" that returns the
 * class. Scales, batch-norms and signs are comparisons of whole numbers there.
 *
 * The model was trained with model.activation = sign, model.input_bits and
 * quantise.bits = 2. STINT_E_INPUT: it was not, or it is no model or image;
 * STINT_E_UNSUPPORTED: biases out of proportion; STINT_E_IO; STINT_E_MEMORY. */
STINT_API stint_status stint_seal_network(const stint_seal_network_desc *desc,
                                          stint_seal_network_facts *facts_out);

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

/* ---- keys, and data that is encrypted ---- */

/** A parameter set. */
typedef struct stint_seal_set {
    /* "p128". */
    const char *name;
    /* Dimension of a ciphertext, polynomials of a key and their coefficients, digits of
     * products (how many, and bits of one), and of key switches. */
    int n, k, size, levels, bits, ks_levels, ks_bits;
    /* log2 of the least work of the attacks that the lattice estimator knows. */
    double security_bits;
    /* log2 of the probability that one bootstrap goes wrong, of the worst cell. */
    double fail_log2;
    /* log2 of the deviation of the noise of a bootstrap's result, in turns. */
    double sd_log2;
    /* Bytes of eval.key, and of a ciphertext. */
    int64_t eval_key_bytes, ciphertext_bytes;
} stint_seal_set;

/** Describe parameter set number i, from 0. Returns 0 where there is none, else 1.
 * Names are constants. */
STINT_API int stint_seal_set_at(int i, stint_seal_set *set_out);

/** Called now and then on the calling thread: `done` of `total` bootstraps are over. */
typedef void stint_seal_progress_fn(void *user, int64_t done, int64_t total);

/** Make a pair of keys: out/secret.key, readable for its owner alone, and out/eval.key.
 *
 * set: name of a parameter set, NULL: "p128". The folder is made where it is missing;
 * STINT_E_USAGE where it has keys already, or for an unknown set. threads 0: choose.
 * STINT_E_IO, also where the system has no random numbers; STINT_E_MEMORY. */
STINT_API stint_status stint_seal_keygen(const char *set, const char *out, int threads);

/** Encrypt values for the inputs of a circuit with a secret key.
 *
 * Two calls never write the same bytes. STINT_E_INPUT as in stint_seal_simulate(), or
 * for files of other kinds; STINT_E_IO; STINT_E_MEMORY. */
STINT_API stint_status stint_seal_encrypt(const char *circuit, const char *secret_key,
                                          const stint_seal_values *values,
                                          const char *out);

/** Decrypt what a run gave; *json_out as in stint_seal_simulate(). STINT_E_INPUT: not
 * of this circuit or key; STINT_E_IO; STINT_E_MEMORY. */
STINT_API stint_status stint_seal_decrypt(const char *circuit, const char *secret_key,
                                          const char *in, char **json_out);

/** A run on encrypted data. */
typedef struct stint_seal_run_desc {
    /* Circuit, evaluation key, encrypted inputs, and the file of encrypted outputs. */
    const char *circuit, *eval_key, *in, *out;
    /* 0: choose. */
    int threads;
    /* Bound of the peak memory of the whole process; 0: none. */
    size_t memory_bytes;
    /* Not 0: a level of the circuit begins when the one before is done, in place of a
     * gate when its inputs are there. */
    int by_levels;
    /* May be NULL. */
    stint_seal_progress_fn *progress;
    /* Passed through to progress. */
    void *user;
    /* The other ranks, each of which makes this call with the same circuit, key and
     * inputs; NULL: this process runs alone. */
    const stint_net *net;
    /* A page that shows width and time by level and bootstraps by source line; NULL:
     * none. */
    const char *report;
} stint_seal_run_desc;

/** What a run took. */
typedef struct stint_seal_run_result {
    /* Gates, each one bootstrap. */
    int64_t bootstraps;
    /* Wall time of all bootstraps, and the part of it in which threads had work. */
    double seconds, busy;
    /* Announced beforehand, and measured. */
    size_t planned_peak_bytes, peak_rss_bytes;
    /* SHA-256 of the encrypted outputs: the same for any threads, order and instruction
     * set. */
    char output_sha256[65];
    /* Ranks that shared the work; seconds, busy and bytes are of this one. */
    int ranks;
} stint_seal_run_result;

/** Run a circuit on encrypted inputs. Needs no secret, and learns none. Of several
 * ranks, rank 0 writes the outputs; each computes its part of every wave of gates, and
 * results travel to those that need them.
 *
 * STINT_E_INPUT: files that do not belong together, or a secret key in the place of the
 * evaluation key; STINT_E_BUDGET: more memory is needed; STINT_E_IO; STINT_E_MEMORY;
 * STINT_E_INTERRUPTED or _TERMINATED after stint_stop(): nothing is written;
 * STINT_E_PEER: a rank is lost or gave up. */
STINT_API stint_status stint_seal_run(const stint_seal_run_desc *desc,
                                      stint_seal_run_result *result_out);

/** What to plan for; budgets that are 0 do not bind. */
typedef struct stint_seal_plan_desc {
    /* The circuit file. */
    const char *circuit;
    /* Name of a parameter set; NULL: "p128". */
    const char *set;
    /* As in stint_seal_run_desc. */
    int threads, by_levels;
    /* Bound of the peak memory of the whole process. */
    size_t memory_bytes;
    /* Bound of the wall time of all bootstraps. */
    double seconds;
    /* log2 of the probability that any bit of the result is wrong, below 0. */
    double fail_log2;
    /* Processes that share the work, each with so many threads; 0: one. */
    int ranks;
} stint_seal_plan_desc;

/** What a run will take. */
typedef struct stint_seal_plan_result {
    /* Gates, and the longest path in gates. */
    int64_t bootstraps, depth;
    /* Bytes of eval.key, and of the encrypted inputs. */
    int64_t key_bytes, input_bytes;
    /* Peak resident memory of the whole process. */
    size_t peak_bytes;
    /* On this machine, from some steps measured now. */
    double seconds;
    /* log2 of the probability that any gate of the whole program goes wrong. */
    double fail_log2;
    /* Share of calls of eight gates that are not full. */
    double narrow_share;
    /* Bytes that all ranks together send each other. */
    int64_t sent_bytes;
    /* All budgets are kept. */
    int fits;
} stint_seal_plan_result;

/** Plan a run without keys. STINT_OK also when a budget is not kept (`fits` is 0, and
 * stint_last_error() says which and what would fit); STINT_E_INPUT; STINT_E_USAGE: an
 * unknown set; STINT_E_IO; STINT_E_MEMORY. */
STINT_API stint_status stint_seal_plan(const stint_seal_plan_desc *desc,
                                       stint_seal_plan_result *result_out);

/** Noise of one kind of cell, in turns. */
typedef struct stint_seal_noise {
    /* Gates that were run, a multiple of eight, and those that gave the wrong bit. */
    int64_t gates, failures;
    /* Deviation of the results from 1/8 and -1/8: measured, and by the formulas. */
    double sd, sd_predicted;
} stint_seal_noise;

/** Run `gates` gates of each kind on random bits, and look with the secret key how far
 * their results are off. eval.key lies beside the secret key.
 *
 * Errors as stint_seal_run(). */
STINT_API stint_status stint_seal_check(const char *secret_key, int64_t gates,
                                        int threads,
                                        stint_seal_noise noise_out[STINT_SEAL_CELLS]);

/** How fast this machine bootstraps. */
typedef struct stint_seal_bench_result {
    /* As were used, and what all together do in a second in full calls of eight. */
    int threads;
    double bootstraps_per_s;
    /* Seconds of a bootstrap on its own. */
    double single_s;
} stint_seal_bench_result;

/** Measure bootstraps of a parameter set for about so many seconds, with keys made for
 * it and thrown away. threads 0: choose. STINT_E_USAGE: an unknown set; STINT_E_IO;
 * STINT_E_MEMORY. */
STINT_API stint_status stint_seal_bench(const char *set, double seconds, int threads,
                                        stint_seal_bench_result *result_out);

/** Overwrite and free a text that a call of this header gave. NULL is fine. */
STINT_API void stint_seal_text_free(char *text);

#ifdef __cplusplus
}
#endif

#endif
