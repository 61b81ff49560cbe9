/* How many pages a second a disk reads at random, past the page cache. */
#ifndef STI_RECOMMEND_DISK_RATE_H
#define STI_RECOMMEND_DISK_RATE_H

#include "base/async_io.h"

typedef struct sti_disk_probe {
    sti_paged_file file;
    char path[1100];
    uint64_t draw; /* reads so far: what the next page follows from */
} sti_disk_probe;

/* A file of 64 MiB in `folder`, gone when it is closed. STINT_E_IO. */
stint_status sti_disk_probe_open(const char *folder, sti_disk_probe *probe);
void sti_disk_probe_close(sti_disk_probe *probe); /* also of a zeroed one */
/* Pages of 4 KiB a second at so many reads under way, of some `seconds` of them. */
stint_status sti_disk_probe_reads(sti_disk_probe *probe, sti_async_way way, int depth,
                                  double seconds, double *per_s_out);

#endif
