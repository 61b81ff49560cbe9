/* Keys and ciphertexts in files. */
#include <string.h>

#include "base/fail.h"
#include "base/memory.h"
#include "seal/keys.h"

enum { SET_NAME_BYTES = 16 };

static void add_set(sti_bytes *out, const sti_seal_set *set)
{
    char name[SET_NAME_BYTES] = "";
    memcpy(name, set->name, strlen(set->name));
    sti_bytes_add(out, name, sizeof name);
}

static void add_words(sti_bytes *out, const uint32_t *word, int64_t count)
{
    for (int64_t i = 0; i < count; i++)
        sti_bytes_add_number(out, word[i], 4);
}

static stint_status read_set(sti_seal_file *file, const char *path,
                             const sti_seal_set **out)
{
    char name[SET_NAME_BYTES + 1] = "";
    const uint8_t *at = sti_reader_take(&file->payload, SET_NAME_BYTES);
    if (!at)
        return sti_seal_file_check(file, path);
    memcpy(name, at, SET_NAME_BYTES);
    const stint_status st = sti_seal_set_find(name, out);
    return st == STINT_OK ? st : sti_fail_context(STINT_E_INPUT, "%s", path);
}

static void read_id(sti_reader *in, uint8_t id[STI_SEAL_ID_BYTES])
{
    const uint8_t *at = sti_reader_take(in, STI_SEAL_ID_BYTES);
    if (at)
        memcpy(id, at, STI_SEAL_ID_BYTES);
}

static void read_seed(sti_reader *in, uint8_t seed[STI_SEED_BYTES])
{
    const uint8_t *at = sti_reader_take(in, STI_SEED_BYTES);
    if (at)
        memcpy(seed, at, STI_SEED_BYTES);
}

/* NULL: no memory, or not so many words are there. */
static uint32_t *read_words(sti_reader *in, int64_t count)
{
    const uint8_t *at = sti_reader_take(in, (size_t)count * 4);
    uint32_t *word = sti_alloc_array(at ? count : 0, 4, "seal.words");
    for (int64_t i = 0; word && at && i < count; i++)
        word[i] = at[4 * i] | (uint32_t)at[4 * i + 1] << 8 |
                  (uint32_t)at[4 * i + 2] << 16 | (uint32_t)at[4 * i + 3] << 24;
    return word;
}

/* ---- the secret key: a byte a bit ---- */

static void add_bits(sti_bytes *out, const uint32_t *bit, int64_t count)
{
    for (int64_t i = 0; i < count; i++)
        sti_bytes_add_number(out, bit[i] & 1, 1);
}

stint_status sti_secret_key_write(const sti_secret_key *key, const char *path)
{
    sti_bytes payload = {0};
    add_set(&payload, key->set);
    sti_bytes_add(&payload, key->id, sizeof key->id);
    add_bits(&payload, key->bit, key->set->n);
    add_bits(&payload, key->poly, (int64_t)key->set->k * key->set->size);
    const stint_status st = sti_seal_file_write(path, STI_SEAL_SECRET, &payload, true);
    sti_bytes_fini(&payload);
    return st;
}

/* Bits as masks. All are looked at before it is said that one of them is none. */
static uint32_t *read_bits(sti_reader *in, int64_t count)
{
    const uint8_t *at = sti_reader_take(in, (size_t)count);
    uint32_t *bit = sti_alloc_array(count, 4, "seal.secret"), other = 0;
    for (int64_t i = 0; bit && at && i < count; i++) {
        bit[i] = 0 - (uint32_t)(at[i] & 1);
        other |= at[i] & ~1u;
    }
    in->bad = in->bad || other != 0;
    return bit;
}

stint_status sti_secret_key_read(const char *path, sti_secret_key *key_out)
{
    sti_seal_file file;
    sti_secret_key key = {0};
    stint_status st = sti_seal_file_open(path, STI_SEAL_SECRET, &file);
    if (st != STINT_OK)
        return st;
    STI_TRY(read_set(&file, path, &key.set));
    read_id(&file.payload, key.id);
    key.bit = read_bits(&file.payload, key.set->n);
    key.poly = read_bits(&file.payload, (int64_t)key.set->k * key.set->size);
    STI_TRY(key.bit && key.poly ? STINT_OK : STINT_E_MEMORY);
    STI_TRY(sti_seal_file_check(&file, path));
    *key_out = key;
    key = (sti_secret_key){0};
out:
    sti_secret_key_fini(&key);
    sti_seal_file_close(&file);
    return st;
}

/* ---- the evaluation key ---- */

stint_status sti_eval_bodies_write(const sti_eval_bodies *bodies, const char *path)
{
    const sti_seal_set *set = bodies->set;
    const int64_t rows = (int64_t)set->levels * (set->k + 1);
    sti_bytes payload = {0};
    add_set(&payload, set);
    sti_bytes_add(&payload, bodies->id, sizeof bodies->id);
    sti_bytes_add(&payload, bodies->seed, sizeof bodies->seed);
    add_words(&payload, bodies->boot, set->n * rows * set->size);
    add_words(&payload, bodies->swap, (int64_t)set->k * set->size * set->ks_levels);
    const stint_status st = sti_seal_file_write(path, STI_SEAL_EVAL, &payload, false);
    sti_bytes_fini(&payload);
    return st;
}

