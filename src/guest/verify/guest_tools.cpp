#include "guest_tools.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <iterator>
#include <random>
#include <sstream>
#include <string>
#include <vector>

#include "judge_transfer.hpp"
#include "vfpass/agent/guest_scripts.hpp"
#include "vfpass/base/default_deadlines.hpp"
#include "vfpass/base/text.hpp"

namespace vfpass::verify {
namespace {

constexpr const char* perftests[] = {"ib_write_bw", "ib_read_bw", "ib_write_lat", "ib_read_lat"};
constexpr std::uint64_t perftestLatencyBytes = 8;

// The names are passed as arguments.
constexpr const char* findScript =
    R"(for tool; do command -v "$tool" >/dev/null 2>&1 && echo "$tool"; done; exit 0)";

agent::ExecResult shell(agent::Agent& agent, const std::string& script,
                        const std::vector<std::string>& arguments) {
  std::vector<std::string> all{"vfpass"};
  all.insert(all.end(), arguments.begin(), arguments.end());
  return runShell(agent, script, all);
}

std::string lastLine(const std::string& text) {
  constexpr std::size_t longest = 200;
  std::string last;
  for (const std::string& line : splitLines(text)) {
    last = trim(line).empty() ? last : line;
  }
  return last.empty() ? "no output" : last.substr(0, longest);
}

// Larger rates and latencies are implausible.
constexpr double largestFigure = 1e6;

std::optional<double> number(const std::string& word) {
  double value = 0;
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value);
  const bool whole = error == std::errc{} && end == word.data() + word.size();
  return whole && std::isfinite(value) && value >= 0 && value < largestFigure ? std::optional(value)
                                                                              : std::nullopt;
}

std::vector<std::string> words(const std::string& line) {
  std::istringstream stream(line);
  std::vector<std::string> found;
  for (std::string word; stream >> word;) {
    found.push_back(word);
  }
  return found;
}

// The words of the line after the last header that has this column.
std::vector<std::string> resultLine(std::string_view text, std::string_view column) {
  std::vector<std::string> found;
  bool header = false;
  for (const std::string& line : splitLines(text)) {
    if (header) {
      found = words(line);
    }
    header = trim(line).starts_with("#bytes") && line.find(column) != std::string::npos;
  }
  return found;
}

// Whether the line has this number of columns and is for messages of this size.
bool isResultFor(const std::vector<std::string>& line, std::size_t columns, std::uint64_t bytes) {
  return line.size() == columns && parseNumber(line.front()) == bytes;
}

// The value after a label such as `# Avg bus bandwidth    : `.
std::string valueAfter(std::string_view text, std::string_view label) {
  for (const std::string& line : splitLines(text)) {
    const auto colon = line.find(':');
    if (line.starts_with(label) && colon != std::string::npos) {
      return std::string(trim(line.substr(colon + 1)));
    }
  }
  return "";
}

class Perftest {
 public:
  Perftest(agent::Agent& agent, const RdmaPort& port, const ToolRun& run,
           std::vector<Figure>& figures)
      : agent_(agent), port_(port), run_(run), figures_(figures) {}

  void measure(const std::string& tool) {
    const bool latency = tool.ends_with("_lat");
    const std::string operation = tool.find("read") != std::string::npos ? "read" : "write";
    // perftest refuses to measure write latency into CUDA memory.
    if (run_.gpu && latency && operation == "write") {
      return;
    }
    const auto arguments = argumentsFor(tool, latency);
    if (arguments.empty()) {
      note(tool + " was built without CUDA");
      return;
    }
    const std::string settings = "limit=" + std::to_string(deadlines::guestTool.count()) +
                                 " ports='" + join(randomPorts(), " ") + "'";
    const agent::ExecResult result = shell(agent_, settings + perftestScript, arguments);
    const bool measured =
        result.exitCode == 0 && (latency ? addLatency(tool, operation, result.out)
                                         : addBandwidth(tool, operation, result.out));
    if (!measured) {
      complete_ = false;
      note(tool + " reported no figure: " + lastLine(result.out));
    }
  }

