/* Recipes: one row an option. The rows are all there is: file, environment, command
 * line, help and documentation come from them. */
#include "train/recipe.h"

#include <assert.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "base/fail.h"
#include "base/file.h"

#define AT(field)        .offset = offsetof(sti_recipe_values, field)
#define RANGE(low, high) .min = (low), .max = (high)
#define COUNT_MAX        1e15

const sti_option sti_recipe_rows[] = {
    {.section = "model",
     .name = "name",
     .type = STI_OPTION_TEXT,
     STI_OPTION_NO_BOUND,
     .default_text = "resnet20",
     AT(model.name),
     .unit = "NAME",
     .help = "network to train: mlp, lenet5, smallcnn, alexnet, vgg11/13/16, "
             "resnet8/20/32/56, resnet18/34/50; of text: gpt, llama, gpt2-124m"},
    {.section = "model",
     .name = "stem",
     .type = STI_OPTION_CHOICE,
     STI_OPTION_NO_BOUND,
     .default_text = "auto",
     .choices = "auto|small|large",
     AT(model.stem),
     .unit = "KIND",
     .help = "first layers: small for images under 96 pixels, large for bigger ones"},
    {.section = "model",
     .name = "width",
     .type = STI_OPTION_INT,
     RANGE(0, 1 << 20),
     .default_text = "0",
     AT(model.width),
     .unit = "N",
     .help = "channels of the first stage, units of an mlp's hidden layers, or columns "
             "of a text model; 0: as published"},
    {.section = "model",
     .name = "depth",
     .type = STI_OPTION_INT,
     RANGE(0, 1024),
     .default_text = "0",
     AT(model.depth),
     .unit = "N",
     .help = "hidden layers of an mlp, or blocks of a text model; 0: as published"},
    {.section = "model",
     .name = "dropout",
     .type = STI_OPTION_FLOAT,
     RANGE(-1, 0.99),
     .default_text = "-1",
     AT(model.dropout),
     .unit = "RATE",
     .help = "dropout before the classifier, where the network has it, or of a text "
             "model's embeddings and branches; -1: as published (of text: none)"},
    {.section = "model",
     .name = "convolution",
     .type = STI_OPTION_CHOICE,
     STI_OPTION_NO_BOUND,
     .default_text = "auto",
     .choices = "auto|direct",
     AT(model.convolution),
     .unit = "KIND",
     .help = "auto: 3 x 3 convolutions by Winograd's minimal filtering where it is "
             "faster (float32); direct: never"},
    {.section = "model",
     .name = "heads",
     .type = STI_OPTION_INT,
     RANGE(0, 4096),
     .default_text = "0",
     AT(model.heads),
     .unit = "N",
     .help = "of text: heads of attention; 0: one for each 64 columns of width, or 12 "
             "where those do not come out even"},
    {.section = "model",
     .name = "kv_heads",
     .type = STI_OPTION_INT,
     RANGE(0, 4096),
     .default_text = "0",
     AT(model.kv_heads),
     .unit = "N",
     .help = "of text: heads of keys and values, shared by several of queries; 0: all "
             "heads (gpt), a fourth of them (llama)"},
    {.section = "model",
     .name = "context",
     .type = STI_OPTION_INT,
     RANGE(0, 1 << 20),
     .default_text = "0",
     AT(model.context),
     .unit = "TOKENS",
     .help = "of text: tokens that are seen at once; 0: 1024"},
    {.section = "model",
     .name = "vocabulary",
     .type = STI_OPTION_INT,
     RANGE(0, 1 << 24),
     .default_text = "0",
     AT(model.vocabulary),
     .unit = "TOKENS",
     .help = "of text: tokens that the model knows, and as many byte pairs are learnt; "
             "0: as the tokeniser has (4096 when byte pairs are learnt)"},

    {.section = "data",
     .name = "path",
     .type = STI_OPTION_PATH,
     STI_OPTION_NO_BOUND,
     .default_text = "",
     AT(data.path),
     .flag = true,
     .flag_name = "data",
     .unit = "PATH",
     .help = "images (folder, tar, IDX, CIFAR) or text"},
    {.section = "data",
     .name = "format",
     .type = STI_OPTION_CHOICE,
     STI_OPTION_NO_BOUND,
     .default_text = "auto",
     .choices = "auto|folder|tar|idx|cifar|text|csv",
     AT(data.format),
     .unit = "KIND",
     .help = "how the data is stored; auto: by what is in the folder"},
    {.section = "data",
     .name = "size",
     .type = STI_OPTION_INT,
     RANGE(0, 4096),
     .default_text = "0",
     AT(data.size),
     .unit = "PIXELS",
     .help = "resize every image to so many pixels a side; 0: all must be of one size"},
    {.section = "data",
     .name = "channels",
     .type = STI_OPTION_INT,
     RANGE(0, 3),
     .default_text = "0",
     AT(data.channels),
     .unit = "N",
     .help = "1 for grey, 3 for colour; 0: as the first image"},
    {.section = "data",
     .name = "crop_pad",
     .type = STI_OPTION_INT,
     RANGE(0, 512),
     .default_text = "0",
     AT(data.crop_pad),
     .unit = "PIXELS",
     .help = "training images are shifted at random by up to so many pixels"},
    {.section = "data",
     .name = "flip",
     .type = STI_OPTION_BOOL,
     STI_OPTION_NO_BOUND,
     .default_text = "false",
     AT(data.flip),
     .help = "training images are mirrored left to right at random"},
    {.section = "data",
     .name = "fit",
     .type = STI_OPTION_CHOICE,
     STI_OPTION_NO_BOUND,
     .default_text = "squash",
     .choices = "squash|crop|pad",
     AT(data.fit),
     .unit = "HOW",
     .help = "how pictures become size x size: both sides squashed to it, the middle "
             "cut out, or padded with grey"},
    {.section = "data",
     .name = "scale_crop",
     .type = STI_OPTION_FLOAT,
     RANGE(0, 1),
     .default_text = "0",
     AT(data.scale_crop),
     .unit = "SHARE",
     .help = "a part of every training image is cut out at random, of at least this "
             "share of its area; 0: none, usual: 0.08"},
    {.section = "data",
     .name = "tokenizer",
     .type = STI_OPTION_CHOICE,
     STI_OPTION_NO_BOUND,
     .default_text = "bpe",
     .choices = "byte|char|bpe",
     AT(data.tokenizer),
     .unit = "KIND",
     .help = "of text: what a token is; char and bpe are learnt from the text"},
    {.section = "data",
     .name = "tokenizer_path",
     .type = STI_OPTION_PATH,
     STI_OPTION_NO_BOUND,
     .default_text = "",
     AT(data.tokenizer_path),
     .unit = "PATH",
     .help = "of text: a tokeniser that is there, a file of `stint data tokens` or a "
             "folder with GPT-2's vocab.json and merges.txt; nothing is learnt then"},
    {.section = "data",
     .name = "validation",
     .type = STI_OPTION_FLOAT,
     RANGE(0, 0.9),
     .default_text = "0.1",
     AT(data.validation),
     .unit = "SHARE",
     .help =
         "of text: share of the tokens, the last ones, that is not trained on but "
         "tested with; of images in class folders without splits: likewise, chosen by "
         "file name"},

    {.section = "train",
     .name = "epochs",
     .type = STI_OPTION_INT,
     RANGE(0, 1000000),
     .default_text = "10",
     AT(train.epochs),
     .flag = true,
     .unit = "N",
     .help = "passes over the training data"},
    {.section = "train",
     .name = "steps",
     .type = STI_OPTION_INT,
     RANGE(0, COUNT_MAX),
     .default_text = "0",
     AT(train.steps),
     .flag = true,
     .unit = "N",
     .help = "batches to train on; 0: all epochs"},
    {.section = "train",
     .name = "batch",
     .type = STI_OPTION_INT,
     RANGE(1, 1 << 20),
     .default_text = "128",
     AT(train.batch),
     .automatic = true,
     .flag = true,
     .unit = "N",
     .help = "images or sequences a step; auto: what trains fastest within memory"},
    {.section = "train",
     .name = "reference_batch",
     .type = STI_OPTION_INT,
     RANGE(1, 1 << 20),
     .default_text = "128",
     AT(train.reference_batch),
     .unit = "N",
     .help =
         "with batch = auto: the batch that the learning rate is for, which grows in "
         "proportion to what is chosen"},
    {.section = "train",
     .name = "shards",
     .type = STI_OPTION_INT,
     RANGE(1, 4096),
     .default_text = "4",
     AT(train.shards),
     .flag = true,
     .unit = "N",
     .help = "parts of a batch: more take less memory"},
    {.section = "train",
     .name = "seed",
     .type = STI_OPTION_INT,
     RANGE(0, COUNT_MAX),
     .default_text = "1",
     AT(train.seed),
     .flag = true,
     .unit = "N",
     .help = "of all chance: same seed, same bits"},
    {.section = "train",
     .name = "seed_init",
     .type = STI_OPTION_INT,
     RANGE(1, COUNT_MAX),
     .default_text = "auto",
     .automatic = true,
     AT(train.seed_init),
     .unit = "N",
     .help = "of the initial weights alone; auto: seed"},
    {.section = "train",
     .name = "seed_order",
     .type = STI_OPTION_INT,
     RANGE(1, COUNT_MAX),
     .default_text = "auto",
     .automatic = true,
     AT(train.seed_order),
     .unit = "N",
     .help = "of the order of the images alone; auto: seed"},
    {.section = "train",
     .name = "seed_augment",
     .type = STI_OPTION_INT,
     RANGE(1, COUNT_MAX),
     .default_text = "auto",
     .automatic = true,
     AT(train.seed_augment),
     .unit = "N",
     .help = "of the augmentation alone; auto: seed"},
    {.section = "train",
     .name = "seed_dropout",
     .type = STI_OPTION_INT,
     RANGE(1, COUNT_MAX),
     .default_text = "auto",
     .automatic = true,
     AT(train.seed_dropout),
     .unit = "N",
     .help = "of dropout alone; auto: seed"},
    {.section = "train",
     .name = "label_smoothing",
     .type = STI_OPTION_FLOAT,
     RANGE(0, 0.99),
     .default_text = "0",
     AT(train.label_smoothing),
     .unit = "SHARE",
     .help = "share of the target that is spread over all classes"},
    {.section = "train",
     .name = "precision",
     .type = STI_OPTION_CHOICE,
     STI_OPTION_NO_BOUND,
     .default_text = "f32",
     .choices = "f32|bf16",
     AT(train.precision),
     .flag = true,
     .unit = "KIND",
     .help = "of activations"},
    {.section = "train",
     .name = "eval_every",
     .type = STI_OPTION_INT,
     RANGE(0, 1000000),
     .default_text = "1",
     AT(train.eval_every),
     .unit = "EPOCHS",
     .help = "epochs between evaluations of the test images; 0: only at the end"},

    {.section = "train",
     .name = "start",
     .type = STI_OPTION_PATH,
     STI_OPTION_NO_BOUND,
     .default_text = "",
     AT(train.start),
     .flag = true,
     .unit = "MODEL",
     .help = "model to begin from: weights and normalisation"},
    {.section = "train",
     .name = "freeze_norm",
     .type = STI_OPTION_BOOL,
     STI_OPTION_NO_BOUND,
     .default_text = "false",
     AT(train.freeze_norm),
     .help =
         "batch-norm takes the running statistics of the model that training begins "
         "from, as in use, and keeps them, instead of each shard's"},
    {.section = "train",
     .name = "validation",
     .type = STI_OPTION_FLOAT,
     RANGE(0, 0.9),
     .default_text = "0",
     AT(train.validation),
     .unit = "SHARE",
     .help = "of each class of training images, share that is not trained on but "
             "decides for train.select"},
    {.section = "train",
     .name = "select",
     .type = STI_OPTION_CHOICE,
     STI_OPTION_NO_BOUND,
     .default_text = "last",
     .choices = "last|accuracy|mismatch",
     AT(train.select),
     .unit = "WHICH",
     .help = "weights that the model gets: of the last epoch, of the one with the best "
             "accuracy on the held-out images, or with the fewest answers there that "
             "are not the reference's"},
    {.section = "train",
     .name = "select_drop",
     .type = STI_OPTION_FLOAT,
     RANGE(0, 1),
     .default_text = "0.01",
     AT(train.select_drop),
     .unit = "SHARE",
     .help = "of mismatch: epochs whose accuracy on the held-out images is lower than "
             "the reference's by more are taken only if all are"},
    {.section = "train",
     .name = "patience",
     .type = STI_OPTION_INT,
     RANGE(0, 1000000),
     .default_text = "0",
     AT(train.patience),
     .unit = "EPOCHS",
     .help = "end the run when so many epochs in a row are no better, as train.select "
             "judges, than the best before them; 0: never"},

    {.section = "loss",
     .name = "reference",
     .type = STI_OPTION_PATH,
     STI_OPTION_NO_BOUND,
     .default_text = "",
     AT(loss.reference),
     .flag = true,
     .unit = "MODEL",
     .help = "model whose answers to keep, by the parts of [loss]"},
    {.section = "loss",
     .name = "hard",
     .type = STI_OPTION_FLOAT,
     RANGE(0, 1e4),
     .default_text = "1",
     AT(loss.hard),
     .unit = "FACTOR",
     .help = "with a reference: of the cross-entropy against the labels"},
    {.section = "loss",
     .name = "pairing",
     .type = STI_OPTION_FLOAT,
     RANGE(0, 1e4),
     .default_text = "1",
     AT(loss.pairing),
     .unit = "FACTOR",
     .help = "of the mean square of the difference between both models' scores"},
    {.section = "loss",
     .name = "soft",
     .type = STI_OPTION_FLOAT,
     RANGE(0, 1e4),
     .default_text = "1",
     AT(loss.soft),
     .unit = "FACTOR",
     .help = "of the cross-entropy against the reference's probabilities"},
    {.section = "loss",
     .name = "temperature",
     .type = STI_OPTION_FLOAT,
     RANGE(0.01, 1000),
     .default_text = "1",
     AT(loss.temperature),
     .unit = "VALUE",
     .help = "of the soft part: both models' scores are divided by it, and the part is "
             "multiplied by its square"},
    {.section = "loss",
     .name = "weighting",
     .type = STI_OPTION_CHOICE,
     STI_OPTION_NO_BOUND,
     .default_text = "uniform",
     .choices = "uniform|learnable|softadapt|focal",
     AT(loss.weighting),
     .unit = "NAME",
     .help = "of the parts, beside their factors: all 1; trained; by how fast each "
             "falls; or pairing stronger where the reference is right"},
    {.section = "loss",
     .name = "softadapt",
     .type = STI_OPTION_CHOICE,
     STI_OPTION_NO_BOUND,
     .default_text = "plain",
     .choices = "plain|loss|normalised",
     AT(loss.softadapt),
     .unit = "FORM",
     .help =
         "of softadapt: by rates, by rates times the part, or by rates over the sum "
         "of their magnitudes"},
    {.section = "loss",
     .name = "window",
     .type = STI_OPTION_INT,
     RANGE(1, 1000000),
     .default_text = "5",
     AT(loss.window),
     .unit = "STEPS",
     .help = "of softadapt: steps whose mean a rate is the change of"},
    {.section = "loss",
     .name = "beta",
     .type = STI_OPTION_FLOAT,
     RANGE(-1e6, 1e6),
     .default_text = "0.1",
     AT(loss.beta),
     .unit = "VALUE",
     .help = "of softadapt: weights are softmax(beta rate)"},
    {.section = "loss",
     .name = "focal_base",
     .type = STI_OPTION_FLOAT,
     RANGE(0, 1e4),
     .default_text = "1",
     AT(loss.focal_base),
     .unit = "WEIGHT",
     .help = "of focal: of every input in the pairing part"},
    {.section = "loss",
     .name = "focal_right",
     .type = STI_OPTION_FLOAT,
     RANGE(0, 1e4),
     .default_text = "5",
     AT(loss.focal_right),
     .unit = "WEIGHT",
     .help = "of focal: added for inputs that the reference gets right"},

    {.section = "prune",
     .name = "sparsity",
     .type = STI_OPTION_FLOAT,
     RANGE(0, 0.9999),
     .default_text = "0",
     AT(prune.sparsity),
     .flag = true,
     .unit = "SHARE",
     .help = "smallest weights that stay zero throughout"},
    {.section = "prune",
     .name = "scope",
     .type = STI_OPTION_CHOICE,
     STI_OPTION_NO_BOUND,
     .default_text = "global",
     .choices = "global|layer",
     AT(prune.scope),
     .unit = "KIND",
     .help = "the share is of all such weights together, or of each layer's"},
    {.section = "prune",
     .name = "epochs",
     .type = STI_OPTION_INT,
     RANGE(0, 1000000),
     .default_text = "0",
     AT(prune.epochs),
     .unit = "N",
     .help = "the share grows to its full size over the first N epochs, fast at first "
             "(cubic), with training between; 0: all at once"},

    {.section = "quantise",
     .name = "bits",
     .type = STI_OPTION_INT,
     RANGE(0, 8),
     .default_text = "0",
     AT(quantise.bits),
     .unit = "N",
     .help =
         "weights of convolutions and dense layers count as rounded to so many bits "
         "(2 to 8), a scale an output channel, in training and use; 0: not rounded"},

    {.section = "optimizer",
     .name = "name",
     .type = STI_OPTION_CHOICE,
     STI_OPTION_NO_BOUND,
     .default_text = "sgd",
     .choices = "sgd|adam|adamw",
     AT(optimizer.name),
     .unit = "NAME",
     .help = "rule that updates the weights"},
    {.section = "optimizer",
     .name = "lr",
     .type = STI_OPTION_FLOAT,
     RANGE(0, 1e6),
     .default_text = "0.1",
     AT(optimizer.lr),
     .flag = true,
     .unit = "RATE",
     .help = "learning rate, highest of the schedule"},
    {.section = "optimizer",
     .name = "momentum",
     .type = STI_OPTION_FLOAT,
     RANGE(0, 0.9999),
     .default_text = "0.9",
     AT(optimizer.momentum),
     .unit = "SHARE",
     .help = "of sgd; 0 needs no memory"},
    {.section = "optimizer",
     .name = "nesterov",
     .type = STI_OPTION_BOOL,
     STI_OPTION_NO_BOUND,
     .default_text = "false",
     AT(optimizer.nesterov),
     .help = "Nesterov's form of momentum"},
    {.section = "optimizer",
     .name = "weight_decay",
     .type = STI_OPTION_FLOAT,
     RANGE(0, 10),
     .default_text = "0",
     AT(optimizer.weight_decay),
     .unit = "FACTOR",
     .help = "pull of the weights towards zero"},
    {.section = "optimizer",
     .name = "decoupled",
     .type = STI_OPTION_BOOL,
     STI_OPTION_NO_BOUND,
     .default_text = "false",
     AT(optimizer.decoupled),
     .help = "decay acts on the weights beside the gradient (always so with adamw)"},
    {.section = "optimizer",
     .name = "decay_all",
     .type = STI_OPTION_BOOL,
     STI_OPTION_NO_BOUND,
     .default_text = "false",
     AT(optimizer.decay_all),
     .help = "decay also biases and normalisation parameters"},
    {.section = "optimizer",
     .name = "beta1",
     .type = STI_OPTION_FLOAT,
     RANGE(0, 0.9999999),
     .default_text = "0.9",
     AT(optimizer.beta1),
     .unit = "SHARE",
     .help = "of adam: memory of the mean gradient"},
    {.section = "optimizer",
     .name = "beta2",
     .type = STI_OPTION_FLOAT,
     RANGE(0, 0.9999999),
     .default_text = "0.999",
     AT(optimizer.beta2),
     .unit = "SHARE",
     .help = "of adam: memory of the mean squared gradient"},
    {.section = "optimizer",
     .name = "epsilon",
     .type = STI_OPTION_FLOAT,
     RANGE(1e-16, 1),
     .default_text = "1e-8",
     AT(optimizer.epsilon),
     .unit = "VALUE",
     .help = "of adam: added to the root of the mean squared gradient"},
    {.section = "optimizer",
     .name = "clip",
     .type = STI_OPTION_FLOAT,
     RANGE(0, 1e6),
     .default_text = "0",
     AT(optimizer.clip),
     .unit = "NORM",
     .help = "a gradient whose norm over all weights is above this is scaled down to "
             "it; 0: never"},

    {.section = "schedule",
     .name = "name",
     .type = STI_OPTION_CHOICE,
     STI_OPTION_NO_BOUND,
     .default_text = "constant",
     .choices = "constant|step|cosine|one-cycle",
     AT(schedule.name),
     .unit = "NAME",
     .help = "course of the learning rate after the warm-up: constant, times gamma at "
             "each milestone, half a cosine down, or a straight line down (one-cycle)"},
    {.section = "schedule",
     .name = "warmup",
     .type = STI_OPTION_FLOAT,
     RANGE(0, 1000000),
     .default_text = "0",
     AT(schedule.warmup),
     .unit = "EPOCHS",
     .help = "epochs of straight rise at the start; 0: none, with one-cycle 0.3 of the "
             "run"},
    {.section = "schedule",
     .name = "milestones",
     .type = STI_OPTION_LIST,
     STI_OPTION_NO_BOUND,
     .default_text = "",
     AT(schedule.milestones),
     .unit = "EPOCHS",
     .help = "of step: epochs after which the rate falls, ascending"},
    {.section = "schedule",
     .name = "gamma",
     .type = STI_OPTION_FLOAT,
     RANGE(0, 1),
     .default_text = "0.1",
     AT(schedule.gamma),
     .unit = "FACTOR",
     .help = "of step: what the rate is multiplied by at a milestone"},
    {.section = "schedule",
     .name = "start_factor",
     .type = STI_OPTION_FLOAT,
     RANGE(0, 1),
     .default_text = "0.04",
     AT(schedule.start_factor),
     .unit = "FACTOR",
     .help = "of lr, where the warm-up begins"},
    {.section = "schedule",
     .name = "final_factor",
     .type = STI_OPTION_FLOAT,
     RANGE(0, 1),
     .default_text = "0",
     AT(schedule.final_factor),
     .unit = "FACTOR",
     .help = "of lr, where cosine and one-cycle end"},

    {.section = "error",
     .name = "tau",
     .type = STI_OPTION_FLOAT,
     RANGE(0, 0.1),
     .default_text = "0.01",
     AT(error.tau),
     .flag = true,
     .flag_name = "error",
     .unit = "SHARE",
     .help = "error of packing in a gradient; 0: none"},
    {.section = "error",
     .name = "every",
     .type = STI_OPTION_INT,
     RANGE(1, 1000000),
     .default_text = "1000",
     AT(error.every),
     .unit = "STEPS",
     .help = "steps between choices of the bounds; also after steps 1, 10 and 100"},
    {.section = "error",
     .name = "dither",
     .type = STI_OPTION_BOOL,
     STI_OPTION_NO_BOUND,
     .default_text = "true",
     AT(error.dither),
     .help = "round packed activations with a known noise, so that the error predicted "
             "is the error made"},
    {.section = "error",
     .name = "pack",
     .type = STI_OPTION_CHOICE,
     STI_OPTION_NO_BOUND,
     .default_text = "auto",
     .choices = "auto|all",
     AT(error.pack),
     .unit = "WHICH",
     .help = "activations to hold packed: auto, as the memory budget asks; all, every "
             "one that can be and is not made again in less time"},
    {.section = "error",
     .name = "check",
     .type = STI_OPTION_BOOL,
     STI_OPTION_NO_BOUND,
     .default_text = "false",
     AT(error.check),
     .help = "also measure the gradient error, from tensors that are then kept: for "
             "looking into the prediction, not for saving memory"},

    {.section = "noise",
     .name = "order",
     .type = STI_OPTION_INT,
     RANGE(0, COUNT_MAX),
     .default_text = "0",
     AT(noise.order),
     .unit = "SEED",
     .help = "for studies: the shards of each step are summed in an order shuffled by "
             "this seed; 0: in their own"},
    {.section = "noise",
     .name = "ulp",
     .type = STI_OPTION_INT,
     RANGE(0, COUNT_MAX),
     .default_text = "0",
     AT(noise.ulp),
     .unit = "SEED",
     .help = "for studies: the last bit of one initial weight, chosen by this seed, is "
             "flipped; 0: none"},

    {.section = "net",
     .name = "bits",
     .type = STI_OPTION_INT,
     RANGE(1, 32),
     .automatic = true,
     .default_text = "32",
     AT(net.bits),
     .unit = "N",
     .help =
         "bits a gradient value between processes, 1 to 8; 32: exact; auto: a layer's "
         "own, with the error of 4 bits for all"},
    {.section = "net",
     .name = "error",
     .type = STI_OPTION_FLOAT,
     RANGE(0.001, 1000),
     .default_text = "1",
     AT(net.error),
     .unit = "X",
     .help =
         "of net.bits = auto: squared error that is allowed, as a multiple of that of "
         "4 bits for all"},
    {.section = "net",
     .name = "link",
     .type = STI_OPTION_TEXT,
     STI_OPTION_NO_BOUND,
     .default_text = "",
     AT(net.link),
     .flag = true,
     .flag_name = "net",
     .unit = "RATE",
     .help = "compress gradients for this link; or auto"},
    {.section = "net",
     .name = "time",
     .type = STI_OPTION_TIME,
     STI_OPTION_NO_BOUND,
     .default_text = "100ms",
     AT(net.time),
     .unit = "TIME",
     .help = "time that net.link, as 100Mbit, may take a step: bits are chosen to fit"},
    {.section = "net",
     .name = "every",
     .type = STI_OPTION_INT,
     RANGE(1, 1000000),
     .default_text = "100",
     AT(net.every),
     .unit = "STEPS",
     .help = "steps between choices of bits"},
    {.section = "net",
     .name = "method",
     .type = STI_OPTION_CHOICE,
     STI_OPTION_NO_BOUND,
     .choices = "maxmin|qsgd|qsgd-max",
     .default_text = "maxmin",
     AT(net.method),
     .help = "quantiser of gradients"},
    {.section = "net",
     .name = "rounding",
     .type = STI_OPTION_CHOICE,
     STI_OPTION_NO_BOUND,
     .choices = "nearest|stochastic|correlated",
     .default_text = "nearest",
     AT(net.rounding),
     .help = "rounding of gradients; the last two are unbiased"},
    {.section = "net",
     .name = "bucket",
     .type = STI_OPTION_INT,
     RANGE(8, 65536),
     .default_text = "1024",
     AT(net.bucket),
     .unit = "VALUES",
     .help = "values that share a scale, a multiple of 8"},
    {.section = "net",
     .name = "clip",
     .type = STI_OPTION_BOOL,
     STI_OPTION_NO_BOUND,
     .default_text = "false",
     AT(net.clip),
     .help =
         "search each bucket's range for the least squared error (maxmin); pays below "
         "5 bits"},
    {.section = "net",
     .name = "feedback",
     .type = STI_OPTION_BOOL,
     STI_OPTION_NO_BOUND,
     .default_text = "true",
     AT(net.feedback),
     .help = "add what rounding took to the next step's gradient, up to 6 bits"},
    {.section = "net",
     .name = "keep",
     .type = STI_OPTION_FLOAT,
     RANGE(0, 1),
     .default_text = "1",
     AT(net.keep),
     .unit = "SHARE",
     .help = "send only this share of a layer's values, the largest, and feed the rest "
             "back"},
    {.section = "net",
     .name = "scheme",
     .type = STI_OPTION_CHOICE,
     STI_OPTION_NO_BOUND,
     .choices = "scatter|ring|two-level",
     .default_text = "scatter",
     AT(net.scheme),
     .help = "how a compressed sum travels"},
    {.section = "net",
     .name = "group",
     .type = STI_OPTION_INT,
     RANGE(1, 65536),
     .default_text = "1",
     AT(net.group),
     .unit = "N",
     .help = "processes a host, for two-level"},
    {.section = "net",
     .name = "overlap",
     .type = STI_OPTION_BOOL,
     STI_OPTION_NO_BOUND,
     .default_text = "true",
     AT(net.overlap),
     .help =
         "sum over processes while the backward pass still runs, by a thread of its "
         "own; changes no bit"},

    {.section = "run",
     .name = "out",
     .letter = 'o',
     .type = STI_OPTION_PATH,
     STI_OPTION_NO_BOUND,
     .default_text = "",
     AT(run.out),
     .flag = true,
     .unit = "DIR",
     .help = "folder for the run's files; default: runs/<recipe>"},
    {.section = "run",
     .name = "threads",
     .letter = 'j',
     .type = STI_OPTION_INT,
     RANGE(0, 1024),
     .default_text = "0",
     AT(run.threads),
     .flag = true,
     .unit = "N",
     .help = "threads; 0: every CPU. Changes no result"},
    {.section = "run",
     .name = "memory",
     .letter = 'm',
     .type = STI_OPTION_BYTES,
     STI_OPTION_NO_BOUND,
     .default_text = "auto",
     AT(run.memory_bytes),
     .flag = true,
     .unit = "SIZE",
     .help = "most resident memory, as 150M"},
    {.section = "run",
     .name = "lanes",
     .type = STI_OPTION_INT,
     RANGE(0, 1024),
     .default_text = "0",
     AT(run.lanes),
     .unit = "N",
     .help = "shards worked on side by side; 0: what threads and memory allow. Never "
             "changes a result"},
    {.section = "run",
     .name = "checkpoint_every",
     .type = STI_OPTION_INT,
     RANGE(0, COUNT_MAX),
     .default_text = "0",
     AT(run.checkpoint_every),
     .unit = "STEPS",
     .help = "steps between checkpoints; 0: after each epoch"},
    {.section = "run",
     .name = "keep",
     .type = STI_OPTION_INT,
     RANGE(1, 1000000),
     .default_text = "2",
     AT(run.keep),
     .unit = "N",
     .help = "newest checkpoints to keep"},
    {.section = "run",
     .name = "log_every",
     .type = STI_OPTION_INT,
     RANGE(1, 1000000),
     .default_text = "10",
     AT(run.log_every),
     .unit = "STEPS",
     .help = "steps between lines of log.jsonl"},
    {.section = "run",
     .name = "hash_every",
     .type = STI_OPTION_INT,
     RANGE(0, 1000000),
     .default_text = "0",
     AT(run.hash_every),
     .unit = "STEPS",
     .help = "steps between lines of log.jsonl with hashes of all weights and "
             "optimiser state; 0: none"},
    {.section = "run",
     .name = "answers",
     .type = STI_OPTION_BOOL,
     STI_OPTION_NO_BOUND,
     .default_text = "false",
     AT(run.answers),
     .help = "at the end, also write the class found for each test image to "
             "answers.npy"},
    {.section = "run",
     .name = "tensorboard",
     .type = STI_OPTION_PATH,
     STI_OPTION_NO_BOUND,
     .default_text = "",
     AT(run.tensorboard),
     .flag = true,
     .unit = "DIR",
     .help = "also write TensorBoard event files to this folder"},
};
const int sti_recipe_row_count =
    (int)(sizeof sti_recipe_rows / sizeof sti_recipe_rows[0]);

