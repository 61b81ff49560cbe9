/* A block of EXIF data is a small TIFF file: "II" or "MM" for the order of bytes, 42,
 * the offset of a directory, and there a count and entries of 12 bytes: tag, type,
 * count and value (EXIF 2.32, section 4.6). */
#include "media/exif.h"

#include <stdbool.h>
#include <string.h>

enum {
    TAG_ORIENTATION = 0x0112,
    TYPE_SHORT = 3,
    TYPE_LONG = 4, /* some writers use it; the value is as clear */
    ENTRY_BYTES = 12
};

static uint32_t u16(const uint8_t *p, bool big)
{
    return big ? (uint32_t)p[0] << 8 | p[1] : (uint32_t)p[1] << 8 | p[0];
}

static uint32_t u32(const uint8_t *p, bool big)
{
    return big ? u16(p, big) << 16 | u16(p + 2, big)
               : u16(p + 2, big) << 16 | u16(p, big);
}

static int orientation_of(const uint8_t *entry, bool big)
{
    const uint32_t type = u16(entry + 2, big), count = u32(entry + 4, big);
    const uint32_t value = type == TYPE_SHORT  ? u16(entry + 8, big)
                           : type == TYPE_LONG ? u32(entry + 8, big)
                                               : 0;
    return count == 1 && value >= 1 && value <= 8 ? (int)value : -1;
}

int sti_exif_orientation(const uint8_t *tiff, size_t n_bytes)
{
    if (n_bytes < 8 || (memcmp(tiff, "II", 2) != 0 && memcmp(tiff, "MM", 2) != 0))
        return 0;
    const bool big = tiff[0] == 'M';
    const size_t at = u32(tiff + 4, big);
    if (u16(tiff + 2, big) != 42 || at > n_bytes || n_bytes - at < 2)
        return 0;
    const uint8_t *entry = tiff + at + 2;
    size_t left = n_bytes - at - 2;
    for (uint32_t i = u16(tiff + at, big); i > 0 && left >= ENTRY_BYTES; i--) {
        if (u16(entry, big) == TAG_ORIENTATION)
            return orientation_of(entry, big);
        entry += ENTRY_BYTES;
        left -= ENTRY_BYTES;
    }
    return 0;
}
