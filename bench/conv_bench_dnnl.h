/* The same convolutions by oneDNN, through its C API: layouts of its own choice, direct
 * algorithm, reorders not timed (included by conv_bench.c where the library is found).
 */
#ifndef STI_BENCH_CONV_BENCH_DNNL_H
#define STI_BENCH_CONV_BENCH_DNNL_H

#include <stdbool.h>
#include <string.h>

#include <omp.h>

#include <dnnl.h>

#include "kernel/conv/conv.h"

enum { PEER_ARGS = 3 };

typedef struct peer {
    dnnl_engine_t engine;
    dnnl_stream_t stream;
    dnnl_primitive_t primitive;
    dnnl_memory_t memory[PEER_ARGS];
    dnnl_exec_arg_t arg[PEER_ARGS];
} peer;

static bool peer_init(peer *p)
{
    *p = (peer){0};
    return dnnl_engine_create(&p->engine, dnnl_cpu, 0) == dnnl_success &&
           dnnl_stream_create(&p->stream, p->engine, dnnl_stream_default_flags) ==
               dnnl_success;
}

static void peer_fini(peer *p)
{
    dnnl_stream_destroy(p->stream);
    dnnl_engine_destroy(p->engine);
}

static bool peer_layouts(const sti_conv_shape *s, dnnl_memory_desc_t *x,
                         dnnl_memory_desc_t *w, dnnl_memory_desc_t *y)
{
    const int64_t g = s->groups;
    const dnnl_dims_t xd = {s->n, s->ci, s->h, s->w}, yd = {s->n, s->co, s->oh, s->ow};
    const dnnl_dims_t wd = {s->co, s->ci, s->kh, s->kw};
    const dnnl_dims_t gd = {g, s->co / g, s->ci / g, s->kh, s->kw};
    const dnnl_format_tag_t any = dnnl_format_tag_any;
    return dnnl_memory_desc_init_by_tag(x, 4, xd, dnnl_f32, any) == dnnl_success &&
           dnnl_memory_desc_init_by_tag(y, 4, yd, dnnl_f32, any) == dnnl_success &&
           dnnl_memory_desc_init_by_tag(w, g > 1 ? 5 : 4, g > 1 ? gd : wd, dnnl_f32,
                                        any) == dnnl_success;
}

static bool peer_desc(const sti_conv_shape *s, int direction, bool any,
                      dnnl_convolution_desc_t *desc)
{
    dnnl_memory_desc_t x, w, y;
    const dnnl_dims_t strides = {s->stride, s->stride}, low = {s->pad, s->pad};
    const dnnl_dims_t high = {(s->oh - 1) * s->stride + s->kh - s->h - s->pad,
                              (s->ow - 1) * s->stride + s->kw - s->w - s->pad};
    const dnnl_alg_kind_t its_own =
        any ? dnnl_convolution_auto : dnnl_convolution_direct;
    if (!peer_layouts(s, &x, &w, &y))
        return false;
    if (direction == 0)
        return dnnl_convolution_forward_desc_init(desc, dnnl_forward_training, its_own,
                                                  &x, &w, NULL, &y, strides, low,
                                                  high) == dnnl_success;
    if (direction == 1)
        return dnnl_convolution_backward_data_desc_init(
                   desc, its_own, &x, &w, &y, strides, low, high) == dnnl_success;
    return dnnl_convolution_backward_weights_desc_init(
               desc, its_own, &x, &w, NULL, &y, strides, low, high) == dnnl_success;
}

static bool peer_memory(peer *p, const_dnnl_primitive_desc_t pd, int i,
                        dnnl_query_t query, int arg)
{
    const dnnl_memory_desc_t *md = dnnl_primitive_desc_query_md(pd, query, 0);
    void *data = NULL;
    if (!md || dnnl_memory_create(&p->memory[i], md, p->engine, DNNL_MEMORY_ALLOCATE) !=
                   dnnl_success)
        return false;
    p->arg[i] = (dnnl_exec_arg_t){.arg = arg, .memory = p->memory[i]};
    if (dnnl_memory_get_data_handle(p->memory[i], &data) != dnnl_success || !data)
        return false;
    float *f = data;
    for (size_t k = 0; k < dnnl_memory_desc_get_size(md) / sizeof *f; k++)
        f[k] = (float)((int)(k * 7 % 19) - 9) / 64.0F;
    return true;
}

static void peer_close(peer *p)
{
    for (int i = 0; i < PEER_ARGS; i++)
        dnnl_memory_destroy(p->memory[i]);
    dnnl_primitive_destroy(p->primitive);
    memset(p->memory, 0, sizeof p->memory);
    p->primitive = NULL;
}

/* One layer in one direction; words_out tells which implementation. */
static bool peer_open(peer *p, const sti_conv_shape *s, int direction, bool any,
                      int threads, char words_out[64])
{
    static const dnnl_query_t query[3][3] = {
        {dnnl_query_src_md, dnnl_query_weights_md, dnnl_query_dst_md},
        {dnnl_query_diff_src_md, dnnl_query_weights_md, dnnl_query_diff_dst_md},
        {dnnl_query_src_md, dnnl_query_diff_weights_md, dnnl_query_diff_dst_md}};
    static const int args[3][3] = {
        {DNNL_ARG_SRC, DNNL_ARG_WEIGHTS, DNNL_ARG_DST},
        {DNNL_ARG_DIFF_SRC, DNNL_ARG_WEIGHTS, DNNL_ARG_DIFF_DST},
        {DNNL_ARG_SRC, DNNL_ARG_DIFF_WEIGHTS, DNNL_ARG_DIFF_DST}};
    dnnl_convolution_desc_t desc, forward;
    dnnl_primitive_desc_t pd = NULL, hint = NULL;
    const char *words = "";
    omp_set_num_threads(threads);
    bool ok = peer_desc(s, 0, any, &forward) && peer_desc(s, direction, any, &desc) &&
              dnnl_primitive_desc_create(&hint, &forward, NULL, p->engine, NULL) ==
                  dnnl_success &&
              dnnl_primitive_desc_create(&pd, &desc, NULL, p->engine,
                                         direction ? hint : NULL) == dnnl_success &&
              dnnl_primitive_create(&p->primitive, pd) == dnnl_success;
    for (int i = 0; i < PEER_ARGS && ok; i++)
        ok = peer_memory(p, pd, i, query[direction][i], args[direction][i]);
    if (ok)
        dnnl_primitive_desc_query(pd, dnnl_query_impl_info_str, 0, &words);
    strncpy(words_out, words, 63);
    dnnl_primitive_desc_destroy(pd);
    dnnl_primitive_desc_destroy(hint);
    if (!ok)
        peer_close(p);
    return ok;
}

static void peer_run(peer *p)
{
    dnnl_primitive_execute(p->primitive, p->stream, PEER_ARGS, p->arg);
    dnnl_stream_wait(p->stream);
}

#endif