static const char *const formats[] = {"auto",  "folder", "tar", "idx",
                                      "cifar", "text",   "csv"};

static stint_status create(const char *path, stint_recipe **recipe_out)
{
    sti_arena *arena = sti_arena_create("recipe");
    if (!arena)
        return STINT_E_MEMORY;
    stint_recipe *r = sti_arena_alloc(arena, sizeof *r);
    sti_origin *origin =
        sti_arena_alloc(arena, (size_t)sti_recipe_row_count * sizeof *origin);
    stint_status st = r && origin ? STINT_OK : STINT_E_MEMORY;
    if (st == STINT_OK) {
        r->arena = arena;
        r->set = (sti_option_set){.rows = sti_recipe_rows,
                                  .count = sti_recipe_row_count,
                                  .target = &r->values,
                                  .arena = arena,
                                  .origin = origin};
        st = sti_options_default(&r->set);
    }
    if (st == STINT_OK && path) {
        r->path = sti_arena_strdup(arena, path);
        st = r->path ? STINT_OK : STINT_E_MEMORY;
    }
    if (st != STINT_OK) {
        sti_arena_destroy(arena);
        return st;
    }
    *recipe_out = r;
    return STINT_OK;
}

stint_status stint_recipe_create(stint_recipe **recipe_out)
{
    return create(NULL, recipe_out);
}

