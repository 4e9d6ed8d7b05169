#include "cases/interleaving.hpp"

#include <poll.h>

#include <algorithm>
#include <iostream>
#include <stdexcept>
#include <vector>

namespace vfpass::crash {
namespace {

constexpr std::chrono::seconds longestWait{30};

}  // namespace

Interleaving::Process& Interleaving::launch(const std::vector<std::string>& words) {
  Program program{{"vfpass"}, ""};
  program.arguments.insert(program.arguments.end(), words.begin(), words.end());
  auto process = std::make_unique<Process>(world_, program);
  for (const auto& word : words) {
    process->name += (process->name.empty() ? "" : " ") + word;
  }
  std::cout << process->name << " begins\n";
  auto& place = processes_[process->name];
  place = std::move(process);
  return *place;
}

void Interleaving::receive(Process& process) {
  if (process.worker.wait(std::chrono::milliseconds(0)) == Worker::Event::ended) {
    process.ended = true;
    process.blocked = false;
    process.result = process.exchange.result();
    process.worker.complete(process.result);
    std::cout << process.name << " ends with " << process.result.code << '\n'
              << process.result.output;
    return;
  }
  process.waiting = process.worker.request();
}

bool Interleaving::serveOne(Process& process) {
  if (process.ended || !process.waiting || (gate && !gate(process, *process.waiting))) {
    return false;
  }
  const Message request = *std::exchange(process.waiting, std::nullopt);
  process.blocked = request.at(0) == "lock";
  if (process.blocked || classOf(request) == ChangeClass::libvirt ||
      classOf(request) == ChangeClass::kernel) {
    std::cout << "  " << process.name << ": " << describe(request) << '\n';
  }
  process.worker.answer(*process.exchange.serve(request));
  return true;
}

void Interleaving::waitForRequests() {
  std::vector<pollfd> sockets;
  std::vector<Process*> polled;
  for (auto& [name, process] : processes_) {
    if (!process->ended && !process->waiting) {
      sockets.push_back({process->worker.descriptor(), POLLIN, 0});
      polled.push_back(process.get());
    }
  }
  if (::poll(sockets.data(), sockets.size(),
             static_cast<int>(std::chrono::milliseconds(longestWait).count())) <= 0) {
    throw std::runtime_error("no process continues");
  }
  for (std::size_t at = 0; at < sockets.size(); ++at) {
    if (sockets[at].revents != 0) {
      receive(*polled[at]);
    }
  }
}

void Interleaving::runUntil(const std::function<bool()>& condition) {
  while (!condition()) {
    bool served = false;
    for (auto& [name, process] : processes_) {
      served = serveOne(*process) || served;
    }
    if (!served && !condition()) {  // a gate may have fulfilled it
      waitForRequests();
    }
  }
}

void Interleaving::runToEnd() {
  runUntil([this] {
    return std::all_of(processes_.begin(), processes_.end(),
                       [](const auto& each) { return each.second->ended; });
  });
}

void Interleaving::kill(Process& process) {
  process.worker.kill();
  process.ended = true;
  process.waiting.reset();
  std::cout << process.name << " is killed\n";
}

}  // namespace vfpass::crash
