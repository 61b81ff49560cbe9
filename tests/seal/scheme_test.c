/* Encrypted gates with a set that is small and not secure: every cell, chains, noise,
 * and the same bits for any threads, order and instruction set. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cpu.h"
#include "base/file.h"
#include "seal/cc.h"
#include "seal/seal_evaluate.h"
#include "seal/seal_priv.h"

/* Noise as low as the true sets' so that the formulas have something to predict. */
static const sti_seal_set tiny = {"tiny", 48, 1, 256, 2, 9, 6, 3, 0x1p-17, 0x1p-28, 0};

static const sti_team one = {1};

typedef struct keys {
    sti_secret_key secret;
    sti_eval_bodies bodies;
    sti_eval_key eval;
} keys;

static void make_keys(keys *k)
{
    assert_int_equal(sti_secret_key_make(&tiny, &k->secret), STINT_OK);
    assert_int_equal(sti_eval_bodies_make(&k->secret, &one, &k->bodies), STINT_OK);
    assert_int_equal(sti_eval_key_unpack(&k->bodies, &one, &k->eval), STINT_OK);
}

static void free_keys(keys *k)
{
    sti_secret_key_fini(&k->secret);
    sti_eval_bodies_fini(&k->bodies);
    sti_eval_key_fini(&k->eval);
}

static void every_cell_is_right_and_as_noisy_as_predicted(void **state)
{
    keys k;
    stint_seal_noise noise[STINT_SEAL_CELLS];
    double squares = 0;
    (void)state;
    make_keys(&k);
    assert_int_equal(sti_seal_check_keys(&k.secret, &k.eval, 800, noise), STINT_OK);
    for (int i = 0; i < STINT_SEAL_CELLS; i++) {
        assert_int_equal(noise[i].failures, 0);
        squares += noise[i].sd * noise[i].sd / STINT_SEAL_CELLS;
    }
    /* One key's noise differs from the mean over keys by some percent. */
    const double ratio = sqrt(squares) / noise[0].sd_predicted;
    if (ratio < 0.8 || ratio > 1.2)
        fail_msg("deviation %g, predicted %g", sqrt(squares), noise[0].sd_predicted);
    free_keys(&k);
}

/* 2,000 gates one after the other: what skips a bootstrap drowns in noise. */
static void a_long_chain_stays_right(void **state)
{
    keys k;
    const int64_t width = tiny.n + 1;
    uint32_t *word = sti_alloc_array(8 * width, 4, "test");
    void *scratch = sti_alloc(sti_bootstrap_scratch_bytes(&tiny), "test");
    int bit[8];
    sti_secure_random random;
    (void)state;
    make_keys(&k);
    assert_int_equal(sti_secure_random_init(&random), STINT_OK);
    for (int g = 0; g < 8; g++) {
        bit[g] = g & 1;
        sti_secure_random_fill(&random, word + g * width, (size_t)tiny.n * 4);
        word[g * width + tiny.n] = sti_seal_encrypt_bit(&k.secret, word + g * width,
                                                        (uint32_t)bit[g], &random);
    }
    for (int step = 0; step < 2000; step++) {
        uint32_t *sum = sti_alloc_array(8 * width, 4, "test");
        for (int g = 0; g < 8; g++) { /* not (a and a), xor with a neighbour's copy */
            const sti_cell cell = {.kind = STI_CELL_XOR, .in = {1, 0}};
            const uint32_t *in[4] = {word + g * width, word + ((g + 1) & 7) * width};
            sti_cell_sum(&tiny, &cell, in, sum + g * width);
        }
        int next[8];
        for (int g = 0; g < 8; g++)
            next[g] = (bit[g] ^ 1) ^ bit[(g + 1) & 7];
        memcpy(bit, next, sizeof bit);
        sti_bootstrap(&k.eval, 8, sum, word, scratch);
        sti_free(sum);
    }
    for (int g = 0; g < 8; g++)
        assert_int_equal(1 - (sti_seal_phase(&k.secret, word + g * width) >> 31),
                         bit[g]);
    sti_free(word);
    sti_free(scratch);
    free_keys(&k);
}

static const char program[] =
    "#include <stdint.h>\n"
    "int16_t f(int8_t a, int8_t b, const uint8_t t[4]) {\n"
    "  int16_t sum = 0;\n"
    "  for (int i = 0; i < 4; i++) { if (t[i] == b) break; sum += t[i]; }\n"
    "  return a * b + sum - t[a & 3];\n}\n";