/* The folder of a run is easily given for the recipe in it. */
static stint_status refuse_folder(const stint_recipe *r)
{
    const char *inside = sti_path_join(r->arena, r->path, "recipe.ini");
    if (!inside)
        return STINT_E_MEMORY;
    if (!sti_path_is_file(inside))
        return sti_fail(STINT_E_IO, "%s: is a folder, the file of a recipe is wanted",
                        r->path);
    return sti_fail(STINT_E_IO,
                    "%s: is a folder, the file of a recipe is wanted; that of the run "
                    "in it is %s",
                    r->path, inside);
}

stint_status stint_recipe_load(const char *path, stint_recipe **recipe_out)
{
    stint_recipe *r;
    stint_status st = create(path, &r);
    if (st != STINT_OK)
        return st;
    st = sti_path_is_dir(path) ? refuse_folder(r) : sti_options_read_ini(&r->set, path);
    if (st != STINT_OK) {
        stint_recipe_destroy(r);
        return st;
    }
    *recipe_out = r;
    return STINT_OK;
}

stint_status sti_recipe_parse(const char *text, const char *where,
                              stint_recipe **recipe_out)
{
    stint_recipe *r;
    stint_status st = create(NULL, &r);
    if (st != STINT_OK)
        return st;
    st = sti_options_parse_ini(&r->set, text, where, ".");
    if (st != STINT_OK) {
        stint_recipe_destroy(r);
        return st;
    }
    *recipe_out = r;
    return STINT_OK;
}

