/* The report of a run: one self-contained HTML page, rebuilt at any time from what the
 * run left in its folder. Training writes these files; the report only reads them.
 *
 * log.jsonl - one JSON object a line; "event" tells what it is, unknown fields and
 * events are passed over, absent ones leave their part of the page out:
 *
 *   start   network, data (absolute path), classes, class_names [..], train_count,
 *           test_count, height, width, channels, batch, shards, steps, epochs, seed,
 *           parameters, threads, threads_why, lanes, cpu, isa, version, time (unix),
 *           planned_peak_bytes, budget_bytes (0: none),
 *           parts [{name, detail, bytes}, ..] as in stint_plan_result, slowdown,
 *           tensors [{name, form, bytes, held_bytes}, ..] likewise; where a part is
 *           trained also trained [{tensor, share, gain (null: not known), bytes}, ..]
 *   resume  step
 *   step    step (counted from 1), loss, accuracy (0..1, both of the training batches
 *           since the last such line), lr, images_per_s, batch (images of that step),
 *           noise_scale (images, see train/grow_noise.h), epoch (those done, with a
 *           fraction, where batches grow)
 *   epoch   epoch (counted from 1), step, train_loss, train_accuracy, test_loss,
 *           test_accuracy (absent or null when not evaluated), images_per_s, seconds,
 *           rss_bytes
 *   state   step, sha256 of all weights, statistics and optimiser state, tensors
 *           {name: first 16 digits of its own SHA-256, ..}; see run.hash_every
 *   bounds  step, rows [{layer, ..}]: packed tensors, see train/run_log.c
 *   slowdown  step, expected, measured: times as long as without a budget
 *   shrink  step, compression (0: the direct one), mu, distance, multipliers, loss,
 *           compressed_loss (of held-out images), chosen, nonzeros, weights; of method
 *           click phase ("select" with correlation, "hard" with nonzeros, weights)
 *   growth  step, rows [{layer, bytes, capacity}, ..]: packed blocks that were too
 * small plan    step, planned_peak_bytes, packed, lanes, slowdown: what followed end
 * status ("ok" or the name of a status), test_accuracy, test_loss, train_loss,
 * images_per_s, seconds, peak_rss_bytes, weights_sha256, steps, measured [{name,
 * bytes}, ..] (bytes really taken, by the names of parts), class_count [..],
 * class_correct [..] of the last evaluation of the test split
 *
 * When a run was resumed, later lines of a step or epoch replace earlier ones.
 *
 * errors.json - the misclassified test images that the page shows, surest first:
 *   {data, format, size, channels, fit, validation (as in stint_data_desc), wrong,
 * count, errors [{index, label, predicted, probability, name}, ..]} index is the
 * sample's in the test split of `data`; at most STI_REPORT_ERRORS.
 *
 * recipe.ini - the resolved recipe, shown as it is. */
#ifndef STI_TRAIN_REPORT_H
#define STI_TRAIN_REPORT_H

#include "stint/data.h"

#define STI_REPORT_ERRORS 48

/* Write folder/report.html, atomically. Streams its inputs: a few MiB whatever the
 * length of the log, plus the index of the test split while its images are drawn (so
 * call it when the run's own memory is free). A missing errors.json, or data that is
 * not there any more, leaves the sheet out and says so on the page. STINT_E_INPUT:
 * no log, or not one of ours; STINT_E_IO; STINT_E_MEMORY. */
stint_status sti_report_write(const char *folder);
/* The same at the end of a run whose test images are still open (NULL: they are not),
 * so that they need not be opened again. */
stint_status sti_report_write_of(const char *folder, const stint_data *test);

#endif
