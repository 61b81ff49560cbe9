/* EXIF: the one tag of it that changes what a picture shows. */
#ifndef STI_MEDIA_EXIF_H
#define STI_MEDIA_EXIF_H

#include <stddef.h>
#include <stdint.h>

/* The orientation in a block of EXIF data (a TIFF header and its first directory).
 * 1..8; 0: there is none, or the block is damaged before it; -1: a tag whose type or
 * value means nothing. */
int sti_exif_orientation(const uint8_t *tiff, size_t n_bytes);

#endif
