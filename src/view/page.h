// page: the page itself, one HTML file with everything in it. It is made in web/, kept in the tree
// as page.html, and embedded by embed.py.
#pragma once

#include <stddef.h>

extern const char page_html[];
extern const size_t page_html_size;

// Its Content-Security-Policy: no code but the one that is in it, by its hash, and no style. What a
// <meta> element cannot say (frame-ancestors) is not in it.
extern const char page_policy[];

// Where the page is changed for the single file: comments that are in it once.
#define PAGE_POLICY_MARK "<!--tidemark:policy-->"
#define PAGE_DATA_MARK "<!--tidemark:data-->"
