/* Models in several GGUF files, NAME-00001-of-00003.gguf: the first has all keys, each
 * some of the tensors. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/fail.h"
#include "store/gguf_priv.h"

#define PARTS_MOST 1000
static const char part_form[] = "-%05d-of-%05d.gguf";

/* Path of part `number` (from 1) of `parts`; f is the first. NULL: its name is not of
 * this form. */
static stint_status part_path(const sti_gguf *f, int number, int parts,
                              const char **out)
{
    char end[40];
    const size_t length = strlen(f->path);
    snprintf(end, sizeof end, part_form, 1, parts);
    if (length < strlen(end) || strcmp(f->path + length - strlen(end), end) != 0)
        return sti_fail(
            STINT_E_INPUT,
            "%s: part 1 of %d, whose name should end in '%s', or the others "
            "are not found",
            f->path, parts, end);
    char *path = sti_arena_strdup(f->arena, f->path);
    if (!path)
        return STINT_E_MEMORY;
    snprintf(end, sizeof end, part_form, number, parts);
    memcpy(path + length - strlen(end), end, strlen(end));
    *out = path;
    return STINT_OK;
}

static stint_status open_part(sti_gguf *f, int number, int parts)
{
    const char *path = NULL;
    int64_t own = -1, of = -1;
    stint_status st = part_path(f, number, parts, &path);
    if (st == STINT_OK)
        st = sti_gguf_open_one(path, &f->part[f->parts]);
    if (st != STINT_OK)
        return st;
    const sti_gguf *part = f->part[f->parts++];
    if (!sti_gguf_int(part, "split.no", &own) || own != number - 1 ||
        !sti_gguf_int(part, "split.count", &of) || of != parts)
        return sti_fail(STINT_E_INPUT, "%s: is not part %d of %d, as its name says",
                        path, number, parts);
    return STINT_OK;
}

/* The tensors of all parts in one table. */
static stint_status join_tensors(sti_gguf *f)
{
    int64_t all = f->tensors, said;
    for (int64_t i = 0; i < f->parts; i++)
        all += f->part[i]->tensors;
    if (sti_gguf_int(f, "split.tensors.count", &said) && said != all)
        return sti_fail(STINT_E_INPUT,
                        "%s: its parts hold %" PRId64 " tensors, but it says %" PRId64
                        "; take another copy",
                        f->path, all, said);
    sti_gguf_tensor *t = sti_arena_alloc(f->arena, (size_t)(all + 1) * sizeof *t);
    if (!t)
        return STINT_E_MEMORY;
    memcpy(t, f->tensor, (size_t)f->tensors * sizeof *t);
    for (int64_t i = 0; i < f->parts; i++)
        for (int64_t j = 0; j < f->part[i]->tensors; j++) {
            t[f->tensors] = f->part[i]->tensor[j];
            t[f->tensors++].part = (int)i + 1;
        }
    f->tensor = t;
    return sti_gguf_sort_names(f);
}

static stint_status open_parts(sti_gguf *f)
{
    int64_t parts = 1, number = 0;
    if (!sti_gguf_int(f, "split.count", &parts) || parts <= 1)
        return STINT_OK;
    if (parts > PARTS_MOST || !sti_gguf_int(f, "split.no", &number))
        return sti_fail(STINT_E_INPUT,
                        "%s: it does not say which part of a model it is", f->path);
    if (number != 0)
        return sti_fail(STINT_E_INPUT,
                        "%s: part %" PRId64 " of %" PRId64 "; give the first part",
                        f->path, number + 1, parts);
    f->part = sti_arena_alloc(f->arena, (size_t)parts * sizeof(sti_gguf *));
    stint_status st = f->part ? STINT_OK : STINT_E_MEMORY;
    for (int i = 2; i <= (int)parts && st == STINT_OK; i++)
        st = open_part(f, i, (int)parts);
    return st == STINT_OK ? join_tensors(f) : st;
}

stint_status sti_gguf_open(const char *path, sti_gguf **file_out)
{
    sti_gguf *f = NULL;
    stint_status st = sti_gguf_open_one(path, &f);
    if (st == STINT_OK)
        st = open_parts(f);
    if (st != STINT_OK) {
        sti_gguf_close(f);
        return st;
    }
    *file_out = f;
    return STINT_OK;
}
