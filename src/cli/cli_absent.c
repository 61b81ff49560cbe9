/* Flags and subcommands that are not there, refused by a sentence of their own. */
#include <stdlib.h>
#include <string.h>

#include "base/fail.h"
#include "cli/cli.h"

static bool is_number(const char *word)
{
    char *end;
    if (!word || !strchr("+-.0123456789", *word) || !word[strcspn(word, "0123456789")])
        return false;
    strtod(word, &end);
    return *end == '\0';
}

/* "--rank", "--rank=5"; "-b", "-b1", or with a number alone "-v5", "-v 5". */
static bool is_word(const sti_cli_absent *absent, const char *word, const char *next)
{
    const size_t length = strlen(absent->word);
    if (strncmp(word, absent->word, length) != 0)
        return false;
    const char *rest = word + length;
    if (absent->word[1] == '-')
        return *rest == '\0' || *rest == '=';
    if (*rest)
        return is_number(rest);
    return !absent->with_number || is_number(next);
}

static stint_status refuse(const sti_cli_absent *absent)
{
    return sti_fail(absent->status, "%s: %s", absent->word, absent->sentence);
}

stint_status sti_cli_refuse_flags(const sti_cli_absent *absent, int argc, char **argv)
{
    for (int i = 0; absent && i < argc && strcmp(argv[i], "--") != 0; i++)
        for (const sti_cli_absent *a = absent; a->word; a++)
            if (is_word(a, argv[i], i + 1 < argc ? argv[i + 1] : NULL))
                return refuse(a);
    return STINT_OK;
}

stint_status sti_cli_refuse_command(const sti_cli_absent *absent, const char *name)
{
    for (; absent->word; absent++)
        if (strcmp(absent->word, name) == 0)
            return refuse(absent);
    return STINT_OK;
}
