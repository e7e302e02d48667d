// Measures checkpoints of the state of llama-124m with AdamW (float32 parameters and both moments)
// against the speed of the disk itself.
//
// It prints {"bytes": …}, then "ready". Then each line on stdin names a command, and the answer is
// its seconds:
//   write          the same bytes with plain O_DIRECT writes of 8 MiB and fdatasync
//   read           as many bytes with O_DIRECT reads of 8 MiB, four in flight
//   copy           the snapshot, for which a step's update may have to wait
//   save           the write of the snapshot, until it is durable
//   save-between   a save without a snapshot: gathered, hashed, written, until it is durable
//   load-same      the whole state from a checkpoint of one rank, in the same layout
//   load-reshard   the whole state, as a rank of data 4 has it, from one of pipe 2 x tensor 2
//   method         answers with the write method of the last save
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <iostream>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "base/aligned_memory.h"
#include "base/file_system.h"
#include "base/flag_parser.h"
#include "base/io_ring.h"
#include "base/status.h"
#include "checkpoint/format/attempt.h"
#include "checkpoint/format/manifest.h"
#include "checkpoint/read/shard_reader.h"
#include "checkpoint/write/ownership.h"
#include "checkpoint/write/shard_writer.h"
#include "checkpoint/write/snapshot.h"
#include "plan/job/job_defaults.h"
#include "plan/job/job_file.h"
#include "plan/layout/mesh.h"
#include "plan/layout/placement.h"
#include "plan/make_plan.h"
#include "plan/validate/validate.h"
#include "worker/executor/shards.h"

namespace troupe {
namespace {

constexpr int64_t kPieceBytes = int64_t{8} << 20;

[[noreturn]] void Refuse(const std::string& message) {
  fmt::print(stderr, "troupe-bench-checkpoint: {}\n", message);
  std::exit(2);
}

void Must(const Status& status) {
  if (!status.ok()) Refuse(ToString(status));
}

void MustCall(bool ok, std::string_view what) {
  if (!ok) Refuse(ToString(ErrnoStatus(errno, what)));
}

using RankSlices = std::vector<std::vector<GlobalSlice>>;

RankSlices SlicesOf(const std::vector<std::string>& overrides) {
  v1::JobSpec spec;
  Must(ApplyOverride("model.preset=llama-124m", &spec));
  for (const std::string& override : overrides) Must(ApplyOverride(override, &spec));
  ApplyDefaults(&spec);
  const auto plan =
      MakePlan(spec, ImaginedCluster(static_cast<int>(RankCount(spec.parallelism())), "cpu"));
  Must(plan.status());
  auto slices = SlicesOfRanks(spec, *plan);
  Must(slices.status());
  return *std::move(slices);
}

// The tensors of a list of slices, contiguous in memory.
class State {
 public:
  explicit State(std::vector<GlobalSlice> slices) : slices_(std::move(slices)) {
    int64_t bytes = 0;
    for (const GlobalSlice& slice : slices_) {
      offsets_.push_back(bytes);
      bytes += *DenseBytes(slice.box.shape, slice.dtype);
    }
    auto memory = AlignedMemory::Make(bytes);
    Must(memory.status());
    memory_ = *std::move(memory);
    // Random bytes, not compressible, like weights.
    uint64_t x = 88172645463325252u;
    for (size_t i = 0; i + 8 <= memory_.bytes().size(); i += 8) {
      x ^= x << 13;
      x ^= x >> 7;
      x ^= x << 17;
      std::memcpy(memory_.bytes().data() + i, &x, 8);
    }
  }

  std::span<std::byte> DataOf(size_t i) const {
    return memory_.bytes().subspan(
        static_cast<size_t>(offsets_[i]),
        static_cast<size_t>(*DenseBytes(slices_[i].box.shape, slices_[i].dtype)));
  }
  std::vector<ShardTensor> Owned(const std::vector<OwnedRows>& owned) const {
    std::vector<ShardTensor> tensors;
    for (const OwnedRows& rows : owned) {
      const GlobalSlice part = RowsOf(slices_[rows.slice], rows);
      tensors.push_back(
          {part, DataOf(rows.slice)
                     .subspan(static_cast<size_t>(ByteOffsetOf(slices_[rows.slice], rows)),
                              static_cast<size_t>(*DenseBytes(part.box.shape, part.dtype)))});
    }
    return tensors;
  }
  std::vector<LoadTarget> Targets() const {
    std::vector<LoadTarget> targets;
    for (size_t i = 0; i < slices_.size(); ++i) targets.push_back({slices_[i], DataOf(i)});
    return targets;
  }
  std::span<std::byte> bytes() const { return memory_.bytes(); }

