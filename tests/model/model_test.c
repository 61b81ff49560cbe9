/* Parameter counts against the published numbers, shapes, and what a user can get
 * wrong. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "graph/graph.h"
#include "stint/model.h"

typedef struct count_case {
    const char *name;
    int64_t side, channels, classes, parameters;
} count_case;

/* resnet18/34/50, alexnet, mobilenetv2: as torchvision counts them. vgg16 at 224
 * pixels: its 138,365,992 less the 4,224 biases of convolutions before batch-norm.
 * resnet20: 269,722 with zero-padded shortcuts and 2,752 for the two projections.
 * mcunet-5fps: the numbers of its published file; with batch-norm, a scale more a
 * channel. */
static const count_case counts[] = {
    {"mlp", 28, 1, 10, 784 * 256 + 256 + 256 * 256 + 256 + 256 * 10 + 10},
    {"lenet5", 28, 1, 10, 61706},
    {"lenet5", 32, 1, 10, 61706},
    {"lenet300", 28, 1, 10, 266610},
    {"lenet5-caffe", 28, 1, 10, 431080},
    {"alexnet", 224, 3, 1000, 61100840},
    {"vgg11", 224, 3, 1000, 132868840 - 2752},
    {"vgg13", 224, 3, 1000, 133053736 - 2944},
    {"vgg16", 224, 3, 1000, 138365992 - 4224},
    {"vgg16", 32, 3, 10, 14724042},
    {"resnet8", 32, 1, 36, 79444},
    {"resnet20", 32, 3, 10, 272474},
    {"resnet32", 32, 3, 10, 466906},
    {"resnet56", 32, 3, 10, 855770},
    {"resnet18", 224, 3, 1000, 11689512},
    {"resnet34", 224, 3, 1000, 21797672},
    {"resnet50", 224, 3, 1000, 25557032},
    {"resnet18", 32, 3, 10, 11173962},
    {"mobilenetv2", 224, 3, 1000, 3504872},
    {"mcunet-5fps", 128, 3, 1000, 630224},
    {"mcunet-5fps-bn", 128, 3, 1000, 630224 + 6008},
    {"smallcnn", 32, 3, 10, 15722},
    {"smallcnn-bn", 32, 3, 10, 15722 - (16 + 32 + 32) + 2 * (16 + 32 + 32)},
};

/* Every row of the table has its exact count above. */
static void every_row_is_counted(void **state)
{
    (void)state;
    for (const stint_model_info *info = stint_model_list(); info->name; info++) {
        bool found = false;
        for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++)
            found = found || strcmp(counts[i].name, info->name) == 0;
        if (!found)
            fail_msg("%s: no count of its parameters in this test", info->name);
    }
}

static stint_value build(stint_graph *g, const char *name, const stint_model_desc *desc,
                         int64_t side, int64_t channels)
{
    stint_shape shape = STINT_SHAPE(2, side, side, channels);
    return stint_model_build(g, name, desc, stint_input(g, "images", &shape));
}

static int64_t parameter_count(const stint_graph *g)
{
    int64_t total = 0;
    for (stint_value v = 0; v < sti_graph_value_count(g); v++)
        if (sti_graph_value(g, v)->role == STI_ROLE_PARAM)
            total += stint_shape_count(&sti_graph_value(g, v)->shape);
    return total;
}

static void published_parameter_counts(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++) {
        const count_case *c = &counts[i];
        for (int mode = STINT_TRAIN; mode <= STINT_EVAL; mode++) {
            stint_graph *g = NULL;
            assert_int_equal(stint_graph_create((stint_mode)mode, &g), STINT_OK);
            stint_model_desc desc = {.classes = c->classes, .dropout = -1};
            stint_value logits = build(g, c->name, &desc, c->side, c->channels);
            if (stint_graph_check(g) != STINT_OK)
                fail_msg("%s: %s", c->name, stint_last_error());
            stint_shape want = STINT_SHAPE(2, c->classes), got;
            got = stint_value_shape(g, logits);
            assert_true(sti_shape_equal(&want, &got));
            if (parameter_count(g) != c->parameters)
                fail_msg("%s: %lld parameters, wanted %lld", c->name,
                         (long long)parameter_count(g), (long long)c->parameters);
            stint_graph_destroy(g);
        }
    }
}

static void every_row_builds(void **state)
{
    (void)state;
    for (const stint_model_info *info = stint_model_list(); info->name; info++)
        for (int stem = STINT_STEM_AUTO; stem <= STINT_STEM_LARGE; stem++) {
            stint_graph *g = NULL;
            assert_int_equal(stint_graph_create(STINT_TRAIN, &g), STINT_OK);
            stint_model_desc desc = {
                .classes = 5, .stem = (stint_stem)stem, .dropout = 0.1f};
            build(g, info->name, &desc, 64, 1);
            if (stint_graph_check(g) != STINT_OK)
                fail_msg("%s stem %d: %s", info->name, stem, stint_last_error());
            assert_true(strlen(info->help) > 5);
            stint_graph_destroy(g);
        }
}

static void width_scales_a_network(void **state)
{
    (void)state;
    stint_graph *g = NULL;
    assert_int_equal(stint_graph_create(STINT_TRAIN, &g), STINT_OK);
    build(g, "resnet8", &(stint_model_desc){.classes = 10, .width = 8}, 32, 3);
    assert_int_equal(stint_graph_check(g), STINT_OK);
    assert_int_equal(parameter_count(g), 19954); /* by hand, as 79,444 above */
    stint_graph_destroy(g);
}

static void expect_failure(const char *name, const stint_model_desc *desc, int64_t side,
                           const char *words)
{
    stint_graph *g = NULL;
    assert_int_equal(stint_graph_create(STINT_TRAIN, &g), STINT_OK);
    assert_int_equal(build(g, name, desc, side, 3), -1);
    assert_int_equal(stint_graph_check(g), STINT_E_INPUT);
    if (!strstr(stint_last_error(), words))
        fail_msg("'%s' is not in: %s", words, stint_last_error());
    stint_graph_destroy(g);
}

static void mistakes_are_named(void **state)
{
    (void)state;
    stint_model_desc ten = {.classes = 10};
    expect_failure("resnet21", &ten, 32, "did you mean 'resnet2");
    expect_failure("transformer-xl", &ten, 32, "unknown");
    expect_failure("vgg16", &ten, 28,
                   "images of 28 x 28 are too small; it needs 32 x 32 or more");
    expect_failure("alexnet",
                   &(stint_model_desc){.classes = 10, .stem = STINT_STEM_LARGE}, 48,
                   "63 x 63");
    expect_failure("lenet5", &ten, 8, "12 x 12");
    expect_failure("lenet5-caffe", &ten, 15, "16 x 16");
    expect_failure("mlp", &(stint_model_desc){.classes = 1}, 8, "2 classes");
    expect_failure("mlp", &(stint_model_desc){.classes = 2, .width = -3}, 8, "width");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(published_parameter_counts),
        cmocka_unit_test(every_row_is_counted),
        cmocka_unit_test(every_row_builds),
        cmocka_unit_test(width_scales_a_network),
        cmocka_unit_test(mistakes_are_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
