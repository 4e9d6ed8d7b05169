#pragma once

#include <algorithm>
#include <cstdio>
#include <functional>
#include <string>
#include <vector>

namespace vfpass::bench {

struct Case {
  std::string title;                ///< begins its line of the result
  std::function<double()> measure;  ///< seconds of one run
  std::vector<double> seconds = {};
};

/// Runs every case once in each round, so that a disturbance of the machine meets all of them.
inline void measureInterleaved(std::vector<Case>& cases, int rounds) {
  for (int round = 0; round < rounds; ++round) {
    for (Case& each : cases) {
      each.seconds.push_back(each.measure());
    }
  }
}

/// Prints a line for each case: its median with the least and the greatest value, and the ratio to
/// the first case, which is called `first`.
inline void printMedians(std::vector<Case>& cases, const std::string& first) {
  double ofFirst = 0;
  for (Case& each : cases) {
    std::ranges::sort(each.seconds);
    const double median = each.seconds[each.seconds.size() / 2];
    ofFirst = ofFirst == 0 ? median : ofFirst;
    std::printf("%s %7.3f (%.3f-%.3f) s, %.2f times %s\n", each.title.c_str(), median,
                each.seconds.front(), each.seconds.back(), median / ofFirst, first.c_str());
  }
}

}  // namespace vfpass::bench
