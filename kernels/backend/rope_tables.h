// Tables of cosines and sines for a program's rotary embeddings, one for each distinct rotation.
// The host computes them once; they are stored in the backend's working memory.
#ifndef TROUPE_KERNELS_BACKEND_ROPE_TABLES_H_
#define TROUPE_KERNELS_BACKEND_ROPE_TABLES_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "kernels/backend/arguments.h"
#include "model/program/program.h"

namespace troupe::kernels {

class RopeTables {
 public:
  // Makes tables for every kRope of `program`, with one row per position of its longest sample.
  // Numbers are rounded to the rotation's buffer dtype. For positions beyond the tables, which no
  // sample has, kernels compute in float32.
  explicit RopeTables(const model::Program& program);

  // Total bytes of all tables; each starts at a multiple of 64.
  int64_t bytes() const { return bytes_; }
  // Writes the tables to `memory`, which has bytes() bytes.
  void Fill(std::span<std::byte> memory) const;
  // Sets the table addresses in `args`, for tables that start at `base`, and their number of rows.
  // REQUIRES: the program has `attributes`.
  void Place(const model::RopeAttributes& attributes, const char* base, RopeArgs* args) const;

 private:
  struct Table {
    model::RopeAttributes attributes;
    int64_t offset;  // byte offset of table f[rows, D], followed by frequencies d[D/2]
  };

  void Add(const model::RopeAttributes& attributes);
  const Table* Find(const model::RopeAttributes& attributes) const;

  std::vector<Table> tables_;
  int64_t rows_ = 0;
  int64_t bytes_ = 0;
};

}  // namespace troupe::kernels

#endif  // TROUPE_KERNELS_BACKEND_ROPE_TABLES_H_
