/* What the files of base share among themselves and with no other room. */
#ifndef STI_BASE_PRIV_H
#define STI_BASE_PRIV_H

#include <stdarg.h>
#include <stddef.h>

/* Size of the thread's record of the last error, with its NUL. */
#define STI_FAIL_TEXT_BYTES 8192

/* Formatting and reading of numbers in the C locale,
 * whatever the host program has set. */
int sti_c_vsnprintf(char *buffer, size_t size, const char *format, va_list args)
    __attribute__((format(printf, 3, 0)));
int sti_c_snprintf(char *buffer, size_t size, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
double sti_c_strtod(const char *text, char **end_out);

/* Up to size - 1 bytes of a small file (those of /proc and /sys) and a NUL, without any
 * allocation and without recording errors. Bytes read; 0 if the file cannot be read. */
size_t sti_file_peek(const char *path, char *buffer, size_t size);

#endif
