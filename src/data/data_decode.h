/* Inside the data room: what a thread decodes with. */
#ifndef STI_DATA_DATA_DECODE_H
#define STI_DATA_DATA_DECODE_H

#include "data/data_priv.h"

#define STI_DATA_FAILURE_BYTES 768

/* What one thread needs; on cache lines of its own. */
typedef struct sti_data_worker {
    sti_image_decoder *images;
    uint8_t *stored; /* a sample's bytes */
    uint8_t *source; /* its pixels before they are fitted */
    uint8_t *pixels; /* [h, w, c] */
    void *scratch;   /* of fitting */
    sti_image_info seen;
    sti_finding fault;
    uint64_t sums[3], squares[3];
    uint64_t shares[4]; /* of the hash of all samples, likewise */
    /* The first failure in a loop: loops are cut contiguously, so it is the lowest. */
    stint_status failed;
    int64_t failed_at;
    char failure[STI_DATA_FAILURE_BYTES];
} sti_data_worker;

struct sti_data_decoders {
    int count;
    sti_data_worker *workers; /* [count] */
};

/* Bytes of one decoded image. */
size_t sti_data_pixel_bytes(const stint_data *data);
/* A sample's pixels [height, width, channels] as every evaluation sees them. */
stint_status sti_data_decode_sample(const stint_data *data, int64_t index,
                                    sti_data_worker *worker, uint8_t *pixels_out);
/* The same for a training batch: where the augmentation says so, a part of the image
 * cut out at random. */
stint_status sti_data_decode_augmented(const stint_data *data, int64_t index,
                                       sti_data_worker *worker,
                                       const sti_data_augment *augment,
                                       uint8_t *pixels_out);

/* ---- failures of parallel loops ---- */

void sti_data_clear_failures(sti_data_decoders *decoders);
void sti_data_keep_failure(sti_data_worker *worker, int64_t at, stint_status status);
/* The failure at the lowest place, recorded anew; STINT_OK when there was none. */
stint_status sti_data_lowest_failure(const sti_data_decoders *decoders);

#endif
