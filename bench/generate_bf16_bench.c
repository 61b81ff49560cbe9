/* Tokens a second of one stream of text (GPT-2 124M unless told otherwise, random
 * weights) with matrices kept in float32 and in bfloat16, token by token in turns, so
 * that what else the machine does meets both.
 * usage: generate_bf16_bench [threads tokens depth width vocabulary model] */
#include "generate_bench_model.h"

enum { TOKENS_MAX = 512, KINDS = 2 };

static double median(double *x, int64_t count)
{
    qsort(x, (size_t)count, sizeof *x, compare);
    return x[count / 2];
}

int main(int argc, char **argv)
{
    static const char *const names[KINDS] = {"float32", "bfloat16"};
    int64_t arg[5] = {2, 48, 12, 768, 50257};
    for (int i = 1; i < argc && i <= 5; i++)
        arg[i - 1] = atoll(argv[i]);
    const int64_t tokens = arg[1] < TOKENS_MAX ? arg[1] : TOKENS_MAX;
    sti_decoder *d[KINDS] = {NULL};
    size_t bytes[KINDS];
    int32_t token[KINDS] = {0};
    double seconds[KINDS][TOKENS_MAX], ratio[TOKENS_MAX];
    for (int k = 0; k < KINDS; k++) {
        uint32_t state = 1;
        int32_t prompt[PROMPT] = {0};
        const sti_weight_source source = {&state, by_rows, random_runs};
        const sti_decoder_desc desc = {
            .name = argc > 6 ? argv[6] : "gpt",
            .model = {.depth = arg[2], .width = arg[3], .vocabulary = arg[4]},
            .context = CONTEXT,
            .capacity = CONTEXT,
            .weight_bits = k ? 16 : 0,
            .threads = (int)arg[0]};
        need(sti_decoder_create(&desc, &source, &d[k]));
        bytes[k] = sti_decoder_token_bytes(&desc);
        sti_decoder_run(d[k], prompt, PROMPT, 0, NULL);
    }
    for (int64_t i = 0; i < tokens; i++) {
        for (int k = 0; k < KINDS; k++)
            seconds[k][i] = draw(d[k], PROMPT + i, arg[4], &token[k]);
        ratio[i] = seconds[0][i] / seconds[1][i];
    }
    for (int k = 0; k < KINDS; k++) {
        printf("%-8s  %.1f tokens/s (median), %.1f MB a token\n", names[k],
               1 / median(seconds[k], tokens), (double)bytes[k] * 1e-6);
        sti_decoder_destroy(d[k]);
    }
    const double middle = median(ratio, tokens);
    printf("bfloat16 over float32, token by token: %.2f (quarters %.2f, %.2f)\n",
           middle, ratio[tokens / 4], ratio[3 * tokens / 4]);
    return 0;
}
