/* Inside the room: a training of a recommendation model while it goes. */
#ifndef STI_RECOMMEND_RECOMMEND_H
#define STI_RECOMMEND_RECOMMEND_H

#include "base/json_log.h"
#include "recommend/scorer.h"
#include "store/model_meta.h"
#include "train/run.h"

/* Texts and blobs of its files. */
#define STI_EMBED_META_RECIPE  "recipe"        /* INI */
#define STI_EMBED_META_DATA    STI_META_CLICKS /* sha256 of the file of ranks */
#define STI_EMBED_META_WEIGHTS "weights_sha256"
#define STI_EMBED_META_RANKS   "embed.ranks" /* that have a part of the rows */
#define STI_EMBED_META_TABLE   "embed.table" /* the table's folder, where not beside */
#define STI_EMBED_BLOB_PLACE   "embed.place" /* generation, then sums of the epoch */

enum { STI_EMBED_TRAIL = 100 }; /* steps that the reported loss is a mean of */

typedef struct sti_recommend {
    const stint_recipe *recipe;
    const stint_embed_desc *desc;
    stint_train_desc folder_desc;
    sti_run folder; /* of it run_folder.c's part: names, lock, what is old */
    char ranks[1024], table[1100];
    sti_learner learner;
    sti_scorer scorer;
    stint_embed_scores scores;
    int64_t generation, saved_step; /* of the last checkpoint */
    double trail[STI_EMBED_TRAIL];  /* losses of the last steps */
    int64_t steps_here, planned_missed, checkpoint_bytes;
    sti_row_counts training;       /* counts when training ended, of all ranks */
    int64_t cached_all, pages_all; /* rows in memory, pages of the table; likewise */
    stint_status stop;             /* what any rank was asked for */
    sti_json_log log;
    int64_t start_ns, told_ns, train_ns;
    bool first; /* rank 0, which writes the files */
} sti_recommend;

/* ---- recommend_ranks.c: in one process next to nothing ---- */

int sti_recommend_ranks(const sti_recommend *r);
/* All ranks get the failure of the lowest one that has one, or `mine`. Collective, as
 * those below. */
stint_status sti_recommend_agree(sti_recommend *r, stint_status mine);
/* The folder of this rank's rows. */
void sti_recommend_part(const sti_recommend *r, char folder_out[1200]);
/* The file of ranks, made where it is not there yet. */
stint_status sti_recommend_find_ranks(sti_recommend *r);
/* STINT_E_USAGE: the ranks are not about to do the same. */
stint_status sti_recommend_compare(sti_recommend *r, const sti_learner *learner);
/* What rank 0 read of a checkpoint to the others. */
stint_status sti_recommend_share_start(sti_recommend *r);
stint_status sti_recommend_sum_counts(sti_recommend *r);
/* On rank 0 alone: tables of an earlier run by other ranks. */
stint_status sti_recommend_remove_parts(sti_recommend *r);

/* ---- recommend_log.c ---- */

stint_status sti_recommend_log_begin(sti_recommend *r, bool resumed);
stint_status sti_recommend_log_step(sti_recommend *r);
/* weights_sha256: of all, at the end; else NULL. */
stint_status sti_recommend_log_state(sti_recommend *r, const char *weights_sha256);
stint_status sti_recommend_log_end(sti_recommend *r, stint_status status,
                                   const stint_embed_result *result);

/* ---- recommend_file.c ---- */

/* Checkpoint and model: rows first, then the dense part, which is the commit. */
stint_status sti_recommend_save(sti_recommend *r);
stint_status sti_recommend_save_model(sti_recommend *r, const char *sha256);
/* The newest sound checkpoint of the folder into *path_out (in its arena; NULL: there
 * is none) and its generation. */
stint_status sti_recommend_find(sti_recommend *r, const char **path_out);
stint_status sti_recommend_load(sti_recommend *r, const char *path);

/* ---- a model in files ---- */

typedef struct sti_recommend_model {
    stint_recipe *recipe;
    sti_clicks ids; /* of the table: a file of ranks without samples */
    char file[1100], table[1100], sha256[65];
} sti_recommend_model;

/* STINT_E_INPUT: it is no model of clicks. */
stint_status sti_recommend_model_open(const char *model, sti_recommend_model *out);
void sti_recommend_model_close(sti_recommend_model *model); /* also of a zeroed one */
/* Its rows for reading; desc: as a store's, of which cached, hot, policy, depth, io and
 * most are looked at. */
stint_status sti_recommend_rows_open(const sti_recommend_model *model,
                                     const sti_row_store_desc *desc,
                                     sti_row_store **store_out);

#endif
