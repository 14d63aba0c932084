// undecorate: the names that Microsoft's C++ compilers give to functions.
//
// `?push_back@?$vector@HV?$allocator@H@std@@@std@@QEAAXH@Z` becomes
// `std::vector<int,std::allocator<int> >::push_back`: the name with its scopes, as a PDB has it in
// its records of functions, without types of arguments. Names are untrusted; what is not
// understood is shown as it is.
#pragma once

// The readable form; the caller owns it (mem_free). NULL: not such a name, or one that we do not
// understand.
char *undecorate(const char *name);
