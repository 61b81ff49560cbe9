#define _GNU_SOURCE /* O_CLOEXEC, vfork */
#include "trust/child.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/fail.h"
#include "base/file.h"
#include "base/stop.h"

extern char **environ;

enum { WORD_BYTES = 4096, PAUSE_NS = 5000000, LAST_WORDS = 1500 };
#define STDERR_MOST ((size_t)1 << 26)

void sti_command_add(sti_command *c, const char *format, ...)
{
    char text[WORD_BYTES];
    va_list args;
    va_start(args, format);
    int length = vsnprintf(text, sizeof text, format, args);
    va_end(args);
    char *copy = length >= 0 && length < WORD_BYTES && c->words < STI_CHILD_WORDS
                     ? sti_arena_strdup(c->arena, text)
                     : NULL;
    if (copy)
        c->word[c->words++] = copy;
    else
        c->failed = true;
}

void sti_command_set_variable(sti_command *c, const char *name, const char *value)
{
    char *copy = sti_arena_printf(c->arena, "%s=%s", name, value);
    if (copy && c->variables < 4)
        c->variable[c->variables++] = copy;
    else
        c->failed = true;
}

/* A setting of the machine stays; one of a recipe is in the recipe already. */
static bool is_passed_on(const char *variable)
{
    return strncmp(variable, "STINT_", 6) != 0 ||
           strncmp(variable, "STINT_LOOPS=", 12) == 0;
}

static char **child_environment(const sti_command *c)
{
    int count = 0, kept = 0;
    while (environ[count])
        count++;
    char **list =
        sti_arena_alloc(c->arena, (size_t)(count + c->variables + 1) * sizeof *list);
    for (int i = 0; list && i < count; i++)
        if (is_passed_on(environ[i]))
            list[kept++] = environ[i];
    for (int i = 0; list && i < c->variables; i++)
        list[kept++] = (char *)(uintptr_t)c->variable[i];
    return list;
}

static int open_output(const char *path)
{
    return path ? open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666)
                : open("/dev/null", O_WRONLY | O_CLOEXEC);
}

/* In the child: only what is safe between fork and exec. */
static void become(const sti_command *c, char **environment, pid_t parent, int in,
                   int out, int err)
{
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (getppid() == parent && dup2(in, 0) >= 0 && dup2(out, 1) >= 0 &&
        dup2(err, 2) >= 0)
        execve(c->word[0], (char **)(uintptr_t)c->word, environment);
    _exit(127);
}

stint_status sti_child_start(const sti_command *c, sti_child *child)
{
    const pid_t parent = getpid();
    char **environment = c->failed ? NULL : child_environment(c);
    stint_status st = STINT_OK;
    *child = (sti_child){.command = c};
    if (!environment)
        return sti_fail(STINT_E_MEMORY, "out of memory for a command line");
    int in = open("/dev/null", O_RDONLY | O_CLOEXEC);
    int out = open_output(c->stdout_path), err = open_output(c->stderr_path);
    if (in < 0 || out < 0 || err < 0) {
        st = sti_fail_errno("%s: cannot be written",
                            out < 0 && c->stdout_path   ? c->stdout_path
                            : err < 0 && c->stderr_path ? c->stderr_path
                                                        : "/dev/null");
    } else {
        child->pid = fork();
        if (child->pid == 0)
            become(c, environment, parent, in, out, err);
        if (child->pid < 0) {
            child->pid = 0;
            st = sti_fail_errno("%s: cannot be started", c->word[0]);
        }
    }
    const int fds[] = {in, out, err};
    for (int i = 0; i < 3; i++)
        if (fds[i] >= 0)
            close(fds[i]);
    return st;
}

/* The end of what it wrote to standard error. */
static stint_status tell_failure(const sti_command *c, stint_status status)
{
    void *data = NULL;
    size_t n_bytes = 0;
    const char *words = "it said nothing";
    if (c->stderr_path &&
        sti_file_read(c->stderr_path, STDERR_MOST, &data, &n_bytes) == STINT_OK &&
        n_bytes > 0) {
        char *text = data;
        while (n_bytes > 0 && text[n_bytes - 1] == '\n')
            text[--n_bytes] = '\0';
        words = n_bytes > LAST_WORDS ? text + n_bytes - LAST_WORDS : text;
    }
    stint_status st = sti_fail(status, "a run failed: %s", words);
    sti_free(data);
    return st;
}

static stint_status judge(const sti_child *child, int how)
{
    const bool exited = WIFEXITED(how);
    const int code = exited ? WEXITSTATUS(how) : 0;
    if (exited && code == 0)
        return STINT_OK;
    if (child->stopping)
        return sti_fail(sti_stop_asked() != STINT_OK ? sti_stop_asked()
                                                     : STINT_E_TERMINATED,
                        "stopped by a signal before it was done");
    if (exited && code == 127)
        return sti_fail(STINT_E_IO, "%s: cannot be started", child->command->word[0]);
    if (exited)
        return tell_failure(child->command, (stint_status)code);
    return sti_fail(STINT_E_FAILED, "a run was ended by signal %d", WTERMSIG(how));
}

bool sti_child_poll(sti_child *child, stint_status *status_out)
{
    int how;
    if (sti_stop_asked() != STINT_OK && !child->stopping) {
        child->stopping = true;
        kill(child->pid, SIGTERM);
    }
    pid_t got = waitpid(child->pid, &how, WNOHANG);
    if (got == 0 || (got < 0 && errno == EINTR))
        return false;
    *status_out = got < 0 ? sti_fail_errno("a run was lost") : judge(child, how);
    child->pid = 0;
    return true;
}

void sti_child_pause(void)
{
    nanosleep(&(struct timespec){.tv_nsec = PAUSE_NS}, NULL);
}

stint_status sti_child_wait(sti_child *child)
{
    stint_status st = STINT_OK;
    while (!sti_child_poll(child, &st))
        sti_child_pause();
    return st;
}

stint_status sti_child_run(const sti_command *command)
{
    sti_child child;
    stint_status st = sti_child_start(command, &child);
    return st == STINT_OK ? sti_child_wait(&child) : st;
}
