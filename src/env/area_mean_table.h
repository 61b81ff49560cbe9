/* Which pixels an observed column takes, for shuffles: seven observed columns lie on
 * 13 1/3, so a line is twelve groups of 16 bytes, which begin at three places of a
 * column by turns. Included by the files of instruction sets alone. */
#ifndef STI_ENV_AREA_MEAN_TABLE_H
#define STI_ENV_AREA_MEAN_TABLE_H

#include <stdint.h>

enum { SEVEN = 7, GROUPS = 12 };

/* The first pixel of group g. */
static inline int group_at(int g)
{
    return g * 40 / 3;
}

/* The first two pixels of each observed column and their parts; then the third one and
 * its part, in the places of both. */
/* clang-format off */
#define ROW(...) {__VA_ARGS__}
#define BY_TURNS(a, b, c) a, b, c, a, b, c, a, b, c, a, b, c
_Alignas(64) static const int8_t pair_at[GROUPS][16] = {BY_TURNS(
    ROW(0, 1, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, -1, -1),
    ROW(0, 1, 2, 3, 4, 5, 6, 7, 7, 8, 9, 10, 11, 12, -1, -1),
    ROW(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, -1, -1))};
_Alignas(64) static const int8_t pair_parts[GROUPS][16] = {BY_TURNS(
    ROW(21, 19, 2, 21, 4, 21, 6, 21, 8, 21, 10, 21, 12, 21, 0, 0),
    ROW(14, 21, 16, 21, 18, 21, 20, 20, 1, 21, 3, 21, 5, 21, 0, 0),
    ROW(7, 21, 9, 21, 11, 21, 13, 21, 15, 21, 17, 21, 19, 21, 0, 0))};
_Alignas(64) static const int8_t third_at[GROUPS][16] = {BY_TURNS(
    ROW(-1, -1, 3, -1, 5, -1, 7, -1, 9, -1, 11, -1, 13, -1, -1, -1),
    ROW(2, -1, 4, -1, 6, -1, -1, -1, 9, -1, 11, -1, 13, -1, -1, -1),
    ROW(2, -1, 4, -1, 6, -1, 8, -1, 10, -1, 12, -1, -1, -1, -1, -1))};
_Alignas(64) static const int8_t third_parts[GROUPS][16] = {BY_TURNS(
    ROW(0, 0, 17, 0, 15, 0, 13, 0, 11, 0, 9, 0, 7, 0, 0, 0),
    ROW(5, 0, 3, 0, 1, 0, 0, 0, 18, 0, 16, 0, 14, 0, 0, 0),
    ROW(12, 0, 10, 0, 8, 0, 6, 0, 4, 0, 2, 0, 0, 0, 0, 0))};
/* clang-format on */

#endif
