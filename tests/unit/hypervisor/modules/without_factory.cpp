// A library that is not a module of vfpass.
extern "C" int answer() { return 42; }