static int16_t reference(int8_t a, int8_t b, const uint8_t t[4])
{
    int16_t sum = 0;
    for (int i = 0; i < 4; i++) {
        if (t[i] == b)
            break;
        sum = (int16_t)(sum + t[i]);
    }
    return (int16_t)(a * b + sum - t[a & 3]);
}

static void compile(sti_circuit *circuit)
{
    sti_imported made;
    const sti_cc_options options = {.entry = "f"};
    if (sti_cc_compile("f.c", program, sizeof program - 1, &options, &made) != STINT_OK)
        fail_msg("%s", stint_last_error());
    const sti_circuit_source source = {
        &made.netlist, made.input, made.output, made.inputs, made.outputs,
        made.result,   4};
    assert_int_equal(sti_circuit_map(&source, circuit), STINT_OK);
    sti_imported_fini(&made);
}

static void encrypt(const keys *k, const sti_circuit *c, const char *words,
                    sti_ciphertexts *out)
{
    sti_values values;
    sti_secure_random noise;
    uint32_t mask[64];
    const stint_seal_values given = {.words = words};
    assert_int_equal(sti_seal_inputs(c, &given, &values), STINT_OK);
    assert_int_equal(sti_secure_random_init(&noise), STINT_OK);
    *out = (sti_ciphertexts){.set = &tiny, .is_input = true, .bits = c->input_bits};
    assert_int_equal(sti_secure_bytes(out->seed, sizeof out->seed), STINT_OK);
    out->word = sti_alloc_array(out->bits, 4, "test");
    for (int64_t i = 0; i < out->bits; i++) {
        sti_seal_input_mask(out, i, mask);
        out->word[i] = sti_seal_encrypt_bit(&k->secret, mask, values.bit[i], &noise);
    }
    sti_values_fini(&values);
}

static void a_program_gives_what_gcc_says(void **state)
{
    keys k;
    sti_circuit c;
    sti_ciphertexts in;
    uint32_t *first = NULL;
    const uint8_t t[4] = {200, 7, 77, 9};
    (void)state;
    make_keys(&k);
    compile(&c);
    const size_t words = (size_t)c.output_bits * (size_t)(tiny.n + 1);
    encrypt(&k, &c, "a=-100 b=77 t=200,7,77,9", &in);
    for (int run = 0; run < 6; run++) {
        const sti_team team = {run == 1 ? 3 : run == 2 ? 2 : 1};
        const sti_evaluation e = {
            .circuit = &c, .key = &k.eval, .team = &team, .by_levels = run == 2};
        sti_evaluation_times times;
        const int isa = run == 3   ? STI_ISA_REF
                        : run == 4 ? STI_ISA_AVX2
                                   : STI_ISA_AVX512;
        if (!sti_isa_force((sti_isa)isa))
            continue;
        uint32_t *out = sti_alloc(words * 4, "test");
        assert_int_equal(sti_seal_evaluate(&e, &in, out, &times), STINT_OK);
        if (!first) {
            int value = 0;
            first = out;
            for (int i = 0; i < 16; i++)
                value |=
                    (int)(1 - (sti_seal_phase(&k.secret, out + i * (tiny.n + 1)) >> 31))
                    << i;
            assert_int_equal((int16_t)value, reference(-100, 77, t));
        } else {
            assert_memory_equal(first, out, words * 4);
            sti_free(out);
        }
    }
    sti_isa_force(STI_ISA_AVX512);
    sti_free(first);
    sti_ciphertexts_fini(&in);
    sti_circuit_fini(&c);
    free_keys(&k);
}

/* Few at a time, whose polynomials lie in the lanes, give the bits of eight at once:
 * for every number of polynomials that a set has. */
