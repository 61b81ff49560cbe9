#include "data/clicks_spill.h"

#include <unistd.h>

#include "base/fail.h"
#include "base/stop.h"

stint_status sti_spill_open(sti_spill *spill)
{
    char path[1024];
    const stint_status st = sti_file_temporary("stint-clicks", path, sizeof path);
    if (st != STINT_OK)
        return st;
    *spill = (sti_spill){.file = fopen(path, "w+be")};
    if (!spill->file)
        return sti_fail_errno("%s: cannot be opened", path);
    unlink(path);
    return STINT_OK;
}

void sti_spill_close(sti_spill *spill)
{
    if (spill->file)
        fclose(spill->file);
    *spill = (sti_spill){.file = NULL};
}

stint_status sti_spill_add(sti_spill *spill, const void *bytes, size_t n_bytes)
{
    if (n_bytes > 0 && fwrite(bytes, n_bytes, 1, spill->file) != 1)
        return sti_fail_errno("a temporary file for counting ids cannot be written; "
                              "TMPDIR says where it lies");
    spill->bytes += (int64_t)n_bytes;
    return STINT_OK;
}

stint_status sti_spill_rewind(sti_spill *spill)
{
    if (fflush(spill->file) != 0 || fseek(spill->file, 0, SEEK_SET) != 0)
        return sti_fail_errno("a temporary file for counting ids cannot be written; "
                              "TMPDIR says where it lies");
    return STINT_OK;
}

stint_status sti_spill_next(sti_spill *spill, void *bytes, size_t n_bytes,
                            bool *more_out)
{
    *more_out = true;
    if (sti_stop_asked() != STINT_OK)
        return sti_fail(sti_stop_asked(), "stopped while counting ids");
    if (n_bytes == 0 || fread(bytes, n_bytes, 1, spill->file) == 1)
        return STINT_OK;
    *more_out = false;
    return ferror(spill->file)
               ? sti_fail_errno("a temporary file for counting ids cannot be read")
               : STINT_OK;
}
