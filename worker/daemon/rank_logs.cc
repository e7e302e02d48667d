#include "worker/daemon/rank_logs.h"

#include <sys/stat.h>

#include <algorithm>
#include <charconv>
#include <optional>
#include <string_view>
#include <utility>

#include "base/log_rotation.h"
#include "base/text/utf8.h"
#include "worker/session/rank_log_path.h"

namespace troupe {
namespace {

constexpr int64_t kLogBytesMax = 4 << 20;  // all files of a rank
constexpr size_t kMessageBytes = 256 << 10;

// Returns the rank in "rank-3.WORKER.log"; -1 for other names.
int RankOfLog(std::string_view name, const std::string& worker) {
  constexpr std::string_view kBegin = "rank-";
  const std::string end_of_name = "." + worker + ".log";
  if (!name.starts_with(kBegin) || !name.ends_with(end_of_name)) return -1;
  name.remove_prefix(kBegin.size());
  name.remove_suffix(std::min(name.size(), end_of_name.size()));
  int rank = -1;
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), rank);
  return error == std::errc() && end == name.data() + name.size() ? rank : -1;
}

// Whether a rank on this worker writes a file of such a name: "rank-3.WORKER.log.2",
// "rank-3.WORKER.trace", "rank-3.WORKER.epoch-1.flight.json".
bool IsOfWorker(std::string_view name, const std::string& worker) {
  constexpr std::string_view kBegin = "rank-";
  if (!name.starts_with(kBegin)) return false;
  name.remove_prefix(kBegin.size());
  const size_t digits = name.find_first_not_of("0123456789");
  if (digits == 0 || digits == std::string_view::npos) return false;
  return name.substr(digits).starts_with("." + worker + ".");
}

// By the wall clock, in nanoseconds; nothing where the file cannot be looked at.
std::optional<int64_t> WrittenAt(const std::string& path) {
  struct stat found = {};
  if (lstat(path.c_str(), &found) != 0 || !S_ISREG(found.st_mode)) return std::nullopt;
  return int64_t{found.st_mtim.tv_sec} * 1'000'000'000 + found.st_mtim.tv_nsec;
}

struct LogTail {
  std::string text;
  int64_t left_out = 0;  // bytes before `text`
};

// Returns the end of the file, at most `bytes_max`, beginning with a whole line.
LogTail Tail(FileSystem& files, const std::string& path, int64_t bytes_max) {
  const auto file = files.Open(path, SymbolicLinks::kRefuse);
  if (!file.ok()) return {};
  const int64_t bytes = std::min((*file)->size(), bytes_max);
  std::string text(static_cast<size_t>(bytes), '\0');
  const int64_t begin = (*file)->size() - bytes;
  if (!(*file)->ReadAt(begin, std::as_writable_bytes(std::span(text.data(), text.size()))).ok())
    return {};
  const size_t line = begin > 0 ? text.find('\n') + 1 : 0;
  text.erase(0, line);
  return {std::move(text), begin + static_cast<int64_t>(line)};
}

// Returns the end of a log, at most kLogBytesMax, including its rotated files.
LogTail TailOfAll(FileSystem& files, const std::string& path) {
  LogTail all = Tail(files, path, kLogBytesMax);
  for (int number = 1; number <= kMostLogFiles; ++number) {
    const std::string aside = fmt::format("{}.{}", path, number);
    const auto file = files.Open(aside, SymbolicLinks::kRefuse);
    if (!file.ok()) break;
    const int64_t room = kLogBytesMax - static_cast<int64_t>(all.text.size());
    if (all.left_out > 0 || room <= 0) {
      all.left_out += (*file)->size();
      continue;
    }
    LogTail older = Tail(files, aside, room);
    all = {older.text + all.text, older.left_out};
  }
  return all;
}

// Makes a line valid UTF-8, as protobuf's strings require; a log may contain any bytes.
std::string Utf8Line(std::string_view line) {
  std::string text(line);
  ReplaceIllFormed(text);
  return text;
}

// Returns how many bytes of `line` to keep, at most kMessageBytes, without a part of a character.
size_t KeptBytes(std::string_view line) {
  constexpr size_t kMostContinuations = 3;
  if (line.size() <= kMessageBytes) return line.size();
  size_t end = kMessageBytes;
  while (end > kMessageBytes - kMostContinuations &&
         (static_cast<unsigned char>(line[end]) & 0xC0u) == 0x80u) {
    --end;
  }
  return end;
}

void AddLine(std::string_view line, v1::LogLines* lines) {
  const size_t kept = KeptBytes(line);
  lines->add_lines(Utf8Line(line.substr(0, kept)));
  if (kept < line.size())
    lines->add_lines(fmt::format("… the line above has {} more bytes", line.size() - kept));
}

// Returns the ranks to read, ascending.
std::vector<int> RanksOf(FileSystem& files, const session::Config& config,
                         const v1::ReadLogs& request) {
  if (request.rank() >= 0) return {request.rank()};
  std::vector<int> ranks;
  const auto entries = files.List(ParentDirectory(session::RankLogPath(config, request.job(), 0)));
  if (!entries.ok()) return ranks;
  for (const DirectoryEntry& entry : *entries) {
    if (const int rank = RankOfLog(entry.name, config.identity.name()); rank >= 0)
      ranks.push_back(rank);
  }
  std::sort(ranks.begin(), ranks.end());
  return ranks;
}

}  // namespace

std::vector<v1::WorkerMessage> ReadRankLogs(FileSystem& files, const session::Config& config,
                                            const v1::ReadLogs& request,
                                            const std::set<int>& running) {
  std::vector<v1::WorkerMessage> messages(1);
  size_t bytes = 0;
  for (int rank : RanksOf(files, config, request)) {
    auto [text, left_out] = TailOfAll(files, session::RankLogPath(config, request.job(), rank));
    if (running.contains(rank)) text.erase(text.rfind('\n') + 1);
    if (left_out > 0) {
      messages.back().mutable_log_lines()->add_lines(
          fmt::format("… {} bytes are missing here", left_out));
    }
    for (size_t begin = 0; begin < text.size();) {
      const size_t end = std::min(text.find('\n', begin), text.size());
      if (bytes > kMessageBytes) {
        messages.emplace_back();
        bytes = 0;
      }
      AddLine(std::string_view(text).substr(begin, end - begin),
              messages.back().mutable_log_lines());
      bytes += end - begin + 8;
      begin = end + 1;
    }
  }
  for (v1::WorkerMessage& message : messages)
    message.mutable_log_lines()->set_request(request.request());
  messages.back().mutable_log_lines()->set_last(true);
  return messages;
}

Status RemoveRankLogs(FileSystem& files, const session::Config& config, const std::string& job,
                      int64_t before_ns) {
  const std::string folder = ParentDirectory(session::RankLogPath(config, job, 0));
  const auto entries = files.List(folder);
  if (entries.status().code() == StatusCode::kNotFound) return OkStatus();
  TROUPE_RETURN_IF_ERROR(entries.status());
  bool others = false;
  for (const DirectoryEntry& entry : *entries) {
    const std::string path = JoinPath(folder, entry.name);
    const auto written = WrittenAt(path);
    if (IsOfWorker(entry.name, config.identity.name()) && written && *written < before_ns) {
      TROUPE_RETURN_IF_ERROR(files.Remove(path));
    } else {
      others = true;
    }
  }
  return others ? OkStatus() : files.RemoveDirectory(folder);
}

}  // namespace troupe
