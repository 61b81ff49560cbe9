/* Status codes and the text of the last error.
 *
 * Every call that can fail returns a stint_status; the words are in a thread-local
 * record read by stint_last_error(). The numbers are also the exit codes of the program
 * `stint` and never change meaning. */
#ifndef STINT_STATUS_H
#define STINT_STATUS_H

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define STINT_API __attribute__((visibility("default")))
#else
#define STINT_API
#endif

typedef enum stint_status {
    STINT_OK = 0,
    STINT_E_FAILED = 1, /* the work itself failed: NaN loss, a test below its mark */
    STINT_E_USAGE = 2,  /* unknown flag or key, value out of range */
    STINT_E_BUDGET = 3, /* a budget that cannot be met; the text names one that can */
    STINT_E_INPUT = 4,  /* bad data, model or recipe */
    STINT_E_IO = 5,     /* open, read, write, sync, rename */
    STINT_E_PEER = 6,   /* another process or the network */
    STINT_E_MEMORY = 7, /* an allocation failed */
    STINT_E_UNSUPPORTED = 8,   /* valid, but not on this machine or in this build */
    STINT_E_BUG = 9,           /* a state that only an error in Stint can cause */
    STINT_E_INTERRUPTED = 130, /* SIGINT; the checkpoint is saved */
    STINT_E_TERMINATED = 143   /* SIGTERM; the checkpoint is saved */
} stint_status;

/** Text of the calling thread's last failed call: cause, object, numbers, way out.
 * Never NULL; empty before the first failure. Valid until this thread's next failing
 * call. */
STINT_API const char *stint_last_error(void);

/** A short name for a status, for example "bad input". Never NULL. */
STINT_API const char *stint_status_name(stint_status status);

/** Version of the linked library as "major.minor.patch". */
STINT_API const char *stint_version(void);

typedef enum stint_log_level {
    STINT_LOG_ERROR,
    STINT_LOG_WARNING,
    STINT_LOG_INFO,
    STINT_LOG_DEBUG
} stint_log_level;

typedef void stint_log_fn(void *user, stint_log_level level, const char *text);

/** Send the library's messages to fn (one line a call, no newline). NULL, the default,
 *  drops them: the library never prints. Call before other threads use the library. */
STINT_API void stint_set_log(stint_log_fn *fn, void *user);

#ifdef __cplusplus
}
#endif

#endif