void stint_recipe_destroy(stint_recipe *recipe)
{
    if (recipe)
        sti_arena_destroy(recipe->arena);
}

/* Row of "section.name", or -1. */
static int find_row(const char *key)
{
    for (int i = 0; i < sti_recipe_row_count; i++) {
        size_t length = strlen(sti_recipe_rows[i].section);
        if (strncmp(key, sti_recipe_rows[i].section, length) == 0 &&
            key[length] == '.' &&
            strcmp(key + length + 1, sti_recipe_rows[i].name) == 0)
            return i;
    }
    return -1;
}

static stint_status unknown_key(const char *key)
{
    enum { KEYS_MAX = 128, KEY_BYTES = 64 };
    static_assert(sizeof sti_recipe_rows / sizeof sti_recipe_rows[0] < KEYS_MAX,
                  "room for every row");
    char text[KEYS_MAX][KEY_BYTES];
    const char *names[KEYS_MAX];
    for (int i = 0; i < sti_recipe_row_count; i++) {
        snprintf(text[i], KEY_BYTES, "%s.%s", sti_recipe_rows[i].section,
                 sti_recipe_rows[i].name);
        names[i] = text[i];
    }
    const char *near = sti_text_nearest(key, names, sti_recipe_row_count);
    if (near)
        return sti_fail(STINT_E_USAGE, "%s: no such recipe key; did you mean %s?", key,
                        near);
    return sti_fail(
        STINT_E_USAGE,
        "%s: no such recipe key; keys are written section.name, for example "
        "train.batch",
        key);
}

