/* Public calls of whoever has the secret key. */
#include <math.h>
#include <string.h>

#include "base/fail.h"
#include "base/file.h"
#include "base/secure_random.h"
#include "seal/bootstrap.h"
#include "seal/keys.h"
#include "seal/seal_priv.h"

int stint_seal_set_at(int i, stint_seal_set *set_out)
{
    const sti_seal_set *set = sti_seal_set_at(i);
    if (!set)
        return 0;
    *set_out = (stint_seal_set){.name = set->name,
                                .n = set->n,
                                .k = set->k,
                                .size = set->size,
                                .levels = set->levels,
                                .bits = set->bits,
                                .ks_levels = set->ks_levels,
                                .ks_bits = set->ks_bits,
                                .security_bits = set->security_bits,
                                .fail_log2 = sti_seal_set_fail_log2(set),
                                .sd_log2 = log2(sti_seal_noise_of(set).out) / 2,
                                .eval_key_bytes = sti_seal_eval_file_bytes(set),
                                .ciphertext_bytes = 4 * sti_seal_ciphertext_words(set)};
    return 1;
}

/* Names of both files in a folder that has neither. */
static stint_status key_paths(sti_arena *arena, const char *out, char **secret,
                              char **eval)
{
    *secret = sti_path_join(arena, out, "secret.key");
    *eval = sti_path_join(arena, out, "eval.key");
    if (!*secret || !*eval)
        return STINT_E_MEMORY;
    if (sti_path_is_file(*secret) || sti_path_is_file(*eval))
        return sti_fail(STINT_E_USAGE,
                        "%s: has keys already; what they encrypted would be lost with "
                        "them: name another folder",
                        out);
    return sti_dir_create(out);
}

stint_status stint_seal_keygen(const char *set, const char *out, int threads)
{
    const sti_seal_set *chosen;
    sti_secret_key key = {0};
    sti_eval_bodies bodies = {0};
    sti_team team;
    char *secret, *eval;
    sti_arena *arena = sti_arena_create("seal.paths");
    stint_status st = arena ? STINT_OK : STINT_E_MEMORY;
    STI_TRY(st);
    STI_TRY(sti_seal_set_find(set ? set : "p128", &chosen));
    STI_TRY(sti_threads_choose(threads, &team.threads, NULL));
    STI_TRY(key_paths(arena, out, &secret, &eval));
    STI_TRY(sti_secret_key_make(chosen, &key));
    STI_TRY(sti_eval_bodies_make(&key, &team, &bodies));
    STI_TRY(sti_eval_bodies_write(&bodies, eval));
    st = sti_secret_key_write(&key, secret);
out:
    sti_secret_key_fini(&key);
    sti_eval_bodies_fini(&bodies);
    sti_arena_destroy(arena);
    return st;
}

static stint_status encrypt_bits(const sti_secret_key *key, const uint8_t *bit,
                                 sti_ciphertexts *c)
{
    sti_secure_random noise = {{0}};
    uint32_t *mask = sti_alloc_array(key->set->n, 4, "seal.mask");
    c->word = sti_alloc_array(c->bits, 4, "seal.words");
    stint_status st = mask && c->word ? STINT_OK : STINT_E_MEMORY;
    STI_TRY(st);
    STI_TRY(sti_secure_bytes(c->seed, sizeof c->seed));
    STI_TRY(sti_secure_random_init(&noise));
    for (int64_t i = 0; i < c->bits; i++) {
        sti_seal_input_mask(c, i, mask);
        c->word[i] = sti_seal_encrypt_bit(key, mask, bit[i], &noise);
    }
out:
    sti_secure_random_fini(&noise);
    sti_free(mask);
    return st;
}

