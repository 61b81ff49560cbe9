/* libstint_mpi.so: the only file that knows MPI. */
#include <mpi.h>
#include <stdio.h>

#include "net/net.h"

static int tell(int error, char *text_out, int text_bytes)
{
    char words[MPI_MAX_ERROR_STRING] = "";
    int length = 0;
    if (error == MPI_SUCCESS)
        return 0;
    MPI_Error_string(error, words, &length);
    snprintf(text_out, (size_t)text_bytes, "%s", words);
    return error;
}

/* The arguments are the program's own business. */
static int begin(int *rank_out, int *size_out, char *text_out, int text_bytes)
{
    int there = 0, given;
    int error = MPI_Initialized(&there);
    if (error == MPI_SUCCESS && !there)
        error = MPI_Init_thread(NULL, NULL, MPI_THREAD_SERIALIZED, &given);
    if (error == MPI_SUCCESS)
        error = MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    if (error == MPI_SUCCESS)
        error = MPI_Comm_rank(MPI_COMM_WORLD, rank_out);
    if (error == MPI_SUCCESS)
        error = MPI_Comm_size(MPI_COMM_WORLD, size_out);
    return tell(error, text_out, text_bytes);
}

static int exchange(const void *mine, int n_bytes, void *all_out, char *text_out,
                    int text_bytes)
{
    return tell(MPI_Allgather(mine, n_bytes, MPI_BYTE, all_out, n_bytes, MPI_BYTE,
                              MPI_COMM_WORLD),
                text_out, text_bytes);
}

static void end(void)
{
    int over = 0;
    if (MPI_Finalized(&over) == MPI_SUCCESS && !over)
        MPI_Finalize();
}

extern __attribute__((visibility("default"))) const sti_mpi_plugin stint_mpi;
const sti_mpi_plugin stint_mpi = {STI_MPI_PLUGIN, begin, exchange, end};
