/* Inside the report: what was read of a run, and the writers of its sections. */
#ifndef STI_TRAIN_REPORT_PRIV_H
#define STI_TRAIN_REPORT_PRIV_H

#include <math.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/memory.h"
#include "base/text.h"
#include "train/report.h"

/* ---- what was read (report_read.c) ---- */

/* A number that the log does not have. */
#define STI_REPORT_NONE ((double)NAN)

enum { STI_REPORT_VALUES = 7 };

typedef struct sti_report_point {
    double x;                        /* step or epoch */
    double value[STI_REPORT_VALUES]; /* NaN: absent */
} sti_report_point;

/* A series of constant size: when full, neighbours are averaged two by two. */
typedef struct sti_report_series {
    sti_report_point *point; /* [STI_REPORT_POINTS] */
    int count;
    sti_report_point pending; /* sums of the points not yet enough for one */
    int pending_count, each;  /* points read for one kept */
} sti_report_series;

enum { STI_REPORT_POINTS = 1024 };

enum { STI_STEP_LOSS, STI_STEP_ACCURACY, STI_STEP_LR, STI_STEP_RATE };
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
    int64_t context; /* tokens a sequence; 0: images */
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
    sti_report_series step, epoch;
    char *recipe; /* INI text, or NULL */

    bool has_errors;
    const char *errors_data, *errors_format;
    int64_t errors_size, errors_channels, errors_wrong, errors_count;
    sti_report_error error[STI_REPORT_ERRORS];
    int errors;
} sti_report_run;

stint_status sti_report_read(const char *folder, sti_report_run *run);
void sti_report_run_fini(sti_report_run *run);
/* A class's name; "class 7" where the log has none. */
const char *sti_report_class(const sti_report_run *run, int32_t c);

/* ---- forms of activations (report_forms.c) ---- */

void sti_report_forms_add(const sti_report_run *run, sti_text *out);

/* ---- packed activations (report_bounds.c) ---- */

void sti_report_bounds_add(const sti_report_run *run, sti_text *out);

/* ---- charts (report_svg.c) ---- */

typedef struct sti_report_line {
    const sti_report_series *series;
    int value;
    double x_scale, y_scale; /* drawn at x * x_scale, y * y_scale */
    const char *style;       /* CSS class: "train", "test", "plain" */
    const char *label;
    bool dots; /* a dot with a tooltip at every point */
} sti_report_line;

typedef struct sti_report_chart {
    const char *title, *x_label, *unit; /* unit follows the numbers of the y axis */
    const sti_report_line *line;
    int lines;
    bool from_zero;
    double y_max; /* the axis never goes beyond; NaN: no bound */
} sti_report_chart;

/* A figure with title, legend and an inline SVG; nothing when no line has a point. */
void sti_report_chart_add(const sti_report_chart *chart, sti_text *out);

/* ---- images (report_sheet.c) ---- */

/* Called after every picture, so that the page can be flushed to its file. */
typedef stint_status sti_report_flush_fn(void *user, sti_text *out);
stint_status sti_report_sheet_add(const sti_report_run *run, sti_text *out,
                                  sti_report_flush_fn *flush, void *user);

/* ---- style (report_style.c) ---- */

extern const char *const sti_report_style[]; /* NULL-ended */

#endif
