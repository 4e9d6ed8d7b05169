#include "schedule/findings.hpp"

#include <iostream>

namespace vfpass::crash {

void Findings::add(const Findings& other) {
  traces.insert(other.traces.begin(), other.traces.end());
  for (const auto& [what, number] : other.counts) {
    counts[what] += number;
  }
  runs += other.runs;
  steps += other.steps;
  violations += other.violations;
}

void Findings::print() const {
  for (const auto& [what, number] : counts) {
    std::cout << number << "  " << what << '\n';
  }
  std::cout << steps << "  steps\n"
            << runs << "  runs\n"
            << traces.size() << "  different interleavings\n"
            << violations << "  violations" << std::endl;
}

Message toMessage(const Findings& findings) {
  Message message{bytesOf(findings.runs), bytesOf(findings.steps), bytesOf(findings.violations),
                  ""};
  for (const std::uint64_t trace : findings.traces) {
    message.back() += bytesOf(trace);
  }
  for (const auto& [what, number] : findings.counts) {
    message.insert(message.end(), {what, bytesOf(number)});
  }
  return message;
}

Findings findingsIn(const Message& message) {
  Findings findings;
  findings.runs = valueOf<long>(message.at(0));
  findings.steps = valueOf<long>(message.at(1));
  findings.violations = valueOf<long>(message.at(2));
  const std::string& traces = message.at(3);
  for (std::size_t at = 0; at < traces.size(); at += sizeof(std::uint64_t)) {
    findings.traces.insert(valueOf<std::uint64_t>(traces.substr(at, sizeof(std::uint64_t))));
  }
  for (std::size_t at = 4; at + 1 < message.size(); at += 2) {
    findings.counts[message[at]] = valueOf<long>(message[at + 1]);
  }
  return findings;
}

}  // namespace vfpass::crash
