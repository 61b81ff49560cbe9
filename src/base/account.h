/* The peak memory of this process, stated part by part before it is taken.
 *
 * A command that can be given a budget adds up what it will allocate, each part under a
 * name of its own, then what the process takes beside (program, libraries, threads, a
 * reserve), and refuses by sti_account_check what would not fit, before any of it is
 * allocated. Bytes are resident ones. An account is a plain value: nothing is
 * allocated, names and details are borrowed (literals, most often), and copies are
 * independent. */
#ifndef STI_BASE_ACCOUNT_H
#define STI_BASE_ACCOUNT_H

#include <stdbool.h>
#include <stddef.h>

#include "stint/status.h"

enum { STI_ACCOUNT_PARTS = 20 };

typedef struct sti_account_part {
    const char *name;   /* "parameters" */
    const char *detail; /* a few words, or "" */
    size_t bytes;
} sti_account_part;

/* A zeroed one is empty. */
typedef struct sti_account {
    sti_account_part parts[STI_ACCOUNT_PARTS];
    int count;
    size_t total_bytes; /* of all parts */
} sti_account;

/* Add a part, of 0 bytes too. There may be STI_ACCOUNT_PARTS of them. */
void sti_account_add(sti_account *account, const char *name, const char *detail,
                     size_t bytes);
/* Where the total is less than `bytes`, which the process takes once and then gives
 * back, a part of that name makes up the difference. */
void sti_account_raise(sti_account *account, const char *name, const char *detail,
                       size_t bytes);
/* Bytes of a part; 0: there is none of that name. */
size_t sti_account_bytes(const sti_account *account, const char *name);
/* The part of most bytes, the first of equal ones; NULL: there is none. */
const sti_account_part *sti_account_largest(const sti_account *account);

/* ---- what the process takes beside what is allocated by name ---- */

/* Pages beyond our blocks and the data of program and libraries: the main stack, what
 * malloc keeps, a few pages of libraries of which next to nothing is used: 500 to 680
 * KiB from run to run. Above that, so that every run gets one figure. */
#define STI_ACCOUNT_OWN_BYTES ((size_t)704 << 10)
/* By which figures that the kernel counts are rounded up, so that two runs agree. */
#define STI_ACCOUNT_GRAIN_BYTES ((size_t)64 << 10)
/* A worker thread: the touched part of its stack, its malloc arena. */
#define STI_ACCOUNT_THREAD_BYTES ((size_t)40 << 10)
/* The reserve is this part of all that was counted: what differs from run to run. */
#define STI_ACCOUNT_RESERVE_SHARE 512

typedef struct sti_account_process {
    /* File names of the libraries that will run begin so; NULL ends the list. All of
     * their code is made resident (base/program.h). */
    const char *const *libraries;
    size_t apart_bytes; /* resident now, with parts of their own: blocks, for one */
    /* Count what other libraries hold as well, even where it is little: after those of
     * MPI, which keep what they took. */
    bool keeps_others;
} sti_account_process;

/* Bytes of program, libraries, main stack and heap of this process, whatever of them is
 * resident yet. Gives freed memory back to the system first (sti_memory_trim). One
 * figure for all runs of one program and one list of libraries, unless the host holds
 * more than a program of ours does: then what it holds, rounded up. */
size_t sti_account_process_bytes(const sti_account_process *process);

/* Add the lines of a command that has no better knowledge: "program", "threads" (those
 * beside the main one) and "reserve", which comes last. */
void sti_account_add_process(sti_account *account, const sti_account_process *process,
                             int threads);

/* The same where the process was measured already: by sti_account_process_bytes. */
void sti_account_add_measured(sti_account *account, size_t process_bytes, int threads);

/* ---- the answer ---- */

/* What a refusal says beside the figures. All may be left zero. */
typedef struct sti_account_advice {
    const char *dominates; /* what takes it; NULL: the largest part is named */
    const char *fits;      /* other ways that fit, "--batch 8 or "; NULL: none known */
    size_t least_bytes;    /* that would do with --memory; 0: the total */
} sti_account_advice;

/* STINT_OK where budget_bytes is 0 (no budget) or holds the total; else STINT_E_BUDGET
 * with what is needed, by how much it exceeds, what dominates, and what would fit.
 * advice may be NULL. */
stint_status sti_account_check(const sti_account *account, size_t budget_bytes,
                               const sti_account_advice *advice);

#endif
