/* What a layer is expected to take, by its shape and zeros alone: for choices that must
 * be the same on every machine. Not how long it takes on this one. */
#ifndef STI_KERNEL_PLANAR_COST_H
#define STI_KERNEL_PLANAR_COST_H

#include "kernel/planar/planar.h"

/* Microseconds that one thread of a Zen 4 takes, weights coming from memory: sparse, as
 * sti_planar_plan_of has it; and dense, as a network runs it (with minimal filtering
 * where it fits). bench/planar_bench.c holds both against times. */
double sti_planar_cost(const sti_planar_shape *shape, const sti_planar_zeros *zeros);
double sti_planar_dense_cost(const sti_planar_shape *shape);

#endif