stint_status stint_seal_encrypt(const char *circuit, const char *secret_key,
                                const stint_seal_values *values, const char *out)
{
    sti_circuit c = {0};
    sti_secret_key key = {0};
    sti_values in = {0};
    sti_ciphertexts made = {.is_input = true};
    stint_status st = sti_circuit_read(circuit, &c);
    STI_TRY(st);
    STI_TRY(sti_secret_key_read(secret_key, &key));
    STI_TRY(sti_seal_inputs(&c, values, &in));
    made.set = key.set;
    made.bits = c.input_bits;
    memcpy(made.key_id, key.id, sizeof made.key_id);
    memcpy(made.circuit_id, c.id, sizeof made.circuit_id);
    STI_TRY(encrypt_bits(&key, in.bit, &made));
    st = sti_ciphertexts_write(&made, out);
out:
    sti_ciphertexts_fini(&made);
    sti_values_fini(&in);
    sti_secret_key_fini(&key);
    sti_circuit_fini(&c);
    return st;
}

stint_status stint_seal_decrypt(const char *circuit, const char *secret_key,
                                const char *in, char **json_out)
{
    sti_circuit c = {0};
    sti_secret_key key = {0};
    sti_ciphertexts sealed = {0};
    sti_values out = {0};
    stint_status st = sti_circuit_read(circuit, &c);
    STI_TRY(st);
    STI_TRY(sti_secret_key_read(secret_key, &key));
    STI_TRY(sti_ciphertexts_read(in, false, key.set, key.id, &c, &sealed));
    STI_TRY(sti_values_init(&out, c.output, c.outputs));
    for (int64_t i = 0; i < sealed.bits; i++) {
        const uint32_t *word = sealed.word + i * sti_seal_ciphertext_words(key.set);
        out.bit[i] = (uint8_t)(1 - (sti_seal_phase(&key, word) >> 31));
    }
    st = sti_seal_values_text(&out, json_out);
out:
    sti_values_fini(&out);
    sti_ciphertexts_fini(&sealed);
    sti_secret_key_fini(&key);
    sti_circuit_fini(&c);
    return st;
}

/* ---- noise ---- */

enum { POOL = 64 };

typedef struct checker {
    const sti_secret_key *key;
    const sti_eval_key *eval;
    uint32_t *pool; /* [POOL][n + 1]: results of bootstraps, inputs of the next */
    uint8_t bit[POOL];
    uint32_t *sum; /* [8][n + 1] */
    void *scratch;
    sti_secure_random random;
} checker;

static uint32_t draw(checker *c, uint32_t below)
{
    uint32_t word;
    sti_secure_random_fill(&c->random, &word, sizeof word);
    return (uint32_t)(((uint64_t)word * below) >> 32);
}

/* Eight gates of a kind on inputs of the pool, which their results replace. */
static void check_eight(checker *c, sti_cell_kind kind, double *squares,
                        int64_t *failures)
{
    const int64_t width = sti_seal_ciphertext_words(c->key->set);
    const int inputs = sti_cell_row_of(kind)->inputs;
    uint8_t want[STI_BOOTSTRAP_LANES];
    for (int g = 0; g < STI_BOOTSTRAP_LANES; g++) {
        sti_cell cell = {.kind = (uint8_t)kind};
        const uint32_t *in[STI_CELL_INPUTS];
        const uint32_t first = draw(c, POOL);
        unsigned row = 0;
        for (int i = 0; i < inputs; i++) { /* different ones: their noise is apart */
            const uint32_t at = (first + (uint32_t)i * 17) % POOL;
            cell.in[i] = draw(c, 2);
            in[i] = c->pool + at * width;
            row |= (unsigned)(c->bit[at] ^ cell.in[i]) << i;
        }
        want[g] = sti_cell_table(kind) >> row & 1;
        sti_cell_sum(c->key->set, &cell, in, c->sum + g * width);
    }
    sti_bootstrap(c->eval, STI_BOOTSTRAP_LANES, c->sum, c->sum, c->scratch);
    for (int g = 0; g < STI_BOOTSTRAP_LANES; g++) {
        const uint32_t phase = sti_seal_phase(c->key, c->sum + g * width);
        const double error =
            (int32_t)(phase - (want[g] ? 0x20000000u : 0xE0000000u)) * 0x1p-32;
        const uint32_t at = draw(c, POOL);
        *failures += (phase >> 31) == want[g];
        *squares += error * error;
        memcpy(c->pool + at * width, c->sum + g * width, (size_t)width * 4);
        c->bit[at] = want[g];
    }
}

