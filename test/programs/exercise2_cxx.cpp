// exercise2_cxx: exercise2 with operator new.
#include "exercise2.c"
