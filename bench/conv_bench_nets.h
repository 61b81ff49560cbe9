/* Convolutions of known networks, every shape once (included by conv_bench.c). */
#ifndef STI_BENCH_CONV_BENCH_NETS_H
#define STI_BENCH_CONV_BENCH_NETS_H

#include "kernel/conv/conv.h"

typedef struct bench_layer {
    const char *name;
    sti_conv_shape shape; /* n, oh, ow and winograd are filled in */
    int times;            /* that the network has it */
} bench_layer;

typedef struct bench_net {
    const char *name;
    int64_t batch; /* unless told */
    const bench_layer *layers;
    int count;
} bench_net;

/* size x size pixels, ci to co channels, k x k taps; so many times, or once. */
#define TIMES(times, label, size, ci, co, k, stride, pad)                        \
    {                                                                            \
        label, {0, size, size, ci, co, k, k, stride, pad, 1, 0, 0, false}, times \
    }
#define SQUARE(...) TIMES(1, __VA_ARGS__)
#define EACH(label, size, c, stride)                                     \
    {                                                                    \
        label, {0, size, size, c, c, 3, 3, stride, 1, c, 0, 0, false}, 1 \
    }

static const bench_layer resnet20_layers[] = {
    SQUARE("stem 3-16 32", 32, 3, 16, 3, 1, 1),
    TIMES(6, "16-16 32", 32, 16, 16, 3, 1, 1),
    SQUARE("16-32 32/2", 32, 16, 32, 3, 2, 1),
    SQUARE("1x1 16-32 32/2", 32, 16, 32, 1, 2, 0),
    TIMES(5, "32-32 16", 16, 32, 32, 3, 1, 1),
    SQUARE("32-64 16/2", 16, 32, 64, 3, 2, 1),
    SQUARE("1x1 32-64 16/2", 16, 32, 64, 1, 2, 0),
    TIMES(5, "64-64 8", 8, 64, 64, 3, 1, 1),
};

static const bench_layer resnet50_layers[] = {
    SQUARE("7x7 3-64 224/2", 224, 3, 64, 7, 2, 3),
    SQUARE("1x1 64-64 56", 56, 64, 64, 1, 1, 0),
    TIMES(3, "3x3 64-64 56", 56, 64, 64, 3, 1, 1),
    TIMES(4, "1x1 64-256 56", 56, 64, 256, 1, 1, 0),
    TIMES(2, "1x1 256-64 56", 56, 256, 64, 1, 1, 0),
    SQUARE("1x1 256-128 56", 56, 256, 128, 1, 1, 0),
    SQUARE("3x3 128-128 56/2", 56, 128, 128, 3, 2, 1),
    TIMES(4, "1x1 128-512 28", 28, 128, 512, 1, 1, 0),
    SQUARE("1x1 256-512 56/2", 56, 256, 512, 1, 2, 0),
    TIMES(3, "1x1 512-128 28", 28, 512, 128, 1, 1, 0),
    TIMES(3, "3x3 128-128 28", 28, 128, 128, 3, 1, 1),
    SQUARE("1x1 512-256 28", 28, 512, 256, 1, 1, 0),
    SQUARE("3x3 256-256 28/2", 28, 256, 256, 3, 2, 1),
    TIMES(6, "1x1 256-1024 14", 14, 256, 1024, 1, 1, 0),
    SQUARE("1x1 512-1024 28/2", 28, 512, 1024, 1, 2, 0),
    TIMES(5, "1x1 1024-256 14", 14, 1024, 256, 1, 1, 0),
    TIMES(5, "3x3 256-256 14", 14, 256, 256, 3, 1, 1),
    SQUARE("1x1 1024-512 14", 14, 1024, 512, 1, 1, 0),
    SQUARE("3x3 512-512 14/2", 14, 512, 512, 3, 2, 1),
    TIMES(3, "1x1 512-2048 7", 7, 512, 2048, 1, 1, 0),
    SQUARE("1x1 1024-2048 14/2", 14, 1024, 2048, 1, 2, 0),
    TIMES(2, "1x1 2048-512 7", 7, 2048, 512, 1, 1, 0),
    TIMES(2, "3x3 512-512 7", 7, 512, 512, 3, 1, 1),
};

#define VGG(size, half, quarter, eighth, sixteenth)                \
    SQUARE("3-64 " #size, size, 3, 64, 3, 1, 1),                   \
        SQUARE("64-64 " #size, size, 64, 64, 3, 1, 1),             \
        SQUARE("64-128 " #half, half, 64, 128, 3, 1, 1),           \
        SQUARE("128-128 " #half, half, 128, 128, 3, 1, 1),         \
        SQUARE("128-256 " #quarter, quarter, 128, 256, 3, 1, 1),   \
        TIMES(2, "256-256 " #quarter, quarter, 256, 256, 3, 1, 1), \
        SQUARE("256-512 " #eighth, eighth, 256, 512, 3, 1, 1),     \
        TIMES(2, "512-512 " #eighth, eighth, 512, 512, 3, 1, 1),   \
        TIMES(3, "512-512 " #sixteenth, sixteenth, 512, 512, 3, 1, 1)

static const bench_layer vgg16_layers[] = {VGG(224, 112, 56, 28, 14)};
static const bench_layer vgg16_32_layers[] = {VGG(32, 16, 8, 4, 2)};

/* MobileNet-v2 at 224x224: one depthwise and one pointwise layer of each stage. */
static const bench_layer mobilenet_layers[] = {
    SQUARE("3-32 224/2", 224, 3, 32, 3, 2, 1),
    EACH("each 32 112", 112, 32, 1),
    SQUARE("1x1 32-16 112", 112, 32, 16, 1, 1, 0),
    SQUARE("1x1 16-96 112", 112, 16, 96, 1, 1, 0),
    EACH("each 96 112/2", 112, 96, 2),
    SQUARE("1x1 96-24 56", 56, 96, 24, 1, 1, 0),
    EACH("each 144 56", 56, 144, 1),
    EACH("each 144 56/2", 56, 144, 2),
    SQUARE("1x1 144-32 28", 28, 144, 32, 1, 1, 0),
    EACH("each 192 28", 28, 192, 1),
    SQUARE("1x1 192-64 14", 14, 192, 64, 1, 1, 0),
    EACH("each 384 14", 14, 384, 1),
    SQUARE("1x1 384-96 14", 14, 384, 96, 1, 1, 0),
    EACH("each 576 14/2", 14, 576, 2),
    SQUARE("1x1 576-160 7", 7, 576, 160, 1, 1, 0),
    EACH("each 960 7", 7, 960, 1),
    SQUARE("1x1 960-320 7", 7, 960, 320, 1, 1, 0),
};

#define NET(label, batch, layers)                              \
    {                                                          \
        label, batch, layers, sizeof layers / sizeof *(layers) \
    }
static const bench_net bench_nets[] = {
    NET("resnet20", 32, resnet20_layers),   NET("resnet50", 16, resnet50_layers),
    NET("vgg16", 16, vgg16_layers),         NET("vgg16-32", 16, vgg16_32_layers),
    NET("mobilenet", 16, mobilenet_layers),
};
enum { BENCH_NETS = sizeof bench_nets / sizeof *bench_nets };

#endif