static stint_status fill_pool(checker *c)
{
    const int64_t width = sti_seal_ciphertext_words(c->key->set);
    for (int64_t i = 0; i < POOL; i++) {
        uint32_t *to = c->pool + i * width;
        c->bit[i] = (uint8_t)draw(c, 2);
        sti_secure_random_fill(&c->random, to, (size_t)(width - 1) * 4);
        to[width - 1] = sti_seal_encrypt_bit(c->key, to, c->bit[i], &c->random);
    }
    return STINT_OK;
}

static stint_status check_all(checker *c, int64_t gates, stint_seal_noise *noise_out)
{
    const int64_t width = sti_seal_ciphertext_words(c->key->set);
    stint_status st = sti_secure_random_init(&c->random);
    c->pool = sti_alloc_array(POOL * width, 4, "seal.check");
    c->sum = sti_alloc_array(STI_BOOTSTRAP_LANES * width, 4, "seal.check");
    c->scratch = sti_alloc(sti_bootstrap_scratch_bytes(c->key->set), "seal.check");
    if (st == STINT_OK && (!c->pool || !c->sum || !c->scratch))
        st = STINT_E_MEMORY;
    if (st == STINT_OK)
        st = fill_pool(c);
    for (int k = 0; st == STINT_OK && k < STI_CELL_KINDS; k++) {
        double squares = 0;
        stint_seal_noise *out = &noise_out[k];
        *out = (stint_seal_noise){.sd_predicted =
                                      sqrt(sti_seal_noise_of(c->key->set).out)};
        for (; out->gates < gates; out->gates += STI_BOOTSTRAP_LANES)
            check_eight(c, (sti_cell_kind)k, &squares, &out->failures);
        out->sd = sqrt(squares / (double)out->gates);
    }
    sti_free(c->pool);
    sti_free(c->sum);
    sti_free(c->scratch);
    sti_secure_random_fini(&c->random);
    return st;
}

stint_status sti_seal_check_keys(const sti_secret_key *key, const sti_eval_key *eval,
                                 int64_t gates, stint_seal_noise *noise_out)
{
    checker c = {.key = key, .eval = eval};
    return check_all(&c, gates, noise_out);
}

stint_status stint_seal_check(const char *secret_key, int64_t gates, int threads,
                              stint_seal_noise noise_out[STINT_SEAL_CELLS])
{
    sti_secret_key key = {0};
    sti_eval_bodies bodies = {0};
    sti_eval_key eval = {0};
    sti_team team;
    sti_arena *arena = sti_arena_create("seal.paths");
    stint_status st = arena ? STINT_OK : STINT_E_MEMORY;
    STI_TRY(st);
    STI_TRY(sti_threads_choose(threads, &team.threads, NULL));
    STI_TRY(sti_secret_key_read(secret_key, &key));
    const char *folder = sti_path_folder(arena, secret_key);
    const char *path = folder ? sti_path_join(arena, folder, "eval.key") : NULL;
    STI_TRY(path ? STINT_OK : STINT_E_MEMORY);
    STI_TRY(sti_eval_bodies_read(path, &bodies));
    if (memcmp(bodies.id, key.id, sizeof key.id) != 0) {
        st = sti_fail(STINT_E_INPUT, "%s: belongs to another pair of keys than %s",
                      path, secret_key);
        goto out;
    }
    STI_TRY(sti_eval_key_unpack(&bodies, &team, &eval));
    st = sti_seal_check_keys(&key, &eval, gates, noise_out);
out:
    sti_secret_key_fini(&key);
    sti_eval_bodies_fini(&bodies);
    sti_eval_key_fini(&eval);
    sti_arena_destroy(arena);
    return st;
}
