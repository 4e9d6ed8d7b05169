// Runs a target once with each file of its corpus, without libFuzzer: replay DIRECTORY
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "fuzz/target.hpp"

int main(int count, char** arguments) {
  if (count != 2) {
    std::fputs("usage: replay DIRECTORY\n", stderr);
    return 2;
  }
  int files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(arguments[1])) {
    std::ifstream file(entry.path(), std::ios::binary);
    const std::string input{std::istreambuf_iterator<char>(file), {}};
    std::printf("%s\n", entry.path().c_str());  // the last name before a crash is the culprit
    std::fflush(stdout);
    vfpass::fuzz::runTarget(input);
    ++files;
  }
  std::printf("%d files\n", files);
  return files == 0 ? 1 : 0;
}