stint_status stint_recipe_set(stint_recipe *recipe, const char *key, const char *value)
{
    int row = find_row(key);
    if (row < 0)
        return unknown_key(key);
    return sti_options_put(&recipe->set, row, value, STI_FROM_COMMAND, key);
}

uint64_t sti_recipe_seed(const sti_recipe_values *v, sti_stream stream)
{
    int64_t own = stream == STI_STREAM_INIT      ? v->train.seed_init
                  : stream == STI_STREAM_SHUFFLE ? v->train.seed_order
                  : stream == STI_STREAM_AUGMENT ? v->train.seed_augment
                  : stream == STI_STREAM_DROPOUT ? v->train.seed_dropout
                                                 : 0;
    return (uint64_t)(own > 0 ? own : v->train.seed);
}

const char *sti_recipe_format(const stint_recipe *recipe)
{
    return formats[recipe->values.data.format];
}

stint_data_fit sti_recipe_fit(const stint_recipe *recipe)
{
    return (stint_data_fit)(recipe->values.data.fit + 1);
}

const char *sti_recipe_network(const stint_recipe *recipe)
{
    return recipe->values.model.name ? recipe->values.model.name : "";
}

static bool has_text(const char *text)
{
    return text && *text;
}

char *sti_recipe_out(const stint_recipe *recipe, sti_arena *arena)
{
    if (has_text(recipe->values.run.out))
        return sti_path_absolute(arena, recipe->values.run.out);
    const char *name =
        recipe->path ? sti_path_name(recipe->path) : sti_recipe_network(recipe);
    size_t length = strlen(name) - strlen(sti_path_extension(name));
    char *folder = sti_arena_printf(arena, "runs/%.*s", (int)length, name);
    return folder ? sti_path_absolute(arena, folder) : NULL;
}

