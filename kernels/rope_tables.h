// Cosines and sines of a program's rotary embeddings, one table for each rotation that it has: made once on the host,
// kept in the backend's working memory.
#ifndef TROUPE_KERNELS_ROPE_TABLES_H_
#define TROUPE_KERNELS_ROPE_TABLES_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "kernels/arguments.h"
#include "model/program/program.h"

namespace troupe::kernels {

class RopeTables {
 public:
  // Of every kRope of `program`, with a row for each position of its longest sample; numbers are
  // rounded to the rotation's buffer dtype. Positions that no sample has are beyond them, where
  // kernels compute with float32.
  explicit RopeTables(const model::Program& program);

  // Of all tables, each at a multiple of 64.
  int64_t bytes() const { return bytes_; }
  // Fills `memory`, of bytes().
  void Fill(std::span<std::byte> memory) const;
  // Completes `args`: addresses in the tables that begin at `base`, and their rows. REQUIRES: the program has `attributes`.
  void Place(const model::RopeAttributes& attributes, const char* base, RopeArgs* args) const;

 private:
  struct Table {
    model::RopeAttributes attributes;
    int64_t offset;  // table f[rows, D], then frequencies d[D/2]
  };

  void Add(const model::RopeAttributes& attributes);
  const Table* Find(const model::RopeAttributes& attributes) const;

  std::vector<Table> tables_;
  int64_t rows_ = 0;
  int64_t bytes_ = 0;
};

}  // namespace troupe::kernels

#endif  // TROUPE_KERNELS_ROPE_TABLES_H_
