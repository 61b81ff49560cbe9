/* The order of an epoch in which every class comes equally often: data.sampling =
 * balanced.
 *
 * An epoch has as many samples as the data. They are cut out of one endless row in
 * which class and class take turns: place s is of class s mod K and is that class's (s
 * div K)-th sample, in an order of the class that is drawn anew whenever all of it has
 * been seen. So the counts of two classes in an epoch differ by 1 at most, those of two
 * samples of a class, over any number of epochs, too; samples of a rare class come
 * again and again, those of a common one are spread over epochs. Last the epoch is
 * shuffled. All of it is a function of seed and epoch. */
#ifndef STI_DATA_BALANCED_ORDER_H
#define STI_DATA_BALANCED_ORDER_H

#include "data/data.h"

typedef struct sti_balanced_order sti_balanced_order;

/* Bytes that one takes for so many samples, whatever their classes. */
size_t sti_balanced_order_bytes(int64_t count, int32_t classes);
/* Every class has samples, as data opened for training have. They are not needed
 * afterwards. */
stint_status sti_balanced_order_create(const stint_data *data,
                                       sti_balanced_order **order_out);
void sti_balanced_order_destroy(sti_balanced_order *order); /* NULL is fine */
/* order_out [samples]: indices for sti_data_batch. Allocates nothing. One thread at a
 * time. */
void sti_balanced_order_draw(sti_balanced_order *order, uint64_t seed, int64_t epoch,
                             int32_t *order_out);

#endif
