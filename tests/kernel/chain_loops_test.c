/* Chains against their functions one after another, bit for bit: random programs on
 * every instruction set, for sizes about tiles and pieces, operands that repeat,
 * results over operands. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/cpu.h"
#include "base/rng.h"
#include "kernel/elementwise/chain_loops.h"

static const int64_t sizes[] = {1, 7, 255, 256, 257, 1000, 16384, 16640};
#define SIZES ((int)(sizeof sizes / sizeof *sizes))

enum { INPUTS = 4, STEPS = 12 };

static const sti_team team = {.threads = 2};
static uint64_t drawn;

static uint32_t draw(uint32_t below)
{
    uint32_t w[4];
    sti_random4(7, STI_STREAM_TEST, drawn++, 0, w);
    return w[0] % below;
}

/* Inputs: 0 whole, 1 a row of 3, 2 a column of groups of 5, 3 a scalar. */
static void fill_inputs(int64_t n, float **data, sti_chain_input *in)
{
    const int64_t counts[INPUTS] = {n, 3, (n + 4) / 5, 1};
    for (int i = 0; i < INPUTS; i++) {
        data[i] = calloc((size_t)counts[i], sizeof(float));
        for (int64_t k = 0; k < counts[i]; k++)
            data[i][k] = ((float)draw(2001) - 1000) / 300;
        in[i] = (sti_chain_input){data[i],
                                  i == 2   ? 5
                                  : i == 3 ? n
                                           : 1,
                                  i == 3 ? 1 : counts[i]};
    }
}

/* Steps read inputs and earlier steps; the last one is result 0, two others are results
 * 1 and 2, and the rest lie in slots of their own. */
static void draw_program(sti_chain_program *p, uint8_t *place)
{
    *p = (sti_chain_program){.steps = STEPS, .inputs = INPUTS, .outputs = 3};
    for (int s = 0; s < STEPS; s++) {
        sti_chain_step *step = &p->step[s];
        place[s] = (uint8_t)(s == STEPS - 1 ? STI_CHAIN_OUTPUT
                             : s == 3       ? STI_CHAIN_OUTPUT + 1
                             : s == 7       ? STI_CHAIN_OUTPUT + 2
                                            : s);
        step->to = place[s];
        step->binary = (uint8_t)draw(2);
        step->kind =
            (uint8_t)(step->binary ? draw(STI_BINARY_POWER) : draw(STI_UNARY_COUNT));
        step->p = 0.75f;
        uint8_t *operand[2] = {&step->a, &step->b};
        for (int k = 0; k < 2; k++) {
            const int i = (int)draw((uint32_t)(INPUTS + s));
            *operand[k] =
                i < INPUTS ? (uint8_t)(STI_CHAIN_INPUT + i) : place[i - INPUTS];
        }
    }
}

/* The same program with whole arrays in between. */
static void run_plainly(const sti_chain_program *p, int64_t n,
                        const sti_chain_input *in, float *array[256])
{
    float *spread[INPUTS];
    for (int i = 0; i < INPUTS; i++) {
        spread[i] = malloc((size_t)n * sizeof(float));
        for (int64_t k = 0; k < n; k++)
            spread[i][k] = in[i].data[k / in[i].repeat % in[i].period];
    }
    for (int s = 0; s < p->steps; s++) {
        const sti_chain_step *step = &p->step[s];
        const uint8_t code[2] = {step->a, step->b};
        const float *x[2];
        for (int k = 0; k < 2; k++)
            x[k] = code[k] >= STI_CHAIN_INPUT && code[k] < STI_CHAIN_OUTPUT
                       ? spread[code[k] - STI_CHAIN_INPUT]
                       : array[code[k]];
        if (step->binary)
            sti_binary_f32(&team, (sti_binary)step->kind, n, x[0], x[1],
                           array[step->to]);
        else
            sti_unary_f32(&team, (sti_unary)step->kind, n, step->p, x[0],
                          array[step->to]);
    }
    for (int i = 0; i < INPUTS; i++)
        free(spread[i]);
}

static void one_program(int64_t n)
{
    sti_chain_program p;
    sti_chain_input in[INPUTS];
    uint8_t place[STEPS];
    float *data[INPUTS], *array[256] = {NULL}, *out[3];
    draw_program(&p, place);
    fill_inputs(n, data, in);
    for (int s = 0; s < STEPS; s++)
        array[place[s]] = malloc((size_t)n * sizeof(float));
    run_plainly(&p, n, in, array);
    for (int o = 0; o < 3; o++)
        out[o] = malloc((size_t)n * sizeof(float));
    float *const third = out[2];
    if (n % 2)
        out[2] = NULL; /* not wanted, yet perhaps read on the way */
    sti_chain_f32(&team, &p, n, in, out);
    for (int o = 0; o < 3; o++)
        if (out[o])
            assert_memory_equal(out[o], array[STI_CHAIN_OUTPUT + o],
                                (size_t)n * sizeof(float));
    free(out[0]);
    out[0] = data[0]; /* over the operand */
    sti_chain_f32(&team, &p, n, in, out);
    assert_memory_equal(out[0], array[STI_CHAIN_OUTPUT], (size_t)n * sizeof(float));
    for (int s = 0; s < STEPS; s++)
        free(array[place[s]]);
    for (int i = 0; i < INPUTS; i++)
        free(data[i]);
    free(out[1]);
    free(third);
}

static void chains_have_the_bits_of_their_steps(void **state)
{
    const sti_isa best = sti_isa_now();
    (void)state;
    for (int isa = 0; isa <= (int)best; isa++) {
        sti_isa_force((sti_isa)isa);
        for (int s = 0; s < SIZES; s++)
            for (int k = 0; k < (sizes[s] > 1000 ? 4 : 12); k++)
                one_program(sizes[s]);
    }
    sti_isa_force(best);
}

/* Result 0 is written first and lies over operand 0, which is read after that. */
static void early_results_do_not_disturb(void **state)
{
    const sti_chain_program p = {
        .steps = 2,
        .inputs = 1,
        .outputs = 2,
        .step = {{.kind = STI_UNARY_NEG, .a = STI_CHAIN_INPUT, .to = STI_CHAIN_OUTPUT},
                 {.binary = 1,
                  .kind = STI_BINARY_ADD,
                  .a = STI_CHAIN_INPUT,
                  .b = STI_CHAIN_INPUT,
                  .to = STI_CHAIN_OUTPUT + 1}}};
    float x[700], twice[700];
    float *const out[2] = {x, twice};
    (void)state;
    for (int i = 0; i < 700; i++)
        x[i] = (float)i;
    sti_chain_f32(&team, &p, 700, &(sti_chain_input){x, 1, 700}, out);
    for (int i = 0; i < 700; i++) {
        assert_true(x[i] == (float)-i);
        assert_true(twice[i] == (float)(2 * i));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(chains_have_the_bits_of_their_steps),
        cmocka_unit_test(early_results_do_not_disturb),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
