/* Learning rate by step. */
#ifndef STI_TRAIN_LR_SCHEDULE_H
#define STI_TRAIN_LR_SCHEDULE_H

#include "train/schedule_section.h"

/* With w warm-up steps, T steps in all, step s from 0, and p = (s - w) / (T - w):
 *
 *   s < w      lr (start + (1 - start) s / w)
 *   constant   lr
 *   step       lr gamma^k, k milestones (in epochs) being at or before s
 *   cosine     lr (final + (1 - final) (1 + cos(pi p)) / 2)
 *   one-cycle  lr (final + (1 - final) (1 - p)), after Smith and Topin 2018
 *
 * so that no step is lost on a rate of exactly final. With a period P > 0 cosine starts
 * again: p counts from the start of a cycle of P, P f, P f^2 .. steps, each rounded to
 * nearest (warm restarts, Loshchilov and Hutter 2017). */
typedef struct sti_schedule {
    int name;
    double lr, start, final, gamma;
    int64_t warmup, steps; /* w, T */
    int64_t period;        /* P; 0: one cycle */
    double period_factor;  /* f */
    int64_t milestone[STI_MILESTONES_MAX];
    int milestones;
} sti_schedule;

void sti_schedule_init(sti_schedule *schedule, const sti_schedule_values *values,
                       double lr, int64_t steps_per_epoch, int64_t steps);
double sti_schedule_lr(const sti_schedule *schedule, int64_t step);

#endif
