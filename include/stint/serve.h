/* Serving: models of images and of text behind HTTP, each request answered within its
 * deadline or refused at once. Texts of a model are drawn together, each as it would be
 * alone; the deadline of a text is that of its first token.
 *
 * The machine is cut into partitions, threads that are kept to CPUs of their own. How
 * long a batch takes on each is measured first; from that and from the traffic that is
 * expected follows the cut (after PARIS), and while serving each request goes to the
 * smallest partition that still answers it in time (after ELSA; Kim, Choi and Rhu,
 * DAC'22). A request that no partition can answer in time gets status 429 before any
 * work.
 *
 *   const char *models[] = {"digits=runs/a/model.safetensors"};
 *   stint_serve_result result;
 *   stint_status st = stint_serve(&(stint_serve_desc){.models = models,
 *                                                     .model_count = 1,
 *                                                     .sla = "20ms"},
 *                                 &result);
 *
 * The call serves until stint_stop() (a signal handler may call it), then answers what
 * it has taken, and returns. stint_stop(STINT_OK) loads the models anew from their
 * files; what is wrong with one leaves its old weights in use. docs/serving.md
 * describes the protocol, the Open Inference Protocol over REST, and the subcommand
 * `stint serve`, which is this call. */
#ifndef STINT_SERVE_H
#define STINT_SERVE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "stint/status.h"
#include "stint/stop.h"

#ifdef __cplusplus
extern "C" {
#endif

/** What is served, where and how. Zero in a member: the standard that is named. */
typedef struct stint_serve_desc {
    /* Files or folders of runs, or of Hugging Face's layout with a tokeniser, each
     * "PATH" or "NAME=PATH"; without a name it is the folder's or file's.
     * [model_count], 1 to 16. */
    const char *const *models;
    int model_count;
    /* Time from the first line of a request to its answer: "20ms", or for each model
     * "a=20ms,b=1s". Wanted. */
    const char *sla;
    /* "127.0.0.1:8000" (standard); port 0: a free one; "unix:PATH". */
    const char *listen;
    /* A file that gets "HOST:PORT" when all is ready; NULL: none. */
    const char *address_file;
    /* Bound on the peak of the process; 0: none. */
    size_t memory_bytes;
    /* Threads, of which partitions are cut; 0: every CPU this process may run on. */
    int threads;
    /* Finer: so many equal shares of the threads' CPUs, each kept by a control group of
     * the system; 0: a CPU each. At most 100 a CPU, 1024 in all. */
    int units;
    /* How: "auto" (standard), "paris", or sizes in units as "1,1". */
    const char *cut;
    /* Share of the requests that are to be in time, which the cut is made for: the rest
     * may be those of the largest batches, which no partition answers in time then. 0:
     * all. */
    double quantile;
    /* 0: elsa, 1: fifs, 2: jsed, 3: random. */
    int policy;
    /* Take also what will be late; begin also what is late. */
    bool admit_all, serve_late;
    /* Most images of a batch, 1 to 256, and most texts that are drawn together, at most
     * 64; 0: 32. */
    int batch_max;
    /* With fifs: wait so long for a full batch. */
    double batch_delay_s;
    /* A trace of seconds,images, whose sizes are expected; NULL: all sizes alike. */
    const char *traffic;
    /* Latency tables to take in place of measuring, and a file to keep them in; NULL:
     * none. */
    const char *tables, *tables_out;
    /* Bounds: bytes of a body (0: 64 MiB), connections (0: 1024), seconds to answer
     * what has been taken when the end is asked for (0: 30). */
    size_t max_body_bytes;
    int max_connections;
    double drain_s;
    /* Called once, when all is ready, with the address. May be NULL. */
    void (*ready)(void *user, const char *address);
    void *user;
} stint_serve_desc;

/** What came of all requests for inference: together they are those that were sent. */
typedef struct stint_serve_result {
    /* Answered; refused at once, as they would have been late or the server had no
     * room; given up while they waited, as their time had gone by; wrong, or left
     * alone. */
    int64_t served, rejected, late, failed;
    /* Resident memory of the process at its highest, as it was announced and as it
     * was. */
    size_t planned_peak_bytes, peak_rss_bytes;
} stint_serve_result;

/** Serve until stint_stop(), then drain. STINT_OK: all that was taken has been
 * answered; STINT_E_TERMINATED: drain_s was too short. STINT_E_USAGE, STINT_E_INPUT:
 * what is wrong with the description, a model or a file; STINT_E_BUDGET: memory_bytes,
 * or the SLA for the largest batch, cannot be kept; STINT_E_IO: the address;
 * STINT_E_UNSUPPORTED: no libmicrohttpd, or units finer than a CPU without control
 * groups that this process may make. One call at a time. */
STINT_API stint_status stint_serve(const stint_serve_desc *desc,
                                   stint_serve_result *result_out);

/** What stint_serve would do, as JSON (docs/serving.md), with models measured but
 * nothing served. The caller frees *json_out by stint_serve_free. Fails as stint_serve
 * does. */
STINT_API stint_status stint_serve_explain(const stint_serve_desc *desc,
                                           char **json_out);
STINT_API void stint_serve_free(char *json); /* NULL is fine */

#ifdef __cplusplus
}
#endif

#endif
