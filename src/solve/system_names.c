/* Names of methods, preconditioners and strategies, as options and JSON have them. */
#include "solve/system.h"

const char *const sti_method_names[STI_METHODS] = {"auto", "trsv", "cg", "gmres",
                                                   "bicgstab"};
const char *const sti_precond_names[STI_PRECONDS] = {"auto", "none", "jacobi",
                                                     "gs",   "ic0",  "ilu0"};

const char *const sti_trsv_strategy_names[STI_TRSV_STRATEGIES] = {
    "auto", "natural", "level", "pool", "superstep", "supernode", "push"};
