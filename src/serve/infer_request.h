/* A request for an inference, as the Open Inference Protocol has it: REST with JSON
 * data, or with binary data behind the JSON (Triton's extension), or one encoded image
 * as the whole body. */
#ifndef STI_SERVE_INFER_REQUEST_H
#define STI_SERVE_INFER_REQUEST_H

#include "base/text.h"
#include "serve/served.h"

typedef enum sti_infer_output {
    STI_OUTPUT_PROBABILITIES, /* FP32 [batch, classes] */
    STI_OUTPUT_CLASS,         /* INT64 [batch] */
    STI_OUTPUT_LOGITS,        /* FP32 [batch, classes]; only if asked for */
    STI_OUTPUTS
} sti_infer_output;

typedef struct sti_infer_request {
    const sti_served *model;
    int batch;
    float *pixels;    /* [batch, height, width, channels], normalised; sti_alloc'ed */
    double timeout_s; /* 0: not said */
    char id[128];     /* "": none */
    char version[13]; /* of the weights that answered; set with the answer */
    bool wanted[STI_OUTPUTS], binary[STI_OUTPUTS];
    /* The answer: [batch, classes] each; sti_alloc'ed with the pixels. */
    float *probabilities, *logits;
} sti_infer_request;

/* What a request may ask for. */
typedef struct sti_infer_limits {
    int batch_most;
    size_t decode_bytes; /* of an encoded image: its pixels, and what decoding takes */
} sti_infer_limits;

/* body [bytes], NUL-terminated, is overwritten. json_bytes: of the JSON before binary
 * data; bytes: there is none. image: the body is an image file. *http_status_out: of a
 * failure, whose words are recorded. */
stint_status sti_infer_request_parse(const sti_served *model,
                                     const sti_infer_limits *limits, char *body,
                                     size_t bytes, size_t json_bytes, bool image,
                                     sti_infer_request *request_out,
                                     int *http_status_out);
void sti_infer_request_fini(sti_infer_request *request); /* a zeroed one is fine */

/* What it takes until its answer is sent, the answer's text among it. */
size_t sti_infer_request_bytes(const sti_infer_request *request);

/* Numbers of the answer that are written as text. */
int64_t sti_infer_answer_numbers(const sti_infer_request *request);

/* The answer as a body; *header_bytes_out: of the JSON where binary data follows, else
 * 0. */
void sti_infer_answer(const sti_infer_request *request, sti_text *out,
                      size_t *header_bytes_out);
/* What the model takes and gives. */
void sti_infer_metadata(const sti_served *model, const char *name, double sla_s,
                        int batch_most, sti_text *out);

#endif