static void few_give_the_bits_of_eight(void **state)
{
    static const int ks[] = {1, 3, 5};
    (void)state;
    for (int s = 0; s < 3; s++) {
        const sti_seal_set set = {"small", 20, ks[s],   64,      2, 9,
                                  6,       3,  0x1p-17, 0x1p-28, 0};
        const int64_t width = set.n + 1;
        keys k;
        sti_secure_random random;
        uint32_t in[8 * 21], want[8 * 21], out[8 * 21];
        void *scratch = sti_alloc(sti_bootstrap_scratch_bytes(&set), "test");
        assert_int_equal(sti_secret_key_make(&set, &k.secret), STINT_OK);
        assert_int_equal(sti_eval_bodies_make(&k.secret, &one, &k.bodies), STINT_OK);
        assert_int_equal(sti_eval_key_unpack(&k.bodies, &one, &k.eval), STINT_OK);
        assert_int_equal(sti_secure_random_init(&random), STINT_OK);
        sti_secure_random_fill(&random, in, sizeof in);
        sti_bootstrap(&k.eval, 8, in, want, scratch);
        for (int count = 1; count <= STI_BOOTSTRAP_FEW; count++) {
            memset(out, 0xAA, sizeof out);
            for (int from = 0; from + count <= 8; from += count)
                sti_bootstrap(&k.eval, count, in + from * width, out + from * width,
                              scratch);
            assert_memory_equal(out, want, (size_t)(8 / count * count * width) * 4);
        }
        sti_free(scratch);
        free_keys(&k);
    }
}

/* Keys that were unpacked under another instruction set are the same. */
static void keys_unpack_to_the_same_bits(void **state)
{
    keys k;
    sti_eval_key other;
    (void)state;
    make_keys(&k);
    for (int isa = STI_ISA_REF; isa <= STI_ISA_AVX2; isa++) {
        if (!sti_isa_force((sti_isa)isa))
            continue;
        assert_int_equal(sti_eval_key_unpack(&k.bodies, &one, &other), STINT_OK);
        assert_memory_equal(other.boot, k.eval.boot,
                            (size_t)tiny.n * 256 * 4 * 2 * sizeof(double));
        sti_eval_key_fini(&other);
    }
    sti_isa_force(STI_ISA_AVX512);
    free_keys(&k);
}

static void two_keys_and_two_encryptions_differ(void **state)
{
    keys k, other;
    sti_circuit c;
    sti_ciphertexts x, y;
    (void)state;
    make_keys(&k);
    make_keys(&other);
    assert_memory_not_equal(k.secret.bit, other.secret.bit, 48 * 4);
    assert_memory_not_equal(k.bodies.seed, other.bodies.seed, 64);
    compile(&c);
    encrypt(&k, &c, "a=1 b=2 t=3,4,5,6", &x);
    encrypt(&k, &c, "a=1 b=2 t=3,4,5,6", &y);
    assert_memory_not_equal(x.word, y.word, (size_t)x.bits * 4);
    assert_memory_not_equal(x.seed, y.seed, sizeof x.seed);
    sti_ciphertexts_fini(&x);
    sti_ciphertexts_fini(&y);
    sti_circuit_fini(&c);
    free_keys(&k);
    free_keys(&other);
}

/* The sets of the program: at least 128 bits, and every cell within the set's name. */
static void sets_keep_what_their_names_say(void **state)
{
    stint_seal_set set;
    int sets = 0;
    (void)state;
    for (; stint_seal_set_at(sets, &set); sets++) {
        assert_true(set.security_bits >= 128);
        assert_true(set.fail_log2 <= -atof(set.name + 1));
        assert_true(set.eval_key_bytes <= 20000000);
        /* Noise no lower than the curve for 132 bits (TFHE-rs's secure_noise.rs). */
        const sti_seal_set *own;
        assert_int_equal(sti_seal_set_find(set.name, &own), STINT_OK);
        const double q2 = 4.0 * 0x1p-32 * 4.0 * 0x1p-32;
        const double low = q2 + exp2(5.31469187675068 - 0.0497829131652661 * own->n);
        const double poly =
            q2 + exp2(5.31469187675068 - 0.0497829131652661 * own->k * own->size);
        assert_true(own->sd * own->sd >= low);
        assert_true(own->poly_sd * own->poly_sd >= poly);
    }
    assert_int_equal(sets, 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_cell_is_right_and_as_noisy_as_predicted),
        cmocka_unit_test(a_long_chain_stays_right),
        cmocka_unit_test(a_program_gives_what_gcc_says),
        cmocka_unit_test(few_give_the_bits_of_eight),
        cmocka_unit_test(keys_unpack_to_the_same_bits),
        cmocka_unit_test(two_keys_and_two_encryptions_differ),
        cmocka_unit_test(sets_keep_what_their_names_say),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
