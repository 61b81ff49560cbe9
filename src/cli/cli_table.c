/* The subcommands: one line each, in the order of `stint help`. Nothing but main.c
 * looks here; all else is handed the list, or a call that has it. */
#include "cli/cli.h"

/* clang-format off */
#define COMMANDS(X) \
    X(train) \
    X(eval) \
    X(run) \
    X(plan) \
    X(info) \
    X(data_info) \
    X(data_check) \
    X(data_glyphs) \
    X(data_get) \
    X(data_tokens) \
    X(data_table) \
    X(import_hf) \
    X(export_hf) \
    X(svm_train) \
    X(svm_predict) \
    X(svm_scale) \
    X(svm_plan) \
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
    X(report) \
    X(bench_step) \
    X(bench_gemm) \
    X(bench_conv) \
    X(bench_topk) \
    X(tune_gemm) \
    X(help) \
    X(completion)
/* clang-format on */

#define DECLARE(name) extern const sti_cli_command sti_cmd_##name;
COMMANDS(DECLARE)

#define ROW(name) &sti_cmd_##name,
const sti_cli_command *const sti_cli_commands[] = {COMMANDS(ROW) NULL};
