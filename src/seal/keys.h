/* Keys, and ciphertexts of single bits.
 *
 * What branches, and which addresses are touched, never depends on a secret: key bits
 * are masks. Everything that held a secret is overwritten before it is freed. */
#ifndef STI_SEAL_KEYS_H
#define STI_SEAL_KEYS_H

#include "base/secure_random.h"
#include "base/team.h"
#include "seal/circuit.h"
#include "seal/sets.h"

typedef struct sti_secret_key {
    const sti_seal_set *set;
    uint8_t id[STI_SEAL_ID_BYTES];
    uint32_t *bit;  /* [n]: 0 or all ones */
    uint32_t *poly; /* [k size]: the same */
} sti_secret_key;

/* From the system's randomness. */
stint_status sti_secret_key_make(const sti_seal_set *set, sti_secret_key *key_out);
void sti_secret_key_fini(sti_secret_key *key);

/* What an evaluator has, as it travels: seeds of the masks and bodies. */
typedef struct sti_eval_bodies {
    const sti_seal_set *set;
    uint8_t id[STI_SEAL_ID_BYTES];
    uint8_t seed[2][STI_SEED_BYTES]; /* of the bootstrapping and the switching key */
    uint32_t *boot;                  /* [n][rows][size], rows = levels (k + 1) */
    uint32_t *swap;                  /* [k size][ks_levels] */
} sti_eval_bodies;

stint_status sti_eval_bodies_make(const sti_secret_key *key, const sti_team *team,
                                  sti_eval_bodies *out);
void sti_eval_bodies_fini(sti_eval_bodies *bodies);

/* The same unpacked, as bootstrapping reads it. */
typedef struct sti_eval_key {
    const sti_seal_set *set;
    uint8_t id[STI_SEAL_ID_BYTES];
    double *factors; /* kernel/fft/negacyclic.h */
    double *boot;    /* [n][size / 2][rows][k + 1][2] */
    uint32_t *swap;  /* [k size][ks_levels][n + 1] */
} sti_eval_key;

size_t sti_eval_key_bytes(const sti_seal_set *set);
stint_status sti_eval_key_unpack(const sti_eval_bodies *bodies, const sti_team *team,
                                 sti_eval_key *out);
void sti_eval_key_fini(sti_eval_key *key);

/* Body of a fresh ciphertext of a bit (0 or 1) with the mask [n]. */
uint32_t sti_seal_encrypt_bit(const sti_secret_key *key, const uint32_t *mask,
                              uint32_t bit, sti_secure_random *random);
/* Phase of a ciphertext [n + 1]: where its bit is on the torus, with its noise. */
uint32_t sti_seal_phase(const sti_secret_key *key, const uint32_t *ciphertext);

/* Files. */
stint_status sti_secret_key_write(const sti_secret_key *key, const char *path);
stint_status sti_secret_key_read(const char *path, sti_secret_key *key_out);
stint_status sti_eval_bodies_write(const sti_eval_bodies *bodies, const char *path);
stint_status sti_eval_bodies_read(const char *path, sti_eval_bodies *out);

/* Encrypted inputs: a seed of the masks and a body a bit. Encrypted outputs: whole
 * ciphertexts. */
typedef struct sti_ciphertexts {
    const sti_seal_set *set;
    uint8_t key_id[STI_SEAL_ID_BYTES], circuit_id[STI_SEAL_ID_BYTES];
    bool is_input;
    uint8_t seed[STI_SEED_BYTES];
    int64_t bits;
    uint32_t *word; /* inputs [bits], outputs [bits][n + 1] */
} sti_ciphertexts;

stint_status sti_ciphertexts_write(const sti_ciphertexts *c, const char *path);
/* STINT_E_INPUT where set, key or circuit are not those of the others. */
stint_status sti_ciphertexts_read(const char *path, bool inputs,
                                  const sti_seal_set *set,
                                  const uint8_t key_id[STI_SEAL_ID_BYTES],
                                  const sti_circuit *circuit, sti_ciphertexts *out);
void sti_ciphertexts_fini(sti_ciphertexts *c);
/* Mask [n] of input bit i. */
void sti_seal_input_mask(const sti_ciphertexts *c, int64_t i, uint32_t *mask_out);

#endif
