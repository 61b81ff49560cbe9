/* Fields: trained networks f(x) that stand for a picture, a sound or a solution, asked
 * for their values and derivatives.
 *
 * A grid of 512 x 512 points with all derivatives to the second order:
 *
 *   stint_model_file *model;
 *   stint_field_eval_result r;
 *   stint_status st = stint_model_open("runs/a/model.safetensors", &model);
 *   if (st == STINT_OK)
 *       st = stint_field_eval(model, &(stint_field_ask){.order = 2},
 *                             &(stint_field_points){.width = 512, .height = 512},
 *                             "values.npy", &r);
 *   if (st != STINT_OK)
 *       fprintf(stderr, "%s\n", stint_last_error());
 *   stint_model_close(model);
 *
 * Derivatives are exact up to rounding: they are those of the network's own formula, by
 * truncated Taylor series in one forward pass or by differentiating the graph again and
 * again, whichever needs fewer multiply-adds. Points are taken in tiles, and results go
 * to the file as they come, so memory does not grow with the number of points.
 *
 * Columns are named by the outputs and what they are differentiated along: u, u_x,
 * u_xy. An output is a number of the network as it was trained: of a picture -1 (black)
 * to 1 (white). Coordinates, too, are the network's own; those of pictures lie on [-1,
 * 1], the first from left to right, the second from the top to the bottom.
 *
 * The ways are those of W. Abi-Karam et al., "INR-Arch" (2023), who nest reverse
 * passes, and of J. Bettencourt et al., "Taylor-Mode Automatic Differentiation" (2019).
 *
 * A model serves one thread at a time. Calls block, and are functions of the model and
 * the points alone: the same bits for any number of threads and any budget. */
#ifndef STINT_FIELD_H
#define STINT_FIELD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "stint/status.h"
#include "stint/store.h"

