/* Integers as literals of a netlist, bit 0 first: what C does to them, modulo 2^n.
 *
 * n is 1 to 64; outputs may be one of the inputs. Constants fold, so that an operand
 * known beforehand makes the circuit smaller. */
#ifndef STI_SEAL_BIT_VECTOR_H
#define STI_SEAL_BIT_VECTOR_H

#include "seal/netlist.h"

enum { STI_BITS_MAX = 64 };

void sti_bits_constant(uint64_t value, int n, sti_literal *out);
/* True where all bits are constant; then *value_out, bits above n zero. */
bool sti_bits_is_constant(const sti_literal *a, int n, uint64_t *value_out);

/* a + b + carry; returns the carry out. */
sti_literal sti_bits_add(sti_netlist *netlist, int n, const sti_literal *a,
                         const sti_literal *b, sti_literal carry, sti_literal *out);
void sti_bits_subtract(sti_netlist *netlist, int n, const sti_literal *a,
                       const sti_literal *b, sti_literal *out);
void sti_bits_negate(sti_netlist *netlist, int n, const sti_literal *a,
                     sti_literal *out);
void sti_bits_multiply(sti_netlist *netlist, int n, const sti_literal *a,
                       const sti_literal *b, sti_literal *out);
/* Quotient and remainder as C has them, towards zero; of a division by zero they are
 * some number. */
void sti_bits_divide(sti_netlist *netlist, int n, bool is_signed, const sti_literal *a,
                     const sti_literal *b, sti_literal *quotient_out,
                     sti_literal *remainder_out);
sti_literal sti_bits_less(sti_netlist *netlist, int n, bool is_signed,
                          const sti_literal *a, const sti_literal *b);
sti_literal sti_bits_equal(sti_netlist *netlist, int n, const sti_literal *a,
                           const sti_literal *b);
/* Any bit set. */
sti_literal sti_bits_any(sti_netlist *netlist, int n, const sti_literal *a);
/* a shifted by the number in `by` (by_bits of them) modulo the next power of two; to
 * the right with its sign where is_signed. */
void sti_bits_shift(sti_netlist *netlist, int n, bool left, bool is_signed,
                    const sti_literal *a, const sti_literal *by, int by_bits,
                    sti_literal *out);
void sti_bits_mux(sti_netlist *netlist, int n, sti_literal choose, const sti_literal *a,
                  const sti_literal *b, sti_literal *out);

#endif
