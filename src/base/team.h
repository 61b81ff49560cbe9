/* Threads: fixed-partition parallel loops.
 *
 * A loop has `pieces` pieces, a number that depends on the problem's shape alone;
 * pieces write disjoint results, so the bits do not depend on the number of threads. A
 * team may be used by one thread at a time. Worker threads run with FTZ/DAZ set; the
 * caller's MXCSR is restored. A piece runs on one worker, 0 <= worker < threads, so
 * scratch can be indexed by worker. Loops inside a piece (nested use of another team)
 * run serially. What a thread that is late has not begun the caller does itself, in its
 * name: a piece may wait for one that has begun, never for one to begin. Threads wait
 * spinning, for about a millisecond, then asleep. */
#ifndef STI_BASE_TEAM_H
#define STI_BASE_TEAM_H

#include <stdint.h>

#include "stint/status.h"

typedef struct sti_team {
    int threads; /* >= 1 */
} sti_team;

typedef void sti_piece_fn(void *arg, int64_t piece, int worker);

/* Run fn for pieces 0..pieces-1. Static contiguous partition: worker w gets pieces
 * [w*pieces/threads, (w+1)*pieces/threads). One thread: a plain loop on the caller,
 * with FTZ/DAZ set around it. */
void sti_team_run(const sti_team *team, int64_t pieces, sti_piece_fn *fn, void *arg);

/* As sti_team_run, but a worker that is done with a piece takes the next one that
 * nobody has: pieces begin in ascending order, and a thread that is slower has fewer of
 * them. Only for pieces whose results do not depend on who computes them. */
void sti_team_take(const sti_team *team, int64_t pieces, sti_piece_fn *fn, void *arg);

/* A debugging aid: with STINT_SLEEPS=SEED in the environment, workers sleep for up to a
 * millisecond before pieces chosen at random by the seed, so that whatever depends on
 * who comes first shows. Without it a loop pays for one comparison. */

/* Flush denormals to zero on this thread, as inside a piece, for work done between
 * loops; leave takes what enter gave and restores the caller's mode. */
unsigned sti_float_mode_enter(void);
void sti_float_mode_leave(unsigned saved);

/* The serial team, for lanes that are themselves pieces of a parallel loop. */
extern const sti_team sti_team_serial;

/* Threads to use: request > 0, else STINT_NUM_THREADS, else OMP_NUM_THREADS, else
 * min(affinity mask, cgroup quota). *why_out (may be NULL) is a short literal saying
 * which rule decided. STINT_E_USAGE for a value that is no positive number. */
stint_status sti_threads_choose(int request, int *threads_out, const char **why_out);

/* CPUs of the host; and those that this process is kept to, a bit each. */
enum { STI_CPUS_MOST = 1024 };
int sti_cpus_online(void);
void sti_cpus_allowed(uint8_t bits_out[STI_CPUS_MOST / 8]);

#endif
