/* The compressed sum: every scheme with 2 to 8 ranks in one process. The oracle is the
 * scalar quantiser of tests/codec and a cutting of slices written again from
 * net/compressed_allreduce.h. */
#include "codec/gradient_codec_oracle.h"
#include "compressed_job.h"

/* ---- the oracle of scatter ---- */

typedef struct cut {
    int64_t at, n;
    int layer;
} cut;

/* Parts, slices, pieces, written again: layers from the last to the first, cut into
 * parts that get smaller, each cut into slices, every cut inside a layer at a multiple
 * of 4. */
typedef struct cuts {
    int count;
    cut piece[64];
    int part[64], owner[64];
} cuts;

static int64_t larger(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

static int64_t part_of(int64_t left, int64_t fusion)
{
    const int64_t least = fusion < 65536 ? fusion : 65536;
    const int64_t third = left / 3 < fusion ? left / 3 : fusion;
    return left - larger(third, least) < least ? left : larger(third, least);
}

static void all_cuts(int ranks, int64_t fusion, cuts *out)
{
    int64_t done = 0, layer_begin = 0, in_layer = 0;
    int layer = LAYERS - 1;
    out->count = 0;
    for (int part = 0; done < TOTAL; part++) {
        const int64_t part_end =
            done + part_of(TOTAL - done, fusion ? fusion : 1 << 20);
        for (int r = 0; r < ranks; r++) {
            const int64_t left = part_end - done;
            const int64_t end =
                left > 0 ? done + (left + ranks - r - 1) / (ranks - r) : done;
            while (layer >= 0 && done < end) {
                int64_t to = end - layer_begin;
                to = (to + 3) / 4 * 4 < layers[layer].count ? (to + 3) / 4 * 4
                                                            : layers[layer].count;
                out->piece[out->count] =
                    (cut){layers[layer].first + in_layer, to - in_layer, layer};
                out->part[out->count] = part;
                out->owner[out->count++] = r;
                done += to - in_layer;
                in_layer = to;
                if (to == layers[layer].count) {
                    layer_begin += layers[layer--].count;
                    in_layer = 0;
                }
            }
        }
    }
}

static void oracle_round_trip(const sti_compressed_allreduce_desc *d,
                              const sti_gradient_key *key, int64_t n, float *x)
{
    uint8_t *bytes = malloc(oracle_bytes(&d->form, n));
    oracle_encode(&d->form, key, n, x, bytes);
    oracle_decode(&d->form, n, bytes, x);
    free(bytes);
}

static int64_t oracle_scatter(const job *j, int ranks, int64_t step, float *y)
{
    const sti_compressed_allreduce_desc *d = &j->desc;
    float *x = malloc(TOTAL * sizeof *x), *from = malloc(TOTAL * sizeof *from);
    int64_t bytes = 0;
    cuts all;
    all_cuts(ranks, d->fusion, &all);
    for (int c = 0; c < all.count; c++) {
        const cut *p = &all.piece[c];
        const int owner = all.owner[c];
        sti_gradient_key key = {
            .seed = d->seed, .step = (uint64_t)step, .layer = (uint32_t)c};
        fill(j, owner, step, x);
        for (int r = 0; r < ranks; r++) {
            if (r == owner)
                continue;
            fill(j, r, step, from);
            key.rank = (uint32_t)r;
            key.part = (uint32_t)((r + ranks - owner - 1) % ranks);
            key.parts = (uint32_t)ranks - 1;
            if (compressed[p->layer])
                oracle_round_trip(d, &key, p->n, from + p->at);
            for (int64_t i = p->at; i < p->at + p->n; i++)
                x[i] += from[i];
        }
        key.rank = (uint32_t)owner;
        key.phase = 1;
        key.part = key.parts = 0;
        if (compressed[p->layer])
            oracle_round_trip(d, &key, p->n, x + p->at);
        memcpy(y + p->at, x + p->at, (size_t)p->n * 4);
        /* Rank 0 sends the pieces of others, and its own to all. */
        bytes +=
            (owner == 0 ? ranks - 1 : 1) *
            (compressed[p->layer] ? (int64_t)oracle_bytes(&d->form, p->n) : 4 * p->n);
    }
    free(x);
    free(from);
    return bytes;
}

static void like_the_oracle(void **state)
{
    (void)state;
    float *want = malloc(TOTAL * sizeof *want);
    for (int ranks = 2; ranks <= 8; ranks++) {
        job j = {.desc = plain(1 + ranks % 8, STI_SCHEME_SCATTER), .steps = 1};
        j.desc.form.rounding = (sti_gradient_rounding)(ranks % 3);
        j.desc.form.bucket = ranks % 2 ? 512 : 200;
        j.desc.fusion = ranks % 2 ? 0 : 1500 * ranks;
        run(&j, ranks);
        assert_int_equal(oracle_scatter(&j, ranks, 1, want), j.bytes[0]);
        assert_memory_equal(want, j.result, TOTAL * sizeof *want);
        free(j.result);
    }
    free(want);
}

/* ---- properties of every scheme ---- */

/* Mean square error over compressed layers; the largest over the others. */
static double error_of(const job *j, int ranks, double *exact_out)
{
    double sum = 0;
    int64_t n = 0;
    *exact_out = 0;
    for (int l = 0; l < LAYERS; l++)
        for (int64_t i = layers[l].first; i < layers[l].first + layers[l].count; i++) {
            const double d = (double)j->result[i] - truth(j, ranks, j->steps, i);
            if (compressed[l]) {
                sum += d * d;
                n++;
            } else {
                *exact_out = fmax(*exact_out, fabs(d));
            }
        }
    return sum / (double)n;
}

static void every_scheme(void **state)
{
    (void)state;
    for (int scheme = 0; scheme < STI_SCHEMES; scheme++)
        for (int ranks = 2; ranks <= 8; ranks++) {
            job j = {.desc = plain(8, (sti_scheme)scheme), .steps = 2};
            double exact;
            j.desc.group = ranks % 3 == 0 ? 3 : ranks % 2 == 0 ? 2 : 1;
            j.desc.form.rounding = (sti_gradient_rounding)(ranks % 3);
            run(&j, ranks);
            assert_true(error_of(&j, ranks, &exact) < 3e-4 * ranks * ranks);
            assert_true(exact < 1e-5);
            float *first = j.result;
            j.result = NULL;
            j.restless = true; /* whoever comes first */
            run(&j, ranks);
            assert_memory_equal(first, j.result, TOTAL * sizeof *first);
            free(first);
            free(j.result);
        }
}

/* Beside the one who makes the values, in parts of a few thousand: the same bits. */
static void beside_the_maker(void **state)
{
    (void)state;
    for (int scheme = 0; scheme < STI_SCHEMES; scheme++)
        for (int ranks = 2; ranks <= 4; ranks++)
            for (int sparse = 0; sparse < 2; sparse++) {
                job j = {.desc = plain(3, (sti_scheme)scheme), .steps = STEPS};
                world_rank world[WORLD_MAX];
                j.desc.group = ranks % 2 ? 1 : 2;
                j.desc.feedback = true;
                j.desc.fusion = 2000;
                j.desc.keep = sparse ? 0.02 : 1;
                j.desc.form.rounding = STI_GRADIENT_CORRELATED;
                run(&j, ranks);
                float *first = j.result;
                j.result = NULL;
                j.slow = true;
                run(&j, ranks);
                assert_memory_equal(first, j.result, TOTAL * sizeof *first);
                memset(j.result, 0, TOTAL * sizeof *first);
                world_run_tcp(world, ranks, run_job, &j);
                assert_memory_equal(first, j.result, TOTAL * sizeof *first);
                free(first);
                free(j.result);
            }
}

/* All layers as float32: the plain sum, in every scheme. */
static void exact_when_raw(void **state)
{
    (void)state;
    for (int scheme = 0; scheme < STI_SCHEMES; scheme++) {
        job j = {.desc = plain(STI_COMPRESSED_RAW, (sti_scheme)scheme), .steps = 1};
        double exact;
        j.desc.group = 2;
        run(&j, 4);
        assert_true(error_of(&j, 4, &exact) < 1e-12);
        free(j.result);
    }
}

/* Scatter: (N - 1) u^2 / 6 + U^2 / 6 with U of the sum, flat relative to it for noise;
 * the ring rounds N times, sums that grow. */
static void errors_follow_the_model(void **state)
{
    (void)state;
    double last = 0;
    for (int ranks = 2; ranks <= 8; ranks += 3) {
        job j = {.desc = plain(4, STI_SCHEME_SCATTER), .steps = 1};
        double exact, model = 0;
        int64_t n = 0;
        j.desc.form.rounding = STI_GRADIENT_STOCHASTIC;
        run(&j, ranks);
        const double scatter = error_of(&j, ranks, &exact);
        cuts all;
        all_cuts(ranks, 0, &all);
        for (int c = 0; c < all.count; c++)
            for (int64_t b = 0; compressed[all.piece[c].layer] && b < all.piece[c].n;
                 b += 512) {
                const int64_t m = all.piece[c].n - b < 512 ? all.piece[c].n - b : 512;
                float x[512];
                double u2 = 0;
                for (int r = 0; r <= ranks; r++) {
                    for (int64_t i = 0; i < m; i++)
                        x[i] = r == ranks
                                   ? (float)truth(&j, ranks, 1, all.piece[c].at + b + i)
                                   : value(r, 1, all.piece[c].at + b + i);
                    const double u = (double)oracle_scale(&j.desc.form, m, x).u;
                    u2 += r == all.owner[c] ? 0 : u * u;
                }
                model += u2 / 6 * (double)m;
                n += m;
            }
        assert_true(fabs(scatter / (model / (double)n) - 1) < 0.05);
        j.desc.scheme = STI_SCHEME_RING;
        run(&j, ranks);
        const double ring = error_of(&j, ranks, &exact);
        assert_true(ring / scatter > last);
        last = ring / scatter;
        free(j.result);
    }
    assert_true(last > 1.5);
}

/* ---- refusals ---- */

static void run_not_finite(world_rank *me)
{
    job *j = me->user;
    const int rank = sti_comm_rank(me->comm);
    sti_compressed_allreduce *s = NULL;
    float *x = malloc(TOTAL * sizeof *x);
    RANK_CHECK(me, sti_compressed_allreduce_create(me->comm, &j->desc, layers, LAYERS,
                                                   TOTAL, &s) == STINT_OK);
    fill(j, rank, 1, x);
    (void)sti_comm_barrier(me->comm); /* all have one before rank 1 gives up */
    if (rank == 1)
        x[j->steps] = rank % 2 ? NAN : INFINITY;
    me->status = sti_compressed_allreduce_run(s, &sti_team_serial, NULL, 1, x);
    sti_compressed_allreduce_destroy(s);
    free(x);
}

static void not_finite_is_named(void **state)
{
    (void)state;
    static const struct {
        int at;
        double keep;
        const char *words;
    } cases[] = {{4751 + 77, 1, "gradient of wide: value 77 on rank 1"},
                 {1728 + 5, 1, "gradient of bias: value 5 on rank 1"},
                 {14777 + 8192, 0.01, "gradient of last: value 8192 on rank 1"}};
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++)
        for (int scheme = 0; scheme < 2; scheme++) {
            world_rank world[WORLD_MAX];
            job j = {.desc = plain(4, (sti_scheme)scheme), .steps = cases[k].at};
            j.desc.keep = cases[k].keep;
            j.desc.feedback = true;
            world_run_local(world, 4, run_not_finite, &j);
            for (int r = 0; r < 4; r++) {
                assert_int_equal(world[r].status, STINT_E_FAILED);
                if (scheme == 0 || r == 1)
                    assert_non_null(strstr(world[r].text, cases[k].words));
            }
        }
}

