/* Inside the data room: which columns of click data are labels, numbers and ids. */
#ifndef STI_DATA_CLICKS_COLUMNS_H
#define STI_DATA_CLICKS_COLUMNS_H

#include "data/clicks_text.h"

/* desc->label into compare and threshold. STINT_E_USAGE. */
stint_status sti_click_label_parse(sti_click_text *text);
/* What the columns of a header, which have their names, are. STINT_E_INPUT. */
stint_status sti_click_columns_choose(sti_click_text *text);
/* Fields and numbers of libsvm and libffm: of libffm by a look at all lines, whose
 * fields get indices in ascending order. */
stint_status sti_click_features_choose(sti_click_text *text);

#endif
