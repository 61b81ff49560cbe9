/* Any bytes as the body of a request for a text: refused, or a prompt and settings
 * within their bounds, whose stops end any text at the same place, however it comes.
 * The first byte says in which form. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "serve/text_request.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Where a text is cut that comes `step` bytes at a time. */
static size_t cut_at(const sti_text_request *r, const char *text, size_t length,
                     size_t step)
{
    char *so_far = malloc(length + 1);
    size_t safe = 0;
    bool stopped = false;
    if (!so_far)
        exit(1);
    for (size_t end = 0; end < length && !stopped;) {
        const size_t before = safe;
        end = end + step < length ? end + step : length;
        memcpy(so_far, text, end);
        so_far[end] = '\0';
        safe += sti_text_request_safe(r, so_far + safe, end - safe, &stopped);
        if (safe < before || safe > end)
            exit(1);
    }
    free(so_far);
    return stopped ? safe : length;
}

static void check(sti_text_request *r)
{
    static const char tail[] = "the cat stops and stopped at the stop";
    const sti_text_reply reply = {
        .model = "m", .version = "v", .finish = "stop", .drawn = 1};
    sti_text out = {0};
    int status;
    if (!r->prompt || r->draws < 1 || r->draws > STI_TEXT_DRAWS_MOST ||
        sti_sampler_check(&r->sampler) != STINT_OK)
        exit(1);
    const size_t whole = cut_at(r, tail, sizeof tail - 1, sizeof tail);
    for (size_t step = 1; step < 5; step++)
        if (cut_at(r, tail, sizeof tail - 1, step) != whole)
            exit(1);
    sti_text_answer(r, &reply, tail, &out);
    sti_text_event(r, &reply, tail, &out);
    sti_text_fini(&out);
    stint_tokenizer *tokenizer = NULL;
    if (stint_tokenizer_learn(STINT_TOKENIZER_BYTE, 256, "", 0, &tokenizer) != STINT_OK)
        exit(1);
    if (sti_text_request_encode(r, tokenizer, 20, 1, &status) == STINT_OK) {
        if (r->count < 1 || r->count > 20 || r->prompt)
            exit(1);
    } else if (status != 422) {
        exit(1);
    }
    stint_tokenizer_close(tokenizer);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    sti_text_request request;
    int status = 0;
    if (size == 0)
        return 0;
    char *body = malloc(size);
    if (!body)
        exit(1);
    memcpy(body, data + 1, size - 1);
    body[size - 1] = '\0';
    if (sti_text_request_parse(body, size - 1, data[0] & 1, data[0] & 2, &request,
                               &status) == STINT_OK)
        check(&request);
    else if (status < 400 || status > 599)
        exit(1);
    sti_text_request_fini(&request);
    free(body);
    return 0;
}
