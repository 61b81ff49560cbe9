/* Random numbers that nobody can foresee, for keys; and a stream that a published seed
 * stands for, for what travels as its seed.
 *
 * The generator is nettle's ChaCha20, keyed by 32 bytes: from the system (getrandom),
 * or given. Nothing here branches on, or looks up by, what it generates. A state serves
 * one thread; states of one seed and other streams give unrelated numbers. */
#ifndef STI_BASE_SECURE_RANDOM_H
#define STI_BASE_SECURE_RANDOM_H

#include <stddef.h>
#include <stdint.h>

#include "stint/status.h"

enum { STI_SEED_BYTES = 32 };

typedef struct sti_secure_random {
    uint64_t opaque[32];
} sti_secure_random;

/* Bytes from the system; waits until it has gathered enough once after its start.
 * STINT_E_IO where it has none to give. */
stint_status sti_secure_bytes(void *out, size_t n_bytes);

/* Keyed by the system. */
stint_status sti_secure_random_init(sti_secure_random *random);
/* Keyed by a seed; `stream` is the nonce. */
void sti_secure_random_seed(sti_secure_random *random,
                            const uint8_t seed[STI_SEED_BYTES], uint64_t stream);
void sti_secure_random_fill(sti_secure_random *random, void *out, size_t n_bytes);
/* Overwrite the state. */
void sti_secure_random_fini(sti_secure_random *random);

/* Two independent numbers of the normal distribution, mean 0, deviation 1, to 8.4
 * deviations (Box and Muller 1958). */
void sti_secure_normal2(sti_secure_random *random, double out[2]);

/* Overwrite memory that held a secret, in a way that no compiler leaves out. */
void sti_secure_wipe(void *memory, size_t n_bytes);

#endif
