// An untrusted indexed dataset is either refused, or every token of every sequence can be read. The
// first two bytes of the input are the size of the .bin file, the rest is the .idx file.
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <memory>
#include <vector>

#include "base/check.h"
#include "data/indexed_dataset.h"

namespace {

using troupe::StatusOr;

class Bytes final : public troupe::MappedFile {
 public:
  explicit Bytes(std::vector<std::byte> bytes) : bytes_(std::move(bytes)) {}
  std::span<const std::byte> bytes() const override { return bytes_; }

 private:
  const std::vector<std::byte> bytes_;
};

// Two files in memory. Of the operations, it implements only Map.
class TwoFiles final : public troupe::FileSystem {
 public:
  TwoFiles(std::vector<std::byte> index, std::vector<std::byte> data)
      : index_(std::move(index)), data_(std::move(data)) {}

  StatusOr<std::unique_ptr<troupe::MappedFile>> Map(const std::string& path,
                                                    troupe::SymbolicLinks) override {
    return std::make_unique<Bytes>(path.ends_with(".idx") ? index_ : data_);
  }
  StatusOr<std::unique_ptr<troupe::WritableFile>> Create(const std::string& path,
                                                         troupe::CreateMode) override {
    return Refuse(path);
  }
  StatusOr<std::unique_ptr<troupe::StreamingFile>> CreateStreaming(
      const std::string& path, const troupe::StreamingOptions&) override {
    return Refuse(path);
  }
  StatusOr<std::unique_ptr<troupe::ReadableFile>> Open(const std::string& path,
                                                       troupe::SymbolicLinks) override {
    return Refuse(path);
  }
  troupe::Status Rename(const std::string& from, const std::string&) override {
    return Refuse(from);
  }
  troupe::Status Remove(const std::string& path) override { return Refuse(path); }
  troupe::Status RemoveDirectory(const std::string& path) override { return Refuse(path); }
  troupe::Status MakeDirectory(const std::string& path) override { return Refuse(path); }
  troupe::Status SyncDirectory(const std::string& path) override { return Refuse(path); }
  StatusOr<std::vector<troupe::DirectoryEntry>> List(const std::string& path) override {
    return Refuse(path);
  }
  StatusOr<troupe::FileInfo> Stat(const std::string& path, troupe::SymbolicLinks) override {
    return Refuse(path);
  }
  StatusOr<int64_t> FreeBytes(const std::string& path) override { return Refuse(path); }

 private:
  static troupe::Status Refuse(const std::string& path) {
    return troupe::PermissionDenied("{}", path);
  }
  const std::vector<std::byte> index_;
  const std::vector<std::byte> data_;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 2) return 0;
  uint16_t data_bytes = 0;
  std::memcpy(&data_bytes, data, sizeof(data_bytes));
  const auto input = std::as_bytes(std::span(data, size));
  TwoFiles files({input.begin() + 2, input.end()}, std::vector<std::byte>(data_bytes));
  const auto dataset = troupe::IndexedDataset::Open(files, "x");
  if (!dataset.ok()) return 0;
  TROUPE_CHECK(dataset->tokens() <= data_bytes);
  TROUPE_CHECK(dataset->SequenceBegin(dataset->sequences()) == dataset->tokens());
  TROUPE_CHECK(dataset->DocumentBegin(dataset->documents()) == dataset->sequences());
  std::vector<int32_t> tokens(static_cast<size_t>(dataset->tokens()));
  TROUPE_CHECK_OK(dataset->Read(0, 1, tokens));
  for (int64_t s = 0; s < dataset->sequences(); ++s) {
    TROUPE_CHECK(dataset->SequenceBegin(s) <= dataset->SequenceBegin(s + 1));
  }
  return 0;
}
