/* How fast this host does what trainings are made of, for the time that a plan expects
 * (svm_expect.h). Measured once a host in about a second and kept as svm.txt beside
 * machine.txt (kernel/machine/figures.h). Nothing measured here ever changes a result.
 */
#ifndef STI_SVM_SVM_RATES_H
#define STI_SVM_SVM_RATES_H

#include <stdint.h>

#include "stint/status.h"

typedef struct sti_svm_rates {
    /* One core. Tiles of dense rows: u.v in double and in float, a multiply-add counts
     * two; entries made of u.v by exp; terms of |u_c - v_c|. Sparse rows: terms of u.v
     * for every entry of v, which meets eight rows of u at once. */
    double product_flop_per_s, product_f32_flop_per_s, finish_per_s, apart_per_s,
        spread_per_s;
    /* Tiles times vectors, both halves: operations where a tile is near, and bytes of
     * tiles that come from far away, by one core and by all threads together. */
    double apply_flop_per_s, apply_bytes_per_s, apply_all_bytes_per_s;
    int64_t threads; /* behind apply_all_bytes_per_s */
} sti_svm_rates;

/* Kept, or measured now and kept; that needs 128 MiB for a moment. STINT_E_MEMORY. */
stint_status sti_svm_rates_now(sti_svm_rates *rates_out);

#endif
