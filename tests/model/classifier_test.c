/* Which parameters are the classifier's: of every network its last layer and nothing
 * else. */
#include "model/classifier.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

typedef struct tally {
    const sti_classifier *classifier;
    int64_t numbers, tensors;
} tally;

static stint_status add(void *user, const sti_value_row *row,
                        const sti_allocation *allocation)
{
    tally *t = user;
    (void)allocation;
    if (sti_classifier_has(t->classifier, row)) {
        t->numbers += stint_shape_count(&row->shape);
        t->tensors++;
    }
    return STINT_OK;
}

/* Numbers of the classifier of a network for 7 classes. */
static int64_t count_of(const char *name, int64_t side, int64_t channels)
{
    const sti_network_desc desc = {.name = name,
                                   .model = {.classes = 7},
                                   .height = side,
                                   .width = side,
                                   .channels = channels};
    sti_network network;
    sti_classifier classifier;
    assert_int_equal(sti_network_build(&desc, STINT_TRAIN, 2, &network), STINT_OK);
    assert_int_equal(sti_network_plan(&network, 1), STINT_OK);
    assert_int_equal(sti_classifier_init(&desc, &classifier), STINT_OK);
    tally t = {.classifier = &classifier};
    sti_network_each(&network, STI_ROLE_PARAM, add, &t);
    assert_int_equal(t.tensors, 2); /* weights and biases */
    sti_classifier_fini(&classifier);
    sti_network_fini(&network);
    return t.numbers;
}

static void the_last_layer_and_nothing_else(void **state)
{
    static const struct {
        const char *name;
        int64_t side, channels, features;
    } cases[] = {
        {"mlp", 12, 1, 256},        {"lenet5", 28, 1, 84},    {"smallcnn", 32, 3, 32},
        {"resnet8", 32, 1, 64},     {"resnet18", 32, 3, 512}, {"vgg11", 32, 3, 512},
        {"smallcnn-bn", 32, 3, 32},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const int64_t got = count_of(cases[i].name, cases[i].side, cases[i].channels);
        if (got != (cases[i].features + 1) * 7)
            fail_msg("%s: %lld numbers", cases[i].name, (long long)got);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_last_layer_and_nothing_else),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
