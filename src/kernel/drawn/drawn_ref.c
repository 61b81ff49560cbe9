/* Loops of Bayesian weights, portable form. */
#define TABLE sti_bayes_ref
#include "kernel/drawn/drawn_body.h"