stint_status sti_recipe_write(const stint_recipe *recipe, bool share, sti_text *out)
{
    sti_arena *arena = sti_arena_create("recipe text");
    if (!arena)
        return STINT_E_MEMORY;
    stint_recipe *copy;
    stint_status st = create(NULL, &copy);
    if (st != STINT_OK) {
        sti_arena_destroy(arena);
        return st;
    }
    sti_recipe_values defaults = copy->values;
    copy->values = recipe->values;
    copy->set.origin = NULL; /* all values are written, not only those set */
    if (share) {
        copy->values.run = defaults.run;
        copy->values.data.path = copy->values.data.tokenizer_path = NULL;
        copy->values.train.start = copy->values.loss.reference = NULL;
    } else {
        const char **paths[] = {&copy->values.data.path, &copy->values.run.tensorboard,
                                &copy->values.data.tokenizer_path,
                                &copy->values.train.start,
                                &copy->values.loss.reference};
        for (size_t i = 0; i < sizeof paths / sizeof paths[0]; i++)
            if (has_text(*paths[i]))
                *paths[i] = sti_path_absolute(arena, *paths[i]);
        copy->values.run.out = sti_recipe_out(recipe, arena);
    }
    sti_options_write_ini(&copy->set, out);
    if (out->failed)
        st = sti_fail(STINT_E_MEMORY, "out of memory for the text of a recipe");
    stint_recipe_destroy(copy);
    sti_arena_destroy(arena);
    return st;
}

