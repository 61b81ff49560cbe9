/* Texts of an agent's files. */
#ifndef STI_PLAY_PLAY_META_H
#define STI_PLAY_PLAY_META_H

#include "store/model_meta.h"

#define STI_PLAY_META_RECIPE  "recipe"      /* INI */
#define STI_PLAY_META_ENV     "play.env"    /* facts.identity */
#define STI_PLAY_META_NETWORK STI_META_PLAY /* small, large or mlp */
#define STI_PLAY_META_ACTIONS "play.actions"
#define STI_PLAY_META_WEIGHTS "weights_sha256"

enum { STI_PLAY_LAGS = 65 }; /* most weights that are kept: agent.lag + 1 */

#endif
