/* VGG-13 on images of 32 x 32, dense, by oneDNN: the peer of bench/shrink_vgg13.py.
 *
 *     vgg13_bench BATCH THREADS [ROUNDS]
 *
 * Convolutions with bias (normalisation folded into it) and ReLU, and max pooling, as a
 * chain of primitives in layouts of its own choice from the images on; weights are
 * reordered beforehand; the classifier, 512 numbers an image, is left out. Prints the
 * median of ROUNDS (21) runs in milliseconds and which implementations ran. */
#include <stdio.h>
#include <stdlib.h>

#ifdef STI_BENCH_WITH_DNNL
#include <omp.h>

#include <dnnl.h>

#include "base/clock.h"

enum { STEPS = 15, ARGS = 4, MOST_ROUNDS = 1001 };

typedef struct net {
    dnnl_engine_t engine;
    dnnl_stream_t stream;
    dnnl_primitive_t primitive[STEPS];
    dnnl_exec_arg_t arg[STEPS][ARGS];
    int args[STEPS], steps;
    dnnl_memory_t x; /* what the last step gives */
} net;

static void check(dnnl_status_t status, const char *what)
{
    if (status != dnnl_success) {
        fprintf(stderr, "vgg13_bench: oneDNN cannot do %s (%d)\n", what, (int)status);
        exit(1);
    }
}

static dnnl_memory_t memory_of(const net *n, const dnnl_memory_desc_t *desc)
{
    dnnl_memory_t memory;
    void *data = NULL;
    check(dnnl_memory_create(&memory, desc, n->engine, DNNL_MEMORY_ALLOCATE), "memory");
    check(dnnl_memory_get_data_handle(memory, &data), "memory");
    float *f = data;
    for (size_t k = 0; k < dnnl_memory_desc_get_size(desc) / sizeof *f; k++)
        f[k] = (float)((int)(k * 7 % 19) - 9) / 64.0F;
    return memory;
}

static const dnnl_memory_desc_t *desc_of(dnnl_memory_t memory)
{
    const dnnl_memory_desc_t *desc;
    check(dnnl_memory_get_memory_desc(memory, &desc), "layouts");
    return desc;
}

/* A primitive from the last result to a new one; more: [count] of its operands. */
static void add_step(net *n, const_dnnl_primitive_desc_t pd,
                     const dnnl_exec_arg_t *more, int count)
{
    const int s = n->steps++;
    const dnnl_memory_t y =
        memory_of(n, dnnl_primitive_desc_query_md(pd, dnnl_query_dst_md, 0));
    const char *words = "";
    check(dnnl_primitive_create(&n->primitive[s], pd), "a layer");
    n->arg[s][0] = (dnnl_exec_arg_t){DNNL_ARG_SRC, n->x};
    n->arg[s][1] = (dnnl_exec_arg_t){DNNL_ARG_DST, y};
    for (int i = 0; i < count; i++)
        n->arg[s][2 + i] = more[i];
    n->args[s] = 2 + count;
    n->x = y;
    dnnl_primitive_desc_query(pd, dnnl_query_impl_info_str, 0, &words);
    fprintf(stderr, "%s\n", words);
}

static dnnl_memory_desc_t any(int rank, const dnnl_dims_t dims)
{
    dnnl_memory_desc_t desc;
    check(dnnl_memory_desc_init_by_tag(&desc, rank, dims, dnnl_f32,
                                       rank == 1 ? dnnl_a : dnnl_format_tag_any),
          "layouts");
    return desc;
}

