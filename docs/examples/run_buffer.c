/* Run a trained network on an image from memory: here one of even grey.
 *
 *     cc run_buffer.c $(pkg-config --cflags --libs stint) -o run_buffer
 *     ./run_buffer runs/a/model.safetensors */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "stint/run.h"

static stint_status classify(const stint_model_file *model)
{
    stint_model_facts facts;
    stint_runner *runner = NULL;
    stint_model_describe(model, &facts);
    const size_t bytes = (size_t)(facts.height * facts.width * facts.channels);
    unsigned char *pixels = malloc(bytes);
    float *probability = malloc((size_t)facts.classes * sizeof *probability);
    stint_status st = pixels && probability ? STINT_OK : STINT_E_MEMORY;
    if (st == STINT_OK)
        st = stint_runner_create(model, &(stint_runner_desc){.threads = 1}, &runner);
    if (st == STINT_OK) {
        memset(pixels, 128, bytes);
        st = stint_runner_run(runner, STINT_RUN_PIXELS, pixels, 1, NULL, probability);
    }
    int best = 0;
    for (int c = 1; st == STINT_OK && c < facts.classes; c++)
        if (probability[c] > probability[best])
            best = c;
    if (st == STINT_OK)
        printf("grey: class %s, %.1f %%\n", facts.class_names[best],
               100.0 * (double)probability[best]);
    stint_runner_destroy(runner);
    free(probability);
    free(pixels);
    return st;
}

int main(int argc, char **argv)
{
    stint_model_file *model = NULL;
    if (argc != 2)
        return fprintf(stderr, "usage: run_buffer MODEL\n"), STINT_E_USAGE;
    stint_status st = stint_model_open(argv[1], &model);
    if (st == STINT_OK)
        st = classify(model);
    if (st != STINT_OK)
        fprintf(stderr, "%s\n", stint_last_error());
    stint_model_close(model);
    return (int)st;
}
