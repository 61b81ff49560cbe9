/* Cuts that a machine can have, within the room. */
#ifndef STI_SERVE_PARIS_PRIV_H
#define STI_SERVE_PARIS_PRIV_H

#include "serve/paris.h"

/* The twelve full cuts of a device of seven units: partitions of 1, 2, 3, 4, 7. */
extern const int sti_mig7_cut[STI_MIG7_CUTS][8];

/* Counts of partitions from those of devices. */
void sti_mig7_count(const sti_serve_tables *tables, sti_serve_cut *cut);

int sti_serve_cut_units(const sti_serve_tables *tables, const sti_serve_cut *cut);

/* Fit devices to the partitions that are wanted: each in turn gets the full cut that
 * has most of the units still lacking. */
void sti_mig7_fit(const sti_serve_tables *tables, const double *wanted,
                  sti_serve_cut *cut);

#endif
