#pragma once

#include <nlohmann/json_fwd.hpp>
#include <vector>

namespace vfpass::probe {

/// Figures of one series.
struct Statistics {
  double minimum = 0;
  double median = 0;  ///< of an even number: the mean of the middle two
  double mean = 0;
  double percentile99 = 0;   ///< nearest rank
  double percentile999 = 0;  ///< nearest rank
  double maximum = 0;
};

/// All zero for an empty series.
Statistics summarize(std::vector<double> values);

/// `{minimum, median, mean, p99, p99_9, maximum}`, each divided by `unit`.
nlohmann::json toJson(const Statistics& statistics, double unit);

}  // namespace vfpass::probe