 private:
  const std::vector<GlobalSlice> slices_;
  std::vector<int64_t> offsets_;
  AlignedMemory memory_;
};

class Bench {
 public:
  explicit Bench(std::string directory)
      : directory_(std::move(directory)),
        whole_(SlicesOf({})),
        state_(whole_[0]),
        owned_(state_.Owned(AssignOwners(whole_)[0])) {
    Must(MakeDirectories(files_, directory_));
    auto snapshot = Snapshot::Make(0, owned_);
    Must(snapshot.status());
    snapshot_.emplace(*std::move(snapshot));
    Must(snapshot_->Copy(stop_));
    WriteCheckpoint("same", whole_);
    WriteCheckpoint("reshard", SlicesOf({"parallelism.pipeline_parallel_degree=2",
                                         "parallelism.tensor_parallel_degree=2",
                                         "training={global_batch_size: 4, micro_batch_size: 1}"}));
    Write();
  }

  ~Bench() {
    for (const char* name : {"same", "reshard"}) {
      const auto entries = files_.List(JoinPath(directory_, name));
      if (!entries.ok()) continue;
      for (const auto& entry : *entries) {
        (void)files_.Remove(JoinPath(JoinPath(directory_, name), entry.name));
      }
      (void)files_.RemoveDirectory(JoinPath(directory_, name));
    }
    (void)files_.Remove(RawPath());
  }

  int64_t bytes() const { return snapshot_->bytes(); }
  WriteMethod method() const { return method_; }

  void Write() {
    (void)files_.Remove(RawPath());
    Measure([&] {
      const int fd =
          open(RawPath().c_str(), O_WRONLY | O_CREAT | O_EXCL | O_DIRECT | O_CLOEXEC, 0644);
      MustCall(fd >= 0, "open with O_DIRECT");
      const auto all = state_.bytes();
      for (size_t at = 0; at < all.size(); at += static_cast<size_t>(kPieceBytes)) {
        const size_t bytes = std::min(static_cast<size_t>(kPieceBytes), all.size() - at);
        MustCall(pwrite(fd, all.data() + at, bytes, static_cast<off_t>(at)) ==
                     static_cast<ssize_t>(bytes),
                 "write");
      }
      MustCall(fdatasync(fd) == 0, "fdatasync");
      close(fd);
    });
  }

  void Read() {
    constexpr int kSlots = 4;
    auto ring = IoRing::Make(kSlots);
    Must(ring.status());
    const auto buffers = AlignedMemory::Make(kSlots * kPieceBytes);
    Must(buffers.status());
    const int fd = open(RawPath().c_str(), O_RDONLY | O_DIRECT | O_CLOEXEC);
    MustCall(fd >= 0, "open with O_DIRECT");
    const int64_t all = static_cast<int64_t>(state_.bytes().size());
    Measure([&] {
      int64_t at = 0;
      int in_flight = 0;
      const auto start = [&](uint64_t slot) {
        const int64_t bytes = std::min(kPieceBytes, all - at);
        Must((*ring)->StartRead(fd, at,
                                buffers->bytes().subspan(slot * static_cast<size_t>(kPieceBytes),
                                                         static_cast<size_t>(bytes)),
                                slot));
        at += bytes;
        ++in_flight;
      };
      for (uint64_t slot = 0; slot < kSlots && at < all; ++slot) start(slot);
      while (in_flight > 0) {
        const auto done = (*ring)->Next();
        Must(done.status());
        if (done->result <= 0) Refuse(ToString(ErrnoStatus(-done->result, "read")));
        --in_flight;
        if (at < all) start(done->request);
      }
    });
    close(fd);
  }

