/* Monotonic time. */
#ifndef STI_BASE_CLOCK_H
#define STI_BASE_CLOCK_H

#include <stdint.h>

int64_t sti_clock_ns(void);
/* Processor time of the calling thread: what it took, however busy the machine is. */
int64_t sti_clock_thread_ns(void);
static inline double sti_seconds_since(int64_t start_ns)
{
    return (double)(sti_clock_ns() - start_ns) * 1e-9;
}
double sti_clock_unix_s(void); /* wall clock, for log lines only */

#endif
