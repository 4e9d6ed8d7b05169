#include "prometheus_text.hpp"

#include <array>
#include <charconv>
#include <cmath>
#include <stdexcept>

#include "vfpass/base/text.hpp"

namespace vfpass::metrics {
namespace {

// Longer values are cut: a label is a name, and guests choose some of them.
constexpr std::size_t longestValue = 256;

// A byte that is no character of UTF-8, or a control character, would make node_exporter refuse the
// whole file. printable() writes both as \xNN.
std::string labelValue(const std::string& value) {
  std::string text = printable(value);
  if (text.size() > longestValue) {
    std::size_t end = longestValue;
    while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xc0U) == 0x80U) {
      --end;  // within a character of several bytes
    }
    text.resize(end);
  }
  std::string escaped;
  for (const char each : text) {
    if (each == '\\' || each == '"') {
      escaped += '\\';
    }
    escaped += each;
  }
  return escaped;
}

std::string labelText(const Family& family, const std::vector<std::string>& values) {
  std::string text;
  for (std::size_t i = 0; i < values.size(); ++i) {
    text += (text.empty() ? "{" : ",") + std::string(family.labels.at(i)) + "=\"" +
            labelValue(values[i]) + '"';
  }
  return text.empty() ? text : text + "}";
}

std::size_t labelCount(const Family& family) {
  std::size_t count = 0;
  while (count < family.labels.size() && !family.labels[count].empty()) {
    ++count;
  }
  return count;
}

std::string numberText(double value) {
  if (std::isnan(value)) {
    return "NaN";
  }
  if (std::isinf(value)) {
    return value > 0 ? "+Inf" : "-Inf";
  }
  std::array<char, 64> buffer{};
  const auto end = std::to_chars(buffer.data(), buffer.data() + buffer.size(), value).ptr;
  return {buffer.data(), end};
}

// `# UNIT` is a comment in Prometheus text.
std::string head(const Family& family) {
  const std::string name(family.name);
  std::string text = "# HELP " + name + " " + std::string(family.help) + "\n";
  if (family.isGauge) {
    text += "# TYPE " + name + " gauge\n";
  }
  if (!family.unit.empty()) {
    text += "# UNIT " + name + " " + std::string(family.unit) + "\n";
  }
  return text;
}

}  // namespace

void Exposition::add(const Family& family, const std::vector<std::string>& labels,
                     std::uint64_t value) {
  addText(family, labels, std::to_string(value));
}

void Exposition::add(const Family& family, const std::vector<std::string>& labels, double value) {
  addText(family, labels, numberText(value));
}

void Exposition::addText(const Family& family, const std::vector<std::string>& labels,
                         const std::string& value) {
  if (labels.size() != labelCount(family)) {
    throw std::invalid_argument("wrong number of labels for " + std::string(family.name));
  }
  const std::string text = labelText(family, labels);
  Samples& samples = samples_[family.name];
  if (samples.seen.insert(text).second) {
    samples.lines += std::string(family.name) + text + " " + value + "\n";
  }
}

std::string Exposition::text() const {
  std::string text;
  for (const Family* family : allFamilies()) {
    if (const auto found = samples_.find(family->name); found != samples_.end()) {
      text += head(*family) + found->second.lines;
    }
  }
  return text + "# EOF\n";
}

}  // namespace vfpass::metrics
