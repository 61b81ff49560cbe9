/* oneDNN's bfloat16 matrix product, f32 result, operands in layouts of its choice
 * (its reorders are not timed). */
#ifndef STI_BENCH_BF16_BENCH_DNNL_H
#define STI_BENCH_BF16_BENCH_DNNL_H

#include <dnnl.h>

typedef struct peer {
    dnnl_engine_t engine;
    dnnl_stream_t stream;
    dnnl_primitive_t primitive;
    dnnl_memory_t memory[3];
    bool ready;
} peer;

static void peer_memory(peer *p, dnnl_primitive_desc_t desc, dnnl_query_t what, int i)
{
    const dnnl_memory_desc_t *md = dnnl_primitive_desc_query_md(desc, what, 0);
    p->ready = p->ready && md &&
               dnnl_memory_create(&p->memory[i], md, p->engine, DNNL_MEMORY_ALLOCATE) ==
                   dnnl_success;
}

static void peer_open(peer *p, int64_t n)
{
    const dnnl_dims_t dims = {n, n};
    dnnl_memory_desc_t half, whole;
    dnnl_matmul_desc_t op;
    dnnl_primitive_desc_t desc = NULL;
    *p = (peer){.ready = false};
    if (dnnl_engine_create(&p->engine, dnnl_cpu, 0) != dnnl_success ||
        dnnl_stream_create(&p->stream, p->engine, dnnl_stream_default_flags) !=
            dnnl_success)
        return;
    dnnl_memory_desc_init_by_tag(&half, 2, dims, dnnl_bf16, dnnl_format_tag_any);
    dnnl_memory_desc_init_by_tag(&whole, 2, dims, dnnl_f32, dnnl_ab);
    if (dnnl_matmul_desc_init(&op, &half, &half, NULL, &whole) != dnnl_success ||
        dnnl_primitive_desc_create(&desc, &op, NULL, p->engine, NULL) != dnnl_success)
        return;
    p->ready = dnnl_primitive_create(&p->primitive, desc) == dnnl_success;
    peer_memory(p, desc, dnnl_query_src_md, 0);
    peer_memory(p, desc, dnnl_query_weights_md, 1);
    peer_memory(p, desc, dnnl_query_dst_md, 2);
    dnnl_primitive_desc_destroy(desc);
}

static void peer_run(const peer *p)
{
    const dnnl_exec_arg_t args[] = {{DNNL_ARG_SRC, p->memory[0]},
                                    {DNNL_ARG_WEIGHTS, p->memory[1]},
                                    {DNNL_ARG_DST, p->memory[2]}};
    dnnl_primitive_execute(p->primitive, p->stream, 3, args);
    dnnl_stream_wait(p->stream);
}

static void peer_close(peer *p)
{
    for (int i = 0; i < 3; i++)
        dnnl_memory_destroy(p->memory[i]);
    dnnl_primitive_destroy(p->primitive);
    dnnl_stream_destroy(p->stream);
    dnnl_engine_destroy(p->engine);
}

#endif
