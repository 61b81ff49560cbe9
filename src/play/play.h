/* A training of an agent, inside of the room: what is open while it runs. */
#ifndef STI_PLAY_PLAY_H
#define STI_PLAY_PLAY_H

#include "net/comm.h"
#include "play/env_section.h"
#include "play/rollout.h"
#include "stint/play.h"

/* Weights to choose from, where agent.keep = best. */
typedef struct sti_play_best {
    void *candidate, *chosen; /* blocks of weights_bytes; NULL: the last are kept */
    struct {
        int64_t begun_update, begun_episodes; /* when the candidate was put aside */
        int64_t update;                       /* of the chosen weights; -1: none yet */
        double mean;                          /* return that they were chosen by */
    } place;                                  /* part of a checkpoint */
} sti_play_best;

typedef struct sti_play {
    const stint_recipe *recipe; /* borrowed */
    sti_env_values env;
    sti_agent_values agent;
    int64_t shards, rows; /* of an update; of a batch of acting */
    uint64_t seed;
    sti_agent_shape shape;
    stint_env *envs;
    stint_use *use;
    stint_session *session;
    stint_plan_result plan; /* of opening alone; session has its own */
    size_t tried_bytes;     /* peak of what auto tried; 0: nothing */
    sti_rollout rollout;
    void **weights; /* [lag + 1] of versions v % (lag + 1) */
    size_t weights_bytes;
    sti_play_best best;
    int64_t rounds;           /* played */
    int64_t updates;          /* made */
    int64_t group_first, end; /* of the update under way: its environments, its time */
    stint_session_result last;
    int64_t train_ns;
} sti_play;

/* What stint_env_open is asked for by a recipe. */
stint_env_desc sti_play_env_desc(const sti_env_values *env, uint64_t seed, int threads);

/* Opens environments, networks and memory as the recipe says. plan_only: the session
 * is planned, not opened. tried_bytes: of sti_play_settle. STINT_E_BUDGET with the
 * number of environments that fit. */
stint_status sti_play_open(const stint_recipe *recipe, stint_net *net, bool plan_only,
                           size_t tried_bytes, sti_play *play_out);
void sti_play_close(sti_play *play); /* a zeroed one is fine */

/* Steps of round r: the first fills a horizon. */
int64_t sti_play_round_steps(const sti_play *play, int64_t round);
/* Play the next round, by the weights that the lag says. */
stint_status sti_play_round(sti_play *play);
/* Make the next update, from what was played up to its round. */
stint_status sti_play_update(sti_play *play);
/* May the next round be played before or while the next update is made? */
bool sti_play_may_overlap(const sti_play *play);
/* Updates between acting and learning, mean over the last update's steps. */
double sti_play_lag(const sti_play *play);

/* ---- play_best.c: the weights that the model gets ---- */

stint_status sti_best_begin(sti_play *play); /* after the session's first weights */
void sti_best_fini(sti_play *play);
/* After an update, and once more at the end: are there weights to keep, no worse than
 * those before? */
bool sti_best_look(sti_play *play, bool at_end);
/* The chosen weights into the session, at the end of a run. */
void sti_best_take(sti_play *play);

/* ---- play_ahead.c: a thread that plays the next round ---- */

typedef struct sti_ahead sti_ahead;
stint_status sti_ahead_create(sti_play *play, sti_ahead **ahead_out);
void sti_ahead_destroy(sti_ahead *ahead); /* NULL is fine */
void sti_ahead_begin(sti_ahead *ahead);
stint_status sti_ahead_end(sti_ahead *ahead); /* waits */

/* One update and the round behind it, side by side where that is allowed and ahead is
 * not NULL. */
stint_status sti_play_turn(sti_play *play, sti_ahead *ahead);

/* ---- play_auto.c ---- */

/* Does the recipe leave numbers to be found? */
bool sti_play_is_auto(const stint_recipe *recipe);
/* A copy of the recipe with numbers in the place of `auto`, found by trying or, of a
 * run that goes on, in its folder's recipe.ini; *settled_out NULL: there is no auto.
 * *tried_bytes_out: the largest peak that was planned for a trial. */
stint_status sti_play_settle(const stint_recipe *recipe, const char *resume_folder,
                             stint_recipe **settled_out, size_t *tried_bytes_out);
/* After a STINT_E_BUDGET: its words and how many environments would fit. */
stint_status sti_play_explain_budget(const stint_recipe *recipe);

/* ---- play_file.c ---- */

stint_status sti_play_save(sti_play *play, const char *path, bool model);
/* From a checkpoint of the same recipe. */
stint_status sti_play_load(sti_play *play, const char *path);
/* All ranks go on from what rank 0 has. Collective. */
stint_status sti_play_share(sti_play *play, sti_comm *comm);

/* ---- play_report.c ---- */

stint_status sti_play_write_report(const char *folder);

#endif