stint_status sti_eval_bodies_read(const char *path, sti_eval_bodies *out)
{
    sti_seal_file file;
    sti_eval_bodies b = {0};
    stint_status st = sti_seal_file_open(path, STI_SEAL_EVAL, &file);
    if (st != STINT_OK)
        return st;
    STI_TRY(read_set(&file, path, &b.set));
    const int64_t rows = (int64_t)b.set->levels * (b.set->k + 1);
    read_id(&file.payload, b.id);
    read_seed(&file.payload, b.seed[0]);
    read_seed(&file.payload, b.seed[1]);
    b.boot = read_words(&file.payload, b.set->n * rows * b.set->size);
    b.swap =
        read_words(&file.payload, (int64_t)b.set->k * b.set->size * b.set->ks_levels);
    STI_TRY(b.boot && b.swap ? STINT_OK : STINT_E_MEMORY);
    STI_TRY(sti_seal_file_check(&file, path));
    *out = b;
    b = (sti_eval_bodies){0};
out:
    sti_eval_bodies_fini(&b);
    sti_seal_file_close(&file);
    return st;
}

/* ---- ciphertexts ---- */

static int64_t words_of(const sti_ciphertexts *c)
{
    return c->bits * (c->is_input ? 1 : sti_seal_ciphertext_words(c->set));
}

stint_status sti_ciphertexts_write(const sti_ciphertexts *c, const char *path)
{
    sti_bytes payload = {0};
    add_set(&payload, c->set);
    sti_bytes_add(&payload, c->key_id, sizeof c->key_id);
    sti_bytes_add(&payload, c->circuit_id, sizeof c->circuit_id);
    sti_bytes_add_number(&payload, (uint64_t)c->bits, 8);
    if (c->is_input)
        sti_bytes_add(&payload, c->seed, sizeof c->seed);
    add_words(&payload, c->word, words_of(c));
    const stint_status st = sti_seal_file_write(
        path, c->is_input ? STI_SEAL_INPUT : STI_SEAL_OUTPUT, &payload, false);
    sti_bytes_fini(&payload);
    return st;
}

static stint_status check_ids(const sti_ciphertexts *c, const char *path,
                              const sti_seal_set *set, const uint8_t *key_id,
                              const sti_circuit *circuit)
{
    if (c->set != set)
        return sti_fail(STINT_E_INPUT,
                        "%s: is of parameter set %s, the key of %s; encrypt with the "
                        "key that belongs to this one",
                        path, c->set->name, set->name);
    if (memcmp(c->key_id, key_id, STI_SEAL_ID_BYTES) != 0)
        return sti_fail(STINT_E_INPUT,
                        "%s: belongs to another pair of keys; use those that it was "
                        "encrypted for",
                        path);
    if (memcmp(c->circuit_id, circuit->id, STI_SEAL_ID_BYTES) != 0)
        return sti_fail(STINT_E_INPUT,
                        "%s: belongs to another circuit; use the one that it was "
                        "encrypted for",
                        path);
    return STINT_OK;
}

stint_status sti_ciphertexts_read(const char *path, bool inputs,
                                  const sti_seal_set *set,
                                  const uint8_t key_id[STI_SEAL_ID_BYTES],
                                  const sti_circuit *circuit, sti_ciphertexts *out)
{
    sti_seal_file file;
    sti_ciphertexts c = {.is_input = inputs};
    const int64_t bits = inputs ? circuit->input_bits : circuit->output_bits;
    stint_status st =
        sti_seal_file_open(path, inputs ? STI_SEAL_INPUT : STI_SEAL_OUTPUT, &file);
    if (st != STINT_OK)
        return st;
    STI_TRY(read_set(&file, path, &c.set));
    read_id(&file.payload, c.key_id);
    read_id(&file.payload, c.circuit_id);
    if (!file.payload.bad)
        STI_TRY(check_ids(&c, path, set, key_id, circuit));
    c.bits = sti_reader_range(&file.payload, 8, bits, bits);
    if (inputs)
        read_seed(&file.payload, c.seed);
    c.word = read_words(&file.payload, words_of(&c));
    STI_TRY(c.word ? STINT_OK : STINT_E_MEMORY);
    STI_TRY(sti_seal_file_check(&file, path));
    *out = c;
    c = (sti_ciphertexts){0};
out:
    sti_ciphertexts_fini(&c);
    sti_seal_file_close(&file);
    return st;
}

void sti_ciphertexts_fini(sti_ciphertexts *c)
{
    sti_free(c->word);
    *c = (sti_ciphertexts){0};
}
