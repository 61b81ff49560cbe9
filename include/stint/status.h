/* Status codes, the text of the last error, the log, and the version.
 *
 * Every call of the library that can fail returns a stint_status. The words belong to
 * the calling thread and are read by stint_last_error(). The numbers are also the exit
 * codes of the program `stint`; they never change their meaning.
 *
 *   stint_recipe *recipe = NULL;
 *   if (stint_recipe_load("mine.ini", &recipe) != STINT_OK)
 *       fprintf(stderr, "%s\n", stint_last_error());
 *
 * Conventions of all headers, unless a comment says otherwise:
 *
 * - The caller frees what a call made, by the call that is named for it: _destroy for
 *   objects, _close for files, _leave for a net; these accept NULL. _fini frees what a
 *   result of the caller points to; a result that is all zero is fine. None can fail.
 * - Pointers passed in are borrowed until the call returns and must not be NULL.
 * - Outputs end in _out and are set on success; what they hold after an error is
 *   unspecified.
 * - Zero in a description means "choose for me", or the first word of a list.
 * - int64_t counts elements, images and tokens; size_t counts bytes, and the name says
 *   so; seconds, rates and shares are double.
 * - An object serves one thread at a time; different objects may be used at once.
 * - The library never prints and never ends the process. */
#ifndef STINT_STATUS_H
#define STINT_STATUS_H

#ifdef __cplusplus
extern "C" {
#endif

/* Symbols with this mark are exported by the shared library, all others are hidden. */
#if defined(__GNUC__)
#define STINT_API __attribute__((visibility("default")))
#else
#define STINT_API
#endif

/** How a call ended. Test for STINT_OK; all other values are failures. */
typedef enum stint_status {
    STINT_OK = 0,
    /* The work itself failed: a NaN loss, a test below its mark. */
    STINT_E_FAILED = 1,
    /* An unknown flag or key, or a value out of range. */
    STINT_E_USAGE = 2,
    /* A budget that cannot be met; the text names one that can. */
    STINT_E_BUDGET = 3,
    /* Bad data, model or recipe. */
    STINT_E_INPUT = 4,
    /* A file could not be opened, read, written, synced or renamed. */
    STINT_E_IO = 5,
    /* Another process or the network failed. */
    STINT_E_PEER = 6,
    /* An allocation failed. */
    STINT_E_MEMORY = 7,
    /* Valid, but not on this machine or in this build. */
    STINT_E_UNSUPPORTED = 8,
    /* A state that only an error in Stint can cause. */
    STINT_E_BUG = 9,
    /* Stopped by SIGINT; a training has saved its checkpoint. */
    STINT_E_INTERRUPTED = 130,
    /* Stopped by SIGTERM; a training has saved its checkpoint. */
    STINT_E_TERMINATED = 143
} stint_status;

/** Text of the calling thread's last failed call: cause, object, numbers, way out.
 *
 * Never NULL; empty before the first failure. The library owns it. It holds until this
 * thread's next failing call; other threads have texts of their own. */
STINT_API const char *stint_last_error(void);

/** A short name of a status, for example "bad input". Never NULL, also for a number
 * that is no status; a constant that is not freed. */
STINT_API const char *stint_status_name(stint_status status);

/** Version of the library in use, "major.minor.patch"; a constant that is not freed.
 * stint/version.h has that of the headers. */
STINT_API const char *stint_version(void);

/** How important a message of the log is, most important first. */
typedef enum stint_log_level {
    STINT_LOG_ERROR,
    STINT_LOG_WARNING,
    STINT_LOG_INFO,
    STINT_LOG_DEBUG
} stint_log_level;

/** Receives one message: one line without a newline, which holds during the call only.
 * It may be called on any thread of the library. */
typedef void stint_log_fn(void *user, stint_log_level level, const char *text);

/** Send the library's messages to fn, with `user` passed through.
 *
 * NULL, the default, drops them. Not thread-safe: call it before other threads use the
 * library. */
STINT_API void stint_set_log(stint_log_fn *fn, void *user);

/** The least important messages that are sent, STINT_LOG_DEBUG at first. Others are not
 * made, nor is what they alone would tell found out. Not thread-safe, as above. */
STINT_API void stint_set_log_level(stint_log_level least);

#ifdef __cplusplus
}
#endif

#endif
