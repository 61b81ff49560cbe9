/* A Matrix Market file as entries that pass by: for who keeps some of its rows, or
 * none.
 */
#ifndef STI_DATA_MARKET_STREAM_H
#define STI_DATA_MARKET_STREAM_H

#include "base/entries.h"
#include "data/matrix_market.h"

typedef struct sti_market_stream {
    sti_market_desc desc; /* path, sum and threads count */
    sti_market_symmetry symmetry;
    sti_market_field field;
    int64_t stored; /* entries that the file holds */
} sti_market_stream;

/* Head of the file looked at; a pass of *source_out gives all entries of the matrix,
 * what symmetry leaves out with them, from batches of the file that take at most
 * sti_market_stream_bytes. Both must stay where they are. Errors as sti_market_read. */
stint_status sti_market_stream_open(const sti_market_desc *desc,
                                    sti_market_stream *stream_out,
                                    sti_entry_source *source_out);
size_t sti_market_stream_bytes(void);

#endif