stint_status sti_recipe_copy(const stint_recipe *recipe, stint_recipe **copy_out)
{
    sti_text text = {0};
    stint_status st = sti_recipe_write(recipe, false, &text);
    if (st == STINT_OK)
        st = sti_recipe_parse(text.data, "the recipe", copy_out);
    sti_text_fini(&text);
    return st;
}

/* Does this key leave the weights as they are? */
static bool is_free(const sti_option *row, const stint_recipe *now)
{
    /* A tokeniser itself is compared, not where it lies. */
    static const char *const harmless[] = {
        "data.path",   "data.format",    "data.tokenizer_path", "train.eval_every",
        "train.start", "loss.reference", "net.overlap"};
    if (strcmp(row->section, "run") == 0)
        return true;
    for (size_t i = 0; i < sizeof harmless / sizeof harmless[0]; i++) {
        size_t length = strlen(row->section);
        if (strncmp(harmless[i], row->section, length) == 0 &&
            strcmp(harmless[i] + length + 1, row->name) == 0)
            return true;
    }
    /* These two rates do not look at the end of the run: it may be moved. */
    bool endless = now->values.schedule.name == STI_SCHEDULE_CONSTANT ||
                   now->values.schedule.name == STI_SCHEDULE_STEP;
    return endless && strcmp(row->section, "train") == 0 &&
           (strcmp(row->name, "epochs") == 0 || strcmp(row->name, "steps") == 0);
}

void sti_recipe_differences(const stint_recipe *now, const char *now_word,
                            const stint_recipe *then, const char *then_word,
                            sti_text *list)
{
    for (int i = 0; i < sti_recipe_row_count; i++) {
        const sti_option *row = &sti_recipe_rows[i];
        if (is_free(row, now))
            continue;
        sti_text a = {0}, b = {0};
        sti_options_value(&now->set, i, &a);
        sti_options_value(&then->set, i, &b);
        const char *new_text = a.data ? a.data : "", *old_text = b.data ? b.data : "";
        if (strcmp(new_text, old_text) != 0)
            sti_text_printf(list, "%s%s.%s (%s %s, %s %s)", list->length ? ", " : "",
                            row->section, row->name, now_word,
                            *new_text ? new_text : "empty", then_word,
                            *old_text ? old_text : "empty");
        sti_text_fini(&a);
        sti_text_fini(&b);
    }
}
