/* Inside the data room: click data as text, sample by sample. */
#ifndef STI_DATA_CLICKS_TEXT_H
#define STI_DATA_CLICKS_TEXT_H

#include <stdio.h>

#include "base/file.h"
#include "base/text.h"
#include "data/clicks.h"

/* An id of a sample: a piece of the line. */
typedef struct sti_click_id {
    int field;
    const char *at;
    size_t length;
} sti_click_id;

/* What a column of a csv is. */
typedef struct sti_click_column {
    enum { STI_CLICK_SKIP, STI_CLICK_LABEL, STI_CLICK_NUMBER, STI_CLICK_ID } use;
    int index; /* of the number, or of the field */
    bool bag;
    char name[STI_CLICKS_NAME];
} sti_click_column;

typedef struct sti_click_text {
    const sti_clicks_desc *desc;
    FILE *file;
    char *line; /* of getline, freed with it */
    size_t capacity;
    int64_t number; /* of the line, counted from 1 */
    char separator;
    /* How the label is made of a column: its value, or a comparison. */
    char compare[3];
    double threshold;
    sti_click_column *column; /* [columns] of csv and criteo */
    int columns;
    int dense, fields;
    bool *is_dense; /* [STI_CLICKS_COLUMNS] of libsvm and libffm */
    /* The sample that was read. */
    float label;
    float *number_of; /* [dense] */
    sti_click_id *id; /* [id_count] */
    int64_t id_count, id_capacity;
    sti_sha256 hash; /* of all text so far */
} sti_click_text;

/* STINT_E_INPUT: a header that lacks what was asked for; STINT_E_USAGE: a list of
 * columns that is none. */
stint_status sti_click_text_open(const sti_clicks_desc *desc, sti_click_text *text);
/* The next sample; *more_out false: there is none. STINT_E_INPUT names file, line and
 * column. */
stint_status sti_click_text_next(sti_click_text *text, bool *more_out);
void sti_click_text_close(sti_click_text *text); /* also of a zeroed one */

#endif
