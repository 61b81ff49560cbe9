#include "train/setup.h"

#include "train/recipe_view.h"
#include "train/shrink_recipe.h"

int64_t sti_shards_at_least(int64_t batch, int64_t shards)
{
    for (; shards <= batch && shards <= STI_SHARDS_MAX; shards++)
        if (batch % shards == 0)
            return shards;
    return 0;
}

int64_t sti_setup_images(const sti_setup *setup)
{
    const int64_t first = setup->batch / (setup->shards * setup->accumulate);
    return setup->micro > 1 ? setup->micro * first : first;
}

void sti_setup_cut(sti_setup *setup, int64_t batch, int64_t shards)
{
    sti_comm *comm = setup->comm;
    setup->batch = batch;
    setup->shards = shards;
    setup->local_shards =
        comm ? sti_tree_sum_shards(shards, sti_comm_size(comm), sti_comm_rank(comm))
                   .count
             : shards;
}

sti_setup sti_setup_like(const sti_setup *setup)
{
    sti_setup other = *setup;
    other.train = other.eval = (sti_network){.graph = NULL};
    return other;
}

stint_status sti_setup_build(sti_setup *setup)
{
    const sti_inputs *in = setup->inputs;
    const int64_t images = sti_setup_images(setup);
    sti_network_desc train = in->network;
    if (setup->shards * setup->accumulate > 1) /* a batch that is tried may be */
        train.at_once.op = NULL;
    sti_setup_fini(setup);
    stint_status st = sti_network_build(&train, STINT_TRAIN, images, &setup->train);
    if (st == STINT_OK && in->test_count + in->validation_count > 0)
        st = sti_network_build(&in->network, STINT_EVAL, images, &setup->eval);
    return st;
}

stint_status sti_setup_plan(sti_setup *setup, sti_network *train, int lanes)
{
    const int threads = sti_lane_threads(setup->threads, lanes);
    stint_status st = sti_network_plan(train, threads);
    if (st == STINT_OK && setup->eval.graph)
        st = sti_network_plan(&setup->eval, threads);
    return st;
}

void sti_setup_fini(sti_setup *setup)
{
    sti_network_fini(&setup->train);
    sti_network_fini(&setup->eval);
}

sti_step_engine_desc sti_setup_engine(const sti_setup *setup, int lanes)
{
    const sti_inputs *in = setup->inputs;
    return (sti_step_engine_desc){
        .train = &setup->train,
        .eval = setup->eval.graph ? &setup->eval : NULL,
        .train_data = in->train_data,
        .test_data = in->test_data,
        .validation_data = in->validation_data,
        .text = in->text,
        .field = in->field,
        .field_test = in->field_test,
        .threads = setup->threads,
        .lanes = lanes,
        .shards = setup->shards,
        .accumulate = setup->accumulate,
        .grows = setup->grows,
        .samples = in->network.bayes.samples,
        .comm = setup->comm,
        .net = sti_exchange_of_recipe(in->recipe),
        .moments = setup->moments,
        .masked = sti_prune_section_of(in->recipe)->sparsity > 0 ||
                  sti_shrink_is_masked(in->recipe),
        .masks_all = sti_shrink_is_masked(in->recipe),
        .shadows = sti_shrink_shadows(in->recipe),
        .averaged = sti_train_section_of(in->recipe)->average > 0};
}
