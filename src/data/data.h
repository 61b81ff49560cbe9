/* The data room for the rooms above it: decoding, normalisation, batches, and what they
 * will take in memory. Opening and describing a dataset is in stint/data.h.
 *
 * Nothing here depends on the number of threads: a sample's pixels depend on its bytes,
 * its augmentation on (seed, epoch, sample id), the normalisation on exact integer
 * sums. */
#ifndef STI_DATA_DATA_H
#define STI_DATA_DATA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/team.h"
#include "stint/data.h"

/* Per-channel constants of (x / 255 - mean) / deviation; channels beyond the image's
 * unused. */
typedef struct sti_data_norm {
    float mean[3], deviation[3];
} sti_data_norm;

/* Augmentation of one batch. All zero: none (evaluation). */
typedef struct sti_data_augment {
    int crop_pad; /* random crop out of the image padded by so many zero pixels */
    bool flip;    /* mirror left to right with probability one half */
    /* A part cut out at random, whose share of the picture's area is at least this,
     * takes the place of the whole; 0: none. The dataset must have been opened with
     * `cuts`, and its pixels not kept (sti_data_keep). */
    double scale_crop;
    uint64_t seed, epoch;
} sti_data_augment;

/* Decoder handles and buffers of `workers` threads, made before a run; decoding
 * allocates nothing of ours. One set serves one team at a time: each lane has its own.
 */
typedef struct sti_data_decoders sti_data_decoders;
stint_status sti_data_decoders_create(const stint_data *data, int workers,
                                      sti_data_decoders **decoders_out);
void sti_data_decoders_destroy(sti_data_decoders *decoders); /* NULL is fine */

/* Decode every sample once and keep the pixels, for those who go through a split many
 * times: from then on nothing is read from files. Bytes: as sti_data_kept_bytes says.
 * To be called before others use the dataset; a failure leaves it as it was. */
size_t sti_data_kept_bytes(const stint_data *data);
stint_status sti_data_keep(stint_data *data, const sti_team *team,
                           sti_data_decoders *decoders);

/* stint_data_has_split of data whose classes may have folders within them. */
bool sti_data_has_part(const char *path, const char *format, stint_data_split split,
                       bool nested);

/* Is there a picture of another size than the first? Reads heads of files until one is
 * found; what cannot be read is left for others to tell. STINT_E_MEMORY. */
stint_status sti_data_find_mixed(const stint_data *data, bool *mixed_out);

/* SHA-256 of what a split means: size of images, names of classes, labels and pixels in
 * the order of the samples. */
stint_status sti_data_sha256(const stint_data *data, sti_data_decoders *decoders,
                             char hex_out[65]);

/* One sample's pixels [height, width, channels] u8. STINT_E_INPUT or _IO names the
 * sample and what is wrong. Different workers may decode at once. */
stint_status sti_data_decode(const stint_data *data, int64_t index,
                             sti_data_decoders *decoders, int worker,
                             uint8_t *pixels_out);
int32_t sti_data_label(const stint_data *data, int64_t index);
/* Samples of each class, counts_out [classes]. */
void sti_data_count_classes(const stint_data *data, int64_t *counts_out);
/* A line of the log that names classes without samples, if there are any. */
stint_status sti_data_tell_absent(const stint_data *data);
/* "train/cat/0001.jpg", "train-images-idx3-ubyte image 17". Slow for tars (walks them);
 * cut to bytes - 1. */
void sti_data_sample_name(const stint_data *data, int64_t index, char *text_out,
                          size_t bytes);

/* Decode, augment and normalise `count` samples.
 * samples [count]: indices, -1 for padding (zeros and label -1).
 * x_out [count, height, width, channels] f32, labels_out [count]; labels_out may be
 * NULL. augment may be NULL. decoders must have at least team->threads workers. The
 * failure of the lowest position is what is reported. Allocates nothing of ours. */
stint_status sti_data_batch(const stint_data *data, const sti_team *team,
                            sti_data_decoders *decoders, const int32_t *samples,
                            int64_t count, const sti_data_augment *augment,
                            const sti_data_norm *norm, float *x_out,
                            int32_t *labels_out);

/* One image file that is in no dataset, as [height, width, channels] u8, upright, and
 * fitted where its own size differs. STINT_E_INPUT or _IO names the file. */
stint_status sti_data_read_image(const char *path, stint_data_fit fit, int64_t height,
                                 int64_t width, int64_t channels, uint8_t *pixels_out);
/* The same of an image file's bytes in memory. */
stint_status sti_data_decode_image(const uint8_t *stored, size_t n_bytes,
                                   stint_data_fit fit, int64_t height, int64_t width,
                                   int64_t channels, uint8_t *pixels_out);

/* Compressed or packed data in the place of what can be read: STINT_E_INPUT with the
 * command that unpacks it; STINT_OK: nothing of the kind is there. */
stint_status sti_data_packed(const char *path, stint_data_split split);

/* Tell the system that these samples will be read soon;
 * returns at once, never fails. */
void sti_data_prefetch(const stint_data *data, const int32_t *samples, int64_t count);

/* Mean and deviation of each channel over the whole split, by exact integer sums. Reads
 * and decodes everything once, so it also finds the first broken sample. progress may
 * be NULL. */
stint_status sti_data_measure(const stint_data *data, const sti_team *team,
                              sti_data_decoders *decoders,
                              stint_data_progress_fn *progress, void *user,
                              sti_data_norm *norm_out);

/* What was measured with these decoders, to tell one split from another: a hash of the
 * labels and pixels of all its samples, each at its place. No SHA-256 of anything. */
void sti_data_measured_hash(const sti_data_decoders *decoders, char hex_out[65]);

/* Peak bytes of the data pipeline with this many decoder sets of so many workers: the
 * index, decoders, and what the image libraries take while decoding. Batches are the
 * caller's. */
size_t sti_data_memory_bytes(const stint_data *data, int decoder_sets, int workers);

#endif
