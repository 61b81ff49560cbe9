/* The C program of a network of ternary weights. */
#ifndef STI_SEAL_NETWORK_TEXT_H
#define STI_SEAL_NETWORK_TEXT_H

#include "base/text.h"
#include "seal/ternary.h"

/* A function `classify` of the inputs that returns the class. It is plain C, for gcc as
 * for `stint seal compile`: dot products are sums of bits, three of which a full adder
 * makes two. */
void sti_network_text(const sti_ternary *net, sti_text *out);

#endif
