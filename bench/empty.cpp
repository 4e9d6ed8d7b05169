// A C++ program that does nothing: what the dynamic linker and the C++ library take before main().
#include <iostream>

int main() { std::cout.flush(); }
