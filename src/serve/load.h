/* An open-loop client: queries go out at the times drawn for them, and a latency counts
 * from that time, so that whatever holds the client up counts, too. */
#ifndef STI_SERVE_LOAD_H
#define STI_SERVE_LOAD_H

#include "serve/simulate.h"

typedef struct sti_load_desc {
    const char *url;   /* http://host:port, without a path */
    const char *model; /* NULL: the server's only one */
    const char *raw;   /* GET this path instead; NULL: infer */
    const sti_traffic *traffic;
    int64_t queries;   /* 0: by time */
    double duration_s; /* of arrivals */
    /* Prompts or images to send (load_data.h); NULL: images of noise. */
    const char *data;
    sti_answer_times *times; /* gets every answer; NULL: none is kept */
} sti_load_desc;

/* The batch of a query is its images, or the tokens that a text is asked for: whose
 * latency is that to the first of them. 200 is served, 429 and 503 are rejected, 504 is
 * late, all else is failed. Whether an answer was in time is the server's to say (its
 * SLA, from the model's metadata). Ends when all have been answered. STINT_E_PEER: no
 * such server; STINT_E_UNSUPPORTED: no libcurl. */
stint_status sti_serve_load(const sti_load_desc *desc, sti_serve_result *result_out);

#endif
