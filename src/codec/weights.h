/* Compressed weights as bytes: positions, patterns and numbers by rANS.
 *
 * A stream holds tensors one after another, each as its form (codec/weight_form.h)
 * says; forms and shapes are not in it, the reader gives the same ones. Which columns,
 * tiles, kernels and single numbers are zero goes as one decision each, then the
 * numbers of the rest: an integer whole, of a float sign, exponent and (of a half)
 * three bits below it, the rest of its fraction as it is. Decisions are binary, each
 * coded under a probability that is counted as they come (Krichevsky and Trofimov
 * 1981), so no table precedes them and k kept of N cost N H(k / N) bits and a little
 * more. Coding is rANS (Duda 2013) with a state of 63 bits, words of 32 and
 * probabilities of 16, in blocks of 2^18 decisions that each begin with a state.
 *
 * Everything is integers: the same bytes on any machine. */
#ifndef STI_CODEC_WEIGHTS_H
#define STI_CODEC_WEIGHTS_H

#include <stddef.h>
#include <stdint.h>

#include "codec/weight_form.h"
#include "stint/status.h"

/* ---- writing ---- */

typedef struct sti_weights_writer sti_weights_writer;

stint_status sti_weights_writer_create(sti_weights_writer **writer_out);
void sti_weights_writer_destroy(sti_weights_writer *writer); /* NULL is fine */
/* Append one tensor, of which nothing is kept. *bits_out, which may be NULL, is what it
 * takes: the information of its decisions, to which coding adds under a thousandth.
 * STINT_E_BUG: its numbers are not of its form (tensor: its name, for the words);
 * STINT_E_MEMORY. */
stint_status sti_weights_writer_add(sti_weights_writer *writer, const char *tensor,
                                    const sti_weight *weight, double *bits_out);
/* End the stream, once; the bytes are the writer's. STINT_E_MEMORY. */
stint_status sti_weights_writer_finish(sti_weights_writer *writer,
                                       const uint8_t **bytes_out, size_t *n_bytes_out);

/* ---- reading ---- */

typedef struct sti_weights_reader sti_weights_reader;

/* bytes: borrowed until the reader is destroyed. */
stint_status sti_weights_reader_create(const uint8_t *bytes, size_t n_bytes,
                                       sti_weights_reader **reader_out);
void sti_weights_reader_destroy(sti_weights_reader *reader); /* NULL is fine */
/* The next tensor into x_out [rows, columns]. STINT_E_INPUT: the bytes end before it
 * does, or hold what its form cannot; bytes of any kind are met without harm. */
stint_status sti_weights_reader_next(sti_weights_reader *reader,
                                     const sti_weight_form *form, float *x_out);
/* STINT_E_INPUT: bytes are left, or the coder is not where it began. */
stint_status sti_weights_reader_end(const sti_weights_reader *reader);

/* ---- forms ---- */

/* Is this a form that a tensor can have? For forms that come from a file: sizes agree
 * and are within what memory can hold, words are known. */
bool sti_weight_form_is_sound(const sti_weight_form *form);
/* What a tensor's form would be without any compression: f32 numbers of which any may
 * be zero. shape [rank]: rank 4 is a convolution's [kh, kw, c, co]. */
sti_weight_form sti_weight_form_plain(int rank, const int64_t *dim);

#endif
