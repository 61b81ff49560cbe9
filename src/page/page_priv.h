/* Inside the page room. */
#ifndef STI_PAGE_PAGE_PRIV_H
#define STI_PAGE_PAGE_PRIV_H

/* The style sheet of every page, NULL-ended (page_style.c). */
extern const char *const sti_page_style[];

#endif
