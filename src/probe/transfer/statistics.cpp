#include "transfer/statistics.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <nlohmann/json.hpp>
#include <numeric>

namespace vfpass::probe {
namespace {

double nearestRank(const std::vector<double>& sorted, double share) {
  const double rank = std::ceil(share * static_cast<double>(sorted.size()));
  const auto place = static_cast<std::size_t>(std::max(rank, 1.0)) - 1;
  return sorted[std::min(place, sorted.size() - 1)];
}

}  // namespace

Statistics summarize(std::vector<double> values) {
  if (values.empty()) {
    return {};
  }
  std::ranges::sort(values);
  const std::size_t half = values.size() / 2;
  Statistics result;
  result.minimum = values.front();
  result.maximum = values.back();
  result.median = values.size() % 2 == 1 ? values[half] : (values[half - 1] + values[half]) / 2;
  result.mean =
      std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
  result.percentile99 = nearestRank(values, 0.99);
  result.percentile999 = nearestRank(values, 0.999);
  return result;
}

nlohmann::json toJson(const Statistics& statistics, double unit) {
  return {{"minimum", statistics.minimum / unit},     {"median", statistics.median / unit},
          {"mean", statistics.mean / unit},           {"p99", statistics.percentile99 / unit},
          {"p99_9", statistics.percentile999 / unit}, {"maximum", statistics.maximum / unit}};
}

}  // namespace vfpass::probe
