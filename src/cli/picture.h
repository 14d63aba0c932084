// picture: a chart drawn into a file by gnuplot.
//
// For example plot.svg: gnuplot writes into a folder of its own, and what it wrote is copied to its
// place when it has ended well. With `keep` the script and its data stay, so that a picture can be
// changed by hand.
#pragma once

#include "base/err.h"
#include "report/draw/chart.h"

struct picture {
	struct chart_output output; // its `data` is ignored
	bool force;                 // replace what is there
	bool keep;                  // the script and the data, beside the picture
};

extern const struct picture picture_default; // but for the path

// What would be missing in the end is said before the work.
// False: *err says what to do about it.
bool picture_check(const struct picture *picture, struct err *err);

// The picture appears when it is whole, or not at all.
bool picture_draw(const struct picture *picture, const struct chart *chart, struct err *err);
