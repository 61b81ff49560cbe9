#include "svm/kernel_product.h"

#include "base/fail.h"
#include "base/memory.h"
#include "base/stop.h"

/* Consecutive rows of one range that make a tile's side. */
typedef struct band {
    int64_t row, at, count; /* first row; place in the vectors */
} band;

struct sti_kernel_product {
    const sti_team *team;
    const sti_gram_rows *rows;
    const sti_gram_function *function;
    const double *diagonal;
    band *bands;
    int64_t band_count, kept, columns;
    size_t scratch_bytes;
    double *store;   /* [kept] tiles */
    double *made;    /* [threads] tiles */
    char *scratch;   /* [threads, scratch_bytes] */
    double *partial; /* [bands, columns, STI_GRAM_TILE] of the band at work */
    bool filled;     /* the store is */
    /* of a call */
    int64_t row_band, count;
    const double *const *x;
    double *const *y;
};

static int64_t bands_of(int64_t count)
{
    return (count + STI_GRAM_TILE - 1) / STI_GRAM_TILE;
}

int64_t sti_kernel_product_tiles(int64_t count, int64_t other_count)
{
    const int64_t bands = bands_of(count) + bands_of(other_count);
    return bands * (bands + 1) / 2;
}

size_t sti_kernel_product_bytes(const sti_gram_rows *rows, int64_t n, int64_t columns,
                                int threads)
{
    const size_t bands = (size_t)bands_of(n) + 1;
    return bands * (sizeof(band) + (size_t)columns * STI_GRAM_TILE * sizeof(double)) +
           (size_t)threads *
               (STI_GRAM_TILE_BYTES + STI_ALIGN_UP(sti_gram_scratch_bytes(rows), 64));
}

stint_status sti_kernel_product_create(const sti_team *team, const sti_gram_rows *rows,
                                       const sti_gram_function *function, int64_t n,
                                       int64_t columns, int64_t kept,
                                       sti_kernel_product **product_out)
{
    const int64_t bands = bands_of(n) + 1; /* two ranges may have one more */
    sti_kernel_product *p = sti_alloc(sizeof *p, "svm.product");
    if (!p)
        return STINT_E_MEMORY;
    p->team = team;
    p->rows = rows;
    p->function = function;
    p->kept = kept;
    p->columns = columns;
    p->scratch_bytes = STI_ALIGN_UP(sti_gram_scratch_bytes(rows), 64);
    p->bands = sti_alloc_array(bands, sizeof *p->bands, "svm.bands");
    p->store = sti_alloc_array(kept, STI_GRAM_TILE_BYTES, "svm.tiles");
    p->made = sti_alloc_array(team->threads, STI_GRAM_TILE_BYTES, "svm.tile");
    p->scratch = sti_alloc_array(team->threads, p->scratch_bytes, "svm.scratch");
    p->partial =
        sti_alloc_array(bands * columns, STI_GRAM_TILE * sizeof(double), "svm.partial");
    if (p->bands && p->store && p->made && p->scratch && p->partial) {
        *product_out = p;
        return STINT_OK;
    }
    sti_kernel_product_destroy(p);
    return STINT_E_MEMORY;
}

void sti_kernel_product_destroy(sti_kernel_product *p)
{
    if (!p)
        return;
    sti_free(p->bands);
    sti_free(p->store);
    sti_free(p->made);
    sti_free(p->scratch);
    sti_free(p->partial);
    sti_free(p);
}

void sti_kernel_product_select(sti_kernel_product *p, const sti_row_range range[2],
                               const double *diagonal)
{
    int64_t at = 0;
    p->band_count = 0;
    for (int r = 0; r < 2; r++)
        for (int64_t i = 0; i < range[r].count; i += STI_GRAM_TILE) {
            const int64_t left = range[r].count - i;
            const int64_t count = left < STI_GRAM_TILE ? left : STI_GRAM_TILE;
            p->bands[p->band_count++] = (band){range[r].begin + i, at, count};
            at += count;
        }
    p->diagonal = diagonal;
    p->filled = false;
}

/* The tile of two bands, from the store or made here and now. */
static const double *find_tile(const sti_kernel_product *p, int64_t i, int64_t j,
                               int worker)
{
    const int64_t index = i * (i + 1) / 2 + j;
    const int64_t values = STI_GRAM_TILE * STI_GRAM_TILE;
    const bool kept = index < p->kept;
    double *tile = kept ? p->store + index * values : p->made + worker * values;
    if (!kept || !p->filled)
        sti_gram_tile(p->function, p->rows, p->bands[i].row, p->bands[i].count, p->rows,
                      p->bands[j].row, p->bands[j].count, tile,
                      p->scratch + (size_t)worker * p->scratch_bytes);
    return tile;
}

static double *partial_of(const sti_kernel_product *p, int64_t j, int64_t column)
{
    return p->partial + (j * p->columns + column) * STI_GRAM_TILE;
}

/* Tile (row band, piece), times all vectors; below the diagonal its transpose, too. */
static void tile_piece(void *arg, int64_t piece, int worker)
{
    const sti_kernel_product *p = arg;
    const band *u = &p->bands[p->row_band], *v = &p->bands[piece];
    const double *tile = find_tile(p, p->row_band, piece, worker);
    for (int64_t c = 0; c < p->count; c++)
        sti_gram_apply(tile, u->count, v->count, p->x[c] + v->at,
                       partial_of(p, piece, c), p->x[c] + u->at,
                       piece < p->row_band ? p->y[c] + v->at : NULL);
}

/* What the tiles of a row band gave, in ascending order, a column a piece. */
static void join_piece(void *arg, int64_t piece, int worker)
{
    const sti_kernel_product *p = arg;
    const band *u = &p->bands[p->row_band];
    (void)worker;
    for (int64_t i = 0; i < u->count; i++) {
        double sum = p->diagonal[u->at + i] * p->x[piece][u->at + i];
        for (int64_t j = 0; j <= p->row_band; j++)
            sum += partial_of(p, j, piece)[i];
        p->y[piece][u->at + i] = sum;
    }
}

stint_status sti_kernel_product_run(void *arg, int64_t count, const double *const *x,
                                    double *const *y)
{
    sti_kernel_product *p = arg;
    p->count = count;
    p->x = x;
    p->y = y;
    for (p->row_band = 0; p->row_band < p->band_count; p->row_band++) {
        const stint_status st = sti_stop_asked();
        if (st != STINT_OK)
            return sti_fail(st, "stopped before the machine was solved; no model was "
                                "written");
        sti_team_take(p->team, p->row_band + 1, tile_piece, p);
        sti_team_run(p->team, count, join_piece, p);
    }
    p->filled = true;
    return STINT_OK;
}
