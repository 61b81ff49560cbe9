/* BMP: Windows bitmaps without compression, of 1, 4, 8, 16, 24 and 32 bits a pixel,
 * with every length of header since OS/2 (MS-WMF 2.2.2). Alpha is not looked at: most
 * writers leave it zero. */
#include <string.h>

#include "base/fail.h"
#include "media/image_priv.h"

enum {
    FILE_HEAD = 14,
    CORE_HEAD = 12, /* the length of OS/2's */
    INFO_HEAD = 40, /* the least of the others */
    MASKS_END = 66,
    PLAIN = 0,
    BITFIELDS = 3,
    ALPHA_BITFIELDS = 6
};

typedef struct bmp_header {
    int64_t width, height;
    bool top_down;
    uint32_t bits, compression;
    size_t palette_at, palette_entry, pixels_at;
    uint32_t colours;
    uint32_t mask[3]; /* red, green, blue of 16 and 32 bits */
} bmp_header;

static void read_size(const uint8_t *bytes, uint32_t head, bmp_header *h)
{
    if (head == CORE_HEAD) {
        h->width = sti_le16(bytes + 18);
        h->height = sti_le16(bytes + 20);
        h->bits = sti_le16(bytes + 24);
        h->palette_entry = 3;
        return;
    }
    h->width = (int32_t)sti_le32(bytes + 18);
    h->height = (int32_t)sti_le32(bytes + 22);
    h->top_down = h->height < 0;
    h->height = h->top_down ? -h->height : h->height;
    h->bits = sti_le16(bytes + 28);
    h->compression = sti_le32(bytes + 30);
    h->colours = sti_le32(bytes + 46);
    h->palette_entry = 4;
}

static void read_masks(const uint8_t *bytes, bmp_header *h)
{
    const bool own = h->compression == BITFIELDS || h->compression == ALPHA_BITFIELDS;
    for (int i = 0; i < 3; i++)
        h->mask[i] = own             ? sti_le32(bytes + 54 + 4 * i)
                     : h->bits == 16 ? UINT32_C(0x1f) << (10 - 5 * i)
                                     : UINT32_C(0xff) << (16 - 8 * i);
}

/* 1: read; 0: more bytes are needed; -1: no such header. */
static int read_header(const uint8_t *bytes, size_t n_bytes, bmp_header *h)
{
    *h = (bmp_header){0};
    if (n_bytes < FILE_HEAD + CORE_HEAD)
        return 0;
    const uint32_t head = sti_le32(bytes + 14);
    if (head != CORE_HEAD && (head < INFO_HEAD || head > 1024))
        return -1;
    if (head != CORE_HEAD && n_bytes < MASKS_END)
        return 0;
    read_size(bytes, head, h);
    read_masks(bytes, h);
    const bool separate = head == INFO_HEAD && h->compression == BITFIELDS;
    h->palette_at = FILE_HEAD + head + (separate ? 12 : 0);
    h->pixels_at = sti_le32(bytes + 10);
    if (h->bits > 8)
        return 1;
    if (h->colours == 0 || h->colours > UINT32_C(1) << h->bits)
        h->colours = UINT32_C(1) << h->bits;
    return n_bytes < h->palette_at + h->palette_entry * h->colours ? 0 : 1;
}

static bool is_grey(const uint8_t *bytes, const bmp_header *h)
{
    for (uint32_t i = 0; i < h->colours && h->bits <= 8; i++) {
        const uint8_t *entry = bytes + h->palette_at + h->palette_entry * i;
        if (entry[0] != entry[1] || entry[1] != entry[2])
            return false;
    }
    return h->bits <= 8;
}

static int probe_bmp(const uint8_t *bytes, size_t n_bytes, bool whole,
                     sti_image_info *info)
{
    bmp_header h;
    (void)whole;
    const int found = read_header(bytes, n_bytes, &h);
    return found == 1 ? sti_image_accept(info, h.width, h.height,
                                         is_grey(bytes, &h) ? 1 : 3, 0)
                      : found;
}

/* The bits of a mask as 0..255. */
static uint8_t scaled(uint32_t pixel, uint32_t mask)
{
    if (mask == 0)
        return 0;
    while (!(mask & 1)) {
        mask >>= 1;
        pixel >>= 1;
    }
    return (uint8_t)(((uint64_t)(pixel & mask) * 255 + mask / 2) / mask);
}

static void colour_of(const uint8_t *bytes, const bmp_header *h, uint32_t index,
                      uint8_t *rgb)
{
    /* An index beyond the palette is black, as viewers have it. */
    static const uint8_t black[4] = {0};
    const uint8_t *entry =
        index < h->colours ? bytes + h->palette_at + h->palette_entry * index : black;
    rgb[0] = entry[2];
    rgb[1] = entry[1];
    rgb[2] = entry[0];
}

static void read_row(const uint8_t *bytes, const bmp_header *h, const uint8_t *row,
                     uint8_t *rgb)
{
    for (int64_t x = 0; x < h->width; x++, rgb += 3) {
        if (h->bits <= 8) {
            const uint32_t bit = (uint32_t)x * h->bits;
            const uint32_t shift = 8 - h->bits - bit % 8;
            colour_of(bytes, h, row[bit / 8] >> shift & ((1u << h->bits) - 1), rgb);
        } else if (h->bits == 24) {
            rgb[0] = row[3 * x + 2];
            rgb[1] = row[3 * x + 1];
            rgb[2] = row[3 * x];
        } else {
            const uint32_t pixel =
                h->bits == 16 ? sti_le16(row + 2 * x) : sti_le32(row + 4 * x);
            for (int c = 0; c < 3; c++)
                rgb[c] = scaled(pixel, h->mask[c]);
        }
    }
}

static bool is_read(const bmp_header *h)
{
    const bool fields =
        h->compression == BITFIELDS || h->compression == ALPHA_BITFIELDS;
    if (h->bits == 16 || h->bits == 32)
        return h->compression == PLAIN || fields;
    return h->compression == PLAIN &&
           (h->bits == 1 || h->bits == 4 || h->bits == 8 || h->bits == 24);
}

static stint_status decode_bmp(sti_image_job *job)
{
    bmp_header h;
    if (read_header(job->bytes, job->n_bytes, &h) != 1) {
        job->fault = STI_IMAGE_DAMAGED;
        return sti_fail(STINT_E_INPUT, "damaged BMP (its header)");
    }
    if (!is_read(&h)) {
        job->fault = STI_IMAGE_UNSUPPORTED;
        return sti_fail(STINT_E_INPUT,
                        "a BMP of %u bits with compression %u, which is not read; turn "
                        "it into PNG",
                        h.bits, h.compression);
    }
    const size_t row = ((size_t)h.width * h.bits + 31) / 32 * 4;
    if (h.pixels_at > job->n_bytes ||
        (job->n_bytes - h.pixels_at) / row < (size_t)h.height) {
        job->fault = STI_IMAGE_CUT_SHORT;
        return sti_fail(STINT_E_INPUT, "the BMP is cut short");
    }
    for (int64_t y = 0; y < h.height; y++)
        read_row(job->bytes, &h,
                 job->bytes + h.pixels_at +
                     (size_t)(h.top_down ? y : h.height - 1 - y) * row,
                 job->out + y * h.width * 3);
    if (job->channels == 1)
        sti_image_to_grey(job->out, job->width * job->height);
    return STINT_OK;
}

const sti_image_format sti_image_bmp = {
    .name = "BMP",
    .extensions = {".bmp"},
    .signature = "BM",
    .mask = "\1\1",
    .signature_bytes = 2,
    .probe = probe_bmp,
    .decode = decode_bmp,
};