  void Copy() {
    Measure([&] { Must(snapshot_->Copy(stop_)); });
  }

  void Save() {
    InAttempt([&](const std::string& path) {
      return snapshot_->Write(files_, path, {.method = &method_}).status();
    });
  }

  void SaveBetween() {
    InAttempt([&](const std::string& path) {
      return WriteShard(files_, path, 0, owned_, {.method = &method_}).status();
    });
  }

  void Load(const std::string& name) {
    const std::string path = JoinPath(directory_, name);
    const auto manifest = ReadManifest(files_, path, "");
    Must(manifest.status());
    const std::vector<LoadTarget> targets = state_.Targets();
    Measure([&] { Must(LoadSlices(files_, path, *manifest, targets)); });
  }

  double seconds() const { return seconds_; }  // duration of the last command

 private:
  std::string RawPath() const { return JoinPath(directory_, "raw"); }

  void Measure(const std::function<void()>& work) {
    const auto begin = std::chrono::steady_clock::now();
    work();
    seconds_ = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  }

  void InAttempt(const std::function<Status(const std::string&)>& save) {
    const std::string path = JoinPath(directory_, AttemptName(1, 1, ++attempt_, 0));
    Measure([&] {
      Must(MakeAttemptDirectory(files_, path));
      Must(save(path));
    });
    Must(DeleteAttempt(files_, path));
  }

  void WriteCheckpoint(const std::string& name, const RankSlices& slices) {
    const std::string path = JoinPath(directory_, name);
    Must(MakeAttemptDirectory(files_, path));
    const auto owners = AssignOwners(slices);
    v1::CheckpointManifest manifest;
    manifest.set_format_version(kManifestFormatVersion);
    for (size_t rank = 0; rank < slices.size(); ++rank) {
      const State part(slices[rank]);
      auto shard = WriteShard(files_, path, static_cast<int>(rank), part.Owned(owners[rank]));
      Must(shard.status());
      *manifest.add_shards() = *std::move(shard);
    }
    Must(WriteManifest(files_, path, manifest).status());
  }

  const std::string directory_;
  PosixFileSystem files_;
  const RankSlices whole_;
  const State state_;
  const std::vector<ShardTensor> owned_;
  std::optional<Snapshot> snapshot_;
  const std::atomic<bool> stop_{false};
  WriteMethod method_ = WriteMethod::kBuffered;
  int64_t attempt_ = 0;
  double seconds_ = 0;
};

int Main(int argc, char** argv) {
  std::string directory;
  FlagParser parser({.name = "troupe-bench-checkpoint",
                     .usage = "troupe-bench-checkpoint --directory DIR < commands",
                     .summary = "Runs one command per line of standard input and prints its "
                                "seconds: write, read, copy, save, save-between, load-same, "
                                "load-reshard; method prints the write method."});
  parser.AddText({"--directory", "DIR", "directory of the checkpoints; required"}, &directory);
  const std::optional<int> ended = parser.ParseMain(argc, argv, [&]() -> Status {
    return directory.empty() ? InvalidArgument("--directory is required") : OkStatus();
  });
  if (ended) return *ended;
  Bench bench(directory);
  fmt::print("{{\"bytes\": {}}}\nready\n", bench.bytes());
  std::fflush(stdout);
  const std::map<std::string, std::function<void()>> commands{
      {"write", [&] { bench.Write(); }},
      {"read", [&] { bench.Read(); }},
      {"copy", [&] { bench.Copy(); }},
      {"save", [&] { bench.Save(); }},
      {"save-between", [&] { bench.SaveBetween(); }},
      {"load-same", [&] { bench.Load("same"); }},
      {"load-reshard", [&] { bench.Load("reshard"); }},
  };
  std::string line;
  while (std::getline(std::cin, line)) {
    if (line == "method") {
      fmt::print("{}\n", Name(bench.method()));
    } else {
      const auto command = commands.find(line);
      if (command == commands.end()) Refuse("no command \"" + line + "\"");
      command->second();
      fmt::print("{:.6f}\n", bench.seconds());
    }
    std::fflush(stdout);
  }
  return 0;
}

}  // namespace
}  // namespace troupe

int main(int argc, char** argv) { return troupe::Main(argc, argv); }
