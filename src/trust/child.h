/* Runs of the program itself as child processes: each with its own threads, instruction
 * set and memory, which one process cannot have twice.
 *
 * A child's standard output and error go to files. It gets none of the STINT_ variables
 * of this process but those it is given, and ends when this process does. */
#ifndef STI_TRUST_CHILD_H
#define STI_TRUST_CHILD_H

#include <sys/types.h>

#include "base/memory.h"
#include "stint/status.h"

#define STI_CHILD_WORDS 64

/* A command line and variables in the making; everything is in the arena. */
typedef struct sti_command {
    sti_arena *arena;
    const char *word[STI_CHILD_WORDS + 1]; /* [0] is the program */
    int words;
    const char *variable[4]; /* "NAME=value" */
    int variables;
    const char *stdout_path, *stderr_path; /* NULL: nowhere */
    bool failed;                           /* out of memory, or too many words */
} sti_command;

void sti_command_add(sti_command *command, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
void sti_command_set_variable(sti_command *command, const char *name,
                              const char *value);

typedef struct sti_child {
    pid_t pid; /* 0: none */
    const sti_command *command;
    bool stopping; /* was asked to stop */
} sti_child;

/* STINT_E_IO when it cannot be started. The command must outlive the child. */
stint_status sti_child_start(const sti_command *command, sti_child *child_out);
/* Has it ended? Then *status_out is what its exit code says, with its last words
 * recorded, and child->pid is 0. Hands a stop that was asked of this process on. */
bool sti_child_poll(sti_child *child, stint_status *status_out);
/* Until it has ended. */
stint_status sti_child_wait(sti_child *child);
stint_status sti_child_run(const sti_command *command);
/* A moment between polls. */
void sti_child_pause(void);

#endif
