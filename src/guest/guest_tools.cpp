#include "guest_tools.hpp"

#include <algorithm>
#include <iterator>
#include <sstream>

#include "read_tools.hpp"
#include "vfpass/base/text.hpp"

namespace vfpass::guest {
namespace {

constexpr const char* perftests[] = {"ib_write_bw", "ib_read_bw", "ib_write_lat", "ib_read_lat"};
constexpr const char* allReduceTest = "all_reduce_perf";
constexpr std::uint64_t latencyBytes = 8;
// Not perftest's own port, on which somebody's server may wait.
constexpr const char* tcpPort = "18517";

// Constant text; the names come as arguments.
constexpr const char* findScript =
    R"(for tool; do command -v "$tool" >/dev/null 2>&1 && echo "$tool"; done; exit 0)";

// perftest is two processes, and the one that connects must come second: it is tried until the
// other listens, or has ended. `timeout` ends both where a device hangs.
constexpr const char* pairScript = R"(
timeout 60 "$@" >/dev/null 2>&1 &
listener=$!
for try in 1 2 3 4 5 6 7 8 9 10; do
  said=$(timeout 60 "$@" 127.0.0.1 2>&1) && { printf '%s\n' "$said"; wait; exit 0; }
  kill -0 "$listener" 2>/dev/null || break
  sleep 1
done
kill "$listener" 2>/dev/null
printf '%s\n' "$said"
exit 1
)";

ExecResult shell(Agent& agent, const char* script, const std::vector<std::string>& arguments) {
  std::vector<std::string> all{"-c", script, "vfpass"};
  all.insert(all.end(), arguments.begin(), arguments.end());
  return agent.run("/bin/sh", all);
}

std::string lastLine(const std::string& text) {
  constexpr std::size_t most = 200;
  std::string last;
  for (const std::string& line : splitLines(text)) {
    last = trim(line).empty() ? last : line;
  }
  return last.empty() ? "nothing" : last.substr(0, most);
}

std::string rounded(double value) {
  std::ostringstream text;
  text.precision(3);
  text << value;
  return text.str();
}

/// perftest on one port.
class Perftest {
 public:
  Perftest(Agent& agent, const RdmaPort& port, const ToolRun& run, std::vector<Figure>& figures)
      : agent_(agent), port_(port), run_(run), figures_(figures) {}

  void measure(const std::string& tool) {
    const bool latency = tool.ends_with("_lat");
    const std::string operation = tool.find("read") != std::string::npos ? "read" : "write";
    // Plain write latency into CUDA memory is refused by perftest.
    if (run_.gpu && latency && operation == "write") {
      return;
    }
    const auto arguments = argumentsFor(tool, latency);
    if (arguments.empty()) {
      tell(tool + " knows no CUDA");
      return;
    }
    const ExecResult result = shell(agent_, pairScript, arguments);
    const bool read =
        result.exitCode == 0 && (latency ? takeLatency(tool, operation, result.out)
                                         : takeBandwidth(tool, operation, result.out));
    if (!read) {
      sound_ = false;
      tell(tool + " gives no figure: " + lastLine(result.out));
    }
  }

  [[nodiscard]] Finding finding() const {
    return {"perftest",
            run_.subject,
            sound_ ? Outcome::passed : Outcome::warning,
            "the guest's own perftest over this port",
            said_,
            sound_ ? "" : "run it by hand in the guest; vfpass's own figures stand for themselves"};
  }

 private:
  [[nodiscard]] std::vector<std::string> argumentsFor(const std::string& tool, bool latency) const {
    // Few messages end before a clock can be read.
    constexpr std::uint64_t leastIterations = 100;
    constexpr std::uint64_t mostIterations = 5000;
    std::vector<std::string> arguments{
        tool,
        "-d",
        port_.device,
        "-i",
        std::to_string(port_.number),
        "-s",
        std::to_string(latency ? latencyBytes : run_.bytes),
        "-n",
        std::to_string(std::clamp(run_.iterations, leastIterations, mostIterations)),
        "-F",
        "-p",
        tcpPort};
    if (port_.gidIndex) {
      arguments.insert(arguments.end(), {"-x", std::to_string(*port_.gidIndex)});
    }
    if (!latency) {
      arguments.emplace_back("--report_gbits");
    }
    return run_.gpu ? withCuda(tool, std::move(arguments)) : arguments;
  }

  // Empty when this build has no CUDA.
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

  bool takeBandwidth(const std::string& tool, const std::string& operation,
                     const std::string& text) {
    const auto gigabits = readPerftestBandwidth(text, run_.bytes);
    if (gigabits) {
      Figure figure = figureOf(tool, operation, run_.bytes);
      figure.gigabitsPerSecond = *gigabits;
      figures_.push_back(figure);
      tell(tool + " " + rounded(*gigabits) + " Gb/s");
    }
    return gigabits.has_value();
  }

  bool takeLatency(const std::string& tool, const std::string& operation, const std::string& text) {
    const auto latency = readPerftestLatency(text, latencyBytes);
    if (latency) {
      Figure figure = figureOf(tool, operation, latencyBytes);
      figure.medianMicroseconds = latency->typicalMicroseconds;
      figure.tailMicroseconds = latency->tailMicroseconds;
      figures_.push_back(figure);
      tell(tool + " " + rounded(latency->typicalMicroseconds) + " us");
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
    figure.messageBytes = bytes;
    return figure;
  }

  void tell(const std::string& what) { said_ += (said_.empty() ? "" : "; ") + what; }

  Agent& agent_;
  const RdmaPort& port_;
  const ToolRun& run_;
  std::vector<Figure>& figures_;
  bool sound_ = true;
  std::string said_;
};

}  // namespace

std::set<std::string> findTools(Agent& agent) {
  std::vector<std::string> names(std::begin(perftests), std::end(perftests));
  names.emplace_back(allReduceTest);
  const auto said = splitLines(shell(agent, findScript, names).out);
  std::set<std::string> found;
  // What is not one of the names is not run.
  std::ranges::copy_if(names, std::inserter(found, found.end()), [&](const std::string& name) {
    return std::ranges::find(said, name) != said.end();
  });
  return found;
}

Finding runPerftest(Agent& agent, const std::set<std::string>& tools, const RdmaPort& port,
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
             : Finding{"perftest", run.subject, Outcome::waived, "", "the guest does not have it",
                       ""};
}

Finding runAllReduce(Agent& agent, const std::set<std::string>& tools, std::size_t gpus,
                     std::vector<Figure>& figures) {
  const std::string expected = "all_reduce_perf over the guest's GPUs, no value wrong";
  if (!tools.contains(allReduceTest)) {
    return {"nccl-tests", "", Outcome::waived, "", "the guest does not have them", ""};
  }
  const ExecResult result =
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
          read->right ? "" : "run it by hand in the guest with NCCL_DEBUG=INFO: which GPUs?"};
}

}  // namespace vfpass::guest
