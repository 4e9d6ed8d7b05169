#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <iosfwd>
#include <mutex>
#include <string>
#include <thread>

namespace vfpass::report {

/// One line on a terminal that says what a long command does, and for how long it has been running;
/// each update replaces the previous one. Writes nothing if it is not enabled. Thread-safe.
class ProgressLine {
 public:
  using Clock = std::chrono::steady_clock;

  /// `columns`: width of the terminal.
  ProgressLine(std::ostream& out, bool enabled, std::size_t columns = 80,
               std::function<Clock::time_point()> now = Clock::now);
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;
  ~ProgressLine();

  /// Shows this text; names in it may come from guests. The time counts from the first text.
  void show(const std::string& what);
  /// Updates the time, at most once per second.
  void tick();
  /// The same, but only while the line is there, or once a wait has lasted a second: for a thread,
  /// which must not write it between other lines.
  void refresh();
  [[nodiscard]] bool isEnabled() const { return enabled_; }
  /// Removes the line, before something else is written. The next show() or tick() writes it again.
  void clear();
  /// The same, but nothing writes this text again, and the time counts from the next one.
  void end();
  /// From here to endWait(), which removes it, this is the text if there is no other one, and the
  /// time counts from here.
  void beginWait(const std::string& what);
  void endWait();

 private:
  void draw();
  void erase();

  std::ostream& out_;
  bool enabled_;
  std::size_t columns_;
  std::function<Clock::time_point()> now_;
  std::string what_;
  std::string awaited_;  ///< empty: no wait
  Clock::time_point waitBegin_;
  Clock::time_point begin_;
  Clock::time_point drawn_;
  bool visible_ = false;
  std::mutex mutex_;  ///< of all members that change
};

/// During its lifetime the line counts the seconds while the program works or waits elsewhere, such
/// as in a write to sriov_numvfs. Starts no thread for a line that is not enabled.
class ProgressTicker {
 public:
  explicit ProgressTicker(ProgressLine& line,
                          std::chrono::milliseconds interval = std::chrono::seconds(1));
  ProgressTicker(const ProgressTicker&) = delete;
  ProgressTicker& operator=(const ProgressTicker&) = delete;
  ~ProgressTicker();

 private:
  void run(ProgressLine& line, std::chrono::milliseconds interval);

  std::mutex mutex_;  ///< of ended_
  std::condition_variable end_;
  bool ended_ = false;
  std::thread thread_;
};

/// While the program waits in one call that says nothing: what it waits for, from the first second
/// on, unless the line has another text.
class ProgressWait {
 public:
  ProgressWait(ProgressLine& line, const std::string& what);
  ProgressWait(const ProgressWait&) = delete;
  ProgressWait& operator=(const ProgressWait&) = delete;
  ~ProgressWait();

 private:
  ProgressLine& line_;
  ProgressTicker ticker_;
};

/// The width of the terminal that is standard error.
std::size_t terminalColumns();

}  // namespace vfpass::report
