/* Loops of Bayesian weights, portable form. */
#define TABLE sti_bayes_ref
#include "kernel/bayes/bayes_body.h"