  [[nodiscard]] Finding finding() const {
    return {"perftest",
            run_.subject,
            complete_ ? Outcome::passed : Outcome::warning,
            "figures from the guest's own perftest over this port",
            seen_,
            complete_ ? "" : "run it by hand in the guest; vfpass's own figures are not affected"};
  }

 private:
  [[nodiscard]] std::vector<std::string> argumentsFor(const std::string& tool, bool latency) const {
    // A run with fewer messages is too short to be timed.
    constexpr std::uint64_t leastIterations = 100;
    constexpr std::uint64_t mostIterations = 5000;
    std::vector<std::string> arguments{
        tool,
        "-d",
        port_.device,
        "-i",
        std::to_string(port_.number),
        "-s",
        std::to_string(latency ? perftestLatencyBytes : run_.bytes),
        "-n",
        std::to_string(std::clamp(run_.iterations, leastIterations, mostIterations)),
        "-F"};
    if (port_.gidIndex) {
      arguments.insert(arguments.end(), {"-x", std::to_string(*port_.gidIndex)});
    }
    if (!latency) {
      arguments.emplace_back("--report_gbits");
    }
    return run_.gpu ? withCuda(tool, std::move(arguments)) : arguments;
  }

  // Empty when this build of perftest has no CUDA support.
  [[nodiscard]] std::vector<std::string> withCuda(const std::string& tool,
                                                  std::vector<std::string> arguments) const {
    const std::string help = agent_.run(tool, {"--help"}).out;
    if (help.find("--use_cuda") == std::string::npos) {
      return {};
    }
    arguments.push_back("--use_cuda=" + std::to_string(run_.gpu->index));
    if (run_.gpu->dmaBuf && help.find("--use_cuda_dmabuf") != std::string::npos) {
      arguments.emplace_back("--use_cuda_dmabuf");
    }
    return arguments;
  }

  bool addBandwidth(const std::string& tool, const std::string& operation,
                    const std::string& text) {
    const auto gigabits = readPerftestBandwidth(text, run_.bytes);
    if (gigabits) {
      Figure figure = figureOf(tool, operation, run_.bytes);
      figure.gigabitsPerSecond = *gigabits;
      figures_.push_back(figure);
      note(tool + " " + rounded(*gigabits) + " Gb/s");
    }
    return gigabits.has_value();
  }

  bool addLatency(const std::string& tool, const std::string& operation, const std::string& text) {
    const auto latency = readPerftestLatency(text, perftestLatencyBytes);
    if (latency) {
      Figure figure = figureOf(tool, operation, perftestLatencyBytes);
      figure.medianMicroseconds = latency->typicalMicroseconds;
      figure.tailMicroseconds = latency->tailMicroseconds;
      figures_.push_back(figure);
      note(tool + " " + latencyText(latency->typicalMicroseconds));
    }
    return latency.has_value();
  }

  [[nodiscard]] Figure figureOf(const std::string& tool, const std::string& operation,
                                std::uint64_t bytes) const {
    Figure figure;
    figure.subject = run_.subject;
    figure.source = tool;
    figure.operation = operation;
    figure.memory = run_.gpu ? "gpu" : "host";
    figure.gpu = run_.gpu ? nameOf(*run_.gpu) : "";
    figure.messageBytes = bytes;
    return figure;
  }

  void note(const std::string& text) { seen_ += (seen_.empty() ? "" : "; ") + text; }

  agent::Agent& agent_;
  const RdmaPort& port_;
  const ToolRun& run_;
  std::vector<Figure>& figures_;
  bool complete_ = true;
  std::string seen_;
};

}  // namespace

std::vector<std::string> randomPorts() {
  constexpr unsigned first = 512;  // those below have the best-known services
  constexpr unsigned last = 1023;
  constexpr std::size_t tried = 4;
  std::random_device random;
  std::uniform_int_distribution<unsigned> port(first, last);
  std::set<std::string> ports;
  while (ports.size() < tried) {
    ports.insert(std::to_string(port(random)));
  }
  std::vector<std::string> order(ports.begin(), ports.end());
  std::ranges::shuffle(order, random);
  return order;
}

