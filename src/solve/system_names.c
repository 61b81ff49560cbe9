/* Names of methods and preconditioners, as options and JSON have them. */
#include "solve/system.h"

const char *const sti_method_names[STI_METHODS] = {"auto", "trsv", "cg", "gmres",
                                                   "bicgstab"};
const char *const sti_precond_names[STI_PRECONDS] = {"auto", "none", "jacobi",
                                                     "gs",   "ic0",  "ilu0"};
