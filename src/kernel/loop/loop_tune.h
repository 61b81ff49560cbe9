/* Picking a loop string for a product: candidates, a model of their cost, timing, and
 * the strings that this host keeps.
 *
 * The model walks the nest without arithmetic, once a thread, and asks for every tile
 * that a call touches how many bytes of other tiles were touched since: that says which
 * cache it still lies in. After Georganas et al. (2023), with three changes: each
 * operand is read at the speed of the level where it lies itself, packing is counted,
 * and reading overlaps with arithmetic. */
#ifndef STI_KERNEL_LOOP_TUNE_H
#define STI_KERNEL_LOOP_TUNE_H

#include "kernel/loop/loop_gemm.h"
#include "kernel/machine/machine.h"

/* ---- candidates ---- */

/* All strings worth a thought for a shape: every order of a, b, b, c, c with equal
 * neighbours joined, each choice of capitals (several threads), the curve, and for each
 * of them several tiles. `take` gets each text once; returns how many there were. */
typedef void sti_loop_take(void *user, const char *text);
int sti_loop_gemm_candidates(const sti_gemm_shape *shape, int threads,
                             sti_loop_take *take, void *user);

/* ---- the model ---- */

/* Room for traces, reused from call to call. Begin with {0}; sti_loop_trace_fini. */
typedef struct sti_loop_trace {
    void *rows;
    int64_t room;
} sti_loop_trace;
void sti_loop_trace_fini(sti_loop_trace *trace);

/* Seconds that a product is expected to take. STINT_E_MEMORY. */
stint_status sti_loop_gemm_predict(const sti_machine *machine,
                                   const sti_loop_gemm *gemm, sti_loop_trace *trace,
                                   double *seconds_out);

/* ---- ranking ---- */

typedef struct sti_loop_choice {
    char text[STI_LOOP_GEMM_TEXT];
    double predicted_s, measured_s; /* measured_s: 0 where it was not */
} sti_loop_choice;

/* All candidates, cheapest first by the model; *choices_out is sti_alloc'ed, the caller
 * frees. */
stint_status sti_loop_gemm_rank(const sti_machine *machine, const sti_gemm_shape *shape,
                                int threads, sti_loop_choice **choices_out,
                                int *count_out);

/* Measure `count` choices and the way without a string (sti_gemm_f32), for about
 * `seconds` each and at least five times: rounds go through all of them in turn, so
 * that what disturbs the machine disturbs all. The choices are then sorted by the
 * measured times. */
stint_status sti_loop_gemm_measure(const sti_team *team, const sti_gemm_shape *shape,
                                   sti_loop_choice *choices, int count, double seconds,
                                   double *default_s_out);

/* ---- what this host keeps ---- */

/* The text stored for a shape and a number of threads, "" where the way without a
 * string was faster; false: this shape was never tuned. Sizes and transposition count,
 * not the leading dimensions. A file that cannot be read or is of another machine is
 * ignored with a line in the log. */
bool sti_loop_store_find(const sti_gemm_shape *shape, int threads,
                         char text_out[STI_LOOP_GEMM_TEXT]);

/* STINT_E_IO where something other than a file has the name of the store, so that a
 * caller may say so before it measures. Whether a file can be written is not asked. */
stint_status sti_loop_store_check(void);

/* Keep a text for a shape; processes that do so at once wait for one another.
 * STINT_E_IO where nothing can be written. */
stint_status sti_loop_store_keep(const sti_gemm_shape *shape, int threads,
                                 const char *text);

#endif
