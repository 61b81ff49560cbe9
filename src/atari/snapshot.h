/* Snapshots: a console with its cartridge's RAM, its pictures, its bytes of chance and
 * the score, in a file of its own. What is loaded goes on as what was saved would have.
 */
#ifndef STI_ATARI_SNAPSHOT_H
#define STI_ATARI_SNAPSHOT_H

#include "atari/game.h"
#include "base/text.h"

/* Written beside its place and renamed. STINT_E_IO, STINT_E_MEMORY. */
stint_status sti_snapshot_save(const char *path, const sti_vcs *vcs,
                               const sti_game *game, const sti_score *score);
/* Into a machine that has the same cartridge plugged in. STINT_E_INPUT: no snapshot, a
 * damaged one, one of another image (both hashes are named) or of another game's rules;
 * the machine is as it was then. */
stint_status sti_snapshot_load(const char *path, sti_vcs *vcs, const sti_game *game,
                               sti_score *score);

/* The same in memory; name is for messages. */
stint_status sti_snapshot_write(const sti_vcs *vcs, const sti_game *game,
                                const sti_score *score, sti_text *out);
stint_status sti_snapshot_read(const uint8_t *bytes, size_t n_bytes, const char *name,
                               sti_vcs *vcs, const sti_game *game, sti_score *score);
/* The check sum at the end of a snapshot of n_bytes, anew: for tests that change one.
 */
void sti_snapshot_seal(uint8_t *bytes, size_t n_bytes);

#endif
