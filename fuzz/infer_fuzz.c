/* Any bytes as the body of a request for inference: refused, or images whose numbers
 * are finite. The first byte says how much of it is JSON. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/finite.h"
#include "base/recipe.h"
#include "serve/infer_request.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(const sti_infer_request *r)
{
    sti_text text = {0};
    size_t head;
    if (sti_first_not_finite(r->pixels, r->batch * 12) >= 0)
        exit(1);
    sti_infer_answer(r, &text, &head);
    if (head > text.length)
        exit(1);
    sti_text_fini(&text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static stint_model_file file = {
        .norm = {.mean = {0.5f, 0.5f, 0.5f}, .deviation = {0.25f, 0.25f, 0.25f}},
        .weights_sha256 = "0123456789abcdef"};
    const sti_served model = {.name = "m",
                              .file = &file,
                              .height = 2,
                              .width = 2,
                              .channels = 3,
                              .classes = 2};
    const sti_infer_limits limits = {.batch_most = 4, .decode_bytes = 1 << 20};
    sti_infer_request request;
    int status = 0;
    if (!file.recipe &&
        sti_recipe_parse("[model]\nname = mlp\n", "fuzz", &file.recipe) != STINT_OK)
        exit(1);
    if (size == 0)
        return 0;
    const size_t bytes = size - 1;
    const size_t json = bytes > 0 ? bytes - data[0] % (bytes + 1) : 0;
    char *body = malloc(bytes + 1);
    if (!body)
        exit(1);
    memcpy(body, data + 1, bytes);
    body[bytes] = '\0';
    if (sti_infer_request_parse(&model, &limits, body, bytes, json, data[0] == 255,
                                &request, &status) == STINT_OK)
        check(&request);
    else if (status < 400 || status > 599)
        exit(1);
    sti_infer_request_fini(&request);
    free(body);
    return 0;
}
