/* What this machine can do at most: rates of fused multiply-adds and of reading from
 * each level of memory, for rooflines and for the model that ranks loop strings.
 *
 * Measured once a host in about two seconds and stored as text under
 * $XDG_CACHE_HOME/stint or ~/.cache/stint, for this CPU's name and instruction set. A
 * stored file of another machine, or one that cannot be read, is ignored with a line in
 * the log and measured again. Nothing measured here ever changes a result. */
#ifndef STI_KERNEL_MACHINE_H
#define STI_KERNEL_MACHINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/text.h"
#include "stint/status.h"

typedef struct sti_machine {
    /* One core; a multiply-add counts two. 0: this CPU has no such instruction. */
    double f32_flop_per_s, bf16_flop_per_s, int8_op_per_s;
    /* One core reading from first, second and last-level cache and from far away. */
    double l1_bytes_per_s, l2_bytes_per_s, llc_bytes_per_s, dram_bytes_per_s;
    double dram_all_bytes_per_s; /* all threads together */
    double fork_s;               /* of an empty loop of the team of all threads */
    /* BRGEMM on one core, operands near: its rate, what each tile of registers costs
     * beside, and how fast operands are packed that lie in the second-level cache. */
    double tile_flop_per_s, tile_s, pack_bytes_per_s;
    /* Sizes as the system tells them, and for the last level as it behaves: what a
     * virtual machine may use of a shared cache is often less than its size. */
    int64_t l1_bytes, l2_bytes, llc_bytes;
    int64_t threads; /* behind dram_all_bytes_per_s and fork_s */
} sti_machine;

/* Needs 256 MiB for a moment. STINT_E_MEMORY. */
stint_status sti_machine_measure(sti_machine *machine_out);

/* What is stored for this host, without measuring. */
bool sti_machine_stored(sti_machine *machine_out);

/* Stored, or measured now and stored. */
stint_status sti_machine_now(sti_machine *machine_out);

/* Text of a machine as it is stored, and back; false: not this format or not this CPU,
 * and `why_out` says so. `text` is cut in pieces. */
void sti_machine_write(const sti_machine *machine, sti_text *out);
bool sti_machine_parse(char *text, sti_machine *machine_out, const char **why_out);

#endif