static void run_differing(world_rank *me)
{
    job mine = *(job *)me->user;
    sti_compressed_layer other[LAYERS];
    sti_compressed_allreduce *s = NULL;
    int bits[LAYERS] = {4, 4, 4, 4, 4, 4, 4};
    const int rank = sti_comm_rank(me->comm);
    memcpy(other, layers, sizeof layers);
    if (rank == 2 && mine.steps == 0)
        mine.desc.form.bits = 3;
    if (rank == 2 && mine.steps == 1)
        other[3].count--;
    if (rank == 2 && mine.steps == 2)
        bits[3] = 5;
    me->status =
        sti_compressed_allreduce_create(me->comm, &mine.desc, other, LAYERS, TOTAL, &s);
    if (me->status == STINT_OK)
        me->status = sti_compressed_set_bits(s, bits);
    sti_compressed_allreduce_destroy(s);
}

static void ranks_that_differ(void **state)
{
    (void)state;
    for (int kind = 0; kind < 4; kind++) {
        world_rank world[WORLD_MAX];
        job j = {.desc = plain(4, STI_SCHEME_SCATTER), .steps = kind};
        world_run_local(world, 4, run_differing, &j);
        for (int r = 0; r < 4; r++) {
            assert_int_equal(world[r].status, kind < 3 ? STINT_E_INPUT : STINT_OK);
            if (kind < 3)
                assert_non_null(strstr(world[r].text, "rank 2"));
        }
    }
}