#ifdef __cplusplus
extern "C" {
#endif

/** How derivatives are found. Both ways give the same numbers up to rounding. */
typedef enum stint_field_way {
    /* The one with fewer multiply-adds, by the products of both graphs. */
    STINT_FIELD_AUTO,
    /* The graph is differentiated backwards, again for every higher order. Cheap for
     * many coordinates, few outputs and order 1. */
    STINT_FIELD_REVERSE,
    /* Every value carries its truncated Taylor series through one forward pass: with d
     * coordinates to order K, C(K + d, d) coefficients. Cheap for few coordinates. */
    STINT_FIELD_JETS
} stint_field_way;

/** Which derivatives. Columns come order by order, and within one in the order of the
 * outputs. */
typedef enum stint_field_columns {
    /* Each mixed derivative once: u, u_x, u_y, u_xx, u_xy, u_yy. */
    STINT_FIELD_DISTINCT,
    /* One for every order of differentiation: u_xy and u_yx, too. */
    STINT_FIELD_ALL
} stint_field_columns;

/** What a field is asked for. All zero: its values. The struct is read during the call
 * only. */
typedef struct stint_field_ask {
    /* Highest order of derivatives, 0 to 10 as the coordinates allow. */
    int order;
    stint_field_columns list;
    /* The first so many columns of all, 0: every one. */
    int64_t most;
    /* Values, first derivatives and the Laplacian alone; order is not looked at. */
    bool laplacian;
    stint_field_way way;
    /* Most resident memory of the process, 0: no budget. Chooses the tile. */
    size_t memory_bytes;
    /* Threads, which take tiles in turn; 0: every CPU. */
    int threads;
    /* Not 0: that many stages, a thread each, that hand tiles on through rings, in
     * place of threads that take tiles in turn. At most 16. */
    int pipeline;
    /* The plan is to have a drawing. */
    bool dot;
    /* Derivatives of order k are divided by scale k times; 0: 1. */
    double scale;
} stint_field_ask;

/** A ring between two stages of a pipeline: what one makes and the other reads of so
 * many tiles. */
typedef struct stint_field_ring {
    /* "0-2: 3 values": from stage 0 to stage 2. */
    char *name;
    /* Tiles that it holds: as few as keep the latency of rings that never fill up. One
     * tile less in any ring makes the pipeline slower, or block. */
    int64_t depth;
    size_t bytes;
} stint_field_ring;

/** What stint_field_plan finds. */
typedef struct stint_field_plan_result {
    /* Columns, and their names [outputs] "u", "u_x", "u_xy"; freed by
     * stint_field_plan_fini. */
    int64_t outputs;
    char **names;
    /* Taylor coefficients a value by jets: d + 2 for a Laplacian alone. */
    int64_t coefficients;
    /* The way taken, and a sentence on why. */
    stint_field_way by;
    char why[256];
    /* Nodes of the graph as it was built, and after each rewriting in turn: what no
     * result depends on removed, equal things merged, signs and factors folded, mixed
     * derivatives that differ in their order taken once, biases into products and runs
     * of element-wise nodes into one each. */
    int64_t built, dead_code, common_subexpression, simplify, symmetric, chain;
    /* Multiply-adds a point; infinite: not built, since its graph
     * has more than 6000 nodes. */
    double reverse_multiply_adds, jets_multiply_adds;
    /* Points of a tile: a power of two, as many as work in half a MiB a thread, or as
     * the budget holds. Bytes that one thread's tile works in, of the weights, and of
     * the process at its highest. */
    int64_t tile;
    size_t arena_bytes, weights_bytes, peak_bytes;
    int threads;
    /* Rings of a pipeline, whose arena_bytes are those of all stages and rings:
     * [streams], and the longest path through its first 64 tiles, in seconds estimated
     * from the operators' costs. Freed by stint_field_plan_fini. */
    int64_t streams;
    stint_field_ring *ring;
    double latency_s;
    /* If asked for, in Graphviz's language: stages and rings, or the graph of a tile.
     * Freed likewise. */
    char *dot;
} stint_field_plan_result;

/** Choose the way and the tile.
 *
 * STINT_E_USAGE: an order beyond what the coordinates allow, or too many columns;
 * STINT_E_BUDGET names the smallest budget that works; STINT_E_INPUT: the model is no
 * field; STINT_E_UNSUPPORTED: an operator without a rule; STINT_E_MEMORY. */
STINT_API stint_status stint_field_plan(const stint_model_file *model,
                                        const stint_field_ask *ask,
                                        stint_field_plan_result *result_out);
/** Free names, rings and drawing, and nothing else of the result. A zeroed result is
 * fine, and so is one that was freed before. */
STINT_API void stint_field_plan_fini(stint_field_plan_result *result);

/** Where a field is asked: a grid, or the rows of a file. */
typedef struct stint_field_points {
    /* A grid, for fields of two coordinates: cell centres on [-1, 1], rows from the
     * top; the first coordinate runs along a row. */
    int64_t width, height;
    /* In place of a grid: a .npy of [points, coordinates] float32, in C order. Its rows
     * are read as they are needed. */
    const char *path;
} stint_field_points;

/** What stint_field_eval did: the plan that it followed, how long it took from the
 * call on, and the most that the process has held since it began.
 * The plan's names are freed by stint_field_plan_fini. */
typedef struct stint_field_eval_result {
    stint_field_plan_result plan;
    int64_t points;
    double seconds;
    size_t peak_rss_bytes;
} stint_field_eval_result;

/** Ask a field and write a float32 .npy of [points, outputs]: as the plan names them.
 *
 * The file is written beside its place and renamed, so that a failure leaves none.
 * Errors as of stint_field_plan, and STINT_E_INPUT for a file of points of another type
 * or other columns, STINT_E_IO. */
STINT_API stint_status stint_field_eval(const stint_model_file *model,
                                        const stint_field_ask *ask,
                                        const stint_field_points *points,
                                        const char *path,
                                        stint_field_eval_result *result_out);

/** What a drawing shows. Pictures are of 8 bits a channel, grey or in colour. */
typedef enum stint_field_show {
    /* Values, -1 black to 1 white. */
    STINT_FIELD_SHOW_VALUE,
    /* The length of the gradient over all outputs, by its 99th percentile. */
    STINT_FIELD_SHOW_GRADIENT,
    /* The Laplacian, grey where it is 0, by its 99th percentile. */
    STINT_FIELD_SHOW_LAPLACIAN,
    /* The direction of the first output's gradient as colour. */
    STINT_FIELD_SHOW_NORMALS
} stint_field_show;

/** Draw a field of two coordinates as a PNG of width x height: what lies at the centres
 * of so many cells on [-1, 1]. All numbers that are shown are held in memory until the
 * picture is whole. Errors as of stint_field_eval; STINT_E_USAGE for sides beyond
 * 16384.
 */
STINT_API stint_status stint_field_draw(const stint_model_file *model, int64_t width,
                                        int64_t height, stint_field_show show,
                                        int threads, const char *path);

/** What an edit is learnt from: fields of two coordinates, and pictures of what each is
 * to become, such as blurred or with its edges alone. All pixels of a target are points
 * to learn from, so the edit belongs to that size. Nothing is kept after the call. */
typedef struct stint_field_edit_desc {
    /* Fields with the same outputs, 1 or 3, and as many paths of pictures. */
    const stint_model_file *const *field;
    const char *const *target;
    int count;
    /* Distinct derivatives up to this order are what the edit sees at a point. */
    int order;
    /* Hidden layers beside a linear map of the features, and their width (0: 64). */
    int64_t depth, width;
    /* Steps of 2048 points by Adam, at a rate (0: 5e-3) that falls as a cosine. */
    int64_t steps;
    double lr;
    int64_t seed;
    int threads; /* 0: every CPU */
} stint_field_edit_desc;

/** What came of it: mean squares beside the targets, of the edit over the last tenth of
 * the steps, and of the fields as they were. */
typedef struct stint_field_edit_result {
    int64_t points, features;
    double loss, unedited;
    double seconds;
} stint_field_edit_result;

/** Learn an edit and write it as a safetensors file.
 *
 * After D. Xu et al., "Signal Processing for Implicit Neural Representations" (2022):
 * a network from a field's values and derivatives at a point to the edited value there,
 * which then edits fields it has never seen. Each feature is brought to mean 0 and
 * deviation 1 over what is learnt from. STINT_E_INPUT: fields of unlike outputs,
 * targets that are no pictures; errors otherwise as of stint_field_plan. */
STINT_API stint_status stint_field_edit_train(const stint_field_edit_desc *desc,
                                              const char *path,
                                              stint_field_edit_result *result_out);

/** Draw a field as the edit makes it: a PNG of width x height, whose points are cell
 * centres on [-1, 1] as in stint_field_draw. threads: 0: every CPU; they change no bit.
 *
 * Derivatives and the edit's network are made tile by tile, so memory grows with the
 * picture alone. STINT_E_INPUT: the edit is damaged, or of fields with other outputs;
 * otherwise as stint_field_draw. Neither the model nor the edit is changed, and a
 * failure leaves no picture. */
STINT_API stint_status stint_field_edit_draw(const stint_model_file *model,
                                             const char *edit, int64_t width,
                                             int64_t height, int threads,
                                             const char *path);

/** A field of PyTorch's: tensors net.K.weight [out, in] and net.K.bias, K from 0. The
 * last layer has no activation; the others have one and the same. */
typedef struct stint_field_import_desc {
    /* Names, "x,y" and "r,g,b"; NULL: x, y, ... and as many as there are. */
    const char *coordinates, *outputs;
    /* What sums are multiplied by before every activation; 0: 1. */
    double omega;
    /* A name of model.activation; NULL: sin. */
    const char *activation;
} stint_field_import_desc;

/** Write such weights as a model file of Stint. STINT_E_INPUT: tensors that are missing
 * or do not chain, numbers that are not finite; STINT_E_USAGE: names that do not fit.
 */
STINT_API stint_status stint_field_import(const char *path,
                                          const stint_field_import_desc *desc,
                                          const char *model_path);

/** What a pasting without seams is made of: three pictures of one size, taken as grey.
 */
typedef struct stint_field_paste_desc {
    /* What is pasted into, what is pasted, and where: bright pixels of the mask. */
    const char *under, *over, *mask;
    /* Pixels a side that all three are resampled to; 0: their own. */
    int64_t size;
    /* Points a pixel in each direction, 1 to 8; 0: 1. */
    int64_t fine;
} stint_field_paste_desc;

/** Write the folder that recipes/field-paste.ini is trained on: points.npy [n, 2], the
 * centres of a grid on [-1, 1], and values.npy [n, 4] with the value of `under` (V),
 * the derivatives of `over` along x and y (G, H), and 1 where the mask is set, else 0
 * (M). Derivatives are those of polynomials through seven pixels.
 *
 * The folder is made if it is not there; files of these names are replaced. points_out:
 * n. STINT_E_INPUT: no pictures, sizes that differ, a mask that is set everywhere or
 * nowhere; STINT_E_USAGE: fine beyond its bounds; STINT_E_IO, STINT_E_MEMORY. Threads
 * may call it at once for different folders. */
STINT_API stint_status stint_field_paste(const stint_field_paste_desc *desc,
                                         const char *folder, int64_t *points_out);

#ifdef __cplusplus
}
#endif

#endif
