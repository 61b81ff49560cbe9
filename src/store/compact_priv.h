/* What writing and reading of compact files share. */
#ifndef STI_STORE_COMPACT_PRIV_H
#define STI_STORE_COMPACT_PRIV_H

#define STI_COMPACT_HEAD    "head"
#define STI_COMPACT_WEIGHTS "weights"

/* Words of sti_weight_number. */
extern const char *const sti_compact_numbers[];

#endif