static void run_refused(world_rank *me)
{
    sti_compressed_allreduce *s = NULL;
    me->status = sti_compressed_allreduce_create(me->comm, &((job *)me->user)->desc,
                                                 layers, LAYERS, TOTAL, &s);
}

static void refused(void **state)
{
    (void)state;
    for (int kind = 0; kind < 5; kind++) {
        world_rank world[WORLD_MAX];
        job j = {.desc = plain(4, STI_SCHEME_TWO_LEVEL)};
        if (kind == 0)
            j.desc.group = 3;
        if (kind == 1)
            j.desc.form.bits = 9;
        if (kind == 2)
            j.desc.form.bucket = 4;
        if (kind == 3)
            j.desc.keep = 0;
        if (kind == 4)
            j.desc.keep = 0.5;
        world_run_local(world, 4, run_refused, &j);
        for (int r = 0; r < 4; r++)
            assert_int_equal(world[r].status, STINT_E_USAGE);
    }
}

/* Bits of their own for layers; nothing is allocated in a step. */
static void run_quietly(world_rank *me)
{
    job *j = me->user;
    sti_compressed_allreduce *s = NULL;
    float *x = malloc(TOTAL * sizeof *x);
    RANK_CHECK(me, sti_compressed_allreduce_create(me->comm, &j->desc, layers, LAYERS,
                                                   TOTAL, &s) == STINT_OK);
    for (int step = 1; step <= 3; step++) {
        fill(j, sti_comm_rank(me->comm), step, x);
        RANK_CHECK(me, sti_comm_barrier(me->comm) == STINT_OK);
        const int64_t before = sti_alloc_count();
        RANK_CHECK(me, sti_comm_barrier(me->comm) == STINT_OK);
        RANK_CHECK(me, sti_compressed_allreduce_run(s, &sti_team_serial, NULL, step,
                                                    x) == STINT_OK);
        RANK_CHECK(me, sti_comm_barrier(me->comm) == STINT_OK);
        if (step > 1)
            RANK_CHECK(me, sti_alloc_count() == before);
        RANK_CHECK(me, sti_comm_barrier(me->comm) == STINT_OK);
    }
    sti_compressed_allreduce_destroy(s);
    free(x);
}