std::set<std::string> findTools(agent::Agent& agent) {
  std::vector<std::string> names(std::begin(perftests), std::end(perftests));
  names.emplace_back(allReduceTest);
  const auto reported = splitLines(shell(agent, findScript, names).out);
  std::set<std::string> found;
  // Ignore every line that is not one of the names: found programs are run later.
  std::ranges::copy_if(names, std::inserter(found, found.end()), [&](const std::string& name) {
    return std::ranges::find(reported, name) != reported.end();
  });
  return found;
}

Finding runPerftest(agent::Agent& agent, const std::set<std::string>& tools, const RdmaPort& port,
                    const ToolRun& run, std::vector<Figure>& figures) {
  Perftest perftest(agent, port, run, figures);
  bool any = false;
  for (const char* tool : perftests) {
    if (tools.contains(tool)) {
      any = true;
      perftest.measure(tool);
    }
  }
  return any ? perftest.finding()
             : Finding{"perftest", run.subject, Outcome::waived, "", "not installed in the guest",
                       ""};
}

Finding runAllReduce(agent::Agent& agent, const std::set<std::string>& tools, std::size_t gpus,
                     std::vector<Figure>& figures) {
  const std::string expected = "all_reduce_perf over the guest's GPUs without wrong values";
  if (!tools.contains(allReduceTest)) {
    return {"nccl-tests", "", Outcome::waived, "", "not installed in the guest", ""};
  }
  if (gpus == 0) {
    return {"nccl-tests", "", Outcome::waived, "", "CUDA has no GPU", ""};
  }
  const agent::ExecResult result =
      agent.run(allReduceTest, {"-b", "8M", "-e", "128M", "-f", "4", "-g", std::to_string(gpus)});
  const auto read = result.exitCode == 0 ? readAllReduce(result.out) : std::nullopt;
  if (!read) {
    return {"nccl-tests",
            "",
            Outcome::warning,
            expected,
            "no figure: " + lastLine(result.out + "\n" + result.err),
            "run it by hand in the guest with NCCL_DEBUG=INFO"};
  }
  Figure figure;
  figure.source = allReduceTest;
  figure.operation = "all-reduce";
  figure.memory = "gpu";
  figure.messageBytes = std::uint64_t{128} << 20U;
  figure.gigabitsPerSecond = read->busGigabytesPerSecond * 8;
  figures.push_back(figure);
  return {"nccl-tests",
          "",
          read->right ? Outcome::passed : Outcome::failed,
          expected,
          rounded(read->busGigabytesPerSecond) + " GB/s bus bandwidth between " +
              std::to_string(gpus) + " GPUs" + (read->right ? "" : ", wrong values"),
          read->right
              ? ""
              : "run it by hand in the guest with NCCL_DEBUG=INFO to find the GPUs at fault"};
}

std::optional<double> readPerftestBandwidth(std::string_view text, std::uint64_t bytes) {
  // bytes, iterations, peak, average, messages per second
  const auto line = resultLine(text, "BW average[Gb/sec]");
  if (!isResultFor(line, 5, bytes)) {
    return std::nullopt;
  }
  const auto average = number(line[3]);
  return average && *average > 0 ? average : std::nullopt;
}

std::optional<ToolLatency> readPerftestLatency(std::string_view text, std::uint64_t bytes) {
  // bytes, iterations, minimum, maximum, typical, average, deviation, 99 %, 99.9 %
  const auto line = resultLine(text, "t_typical[usec]");
  if (!isResultFor(line, 9, bytes)) {
    return std::nullopt;
  }
  const auto typical = number(line[4]);
  const auto tail = number(line[7]);
  if (!typical || !tail || *typical <= 0) {
    return std::nullopt;
  }
  return ToolLatency{*typical, *tail};
}

std::optional<AllReduce> readAllReduce(std::string_view text) {
  const auto bus = number(valueAfter(text, "# Avg bus bandwidth"));
  const auto wrong = words(valueAfter(text, "# Out of bounds values"));
  if (!bus || wrong.size() != 2) {
    return std::nullopt;
  }
  return AllReduce{*bus, wrong[0] == "0" && wrong[1] == "OK"};
}

}  // namespace vfpass::verify
