/* stint data matrix: sparse matrices made by rule. */
#include "base/team.h"
#include "base/units.h"
#include "cli/cli.h"
#include "data/matrix_make.h"

typedef struct matrix_args {
    const char *out;
    int64_t seed, threads;
    sti_cli_common common;
} matrix_args;

static const sti_option matrix_rows[] = {
    {.name = "out",
     .letter = 'o',
     .type = STI_OPTION_PATH,
     .default_text = "matrix.mtx",
     .offset = offsetof(matrix_args, out),
     .flag = true,
     .unit = "FILE.mtx",
     .help = "where the matrix goes"},
    {.name = "seed",
     .type = STI_OPTION_INT,
     .default_text = "1",
     .min = 0,
     .max = 1e15,
     .offset = offsetof(matrix_args, seed),
     .flag = true,
     .unit = "N",
     .help = "of what is drawn"},
    STI_CLI_THREADS_ROW(matrix_args),
    STI_CLI_COMMON_ROWS(matrix_args),
};

static stint_status answer(sti_cli_call *call, const sti_market *m)
{
    const matrix_args *args = call->args;
    const int64_t entries = m->a.start[m->a.rows];
    sti_text text = {0};
    sti_json j;
    if (!call->common->json) {
        sti_text_printf(&text, "%s: %s rows, %s nonzeros, %s\n", args->out,
                        sti_count_text(m->a.rows), sti_count_text(entries),
                        sti_market_symmetry_names[m->symmetry]);
        return sti_cli_print(&text);
    }
    sti_cli_json_begin(&j, &text);
    sti_json_text(&j, "out", args->out);
    sti_json_int(&j, "n", m->a.rows);
    sti_json_int(&j, "nonzeros", entries);
    sti_json_text(&j, "symmetry", sti_market_symmetry_names[m->symmetry]);
    sti_json_end_object(&j);
    return sti_cli_answer(call, &text);
}

static stint_status matrix_run(sti_cli_call *call)
{
    const matrix_args *args = call->args;
    sti_market m = {0};
    int threads = 1;
    stint_status st = sti_threads_choose((int)args->threads, &threads, NULL);
    if (st == STINT_OK)
        st = sti_matrix_make(call->operands[0], (uint64_t)args->seed, threads, &m);
    if (st == STINT_OK)
        st = sti_market_write(&m.a, m.symmetry, call->operands[0], threads, args->out);
    if (st == STINT_OK)
        st = answer(call, &m);
    sti_market_fini(&m);
    return st;
}

const sti_cli_command sti_cmd_data_matrix = {
    .name = "data matrix",
    .summary = "make a sparse matrix by rule",
    .operands = "KIND:SIZE",
    .example = "stint data matrix poisson3d:80 --out poisson.mtx\n"
               "stint data matrix rmat:16 --seed 7 --out graph.mtx",
    .about = "Kinds: poisson2d:N and poisson3d:N, second differences on N^2 and N^3 "
             "points; weighted2d and weighted3d, the same with random conductances; "
             "rmat:S, the Laplacian plus 1 of a graph of 2^S vertices; geometric:N, of "
             "near points in a square; arrow:N; and lower triangles: random:N, "
             "chain:N, band:N.",
    .min_operands = 1,
    .max_operands = 1,
    STI_CLI_ARGS(matrix_rows, matrix_args),
    .run = matrix_run,
};