static void quiet_steps(void **state)
{
    (void)state;
    for (int scheme = 0; scheme < STI_SCHEMES; scheme++) {
        world_rank world[WORLD_MAX];
        job j = {.desc = plain(4, (sti_scheme)scheme)};
        j.desc.group = 2;
        j.desc.feedback = true;
        j.desc.keep = scheme ? 1 : 0.01;
        world_run_local(world, 4, run_quietly, &j);
    }
}

static void bits_of_layers(void **state)
{
    (void)state;
    job j = {.desc = plain(4, STI_SCHEME_SCATTER),
             .steps = 1,
             .bits = {8, 3, 3, 2, 1, STI_COMPRESSED_RAW, 6}};
    double error[LAYERS];
    run(&j, 2);
    for (int l = 0; l < LAYERS; l++) {
        error[l] = 0;
        for (int64_t i = layers[l].first; i < layers[l].first + layers[l].count; i++) {
            const double d = (double)j.result[i] - truth(&j, 2, 1, i);
            error[l] += d * d / (double)layers[l].count;
        }
    }
    assert_true(error[1] < 1e-12 && error[4] < 1e-12 && error[5] < 1e-12);
    assert_true(error[0] < error[6] && error[6] * 50 < error[3]);
    free(j.result);
}

static size_t taken_bytes; /* by all ranks, since it was set to what there was */

static void take_memory(world_rank *me)
{
    const job *j = me->user;
    sti_compressed_allreduce *s = NULL;
    RANK_CHECK(me, sti_comm_barrier(me->comm) == STINT_OK);
    if (sti_comm_rank(me->comm) == 0)
        taken_bytes = sti_alloc_now_bytes();
    RANK_CHECK(me, sti_comm_barrier(me->comm) == STINT_OK);
    RANK_CHECK(me, sti_compressed_allreduce_create(me->comm, &j->desc, layers, LAYERS,
                                                   TOTAL, &s) == STINT_OK);
    RANK_CHECK(me, sti_comm_barrier(me->comm) == STINT_OK);
    if (sti_comm_rank(me->comm) == 0)
        taken_bytes = sti_alloc_now_bytes() - taken_bytes;
    RANK_CHECK(me, sti_comm_barrier(me->comm) == STINT_OK);
    sti_compressed_allreduce_destroy(s);
}

static size_t message_bytes(const sti_compressed_allreduce_desc *d, int ranks)
{
    sti_compressed_extent extent = {0};
    for (int l = 0; l < LAYERS; l++)
        sti_compressed_extent_add(&extent, d, layers[l].count, layers[l].dims);
    assert_int_equal(extent.raw, 2000 + 1023 + 1);
    return sti_compressed_message_bytes(d, ranks, &extent);
}

/* Messages, and tables, which many parts and ranks make larger than the vector, are
 * planned. */
