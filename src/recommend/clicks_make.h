/* Made-up clicks: ids by Zipf's law, labels from a hidden model. */
#ifndef STI_RECOMMEND_CLICKS_MAKE_H
#define STI_RECOMMEND_CLICKS_MAKE_H

#include <stdbool.h>
#include <stdint.h>

#include "stint/status.h"

enum { STI_MADE_FIELDS = 512, STI_MADE_NUMBERS = 13 };

typedef struct sti_made_desc {
    const char *path;
    int64_t rows;
    int64_t
        ids[STI_MADE_FIELDS]; /* of each field; none: those of Criteo's Kaggle set */
    int fields;
    double zipf;  /* exponent; 0: uniform */
    double drift; /* of the ids of a field, the share that popularity moves on by */
    int64_t bags; /* ids of a field at most, at random from 1; 0 or 1: one */
    uint64_t seed;
} sti_made_desc;

typedef struct sti_made {
    int64_t rows, positives;
    int fields;
    double auc;  /* of the hidden model's own scores: no other can expect more */
    bool criteo; /* the format; else csv */
} sti_made;

/* Write them: in Criteo's format where fields are 26 without bags, else csv with a
 * header (label, I1.., C1..; a bag's ids apart by |). The hidden logit of a sample is a
 * sum of a normal number for each id and a weight for each number. STINT_E_IO;
 * STINT_E_MEMORY. */
stint_status sti_clicks_make(const sti_made_desc *desc, sti_made *made_out);

#endif
