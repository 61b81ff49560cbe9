/* The subcommands: one line each, in the order of `stint help`. Nothing but main.c
 * looks here; all else is handed the list, or a call that has it. */
#include "cli/cli.h"

/* clang-format off */
#define COMMANDS(X) \
    X(train) \
    X(eval) \
    X(run) \
    X(finetune) \
    X(shrink) \
    X(serve) \
    X(plan) \
    X(info) \
    X(data_info) \
    X(data_check) \
    X(data_glyphs) \
    X(data_get) \
    X(data_tokens) \
    X(data_table) \
    X(data_matrix) \
    X(solve) \
    X(data_clicks) \
    X(data_rank) \
    X(import_onnx) \
    X(import_hf) \
    X(import_field) \
    X(export_onnx) \
    X(export_hf) \
    X(import_gguf) \
    X(export_gguf) \
    X(svm_train) \
    X(svm_predict) \
    X(svm_scale) \
    X(svm_plan) \
    X(svm_grid) \
    X(export_dense) \
    X(export_embeddings) \
    X(export_compact) \
    X(topk) \
    X(codec_pack) \
    X(codec_unpack) \
    X(codec_info) \
    X(codec_bench) \
    X(net_check) \
    X(net_measure) \
    X(net_predict) \
    X(net_simulate) \
    X(diff) \
    X(compare) \
    X(trust_bits) \
    X(trust_noise) \
    X(trust_memory) \
    X(field_plan) \
    X(field_eval) \
    X(field_draw) \
    X(field_edit) \
    X(field_paste) \
    X(seal_compile) \
    X(seal_import) \
    X(seal_network) \
    X(seal_export) \
    X(seal_sim) \
    X(seal_keygen) \
    X(seal_encrypt) \
    X(seal_plan) \
    X(seal_run) \
    X(seal_decrypt) \
    X(seal_check) \
    X(seal_sets) \
    X(report) \
    X(play_info) \
    X(play_run) \
    X(play_bench) \
    X(bench_step) \
    X(bench_gemm) \
    X(bench_conv) \
    X(bench_topk) \
    X(bench_latency) \
    X(bench_seal) \
    X(bench_sptrsv) \
    X(bench_serve) \
    X(bench_embedding) \
    X(tune_gemm) \
    X(help) \
    X(completion)
/* clang-format on */

#define DECLARE(name) extern const sti_cli_command sti_cmd_##name;
COMMANDS(DECLARE)

#define ROW(name) &sti_cmd_##name,
const sti_cli_command *const sti_cli_commands[] = {COMMANDS(ROW) NULL};

const sti_cli_absent sti_cli_absent_commands[] = {
    {.word = NULL},
};