static void add_convolution(net *n, int64_t batch, int64_t side, int64_t from,
                            int64_t to)
{
    const dnnl_dims_t ones = {1, 1};
    const dnnl_memory_desc_t w = any(4, (dnnl_dims_t){to, from, 3, 3});
    const dnnl_memory_desc_t b = any(1, (dnnl_dims_t){to});
    const dnnl_memory_desc_t y = any(4, (dnnl_dims_t){batch, to, side, side});
    dnnl_convolution_desc_t desc;
    dnnl_primitive_attr_t attr;
    dnnl_post_ops_t post;
    dnnl_primitive_desc_t pd;
    check(dnnl_convolution_forward_desc_init(&desc, dnnl_forward_inference,
                                             dnnl_convolution_direct, desc_of(n->x), &w,
                                             &b, &y, ones, ones, ones),
          "a convolution");
    check(dnnl_primitive_attr_create(&attr), "ReLU");
    check(dnnl_post_ops_create(&post), "ReLU");
    check(dnnl_post_ops_append_eltwise(post, 1, dnnl_eltwise_relu, 0, 0), "ReLU");
    check(dnnl_primitive_attr_set_post_ops(attr, post), "ReLU");
    check(dnnl_primitive_desc_create(&pd, &desc, attr, n->engine, NULL),
          "a convolution");
    const dnnl_exec_arg_t more[] = {
        {DNNL_ARG_WEIGHTS,
         memory_of(n, dnnl_primitive_desc_query_md(pd, dnnl_query_weights_md, 0))},
        {DNNL_ARG_BIAS, memory_of(n, &b)}};
    add_step(n, pd, more, 2);
    dnnl_primitive_desc_destroy(pd);
    dnnl_primitive_attr_destroy(attr);
    dnnl_post_ops_destroy(post);
}

static void add_pooling(net *n, int64_t batch, int64_t side, int64_t channels)
{
    const dnnl_dims_t twos = {2, 2}, zeros = {0, 0};
    const dnnl_memory_desc_t y =
        any(4, (dnnl_dims_t){batch, channels, side / 2, side / 2});
    dnnl_pooling_desc_t desc;
    dnnl_primitive_desc_t pd;
    check(dnnl_pooling_forward_desc_init(&desc, dnnl_forward_inference,
                                         dnnl_pooling_max, desc_of(n->x), &y, twos,
                                         twos, zeros, zeros),
          "pooling");
    check(dnnl_primitive_desc_create(&pd, &desc, NULL, n->engine, NULL), "pooling");
    add_step(n, pd, NULL, 0);
    dnnl_primitive_desc_destroy(pd);
}

static double run(const net *n)
{
    const int64_t start = sti_clock_ns();
    for (int s = 0; s < n->steps; s++)
        check(dnnl_primitive_execute(n->primitive[s], n->stream, n->args[s], n->arg[s]),
              "a run");
    check(dnnl_stream_wait(n->stream), "a run");
    return (double)(sti_clock_ns() - start) * 1e-6;
}

static int compare(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

int main(int argc, char **argv)
{
    const int64_t batch = argc > 1 ? atoi(argv[1]) : 1;
    int rounds = argc > 3 ? atoi(argv[3]) : 21;
    const int64_t widths[] = {64, 128, 256, 512, 512};
    static double ms[MOST_ROUNDS];
    static net n;
    rounds = rounds < 1 ? 1 : rounds > MOST_ROUNDS ? MOST_ROUNDS : rounds;
    omp_set_num_threads(argc > 2 ? atoi(argv[2]) : 1);
    check(dnnl_engine_create(&n.engine, dnnl_cpu, 0), "a CPU");
    check(dnnl_stream_create(&n.stream, n.engine, dnnl_stream_default_flags), "runs");
    dnnl_memory_desc_t images;
    check(dnnl_memory_desc_init_by_tag(&images, 4, (dnnl_dims_t){batch, 3, 32, 32},
                                       dnnl_f32, dnnl_nchw),
          "images");
    n.x = memory_of(&n, &images);
    for (int64_t stage = 0, side = 32, from = 3; stage < 5; stage++, side /= 2) {
        add_convolution(&n, batch, side, from, widths[stage]);
        add_convolution(&n, batch, side, widths[stage], widths[stage]);
        add_pooling(&n, batch, side, from = widths[stage]);
    }
    for (int r = -2; r < rounds; r++)
        ms[r < 0 ? 0 : r] = run(&n);
    qsort(ms, (size_t)rounds, sizeof *ms, compare);
    printf("%.3f\n", ms[rounds / 2]);
    return 0;
}

#else

int main(void)
{
    fprintf(stderr, "vgg13_bench: built without oneDNN (libdnnl-dev)\n");
    return 1;
}

#endif
