/* Inside the report: what was read of a run, and the writers of its sections. */
#ifndef STI_TRAIN_REPORT_PRIV_H
#define STI_TRAIN_REPORT_PRIV_H

#include <stdbool.h>
#include <stdint.h>

#include "base/memory.h"
#include "base/text.h"
#include "page/page.h"
#include "page/series.h"
#include "train/report.h"

/* ---- what was read (report_read.c) ---- */

/* A number that the log does not have. */
#define STI_REPORT_NONE STI_SERIES_NONE

/* Which of a point's values is what, in a series over steps and over epochs. */
enum {
    STI_STEP_LOSS,
    STI_STEP_ACCURACY,
    STI_STEP_LR,
    STI_STEP_RATE,
    STI_STEP_BATCH,
    STI_STEP_NOISE_SCALE
};
enum {
    STI_EPOCH_TRAIN_LOSS,
    STI_EPOCH_TRAIN_ACCURACY,
    STI_EPOCH_TEST_LOSS,
    STI_EPOCH_TEST_ACCURACY,
    STI_EPOCH_RATE,
    STI_EPOCH_SECONDS,
    STI_EPOCH_RSS
};

typedef struct sti_report_part {
    const char *name, *detail;
    double planned, measured; /* bytes; NaN: not known */
} sti_report_part;

enum { STI_REPORT_PARTS = 16 };

/* What goes from the forward to the backward half, and in which form. */
typedef struct sti_report_tensor {
    const char *name, *form;
    double bytes, held;
} sti_report_tensor;

/* A parameter of the part that is trained. */
typedef struct sti_report_trained {
    const char *name;
    double share, gain, bytes; /* gain NaN: not known */
} sti_report_trained;

typedef struct sti_report_error {
    int64_t index;
    int32_t label, predicted;
    double probability;
    const char *name;
} sti_report_error;

typedef struct sti_report_run {
    sti_arena *arena; /* of all texts */
    const char *folder;
    const char *network, *data, *cpu, *isa, *version, *threads_why, *status, *sha256,
        *net_why;             /* how bits of gradients were chosen last; NULL */
    const char **class_names; /* [classes] */
    int64_t *class_count, *class_correct; /* [classes], or NULL */
    int32_t classes;
    int64_t context;     /* tokens a sequence; 0: images */
    int64_t coordinates; /* of a field; 0: none */
    int64_t train_count, test_count, height, width, channels, batch, shards, steps,
        epochs, seed, parameters, threads, lanes, steps_done, resumes;
    double time, planned_peak, budget, test_accuracy, test_loss, train_loss, rate,
        seconds, peak_rss;
    sti_report_part part[STI_REPORT_PARTS];
    int parts;
    double slowdown;           /* expected, by the budget; NaN: not known */
    double slowdown_measured;  /* likewise, in an early step */
    sti_report_tensor *tensor; /* [tensors] */
    int tensors;
    sti_report_trained *trained; /* [trained_count], or NULL: everything is */
    int trained_count;
    sti_series step, epoch;
    bool step_in_epochs; /* x of `step`, where steps are of unequal size */
    char *recipe;        /* INI text, or NULL */

    bool has_errors;
    const char *errors_data, *errors_format;
    int64_t errors_size, errors_channels, errors_fit, errors_wrong, errors_count;
    double errors_validation;
    bool errors_nested;
    sti_report_error error[STI_REPORT_ERRORS];
    int errors;
    const stint_data *test; /* of the run that has just ended; or NULL */
} sti_report_run;

stint_status sti_report_read(const char *folder, sti_report_run *run);
void sti_report_run_fini(sti_report_run *run);
/* A class's name; "class 7" where the log has none. */
const char *sti_report_class(const sti_report_run *run, int32_t c);

/* The log counts images, or sequences of so many tokens: its rate times the scale is in
 * what the words name. */
double sti_report_rate_scale(const sti_report_run *run);
const char *sti_report_rate_words(const sti_report_run *run);

/* ---- sections (report_list.h) ---- */

/* Appends a section to page->text, or nothing where the run has nothing to show there.
 * What was appended may be flushed to the page's file at any time. A failure ends the
 * page; memory that ran out in the text itself is seen by whoever flushes it. */
typedef stint_status sti_report_writer(const sti_report_run *run, sti_page_file *page);

#define STI_REPORT(name) sti_report_writer sti_report_add_##name;
#include "train/report_list.h"
#undef STI_REPORT

#endif
