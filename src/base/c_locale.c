/* Numbers as text under the C locale, whatever the host program has set. The lowest
 * file of the library: it records no errors, so that the record of errors can be
 * written by it. */
#define _GNU_SOURCE /* strtod_l */
#include <locale.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/base_priv.h"

static pthread_once_t c_locale_once = PTHREAD_ONCE_INIT;
static locale_t c_locale; /* lives as long as the process; NULL if none could be had */

static void make_c_locale(void)
{
    c_locale = newlocale(LC_ALL_MASK, "C", (locale_t)0);
}

int sti_c_vsnprintf(char *buffer, size_t size, const char *format, va_list args)
{
    pthread_once(&c_locale_once, make_c_locale);
    locale_t saved = c_locale ? uselocale(c_locale) : (locale_t)0;
    int length = vsnprintf(buffer, size, format, args);
    if (saved)
        uselocale(saved);
    return length;
}

int sti_c_snprintf(char *buffer, size_t size, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    int length = sti_c_vsnprintf(buffer, size, format, args);
    va_end(args);
    return length;
}

double sti_c_strtod(const char *text, char **end_out)
{
    pthread_once(&c_locale_once, make_c_locale);
    return c_locale ? strtod_l(text, end_out, c_locale) : strtod(text, end_out);
}
