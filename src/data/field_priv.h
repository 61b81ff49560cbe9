/* Kinds of files that a field is fitted to; each fills points, values, and counts. */
#ifndef STI_DATA_FIELD_PRIV_H
#define STI_DATA_FIELD_PRIV_H

#include "data/field.h"

/* Is the file a sound, or a mesh, by its name? */
bool sti_field_is_sound(const char *path);
bool sti_field_is_mesh(const char *path);

/* A sound: a point a sample, at its place on [-1, 1]; a value a channel, or their mean
 * where one is wanted. STINT_E_INPUT: damaged, cut short, of more channels than a field
 * has outputs; STINT_E_UNSUPPORTED: no libsndfile. */
stint_status sti_field_open_sound(const sti_field_want *want, sti_field_points *f);

/* A mesh: points drawn evenly over its triangles, so placed and scaled that the longest
 * side of its box is 1.8 long about 0; the value 0, and the normal in the columns of
 * first differences. STINT_E_INPUT: damaged, without triangles; STINT_E_UNSUPPORTED: no
 * libassimp. */
stint_status sti_field_open_mesh(const sti_field_want *want, sti_field_points *f);

/* A picture that was read becomes the outline between its dark and its bright: points
 * where brightness crosses the middle, the value 0, and the normal, from dark to
 * bright, in the columns of first differences. STINT_E_INPUT: it has none. */
stint_status sti_field_take_outline(sti_field_points *f);

#endif
