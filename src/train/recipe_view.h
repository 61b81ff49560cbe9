/* The sections that a training is made of, in one hand. */
#ifndef STI_TRAIN_RECIPE_VIEW_H
#define STI_TRAIN_RECIPE_VIEW_H

#include "data/data_section.h"
#include "model/bayes_section.h"
#include "model/model_section.h"
#include "model/quantise_section.h"
#include "net/net_section.h"
#include "train/error_section.h"
#include "train/grow_section.h"
#include "train/loss_section.h"
#include "train/noise_section.h"
#include "train/optimizer_section.h"
#include "train/prune_section.h"
#include "train/run_section.h"
#include "train/schedule_section.h"
#include "train/shrink_section.h"
#include "train/train_section.h"
#include "train/update_section.h"

typedef struct sti_recipe_view {
    const sti_model_values *model;
    const sti_data_values *data;
    const sti_train_values *train;
    const sti_grow_values *grow;
    const sti_loss_values *loss;
    const sti_prune_values *prune;
    const sti_quantise_values *quantise;
    const sti_bayes_values *bayes;
    const sti_shrink_values *shrink;
    const sti_update_values *update;
    const sti_optimizer_values *optimizer;
    const sti_schedule_values *schedule;
    const sti_error_values *error;
    const sti_noise_values *noise;
    const sti_net_values *net;
    const sti_run_values *run;
} sti_recipe_view;

/* Valid as long as the recipe; its values are seen as they are later set. */
sti_recipe_view sti_recipe_view_of(const stint_recipe *recipe);

/* A recommendation model is checked by [embedding], which says what it goes with. */
bool sti_recipe_is_clicks(const stint_recipe *recipe);

#endif