static void planned_bytes(void **state)
{
    (void)state;
    for (int scheme = 0; scheme < STI_SCHEMES; scheme++)
        for (int n = 2; n <= 16; n += 2) {
            world_rank world[WORLD_MAX];
            job j = {.desc = plain(4, (sti_scheme)scheme)};
            j.desc.group = 2;
            j.desc.fusion = n <= 8 ? 0 : 512;
            world_run_local(world, n, take_memory, &j);
            const size_t tables = sti_compressed_table_bytes(&j.desc, n, TOTAL);
            const size_t planned =
                (size_t)n * (message_bytes(&j.desc, n) + tables + LAYERS * 128);
            assert_true(taken_bytes <= planned);
            assert_true(n <= 8 || planned < 3 * taken_bytes);
        }
}

/* Where messages have less room than their bits take, parts wait for each other, and
 * nothing else changes: bits go up to float32 on the way. */
static void parts_take_turns(void **state)
{
    (void)state;
    static const int sizes[] = {2, 3, 5, 8};
    for (int scheme = 0; scheme < STI_SCHEMES; scheme++)
        for (int k = 0; k < 12; k++) {
            const int n = scheme == STI_SCHEME_TWO_LEVEL ? 4 : sizes[k % 4];
            job j = {.desc = plain(k < 4 ? 1 : 2, (sti_scheme)scheme),
                     .steps = 3,
                     .later = 2,
                     .later_bits = k < 8 ? STI_COMPRESSED_RAW : 8,
                     .restless = k % 2 == 0,
                     .slow = k % 3 == 0};
            j.desc.group = 2;
            j.desc.feedback = true;
            j.desc.fusion = 700;
            j.desc.keep = k == 7 ? 0.01 : 1;
            const size_t less = message_bytes(&j.desc, n);
            run(&j, n);
            float *by_turns = j.result;
            j.result = NULL;
            j.desc.room_bits = STI_COMPRESSED_RAW;
            const size_t all = message_bytes(&j.desc, n);
            assert_true(scheme == STI_SCHEME_TWO_LEVEL || k == 7 ? less == all
                                                                 : less < all * 2 / 3);
            run(&j, n);
            assert_memory_equal(by_turns, j.result, (size_t)n * TOTAL * sizeof(float));
            free(by_turns);
            free(j.result);
        }
}

/* Likewise over sockets, where what nobody has room for yet must wait. */
static void parts_take_turns_over_sockets(void **state)
{
    (void)state;
    for (int scheme = 0; scheme < STI_SCHEME_TWO_LEVEL; scheme++) {
        world_rank world[WORLD_MAX];
        job j = {.desc = plain(1, (sti_scheme)scheme),
                 .steps = 3,
                 .later = 2,
                 .later_bits = STI_COMPRESSED_RAW,
                 .restless = true};
        j.desc.fusion = 300;
        run(&j, 4);
        float *threads = j.result;
        j.result = malloc(4 * TOTAL * sizeof *j.result);
        world_run_tcp(world, 4, run_job, &j);
        assert_memory_equal(threads, j.result, 4 * TOTAL * sizeof *threads);
        free(threads);
        free(j.result);
    }
}

/* The same over sockets: the same bits. */
static void over_sockets(void **state)
{
    (void)state;
    world_rank world[WORLD_MAX];
    job j = {.desc = plain(4, STI_SCHEME_TWO_LEVEL), .steps = STEPS};
    j.desc.group = 2;
    j.desc.feedback = true;
    run(&j, 4);
    float *threads = j.result;
    j.result = malloc(4 * TOTAL * sizeof *j.result);
    world_run_tcp(world, 4, run_job, &j);
    assert_memory_equal(threads, j.result, 4 * TOTAL * sizeof *threads);
    for (int r = 0; r < 4; r++)
        assert_int_equal(j.bytes[r], j.wanted_bytes[r]);
    free(threads);
    free(j.result);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(like_the_oracle),
        cmocka_unit_test(every_scheme),
        cmocka_unit_test(beside_the_maker),
        cmocka_unit_test(exact_when_raw),
        cmocka_unit_test(errors_follow_the_model),
        cmocka_unit_test(not_finite_is_named),
        cmocka_unit_test(ranks_that_differ),
        cmocka_unit_test(refused),
        cmocka_unit_test(bits_of_layers),
        cmocka_unit_test(quiet_steps),
        cmocka_unit_test(planned_bytes),
        cmocka_unit_test(parts_take_turns),
        cmocka_unit_test(parts_take_turns_over_sockets),
        cmocka_unit_test(over_sockets),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
